"""Count packed codes and an affinity into tie histograms: XOR, popcount, tally; distances are never sorted.

Also how many items of a database share each code, for metrics that need it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from hashbench._parallel import chunks, in_threads, query_chunks
from hashbench._typing import AnyArray, ByteArray, IntArray, LevelArray, SliceableCodes, WordArray
from hashbench._validation import MAX_LEVEL, are_real
from hashbench.affinity import (
    Affinity,
    Explicit,
    Hierarchy,
    SameLabel,
    SharedLabels,
    level_indices,
    unlisted_level,
)
from hashbench.bits import check_packed, n_words, pack, to_words
from hashbench.errors import HashbenchError
from hashbench.scoring.engine import kernels
from hashbench.scoring.equal_rows import merge_equal_rows, number_rows, sort_equal_rows, sort_rows
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import WithoutEqualKeys, WithoutJunk

_BLOCK_BYTES = 8 << 20  # database codes held at a time
_RUN = 16  # rows with equal labels that are worth a loop of their own
_WORTH_A_THREAD = 1 << 20  # words of queries times words of rows; fewer are counted before a thread has started
_FEW_QUERIES, _MANY_ROWS = 32, 1024  # fewer queries than that are counted sooner than so many rows merged or sorted
_LEVEL_COLUMNS = 8192  # database columns whose levels are held at a time
_PAIRED, _PAIRS = 64, 1 << 20  # queries, and pairs, that are subtracted at a time
_ALL = slice(None)


class _Countable(Protocol):
    """A block of the database, prepared for counting."""

    words: WordArray  # (n_words, n_rows)

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        """Add this block's counts for some queries with these words to ``counts``."""


def database_blocks(database: SliceableCodes, n_bits: int, affinity: Affinity) -> Iterator[_Countable]:
    """Read packed codes, (n_database, ceil(n_bits / 8)), in blocks of some 8 MiB, each prepared for `count`."""
    for rows, words in read_words(database, n_bits):
        if affinity.is_read_in_slices:
            yield _prepared(words, affinity.part(_ALL, rows), slice(0, len(words)))
        else:
            yield _prepared(words, affinity, rows)


def _prepared(words: WordArray, affinity: Affinity, rows: slice) -> _Countable:
    if isinstance(affinity, WithoutJunk):
        kept = np.flatnonzero(~affinity.is_junk(rows))
        if not kept.size:
            return _LevelsBlock(words[kept], affinity, slice(0, 0))
        return _prepared(words[kept], affinity.rest.part(_ALL, rows.start + kept), slice(0, len(kept)))
    if isinstance(affinity, WithoutEqualKeys):
        return _BlockWithoutEqualKeys(words, affinity, rows)
    if isinstance(affinity, SameLabel | Hierarchy):
        return _ClassesBlock(words, affinity, rows)
    if isinstance(affinity, SharedLabels):
        return _SharedLabelsBlock(words, affinity, rows)
    return _LevelsBlock(words, affinity, rows)


def read_words(database: SliceableCodes, n_bits: int) -> Iterator[tuple[slice, WordArray]]:
    """Read packed codes some 8 MiB at a time, as rows and their words, (n_rows, n_words)."""
    for rows in chunks(0, database.shape[0], _block_rows(n_bits)):
        packed = np.asarray(database[rows])
        check_packed(packed, n_bits, "database codes")
        yield rows, to_words(packed)


