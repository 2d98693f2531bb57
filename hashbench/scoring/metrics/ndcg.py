"""Normalised discounted cumulative gain over graded levels, and the error that equals it, counted over pairs."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import TieHistogram, once_per_histogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, Slopes, register_metric
from hashbench.scoring.metrics._sums import (
    check_whole,
    discount_sums,
    rank_variance,
    sum_groups,
    weighted_discount_sums,
)


class _Gains(NamedTuple):
    """Discounted gain of each query, (n_queries,), and the slope of each tie, (n_queries, n_groups)."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    variance: FloatArray
    ideal: FloatArray
    slope: FloatArray

    @property
    def scores(self) -> Scores:
        """The gain over the ideal one."""
        # A single item has nothing to be ranked against: its linear discount is 0, and its order is ideal.
        parts = self.mean, self.low, self.high, np.sqrt(self.variance)
        return Scores(*(np.where(self.ideal > 0, part / self.ideal, 1.0) for part in parts))

    def slopes(self, gains: FloatArray) -> Slopes:
        """Return the slopes of the gain over the ideal one."""
        return Slopes(np.where(self.ideal[:, None] > 0, self.slope / self.ideal[:, None], 0.0), gains)


def _slopes(histogram: TieHistogram, gain: str = "exponential") -> Slopes:
    if gain == "linear":
        return _linear(histogram).slopes(histogram.levels.astype(np.float64))
    return _slopes_at(histogram, _n_ranks(histogram), gain)


def _slopes_at(histogram: TieHistogram, k: int, gain: str = "exponential") -> Slopes:
    return _logarithmic(histogram, k, gain).slopes(_gains(histogram, gain))


