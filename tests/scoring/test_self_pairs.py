"""Queries that never find themselves, against each query on its own and the database without it."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles
from helpers.slices import in_slices
from helpers.thoroughness import ALL

import hashbench
from hashbench import Distance, Explicit, HashbenchError, Hierarchy, SameLabel, SharedLabels
from hashbench.bits import as_packed_pair
from hashbench.scoring.ignored import leave_out

N_ITEMS, N_BITS = 40, 7
rng = np.random.default_rng(0)
codes = (rng.random((15, N_BITS)) > 0.5)[rng.integers(0, 15, N_ITEMS)]
vectors = rng.normal(size=(N_ITEMS, 3)).round(1)
labels, multi_hot = rng.integers(0, 6, N_ITEMS), rng.integers(0, 2, (N_ITEMS, 4))
labels[-1] = 9  # of one item alone: without itself nothing is relevant
matrix = rng.choice([0, 0, 0, 1, 4], (N_ITEMS, N_ITEMS))
matrix[1] = matrix[0]
matrix[0, :2] = 1, 0  # alike but for themselves, if codes are alike
codes[1] = codes[0]
RULES = {
    "same-label": SameLabel(labels, labels),
    "hierarchy": Hierarchy(labels, labels, labels % 3, labels % 3),
    "shared-labels": SharedLabels(multi_hot, multi_hot),
    "distance": Distance(vectors, vectors, [2.0, 1.0], [1, 3]),
    "dense": Explicit(matrix),
    "csr": Explicit(sp.csr_array(matrix)),
}
METRICS = ["AP", "AP@5", "NDCG", "P@3", "R@3", "P@r1", "P@r1:skip", "R@r1", "LGAP@r2", "RR", "PairwiseError", "AP@R"]
OF_VECTORS = ["AP", "R@3:reranked=6", "NDCG@3:reranked=6"]


@pytest.fixture(params=RULES)
def rule(request):
    return RULES[request.param]


def one_by_one(items, rule, metrics, **options):
    """Score each query in the database without it."""
    whole = rule.block(slice(None), slice(None))
    found = []
    for query in range(N_ITEMS):
        others = np.delete(np.arange(N_ITEMS), query)
        if vectors := options.pop("vectors", None):
            options |= {"vectors": (vectors[0][[query]], vectors[1][others])}
        levels = whole[[query]][:, others]
        scores = hashbench.evaluate(items[[query]], items[others], levels, metrics, **options).scores
        found.append([np.ravel(scores[name]) for name in metrics])
        if vectors:
            options["vectors"] = vectors
    return np.moveaxis(np.array(found), 0, -1)  # (n_metrics, 4, n_queries)


def scored(evaluation, metrics):
    return np.array([evaluation.scores[name] for name in metrics])


def test_scores_are_those_of_each_query_in_the_database_without_it(rule):
    found = hashbench.evaluate(codes, codes, rule, METRICS, exclude_self=True)
    np.testing.assert_allclose(scored(found, METRICS), one_by_one(codes, rule, METRICS), rtol=1e-12, atol=1e-12)
    assert found.notes == []


def test_candidates_to_re_rank_lack_the_query(rule):
    options = {"vectors": (vectors, vectors)}
    found = hashbench.evaluate(codes, codes, rule, OF_VECTORS, exclude_self=True, **options)
    expected = one_by_one(codes, rule, OF_VECTORS, **options)
    np.testing.assert_allclose(scored(found, OF_VECTORS), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "dot"])
def test_real_valued_rankings_lack_the_query(rule, distance):
    found = hashbench.evaluate(vectors, vectors, rule, ["AP", "P@3"], distance=distance, exclude_self=True)
    expected = one_by_one(vectors, rule, ["AP", "P@3"], distance=distance)
    np.testing.assert_allclose(scored(found, ["AP", "P@3"]), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("items", "distance"), [(codes, "hamming"), (vectors, "cosine")])
def test_random_orders_keep_to_the_expectation(rule, items, distance):
    n_orders = 2000 if ALL else 400
    options = {"distance": distance, "exclude_self": True, "random_orders": n_orders}
    found = hashbench.evaluate(items, items, rule, ["AP", "P@3"], **options)
    for name, values in found.summary.items():
        drawn = found.random_orders[name]
        assert values.low - 1e-12 <= drawn.min() <= drawn.max() <= values.high + 1e-12
        assert drawn.mean() == pytest.approx(values.mean, abs=5 * drawn.std() / np.sqrt(n_orders) + 1e-12)


def test_thresholds_count_two_items_as_one_pair(rule):
    if isinstance(rule, Explicit):
        rule = Explicit(np.triu(matrix, 1) + np.triu(matrix, 1).T)
    first, second = np.triu_indices(N_ITEMS, 1)
    distances = (codes[first] != codes[second]).sum(axis=1)
    is_relevant = rule.block(slice(None), slice(None))[first, second] > 0
    found = hashbench.Problem.of_codes(codes, codes, rule, exclude_self=True).thresholds()
    for match in found.matches:
        is_match = distances <= match.radius
        n_false = (is_match & ~is_relevant).sum()
        assert (match.n_matches, match.n_false) == (is_match.sum(), n_false)
    query, database, n_bits = as_packed_pair(codes, codes, None, None)
    sharded = in_slices(query, database, n_bits, leave_out(rule, exclude_self=True))
    np.testing.assert_array_equal(sharded.thresholds().to_frame(), found.to_frame())


def test_micro_average_precision_has_a_pair_once():
    equal, classes = np.zeros((3, 4), dtype=bool), [0, 0, 1]
    found = hashbench.Problem.of_codes(equal, equal, (classes, classes), exclude_self=True).thresholds()
    expected = oracles.over_orders(oracles.average_precision, [0, 0, 0], [1, 0, 0])
    assert (found.uap.mean, found.uap.low, found.uap.high) == pytest.approx(expected[:3])


@pytest.mark.parametrize("score", [hashbench.evaluate, hashbench.Problem.of_codes])
def test_two_labels_of_one_item_are_refused(score):
    with pytest.raises(HashbenchError, match="their labels differ"):
        score(codes, codes, (labels, labels[::-1]), exclude_self=True)


def test_shards_refuse_two_labels_of_one_item():
    query, database, n_bits = as_packed_pair(codes, codes, None, None)
    twice = SameLabel(labels, labels[::-1])
    with pytest.raises(HashbenchError, match="their labels differ"):
        in_slices(query, database, n_bits, leave_out(twice, exclude_self=True)).evaluate(["AP"])


def test_thresholds_refuse_what_is_relevant_one_way_only():
    equal, one_way = np.zeros((N_ITEMS, 4), dtype=bool), np.zeros((N_ITEMS, N_ITEMS), dtype=int)
    one_way[[0, 2], [1, 3]] = 1  # their counts are even
    with pytest.raises(HashbenchError, match="two items are one pair"):
        hashbench.Problem.of_codes(equal, equal, one_way, exclude_self=True).thresholds()
    with pytest.raises(HashbenchError, match="two items are one pair"):
        hashbench.Problem.of_codes(codes, codes, np.eye(N_ITEMS, k=1, dtype=int), exclude_self=True).thresholds()


def test_shards_lack_the_query_too(rule):
    query, database, n_bits = as_packed_pair(codes, codes, None, None)
    sharded = in_slices(query, database, n_bits, leave_out(rule, exclude_self=True))
    metrics = [name for name in METRICS if name != "LGAP@r2"]
    expected = hashbench.evaluate(codes, codes, rule, metrics, exclude_self=True)
    np.testing.assert_array_equal(scored(sharded.evaluate(metrics), metrics), scored(expected, metrics))


def test_queries_that_are_the_database_are_noted():
    query, database, n_bits = as_packed_pair(codes, codes, None, None)
    sharded = in_slices(query, database, n_bits, RULES["same-label"])
    for found in (
        hashbench.evaluate(codes, codes, RULES["same-label"], ["AP"]),
        hashbench.evaluate(vectors, vectors, RULES["same-label"], ["AP"], distance="dot"),
        hashbench.Problem.of_codes(codes, codes, RULES["same-label"]).thresholds(),
        sharded.evaluate(["AP"]),
        sharded.thresholds(),
    ):
        (note,) = found.notes
        assert "exclude_self" in note
    assert not hashbench.evaluate(codes[1:], codes[1:][::-1], (labels[1:], labels[1:][::-1]), ["AP"]).notes


@pytest.mark.parametrize(
    ("query", "database", "message"),
    [
        (codes[:9], codes[9:18], "differ"),
        (codes[:9], codes[:10], "9 queries and 10"),
        (codes[:1], codes[:1], "one item"),
    ],
)
def test_other_queries_than_the_database_are_refused(query, database, message):
    for function in (hashbench.evaluate, hashbench.Problem.of_codes):
        with pytest.raises(HashbenchError, match=message):
            function(query, database, (labels[: len(query)], labels[: len(database)]), exclude_self=True)
