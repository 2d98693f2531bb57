"""From cells to what is seen: lines in groups, the paper's values beside ours, marks and their footnotes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from hashbench.errors import HashbenchError
from hashbench.method import GROUPS
from hashbench.reports.aggregate import BLOCK, LINE, known_card, line_labels
from hashbench.reports.significance import ALPHA, can_find_significance
from hashbench.reports.tables.cells import grouped, records, records_by
from hashbench.reports.tables.formats import Block, Entry, Groups
from hashbench.reports.tables.layout import Layout
from hashbench.reports.tables.published import Published
from hashbench.scoring.metrics import get_metric

_NOT_RUN = Entry("-")


def make_blocks(cells: pd.DataFrame, layout: Layout, published: Sequence[Published]) -> list[Block]:
    """Lay out the cells of a table beside the paper's numbers.

    There is a block for each dataset, features, fingerprint and, unless they stand beside each other, metric; then one
    for each of the paper's datasets that was not run here.
    """
    blocks, labels = [], line_labels(cells)
    for keys, block in grouped(cells, BLOCK if layout.beside else (*BLOCK, "metric")):
        dataset, features, fingerprint, *metrics = keys
        metrics = metrics or [*layout.beside, layout.metric]
        paper = [one for one in published if one.our_dataset == dataset and one.our_metric in metrics]
        columns, header = _columns(layout, metrics, [*block["n_bits"], *(one.n_bits for one in paper)], bool(paper))
        groups = _groups(labels, block, columns, paper)
        notes = [*_notes_on_cells(block, fingerprint), *_notes_on_marks(block, groups)]
        notes += _notes_on_paper(block, features, metrics, paper)
        title = f"{dataset} ({features})"
        others = set(cells[(cells["dataset"] == dataset) & (cells["features"] == features)]["dataset_fingerprint"])
        if len(others) > 1:
            title += f", data {fingerprint}"
            notes.append(
                f"Another block of this name holds other data ({', '.join(sorted(others - {fingerprint}))}): "
                "its values are not comparable with these."
            )
        blocks.append(Block(f"{title}: {' beside '.join(metrics)}", header, groups, notes))
    there = set(zip(cells["dataset"], cells["metric"], strict=True))
    lacking: dict[tuple[str, tuple[str, ...]], list[Published]] = {}
    for one in published:
        shown = (*layout.beside, layout.metric) if layout.beside else (one.our_metric,)
        if not any((one.our_dataset, metric) in there for metric in shown):
            lacking.setdefault((one.our_dataset, shown), []).append(one)
    for (dataset, shown), paper in lacking.items():
        columns, header = _columns(layout, shown, [one.n_bits for one in paper], True)
        groups = _groups({}, cells[:0], columns, paper)
        notes = [*_notes_on_metrics(shown), f"Paper: {paper[0].source}, {paper[0].name}. Not run here."]
        blocks.append(Block(f"{dataset}: {' beside '.join(shown)}", header, groups, notes))
    return blocks


def make_uncertainty_blocks(cells: pd.DataFrame) -> list[Block]:
    """Lay out the three kinds of uncertainty of cells with intervals over queries, in columns of their own."""
    header = ["method", "value", "spread over seeds", "confidence over queries", "range over tie-breaking"]
    blocks, labels = [], line_labels(cells)
    for keys, block in grouped(cells, [*BLOCK, "metric"]):
        groups = [
            (
                f"{n_bits} bits",
                [
                    (
                        labels[cell.method, cell.params, cell.method_version],
                        [
                            Entry(f"{cell.value:.4f}", bool(cell.is_best)),
                            Entry("-" if pd.isna(cell.spread) else f"{cell.spread:.4f}"),
                            Entry("-" if pd.isna(cell.from_) else f"{cell.from_:.4f} to {cell.to:.4f}"),
                            Entry(f"{cell.low:.4f} to {cell.high:.4f}"),
                        ],
                    )
                    for cell in records(column)
                ],
            )
            for (n_bits,), column in grouped(block.sort_values("n_bits", kind="stable"), ["n_bits"])
        ]
        notes = [
            "Spread: standard deviation over seeds. Confidence: 95 % bootstrap interval over queries, of the mean over "
            "seeds. Range: the lowest and highest value that tie-breaking could give. A dash: one seed, or the scores "
            f"of its queries are not in the data folder. Data {keys[2]}."
        ]
        blocks.append(Block(f"Uncertainty of {keys[0]} ({keys[1]}): {keys[3]}", header, groups, notes))
    return blocks


def _columns(
    layout: Layout, metrics: Sequence[str], n_bits: Iterable[int], has_paper: bool
) -> tuple[list[tuple[str, int]], list[str]]:
    """Give the metric and length of each column, and the header."""
    columns = [(metric, length) for length in sorted(set(n_bits)) for metric in metrics]
    header = ["method"]
    for metric, length in columns:
        header += [f"{length} bits {metric}" if layout.beside else f"{length} bits", *(["paper"] * has_paper)]
    return columns, header


def _groups(
    labels: Mapping[tuple[str, str, int], str],
    block: pd.DataFrame,
    columns: Sequence[tuple[str, int]],
    paper: Sequence[Published],
) -> Groups:
    """Lay out our lines, and below those of their group the paper's that were not run."""
    groups: dict[str, list[tuple[str, list[Entry]]]] = {name: [] for name in (*GROUPS, "")}
    left = dict.fromkeys((one.method, one.group) for one in paper)
    is_mixed = bool((block["n_seeds"] > 1).any())
    for (group, method, params, version), line in records_by(block, ["group", *LINE]).items():
        ours = {(cell.metric, cell.n_bits): _entry(cell, is_mixed) for cell in line}
        same = [one for one in paper if one.is_of(method, json.loads(params))]
        for one in same:
            left.pop((one.method, one.group), None)
        groups[group].append((labels[method, params, version], _row(ours, same, columns, bool(paper))))
    for method, group in left:
        row = _row({}, [one for one in paper if one.method == method], columns, True)
        groups[group].append((method, row))
    return [(group or "other", lines) for group, lines in groups.items() if lines]


