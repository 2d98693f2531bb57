"""Scores of queries, filled in some at a time, and how far one shared order of the database moves their means.

A random order ranks tied items by keys, uniform on [0, 1]. Each query's score is projected on the keys of the items:
what they explain adds up over queries item by item, and what is left of each query, its remainder, moves independently
of queries of other kinds. The derivation is in docs/explanation/mean-over-queries.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from hashbench._parallel import chunks, in_threads
from hashbench._typing import FloatArray, IntArray, Rows
from hashbench.scoring.equal_rows import row_hashes
from hashbench.scoring.evaluation import Evaluation, OrderEffect
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import Metric, Scores, _loops, get_metric, readings
from hashbench.scoring.metrics._grammar import Slopes

_ALL = slice(None)
_PARTS, _FEWEST, _MOST = 8, 512, 1024  # parts of the queries, and queries of a part
_TABLES = 16 << 20  # bytes of them


class Counted(NamedTuple):
    """Some queries' histogram, and how the numbers of its cells add up to sums of the items.

    ``add`` is called with tables, (n_queries, n_levels * n_groups + 1, n_metrics), and sums, (n_items, n_metrics). The
    cell of an item is level * n_groups + group, the last one if it is not ranked.
    """

    histogram: TieHistogram
    add: Callable[[FloatArray, FloatArray], None] | None = None


def add_lists(cells: Sequence[IntArray], items: Sequence[IntArray], tables: FloatArray, sums: FloatArray) -> None:
    """Add each query's table at the cells of its own list of items, each of them once in a list."""
    for table, of_query, rows in zip(tables, cells, items, strict=True):
        sums[rows] += table[of_query]


class ScoreTable:
    """Scores of queries, filled in some at a time and in any order."""

    def __init__(
        self, metrics: Sequence[Metric], undefined: str, n_queries: int, items: "ItemSums | None" = None
    ) -> None:
        self.metrics, self.undefined, self.items = metrics, undefined, items
        self.scores = {metric.name: Scores(*np.empty((4, n_queries))) for metric in metrics}
        self.n_relevant, self.n_left = np.empty((2, n_queries), dtype=np.int64)
        self.is_tied = np.empty(n_queries, dtype=bool)
        balls = [metric for metric in metrics if metric.family.pattern in ("P@rN", "AP@rN")]
        self.radii = {metric.name: int(metric.arguments[0]) for metric in balls}
        self.is_empty = {name: np.empty(n_queries, dtype=bool) for name in self.radii}
        elsewhere = {name for metric in metrics for name in metric.elsewhere} - self.scores.keys()
        self._elsewhere = [get_metric(name, of_run=True) for name in sorted(elsewhere)]
        self._means = {metric.name: np.empty(n_queries) for metric in self._elsewhere}

    def fill(self, parts: Sequence[slice], count: Callable[[slice], Counted], *, one_by_one: bool = False) -> None:
        """Score parts of the queries in threads; ``count`` counts one part, or one query of it at a time."""

        def score(queries: slice) -> FloatArray | None:
            sums = None if self.items is None else self.items.zeros()
            for part in chunks(queries.start, queries.stop, 1 if one_by_one else queries.stop - queries.start):
                counted = count(part)
                self._fill(part, counted.histogram)
                if self.items is not None and sums is not None:
                    self.items.add_to(sums, part, counted, self.scores)
            return sums

        for sums in in_threads(score, parts):
            if self.items is not None and sums is not None:
                self.items.add(sums)

    def _fill(self, queries: slice, histogram: TieHistogram) -> None:
        self.n_relevant[queries], self.n_left[queries] = histogram.n_relevant, histogram.n_database
        is_whole = histogram.size == histogram.n_database[:, None]
        self.is_tied[queries] = (histogram.n_database > 1) & is_whole.any(axis=1)
        for name, radius in self.radii.items():
            is_scored = (histogram.n_relevant > 0) | (name.endswith(":skip") and self.undefined != "skip")
            self.is_empty[name][queries] = is_scored & ~histogram.size[:, : radius + 1].any(axis=1)
        for metric in self.metrics:
            scores = metric.scores(histogram, self.undefined)
            for out, values in zip(self.scores[metric.name], scores, strict=True):
                out[queries] = values
        for metric in self._elsewhere:
            self._means[metric.name][queries] = metric.scores(histogram, self.undefined).mean

    def evaluation(self, origin: Rows = _ALL, kinds: IntArray | None = None) -> Evaluation:
        """Return the scores of all queries; of each query, those of the row ``origin``."""
        scores = {name: Scores(*(part[origin] for part in parts)) for name, parts in self.scores.items()}
        n_empty = {name: int(is_empty[origin].sum()) for name, is_empty in self.is_empty.items()}
        effects, n_relevant = self.items.effects(origin) if self.items else {}, self.n_relevant[origin]
        return Evaluation(
            scores,
            int((n_relevant == 0).sum()),
            kinds=kinds,
            n_relevant=n_relevant,
            n_empty=n_empty,
            order_effects=effects,
        )

    def readings(self, origin: Rows = _ALL) -> list[str]:
        """Return notes on spellings with several meanings, with the means of all of them over the queries."""
        means = {name: parts.mean for name, parts in self.scores.items()} | self._means
        return readings(self.metrics, {name: mean[origin] for name, mean in means.items()})


