"""Average precision of the whole ranking and of its first k items."""

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import TieHistogram, once_per_histogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, Slopes, register_metric
from hashbench.scoring.metrics._sums import SQUARES, Cut, Sums, cut_at, harmonic_range, harmonic_sums, sum_groups


def _slopes(histogram: TieHistogram, ties: str = "ranked") -> Slopes:
    slope = np.zeros(histogram.size.shape)
    if ties == "ranked":
        slope = histogram.spread(_whole_groups(histogram.dense)[4]) / histogram.n_relevant[:, None]
    return Slopes.of_relevance(slope, histogram)


def _slopes_at(histogram: TieHistogram, k: int | None, divisor: str = "retrieved") -> Slopes:
    dense = histogram.dense
    cut, n_groups = cut_at(dense, k), dense.size.shape[1]
    slope = np.where(np.arange(n_groups) < cut.group[:, None], _whole_groups(dense)[4], 0.0)
    if divisor == "retrieved":
        _, _, reciprocal, cut_slope = _over_retrieved(dense, k)
        slope = slope * reciprocal[:, None] + cut.in_group(cut_slope, n_groups)
    else:
        slope = (slope + cut.in_group(_in_cut(dense, k)[2], n_groups)) / _divisor(histogram, k, divisor)[:, None]
    return Slopes.of_relevance(histogram.spread(slope), histogram)


@register_metric(
    "AP",
    options=("ranked", "thresholds"),
    source="TALR eq. 6, 17; McSherry & Najork, ECIR 2008 (ranked); scikit-learn (thresholds)",
    slopes=_slopes,
)
def average_precision(histogram: TieHistogram, ties: str = "ranked") -> Scores:
    """Mean over the relevant items of the precision at their rank.

    As ``thresholds``, all relevant items of a tie have the precision at its end, as in scikit-learn's
    ``average_precision_score``: no order of the items changes that, and none has it.

    Notes
    -----
    Equation (6) of [1]_, paper to code: n_d is ``size``, n_d^+ is ``n_rel``, N_{d-1} is ``before``,
    N_{d-1}^+ is ``rel_before``. The extremes put relevant items last or first in each tie. Ties are in random order
    independently of each other, so their variances add up (docs/explanation/mean-over-queries.md).

    References
    ----------
    .. [1] K. He, F. Cakir, S. A. Bargal, S. Sclaroff, "Hashing as Tie-Aware Learning to Rank",
       CVPR 2018, arXiv:1705.08562.

    Examples
    --------
    A relevant and an irrelevant item in one tie: precision is 1 or 1/2.

    >>> average_precision(TieHistogram.from_pairs([[0, 0]], [[1, 0]], n_bits=1))
    Scores(mean=array([0.75]), low=array([0.5]), high=array([1.]), tie_sd=array([0.25]))
    """
    if ties == "thresholds":
        n_within = np.maximum(histogram.before + histogram.size, 1)
        n_rel_within = histogram.rel_before + histogram.n_rel
        value = (histogram.n_rel * n_rel_within / n_within).sum(axis=1) / histogram.n_relevant
        return Scores.without_ties(value)
    return Sums(*sum_groups(_whole_groups(histogram.dense)[:4])).over(histogram.n_relevant)


@register_metric(
    "AP@k",
    options=("retrieved", "relevant", "capped"),
    source="CBIR metrics eq. 2 (retrieved); McSherry & Najork, ECIR 2008 (relevant)",
    slopes=_slopes_at,
)
def average_precision_at(histogram: TieHistogram, k: int | None, divisor: str = "retrieved") -> Scores:
    """Sum of the precision at each relevant item among the first k, over a divisor.

    The divisor is the number of relevant items among the first k (``retrieved``, the hashing literature's mAP@k; the
    score is 0 if there are none), of all relevant items (``relevant``), or min(k, all relevant items) (``capped``).

    Notes
    -----
    The cutoff falls into one tie; how many relevant items ``m`` of that tie lie above it is
    hypergeometric. With a fixed divisor the sum grows with m, so the extremes sit at the ends. Divided
    by ``rel_before + m``, the worst sum is convex in m and so is the best one. A convex function over
    an affine one is quasiconvex: the maximum sits at an end, the minimum where the ratio stops falling.

    Examples
    --------
    A relevant item, three irrelevant ones, then a tie of four with two relevant, cut at 6.

    >>> histogram = TieHistogram.from_pairs([[0, 1, 1, 1, 2, 2, 2, 2]], [[1, 0, 0, 0, 1, 1, 0, 0]], n_bits=2)
    >>> average_precision_at(histogram, 6).high  # none of the tie's relevant items above the cut
    array([1.])
    """
    dense = histogram.dense
    cut, sums = cut_at(dense, k), _above(dense, k)
    if divisor != "retrieved":
        mean, variance, _ = _in_cut(dense, k)
        low, high = sums.low + _worst_of(cut, cut.fewest), sums.high + _best_of(cut, cut.most)
        return Sums(sums.mean + mean, low, high, sums.variance + variance).over(_divisor(histogram, k, divisor))
    cutoff, n_worst = cut.before + cut.slots, np.empty_like(cut.slots)
    table = harmonic_sums(int(cutoff.max(initial=0)))
    _loops.least_ratio(sums.low, cutoff, cut.rel_before, cut.fewest, cut.most, table, n_worst)
    low = (sums.low + _worst_of(cut, n_worst)) / np.maximum(cut.rel_before + n_worst, 1)
    high = np.max(
        [(sums.high + _best_of(cut, m)) / np.maximum(cut.rel_before + m, 1) for m in (cut.fewest, cut.most)], axis=0
    )
    mean, variance, _, _ = _over_retrieved(dense, k)
    return Scores(mean, low, high, np.sqrt(np.maximum(variance, 0)))


