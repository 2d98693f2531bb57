"""Lists of items by score, one for each query, such as runs: tie groups are items with equal scores."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, BoolArray, IntArray
from hashbench._validation import MAX_LEVEL, are_real
from hashbench.affinity import Affinity
from hashbench.scoring.histogram import TieHistogram, count_groups, levels_of
from hashbench.scoring.metrics import Metric
from hashbench.scoring.random_orders import Ties
from hashbench.scoring.ranking import Plan, QueryKinds, Ranking
from hashbench.scoring.score_table import Counted, add_lists

_AT_A_TIME, _COUNTS = 64, 1 << 21  # queries, and counts of a histogram, held at a time


class RankedList(NamedTuple):
    """The items that are listed for a query, each with its tie group and its grade."""

    items: IntArray  # their numbers among those of all queries
    groups: IntArray  # the place of each item's score among the distinct ones
    grades: AnyArray
    unretrieved: AnyArray | None = None  # grades above 0 of items that are not listed; None where all are
    is_left: BoolArray | None = None  # whether the query does not ignore an item; None where it ignores none

    @property
    def ranked(self) -> "RankedList":
        """The list without the items that its query ignores."""
        if self.is_left is None:
            return self
        left = self.is_left
        return RankedList(self.items[left], self.groups[left], self.grades[left], self.unretrieved)

    @property
    def digest(self) -> bytes:
        """A digest that lists of equal items, groups and grades share."""
        order = np.argsort(self.items, kind="stable")
        listed = np.array([self.items, self.groups, self.grades], dtype=np.float64)[:, order]
        unretrieved = np.sort(self.unretrieved).tobytes() if self.unretrieved is not None else b""
        return blake2b(listed.tobytes() + unretrieved, digest_size=16).digest()


class ListRanking(Ranking):
    """Lists out of ``n_items``, with grades among some levels; ``keys``, (n_items, n_keys), tell items apart."""

    def __init__(
        self,
        lists: Sequence[RankedList],
        levels: AnyArray,
        n_items: int,
        keys: IntArray | None,
        relevance: Affinity | None = None,
        *,
        of_run: bool = False,
    ) -> None:
        self._all, self.lists = lists, [one.ranked for one in lists]
        self._levels, self._keys, self.relevance, self.of_run = levels, keys, relevance, of_run
        self.n_queries, self.n_items = len(lists), n_items
        self.is_counted_one_by_one = are_real(levels)

    @property
    def levels(self) -> AnyArray:
        """Those of all lists."""
        return self._levels

    @cached_property
    def key_bytes(self) -> AnyArray:
        """A digest of each list as it is ranked."""
        return _as_rows([one.digest for one in self.lists])

    @cached_property
    def kinds(self) -> QueryKinds:
        """The kinds of lists."""
        return QueryKinds.of(self.key_bytes, np.empty((self.n_queries, 0), dtype=np.int64))

    @cached_property
    def plain_kinds(self) -> QueryKinds:
        """The kinds of lists with the items that their queries ignore."""
        if all(one.is_left is None for one in self._all):
            return self.kinds
        return QueryKinds.of(_as_rows([one.digest for one in self._all]), np.empty((self.n_queries, 0), dtype=np.int64))

    def plan(self, metrics: Sequence[Metric]) -> Plan:
        """Count some lists at a time, each in a thread; groups are padded with empty ones."""
        depth = max(max(len(one.groups) for one in self.lists), 1)
        n_levels = min(depth, MAX_LEVEL) + 1 if self.is_counted_one_by_one else len(self._levels)
        parts = chunks(0, self.n_queries, max(min(_AT_A_TIME, _COUNTS // (n_levels * depth)), 1))

        def counted(queries: slice) -> Counted:
            lists = self.lists[queries]
            histogram = self._count(lists)
            levels, n_groups = histogram.levels, histogram.counts.shape[2]
            cells = [np.searchsorted(levels, one.grades) * n_groups + one.groups for one in lists]
            return Counted(histogram, partial(add_lists, cells, [one.items for one in lists]))

        return Plan(lambda *_: iter([(parts, counted)]), self.n_queries, rows=np.arange(self.n_items), keys=self._keys)

    def ranked(self, queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        """See `Ranking.ranked`."""
        lists = [self.lists[query] for query in queries]
        histogram = self._count(lists)
        length = max(len(one.groups) for one in lists)
        group, level, item = np.full((3, len(lists), length), -1, dtype=np.int64)
        for row, one in enumerate(lists):
            group[row, : len(one.groups)] = one.groups
            level[row, : len(one.groups)] = np.searchsorted(histogram.levels, one.grades)
            item[row, : len(one.groups)] = one.items
        ties = Ties(group, level.astype(np.int16), histogram)

        def ranked(order: IntArray) -> TieHistogram:
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            return ties.ranked(np.argsort(place[item], axis=1))

        return ranked

    def _count(self, lists: Sequence[RankedList]) -> TieHistogram:
        listed = [one.grades for one in lists]
        others = [one.unretrieved for one in lists if one.unretrieved is not None]
        levels = levels_of([*listed, *others], self._levels)
        level = [np.searchsorted(levels, grades) for grades in listed]
        histogram = count_groups(level, [one.groups for one in lists], levels)
        if not others:
            return histogram
        indices = [np.searchsorted(levels, grades) for grades in others]
        unretrieved = np.array([np.bincount(each, minlength=len(levels)) for each in indices])
        return replace(histogram, unretrieved=unretrieved)


def groups_of(score: AnyArray) -> IntArray:
    """Return the place of each item's score among the distinct ones, the highest first."""
    distinct, ascending = np.unique(score, return_inverse=True)
    return np.asarray(len(distinct) - 1 - ascending)


def _as_rows(digests: Sequence[bytes]) -> AnyArray:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), -1)
