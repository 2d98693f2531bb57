"""LSH: signs of random projections (random hyperplanes)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.methods._linear import _LinearHash


@dataclass(eq=False, repr=False, kw_only=True)
class LSH(_LinearHash):
    """Locality-sensitive hashing by random hyperplanes [1]_.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    random_state : int, default=0
        Seed of the hyperplanes.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items; hyperplanes pass through it.
    projection_ : ndarray of shape (n_features, n_bits)
        Normals of the hyperplanes, independent standard normal entries.

    Notes
    -----
    A bit of two items differs with probability angle / pi, the angle seen from the mean. Codes of fewer bits are
    prefixes of longer ones with the same seed.

    References
    ----------
    .. [1] M. S. Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> LSH(n_bits=16, random_state=0).fit(X).transform(X).shape
    (100, 16)
    """

    random_state: int = 0

    def _fit(self, X: FloatArray, y: Any) -> None:
        rng = np.random.default_rng(self.random_state)
        self.mean_ = X.mean(axis=0)
        self.projection_ = rng.standard_normal((self.n_bits, X.shape[1])).T  # drawn bit by bit: a prefix property
