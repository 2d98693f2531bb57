"""Every way to score from Python, on small inputs that are always the same; run with and without numba."""

import hashlib

import numpy as np

import hashbench

ANY = ("AP", "AP@1000", "AP@50:capped", "AP@R", "NDCG", "NDCG@5:trec", "NDCG:linear", "P@5", "RPrec", "RR", "Hit@3")
OF_GAINS = ("NDCG", "NDCG@5:trec", "NDCG:linear")
OF_CODES = (*ANY, "PairwiseError", "P@r2", "R@r2", "LGAP@r2")
RERANKED = ("Recall@10:reranked=100", "NDCG@10:reranked=60", "AP@10:reranked=50")


def scores():
    """Return a digest of the scores of each call, by its name."""
    rng = np.random.default_rng(0)
    found = {}
    for n_bits in (2, 65):
        query, database = rng.random((12, n_bits)) > 0.5, (rng.random((40, n_bits)) > 0.5)[rng.integers(0, 40, 150)]
        query[:4] = database[:4]
        classes = rng.integers(0, 5, 12), rng.integers(0, 5, 150)
        several = rng.integers(0, 2, (12, 7)), rng.integers(0, 2, (150, 7))
        levels = rng.choice([0, 0, 0, 1, 5], (12, 150))
        gains = rng.choice([0, 0, 0, 0.5, 0.3, 2], (12, 150))
        coarse = hashbench.Hierarchy(*classes, classes[0] % 2, classes[1] % 2)
        values = rng.normal(size=(12, 6)).round(1) + 0.01, rng.normal(size=(150, 6)).round(1) + 0.01
        calls = {
            "classes": hashbench.evaluate(query, database, classes, OF_CODES, random_orders=2),
            "superclasses": hashbench.evaluate(query, database, coarse, OF_CODES),
            "several": hashbench.evaluate(query, database, several, OF_CODES),
            "levels": hashbench.evaluate(query, database, levels, (*OF_CODES, *RERANKED), vectors=values),
            "gains": hashbench.evaluate(query, database, gains, OF_GAINS, random_orders=2),
            "outputs": hashbench.evaluate(*values, classes, ANY, distance="cosine", random_orders=2),
            "itself": hashbench.evaluate(database, database, (classes[1],) * 2, ANY, exclude_self=True),
        }
        found |= {f"{name}, {n_bits} bits": _digests(evaluation) for name, evaluation in calls.items()}
        counts = hashbench.Problem.of_codes(query, database, classes).thresholds()
        found[f"thresholds, {n_bits} bits"] = [counts.n_true.tolist(), counts.query_precision.tolist(), repr(counts)]
    run = {f"q{q}": {f"d{d}": float(score) for d, score in enumerate(rng.integers(0, 9, 50))} for q in range(9)}
    qrels = {f"q{q}": {f"d{d}": int(grade) for d, grade in enumerate(rng.integers(0, 3, 60))} for q in range(9)}
    found["run"] = _digests(hashbench.evaluate_run(run, qrels, random_orders=2))
    ranking = rng.integers(0, 3, (9, 200)), rng.integers(0, 30, (9, 200))
    found["ranking of gains"] = _digests(
        hashbench.evaluate_ranking(relevance=ranking[0] / 4, scores=ranking[1] + 0.5, metrics=OF_GAINS)
    )
    found["ranking"] = _digests(hashbench.evaluate_ranking(relevance=ranking[0], scores=ranking[1], metrics=ANY))
    return found


def _digests(evaluation):
    arrays = {**evaluation.scores, **{f"{name} in orders": means for name, means in evaluation.random_orders.items()}}
    return {name: hashlib.sha256(np.array(array).tobytes()).hexdigest()[:16] for name, array in arrays.items()}
