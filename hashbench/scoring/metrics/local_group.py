"""Local group average precision: whether relevant items are near, and use many of the codes there."""

from itertools import accumulate
from math import comb

import numpy as np

from hashbench.errors import HashbenchError
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics._grammar import Scores, register_metric


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
