"""PCA-RR: principal components rotated at random."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.methods._linear import _LinearHash, principal_directions, random_rotation


@dataclass(eq=False, repr=False, kw_only=True)
class PCARR(_LinearHash):
    """PCA hashing with a random rotation, the baseline of [1]_.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; at most the number of directions in which the training items vary.
    random_state : int, default=0
        Seed of the rotation.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items.
    projection_ : ndarray of shape (n_features, n_bits)
        Principal directions W times the rotation R.

    Notes
    -----
    The bits are [(x - mean) W R > 0] with R uniform over the orthogonal matrices (Haar). The rotation keeps
    all distances in the space of W and spreads the variance over the bits. ITQ with the same seed starts from
    this projection.

    References
    ----------
    .. [1] Y. Gong, S. Lazebnik, "Iterative Quantization: A Procrustean Approach to Learning Binary Codes", CVPR 2011.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> PCARR(n_bits=4, random_state=0).fit(X).transform(X).shape
    (100, 4)
    """

    random_state: int = 0

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.mean_, directions = principal_directions(self, X)
        self.projection_ = directions @ random_rotation(self.n_bits, np.random.default_rng(self.random_state))
