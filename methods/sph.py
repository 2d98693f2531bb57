"""SpH: spherical hashing, one ball per bit."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from hashbench._typing import FloatArray
from hashbench.method import HashMethod, setting, whole
from hashbench.methods._training_items import equal_items

_N_SEEDS = 5  # items whose mean is the first centre of a ball
_MEAN_TOLERANCE = 0.10  # of the overlaps from n/4, as a share of it
_SPREAD_TOLERANCE = 0.15  # of the overlaps' standard deviation


@dataclass(eq=False, repr=False, kw_only=True)
class SpH(HashMethod):
    """Spherical hashing [1]_: a bit is 1 for items inside a ball.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    max_iter : int, default=100
        Maximum number of measurements of the overlaps; the balls move between measurements.
    random_state : int, default=0
        Seed of the first centres.

    Attributes
    ----------
    centres_ : ndarray of shape (n_bits, n_features)
        Centres p_k of the balls.
    squared_radii_ : ndarray of shape (n_bits,)
        Squares of their radii t_k.
    n_iter_ : int
        Number of measurements.

    Warns
    -----
    ConvergenceWarning
        If the balls have not converged after ``max_iter`` measurements, as with few dimensions or few distinct items.
        The codes can be used, but their bits are far from independent.

    Notes
    -----
    Each ball holds half of the n training items: t_k is the floor(n/2)-th smallest distance from p_k. Two balls
    should have o_kl = n/4 items in common, as independent bits would. Each centre starts as the mean of five
    random items and moves by

        p_k += (1/n_bits) sum over l of (1/2) (o_kl - n/4) / (n/4) (p_k - p_l),

    all at once, until the mean absolute o_kl - n/4 over pairs is at most 0.10 n/4 and the standard deviation of
    o_kl at most 0.15 n/4. The bit is 1 for distance <= t_k.

    The paper ranks by *spherical* Hamming distance, the number of differing bits over the number of common
    ones. hashbench ranks the same codes by plain Hamming distance, as for all methods.

    References
    ----------
    .. [1] J.-P. Heo, Y. Lee, J. He, S.-F. Chang, S.-E. Yoon, "Spherical Hashing", CVPR 2012.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> SpH(n_bits=4, random_state=0).fit(X).transform(X).sum(axis=0)
    array([50, 50, 50, 50])
    """

    max_iter: int = setting(100, whole(1))
    random_state: int = 0

    def _fit(self, X: FloatArray, y: Any) -> None:
        if not np.ptp(X, axis=0).any():
            raise equal_items(self, X)
        half, quarter = len(X) // 2, len(X) / 4
        seeds = np.random.default_rng(self.random_state).integers(len(X), size=(self.n_bits, _N_SEEDS))
        centres = np.stack([X[rows].mean(axis=0) for rows in seeds])
        for step in range(1, self.max_iter + 1):
            squared = cdist(centres, X, "sqeuclidean")  # (n_bits, n_samples)
            squared_radii = np.partition(squared, half - 1, axis=1)[:, half - 1]
            inside = (squared <= squared_radii[:, None]).astype(np.float64)
            excess = inside @ inside.T / quarter - 1  # (n_bits, n_bits)
            self.centres_, self.squared_radii_, self.n_iter_ = centres, squared_radii, step
            pairs = excess[np.triu_indices(self.n_bits, k=1)]
            if not pairs.size or (np.abs(pairs).mean() <= _MEAN_TOLERANCE and pairs.std() <= _SPREAD_TOLERANCE):
                return
            centres = centres + (excess.sum(axis=1)[:, None] * centres - excess @ centres) / (2 * self.n_bits)
        warnings.warn(
            f"{self.label} has not converged after max_iter={self.max_iter} measurements: overlaps differ from n/4 by "
            f"{np.abs(pairs).mean():.0%} on average (wanted {_MEAN_TOLERANCE:.0%}), their standard deviation is "
            f"{pairs.std():.0%} (wanted {_SPREAD_TOLERANCE:.0%}). Raise max_iter or lower n_bits.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _project(self, X: FloatArray) -> FloatArray:
        squared = cdist(X, self.centres_, "sqeuclidean")
        return np.asarray(np.nextafter(self.squared_radii_, np.inf) - squared)  # above 0 on the sphere too
