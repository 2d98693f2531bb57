"""What the kernel methods share: Gaussian features of the distances to a few training items, the anchors."""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from hashbench.errors import Refusal
from hashbench.method import FloatArray, HashMethod

_BATCH = 8192  # items whose features are held at once


@dataclass(frozen=True)
class Anchors:
    """Gaussian kernel features exp(-gamma ||x - a||^2), less their mean.

    Parameters
    ----------
    items : ndarray of shape (n_anchors, n_features)
        The anchors.
    gamma : float
        Inverse width of the kernel.
    mean : ndarray of shape (n_anchors,)
        What is subtracted from each feature.
    """

    items: FloatArray
    gamma: float
    mean: FloatArray

    def features(self, X: FloatArray) -> FloatArray:
        """Compute the features of some items.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_samples, n_anchors)
            Features.
        """
        return np.asarray(rbf_kernel(X, self.items, gamma=self.gamma) - self.mean)

    def project(self, X: FloatArray, weights: FloatArray) -> FloatArray:
        """Compute linear functions of the features, batch by batch.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Items.
        weights : ndarray of shape (n_anchors, n_bits)
            One function a column.

        Returns
        -------
        ndarray of shape (n_samples, n_bits)
            Their values.
        """
        return np.concatenate([self.features(X[rows]) @ weights for rows in gen_batches(len(X), _BATCH)])


def draw_anchors(
    method: HashMethod, X: FloatArray, n_anchors: int, rng: np.random.Generator, *, gamma: float | None = None
) -> Anchors:
    """Draw anchors from the training items.

    Parameters
    ----------
    method : HashMethod
        For its name.
    X : ndarray of shape (n_samples, n_features)
        Training items.
    n_anchors : int
        How many; all items if there are fewer.
    rng : Generator
        Source of randomness.
    gamma : float, optional
        Inverse width; by default 1 / (2 s), s the mean squared distance of training items to anchors,
        and then features are centred as well.

    Returns
    -------
    Anchors
        The kernel features; their mean is taken over all training items.

    Raises
    ------
    Refusal
        If all training items are equal.
    """
    check_items_differ(method, X)
    items = X[draw_rows(len(X), n_anchors, rng)]
    if gamma is not None:
        return Anchors(items, gamma, np.zeros(len(items)))
    mean = X.mean(axis=0)
    squared = ((X - mean) ** 2).sum(axis=1).mean() + ((items - mean) ** 2).sum(axis=1).mean()
    raw = Anchors(items, 1 / (2 * squared), np.zeros(len(items)))
    total = sum(raw.features(X[rows]).sum(axis=0) for rows in gen_batches(len(X), _BATCH))
    return Anchors(items, raw.gamma, np.asarray(total / len(X)))


def draw_rows(n_samples: int, n_wanted: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
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
        raise Refusal(
            f"{method.label} needs training items that differ, got n_features={X.shape[1]} and n_samples={len(X)}, "
            "all of them equal."
        )