def _divisor(histogram: TieHistogram, k: int | None, divisor: str) -> IntArray:
    return histogram.n_relevant if divisor == "relevant" or k is None else np.minimum(histogram.n_relevant, k)


@register_metric(
    "AP@R",
    source="Musgrave et al., ECCV 2020: MAP@R of pytorch-metric-learning",
    slopes=lambda histogram: _slopes_at(histogram, None, "relevant"),
)
def average_precision_at_r(histogram: TieHistogram) -> Scores:
    """Sum of the precision at each relevant item among the first R, over R, the number of relevant items.

    Examples
    --------
    Two relevant items, at ranks 1 and 3: only the first is among the first two.

    >>> average_precision_at_r(TieHistogram.from_pairs([[0, 1, 2]], [[1, 0, 1]], n_bits=2)).mean
    array([0.5])
    """
    return average_precision_at(histogram, None, "relevant")


@once_per_histogram
def _whole_groups(histogram: TieHistogram) -> FloatArray:
    """Sum the precision at the relevant items of each tie: the parts of `Sums` and slopes, (5, n_queries, n_groups)."""
    before, rel_before, size, n_rel = histogram.before, histogram.rel_before, histogram.size, histogram.n_rel
    mean, variance, slope = _moments(before, rel_before, size, n_rel, size, np.empty((1, 6)))
    low, high = _in_a_row(before + size - n_rel, rel_before, n_rel), _in_a_row(before, rel_before, n_rel)
    return np.stack([mean, low, high, variance, slope])


def _moments(
    before: IntArray, rel_before: IntArray, size: IntArray, n_rel: IntArray, slots: IntArray, effects: FloatArray
) -> FloatArray:
    """Compute mean, variance and slope of the sum of precision at each tie's relevant items in its first ``slots``."""
    moments = np.empty((3, *size.shape))
    arrays = before, rel_before, size, n_rel, slots, harmonic_range(before, slots * (n_rel > 0))  # else of no use
    _loops.tie_moments(*(array.ravel() for array in arrays), SQUARES, effects, *moments.reshape(3, -1))
    return moments


def _in_a_row(before: IntArray, rel_before: IntArray, n_rel: IntArray) -> FloatArray:
    """Sum the precision at relevant items that follow each other, the first at rank before + 1."""
    return np.asarray(n_rel + (rel_before - before) * harmonic_range(before, n_rel))


def _worst_of(cut: Cut, n_above: IntArray) -> FloatArray:
    """Compute the smallest sum of precision at the cut tie's relevant items if ``n_above`` lie above the cutoff."""
    return _in_a_row(cut.before + cut.slots - n_above, cut.rel_before, n_above)


def _best_of(cut: Cut, n_above: IntArray) -> FloatArray:
    """Compute the largest sum of precision at the cut tie's relevant items if ``n_above`` lie above the cutoff."""
    return _in_a_row(cut.before, cut.rel_before, n_above)


@once_per_histogram
def _above(histogram: TieHistogram, k: int | None) -> Sums:
    """Sum the precision at the relevant items of the ties above the cut one."""
    return Sums(*sum_groups(_whole_groups(histogram)[:4], cut_at(histogram, k).group))


@once_per_histogram
def _in_cut(histogram: TieHistogram, k: int | None) -> FloatArray:
    """Compute mean, variance and slope of the sum of precision at the cut tie's relevant items above the cutoff."""
    cut = cut_at(histogram, k)
    return _moments(cut.before, cut.rel_before, cut.size, cut.n_rel, cut.slots, np.empty((1, 6)))


@once_per_histogram
def _over_retrieved(histogram: TieHistogram, k: int | None) -> FloatArray:
    """Compute mean and variance of AP@k:retrieved, the mean of one over its divisor, and the slope of the cut tie."""
    cut, sums, ratio = cut_at(histogram, k), _above(histogram, k), np.empty((4, histogram.n_queries))
    effects, some = np.zeros((len(cut.slots), 6)), np.minimum(cut.slots - 1, 1)
    _moments(cut.before, cut.rel_before, cut.slots, some, cut.slots, effects)  # a tie of all slots
    drawn = cut.size, cut.n_rel, cut.slots, cut.rel_before
    _loops.hypergeometric_ratio(*drawn, sums.mean, *_given_hits(cut), sums.variance, effects, ratio)
    return ratio


def _given_hits(cut: Cut) -> tuple[FloatArray, FloatArray]:
    """Return the parts of the cut tie's expected sum of precision, per_one m + per_pair m (m - 1).

    Given m relevant items in all slots, place t holds one with probability m / slots, and so on as in `tie_moments`.
    """
    harmonic, slots = harmonic_range(cut.before, cut.slots), np.maximum(cut.slots, 1)
    per_one = (cut.rel_before + 1) * harmonic / slots
    per_pair = (cut.slots - (cut.before + 1) * harmonic) / (slots * np.maximum(slots - 1, 1))
    return per_one, per_pair
