"""Rankings by any scores, against brute force over orders and the libraries whose conventions are offered."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import oracles
from helpers.paths import ROOT
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

import hashbench
from hashbench import HashbenchError

ITEMS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-1.5, 0.0, 0.25, np.inf])), min_size=1, max_size=6)


@given(st.lists(ITEMS, min_size=1, max_size=3))
def test_lists_of_unequal_length_are_scored_over_every_order_of_tied_items(queries):
    relevance, scores = ([[item[part] for item in items] for items in queries] for part in (0, 1))
    found = hashbench.evaluate_ranking(
        relevance=relevance, scores=scores, metrics=["AP", "NDCG:trec", "RR"], undefined="zero"
    )
    for number, (levels, ranked) in enumerate(zip(relevance, scores, strict=True)):
        for name, oracle in (
            ("AP", oracles.average_precision),
            ("NDCG:trec", lambda levels: oracles.ndcg(levels, None, "trec")),
            ("RR", oracles.reciprocal_rank),
        ):
            expected = oracles.over_orders(oracle, [-score for score in ranked], levels) if any(levels) else (0,) * 4
            assert [part[number] for part in found.scores[name]] == pytest.approx(expected, abs=1e-12)


@pytest.fixture(params=["ties", "none"])
def ranking(request):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, (12, 40)) if request.param == "ties" else rng.random((12, 40))
    return rng.choice([0, 0, 0, 1, 3], (12, 40)), scores


def test_ndcg_and_thresholds_are_scikit_learns_with_ties_and_without(ranking):
    whole, scores = ranking
    for relevance in (whole, np.random.default_rng(1).random((12, 40)) ** 9):
        names = ["NDCG:trec", "NDCG@7:trec", *["AP:thresholds"] * (relevance is whole)]
        found = hashbench.evaluate_ranking(relevance=relevance, scores=scores + 0.5, metrics=names).scores
        for number, (levels, ranked) in enumerate(zip(relevance, scores, strict=True)):
            assert found["NDCG:trec"].mean[number] == pytest.approx(ndcg_score([levels], [ranked]))
            assert found["NDCG@7:trec"].mean[number] == pytest.approx(ndcg_score([levels], [ranked], k=7))
            if relevance is whole:
                expected = average_precision_score(levels > 0, ranked)
                assert [part[number] for part in found["AP:thresholds"]] == pytest.approx([expected] * 3 + [0])


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 3)), min_size=2, max_size=9), st.floats(1e-3, 1))
def test_a_factor_of_all_gains_changes_no_linear_score(items, factor):
    gains, scores = np.array(items).T
    first, second = (
        hashbench.evaluate_ranking(
            relevance=given, scores=-scores, metrics=["NDCG:linear", "NDCG:trec"], undefined="zero"
        )
        for given in (gains, factor * gains)
    )
    for name, parts in first.scores.items():
        assert np.ravel(second.scores[name]) == pytest.approx(np.ravel(parts), abs=1e-12)


@given(st.lists(ITEMS, min_size=1, max_size=3))
def test_whole_gains_as_floats_are_whole_levels(queries):
    relevance, scores = ([[item[part] for item in items] for items in queries] for part in (0, 1))
    names = ["AP", "NDCG", "NDCG:linear", "NDCG@3:trec", "P@2", "PairwiseError"]
    first, second = (
        hashbench.evaluate_ranking(relevance=given, scores=scores, metrics=names)
        for given in (relevance, [np.array(row, dtype=float) for row in relevance])
    )
    assert repr(first.summary) == repr(second.summary)
    np.testing.assert_array_equal([*first.scores.values()], [*second.scores.values()])


@pytest.mark.slow  # imports torchmetrics
def test_values_are_torchmetrics_where_these_are_exact(ranking):
    retrieval = pytest.importorskip("torchmetrics.functional.retrieval", reason="torchmetrics is not installed")
    import torch

    relevance, scores = ranking
    names = ["NDCG:trec"] if (scores > 1).any() else ["NDCG:trec", "AP", "RR", "RPrec", "P@5", "R@5"]
    found = hashbench.evaluate_ranking(relevance=relevance, scores=scores, metrics=names).scores
    theirs = {
        "NDCG:trec": retrieval.retrieval_normalized_dcg,
        "AP": lambda ranked, levels: retrieval.retrieval_average_precision(ranked, levels > 0),
        "RR": lambda ranked, levels: retrieval.retrieval_reciprocal_rank(ranked, levels > 0),
        "RPrec": lambda ranked, levels: retrieval.retrieval_r_precision(ranked, levels > 0),
        "P@5": lambda ranked, levels: retrieval.retrieval_precision(ranked, levels > 0, top_k=5),
        "R@5": lambda ranked, levels: retrieval.retrieval_recall(ranked, levels > 0, top_k=5),
    }
    for name in names:
        for number, (levels, ranked) in enumerate(zip(relevance, scores, strict=True)):
            expected = theirs[name](torch.tensor(ranked, dtype=torch.float64), torch.tensor(levels)).item()
            assert found[name].mean[number] == pytest.approx(expected, abs=1e-6)  # in 32 bits there


@pytest.mark.slow  # compiles ranx
@pytest.mark.filterwarnings("ignore:unsafe cast")  # in loops of ranx
def test_values_without_ties_are_those_of_ranx_and_of_runs():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    rng = np.random.default_rng(1)
    relevance, scores = rng.integers(0, 3, (10, 12)), rng.permuted(np.tile(np.arange(12.0), (10, 1)), axis=1)
    scores[3], relevance[4] = rng.permutation(12), 0
    run = {f"q{q}": {f"d{d}": float(score) for d, score in enumerate(row)} for q, row in enumerate(scores)}
    qrels = {f"q{q}": {f"d{d}": int(level) for d, level in enumerate(row)} for q, row in enumerate(relevance)}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), ["map", "ndcg@5", "mrr", "precision@5"])
    names = ["AP", "NDCG@5:trec", "RR", "P@5"]
    ours = hashbench.evaluate_ranking(relevance=relevance, scores=scores, metrics=names, undefined="zero").summary
    assert [ours[name].mean for name in names] == pytest.approx(list(theirs.values()))
    judged = hashbench.evaluate_run(run, qrels, names, undefined="zero").summary
    assert [judged[name].mean for name in names] == pytest.approx([ours[name].mean for name in names])


def test_numpy_alone_is_enough_and_gives_the_same(tmp_path):
    """Run in a process whose only package is NumPy, and compare with loops that numba compiled."""
    script = """
