"""Queries as scripts see them: distances, the order of the items, scores; and the loop over all queries."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from hashbench._parallel import chunks, in_threads
from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, Progress, silent
from hashbench.affinity import Affinity
from hashbench.reports.explain import orders
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import check_left
from hashbench.scoring.metrics import get_metric
from hashbench.scoring.random_orders import without_ties

AT_A_TIME = 16  # queries whose levels are held at once by one thread
_ALL = slice(None)


class Sort(NamedTuple):
    """How a script orders items."""

    order: str  # of ties, a function of `orders`
    item_order: str = ""  # of the items of a query as it gets them, a function of `orders`; empty for the database's
    n_first: int = 0  # how many items it sorts, if the order depends on that


class Query:
    """What a script sees of one query; sort keys and rows are cached.

    ``code`` and ``database``, (n_items, n_bytes), are packed, the items in the order in which the script gets them;
    ``levels`` are the affinity to each item; ``number`` is the index of the query among all, with ``sizes`` items.
    """

    def __init__(
        self, code: ByteArray, database: ByteArray, n_bits: int, levels: IntArray, number: int, sizes: IntArray
    ) -> None:
        self.code, self.database, self.n_bits, self.levels = code, database, n_bits, levels
        self.number, self.sizes = number, sizes
        self.n_items = len(levels)
        self._cache: dict[Hashable, AnyArray] = {}

    def keys(self, distance: str) -> IntArray:
        """Return the sort key of every item, a whole number from 0 on, lowest first."""
        return self._cached(distance, lambda: DISTANCES[distance].keys(self))

    def rows(self, distance: str, sort: Sort) -> IntArray:
        """Return the items in a script's order: all, or those that it sorts first."""
        return self._cached((distance, sort), lambda: self._sorted(self.keys(distance), sort))

    def hits(self, distance: str, sort: Sort) -> IntArray:
        """Return the ranks, from 1, of the relevant items among `rows`."""
        return self._cached(
            ("hits", distance, sort), lambda: np.flatnonzero(self.levels[self.rows(distance, sort)] > 0) + 1
        )

    def indices(self, levels: AnyArray) -> AnyArray:
        """Return the index of each item's level among all levels."""
        is_index = np.array_equal(levels, np.arange(len(levels)))
        return self._cached("indices", lambda: self.levels if is_index else np.searchsorted(levels, self.levels))

    def counts(self, distance: str, levels: AnyArray) -> IntArray:
        """Count the items at each level and sort key, (n_levels, n_keys)."""
        return self._cached(("counts", distance), lambda: self._counted(self.keys(distance), levels))

    def _counted(self, keys: IntArray, levels: AnyArray) -> IntArray:
        n_keys = int(keys.max()) + 1
        cells = self.indices(levels).astype(np.int64) * n_keys + keys
        return np.bincount(cells, minlength=len(levels) * n_keys).reshape(len(levels), n_keys)

    def _sorted(self, keys: IntArray, sort: Sort) -> IntArray:
        order, n_first = getattr(orders, sort.order), min(sort.n_first, self.n_items)
        if not sort.item_order:
            return np.asarray(order(keys, n_first))
        rows = getattr(orders, sort.item_order)(self.number, self.sizes)
        return np.asarray(rows[order(keys[rows], n_first)])

    def _cached(self, key: Hashable, compute: Callable[[], AnyArray]) -> AnyArray:
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]


def visit_queries(
    query: ByteArray,
    database: ByteArray,
    n_bits: int,
    affinity: Affinity,
    visit: Callable[[list[Query]], None],
    rows: IntArray | None = None,
    what: str = "queries ranked",
    on_progress: Progress = silent,
) -> None:
    """Call ``visit`` with some queries at a time, in threads; none has the items that it ignores.

    Queries are those of ``rows``, by default all, and consecutive there. Progress is reported of ``what`` is done.
    """
    sizes, rows = n_left(affinity), np.arange(len(query)) if rows is None else rows

    def view(row: int, levels: IntArray) -> Query:
        items = database
        if affinity.ignores:
            is_left = levels >= 0
            items, levels = database[is_left], levels[is_left]
        return Query(query[row], items, n_bits, levels, row, sizes)

    def visit_block(part: slice) -> int:
        block = affinity.block(rows[part], _ALL)
        visit([view(int(row), levels) for row, levels in zip(rows[part], block, strict=True)])
        return len(block)

    n_done = 0
    for n_visited in in_threads(visit_block, chunks(0, len(rows), AT_A_TIME)):
        n_done += n_visited
        on_progress(what, n_done, len(rows))


