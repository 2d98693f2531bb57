"""DSH-density: density sensitive hashing, planes between neighbouring groups of items."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import Refusal
from hashbench.method import HashMethod, Hyperplanes, real, setting, whole
from hashbench.methods._training_items import check_items_differ, origin


@dataclass(eq=False, repr=False, kw_only=True)
class DSHDensity(HashMethod):
    """Density sensitive hashing [1]_ (not deep supervised hashing, also called DSH).

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any for which there are enough distinct training items.
    alpha : float, default=1.5
        Groups of items per bit.
    n_neighbors : int, default=3
        Nearest groups that each group is paired with, r in the paper.
    n_iter : int, default=3
        Steps of k-means; a few are enough to quantise.
    random_state : int, default=0
        Seed of the first centroids.

    Attributes
    ----------
    origin_ : ndarray of shape (n_features,)
        Subtracted from items first: their mean if they lie far from 0, else 0.
    centroids_ : ndarray of shape (n_groups, n_features)
        Means c_i of the groups, less the origin.
    masses_ : ndarray of shape (n_groups,), int64
        Training items in each.
    pairs_ : ndarray of shape (n_bits, 2), int64
        The two groups that each bit separates, by decreasing entropy.
    projection_ : ndarray of shape (n_features, n_bits)
        Normals w = c_i - c_j of the planes.
    thresholds_ : ndarray of shape (n_bits,)
        Their offsets t = w.(c_i + c_j) / 2.

    Warns
    -----
    UserWarning
        If ``n_neighbors`` give fewer than ``n_bits`` pairs, and more neighbours are used.

    Notes
    -----
    The items fall into round(alpha n_bits) groups, or as many as there are distinct items. For each pair of
    neighbouring groups (i among the r nearest of j, or conversely) the plane midway between the centroids cuts off the
    share P of items whose group's centroid has w.c > t. The bits [w.x > t] are those of the ``n_bits`` planes of
    largest entropy -P log P - (1 - P) log(1 - P), that is with P nearest to 1/2. On digits-unlabelled at 64 bits,
    random hyperplanes (lsh) have a higher AP and NDCG.

    References
    ----------
    .. [1] Z. Jin, C. Li, Y. Lin, D. Cai, "Density Sensitive Hashing", IEEE Transactions on Cybernetics 44(8), 2014.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> DSHDensity(n_bits=16, random_state=0).fit(X).transform(X).shape
    (100, 16)
    """

    alpha: float = setting(1.5, real(0, closed="neither"))
    n_neighbors: int = setting(3, whole(1))
    n_iter: int = setting(3, whole(1))
    random_state: int = 0

    version = 2

    def _fit(self, X: FloatArray, y: Any) -> None:
        check_items_differ(self, X)
        self.origin_ = origin(X)
        self.centroids_, self.masses_ = self._group(X - self.origin_)
        pairs = self._neighbouring_pairs(len(X))
        first, second = self.centroids_[pairs[:, 0]], self.centroids_[pairs[:, 1]]
        normals = first - second  # (n_pairs, n_features)
        thresholds = (normals * (first + second)).sum(axis=1) / 2
        n_above = (normals @ self.centroids_.T > thresholds[:, None]) @ self.masses_
        chosen = np.argsort(np.abs(2 * n_above - len(X)), kind="stable")[: self.n_bits]  # entropy falls from P = 1/2
        self.pairs_, self.projection_, self.thresholds_ = pairs[chosen], normals[chosen].T, thresholds[chosen]

    def _group(self, X: FloatArray) -> tuple[FloatArray, IntArray]:
        """Run a few steps of k-means from random distinct items; leave out groups that end up empty."""
        distinct = np.unique(X, axis=0)
        n_groups = min(int(self.alpha * self.n_bits + 0.5), len(distinct))
        start = np.random.default_rng(self.random_state).choice(distinct, n_groups, replace=False)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
            centroids, group = kmeans2(X, start, iter=self.n_iter, minit="matrix")
        masses = np.bincount(group, minlength=n_groups)
        return centroids[masses > 0], masses[masses > 0]

    def _neighbouring_pairs(self, n_samples: int) -> IntArray:
        """Pair each group with its nearest ones, as rows (i, j) with i < j; use more neighbours if pairs run short."""
        n_groups = len(self.centroids_)
        n_pairs = n_groups * (n_groups - 1) // 2
        if self.n_bits > n_pairs:
            raise Refusal(
                f"{self.label} needs n_bits <= {n_pairs}, the number of pairs of the {n_groups} groups that the "
                f"{n_samples} training items form, got n_bits={self.n_bits}. "
                f"Choose fewer bits, a larger alpha than {self.alpha} or more distinct items."
            )
        distances = cdist(self.centroids_, self.centroids_)
        np.fill_diagonal(distances, np.inf)
        nearest = np.argsort(distances, axis=1, kind="stable")
        for n_neighbors in range(min(self.n_neighbors, n_groups - 1), n_groups):
            neighbours = nearest[:, :n_neighbors].ravel()
            ends = np.stack([np.repeat(np.arange(n_groups), n_neighbors), neighbours], axis=1)
            pairs = np.unique(np.sort(ends, axis=1), axis=0)
            if len(pairs) >= self.n_bits:
                break
        if n_neighbors > self.n_neighbors:
            warnings.warn(
                f"{self.label} pairs each of {n_groups} groups with its n_neighbors={n_neighbors} nearest instead of "
                f"{self.n_neighbors}, to get n_bits={self.n_bits} planes. "
                f"To avoid this, raise alpha above {self.alpha} or pass more distinct training items.",
                UserWarning,
                stacklevel=4,
            )
        return np.asarray(pairs)

    def _project(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self.origin_) @ self.projection_ - self.thresholds_)

    def hyperplanes(self) -> Hyperplanes:
        """Return the planes behind the bits; see `HashMethod.hyperplanes`."""
        return Hyperplanes(self.origin_, self.projection_, -self.thresholds_)
