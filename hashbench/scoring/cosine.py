"""Rankings by a real-valued distance: tie groups are items at an equal value."""

import numpy as np
import numpy.typing as npt

from hashbench._typing import AnyArray, FloatArray, IntArray, Rows
from hashbench._validation import check_directions, real_row_pair

_DECIMALS = 9  # of a bit, or of a database item; what differs by less is rounding noise, and ties
_MOST_DECIMALS = 300  # as float64 has them


class CosineDistance:
    """Rank by d = n_bits / 2 * (1 - cosine) of real-valued outputs (n, n_bits), or by their inner product.

    On -1/+1 codes d is the Hamming distance, exactly. Other outputs are compared to 1e-9 of a bit, inner products to
    1e-9 of the database item's largest value rounded up to a power of ten, so that equal items tie whatever the
    rounding of a matrix product. Rows must be finite and not all zeros; by inner product, one database row suffices.
    """

    def __init__(self, query: npt.ArrayLike, database: npt.ArrayLike, *, by_dot: bool = False) -> None:
        query_outputs, database_outputs = real_row_pair(query, database, "outputs", "n_bits")
        check_directions(query_outputs, "query outputs")
        if not by_dot or not database_outputs.any():
            check_directions(database_outputs, "database outputs")
        self.query = _scaled(query_outputs, axis=1)
        self.database = _scaled(database_outputs, axis=None if by_dot else 1)
        self.n_bits = self.query.shape[1]
        self._squares = (self.database**2).sum(axis=1)
        self._units = _units(self.database) if by_dot else None

    def distances(self, queries: Rows) -> FloatArray:
        """Compute distances to the whole database in bits, or minus the inner product but for a power of ten."""
        rows = self.query[queries]
        products = rows @ self.database.T
        if self._units is not None:
            return np.asarray(0.0 - np.rint(products * self._units) / self._units)  # no -0.0
        squares = (rows**2).sum(axis=1)[:, None] * self._squares
        cosine = products / np.sqrt(squares)
        return np.asarray(np.round(self.n_bits / 2 * (1 - cosine), _DECIMALS) + 0.0)  # no -0.0

    def groups(self, queries: Rows) -> IntArray:
        """Return the tie group of each item, numbered by distance, (n_queries, n_database)."""
        return np.stack([np.unique(row, return_inverse=True)[1] for row in self.distances(queries)])


def _units(database: FloatArray) -> FloatArray:
    """Return the unit in which each item's products are compared, a power of ten: lengths may differ by many."""
    largest = np.abs(database).max(axis=1)
    exponents = np.ceil(np.log10(largest, where=largest > 0, out=np.zeros_like(largest)))
    return np.asarray(10.0 ** np.minimum(_DECIMALS - exponents, _MOST_DECIMALS))


def _scaled(outputs: AnyArray, axis: int | None) -> FloatArray:
    """Scale each row (axis 1) or all rows by a power of ten, which keeps decimals as they are."""
    array = outputs.astype(np.float64)
    exponents = np.floor(np.log10(np.abs(array).max(axis=axis, keepdims=True)))
    return np.asarray(array / 10.0 ** np.maximum(exponents, -_MOST_DECIMALS))  # squares neither over- nor underflow
