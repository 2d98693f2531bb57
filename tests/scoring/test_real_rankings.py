"""Real-valued outputs, and real-valued queries against binary codes, beside rankings by the same numbers."""

import json
import operator
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from helpers import oracles
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import average_precision_score

from hashbench import evaluate, evaluate_ranking
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import grid
from hashbench.pipeline.one_job import finish
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.steps import Demands, codes_path, model_path
from hashbench.scoring.evaluation import arrays_of, evaluation_of
from hashbench.scoring.real_rankings import CosineDistance
from hashbench.store import hdf5

METRICS = ["AP", "AP@5", "AP@5:relevant", "NDCG", "NDCG@7", "NDCG:linear", "PairwiseError", "P@3", "R@3", "RR", "Hit@2"]


def places(row):
    return np.unique(row, return_inverse=True)[1]


# ---------------------------------------------------------------- outputs of queries and database


def draw(seed, n_queries=6, n_database=40, n_bits=12):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n_queries), rng.integers(0, 3, n_database)
    return rng.normal(size=(n_queries, n_bits)), rng.normal(size=(n_database, n_bits)), labels


@pytest.mark.parametrize("n_bits", [1, 33, 100])
def test_cosine_on_signs_equals_hamming(n_bits):
    query, database, labels = draw(n_bits, n_bits=n_bits)
    query, database = np.sign(query), np.sign(database)
    distances = CosineDistance(query * 3, database).distances(slice(0, 6))
    np.testing.assert_array_equal(distances, oracles.hamming_distances(query, database))
    products = CosineDistance(query * 3, database, by_dot=True).distances(slice(0, 6))
    np.testing.assert_array_equal((n_bits + products / 3) / 2, distances)
    hamming = evaluate(query, database, labels, METRICS)
    cosine = evaluate(query * 3, database, labels, METRICS, distance="cosine")
    for name, parts in hamming.scores.items():  # sums over other numbers of empty groups round otherwise
        np.testing.assert_allclose(parts, cosine.scores[name], rtol=1e-14)


def test_ties_are_items_at_an_equal_value():
    rng = np.random.default_rng(0)
    for _ in range(5):
        query = rng.integers(-1, 2, (1, 2)) * 2 + 1.0
        database = rng.integers(1, 3, (6, 2)) * rng.choice([-1.0, 1], (6, 2))
        levels = rng.integers(0, 3, (1, 6))
        levels[0, 0] = 1
        directions = [np.round(row / np.linalg.norm(row), 6) for row in database]
        distance = [round(float(-direction @ query[0]), 5) for direction in directions]
        found = evaluate(query, database, levels, ["AP", "NDCG"], distance="cosine").scores
        for name, oracle in (("AP", oracles.average_precision), ("NDCG", oracles.ndcg)):
            expected = oracles.over_orders(oracle, distance, levels[0].tolist())
            assert np.ravel(found[name]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "dot"])
@pytest.mark.parametrize("zero", [-1, 0])
def test_float_queries_rank_a_binary_database_by_inner_products(distance, zero):
    query, database, labels = draw(4, n_bits=33)  # so many bits that nothing ties
    bits = database > 0
    found = evaluate(query, np.where(bits, 1, zero), labels, ["AP"], distance=distance).scores["AP"].mean
    expected = [
        average_precision_score(labels[1] == label, products)
        for label, products in zip(labels[0], query @ bits.T, strict=True)
    ]
    is_same_order = distance == "dot" or zero == -1  # codes of -1/+1 are equally long, those of 0/1 are not
    assert np.allclose(found, expected, rtol=0, atol=1e-12) == is_same_order


def test_by_inner_product_length_counts_and_zeros_are_no_direction():
    query, database = np.array([[1.0, 1.0], [-2.0, 0.0]]), np.array([[3.0, 0], [1, 1], [0, 0], [2, 2], [1, 2]])
    distances = CosineDistance(query * 7, database, by_dot=True).distances(slice(0, 2))
    for row, products in zip(distances, query @ database.T, strict=True):
        np.testing.assert_array_equal(places(row), places(-products))
    with pytest.raises(HashbenchError, match="database outputs are all zeros"):
        CosineDistance(query, 0 * database, by_dot=True)


@pytest.mark.parametrize("factor", [1, 1e12, 1e200])
def test_one_long_item_ties_no_products_of_others(factor):
    query, database, _ = draw(7, n_queries=2, n_database=60)
    database[30:] = database[:30]
    database[12:24] = np.round(database[12:24])  # some of whose products are equal by chance
    query[0] = np.round(2 * query[0]) + 1
    long = database[:1] * factor
    database[42:] *= 1e-3
    database = np.concatenate([long, database])
    distances = CosineDistance(query, database, by_dot=True).distances(slice(0, 2))
    for row, found in zip(query, distances, strict=True):
        exact = [-sum(map(operator.mul, map(Fraction, row), map(Fraction, item))) for item in database]
        place = {value: place for place, value in enumerate(sorted(set(exact)))}
        np.testing.assert_array_equal(places(found), [place[value] for value in exact])


