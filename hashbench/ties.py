"""Histograms of Hamming distance per affinity level: all that any ranking metric needs to know.

The order of the database and the order inside ties have no say here. Counts of database blocks add up.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hashbench import _kernels
from hashbench.affinity import Affinity, Hierarchy, IntArray, SameLabel, SharedLabels
from hashbench.bits import ByteArray, WordArray, check_packed, n_words, pack, to_words
from hashbench.errors import HashbenchError

T = TypeVar("T")

QUERY_CHUNK = 1024  # queries that one thread handles at a time
_BLOCK_BYTES = 8 << 20  # database codes held at a time
_LEVEL_COLUMNS = 8192  # database columns whose levels are held at a time


@dataclass(frozen=True, eq=False)
class TieHistogram:
    """Counts of database items per query, affinity level and group of equal distance.

    Parameters
    ----------
    counts : ndarray of shape (n_queries, n_levels, n_groups), int64
        Groups are in order of rank: for Hamming distance ``n_bits + 1`` groups, group d at distance d.
        Empty groups are allowed.
    levels : ndarray of shape (n_levels,), int64
        Affinity levels, ascending, the first one 0.
    by_radius : bool, default=True
        Whether group d is Hamming distance d; groups of a real-valued ranking are in order only.
    """

    counts: npt.NDArray[np.int64]
    levels: IntArray = field(default_factory=lambda: np.array([0, 1]))
    by_radius: bool = True

    @classmethod
    def from_pairs(
        cls,
        distances: npt.ArrayLike,
        levels: npt.ArrayLike,
        n_bits: int,
        level_values: Sequence[int] | None = None,
    ) -> Self:
        """Count explicit (distance, level) pairs: the small and obvious way.

        Parameters
        ----------
        distances : array of shape (n_queries, n_database), integer
            Hamming distances, 0 to ``n_bits``.
        levels : array of shape (n_queries, n_database), integer
            Affinity levels.
        n_bits : int
            Code length in bits.
        level_values : sequence of int, optional
            The levels to count; by default 0, 1 and those that occur.

        Returns
        -------
        TieHistogram
            One row a query.

        Examples
        --------
        >>> TieHistogram.from_pairs([[0, 0, 1]], [[1, 0, 0]], n_bits=1).counts.tolist()
        [[[1, 1], [1, 0]]]
        """
        distance, level = np.asarray(distances), np.asarray(levels)
        values = np.union1d([0, 1], level if level_values is None else level_values).astype(np.int64)
        counts = np.zeros((len(distance), len(values), n_bits + 1), dtype=np.int64)
        rows = np.arange(len(distance))[:, None]
        np.add.at(counts, (rows, np.searchsorted(values, level), distance), 1)
        return cls(counts, values)

    def __add__(self, other: "TieHistogram") -> "TieHistogram":
        if not np.array_equal(self.levels, other.levels) or self.counts.shape != other.counts.shape:
            raise HashbenchError(
                f"histograms of shapes {self.counts.shape} and {other.counts.shape} with levels "
                f"{self.levels.tolist()} and {other.levels.tolist()} do not add up."
            )
        return TieHistogram(self.counts + other.counts, self.levels)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.counts)

    @cached_property
    def size(self) -> IntArray:
        """Items in each tie group, (n_queries, n_groups)."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def n_rel(self) -> IntArray:
        """Relevant items (level > 0) in each tie group, (n_queries, n_groups)."""
        return self.size - self.counts[:, 0]

    @cached_property
    def before(self) -> IntArray:
        """Items ranked before each tie group, (n_queries, n_groups)."""
        return np.cumsum(self.size, axis=1) - self.size

    @cached_property
    def rel_before(self) -> IntArray:
        """Relevant items ranked before each tie group, (n_queries, n_groups)."""
        return np.cumsum(self.n_rel, axis=1) - self.n_rel

    @cached_property
    def n_database(self) -> IntArray:
        """Items in the database, (n_queries,)."""
        return np.asarray(self.size.sum(axis=1))

    @cached_property
    def n_relevant(self) -> IntArray:
        """Relevant items in the database, (n_queries,)."""
        return np.asarray(self.n_rel.sum(axis=1))


def once_per_histogram(function: Callable[[TieHistogram], T]) -> Callable[[TieHistogram], T]:
    """Make a function remember its result for as long as the histogram lives.

    Parameters
    ----------
    function : callable
        Takes a histogram; several metrics need what it gives.

    Returns
    -------
    callable
        The same function, computed once for each histogram.
    """
    known: WeakKeyDictionary[TieHistogram, T] = WeakKeyDictionary()

    @wraps(function)
    def remembering(histogram: TieHistogram) -> T:
        if histogram not in known:
            known[histogram] = function(histogram)
        return known[histogram]

    return remembering


