"""Tools for runs on runs with ties, beside the tools themselves."""

import json
import re

import numpy as np
import pytest

import hashbench
from hashbench.errors import HashbenchError
from hashbench.reports.explain.run_tools import TOOLS, explain_run

N_CASES = 3
METRICS = {  # hashbench's names: those of trec_eval, ir_measures and ranx
    "AP": ("map", "AP", "map"),
    "AP@3:relevant": ("map_cut_3", "AP@3", "map@3"),
    "NDCG:trec": ("ndcg", "nDCG", "ndcg"),
    "NDCG@3:trec": ("ndcg_cut_3", "nDCG@3", "ndcg@3"),
    "P@3": ("P_3", "P@3", "precision@3"),
    "R@3": ("recall_3", "R@3", "recall@3"),
    "RR": ("recip_rank", "RR", "mrr"),
    "RPrec": ("Rprec", "Rprec", "r-precision"),
    "Hit@3": ("success_3", "Success@3", "hit_rate@3"),
}


def make_case(seed, *, has_all_queries=False):
    """A run and qrels of a few queries: ties in 64 and in 32 bits, documents not judged, queries without a list."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in range(6):
        documents = [f"d{number}" for number in rng.permutation(40)[: rng.integers(3, 30)]]
        scores = rng.integers(0, 4, len(documents)) + 1e-9 * rng.integers(0, 2, len(documents))
        judged = [f"d{number}" for number in rng.permutation(40)[:15]]
        if query or has_all_queries:
            run[f"q{query}"] = dict(zip(documents, scores.tolist(), strict=True))
        if query < 5 or has_all_queries:
            grades = rng.integers(0, 3, 15) * (query != 2)
            qrels[f"q{query}"] = dict(zip(judged, grades.tolist(), strict=True))
    return run, qrels


def values(run, qrels, name, metrics=METRICS):
    explanations, _ = explain_run(run, qrels, list(metrics), [name])
    return {explanation.metric: explanation.value for explanation in explanations}


@pytest.mark.parametrize("seed", range(N_CASES))
def test_pytrec_eval_gives_the_value(seed):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = make_case(seed)
    measures = {"map", "map_cut.3", "ndcg", "ndcg_cut.3", "P.3", "recall.3", "recip_rank", "Rprec", "success.3"}
    scores = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run).values()
    expected = {metric: np.mean([query[names[0]] for query in scores]) for metric, names in METRICS.items()}
    for name in ("trec_eval", "pytrec_eval"):
        assert values(run, qrels, name) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(N_CASES))
def test_ir_measures_gives_the_value(seed):
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = make_case(seed)
    measures = {metric: ir_measures.parse_measure(names[1]) for metric, names in METRICS.items()}
    measures["RR@3"] = ir_measures.RR @ 3  # of another provider: names ascend in ties, and scores have 64 bits
    scores = ir_measures.calc_aggregate(measures.values(), qrels, run)
    expected = {metric: scores[measure] for metric, measure in measures.items()}
    assert values(run, qrels, "ir_measures", measures) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow  # it is compiled on first use
@pytest.mark.filterwarnings("ignore:unsafe cast")
@pytest.mark.parametrize("seed", range(N_CASES))
def test_ranx_gives_the_value(seed):
    ranx = pytest.importorskip("ranx", reason="ranx is not there: pip install -e '.[originals]'")
    names = {metric: names[2] for metric, names in METRICS.items()} | {"RR@3": "mrr@3"}
    names |= {"NDCG:exponential": "ndcg_burges", "NDCG@3:exponential": "ndcg_burges@3"}
    for tool, has_all_queries in (("ranx-here", True), ("ranx-run-here", True), ("ranx-comparable-here", False)):
        run, qrels = make_case(seed, has_all_queries=has_all_queries)
        inputs = (qrels, run) if tool == "ranx-here" else (ranx.Qrels(qrels), ranx.Run(run))
        scores = ranx.evaluate(*inputs, list(names.values()), make_comparable=not has_all_queries)
        expected = {metric: scores[name] for metric, name in names.items()}
        assert values(run, qrels, tool, names) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(N_CASES))
def test_shares_add_up_and_the_value_lies_between_the_bounds(seed):
    for explanation in explain_run(*make_case(seed), [*METRICS, "AP@3", "RR@3", "NDCG:exponential"])[0]:
        shares, bounds = sum(cause.share for cause in explanation.causes), explanation.script_range
        assert explanation.exact.mean + shares == pytest.approx(explanation.value, abs=1e-12)
        assert bounds.low - 1e-12 <= explanation.value <= bounds.high + 1e-12
        assert all(cause.words for cause in explanation.causes)


def test_causes_are_named_one_by_one():
    run = {"q1": {"a": 1.0, "b": 1.0, "c": 1.0 + 1e-9}, "q2": {"a": 1.0}}
    qrels = {"q1": {"c": 1, "d": 1}, "q2": {"a": 0}, "q3": {"a": 1}}
    ((explanation,), _) = explain_run(run, qrels, ["AP@1"], ["ir_measures"])
    assert [cause.words for cause in explanation.causes] == [
        "queries without relevant items count 0",
        "divisor: all relevant items",
        "queries that the run lacks count 0",
        "scores in 32 bits",
        "tie order",
    ]
    assert explanation.difference == pytest.approx(-1 / 2 - 1 / 4 - 1 / 12)
    ((explanation,), _) = explain_run(run, qrels, ["RR"], ["trec_eval"])  # by names: c, b, a
    # of three switches; the order moves only what 32 bits tie, from 11/18 to 1, or half of it where q2 counts 0
    assert explanation.causes[-1] == ("tie order", pytest.approx((7 / 18) / 6 + (7 / 36) / 3))


def test_tools_that_refuse_the_queries_are_left_out():
    run, qrels = make_case(0)
    explained = {explanation.evaluator.name for explanation in explain_run(run, qrels, ["AP"])[0]}
    assert set(TOOLS) - explained == {"ranx-here", "ranx-run-here"}
    with pytest.raises(HashbenchError, match="choose the script ranx-comparable-here"):
        explain_run(run, qrels, ["AP"], ["ranx-here"])


def test_the_command_explains_a_run(hashbench, tmp_path):
    (tmp_path / "run.txt").write_text("q Q0 a 1 2 r\nq Q0 b 2 2 r\nq Q0 c 3 1 r\n")
    (tmp_path / "qrels.txt").write_text("q 0 a 1\n")
    files = "explain", "--run", tmp_path / "run.txt", tmp_path / "qrels.txt", "--metric", "AP"
    table = hashbench(*files).stdout
    assert "AP: exactly 0.7500, from 0.5000 to 1.0000" in table
    assert re.search(r"^ trec_eval, pytrec_eval, ir_measures.* +0.5000 +-0.2500", table, re.MULTILINE)
    (content,) = json.loads(hashbench(*files, "--script", "ir_measures", "--format", "json").stdout)
    assert (content["script"], content["value"]) == ("ir_measures", 0.5)
    assert content["causes"] == [{"words": "tie order", "share": -0.25}]
    answer = hashbench(*files, "--script", "trec_eval", "--value", "0.75").stdout
    assert re.search(r"^ exact, by hashbench +AP +0.7500 +gives it", answer, re.MULTILINE)
    assert "1 script could give it with ties in another order." in answer
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nother 0 a 1\n")
    assert "Left out: ranx-here" in hashbench(*files, "--script", "ranx-here", "--script", "trec_eval").stderr
    (tmp_path / "qrels.txt").write_text("q 0 a 0\n")
    assert "trec_eval" in hashbench(*files).stdout  # nothing is relevant


def test_a_metric_that_no_tool_gives_does_not_cost_the_others(hashbench, tmp_path):
    (tmp_path / "run.txt").write_text("q Q0 a 1 2 r\nq Q0 b 2 2 r\nq Q0 c 3 1 r\n")
    (tmp_path / "qrels.txt").write_text("q 0 a 1\n")
    files = "explain", "--run", tmp_path / "run.txt", tmp_path / "qrels.txt", "--script", "trec_eval"
    done = hashbench(*files, "--metric", "RR@10", "--metric", "NDCG@10", "--format", "json")
    assert done.exit_code == 0
    assert [explained["metric"] for explained in json.loads(done.stdout)] == ["NDCG@10:trec"]
    assert "Left out: none of trec_eval gives RR@10; ask for AP, AP@k, NDCG:trec" in done.stderr
    done = hashbench(*files, "--metric", "RR@10")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "none of trec_eval gives RR@10" in done.stderr


def test_a_value_is_looked_for_in_all_meanings_of_a_spelling():
    run, qrels = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"a": 1, "b": 2, "c": 3}}
    found = hashbench.explain_run(run, qrels, "nDCG", scripts="ranx-run-here", value="0.68")
    assert dict(zip(found.scripts["metric"], found.scripts["verdict"], strict=True)) == {
        "NDCG:trec": "not",
        "NDCG:exponential": "gives",
    }
    assert hashbench.explain_run(run, qrels, "nDCG").scripts["metric"].unique().tolist() == ["NDCG:trec"]


def test_a_query_without_a_list_and_without_relevant_documents_counts_0():
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}}
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"b": 0}}
    ((explanation,), _) = explain_run(run, qrels, ["AP"], ["ir_measures"])
    assert (explanation.exact.mean, explanation.value) == (pytest.approx(0.75), pytest.approx(0.5))


def test_where_nothing_is_relevant_the_only_cause_is_the_mean():
    ((explanation,), _) = explain_run({"q": {"a": 1.0}}, {"q": {"a": 0}}, ["AP"], ["trec_eval"])
    assert [cause.words for cause in explanation.causes] == ["queries without relevant items count 0"]
