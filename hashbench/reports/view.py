"""One view of results: the cells that tables, figures and the page show, each with all that is said of it.

A view chooses rows, averages them over seeds, names and orders the lines, finds the best of each column, what ties
leave open between it and the others, and the marks of each cell. Those who show it compute nothing more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, Self

import numpy as np
import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.reports.aggregate import BLOCK, CELL, GROUP_RANK, LINE, all_lines, main_lines, mean_over_seeds, signs_of
from hashbench.reports.marks import EVERY_ORDER, OPEN, OTHERS, SHUFFLE, UNKNOWN, add_marks, compare, is_of_most_folds
from hashbench.reports.selection import Selection
from hashbench.reports.uncertainty import RowsOfCell, add_uncertainty, variances_of
from hashbench.store.result_rows import NUMBERS

_OPENNESS = {"": 0, EVERY_ORDER: 1, SHUFFLE: 2, UNKNOWN: 3, OPEN: 4}
COLUMN = (*BLOCK, "metric", "n_bits", "rivals")  # cells that are compared: those of a column, or of one method in it
Choice = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]  # from the chosen cells, and all, to those to show


@dataclass(frozen=True, eq=False)
class View:
    """Cells in the order in which they are shown, and the results that they are made of.

    ``cells`` has the columns of `hashbench.reports.aggregate.mean_over_seeds`, the ``label`` of each line, whether a
    cell ``is_best`` of its ``COLUMN``, whether that ``is_whole``, what ``ties`` leave open between it and the best (a
    key of `hashbench.reports.marks.ANSWERS`, empty where nothing is compared), and its ``marks``. `tested` adds more.
    """

    cells: pd.DataFrame
    results: pd.DataFrame

    def of(self, cells: pd.DataFrame) -> Self:
        """Return the view with some of its cells."""
        return replace(self, cells=cells.reset_index(drop=True))

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The results behind the cells, one row per seed, each with the ``label`` and the position of its ``cell``."""
        places = self.cells[[*CELL, "label"]].assign(cell=range(len(self.cells)))
        return self.results.merge(places).sort_values(["cell", "seed"], ignore_index=True)

    @property
    def rows_of_cells(self) -> list[RowsOfCell]:
        """The results behind each cell; none of means over folds."""
        records = self.rows.to_dict("records")
        starts = np.searchsorted(self.rows["cell"], np.arange(len(self.cells) + 1))
        return [records[start:stop] for start, stop in pairwise(starts)]

    @property
    def _variances(self) -> pd.DataFrame:
        return variances_of(self.results, self.cells)

    def with_intervals(self) -> Self:
        """Return the view with 95 % intervals: the columns of `hashbench.reports.uncertainty.add_uncertainty`."""
        return replace(self, cells=add_uncertainty(self.cells, self.rows_of_cells, self._variances, COLUMN))

    def tested(self, against: str = "", on_progress: Progress = silent) -> Self:
        """Return the view with intervals, tests and their marks, and ``against``, what the others are tested against.

        By default, the tests find those that may be the best of each column. ``against`` is a method, or the label of a
        line, to test the others against, chosen before the results were seen.
        """
        label, is_reference = self._named(against) if against else (OTHERS, None)
        cells = add_uncertainty(
            self.cells, self.rows_of_cells, self._variances, COLUMN, is_reference, on_progress=on_progress
        )
        return replace(self, cells=add_marks(in_whole_columns(cells).assign(against=label)))

    def _named(self, against: str) -> tuple[str, "pd.Series[bool]"]:
        """Return the label that a label or method names, and whether each cell is of its line."""
        labels = self.cells["label"]
        lines = {against} if (labels == against).any() else set(labels[self.cells["method"] == against])
        if not lines:
            raise unknown_name("line", against, sorted({*self.cells["method"], *labels}))
        if len(lines) > 1:
            raise HashbenchError(f"{against} has several lines: name one of {'; '.join(sorted(lines))}.")
        (label,) = lines
        return label, labels == label


def make_view(
    results: pd.DataFrame,
    selection: Selection | None = None,
    choose: Choice | None = None,
    lines: pd.DataFrame | None = None,
    *,
    by_score: bool = False,
) -> View:
    """Make the view of chosen results, or of all; there may be no cells.

    One line of each method is kept, all with ``variants``, or those that ``choose`` keeps. Labels are those of
    ``lines`` (`hashbench.reports.aggregate.all_lines`), or distinguish the lines that are shown. Lines stand group by
    group, in the order in which the selection names their methods, else by name, or, with ``by_score``, by their mean
    over all code lengths.
    """
    everything = mean_over_seeds(results)
    cells = everything if selection is None else selection.of(everything)
    if choose is not None:
        cells = choose(cells, everything)
    elif selection is not None and not selection.variants:
        cells = main_lines(cells, everything)
    return view_of(cells, results, selection, lines, by_score=by_score)


