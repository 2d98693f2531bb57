"""What the kernel methods share: Gaussian features of the distances to a few training items, the anchors."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches

from hashbench._typing import FloatArray
from hashbench.method import HashMethod
from hashbench.methods._items import check_items_differ, draw_rows, mean_squared_distance, origin

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
    origin : ndarray of shape (n_features,)
        What is subtracted from items and anchors before.
    """

    items: FloatArray
    gamma: float
    mean: FloatArray
    origin: FloatArray

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
        kernel = rbf_kernel(X - self.origin, self.items - self.origin, gamma=self.gamma)
        return np.asarray(kernel - self.mean)

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
    raw = Anchors(items, gamma or _inverse_width(X, items), np.zeros(len(items)), origin(X))
    if gamma is not None:
        return raw
    total = sum(raw.features(X[rows]).sum(axis=0) for rows in gen_batches(len(X), _BATCH))
    return replace(raw, mean=np.asarray(total / len(X)))


def _inverse_width(X: FloatArray, items: FloatArray) -> float:
    mean = X.mean(axis=0)
    return 1 / (2 * (mean_squared_distance(X, mean) + mean_squared_distance(items, mean)))
