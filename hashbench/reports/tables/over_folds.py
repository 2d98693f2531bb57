"""From cells of classes that training did not see to blocks: four scopes, with deviations over folds and ranges."""

from typing import Any

import pandas as pd

from hashbench.reports.aggregate import LINE, describe_mixed, line_labels
from hashbench.reports.folds import ALL_SEEN, PLACE, SCOPES, most_folds
from hashbench.reports.tables.blocks import NOT_RUN, key_of, make_entry, make_line, notes_on_entries, tie_range
from hashbench.reports.tables.cells import grouped, in_order, records_by
from hashbench.reports.tables.markdown import Entry, Line, Span, Style, TableBlock

_COLUMNS = (*SCOPES.values(), ALL_SEEN)
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


def make_fold_blocks(cells: pd.DataFrame, style: Style) -> list[TableBlock]:
    """Lay out cells of `fold_cells`, one block per dataset, features, number of unseen classes and code length."""
    blocks, labels, place = [], line_labels(cells, PLACE), [*PLACE, "metric", "n_bits"]
    for keys, block in grouped(in_order(cells, [*place, "group", *LINE]), place):
        base, features, n_unseen, metric, n_bits = keys
        all_folds = {scope: most_folds(part["folds"]) for (scope,), part in grouped(block, ["scope"])}
        groups: dict[str, list[Line]] = {}
        for (group, *line), line_cells in records_by(block, ["group", *LINE]).items():
            by_scope = {cell.scope: cell for cell in line_cells}
            entries = [entry for scope in _COLUMNS for entry in _entries(by_scope.get(scope), scope, all_folds, style)]
            groups.setdefault(group or "other", []).append(make_line(labels[tuple(line)], entries))
        lines = list(groups.items())
        notes = [_note_on_means(block, n_unseen, all_folds), *notes_on_entries(block, lines)]
        notes += filter(None, [describe_mixed(block)])
        comparison = f"{_COMPARISON} {_ORACLE}" if "oracle-label" in set(block["method"]) else _COMPARISON
        classes = f"{n_unseen} unseen class{'es' * (n_unseen > 1)}"
        blocks.append(
            TableBlock(
                title=f"{base} ({features}), {classes}: {metric}, {n_bits} bits",
                caption=f"{metric} of {classes} of {base} ({features}), {n_bits} bits.",
                spans=[Span(scope, (metric, *_sd_of_folds(scope, style), "range")) for scope in _COLUMNS],
                groups=lines,
                notes=[" ".join(notes), comparison],
                key=key_of(block, lines),
            )
        )
    return blocks


def _sd_of_folds(scope: str, style: Style) -> list[str]:
    return ["sd over folds"] if style.has_spread and scope != ALL_SEEN else []


def _entries(cell: Any, scope: str, all_folds: dict[str, str], style: Style) -> list[Entry]:
    n_deviations = len(_sd_of_folds(scope, style))
    if cell is None:
        return [Entry(NOT_RUN)] * (2 + n_deviations)
    over_folds = [Entry("" if pd.isna(cell.spread) else style.number(cell.spread))] * n_deviations
    cell_style = style._replace(has_spread=style.has_spread and scope == ALL_SEEN)
    entry = make_entry(cell, cell_style, {"¶": cell.folds != all_folds[cell.scope]})
    return [entry, *over_folds, Entry(tie_range(style, cell.low, cell.high))]


def _note_on_means(block: pd.DataFrame, n_unseen: int, all_folds: dict[str, str]) -> str:
    folds = {text: [scope for scope in all_folds if all_folds[scope] == text] for text in all_folds.values() if text}
    names = " and ".join(
        f"{'folds' if ',' in text else 'fold'} {text}" + f" ({', '.join(scopes)})" * (len(folds) > 1)
        for text, scopes in folds.items()
    )
    classes = "another class" if n_unseen == 1 else f"{n_unseen} other classes"
    return (
        f"Means over queries, seeds{_of_seeds(block)} and {names}; in each fold training does not see {classes}. "
        "Range: the worst case, with each query's ties broken separately."
    )


def _of_seeds(block: pd.DataFrame) -> str:
    most = block.groupby("scope", sort=False)["n_seeds"].max()
    if most.nunique() < 2:
        return ""
    return f" ({', '.join(f'{scope}: {number}' for scope, number in most.items())})"
