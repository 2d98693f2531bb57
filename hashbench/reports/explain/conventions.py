"""How a scoring script is described: what it is, what it sees of a query, and how it averages.

A script differs from hashbench in its tie order, the divisor of AP, its treatment of queries without relevant items or
without hits, the cut, its distance, its weights, or because it computes a quantity of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray
from hashbench.reports.explain import orders
from hashbench.reports.explain.orders import Order
from hashbench.scoring.histogram import TieHistogram

RankBy = Callable[["Query"], IntArray]
"""Maps a query to the sort keys of all items, whole numbers from 0 on, (n_items,)."""


def hamming(query: "Query") -> IntArray:
    """Count the differing bits."""
    return np.asarray(np.bitwise_count(query.differing).sum(axis=1, dtype=np.int64))


def bytes_of_seven(query: "Query") -> IntArray:
    """Count the differing bits by a table read at byte + 1 in 8 bits: a byte that differs in all bits counts 7."""
    return np.asarray(np.minimum(np.bitwise_count(query.differing), 7).sum(axis=1, dtype=np.int64))


def of_int8(query: "Query") -> IntArray:
    """Compute similarities in 8 bits, from -128 to 127: above 127 bits the nearest items merge, as do the farthest."""
    return np.clip(2 * query.keys(hamming), query.n_bits - 127, query.n_bits + 128)


def radii_of_int8(query: "Query") -> IntArray:
    """Compute the least radius that holds an item: half of code length minus similarity, both in 8 bits."""
    return (np.minimum(of_int8(query), 127) + 1) // 2


def dot_of_bits(query: "Query") -> IntArray:
    """Count the ones of the query that an item lacks: the largest inner product of 0/1 vectors comes first."""
    return query.n_ones - query.n_common


def cosine_of_bits(query: "Query") -> IntArray:
    """Rank items by the cosine of 0/1 vectors, which is 0 if either has no ones; equal cosines have equal keys."""
    squares = query.n_common**2 / np.maximum(query.n_ones_of_items, 1)  # floats of equal fractions are equal
    return np.unique(-squares, return_inverse=True)[1]


MANY_KEYS = (cosine_of_bits,)
"""Distances with up to as many keys as items; the others have at most twice the code length, plus 1."""


class Query:
    """What a script sees of one query; sort keys, rows and ranks are cached.

    ``code`` and ``database``, (n_items, n_bytes), are packed, the items in the order in which the script gets them;
    ``levels`` are the affinity to each item; ``number`` is the index of the query.
    """

    def __init__(
        self, code: ByteArray, database: ByteArray, n_bits: int, levels: IntArray, number: int, n_queries: int
    ) -> None:
        self.differing, self.n_bits, self.levels = code ^ database, n_bits, levels
        self._code, self._database = code, database
        self.number, self.n_queries = number, n_queries
        self.is_relevant = levels > 0
        self.n_items, self.n_relevant = len(levels), int(self.is_relevant.sum())
        self._cache: dict[Any, AnyArray] = {}

    def keys(self, distance: RankBy) -> IntArray:
        """Return the sort key of every item, lowest first."""
        return self._cached(distance, lambda: distance(self))

    @property
    def n_ones(self) -> int:
        """The number of ones of the query."""
        return int(np.bitwise_count(self._code).sum())

    @property
    def n_ones_of_items(self) -> IntArray:
        """The number of ones of each item, (n_items,)."""
        return self._cached("ones", lambda: np.bitwise_count(self._database).sum(axis=1, dtype=np.int64))

    @property
    def n_common(self) -> IntArray:
        """The number of ones that each item shares with the query, (n_items,)."""
        return (self.n_ones + self.n_ones_of_items - self.keys(hamming)) // 2

    def rows(self, script: "Evaluator", n_first: int) -> IntArray:
        """Return at least the first ``n_first`` items in a script's order."""
        return self._cached(self._order(script, n_first), lambda: self._sorted(script, n_first))

    def ranks(self, script: "Evaluator", n_first: int) -> IntArray:
        """Return the ranks, from 1, of the relevant items among the first ``n_first``."""
        ranks = self._cached(
            ("ranks", self._order(script, n_first)),
            lambda: np.flatnonzero(self.is_relevant[self.rows(script, n_first)]) + np.int64(1),
        )
        return ranks[: np.searchsorted(ranks, n_first, side="right")]

    def _order(self, script: "Evaluator", n_first: int) -> Any:
        return script.distance, script.order, script.item_order, n_first if script.order in orders.BY_CUT else 0

    def _sorted(self, script: "Evaluator", n_first: int) -> IntArray:
        assert script.order is not None
        keys = self.keys(script.distance)
        if script.item_order is None:
            return script.order(keys, n_first)
        rows = script.item_order(self.number, self.n_queries, self.n_items)
        return rows[script.order(keys[rows], n_first)]

    def _cached(self, key: Any, compute: Callable[[], AnyArray]) -> AnyArray:
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]


def precisions(ranks: IntArray) -> FloatArray:
    """Compute the precision at the rank of each hit."""
    return np.arange(1, len(ranks) + 1) / ranks


def mean_precision(ranks: IntArray) -> float:
    """Average the precision over the ranks of hits; 0 without a hit."""
    return float(precisions(ranks).mean()) if len(ranks) else 0.0


