"""Codes that are counted on the workers of a Dask cluster, some rows of the database each, and added up here.

Only paths of files, codes of queries and counts are sent; workers open the files.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import islice
from operator import add
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, Progress, Rows, SliceableCodes, silent
from hashbench.affinity import Affinity
from hashbench.bits import to_words
from hashbench.errors import HashbenchError, one_line
from hashbench.pipeline.cluster import Cluster, Tasks, UnfitWorker, connected, prepared_worker, version_difference
from hashbench.scoring.counting import count, database_blocks
from hashbench.scoring.hamming import HammingRanking
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.item_sample import PackedSample, Sample
from hashbench.scoring.metrics import Metric
from hashbench.store.provenance import SCORES_VERSION, versions

if TYPE_CHECKING:
    from distributed import Future

TASK_ROWS = 1 << 22  # most rows of a database for one worker at a time
_BLOCK_ROWS = 1 << 18  # of these, codes and labels, that a worker holds at a time
_AHEAD = 4  # parts of a database per worker that are submitted before others are done
_SCORING = ("numpy", "numba")  # libraries that counts depend on
_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class CountedRows:
    """What is known of some rows of the database; that of several adds up."""

    histogram: TieHistogram
    sample: Sample

    def __add__(self, other: "CountedRows") -> "CountedRows":
        return CountedRows(self.histogram + other.histogram, self.sample + other.sample)


class _Parts(Protocol):
    def part(self, query: Rows, database: slice, /) -> Affinity: ...


def count_rows(query: ByteArray, database: SliceableCodes, n_bits: int, relevance: _Parts, rows: slice) -> CountedRows:
    """Count packed codes against some rows of the database, and draw a sample of these; all is read once."""

    def counted(block: slice) -> CountedRows:
        affinity, packed = relevance.part(_ALL, block), np.asarray(database[block])
        histogram = count(query, database_blocks(packed, n_bits, affinity), n_bits, affinity, slice(0, len(query)))
        return CountedRows(histogram, Sample.draw(to_words(packed), affinity.item_keys(), block.start))

    return reduce(add, map(counted, chunks(rows.start, rows.stop, _BLOCK_ROWS)))


@dataclass(frozen=True, eq=False)
class RankingOnWorkers(HammingRanking):
    """Codes of a database that workers read, each some rows of it; of an affinity in memory they get only its rows."""

    cluster: Cluster = field(kw_only=True)
    on_progress: Progress = field(default=silent, kw_only=True)

    @property
    def is_whole(self) -> bool:
        """Whether the database lies in this process."""
        return False

    def check(self, metric: Metric) -> None:
        """Refuse a metric that re-ranks, too, which needs codes and vectors in one process."""
        if metric.family.needs_candidates:
            raise HashbenchError(
                f"{metric.name} re-ranks by vectors in this process, and workers count Hamming distances; leave one of "
                "the two out."
            )
        super().check(metric)

    @cached_property
    def sample(self) -> PackedSample:
        """Items that stand for the database, drawn where it is counted."""
        return PackedSample.of_sample(self._first.sample, self.query, self.n_bits, self.relevance)

    @cached_property
    def _first(self) -> CountedRows:
        """The first queries, whose histograms fit memory, counted against the whole database."""
        return self._count(slice(0, self.at_a_time))

    def histogram(self, queries: slice, on_counted: Callable[[int], None] = lambda n_counted: None) -> TieHistogram:
        """Count some queries; see `HammingRanking.histogram`."""
        counted = self._first if queries.start == 0 else self._count(queries)
        on_counted(counted.histogram.n_queries)
        return counted.histogram

    def _count(self, queries: slice) -> CountedRows:
        ranking = self.part(queries)
        with connected(self.cluster) as client:
            from distributed import KilledWorker

            n_workers = max(1, len(client.scheduler_info()["workers"]))
            parts = chunks(0, self.n_items, min(TASK_ROWS, max(1, -(-self.n_items // (4 * n_workers)))))
            expected = SCORES_VERSION, versions(_SCORING)

            def send(number: int, placed: dict[str, Any]) -> "Future":
                part, relevance = parts[number], ranking.relevance
                sent: _Parts = relevance
                if not relevance.is_read_in_slices:
                    sent = _AffinityRows(relevance.part(_ALL, part), part.start)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # of its size: each part is sent once
                    return client.submit(
                        _count, expected, ranking.query, self.database, self.n_bits, sent, part, **placed
                    )

            tasks, waiting = Tasks(client, self.cluster.scheduler, self.on_progress, send), iter(range(len(parts)))
            for number in islice(waiting, _AHEAD * n_workers):
                tasks.start(number)

            def counted() -> Iterator[CountedRows]:
                for n_done, (_, future) in enumerate(tasks, start=1):
                    try:
                        rows: CountedRows = future.result()
                    except KilledWorker as error:
                        raise HashbenchError(
                            "workers were killed while counting, probably out of memory. Give them more, or fewer "
                            "queries."
                        ) from error
                    yield rows
                    self.on_progress("parts of the database counted", n_done, len(parts))
                    for number in islice(waiting, 1):
                        tasks.start(number)

            return reduce(add, counted())


def _count(expected: tuple[int, dict[str, str]], *args: Any) -> CountedRows:
    """Count rows in a worker, if it counts as the client would."""
    worker = prepared_worker()
    actual = SCORES_VERSION, versions(_SCORING)
    if actual != expected:
        raise UnfitWorker(worker, version_difference(actual[1], expected[1]))
    try:
        return count_rows(*args)
    except Exception as error:
        reason = str(error) if isinstance(error, HashbenchError) else f"{type(error).__name__}: {one_line(error)}"
        raise HashbenchError(f"worker {worker}: {reason}") from error


@dataclass(frozen=True)
class _AffinityRows:
    """An affinity of consecutive rows, addressed by their numbers in the whole database."""

    affinity: Affinity
    first: int

    def part(self, query: Rows, database: slice) -> Affinity:
        return self.affinity.part(query, slice(database.start - self.first, database.stop - self.first))
