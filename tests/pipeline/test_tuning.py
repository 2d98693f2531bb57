"""Settings chosen on held-out training items: the split, the settings tried, their scores and the choice."""

import math
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hashbench import evaluate
from hashbench.cards import MethodCard, method_card
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError
from hashbench.methods.dpsh import DPSH
from hashbench.pipeline import tuning
from hashbench.pipeline.grid import Job, Sweep
from hashbench.pipeline.one_job import Outcome
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.runner import run
from hashbench.pipeline.steps import Demands
from hashbench.pipeline.study import Study, read_study
from hashbench.pipeline.tuning import (
    Choice,
    Line,
    Search,
    about_edges,
    choose,
    conclude,
    failure_of,
    grid_text,
    is_at_edge,
    lines_of,
    next_points,
)
from hashbench.store.hdf5 import write_dataset
from hashbench.store.result_rows import Row
from hashbench.store.results import read_folder, read_record


@pytest.mark.parametrize("rule", ["same-label", "shared-labels", "distance", "neighbours"])
def test_a_split_holds_only_training_items_and_each_once(rule, tiny):
    changes = {"neighbours": np.zeros((8, 1), np.int64)} if rule == "neighbours" else {}
    data = tiny(rule, **changes)
    split = tuning.hold_out(data, seed=3)
    assert (len(split.query), len(split.database), len(split.train)) == (6, 24, 24)
    rows = np.sort(np.concatenate([split.query, split.database]))
    np.testing.assert_array_equal(split.features[rows], data.features[data.train])
    np.testing.assert_array_equal(split.train, split.database)
    among = tuning.among_held_out(split)
    assert sorted([*among.query, *among.database]) == sorted(split.query)
    assert tuning.hold_out(data, seed=3).fingerprint == split.fingerprint != tuning.hold_out(data, seed=4).fingerprint


@pytest.mark.parametrize("rule", ["same-label", "shared-labels", "distance"])
def test_relevance_of_held_out_items_is_that_of_the_dataset(rule, tiny):
    data = tiny(rule)
    split = tuning.hold_out(data, seed=0)
    whole = data.train_affinity().block(slice(None), slice(None))
    part = split.affinity().block(slice(None), slice(None))
    np.testing.assert_array_equal(part, whole[np.ix_(split.query, split.database)])


def test_of_listed_neighbours_held_out_items_have_the_same_share(tiny):
    data = tiny("neighbours", neighbours=np.tile(np.arange(8), (8, 1)))  # a quarter of the database
    split = tuning.hold_out(data, seed=0)
    distances = ((split.features[split.query][:, None] - split.features[split.database][None]) ** 2).sum(axis=2)
    assert split.neighbours.shape == (6, 6)
    np.testing.assert_array_equal(np.sort(split.neighbours), np.sort(np.argsort(distances, axis=1)[:, :6]))
    assert tuning.among_held_out(split).neighbours.shape == (3, 1)
    with_ties = np.pad(data.neighbours, ((0, 0), (0, 2)), constant_values=-1)
    whole = tiny("neighbours", neighbours=with_ties, rule_params={"true_distance": "dot", "n_neighbours": 8})
    split = tuning.hold_out(whole, seed=0)
    assert (split.neighbours.shape, dict(split.rule_params)) == ((6, 6), {"true_distance": "dot"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rule": "explicit"}, "defines which database items are relevant to its queries, but nothing for"),
        ({"train": np.arange(8, 15)}, "has 7 training items, and at least 8 are needed"),
    ],
)
def test_datasets_without_relevance_or_with_few_training_items_are_refused(changes, words, tiny):
    with pytest.raises(HashbenchError, match=words):
        tuning.hold_out(tiny(**changes), seed=0)


def line(values, **defaults):
    """Return what is tried of a method of these defaults."""
    return Line(MethodCard("mine", **{**CARD, "params": defaults}), {}, values, True)


CARD = vars(method_card("itq")) | {"params": {}}
del CARD["name"]


def walk(line, score, n_trials):
    """Return the points that are tried, in order, where the score of a setting is known."""
    while len(line.scores) < n_trials and (points := next_points(line, seed=0)):
        assert len(points) <= 2
        for point in points[: n_trials - len(line.scores)]:
            assert point not in line.scores
            line.scores[point] = score(**{**line.card.params, **line.params(point)})
    return [*line.scores]


