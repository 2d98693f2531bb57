"""What a database in shards costs on workers.

    .venv/bin/python benchmarks/scale.py [--workers N] [--largest ROWS]

Codes of 64 bits and labels of ten classes, which every worker computes from row numbers, so that no disk is measured.
Prints Markdown for docs/scale.md: seconds from the command to the scores, pairs per second and worker, and the most
memory that a worker had.
"""

import argparse
import resource
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from distributed import LocalCluster

from hashbench import evaluate
from hashbench.affinity import Affinity, SameLabel
from hashbench.bits import unpack
from hashbench.pipeline.cluster import Cluster, RankingOnWorkers
from hashbench.scoring.hamming import HammingRanking
from hashbench.scoring.problem import Problem

METRICS = ["AP", "P@100"]
N_QUERIES, N_ROWS = 10_000, 10**6


def mixed(numbers):
    """Mix the bits of whole numbers by splitmix64 (Steele, Lea and Flood, 2014)."""
    numbers = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class SyntheticCodes:
    """Codes and labels that are computed from row numbers on access."""

    n_queries: int
    n_database: int

    @property
    def shape(self):
        """Rows and bytes of the database."""
        return self.n_database, 8

    def __getitem__(self, rows):
        return mixed(np.arange(rows.start, rows.stop)).view(np.uint8).reshape(-1, 8)

    def labels(self, rows):
        """Compute the labels of some rows."""
        return (mixed(rows + (1 << 62)) % 10).astype(np.int64)

    @property
    def queries(self):
        """Codes and labels of the queries."""
        first = 1 << 40
        return self[slice(first, first + self.n_queries)], self.labels(np.arange(first, first + self.n_queries))

    @cached_property
    def relevance(self):
        """The affinity of queries to rows, whose labels are computed when they are read."""
        return SyntheticLabels(self)


class SyntheticLabels(Affinity):
    """Equal labels; each query is counted."""

    is_read_in_slices = True
    levels = np.array([0, 1])

    def __init__(self, codes):
        self.codes, self.n_queries, self.n_database = codes, codes.n_queries, codes.n_database

    def part(self, query=slice(None), database=slice(None)):
        """Return the affinity of some queries to some rows."""
        rows = np.arange(*database.indices(self.n_database)) if isinstance(database, slice) else database
        return SameLabel(self.codes.queries[1][query], self.codes.labels(rows))

    def block(self, query, database):
        """Compute the levels of a block."""
        return self.part(query, database).block(slice(None), slice(None))


def score(codes, cluster=None):
    """Score in this process or on a cluster; return the evaluation and the seconds."""
    parts = codes.queries[0], codes, 64, codes.relevance
    start = time.perf_counter()
    if cluster is None:
        ranking = HammingRanking(*parts)
    else:
        ranking = RankingOnWorkers(*parts, cluster=Cluster(cluster.scheduler_address))
    evaluation = Problem.of_ranking(ranking).evaluate(METRICS)
    return evaluation, time.perf_counter() - start


def peak():
    """Return the peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def workers(n_workers):
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0")


def measure(codes, n_workers):
    """Measure one size on workers of one thread each, warmed up; return a line of the table."""
    with workers(n_workers) as cluster:
        assert len(cluster.workers) == n_workers
        score(SyntheticCodes(16, 1000 * n_workers), cluster)  # imports, compiled loops
        _, seconds = score(codes, cluster)
        with cluster.get_client() as client:
            memory = max(client.run(peak).values())
    rate = codes.n_queries * codes.n_database / seconds / n_workers
    cells = (
        f"{codes.n_database:,}",
        f"{codes.n_queries:,}",
        n_workers,
        f"{seconds:,.1f}",
        f"{rate / 1e9:.2f}",
        f"{memory:,.0f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--largest", type=int, default=10**9, help="Rows of the largest, which 100 queries search.")
    options = parser.parse_args()

    small = SyntheticCodes(50, 100_000)
    with workers(options.workers) as cluster:
        on_workers, _ = score(small, cluster)
    everything = slice(0, small.n_database)
    unpacked = (unpack(packed, 64) for packed in (small.queries[0], small[everything]))
    whole = evaluate(*unpacked, small.part(slice(None), everything), METRICS)
    same = all(np.array_equal(on_workers.scores[name], whole.scores[name]) for name in METRICS)
    print(f"{'the same scores as of one array' if same else 'OTHER SCORES'}\n")

    print("| items | queries | workers | seconds | 10^9 pairs per second and worker | MB per worker |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n_workers in sorted({1, options.workers}):
        print(measure(SyntheticCodes(N_QUERIES, N_ROWS), n_workers), flush=True)
    print(measure(SyntheticCodes(100, options.largest), options.workers), flush=True)


if __name__ == "__main__":
    main()
