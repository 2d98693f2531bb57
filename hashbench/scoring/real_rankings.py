"""Rankings by a real-valued distance, whose tie groups are items at an equal value.

Real-valued outputs are ranked by cosine or inner product, binary codes by the outputs of real-valued queries, bits and
counts by their Jaccard distance.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, Rows
from hashbench._validation import as_array, check_directions, real_row_pair
from hashbench.affinity import Affinity, row_digests
from hashbench.bits import as_packed_pair, to_words, unpack
from hashbench.errors import HashbenchError
from hashbench.scoring.engine import kernels
from hashbench.scoring.equal_rows import number_rows
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import check_left
from hashbench.scoring.metrics import Metric
from hashbench.scoring.random_orders import Ties
from hashbench.scoring.ranking import ALL, Plan, Ranking
from hashbench.scoring.score_table import Counted

_MEMORY = 256 << 20  # bytes of counts held at a time
_MINIMA = 64 << 20  # bytes of minima of counts held at a time
_LARGEST = 1 << 24  # sums of whole numbers below it are exact in float32, and unequal ratios of them in float64
_DECIMALS = 9  # of a bit, or of a database item; what differs by less is rounding noise, and ties
_MOST_DECIMALS = 300  # as float64 has them
_OTHER_CODES = 0.25  # of the bits: an own code differs from its outputs in few, one of other bits in half of them
_PLACES = 30  # binary ones, of the largest output of a query; what differs by less is rounding noise, and ties


class RealDistance(Protocol):
    """Numbers of a query decide the tie group of each item."""

    query: FloatArray  # (n_queries, n_numbers)

    def groups(self, queries: Rows) -> IntArray:
        """Return the tie group of each item, numbered from the nearest, (n_queries, n_items)."""


class RealRanking(Ranking):
    """Items grouped by real-valued distance; ``rows`` stand for all where sums over items are kept, by default all."""

    relevance: Affinity

    def __init__(self, distance: RealDistance, relevance: Affinity, rows: IntArray | None = None) -> None:
        self.distance, self.relevance = distance, relevance
        self.n_queries, self.n_items = len(distance.query), relevance.n_database
        self._rows = np.arange(self.n_items) if rows is None else rows

    @cached_property
    def key_bytes(self) -> AnyArray:
        """A digest of the numbers of each query."""
        return row_digests(self.distance.query)

    def _ties(self, queries: Rows) -> Ties:
        return Ties.of(self.distance.groups(queries), self.relevance, queries)

    def plan(self, metrics: Sequence[Metric]) -> Plan:
        """Count some queries at a time, each in a thread."""
        affinity, rows, n_levels = self.relevance, self._rows, len(self.levels)
        # counts, tables of `ItemSums`, and the rest
        bytes_per_query = 8 * (n_levels * (len(metrics) + 5) + 8) * self.n_items
        parts = chunks(0, self.n_queries, min(max(_MEMORY // (4 * bytes_per_query), 1), 64))

        def counted(queries: slice) -> Counted:
            of_part = self._ties(queries)
            if affinity.ignores:
                check_left(of_part.histogram.n_database, np.arange(self.n_queries)[queries])
            cells = np.ascontiguousarray(of_part.cells[:, rows])
            return Counted(of_part.histogram, lambda tables, sums: kernels.add_cells(cells, tables, sums))

        keys = affinity.part(ALL, rows).item_keys()
        return Plan(lambda *_: iter([(parts, counted)]), self.n_queries, rows=rows, keys=keys)

    def ranked(self, queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        """See `Ranking.ranked`."""
        return self._ties(queries).ranked


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
        self.are_bits = max(self.query.max(initial=0), items.max(initial=0)) <= 1

    def groups(self, queries: Rows) -> IntArray:
        """Return the tie group of each item, numbered from the nearest, (n_queries, n_database)."""
        rows = self.query[queries]
        common = rows @ self._items.T if self.are_bits else np.stack([self._minima(row) for row in rows])
        either = rows.sum(axis=1, dtype=np.float64)[:, None] + self._totals - common
        similarity = np.where(either > 0, common / np.maximum(either, 1), 1.0)
        return np.stack([np.unique(-row, return_inverse=True)[1][self._of_item] for row in similarity])

    def _minima(self, row: FloatArray) -> FloatArray:
        step = max(1, _MINIMA // (4 * len(row)))
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


class AsymmetricDistance:
    """Rank packed codes by the real-valued outputs of queries, (n_queries, n_bits), whose signs are their bits.

    ``dot`` is the inner product of outputs and codes in -1/+1. ``sigmoid`` is minus the L1 distance of codes in 0/1 to
    the sigmoid of outputs, which orders as the inner product with tanh(outputs / 2) does. Products are compared to
    2^-30 of the query's largest output rounded up to a power of two. Equal codes tie always, and so do all if outputs
    are 0.
    """

    def __init__(self, outputs: FloatArray, database: ByteArray, n_bits: int, form: str) -> None:
        query = np.tanh(outputs / 2) if form == "sigmoid" else outputs
        _, exponents = np.frexp(np.abs(query).max(axis=1, keepdims=True))
        self.query = np.ldexp(query, _PLACES - exponents)  # exact, so that sums of binary fractions are too
        self._of_item, first = number_rows([*to_words(database).T])
        self._signs = unpack(database[first], n_bits) * 2.0 - 1

    def groups(self, queries: Rows) -> IntArray:
        """Return the tie group of each item, numbered from the nearest, (n_queries, n_database)."""
        products = np.rint(self.query[queries] @ self._signs.T)
        return np.stack([np.unique(-row, return_inverse=True)[1][self._of_item] for row in products])


def bits_or_counts(
    query: npt.ArrayLike,
    database: npt.ArrayLike,
    n_bits: int | None,
    bit_order: str | None,
    encoding: str | None = None,
) -> tuple[AnyArray, AnyArray]:
    """Return tables of numbers as they are, and packed codes, with ``n_bits``, integers and texts as bits."""
    tables = as_array(query, "query codes"), as_array(database, "database codes")
    if n_bits is None and all(array.ndim == 2 and array.dtype.kind in "biuf" for array in tables):
        return tables
    *packed, width = as_packed_pair(*tables, n_bits, bit_order, encoding)
    return unpack(packed[0], width), unpack(packed[1], width)


def as_outputs(outputs: npt.ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Return the outputs of queries as float64; refuse others than one finite real number for each query and bit."""
    array = as_array(outputs, "query outputs")
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise HashbenchError(
            f"query outputs are {array.dtype} of shape {array.shape}, expected real numbers of shape {shape}, one for "
            "each query and bit."
        )
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise HashbenchError(f"query outputs of query {row} (counted from 0) are not all finite. Fix or leave it out.")
    return array.astype(np.float64)


def notes_on_signs(outputs: FloatArray, query: ByteArray, n_bits: int) -> list[str]:
    """Report outputs whose signs are not the bits of the packed query codes, in a sentence; 0 has no sign.

    Raises HashbenchError if so many signs differ that the outputs must be those of other codes.
    """
    differ = (unpack(query, n_bits) != (outputs > 0)) & (outputs != 0)
    if not differ.any():
        return []
    share = differ.sum() / (outputs != 0).sum()
    said = f"signs of the query outputs differ from the query codes in {share:.1%} of the bits"
    advice = (
        "Give outputs and codes of the same queries, in one order of queries and of bits (--bit-order), and outputs "
        "whose threshold is 0."
    )
    if share > _OTHER_CODES:
        raise HashbenchError(f"{said}, so they cannot be compared. {advice}")
    return [f"The {said}. {advice}"]
