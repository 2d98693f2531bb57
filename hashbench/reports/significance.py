"""Whether single codes differ by more than the choice of queries explains: paired tests and their corrections."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, Progress, silent
from hashbench.scoring.comparison import ALPHA, interval

N_RESAMPLES = 9999
_SEED = 0
_AT_ONCE = 16  # tests that share their sign flips
_MEMORY = 1 << 22  # values resampled at a time
_ROUNDING = 1 - 1e-9  # sums that differ by rounding only count as equal


class PairedTest(NamedTuple):
    """A paired comparison over queries."""

    p_value: float
    p_holm: float  # corrected for all tests made together
    low: float  # 95 % interval of the mean difference
    high: float


def paired_tests(
    differences: Sequence[FloatArray], n_resamples: int = N_RESAMPLES, on_progress: Progress = silent
) -> list[PairedTest]:
    """Test means of paired differences, finite and of shape (n_queries,) each, and correct for their number.

    The p values are two-sided, of the hypothesis that each query's difference is as likely of the other sign: the test
    of `scipy.stats.permutation_test` with ``permutation_type="samples"``. All 2^n sign flips are taken if these are no
    more than ``n_resamples``. The interval is that of the t distribution with n - 1 degrees of freedom.
    """
    by_length = defaultdict(list)
    for position, values in enumerate(differences):
        by_length[len(values)].append(position)
    p_values, intervals = np.empty(len(differences)), np.empty((len(differences), 2))
    n_done = 0
    for _, positions in sorted(by_length.items()):
        for start in range(0, len(positions), _AT_ONCE):
            chosen = positions[start : start + _AT_ONCE]
            values = np.stack([differences[position] for position in chosen])  # (n_tests, n_queries)
            observed, n_as_far = np.abs(values.sum(axis=1)), np.zeros(len(values))
            for sums in _flipped_sums(values, n_resamples):
                n_as_far += (np.abs(sums) >= observed * _ROUNDING).sum(axis=0)
            n_queries = values.shape[1]
            p_values[chosen] = _p_values(n_as_far, n_queries, n_resamples)
            ends = interval(values.mean(axis=1), values.var(axis=1, ddof=1) / n_queries, n_queries - 1)
            intervals[chosen] = np.transpose(ends[:2])
            n_done += len(chosen)
            on_progress("paired tests", n_done, len(differences))
    return [PairedTest(*map(float, row)) for row in np.column_stack([p_values, holm(p_values), intervals])]


def all_pairs_tests(scores: FloatArray, n_resamples: int = N_RESAMPLES) -> FloatArray:
    """Test every pair of methods by their scores of the same queries, and correct for the number of pairs.

    Comparing with the best of some methods looks at all pairs, since the best was chosen by the same queries. The
    correction is the step-down maximum of P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", 1993:
    all methods' scores of a query, less their mean, change sign together; the statistic of a pair is its mean
    difference over the root mean square of its differences; its p value is the share of sign flips in which the
    largest statistic, of this pair and those with a smaller one, is as large. Some p value of equal methods lies below
    alpha with probability alpha at most, up to the normal approximation for many queries, whichever others differ
    (``benchmarks/best_of_column.py`` measures it).

    ``scores`` are finite, (n_methods, n_queries). Returns symmetric p values, (n_methods, n_methods), NaN on the
    diagonal.
    """
    first, second = np.triu_indices(len(scores), 1)
    scale = np.array([np.linalg.norm(scores[a] - scores[b]) for a, b in zip(first, second, strict=True)])
    scale[scale == 0] = np.inf  # methods with the same scores
    means = scores.sum(axis=1)
    observed = np.abs(means[first] - means[second]) / scale
    order = np.argsort(-observed, kind="stable")
    first, second, scale, observed = first[order], second[order], scale[order], observed[order]
    n_as_far = np.zeros(len(order))
    for sums in _flipped_sums(scores - scores.mean(axis=0), n_resamples, len(order)):
        flipped = np.abs(sums[:, first] - sums[:, second]) / scale
        largest = np.maximum.accumulate(flipped[:, ::-1], axis=1)[:, ::-1]
        n_as_far += (largest >= observed * _ROUNDING).sum(axis=0)
    p_values = np.full((len(scores), len(scores)), np.nan)
    p_values[first, second] = np.maximum.accumulate(_p_values(n_as_far, scores.shape[1], n_resamples))
    p_values[second, first] = p_values[first, second]
    return p_values


def _flipped_sums(values: FloatArray, n_resamples: int, n_beside: int = 0) -> Iterator[FloatArray]:
    """Yield sums over queries under sign flips, (n_flips, n_rows) at a time; a flip is the same for all rows.

    ``n_beside`` is how many further values a flip takes in memory.
    """
    n_rows, n_queries = values.shape
    is_exact = _is_exact(n_queries, n_resamples)
    n_flips = 1 << n_queries if is_exact else n_resamples
    rng, at_once = np.random.default_rng(_SEED), max(_MEMORY // (n_rows + n_queries + n_beside), 1)
    for start in range(0, n_flips, at_once):
        stop = min(start + at_once, n_flips)
        if is_exact:
            bits = np.arange(start, stop)[:, None] >> np.arange(n_queries) & 1
        else:
            bits = rng.integers(0, 2, (stop - start, n_queries), dtype=np.int8)
        yield (1.0 - 2.0 * bits) @ values.T


def _is_exact(n_queries: int, n_resamples: int) -> bool:
    return n_queries < n_resamples.bit_length()  # 2^n_queries <= n_resamples


def _p_values(n_as_far: FloatArray, n_queries: int, n_resamples: int) -> FloatArray:
    """Turn counts of flips as far from 0 as the observed sum into p values; an exact count includes that sum itself."""
    if _is_exact(n_queries, n_resamples):
        return n_as_far / (1 << n_queries)
    return (n_as_far + 1) / (n_resamples + 1)


def can_find_significance(n_tests: int, n_resamples: int = N_RESAMPLES) -> bool:
    """Return whether the smallest p value that the resamples allow survives the correction; if not, none can.

    >>> can_find_significance(499), can_find_significance(500)
    (True, False)
    """
    return n_tests / (n_resamples + 1) < ALPHA


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Correct p values, (n,), for their number by Holm's step-down method.

    The i-th smallest is multiplied by n - i + 1, no less than those before it, at most 1. Tests with a value below
    alpha include a false alarm with probability alpha at most, however the tests depend on each other: S. Holm, "A
    Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics, 1979.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1.0)
    return corrected
