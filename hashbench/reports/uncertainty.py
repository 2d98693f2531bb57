"""Intervals of means, which methods may be the best of a column, and tests against one that was named beforehand.

The formulas are those of `hashbench.scoring.comparison` and `hashbench.scoring.may_be_best`. Two cells are compared
over queries and seeds if the data folder has the scores of single queries of both, else over seeds, on these queries.
Where no method of a column has several seeds, the claim is about the codes.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hashbench._typing import AnyArray, BoolArray, FloatArray, IntArray, Progress, silent
from hashbench.registry import built_in_methods
from hashbench.reports.aggregate import BLOCK, CELL, LINE, draws, signs_of
from hashbench.scoring.comparison import (
    ALPHA,
    LEAST_SEEDS,
    Difference,
    Moments,
    holm,
    interval,
    kinds_of,
    moments,
)
from hashbench.scoring.evaluation import Evaluation, evaluation_of, metrics_in
from hashbench.scoring.may_be_best import (
    Chance,
    chance_of_queries,
    corrected_p_values,
    p_values_of_pairs,
    seed_variances,
)
from hashbench.scoring.metrics import is_error
from hashbench.store.result_rows import NUMBERS, OWN_FEATURES, as_row
from hashbench.store.score_cache import find

BOTH, QUERIES, SEEDS = "queries and seeds", "queries", "seeds"
IN_WORDS = {  # of what intervals and tests are
    BOTH: "over queries and seeds",
    QUERIES: "over queries, for these codes",
    SEEDS: "over seeds, on these queries",
}
UNTESTED = {  # reasons why a cell is not tested
    "unpaired": "a mean over other queries than most of its column",
    "single": f"fewer than {LEAST_SEEDS} distinct seeds",
    "lacking": "too few seeds, and the data folder lacks the scores of single queries",
    "few": "a mean over fewer than two distinct queries",
    "equal": "all seeds have the same value, and nothing is borrowed from other code lengths",
    "fixed": "nothing is random in what is known of its column",
    "absent": "the other one has no value there",
}
_OF_SEEDS = ("seed_variance", "seed_freedom", "is_fixed", "is_borrowed", "n_distinct")  # columns of `variances_of`
RowsOfCell = Sequence[Mapping[Hashable, Any]]  # a row of results per seed


class Uncertainty(NamedTuple):
    """What is known of the cells of a column, in order; NaN where it is not."""

    basis: AnyArray  # a key of ``IN_WORDS``, of the interval and of tests against others that have the same
    from_: FloatArray  # 95 % interval of the mean
    to: FloatArray
    p_value: FloatArray  # that no other method is better, or of the difference to the reference; corrected
    untested: AnyArray  # a key of ``UNTESTED`` where p should be known and is not, else empty


def add_uncertainty(
    cells: pd.DataFrame,
    rows: Sequence[RowsOfCell] | None,
    variances: pd.DataFrame,
    column: Sequence[str],
    is_reference: "pd.Series[bool] | None" = None,
    *,
    on_progress: Progress = silent,
) -> pd.DataFrame:
    """Add what `assess` finds to cells, column by column: one has equal values in all of ``column``.

    ``rows`` are the results behind each cell, whose scores of single queries are looked up; None for seeds only.
    ``variances`` are those of `variances_of`. Without references, ``may_be_best`` says so of each cell. With them, each
    other cell of their columns ``is_unshown`` if it is not shown to differ, and those of other columns are untested.
    """
    cells = cells.merge(variances, how="left", on=[*CELL])
    parts, columns = [], cells.groupby(list(column), sort=False)
    for number, (_, part) in enumerate(columns, start=1):
        reference = None
        if is_reference is not None:
            places = np.flatnonzero(is_reference[part.index])
            reference = int(places[0]) if len(places) else -1
        scores, kinds = _scores_of([None if rows is None else rows[cell] for cell in part.index])
        found = assess(part, scores, kinds, reference)
        parts.append(pd.DataFrame(found._asdict(), part.index))
        on_progress("columns compared", number, len(columns))
    cells = cells.join(pd.concat(parts)).drop(columns=[*_OF_SEEDS])
    is_high = cells["p_value"] >= ALPHA
    nowhere = pd.Series(False, index=cells.index)
    if is_reference is None:
        return cells.assign(may_be_best=is_high, is_unshown=nowhere)
    return cells.assign(may_be_best=nowhere, is_unshown=is_high)


def variances_of(results: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the variance of a single seed of each cell of the blocks and metrics of some cells.

    ``results`` are those of all code lengths, which borrow from each other. Columns besides the key are
    ``seed_variance`` and ``seed_freedom`` (degrees of freedom), NaN for a single seed; ``is_borrowed``, whether they
    are also those of other lengths; ``is_fixed`` if the method draws nothing; and ``n_distinct``, its seeds, of which
    all that are equal in all metrics count once.

    Equal scores of all seeds in all metrics at all lengths show that a built-in method draws nothing on these data; of
    other methods they count as one seed, since it may have been forgotten.
    """
    of_block = [*BLOCK, "metric"]
    chosen = _with_equal_seeds(results).merge(cells[of_block].drop_duplicates())
    return pd.concat(
        [_variances_of_block(block) for _, block in chosen.groupby(of_block, sort=False)]
        or [pd.DataFrame(columns=[*CELL, *_OF_SEEDS])],
        ignore_index=True,
    )


