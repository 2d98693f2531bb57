"""What methods ask of training items, and do with them first."""

import numpy as np
from sklearn.utils.extmath import row_norms

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import Refusal
from hashbench.method import HashMethod

_FAR = 1e6  # squared distance from 0, in mean squared distances from the mean, at which rounding begins to tell


def equal_items(method: HashMethod, X: FloatArray) -> Refusal:
    """Build the refusal of training items of which none differs from another.

    Parameters
    ----------
    method : HashMethod
        For its name.
    X : ndarray of shape (n_samples, n_features)
        The items.

    Returns
    -------
    Refusal
        To be raised by the caller.
    """
    return Refusal(
        f"{method.label} needs training items that differ, got n_features={X.shape[1]} and n_samples={len(X)}, "
        "all of them equal."
    )


def check_items_differ(method: HashMethod, X: FloatArray) -> None:
    """Refuse training items that are all equal.

    Parameters
    ----------
    method : HashMethod
        For its name.
    X : ndarray of shape (n_samples, n_features)
        Training items.

    Raises
    ------
    Refusal
        If they are, or there is only one.
    """
    if (X[0] == X).all():
        raise equal_items(method, X)


def origin(X: FloatArray) -> FloatArray:
    """Give the point from which to measure items, so that rounding does not drown their distances.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training items.

    Returns
    -------
    ndarray of shape (n_features,)
        Their mean if they lie far from 0 for how little they differ, such as with a year or a time among the
        features; else 0.
    """
    mean = X.mean(axis=0)
    return np.asarray(mean if mean @ mean > _FAR * mean_squared_distance(X, mean) else np.zeros_like(mean))


def mean_squared_distance(X: FloatArray, point: FloatArray) -> float:
    """Compute the mean squared Euclidean distance of items to a point.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Items.
    point : ndarray of shape (n_features,)
        The point.

    Returns
    -------
    float
        The mean.
    """
    return float(((X - point) ** 2).sum(axis=1).mean())


def draw_rows(n_samples: int, n_wanted: int, rng: np.random.Generator) -> IntArray:
    """Draw row numbers without replacement; all of them if there are not more.

    Parameters
    ----------
    n_samples : int
        Rows to draw from.
    n_wanted : int
        How many to draw.
    rng : Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (min(n_samples, n_wanted),), int64
        Ascending row numbers.
    """
    return np.sort(rng.choice(n_samples, min(n_samples, n_wanted), replace=False))


def unit_rows(X: FloatArray) -> FloatArray:
    """Scale items to unit length, however short they are.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Items.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Items of length 1; those of length 0 as they are.
    """
    norms = row_norms(X)  # sklearn's normalize leaves items of length below 1e-15 as they are
    return np.asarray(X / np.where(norms > 0, norms, 1.0)[:, None])
