"""Checks and preparation of training items."""

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from hashbench._typing import FloatArray, IntArray
from hashbench._validation import multi_hot
from hashbench.errors import Refusal
from hashbench.method import HashMethod

_FAR = 1e6  # squared distance from 0, in mean squared distances from the mean, at which rounding starts to matter


def equal_items(method: HashMethod, X: FloatArray) -> Refusal:
    """Return the error for training items that are all equal, for the caller to raise."""
    return Refusal(
        f"{method.label} needs training items that differ, got n_features={X.shape[1]} and n_samples={len(X)}, "
        "all of them equal."
    )


def check_items_differ(method: HashMethod, X: FloatArray) -> None:
    """Raise Refusal if all training items are equal, such as a single one."""
    if (X[0] == X).all():
        raise equal_items(method, X)


def origin(X: FloatArray) -> FloatArray:
    """Return the point (n_features,) from which to measure items, so that rounding does not distort their distances.

    It is their mean if they lie far from 0 compared to their differences, as with a time among the features; else 0.
    """
    mean = X.mean(axis=0)
    return np.asarray(mean if mean @ mean > _FAR * mean_squared_distance(X, mean) else np.zeros_like(mean))


def mean_squared_distance(X: FloatArray, point: FloatArray) -> float:
    """Compute the mean squared Euclidean distance of items to a point."""
    return float(((X - point) ** 2).sum(axis=1).mean())


def draw_rows(n_samples: int, n_wanted: int, rng: np.random.Generator) -> IntArray:
    """Draw row numbers without replacement, ascending; all of them if there are fewer than ``n_wanted``."""
    return np.sort(rng.choice(n_samples, min(n_samples, n_wanted), replace=False))


def unit_rows(X: FloatArray) -> FloatArray:
    """Scale items to unit length, however short they are; items of length 0 stay unchanged."""
    norms = row_norms(X)  # sklearn's normalize leaves items of length below 1e-15 as they are
    return np.asarray(X / np.where(norms > 0, norms, 1.0)[:, None])


def indicators(method: HashMethod, labels: Any) -> FloatArray:
    """Return 0/1 indicators (n_samples, n_classes) of labels; raise Refusal if all items have the same."""
    if labels.ndim == 1:
        classes, number = np.unique(labels, return_inverse=True)
        indicator = np.eye(len(classes))[number]
    else:
        indicator = multi_hot(labels, "labels").astype(np.float64)
    if (indicator == indicator[0]).all():
        raise Refusal(
            f"{method.label} needs items of different labels, got n_samples={len(labels)}, all with the same. "
            "Pass items of at least two classes."
        )
    return indicator