def _with_equal_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """Add ``are_equal``: whether all of several seeds of a line have the same values, at its length, in all metrics."""
    line = [*BLOCK, *LINE, "n_bits"]
    of_metric = results.groupby([*line, "metric"], dropna=False)
    n_values = [of_metric[name].transform("nunique", dropna=False) for name in NUMBERS]
    has_several, keys = of_metric["seed"].transform("nunique") > 1, [results[name] for name in line]
    is_same = ~has_several | (pd.concat(n_values, axis=1) == 1).all(axis=1)
    are_equal = is_same.groupby(keys, dropna=False).transform("all")
    return results.assign(are_equal=are_equal & has_several.groupby(keys, dropna=False).transform("any"))


def _variances_of_block(rows: pd.DataFrame) -> pd.DataFrame:
    table = rows.pivot_table(index=[*BLOCK, "metric", *LINE], columns=["n_bits", "seed"], values="value")
    lengths, seeds = (table.columns.unique(level).sort_values() for level in table.columns.names)
    everywhere = pd.MultiIndex.from_product([lengths, seeds])
    values = table.reindex(columns=everywhere).to_numpy(dtype=float, copy=True)
    scores: FloatArray = values.reshape(len(table), len(lengths), len(seeds))
    lines = table.index.to_frame(index=False)
    n_seeds = (~np.isnan(scores)).sum(axis=2)
    of_line = rows.groupby([*LINE, "n_bits"])["are_equal"].all().unstack("n_bits", fill_value=False)  # noqa: PD010
    is_equal = of_line.reindex(pd.MultiIndex.from_frame(lines[[*LINE]]))[lengths].to_numpy(dtype=bool)
    are_all_equal = is_equal.any(axis=1) & (is_equal | (n_seeds < 2)).all(axis=1)
    is_fixed = ~draw_at_random(lines) | (are_all_equal & lines["method"].isin(built_in_methods()).to_numpy())
    scores[is_fixed] = np.nan
    variance, freedom, is_borrowed = seed_variances(scores)
    is_single = is_equal & ~is_borrowed
    cells = lines.loc[lines.index.repeat(len(lengths))].reset_index(drop=True)
    cells = cells.assign(
        n_bits=np.tile(lengths, len(lines)),
        seed_variance=np.where(is_fixed[:, None], 0.0, np.where(is_single, np.nan, variance)).ravel(),
        seed_freedom=np.where(is_fixed[:, None], np.inf, np.where(is_single, np.nan, freedom)).ravel(),
        is_fixed=np.repeat(is_fixed, len(lengths)),
        is_borrowed=is_borrowed.ravel(),
        n_distinct=np.where(is_equal, 1, n_seeds).ravel(),
    )
    known: pd.DataFrame = cells[(n_seeds > 0).ravel()]
    return known


