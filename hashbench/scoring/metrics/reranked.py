"""Metrics of the first items by Hamming distance, re-ranked by a float distance.

The candidates are the first m items by Hamming distance. All items nearer than the tie that m falls into are certain;
which of its ``size`` items take the ``slots`` places left is uniformly random. The derivation is in
docs/explanation/closed-forms.md.
"""

from typing import NamedTuple, cast

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import Candidates, TieHistogram
from hashbench.scoring.metrics import _reranking_loops
from hashbench.scoring.metrics._grammar import Scores, register_metric
from hashbench.scoring.metrics._sums import Sums, cut_at, discount_sums
from hashbench.scoring.metrics.ndcg import exponential_gains, ideal_at

_SOURCE = "two-stage search: Hamming distance, then the exact one"


@register_metric("R@k:reranked=m", source=_SOURCE, needs_candidates=True)
def recall_reranked(histogram: TieHistogram, k: int, n_reranked: int) -> Scores:
    """Share of the relevant items among the first k, once the first m by Hamming distance are in float order.

    The cutoff k is at most m, the number of items that are re-ranked.
    """
    return _first(histogram, k, n_reranked).n_relevant().over(histogram.n_relevant)


@register_metric("P@k:reranked=m", source=_SOURCE, needs_candidates=True)
def precision_reranked(histogram: TieHistogram, k: int, n_reranked: int) -> Scores:
    """Share of relevant items among the first k, once the first m by Hamming distance are in float order.

    A cutoff beyond the database is cut to it, also as the divisor.
    """
    return _first(histogram, k, n_reranked).n_relevant().over(np.minimum(k, histogram.n_database))


@register_metric("NDCG@k:reranked=m", source=_SOURCE, paper_value=1.0, needs_candidates=True, takes_real_levels=True)
def ndcg_reranked(histogram: TieHistogram, k: int, n_reranked: int) -> Scores:
    """Discounted gain 2^level - 1 of the first k of m re-ranked items, over that of the ideal first k of the database.

    The ideal is that of ``NDCG@k``.
    """
    first = _first(histogram, k, n_reranked)
    gains = exponential_gains(first.candidates.level)
    sums = discount_sums(first.k), discount_sums(first.k, power=2)
    return first.sums_of(gains, *sums).over(ideal_at(histogram, k))


@register_metric("AP@k:reranked=m", options=("capped", "relevant"), source=_SOURCE, needs_candidates=True)
def average_precision_reranked(histogram: TieHistogram, k: int, n_reranked: int, divisor: str = "capped") -> Scores:
    """Sum of the precision at each relevant item among the first k of m re-ranked items, over a divisor.

    The divisor is min(k, all relevant items) (``capped``), or the number of all relevant items (``relevant``).
    """
    first = _first(histogram, k, n_reranked)
    weights = np.append(0.0, 1 / np.arange(1, first.k + 1))
    sums = first.sums_of(first.is_relevant, np.cumsum(weights), np.cumsum(weights**2), of_precision=True)
    n_divisor = histogram.n_relevant
    return sums.over(np.minimum(n_divisor, k) if divisor == "capped" else n_divisor)


class _First(NamedTuple):
    """The candidates, the tie that m cuts, and the cutoff k, at most the database."""

    candidates: Candidates
    radius: IntArray
    size: IntArray
    slots: IntArray
    k: int

    @property
    def is_relevant(self) -> FloatArray:
        return (self.candidates.level > 0).astype(np.float64)

    def sums_of(self, gain: FloatArray, sums: FloatArray, squares: FloatArray, of_precision: bool = False) -> Sums:
        """Sum gain, or precision, times weight over the first k ranks, given sums of the first weights and squares."""
        items = self.candidates
        arrays = items.starts, items.value, items.hamming, gain, self.radius, self.size, self.slots, sums
        mean, low, high, variance = np.empty((4, len(self.radius)))
        _reranking_loops.moments(*arrays, squares, of_precision, mean, variance)
        for is_most, out in ((False, low), (True, high)):
            _reranking_loops.extreme(*arrays, of_precision, is_most, out)
            _reranking_loops.graded_extreme(*arrays, 1.0 if is_most else -1.0, out)
        return Sums(mean, low, high, variance)

    def n_relevant(self) -> Sums:
        ones = np.arange(self.k + 1.0)  # sums of weights 1, and of their squares
        return self.sums_of(self.is_relevant, ones, ones)


def _first(histogram: TieHistogram, k: int, n_reranked: int) -> _First:
    cut = cut_at(histogram, n_reranked)
    most = int(histogram.n_database.max(initial=1))
    candidates = cast("Candidates", histogram.candidates)  # or `Metric.scores` had refused
    return _First(candidates, cut.group, cut.size, cut.slots, min(k, most))