@pytest.mark.parametrize("n_trials", [1, 2, 5, 8, 9, 20])
def test_defaults_come_first_no_setting_twice_and_in_the_end_all(n_trials):
    both = line({"rate": [0.1, 0.3, 1.0], "margin": [None, 1, 2]}, rate=0.3, margin=None)
    tried = walk(both, lambda rate, margin: rate, n_trials)
    assert len({*tried}) == len(tried) == min(n_trials, 9)
    assert (tried[0], both.params(tried[0])) == ((1, 0), {})
    assert walk(line({}), lambda: 0.5, n_trials) == [()]


@given(
    best=st.tuples(*[st.integers(0, 6)] * 2),
    start=st.tuples(*[st.integers(0, 6)] * 2),
    failing=st.none() | st.tuples(*[st.integers(0, 6)] * 2),
)
def test_a_hill_is_climbed_to_its_top_and_the_top_is_no_edge(best, start, failing):
    hill = line({"a": range(7), "b": range(7)}, a=start[0], b=start[1])

    def score(a, b):
        return math.nan if (a, b) == failing != best else -abs(a - best[0]) - abs(b - best[1])

    tried = walk(hill, score, 2 * (abs(best[0] - start[0]) + abs(best[1] - start[1])) + 12)
    assert len({*tried}) == len(tried)
    if failing in (None, best):
        assert best in tried
        assert hill.at_edge(best) == tuple(key for key, place in zip("ab", best, strict=True) if place == 6)


def test_values_beyond_all_tried_ones_go_before_steps_inside():
    steep = line({"rate": [1, 2, 3, 4, 5], "margin": [1, 2, 3]}, rate=2, margin=2)
    tried = walk(steep, lambda rate, margin: rate + margin, 9)
    assert tried[:5] == [(1, 1), (0, 1), (2, 1), (3, 1), (4, 1)]  # to the end of the rates
    assert tried[5:7] == [(4, 0), (4, 2)]
    assert steep.at_edge((4, 2)) == ("rate", "margin")
    assert steep.at_edge((1, 1)) == ()


def test_words_have_no_edge_and_a_default_that_is_not_listed_has_its_place():
    study = Study(
        methods=(("csq", {}),),
        n_bits=(8,),
        params={"csq:learning_rate": Sweep((1.0, 0.1)), "csq:targets": Sweep(("hadamard", "bernoulli"))},
    )
    (of_csq,) = lines_of(study)
    assert of_csq.values == {"learning_rate": [0.1, 0.3, 1.0], "targets": ["auto", "hadamard", "bernoulli"]}
    assert of_csq.start == (1, 0)
    of_csq.scores |= dict.fromkeys([(1, 0), (2, 2)], 0.5)
    assert of_csq.at_edge((2, 2)) == ("learning_rate",)


def test_what_is_left_is_covered_evenly():
    flat = line({key: range(10) for key in "abc"}, a=0, b=0, c=0)
    tried = walk(flat, lambda a, b, c: 0.5, 34)[4:]
    for axis in range(3):
        counts = Counter(point[axis] for point in tried)
        assert len(counts) >= 9  # 30 drawn at random miss two of ten in a tenth of all cases
        assert max(counts.values()) <= 6