def view_of(
    cells: pd.DataFrame,
    results: pd.DataFrame,
    selection: Selection | None = None,
    lines: pd.DataFrame | None = None,
    place: Sequence[str] = BLOCK,
    *,
    by_score: bool = False,
) -> View:
    """Make the view of some cells, whose labels differ within each ``place`` (columns); see `make_view`."""
    if "rivals" not in cells:
        cells = cells.assign(rivals="")
    lines = all_lines(cells, place) if lines is None else lines
    cells = cells.merge(lines[[*(key for key in (*place, *LINE) if key in lines), "label"]], how="left")
    methods = {name: position for position, name in enumerate(selection.methods if selection else ())}
    score = -cells.groupby([*BLOCK, "metric", *LINE])["value"].transform("mean") if by_score else 0.0
    ranked = cells.assign(
        group_rank=cells["group"].map(GROUP_RANK), place=cells["method"].map(methods).fillna(len(methods)), score=score
    )
    order = [*BLOCK, "metric", "group_rank", "place", "score", *LINE, "n_bits"]
    ranked = ranked.sort_values(order, ignore_index=True).drop(columns=["group_rank", "place", "score"])
    return View(add_marks(_compared(ranked)), results)


def _compared(cells: pd.DataFrame) -> pd.DataFrame:
    """Mark the best cell of each column with several, baselines aside, and how ties compare the others with it.

    Means over other folds than most are not compared, nor are columns in which less than two thirds of the lines have
    a value: the best of all may not have been run.
    """
    column = [cells[key] for key in COLUMN]
    is_compared = is_of_most_folds(cells)
    candidates = (cells["value"].round(6) * signs_of(cells["metric"])).where(
        is_compared & (cells["group"] != "baseline")
    )
    rivals = candidates.groupby(column)
    n_rivals = rivals.transform("count")
    line = cells.groupby(list(LINE)).ngroup().where(candidates.notna())
    n_lines = line.groupby([cells[key] for key in COLUMN if key != "n_bits"]).transform("nunique")
    is_whole = _is_whole(n_rivals, n_lines)
    is_best = (candidates == rivals.transform("max")) & (n_rivals > 1) & is_whole
    is_rival = is_compared & ~is_best & cells["value"].notna() & is_best.groupby(column).transform("any")
    rank = is_best.groupby(column).cumsum().where(is_best)
    answers = pd.Series("", index=cells.index)
    for number in range(1, int(rank.max() if is_best.any() else 0) + 1):  # of equal ones, the most open answer counts
        best = cells[list(NUMBERS)].where(rank == number).groupby(column).transform("first")
        answer = pd.Series(compare(cells, best), cells.index)
        is_more_open = answers.map(_OPENNESS) < answer.map(_OPENNESS)
        answers = answers.mask(is_rival & best["value"].notna() & is_more_open, answer)
    return cells.assign(is_best=is_best, is_whole=is_whole, n_rivals=n_rivals, n_block=n_lines, ties=answers)


def in_whole_columns(cells: pd.DataFrame) -> pd.DataFrame:
    """Take ``may_be_best`` from columns in which less than two thirds of the lines were tested, or were run."""
    n_tested = cells["p_value"].notna().groupby([cells[key] for key in COLUMN]).transform("sum")
    is_whole = cells["is_whole"] & _is_whole(n_tested, cells["n_block"])
    return cells.assign(may_be_best=cells["may_be_best"] & is_whole)


def _is_whole(n_lines: "pd.Series[int]", n_block: "pd.Series[int]") -> "pd.Series[bool]":
    """Return whether columns have so many of the lines of their block that the best of all may be named."""
    is_whole: pd.Series[bool] = 3 * n_lines >= 2 * n_block  # the page decides alike, of what is selected there
    return is_whole


def grouped(frame: pd.DataFrame, keys: Sequence[str]) -> Any:
    """Split a frame by the values of several columns, in the order of their first rows."""
    return iter(frame.groupby(list(keys), sort=False))


def records_by(frame: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], list[Any]]:
    """Return the rows of a frame as namedtuples, by the values of several columns, in the order of their first rows."""
    key_of, groups = attrgetter(*keys), dict[tuple[Any, ...], list[Any]]()
    for record in frame.itertuples(index=False):
        groups.setdefault(key_of(record), []).append(record)
    return groups
