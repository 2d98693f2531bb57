"""From rows of results to cells: which a table shows, their means over seeds, the best of each column."""

from collections import namedtuple
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from hashbench.reports.aggregate import BLOCK, GROUP_RANK, LINE, main_lines, mean_over_seeds
from hashbench.reports.folds import fold_cells, most_folds
from hashbench.reports.tables.layout import TableLayout
from hashbench.reports.tables.published import Published, is_own, published_values
from hashbench.reports.tables.selection import TableSelection
from hashbench.reports.ties import compare
from hashbench.scoring.metrics import is_error
from hashbench.store.results import NUMBERS

COLUMN = (*BLOCK, "metric", "n_bits", "rivals")  # what is compared: the cells of a column, or a method's own


def make_cells(
    results: pd.DataFrame, layout: TableLayout, published: Sequence[Published], selection: TableSelection
) -> pd.DataFrame:
    """Choose what a table shows, average over seeds, and compare with the best: see `ResultTable`; perhaps no rows."""
    if layout.is_over_folds:
        cells = fold_cells(results[results["metric"].isin(layout.metrics)], has_variants=selection.variants)
        cells = cells[cells["n_bits"].isin(selection.n_bits or cells["n_bits"])]
        cells = cells.assign(rivals=cells["n_unseen"].astype(str))
    else:
        everything = mean_over_seeds(results)
        cells = everything[_is_shown(everything, layout, published, selection.n_bits)]
        cells = _lines(cells, everything, layout, published, has_variants=selection.variants)
        cells = cells.assign(rivals=cells["method"] if layout.is_ablation else "")
    groups = {one.our_method: one.group for one in reversed(published_values())}
    cells["group"] = cells["group"].where(cells["group"] != "", cells["method"].map(groups).fillna(""))
    return _compared(in_order(cells, [*BLOCK, "metric", "group", *LINE, "n_bits"]))


def in_order(cells: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Sort cells by columns, groups as tables have them."""
    return cells.sort_values(
        list(keys),
        key=lambda column: column.map(GROUP_RANK) if column.name == "group" else column,
        ignore_index=True,
    )


def grouped(frame: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Split a frame by the values of several columns, in the order of their first rows."""
    for values, part in frame.groupby(list(keys), sort=False):
        yield (values if isinstance(values, tuple) else (values,)), part


def records(frame: pd.DataFrame) -> Iterator[Any]:
    """Go through the rows of a frame as namedtuples, made from whole columns: texts of Arrow are slow one by one."""
    columns = [frame[name].to_numpy().tolist() for name in frame.columns]
    yield from map(_record(tuple(frame.columns))._make, zip(*columns, strict=True))


@lru_cache
def _record(names: tuple[str, ...]) -> Any:
    return namedtuple("Record", names)


def records_by(frame: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], list[Any]]:
    """Give the rows of a frame as namedtuples, by the values of several columns, in the order of their first rows."""
    key_of, found = attrgetter(*keys), dict[tuple[Any, ...], list[Any]]()
    for record in records(frame):
        found.setdefault(key_of(record), []).append(record)
    return found


def _is_shown(
    cells: pd.DataFrame, layout: TableLayout, published: Sequence[Published], n_bits: Sequence[int]
) -> "pd.Series[bool]":
    """Tell which cells a table shows: of the paper's datasets its metrics and lengths, of others the layout's.

    Where other papers have values, their lengths as well.
    """
    methods = {one.our_method for one in published}
    of_paper = {(one.our_dataset, one.our_metric) for one in published if is_own(one, layout)}
    theirs: dict[tuple[str, str], set[int]] = {}
    for one in published:
        place = one.our_dataset, one.our_metric
        if is_own(one, layout):
            theirs.setdefault(place, set()).add(one.n_bits)
        elif place not in of_paper:
            theirs.setdefault(place, set(layout.n_bits)).add(one.n_bits)
    usual = {metric: set(layout.n_bits) for metric in layout.metrics}
    shown = []
    for dataset, metric, method, length in zip(
        *(cells[column].tolist() for column in ("dataset", "metric", "method", "n_bits")), strict=True
    ):
        columns = theirs.get((dataset, metric), usual.get(metric))
        is_there = columns is not None and length in (n_bits or columns or {length})
        shown.append(is_there and (layout.is_open or method in methods))
    return pd.Series(shown, index=cells.index, dtype=bool)


def _lines(
    cells: pd.DataFrame,
    everything: pd.DataFrame,
    layout: TableLayout,
    published: Sequence[Published],
    *,
    has_variants: bool,
) -> pd.DataFrame:
    """Keep the lines that a table is of: one of each method, and of each of its rows in the paper.

    Of an ablation, those of methods with several; beside each other, those with values in the first metric, and the
    paper's methods.
    """
    method = [*BLOCK, "metric", "method"]
    if layout.is_ablation:
        return cells[cells.groupby(method)["params"].transform("nunique") > 1]
    if layout.is_beside:
        line = pd.MultiIndex.from_frame(cells[[*BLOCK, *LINE]])
        has_first = line.isin(line[cells["metric"] == layout.metrics[0]])
        cells = cells[has_first | cells["method"].isin([one.our_method for one in published])]
    if has_variants or cells.empty:
        return cells
    apart = {one.method: one for one in published if one.our_params}  # rows of the paper that parameters tell apart
    lines = zip(cells["method"], cells["params"], strict=True)
    role = pd.Series([" ".join(name for name, one in apart.items() if one.is_of(*line)) for line in lines], cells.index)
    return pd.concat([main_lines(part, everything) for _, part in cells.groupby(role)])


def _compared(cells: pd.DataFrame) -> pd.DataFrame:
    """Say which cell of each column with several is the best, baselines aside, and how ties compare others with it.

    Of means over folds, those of other folds than most are neither. ``ties`` are keys of
    `hashbench.reports.ties.ANSWERS`, empty where nothing is compared; ``is_second`` is the best of the others.
    """
    column = [cells[key] for key in COLUMN]
    sign = [-1 if is_error(name) else 1 for name in cells["metric"]]
    is_compared = pd.Series(True, index=cells.index)
    if "folds" in cells:
        is_compared = cells["folds"] == cells.groupby(column)["folds"].transform(most_folds)
    candidates = (cells["value"].round(6) * sign).where(is_compared & (cells["group"] != "baseline"))
    rivals = candidates.groupby(column)
    is_best = (candidates == rivals.transform("max")) & (rivals.transform("count") > 1)
    others = candidates.mask(is_best)
    is_second = others.notna() & (others == others.groupby(column).transform("max"))
    best = cells[list(NUMBERS)].where(is_best).groupby(column).transform("first")
    answers = np.where(is_compared & ~is_best & best["value"].notna(), compare(cells, best), "")
    return cells.assign(is_best=is_best, is_second=is_second, ties=answers)
