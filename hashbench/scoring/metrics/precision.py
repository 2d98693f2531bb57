"""Precision and recall above a cutoff and inside a Hamming ball."""

import numpy as np

from hashbench._typing import IntArray
from hashbench.scoring.histogram import TieHistogram
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
