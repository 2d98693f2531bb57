"""SKLSH: random waves whose bits approximate a Gaussian kernel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from hashbench._typing import FloatArray
from hashbench.method import HashMethod, real, setting, whole
from hashbench.methods._training_items import equal_items

_N_SAMPLED = 100  # items whose neighbours set the scale


@dataclass(eq=False, repr=False, kw_only=True)
class SKLSH(HashMethod):
    """Locality-sensitive codes from a shift-invariant kernel [1]_, here the Gaussian.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    gamma : float, default=1
        Kernel exp(-gamma/2 (distance/s)^2), with s the mean distance to the ``n_neighbors``-th neighbour.
    n_neighbors : int, default=50
        Neighbour that sets s; an item counts as its own first neighbour. At most n_samples - 1 is used.
    random_state : int, default=0
        Seed of the waves and of the 100 items over which s is averaged.

    Attributes
    ----------
    scale_ : float
        The distance s.
    projection_ : ndarray of shape (n_features, n_bits)
        Wave vectors w, entries normal with variance gamma / s^2.
    phases_ : ndarray of shape (n_bits,)
        Phases, uniform on [0, 2 pi].
    thresholds_ : ndarray of shape (n_bits,)
        Thresholds t, uniform on [-1, 1].

    Notes
    -----
    A bit is [cos(w.x + phase) + t > 0]. Over the random draws, every bit of every item is 1 with probability 1/2,
    and bits of items a distance u apart differ with probability
    (8 / pi^2) sum over m >= 1 of (1 - K(m u)) / (4 m^2 - 1) for the kernel K. It tends to 4 / pi^2 = 0.405, not
    1/2, as u grows. Codes of fewer bits are prefixes of longer ones with the same seed.

    Items farther apart than about s differ in 0.405 of the bits, whatever their distance, so classes that spread wider
    are ranked better by random hyperplanes (lsh).

    The scale matters most: with a wrong one, nearly all items count as far apart. If so many items are equal that
    s is 0, it is replaced by the mean distance between items that differ.

    References
    ----------
    .. [1] M. Raginsky, S. Lazebnik, "Locality-Sensitive Binary Codes from Shift-Invariant Kernels", NIPS 2009.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> SKLSH(n_bits=16, random_state=0).fit(X).transform(X).shape
    (100, 16)
    """

    gamma: float = setting(1.0, real(0, closed="neither"))
    n_neighbors: int = setting(50, whole(2))
    random_state: int = 0

    def _fit(self, X: FloatArray, y: Any) -> None:
        sampling, *streams = np.random.default_rng(self.random_state).spawn(4)  # one each: a prefix property
        self.scale_ = self._distance_to_neighbours(X, sampling)
        normal = streams[0].standard_normal((self.n_bits, X.shape[1])).T
        self.projection_ = np.sqrt(self.gamma) / self.scale_ * normal
        self.phases_ = streams[1].uniform(0, 2 * np.pi, self.n_bits)
        self.thresholds_ = streams[2].uniform(-1, 1, self.n_bits)

    def _distance_to_neighbours(self, X: FloatArray, rng: np.random.Generator) -> float:
        sample = rng.choice(len(X), min(_N_SAMPLED, len(X)), replace=False)
        distances = cdist(X[sample], X)
        if not distances.any():
            raise equal_items(self, X)
        rank = min(self.n_neighbors, len(X) - 1) - 1
        scale = np.partition(distances, rank, axis=1)[:, rank].mean()
        return float(scale or distances[distances > 0].mean())

    def _project(self, X: FloatArray) -> FloatArray:
        return np.asarray(np.cos(X @ self.projection_ + self.phases_) + self.thresholds_)
