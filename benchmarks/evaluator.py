"""The evaluator side by side with the tools that people use, in one run; ratios, not seconds, are the claim.

    make bench        or        .venv/bin/python benchmarks/evaluator.py [--quick]

The peers, all on the same codes and with as many threads as they take:

- ``faiss``: ``IndexBinaryFlat.search`` of the 100 nearest; it only finds neighbours and scores nothing;
- ``argsort``: the evaluator of most hashing repositories, query by query: +-1 dot product, argsort,
  cumulative sums; on some queries, scaled to all of them. NumPy's default sort depends on the CPU, and so
  does the order of ties; ``stable`` is the same with a stable sort, whose numbers anyone can repeat;
- ``ndcg_score``: scikit-learn's, which averages over ties too, on some queries, scaled;
- ``trm``: the PyPI package tie-aware-retrieval-metrics, on some queries, scaled. It takes distances that are
  already computed.

Counts of pairs by radius, as `hashbench thresholds` makes them, stand beside ``IndexBinaryFlat.range_search`` at a
small radius, and NumPy's ``bitwise_count``, query by query, on some queries, scaled; both must count the same pairs.

hashbench computes AP, NDCG, P@100 and AP@1000, each with mean, low and high. Its times are the best of
several runs, without compilation; peers' are the best of as many runs, or one run if it takes long.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._parallel import n_processors
from hashbench.affinity import Affinity, SameLabel, SharedLabels
from hashbench.bits import pack
from hashbench.scoring.problem import Problem

METRICS = ("AP", "NDCG", "P@100", "AP@1000")
SHAPES = {  # queries, database, classes, multi-label
    "CIFAR-10 S1": (1_000, 59_000, 10, False),
    "CIFAR-10 S2": (10_000, 50_000, 10, False),
    "NUS-WIDE": (2_100, 193_734, 21, True),
    "ImageNet100": (5_000, 128_503, 100, False),
}


class Case(NamedTuple):
    """Codes and what is relevant."""

    query: npt.NDArray[np.bool_]
    database: npt.NDArray[np.bool_]
    affinity: Affinity


def make_case(
    n_queries: int, n_database: int, n_classes: int, multi_label: bool, n_bits: int, kind: str, seed: int = 0
) -> Case:
    """Draw codes around one centre a class: ``spread`` bits flip often, ``collapsed`` ones rarely."""
    rng = np.random.default_rng(seed)
    n_items = n_queries + n_database
    main = rng.integers(0, n_classes, n_items)
    centres = rng.random((n_classes, n_bits)) < 0.5
    flips = {"spread": 0.3, "collapsed": 0.005}[kind]
    codes = centres[main] ^ (rng.random((n_items, n_bits), dtype=np.float32) < flips)
    affinity: Affinity
    if multi_label:
        labels = (rng.random((n_items, n_classes), dtype=np.float32) < 1 / n_classes).astype(np.uint8)
        labels[np.arange(n_items), main] = 1
        affinity = SharedLabels(labels[:n_queries], labels[n_queries:])
    else:
        affinity = SameLabel(main[:n_queries], main[n_queries:])
    return Case(codes[:n_queries], codes[n_queries:], affinity)


def best(work: Callable[[], Any], repeats: int = 3) -> float:
    """Time some work: the best of several runs, only one if it is long."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        if times[0] > 20:
            break
    return min(times)


