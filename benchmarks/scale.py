"""What a database in shards costs on workers: measured where this machine reaches, computed from that elsewhere.

    .venv/bin/python benchmarks/scale.py [--workers N] [--largest ROWS]

Codes of 64 bits and labels of ten classes, which every worker makes from row numbers, so that no disk is measured.
Prints Markdown for docs/scale.md: seconds from the command to the scores, pairs per second and worker, the most memory
that a worker had, and what goes over the network.
"""

import argparse
import pickle
import resource
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from distributed import LocalCluster

from hashbench import evaluate
from hashbench.affinity import SameLabel
from hashbench.bits import unpack
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.cluster_shards import TASK_ROWS, count_on_workers
from hashbench.scoring.shards import ShardedCodes

METRICS = ["AP", "P@100"]
SIZES, WORKERS, N_QUERIES = (10**6, 10**8, 10**9), (1, 10, 100), 10_000


def mixed(numbers):
    """Mix the bits of whole numbers by splitmix64 (Steele, Lea and Flood, 2014)."""
    numbers = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class Made:
    """Codes and labels of rows, made when they are asked for."""

    n_queries: int
    n_database: int

    @property
    def shape(self):
        """Rows and bytes of the database."""
        return self.n_database, 8

    def __getitem__(self, rows):
        return mixed(np.arange(rows.start, rows.stop)).view(np.uint8).reshape(-1, 8)

    def labels(self, start, stop):
        """Make the labels of some rows."""
        return (mixed(np.arange(start, stop) + (1 << 62)) % 10).astype(np.int64)

    @property
    def queries(self):
        """Codes and labels of the queries."""
        first = 1 << 40
        return self[slice(first, first + self.n_queries)], self.labels(first, first + self.n_queries)

    def part(self, query, database):
        """Give the affinity of some queries to some rows."""
        return SameLabel(self.queries[1][query], self.labels(database.start, database.stop))

    def query_keys(self):
        """Let each query be counted."""
        return


def score(made, cluster=None):
    """Score in this process or on a cluster; gives the scores and the seconds."""
    count = {} if cluster is None else {"count": partial(count_on_workers, cluster=Cluster(cluster.scheduler_address))}
    start = time.perf_counter()
    found = ShardedCodes(made.queries[0], made, 64, made, **count).evaluate(METRICS)
    return found, time.perf_counter() - start


def peak():
    """Tell the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def workers(n_workers):
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0")


def measure(made, n_workers):
    """Measure one size on workers of one thread each, warmed up; gives a line, and pairs per second and worker."""
    with workers(n_workers) as cluster:
        assert len(cluster.workers) == n_workers
        score(Made(16, 1000 * n_workers), cluster)  # imports, compiled loops
        _, seconds = score(made, cluster)
        with cluster.get_client() as client:
            memory = max(client.run(peak).values())
    rate = made.n_queries * made.n_database / seconds / n_workers
    cells = (
        f"{made.n_database:,}",
        f"{made.n_queries:,}",
        n_workers,
        f"{seconds:,.1f}",
        f"{rate / 1e9:.2f}",
        f"{memory:,.0f}",
    )
    line = f"| {' | '.join(map(str, cells))} |"
    return line, rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--largest", type=int, default=10**9, help="Rows of the largest, which 100 queries search.")
    chosen = parser.parse_args()

    small = Made(50, 100_000)
    with workers(chosen.workers) as cluster:
        on_workers, _ = score(small, cluster)
    everything = slice(0, small.n_database)
    codes = (unpack(packed, 64) for packed in (small.queries[0], small[everything]))
    whole = evaluate(*codes, small.part(slice(None), everything), METRICS)
    same = all(np.array_equal(on_workers.scores[name], whole.scores[name]) for name in METRICS)
    print(f"{'the same scores as of one array' if same else 'OTHER SCORES'}\n")

    print("| items | queries | workers | seconds | 10^9 pairs per second and worker | MB per worker |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n_workers in sorted({1, chosen.workers}):
        line, rate = measure(Made(N_QUERIES, SIZES[0]), n_workers)
        print(line, flush=True)
    print(measure(Made(100, chosen.largest), chosen.workers)[0], flush=True)

    histogram = 8 * N_QUERIES * 2 * 65
    task = len(pickle.dumps(Made(N_QUERIES, SIZES[0]).queries))
    print(
        f"\nA task of {TASK_ROWS:,} rows is sent {task / 1e3:,.0f} kB and gives {histogram / 1e6:.1f} MB of counts.\n"
    )
    print("| items | queries | workers | computed seconds | computed GB over the network |")
    print("|---:|---:|---:|---:|---:|")
    for n_rows in SIZES:
        for n_workers in WORKERS:
            n_tasks = max(-(-n_rows // TASK_ROWS), 4 * n_workers)
            cells = f"{n_rows * N_QUERIES / rate / n_workers:,.1f}", f"{n_tasks * (task + histogram) / 1e9:.2f}"
            print(f"| {n_rows:,} | {N_QUERIES:,} | {n_workers} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