def searched(study, n_trials, **scores):
    """Search with made-up scores: those of settings by their JSON, or 0.5."""

    def run_trials(trials, *arguments, **options):
        return [outcome_of(trial, AP=[scores.get(canonical_json(trial.params), 0.5)] * 2) for trial in trials]

    search = Search(study, n_trials, ["AP"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "run_trials", run_trials)
        assert [*search.run(Path())] == search.outcomes
    return search


def plan(study, n_trials):
    """Return the trials of a search in which all settings are equally good."""
    return [outcome.job for outcome in searched(study, n_trials).outcomes]


@pytest.mark.usefixtures("digits_data")
@pytest.mark.parametrize("seeds", [(1,), (0, 1)])
def test_methods_that_draw_nothing_are_tried_on_the_split_of_each_seed(seeds):
    trials = plan(Study(methods=(("pcah", {}), ("lsh", {})), n_bits=(8,), seeds=seeds), 1)
    splits = {
        method: [Path(trial.dataset).stem[-2:] for trial in trials if trial.method == method]
        for method in ("pcah", "lsh")
    }
    assert splits == {method: [f"s{seed}" for seed in seeds] for method in splits}
    assert {trial.seed for trial in trials if trial.method == "pcah"} == {0}


@pytest.mark.parametrize(
    ("value", "tried", "is_edge"),
    [
        (0.3, [0.1, 0.3], True),
        (0.1, [0.1, 0.3], True),
        (0.3, [0.1, 0.3, 1.0], False),
        (30.0, [None, 30.0, 1.0], True),
        (None, [None, 30.0], False),
        (0.0, [0.0, 0.1], False),
        (True, [True, False], False),
        (1, [1], False),
    ],
)
def test_an_edge_is_the_least_or_the_greatest_number(value, tried, is_edge):
    assert is_at_edge(value, tried) == is_edge


@pytest.mark.usefixtures("digits_data")
def test_a_search_goes_on_from_the_best_and_its_edges_are_told(tmp_path):
    study = Study(
        methods=(("itq", {}), ("lsh", {})), n_bits=(8, 16), params={"itq:n_iter": Sweep((10, 20, 50, 100, 200))}
    )
    search = searched(study, 4, **{'{"n_iter": 100}': 0.6, '{"n_iter": 200}': 0.7})
    assert [outcome.job.params.get("n_iter", 50) for outcome in search.outcomes if outcome.job.method == "itq"] == [
        value for value in (50, 20, 100, 200) for _ in range(2)
    ]
    assert search.n_jobs == len(search.outcomes) == 4 * 2 + 2
    choices = conclude(search, tmp_path)
    assert [(choice.method, choice.params, choice.at_edge) for choice in choices] == [
        ("itq", {"n_iter": 200}, ("n_iter",)),
        ("lsh", {}, ()),
    ]
    assert about_edges(search, choices).startswith("At the edge of what was tried: itq n_iter=200. A value beyond may ")
    inside = searched(study, 4, **{'{"n_iter": 100}': 0.6})
    assert about_edges(inside, conclude(inside, tmp_path)) == ""


@pytest.mark.usefixtures("digits_data")
def test_scores_are_those_of_codes_learned_from_the_other_items(digits, tmp_path):
    study = Study(methods=(("dpsh", {}),), n_bits=(12,), seeds=(5,), params={"epochs": 2, "learning_rate": 0.3})
    trials = plan(study, n_trials=1)
    (outcome,) = tuning.run_trials(trials, ["AP", "NDCG"], tmp_path)
    items = digits.features[digits.train]
    labels = digits.labels[digits.train]
    order = np.random.default_rng(5).permutation(1000)
    held, others = order[:200], order[200:]
    codes = DPSH(12, epochs=2, learning_rate=0.3, random_state=5).fit(items[others], labels[others]).transform(items)
    for name in ("AP", "NDCG"):
        scores = [float(row.value) for row in outcome.rows if row.metric == name]
        for score, query, database in zip(scores, (held[:100], held), (held[100:], others), strict=True):
            pair = labels[query], labels[database]
            expected = evaluate(codes[query], codes[database], pair, [name]).summary[name].mean
            assert score == pytest.approx(expected, abs=1e-6)
    assert sorted(read_folder(tmp_path).values()) == sorted(outcome.rows)
    assert outcome.is_new
    (again,) = tuning.run_trials(trials, ["AP", "NDCG"], tmp_path)
    assert (again.rows, again.is_new) == (outcome.rows, False)


@pytest.mark.usefixtures("digits_data")
def test_rows_of_trials_are_those_of_a_run_on_either_split(tmp_path):
    (trial,) = plan(Study(methods=(("itq", {}),), n_bits=(8,)), 1)
    (outcome,) = tuning.run_trials([trial], ["AP", "NDCG"], tmp_path)
    split, _ = load_dataset(trial.dataset)
    data = {data.name: data for data in (tuning.among_held_out(split), split)}
    for row in outcome.rows:
        path = tmp_path / f"{row.dataset}.h5"
        write_dataset(data[row.dataset], path)
        (ran,) = run([Job(str(path), trial.card, 8)], Demands([row.metric]))
        assert ran.rows == (row,)
        assert read_record([tmp_path / row.dataset / "itq.csv"]).origins.keys() == {row.job}


@pytest.mark.usefixtures("digits_data")
def test_a_failure_names_the_dataset_as_the_user_does(tmp_path, monkeypatch):
    (trial,) = plan(Study(methods=(("itq", {}),), n_bits=(8,)), 1)
    why = f"{trial}\r\nended:\u2028{Path(trial.dataset).stem!r} is bad."
    outcome = Outcome(trial, None, why, has_failed=True)
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "run_all", lambda *arguments: [outcome])
        (failed,) = tuning.run_trials([trial], ["AP"], tmp_path)
    assert failure_of(failed, "AP") == "digits itq 8 bits seed 0 ended: 'digits' is bad."
    (repeated,) = tuning.run_trials([trial], ["AP"], tmp_path, resume=True)
    assert repeated.rows