def assess(
    cells: pd.DataFrame,
    scores: Sequence[FloatArray | None],
    kinds: IntArray | None = None,
    reference: int | None = None,
) -> Uncertainty:
    """Compute intervals of the cells of a column, and test them: baselines are not.

    ``scores`` are those of the queries of each cell, (n_seeds, n_queries), if they are known; of the ``kinds`` of
    queries, (n_queries,), each counts once. Without a ``reference``, p is that no other cell is better. With its
    position, which must be chosen before results are seen, p is that of the difference to it, corrected by Holm's
    method; -1 is that of a method that is not there.
    """
    is_fixed, of_one = cells["is_fixed"].to_numpy(dtype=bool), cells["seed_variance"].to_numpy(dtype=float)
    is_borrowed, n_seeds = cells["is_borrowed"].to_numpy(dtype=bool), cells["n_distinct"].to_numpy()
    is_rival = ((cells["group"] != "baseline") & cells["value"].notna()).to_numpy()
    is_tested = is_rival | (np.arange(len(cells)) == (-1 if reference is None else reference))
    are_few = np.array([values is not None and _n_distinct(values, kinds) < 2 for values in scores], dtype=bool)
    scores = [None if few else values for values, few in zip(scores, are_few, strict=True)]
    has_scores = np.array([values is not None for values in scores], dtype=bool)
    has_enough = is_borrowed | (n_seeds >= LEAST_SEEDS) | (not has_scores[is_tested].any())
    is_drawn = ~is_fixed & ~np.isnan(of_one) & has_enough
    variances = np.where(is_drawn, of_one / n_seeds, 0.0)
    freedom = np.where(is_drawn, cells["seed_freedom"].to_numpy(dtype=float), np.inf)
    scores = [
        values if values is None or drawn else values.mean(axis=0, keepdims=True)
        for values, drawn in zip(scores, is_drawn, strict=True)
    ]
    has_seeds = bool((is_drawn & is_tested).any())
    untested = np.full(len(cells), "", dtype=object)
    untested[~is_fixed & ~is_drawn & (has_seeds | ~has_scores)] = "single" if has_seeds else "lacking"
    untested[are_few & ~is_drawn] = "few"
    untested[is_drawn & (variances == 0) & ~has_scores] = "equal"
    is_testable = is_tested & (untested == "")
    queries = _defined_queries(cells, scores, is_testable)
    untested[is_testable & ~queries.is_same] = "unpaired"
    places = np.flatnonzero(is_testable & queries.is_same)
    chance = Chance.over_seeds(variances[places], freedom[places], (is_borrowed | ~is_drawn)[places])
    chance = _with_queries(chance, [scores[place] for place in places], queries.is_defined, kinds)
    if len(places) > 1 and not (chance.of_seeds.any() or chance.n_queries.any()):
        untested[places], places = "fixed", places[:0]
    values = (cells["value"] * signs_of(cells["metric"])).to_numpy()[places]
    p_value = np.full(len(cells), np.nan)
    if reference is None:
        p_value[places] = corrected_p_values(values, chance) if len(places) > 1 else np.nan
    elif reference in places:
        at, others = int(np.flatnonzero(places == reference)[0]), places != reference
        one_sided = p_values_of_pairs(values, chance)
        two_sided = np.minimum(2 * np.minimum(one_sided[at], one_sided[:, at]), 1.0)
        p_value[places[others]] = holm(two_sided[others])
    else:
        untested[:] = untested[reference] if reference >= 0 else "absent"
    is_asked = is_rival & (np.arange(len(cells)) != reference)
    parts = zip(cells["value"], scores, variances, freedom, strict=True)
    from_, to = np.array([_interval(*each, kinds) for each in parts]).reshape(-1, 2).T
    of_scores = np.where((is_drawn | is_fixed) & has_seeds, BOTH, QUERIES)
    basis = np.where(has_scores, of_scores, SEEDS)
    return Uncertainty(basis, from_, to, np.where(is_asked, p_value, np.nan), np.where(is_asked, untested, ""))


def _n_distinct(scores: FloatArray, kinds: IntArray | None) -> int:
    """Return the number of distinct queries that scores, (n_seeds, n_queries), are defined for."""
    is_defined = ~np.isnan(scores[0])
    return int(is_defined.sum()) if kinds is None else len(np.unique(kinds[is_defined]))


class _Queries(NamedTuple):
    """Which queries most cells of a column are means over."""

    is_same: BoolArray  # (n_cells,) whether a cell is a mean over these, in all seeds
    is_defined: BoolArray  # (n_queries,) of those whose scores of single queries are known