def _row(
    ours: Mapping[tuple[str, int], Entry],
    same: Iterable[Published],
    columns: Sequence[tuple[str, int]],
    has_paper: bool,
) -> list[Entry]:
    theirs = {(one.our_metric, one.n_bits): Entry(one.value) for one in same}
    row = []
    for column in columns:
        row += [ours.get(column, _NOT_RUN), *([theirs.get(column, Entry(""))] if has_paper else [])]
    return row


def _entry(cell: Any, is_mixed: bool) -> Entry:
    text = f"{cell.value:.4f}" + ("" if pd.isna(cell.spread) else f" ± {cell.spread:.4f}")
    marks = {
        "†": cell.overlaps,
        "‡": getattr(cell, "p_value", 0) >= ALPHA,
        "§": is_mixed and cell.n_seeds == 1 and _is_random(cell.method),
    }
    return Entry(text, bool(cell.is_best), "".join(mark for mark, has in marks.items() if has))


def _is_random(method: str) -> bool:
    card = known_card(method)
    return card is not None and "random_state" in card.params


def _notes_on_cells(block: pd.DataFrame, fingerprint: str) -> list[str]:
    undefined, n_queries = block["n_undefined"].iloc[0], block["n_queries"].iloc[0]
    queries = f"{n_queries - undefined} of {n_queries} queries" if undefined else f"{n_queries} queries"
    *fewer, most = sorted(set(block["n_seeds"]))
    seeds = f"{', '.join(map(str, fewer))} or {most}" if fewer else str(most)
    many = f" and over {seeds} seeds (± their standard deviation)" if most > 1 else ", one seed"
    return [f"Means over {queries}{many}; data {fingerprint}."]


def _notes_on_marks(block: pd.DataFrame, groups: Groups) -> list[str]:
    entries = [entry for _, lines in groups for _, line in lines for entry in line]
    notes = []
    if any(entry.is_best for entry in entries):
        notes.append("Bold: the best, sanity baselines aside.")
    if any("†" in entry.marks for entry in entries):
        notes.append(
            "†: its range over tie-breaking overlaps that of the best; an evaluator that breaks ties by luck may turn "
            "their order around."
        )
    if "p_value" in block:
        n_tested, n_others = block["p_value"].notna().sum(), (~block["is_best"] & (block["group"] != "baseline")).sum()
        notes.append(
            f"‡: a paired permutation test over queries does not tell it from the best (p >= {ALPHA} after Holm's "
            f"correction in its column); {n_tested} of {n_others} could be tested, of the others the scores of every "
            "query are not in the data folder."
        )
        if not can_find_significance(block.groupby(["metric", "n_bits"])["p_value"].count().max()):
            notes.append("So many methods leave no p below it: ‡ says nothing here; lay out fewer of them.")
    if any("§" in entry.marks for entry in entries):
        notes.append("§: one seed of a method that draws at random.")
    if any(entry == _NOT_RUN for entry in entries):
        notes.append("A dash: not run, or refused by the method.")
    return notes


def _notes_on_paper(
    block: pd.DataFrame, features: str, metrics: Iterable[str], paper: Sequence[Published]
) -> list[str]:
    notes = _notes_on_metrics(metrics)
    if not paper:
        return notes
    lines = dict.fromkeys((cell.method, cell.params) for cell in records(block))
    pairs = [(one, params) for one in paper for method, params in lines if one.is_of(method, json.loads(params))]
    found = [text for one, params in pairs for text in one.differs(features, params)]
    found = found or [text for one in paper for text in one.differs(features)]
    notes.append(
        f"Paper: {paper[0].source}, {paper[0].name}; names in its spelling are its rows that were not run here. "
        f"What differs here: {'; '.join(dict.fromkeys(found)) or 'nothing known'}."
    )
    return notes


def _notes_on_metrics(metrics: Iterable[str]) -> list[str]:
    return [f"hashbench has no metric {metric} yet." for metric in metrics if not _is_metric(metric)]


def _is_metric(name: str) -> bool:
    try:
        get_metric(name)
    except HashbenchError:
        return False
    return True
