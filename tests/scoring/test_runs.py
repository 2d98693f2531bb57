import math

import numpy as np
import pandas as pd
import pytest
from helpers import oracles, thoroughness

import hashbench
from hashbench.errors import HashbenchError
from hashbench.scoring.evaluation import RUN_METRICS
from hashbench.scoring.metrics import get_metric

# The names of trec_eval, by ours. It has no AP@k:retrieved, AP@k:capped or PairwiseError.
TREC = {
    "AP": "map",
    "AP@5:relevant": "map_cut_5",
    "NDCG:trec": "ndcg",
    "NDCG@5:trec": "ndcg_cut_5",
    "NDCG@100:trec": "ndcg_cut_100",
    "P@5": "P_5",
    "P@100": "P_100",
    "R@5": "recall_5",
    "R@100": "recall_100",
    "RR": "recip_rank",
    "RPrec": "Rprec",
    "Hit@5": "success_5",
}
METRICS = ["AP", "AP@3:retrieved", "AP@3:relevant", "AP@9:capped", "NDCG:trec", "NDCG@9:trec"]
METRICS += ["NDCG:exponential", "NDCG@3:exponential"]
METRICS += ["P@2", "P@9", "R@3", "R@9", "RPrec", "RR", "Hit@1", "Hit@9"]