DIVISORS: dict[str, Callable[[int, int, int], int]] = {  # of AP: from hits above the cut, relevant items, and the cut
    "retrieved": lambda n_hits, n_relevant, cut: n_hits,
    "relevant": lambda n_hits, n_relevant, cut: n_relevant,
    "capped": lambda n_hits, n_relevant, cut: min(n_relevant, cut),
}

DIVISOR_WORDS = {"retrieved": "hits above the cut", "relevant": "all relevant items"}

Mean = Callable[[FloatArray, FloatArray, IntArray], float]
"""Averages scores of queries, 0 without a hit, given each query's probability of a hit and number of relevant items."""


def count_zero(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Count queries without relevant items, or without a hit, as 0."""
    return float(values.mean())


def count_zero_of_labelled(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Count queries without relevant items as 0, and leave out those without labels."""
    return _ratio(values.sum(), len(values))


def not_a_number_of_labelled(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Return NaN if a query with labels has no relevant items, and leave out those without labels."""
    return not_a_number(values, hit, n_relevant)


def leave_out(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Leave out queries without relevant items, as hashbench does; those without a hit count 0."""
    return _ratio(values.sum(), int((n_relevant > 0).sum()))


def leave_out_without_hits(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Leave out queries without relevant items and those without a hit."""
    return _ratio(values.sum(), hit.sum())


def not_a_number(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Return NaN if any query has no relevant items: its score is 0 / 0."""
    return float("nan") if (n_relevant == 0).any() else count_zero(values, hit, n_relevant)


def count_one(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Count queries without relevant items as 1."""
    return float((values + (n_relevant == 0)).mean())


def forget_last_ones(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Count 0, but end at the last query that has relevant items."""
    with_relevant = np.flatnonzero(n_relevant > 0)
    return float(values[: with_relevant[-1] + 1].mean()) if with_relevant.size else float("nan")


def divide_by_ten_more(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Divide by ten more than the number of queries with relevant items."""
    return float(values.sum() / ((n_relevant > 0).sum() + 10))


def weighted(values: FloatArray, hit: FloatArray, n_relevant: IntArray) -> float:
    """Weight queries by their number of relevant items; recalls become hits per relevant item over all queries."""
    return _ratio((values * n_relevant).sum(), int(n_relevant.sum()))


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else float("nan")


OF_LABELLED = (count_zero_of_labelled, not_a_number_of_labelled)  # get only queries with labels
MEAN_WORDS: dict[Mean, str] = {  # how each differs from hashbench
    count_zero: "queries without relevant items count 0",
    count_zero_of_labelled: "labelled without relevant items count 0",
    not_a_number_of_labelled: "labelled without relevant items give NaN",
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
    """A scoring script; the defaults of its conventions are the most common ones."""

    name: str
    used_by: str  # where it comes from, and who else uses it
    source: str  # the code that was read: repository@commit path:lines, or a package and its version
    metric: str = "AP"  # AP, NDCG, NDCG:trec, of the whole list and the first k; P@k, R@k, Hit@k; P@r, R@r
    order: Order | None = orders.stable  # its tie order; None if that does not affect the result
    mean: Mean = count_zero
    distance: RankBy = hamming  # what it ranks by
    divisor: str = "retrieved"  # of AP, as in the names of hashbench's metrics
    cuts: str = "any"  # or "none"; "below": not beyond the database; "only": "below", and never the whole list
    least_cut: int = 1  # of the largest cut asked for, if it shares that
    loses_last: bool = False  # the whole list lacks its last item
    shares_cut: bool = False  # it sorts for the largest cut asked for
    # Rows in the order in which it gets them, from the index of the query and the numbers of queries and items.
    item_order: Callable[[int, int, int], IntArray] | None = None
    twin_of: str = ""  # the script that differs only in that its NumPy is not this machine's
    own: str = ""  # its own quantity, in words; one of the two below computes it
    # From the ranks of a query's hits (in the whole list if the order is complete), the cut or the number of items
    # inside a radius, the query and the script.
    of_ranks: "Callable[[IntArray, int, Query, Evaluator], float] | None" = None
    # If the tie order does not matter: a value per query, or one for all.
    of_counts: Callable[[TieHistogram, int], FloatArray | float] | None = None

    @property
    def gives(self) -> tuple[str, ...]:
        """Patterns of the metrics that it computes, by hashbench's names."""
        if "@" in self.metric:
            return (self.metric.replace("@r", "@rN"),)
        stem, colon, gain = self.metric.partition(":")
        cut = f"{stem}@k{colon}{gain}"
        return {"none": (self.metric,), "only": (cut,)}.get(self.cuts, (self.metric, cut))

    def cut_of(self, cutoff: int | None, n_items: int) -> int | None:
        """Return how many items it looks at, or which radius; None if it does not accept the cut."""
        if self.metric.endswith("@r"):
            return cutoff
        if cutoff is None:
            cut = 0 if self.cuts == "only" else n_items - self.loses_last
        else:
            cut = 0 if self.cuts == "none" or (self.is_within and cutoff > n_items) else min(cutoff, n_items)
        return cut if cut >= (1 if self.shares_cut else self.least_cut) else None

    @property
    def is_of_this_machine(self) -> bool:
        """Whether its tie order depends on the installed NumPy or numba, or on the CPU."""
        return self.order in orders.OF_THIS_MACHINE

    @property
    def is_within(self) -> bool:
        """Whether it takes no cut beyond the database."""
        return self.cuts in ("below", "only")
