"""A scorer of fitted methods for scikit-learn's searches."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hashbench._validation import as_labels
from hashbench.affinity import by_labels
from hashbench.errors import HashbenchError
from hashbench.scoring.metrics import get_metric
from hashbench.scoring.problem import evaluate

if TYPE_CHECKING:
    from hashbench.method import HashMethod


def scorer(metric: str = "AP") -> "Callable[[HashMethod, npt.ArrayLike, npt.ArrayLike], float]":
    """Build a scorer for ``GridSearchCV`` and the like.

    Held-out items are encoded and split into two halves, the same each time. Each half is searched with the other as
    queries, so each item is a query once and no item finds itself.

    Parameters
    ----------
    metric : str, default="AP"
        Such as ``AP``, ``NDCG@100`` or ``P@r2``.

    Returns
    -------
    callable
        Function of a fitted method, items X (n, n_features) and their labels y, (n,) or multi-hot. It returns the
        mean over queries, or its negative for a metric that is an error.

    Raises
    ------
    HashbenchError
        If there is no such metric, or it re-ranks by float vectors. The scorer raises it if there are no labels, or
        no item is relevant to another.

    Examples
    --------
    >>> from hashbench.methods.itq import ITQ
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> 0 <= scorer("AP")(ITQ(n_bits=4).fit(X), X, np.arange(60) % 2) <= 1
    True
    """
    chosen = get_metric(metric)
    name, sign = chosen.name, -1 if chosen.family.is_error else 1
    if chosen.family.needs_candidates:
        raise HashbenchError(f"{metric} re-ranks by float vectors, which scorers do not have; choose another metric.")

    def score(method: "HashMethod", X: npt.ArrayLike, y: Any = None) -> float:
        if y is None or len(labels := as_labels(y, "labels")) < 2:
            raise HashbenchError(
                f"{metric} needs labels of two items or more to score a method by; give y, such as search.fit(X, y)."
            )
        codes = method.transform(X)
        halves = np.array_split(np.random.default_rng(0).permutation(len(labels)), 2)
        values = np.concatenate(
            [
                evaluate(codes[query], codes[database], by_labels(labels[query], labels[database]), [name])
                .scores[name]
                .mean
                for query, database in (halves, halves[::-1])
            ]
        )
        if np.isnan(values).all():
            raise HashbenchError(f"none of {len(labels)} items is relevant to another; {metric} has no value.")
        return sign * float(np.nanmean(values))

    return score
