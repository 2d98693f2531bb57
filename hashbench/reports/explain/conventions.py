"""How a scoring script is described: what it is, what it sees of a query, and how it averages.

A script departs from ours in its tie order (T), the divisor of AP (D), what it does with queries without relevant items
or without hits (E), the cut (K), the distance it sees (H), and in weights (W) or quantities (A) of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray
from hashbench.reports.explain import orders
from hashbench.reports.explain.orders import Order
from hashbench.scoring.histogram import TieHistogram

Distance = Callable[[ByteArray, int], IntArray]
"""From the differing bits of a query and each item, packed (n_items, n_bytes), and the code length to sort keys."""


def hamming(differing: ByteArray, n_bits: int) -> IntArray:
    """Count the differing bits."""
    return np.asarray(np.bitwise_count(differing).sum(axis=1, dtype=np.int64))


def bytes_of_seven(differing: ByteArray, n_bits: int) -> IntArray:
    """Count differing bits by a table that is read at byte + 1 in 8 bits: a byte that differs in all bits counts 7."""
    return np.asarray(np.minimum(np.bitwise_count(differing), 7).sum(axis=1, dtype=np.int64))


def of_int8(differing: ByteArray, n_bits: int) -> IntArray:
    """Compute similarities in 8 bits, from -128 to 127: above 127 bits the nearest merge, and the farthest."""
    return np.clip(2 * hamming(differing, n_bits), n_bits - 127, n_bits + 128)


def radii_of_int8(differing: ByteArray, n_bits: int) -> IntArray:
    """Compute the radius at which an item is inside: half of code length less similarity, both in 8 bits."""
    return (np.minimum(of_int8(differing, n_bits), 127) + 1) // 2


class Query:
    """What a script sees of one query; each thing is computed once.

    ``code`` is packed, as is ``database``, (n_items, n_bytes), in the order in which the script gets it; ``levels``
    are the affinity to each item; ``number`` is the query, from 0, of ``n_queries``.
    """

    def __init__(
        self, code: ByteArray, database: ByteArray, n_bits: int, levels: IntArray, number: int, n_queries: int
    ) -> None:
        self.differing, self.n_bits, self.levels = code ^ database, n_bits, levels
        self.number, self.n_queries = number, n_queries
        self.is_relevant = levels > 0
        self.n_items, self.n_relevant = len(levels), int(self.is_relevant.sum())
        self._known: dict[Any, AnyArray] = {}

    def keys(self, distance: Distance) -> IntArray:
        """Return the sort key of every item, lowest first."""
        return self._once(distance, lambda: distance(self.differing, self.n_bits))

    def rows(self, script: "Evaluator", n_first: int) -> IntArray:
        """Return the first items, and perhaps all, in a script's order."""
        return self._once(self._order(script, n_first), lambda: self._sorted(script, n_first))

    def ranks(self, script: "Evaluator", n_first: int) -> IntArray:
        """Return the ranks, from 1, of the relevant items among them."""
        ranks = self._once(
            ("ranks", self._order(script, n_first)),
            lambda: np.flatnonzero(self.is_relevant[self.rows(script, n_first)]) + np.int64(1),
        )
        return ranks[: np.searchsorted(ranks, n_first, side="right")]

    def _order(self, script: "Evaluator", n_first: int) -> Any:
        return script.distance, script.order, script.passed, n_first if script.order in orders.BY_CUT else 0

    def _sorted(self, script: "Evaluator", n_first: int) -> IntArray:
        assert script.order is not None
        keys = self.keys(script.distance)
        if script.passed is None:
            return script.order(keys, n_first)
        rows = script.passed(self.number, self.n_queries, self.n_items)
        return rows[script.order(keys[rows], n_first)]

    def _once(self, key: Any, make: Callable[[], AnyArray]) -> AnyArray:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


def precisions(ranks: IntArray) -> FloatArray:
    """Compute the precision at the rank of each hit."""
    return np.arange(1, len(ranks) + 1) / ranks