@register_metric(
    "NDCG",
    options=("exponential", "linear", "trec"),
    source="TALR eq. 7, 20 (exponential); Linear NDCG (linear); trec_eval's ndcg (trec)",
    paper_value=1.0,
    takes_real_levels=True,
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
        return _linear(histogram).scores
    return ndcg_at(histogram, _n_ranks(histogram), gain)


@register_metric(
    "NDCG@k",
    options=("exponential", "trec"),
    source="TALR eq. 7, 20; the ideal is cut at k too; trec_eval's ndcg_cut (trec)",
    paper_value=1.0,
    takes_real_levels=True,
    slopes=_slopes_at,
)
def ndcg_at(histogram: TieHistogram, k: int, gain: str = "exponential") -> Scores:
    """Discounted gain of the first k, over that of the ideal first k.

    Gains are as in `ndcg`; a cutoff beyond the database is cut to it.
    """
    return _logarithmic(histogram, k, gain).scores


def _gains(histogram: TieHistogram, gain: str) -> FloatArray:
    levels = histogram.levels.astype(np.float64)
    return levels if gain == "trec" else exponential_gains(levels)


def exponential_gains(levels: npt.ArrayLike) -> FloatArray:
    """Compute the gain 2^level - 1 of each level."""
    levels = np.asarray(levels, dtype=np.float64)
    is_small = levels < 1  # and would lose digits to the subtraction
    return np.asarray(np.where(is_small, np.expm1(levels * np.log(2)), np.exp2(levels) - 1))


def ideal_at(histogram: TieHistogram, k: int) -> FloatArray:
    """Compute the discounted gain 2^level - 1 of each query's ideal first k, (n_queries,)."""
    n_ranks = _n_ranks(histogram)
    return _ideal(histogram, exponential_gains(histogram.levels), discount_sums(n_ranks)[: min(k, n_ranks) + 1])


def _n_ranks(histogram: TieHistogram) -> int:
    """Return the largest number of ranks of a query's ideal order."""
    return int(histogram.n_at_level.sum(axis=1).max(initial=1))


def _ideal(histogram: TieHistogram, gains: FloatArray, up_to: FloatArray) -> FloatArray:
    """Sum the gains of the items in order of level, in the ranking or not, times discounts given by their sums."""
    first, gain = np.zeros(histogram.n_queries, dtype=np.int64), np.zeros(histogram.n_queries)
    for level in range(len(gains) - 1, 0, -1):
        last = first + histogram.n_at_level[:, level]
        gain += gains[level] * (up_to.take(last, mode="clip") - up_to.take(first, mode="clip"))
        first = last
    return gain


@once_per_histogram
def _logarithmic(histogram: TieHistogram, k: int, gain: str) -> _Gains:
    """Discount rank t by 1 / log2(t + 1), and by 0 beyond k."""
    n_ranks, gains = _n_ranks(histogram), _gains(histogram, gain)
    n_counted, sums, slope = min(k, n_ranks) + 1, np.empty((4, histogram.n_queries)), np.zeros(histogram.size.shape)
    up_to = discount_sums(n_ranks)[:n_counted]
    others = discount_sums(n_ranks, power=2)[:n_counted], weighted_discount_sums(n_ranks)[:n_counted]
    unit = np.exp2(np.frexp(gains[-1])[1])  # a power of two, so that squares overflow nothing and round as they would
    _loops.discounted_gains(histogram.counts, gains / unit, up_to, *others, sums, slope)
    mean, low, high, variance = sums
    return _Gains(mean, low, high, variance, _ideal(histogram, gains / unit, up_to), slope / unit)


@once_per_histogram
def _linear(histogram: TieHistogram) -> _Gains:
    """Discount rank t by N - t."""
    counts, levels, n_items = histogram.counts, histogram.levels.astype(np.float64), histogram.n_database[:, None]
    before, size = histogram.before, histogram.size

    def discounts(first: IntArray, last: IntArray) -> FloatArray:
        return np.asarray((last - first) * (n_items - (first + last + 1) / 2))

    def gain_in_order(order: slice, before: IntArray, counts: IntArray) -> FloatArray:
        of_levels, gain = counts.swapaxes(0, 1)[order], np.zeros(len(counts))  # (n_levels - 1, n_queries, n_groups)
        last = before + np.cumsum(of_levels, axis=0)
        for level, sums in zip(levels[order], sum_groups(discounts(last - of_levels, last)), strict=True):
            gain += level * sums
        return gain

    mean_gain = np.einsum("l,qlg->qg", levels, counts) / np.maximum(size, 1)  # (n_queries, n_groups)
    (mean,) = sum_groups((mean_gain * discounts(before, before + size))[None])
    upward, downward = slice(1, None), slice(None, 0, -1)  # irrelevant items add nothing, but come first in the worst
    low = gain_in_order(upward, before + counts[:, 0], counts)
    high = gain_in_order(downward, before, counts)
    in_one_group = histogram.n_at_level[:, :, None]
    ideal = gain_in_order(downward, np.zeros_like(in_one_group[:, 0]), in_one_group)
    return _Gains(mean, low, high, rank_variance(counts, levels), ideal, size / -12)


def _slopes_of_error(histogram: TieHistogram) -> Slopes:
    slope, gains = _slopes(histogram, "linear")
    return Slopes(-slope, gains)


@register_metric(
    "PairwiseError",
    source="Linear NDCG: equals 1 - NDCG:linear",
    is_error=True,
    slopes=_slopes_of_error,
    takes_real_levels=True,
)
def pairwise_error(histogram: TieHistogram) -> Scores:
    """Level differences of the pairs in the wrong order, over the ideal linear gain.

    Notes
    -----
    With gain = level and discount = N - rank, an item gains its level once for each item ranked below
    it, so every pair of items gives the level of its upper one. The ideal ranking gives each pair the
    higher level of the two. What a ranking lacks is therefore the sum of the level differences of its
    misordered pairs, and ``PairwiseError = 1 - NDCG:linear``. Here the pairs are counted: a tied pair
    is misordered in half of the orders. In a tie of n items with levels l the sum of their places times their levels
    varies by ``n (n + 1) / 12 * sum of (l - mean l)^2``.

    Examples
    --------
    Three items at distances 0, 1, 1 with levels 0, 2, 0: one pair wrong, one tied.

    >>> pairwise_error(TieHistogram.from_pairs([[0, 1, 1]], [[0, 2, 0]], n_bits=1))
    Scores(mean=array([0.75]), low=array([0.5]), high=array([1.]), tie_sd=array([0.25]))
    """
    check_whole(histogram, "PairwiseError")
    levels = histogram.levels.astype(np.float64)
    difference = np.maximum(levels[:, None] - levels[None, :], 0)  # of a pair (higher, lower)
    counts = histogram.counts.astype(np.float64)
    before = np.cumsum(counts, axis=2) - counts
    wrong, tied = (np.einsum("qhg,hl,qlg->q", counts, difference, lower, optimize=True) for lower in (before, counts))
    totals = counts.sum(axis=2)  # (n_queries, n_levels)
    above = np.cumsum(totals[:, ::-1], axis=1)[:, ::-1]  # items of this level or a higher one
    # Each item of a level outranks all items of lower levels, and half of its own level's pairs remain.
    ideal = (levels * totals * (totals.sum(axis=1, keepdims=True) - above + (totals - 1) / 2)).sum(axis=1)
    parts = (wrong + tied / 2, wrong, wrong + tied, np.sqrt(rank_variance(counts, levels)))
    return Scores(*(np.where(ideal > 0, part / ideal, 0.0) for part in parts))  # a single item makes no pair
