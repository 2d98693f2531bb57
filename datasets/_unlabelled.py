"""The protocol of TALR's LabelMe experiments: items without labels, relevant by distance."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hashbench.adapter import draw_any
from hashbench.distances import squared_distance_percentiles

N_QUERIES, N_TRAIN = 2_000, 5_000
_PERCENTILES, _LEVELS = [5, 1, 0.2, 0.1], [1, 2, 5, 10]
PROTOCOL = (
    "2,000 queries and 5,000 training items drawn with seed 0, database = all but the queries; level 1, 2, 5, 10 for "
    "Euclidean distances up to the 5, 1, 0.2, 0.1 percentile of those between training items (the paper's; its script "
    "compares squared with plain distances)"
)


def describe_unlabelled(
    features: npt.NDArray[np.float32], n_queries: int = N_QUERIES, n_train: int = N_TRAIN
) -> dict[str, Any]:
    """Draw a split with seed 0 and find the distances of the four levels.

    Parameters
    ----------
    features : ndarray of shape (n, n_features), float32
        All items.
    n_queries, n_train : int
        How many to draw.

    Returns
    -------
    dict
        Split and affinity rule, as fields of `Dataset`.
    """
    query, database, train = draw_any(len(features), n_queries, n_train, 0)
    return {"query": query, "database": database, "train": train, **distance_rule(features[train])}


def distance_rule(features: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Find the distances of the four levels.

    Parameters
    ----------
    features : ndarray of shape (n_train, n_features), float32
        Training items.

    Returns
    -------
    dict
        ``rule`` and ``rule_params``, as fields of `Dataset`.
    """
    thresholds = squared_distance_percentiles(features, _PERCENTILES)
    return {"rule": "distance", "rule_params": {"squared_thresholds": thresholds, "levels": _LEVELS}}