DIVISORS: dict[str, Callable[[int, int, int], int]] = {  # of AP: from hits above the cut, relevant items, and the cut
    "retrieved": lambda n_hits, n_relevant, cut: n_hits,
    "relevant": lambda n_hits, n_relevant, cut: n_relevant,
    "capped": lambda n_hits, n_relevant, cut: min(n_relevant, cut),
}

OF_DIVISOR = {"retrieved": "hits above the cut", "relevant": "all relevant items"}  # in words

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
    with_relevant = np.flatnonzero(n_relevant > 0)
    return float(values[: with_relevant[-1] + 1].mean()) if with_relevant.size else float("nan")


def divide_by_ten_more(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Divide by the number of queries that count, and ten."""
    return float(values.sum() / ((n_relevant > 0).sum() + 10))


def weighted(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Weight queries by their relevant items: hits of all, over relevant items of all, if values are recalls."""
    return _ratio((values * n_relevant).sum(), int(n_relevant.sum()))


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else float("nan")


EMPTY: dict[Mean, str] = {  # what each does with queries where nothing is relevant, in words
    count_zero: "queries without relevant items count 0",
    leave_out: "",
    leave_out_without_hits: "queries without hits left out",
    not_a_number: "queries without relevant items give NaN",
    count_one: "queries without relevant items count 1",
    forget_last_ones: "without relevant items: 0, the last left out",
    divide_by_ten_more: "divided by ten queries more",
    weighted: "queries weighted by their relevant items",
}


@dataclass(frozen=True)
class Evaluator:
    """A scoring script; "ours" is what hashbench does."""

    name: str
    used_by: str  # where it is from, and who else has it
    source: str  # what was read: repository@commit path:lines, or a package and its version
    metric: str = "AP"  # AP, NDCG, NDCG:trec, of the whole list and the first k; P@k, R@k, Hit@k; P@r, R@r
    order: Order | None = orders.stable  # how it leaves ties; None if their order does not affect it
    mean: Mean = count_zero
    distance: Distance = hamming  # what it ranks by
    divisor: str = "retrieved"  # of AP, as in the names of our metrics
    cuts: str = "any"  # or "none"; "below": not beyond the database; "only": "below", and never the whole list
    least_cut: int = 1
    loses_last: bool = False  # the whole list lacks its last item
    shares_cut: bool = False  # the order is that of the largest cut asked for
    # The order in which it gets the items of a query, from its number and the counts of queries and items.
    passed: Callable[[int, int, int], IntArray] | None = None
    own: str = ""  # its own quantity, in words; computed by one of the two below
    # From the ranks of a query's hits, in the whole list if the order has it, the cut (or how many items are inside a
    # radius), the query and the script.
    of_ranks: "Callable[[IntArray, int, Query, Evaluator], float] | None" = None
    # Where the order of ties does not matter: a value per query, or one of all.
    of_counts: Callable[[TieHistogram, int], FloatArray | float] | None = None

    @property
    def gives(self) -> tuple[str, ...]:
        """Patterns of the metrics that it computes, as we call them."""
        if "@" in self.metric:
            return (self.metric.replace("@r", "@rN"),)
        stem, colon, gain = self.metric.partition(":")
        cut = f"{stem}@k{colon}{gain}"
        return {"none": (self.metric,), "only": (cut,)}.get(self.cuts, (self.metric, cut))

    def cut_of(self, asked: int | None, n_items: int) -> int | None:
        """Return how many items it looks at, or which radius; None if it cannot be asked that."""
        if self.metric.endswith("@r"):
            return asked
        if asked is None:
            cut = 0 if self.cuts == "only" else n_items - self.loses_last
        else:
            cut = 0 if self.cuts == "none" or (self.is_within and asked > n_items) else min(asked, n_items)
        return cut if cut >= self.least_cut else None

    @property
    def is_within(self) -> bool:
        """Whether it takes no cut beyond the database."""
        return self.cuts in ("below", "only")
