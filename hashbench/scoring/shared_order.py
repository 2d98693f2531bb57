"""How far one random order of the database, shared by all queries, moves a mean over queries.

A random order ranks tied items by keys, uniform on [0, 1]. Each query's score is projected on the keys of the items:
what they explain adds up over queries item by item, and what is left of each query, its remainder, moves independently
of queries of other kinds. The derivation is in docs/explanation/shuffle-deviation.md.
"""

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import NamedTuple, Self, cast

import numpy as np

from hashbench._parallel import chunks, in_threads
from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, Rows, WordArray
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
        distances = np.empty((queries.stop - queries.start, len(self.items.rows)), dtype=np.uint32)
        kernels.all_distances(self._query[queries], self._columns, distances)
        return level_indices(self._affinity, queries) * self._n_groups + distances


def level_indices(affinity: Affinity, queries: Rows) -> IntArray:
    """Return the level of each item as an index, (n_queries, n_database)."""
    index = np.zeros(int(affinity.levels[-1]) + 1, dtype=np.int64)
    index[affinity.levels] = np.arange(len(affinity.levels))
    return index[affinity.block(queries, _ALL)]


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
    """Sums over queries of the covariances of their scores with the key of each sampled item."""

    def __init__(self, metrics: Sequence[Metric], n_queries: int, sample: ItemSample) -> None:
        self.metrics = [metric for metric in metrics if metric.family.slopes is not None]
        self.sample = sample
        self._sums = np.zeros((len(self.metrics), len(sample.rows)))
        self._remainders, self._own = np.zeros((2, len(self.metrics), n_queries))

    def add(
        self,
        queries: slice,
        histogram: TieHistogram,
        scores: Mapping[str, Scores],
        cells: Callable[[slice], IntArray],
        n_alike: IntArray | None = None,
        own: IntArray | None = None,
    ) -> None:
        """Add some queries, given their histogram, and the scores of all queries.

        For some queries ``cells`` returns the place of each sampled item among the histogram's (n_levels, n_groups),
        flat, or -1. ``n_alike`` is how many queries each stands for, and ``own`` the level, as an index, of each with
        itself, where queries are the items and leave themselves out.
        """
        if not self.metrics:
            return
        n_groups = histogram.counts.shape[2]

        def summed(part: slice) -> FloatArray:
            here = slice(queries.start + part.start, queries.start + part.stop)
            tables = self._tables(here, histogram.part(part), scores)
            if own is not None:
                self._own[:, here] = tables[:, np.arange(tables.shape[1]), own[here] * n_groups]
            if n_alike is not None:
                tables *= n_alike[here, None]
            sums = np.zeros_like(self._sums)
            _loops.add_cells(cells(here), tables, sums)
            return sums

        at_a_time = max(min(_TABLES // (8 * len(self.metrics) * histogram.counts[0].size), _QUERIES), 1)
        for sums in in_threads(summed, chunks(0, histogram.n_queries, at_a_time)):
            self._sums += sums

    def _tables(self, queries: slice, histogram: TieHistogram, scores: Mapping[str, Scores]) -> FloatArray:
        """Return the covariance of an item in each cell and, last, 0: (n_metrics, n_queries, n_levels * n_groups + 1).

        Also keeps the remainders of these queries.
        """
        counts = histogram.counts
        tables = np.zeros((len(self.metrics), len(counts), counts[0].size + 1))
        for table, remainder, metric in zip(tables, self._remainders, self.metrics, strict=True):
            slopes, explained = cast("Slopes", metric.slopes(histogram)), np.empty(len(counts))
            _loops.item_covariances(counts, *slopes, table, explained)
            remainder[queries] = np.sqrt(np.maximum(scores[metric.name].tie_sd[queries] ** 2 - explained, 0))
        return tables

    def effects(self, origin: Rows = _ALL) -> dict[str, OrderEffect]:
        """Return the effect of an order by metric, with the remainders of all queries: each that of row ``origin``."""
        rows, weights = self.sample
        sums = self._sums
        if self._own.any():
            sums = sums - self._own[:, origin][:, rows]
        return {
            metric.name: OrderEffect(12 * fsum(weights * of_items**2), remainder[origin])
            for metric, of_items, remainder in zip(self.metrics, sums, self._remainders, strict=True)
        }
