"""Items that stand for a database where covariances with their keys are summed: see `hashbench.scoring.score_table`."""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import NamedTuple, Self

import numpy as np

from hashbench._parallel import compiled_or
from hashbench._typing import ByteArray, FloatArray, IntArray, LevelArray, SliceableCodes, WordArray
from hashbench.affinity import Affinity, level_indices
from hashbench.bits import n_words, to_words
from hashbench.scoring.counting import read_words
from hashbench.scoring.engine import kernels
from hashbench.scoring.equal_rows import ODD, mixed, number_rows, row_hashes

N_SAMPLED = 1024  # items of a large database; docs/explanation/mean-over-queries.md states how exact it is

_ALL = slice(None)
_LOW = np.uint64(0xFFFF)
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
        if n_items > _IN_ANY_ORDER:
            parts = (
                Sample.draw(words, affinity.part(_ALL, rows).item_keys(), rows.start)
                for rows, words in read_words(database, n_bits)
            )
            return cls.of_sample(reduce(add, parts), query, n_bits, affinity)
        is_drawn = _n_chosen(n_items) < n_items
        chosen = _draw(database, n_bits, affinity.item_keys()) if is_drawn else np.arange(n_items)
        of_chosen = np.empty((len(chosen), n_words(n_bits)), dtype=np.uint64)
        for block, words in read_words(database, n_bits):
            is_here = (chosen >= block.start) & (chosen < block.stop)
            of_chosen[is_here] = words[chosen[is_here] - block.start]
        return cls._of_rows(chosen, of_chosen, query, n_bits, affinity)

    @classmethod
    def of_sample(cls, sample: Sample, query: ByteArray, n_bits: int, affinity: Affinity) -> Self:
        """Take the items that a sample of the whole database chose."""
        return cls._of_rows(sample.rows[sample.chosen], sample.words[sample.chosen], query, n_bits, affinity)

    @classmethod
    def _of_rows(cls, rows: IntArray, words: WordArray, query: ByteArray, n_bits: int, affinity: Affinity) -> Self:
        part = affinity.part(_ALL, rows)

        def levels(queries: slice) -> LevelArray:
            return level_indices(part.levels, part.block(queries, _ALL))

        return cls(rows, to_words(query), words, levels, n_bits + 1, affinity.ignores)

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

    items, places = _narrowed(codes, np.uint64(64 - min(n_items.bit_length() - 1, 16)), places)
    hashes = np.empty(len(items), dtype=np.uint64)
    for rows, words in read_words(database, n_bits):
        here = slice(*np.searchsorted(items, (rows.start, rows.stop)))
        hashes[here] = row_hashes(words[items[here] - rows.start], item_keys[items[here]])
    coarse, keys = codes[items] & ~_LOW, (hashes << np.uint64(48)) | (hashes >> np.uint64(16))
    number, first = number_rows([coarse])
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(coarse[first])] = np.arange(len(first))
    return np.asarray(items[_at_places(rank[number], keys, places)])


def _narrowed_by_sizes(codes: WordArray, shift: np.uint64, places: IntArray) -> tuple[IntArray, IntArray]:
    bins = (codes >> shift).view(np.int64)
    sizes = np.bincount(bins)
    ends = sizes.cumsum()
    bin_of_place = np.searchsorted(ends, places, side="right")
    is_wanted = np.zeros(len(sizes), dtype=bool)
    is_wanted[bin_of_place] = True
    n_left_out = np.cumsum(np.where(is_wanted, 0, sizes))
    return np.flatnonzero(is_wanted[bins]), places - n_left_out[bin_of_place]


@compiled_or(_narrowed_by_sizes, 1e-8)
def _narrowed(codes, shift, places):  # type: ignore[no-untyped-def]
    """Return the items that can have these places in the order of codes, and their places among those.

    ``codes``, (n_items,), fall into bins by the bits above ``shift``. Only the items of bins that hold one of
    ``places``, (n_places,) and ascending, need to be sorted.
    """
    sizes = np.zeros(np.int64(1) << (64 - np.int64(shift)), np.int32)
    for i in range(len(codes)):
        sizes[codes[i] >> shift] += 1
    places_left = places.copy()
    n_before, n_kept, place = 0, 0, 0
    for value in range(len(sizes)):
        n, is_wanted = sizes[value], 0
        while place < len(places) and places[place] < n_before + n:
            places_left[place] += n_kept - n_before
            place += 1
            is_wanted = 1
        n_before += n
        n_kept += is_wanted * n
        sizes[value] = is_wanted
    items = np.empty(n_kept + 1, np.int64)
    n_kept = 0
    for i in range(len(codes)):
        items[n_kept] = i
        n_kept += sizes[codes[i] >> shift]
    return items[:n_kept], places_left


def _at_places_by_sorting(groups: IntArray, keys: WordArray, places: IntArray) -> IntArray:
    return np.lexsort((keys, groups))[places]


@compiled_or(_at_places_by_sorting)
def _at_places(groups, keys, places):  # type: ignore[no-untyped-def]
    """Return the items at places in the order of groups, then of keys; equal ones stay in order.

    ``groups`` and ``keys`` are (n_items,), ``places``, (n_places,), ascend; groups are numbered from 0 without gaps.
    Inside a group, items fall into bins by the first bits of their keys. Bins that hold no place are not sorted.
    """
    ends = np.zeros(groups.max() + 1, np.int64)
    for i in range(len(groups)):
        ends[groups[i]] += 1
    for group in range(1, len(ends)):
        ends[group] += ends[group - 1]
    items, fill = np.empty(len(groups), np.int64), ends.copy()
    for step in range(len(groups)):
        i = len(groups) - 1 - step
        fill[groups[i]] -= 1
        items[fill[groups[i]]] = i
    binned, bin_ends = np.empty(len(groups), np.int64), np.zeros((1 << 16) + 1, np.int64)
    out = np.empty(len(places), np.int64)
    place, group = 0, 0
    while place < len(places):
        while ends[group] <= places[place]:
            group += 1
        start, end = ends[group - 1] if group else np.int64(0), ends[group]
        n_bits = 0
        while n_bits < 16 and (end - start) >> (n_bits + 2):  # bins of about two items
            n_bits += 1
        shift, n_bins = np.uint64(63 - n_bits), 1 << n_bits
        bin_ends[: n_bins + 1] = 0
        for at in range(start, end):
            bin_ends[np.int64(keys[items[at]] >> np.uint64(1) >> shift) + 1] += 1
        for value in range(n_bins):
            bin_ends[value + 1] += bin_ends[value]
        for at in range(start, end):
            bin_of_item = np.int64(keys[items[at]] >> np.uint64(1) >> shift)
            binned[start + bin_ends[bin_of_item]] = items[at]
            bin_ends[bin_of_item] += 1
        first = start
        for value in range(n_bins):
            last = start + bin_ends[value]
            if place < len(places) and places[place] < last:
                _sort_by_keys(binned[first:last], keys)
            while place < len(places) and places[place] < last:
                out[place] = binned[places[place]]
                place += 1
            first = last
    return out


def _sort_by_keys(items: IntArray, keys: WordArray) -> None:
    """Sort items, (n_items,), by their keys; equal ones stay in order."""
    of_items = keys[items]
    if (of_items[1:] >= of_items[:-1]).all():  # as where all are equal
        return
    if len(items) > 64:
        items[:] = items[np.argsort(of_items, kind="mergesort")]
        return
    for i in range(1, len(items)):
        item, at = items[i], i
        while at > 0 and keys[items[at - 1]] > keys[item]:
            items[at] = items[at - 1]
            at -= 1
        items[at] = item
