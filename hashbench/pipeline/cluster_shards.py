"""Shards of a database on the workers of a Dask cluster: counted there, added up in a tree.

Only paths of files, codes of queries and counts are sent; workers open the shards.
"""

import warnings
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from typing import TYPE_CHECKING, Any

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, Progress, Rows, silent
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError, one_line
from hashbench.pipeline.cluster import (
    Cluster,
    OtherWorkers,
    Unfit,
    as_ready,
    connected,
    prepared_worker,
    version_difference,
)
from hashbench.scoring.counting import SliceableCodes
from hashbench.scoring.shards import Parts, Relevance, Shard, count_shard
from hashbench.store.provenance import SCORES_VERSION, versions

if TYPE_CHECKING:
    from distributed import Future

TASK_ROWS = 1 << 22  # most rows of a database for one worker at a time
_ADDED = 8  # histograms added in one task
_AHEAD = 4  # parts of a database per worker that are submitted before others are done
_SCORING = ("numpy", "numba")  # libraries that counts depend on


def count_on_workers(
    query: ByteArray,
    database: SliceableCodes,
    n_bits: int,
    relevance: Relevance,
    rows: slice,
    queries: Rows = slice(None),
    *,
    cluster: Cluster,
    on_progress: Progress = silent,
) -> Shard:
    """Count as `hashbench.scoring.shards.count_shard` does, some rows per worker, and add up in a tree.

    Every row is read by one worker. Of an affinity in memory, a worker gets only its rows.
    """
    with connected(cluster) as client:
        from distributed import KilledWorker, as_completed

        n_rows = rows.stop - rows.start
        n_workers = max(1, len(client.scheduler_info()["workers"]))
        parts = chunks(rows.start, rows.stop, min(TASK_ROWS, max(1, -(-n_rows // (4 * n_workers)))))
        expected = SCORES_VERSION, versions(_SCORING)
        others, running = OtherWorkers(client, on_progress), as_completed([], loop=client.loop)
        under_way: dict[Future, slice | None] = {}  # parts, and sums
        counted: list[Future] = []
        n_done = 0

        def submit(part: slice, workers: list[str] | None = None) -> None:
            sent: Parts = relevance
            if isinstance(relevance, Affinity):
                sent = _AffinityRows(relevance.part(slice(None), part), part.start)
            task = query, database, n_bits, sent, part, queries
            is_placed = workers is not None  # these may be gone by then
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of its size: each part is sent once
                future: Future = client.submit(
                    _count, expected, *task, pure=False, workers=workers, allow_other_workers=is_placed
                )
            under_way[future] = part
            running.add(future)

        waiting = iter(parts)
        for part in islice(waiting, _AHEAD * n_workers):
            submit(part)
        for future in as_ready(running, client, cluster.scheduler, on_progress):
            shard, error = under_way.pop(future), future.exception()  # the histogram stays on the worker
            if isinstance(error, KilledWorker):
                raise HashbenchError(
                    "workers were killed while counting, probably out of memory. Give them more, or fewer queries."
                ) from error
            if isinstance(error, _UnfitWorker) and shard and (workers := others.after(error.unfit, shard.start)):
                submit(shard, workers)
                continue
            if error is not None:
                raise error
            counted.append(future)
            if shard is not None:
                n_done += 1
                on_progress("parts of the database counted", n_done, len(parts))
                for part in islice(waiting, 1):
                    submit(part)
            if len(counted) == _ADDED or (len(counted) > 1 and not under_way):
                united = client.submit(_added, *counted, pure=False)
                under_way[united] = None
                running.add(united)
                counted.clear()
        total: Shard = counted[0].result()
        return total


class _UnfitWorker(HashbenchError):
    """Raised in a worker that would not count as the client does."""

    def __init__(self, worker: str, why: str) -> None:
        super().__init__(worker, why)
        self.unfit = Unfit(worker, why)

    def __str__(self) -> str:
        return "worker {} {}".format(*self.unfit)


def _count(expected: tuple[int, dict[str, str]], *args: Any) -> Shard:
    """Count rows in a worker, if it counts as the client would."""
    worker = prepared_worker()
    if isinstance(worker, Unfit):
        raise _UnfitWorker(*worker)
    actual = SCORES_VERSION, versions(_SCORING)
    if actual != expected:
        raise _UnfitWorker(worker, version_difference(actual[1], expected[1]))
    try:
        return count_shard(*args)
    except Exception as error:
        reason = str(error) if isinstance(error, HashbenchError) else f"{type(error).__name__}: {one_line(error)}"
        raise HashbenchError(f"worker {worker}: {reason}") from error


def _added(*shards: Shard) -> Shard:
    return reduce(add, shards)


@dataclass(frozen=True)
class _AffinityRows:
    """An affinity of consecutive rows, addressed by their numbers in the whole database."""

    affinity: Affinity
    first: int

    def part(self, query: Rows, database: slice) -> Affinity:
        return self.affinity.part(query, slice(database.start - self.first, database.stop - self.first))
