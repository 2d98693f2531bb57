"""Constant: one code for all items."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.method import HashMethod


@dataclass(eq=False, repr=False, kw_only=True)
class Constant(HashMethod):
    """Sanity baseline: the code of every item is all zeros.

    All items tie, so the expected score is that of a random order, and the range from low to high shows how much
    tie-breaking can change a score.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.

    Examples
    --------
    >>> Constant(n_bits=2).fit_transform([[1, 2], [3, 4]]).tolist()
    [[False, False], [False, False]]
    """

    group = "baseline"

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.is_fitted_ = True

    def _project(self, X: FloatArray) -> FloatArray:
        return np.zeros((len(X), self.n_bits))