def test_a_dataset_whose_name_a_grid_file_cannot_hold_is_refused():
    with pytest.raises(HashbenchError, match=r"has a name that is not UTF-8, as grid\.toml is"):
        plan(Study(datasets=("\udcff.h5",), methods=(("itq", {}),), n_bits=(8,)), 1)


def effort(study, n_trials, option):
    return [*Search(study, n_trials, ["AP"]).about_effort(option)]


@pytest.mark.usefixtures("digits_data")
def test_only_listed_values_are_tried_each_once_beside_the_default():
    listed = {"csq:learning_rate": Sweep((1e9, 0.3, 1e9)), "csq:epochs": 3}
    study = Study(methods=(("csq", {}),), n_bits=(8,), params=listed)
    assert [trial.params for trial in plan(study, 2)] == [{"epochs": 3}, {"epochs": 3, "learning_rate": 1e9}]
    assert effort(study, 2, "--trials ") == []
    assert effort(study, 1, "--trials ") == ["csq: 1 of 2 settings are tried; --trials 2 tries all."]
    assert effort(study, 9, "n_trials=") == ["csq: all 2 settings are tried, fewer than n_trials=9."]
    study = Study(methods=(("itq", {}), ("csq", {})), n_bits=(8,), params={"itq:n_iter": Sweep((5, 20, 40, 80))})
    assert effort(study, 4, "--trials ") == ["itq: 4 of 5 settings are tried; --trials 5 tries all."]
    fixed = Study(methods=(("itq", {}), ("lsh", {})), n_bits=(8,), params={"itq:n_iter": 5})
    assert effort(fixed, 9, "--trials ") == [
        "itq declares no other values to try; its defaults stand.",
        "lsh declares no values to try; its defaults stand.",
    ]

    def tried(n_trials):
        return [trial.params.get("n_iter", 50) for trial in plan(study, n_trials) if trial.method == "itq"]

    assert tried(3) == [50, 40, 80]
    assert sorted(tried(5)) == [5, 20, 40, 50, 80]
    assert len({*tried(4)}) == 4


@pytest.mark.usefixtures("digits_data")
def test_values_of_parameters_fix_them_and_lists_are_tried(digits):
    params = {"epochs": 2, "itq:n_iter": Sweep((5, 20)), "dpsh:eta": 3.0, "dpsh:weight_decay": 5e-4}
    trials = plan(Study(methods=(("dpsh", {}), ("itq", {})), n_bits=(8, 16), params=params), 10)
    rates = ({} if rate == 0.3 else {"learning_rate": rate} for rate in method_card("dpsh").tunable["learning_rate"])
    expected = [("dpsh", canonical_json({"epochs": 2, "eta": 3.0} | rate)) for rate in rates]
    expected += [("itq", text) for text in ("{}", '{"n_iter": 20}', '{"n_iter": 5}')]  # itq has no epochs
    assert Counter((trial.method, canonical_json(trial.params)) for trial in trials) == dict.fromkeys(expected, 2)
    assert {Path(trial.dataset).stem for trial in trials} == {f"digits-held-out-{digits.fingerprint}-s0"}
    with pytest.raises(HashbenchError, match="takes no preset"):
        plan(Study(methods=(("dsh", {}),), n_bits=(8,), params={"preset": "paper"}), 9)


def outcome_of(trial, **scores):
    """Return an outcome of a trial by both scores in metrics; one that failed without any."""
    rows = [
        Row("split", "", "", "{}", 8, 0, name, *[str(score)] * 4, 9, 0, "", 1)
        for name in scores
        for score in scores[name]
    ]
    return Outcome(trial, None, "" if rows else "failed", rows=tuple(rows))


