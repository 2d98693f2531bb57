"""The words in which a scoring script is described: what it sees of a query, and how it averages.

A script departs from ours in its tie order (T), the divisor of AP (D), what it does with queries without relevant items
or without hits (E), the cut (K), the distance it sees (H), and in weights (W) or quantities (A) of its own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray
from hashbench.reports.explain.orders import BY_CUT, Order

Distance = Callable[[ByteArray, int], IntArray]
"""From the differing bits of a query and each item, packed (n_items, n_bytes), and the code length to sort keys."""


def hamming(differing: ByteArray, n_bits: int) -> IntArray:
    """Count the differing bits."""
    return np.asarray(np.bitwise_count(differing).sum(axis=1, dtype=np.int64))


def bytes_of_seven(differing: ByteArray, n_bits: int) -> IntArray:
    """Count them by a table that is read at byte + 1 in 8 bits: a byte that differs in all of them counts 7."""
    return np.asarray(np.minimum(np.bitwise_count(differing), 7).sum(axis=1, dtype=np.int64))


def of_int8(differing: ByteArray, n_bits: int) -> IntArray:
    """Take similarities of -1 and 1 in 8 bits, from -128 to 127: above 127 bits the nearest merge, and the farthest."""
    return np.clip(2 * hamming(differing, n_bits), n_bits - 127, n_bits + 128)


class Query:
    """What a script sees of one query, each thing computed once.

    Parameters
    ----------
    code : ndarray of shape (n_bytes,), uint8
        Its packed code.
    database : ndarray of shape (n_items, n_bytes), uint8
        The codes of the database, in the order in which the script is given them.
    n_bits : int
        Code length.
    levels : ndarray of shape (n_items,), integer
        Affinity to each item.
    """

    def __init__(self, code: ByteArray, database: ByteArray, n_bits: int, levels: IntArray) -> None:
        self.differing, self.n_bits, self.levels = code ^ database, n_bits, levels
        self.is_relevant = levels > 0
        self.n_items, self.n_relevant = len(levels), int(self.is_relevant.sum())
        self._known: dict[Any, AnyArray] = {}

    def keys(self, distance: Distance) -> IntArray:
        """Give the sort key of every item, lowest first."""
        return self._once(distance, lambda: distance(self.differing, self.n_bits))

    def rows(self, distance: Distance, order: Order, n_first: int) -> IntArray:
        """Give the first items, and perhaps all, in the script's order."""
        which = distance, order, n_first if order in BY_CUT else 0
        return self._once(which, lambda: order(self.keys(distance), n_first))

    def ranks(self, distance: Distance, order: Order, n_first: int) -> IntArray:
        """Give the ranks, from 1, of the relevant items that are there."""
        which = "ranks", distance, order, n_first if order in BY_CUT else 0
        found = self._once(
            which, lambda: np.flatnonzero(self.is_relevant[self.rows(distance, order, n_first)]) + np.int64(1)
        )
        return found[: np.searchsorted(found, n_first, side="right")]

    def _once(self, key: Any, make: Callable[[], AnyArray]) -> AnyArray:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


def precisions(ranks: IntArray) -> FloatArray:
    """Give the precision at the rank of each hit."""
    return np.arange(1, len(ranks) + 1) / ranks


DIVISORS: dict[str, Callable[[int, int, int], int]] = {  # of AP: from hits above the cut, relevant items, and the cut
    "retrieved": lambda n_hits, n_relevant, cut: n_hits,
    "relevant": lambda n_hits, n_relevant, cut: n_relevant,
}

Mean = Callable[[FloatArray, FloatArray, IntArray], float]
"""From scores of queries, 0 where they have no hit, the probability that they have one, and their relevant items."""


def count_zero(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Count queries without relevant items, or without a hit, as 0."""
    return float(values.mean())


def leave_out(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Leave out queries without relevant items; those without a hit count 0. As ours."""
    return _ratio(values.sum(), int((n_relevant > 0).sum()))


def leave_out_without_hits(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Leave out queries without a hit, too."""
    return _ratio(values.sum(), hit.sum())


def not_a_number(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Divide by 0 where a query has no relevant items, and the mean with it."""
    return float("nan") if (n_relevant == 0).any() else count_zero(values, hit, n_relevant)


def count_one(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Count queries without relevant items as 1."""
    return float((values + (n_relevant == 0)).mean())


def forget_last_ones(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Count 0, but end at the last query that has relevant items."""
    kept = np.flatnonzero(n_relevant > 0)
    return float(values[: kept[-1] + 1].mean()) if kept.size else float("nan")


def divide_by_ten_more(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Divide by the number of queries that count, and ten."""
    return float(values.sum() / ((n_relevant > 0).sum() + 10))


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else float("nan")
