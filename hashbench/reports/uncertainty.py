"""Intervals of means, and tests against one of a column: over queries and seeds, or over what of these is known.

The formulas are those of `hashbench.scoring.comparison`. All cells of a column have one basis: queries and seeds, if
the data folder has the scores of single queries of all lines; only queries, if moreover no line has several seeds;
else only seeds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hashbench._typing import AnyArray, BoolArray, FloatArray, IntArray, Progress, silent
from hashbench.reports.aggregate import draws
from hashbench.scoring.comparison import (
    ALPHA,
    Difference,
    holm,
    interval,
    interval_over_queries,
    interval_over_seeds,
    moments,
    of_seed_variances,
)
from hashbench.scoring.metrics import is_error
from hashbench.store.result_rows import as_row
from hashbench.store.score_cache import find_scores

BOTH, QUERIES, SEEDS = "queries and seeds", "queries", "seeds"
IN_WORDS = {  # of what intervals and tests are
    BOTH: "over queries and seeds",
    QUERIES: "over queries, for these codes",
    SEEDS: "over seeds, on these queries (the data folder lacks the scores of single queries of some lines)",
}
UNTESTED = {  # reasons why a cell is not tested against a reference
    "unpaired": "the two are means over other queries",
    "single": "one of the two has a single seed",
    "lacking": "one of the two has a single seed or draws nothing, and the data folder lacks scores of single queries",
    "absent": "it has no value there",
}
SEED_COLUMNS = ("value", "spread", "n_seeds")  # of cells, which `welch_tests` takes


class Uncertainty(NamedTuple):
    """What is known of the cells of a column, in order; NaN where it is not."""

    basis: str  # a key of ``IN_WORDS``
    from_: FloatArray  # 95 % interval of the mean
    to: FloatArray
    p_value: FloatArray  # of the difference to the reference, corrected
    untested: AnyArray  # a key of ``UNTESTED`` where p is not known, else empty


def add_uncertainty(
    cells: pd.DataFrame,
    rows: Sequence[pd.DataFrame],
    column: Sequence[str],
    is_reference: "pd.Series[bool] | None" = None,
    *,
    is_named: bool = False,
    on_progress: Progress = silent,
) -> pd.DataFrame:
    """Add what `assess` finds to cells, column by column, each with its first reference, if any, to test against.

    A column has equal values in all of ``column``. Other new columns are ``is_reference``, and ``is_unshown``: whether
    the cell was tested, and is not shown to differ from its reference. ``untested`` is empty where nothing is compared.
    """
    is_reference = pd.Series(False, index=cells.index) if is_reference is None else is_reference
    is_reference = is_reference & ~cells.assign(is_reference=is_reference).duplicated([*column, "is_reference"])
    parts, columns = [], cells.groupby(list(column), sort=False)
    for number, (_, part) in enumerate(columns, start=1):
        places = np.flatnonzero(is_reference[part.index])
        reference = int(places[0]) if len(places) else None
        found = assess(part, [rows[cell] for cell in part.index], reference, is_named=is_named)
        parts.append(pd.DataFrame(found._asdict(), part.index))
        on_progress("columns compared", number, len(columns))
    cells = cells.join(pd.concat(parts)).assign(is_reference=is_reference)
    has_reference = cells.groupby(list(column))["is_reference"].transform("any")
    is_rival = (cells["group"] != "baseline") & cells["value"].notna() & ~is_reference
    untested = cells["untested"].where(is_rival & has_reference, "")
    if is_named:  # in a column without the named line nothing is tested
        untested = untested.mask(is_rival & ~has_reference, "absent")
    return cells.assign(is_unshown=is_rival & has_reference & (cells["p_value"] >= ALPHA), untested=untested)


def assess(
    cells: pd.DataFrame, rows: Sequence[pd.DataFrame], reference: int | None = None, *, is_named: bool = False
) -> Uncertainty:
    """Compute intervals of the cells of a column, and test the one at a position against all others but baselines.

    ``rows`` are the results behind each cell, one per seed. If the reference ``is_named``, it was chosen beforehand,
    and its tests are corrected together. Else it is the best by the same scores, and all pairs are corrected together.
    Over queries and seeds, a method that draws at random needs several seeds to be tested.
    """
    scores = {place: values for place, behind in enumerate(rows) if (values := _scores(behind)) is not None}
    n_seeds = count_seeds(cells)
    rivals = np.flatnonzero((cells["group"] != "baseline") & cells["value"].notna())
    needed = {*rivals.tolist(), *([] if reference is None else [reference])} or {*range(len(cells))}
    basis = SEEDS if not scores.keys() >= needed else BOTH if (n_seeds[[*needed]] > 1).any() else QUERIES
    ends = np.full((len(cells), 2), np.nan)
    for place, behind in enumerate(rows):
        if basis != SEEDS and place in scores:
            ends[place] = interval_over_queries(scores[place])
        elif basis == SEEDS and n_seeds[place] > 1:
            ends[place] = interval_over_seeds(behind["value"].to_numpy(dtype=float))
    p_value, untested = np.full(len(cells), np.nan), np.full(len(cells), "", dtype=object)
    others = rivals[rivals != reference]
    untested[others] = "lacking"
    if reference is not None and basis == SEEDS:
        is_same = score_as_many(cells.iloc[others], cells.iloc[reference]).to_numpy()
        untested[others[~is_same]], alike = "unpaired", others[is_same]
        tested = cells.assign(n_seeds=n_seeds)[[*SEED_COLUMNS]].to_numpy(dtype=float)[[reference, *alike]]
        p_value[alike] = welch_tests(*tested.T, is_named=is_named)
    elif reference in scores:
        is_defined = ~np.isnan(scores[reference][0])
        is_paired = [is_defined.sum() > 1 and np.array_equal(~np.isnan(scores[i][0]), is_defined) for i in others]
        is_single = ((n_seeds[others] == 1) | (n_seeds[reference] == 1)) & (basis == BOTH)
        untested[others] = np.select([np.logical_not(is_paired), is_single], ["unpaired", "single"], "")
        paired = others[untested[others] == ""]
        p_value[paired] = _over_queries([scores[i][:, is_defined] for i in (reference, *paired)], is_named)
    untested[~np.isnan(p_value)] = ""
    return Uncertainty(basis, ends[:, 0], ends[:, 1], p_value, untested)


def welch_tests(values: FloatArray, spreads: FloatArray, n_seeds: IntArray, *, is_named: bool = False) -> FloatArray:
    """Return corrected p values of the first mean over seeds against each other one, by Welch's test.

    ``spreads`` are standard deviations over seeds; ``n_seeds`` are those of `count_seeds`. NaN where a method has one
    seed, or two draw nothing. See `assess` for ``is_named``.
    """
    variances = np.where(n_seeds > 0, spreads**2 / np.maximum(n_seeds, 1), 0.0)
    first, second = _pairs(len(values), is_named)
    parts, seeds = np.stack([variances[first], variances[second]], 1), np.stack([n_seeds[first], n_seeds[second]], 1)
    p_values = interval(values[first] - values[second], *of_seed_variances(parts, seeds))[2]
    return _of_first(np.where(seeds.any(axis=1), p_values, np.nan), len(values))


def verdict(difference: Difference) -> str:
    """Return whether the first method of a difference is shown to be ``better`` or ``worse``, or ``not shown``."""
    if not difference.is_shown:
        return "not shown"
    return "better" if (difference.value > 0) != is_error(difference.metric) else "worse"


def score_as_many(first: Any, second: Any) -> Any:
    """Return whether two cells have scores of as many queries in all seeds; of fewer, their means do not compare."""
    least, most = first.least_undefined, first.n_undefined
    return (least == most) & (second.least_undefined == most) & (second.n_undefined == most)


def count_seeds(cells: pd.DataFrame) -> IntArray:
    """Return the seeds of each cell, 0 if its method draws nothing."""
    return np.where(draw_at_random(cells), cells["n_seeds"], 0)


def draw_at_random(cells: pd.DataFrame) -> BoolArray:
    """Return whether the method of each cell draws at random."""
    settings = pd.MultiIndex.from_frame(cells[["method", "params"]])
    return np.array(settings.map({setting: draws(*setting) for setting in settings.unique()}), dtype=bool)


def _scores(rows: pd.DataFrame) -> FloatArray | None:
    """Return the scores of every query, (n_seeds, n_queries), NaN if undefined; all are if seeds have others of them.

    None unless the scores of all rows are cached.
    """
    scores = [find_scores(as_row(row)) for row in rows.to_dict("records")]
    cached = [values for values in scores if values is not None]
    if len(cached) < len(scores):
        return None
    is_same = all(np.array_equal(np.isnan(values), np.isnan(cached[0])) for values in cached)
    return np.stack(cached) if is_same else np.full((len(cached), len(cached[0])), np.nan)


def _pairs(n: int, is_named: bool) -> tuple[IntArray, IntArray]:
    """Return the pairs to correct together, those of the first with each other one before all others."""
    first, second = np.triu_indices(n, 1)
    return (first[: n - 1], second[: n - 1]) if is_named else (first, second)


def _of_first(p_values: FloatArray, n: int) -> FloatArray:
    """Correct the p values of pairs, NaN for some, and return those of the first with each other one."""
    is_known = ~np.isnan(p_values)
    p_values[is_known] = holm(p_values[is_known])
    return p_values[: n - 1]


def _over_queries(scores: Sequence[FloatArray], is_named: bool) -> FloatArray:
    pairs = [moments(scores[i], scores[k]) for i, k in zip(*_pairs(len(scores), is_named), strict=True)]
    numbers = np.array([(pair.value, pair.variance, pair.freedom) for pair in pairs]).reshape(-1, 3)
    return _of_first(interval(*numbers.T)[2], len(scores))
