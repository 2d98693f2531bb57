"""Normalised discounted cumulative gain over graded levels."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, Slopes, register_metric
from hashbench.scoring.metrics._sums import (
    check_whole,
    discount_sums,
    rank_variance,
    sum_groups,
    weighted_discount_sums,
)


class _Linear(NamedTuple):
    """The discount N - rank."""

    n_items: IntArray  # N of each query

    def sums(self, first: IntArray, last: IntArray) -> FloatArray:
        """Sum the discounts of the ranks first + 1 to last of each tie, (n_queries, n_groups)."""
        return (last - first) * (self.n_items[:, None] - (first + last + 1) / 2)

    def variance(self, histogram: TieHistogram, gains: FloatArray) -> FloatArray:
        """Compute the variance of each query's discounted gain over tie orders."""
        return rank_variance(histogram.counts, gains)

    def slopes(self, histogram: TieHistogram) -> FloatArray:
        """Compute the slope of each tie, (n_queries, n_groups), before it is divided by the ideal."""
        return histogram.size / -12


class _Logarithmic(NamedTuple):
    """The discount 1 / log2(rank + 1), and 0 beyond a cutoff; with the methods of `_Linear`."""

    up_to: FloatArray  # sums over the first ranks, as many as count
    squares: FloatArray  # the same of squares

    @classmethod
    def cut_at(cls, k: int, n_ranks: int) -> "_Logarithmic":
        n_counted = min(k, n_ranks) + 1
        return cls(discount_sums(n_ranks)[:n_counted], discount_sums(n_ranks, power=2)[:n_counted])

    def sums(self, first: IntArray, last: IntArray) -> FloatArray:
        return np.asarray(self.up_to.take(last, mode="clip") - self.up_to.take(first, mode="clip"))

    def variance(self, histogram: TieHistogram, gains: FloatArray) -> FloatArray:
        out = np.empty(histogram.n_queries)
        _loops.dcg_variance(histogram.counts, gains, histogram.before, self.up_to, self.squares, out)
        return out

    def slopes(self, histogram: TieHistogram) -> FloatArray:
        out, n_ranks = np.empty(histogram.size.shape), len(self.up_to) - 1
        _loops.discount_slopes(
            histogram.size, histogram.before, self.up_to, weighted_discount_sums(n_ranks)[: n_ranks + 1], out
        )
        return out


def _slopes(histogram: TieHistogram, gain: str = "exponential") -> Slopes:
    if gain == "linear":
        return _normalised_slopes(histogram, histogram.levels.astype(np.float64), _Linear(histogram.n_database))
    return _slopes_at(histogram, _n_ranks(histogram), gain)


def _slopes_at(histogram: TieHistogram, k: int, gain: str = "exponential") -> Slopes:
    return _normalised_slopes(histogram, _gains(histogram, gain), _Logarithmic.cut_at(k, _n_ranks(histogram)))


@register_metric(
    "NDCG",
    options=("exponential", "linear", "trec"),
    source="TALR eq. 7, 20 (exponential); Linear NDCG (linear); trec_eval's ndcg (trec)",
    paper_value=1.0,
    slopes=_slopes,
)
def ndcg(histogram: TieHistogram, gain: str = "exponential") -> Scores:
    """Discounted gain of the whole ranking, over that of the ideal one.

    ``exponential`` has gain 2^level - 1 and discount 1 / log2(rank + 1), ``linear`` gain level and discount N - rank,
    ``trec``, as trec_eval, gain level and discount 1 / log2(rank + 1).

    Notes
    -----
    Equation (20) of [1]_: a tie gives the mean gain of its items times the sum of the discounts
    of its ranks. The extremes sort each tie by gain, up or down. In random order a tie of n items adds the variance
    ``sum of (discount - mean discount)^2 * sum of (gain - mean gain)^2 / (n - 1)``.

    References
    ----------
    .. [1] K. He, F. Cakir, S. A. Bargal, S. Sclaroff, "Hashing as Tie-Aware Learning to Rank",
       CVPR 2018, arXiv:1705.08562.

    Examples
    --------
    A relevant and an irrelevant item in one tie: the discount is 1 or 1 / log2(3).

    >>> ndcg(TieHistogram.from_pairs([[0, 0]], [[1, 0]], n_bits=1)).mean
    array([0.81546488])
    """
    if gain == "linear":
        check_whole(histogram, "NDCG:linear")
        return _normalised(histogram, histogram.levels.astype(np.float64), _Linear(histogram.n_database))
    return ndcg_at(histogram, _n_ranks(histogram), gain)


