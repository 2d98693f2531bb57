"""Gaussian kernel features of the distances to a few training items, the anchors; shared by the kernel methods."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches

from hashbench._typing import FloatArray
from hashbench.method import HashMethod
from hashbench.methods._training_items import check_items_differ, draw_rows, mean_squared_distance, origin

_BATCH = 8192  # items whose features are held at once


@dataclass(frozen=True)
class Anchors:
    """Gaussian kernel features exp(-gamma ||x - a||^2) minus their mean."""

    items: FloatArray  # the anchors, (n_anchors, n_features)
    gamma: float  # inverse width of the kernel
    mean: FloatArray  # subtracted from each feature, (n_anchors,)
    origin: FloatArray  # subtracted from items and anchors first, (n_features,)

    def features(self, X: FloatArray) -> FloatArray:
        """Compute the features (n_samples, n_anchors) of items (n_samples, n_features)."""
        kernel = rbf_kernel(X - self.origin, self.items - self.origin, gamma=self.gamma)
        return np.asarray(kernel - self.mean)

    def project(self, X: FloatArray, weights: FloatArray) -> FloatArray:
        """Compute functions (n_samples, n_bits), linear in the features, by ``weights`` (n_anchors, n_bits)."""
        return np.concatenate([self.features(X[rows]) @ weights for rows in gen_batches(len(X), _BATCH)])


def draw_anchors(
    method: HashMethod, X: FloatArray, n_anchors: int, rng: np.random.Generator, *, gamma: float | None = None
) -> Anchors:
    """Draw anchors from the training items (n_samples, n_features); all items if there are fewer.

    By default gamma is 1 / (2 s), s the mean squared distance of training items to anchors, and features are centred by
    their mean over all training items. Raises Refusal if all training items are equal.
    """
    check_items_differ(method, X)
    items = X[draw_rows(len(X), n_anchors, rng)]
    if gamma is not None:
        return Anchors(items, gamma, np.zeros(len(items)), origin(X))
    mean = X.mean(axis=0)
    squared_distance = mean_squared_distance(X, mean) + mean_squared_distance(items, mean)
    raw = Anchors(items, 1 / (2 * squared_distance), np.zeros(len(items)), origin(X))
    total = sum(raw.features(X[rows]).sum(axis=0) for rows in gen_batches(len(X), _BATCH))
    return replace(raw, mean=np.asarray(total / len(X)))