import sys; sys.path[:0] = sys.argv[1:]
import numpy as np, hashbench
rng = np.random.default_rng(0)
names = ["AP", "AP@5", "AP@R", "NDCG", "NDCG@5:trec", "P@5", "R@5", "RPrec", "RR", "Hit@3", "PairwiseError"]
found = hashbench.evaluate_ranking(
    relevance=rng.integers(0, 3, (6, 40)), scores=rng.integers(0, 7, (6, 40)), metrics=names
)
foreign = {"numba", "pandas", "scipy", "sklearn", "joblib"} & set(sys.modules)
print(sorted(foreign), [np.array(scores).tobytes().hex() for scores in found.scores.values()])
"""
    for folder in Path(np.__file__).parents[1].glob("numpy*"):
        (tmp_path / folder.name).symlink_to(folder)
    alone = [sys.executable, "-I", "-S", "-c", script, str(tmp_path), str(ROOT)]
    here = [sys.executable, "-c", f"import numba\n{script}".replace('{"numba", ', "{")]
    outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in (alone, here)]
    assert outputs[0].startswith("[] ")
    values = [np.frombuffer(bytes.fromhex("".join(eval(text.split(" ", 1)[1])))) for text in outputs]
    np.testing.assert_allclose(*values, rtol=1e-13, atol=1e-15)


ARANGE, GAINS = np.arange(11), np.arange(1, 1002) / 1002


@pytest.mark.parametrize(
    ("relevance", "scores", "metric", "message"),
    [
        ([[1, 0]], [[0.5]], "AP", r"query 0 has relevance of shape \(2,\) and scores of shape \(1,\)"),
        ([[1], [1]], [[1]], "AP", "relevance for 2 queries and there are scores for 1"),
        ([[1, 0]], [[0.5, np.nan]], "AP", "item 1 of query 0 has score NaN"),
        ([[0.5, 0]], [[0.5, 1]], "AP", "^AP needs whole-number levels of relevance, and one is 0.5. Choose a form of"),
        ([[-0.5, 0]], [[0.5, 1]], "AP", "^relevance holds levels 0 to 1000, got 1 other values"),
        ([[np.nan, 0]], [[3, 1]], "AP", "^relevance holds levels"),
        (
            [[0.5, 0]],
            [[3, 1]],
            "AP",
            r"swapped: relevance holds 0.5, .* evaluate_ranking\(relevance=..., scores=...\); if it",
        ),
        ([[2000, 1]], [[1, 0]], "AP", r"holds 2000, .*; if it is right, give grades from 0 to 1000, whole numbers ex"),
        ([[-2, -7]], [[True, False]], "AP", "swapped: relevance holds -2, which is not a grade, and scores only who"),
        ([[np.inf, 0]], [[0, 1]], "AP", "look swapped"),
        ([ARANGE], [ARANGE % 5], "AP", "holds 11 grades and scores hold 5 .* add 0.5 to the"),
        ([ARANGE / 10], [ARANGE % 5], "NDCG", "holds 11 grades and scores hold 5"),
        ([[0.7, 0.1, 0.3, 0.2]], [[0, 1, 1, 0]], "NDCG:trec", r"holds 4 grades, such as 0\.7, and scores only 0 and"),
        ([[1, 0], [-1, -1]], [[3, 2], [2, 1]], "AP", "^query 1 .counted from 0. ignores all items of the database"),
        (
            [GAINS[:1], GAINS],
            [[0.5], GAINS],
            "NDCG",
            "relevance of query 1 holds 1,001 different levels above 0, at most",
        ),
        ([["a"]], [["b"]], "AP", "expected numbers"),
        ([[[1]]], [[[1]]], "AP", "3 dimensions"),
        ([], [], "AP", "no queries|no items|shape"),
        ([[]], [[]], "AP", "at least one"),
    ],
)
def test_what_cannot_be_ranked_is_refused(relevance, scores, metric, message):
    with pytest.raises(HashbenchError, match=message):
        hashbench.evaluate_ranking(relevance=relevance, scores=scores, metrics=[metric])


@pytest.mark.parametrize(
    ("gains", "scores"),
    [
        (ARANGE[:10], ARANGE[:10] % 2),
        (ARANGE[:10] / 10, ARANGE[:10] % 5),
        (np.arange(20), np.arange(20) % 6),
        (np.arange(20), np.arange(20) % 2 + 0.5),
        (np.arange(20), -(np.arange(20) % 2)),
        (np.arange(20) % 2, np.arange(20)),
        ([0.7, 0, 0.7], [0, 1, 1]),
        ([0.7, 0.3, 0], [0, 2, 1]),
        ([0.7, 0.3, 0], [0.5, 1.5, 1.5]),
        ([0.7, 0.3, 0], [1, 1, 1]),
        ([0, 1, 2], [1, 0, 1]),
        ([GAINS[:-1], GAINS[-1:]], [GAINS[:-1], [0.5]]),
    ],
)
def test_many_grades_or_few_scores_are_no_sign_of_a_swap(gains, scores):
    assert 0 < hashbench.evaluate_ranking(relevance=gains, scores=scores, metrics=["NDCG"]).summary["NDCG"].mean <= 1


def test_integers_beyond_float64_do_not_tie():
    found = hashbench.evaluate_ranking(relevance=[[1, 0]], scores=[[2**62 + 1, 2**62]], metrics=["AP"])
    assert found.scores["AP"].low[0] == found.scores["AP"].high[0] == 1
    with pytest.raises(HashbenchError, match="hold 9223372036854775809 in a list"):
        hashbench.evaluate_ranking(relevance=[1, 0, 0], scores=[2**63, 2**63 + 1, -1], metrics=["AP"])
    for number in (2**53 + 1, np.int64(2**53 + 1)):
        with pytest.raises(HashbenchError, match="hold 9007199254740993 in a list"):
            hashbench.evaluate_ranking(relevance=[1, 0, 0], scores=[2**53, number, 0.5], metrics=["AP"])
    assert (
        hashbench.evaluate_ranking(relevance=[1, 0], scores=[1e300, np.inf], metrics=["AP"]).scores["AP"].mean[0] == 0.5
    )
    (one,) = hashbench.evaluate_ranking(relevance=[0, 1], scores=[3, 3], metrics=["AP"]).scores["AP"].mean
    assert one == pytest.approx(0.75)
