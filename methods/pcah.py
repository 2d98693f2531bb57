"""PCAH: signs of the first principal components."""

from dataclasses import dataclass
from typing import Any

import numpy as np  # noqa: F401  # for the example

from hashbench._typing import FloatArray
from hashbench.methods._linear import _LinearHash, principal_directions


@dataclass(eq=False, repr=False, kw_only=True)
class PCAH(_LinearHash):
    """PCA hashing [1]_: project on the principal directions, keep the signs.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; at most the number of directions in which the training items vary.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items.
    projection_ : ndarray of shape (n_features, n_bits)
        Orthonormal principal directions, by falling variance.

    Notes
    -----
    Every direction has the same weight in Hamming distance, so AP falls as low-variance directions are added: an AP
    that decreases with ``n_bits`` is expected. Where distances define levels, NDCG still rises up to 32 bits.

    References
    ----------
    .. [1] J. Wang, S. Kumar, S.-F. Chang, "Semi-Supervised Hashing for Scalable Image Retrieval", CVPR 2010.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> PCAH(n_bits=8).fit(X).transform(X).shape
    (100, 8)
    """

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.mean_, self.projection_ = principal_directions(self, X)
