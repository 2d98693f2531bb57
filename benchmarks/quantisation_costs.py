"""What searching and learning codes costs: the last table of docs/binary-quantisation.md, by time relative to a peer.

    .venv/bin/python benchmarks/quantisation_costs.py [--again]

Vectors are normal, of unit length, 384-d: what they hold does not change the time. Scans are faiss's, one thread, over
100,000 items: float32 finds 10 neighbours, all others the 100 candidates that are then re-ranked. Learning is from
10,000 vectors, with hashbench's methods and faiss's indexes. All take turns, so that a slower minute of the machine
slows all of them; a row has the median over turns of the time relative to the peer in the same turn.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
from binary_quantisation import BITS, INDEXES, PAGE, trained_index
from pages import parser_of, put_into, read_rows, write_rows
from threadpoolctl import threadpool_limits

from hashbench.bits import pack
from hashbench.registry import get_method

ROWS = PAGE.parents[1] / "benchmarks" / "quantisation_costs.csv"
COLUMNS = ("codes", "bytes", "job", "relative")
N_FEATURES, N_ITEMS, N_TRAIN, N_QUERIES = 384, 100_000, 10_000, 200
N_TURNS = 7
SCANS = {"RaBitQ": 32, "PQ": 32, "OPQ": 32}  # bytes per item, of indexes of floats
JOBS = {"single": "scan, queries one by one", "batch": f"scan, {N_QUERIES} queries at once", "learn": "to learn"}


def draw(n: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Draw vectors of unit length: (n, 384)."""
    items = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    return items / np.linalg.norm(items, axis=1, keepdims=True)


def take_turns(contenders: dict[str, Callable[[], Any]], peer: str, n_turns: int = N_TURNS) -> dict[str, float]:
    """Return the time of each contender relative to the peer's, the median over turns."""
    for run in contenders.values():  # once without the clock: compiled code, caches
        run()
    turns = []
    for _ in range(n_turns):
        seconds = {}
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            seconds[name] = time.perf_counter() - start
        turns.append(seconds)
    return {name: median(turn[name] / turn[peer] for turn in turns) for name in contenders}


def one_by_one(index: Any, queries: npt.NDArray[Any], n: int) -> Callable[[], None]:
    """Return a search of each query alone."""

    def search() -> None:
        for row in range(len(queries)):
            index.search(queries[row : row + 1], n)

    return search


def at_once(index: Any, queries: npt.NDArray[Any], n: int) -> Callable[[], None]:
    """Return a search of all queries."""
    return lambda: index.search(queries, n)


def measure_scans(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the rows of exact scans."""
    items, queries = draw(N_ITEMS, rng), draw(N_QUERIES, rng)
    searched: dict[tuple[str, int], tuple[Any, npt.NDArray[Any], int]] = {}
    for label, factory in {"float32": "Flat", "int8": "SQ8"}.items():
        index = trained_index(factory, items[:N_TRAIN])
        index.add(items)
        searched[label, index.sa_code_size()] = index, queries, 10 if label == "float32" else 100
    for label, n_bytes in SCANS.items():
        index = trained_index(INDEXES[label](n_bytes), items[:N_TRAIN])
        index.add(items)
        searched[label, n_bytes] = index, queries, 100
    for n_bytes in (8, 32, 48):
        index = faiss.IndexBinaryFlat(8 * n_bytes)
        index.add(rng.integers(256, size=(N_ITEMS, n_bytes), dtype=np.uint8))
        searched["bits", n_bytes] = index, pack(rng.integers(2, size=(N_QUERIES, 8 * n_bytes))), 100
    rows = []
    for job, how in (("single", one_by_one), ("batch", at_once)):
        names = {f"{label} {n_bytes}": how(*found) for (label, n_bytes), found in searched.items()}
        relative = take_turns(names, "float32 1536")
        rows += [row_of(label, n_bytes, job, relative[f"{label} {n_bytes}"]) for label, n_bytes in searched]
    return rows


def measure_learning(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the rows of learning 32 bytes."""
    train = draw(N_TRAIN, rng)
    contenders: dict[str, Callable[[], Any]] = {
        name: lambda name=name: get_method(name)(n_bits=256, **BITS[name]).fit(train) for name in BITS
    }
    contenders |= {label: lambda label=label: trained_index(INDEXES[label](32), train) for label in SCANS}
    return [row_of(name, 32, "learn", share) for name, share in take_turns(contenders, "PQ", 3).items()]


def row_of(codes: str, n_bytes: int, job: str, relative: float) -> dict[str, Any]:
    return dict(zip(COLUMNS, (codes, n_bytes, job, f"{relative:.2g}"), strict=True))


def layout(rows: Sequence[dict[str, str]]) -> str:
    """Lay out scans and learning as a Markdown table."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        cells.setdefault((row["codes"], row["bytes"]), {})[row["job"]] = row["relative"]
    lines = [f"| codes | bytes | {' | '.join(JOBS.values())} |", "|---|--:|" + "--:|" * len(JOBS)]
    for (codes, n_bytes), of_job in cells.items():
        lines.append(f"| {codes} | {int(n_bytes):,} | {' | '.join(of_job.get(job, '') for job in JOBS)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, write the rows, and make the table."""
    options = parser_of(__doc__).parse_args()
    if not options.again:
        faiss.omp_set_num_threads(1)
        rng = np.random.default_rng(0)
        with threadpool_limits(1):
            write_rows(ROWS, COLUMNS, measure_scans(rng) + measure_learning(rng))
    PAGE.write_text(put_into(PAGE.read_text(), {"costs": layout(read_rows(ROWS))}))


if __name__ == "__main__":
    main()
