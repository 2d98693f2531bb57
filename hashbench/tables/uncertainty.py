"""What the scores of every query tell about cells: bootstrap intervals, and paired tests against the best."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from hashbench.files import data_dir
from hashbench.storage import read_attributes, read_scores

FloatArray = npt.NDArray[np.float64]
LEVEL = 0.05
_RESAMPLES = 1_999
_BATCH = 4_000_000  # numbers in memory at a time


def add_confidence(
    cells: pd.DataFrame, rows: Sequence[pd.DataFrame], on_progress: Callable[[str, int, int], None]
) -> pd.DataFrame:
    """Add bootstrap intervals over queries, and p-values of the difference to the best of the column.

    Parameters
    ----------
    cells : DataFrame
        Of a table.
    rows : sequence of DataFrame
        The rows of results behind each cell, one a seed.
    on_progress : callable
        Called with what is being done, parts done and all parts.

    Returns
    -------
    DataFrame
        The cells with ``from_`` and ``to`` of the interval and ``p_value``, adjusted by Holm in each column; NaN where
        the data folder does not hold the scores of every query. Sanity baselines are not tested.
    """
    scores = []
    for number, behind in enumerate(rows, start=1):
        scores.append(_over_seeds(behind))
        on_progress("scores of every query", number, len(rows))
    intervals = [(np.nan, np.nan) if one is None else interval(one) for one in scores]
    made = cells.assign(from_=[low for low, _ in intervals], to=[high for _, high in intervals], p_value=np.nan)
    columns = cells.groupby(["dataset", "features", "dataset_fingerprint", "metric", "n_bits"])
    for number, (_, column) in enumerate(columns, start=1):
        best = [scores[position] for position in column.index[column["is_best"]]]
        tested = [
            position
            for position in column.index[~column["is_best"] & (column["group"] != "baseline")]
            if scores[position] is not None and best and best[0] is not None
        ]
        made.loc[tested, "p_value"] = holm([paired_test(best[0], scores[position]) for position in tested])
        on_progress("paired tests", number, len(columns))
    return made


def interval(scores: FloatArray) -> tuple[float, float]:
    """Compute the bootstrap interval of a mean over queries.

    Parameters
    ----------
    scores : ndarray of shape (n_queries,), float64
        One finite value a query.

    Returns
    -------
    low, high : float
        The 95 % percentile interval.
    """
    found = stats.bootstrap(
        (scores,),
        np.mean,
        n_resamples=_RESAMPLES,
        method="percentile",
        batch=_batch(scores),
        random_state=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def paired_test(first: FloatArray, second: FloatArray) -> float:
    """Test whether two methods score the same queries alike.

    Parameters
    ----------
    first, second : ndarray of shape (n_queries,), float64
        One finite value a query, in the same order.

    Returns
    -------
    float
        Two-sided p-value of a permutation test that swaps the two values of queries at random.
    """
    difference = first - second
    test = partial(stats.permutation_test, permutation_type="samples", n_resamples=_RESAMPLES, vectorized=True)
    found = test((difference,), np.mean, batch=_batch(difference), random_state=np.random.default_rng(0))
    return float(found.pvalue)


def holm(p_values: Sequence[float]) -> FloatArray:
    """Adjust p-values of several tests by the method of Holm.

    Parameters
    ----------
    p_values : sequence of float
        Of each test.

    Returns
    -------
    ndarray of shape (n_tests,), float64
        Adjusted, in the same order.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    ordered = np.sort(p_values) * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[np.argsort(p_values, kind="stable")] = np.minimum(np.maximum.accumulate(ordered), 1)
    return adjusted


def _over_seeds(rows: pd.DataFrame) -> FloatArray | None:
    """Average the scores of every query over seeds; None unless those behind all rows are there."""
    found = [_per_query(row) for row in rows.itertuples()]
    if any(one is None for one in found):
        return None
    mean = np.mean([one for one in found if one is not None], axis=0)
    defined: FloatArray = mean[~np.isnan(mean)]
    return defined if len(defined) > 1 else None


def _per_query(row: object) -> FloatArray | None:
    """Find the scores that a row of results is the mean of: of the same codes, and with the same mean."""
    key = {
        name: getattr(row, name)
        for name in ("method", "params", "n_bits", "seed", "dataset_fingerprint", "method_version")
    }
    metric, value = getattr(row, "metric", ""), getattr(row, "value", np.nan)
    for path in sorted((data_dir() / "scores").glob(f"*/{key['method']}-{key['n_bits']}-s{key['seed']}*.h5")):
        codes = read_attributes(data_dir() / "codes" / path.relative_to(data_dir() / "scores"))
        if any(codes.get(name) != wanted for name, wanted in key.items()):
            continue
        scores = read_scores(path, {"content": codes["content"]}).get(metric)
        if scores is not None and f"{np.nanmean(scores[0]):.6f}" == f"{value:.6f}":
            return np.asarray(scores[0])
    return None


def _batch(scores: FloatArray) -> int:
    return max(1, _BATCH // len(scores))
