"""Errors counted over pairs of items."""

from typing import cast

import numpy as np

from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics._grammar import Scores, Slopes, get_metric, register_metric
from hashbench.scoring.metrics._sums import check_whole, rank_variance


def _slopes(histogram: TieHistogram) -> Slopes:
    slope, gains = cast("Slopes", get_metric("NDCG:linear").slopes(histogram))
    return Slopes(-slope, gains)


@register_metric(
    "PairwiseError",
    source="Linear NDCG: equals 1 - NDCG:linear",
    is_error=True,
    slopes=_slopes,
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
