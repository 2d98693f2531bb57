"""Items that stand for a database where covariances with their keys are summed: see `hashbench.scoring.score_table`."""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from operator import add
from typing import NamedTuple, Self

import numpy as np

from hashbench._typing import BoolArray, ByteArray, FloatArray, IntArray, LevelArray, Rows, WordArray
from hashbench.affinity import Affinity, level_indices
from hashbench.bits import n_words, to_words
from hashbench.scoring.counting import SliceableCodes, read_words
from hashbench.scoring.engine import kernels
from hashbench.scoring.equal_rows import number_rows, sort_rows
from hashbench.scoring.row_hashes import ODD, mixed, row_hashes

N_SAMPLED = 1024  # items of a large database; docs/explanation/mean-over-queries.md states how exact it is

_ALL = slice(None)
_LOW = np.uint64(0xFFFF)
_MANY = 1 << 14  # items that take longer to be sorted than to be split into bins
_IN_ANY_ORDER = 1 << 22  # items among which the same are drawn in any order; of more, rows have a say


class Sample(NamedTuple):
    """Items of a part of the database, drawn by what they are and by their rows; those of several parts add up."""

    draws: WordArray  # (n_drawn,), ascending: the items with the smallest draws stand for all
    rows: IntArray  # (n_drawn,), of the database
    words: WordArray  # (n_drawn, n_words), their codes
    n_items: int  # of the part

    @classmethod
    def draw(cls, words: WordArray, keys: IntArray, first: int) -> Self:
        """Draw from the items from row ``first`` on, by their codes, `Affinity.item_keys` and rows."""
        rows = np.arange(first, first + len(words))
        draws = mixed(row_hashes(words, keys) + rows.astype(np.uint64) * ODD)
        most = min(2 * N_SAMPLED, len(draws))
        smallest = np.argpartition(draws, most - 1)[:most] if most else np.arange(0)
        smallest = smallest[np.argsort(draws[smallest])]
        return cls(draws[smallest], rows[smallest], words[smallest], len(words))

    def __add__(self, other: "Sample") -> "Sample":  # type: ignore[override]
        draws, rows, words = (np.concatenate(pair) for pair in zip(self[:3], other[:3], strict=True))
        smallest = np.argsort(draws)[: 2 * N_SAMPLED]
        return Sample(draws[smallest], rows[smallest], words[smallest], self.n_items + other.n_items)

    @property
    def chosen(self) -> slice:
        """The items that stand for the whole database: all of a small one."""
        return slice(0, _n_chosen(self.n_items))


class PackedSample(NamedTuple):
    """Sampled items of packed codes, and where they lie in the queries' histograms."""

    rows: IntArray  # (n_sampled,), of the database
    query: WordArray  # (n_queries, n_words)
    words: WordArray  # (n_sampled, n_words), codes of the items
    levels: Callable[[slice], LevelArray]  # of each item as indices, (n_queries, n_sampled), for some queries
    n_groups: int
    ignores: bool = False  # whether levels may be -1

    @classmethod
    def of(cls, query: ByteArray, database: SliceableCodes, n_bits: int, affinity: Affinity) -> Self:
        """Draw items of packed codes, (n, ceil(n_bits / 8)), by their codes and levels."""
        n_items = database.shape[0]
        if _n_chosen(n_items) == n_items:
            chosen = np.arange(n_items)
        elif n_items <= _IN_ANY_ORDER:
            chosen = _draw(database, n_bits, affinity.item_keys())
        else:
            parts = (
                Sample.draw(words, affinity.part(_ALL, rows).item_keys(), rows.start)
                for rows, words in read_words(database, n_bits)
            )
            whole = reduce(add, parts)
            chosen = whole.rows[whole.chosen]
        of_chosen = np.empty((len(chosen), n_words(n_bits)), dtype=np.uint64)
        for is_here, words in _words_at(chosen, database, n_bits):
            of_chosen[is_here] = words
        levels = partial(_level_indices, affinity.part(_ALL, chosen))
        return cls(chosen, to_words(query), of_chosen, levels, n_bits + 1, affinity.ignores)

    def add(self, queries: slice, tables: FloatArray, sums: FloatArray) -> None:
        """Add the tables of some queries to the sums of the items, as `Counted.add` does."""
        levels = np.ascontiguousarray(self.levels(queries))
        cells = np.empty(levels.shape, dtype=np.int32)
        kernels.all_cells(self.query[queries], np.ascontiguousarray(self.words.T), levels, self.n_groups, cells)
        if self.ignores:
            cells[levels < 0] = -1
        kernels.add_cells(cells, tables, sums)


