"""How far one random order of the database, shared by all queries, moves a mean over queries.

A random order ranks tied items by keys, uniform on [0, 1]. Each query's score is projected on the keys of the items:
what they explain adds up over queries item by item, and what is left of each query, its remainder, moves independently
of queries of other kinds. The derivation is in docs/explanation/shuffle-deviation.md.
"""

from collections.abc import Callable, Sequence
from math import fsum
from typing import NamedTuple, Self

import numpy as np

from hashbench._typing import AnyArray, FloatArray, IntArray, LevelArray, WordArray
from hashbench.scoring import kernels
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import Metric, Scores
from hashbench.scoring.metrics import _loops

N_SAMPLED = 1024  # items of a large database; the deviation then has a relative error of .7 / sqrt(1024), 2 %
_ODD = np.uint64(0x9E3779B97F4A7C15)


class OrderEffect(NamedTuple):
    """What one shared order does to the scores of a metric.

    Parameters
    ----------
    explained : float
        Variance of the sum over queries that the items' keys explain.
    remainder : ndarray of shape (n_queries,), float64
        Deviation of each query that they leave; NaN where the score is undefined.
    """

    explained: float
    remainder: FloatArray


class ItemSample(NamedTuple):
    """Items of the database that stand for all: the same whatever the order of the database."""

    rows: IntArray  # (n_sampled,), of the database
    weights: FloatArray  # (n_sampled,), how many items each stands for

    @classmethod
    def draw(cls, hashes: WordArray) -> Self:
        """Draw from items, of which those with equal hashes are interchangeable; all of a small database."""
        n_items = len(hashes)
        if n_items <= 2 * N_SAMPLED:
            return cls(np.arange(n_items), np.ones(n_items))
        distinct, sizes = np.unique(hashes, return_counts=True)
        copies = np.repeat(distinct, sizes)
        number = np.arange(n_items) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # of each copy of a hash
        drawn = mixed(copies + number.astype(np.uint64) * _ODD)
        is_drawn = drawn < np.partition(drawn, N_SAMPLED)[N_SAMPLED]
        chosen, n_drawn = np.unique(copies[is_drawn], return_counts=True)
        place = np.minimum(np.searchsorted(chosen, hashes), len(chosen) - 1)
        known = np.flatnonzero(chosen[place] == hashes)
        rows = np.empty(len(chosen), dtype=np.int64)
        rows[place[known]] = known
        return cls(rows, n_drawn * (n_items / n_drawn.sum()))


def mixed(words: WordArray) -> WordArray:
    """Mix the bits of 64-bit words, as the finaliser of splitmix64 does."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


def hash_rows(*tables: AnyArray) -> WordArray:
    """Hash rows of whole numbers, (n_rows, n_columns) each: equal rows have equal hashes."""
    hashes = np.zeros(len(tables[0]), dtype=np.uint64)
    for table in tables:
        for column in table.T:
            hashes = mixed((hashes + _ODD) ^ column.astype(np.uint64))
    return hashes


class ItemSums:
    """Sums over queries of the covariances of their scores with the key of each sampled item."""

    def __init__(self, metrics: Sequence[Metric], n_queries: int, weights: FloatArray) -> None:
        self.metrics = [metric for metric in metrics if metric.family.slopes is not None]
        self.weights = weights
        self.sums = np.zeros((len(self.metrics), len(weights)))
        self.remainders = np.empty((len(self.metrics), n_queries))

    def tables(self, queries: slice, histogram: TieHistogram, scores: dict[str, Scores]) -> FloatArray:
        """Return the covariances of an item of each level in each group: (n_metrics, n_queries, n_levels * n_groups).

        Also keeps the remainders of these queries.
        """
        counts = histogram.counts
        tables = np.zeros((len(self.metrics), *counts.shape))
        for table, remainder, metric in zip(tables, self.remainders, self.metrics, strict=True):
            slopes = metric.slopes(histogram)
            explained = np.empty(len(counts))
            _loops.item_covariances(counts, slopes.slope, slopes.gains, table, explained)
            deviation = scores[metric.name].tie_sd
            remainder[queries] = np.sqrt(np.maximum(deviation**2 - explained, 0))
        return tables.reshape(*tables.shape[:2], -1)

    def effects(self, origin=slice(None)) -> dict[str, OrderEffect]:
        return {
            metric.name: OrderEffect(12 * fsum(np.sort(self.weights * sums**2)), remainder[origin])
            for metric, sums, remainder in zip(self.metrics, self.sums, self.remainders, strict=True)
        }
