"""How many candidates reach a recall, against sorted rankings and against re-ranking with every number of them."""

import numpy as np
import pytest
from helpers import affinity_examples as examples
from helpers.slices import in_slices

import hashbench
from hashbench import HashbenchError
from hashbench.affinity import Explicit
from hashbench.bits import pack
from hashbench.scoring.candidates import _Steps

N_QUERIES, N_DATABASE, K = 30, 100, 5
WANTED = [0.05, 0.5, 0.8, 0.95, 1.0]
rng = np.random.default_rng(0)
vectors = rng.normal(size=(N_QUERIES, 8)), rng.normal(size=(N_DATABASE, 8))
query, database = (part[:, :7] + rng.normal(scale=0.5, size=(len(part), 7)) > 0 for part in vectors)
distances = (query[:, None] != database).sum(axis=2)
nearest = ((vectors[0][:, None] - vectors[1]) ** 2).sum(axis=2).argsort(axis=1)[:, :K]
relevance = np.zeros((N_QUERIES, N_DATABASE), dtype=np.int64)
np.put_along_axis(relevance, nearest, 1, axis=1)
relevance[7] = 0  # a query without a true neighbour
relevance[9, nearest[9, 1:]] = 0


def recall_curves(relevance, distances):
    """Return the recall of the first 1, 2, ... items in the mean over tie orders, in the best and in the worst."""
    curves = []
    for row, distance in zip(relevance, distances, strict=True):
        if not row.any():
            continue
        share = np.array([row[distance == d].mean() for d in distance])  # an item's in its tie
        orders = [np.lexsort((-row, distance)), np.lexsort((row, distance))]
        ranked = [share[np.argsort(distance)], *(row[order] for order in orders)]
        curves.append([np.cumsum(part) / row.sum() for part in ranked])
    return np.mean(curves, axis=0)


def smallest(curve, wanted, k=K):
    return max(int(np.argmax(curve > wanted - 1e-9)) + 1, k)


def test_numbers_are_those_of_sorted_rankings_and_the_smallest_that_reach_the_recall_re_ranked():
    curves = recall_curves(relevance, distances)
    counts = hashbench.Problem.of_codes(query, database, relevance).candidates("Recall@5", WANTED)
    for count in counts:
        numbers = count.n_candidates, count.fewest, count.most
        assert numbers == tuple(smallest(curve, count.wanted) for curve in curves)
        values = count.recall.mean, count.recall.high, count.recall.low
        assert values == pytest.approx([curve[count.n_candidates - 1] for curve in curves])
        names = [f"R@{K}:reranked={m}" for m in (count.n_candidates - 1, count.n_candidates) if m >= K]
        *fewer, scored = hashbench.evaluate(query, database, relevance, names, vectors=vectors).summary.values()
        assert count.recall[:5] == pytest.approx(scored[:5])
        assert all(one.mean < count.wanted for one in fewer)


def test_the_interval_holds_the_number_of_all_queries_in_95_of_100_samples():
    draw = np.random.default_rng(3)
    scales = np.exp(draw.normal(3, 1, 3000))  # hard queries have their neighbours far down
    ranks = np.sort((scales[:, None] * draw.gamma(1.0, 1.0, (3000, K))).astype(int), axis=1)

    def steps(rows):
        n, ones = len(rows), np.ones(rows.size, dtype=int)
        return _Steps(
            rows.ravel(), 4 * ones, ones, np.repeat(np.arange(n), K), np.full(n, K), np.ones(n, dtype=int), 100_000
        )

    wanted, held = 0.9, 0
    whole = steps(ranks)
    true = whole.fewest(whole.recalls[0], K, wanted)
    for _ in range(100):
        sample = steps(ranks[draw.choice(len(ranks), 60)])
        low, high = (sample.fewest(end, K, wanted) for end in sample.interval_ends)
        assert low <= sample.fewest(sample.recalls[0], K, wanted) <= high
        held += low <= true <= high
    assert 90 <= held <= 99


@pytest.mark.parametrize("seed", range(8))
def test_the_ends_of_the_interval_are_the_smallest_numbers_that_reach_the_recall(seed):
    draw = np.random.default_rng(seed)
    near, far = draw.random((40, 12)) < 0.5, draw.random((200, 12)) < 0.5
    rows = np.zeros((40, 200), dtype=int)
    within = (near[:, None] != far).sum(axis=2) + draw.random((40, 200)) * 2.5
    np.put_along_axis(rows, within.argsort(axis=1)[:, :5], 1, axis=1)
    problem = hashbench.Problem.of_codes(near, far, rows)
    intervals = {m: problem.evaluate([f"R@{m}"]).intervals[f"R@{m}"] for m in range(5, 201)}
    for count in problem.candidates("R@5", [0.5, 0.8, 0.9, 0.95]):
        assert count.n_candidates_low == min(m for m, (_, high) in intervals.items() if high >= count.wanted)
        assert count.n_candidates_high == min(m for m, (low, _) in intervals.items() if low >= count.wanted)


