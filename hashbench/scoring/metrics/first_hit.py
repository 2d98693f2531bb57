"""The first relevant item: reciprocal rank, and whether there is one above a cutoff."""

import numpy as np

from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores, register_metric
from hashbench.scoring.metrics._sums import cut_at


@register_metric("RR", source="McSherry & Najork, ECIR 2008")
def reciprocal_rank(histogram: TieHistogram) -> Scores:
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
    group = (histogram.n_rel > 0).argmax(axis=1)[:, None]
    before, size, n_rel = (
        np.take_along_axis(part, group, axis=1)[:, 0] for part in (histogram.before, histogram.size, histogram.n_rel)
    )
    mean, variance = np.empty((2, histogram.n_queries))
    _loops.expected_reciprocal(before, size, n_rel, mean, variance)
    is_ranked = np.minimum(n_rel, 1)  # 0 if no group has a relevant item
    low, high = is_ranked / (before + size - n_rel + 1), is_ranked / (before + 1)
    return Scores(mean, low, high, np.sqrt(np.maximum(variance, 0)))


@register_metric("Hit@k", source="McSherry & Najork, ECIR 2008 (success at k)")
def hit_at(histogram: TieHistogram, k: int) -> Scores:
    """Whether any of the first k is relevant: the probability over tie orders."""
    cut = cut_at(histogram, k)
    none = np.empty(histogram.n_queries)
    _loops.probability_of_none(cut.size, cut.n_rel, cut.slots, none)
    mean = np.where(cut.rel_before > 0, 1.0, 1.0 - none)
    low, high = ((cut.rel_before + part > 0).astype(np.float64) for part in (cut.fewest, cut.most))
    return Scores(mean, low, high, np.where(cut.rel_before > 0, 0.0, np.sqrt(none * (1 - none))))