class _Countable(Protocol):
    """A block of the database, prepared for counting."""

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        """Add this block's counts for some queries, whose words are given, to ``counts``."""


class SliceableCodes(Protocol):
    """Packed codes that can be read in slices: an array, or an HDF5 dataset still on disk."""

    shape: Any

    def __getitem__(self, rows: slice, /) -> Any: ...


def database_blocks(database: SliceableCodes, n_bits: int, affinity: Affinity) -> Iterator[_Countable]:
    """Read packed codes block by block, each prepared for counting.

    Parameters
    ----------
    database : array-like of shape (n_database, ceil(n_bits / 8)), uint8
        Packed codes, in memory or on disk.
    n_bits : int
        Code length in bits.
    affinity : Affinity
        Says the levels of (query, database) pairs.

    Yields
    ------
    object
        Blocks for `count`; each holds some 8 MiB of codes.
    """
    for rows in chunks(0, database.shape[0], _block_rows(n_bits)):
        packed = np.asarray(database[rows])
        check_packed(packed, n_bits, "database codes")
        words = to_words(packed)
        if isinstance(affinity, SameLabel | Hierarchy):
            yield _ClassesBlock(words, affinity, rows)
        elif isinstance(affinity, SharedLabels):
            yield _SharedLabelsBlock(words, affinity, rows)
        else:
            yield _LevelsBlock(words, affinity, rows)


def n_blocks(database: SliceableCodes, n_bits: int) -> int:
    """Count the blocks that `database_blocks` gives.

    Parameters
    ----------
    database : array-like of shape (n_database, ceil(n_bits / 8)), uint8
        Packed codes.
    n_bits : int
        Code length in bits.

    Returns
    -------
    int
        How many there are.
    """
    return len(chunks(0, int(database.shape[0]), _block_rows(n_bits)))


def count(
    query: ByteArray,
    blocks: Iterable[_Countable],
    n_bits: int,
    affinity: Affinity,
    queries: slice,
    on_progress: Callable[[int], None] = lambda n_counted: None,
) -> TieHistogram:
    """Count a histogram for some queries over database blocks.

    Parameters
    ----------
    query : ndarray of shape (n_queries, ceil(n_bits / 8)), uint8
        Packed codes of all queries.
    blocks : iterable
        What `database_blocks` gives.
    n_bits : int
        Code length in bits.
    affinity : Affinity
        The rule that the blocks were prepared with.
    queries : slice
        Which queries to count for.
    on_progress : callable, optional
        Called with the number of queries counted against a block since the last call.

    Returns
    -------
    TieHistogram
        One row for each query of the slice.
    """
    words = to_words(query[queries])
    counts = np.zeros((len(words), len(affinity.levels), n_bits + 1), dtype=np.int64)
    for block in blocks:

        def add(chunk: slice, block: _Countable = block) -> int:
            absolute = slice(queries.start + chunk.start, queries.start + chunk.stop)
            block.add_to(counts[chunk], absolute, words[chunk])
            return len(words[chunk])

        for n_counted in in_threads(add, query_chunks(len(words))):
            on_progress(n_counted)
    return TieHistogram(counts, affinity.levels)


