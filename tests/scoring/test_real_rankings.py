import operator
from fractions import Fraction

import numpy as np
import pytest
from helpers import oracles
from helpers.json_output import scores_in
from sklearn.metrics import average_precision_score

from hashbench import evaluate
from hashbench.errors import HashbenchError
from hashbench.scoring import real_rankings
from hashbench.scoring.real_rankings import CosineDistance

METRICS = ["AP", "AP@5", "AP@5:relevant", "NDCG", "NDCG@7", "NDCG:linear", "PairwiseError", "P@3", "R@3", "RR", "Hit@2"]


def draw(seed, n_queries=6, n_database=40, n_bits=12):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n_queries), rng.integers(0, 3, n_database)
    return rng.normal(size=(n_queries, n_bits)), rng.normal(size=(n_database, n_bits)), labels


@pytest.mark.parametrize("n_bits", [1, 2, 12, 33, 64, 100])
def test_cosine_on_signs_equals_hamming(n_bits):
    query, database, labels = draw(n_bits, n_bits=n_bits)
    query, database = np.sign(query), np.sign(database)
    distances = CosineDistance(query * 3, database).distances(slice(0, 6))
    np.testing.assert_array_equal(distances, oracles.hamming_distances(query, database))
    hamming = evaluate(query, database, labels, METRICS)
    cosine = evaluate(query * 3, database, labels, METRICS, distance="cosine")
    products = CosineDistance(query * 3, database, by_dot=True).distances(slice(0, 6))
    np.testing.assert_array_equal((n_bits + products / 3) / 2, distances)
    for name, parts in hamming.scores.items():  # sums over other numbers of empty groups round otherwise
        np.testing.assert_allclose(parts, cosine.scores[name], rtol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_ties_are_items_at_an_equal_value(seed):
    rng = np.random.default_rng(seed)
    query, database = rng.integers(-1, 2, (1, 2)) * 2 + 1.0, rng.integers(1, 3, (6, 2)) * rng.choice([-1.0, 1], (6, 2))
    levels = rng.integers(0, 3, (1, 6))
    levels[0, 0] = 1
    directions = [np.round(row / np.linalg.norm(row), 6) for row in database]
    distance = [round(float(-direction @ query[0]), 5) for direction in directions]
    evaluation = evaluate(query, database, levels, ["AP", "NDCG"], distance="cosine").summary
    for name, oracle in (("AP", oracles.average_precision), ("NDCG", oracles.ndcg)):
        scores = evaluation[name]
        expected = oracles.over_orders(oracle, distance, levels[0].tolist())
        assert (scores.mean, scores.low, scores.high, scores.tie_sd) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "dot"])
@pytest.mark.parametrize("zero", [-1, 0])
def test_float_queries_rank_a_binary_database_by_inner_products(distance, zero):
    query, database, labels = draw(4, n_bits=33)  # so many bits that nothing ties
    bits = database > 0
    evaluation = evaluate(query, np.where(bits, 1, zero), labels, ["AP"], distance=distance).scores["AP"].mean
    expected = [
        average_precision_score(labels[1] == label, products)
        for label, products in zip(labels[0], query @ bits.T, strict=True)
    ]
    is_same_order = distance == "dot" or zero == -1  # codes of -1/+1 are equally long, those of 0/1 are not
    assert np.allclose(evaluation, expected, rtol=0, atol=1e-12) == is_same_order


def test_by_inner_product_length_counts_and_zeros_are_no_direction():
    query, database = np.array([[1.0, 1.0], [-2.0, 0.0]]), np.array([[3.0, 0], [1, 1], [0, 0], [2, 2], [1, 2]])
    distances = CosineDistance(query * 7, database, by_dot=True).distances(slice(0, 2))
    for row, products in zip(distances, query @ database.T, strict=True):
        np.testing.assert_array_equal(
            np.unique(row, return_inverse=True)[1], np.unique(-products, return_inverse=True)[1]
        )
    with pytest.raises(HashbenchError, match="database outputs are all zeros"):
        CosineDistance(query, 0 * database, by_dot=True)


@pytest.mark.parametrize("factor", [1, 1e7, 1e12, 1e200])
def test_one_long_item_ties_no_products_of_others(factor):
    query, database, _ = draw(7, n_queries=3, n_database=200)
    database[100:] = database[:100]
    database[40:80] = np.round(database[40:80])  # some of whose products are equal by chance
    query[0] = np.round(2 * query[0]) + 1
    long = database[:1] * factor
    database[140:] *= 1e-3
    database = np.concatenate([long, database])
    exact = [[-sum(map(operator.mul, map(Fraction, row), map(Fraction, item))) for item in database] for row in query]
    distances = CosineDistance(query, database, by_dot=True).distances(slice(0, 3))
    for evaluation, expected in zip(distances, exact, strict=True):
        places = {value: place for place, value in enumerate(sorted(set(expected)))}
        np.testing.assert_array_equal(
            np.unique(evaluation, return_inverse=True)[1], [places[value] for value in expected]
        )


def test_length_of_a_row_has_no_say_and_equal_rows_tie():
    query, database, labels = draw(0, n_database=300)
    database = np.concatenate([database, database * np.linspace(1e-180, 1e180, 300)[:, None]])
    labels = labels[0], np.concatenate([labels[1], 1 - labels[1]])
    distances = CosineDistance(query, database).distances(slice(0, 6))
    np.testing.assert_array_equal(distances[:, :300], distances[:, 300:])
    assert (distances >= 0).all()
    assert (distances <= 12).all()
    scores = evaluate(query, database, labels, ["AP"], distance="cosine").summary["AP"]
    assert scores.low < scores.mean < scores.high


@pytest.mark.parametrize("memory", [1, 1 << 28])
def test_few_queries_at_a_time_score_like_all_of_them(memory, monkeypatch):
    query, database, labels = draw(1)
    expected = evaluate(query, database, labels, METRICS, distance="cosine")
    monkeypatch.setattr(real_rankings, "_MEMORY", memory)
    order = np.random.default_rng(2).permutation(len(database))
    evaluation = evaluate(query, database[order], (labels[0], labels[1][order]), METRICS, distance="cosine")
    for name, parts in expected.scores.items():
        np.testing.assert_array_equal(parts, evaluation.scores[name])


def test_default_metrics_leave_out_those_of_a_radius():
    query, database, labels = draw(3)
    assert "P@r2" not in evaluate(query, database, labels, distance="cosine").scores
    relevant = evaluate(query, database, np.ones((6, 40), dtype=int), ["AP"], distance="cosine")
    assert relevant.scores["AP"].mean.tolist() == [1.0] * 6


def test_command_line_ranks_outputs_by_cosine(hashbench, tmp_path):
    query, database, labels = draw(6)
    arrays = {"query-codes": query, "database-codes": database, "query-labels": labels[0], "database-labels": labels[1]}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    arguments = [f"--{name}={tmp_path / name}.npy" for name in arrays]
    result = scores_in(hashbench("evaluate", *arguments, "--distance", "cosine", "--format", "json").stdout)
    expected = evaluate(query, database, labels, distance="cosine").summary
    assert {name: values["mean"] for name, values in result.items()} == {
        name: values.mean for name, values in expected.items()
    }
