"""How far one random order of the database, shared by all queries, moves a mean over queries.

A random order ranks tied items by keys, uniform on [0, 1]. Each query's score is projected on the keys of the items:
what they explain adds up over queries item by item, and what is left of each query, its remainder, moves independently
of queries of other kinds. The derivation is in docs/explanation/shuffle-deviation.md.
"""

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import NamedTuple, Self, cast

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, LevelArray, Rows, WordArray
from hashbench.affinity import Affinity
from hashbench.bits import n_words, to_words
from hashbench.scoring import kernels
from hashbench.scoring.counting import SliceableCodes, read_words
from hashbench.scoring.evaluation import OrderEffect
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import Metric, Scores, _loops
from hashbench.scoring.metrics._grammar import Slopes

_ALL = slice(None)
_QUERIES = 256  # whose tables are held at a time by one thread
_TABLES = 16 << 20  # bytes of them

N_SAMPLED = 1024  # items of a large database; the deviation then has a relative error of .7 / sqrt(1024), 2 %
_ODD = np.uint64(0x9E3779B97F4A7C15)


class ItemSample(NamedTuple):
    """Items of the database that stand for all: the same whatever the order of the database."""

    rows: IntArray  # (n_sampled,), of the database
    weights: FloatArray  # (n_sampled,), how many items each stands for

    @classmethod
    def draw(cls, n_items: int, hashes: Callable[[], WordArray]) -> Self:
        """Draw items, of which those with equal ``hashes`` are interchangeable; all of a small database."""
        if n_items <= 2 * N_SAMPLED:
            return cls(np.arange(n_items), np.ones(n_items))
        of_items = hashes()
        distinct, sizes = np.unique(of_items, return_counts=True)
        copies = np.repeat(distinct, sizes)
        number = np.arange(n_items) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # of each copy of a hash
        drawn = _mixed(copies + number.astype(np.uint64) * _ODD)
        is_drawn = drawn < np.partition(drawn, N_SAMPLED)[N_SAMPLED]
        chosen, n_drawn = np.unique(copies[is_drawn], return_counts=True)
        place = np.minimum(np.searchsorted(chosen, of_items), len(chosen) - 1)
        known = np.flatnonzero(chosen[place] == of_items)
        rows = np.empty(len(chosen), dtype=np.int64)
        rows[place[known]] = known
        return cls(rows, n_drawn * (n_items / n_drawn.sum()))


class PackedSample:
    """Sampled items of packed codes, (n, ceil(n_bits / 8)), and where they lie in the queries' histograms."""

    def __init__(self, query: ByteArray, database: SliceableCodes, n_bits: int, affinity: Affinity) -> None:
        def hashes() -> WordArray:
            keys = affinity.item_keys()
            return np.concatenate([_hash_rows(words, keys[rows]) for rows, words in read_words(database, n_bits)])

        self.items = ItemSample.draw(database.shape[0], hashes)
        chosen = np.zeros((len(self.items.rows), n_words(n_bits)), dtype=np.uint64)
        for rows, words in read_words(database, n_bits):
            is_here = (self.items.rows >= rows.start) & (self.items.rows < rows.stop)
            chosen[is_here] = words[self.items.rows[is_here] - rows.start]
        self._query, self._columns = to_words(query), np.ascontiguousarray(chosen.T)
        self._affinity, self._n_groups = affinity.part(_ALL, self.items.rows), n_bits + 1

    def cells(self, queries: slice) -> IntArray:
        """Return the cell of each item, level * n_groups + distance, (n_queries, n_sampled)."""
        levels = level_indices(self._affinity, queries)
        cells = np.empty(levels.shape, dtype=np.int64)
        kernels.all_cells(self._query[queries], self._columns, levels, self._n_groups, cells)
        return cells


def level_indices(affinity: Affinity, queries: Rows) -> LevelArray:
    """Return the level of each item as an index, (n_queries, n_database)."""
    levels, block = affinity.levels, affinity.block(queries, _ALL)
    if len(levels) == levels[-1] + 1:
        return block
    index = np.zeros(levels[-1] + 1, dtype=np.int16)
    index[levels] = np.arange(len(levels))
    return index[block]


def _mixed(words: WordArray) -> WordArray:
    """Mix the bits of 64-bit words, as the finaliser of splitmix64 does."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


def _hash_rows(*tables: AnyArray) -> WordArray:
    """Hash rows of whole numbers, (n_rows, n_columns) each: equal rows have equal hashes."""
    hashes = np.zeros(len(tables[0]), dtype=np.uint64)
    for table in tables:
        for column in table.T:
            hashes = _mixed((hashes + _ODD) ^ column.astype(np.uint64))
    return hashes


class ItemSums:
    """Sums over queries of the covariances of their scores with the key of each sampled item.

    For some queries ``cells`` returns the place of each sampled item among the histogram's (n_levels, n_groups), flat,
    or -1. ``n_alike`` is how many queries each stands for, and ``own`` the level, as an index, of each with itself,
    where queries are the items and leave themselves out.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        n_queries: int,
        sample: ItemSample,
        cells: Callable[[slice], IntArray],
        n_alike: IntArray | None = None,
        own: IntArray | None = None,
    ) -> None:
        self._metrics = [metric for metric in metrics if metric.family.slopes is not None]
        self._sample, self._cells, self._n_alike, self._own_levels = sample, cells, n_alike, own
        n_columns = len(self._metrics) + -len(self._metrics) % 4
        self._sums = np.zeros((len(sample.rows), n_columns))
        self._remainders, self._own = np.zeros((len(self._metrics), n_queries)), np.zeros((n_queries, n_columns))

    def parts(self, histogram: TieHistogram) -> list[slice]:
        """Cut queries into parts whose tables fit into memory, the same with any number of processors."""
        bytes_per_query = 8 * self._sums.shape[1] * histogram.counts[0].size
        return chunks(0, histogram.n_queries, max(min(_TABLES // max(bytes_per_query, 1), _QUERIES), 1))

    def of(self, queries: slice, histogram: TieHistogram, scores: Mapping[str, Scores]) -> FloatArray:
        """Return the sums of some queries, given their histogram, and the scores of all queries."""
        counts, sums = histogram.counts, np.zeros_like(self._sums)
        if not self._metrics:
            return sums
        tables = np.zeros((len(counts), counts[0].size + 1, sums.shape[1]))
        for number, metric in enumerate(self._metrics):
            slopes, explained = cast("Slopes", metric.slopes(histogram)), np.empty(len(counts))
            _loops.item_covariances(counts, *slopes, tables[:, :, number], explained)
            rest = scores[metric.name].tie_sd[queries] ** 2 - explained
            self._remainders[number, queries] = np.sqrt(np.maximum(rest, 0))
        if self._own_levels is not None:
            own_cells = self._own_levels[queries] * counts.shape[2]
            self._own[queries] = tables[np.arange(len(counts)), own_cells]
        if self._n_alike is not None:
            tables *= self._n_alike[queries, None, None]
        _loops.add_cells(self._cells(queries), tables, sums)
        return sums

    def add(self, sums: FloatArray) -> None:
        """Add the sums of some queries."""
        self._sums += sums

    def effects(self, origin: Rows = _ALL) -> dict[str, OrderEffect]:
        """Return the effect of an order by metric, with the remainders of all queries: each that of row ``origin``."""
        rows, weights = self._sample
        sums = self._sums if self._own_levels is None else self._sums - self._own[origin][rows]
        return {
            metric.name: OrderEffect(12 * fsum(weights * sums[:, number] ** 2), self._remainders[number, origin])
            for number, metric in enumerate(self._metrics)
        }