class ItemSums:
    """Sums over queries of the covariances of their scores with the key of each of some items of ``n_items``.

    ``n_alike`` is how many queries each stands for. ``keys``, (n_rows, n_keys), differ where a row of other data holds
    another item.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        n_queries: int,
        rows: IntArray,
        n_items: int,
        n_alike: IntArray | None = None,
        keys: IntArray | None = None,
    ) -> None:
        self._metrics = [metric for metric in metrics if metric.family.slopes is not None]
        self._rows, self._n_items, self._n_alike = rows, n_items, n_alike
        self._names = rows if keys is None else row_hashes(rows[:, None], keys).view(np.int64)
        n_columns = len(self._metrics) + -len(self._metrics) % 4
        self._sums = np.zeros((len(rows), n_columns))
        self._remainders = np.zeros((len(self._metrics), n_queries))

    def parts(self, queries: slice, n_cells: int) -> list[slice]:
        """Cut queries into parts whose tables fit into memory, the same with any number of processors."""
        bytes_per_query = 8 * self._sums.shape[1] * n_cells
        share = min(max(-(-(queries.stop - queries.start) // _PARTS), _FEWEST), _MOST)
        return chunks(queries.start, queries.stop, max(min(_TABLES // max(bytes_per_query, 1), share), 1))

    def zeros(self) -> FloatArray:
        """Return the sums of no queries."""
        return np.zeros_like(self._sums)

    def add_to(self, sums: FloatArray, queries: slice, counted: Counted, scores: Mapping[str, Scores]) -> None:
        """Add the sums of some queries, given the scores of all queries."""
        histogram, add = counted
        counts = histogram.counts
        for number, metric in enumerate(self._metrics):
            self._remainders[number, queries] = scores[metric.name].tie_sd[queries]
        if not self._metrics or (histogram.size < 2).all():
            return
        tables = np.zeros((len(counts), counts[0].size + 1, sums.shape[1]))  # the last cell stays 0
        for number, metric in enumerate(self._metrics):
            slopes, explained = cast("Slopes", metric.slopes(histogram)), np.empty(len(counts))
            _loops.item_covariances(counts, *slopes, tables[:, :, number], explained)
            remainder = self._remainders[number, queries]
            remainder[:] = np.sqrt(np.maximum(remainder**2 - explained, 0))
        if self._n_alike is not None:
            tables *= self._n_alike[queries, None, None]
        if add is not None:
            add(tables, sums)

    def add(self, sums: FloatArray) -> None:
        """Add the sums of some queries."""
        self._sums += sums

    def effects(self, origin: Rows = _ALL) -> dict[str, OrderEffect]:
        """Return the effect of an order by metric, with the remainders of all queries: each that of row ``origin``."""
        scaled = self._sums.T * math.sqrt(12 * self._n_items / max(len(self._rows), 1))
        return {
            metric.name: OrderEffect.of_items(remainder[origin], self._names, of_items)
            for metric, remainder, of_items in zip(self._metrics, self._remainders, scaled, strict=False)
        }