def test_length_of_a_row_has_no_say_and_equal_rows_tie():
    query, database, labels = draw(0, n_database=300)
    database = np.concatenate([database, database * np.linspace(1e-180, 1e180, 300)[:, None]])
    labels = labels[0], np.concatenate([labels[1], 1 - labels[1]])
    distances = CosineDistance(query, database).distances(slice(0, 6))
    np.testing.assert_array_equal(distances[:, :300], distances[:, 300:])
    assert ((distances >= 0) & (distances <= 12)).all()
    scores = evaluate(query, database, labels, ["AP"], distance="cosine").summary["AP"]
    assert scores.low < scores.mean < scores.high


# ---------------------------------------------------------------- outputs of queries, codes of the database


NAMES = ["AP", "AP@5", "NDCG@3", "NDCG:linear", "P@2", "R@4", "RR", "Hit@2", "PairwiseError"]
SCORE = {  # of each item, the higher, the nearer
    "dot": lambda outputs, codes: outputs @ (2.0 * codes - 1).T,
    "sigmoid": lambda outputs, codes: -np.abs(expit(outputs)[:, None] - codes).sum(axis=2),
}


def drawn(seed, n_queries=5):
    rng = np.random.default_rng(seed)
    n_bits, n_database = rng.integers(1, 9), rng.integers(2, 40)
    outputs = rng.integers(-3, 4, (n_queries, n_bits)) / 2  # sums tie, also of other codes; some are 0
    codes = rng.integers(0, 2, (n_database, n_bits))
    return outputs, codes, (rng.integers(0, 3, n_queries), rng.integers(0, 3, n_database))


@given(st.integers(0, 10**6))
def test_scores_are_those_of_a_ranking_by_the_same_numbers(seed):
    outputs, codes, labels = drawn(seed)
    assume(np.isin(*labels).any())
    names = [f"{name}:{form}" for name in NAMES for form in SCORE]
    scored = evaluate(outputs > 0, codes, labels, names, query_outputs=outputs)
    for form, score in SCORE.items():
        scores = score(outputs, codes).round(9)
        expected = evaluate_ranking(relevance=labels[0][:, None] == labels[1], scores=scores, metrics=NAMES)
        for name in NAMES:
            np.testing.assert_allclose(scored.scores[f"{name}:{form}"], expected.scores[name], atol=1e-12)
            assert scored[f"{name}:{form}"].tie_sd_low == pytest.approx(expected[name].tie_sd_low, nan_ok=True)


def test_hamming_scores_beside_them_are_the_same_as_without():
    outputs, codes, labels = drawn(1, n_queries=30)
    both = evaluate(outputs > 0, codes, labels, ["AP:dot", "AP", "P@r2"], query_outputs=outputs, random_orders=20)
    without = evaluate(outputs > 0, codes, labels, ["AP", "P@r2"], random_orders=20)
    assert list(both) == ["AP:dot", "AP", "P@r2"]
    assert {name: both[name] for name in without} == without.summary
    assert both["AP:dot"].tie_sd_measured == pytest.approx(both["AP:dot"].tie_sd, rel=0.6)


def test_neither_the_size_of_outputs_nor_the_order_of_bits_matters():
    rng = np.random.default_rng(10)
    whole, codes = rng.integers(-300, 301, (20, 10)), rng.integers(0, 2, (300, 10))
    labels = rng.integers(0, 3, 20), rng.integers(0, 3, 300)
    exact = evaluate_ranking(
        relevance=labels[0][:, None] == labels[1], scores=whole @ (2 * codes - 1).T, metrics=["AP"]
    ).scores["AP"]
    expected = evaluate(whole > 0, codes, labels, ["AP:dot"], query_outputs=whole).scores["AP:dot"]
    np.testing.assert_allclose(expected, exact, atol=1e-12)
    for unit in (1e-200, 0.001, 0.1, 1e200):
        bits = rng.permutation(10)
        outputs = whole[:, bits] * unit
        scored = evaluate(outputs > 0, codes[:, bits], labels, ["AP:dot"], query_outputs=outputs)
        np.testing.assert_array_equal(scored.scores["AP:dot"], expected)