def _defined_queries(cells: pd.DataFrame, scores: Sequence[FloatArray | None], is_testable: BoolArray) -> _Queries:
    """Find the queries of most testable cells: their number, and which they are where single scores are known."""
    least, most = cells["least_undefined"].to_numpy(), cells["n_undefined"].to_numpy()
    numbers = Counter(most[is_testable & (least == most)].tolist())
    usual = max(numbers, key=lambda number: (numbers[number], -number), default=-1)
    is_same = (least == most) & (most == usual)
    masks = [None if values is None else ~np.isnan(values[0]) for values in scores]
    of_masks = Counter(
        mask.tobytes() for mask, same in zip(masks, is_same & is_testable, strict=True) if same and mask is not None
    )
    if not of_masks:
        return _Queries(is_same, np.zeros(0, dtype=bool))
    usual_mask = np.frombuffer(max(of_masks, key=lambda mask: (of_masks[mask], mask)), dtype=bool)
    is_same &= [mask is None or np.array_equal(mask, usual_mask) for mask in masks]
    return _Queries(is_same, usual_mask)


def _with_queries(
    chance: Chance, scores: Sequence[FloatArray | None], is_defined: BoolArray, kinds: IntArray | None
) -> Chance:
    """Add what queries could do to cells of some of which the scores of single queries are known."""
    known = np.array([place for place, values in enumerate(scores) if values is not None], dtype=int)
    if len(known):
        both = np.ix_(known, known)
        kept = [values[:, is_defined] for values in scores if values is not None]
        of_all = chance_of_queries(kept, None if kinds is None else kinds[is_defined])
        chance.of_queries[both], chance.interactions[both], chance.n_queries[both] = of_all
    return chance


def _interval(
    value: float, scores: FloatArray | None, variance: float, freedom: float, kinds: IntArray | None
) -> tuple[float, float]:
    """Return the interval of a cell, NaN if nothing says how far another mean would be."""
    found = Moments(value, 0.0, (variance, 0.0), (0.0, 0.0), (1.0, freedom, 1.0))
    if scores is not None:
        is_defined = ~np.isnan(scores[0])
        kept = scores[:, is_defined]
        found = moments(kept, np.zeros_like(kept[:1]), None if kinds is None else kinds[is_defined])
        found = found._replace(of_seeds=(variance, 0.0), degrees=(found.degrees[0], freedom, 1.0))
    elif not variance:
        return np.nan, np.nan
    low, high, _ = interval(value, found.variance, found.freedom)
    return float(low), float(high)


def verdict(difference: Difference) -> str:
    """Return whether the first method of a difference is shown to be ``better`` or ``worse``, or ``not shown``."""
    if not difference.is_shown:
        return "not shown"
    return "better" if (difference.value > 0) != is_error(difference.metric) else "worse"


def draw_at_random(cells: pd.DataFrame) -> BoolArray:
    """Return whether the method of each cell draws at random."""
    settings = pd.MultiIndex.from_frame(cells[["method", "params"]])
    return np.array(settings.map({setting: draws(*setting) for setting in settings.unique()}), dtype=bool)


def _scores_of(cells: Sequence[RowsOfCell | None]) -> tuple[list[FloatArray | None], IntArray | None]:
    """Return the scores of every query of cells of one metric, given their rows, where those of all rows are cached.

    They are (n_seeds, n_queries), NaN if undefined; all are if seeds have others of them. Of users' own codes, which
    may hold a query several times, also return the kinds of queries; see `hashbench.scoring.comparison.kinds_of`.
    """
    some = next((rows for rows in cells if rows is not None), None)
    if some is None:
        return [None] * len(cells), None
    metric, features = some[0]["metric"], some[0]["features"]
    evaluations = [None if rows is None else evaluations_of_rows(rows, [metric]) for rows in cells]
    scores: list[FloatArray | None] = []
    for found in evaluations:
        values = [one.scores[metric].mean for one in found or ()]
        is_same = all(np.array_equal(np.isnan(each), np.isnan(values[0])) for each in values)
        scores.append(np.stack(values) * (1.0 if is_same else np.nan) if values else None)
    known = [found for found in evaluations if found]
    n_queries = {values.shape[1] for values in scores if values is not None}
    has_kinds = features == OWN_FEATURES and len(n_queries) == 1
    return scores, kinds_of(known, metric) if has_kinds else None


def evaluations_of_rows(rows: RowsOfCell, metrics: Sequence[str] = ()) -> list[Evaluation] | None:
    """Return the scores of every seed behind rows of one line, by default in all cached metrics.

    None if the data folder lacks any.
    """
    evaluations = []
    for row in map(as_row, sorted(rows, key=itemgetter("seed"))):
        arrays = find(row)
        if arrays is None:
            return None
        evaluations.append(evaluation_of(arrays, metrics or metrics_in(arrays)))
    return evaluations