def n_left(affinity: Affinity) -> IntArray:
    """Return the number of items that each query does not ignore, (n_queries,)."""
    if not affinity.ignores:
        return np.full(affinity.n_queries, affinity.n_database)
    parts = chunks(0, affinity.n_queries, AT_A_TIME)
    sizes = np.concatenate([np.count_nonzero(affinity.block(part, _ALL) >= 0, axis=1) for part in parts])
    check_left(sizes, np.arange(len(sizes)))
    return sizes


class Scoring(NamedTuple):
    """A metric of hashbench, and what ranks the items."""

    metric: str
    distance: str = "hamming"  # of `DISTANCES`
    sort: Sort | None = None  # None: the exact score over all orders of ties


def count_ties(queries: Sequence[Query], distance: str, levels: AnyArray) -> TieHistogram:
    """Count the items of queries by level and distance."""
    counts = [query.counts(distance, levels) for query in queries]
    n_groups = max(of_query.shape[1] for of_query in counts)
    return TieHistogram(np.stack([np.pad(one, ((0, 0), (0, n_groups - one.shape[1]))) for one in counts]), levels)


def score(queries: Sequence[Query], scorings: Iterable[Scoring], levels: IntArray) -> Iterator[FloatArray]:
    """Compute by each scoring the scores of queries, (4, n_queries), 0 where nothing is relevant."""
    at_levels = [query.indices(levels).astype(np.int16) for query in queries]

    @cache
    def ranked(distance: str, sort: Sort | None) -> TieHistogram:
        if sort is None:
            return count_ties(queries, distance, levels)
        ranks = []
        for query, at_level in zip(queries, at_levels, strict=True):
            rows = query.rows(distance, sort)
            is_beyond = np.ones(query.n_items, dtype=bool)
            is_beyond[rows] = False
            ranks.append(np.append(at_level[rows], np.sort(at_level[is_beyond])))
        n_ranked = np.array([query.n_items for query in queries])
        padded = [np.pad(of_query, (0, n_ranked.max() - len(of_query))) for of_query in ranks]
        return without_ties(np.stack(padded), levels, n_ranked)

    for metric, distance, sort in scorings:
        yield np.stack(get_metric(metric).scores(ranked(distance, sort), undefined="zero"))


def _ones(packed: ByteArray) -> IntArray:
    return np.asarray(np.einsum("...i->...", np.bitwise_count(packed), dtype=np.int64))  # sum takes four times as long


def _bytes_of_seven(query: Query) -> IntArray:
    """Count by a table read at byte + 1 in 8 bits."""
    return np.asarray(np.minimum(np.bitwise_count(query.code ^ query.database), 7).sum(axis=1, dtype=np.int64))


def _of_int8(query: Query) -> IntArray:
    """Compute similarities in 8 bits, from -128 to 127: above 127 bits the nearest items merge, as do the farthest."""
    return np.clip(2 * query.keys("hamming"), query.n_bits - 127, query.n_bits + 128)


def _radii_of_int8(query: Query) -> IntArray:
    """Compute the least radius that holds an item: half of code length minus similarity, both in 8 bits."""
    return (np.minimum(query.keys("of_int8"), 127) + 1) // 2


def _dot_of_bits(query: Query) -> IntArray:
    return _ones(query.code) - _ones(query.code & query.database)


def _cosine_of_bits(query: Query) -> IntArray:
    """Rank by the cosine, which is 0 if either has no ones; equal cosines have equal keys."""
    dots, sizes = _ones(query.code & query.database), _ones(query.database)
    first, width = int(sizes.min()), int(np.ptp(sizes)) + 1
    pairs = dots * width + sizes - first  # few differ, so that these are sorted, not items
    n_equal = np.bincount(pairs)
    dots, sizes = divmod(np.flatnonzero(n_equal), width)
    n_equal[n_equal > 0] = np.unique(-(dots**2) / np.maximum(sizes + first, 1), return_inverse=True)[1]
    return np.asarray(n_equal[pairs])  # floats of equal fractions are equal


class Distance(NamedTuple):
    """What a script ranks by."""

    words: str  # how it differs from hashbench's
    keys: Callable[[Query], IntArray]  # sort keys of all items, (n_items,)


DISTANCES = {
    "hamming": Distance("", lambda query: _ones(query.code ^ query.database)),
    "bytes_of_seven": Distance("a byte that differs in all bits counts 7", _bytes_of_seven),
    "of_int8": Distance("similarities end at 127", _of_int8),
    "radii_of_int8": Distance("similarities end at 127", _radii_of_int8),
    "dot_of_bits": Distance("dot of 0/1 vectors, not Hamming distance", _dot_of_bits),
    "cosine_of_bits": Distance("cosine of 0/1 vectors, not Hamming distance", _cosine_of_bits),
}