def test_the_deviation_is_that_of_queries_that_differ_in_outputs_though_not_in_codes():
    outputs = np.abs(np.random.default_rng(8).normal(size=(60, 5)))
    codes, classes = np.random.default_rng(9).integers(0, 2, (200, 5)), np.arange(200) % 3
    labels = np.zeros(60, dtype=np.int64), classes
    scored = evaluate(outputs > 0, codes, labels, ["P@5:dot", "AP:dot"], query_outputs=outputs, random_orders=200)
    expected = evaluate(outputs, 2 * codes - 1, labels, ["P@5", "AP"], distance="dot")
    for name in expected:
        assert scored[f"{name}:dot"].tie_sd == pytest.approx(expected[name].tie_sd, rel=1e-9)
    assert scored["P@5:dot"].tie_sd == pytest.approx(scored["P@5:dot"].tie_sd_measured, rel=0.4)
    kept = evaluation_of(arrays_of(scored), ["P@5:dot", "AP:dot"])
    assert kept["P@5:dot"].tie_sd == scored["P@5:dot"].tie_sd


def test_outputs_that_differ_from_the_codes_get_a_note_and_those_of_other_codes_are_refused():
    outputs, codes, labels = drawn(9)
    flat, n_signs = np.flatnonzero(outputs), np.count_nonzero(outputs)
    for n_wrong, is_refused in ((0, False), (1, False), (n_signs // 4, False), (n_signs // 4 + 1, True)):
        other = (outputs > 0).ravel()
        other[flat[:n_wrong]] ^= True
        with pytest.raises(HashbenchError, match="so they cannot be compared") if is_refused else nullcontext():
            scored = evaluate(other.reshape(outputs.shape), codes, labels, ["AP:dot"], query_outputs=outputs)
            note = f"differ from the query codes in {n_wrong / n_signs:.1%} of the bits"
            assert any(note in text for text in scored.notes) == (n_wrong > 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query_outputs": np.zeros((3, 2))}, r"float64 of shape \(3, 2\), expected real numbers of shape \(2, 3\)"),
        ({"query_outputs": np.full((2, 3), np.nan)}, "outputs of query 0 .* are not all finite"),
        ({"query_outputs": None}, "AP:dot compares codes with the real-valued outputs of queries.*hashbench run"),
        ({"metrics": ["P@r2:dot"]}, "P@r2 needs Hamming distances"),
        ({"metrics": ["R@1:reranked=2:sigmoid"]}, "R@1:reranked=2 needs Hamming distances"),
        ({"distance": "cosine"}, "query_outputs are compared with codes that are ranked by Hamming distance"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    given = {"metrics": ["AP:dot"], "query_outputs": np.ones((2, 3)), **change}
    with pytest.raises(HashbenchError, match=words):
        evaluate(np.ones((2, 3)), np.ones((4, 3)), ([0, 1], [0, 1, 0, 1]), **given)


@pytest.mark.usefixtures("digits_data")
def test_a_run_scores_the_projections_of_queries_and_keeps_them_only_for_that(hashbench):
    dataset, _ = load_dataset("digits")
    (job,) = grid(["digits"], ["itq"], [16], [0], {})
    finish(job, dataset, Demands(["AP"]))
    path = codes_path(dataset, job)
    with hdf5.open_codes(path) as codes:
        assert codes.query_outputs is None
        query, content = codes.query, codes.content
    outcome = finish(job, dataset, Demands(["AP", "AP:dot"]))
    assert outcome.notes[0] == "encoded codes"
    assert finish(job, dataset, Demands(["AP", "AP:dot"])).notes == ("reused codes", "reused scores")
    with hdf5.open_codes(path) as codes:
        np.testing.assert_array_equal(codes.query, query)
        assert codes.content != content  # so that scores by other outputs of equal codes are not reused
        method = job.estimator.fit(dataset.features[dataset.train])
        np.testing.assert_array_equal(codes.query_outputs, method.project(dataset.features[dataset.query]))
        bits = method.transform(dataset.features[dataset.database])
        relevance = dataset.labels[dataset.query][:, None] == dataset.labels[dataset.database]
        expected = evaluate_ranking(
            relevance=relevance, scores=SCORE["dot"](codes.query_outputs, bits).round(9), metrics=["AP"]
        )
    assert float(outcome.rows[1].value) == pytest.approx(expected["AP"].mean, abs=1e-6)
    assert [row.metric for row in outcome.rows] == ["AP", "AP:dot"]
    assert outcome.rows[1].value in hashbench("evaluate", path, "--metric", "AP:dot", "--format", "csv").stdout
    two = hashbench("compare", path, path, "--metric", "AP:dot")
    assert "two codes are compared by Hamming distance" in two.stderr


@pytest.mark.usefixtures("digits_data")
def test_outputs_that_codes_lack_come_from_the_model_beside_them(hashbench):
    dataset, _ = load_dataset("digits")
    of_itq, of_lsh = grid(["digits"], ["itq", "lsh"], [24], [0], {})
    for job in (of_itq, of_lsh):
        finish(job, dataset, Demands([], keep_models=True))
    path, model = codes_path(dataset, of_itq), model_path(dataset, of_itq)
    with hdf5.open_codes(path) as codes:
        assert codes.query_outputs is None
    scored = hashbench("evaluate", path, "--metric", "AP:dot", "--format", "csv")
    recall = hashbench("candidates", path, "--metric", "R@200:dot", "--wanted-recall", ".1")
    assert recall.exit_code == 0, recall.stderr
    model_path(dataset, of_lsh).replace(model)
    assert f"is not the model of the codes in {path.name}" in hashbench("evaluate", path, "--metric", "AP:dot").stderr
    model.unlink()
    assert "encode with --keep-model" in hashbench("evaluate", path, "--metric", "AP:dot").stderr
    (row,) = finish(of_itq, dataset, Demands(["AP:dot"])).rows
    assert row.value in scored.stdout


@pytest.mark.usefixtures("empty_folder")
def test_the_command_takes_outputs_of_the_users_queries(hashbench):
    outputs, codes, labels = drawn(6, n_queries=30)
    outputs = outputs / 5  # tenths, whose sums tie in float64 but not in float32
    arrays = {"outputs": outputs, "q": outputs > 0, "d": codes, "ql": labels[0], "dl": labels[1]}
    for name, values in arrays.items():
        np.save(f"{name}.npy", values)
    roles = {"query-codes": "q", "database-codes": "d", "query-labels": "ql", "database-labels": "dl"}
    files = [word for role, name in roles.items() for word in (f"--{role}", f"{name}.npy")]
    more = ["--query-outputs", "outputs.npy", "--metric", "AP", "--metric", "AP:dot"]
    assert hashbench("evaluate", *files, *more, "--per-query", "scores.csv").exit_code == 0
    table = pd.read_csv("scores.csv")
    expected = evaluate(outputs > 0, codes, labels, ["AP:dot"], query_outputs=outputs)
    values = table.loc[table["metric"] == "AP:dot", "value"]
    np.testing.assert_allclose(values, expected.scores["AP:dot"].mean)
    unused = hashbench("evaluate", *files, "--query-outputs", "outputs.npy", "--metric", "AP")
    assert "such as --metric AP:dot, or leave the outputs out" in unused.stderr


@pytest.mark.usefixtures("empty_folder")
def test_the_command_takes_a_matrix_of_scores_instead_of_codes(hashbench):
    rng = np.random.default_rng(3)
    scores, (of_query, of_item) = rng.integers(0, 4, (12, 30)) / 4, (rng.integers(0, 3, 12), rng.integers(0, 3, 30))
    for name, values in {"scores": scores, "ql": of_query, "dl": of_item, "group": rng.integers(0, 2, 30)}.items():
        np.save(f"{name}.npy", values)
    np.save("query-group.npy", rng.integers(0, 2, 12))
    relevance = (of_query[:, None] == of_item).astype(int)
    of_labels = "evaluate", "--scores", "scores.npy", "--query-labels", "ql.npy", "--database-labels", "dl.npy"
    asked = *of_labels, "--metric", "AP", "--metric", "P@5", "--format", "json"
    found, expected = (
        json.loads(hashbench(*asked).stdout),
        evaluate_ranking(relevance=relevance, scores=scores, metrics=["AP", "P@5"]),
    )
    assert {name: found[name]["mean"] for name in expected} == {name: one.mean for name, one in dict(expected).items()}
    ignored = json.loads(hashbench(*asked, "--groups", "query-group.npy", "group.npy").stdout)
    seen = (np.load("query-group.npy")[:, None] == np.load("group.npy")) & (relevance > 0)
    assert (
        ignored["AP"]["mean"]
        == evaluate_ranking(relevance=np.where(seen, -1, relevance), scores=scores, metrics=["AP"])["AP"].mean
    )
    for more, words in {
        ("--bits", "3"): "--scores does not go with --bits",
        ("--curves", "c.svg"): "--curves does not go with --scores",
        ("--metric", "P@r2"): "P@r2 counts inside a radius",
        ("--scores", "ql.npy"): "scores in ql.npy have shape (12,), expected (n_queries, n_database)",
        ("--query-labels", "dl.npy"): "there is relevance for 30 queries and there are scores for 12",
    }.items():
        assert words in hashbench(*of_labels, *more).stderr