@pytest.mark.usefixtures("digits_data")
def test_the_best_is_the_highest_mean_without_a_failure_and_errors_count_down():
    fixed = {"learning_rate": 0.3, "weight_decay": 2e-3, "beta": 1.5}
    trials = plan(Study(methods=(("hashnet", {}),), n_bits=(8, 16), params=fixed), 3)  # slopes 10, 5 and 20
    values = {"10": (0.5, 0.6), "5.0": (0.9, None), "20.0": (0.55, 0.6)}

    outcomes = []
    for trial in trials:
        value = values[str(trial.params.get("slope", "10"))][trial.n_bits // 16]
        scores = {} if value is None else {"AP": [value] * 2, "PairwiseError": [1 - value] * 2}
        outcomes.append(outcome_of(trial, **scores))
    for metrics, best, default in (
        (["AP"], 0.575, 0.55),
        (["PairwiseError"], 0.425, 0.45),  # as it is
        (["AP", "PairwiseError"], 0.575, 0.55),  # AP and 1 - PairwiseError
    ):
        (choice,) = choose(outcomes, metrics)
        assert choice.params == choice.best == {"slope": 20.0}
        assert (choice.n_trials, choice.n_failed) == (3, 1)
        assert (choice.best_score, choice.default_score, choice.lead) == pytest.approx((best, default, 0.025))


@pytest.mark.usefixtures("digits_data")
@pytest.mark.parametrize(
    ("default", "best", "chosen"),
    [
        ("0.500000", "0.510000", {}),
        ("0.500000", "0.510001", {"n_iter": 5}),
        ("0.500000", "0.400000", {}),
        ("", "0.100000", {"n_iter": 5}),
        ("0.100000", "", {}),
        ("", "", None),
    ],
)
@pytest.mark.parametrize("metric", ["AP", "PairwiseError"])
def test_the_default_is_kept_unless_the_best_lead_by_more_than_a_hundredth(metric, default, best, chosen):
    trials = plan(Study(methods=(("itq", {}),), n_bits=(8,), params={"n_iter": Sweep((50, 5))}), 2)
    outcomes = []
    for trial, score in zip(trials, (default, best), strict=True):
        score = f"{1 - float(score):.6f}" if score and metric == "PairwiseError" else score
        outcomes.append(outcome_of(trial, **{metric: [score] * 2 if score else []}))
    (choice,) = choose(outcomes, [metric])
    assert choice.params == chosen


@pytest.mark.usefixtures("digits_data")
@pytest.mark.parametrize("half", [(math.nan, 0.6071), (0.6071, math.nan)])
def test_a_setting_with_one_of_the_two_scores_is_no_candidate(half):
    trials = plan(Study(methods=(("itq", {}),), n_bits=(8,), params={"n_iter": Sweep((50, 5))}), 2)
    scores = zip(trials, (half, (0.218, 0.218)), strict=True)
    outcomes = [outcome_of(trial, **{"P@r2:skip": pair}) for trial, pair in scores]
    (choice,) = choose(outcomes, ["P@r2:skip"])
    assert (choice.best, choice.params, choice.n_failed) == ({"n_iter": 5}, {"n_iter": 5}, 1)
    assert failure_of(outcomes[0], "P@r2:skip").startswith("P@r2:skip has no value for held-out queries among the ")


def test_a_grid_file_is_read_as_it_was_written(tmp_path):
    params = {"a": None, "b": 1e-05, "c": True, "d": 'w "x"', "e": [1, 2], "f": 30}
    of_numpy = {"g": np.int64(5), "h": np.float64(0.1), "i": np.bool_(True), "j": np.float32(0.5)}
    written = Study(datasets=("mine", "mine"), n_bits=(16, 48, np.int64(16)), seeds=(0, np.int64(1), 0))
    choices = [Choice("m-1", params | of_numpy, {}, 0.5, 0.4, 0.1, 9, 0), Choice("other", None, None, 0, 0, 0, 9, 9)]
    text = grid_text(written, choices, ["AP", "NDCG"])
    assert text.startswith("# Chosen by hashbench tune: AP, NDCG of held-out training items, seed 0, 1;")
    (tmp_path / "grid.toml").write_text(text)
    study = read_study(tmp_path / "grid.toml")
    assert study.methods == (("m-1", {"tuned": 9, **params, "g": 5, "h": 0.1, "i": True, "j": 0.5}),)
    assert (study.datasets, study.n_bits, study.seeds) == (("mine",), (16, 48), (0, 1))


ANY_VALUE = st.text() | st.floats(allow_nan=False) | st.integers() | st.booleans()


@given(dataset=st.text(), method=st.text(), name=st.text(), value=ANY_VALUE)
@example(dataset="\U0001f600.h5", method="\x7f", name='\u2028"', value="\x85\r\n\x00\x7f\\u007f")
@example(dataset="mine", method="a", name="b", value=float("inf"))
def test_a_grid_file_is_toml_whatever_the_names_and_values(dataset, method, name, value):
    choice = Choice(method, {name: value}, {}, 0.5, 0.4, 0.1, 9, 0)
    text = grid_text(Study(datasets=(dataset,), n_bits=(16,)), [choice], ["AP"])
    content = tomllib.loads(text)
    assert content["datasets"] == [dataset]
    assert content["methods"][method] == {"tuned": 9} | {name: value}