def query_chunks(n_queries: int) -> list[slice]:
    """Cut queries into parts for threads: some for each, none too large.

    Parameters
    ----------
    n_queries : int
        How many queries there are.

    Returns
    -------
    list of slice
        In order.
    """
    share: int = -(-n_queries // n_processors())
    return chunks(0, n_queries, max(min(QUERY_CHUNK, share + share % 2), 1))  # even: queries are counted in pairs


def chunks(start: int, stop: int, length: int) -> list[slice]:
    """Cut a range into consecutive slices.

    Parameters
    ----------
    start, stop, length : int
        The range and the length of each slice but the last.

    Returns
    -------
    list of slice
        In order; empty for an empty range.
    """
    return [slice(first, min(first + length, stop)) for first in range(start, stop, length)]


def in_threads(work: Callable[[slice], T], parts: Sequence[slice]) -> Iterator[T]:
    """Do independent work on all processors this process may use.

    Parameters
    ----------
    work : callable
        Called once with each part; the heavy lifting must release the interpreter lock.
    parts : sequence of slice
        What to do.

    Yields
    ------
    object
        The results, in the order of the parts.
    """
    n_threads = min(len(parts), n_processors())
    if n_threads <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(work, parts)


def n_processors() -> int:
    """Count the processors this process may run on.

    Returns
    -------
    int
        At least 1.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _ClassesBlock:
    """Rows sorted by superclass and class, so that a query's own ones are nested ranges."""

    def __init__(self, words: WordArray, affinity: SameLabel | Hierarchy, rows: slice) -> None:
        columns, self.query_labels = [affinity.database_labels[rows]], [affinity.query_labels]
        if isinstance(affinity, Hierarchy):
            columns.append(affinity.database_coarse[rows])
            self.query_labels.append(affinity.query_coarse)
        chosen, self.weights = _merge_equal_rows([*words.T, *columns])
        self.words = np.ascontiguousarray(words[chosen].T)  # (n_words, n_rows)
        self.ranges = []  # of the superclass first: where each label begins and ends
        for column in reversed(columns):
            labels, first = np.unique(column[chosen], return_index=True)
            order = np.argsort(first)
            ends = np.append(first[order][1:], len(chosen))[np.argsort(order)]
            self.ranges.append((labels, first, ends))

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        start, stop = np.zeros((2, len(self.ranges), len(words)), dtype=np.int64)
        for row, ((labels, first, last), wanted) in enumerate(
            zip(self.ranges, reversed(self.query_labels), strict=True)
        ):
            place = np.minimum(np.searchsorted(labels, wanted[queries]), len(labels) - 1)
            is_there = labels[place] == wanted[queries]
            start[row], stop[row] = np.where(is_there, first[place], 0), np.where(is_there, last[place], 0)
        _kernels.count_ranges(words, start, stop, self.words, self.weights, counts)


class _SharedLabelsBlock:
    """Rows with their labels packed into masks."""

    def __init__(self, words: WordArray, affinity: SharedLabels, rows: slice) -> None:
        masks = to_words(pack(affinity.database_labels[rows].astype(bool)))
        chosen, self.weights = _merge_equal_rows([*words.T, *masks.T])
        self.words = np.ascontiguousarray(words[chosen].T)  # (n_words, n_rows)
        self.masks = np.ascontiguousarray(masks[chosen].T)  # (n_mask_words, n_rows)
        self.query_labels = affinity.query_labels

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        query_masks = to_words(pack(self.query_labels[queries].astype(bool)))
        _kernels.count_shared(words, query_masks, self.words, self.masks, self.weights, counts)


class _LevelsBlock:
    """Rows whose levels any other rule gives, some columns at a time."""

    def __init__(self, words: WordArray, affinity: Affinity, rows: slice) -> None:
        self.words = np.ascontiguousarray(words.T)  # (n_words, n_rows)
        self.affinity, self.rows = affinity, rows
        self.index = np.zeros(int(affinity.levels[-1]) + 1, dtype=np.int16)
        self.index[affinity.levels] = np.arange(len(affinity.levels))

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        no_weights = np.zeros(0, dtype=np.int64)
        for columns in chunks(self.rows.start, self.rows.stop, _LEVEL_COLUMNS):
            levels = self.index[self.affinity.block(queries, columns)]
            here = slice(columns.start - self.rows.start, columns.stop - self.rows.start)
            part = np.ascontiguousarray(self.words[:, here])
            _kernels.count_levels(words, part, levels, no_weights, counts)


def _block_rows(n_bits: int) -> int:
    return max(_BLOCK_BYTES // (8 * n_words(n_bits)), 1)


def _merge_equal_rows(keys: list[npt.NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Sort rows, the last key first, and merge equal ones where that pays.

    Returns the rows to keep, in order, and how many each stands for (empty for one each).
    """
    order, first = sort_equal_rows(keys)
    if 2 * len(first) > len(order):
        return order, np.zeros(0, dtype=np.int64)
    return order[first], np.diff(first, append=len(order))


def sort_equal_rows(keys: Sequence[npt.NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Sort rows so that equal ones stand together.

    Parameters
    ----------
    keys : sequence of ndarray of shape (n_rows,)
        Rows are equal if all keys are; the last one sorts first.

    Returns
    -------
    order : ndarray of shape (n_rows,), int64
        The rows, sorted.
    first : ndarray of int64
        Where in ``order`` each run of equal rows begins.
    """
    order = np.lexsort(keys)
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    return order, np.flatnonzero(is_first)
