"""Re-ranked metrics beside faiss: the nearest by Hamming distance, refined by the float vectors, scored at a cutoff.

    make bench        or        .venv/bin/python benchmarks/reranking.py [--items 100000]

Vectors around centres are coded by their signs in 256 dimensions and in the first 16. Relevant are the items of the
query's class, or its ten nearest. faiss's ``IndexBinaryFlat`` returns m candidates; in the tie that m cuts, the first
in the database. NumPy sorts them by float distance. Their score must lie in hashbench's range for each query, and its
mean over several random orders of the database near hashbench's mean.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from hashbench.affinity import Explicit
from hashbench.bits import pack
from hashbench.distances import fast_squared_distances
from hashbench.scoring.problem import Problem
from hashbench.scoring.reranking import Vectors

K = 10
CANDIDATES = (10, 100, 1000)


def make(n_database: int, n_queries: int, n_features: int = 256) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Draw vectors around 100 centres, in random order, and their classes."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 100, n_queries + n_database)
    centres = rng.normal(size=(100, n_features))
    vectors = centres[classes] + 2 * rng.normal(size=(len(classes), n_features))
    return vectors.astype(np.float32), classes


def refined(query: Any, database: Any, squared: Any, n_bits: int, m: int, seed: int) -> npt.NDArray[np.int64]:
    """Return candidates of faiss in a database in random order, sorted by float distance: items, (n_queries, K)."""
    import faiss

    order = np.random.default_rng(seed).permutation(len(database))
    index = faiss.IndexBinaryFlat(n_bits)
    index.add(database[order])
    candidates = order[index.search(query, m)[1]]
    ranked = np.argsort(np.take_along_axis(squared, candidates, axis=1), axis=1)
    return np.asarray(np.take_along_axis(candidates, ranked, axis=1)[:, :K])


def scores_of(relevant: npt.NDArray[np.bool_], n_relevant: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Score rankings, (n_queries, K) booleans, of queries that have so many relevant items."""
    ranks = np.arange(1, K + 1)
    discounts = 1 / np.log2(ranks + 1)
    n_ideal = np.minimum(n_relevant, K)
    ideal = np.append(0, np.cumsum(discounts))[n_ideal]
    return {
        "R": relevant.sum(axis=1) / n_relevant,
        "NDCG": (relevant * discounts).sum(axis=1) / ideal,
        "AP": (relevant * np.cumsum(relevant, axis=1) / ranks).sum(axis=1) / n_ideal,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=100_000, help="in the database")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--orders", type=int, default=10, help="of the database, for faiss")
    options = parser.parse_args()
    n = options.queries
    all_vectors, classes = make(options.items, n)
    vectors = Vectors(all_vectors[:n], all_vectors[n:])
    squared, _ = fast_squared_distances(vectors.query.astype(np.float64), vectors.database.astype(np.float64))
    tenth = np.partition(squared, K - 1, axis=1)[:, K - 1 : K]
    relevances = {"its class": classes[:n, None] == classes[None, n:], "ten nearest": squared <= tenth}
    print(f"## Re-ranked metrics beside faiss: {n:,} queries x {options.items:,} items x 256 features\n")
    print("| bits | relevant | metric | mean | low | high | faiss + floats | difference | inside |")
    print("| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_bits in (256, 16):
        query, database = (pack(part[:, :n_bits] > 0) for part in (vectors.query, vectors.database))
        for m in CANDIDATES:
            names = {stem: f"{stem}@{K}{':capped' * (stem == 'AP')}:reranked={m}" for stem in ("R", "NDCG", "AP")}
            ranked = [refined(query, database, squared, n_bits, m, seed) for seed in range(options.orders)]
            for kind, relevance in relevances.items():
                affinity = Explicit(relevance.astype(np.int8))
                start = time.perf_counter()
                evaluation = Problem.of_packed(query, database, n_bits, affinity, vectors=vectors).evaluate(
                    names.values()
                )
                seconds = time.perf_counter() - start
                n_relevant = relevance.sum(axis=1)
                peers = [scores_of(np.take_along_axis(relevance, one, axis=1), n_relevant) for one in ranked]
                for stem, name in names.items():
                    scores, faiss_scores = evaluation.scores[name], np.stack([peer[stem] for peer in peers])
                    is_inside = (scores.low - 1e-9 <= faiss_scores) & (faiss_scores <= scores.high + 1e-9)
                    means = [*(part.mean() for part in scores[:3]), faiss_scores.mean()]
                    cells = " | ".join(f"{number:.4f}" for number in (*means, means[0] - means[-1]))
                    print(f"| {n_bits} | {kind} | {name} | {cells} | {is_inside.mean():.2%} |", flush=True)
                print(f"{n_bits} bits, m = {m}, {kind}: {seconds:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
