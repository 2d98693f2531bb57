"""Mean level of the first items, and its mean over the relevant ranks: measures of multi-label hashing."""

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import TieHistogram, once_per_histogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, Slopes, register_metric
from hashbench.scoring.metrics._sums import HARMONIC, Cut, Sums, cut_at, harmonic_range, n_slots, sum_groups


def _slopes_at(histogram: TieHistogram, k: int) -> Slopes:
    cut = cut_at(histogram, k)
    slope = cut.in_group(cut.places / n_slots(histogram, k), histogram.size.shape[1])
    return Slopes(slope, histogram.levels.astype(np.float64))


@register_metric("ACG@k", source="Järvelin & Kekäläinen, SIGIR 2000; IDHN", slopes=_slopes_at, takes_real_levels=True)
def average_cumulated_gain_at(histogram: TieHistogram, k: int) -> Scores:
    """Mean level of the first k, from 0 to the highest level.

    A cutoff beyond the database is cut to it, as for `precision_at`.

    Examples
    --------
    Levels 3 and 0 in one tie: the first item has either.

    >>> average_cumulated_gain_at(TieHistogram.from_pairs([[0, 0]], [[3, 0]], n_bits=1), 1)
    Scores(mean=array([1.5]), low=array([0.]), high=array([3.]), tie_sd=array([1.5]))
    """
    cut, levels = cut_at(histogram, k), histogram.levels.astype(np.float64)
    before, counts = _gain_before(histogram, cut), _in_group(histogram, cut)
    size = np.maximum(cut.size, 1)
    mean = counts @ levels / size
    squares = (counts * (levels - mean[:, None]) ** 2).sum(axis=1)
    variance = cut.slots * (squares / size) * (cut.size - cut.slots) / np.maximum(cut.size - 1, 1)

    def extreme(order: slice) -> FloatArray:
        last = np.minimum(np.cumsum(counts[:, order], axis=1), cut.slots[:, None])
        return np.asarray(before + np.diff(last, axis=1, prepend=0) @ levels[order])

    sums = Sums(before + cut.slots * mean, extreme(slice(None)), extreme(slice(None, None, -1)), variance)
    return sums.over(n_slots(histogram, k))


@register_metric("WAP", source="Zhao et al., CVPR 2015; IDHN", takes_real_levels=True)
def weighted_average_precision(histogram: TieHistogram) -> Scores:
    """Mean over the relevant items of `ACG@k` at their rank, from 0 to the highest level.

    Its deviation is not known.

    Examples
    --------
    Levels 2 and 0 in one tie: the relevant one comes first or second.

    >>> weighted_average_precision(TieHistogram.from_pairs([[0, 0]], [[2, 0]], n_bits=1))[:3]
    (array([1.5]), array([1.]), array([2.]))
    """
    return weighted_average_precision_at(histogram, int(histogram.n_database.max(initial=1)))


@register_metric("WAP@k", source="Zhao et al., CVPR 2015; IDHN", takes_real_levels=True)
def weighted_average_precision_at(histogram: TieHistogram, k: int) -> Scores:
    """Sum of `ACG@k` at each relevant rank among the first k, over the number of relevant items there.

    It is 0 if there are none. Its deviation is not known.

    Notes
    -----
    Given that m relevant items of the cut tie lie above the cutoff, each of its places holds one with probability
    m / slots, whose mean level is that of the tie's relevant items; m is hypergeometric.
    """
    cut = cut_at(histogram, k)
    above, ratio, zeros = _sums_above(histogram, k), np.empty((4, histogram.n_queries)), np.zeros(histogram.n_queries)
    counts, gain_before = _in_group(histogram, cut), _gain_before(histogram, cut)
    mean_level = counts @ histogram.levels / np.maximum(cut.n_rel, 1)
    harmonic, slots = harmonic_range(cut.before, cut.slots), np.maximum(cut.slots, 1)
    per_one = (gain_before + mean_level) * harmonic / slots
    per_pair = mean_level * (cut.slots - (cut.before + 1) * harmonic) / (slots * np.maximum(slots - 1, 1))
    drawn = cut.size, cut.n_rel, cut.slots, cut.rel_before
    effects = np.zeros((histogram.n_queries, 6))
    _loops.hypergeometric_ratio(*drawn, above.mean, per_one, per_pair, zeros, effects, ratio)
    low, high = np.empty((2, histogram.n_queries))
    levels = histogram.levels.astype(np.float64)
    places = cut.before, cut.rel_before, cut.slots, cut.fewest, cut.most
    _loops.extreme_gain_ratios(counts, levels, *places, gain_before, above.low, above.high, HARMONIC, low, high)
    return Scores(ratio[0], low, high)


def _in_group(histogram: TieHistogram, cut: Cut) -> FloatArray:
    """Return the items of each level in the cut tie, (n_queries, n_levels); 0 of a cut after the last tie."""
    n_groups = histogram.size.shape[1]
    group = np.minimum(cut.group, n_groups - 1)[:, None, None]
    counts = np.take_along_axis(histogram.counts, group, axis=2)[:, :, 0]
    return np.asarray(counts * (cut.group < n_groups)[:, None], dtype=np.float64)


@once_per_histogram
def _gains(histogram: TieHistogram) -> FloatArray:
    """Sum the levels of each tie, (n_queries, n_groups)."""
    return np.asarray(np.einsum("l,qlg->qg", histogram.levels.astype(np.float64), histogram.counts))


def _gain_before(histogram: TieHistogram, cut: Cut) -> FloatArray:
    is_above = np.arange(histogram.size.shape[1]) < cut.group[:, None]
    return np.asarray((_gains(histogram) * is_above).sum(axis=1))


@once_per_histogram
def _sums_above(histogram: TieHistogram, k: int) -> Sums:
    """Sum ACG at the relevant ranks over the ties above the cut one; variances are not known."""
    gain, size, n_rel, before = _gains(histogram), histogram.size, histogram.n_rel, histogram.before
    gain_before = np.cumsum(gain, axis=1) - gain
    is_above = np.arange(size.shape[1]) < cut_at(histogram, k).group[:, None]
    harmonic, n_items = harmonic_range(before, size), np.maximum(size, 1)
    pairs = np.maximum(n_rel - 1, 0) * gain / (n_items * np.maximum(n_items - 1, 1))
    mean = (n_rel * gain_before + gain) / n_items * harmonic + pairs * (size - (before + 1) * harmonic)

    def in_order(order: slice, first: IntArray) -> FloatArray:
        """Sum where relevant items follow each other in an order of levels, the first at rank ``first`` + 1."""
        total, ahead = np.zeros(size.shape), gain_before.copy()
        for level, count in zip(histogram.levels[order], histogram.counts.swapaxes(0, 1)[order], strict=True):
            total += count * level + (ahead - level * first) * harmonic_range(first, count)
            first, ahead = first + count, ahead + level * count
        return total

    low = in_order(slice(1, None), before + histogram.counts[:, 0])
    high = in_order(slice(None, 0, -1), before)
    mean, low, high = sum_groups(np.stack([mean, low, high]) * is_above)
    return Sums(mean, low, high, np.full(len(size), np.nan))
