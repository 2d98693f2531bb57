"""Relevant items above a cutoff and inside a Hamming ball, and the first of them."""

from itertools import accumulate
from math import comb

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import HashbenchError
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, Slopes, register_metric
from hashbench.scoring.metrics._sums import cut_at, n_slots


def _slopes_at(histogram: TieHistogram, k: int | None, divisor: int | IntArray) -> Slopes:
    cut = cut_at(histogram, k)
    return Slopes.of_relevance(cut.in_group(cut.places / divisor, histogram.size.shape[1]), histogram)


@register_metric(
    "P@k",
    source="McSherry & Najork, ECIR 2008",
    slopes=lambda histogram, k: _slopes_at(histogram, k, n_slots(histogram, k)),
)
def precision_at(histogram: TieHistogram, k: int) -> Scores:
    """Share of relevant items among the first k.

    A cutoff beyond the database is cut to it, also as the divisor. One beyond a list out of a database of unknown size
    is the divisor as it is.

    Notes
    -----
    A tie of ``size`` items, ``n_rel`` of them relevant, that the cutoff leaves ``slots`` places gives
    ``slots * n_rel / size`` relevant items on average; their number is hypergeometric.

    Examples
    --------
    >>> histogram = TieHistogram.from_pairs([[0, 0, 0]], [[1, 0, 0]], n_bits=1)
    >>> precision_at(histogram, 1).mean
    array([0.33333333])
    """
    return cut_at(histogram, k).share_of(n_slots(histogram, k))


@register_metric(
    "R@k",
    options=("relevant", "capped"),
    source="McSherry & Najork, ECIR 2008; BEIR's R_cap@k (capped)",
    slopes=lambda histogram, k, divisor="relevant": _slopes_at(histogram, k, _n_findable(histogram, k, divisor)),
)
def recall_at(histogram: TieHistogram, k: int, divisor: str = "relevant") -> Scores:
    """Share of the relevant items that are among the first k.

    As ``capped`` it is the share of min(k, all relevant items), so that 1 can be reached.
    """
    return cut_at(histogram, k).share_of(_n_findable(histogram, k, divisor))


def _n_findable(histogram: TieHistogram, k: int, divisor: str) -> IntArray:
    return histogram.n_relevant if divisor == "relevant" else np.minimum(histogram.n_relevant, k)


@register_metric(
    "RPrec",
    source="McSherry & Najork, ECIR 2008",
    slopes=lambda histogram: _slopes_at(histogram, None, histogram.n_relevant),
)
def r_precision(histogram: TieHistogram) -> Scores:
    """Precision of the first R, where R is the number of relevant items."""
    return cut_at(histogram, None).share_of(histogram.n_relevant)


@register_metric("P@rN", options=("zero", "skip"), source="mLGAP sec. 3: an empty ball has precision 0 (zero)")
def precision_in_ball(histogram: TieHistogram, radius: int, empty: str = "zero") -> Scores:
    """Share of relevant items inside a Hamming ball; 0 if it is empty, or left out of the mean (``skip``)."""
    inside = slice(0, radius + 1)
    size = histogram.size[:, inside].sum(axis=1)
    n_rel = histogram.n_rel[:, inside].sum(axis=1)
    return Scores.without_ties(n_rel / (np.maximum(size, 1) if empty == "zero" else size))


@register_metric("R@rN", source="mLGAP sec. 3")
def recall_in_ball(histogram: TieHistogram, radius: int) -> Scores:
    """Share of the relevant items that are inside a Hamming ball."""
    return Scores.without_ties(histogram.n_rel[:, : radius + 1].sum(axis=1) / histogram.n_relevant)


@register_metric("LGAP@rN", source="mLGAP eq. 10", needs_buckets=True)
def local_group_average_precision(histogram: TieHistogram, radius: int) -> Scores:
    """Relevant items inside each Hamming ball up to a radius, over those it could hold at its largest bucket's size.

    Notes
    -----
    LGAP@r = 1 / (r + 1) * sum over k = 0..r of P_k * phi_k: the ball of radius k holds A_k items, with precision P_k,
    and phi_k = A_k / (M_k * V_k), where M_k is the size of its largest bucket, the items that share one code, and V_k
    the number of codes that it could hold. So each term is the relevant items over M_k * V_k; 0 for an empty ball.

    References
    ----------
    .. [1] P. L. K. Ding, Y. Li, B. Li, "Mean Local Group Average Precision (mLGAP): A New Performance Metric for
       Hashing-based Retrieval", arXiv:1811.09763.
    """
    n_bits = histogram.size.shape[1] - 1
    if radius > n_bits:
        raise HashbenchError(f"LGAP@r{radius} needs codes of {radius} bits or more, these have {n_bits}.")
    if histogram.largest_bucket is None:
        raise HashbenchError("LGAP needs the largest buckets, which distance counts do not contain. Pass codes.")
    inside = slice(0, radius + 1)
    n_rel = np.cumsum(histogram.n_rel[:, inside], axis=1)
    largest = np.maximum.accumulate(histogram.largest_bucket[:, inside], axis=1)
    share_of_one = [1 / n_codes for n_codes in accumulate(comb(n_bits, k) for k in range(radius + 1))]  # beyond 2**63
    value = (n_rel / np.maximum(largest, 1) * share_of_one).mean(axis=1)
    return Scores.without_ties(value)


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
