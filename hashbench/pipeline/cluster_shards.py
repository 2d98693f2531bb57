"""Shards of a database on the workers of a Dask cluster: counted there, added up here.

Only paths of files, codes of queries and counts are sent; workers open the shards.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from typing import TYPE_CHECKING, Any

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, Progress, Rows, silent
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError, one_line
from hashbench.pipeline.cluster import Cluster, Tasks, UnfitWorker, connected, prepared_worker, version_difference
from hashbench.scoring.counting import SliceableCodes
from hashbench.scoring.ignored import Parts, Relevance
from hashbench.scoring.shards import Shard, count_shard
from hashbench.store.provenance import SCORES_VERSION, versions

if TYPE_CHECKING:
    from distributed import Future

TASK_ROWS = 1 << 22  # most rows of a database for one worker at a time
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
    """Count as `hashbench.scoring.shards.count_shard` does, some rows per worker, and add up.

    Every row is read by one worker. Of an affinity in memory, a worker gets only its rows.
    """
    with connected(cluster) as client:
        from distributed import KilledWorker

        n_rows = rows.stop - rows.start
        n_workers = max(1, len(client.scheduler_info()["workers"]))
        parts = chunks(rows.start, rows.stop, min(TASK_ROWS, max(1, -(-n_rows // (4 * n_workers)))))
        expected = SCORES_VERSION, versions(_SCORING)

        def send(number: int, placed: dict[str, Any]) -> "Future":
            part = parts[number]
            sent: Parts = relevance
            if isinstance(relevance, Affinity):
                sent = _AffinityRows(relevance.part(slice(None), part), part.start)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of its size: each part is sent once
                return client.submit(_count, expected, query, database, n_bits, sent, part, queries, **placed)

        tasks, waiting = Tasks(client, cluster.scheduler, on_progress, send), iter(range(len(parts)))
        for number in islice(waiting, _AHEAD * n_workers):
            tasks.start(number)

        def counted() -> Iterator[Shard]:
            for n_done, (_, future) in enumerate(tasks, start=1):
                try:
                    shard: Shard = future.result()
                except KilledWorker as error:
                    raise HashbenchError(
                        "workers were killed while counting, probably out of memory. Give them more, or fewer queries."
                    ) from error
                yield shard
                on_progress("parts of the database counted", n_done, len(parts))
                for number in islice(waiting, 1):
                    tasks.start(number)

        return reduce(add, counted())


def _count(expected: tuple[int, dict[str, str]], *args: Any) -> Shard:
    """Count rows in a worker, if it counts as the client would."""
    worker = prepared_worker()
    actual = SCORES_VERSION, versions(_SCORING)
    if actual != expected:
        raise UnfitWorker(worker, version_difference(actual[1], expected[1]))
    try:
        return count_shard(*args)
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
