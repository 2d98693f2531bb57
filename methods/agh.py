"""AGH: eigenvectors of an anchor graph, cut at zero or twice each."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.cluster.vq import kmeans2
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from hashbench._typing import FloatArray
from hashbench.errors import Refusal
from hashbench.method import HashMethod, setting, whole
from hashbench.methods._training_items import check_items_differ, draw_rows, origin

_BATCH = 8192  # items whose distances to anchors are in memory at once
_LARGEST = 1 - 1e-3  # eigenvalue; larger ones separate disconnected parts of the graph
_SMALLEST = 1e-8  # rounding error of eigenvalues, and of entries of a vector relative to its largest


@dataclass(eq=False, repr=False, kw_only=True)
class AGH(HashMethod):
    """Anchor graph hashing [1]_, of one layer or two.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; per layer less than ``n_anchors``.
    n_anchors : int, default=300
        Distinct centres of k-means, or all items if there are fewer. Choose far fewer than items: otherwise the graph
        falls into small parts, and bits only separate these.
    n_nearest : int, default=2
        s, the number of nearest anchors that describe an item.
    n_layers : {1, 2}, default=2
        Bits per eigenvector. With two, more bits gain little on multi-label data (corel5k).
    n_iter : int, default=20
        Steps of k-means.
    random_state : int, default=0
        Seed of the anchors.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_different, n_features)
        Centres a_j, ascending.
    squared_width_ : float
        sigma squared, sigma the mean distance to the s-th nearest anchor.
    weights_ : ndarray of shape (n_anchors, n_eigenvectors)
        W.
    thresholds_ : ndarray of shape (2, n_eigenvectors)
        Second cuts of the positive and the negative side of each eigenvector; only with two layers.

    Notes
    -----
    Row i of Z has exp(-||x_i - a_j||^2 / sigma^2) for the s nearest anchors, divided by their sum. With the diagonal
    Lambda = diag(Z^T 1), eigenvectors V of Lambda^-1/2 Z^T Z Lambda^-1/2 of the largest eigenvalues below 1 give
    W = sqrt(n) Lambda^-1/2 V Sigma^-1/2, and bits [Z W > 0]. A second layer cuts both sides of an eigenvector again,
    section 3.4; its bits follow those of the first, one fewer for odd ``n_bits``. Eigenvalues of nearly 1 separate
    disconnected parts of the graph, and are left out as in the authors' code. With one layer, AP on digits falls as
    bits are added, since later eigenvectors are noise. With two, it falls from 16 to 64 bits on digits, and from 16 to
    48 on cifar10-s2.

    An eigenvector of one part of the graph is 0 on all others. Rounding errors there, below 1e-8 of its largest entry,
    are set to 0, and the first bits of these items are 0. The authors' code takes the sign of the rounding error, which
    depends on the processor: on digits-unlabelled, 16 bits, three seeds, AP is 0.537 then instead of 0.529.
    ``presets["one-layer"]`` is the other form.

    References
    ----------
    .. [1] W. Liu, J. Wang, S. Kumar, S.-F. Chang, "Hashing with Graphs", ICML 2011.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 8))
    >>> AGH(n_bits=8, n_anchors=50, n_nearest=3).fit(X).transform(X).shape
    (200, 8)
    """

    version = 2
    n_anchors: int = setting(300, whole(2))
    n_nearest: int = setting(2, whole(2))
    n_layers: int = setting(2, whole(1, 2))
    n_iter: int = setting(20, whole(1))
    random_state: int = 0

    presets: ClassVar[dict[str, dict[str, Any]]] = {"one-layer": {"n_layers": 1}, "paper": {}}

    @threadpool_limits.wrap(limits=1)  # the split of sums among threads would change nearest anchors
    def _fit(self, X: FloatArray, y: Any) -> None:
        check_items_differ(self, X)
        X = np.ascontiguousarray(X)  # sums then run in one order
        self.origin_ = origin(X)
        self.anchors_ = self._find_anchors(X - self.origin_)
        squared = np.concatenate([self._nearest(X[rows])[1][:, -1] for rows in gen_batches(len(X), _BATCH)])
        self.squared_width_ = float(np.sqrt(squared).mean() ** 2)
        graph = np.concatenate([self._describe(X[rows]) for rows in gen_batches(len(X), _BATCH)])  # Z
        degrees = graph.sum(axis=0)
        root = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)  # anchors near nothing: 0
        values, vectors = np.linalg.eigh(root[:, None] * (graph.T @ graph) * root)
        n_wanted = -(-self.n_bits // self.n_layers)
        chosen = np.flatnonzero((values > _SMALLEST) & (values < _LARGEST))[::-1][:n_wanted]
        if len(chosen) < n_wanted:
            raise Refusal(
                f"{self.label} needs {n_wanted} eigenvectors for n_bits={self.n_bits}, and the graph of "
                f"{len(self.anchors_)} different anchors has {len(chosen)}. "
                "Choose fewer bits, or another n_anchors or n_nearest."
            )
        vectors = vectors[:, chosen]
        vectors *= np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(n_wanted)] < 0, -1, 1)
        vectors[abs(vectors) < _SMALLEST * abs(vectors).max(axis=0)] = 0  # of anchors in other parts of the graph
        self.weights_ = np.sqrt(len(X)) * root[:, None] * vectors / np.sqrt(values[chosen])
        if self.n_layers == 2:
            self.thresholds_ = _second_cuts(graph, root**2, graph @ self.weights_)

    def _find_anchors(self, X: FloatArray) -> FloatArray:
        if len(X) <= self.n_anchors:
            return np.unique(X, axis=0)
        start = X[draw_rows(len(X), self.n_anchors, np.random.default_rng(self.random_state))]
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # an empty cluster keeps its old centre
            centres = kmeans2(X, start, iter=self.n_iter, minit="matrix")[0]
        return np.unique(centres, axis=0)  # two equal anchors would both be nearest and carry the same information

    def _nearest(self, X: FloatArray) -> tuple[Any, FloatArray]:
        """Return the numbers and squared distances of the nearest anchors of items, nearest first."""
        squared = euclidean_distances(X - self.origin_, self.anchors_, squared=True)
        order = np.argsort(squared, axis=1, kind="stable")[:, : min(self.n_nearest, len(self.anchors_))]
        return order, np.take_along_axis(squared, order, axis=1)

    def _describe(self, X: FloatArray) -> FloatArray:
        """Compute rows of Z for items: (n_samples, n_anchors)."""
        order, squared = self._nearest(X)
        near = np.exp((squared[:, :1] - squared) / self.squared_width_)  # less the smallest: far items keep a row
        described = np.zeros((len(X), len(self.anchors_)))
        np.put_along_axis(described, order, near / near.sum(axis=1, keepdims=True), axis=1)
        return described

    def _project(self, X: FloatArray) -> FloatArray:
        along = np.concatenate([self._describe(X[rows]) @ self.weights_ for rows in gen_batches(len(X), _BATCH)])
        if self.n_layers == 1:
            return along
        above, below = self.thresholds_
        return np.column_stack([along, np.where(along > 0, along - above, below - along)])[:, : self.n_bits]


def _second_cuts(graph: FloatArray, inverse_degrees: FloatArray, along: FloatArray) -> FloatArray:
    """Compute the second cuts (2, n_eigenvectors) of the positive and negative sides of eigenvectors ``along``."""
    n_items = len(graph)
    positive = (along > 0).astype(np.float64)
    n_positive = positive.sum(axis=0)
    from_positive = (graph.T @ positive) * inverse_degrees[:, None]  # Lambda^-1 Z^T 1_P
    crossing = (from_positive * (graph.T @ np.abs(along))).sum(axis=0)
    within = n_positive - (from_positive * (graph.T @ positive)).sum(axis=0)
    total = (positive * along).sum(axis=0)
    is_cut = within > 1e-12 * n_items
    slope = np.where(is_cut, (total - crossing) / np.where(is_cut, within, 1), 0)
    above = (2 * total + (n_items - n_positive) * slope) / n_items
    below = (n_positive * slope - 2 * total) / n_items
    return np.where(is_cut, np.stack([above, below]), 0)