def n_blocks(database: SliceableCodes, n_bits: int) -> int:
    """Return the number of blocks of `database_blocks`."""
    return -(-int(database.shape[0]) // _block_rows(n_bits))


def count(
    query: ByteArray,
    blocks: Iterable[_Countable],
    n_bits: int,
    affinity: Affinity,
    queries: slice,
    on_counted: Callable[[int], None] = lambda n_queries: None,
) -> TieHistogram:
    """Count the histogram of some of the queries ``query`` over blocks that were prepared for this affinity.

    ``on_counted`` is called with how many queries were counted against a block since the last call.
    """
    words = to_words(query[queries])
    counts = np.zeros((len(words), len(affinity.levels), n_bits + 1), dtype=np.int64)
    for block in blocks:

        def add(chunk: slice, block: _Countable = block) -> int:
            absolute = slice(queries.start + chunk.start, queries.start + chunk.stop)
            block.add_to(counts[chunk], absolute, words[chunk])
            return len(words[chunk])

        at_least = -(-_WORTH_A_THREAD // max(block.words.size, 1))
        for n_counted in in_threads(add, query_chunks(len(words), at_least)):
            on_counted(n_counted)
    return TieHistogram(counts, affinity.levels)


class _ClassesBlock:
    """Rows sorted by superclass and class, so that those of a query are nested ranges."""

    def __init__(self, words: WordArray, affinity: SameLabel | Hierarchy, rows: slice) -> None:
        columns, self.query_labels = [affinity.database_labels[rows]], [affinity.query_labels]
        if isinstance(affinity, Hierarchy):
            columns.append(affinity.database_coarse[rows])
            self.query_labels.append(affinity.query_coarse)
        distinct, weights = _merged([*words.T, *columns], affinity)
        by_class, firsts = sort_rows([column[distinct] for column in columns] if weights.size else columns)
        chosen, self.weights = (distinct[by_class], weights[by_class]) if weights.size else (by_class, weights)
        self.words = _columns(words, chosen)  # (n_words, n_rows)
        self.ranges = []  # of the superclass first: where each label begins and ends
        for column in reversed(columns):
            labels, first, n_runs = np.unique(column[chosen[firsts]], return_index=True, return_counts=True)
            edges = np.append(firsts, len(chosen))  # of runs of equal rows; those of a label follow each other
            self.ranges.append((labels, edges[first], edges[first + n_runs]))

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        start, stop = np.zeros((2, len(self.ranges), len(words)), dtype=np.int64)
        for row, ((labels, first, last), wanted) in enumerate(
            zip(self.ranges, reversed(self.query_labels), strict=True)
        ):
            place = np.minimum(np.searchsorted(labels, wanted[queries]), len(labels) - 1)
            is_known = labels[place] == wanted[queries]
            start[row], stop[row] = np.where(is_known, first[place], 0), np.where(is_known, last[place], 0)
        kernels.count_ranges(words, start, stop, self.words, self.weights, counts)


class _SharedLabelsBlock:
    """Rows with their labels packed into masks: runs of rows with equal labels first, then those with rare labels."""

    def __init__(self, words: WordArray, affinity: SharedLabels, rows: slice) -> None:
        masks = to_words(pack(affinity.database_labels[rows].astype(bool)))
        chosen, self.weights = _merged([*words.T, *masks.T], affinity)
        self.edges = np.zeros(1, dtype=np.int64)  # of runs, (n_runs + 1,)
        if not self.weights.size and _is_worth_sorting(len(words), affinity):
            chosen, first = sort_equal_rows([*masks.T])
            sizes = np.diff(first, append=len(chosen))
            is_frequent = sizes >= _RUN
            in_run = np.repeat(is_frequent, sizes)
            chosen = np.concatenate([chosen[in_run], chosen[~in_run]])
            self.edges = np.cumsum([0, *sizes[is_frequent]])
        self.words = _columns(words, chosen)  # (n_words, n_rows)
        self.masks = _columns(masks, chosen)  # (n_mask_words, n_rows)
        self.run_masks = np.ascontiguousarray(self.masks[:, self.edges[:-1]])  # (n_mask_words, n_runs)
        self.query_labels = affinity.query_labels

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        query_masks = to_words(pack(self.query_labels[queries].astype(bool)))
        if len(self.edges) > 1:
            kernels.count_runs(words, query_masks, self.words, self.run_masks, self.edges, counts)
        kernels.count_shared(words, query_masks, self.words, self.masks, self.edges[-1], self.weights, counts)


class _LevelsBlock:
    """Rows whose levels come from any other rule, some columns at a time."""

    def __init__(self, words: WordArray, affinity: Affinity, rows: slice) -> None:
        self.words = np.ascontiguousarray(words.T)  # (n_words, n_rows)
        self.affinity, self.rows = affinity, rows
        self.levels, self.are_whole = affinity.levels, not are_real(affinity.levels)
        self.index = np.full(MAX_LEVEL + 2, -1, dtype=np.int16)
        if self.are_whole:
            self.index[self.levels] = np.arange(len(self.levels))
        if affinity.ignores:
            self.index[-1] = len(self.levels)  # where ignored pairs are counted, before that is dropped
        self.is_checked = not (affinity.ignores or isinstance(affinity, Explicit))  # a matrix was when it was built

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        all_counts = np.pad(counts, ((0, 0), (0, 1), (0, 0))) if self.affinity.ignores else counts
        for columns in chunks(self.rows.start, self.rows.stop, _LEVEL_COLUMNS):
            block = self.affinity.block(queries, columns)
            levels = np.ascontiguousarray(self._indices(block))
            if self.is_checked and levels.min(initial=0) < 0:
                level = block[levels < 0][0]
                if level >= 0:
                    raise unlisted_level(level)
                raise HashbenchError(
                    f"{type(self.affinity).__name__} returned level {level}. Set its attribute ignores to True, so "
                    "that level -1 ignores a pair."
                )
            here = slice(columns.start - self.rows.start, columns.stop - self.rows.start)
            kernels.count_levels(words, np.ascontiguousarray(self.words[:, here]), levels, all_counts)
        if all_counts is not counts:
            counts[:] = all_counts[:, :-1]

    def _indices(self, block: LevelArray) -> LevelArray:
        if self.are_whole and not are_real(block):
            return self.index[block]
        return np.where(block < 0, self.index[-1], level_indices(self.levels, block))


class _BlockWithoutEqualKeys:
    """Rows counted by the rule itself, from which pairs with equal keys are subtracted."""

    def __init__(self, words: WordArray, affinity: WithoutEqualKeys, rows: slice) -> None:
        self.rest, self.affinity, self.rows = _prepared(words, affinity.rest, rows), affinity, rows
        self.words, self.row_words = self.rest.words, words
        of_queries, of_items = [affinity.of_queries], [affinity.of_items[rows]]
        if affinity.in_class:
            plain: Any = affinity.plain
            of_queries.append(plain.query_labels)
            of_items.append(plain.database_labels[rows])
        keys, _ = number_rows([np.concatenate(pair) for pair in zip(of_queries, of_items, strict=True)])
        self.keys, of_rows = keys[: affinity.n_queries], keys[affinity.n_queries :]
        self.order = np.argsort(of_rows, kind="stable")
        ends = np.cumsum(np.bincount(of_rows, minlength=keys.max(initial=0) + 1))
        self.ends = np.append(0, ends)  # of the rows of each key, in that order
        self.at_a_time = min(max(_PAIRS // max(int(np.diff(self.ends).max()), 1), 1), _PAIRED)

    def add_to(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        self.rest.add_to(counts, queries, words)
        for part in chunks(0, len(words), self.at_a_time):
            self._subtract(counts[part], slice(queries.start + part.start, queries.start + part.stop), words[part])

    def _subtract(self, counts: IntArray, queries: slice, words: WordArray) -> None:
        first, last = (self.ends[self.keys[queries] + step] for step in (0, 1))
        n_pairs = last - first
        query = np.repeat(np.arange(len(words)), n_pairs)
        if not query.size:
            return
        row = self.order[np.arange(len(query)) + np.repeat(first - np.cumsum(n_pairs) + n_pairs, n_pairs)]
        rows, place = np.unique(row, return_inverse=True)
        block = self.affinity.rest.block(queries, self.rows.start + rows)
        level = level_indices(self.affinity.levels, block)[query, place]
        is_counted = level >= 0  # by the rest, which may ignore pairs too
        query, row, level = query[is_counted], row[is_counted], level[is_counted].astype(np.int64)
        distance = np.bitwise_count(words[query] ^ self.row_words[row]).sum(axis=1, dtype=np.int64)
        cells = (query * counts.shape[1] + level) * counts.shape[2] + distance
        counts -= np.bincount(cells, minlength=counts.size).reshape(counts.shape)


@dataclass(frozen=True, eq=False)
class Buckets:
    """The distinct codes of a database, and how many items have each."""

    words: WordArray  # (n_buckets, n_words)
    sizes: IntArray  # (n_buckets,)

    @classmethod
    def of(cls, database: SliceableCodes, n_bits: int) -> Self:
        """Sort packed codes, (n_database, ceil(n_bits / 8)), into buckets; they are read some 8 MiB at a time."""
        blocks = (cls(words, np.ones(len(words), dtype=np.int64)) for _, words in read_words(database, n_bits))
        empty = cls(np.empty((0, n_words(n_bits)), dtype=np.uint64), np.empty(0, dtype=np.int64))
        return cls.united([empty, *(cls.united([block]) for block in blocks)])

    @classmethod
    def united(cls, parts: Iterable[Self]) -> Self:
        """Unite the buckets of parts of a database; sizes of codes that occur in several add up."""
        parts = list(parts)
        words, sizes = np.concatenate([part.words for part in parts]), np.concatenate([part.sizes for part in parts])
        order, first = sort_equal_rows(list(words.T))
        return cls(words[order[first]], np.add.reduceat(sizes[order], first) if len(first) else sizes)

    def largest(self, query: ByteArray, n_bits: int) -> IntArray:
        """Find the largest bucket at each Hamming distance from each packed query: (n_queries, n_bits + 1), int64."""
        words, columns = to_words(query), np.ascontiguousarray(self.words.T)
        largest = np.zeros((len(words), n_bits + 1), dtype=np.int64)
        for _ in in_threads(
            lambda chunk: kernels.largest_buckets(words[chunk], columns, self.sizes, largest[chunk]),
            query_chunks(len(words)),
        ):
            pass
        return largest


def largest_left(
    query: ByteArray, database: SliceableCodes, affinity: Affinity, queries: slice, n_bits: int
) -> IntArray:
    """Find what `Buckets.largest` does for some of the queries, without the items that each ignores."""
    words, all_words = to_words(query[queries]), to_words(np.asarray(database[:]))
    number, first = number_rows([*all_words.T])
    columns, largest = np.ascontiguousarray(all_words[first].T), np.zeros((len(words), n_bits + 1), dtype=np.int64)
    for row, absolute in enumerate(range(queries.start, queries.start + len(words))):
        is_left = affinity.block(slice(absolute, absolute + 1), _ALL)[0] >= 0
        sizes = np.bincount(number[is_left], minlength=len(first))
        kernels.largest_buckets(words[row : row + 1], columns, sizes, largest[row : row + 1])
    return largest


def _merged(keys: Sequence[AnyArray], affinity: Affinity) -> tuple[IntArray, IntArray]:
    """Merge equal rows as `merge_equal_rows` does, if that may pay."""
    if _is_worth_sorting(len(keys[0]), affinity):
        return merge_equal_rows(keys)
    return np.arange(len(keys[0])), np.zeros(0, dtype=np.int64)


def _is_worth_sorting(n_rows: int, affinity: Affinity) -> bool:
    return affinity.n_queries >= _FEW_QUERIES or n_rows < _MANY_ROWS


def _columns(words: WordArray, rows: IntArray) -> WordArray:
    """Transpose some rows, column by column: that takes a sixth of the time."""
    return np.stack([column[rows] for column in words.T])


def _block_rows(n_bits: int) -> int:
    return max(_BLOCK_BYTES // (8 * n_words(n_bits)), 1)
