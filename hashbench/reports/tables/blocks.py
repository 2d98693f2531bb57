"""From a view to blocks: lines in groups, the papers' values beside ours, and what is said below."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from hashbench.method import GROUPS
from hashbench.reports.aggregate import (
    ALL_SEEN,
    BLOCK,
    DEFAULTS,
    LINE,
    PLACE,
    SCOPES,
    changed_params,
    common_settings,
    most_folds,
    setting_text,
)
from hashbench.reports.formatting import p_text
from hashbench.reports.marks import OTHERS, bases_in_words, explain, notes_of, queries_in_words, seeds_in_words
from hashbench.reports.row_origins import N_TRIALS, TRIED_ON, has_tried_settings
from hashbench.reports.tables.names import DisplayNames
from hashbench.reports.tables.published import (
    Pair,
    Published,
    TableLayout,
    count_verdicts,
    is_own,
    make_pairs,
    values_beside,
)
from hashbench.reports.tables.text import DASH, SPREAD, Entry, Groups, Line, Span, TableBlock, is_dash
from hashbench.reports.view import grouped, records_by
from hashbench.unseen import split_name

Column = tuple[str, int]  # metric and code length
_OVER_FOLDS = "folds; of methods that saw all classes, over seeds"
_SCOPES = (*SCOPES.values(), ALL_SEEN)
_COMPARISON = (
    "The columns show how well codes separate classes that training did not see: their queries among themselves, and "
    "among all classes; then queries of all classes, and the same methods where training saw all. Compare methods down "
    "a column: among fewer classes any ranking scores more."
)
_ORACLE = (
    "oracle-label is not a rival. It encodes the label itself, with one code for all classes that it was not fitted "
    "with. It is perfect among seen classes, at chance among unseen ones, and separates these from the others as no "
    "classifier can."
)


def make_blocks(
    cells: pd.DataFrame, layout: TableLayout, published: Sequence[Published], names: DisplayNames
) -> list[TableBlock]:
    """Lay out the cells of a table beside the papers' numbers.

    There is one block per dataset, features, fingerprint and, unless metrics stand beside each other, metric.
    """
    blocks = []
    fingerprints = {keys: set(part["dataset_fingerprint"]) for keys, part in grouped(cells, ["dataset", "features"])}
    for keys, block in grouped(cells, BLOCK if layout.is_beside else (*BLOCK, "metric")):
        dataset, features, fingerprint, *metrics = keys
        metrics = metrics or list(layout.metrics)
        paper = _papers(published, layout, block, metrics)
        lengths = sorted({*block["n_bits"]})
        columns = [(metric, length) for length in lengths for metric in metrics]
        spans = _spans(layout, [*map(names.metric, metrics)], lengths, bool(paper))
        block, common = _without_common_settings(block, names)
        groups = _groups(block, columns, paper, names)
        protocol = split_name(dataset)[1]
        notes = [f"Unseen classes: {protocol.in_words}."] if protocol else []
        notes += [f"Means over {queries_in_words(block)} and {seeds_in_words(block['n_seeds'])}.", *common]
        notes += notes_of(block)
        data = ""
        if others := sorted(fingerprints[dataset, features] - {fingerprint}):
            data = f", data {fingerprint}"
            notes.append(f"Not comparable with the block of the same name, whose data are {', '.join(others)}.")
        pairs = [pair for _, value_pairs in make_pairs(block, paper) for pair in value_pairs]
        paragraphs = _notes_on_papers(layout, paper, pairs)
        best = "of each method" if layout.is_ablation else "of a column; sanity baselines do not count"
        place, metric = names.place(dataset, features) + data, " and ".join(map(names.metric, metrics))
        key = _key(block, groups, best=best) | _effort(block, place)
        slug = f"{dataset} ({features}){data}: {' and '.join(metrics)}"
        caption = names.caption(f"{metric} on {place}. {layout.remark}".rstrip(), metric, place)
        title = f"{place}: {metric}"
        blocks.append(TableBlock(title, caption, spans, groups, notes, paragraphs, fingerprint, key, slug=slug))
    return blocks


def make_uncertainty_blocks(cells: pd.DataFrame, names: DisplayNames) -> list[TableBlock]:
    """Lay out the uncertainty of cells: a column per kind, and one for p."""
    kinds = ("sd over seeds", "95 % interval", "tie_sd", "worst case of ties")
    against = _against(cells, names)
    spans = [Span(name) for name in ("value", *kinds, f"p against {against}")]
    meaning = "that no other method is better" if against == OTHERS else f"that it does not differ from {against}"

    def line(cell: Any) -> Line:
        entries = [
            Entry(cell.value, is_best=bool(cell.is_best)),
            Entry(cell.spread),
            Entry((cell.from_, cell.to)),
            Entry(DASH if pd.isna(cell.tie_sd) else f"{cell.tie_sd:.5f}"),
            Entry((cell.low, cell.high)),
            Entry(p_text(cell.p_value)),
        ]
        return Line(cell.label, entries)

    blocks = []
    for keys, block in grouped(cells, [*BLOCK, "metric"]):
        block = _renamed(block, names)
        groups = [
            (f"{n_bits} bits", [*map(line, column.itertuples(index=False))])
            for n_bits, column in block.groupby("n_bits")
        ]
        notes = [
            f"95 % interval: {bases_in_words(block)}. tie_sd: how far the score in one random order of the database "
            "typically lies from the value. Worst case: every query's ties broken in the worst or best way. p: "
            f"{meaning}, corrected for the number of tests."
        ]
        title = f"Uncertainty of {names.place(*keys[:2])}: {names.metric(keys[3])}"
        blocks.append(TableBlock(title, title, spans, groups, notes, data=keys[2], is_detail=True))
    return blocks


def make_fold_blocks(cells: pd.DataFrame, names: DisplayNames) -> list[TableBlock]:
    """Lay out cells over folds, one block per dataset, features, number of unseen classes and code length."""
    blocks, columns = [], [*PLACE, "metric", "n_bits"]
    for keys, block in grouped(cells.sort_values(columns, kind="stable"), columns):
        base, features, n_unseen, metric, n_bits = keys
        block = _renamed(block, names)
        by_group: dict[str, list[Line]] = {name: [] for name in (*GROUPS, "")}
        for (group, label), line_cells in records_by(block, ["group", "label"]).items():
            by_scope = {cell.scope: cell for cell in line_cells}
            entries = [entry for scope in _SCOPES for entry in _fold_entries(by_scope.get(scope))]
            by_group[group].append(Line(label, entries))
        groups = _named(by_group)
        folds = most_folds(block.loc[block["scope"] != ALL_SEEN, "folds"])
        classes = f"{n_unseen} unseen class{'es' * (n_unseen > 1)}"
        unseen = "another class" if n_unseen == 1 else f"{n_unseen} other classes"
        over = f"queries, {seeds_in_words(block['n_seeds'])} and fold{'s' * (',' in folds)} {folds}"
        notes = [
            f"Means over {over}; in each fold training does not see {unseen}. Range: every query's ties broken in the "
            "worst or best way.",
            *notes_of(block),
        ]
        paragraphs = [f"{_COMPARISON} {_ORACLE}" if "oracle-label" in set(block["method"]) else _COMPARISON]
        slug = f"{base} ({features}), {classes}: {metric}, {n_bits} bits"
        place, metric = names.place(base, features), names.metric(metric)
        spans = [Span(scope, (metric, "range")) for scope in _SCOPES]
        title = f"{place}, {classes}: {metric}, {n_bits} bits"
        caption = f"{metric} of {classes} of {place}, {n_bits} bits."
        caption = names.caption(caption, metric, f"{place}, {classes}, {n_bits} bits")
        key = _key(block, groups, _OVER_FOLDS)
        blocks.append(TableBlock(title, caption, spans, groups, notes, paragraphs, key=key, slug=slug))
    return blocks


def _fold_entries(cell: Any) -> list[Entry]:
    return [Entry(DASH)] * 2 if cell is None else [_entry(cell), Entry((cell.low, cell.high))]


def _papers(
    published: Iterable[Published], layout: TableLayout, block: pd.DataFrame, metrics: Sequence[str]
) -> list[Published]:
    dataset, features = str(block["dataset"].iloc[0]), str(block["features"].iloc[0])
    values = [value for value in published if value.our_dataset == dataset and value.our_metric in metrics]
    return values_beside(values, layout, features, set(block["n_bits"]))


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


def _spans(layout: TableLayout, metrics: Sequence[str], lengths: Iterable[int], has_paper: bool) -> list[Span]:
    headings = list(metrics) if layout.is_beside else ["ours" if has_paper else ""]
    if has_paper:
        headings = [name for heading in headings for name in (heading, "paper")]
    return [Span(f"{length} bits", headings) for length in lengths]


def _without_common_settings(block: pd.DataFrame, names: DisplayNames) -> tuple[pd.DataFrame, list[str]]:
    """Move the settings that all lines of a block have in common from their labels to a note; rename the lines.

    A label that would then be that of a tuned line is said to have the defaults. The note on a single line has what its
    label does not say.
    """
    labels, lines = block["label"], block[["method", "params"]].drop_duplicates()
    if len(lines) == 1:
        texts = [setting_text(key, value) for key, value in changed_params(*lines.iloc[0]).items()]
        settings = [text for text in texts if f" {text} " not in f"{labels.iloc[0]} "]
        notes = [f"{labels.iloc[0]} uses {', '.join(settings)}."] if settings else []
    else:
        settings, stripped = [setting_text(key, value) for key, value in common_settings(block).items()], labels
        for setting in settings:
            stripped = stripped.map(lambda label, name=setting: f"{label} ".replace(f" {name} ", " ").rstrip())
        is_stripped = labels != stripped
        labels = stripped.mask(is_stripped & stripped.isin(labels[~is_stripped]), stripped + DEFAULTS)
        notes = [f"All rows that have these parameters use {', '.join(settings)}."] if settings else []
    is_default = labels.str.endswith(DEFAULTS)
    return _renamed(block, names, labels).assign(is_default=is_default), notes


def _renamed(cells: pd.DataFrame, names: DisplayNames, labels: "pd.Series[str] | None" = None) -> pd.DataFrame:
    """Return cells with the labels to show for some, by default their own."""
    cells = cells.assign(label=names.lines(cells["label"] if labels is None else labels, cells["label"]))
    return cells.assign(against=_against(cells, names)) if "against" in cells else cells


def _against(cells: pd.DataFrame, names: DisplayNames) -> str:
    against = str(cells["against"].iloc[0])
    return against if against == OTHERS else names.line(against)


def _effort(block: pd.DataFrame, place: str) -> dict[str, str]:
    """Return a key that says how many settings of which methods were tried on the data of a place."""
    if "trials" not in block:
        return {}
    trials, key = block.groupby(list(LINE))["trials"].transform("max").astype(int), {}
    if (trials > 0).any():
        lines = block["label"][~block["is_default"]]
        methods = {number: sorted(lines[trials == number].unique()) for number in sorted({*trials} - {0})}
        tuned = "; ".join(f"{number} for {', '.join(labels)}" for number, labels in methods.items() if labels)
        key["Tuned"] = f"on {place}, settings chosen on held-out training items, among {tuned}."
    untried = block.loc[block["trials"] == 0, ["method", "params", "n_bits"]].itertuples(index=False)
    if any(has_tried_settings(*settings) for settings in untried):
        key["Defaults"] = (
            f"those of built-in learned methods were chosen among {N_TRIALS} settings on held-out training items of "
            f"{', '.join(TRIED_ON.values())}."
        )
    return key


def _groups(block: pd.DataFrame, columns: Sequence[Column], paper: Sequence[Published], names: DisplayNames) -> Groups:
    groups: dict[str, list[Line]] = {name: [] for name in (*GROUPS, "")}
    papers: dict[tuple[str, str, str], list[Published]] = {}  # by line
    for value in paper:
        papers.setdefault(value.line, []).append(value)

    def row(entries: Mapping[Column, Entry], values: Iterable[Published]) -> list[Entry]:
        printed = {(value.our_metric, value.n_bits): Entry(value.value) for value in values}
        beside = ((entries.get(column, Entry(DASH)), printed.get(column, Entry(""))) for column in columns)
        return [entry for both in beside for entry in (both if paper else both[:1])]

    run = set[tuple[str, str, str]]()
    for (group, label, *line), line_cells in records_by(block, ["group", "label", *LINE]).items():
        entries = {(cell.metric, cell.n_bits): _entry(cell) for cell in line_cells}
        alike = [key for key, values in papers.items() if values[0].is_of(line[0], line[1])]
        run.update(alike)
        groups[group].append(Line(label, row(entries, [value for key in alike for value in papers[key]])))
    for key, values in papers.items():
        if key not in run:
            groups[key[0]].append(Line(names.line(min((value.method for value in values), key=len)), row({}, values)))
    return _named(groups)


def _named(groups: Mapping[str, Sequence[Line]]) -> Groups:
    return [(group or "other", lines) for group, lines in groups.items() if lines]


def _entry(cell: Any) -> Entry:
    return Entry(cell.value, cell.spread, bool(cell.is_best), cell.marks)


def _key(
    block: pd.DataFrame, groups: Groups, over: str = "seeds", best: str = "of a column; sanity baselines do not count"
) -> dict[str, str]:
    """Explain each sign that a block has."""
    entries = [entry for _, lines in groups for line in lines for entry in line.entries]
    key = {}
    if not all(is_dash(entry.spread) for entry in entries):
        key[SPREAD] = f"standard deviation over {over}."
    if any(entry.is_best for entry in entries):
        key["Bold"] = f"the best {best}."
    if any(is_dash(entry.content) for entry in entries):
        key["Dash"] = "not run, refused by the method, or undefined for every query."
    return key | explain(block)


def _notes_on_papers(layout: TableLayout, papers: Sequence[Published], pairs: Sequence[Pair]) -> list[str]:
    """Return paragraphs on where the papers' values are from: the own paper's, with what differs, then others'."""
    own = [value for value in papers if is_own(value, layout)]
    own_pairs = [pair for pair in pairs if is_own(pair.published, layout)]
    paragraphs = []
    if own:
        ours = f" Ours: {count_verdicts(own_pairs)}." if own_pairs else ""
        texts = dict.fromkeys(text for pair in own_pairs for part, text in pair.differs if part != "parameters")
        differs = f" What differs: {'; '.join(texts)}." if texts else ""
        paragraphs.append(f"Paper: {own[0].source}, {own[0].name}.{ours}{differs}")
    sources: dict[str, dict[str, list[str]]] = {}
    for value in papers[len(own) :]:
        lengths = sources.setdefault(f"{value.source}, {value.name}, {value.backbone}", {})
        lengths.setdefault(value.method, []).append(str(value.n_bits))
    if sources:
        whose = []
        for source, lengths in sources.items():
            names = (f"{method} at {', '.join(n_bits)} bits" for method, n_bits in lengths.items())
            whose.append(f"{', '.join(names)}: {source}.")
        paragraphs.append(f"Values of other papers: {' '.join(whose)}")
    return paragraphs
