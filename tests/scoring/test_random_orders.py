"""Means under random orders of the database against sorts of it, and against what is estimated of them."""

import numpy as np
import pytest
from helpers import oracles
from scipy.spatial.distance import cdist

import hashbench
from hashbench.affinity import Affinity, Explicit, SameLabel

NAMES = ["AP", "AP@20:retrieved", "AP@20:relevant", "NDCG:trec", "NDCG@20", "NDCG:linear", "P@20", "RPrec", "RR"]
rng = np.random.default_rng(0)
query, database = rng.random((12, 5)) < 0.5, rng.random((150, 5)) < 0.5
query[6:] = query[:6]
labels = rng.integers(0, 3, 12), rng.integers(0, 3, 150)
labels[0][6:9] = labels[0][:3]


def score(name, ranked):
    metric = hashbench.scoring.metrics.get_metric(name)
    return oracles.ORACLES[metric.family.pattern](ranked, *metric.arguments)


def orders_of(n_items, n_orders):
    """Draw the orders that evaluate draws."""
    return [np.random.default_rng([0, number]).permutation(n_items) for number in range(n_orders)]


def sorted_in(order, level):
    """Sort the levels of each query's items by distance, tied ones in an order."""
    hamming = cdist(query, database, "hamming").round(9)
    return [row[order][np.argsort(d[order], kind="stable")].tolist() for row, d in zip(level, hamming, strict=True)]


@pytest.mark.parametrize("distance", ["hamming", "cosine"])
def test_each_order_scores_as_a_stable_sort_of_the_database_in_that_order(distance):
    codes = (query, database) if distance == "hamming" else (2.0 * query - 1, 2.0 * database - 1)
    names = [*NAMES, "P@r1"] if distance == "hamming" else NAMES
    evaluation = hashbench.evaluate(*codes, labels, names, random_orders=3, distance=distance)
    level = np.equal.outer(*labels).astype(int)
    for number, order in enumerate(orders_of(150, 3)):
        ranked = sorted_in(order, level)
        for name in NAMES:
            expected = np.mean([score(name, row) for row in ranked])
            assert evaluation.random_orders[name][number] == pytest.approx(expected, abs=1e-12), name
    if distance == "hamming":
        assert evaluation.random_orders["P@r1"] == pytest.approx([evaluation.summary["P@r1"].mean] * 3)
    for name in NAMES:
        assert evaluation.summary[name].tie_sd_measured == np.std(evaluation.random_orders[name], ddof=1)


def test_documents_of_a_run_stand_in_one_order_for_all_queries():
    names = [f"d{i}" for i in range(40)]
    run, qrels = {}, {}
    for q in range(5):
        listed = rng.choice(names, int(rng.integers(1, 30)), replace=False)
        run[f"q{q}"] = {str(name): float(rng.integers(0, 3)) for name in listed}
        qrels[f"q{q}"] = {str(name): int(rng.integers(0, 3)) for name in rng.choice(names, 20, replace=False)}
        qrels[f"q{q}"][str(listed[0])] = 1
    evaluation = hashbench.evaluate_run(run, qrels, ["RR", "P@5"], random_orders=4)
    documents = list(dict.fromkeys(name for listed in run.values() for name in listed))
    for number, order in enumerate(orders_of(len(documents), 4)):
        place = {documents[item]: place for place, item in enumerate(order)}
        values = {"RR": [], "P@5": []}
        for q, listed in run.items():
            ranked = [qrels[q].get(d, 0) for d in sorted(listed, key=lambda d, s=listed: (-s[d], place[d]))]
            values["RR"].append(oracles.reciprocal_rank(ranked) if any(ranked) else 0.0)
            values["P@5"].append(sum(level > 0 for level in ranked[:5]) / 5)
        for name, each in values.items():
            assert evaluation.random_orders[name][number] == pytest.approx(np.mean(each), abs=1e-12)


class Alike(Affinity):
    """A rule without keys of its queries."""

    n_queries, n_database = 12, 150
    levels = np.array([0, 1])

    def block(self, query, database):
        return np.equal.outer(labels[0][query], labels[1][database]).astype(np.int16)


@pytest.mark.parametrize("rule", [SameLabel(*labels), Explicit(np.equal.outer(*labels).astype(int))])
def test_queries_of_one_code_and_the_same_relevant_items_are_of_one_kind(rule):
    evaluation = hashbench.evaluate(query, database, rule, ["AP"])
    rows = [(*code.tolist(), label) for code, label in zip(query, labels[0], strict=True)]
    kinds = evaluation.kinds
    np.testing.assert_array_equal(np.equal.outer(kinds, kinds), [[a == b for a in rows] for b in rows])
    each = hashbench.evaluate(query, database, Alike(), ["AP"])
    assert len(set(each.kinds)) == 12
    assert each.summary["AP"].tie_sd < evaluation.summary["AP"].tie_sd < evaluation.summary["AP"].tie_sd_bound


def test_outputs_that_are_equal_are_of_one_kind_too():
    outputs = rng.normal(size=(12, 5))
    outputs[6:] = outputs[:6]
    evaluation = hashbench.evaluate(outputs, database + 0.5, labels, ["AP"], distance="cosine")
    alike = np.equal.outer(np.arange(12) % 6, np.arange(12) % 6) & np.equal.outer(labels[0], labels[0])
    np.testing.assert_array_equal(np.equal.outer(evaluation.kinds, evaluation.kinds), alike)


@pytest.mark.parametrize("n_orders", [1, -3, 99_999_999_999])
def test_numbers_of_orders_that_cannot_be_measured_are_refused_of_any_ranking(n_orders):
    for score in (
        lambda: hashbench.evaluate(query, database, labels, random_orders=n_orders),
        lambda: hashbench.evaluate(query - 0.5, database - 0.5, labels, distance="dot", random_orders=n_orders),
        lambda: hashbench.evaluate_run({"q": {"d": 1.0}}, {"q": {"d": 1}}, random_orders=n_orders),
    ):
        with pytest.raises(hashbench.HashbenchError, match=f"random_orders is {n_orders}, .* from 2 to 1,000,000"):
            score()


def test_re_ranking_has_no_random_orders():
    vectors = query + 0.5, database + 0.5
    with pytest.raises(hashbench.HashbenchError, match="R@2:reranked=4 cannot be measured under random orders"):
        hashbench.evaluate(query, database, labels, ["R@2:reranked=4"], vectors=vectors, random_orders=5)
