"""Average precision of the whole ranking and of its first k items."""

from typing import NamedTuple, Self

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import TieHistogram, once_per_histogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, Slopes, register_metric
from hashbench.scoring.metrics._sums import HARMONIC, SQUARES, Cut, Sums, cut_at, harmonic_range, harmonic_sums


def _slopes(histogram: TieHistogram, ties: str = "ranked") -> Slopes:
    slope = np.zeros(histogram.size.shape)
    if ties == "ranked":
        slope = _of_ties(histogram).slope / histogram.n_relevant[:, None]
    return Slopes.of_relevance(slope, histogram)


def _slopes_at(histogram: TieHistogram, k: int | None, divisor: str = "retrieved") -> Slopes:
    cut, n_groups = cut_at(histogram, k), histogram.size.shape[1]
    slope = np.where(np.arange(n_groups) < cut.group[:, None], _of_ties(histogram).slope, 0.0)
    if divisor == "retrieved":
        _, _, reciprocal, cut_slope = _over_retrieved(histogram, k)
        slope = slope * reciprocal[:, None] + cut.in_group(cut_slope, n_groups)
    else:
        cut_slope = _in_cut(histogram, k).slope[:, 0]
        slope = (slope + cut.in_group(cut_slope, n_groups)) / _divisor(histogram, k, divisor)[:, None]
    return Slopes.of_relevance(slope, histogram)


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
    return _of_ties(histogram).sums.over(histogram.n_relevant)


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
    cut, sums = cut_at(histogram, k), _above(histogram, k)
    if divisor != "retrieved":
        mean, _, _, variance = _in_cut(histogram, k).sums
        low, high = sums.low + _worst_of(cut, cut.fewest), sums.high + _best_of(cut, cut.most)
        return Sums(sums.mean + mean, low, high, sums.variance + variance).over(_divisor(histogram, k, divisor))
    cutoff, n_worst = cut.before + cut.slots, np.empty_like(cut.slots)
    table = harmonic_sums(int(cutoff.max(initial=0)))
    _loops.least_ratio(sums.low, cutoff, cut.rel_before, cut.fewest, cut.most, table, n_worst)
    low = (sums.low + _worst_of(cut, n_worst)) / np.maximum(cut.rel_before + n_worst, 1)
    high = np.max(
        [(sums.high + _best_of(cut, m)) / np.maximum(cut.rel_before + m, 1) for m in (cut.fewest, cut.most)], axis=0
    )
    mean, variance, _, _ = _over_retrieved(histogram, k)
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


def _slopes_in_ball(histogram: TieHistogram, radius: int, empty: str = "zero") -> Slopes:
    is_inside = np.arange(histogram.size.shape[1]) <= radius
    n_rel = np.maximum((histogram.n_rel * is_inside).sum(axis=1), 1)
    return Slopes.of_relevance(np.where(is_inside, _of_ties(histogram).slope, 0.0) / n_rel[:, None], histogram)


@register_metric(
    "AP@rN", options=("zero", "skip"), source="DCH, CVPR 2018: MAP within Hamming radius 2", slopes=_slopes_in_ball
)
def average_precision_in_ball(histogram: TieHistogram, radius: int, empty: str = "zero") -> Scores:
    """Mean over the relevant items inside a Hamming ball of the precision at their rank.

    It is 0 without any; a query whose ball is empty may be left out of the mean (``skip``).

    Examples
    --------
    A relevant and an irrelevant item in one tie, and a relevant item beyond the ball:

    >>> average_precision_in_ball(TieHistogram.from_pairs([[0, 0, 1]], [[1, 0, 1]], n_bits=1), 0)
    Scores(mean=array([0.75]), low=array([0.5]), high=array([1.]), tie_sd=array([0.25]))
    """
    inside = slice(0, radius + 1)
    n_ties = np.full(histogram.n_queries, min(radius + 1, histogram.size.shape[1]))
    scores = _of_first(histogram, n_ties).sums.over(np.maximum(histogram.n_rel[:, inside].sum(axis=1), 1))
    is_left_out = (histogram.size[:, inside].sum(axis=1) == 0) & (empty == "skip")
    return Scores(*(np.where(is_left_out, np.nan, part) for part in scores))


class _Precisions(NamedTuple):
    """Sums of the precision at the relevant items of some ties."""

    sums: Sums
    slope: FloatArray  # of each tie, (n_queries, n_groups)
    effects: FloatArray  # (n_queries, 6), of single places of the last tie whose order matters

    @classmethod
    def of(
        cls, before: IntArray, rel_before: IntArray, ties: tuple[IntArray, IntArray, IntArray], n_ties: IntArray
    ) -> Self:
        """Sum over each query's first ties: their items, relevant items and slots, each (n_queries, n_groups)."""
        sums, slope, effects = np.empty((4, len(n_ties))), np.zeros(ties[0].shape), np.zeros((len(n_ties), 6))
        _loops.precision_sums(before, rel_before, *ties, n_ties, HARMONIC, SQUARES, sums, slope, effects)
        return cls(Sums(*sums), slope, effects)

    @classmethod
    def of_cut(cls, cut: Cut, size: IntArray, n_rel: IntArray) -> Self:
        """Sum over the slots of the cut tie, which has these items and relevant ones; low and high lack the cut."""
        ties = size[:, None], n_rel[:, None], cut.slots[:, None]
        return cls.of(cut.before, cut.rel_before, ties, np.ones_like(size))


@once_per_histogram
def _of_ties(histogram: TieHistogram) -> _Precisions:
    return _of_first(histogram, np.full(histogram.n_queries, histogram.size.shape[1]))


def _of_first(histogram: TieHistogram, n_ties: IntArray) -> _Precisions:
    zeros = np.zeros_like(n_ties)
    return _Precisions.of(zeros, zeros, (histogram.size, histogram.n_rel, histogram.size), n_ties)


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
    """Sum over the ties above the cut one."""
    return _of_first(histogram, cut_at(histogram, k).group).sums


@once_per_histogram
def _in_cut(histogram: TieHistogram, k: int | None) -> _Precisions:
    cut = cut_at(histogram, k)
    return _Precisions.of_cut(cut, cut.size, cut.n_rel)


@once_per_histogram
def _over_retrieved(histogram: TieHistogram, k: int | None) -> FloatArray:
    """Compute mean and variance of AP@k:retrieved, the mean of one over its divisor, and the slope of the cut tie."""
    cut, sums, ratio = cut_at(histogram, k), _above(histogram, k), np.empty((4, histogram.n_queries))
    effects = _Precisions.of_cut(cut, cut.slots, np.minimum(cut.slots - 1, 1)).effects  # a tie of all slots
    drawn = cut.size, cut.n_rel, cut.slots, cut.rel_before
    _loops.hypergeometric_ratio(*drawn, sums.mean, *_given_hits(cut), sums.variance, effects, ratio)
    return ratio


def _given_hits(cut: Cut) -> tuple[FloatArray, FloatArray]:
    """Return the parts of the cut tie's expected sum of precision, per_one m + per_pair m (m - 1).

    Given m relevant items in all slots, place t holds one with probability m / slots, and so on as in `precision_sums`.
    """
    harmonic, slots = harmonic_range(cut.before, cut.slots), np.maximum(cut.slots, 1)
    per_one = (cut.rel_before + 1) * harmonic / slots
    per_pair = (cut.slots - (cut.before + 1) * harmonic) / (slots * np.maximum(slots - 1, 1))
    return per_one, per_pair
