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
from hashbench.store.result_rows import NUMBERS

COLUMN = (*BLOCK, "metric", "n_bits", "rivals")  # cells that are compared: those of a column, or of one method in it


def make_cells(
    results: pd.DataFrame, layout: TableLayout, published: Sequence[Published], selection: TableSelection
) -> pd.DataFrame:
    """Choose what a table shows, average over seeds, and compare with the best: see `ResultTable`. May be empty."""
    if layout.is_over_folds:
        cells = fold_cells(results[results["metric"].isin(layout.metrics)], has_variants=selection.variants)
        cells = cells[cells["n_bits"].isin(selection.n_bits or cells["n_bits"])]
        cells = cells.assign(rivals=cells["n_unseen"].astype(str))
    else:
        everything = mean_over_seeds(results)
        cells = everything[_is_shown(everything, layout, published, selection.n_bits)]
        cells = _lines(cells, everything, layout, published, has_variants=selection.variants)
        cells = cells.assign(rivals=cells["method"] if layout.is_ablation else "")
    groups = {value.our_method: value.group for value in reversed(published_values())}
    cells["group"] = cells["group"].where(cells["group"] != "", cells["method"].map(groups).fillna(""))
    return _compared(in_order(cells, [*BLOCK, "metric", "group", *LINE, "n_bits"]))


def in_order(cells: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Sort cells by columns, groups in the order of the tables."""
    return cells.sort_values(
        list(keys), key=lambda column: column.map(GROUP_RANK) if column.name == "group" else column, ignore_index=True
    )


def grouped(frame: pd.DataFrame, keys: Sequence[str]) -> Any:
    """Split a frame by the values of several columns, in the order of their first rows."""
    return iter(frame.groupby(list(keys), sort=False))


def records(frame: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a frame as namedtuples: for small frames in a tenth of the time of pandas' own."""
    return map(_record(tuple(frame.columns))._make, frame.to_numpy(dtype=object).tolist())


@lru_cache
def _record(names: tuple[str, ...]) -> Any:
    return namedtuple("Record", names)


def records_by(frame: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], list[Any]]:
    """Return the rows of a frame as namedtuples, by the values of several columns, in the order of their first rows."""
    key_of, groups = attrgetter(*keys), dict[tuple[Any, ...], list[Any]]()
    for record in records(frame):
        groups.setdefault(key_of(record), []).append(record)
    return groups


def _is_shown(
    cells: pd.DataFrame, layout: TableLayout, published: Sequence[Published], n_bits: Sequence[int]
) -> "pd.Series[bool]":
    """Return which cells a table shows: the paper's metrics and lengths on its datasets, the layout's on others.

    Where other papers have values, their lengths are shown too.
    """
    methods = {value.our_method for value in published}
    of_paper = {(value.our_dataset, value.our_metric) for value in published if is_own(value, layout)}
    paper_lengths: dict[tuple[str, str], set[int]] = {}
    for value in published:
        place = value.our_dataset, value.our_metric
        if is_own(value, layout):
            paper_lengths.setdefault(place, set()).add(value.n_bits)
        elif place not in of_paper:
            paper_lengths.setdefault(place, set(layout.n_bits)).add(value.n_bits)
    usual = {metric: set(layout.n_bits) for metric in layout.metrics}
    shown = []
    for cell in records(cells[["dataset", "metric", "method", "n_bits"]]):
        lengths = paper_lengths.get((cell.dataset, cell.metric), usual.get(cell.metric))
        has_column = lengths is not None and cell.n_bits in (n_bits or lengths or {cell.n_bits})
        shown.append(has_column and (layout.is_open or cell.method in methods))
    return pd.Series(shown, index=cells.index, dtype=bool)


def _lines(
    cells: pd.DataFrame,
    everything: pd.DataFrame,
    layout: TableLayout,
    published: Sequence[Published],
    *,
    has_variants: bool,
) -> pd.DataFrame:
    """Keep the lines of a table: one of each method, and of each of its rows in the paper.

    An ablation keeps those of methods with several; metrics beside each other keep those with values in the first
    metric, and the paper's methods.
    """
    method = [*BLOCK, "metric", "method"]
    if layout.is_ablation:
        return cells[cells.groupby(method)["params"].transform("nunique") > 1]
    if layout.is_beside:
        line = pd.MultiIndex.from_frame(cells[[*BLOCK, *LINE]])
        has_first = line.isin(line[cells["metric"] == layout.metrics[0]])
        cells = cells[has_first | cells["method"].isin([value.our_method for value in published])]
    if has_variants or cells.empty:
        return cells
    variants = {value.method: value for value in published if value.our_params}  # rows that differ by parameters
    lines = zip(cells["method"], cells["params"], strict=True)
    roles = [" ".join(name for name, value in variants.items() if value.is_of(*line)) for line in lines]
    return pd.concat([main_lines(part, everything) for _, part in cells.groupby(pd.Series(roles, cells.index))])


def _compared(cells: pd.DataFrame) -> pd.DataFrame:
    """Mark the best cell of each column with several, baselines aside, and how ties compare the others with it.

    Means over other folds than most are not compared. ``ties`` are keys of `hashbench.reports.ties.ANSWERS`, empty
    where nothing is compared.
    """
    column = [cells[key] for key in COLUMN]
    sign = [-1 if is_error(name) else 1 for name in cells["metric"]]
    is_compared = pd.Series(True, index=cells.index)
    if "folds" in cells:
        is_compared = cells["folds"] == cells.groupby(column)["folds"].transform(most_folds)
    candidates = (cells["value"].round(6) * sign).where(is_compared & (cells["group"] != "baseline"))
    rivals = candidates.groupby(column)
    is_best = (candidates == rivals.transform("max")) & (rivals.transform("count") > 1)
    best = cells[list(NUMBERS)].where(is_best).groupby(column).transform("first")
    has_values = cells["value"].notna() & best["value"].notna()
    answers = np.where(is_compared & ~is_best & has_values, compare(cells, best), "")
    return cells.assign(is_best=is_best, ties=answers)
