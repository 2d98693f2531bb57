"""From cells to blocks: lines in groups, the paper's values beside ours, marks and their notes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from hashbench.errors import counted
from hashbench.method import GROUPS
from hashbench.reports.aggregate import (
    BLOCK,
    LINE,
    LineKey,
    common_settings,
    draws,
    known_card,
    line_labels,
    queries_in_words,
    setting_text,
)
from hashbench.reports.row_origins import N_TRIALS, TRIED_ON, has_tried_settings
from hashbench.reports.tables.cells import grouped, records, records_by
from hashbench.reports.tables.layout import TableLayout
from hashbench.reports.tables.markdown import Entry, Groups, Line, Span, Style, TableBlock
from hashbench.reports.tables.nearness import Pair, count_verdicts, describe_agreement, make_pairs
from hashbench.reports.tables.published import Published, is_own, values_beside
from hashbench.reports.ties import OPEN, UNKNOWN
from hashbench.reports.uncertainty import IN_WORDS, describe_untested
from hashbench.scoring.comparison import ALPHA
from hashbench.unseen import split_name

NOT_RUN = "-"
Column = tuple[str, int]  # metric and code length
Labels = Mapping[LineKey, str]
_SETTINGS = re.compile(r" (?=[A-Za-z_]\w*=|\(version \d)")  # the blank before the settings in a label


def make_blocks(
    cells: pd.DataFrame, layout: TableLayout, published: Sequence[Published], style: Style
) -> list[TableBlock]:
    """Lay out the cells of a table beside the paper's numbers.

    There is one block per dataset, features, fingerprint and, unless metrics stand beside each other, metric; then one
    for each of the paper's datasets that was not run here.
    """
    blocks, labels = [], line_labels(cells)
    fingerprints = {keys: set(part["dataset_fingerprint"]) for keys, part in grouped(cells, ["dataset", "features"])}
    for keys, block in grouped(cells, BLOCK if layout.is_beside else (*BLOCK, "metric")):
        dataset, features, fingerprint, *metrics = keys
        metrics = metrics or list(layout.metrics)
        paper = _papers(published, layout, block, metrics)
        columns, spans = _columns(layout, metrics, [*block["n_bits"], *(value.n_bits for value in paper)], bool(paper))
        pairs = [pair for _, value_pairs in make_pairs(block, paper) for pair in value_pairs]
        block_labels, common = _without_common_settings(labels, block)
        tests = _notes_on_tests(block, block_labels)
        block_labels, effort = _with_effort(block_labels, block)
        groups = _groups(block_labels, block, columns, paper, style)
        protocol = split_name(dataset)[1]
        notes = [f"Unseen classes: {protocol.in_words}."] if protocol else []
        notes += [*_notes_on_cells(block), *common, *notes_on_entries(block, groups), *tests, *effort]
        notes += _notes_on_versions(block)
        place = f"{dataset} ({features})"
        others = sorted(fingerprints[dataset, features] - {fingerprint})
        if others:
            place += f", data {fingerprint}"
            notes.append(
                f"Another block of this name holds other data ({', '.join(others)}): "
                "its values are not comparable with these."
            )
        paragraphs = [" ".join(notes), *_notes_on_papers(layout, paper, pairs)]
        key = key_of(block, groups, is_ablation=layout.is_ablation)
        blocks.append(_block(layout, place, metrics, spans, groups, paragraphs, fingerprint, key))
    run = set(zip(cells["dataset"], cells["metric"], strict=True))
    not_run: dict[tuple[str, tuple[str, ...]], list[Published]] = {}
    for value in published:
        shown = layout.metrics if layout.is_beside else (value.our_metric,)
        if is_own(value, layout) and not any((value.our_dataset, metric) in run for metric in shown):
            not_run.setdefault((value.our_dataset, shown), []).append(value)
    for (dataset, shown), paper in not_run.items():
        columns, spans = _columns(layout, shown, [value.n_bits for value in paper], True)
        groups = _groups({}, cells[:0], columns, paper, style)
        notes = [f"Paper: {paper[0].source}, {paper[0].name}. Not run here."]
        blocks.append(_block(layout, dataset, shown, spans, groups, notes))
    return blocks


def compared(
    cells: pd.DataFrame, layout: TableLayout, published: Sequence[Published]
) -> list[tuple[Published, list[Pair]]]:
    """List the values of a table, each with the cells that stand for it: its own paper's, then others'."""
    compared_values = list(make_pairs(cells, [value for value in published if is_own(value, layout)]))
    without_cells: dict[tuple[Any, ...], Published] = {}
    for (*_, metric), block in grouped(cells, [*BLOCK, "metric"]):
        others = [value for value in _papers(published, layout, block, [metric]) if not is_own(value, layout)]
        for value, pairs in make_pairs(block, others):
            if pairs:
                compared_values.append((value, pairs))
            else:
                without_cells.setdefault(value.place, value)
    run = {value.place for value, _ in compared_values}
    return [*compared_values, *((value, []) for place, value in without_cells.items() if place not in run)]


def make_uncertainty_blocks(cells: pd.DataFrame, style: Style) -> list[TableBlock]:
    """Lay out the uncertainty of cells: a column per kind, and one for p."""
    kinds = ("sd over seeds", "95 % interval", "shuffle sd", "worst case of ties")
    spans = [Span(name) for name in ("value", *kinds, f"p against {cells['against'].iloc[0] or 'the best'}")]
    blocks, labels = [], line_labels(cells)

    def line(cell: Any) -> Line:
        entries = [
            Entry(style.number(cell.value), is_best=bool(cell.is_best)),
            Entry(style.number(cell.spread)),
            Entry(tie_range(style, cell.from_, cell.to)),
            Entry("-" if pd.isna(cell.tie_sd) else f"{cell.tie_sd:.5f}"),
            Entry(tie_range(style, cell.low, cell.high)),
            Entry("-" if pd.isna(cell.p_value) else "<0.0001" if cell.p_value < 1e-4 else f"{cell.p_value:.4f}"),
        ]
        return make_line(labels[_line_of(cell)], entries)

    for keys, block in grouped(cells, [*BLOCK, "metric"]):
        groups = [(f"{n_bits} bits", [*map(line, records(column))]) for n_bits, column in block.groupby("n_bits")]
        notes = [
            f"95 % interval: of the mean, {_basis_of(block)}. Shuffle sd: how far a shuffle of the database moves the "
            "value, as a standard deviation. Worst case: each query's ties broken separately. p: corrected as for ‡. A "
            "dash: not known."
        ]
        title = f"Uncertainty of {keys[0]} ({keys[1]}): {keys[3]}"
        caption = f"Uncertainty of {keys[3]} on {keys[0]} ({keys[1]})."
        blocks.append(TableBlock(title, caption, spans, groups, notes, keys[2]))
    return blocks


def _basis_of(block: pd.DataFrame) -> str:
    """Return what intervals and tests of a block are over, by code length where that differs."""
    lengths: dict[str, list[str]] = {}
    for n_bits, column in block.groupby("n_bits"):
        for basis in column["basis"].unique():
            lengths.setdefault(basis, []).append(str(n_bits))
    if len(lengths) == 1:
        return IN_WORDS[next(iter(lengths))]
    return "; ".join(f"at {', '.join(numbers)} bits {IN_WORDS[basis]}" for basis, numbers in lengths.items())


def _block(
    layout: TableLayout,
    place: str,
    metrics: Sequence[str],
    spans: Sequence[Span],
    groups: Groups,
    notes: Sequence[str],
    data: str = "",
    key: Mapping[str, str] | None = None,
) -> TableBlock:
    names = " beside ".join(metrics)
    caption = f"{names} on {place}. {layout.remark}".rstrip()
    return TableBlock(f"{place}: {names}", caption, spans, groups, notes, data, key or {})


def _papers(
    published: Iterable[Published], layout: TableLayout, block: pd.DataFrame, metrics: Sequence[str]
) -> list[Published]:
    dataset, features = str(block["dataset"].iloc[0]), str(block["features"].iloc[0])
    values = [value for value in published if value.our_dataset == dataset and value.our_metric in metrics]
    return values_beside(values, layout, features, set(block["n_bits"]))


def tie_range(style: Style, low: float, high: float) -> str:
    """Write a range; a dash if it is not known."""
    return "-" if pd.isna(low) else f"{style.number(low)} to {style.number(high)}"


def _columns(
    layout: TableLayout, metrics: Sequence[str], n_bits: Iterable[int], has_paper: bool
) -> tuple[list[Column], list[Span]]:
    lengths = sorted(set(n_bits))
    headings = list(metrics) if layout.is_beside else ["ours" if has_paper else ""]
    if has_paper:
        headings = [name for heading in headings for name in (heading, "paper")]
    columns = [(metric, length) for length in lengths for metric in metrics]
    return columns, [Span(f"{length} bits", headings) for length in lengths]


def _without_common_settings(labels: Labels, block: pd.DataFrame) -> tuple[Labels, list[str]]:
    """Move the settings that all lines of a block have in common from their labels to a note."""
    settings = [setting_text(key, value) for key, value in common_settings(block).items()]
    for setting in settings:
        labels = {line: f"{label} ".replace(f" {setting} ", " ").rstrip() for line, label in labels.items()}
    return labels, [f"All rows with these parameters use {', '.join(settings)}."] if settings else []


def _with_effort(labels: Labels, block: pd.DataFrame) -> tuple[Labels, list[str]]:
    """Add to the labels of a block how many settings were tried on its data, where lines differ in that, with notes."""
    if "trials" not in block:
        return labels, []
    tried = {line: max(cell.trials for cell in line_cells) for line, line_cells in records_by(block, LINE).items()}
    counts = {tried[line] for line in records_by(block[block["group"] != "baseline"], LINE)}
    notes = []
    if len(counts) > 1:
        labels = {line: f"{label} tuned={tried[line]}" if tried.get(line) else label for line, label in labels.items()}
        notes = [
            "tuned=: chosen among that many settings, on held-out training items of this dataset; other lines have no "
            "recorded trials on it."
        ]
    elif any(counts):
        notes = [f"The settings of each method were chosen among {counts.pop()}."]
    untried = block.loc[block["trials"] == 0, ["method", "params", "n_bits"]].itertuples(index=False)
    if any(has_tried_settings(*settings) for settings in untried):
        places = " and ".join(TRIED_ON.values())
        notes.append(
            f"Defaults and tuned presets of built-in learned methods: chosen among {N_TRIALS} settings, on held-out "
            f"training items of {places}."
        )
    return labels, notes


def _notes_on_versions(block: pd.DataFrame) -> list[str]:
    cards = {method: known_card(method) for method in block["method"].unique()}
    lines = zip(block["method"], block["method_version"], strict=True)
    older = sorted({method for method, version in lines if (card := cards[method]) and version < card.version})
    return [f"Made by earlier versions: {', '.join(older)}."] if older else []


def _groups(
    labels: Labels,
    block: pd.DataFrame,
    columns: Sequence[Column],
    paper: Sequence[Published],
    style: Style,
) -> Groups:
    groups: dict[str, list[Line]] = {name: [] for name in (*GROUPS, "")}
    not_run = {value.line: "" for value in paper}  # the paper's lines, in its order, with their shortest names
    not_run.update((value.line, value.method) for value in sorted(paper, key=lambda value: -len(value.method)))
    is_mixed = bool((block["n_seeds"] > 1).any())

    def row(entries: Mapping[Column, Entry], paper_entries: Mapping[Column, Entry]) -> list[Entry]:
        beside = ((entries.get(column, Entry(NOT_RUN)), paper_entries.get(column, Entry(""))) for column in columns)
        return [entry for both in beside for entry in (both if paper else both[:1])]

    for (group, *line), line_cells in records_by(block, ["group", *LINE]).items():
        entries = {(cell.metric, cell.n_bits): _entry(cell, style, is_mixed=is_mixed) for cell in line_cells}
        paper_entries = {}
        for value in (value for value in paper if value.is_of(line[0], line[1])):
            not_run.pop(value.line, None)
            paper_entries[_column_of(value)] = Entry(value.value)
        label = labels[_line_of(line_cells[0])]
        groups[group].append(make_line(label, row(entries, paper_entries)))
    for paper_line, method in not_run.items():
        paper_entries = {_column_of(value): Entry(value.value) for value in paper if value.line == paper_line}
        groups[paper_line[0]].append(Line(method, "", row({}, paper_entries)))
    return [(group or "other", lines) for group, lines in groups.items() if lines]


def _column_of(value: Published) -> Column:
    return value.our_metric, value.n_bits


def _line_of(cell: Any) -> LineKey:
    return cell.method, cell.params, cell.method_version


def make_line(label: str, entries: Sequence[Entry]) -> Line:
    """Return a line of entries; its label is split into name and settings."""
    method, settings, *_ = [*_SETTINGS.split(label, maxsplit=1), ""]
    return Line(method, settings, entries)


def _entry(cell: Any, style: Style, *, is_mixed: bool) -> Entry:
    is_single = is_mixed and cell.n_seeds == 1 and draws(cell.method, cell.params)
    return make_entry(cell, style, {"‡": getattr(cell, "is_unshown", False), "§": is_single})


def make_entry(cell: Any, style: Style, marks: Mapping[str, bool]) -> Entry:
    """Return the entry of a cell, with these marks after the one for what a shuffle may do."""
    spread = "" if pd.isna(cell.spread) or not style.has_spread else style.number(cell.spread)
    marks = {"†": cell.ties == OPEN, **marks}
    shown_marks = "".join(mark for mark, is_shown in marks.items() if is_shown)
    return Entry(style.number(cell.value), spread, bool(cell.is_best), shown_marks)


def _notes_on_cells(block: pd.DataFrame) -> list[str]:
    *fewer, most = sorted(set(block["n_seeds"]))
    seeds = f"{', '.join(map(str, fewer))} or {most}" if fewer else str(most)
    return [f"Means over {queries_in_words(block)}{f' and {seeds} seeds' if most > 1 else ', one seed'}."]


def key_of(block: pd.DataFrame, groups: Groups, *, is_ablation: bool = False) -> dict[str, str]:
    """Explain each sign that a block has."""
    entries = [entry for _, lines in groups for line in lines for entry in line.entries]
    against = block["against"].iloc[0] if "against" in block and len(block) else ""
    correction = "by Holm's method in its column" if against else "for all pairs of its column"
    lines = {
        "±": "standard deviation over seeds.",
        "Bold": f"the best {'of each method' if is_ablation else 'of a column, sanity baselines aside'}.",
        "†": "a shuffle of the database may reverse it and the best.",
        "‡": f"tested, not shown to differ from {against or 'the best'} (p >= {ALPHA}, corrected {correction}).",
        "§": "one seed of a method that draws at random; its value holds for these codes only.",
        "¶": "a mean over other folds than most, so not compared.",
    }
    signs = {"±"} if any(entry.spread for entry in entries) else set()
    signs |= {"Bold"} if any(entry.is_best for entry in entries) else set()
    signs |= {mark for entry in entries for mark in entry.marks}
    return {sign: line for sign, line in lines.items() if sign in signs}


def notes_on_entries(block: pd.DataFrame, groups: Groups) -> list[str]:
    """Return sentences on what a block lacks."""
    notes = []
    n_unknown, n_ties = int((block["ties"] == UNKNOWN).sum()), int((block["ties"] != "").sum())
    if n_unknown:
        notes.append(
            f"For {n_unknown} of {counted(n_ties, 'cell')} besides the best it is unknown what a shuffle may do: a row "
            "is older than the column tie_sd."
        )
    n_dashes = sum(entry.text == NOT_RUN for _, lines in groups for line in lines for entry in line.entries)
    if n_dashes:
        n_empty = int(block["value"].isna().sum())
        reasons = ["not run, or refused by the method", "no query has a value"]
        notes.append(f"A dash: {'; or '.join(reasons[n_dashes == n_empty : 1 + (n_empty > 0)])}.")
    return notes


def _notes_on_tests(block: pd.DataFrame, labels: Labels) -> list[str]:
    """Return notes on what was tested over what, and on tests that could not be made."""
    if "p_value" not in block or not block["is_reference"].any():
        return []
    names = [labels[line] for line in block[list(LINE)].itertuples(index=False, name=None)]
    untested = describe_untested(block, names, block["against"].iloc[0] or "the best")
    tests = [f"Tests (‡): {_basis_of(block)}."] if block["p_value"].notna().any() else []
    return [*tests, *[untested] * bool(untested)]


def _notes_on_papers(layout: TableLayout, papers: Sequence[Published], pairs: Sequence[Pair]) -> list[str]:
    if not papers:
        return []
    own = [value for value in papers if is_own(value, layout)]
    own_pairs = [pair for pair in pairs if is_own(pair.published, layout)]
    columns: dict[str, list[Pair]] = {}
    for pair in sorted(own_pairs, key=lambda pair: pair.cell.n_bits):
        length = f"{pair.cell.n_bits} bits"
        columns.setdefault(f"{length} {pair.cell.metric}" if layout.is_beside else length, []).append(pair)
    source = f"Paper: {own[0].source}, {own[0].name}; its rows" if own else "Papers: those below; their rows"
    notes = [
        f"{source} that were not run here keep the paper's spelling of names.",
        count_verdicts(len(papers), pairs),
        _what_differs(own_pairs),
        describe_agreement(columns),
    ]
    others = _notes_on_others(papers[len(own) :], pairs)
    return [" ".join(note for note in notes if note), *([others] if others else [])]


def _notes_on_others(papers: Sequence[Published], pairs: Sequence[Pair]) -> str:
    sources: dict[str, list[Published]] = {}
    for value in papers:
        sources.setdefault(f"{value.source}, {value.name}, {value.backbone}", []).append(value)
    notes = []
    for source, values in sources.items():
        lengths: dict[str, list[str]] = {}
        for value in values:
            lengths.setdefault(value.method, []).append(str(value.n_bits))
        methods: dict[str, list[str]] = {}
        for method, method_lengths in lengths.items():
            methods.setdefault(", ".join(method_lengths), []).append(method)
        names = "; ".join(f"{', '.join(group)} at {group_lengths} bits" for group_lengths, group in methods.items())
        differences = _what_differs([pair for pair in pairs if pair.published in values])
        notes.append(f"{names}: {source}. {differences}".strip())
    return f"Values of other papers, those nearest to our set-up. {' '.join(notes)}" if notes else ""


def _what_differs(pairs: Sequence[Pair]) -> str:
    texts = dict.fromkeys(text for pair in pairs for _, text in pair.differs)
    return f"What differs: {'; '.join(texts)}." if texts else ""