def best_in_turn(works: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Time pieces of work in turn, again and again, so that a slow minute of the machine meets them all.

    Each runs three times: at its first, OpenMP's threads, which faiss uses, may still be spinning for the one before.
    """
    rounds = [[best(work) for work in works] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


def by_hashbench(case: Case) -> Callable[[], Any]:
    query, database, n_bits = pack(case.query), pack(case.database), case.query.shape[1]
    return lambda: Problem.of_packed(query, database, n_bits, case.affinity).evaluate(METRICS)


def time_hashbench(case: Case) -> float:
    return best(by_hashbench(case), 5)


def by_faiss(case: Case) -> Callable[[], Any]:
    import faiss

    faiss.omp_set_num_threads(n_processors())
    index = faiss.IndexBinaryFlat(case.query.shape[1])
    index.add(pack(case.database))
    query = pack(case.query)
    return lambda: index.search(query, 100)


def with_single_labels(case: Case) -> Case:
    """Return the same codes, of items that keep only the first of their labels."""
    assert isinstance(case.affinity, SharedLabels)
    first = (labels.argmax(axis=1) for labels in (case.affinity.query_labels, case.affinity.database_labels))
    return Case(case.query, case.database, SameLabel(*first))


def time_argsort(case: Case, n_queries: int, kind: Literal["quicksort", "stable"] = "quicksort") -> float:
    """Time the evaluator as the repositories have it: query by query, signs and one-hot labels by dot products."""
    query, database = (np.where(codes, np.float32(1), np.float32(-1)) for codes in (case.query, case.database))
    query_labels, database_labels = one_hot(case.affinity)
    ranks = np.arange(1, len(database) + 1)
    discounts = 1 / np.log2(ranks + 1)

    def score() -> list[tuple[float, ...]]:
        scores = []
        for row in range(n_queries):
            level = query_labels[row] @ database_labels.T
            distance = 0.5 * (query.shape[1] - query[row] @ database.T)
            ranked = level[np.argsort(distance, kind=kind)]
            relevant = ranked > 0
            precision = np.cumsum(relevant) / ranks
            gains = 2.0**ranked - 1
            ideal = np.sort(gains)[::-1]
            top = relevant[:1000]
            scores.append(
                (
                    (precision * relevant).sum() / max(relevant.sum(), 1),
                    (gains * discounts).sum() / max((ideal * discounts).sum(), 1e-300),
                    relevant[:100].mean(),
                    (precision[:1000] * top).sum() / max(top.sum(), 1),
                )
            )
        return scores

    return best(score, 2) * len(query) / n_queries


def one_hot(affinity: Affinity) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    if isinstance(affinity, SharedLabels):
        return affinity.query_labels.astype(np.float32), affinity.database_labels.astype(np.float32)
    assert isinstance(affinity, SameLabel)
    n_classes = int(max(affinity.query_labels.max(), affinity.database_labels.max())) + 1
    identity = np.eye(n_classes, dtype=np.float32)
    return identity[affinity.query_labels], identity[affinity.database_labels]


def distances_and_levels(case: Case, n_queries: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    query, database = (
        np.where(codes, np.float32(1), np.float32(-1)) for codes in (case.query[:n_queries], case.database)
    )
    return (
        0.5 * (query.shape[1] - query @ database.T),
        case.affinity.block(slice(0, n_queries), slice(0, len(database))),
    )


def time_ndcg_score(case: Case, n_queries: int) -> float:
    from sklearn.metrics import ndcg_score

    distances, levels = distances_and_levels(case, n_queries)
    gains = 2.0**levels - 1
    return best(lambda: ndcg_score(gains, -distances), 2) * len(case.query) / n_queries


def time_trm(case: Case, n_queries: int) -> float:
    from trm.metrics import build_tie_groups, expected_ap, expected_ndcg, expected_precision

    distances, levels = distances_and_levels(case, n_queries)
    n_items = len(case.database)

    def score() -> None:
        for distance, level in zip(distances, levels, strict=True):
            groups = build_tie_groups((-distance).tolist(), (level > 0).tolist())
            expected_ap(groups, n_items)
            expected_ndcg(groups, n_items)
            expected_precision(groups, 100)
            expected_ap(groups, 1000)

    return best(score, 2) * len(case.query) / n_queries


def side_by_side(quick: bool) -> None:
    """Print times and ratios for the papers' shapes."""
    print("\n## Side by side: seconds of hashbench, and how many times longer its peers take\n")
    print("| shape | bits | codes | hashbench | faiss k=100 | one label each | argsort | stable | ndcg_score | trm |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, (n_queries, n_database, n_classes, multi_label) in SHAPES.items():
        for n_bits in (64,) if quick else (16, 32, 64, 128):
            for kind in ("spread", "collapsed"):
                case = make_case(n_queries, n_database, n_classes, multi_label, n_bits, kind)
                works = [by_hashbench(case), by_faiss(case)]
                if multi_label:
                    works.append(by_hashbench(with_single_labels(case)))
                own_seconds, peer, *single_label = best_in_turn(works, 10)
                slow = n_bits == 64 and kind == "spread"  # the slow peers hardly depend on bits or kind
                ratios = [
                    f"{peer / own_seconds:.2f}",
                    f"{single_label[0] / own_seconds:.2f}" if single_label else "",
                    f"{time_argsort(case, 128) / own_seconds:,.0f}" if slow else "",
                    f"{time_argsort(case, 128, 'stable') / own_seconds:,.0f}" if slow else "",
                    f"{time_ndcg_score(case, 16) / own_seconds:,.0f}" if slow else "",
                    f"{time_trm(case, 8) / own_seconds:,.0f}" if slow else "",
                ]
                print(f"| {name} | {n_bits} | {kind} | {own_seconds:.3f} s | {' | '.join(ratios)} |", flush=True)


MORE_SHAPES = {  # queries, database, classes, multi-label, bits
    "2,000 x 50,000, 256 bits": (2_000, 50_000, 10, False, 256),
    "2,000 x 50,000, 512 bits": (2_000, 50_000, 10, False, 512),
    "2,000 x 50,000, 1,024 bits": (2_000, 50_000, 10, False, 1024),
    "NUS-WIDE, 256 bits": (*SHAPES["NUS-WIDE"], 256),
    "2,000 x 50,000, 81 labels": (2_000, 50_000, 81, True, 64),
    "2,000 x 50,000, 374 labels": (2_000, 50_000, 374, True, 64),
    "200 x 1,600": (200, 1_600, 10, False, 64),
    "100 x 50,000": (100, 50_000, 10, False, 64),
    "10 x 50,000": (10, 50_000, 10, False, 64),
    "1 x 50,000": (1, 50_000, 10, False, 64),
}


def wide_and_small() -> None:
    """Print the ratio to faiss for long codes, many labels and few queries, where fixed costs show."""
    print("\n## Long codes, many labels, few queries: how many times longer faiss takes\n")
    print("| shape | spread | collapsed |\n| --- | ---: | ---: |")
    for name, (*shape, n_bits) in MORE_SHAPES.items():
        ratios = []
        for kind in ("spread", "collapsed"):
            case = make_case(*shape, n_bits, kind)
            own_seconds, peer = best_in_turn([by_hashbench(case), by_faiss(case)], 5 if shape[0] > 200 else 20)
            ratios.append(f"{peer / own_seconds:.2f}")
        print(f"| {name} | {' | '.join(ratios)} |", flush=True)


def growth() -> None:
    """Print how time grows with each size, as ratios to the base case."""
    print("\n## Growth: time relative to 2,000 queries x 50,000 items x 64 bits, 10 classes, spread\n")
    print("| what | time | ratio |\n| --- | ---: | ---: |")
    base_shape: dict[str, Any] = {"n_queries": 2_000, "n_database": 50_000, "n_classes": 10, "n_bits": 64}
    base = 0.0
    changes: list[dict[str, Any]] = [
        {},
        *({"n_queries": n} for n in (4_000, 8_000)),
        *({"n_database": n} for n in (100_000, 200_000, 400_000)),
        *({"n_bits": n} for n in (12, 32, 128, 129, 256, 1024)),
        *({"n_classes": n} for n in (100, 1000)),
        *({"n_classes": n, "multi_label": True} for n in (21, 81, 374)),
        {"kind": "collapsed"},
    ]
    for change in changes:
        case = make_case(**{"multi_label": False, "kind": "spread", **base_shape, **change})
        seconds = time_hashbench(case)
        base = base or seconds
        what = ", ".join(f"{key}={value}" for key, value in change.items()) or "base"
        print(f"| {what} | {seconds:.3f} s | {seconds / base:.2f} |", flush=True)


def count_by_numpy(
    query: npt.NDArray[np.uint8], database: npt.NDArray[np.uint8], affinity: Affinity, n_queries: int
) -> npt.NDArray[np.int64]:
    """Count irrelevant and relevant pairs of the first queries by distance, query by query: (2, n_bits + 1)."""
    width = 8 * query.shape[1] + 1
    counts, words = np.zeros(2 * width, dtype=np.int64), database.view(np.uint64)
    for row, word in enumerate(query[:n_queries].view(np.uint64)):
        distances = np.bitwise_count(words[:, 0] ^ word).astype(np.intp)
        levels = affinity.block(slice(row, row + 1), slice(0, len(database)))[0]
        counts += np.bincount(distances + width * (levels > 0), minlength=2 * width)
    return counts.reshape(2, width)


def counting_pairs(radius: int = 8, n_numpy: int = 500, rounds: int = 7) -> None:
    """Print how many times longer peers take than counting all pairs by radius, after a check of the counts."""
    import faiss

    print("\n## Thresholds: 10,000 queries x 100,000 items x 64 bits, 10 classes, spread\n")
    case = make_case(10_000, 100_000, 10, False, 64, "spread")
    query, database = pack(case.query), pack(case.database)
    faiss.omp_set_num_threads(n_processors())
    index = faiss.IndexBinaryFlat(64)
    index.add(database)
    matches = Problem.of_packed(query, database, 64, case.affinity).thresholds().at(radius).n_matches
    assert index.range_search(query, radius + 1)[0][-1] == matches
    few = Problem.of_packed(query[:n_numpy], database, 64, case.affinity.part(np.arange(n_numpy))).thresholds()
    assert (count_by_numpy(query, database, case.affinity, n_numpy) == [few.n_false, few.n_true]).all()
    works: list[Callable[[], Any]] = [
        lambda: Problem.of_packed(query, database, 64, case.affinity).thresholds(),
        lambda: index.range_search(query, radius + 1),
        lambda: count_by_numpy(query, database, case.affinity, n_numpy),
    ]
    seconds = np.array([[best(work) for work in works] for _ in range(rounds)]) * [1, 1, len(query) / n_numpy]
    by_round = seconds[:, 1:] / seconds[:, :1]
    names = f"faiss `range_search`, radius {radius}", "NumPy's `bitwise_count`"
    print("| peer | its time over hashbench's: median | least | most |\n| --- | ---: | ---: | ---: |")
    for name, ratios in zip(names, by_round.T, strict=True):
        print(f"| {name} | {np.median(ratios):.1f} | {ratios.min():.1f} | {ratios.max():.1f} |", flush=True)
    print(f"\nhashbench: {np.median(seconds[:, 0]):.2f} s; faiss finds {matches:,} pairs")


_DATASET_ON_DISK = "20 million rows of a dataset file"


def peak_memory() -> None:
    """Print the peak memory of fresh processes, and what they hold before scoring."""
    print("\n## Memory: peak of a fresh process that holds codes and labels and scores them\n")
    print("| shape | before scoring | peak |\n| --- | ---: | ---: |")
    for name in ("CIFAR-10 S2", "NUS-WIDE", "20 million rows", _DATASET_ON_DISK):
        done = subprocess.run([sys.executable, __file__, "--memory", name], capture_output=True, text=True, check=True)
        before, peak = done.stdout.split()
        print(f"| {name}, 64 bits | {before} MB | {peak} MB |", flush=True)


def measure_memory(name: str) -> None:
    from hashbench.dataset import Dataset
    from hashbench.pipeline.steps import problem_of
    from hashbench.store.hdf5 import Codes, open_codes, read_dataset, write_codes, write_dataset
    from hashbench.store.provenance import Provenance

    def used() -> int:
        """Read the peak of this process in MB; getrusage would count the parent's at the fork."""
        (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
        return int(line.split()[1]) // 1024

    if name in ("20 million rows", _DATASET_ON_DISK):
        # Codes streamed from HDF5; labels in memory, or of a dataset file. The files are written by another process.
        with tempfile.TemporaryDirectory() as folder:
            path, dataset = Path(folder) / "codes.h5", Path(folder) / "dataset.h5"
            if os.fork() == 0:
                rng, rows = np.random.default_rng(0), np.arange(20_000_100)
                features, labels = rng.random((len(rows), 1), dtype=np.float32), rng.integers(0, 1000, len(rows))
                split = rows[:100], rows[100:], rows[100:10_100]
                whole = Dataset("big", features, *split, "same-label", labels=labels)
                write_dataset(whole, dataset)
                codes = rng.integers(0, 256, (20_000_000, 8), dtype=np.uint8)
                query = rng.integers(0, 256, (100, 8), dtype=np.uint8)
                provenance = Provenance("big", "features", "none", "{}", 64, 0, whole.fingerprint, 1)
                write_codes(Codes(query, codes, provenance), path)
                os._exit(0)
            os.wait()
            if name == _DATASET_ON_DISK:
                before = used()
                with open_codes(path) as opened:
                    problem_of(read_dataset(dataset), opened).evaluate(METRICS)
                print(before, used())
                return
            labels = np.random.default_rng(1).integers(0, 1000, 20_000_000, dtype=np.int32)
            before = used()
            with open_codes(path) as opened:
                affinity = SameLabel(np.arange(100), labels)
                Problem.of_packed(opened.query, opened.database, 64, affinity).evaluate(METRICS)
    else:
        case = make_case(*SHAPES[name], 64, "spread")
        query, database = pack(case.query), pack(case.database)
        affinity = case.affinity
        del case
        before = used()
        Problem.of_packed(query, database, 64, affinity).evaluate(METRICS)
    print(before, used())


def start_up() -> None:
    """Print what the first call in a process costs, with compilation and with compiled code on disk."""
    print("\n## Start-up: first evaluation of a fresh process, imports included\n")
    print("| | seconds |\n| --- | ---: |")
    code = (
        "import numpy as np, hashbench;"
        "c = np.random.default_rng(0).random((300, 64)) < 0.5; y = np.arange(300) % 10;"
        "hashbench.evaluate(c[:100], c[100:], (y[:100], y[100:]));"
        "hashbench.evaluate(c[:100], c[100:], (np.eye(10, dtype=int)[y[:100]], np.eye(10, dtype=int)[y[100:]]))"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for label in ("compiling", "compiled before"):
            seconds = best(lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment), 1)
            print(f"| {label} | {seconds:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="64 bits only")
    parser.add_argument("--side", action="store_true", help="only side by side with peers")
    parser.add_argument("--thresholds", action="store_true", help="only counts of pairs by radius")
    parser.add_argument("--memory", metavar="SHAPE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(options.memory)
        return
    print(f"# hashbench evaluator, {n_processors()} threads, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    warm = make_case(100, 1_000, 10, False, 64, "spread")
    time_hashbench(warm)
    time_hashbench(make_case(100, 1_000, 10, True, 64, "spread"))
    if options.thresholds:
        counting_pairs()
        return
    side_by_side(options.quick)
    wide_and_small()
    counting_pairs()
    if options.side:
        return
    growth()
    peak_memory()
    start_up()


if __name__ == "__main__":
    main()
