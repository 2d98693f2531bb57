"""One value for what is scored: the same problem by any route has the same scores, deviations and refusals."""

import numpy as np
import pytest
from helpers.slices import in_slices
from hypothesis import given
from hypothesis import strategies as st

import hashbench
from hashbench.affinity import SameLabel
from hashbench.bits import pack
from hashbench.errors import HashbenchError

RNG = np.random.default_rng(0)
N_ITEMS, N_BITS = 40, 4
CODES, LABELS = RNG.random((N_ITEMS, N_BITS)) < 0.5, RNG.integers(0, 3, N_ITEMS)
DISTANCES = (CODES[:, None] != CODES).sum(axis=2)
SAME = (LABELS[:, None] == LABELS).astype(int)
METRICS = ["AP", "P@1", "NDCG", "RR", "R@7"]


def of_run(relevance, **options):
    names = [f"item {number}" for number in range(N_ITEMS)]
    by_name = [{query: dict(zip(names, row.tolist(), strict=True)) for query, row in zip(names, matrix, strict=True)}
               for matrix in (-DISTANCES.astype(float), relevance)]  # fmt: skip
    return hashbench.evaluate_run(*by_name, [*METRICS[:2], "NDCG:exponential", *METRICS[3:]], **options)


def means_and_deviations(scored):
    return [(*values[:3], values.tie_sd) for values in scored.summary.values()]


def test_leaving_oneself_out_is_the_same_by_codes_scores_and_run():
    expected = hashbench.evaluate(CODES, CODES, (LABELS, LABELS), METRICS, exclude_self=True)
    for relevance in (SAME, SameLabel(LABELS, LABELS)):
        found = hashbench.evaluate_ranking(relevance, -DISTANCES, METRICS, exclude_self=True)
        np.testing.assert_allclose(means_and_deviations(found), means_and_deviations(expected), rtol=1e-12)
    found = of_run(SAME, exclude_self=True)
    np.testing.assert_allclose(means_and_deviations(found), means_and_deviations(expected), rtol=1e-12)
    np.testing.assert_array_equal(found.scores["AP"].low, expected.scores["AP"].low)


def test_a_document_that_is_the_query_is_ignored_listed_or_not():
    run = {"a": {"a": 3.0, "b": 2.0, "c": 1.0}, "b": {"a": 1.0, "c": 2.0}}
    qrels = {"a": {"a": 1, "c": 1}, "b": {"b": 1, "a": 1}}
    without = {query: {name: score for name, score in of.items() if name != query} for query, of in run.items()}
    rated = {query: {name: grade for name, grade in of.items() if name != query} for query, of in qrels.items()}
    found = hashbench.evaluate_run(run, qrels, ["AP", "R@1", "RPrec"], exclude_self=True)
    assert found.summary == hashbench.evaluate_run(without, rated, ["AP", "R@1", "RPrec"]).summary


@given(st.integers(0, 2**32 - 1))
def test_a_level_of_minus_one_is_ignored_by_codes_and_by_scores(seed):
    rng = np.random.default_rng(seed)
    codes, levels = rng.random((9, 3)) < 0.5, rng.integers(-1, 3, (4, 5))
    levels[:, 0] = 0  # so that each query ranks an item, and 0 occurs
    scores = -(codes[:4, None] != codes[4:]).sum(axis=2)
    expected = hashbench.evaluate(codes[:4], codes[4:], levels, METRICS, undefined="zero")
    found = hashbench.evaluate_ranking(levels, scores, METRICS, undefined="zero")
    np.testing.assert_allclose(means_and_deviations(found), means_and_deviations(expected), rtol=1e-12)


def test_ids_groups_and_junk_mean_the_same_for_scores_as_for_codes():
    cameras, ids = RNG.integers(0, 3, N_ITEMS), RNG.integers(0, 30, N_ITEMS)
    for options in ({"groups": (cameras, cameras)}, {"exclude_same_id": (ids, ids)}, {"junk_label": 2}):
        expected = hashbench.evaluate(CODES, CODES, (LABELS, LABELS), METRICS, **options)
        found = hashbench.evaluate_ranking(SameLabel(LABELS, LABELS), -DISTANCES, METRICS, **options)
        np.testing.assert_allclose(means_and_deviations(found), means_and_deviations(expected), rtol=1e-12)
        assert [note for note in found.notes if "ignored" in note] == [
            note for note in expected.notes if "ignored" in note
        ]


def test_one_problem_answers_every_question_as_its_own_does():
    problem = hashbench.Problem.of_codes(CODES[:9], CODES[9:], (LABELS[:9], LABELS[9:]))
    assert problem.evaluate(METRICS).summary == problem.evaluate(METRICS).summary
    whole = hashbench.evaluate(CODES[:9], CODES[9:], (LABELS[:9], LABELS[9:]), METRICS)
    assert problem.evaluate(METRICS).summary == whole.summary
    curves = problem.curves()
    assert curves["precision"].iloc[-1] == pytest.approx(np.mean(SAME[:9, 9:]))
    assert problem.thresholds().n_relevant == SAME[:9, 9:].sum()
    assert hashbench.explain(problem, "AP", scripts="csq").scripts["exact_mean"][0] == whole["AP"].mean


def test_what_does_not_fit_a_problem_is_refused_in_one_sentence():
    outputs, sliced = RNG.normal(size=(9, 4)), SameLabel(LABELS[:9], LABELS[9:])
    by_cosine = hashbench.Problem.of_codes(outputs[:4], outputs[4:], np.eye(4, 5, dtype=int), distance="cosine")
    in_parts = in_slices(pack(CODES[:9]), pack(CODES[9:]), N_BITS, sliced)
    vectors, ragged = (RNG.random((8, 3)), RNG.random((N_ITEMS - 9, 3))), ([[1, 0], [0, 1, 1]], [[2, 1], [3, 2, 1]])
    need_codes = r"are of binary codes and their Hamming distance, .* Pass binary codes"
    for ask, message in (
        (by_cosine.thresholds, need_codes),
        (lambda: by_cosine.candidates("R@9", 0.5), need_codes),
        (lambda: hashbench.explain(by_cosine), need_codes),
        (lambda: in_parts.thresholds(held_out=True), "read in slices is not split in halves"),
        (lambda: hashbench.evaluate_ranking(*ragged, exclude_self=True), "queries have different numbers of items"),
        (
            lambda: hashbench.Problem(CODES, CODES),
            r"by Problem\.of_codes\(query_codes, database_codes, affinity\), got",
        ),
        (
            lambda: hashbench.Problem.of_codes(CODES[:9], CODES[9:], SAME[:9, 9:], vectors=vectors),
            "there are 8 query vectors for 9 query codes",
        ),
    ):
        with pytest.raises(HashbenchError, match=message):
            ask()


@pytest.mark.parametrize("form", [tuple, list, np.array])
def test_two_rows_of_relevance_are_no_pair_of_labels(form):
    rows = form([np.array([0, 0]), np.array([1, 0])])
    found = hashbench.evaluate_ranking(rows, [[2, 1], [2, 1]], ["R@1"], exclude_self=True)
    np.testing.assert_array_equal(found.scores["R@1"].mean, [np.nan, 1])
