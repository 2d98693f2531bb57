"""Rankings by the Jaccard distance of sets of bits or of counts: tie groups are items at an equal ratio."""

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import FloatArray, IntArray, Rows
from hashbench._validation import as_array
from hashbench.errors import HashbenchError
from hashbench.scoring.equal_rows import number_rows

_LARGEST = (
    1 << 24
)  # sums of whole numbers up to here are exact in float32, and different ratios are different in float64
_MEMORY = 64 << 20  # bytes of minima at a time


class JaccardDistance:
    """Rank by 1 - sum of min(q, d) / sum of max(q, d) over the numbers of a query and an item, all of them whole.

    On bits this is the Jaccard distance of the sets of 1s, or 1 - Tanimoto similarity; on counts the weighted one
    (Ruzicka). Two rows of zeros have distance 0. Equal ratios tie, exactly.
    """

    def __init__(self, query: npt.ArrayLike, database: npt.ArrayLike) -> None:
        self.query, items = _as_counts(query, "query"), _as_counts(database, "database")
        if self.query.shape[1] != items.shape[1]:
            raise HashbenchError(
                f"queries have {self.query.shape[1]} numbers and database items {items.shape[1]}; both need as many."
            )
        self._of_item, first = number_rows([*items.T.astype(np.uint64)])
        self._items = items[first]
        self._totals = self._items.sum(axis=1, dtype=np.float64)
        self._are_bits = max(self.query.max(initial=0), items.max(initial=0)) <= 1

    def groups(self, queries: Rows) -> IntArray:
        """Return the tie group of each item, numbered from the nearest, (n_queries, n_database)."""
        rows = self.query[queries]
        common = rows @ self._items.T if self._are_bits else np.stack([self._minima(row) for row in rows])
        either = rows.sum(axis=1, dtype=np.float64)[:, None] + self._totals - common
        similarity = np.where(either > 0, common / np.maximum(either, 1), 1.0)
        return np.stack([np.unique(-row, return_inverse=True)[1][self._of_item] for row in similarity])

    def _minima(self, row: FloatArray) -> FloatArray:
        step = max(1, _MEMORY // (4 * len(row)))
        parts = [np.minimum(row, self._items[part]).sum(axis=1) for part in chunks(0, len(self._items), step)]
        return np.concatenate(parts).astype(np.float64)


def _as_counts(rows: npt.ArrayLike, role: str) -> FloatArray:
    """Return whole numbers from 0 on, of sums that are exact, as float32."""
    array = as_array(rows, f"{role} codes")
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        raise HashbenchError(
            f"{role} codes are {array.dtype} of shape {array.shape}, expected bits or counts of shape (n_items, "
            "n_numbers)."
        )
    if array.min() < 0 or (array != np.rint(array)).any():
        raise HashbenchError(
            f"{role} codes hold numbers that are not whole or below 0, and the Jaccard distance is of bits or counts. "
            "Give 0 and 1, or counts; for packed bits, their number with n_bits (--bits)."
        )
    if array.sum(axis=1, dtype=np.float64).max() >= _LARGEST:
        raise HashbenchError(f"a row of the {role} codes sums to {_LARGEST:,} or more, up to which ratios are exact.")
    return array.astype(np.float32)
