"""How scripts average over queries, and what some of them compute that is none of hashbench's metrics."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hashbench._typing import BoolArray, FloatArray, IntArray
from hashbench.reports.explain.ranking import Query, Sort
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import get_metric

NAN = float("nan")


DIVISOR_WORDS = {"retrieved": "hits above the cut", "relevant": "all relevant items"}


# ---------------------------------------------------------------- means over queries


class Mean(NamedTuple):
    """How a script averages over queries."""

    words: str  # how it differs from hashbench's
    # From scores of queries, 0 without a hit, each query's probability of a hit and its number of relevant items.
    average: Callable[[FloatArray, FloatArray, IntArray], Any]
    of_labelled: bool = False  # it gets only queries with labels


def _ratio(total: float, count: float) -> float:
    return total / count if count else NAN


def _or_nan(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    return NAN if (n_relevant == 0).any() else values.mean()


def _without_last(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    with_relevant = np.flatnonzero(n_relevant > 0)
    return values[: with_relevant[-1] + 1].mean() if with_relevant.size else NAN


MEANS = {
    "count_zero": Mean("queries without relevant items count 0", lambda values, hit, n_relevant: values.mean()),
    "count_zero_of_labelled": Mean(
        "labelled without relevant items count 0",
        lambda values, hit, n_relevant: _ratio(values.sum(), len(values)),
        of_labelled=True,
    ),
    "not_a_number": Mean("queries without relevant items give NaN", _or_nan),
    "not_a_number_of_labelled": Mean("labelled without relevant items give NaN", _or_nan, of_labelled=True),
    "leave_out": Mean("", lambda values, hit, n_relevant: _ratio(values.sum(), int((n_relevant > 0).sum()))),
    "leave_out_without_hits": Mean(
        "queries without hits left out", lambda values, hit, n_relevant: _ratio(values.sum(), hit.sum())
    ),
    "count_one": Mean(
        "queries without relevant items count 1",
        lambda values, hit, n_relevant: (values + (n_relevant == 0)).mean(),
    ),
    "forget_last_ones": Mean("without relevant items: 0, the last left out", _without_last),
    "divide_by_ten_more": Mean(
        "divided by ten queries more", lambda values, hit, n_relevant: values.sum() / ((n_relevant > 0).sum() + 10)
    ),
    "weighted": Mean(  # recalls become hits per relevant item over all queries
        "queries weighted by their relevant items",
        lambda values, hit, n_relevant: _ratio((values * n_relevant).sum(), int(n_relevant.sum())),
    ),
}


# ---------------------------------------------------------------- quantities of the first items of one query


class First(NamedTuple):
    """The first items of a query in a script's order."""

    query: Query
    distance: str
    sort: Sort
    cut: int  # how many items, or the radius that they are in

    @property
    def rows(self) -> IntArray:
        """Their rows."""
        return self.query.rows(self.distance, self.sort)[: self.cut]

    @property
    def hits(self) -> IntArray:
        """Ranks, from 1, of the relevant items among them."""
        ranks = self.query.hits(self.distance, self.sort)
        return ranks[: np.searchsorted(ranks, self.cut, side="right")]


def _mean_precision(ranks: IntArray, counted: BoolArray | slice = slice(None)) -> float:
    """Average the precision at the ranks of hits, where not counted as 0; 0 without a hit."""
    precisions = np.arange(1, len(ranks) + 1) / ranks
    return float(precisions[counted].sum() / max(len(ranks), 1))


def without_first(first: First) -> float:
    """Compute AP above the cut, to which a hit at rank 1 adds nothing."""
    return _mean_precision(first.hits, first.hits > 1)


def of_first_hits(first: First) -> float:
    """Compute AP of the first ``cut`` hits, at any rank."""
    return _mean_precision(first._replace(cut=first.query.n_items).hits[: first.cut])


def trapezoids(first: First) -> float:
    """Compute AP from the means of the precisions just before and at each hit; before the first item that is 1."""
    ranks = first.hits
    before = np.where(ranks == 1, 1.0, np.arange(len(ranks)) / np.maximum(ranks - 1, 1))
    return (_mean_precision(ranks) + float(before.sum()) / max(len(ranks), 1)) / 2


def inside(first: First) -> float:
    """Compute AP of the items inside a radius."""
    return _mean_precision(first._replace(cut=int((first.query.keys(first.distance) <= first.cut).sum())).hits)


