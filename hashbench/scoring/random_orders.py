"""Scores under random orders of the database, each shared by all queries.

For each query and order, one pass drops the items, in that order, into the ranks of their tie: no sort.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks, compiled_or, in_threads
from hashbench._typing import AnyArray, FloatArray, IntArray, Progress, Rows, silent
from hashbench.affinity import Affinity, level_indices
from hashbench.errors import HashbenchError
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.histogram import TieHistogram, count_groups
from hashbench.scoring.metrics import Metric, get_metric

_MEMORY = 64 << 20  # bytes of ranked items held at a time by one thread
_MOST_ORDERS = 1_000_000  # each adds a number to the result


class Ties(NamedTuple):
    """The tie group and the level of each item, for some queries."""

    group: AnyArray  # (n_queries, n_items), by rank; below 0 beyond the end of a shorter ranking
    level: AnyArray  # (n_queries, n_items), index of the level
    histogram: TieHistogram  # their counts

    @classmethod
    def of(cls, group: AnyArray, affinity: Affinity, queries: Rows) -> Self:
        """Count the items of some queries by tie and level; tie groups are (n_queries, n_database)."""
        block = affinity.block(queries, slice(None))
        level = level_indices(affinity.levels, block)
        if affinity.ignores:
            group = np.where(block < 0, -1, group)
        return cls(group, level, count_groups(level, group, affinity.levels))

    @property
    def cells(self) -> IntArray:
        """The cell of each item in the counts of its query, level * n_groups + group; -1 if it is not ranked."""
        cells = self.level.astype(np.int64) * self.histogram.counts.shape[2] + self.group
        return np.where(self.group < 0, -1, cells)

    def ranked(self, order: IntArray) -> TieHistogram:
        """Count the rankings without ties in which tied items are in an order.

        The order is (n_items,), shared by all queries, or (n_queries, n_items).
        """
        histogram, order = self.histogram, np.atleast_2d(order)
        ranks = np.empty(self.group.shape, dtype=np.int16)  # the level at each rank
        _place(self.group, self.level, order, histogram.before, ranks)
        return without_ties(ranks, histogram.levels, histogram.n_database, histogram.unretrieved)


def without_ties(
    ranks: npt.NDArray[np.int16],
    levels: AnyArray,
    n_ranked: IntArray | None = None,
    unretrieved: IntArray | None = None,
) -> TieHistogram:
    """Count rankings without ties, given the index of the level at each rank, (n_queries, n_items).

    Neighbours of one level are one group, since their order does not matter. ``n_ranked`` is the number of ranked
    items of each query, by default all.
    """
    if n_ranked is None:
        n_ranked = np.full(len(ranks), ranks.shape[1])
    counts = _count_runs(ranks, n_ranked, len(levels))
    return TieHistogram(counts, levels, by_radius=False, unretrieved=unretrieved)


def check_orders(n_orders: int, metrics: Iterable[Metric]) -> None:
    """Refuse fewer than two orders, too many, and metrics that re-rank."""
    if not isinstance(n_orders, Integral) or not 2 <= n_orders <= _MOST_ORDERS:
        raise HashbenchError(
            f"random_orders is {n_orders!r}, expected a whole number from 2 to {_MOST_ORDERS:,}. With 1,000 orders the "
            "deviation is known to about 2 %."
        )
    reranked = next((metric.name for metric in metrics if metric.family.needs_candidates), None)
    if reranked is not None:
        raise HashbenchError(
            f"{reranked} cannot be measured under random orders, since re-ranking sets the order; its exact "
            "tie_sd is computed. Leave it or random_orders out."
        )


def measure(
    evaluation: Evaluation,
    rankings: Callable[[IntArray], Callable[[IntArray], TieHistogram]],
    n_items: int,
    undefined: str,
    n_orders: int,
    on_progress: Progress = silent,
    *,
    alike: IntArray | None = None,
    are_real: bool = False,
) -> Evaluation:
    """Add to an evaluation the means over its queries under random orders of ``n_items``, each shared by all queries.

    For some queries, ``rankings`` returns a function from an order to their histogram. Queries with equal numbers
    ``alike``, by default of one kind, are scored once. The orders are the same each time, and `check_orders` has
    allowed them. Of levels that ``are_real`` there may be one for each item: queries are then counted one by one.
    """
    metrics = [get_metric(name, of_run=evaluation.of_run).without_form() for name in evaluation.scores]
    _, first, sizes = np.unique(evaluation.kind if alike is None else alike, return_index=True, return_counts=True)
    scores = evaluation.scores
    varying = [metric for metric in metrics if (scores[metric.name].low < scores[metric.name].high).any()]
    at_a_time = 1 if are_real else max(_MEMORY // (32 * n_items), 1)
    parts = chunks(0, len(first), at_a_time)

    def score(part: slice) -> tuple[FloatArray, FloatArray]:
        ranked = rankings(first[part])
        sums, n_counted = np.zeros((len(varying), n_orders)), np.zeros(len(varying))
        for number in range(n_orders):
            order = np.random.default_rng([0, number]).permutation(n_items)
            histogram = ranked(order)
            for place, metric in enumerate(varying):
                mean = metric.scores(histogram, undefined).mean
                is_counted = ~np.isnan(mean)
                sums[place, number] = mean[is_counted] @ sizes[part][is_counted]
                n_counted[place] = sizes[part][is_counted].sum()
        return sums, n_counted

    sums, n_counted = np.zeros((len(varying), n_orders)), np.zeros(len(varying))
    for n_done, (part_sums, n_part) in enumerate(in_threads(score, parts), start=1):
        sums, n_counted = sums + part_sums, n_counted + n_part
        on_progress("parts of the queries under random orders", n_done, len(parts))
    measured = dict(zip((metric.name for metric in varying), sums / np.maximum(n_counted, 1)[:, None], strict=True))
    constant = {name: np.full(n_orders, values.mean) for name, values in evaluation.summary.items()}
    return replace(evaluation, random_orders=constant | measured)


def _place_by_sorting(group: AnyArray, level: AnyArray, order: IntArray, before: IntArray, ranks: AnyArray) -> None:
    for q, groups in enumerate(group):
        items = order[min(q, len(order) - 1)]
        items = items[groups[items] >= 0]
        items = items[np.argsort(groups[items], kind="stable")]
        ranks[q, : len(items)] = level[q, items]


@compiled_or(_place_by_sorting)
def _place(group, level, order, before, ranks):  # type: ignore[no-untyped-def]
    """Put the level of each item, taken in that order, at the next rank of its tie."""
    n_groups = before.shape[1]
    fill = np.empty(n_groups, dtype=np.int64)
    for q in range(len(group)):
        for g in range(n_groups):
            fill[g] = before[q, g]
        for i in order[min(q, len(order) - 1)]:
            g = group[q, i]
            if g >= 0:
                ranks[q, fill[g]] = level[q, i]
                fill[g] += 1


def _count_runs_in_numpy(ranks: npt.NDArray[np.int16], n_ranked: IntArray, n_levels: int) -> IntArray:
    level = [row[:n].astype(np.int64) for row, n in zip(ranks, n_ranked, strict=True)]
    run = [np.cumsum(np.diff(levels, prepend=levels[:1]) != 0) for levels in level]
    n_runs = max([1, *(int(runs[-1]) + 1 for runs in run if runs.size)])
    cells = (levels * n_runs + runs for levels, runs in zip(level, run, strict=True))
    counts = [np.bincount(cell, minlength=n_levels * n_runs) for cell in cells]
    return np.array(counts, dtype=np.int64).reshape(len(ranks), n_levels, n_runs)


@compiled_or(_count_runs_in_numpy)
def _count_runs(ranks, n_ranked, n_levels):  # type: ignore[no-untyped-def]
    """Count the items of each run of equal levels as one group."""
    n_runs = 1
    for q in range(len(ranks)):
        run = 1
        for rank in range(1, n_ranked[q]):
            run += int(ranks[q, rank] != ranks[q, rank - 1])
        n_runs = max(n_runs, run)
    counts = np.zeros((len(ranks), n_levels, n_runs), np.int64)
    for q in range(len(ranks)):
        run = 0
        for rank in range(n_ranked[q]):
            if rank > 0 and ranks[q, rank] != ranks[q, rank - 1]:
                run += 1
            counts[q, ranks[q, rank], run] += 1
    return counts