def _n_chosen(n_items: int) -> int:
    return n_items if n_items <= 2 * N_SAMPLED else N_SAMPLED


def _draw(database: SliceableCodes, n_bits: int, item_keys: IntArray) -> IntArray:
    """Return the rows of the items that stand for all: every so many in the order of their codes, then of their hashes.

    Items of near codes have near sums, so each group of them has its share. Of the code the 48 last bits of the first
    word count.
    """
    n_items, n_chosen = database.shape[0], _n_chosen(database.shape[0])
    places = (2 * np.arange(n_chosen) + 1) * n_items // (2 * n_chosen)
    codes = np.empty(n_items, dtype=np.uint64)
    for rows, words in read_words(database, n_bits):
        codes[rows] = words[:, 0] << np.uint64(64 - min(n_bits, 64))

    def hashes_of(items: IntArray) -> WordArray:
        hashes = np.empty(len(items), dtype=np.uint64)
        for is_here, words in _words_at(items, database, n_bits):
            hashes[is_here] = row_hashes(words, item_keys[items[is_here]])
        return hashes

    items = np.arange(n_items)
    if n_items >= _MANY:
        n_bin_bits = min(n_items.bit_length() - 1, 16)
        items, places = _narrowed(codes >> np.uint64(64 - n_bin_bits), places)
    hashes, codes = hashes_of(items), codes[items] & ~_LOW
    if len(items) >= _MANY and 2 * len(items) > n_items:  # since many have equal codes
        number, first = number_rows([codes])
        rank = np.argsort(np.argsort(codes[first])).astype(np.uint64)
        n_hash_bits = max(min(len(items).bit_length() - len(first).bit_length(), 16), 0)
        bins = (rank[number] << np.uint64(n_hash_bits)) | ((hashes & _LOW) >> np.uint64(16 - n_hash_bits))
        kept, places = _narrowed(bins, places)
        items, hashes, codes = items[kept], hashes[kept], codes[kept]
    return np.asarray(items[_in_order(codes | (hashes & _LOW), hashes)[places]])


def _in_order(keys: WordArray, hashes: WordArray) -> IntArray:
    """Return the order of items by keys, then by hashes; items equal in both are interchangeable."""
    number, first = number_rows([keys, hashes])
    of_kinds = np.argsort(keys[first])
    sorted_keys = keys[first[of_kinds]]
    if (sorted_keys[1:] == sorted_keys[:-1]).any():
        of_kinds = np.lexsort((hashes[first], keys[first]))  # which takes longer
    if len(first) == len(keys):
        return of_kinds
    rank = np.empty(len(first), dtype=np.int64)
    rank[of_kinds] = np.arange(len(first))
    return sort_rows([rank[number]])[0]


def _narrowed(bins: WordArray, places: IntArray) -> tuple[IntArray, IntArray]:
    """Return the items that can have these places in an order that begins with bins, and their places among those.

    Only the items of bins that hold a place need to be sorted.
    """
    bins = bins.view(np.int64)
    sizes = np.bincount(bins)
    ends = sizes.cumsum()
    bin_of_place = np.searchsorted(ends, places, side="right")
    is_wanted = np.zeros(len(sizes), dtype=bool)
    is_wanted[bin_of_place] = True
    wanted = np.flatnonzero(is_wanted)
    n_left_out = ends[wanted] - sizes[wanted].cumsum()  # items of other bins before each
    return np.flatnonzero(is_wanted.take(bins)), places - n_left_out[np.searchsorted(wanted, bin_of_place)]


def _words_at(chosen: IntArray, database: SliceableCodes, n_bits: int) -> Iterator[tuple[BoolArray, WordArray]]:
    """Read the words of chosen rows, block by block, each with which of the rows these are."""
    for rows, words in read_words(database, n_bits):
        is_here = (chosen >= rows.start) & (chosen < rows.stop)
        yield is_here, words[chosen[is_here] - rows.start]


def _level_indices(affinity: Affinity, queries: Rows) -> LevelArray:
    """Return the level of each item as an index, (n_queries, n_database)."""
    return level_indices(affinity.levels, affinity.block(queries, _ALL))