def of_scores_above_zero(first: First) -> float:
    """Compute AP above the cut, where items that differ in all bits count as irrelevant."""
    distances = first.query.keys("hamming")[first.rows[first.hits - 1]]
    return _mean_precision(first.hits[distances < first.query.n_bits])


# ---------------------------------------------------------------- quantities of counts, which no tie order affects


def none_relevant(counts: TieHistogram, cut: int) -> FloatArray:
    """Return 0 for each query."""
    return np.zeros(counts.n_queries)


def at_end_of_ties(counts: TieHistogram, cut: int) -> FloatArray:
    """Compute the precision at the end of each tie, weighted by the share of relevant items in it."""
    return get_metric("AP:thresholds").scores(counts, undefined="zero").mean


def area(counts: TieHistogram, cut: int) -> float:
    """Compute the area under precision against recall of all pairs, radius by radius, without the last."""
    relevant = counts.n_rel.sum(axis=0)
    if not relevant.any():  # recall is 0 / 0
        return NAN
    precision = _of_pairs(counts)
    good = np.cumsum(relevant)[: len(precision)]
    recall, first = np.unique(good / relevant.sum(), return_index=True)
    precision = precision[first]
    if good.size and good[0] > 0:
        recall, precision = np.insert(recall, 0, 0.0), np.insert(precision, 0, precision[0])
    return float(np.trapezoid(precision, recall))


def precision_of_pairs(counts: TieHistogram, radius: int) -> float:
    """Compute the share of relevant pairs among those of all queries inside a radius; NaN at the last."""
    precision = _of_pairs(counts)
    return float(precision[radius]) if radius < len(precision) else NAN


def recall_of_pairs(counts: TieHistogram, radius: int) -> float:
    """Compute the share of relevant pairs that are inside a radius; NaN at the last."""
    relevant = counts.n_rel.sum(axis=0)
    is_defined = relevant.any() and radius < len(_of_pairs(counts))
    return float(relevant[: radius + 1].sum() / relevant.sum()) if is_defined else NAN


def _of_pairs(counts: TieHistogram) -> FloatArray:
    """Compute the precision of all pairs, radius by radius, without the last."""
    sizes = counts.size.sum(axis=0)
    n_radii = int(np.flatnonzero(sizes)[-1])
    good, retrieved = np.cumsum(counts.n_rel.sum(axis=0))[:n_radii], np.cumsum(sizes)[:n_radii]
    return np.asarray(good / (retrieved + np.finfo(float).eps))


def ndcg_of_int8(counts: TieHistogram, cut: int) -> FloatArray:
    """Compute NDCG with gains 2**level - 1 where 2**level is at most 127."""
    levels = np.minimum(counts.levels, np.log2(127))
    return get_metric("NDCG").scores(TieHistogram(counts.counts, levels), undefined="zero").mean


def _ball(counts: TieHistogram, radius: int) -> tuple[IntArray, IntArray]:
    return counts.n_rel[:, : radius + 1].sum(axis=1), counts.size[:, : radius + 1].sum(axis=1)


def precision_or_share(counts: TieHistogram, radius: int) -> float:
    """Average the precision inside a radius, of all items where nothing is inside; NaN if all items are."""
    hits, sizes = _ball(counts, radius)
    if (sizes == counts.n_database).any():
        return NAN
    return float(np.where(sizes > 0, hits / np.maximum(sizes, 1), counts.n_relevant / counts.n_database).mean())


def among_hits(counts: TieHistogram, radius: int) -> float:
    """Average the precision over the queries that have a hit."""
    hits, sizes = _ball(counts, radius)
    return float((hits / np.maximum(sizes, 1)).sum() / max((hits > 0).sum(), 1))


def recall_among_hits(counts: TieHistogram, radius: int) -> float:
    """Average the recall over the queries that have a hit."""
    hits, _ = _ball(counts, radius)
    return float((hits / np.maximum(counts.n_relevant, 1)).sum() / max((hits > 0).sum(), 1))


def recall_or_nothing(counts: TieHistogram, radius: int) -> float:
    """Average the recall; NaN if a query has items inside and nothing is relevant."""
    hits, sizes = _ball(counts, radius)
    with np.errstate(invalid="ignore"):
        return float(np.where(sizes > 0, hits / counts.n_relevant, 0.0).mean())