def test_a_recall_that_is_reached_to_the_last_digit_counts():
    rows = np.eye(10, dtype=int)  # 10 queries; item i is the neighbour of query i, at distance i
    codes = np.tri(10, 9, -1, dtype=bool)
    for n_hits in range(1, 11):
        (count,) = hashbench.Problem.of_codes(np.zeros((10, 9), bool), codes, rows).candidates("R@1", n_hits / 10)
        assert (count.n_candidates, count.fewest, count.most) == (n_hits,) * 3


@pytest.mark.parametrize("n_copies", [1, 3])
def test_shards_and_equal_queries_give_the_same_numbers(n_copies):
    rows = np.repeat(np.arange(N_QUERIES), n_copies)
    codes, affinity = (pack(query[rows]), pack(database)), Explicit(relevance[rows])
    counts = in_slices(*codes, 7, affinity).candidates("R@5", WANTED)
    expected = hashbench.Problem.of_codes(query, database, relevance).candidates("R@5", WANTED)
    for count, other in zip(counts, expected, strict=True):
        assert count[:4] == other[:4]
        assert count.recall[:3] == pytest.approx(other.recall[:3])
    counts = hashbench.Problem.of_codes(query[rows], database, affinity).candidates("R@5", WANTED)
    assert [count[:4] for count in counts] == [other[:4] for other in expected]


def test_queries_that_are_the_items_are_left_out_of_their_own_candidates():
    codes = examples.database[:40]
    within = (codes[:, None] != codes).sum(axis=2)
    labels = np.arange(40) // 3  # two others have the label, and the last one none
    counts = hashbench.Problem.of_codes(codes, codes, (labels, labels), exclude_self=True).candidates("R@2", WANTED)
    is_other = ~np.eye(40, dtype=bool)
    levels = (labels[:, None] == labels)[is_other].reshape(40, 39).astype(int)
    curves = recall_curves(levels, within[is_other].reshape(40, 39))
    for count in counts:
        assert count[1:4] == tuple(smallest(curve, count.wanted, 2) for curve in curves)
    with pytest.raises(HashbenchError, match="a query has 3 relevant items, and R@2 counts at most 2"):
        hashbench.Problem.of_codes(codes, codes, (labels, labels)).candidates("R@2", WANTED)


def test_a_cutoff_beyond_the_database_takes_all_of_it():
    (count,) = hashbench.Problem.of_codes(query, database, relevance).candidates("R@1000", 0.5)
    assert count[1:4] == (N_DATABASE,) * 3


def test_candidates_by_real_valued_queries_are_those_of_their_recall():
    outputs = rng.normal(size=query.shape) * 0.5 + np.where(query, 1.0, -1.0)
    outputs = np.abs(outputs) * np.where(query, 1, -1)
    problem = hashbench.Problem.of_codes(query, database, relevance, query_outputs=outputs)
    by_dot = -np.rint((outputs @ (2.0 * database - 1).T) * 2**20)
    curves = recall_curves(relevance, by_dot)
    for count in problem.candidates("R@5:dot", WANTED):
        numbers = count.n_candidates, count.fewest, count.most
        assert numbers == tuple(smallest(curve, count.wanted) for curve in curves)
        assert count.n_candidates_low <= count.n_candidates <= count.n_candidates_high
        assert count.recall == problem.evaluate([f"R@{count.n_candidates}:dot"])[f"R@{count.n_candidates}:dot"]
    with pytest.raises(HashbenchError, match="R@5:dot compares codes with the real-valued outputs of queries"):
        hashbench.Problem.of_codes(query, database, relevance).candidates("R@5:dot", 0.5)


def test_numbers_as_a_data_frame_have_the_recall_beside_them():
    counts = hashbench.Problem.of_codes(query, database, relevance).candidates("R@5", [0.5, 0.9])
    frame = counts.to_frame()
    assert frame["n_candidates"].tolist() == [count.n_candidates for count in counts]
    assert frame["mean"].tolist() == [count.recall.mean for count in counts]
    assert [*frame.columns[:3]] == ["wanted", "n_candidates", "fewest"]
