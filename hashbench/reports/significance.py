"""Whether a difference is more than luck in the choice of queries: paired tests, intervals, Holm's correction."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import bootstrap, permutation_test

from hashbench._typing import FloatArray, Progress, silent

ALPHA = 0.05
N_RESAMPLES = 9999
_SEED = 0
_AT_ONCE = 16  # tests that share their sign flips
_MEMORY = 1 << 22  # values resampled at a time


class PairedTest(NamedTuple):
    """A paired comparison over queries: its p value, the same corrected for all tests made together, an interval."""

    p_value: float
    p_holm: float
    low: float  # 95 % bootstrap interval of the mean difference
    high: float


def paired_tests(
    differences: Sequence[FloatArray],
    n_resamples: int = N_RESAMPLES,
    on_progress: Progress = silent,
) -> list[PairedTest]:
    """Test means of paired differences, finite and of shape (n_queries,) each, and correct for their number.

    The p values are two-sided, of the hypothesis that each query's difference is as likely of the other sign, and the
    same as if `scipy.stats.permutation_test` (``permutation_type="samples"``) were called for each array alone with
    ``rng=numpy.random.default_rng(0)``; all 2^n sign flips are taken if these are fewer than ``n_resamples``. The
    interval is the bootstrap's percentile interval: unlike BCa it exists when all queries differ by the same.
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
            batch = max(_MEMORY // values.size, 1)
            p_values[chosen] = permutation_test(
                (values,),
                np.mean,
                permutation_type="samples",
                vectorized=True,
                n_resamples=n_resamples,
                batch=batch,
                axis=-1,
                rng=np.random.default_rng(_SEED),
            ).pvalue
            intervals[chosen] = bootstrap_intervals(values, n_resamples)
            n_done += len(chosen)
            on_progress("paired tests", n_done, len(differences))
    return [PairedTest(*map(float, row)) for row in np.column_stack([p_values, holm(p_values), intervals])]


def can_find_significance(n_tests: int, n_resamples: int = N_RESAMPLES) -> bool:
    """Tell whether the least p value that the resamples allow survives the correction; if not, none can.

    >>> can_find_significance(249), can_find_significance(250)
    (True, False)
    """
    return 2 * n_tests / (n_resamples + 1) < ALPHA


def bootstrap_intervals(values: FloatArray, n_resamples: int = N_RESAMPLES) -> FloatArray:
    """Compute the 95 % percentile interval of the mean of each row: (n_rows, n_queries) -> (n_rows, 2).

    There are at least two values in a row; all rows are resampled alike.
    """
    found = bootstrap(
        (values,),
        np.mean,
        vectorized=True,
        n_resamples=n_resamples,
        batch=max(_MEMORY // values.size, 1),
        axis=-1,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    )
    return np.transpose(found.confidence_interval)


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
