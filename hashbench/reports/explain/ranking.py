"""Queries as scripts see them: distances, the order of the items, the ranks of hits; and the loop over all queries."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from hashbench._parallel import chunks, in_threads
from hashbench._typing import AnyArray, ByteArray, IntArray, Progress, silent
from hashbench.affinity import Affinity
from hashbench.reports.explain import orders

_AT_A_TIME = 16  # queries whose levels are held at once by one thread


class Sort(NamedTuple):
    """How a script orders items."""

    order: str  # of ties, a function of `orders`
    item_order: str = ""  # of the items of a query as it gets them, a function of `orders`; empty for the database's
    shared_cut: int = 0  # how many items it sorts first whatever the cut; 0: as many as the cut says


class Query:
    """What a script sees of one query; sort keys, rows and ranks are cached.

    ``code`` and ``database``, (n_items, n_bytes), are packed, the items in the order in which the script gets them;
    ``levels`` are the affinity to each item; ``number`` is the index of the query.
    """

    def __init__(
        self, code: ByteArray, database: ByteArray, n_bits: int, levels: IntArray, number: int, n_queries: int
    ) -> None:
        self.code, self.database, self.n_bits, self.levels = code, database, n_bits, levels
        self.number, self.n_queries = number, n_queries
        self.is_relevant = levels > 0
        self.n_items, self.n_relevant = len(levels), int(self.is_relevant.sum())
        self._cache: dict[Hashable, AnyArray] = {}

    def keys(self, distance: str) -> IntArray:
        """Return the sort key of every item, a whole number from 0 on, lowest first."""
        return self._cached(distance, lambda: DISTANCES[distance].keys(self))

    def rows(self, distance: str, sort: Sort, cut: int) -> IntArray:
        """Return at least the first ``cut`` items in a script's order."""
        n_first = max(cut, sort.shared_cut)
        return self._cached(self._place(distance, sort, n_first), lambda: self._sorted(distance, sort, n_first))

    def ranks(self, distance: str, sort: Sort, cut: int) -> IntArray:
        """Return the ranks, from 1, of the relevant items among the first ``cut``."""
        ranks = self._cached(
            ("ranks", *self._place(distance, sort, max(cut, sort.shared_cut))),
            lambda: np.flatnonzero(self.is_relevant[self.rows(distance, sort, cut)]) + np.int64(1),
        )
        return ranks[: np.searchsorted(ranks, cut, side="right")]

    def _place(self, distance: str, sort: Sort, n_first: int) -> tuple[Hashable, ...]:
        return distance, *sort[:2], n_first if sort.order in orders.BY_CUT else 0

    def _sorted(self, distance: str, sort: Sort, n_first: int) -> IntArray:
        keys, order = self.keys(distance), getattr(orders, sort.order)
        if not sort.item_order:
            return np.asarray(order(keys, n_first))
        rows = getattr(orders, sort.item_order)(self.number, self.n_queries, self.n_items)
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
    own_rows: IntArray | None = None,
    on_progress: Progress = silent,
) -> None:
    """Call ``visit`` with some consecutive queries at a time, in threads; ``own_rows`` as for `emulation.explain`."""

    def view(row: int, levels: IntArray) -> Query:
        items = database
        if own_rows is not None:
            items, levels = np.delete(database, own_rows[row], axis=0), np.delete(levels, own_rows[row])
        return Query(query[row], items, n_bits, levels, row, len(query))

    def visit_block(queries: slice) -> int:
        block = affinity.block(queries, slice(0, len(database)))
        visit([view(row, levels) for row, levels in enumerate(block, start=queries.start)])
        return len(block)

    n_done = 0
    for n_visited in in_threads(visit_block, chunks(0, len(query), _AT_A_TIME)):
        n_done += n_visited
        on_progress("queries ranked", n_done, len(query))


def _ones(packed: ByteArray) -> IntArray:
    return np.asarray(np.bitwise_count(packed).sum(axis=-1, dtype=np.int64))


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
    squares = _ones(query.code & query.database) ** 2 / np.maximum(_ones(query.database), 1)
    return np.unique(-squares, return_inverse=True)[1]  # floats of equal fractions are equal


class Distance(NamedTuple):
    """What a script ranks by."""

    words: str  # how it differs from hashbench's
    keys: Callable[[Query], IntArray]  # sort keys of all items, (n_items,)
    has_few_keys: bool = True  # at most twice the code length, plus 1; else up to as many as items


DISTANCES = {
    "hamming": Distance("", lambda query: _ones(query.code ^ query.database)),
    "bytes_of_seven": Distance("a byte that differs in all bits counts 7", _bytes_of_seven),
    "of_int8": Distance("similarities end at 127", _of_int8),
    "radii_of_int8": Distance("similarities end at 127", _radii_of_int8),
    "dot_of_bits": Distance("dot of 0/1 vectors, not Hamming distance", _dot_of_bits),
    "cosine_of_bits": Distance("cosine of 0/1 vectors, not Hamming distance", _cosine_of_bits, has_few_keys=False),
}
