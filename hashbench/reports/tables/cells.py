"""From rows of results to cells: which a table shows, their means over seeds, the best of each column."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import pandas as pd

from hashbench.reports.aggregate import BLOCK, GROUP_RANK, LINE, mean_over_seeds
from hashbench.reports.tables.layout import LAYOUTS
from hashbench.reports.tables.published import published_values


def make_cells(results: pd.DataFrame, name: str, n_bits: Sequence[int] = ()) -> pd.DataFrame:
    """Choose what a table shows, average over seeds, and compare with the best: see `Table`; perhaps no rows."""
    cells = mean_over_seeds(results[is_shown(results, name, n_bits)])
    published = {one.our_method: one.group for one in reversed(published_values())}
    cells["group"] = cells["group"].where(cells["group"] != "", cells["method"].map(published).fillna(""))
    cells = cells.sort_values(
        [*BLOCK, "metric", "group", *LINE, "n_bits"],
        key=lambda column: column.map(GROUP_RANK) if column.name == "group" else column,
        ignore_index=True,
    )
    return _compared(cells)


def grouped(frame: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Split a frame by the values of several columns, in the order of their first rows."""
    for values, part in frame.groupby(list(keys), sort=False):
        yield (values if isinstance(values, tuple) else (values,)), part


def records(frame: pd.DataFrame) -> Iterator[Any]:
    """Go through the rows of a frame as namedtuples."""
    yield from frame.itertuples()


def records_by(frame: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], list[Any]]:
    """Give the rows of a frame as namedtuples, by the values of several columns, in the order of their first rows."""
    key_of, found = attrgetter(*keys), dict[tuple[Any, ...], list[Any]]()
    for record in records(frame):
        found.setdefault(key_of(record), []).append(record)
    return found


def is_shown(results: pd.DataFrame, name: str, n_bits: Sequence[int]) -> "pd.Series[bool]":
    """Tell which rows a table shows: of the paper's datasets its metrics and lengths, of others the layout's."""
    layout = LAYOUTS[name]
    paper = [one for one in published_values() if one.layout == name]
    methods = {one.our_method for one in paper}
    lengths = {metric: set(layout.n_bits) for metric in (*layout.beside, layout.metric)}
    theirs: dict[tuple[str, str], set[int]] = {}
    for one in paper:
        theirs.setdefault((one.our_dataset, one.our_metric), set()).add(one.n_bits)
    shown = []
    for dataset, metric, method, length in zip(
        *(results[column].tolist() for column in ("dataset", "metric", "method", "n_bits")), strict=True
    ):
        columns = theirs.get((dataset, metric), lengths.get(metric, set()))
        is_open = layout.is_open or method in methods
        shown.append(bool(columns) and length in (n_bits or columns) and is_open)
    return pd.Series(shown, index=results.index, dtype=bool)


def _compared(cells: pd.DataFrame) -> pd.DataFrame:
    """Say which cell of each column with several is the best, baselines aside, and which tie ranges overlap its."""
    column = [cells[key] for key in (*BLOCK, "metric", "n_bits")]
    candidates = cells["value"].round(6).where(cells["group"] != "baseline")
    rivals = candidates.groupby(column)
    is_best = (candidates == rivals.transform("max")) & (rivals.transform("count") > 1)
    lowest = cells["low"].where(is_best).groupby(column).transform("min")
    highest = cells["high"].where(is_best).groupby(column).transform("max")
    overlaps = ~is_best & (cells["high"] >= lowest) & (cells["low"] <= highest)
    return cells.assign(is_best=is_best, overlaps=overlaps)
