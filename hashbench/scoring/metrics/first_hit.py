"""The first relevant item: reciprocal rank, and whether there is one above a cutoff."""

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, Slopes, register_metric
from hashbench.scoring.metrics._sums import cut_at


def _slopes_of_rr(histogram: TieHistogram, k: int | None = None) -> Slopes:
    group, before, size, n_rel = _first_group(histogram)
    _, _, covariance = _reciprocals(before, size, n_rel, k)
    slope = np.zeros(histogram.size.shape)  # the other relevant items' places follow that of the first
    np.put_along_axis(slope, group, (_per_relevant(size, n_rel) * (n_rel + 1) / 2 * covariance)[:, None], axis=1)
    return Slopes.of_relevance(slope, histogram)


def _per_relevant(size: IntArray, n_rel: IntArray) -> FloatArray:
    """Return the slope of a tie where the covariance with the sum of the relevant items' places is 1."""
    return np.asarray(size / np.maximum(n_rel * (size + 1.0) * (size - n_rel), 1))


def _reciprocals(before: IntArray, size: IntArray, n_rel: IntArray, k: int | None) -> FloatArray:
    """Return mean and variance of 1 / rank of the first relevant item, 0 below k, and its covariance with its place."""
    sums = np.empty((3, len(size)))
    _loops.expected_reciprocal(before, size, n_rel, size if k is None else k - before, *sums)
    return sums


def _first_group(histogram: TieHistogram) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the first tie with a relevant item, (n_queries, 1), items before it, its items and its relevant ones."""
    group = (histogram.n_rel > 0).argmax(axis=1)[:, None]
    before, size, n_rel = (
        np.take_along_axis(part, group, axis=1)[:, 0] for part in (histogram.before, histogram.size, histogram.n_rel)
    )
    return group, before, size, n_rel


@register_metric("RR@k", source="McSherry & Najork, ECIR 2008 (MRR@k of MS MARCO)", slopes=_slopes_of_rr)
def reciprocal_rank_at(histogram: TieHistogram, k: int) -> Scores:
    """One over the rank of the first relevant item, 0 if none is among the first k."""
    return reciprocal_rank(histogram, k)


@register_metric("RR", source="McSherry & Najork, ECIR 2008", slopes=_slopes_of_rr)
def reciprocal_rank(histogram: TieHistogram, k: int | None = None) -> Scores:
    """One over the rank of the first relevant item.

    It is 0 if no relevant item is ranked.

    Notes
    -----
    In the first tie with a relevant item, the first one stands at place t with probability
    ``C(size - t, n_rel - 1) / C(size, n_rel)``.

    Examples
    --------
    >>> reciprocal_rank(TieHistogram.from_pairs([[0, 0]], [[1, 0]], n_bits=1)).mean
    array([0.75])
    """
    _, before, size, n_rel = _first_group(histogram)
    mean, variance, _ = _reciprocals(before, size, n_rel, k)
    last, first = before + size - n_rel + 1, before + 1  # ranks
    is_ranked = n_rel > 0  # not if no group has a relevant item
    low, high = (is_ranked * (rank <= (k or rank)) / rank for rank in (last, first))
    return Scores(mean, low, high, np.sqrt(np.maximum(variance, 0)))


def _slopes_of_hit(histogram: TieHistogram, k: int) -> Slopes:
    cut, none = cut_at(histogram, k), np.empty(histogram.n_queries)
    _loops.probability_of_none(cut.size, cut.n_rel, cut.slots, none)
    # Cov(1[J <= c], J) is -P(J > c) c r / (r + 1) for the place J of the first of r relevant items.
    covariance = np.where(cut.rel_before > 0, 0.0, -none * cut.slots * cut.n_rel / 2)
    slope = _per_relevant(cut.size, cut.n_rel) * covariance
    return Slopes.of_relevance(cut.in_group(slope, histogram.size.shape[1]), histogram)


@register_metric("Hit@k", source="McSherry & Najork, ECIR 2008 (success at k)", slopes=_slopes_of_hit)
def hit_at(histogram: TieHistogram, k: int) -> Scores:
    """Whether any of the first k is relevant: the probability over tie orders."""
    cut = cut_at(histogram, k)
    none = np.empty(histogram.n_queries)
    _loops.probability_of_none(cut.size, cut.n_rel, cut.slots, none)
    mean = np.where(cut.rel_before > 0, 1.0, 1.0 - none)
    low, high = ((cut.rel_before + part > 0).astype(np.float64) for part in (cut.fewest, cut.most))
    return Scores(mean, low, high, np.where(cut.rel_before > 0, 0.0, np.sqrt(none * (1 - none))))
