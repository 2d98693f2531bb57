"""Random: bits drawn at random for each distinct item, regardless of its neighbours."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.bits import n_bytes, unpack
from hashbench.method import HashMethod


@dataclass(eq=False, repr=False, kw_only=True)
class Random(HashMethod):
    """Sanity baseline: codes that only show which items are equal.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    random_state : int, default=0
        Seed of the codes.

    Notes
    -----
    An item's code is a cryptographic hash (SHAKE-128) of seed and features, so equal items have equal
    codes in any batch.

    Examples
    --------
    >>> codes = Random(n_bits=16).fit_transform([[1, 2], [3, 4], [1, 2]])
    >>> (codes[0] == codes).all(axis=1).tolist()
    [True, False, True]
    """

    random_state: int = 0

    group = "baseline"

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.is_fitted_ = True

    def _project(self, X: FloatArray) -> FloatArray:
        rows = np.ascontiguousarray(X + 0.0, dtype="<f8")  # -0.0 becomes 0.0
        seed = str(self.random_state).encode()
        width = n_bytes(self.n_bits)
        digests = [hashlib.shake_128(seed + row.tobytes()).digest(width) for row in rows]
        packed = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(rows), width)
        return np.asarray(unpack(packed, self.n_bits) - 0.5, dtype=np.float64)
