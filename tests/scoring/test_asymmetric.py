"""Real-valued queries against binary codes: scores are those of rankings by the same numbers."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from hashbench import Problem, evaluate, evaluate_ranking
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import grid
from hashbench.pipeline.one_job import finish
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.steps import Demands, codes_path
from hashbench.scoring.evaluation import arrays_of, evaluation_of
from hashbench.store import hdf5

NAMES = ["AP", "AP@5", "NDCG@3", "NDCG:linear", "P@2", "R@4", "RR", "Hit@2", "PairwiseError"]
SCORE = {  # of each item, the higher, the nearer
    "dot": lambda outputs, codes: outputs @ (2.0 * codes - 1).T,
    "sigmoid": lambda outputs, codes: -np.abs(expit(outputs)[:, None] - codes).sum(axis=2),
}


def drawn(seed, n_queries=5):
    generator = np.random.default_rng(seed)
    n_bits, n_database = generator.integers(1, 9), generator.integers(2, 40)
    outputs = generator.integers(-3, 4, (n_queries, n_bits)) / 2  # sums tie, also of other codes; some are 0
    codes = generator.integers(0, 2, (n_database, n_bits))
    return outputs, codes, (generator.integers(0, 3, n_queries), generator.integers(0, 3, n_database))


@given(st.integers(0, 10**6))
def test_scores_are_those_of_a_ranking_by_the_same_numbers(seed):
    outputs, codes, labels = drawn(seed)
    names = [f"{name}:{form}" for name in NAMES for form in SCORE]
    scored = evaluate(outputs > 0, codes, labels, names, query_outputs=outputs)
    for form, score in SCORE.items():
        scores = score(outputs, codes).round(9)
        expected = evaluate_ranking(labels[0][:, None] == labels[1], scores, NAMES)
        for name in NAMES:
            for part, values in zip(scored.scores[f"{name}:{form}"], expected.scores[name], strict=True):
                np.testing.assert_allclose(part, values, atol=1e-12, err_msg=f"{name}:{form}")
            assert scored[f"{name}:{form}"].tie_sd_low == pytest.approx(expected[name].tie_sd_low, nan_ok=True)


def test_hamming_scores_beside_them_are_the_same_as_without():
    outputs, codes, labels = drawn(1, n_queries=30)
    both = evaluate(outputs > 0, codes, labels, ["AP:dot", "AP", "P@r2"], query_outputs=outputs, random_orders=20)
    without = evaluate(outputs > 0, codes, labels, ["AP", "P@r2"], random_orders=20)
    assert list(both) == ["AP:dot", "AP", "P@r2"]
    assert {name: both[name] for name in without} == without.summary
    assert both["AP:dot"].tie_sd_measured == pytest.approx(both["AP:dot"].tie_sd, rel=0.6)


def test_outputs_of_equal_size_rank_as_the_hamming_distance():
    _, codes, labels = drawn(2, n_queries=30)
    outputs = np.random.default_rng(3).choice([-0.7, 0.7], (30, codes.shape[1]))
    scored = evaluate(outputs > 0, codes, labels, ["AP", "AP:dot", "AP:sigmoid"], query_outputs=outputs)
    for form in SCORE:
        for of_hamming, values in zip(scored.scores["AP"], scored.scores[f"AP:{form}"], strict=True):
            np.testing.assert_allclose(values, of_hamming, atol=1e-12)


def test_queries_that_are_items_leave_themselves_out():
    outputs, _, _ = drawn(4, n_queries=12)
    codes, classes = outputs > 0, np.arange(12) % 3
    scored = evaluate(codes, codes, (classes, classes), ["AP:dot"], query_outputs=outputs, exclude_self=True)
    scores = SCORE["dot"](outputs, codes)
    others = [np.delete(np.arange(12), number) for number in range(12)]
    expected = evaluate_ranking(
        [classes[rest] == classes[number] for number, rest in enumerate(others)],
        [scores[number, rest] for number, rest in enumerate(others)],
        ["AP"],
    )
    np.testing.assert_allclose(scored.scores["AP:dot"].mean, expected.scores["AP"].mean)


def test_outputs_of_any_size_give_the_same_ranking():
    outputs, codes, labels = drawn(5)
    expected = evaluate(outputs > 0, codes, labels, ["AP:dot"], query_outputs=outputs)
    for factor in (1e-200, 3.0, 1e200):
        scored = evaluate(outputs > 0, codes, labels, ["AP:dot"], query_outputs=factor * outputs)
        np.testing.assert_array_equal(scored.scores["AP:dot"].mean, expected.scores["AP:dot"].mean)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query_outputs": np.zeros((3, 2))}, r"float64 of shape \(3, 2\), expected real numbers of shape \(2, 3\)"),
        ({"query_outputs": np.full((2, 3), np.nan)}, "outputs of query 0 .* are not all finite"),
        ({"query_outputs": None}, "AP:dot compares codes with the real-valued outputs of queries"),
        ({"metrics": ["P@r2:dot"]}, "P@r2 needs Hamming distances"),
        ({"metrics": ["R@1:reranked=2:sigmoid"]}, "R@1:reranked=2 needs Hamming distances"),
        ({"distance": "cosine"}, "query_outputs are compared with codes, and distance='cosine' ranks by real-valued"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    given = {"metrics": ["AP:dot"], "query_outputs": np.ones((2, 3)), **change}
    with pytest.raises(HashbenchError, match=words):
        evaluate(np.ones((2, 3)), np.ones((4, 3)), ([0, 1], [0, 1, 0, 1]), **given)


def test_rankings_without_codes_refuse_them():
    with pytest.raises(HashbenchError, match="hashbench run"):
        evaluate_ranking([[1, 0]], [[0.5, 0.1]], ["AP:dot"])


@pytest.mark.usefixtures("digits_data")
def test_a_run_scores_the_projections_of_queries_and_keeps_them_only_for_that():
    dataset, _ = load_dataset("digits")
    (job,) = grid(["digits"], ["itq"], [16], [0], {})
    finish(job, dataset, Demands(["AP"]))
    with hdf5.open_codes(codes_path(dataset, job)) as codes:
        assert codes.query_outputs is None
        query, content = codes.query, codes.content
    outcome = finish(job, dataset, Demands(["AP", "AP:dot"]))
    assert outcome.notes[0] == "encoded codes"
    assert finish(job, dataset, Demands(["AP", "AP:dot"])).notes == ("reused codes", "reused scores")
    with hdf5.open_codes(codes_path(dataset, job)) as codes:
        np.testing.assert_array_equal(codes.query, query)
        assert codes.content != content  # so that scores by other outputs of equal codes are not reused
        method = job.estimator.fit(dataset.features[dataset.train])
        np.testing.assert_array_equal(codes.query_outputs, method.project(dataset.features[dataset.query]))
        bits = method.transform(dataset.features[dataset.database])
        expected = evaluate_ranking(
            dataset.labels[dataset.query][:, None] == dataset.labels[dataset.database],
            SCORE["dot"](codes.query_outputs, bits).round(9),
            ["AP"],
        )
    assert float(outcome.rows[1].value) == pytest.approx(expected["AP"].mean, abs=1e-6)
    assert [row.metric for row in outcome.rows] == ["AP", "AP:dot"]


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


def test_the_deviation_is_that_of_queries_that_differ_in_outputs_though_not_in_codes():
    outputs = np.abs(np.random.default_rng(8).normal(size=(60, 5)))
    codes, classes = np.random.default_rng(9).integers(0, 2, (200, 5)), np.arange(200) % 3
    labels = np.zeros(60, dtype=np.int64), classes
    scored = evaluate(outputs > 0, codes, labels, ["P@5:dot", "AP:dot"], query_outputs=outputs, random_orders=400)
    expected = evaluate(outputs, 2 * codes - 1, labels, ["P@5", "AP"], distance="dot")
    for name in expected:
        assert scored[f"{name}:dot"].tie_sd == pytest.approx(expected[name].tie_sd, rel=1e-9)
    assert scored["P@5:dot"].tie_sd == pytest.approx(scored["P@5:dot"].tie_sd_measured, rel=0.4)
    kept = evaluation_of(arrays_of(scored), ["P@5:dot", "AP:dot"])
    assert kept["P@5:dot"].tie_sd == scored["P@5:dot"].tie_sd


@pytest.mark.parametrize("unit", [1 / 512, 0.1, 0.001])
def test_the_order_of_bits_does_not_matter(unit):
    rng = np.random.default_rng(10)
    outputs, codes = rng.integers(-300, 301, (20, 10)) * unit, rng.integers(0, 2, (300, 10))
    labels = rng.integers(0, 3, 20), rng.integers(0, 3, 300)
    expected = evaluate(outputs > 0, codes, labels, ["AP:dot"], query_outputs=outputs).scores["AP:dot"]
    whole = np.rint(outputs / unit) @ (2 * codes - 1).T
    exact = evaluate_ranking(labels[0][:, None] == labels[1], whole, ["AP"]).scores["AP"]
    np.testing.assert_allclose(expected, exact, atol=1e-12)
    for _ in range(5):
        bits = rng.permutation(10)
        scored = evaluate(outputs[:, bits] > 0, codes[:, bits], labels, ["AP:dot"], query_outputs=outputs[:, bits])
        np.testing.assert_array_equal(scored.scores["AP:dot"], expected)


@pytest.mark.usefixtures("digits_data")
def test_a_codes_file_with_outputs_takes_any_metric(hashbench):
    (job,) = grid(["digits"], ["lsh"], [16], [0], {})
    dataset, _ = load_dataset("digits")
    outcome = finish(job, dataset, Demands(["AP", "AP:dot"]))
    path = str(codes_path(dataset, job))
    assert "AP " in hashbench("evaluate", path, "--metric", "AP").stdout
    shown = hashbench("evaluate", path, "--metric", "AP:dot", "--format", "csv").stdout
    assert outcome.rows[1].value in shown
    two = hashbench("compare", path, path, "--metric", "AP:dot")
    assert "two codes are compared by Hamming distance" in two.stderr


def test_outputs_that_differ_from_the_codes_get_a_note_and_those_of_other_codes_are_refused():
    outputs, codes, labels = drawn(7)
    query = outputs > 0
    query[0, 0] ^= outputs[0, 0] != 0
    scored = evaluate(query, codes, labels, ["AP:dot"], query_outputs=outputs)
    share = (query != (outputs > 0)).sum() / np.count_nonzero(outputs)
    assert any(f"differ from the query codes in {share:.1%} of the bits" in note for note in scored.notes)
    flat, n_signs = np.flatnonzero(outputs), np.count_nonzero(outputs)
    for n_wrong, is_refused in ((n_signs // 4, False), (n_signs // 4 + 1, True), (n_signs, True)):
        other = (outputs > 0).ravel()
        other[flat[:n_wrong]] ^= True
        with pytest.raises(HashbenchError, match="so they cannot be compared") if is_refused else nullcontext():
            evaluate(other.reshape(outputs.shape), codes, labels, ["AP:dot"], query_outputs=outputs)
    assert not any("signs" in note for note in evaluate(outputs > 0, codes, labels, query_outputs=outputs).notes)


def test_candidates_by_outputs_are_refused():
    with pytest.raises(HashbenchError, match="candidates are counted by Hamming distance"):
        Problem.of_codes([[0, 0]], [[0, 0], [1, 1]], [[1, 0]]).candidates("R@2:dot", 0.5)
