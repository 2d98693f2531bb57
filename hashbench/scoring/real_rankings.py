"""Rankings by a real-valued distance, whose tie groups are items at an equal value."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, FloatArray, IntArray, Rows
from hashbench.affinity import Affinity, row_digests
from hashbench.scoring.engine import kernels
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import check_left
from hashbench.scoring.metrics import Metric
from hashbench.scoring.random_orders import Ties
from hashbench.scoring.ranking import ALL, Plan, Ranking
from hashbench.scoring.score_table import Counted

_MEMORY = 256 << 20  # bytes of counts held at a time


class RealDistance(Protocol):
    """Numbers of a query decide the tie group of each item."""

    query: FloatArray  # (n_queries, n_numbers)

    def groups(self, queries: Rows) -> IntArray:
        """Return the tie group of each item, numbered from the nearest, (n_queries, n_items)."""


class RealRanking(Ranking):
    """Items grouped by real-valued distance; ``rows`` stand for all where sums over items are kept, by default all."""

    relevance: Affinity

    def __init__(self, distance: RealDistance, relevance: Affinity, rows: IntArray | None = None) -> None:
        self.distance, self.relevance = distance, relevance
        self.n_queries, self.n_items = len(distance.query), relevance.n_database
        self._rows = np.arange(self.n_items) if rows is None else rows

    @cached_property
    def key_bytes(self) -> AnyArray:
        """A digest of the numbers of each query."""
        return row_digests(self.distance.query)

    def _ties(self, queries: Rows) -> Ties:
        return Ties.of(self.distance.groups(queries), self.relevance, queries)

    def plan(self, metrics: Sequence[Metric]) -> Plan:
        """Count some queries at a time, each in a thread."""
        affinity, rows, n_levels = self.relevance, self._rows, len(self.levels)
        # counts, tables of `ItemSums`, and the rest
        bytes_per_query = 8 * (n_levels * (len(metrics) + 5) + 8) * self.n_items
        parts = chunks(0, self.n_queries, min(max(_MEMORY // (4 * bytes_per_query), 1), 64))

        def counted(queries: slice) -> Counted:
            of_part = self._ties(queries)
            if affinity.ignores:
                check_left(of_part.histogram.n_database, np.arange(self.n_queries)[queries])
            cells = np.ascontiguousarray(of_part.cells[:, rows])
            return Counted(of_part.histogram, lambda tables, sums: kernels.add_cells(cells, tables, sums))

        keys = affinity.part(ALL, rows).item_keys()
        return Plan(lambda *_: iter([(parts, counted)]), self.n_queries, rows=rows, keys=keys)

    def ranked(self, queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        """See `Ranking.ranked`."""
        return self._ties(queries).ranked