def draw(seed, n_queries=3, n_scores=1000):
    """Draw a run and qrels: lists of 1 to 40 documents, some judged, and judged ones that are in no list."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in range(n_queries):
        retrieved = rng.permutation(60)[: rng.integers(1, 41)]
        scores = rng.choice(n_scores, len(retrieved), replace=n_scores < 1000) / 8.0  # float32 holds eighths exactly
        run[f"q{query}"] = {f"d{doc}": float(score) for doc, score in zip(retrieved, scores, strict=True)}
        judged = rng.permutation(60)[: rng.integers(1, 41)]
        qrels[f"q{query}"] = {f"d{doc}": int(rng.choice([-1, 0, 0, 1, 2, 3])) for doc in judged}
        qrels[f"q{query}"][f"d{rng.integers(60)}"] = 1
    return run, qrels


def trec_eval(run, qrels):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    families = {"map", "map_cut", "ndcg", "ndcg_cut", "P", "recall", "recip_rank", "Rprec", "success"}
    return pytrec_eval.RelevanceEvaluator(qrels, families).evaluate(run)


def test_without_ties_scores_are_those_of_trec_eval():
    run, qrels = draw(0, n_queries=40)
    expected = trec_eval(run, qrels)
    result = hashbench.evaluate_run(run, qrels, TREC)
    for name, trec_name in TREC.items():
        values = [expected[query][trec_name] for query in result.queries]
        for part in result.scores[name][:3]:
            np.testing.assert_allclose(part, values, rtol=0, atol=1e-12)


def test_names_of_trec_eval_are_those_of_the_metrics_that_equal_them_and_others_stand_for_none():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    spellings = {name: f"{trec_name} {trec_name.replace('_5', '.5')}" for name, trec_name in TREC.items()}
    spellings["NDCG:trec"] += " nDCG NDCG nDCG@all"
    spellings["NDCG@5:trec"] += " nDCG@5 NDCG@5"
    for name, several in spellings.items():
        assert {get_metric(spelling, of_run=True).name for spelling in several.split()} == {name}
    assert hashbench.evaluate_run(*draw(0), TREC.values()).scores.keys() == TREC.keys()
    equal = {name.rpartition("_")[0] if name[-1].isdecimal() else name for name in TREC.values()}
    for name in pytrec_eval.supported_measures - equal:
        with pytest.raises(HashbenchError, match=f"'{name}'"):
            get_metric(name)


def test_the_exponential_ndcg_of_a_run_has_a_name_of_its_own_and_the_value_of_codes():
    run, qrels = draw(0, n_queries=20)
    relevance = [[max(qrels[query].get(name, 0), 0) for name in run[query]] for query in run]
    qrels = {  # only what is in the lists
        query: dict(zip(run[query], levels, strict=True)) for query, levels in zip(run, relevance, strict=True)
    }
    found = hashbench.evaluate_run(run, qrels, ["NDCG:exponential", "NDCG", "NDCG@3:exponential"], random_orders=2)
    assert list(found) == ["NDCG:exponential", "NDCG:trec", "NDCG@3:exponential"]
    scores = [[*of_query.values()] for of_query in run.values()]
    ranked = hashbench.evaluate_ranking(relevance=relevance, scores=scores, metrics=["NDCG", "NDCG@3"])
    for name in ("NDCG", "NDCG@3"):
        assert found[f"{name}:exponential"].mean == pytest.approx(ranked[name].mean)
    assert not found.notes  # both were asked for
    (note,) = hashbench.evaluate_run(run, qrels, ["NDCG@3"]).notes
    assert "NDCG@3 is read as NDCG@3:trec (gain level: " in note
    assert f"NDCG@3:exponential (gain 2^level - 1: {ranked['NDCG@3'].mean:.4f})." in note
    *_, note = hashbench.evaluate_run(run, qrels, ["AP@5"]).notes
    mean = hashbench.evaluate_run(run, qrels, ["AP@5:relevant"])["AP@5:relevant"].mean
    assert f"in trec_eval it is AP@5:relevant (divided by all relevant items: {mean:.4f})" in note


def test_with_ties_those_of_trec_eval_lie_between_low_and_high():
    n_inside = n_apart = 0
    for seed in range(1000 if thoroughness.ALL else 20):
        run, qrels = draw(seed, n_scores=5)
        expected = trec_eval(run, qrels)
        result = hashbench.evaluate_run(run, qrels, TREC)
        for name, trec_name in TREC.items():
            mean, low, high, _ = result.scores[name]
            values = np.array([expected[query][trec_name] for query in result.queries])
            assert (low - 1e-12 <= values).all(), (seed, name)
            assert (values <= high + 1e-12).all(), (seed, name)
            n_inside += len(values)
            n_apart += int((np.abs(values - mean) > 1e-6).sum())
    assert n_apart > n_inside / 3  # they are ties that matter


@pytest.mark.parametrize(("first", "second"), [(1.00000001, 1.0), (2e39, 1e39), (2e-46, 1e-46)])
def test_scores_that_tie_only_in_trec_eval_are_reported(first, second):
    judged = {"right": 1}
    run = {"a": {"right": first, "z": second}, "b": {"right": 2.0, "z": 1.0}, "c": {"right": 1.0, "a": 1.0}}
    qrels = dict.fromkeys(run, judged)
    assert [values["map"] for values in trec_eval(run, qrels).values()] == [0.5, 1.0, 1.0]
    result = hashbench.evaluate_run(run, qrels, ["AP"])
    np.testing.assert_array_equal(result.scores["AP"], [[1, 1, 0.75], [1, 1, 0.5], [1, 1, 1], [0, 0, 0.25]])
    assert "1 of 3 lists have scores that differ here but tie in trec_eval" in result.notes[0]


@pytest.mark.parametrize(
    ("name", "unit"), [*((name, 1) for name in METRICS), *((name, 0.3) for name in METRICS if "NDCG" in name)]
)
def test_mean_low_high_and_deviation_equal_those_over_every_order_of_tied_documents(name, unit):
    rng = np.random.default_rng(METRICS.index(name))
    metric = get_metric(name, of_run=True)
    cutoff = [argument for argument in metric.arguments if isinstance(argument, int)]
    option = [argument for argument in metric.arguments if isinstance(argument, str)]
    for _ in range(200 if thoroughness.ALL else 12):
        n_listed, n_left = rng.integers(1, 7), rng.integers(0, 4)
        scores, grades = rng.integers(0, 3, n_listed), unit * rng.choice([0, 0, 1, 2], n_listed)
        left = (unit * rng.choice([0, 1, 3], n_left)).tolist()
        if not (grades.any() or any(left)):
            continue
        far = [0] * 40 + left  # what is not retrieved lies below any cutoff that is asked for

        def score(ranked, far=far):
            whole = ranked + far
            pattern = metric.family.pattern
            if pattern == "AP":  # of what is retrieved, over all that is relevant
                return oracles.average_precision(whole, 30, "relevant")
            if pattern == "NDCG":
                return oracles.ndcg(whole, 30, *option)
            if pattern == "RR":
                return oracles.reciprocal_rank(ranked) if any(ranked) else 0.0
            return oracles.ORACLES[pattern](whole, *cutoff, *option)

        expected = oracles.over_orders(score, (-scores).tolist(), grades.tolist())
        run = {"q": {f"d{doc}": float(value) for doc, value in enumerate(scores)}}
        judged = {f"d{doc}": grade for doc, grade in enumerate(grades.tolist())}
        judged |= {f"x{i}": grade for i, grade in enumerate(left)}
        result = hashbench.evaluate_run(run, {"q": judged}, [name]).summary[metric.name]
        assert (result.mean, result.low, result.high, result.tie_sd) == pytest.approx(expected, abs=1e-12)


def test_queries_that_one_side_lacks_are_left_out_or_count_as_empty_lists_and_reported():
    run = {"a": {"x": 1.0}, "c": {"x": 1.0}}
    qrels = {"b": {"x": 1}, "a": {"x": 1}}
    result = hashbench.evaluate_run(run, qrels)
    assert result.queries == ["a"]
    assert [values.mean for values in result.summary.values()] == [1.0, 1.0, 1.0, 0.1, 1.0, 1.0]
    assert list(result.summary) == list(RUN_METRICS)
    assert result.notes == [
        "1 of the 2 queries of the qrels have no list in the run and are left out, as trec_eval does without -c.",
        "1 of the 2 queries of the run are not in the qrels and are left out.",
    ]
    result = hashbench.evaluate_run(run, qrels, METRICS, complete=True)
    assert result.queries == ["b", "a"]
    for parts in result.scores.values():
        assert [part[0] for part in parts] == [0, 0, 0, 0]
    assert "count as empty lists" in result.notes[0]
    unjudged = hashbench.evaluate_run(run, qrels | {"c": {"x": 0}}, ["AP"])
    assert unjudged.summary["AP"][:5] == (1.0, 1.0, 1.0, 2, 1)  # trec_eval counts it as 0
    assert result.per_query["query"].tolist() == ["b", "a"] * len(result.scores)


def test_negative_grades_count_as_irrelevant_and_are_reported():
    run = {"a": {"x": 2.0, "y": 1.0}}
    result, plain = (hashbench.evaluate_run(run, {"a": {"x": grade, "y": 2}}, METRICS) for grade in (-2, 0))
    assert result.summary == plain.summary
    assert result.notes == ["Grades below 0 count as 0, not relevant; there are 1."]
    assert plain.notes == []


ADVICE = "The highest score comes first, as in trec_eval; if scores are distances, negate them."


def test_dicts_whose_lists_all_begin_with_the_lowest_score_are_reported():
    note = f"In all lists scores rise from the first document to the last. {ADVICE}"
    for lists, is_reported in (
        (([0.0, 3.0, 5.0],), True),
        (([0.0, 3.0], [1.0, 1.0, 2.0], [4.0]), True),
        (([0.0, 3.0, 5.0], [3.0, 1.0]), False),  # in any order
        (([0.0, 3.0],), False),  # by chance
        (([2.0, 2.0, 2.0], []), False),
        (([5.0, 3.0, 3.0],), False),
    ):
        run = {f"q{i}": {f"d{j}": score for j, score in enumerate(scores)} for i, scores in enumerate(lists)}
        qrels = {query: {"d0": 1} for query in run}
        assert (note in hashbench.evaluate_run(run, qrels, ["AP"]).notes) == is_reported
    assert note in hashbench.explain_run({"q": {"d0": 0.0, "d1": 3.0, "d2": 5.0}}, {"q": {"d0": 1}}, "AP").notes


@pytest.mark.parametrize(
    ("ranks", "n_lists"),
    [
        ({"a": [1, 2, 3], "b": [1, 2, 3], "c": [0, 1]}, 2),
        ({"a": [3, 2, 1], "b": [1, 2, 3], "c": [1, 1]}, 0),  # lines in another order than ranks
        ({"a": [3, 2, 1], "b": [1, 2, 2], "c": [0, 9]}, 1),
        ({"a": [3, 2, 1], "b": [1, 3, 2], "c": [1, 0]}, 1),
    ],
)
def test_lists_whose_ranks_contradict_the_scores_are_counted(ranks, n_lists, tmp_path):
    run = {"a": {"x": 1.0, "y": 2.0, "z": 3.0}, "b": {"x": 9.0, "y": 5.0, "z": 4.0}, "c": {"x": 1, "y": 2}}
    rows = [
        (query, name, rank, score)
        for query, of_query in run.items()
        for (name, score), rank in zip(of_query.items(), ranks[query], strict=True)
    ]
    lines = "".join(f"{query} Q0 {name} {rank} {score} r\n" for query, name, rank, score in rows)
    (tmp_path / "run.txt").write_text(lines)
    notes = [f"In {n_lists} of 3 lists the ranks contradict the scores. {ADVICE}"] * (n_lists > 0)
    for given in (
        hashbench.read_run(tmp_path / "run.txt"),
        pd.DataFrame(rows, columns=["qid", "docno", "rank", "score"]),
    ):
        found = hashbench.evaluate_run(given, {"a": {"x": 1}, "b": {"x": 1}}, ["AP"])
        assert [note for note in found.notes if "ranks" in note] == notes


def test_a_run_cut_inside_a_tie_is_reported():
    tied, apart = {"x": 2.0, "y": 1.0, "z": 1.0}, {"x": 3.0, "y": 2.0, "z": 1.0}
    shorter = {"x": 1.0, "y": 1.0}
    qrels = {query: {"x": 1, "w": 0} for query in "abc"}
    (note,) = hashbench.evaluate_run({"a": tied, "b": apart, "c": shorter}, qrels).notes
    assert note.startswith("1 of 3 lists end in a tie at 3 documents. ")
    assert not hashbench.evaluate_run({"a": apart, "b": apart, "c": shorter}, qrels).notes
    assert not hashbench.evaluate_run({"a": tied, "c": shorter}, qrels | {"b": {}}).notes[1:]
    complete = {query: {"x": 1} for query in "abc"}
    assert not hashbench.evaluate_run({"a": tied, "b": tied, "c": tied}, complete).notes


@pytest.mark.parametrize(
    ("names", "grade"),
    [(("query_id", "doc_id"), "relevance"), (("q_id", "doc_id"), "score"), (("qid", "docno"), "label")],
    ids=["ir_measures", "ranx", "PyTerrier"],
)
def test_tables_by_the_columns_of_other_tools_score_like_dicts(names, grade):
    run, qrels = draw(7)
    tables = [
        pd.DataFrame([(query, doc, value) for query, docs in part.items() for doc, value in docs.items()])
        for part in (run, qrels)
    ]
    tables = [table.set_axis([*names, last], axis=1) for table, last in zip(tables, ("score", grade), strict=True)]
    expected, result = (hashbench.evaluate_run(*pair, METRICS) for pair in ((run, qrels), tables))
    assert result.summary == expected.summary
    assert result.queries == expected.queries
    numbered = pd.DataFrame({names[0]: [1, 1], names[1]: [7, 8], "score": [2, 1]})
    assert hashbench.evaluate_run(numbered, {"1": {"8": 1}}, ["RR"])["RR"].mean == 0.5


def test_some_queries_at_a_time_score_like_all_of_them(monkeypatch):
    run, qrels = draw(2, n_queries=7, n_scores=4)
    expected = [hashbench.evaluate_run({q: run[q]}, {q: qrels[q]}, METRICS) for q in run]
    monkeypatch.setattr("hashbench.scoring.lists._AT_A_TIME", 2)
    result = hashbench.evaluate_run(run, qrels, METRICS)
    for name, parts in result.scores.items():
        single = np.array([[part[0] for part in evaluation.scores[name]] for evaluation in expected]).T
        np.testing.assert_allclose(parts, single, rtol=1e-14)


RUN, QRELS = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1}}
OF_GRADES = "must be numbers up to 1000, whole ones if they are negative, got"


def table_without(column, missing):
    table = pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "score": [2, 1]}).astype({column: object})
    table.loc[1, column] = missing
    return table


@pytest.mark.parametrize(
    ("run", "qrels", "metric", "message"),
    [
        (
            {"p": {}, "q": {"10.0": 1.0}, "r": {"11.0": 1.0}},
            {"p": {"9": 1}, "q": {"10": 1}, "r": {"11": 1}},
            "AP",
            "is in its list: the first of the run is '10.0', that of the qrels '9'",
        ),
        ({"q": {"a": math.nan}}, QRELS, "AP", "document 'a' of query 'q' in the run has score NaN"),
        ({"q": {"a": "high"}}, QRELS, "AP", "scores of query 'q' in the run are <U4, expected numbers"),
        (RUN, {"q": {"a": 0.5}}, "AP", "^AP needs whole-number levels of relevance, and one is 0.5"),
        (RUN, {"q": {"a": -0.5}}, "AP", f"{OF_GRADES} -0.5"),
        (RUN, {"q": {"a": 2000}}, "AP", f"{OF_GRADES} 2000"),
        (RUN, {"q": {"a": math.nan}}, "AP", f"{OF_GRADES} nan"),
        (RUN, {"q": {"a": None}}, "AP", "grades of query 'q' in the qrels are object"),
        (
            RUN,
            {"q": {"a": 1} | {f"{n}": n / 1001 for n in range(1001)}},
            "NDCG",
            "^the qrels of query 'q' holds 1,001 different",
        ),
        ({"q": ["a", "b"]}, QRELS, "AP", "run must be a dict of dicts, .* got dict"),
        ("run.txt", QRELS, "AP", "got str. hashbench.read_run"),
        ({"q": {7: 1.0}}, QRELS, "AP", "got 7 in the run"),
        (pd.DataFrame({"query": ["q"]}), QRELS, "AP", "has columns query, but none called query_id or q_id or qid"),
        (
            RUN,
            pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "a"], "label": [1, 1]}),
            "AP",
            "the qrels has document 'a' a second time for query 'q'",
        ),
        (table_without("qid", None), QRELS, "AP", "the run has no qid in row 1, counted from 0; leave such rows out"),
        (table_without("docno", math.nan), QRELS, "AP", "the run has no docno in row 1"),
        (RUN, table_without("docno", None), "AP", "the qrels has no docno in row 1"),
        *((RUN, QRELS, name, f"{name} counts") for name in ("P@r2", "LGAP@r1", "PairwiseError", "NDCG:linear")),
    ],
)
def test_what_is_no_run_is_refused_in_words(run, qrels, metric, message):
    with pytest.raises(HashbenchError, match=message):
        hashbench.evaluate_run(run, qrels, [metric])


def test_queries_whose_judged_documents_were_not_retrieved_score_0_beside_others():
    run, qrels = {"a": {"x": 1.0}, "b": {"x": 1.0}}, {"a": {"y": 1}, "b": {"x": 1}}
    assert hashbench.evaluate_run(run, qrels, ["AP"]).summary["AP"].mean == 0.5
    nothing = hashbench.evaluate_run({"a": {}}, qrels, METRICS)
    assert {values.mean for values in nothing.summary.values()} == {0}


def test_a_document_has_the_same_number_whatever_documents_follow():
    run, qrels = {"q": {"a": 2.0, "b": 1.0, "c": 1.0}}, {"q": {"b": 1}}
    few = hashbench.evaluate_run(run, qrels, ["AP"]).order_effects["AP"].items
    more = (
        hashbench.evaluate_run(run | {"p": {"d": 1.0, "e": 1.0}}, qrels | {"p": {"d": 1}}, ["AP"])
        .order_effects["AP"]
        .items
    )
    assert more[:3].tolist() == few.tolist()
    assert len(set(more.tolist())) == 5