@register_metric(
    "NDCG@k",
    options=("exponential", "trec"),
    source="TALR eq. 7, 20; the ideal is cut at k too; trec_eval's ndcg_cut (trec)",
    paper_value=1.0,
    slopes=_slopes_at,
)
def ndcg_at(histogram: TieHistogram, k: int, gain: str = "exponential") -> Scores:
    """Discounted gain of the first k, over that of the ideal first k.

    Gains are as in `ndcg`; a cutoff beyond the database is cut to it.
    """
    return _normalised(histogram, _gains(histogram, gain), _Logarithmic.cut_at(k, _n_ranks(histogram)))


def _gains(histogram: TieHistogram, gain: str) -> FloatArray:
    levels = histogram.levels.astype(np.float64)
    return levels if gain == "trec" else exponential_gains(levels)


def exponential_gains(levels: npt.ArrayLike) -> FloatArray:
    """Compute the gain 2^level - 1 of each level."""
    return np.exp2(np.asarray(levels, dtype=np.float64)) - 1


def ideal_at(histogram: TieHistogram, k: int) -> FloatArray:
    """Compute the discounted gain 2^level - 1 of each query's ideal first k, (n_queries,)."""
    return _ideal(histogram, exponential_gains(histogram.levels), _Logarithmic.cut_at(k, _n_ranks(histogram)))


def _n_ranks(histogram: TieHistogram) -> int:
    """Return the largest number of ranks of a query's ideal order."""
    return int(histogram.n_at_level.sum(axis=1).max(initial=1))


def _normalised(histogram: TieHistogram, gains: FloatArray, discounts: _Linear | _Logarithmic) -> Scores:
    """Divide expected, worst and best discounted gain by the ideal one."""
    histogram = histogram.dense
    before, size, counts = histogram.before, histogram.size, histogram.counts
    mean_gain = np.einsum("l,qlg->qg", gains, counts) / np.maximum(size, 1)  # (n_queries, n_groups)
    (mean,) = sum_groups((mean_gain * discounts.sums(before, before + size))[None])
    upward = range(1, len(gains))  # irrelevant items add nothing, but come first in the worst order
    low = _gain_in_order(upward, before + counts[:, 0], counts, gains, discounts)
    high = _gain_in_order(upward[::-1], before, counts, gains, discounts)
    unit = np.exp2(np.frexp(gains[-1])[1])  # a power of two, so that squares overflow nothing and round as they would
    tie_sd = unit * np.sqrt(discounts.variance(histogram, gains / unit))
    ideal = _ideal(histogram, gains, discounts)
    # A single item has nothing to be ranked against: its linear discount is 0, and its order is ideal.
    return Scores(*(np.where(ideal > 0, part / ideal, 1.0) for part in (mean, low, high, tie_sd)))


def _normalised_slopes(histogram: TieHistogram, gains: FloatArray, discounts: _Linear | _Logarithmic) -> Slopes:
    ideal, dense = _ideal(histogram, gains, discounts), histogram.dense
    slope = np.where(ideal[:, None] > 0, discounts.slopes(dense) / ideal[:, None], 0.0)
    return Slopes(histogram.spread(slope), gains)


def _ideal(histogram: TieHistogram, gains: FloatArray, discounts: _Linear | _Logarithmic) -> FloatArray:
    """Compute the discounted gain of the items in order of level, in the ranking or not."""
    counts = histogram.n_at_level[:, :, None]  # one group
    return _gain_in_order(range(len(gains) - 1, 0, -1), np.zeros_like(counts[:, 0]), counts, gains, discounts)


def _gain_in_order(
    levels: range, first: IntArray, counts: IntArray, gains: FloatArray, discounts: _Linear | _Logarithmic
) -> FloatArray:
    """Sum the discounted gains where each tie has its items in this order of levels, from rank ``first`` + 1 on."""
    gain = np.zeros(len(counts))
    for level in levels:
        last = first + counts[:, level]
        gain += gains[level] * sum_groups(discounts.sums(first, last)[None])[0]
        first = last
    return gain
