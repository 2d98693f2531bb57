"""SH: spectral hashing, waves along the principal directions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import Refusal
from hashbench.method import HashMethod, real, setting
from hashbench.methods._linear import varying_directions


@dataclass(eq=False, repr=False, kw_only=True)
class SH(HashMethod):
    """Spectral hashing [1]_.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    percentile : float, default=0
        The range of a direction is between this percentile of the projections and 100 minus it: 0 for the smallest and
        the largest projection, as in the authors' code; 1 leaves out the lowest and highest hundredth.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items.
    directions_ : ndarray of shape (n_features, min(n_bits, rank))
        Principal directions w_j, by decreasing variance.
    low_ : ndarray of shape (n_directions,)
        Start of the range of each direction, l_j.
    width_ : ndarray of shape (n_directions,)
        Its length, R_j.
    mode_direction_ : ndarray of shape (n_bits,), int64
        The direction j of each bit.
    mode_number_ : ndarray of shape (n_bits,), int64
        Its number of half waves k, 1 or more.

    Notes
    -----
    If items were uniform on a box, the eigenfunctions of the graph Laplacian would be the modes cos(k pi (p_j - l_j) /
    R_j) with p_j = (x - mean) w_j, and their eigenvalues would rise with the frequency k pi / R_j. The bits are the
    signs of the ``n_bits`` modes of lowest frequency, sorted by it, without the constant mode; as in the authors' code,
    products of modes of several directions are left out. A mode with k = 1 is cut in the middle of the range, so bits
    need not be balanced. Where labels define levels, AP falls beyond 32 bits. Where distances define them, it is
    higher at 64 bits than at 16.

    Long directions give several bits, so ``n_bits`` may exceed the number of directions. One far outlier
    widens the range of its direction, which then takes bits from all others: see ``percentile``.

    References
    ----------
    .. [1] Y. Weiss, A. Torralba, R. Fergus, "Spectral Hashing", NIPS 2008.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> SH(n_bits=16).fit(X).transform(X).shape
    (100, 16)
    """

    percentile: float = setting(0.0, real(0, 50, closed="left"))

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.mean_, directions = varying_directions(self, X)
        self.directions_ = directions[:, : self.n_bits]
        projected = (X - self.mean_) @ self.directions_  # (n_samples, n_directions)
        self.low_, high = np.percentile(projected, [self.percentile, 100 - self.percentile], axis=0)
        self.width_ = high - self.low_
        if not self.width_.any():
            raise Refusal(
                f"{self.label} got {len(X)} items without a direction of positive range between percentiles "
                f"{self.percentile} and {100 - self.percentile}. Choose a smaller percentile."
            )
        with np.errstate(divide="ignore"):  # a range of zero: infinite frequency, never chosen
            frequency = np.arange(1, self.n_bits + 1) / self.width_[:, None]  # (n_directions, n_bits)
        lowest = np.argsort(frequency, axis=None, kind="stable")[: self.n_bits]
        mode = np.divmod(lowest, self.n_bits)
        self.mode_direction_: IntArray = mode[0]
        self.mode_number_: IntArray = mode[1] + 1

    def _project(self, X: FloatArray) -> FloatArray:
        along = ((X - self.mean_) @ self.directions_ - self.low_)[:, self.mode_direction_]  # (n_samples, n_bits)
        return np.asarray(np.cos(np.pi * self.mode_number_ * along / self.width_[self.mode_direction_]))
