"""Rankings by a real-valued distance: tie groups are items at an equal value."""

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, IntArray, Rows
from hashbench._validation import real_rows
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError
from hashbench.scoring.histogram import TieHistogram

_DECIMALS = 9  # of a bit, or of a database item; what differs by less is rounding noise, and ties
_MOST_DECIMALS = 300  # as float64 has them


class CosineRanking:
    """Ranks by d = n_bits / 2 * (1 - cosine) of real-valued outputs, or by their inner product.

    On -1/+1 codes d is the Hamming distance, exactly. Other outputs are compared to 1e-9 of a bit, inner products to
    1e-9 of the database item's largest value rounded up to a power of ten, so that equal items tie whatever the
    rounding of a matrix product.

    Parameters
    ----------
    query, database : array of shape (n, n_bits), real
        Outputs before the sign; finite, no row all zeros.
    by_dot : bool, default=False
        Whether the larger inner product is the nearer; then database items may be all zeros, but one.

    Raises
    ------
    HashbenchError
        If the arrays do not fit together, or a row has no direction.
    """

    def __init__(self, query: npt.ArrayLike, database: npt.ArrayLike, *, by_dot: bool = False) -> None:
        self.query = _outputs(query, "query outputs", axis=1)
        self.database = _outputs(database, "database outputs", axis=None if by_dot else 1)
        self.n_bits = self.query.shape[1]
        if self.database.shape[1] != self.n_bits:
            raise HashbenchError(
                f"query outputs have {self.n_bits} columns and database outputs {self.database.shape[1]}; "
                "both must be equally long."
            )
        self._squares = (self.database**2).sum(axis=1)
        self._units = _units(self.database) if by_dot else None

    def distances(self, queries: Rows) -> FloatArray:
        """Compute distances to the whole database in bits: 0 for the same direction, n_bits for the opposite one.

        By inner product they are minus that, but for a power of ten.
        """
        rows = self.query[queries]
        products = rows @ self.database.T
        if self._units is not None:
            return np.asarray(0.0 - np.rint(products * self._units) / self._units)  # no -0.0
        squares = (rows**2).sum(axis=1)[:, None] * self._squares
        cosine = products / np.sqrt(squares)
        return np.asarray(np.round(self.n_bits / 2 * (1 - cosine), _DECIMALS) + 0.0)  # no -0.0

    def groups(self, queries: Rows) -> IntArray:
        """Find the tie of each item, (n_queries, n_database), numbered by distance."""
        return np.stack([np.unique(row, return_inverse=True)[1] for row in self.distances(queries)])

    def count(self, queries: slice, affinity: Affinity) -> TieHistogram:
        """Count a histogram whose groups are the distinct distances of each query; empty ones fill up the end."""
        levels = affinity.levels
        index = np.searchsorted(levels, affinity.block(queries, slice(0, len(self.database))))
        groups = [np.unique(row, return_inverse=True) for row in self.distances(queries)]
        n_groups = max(len(values) for values, _ in groups)
        counts = np.zeros((len(groups), len(levels), n_groups), dtype=np.int64)
        for row, (_, group) in enumerate(groups):
            cells = index[row] * n_groups + group
            counts[row] = np.bincount(cells, minlength=len(levels) * n_groups).reshape(len(levels), n_groups)
        return TieHistogram(counts, levels, by_radius=False)


def _units(database: FloatArray) -> FloatArray:
    """Tell by how many units each item's products are counted, a power of ten, as lengths may differ by many."""
    largest = np.abs(database).max(axis=1)
    exponents = np.ceil(np.log10(largest, where=largest > 0, out=np.zeros_like(largest)))
    return np.asarray(10.0 ** np.minimum(_DECIMALS - exponents, _MOST_DECIMALS))


def _outputs(outputs: npt.ArrayLike, name: str, axis: int | None) -> FloatArray:
    """Check outputs, and scale each row (axis 1) or all of them by a power of ten, which keeps decimals as they are."""
    array = real_rows(outputs, name, "n_bits").astype(np.float64)
    bad = np.flatnonzero(~array.any(axis=1))
    if bad.size > (len(array) - 1 if axis is None else 0):
        raise HashbenchError(
            f"{name} are all zeros in {bad.size} rows, first in row {bad[0]} (counted from 0); these have no direction."
        )
    exponents = np.floor(np.log10(np.abs(array).max(axis=axis, keepdims=True)))
    return np.asarray(array / 10.0 ** np.maximum(exponents, -_MOST_DECIMALS))  # squares neither over- nor underflow
