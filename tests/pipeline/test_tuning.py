"""Settings chosen on held-out training items: the split, the settings tried, their scores and the choice."""

import tomllib
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hashbench import evaluate
from hashbench.errors import HashbenchError
from hashbench.methods.dpsh import DPSH
from hashbench.pipeline import tuning
from hashbench.pipeline.grid import Sweep
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.runner import Outcome
from hashbench.pipeline.study import Study, read_study
from hashbench.pipeline.tuning import (
    Choice,
    about_effort,
    add_trials,
    choose,
    grid_text,
    plan,
    read_trials,
    settings_to_try,
)


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


SPACE = {"rate": [0.1, 0.3, 1.0], "margin": [None, 1, 2]}


@pytest.mark.parametrize("n_trials", [1, 2, 5, 8, 9, 20])
@pytest.mark.parametrize("default", [{"rate": 0.3, "margin": None}, {"rate": 0.2, "margin": 2}])
def test_defaults_come_first_and_no_setting_twice(n_trials, default):
    settings = settings_to_try(SPACE, default, n_trials, seed=1)
    n_all = 9 if default["rate"] == 0.3 else 10
    assert len(settings) == min(n_trials, n_all)
    assert settings[0] == {}
    assert len({str({**default, **setting}) for setting in settings}) == len(settings)
    assert settings == settings_to_try(SPACE, default, n_trials, seed=1)
    assert settings_to_try({}, {}, n_trials, seed=0) == [{}]


def test_a_large_grid_is_covered_evenly_whatever_the_seed():
    space = {"a": range(10), "b": range(10), "c": range(10)}
    draws = [settings_to_try(space, dict.fromkeys(space, 0), 31, seed)[1:] for seed in (0, 1)]
    assert draws[0] != draws[1]
    for settings in draws:
        for key in space:
            counts = Counter(setting[key] for setting in settings)
            assert len(counts) == 10  # 30 drawn at random miss one of ten in a third of all cases
            assert max(counts.values()) <= 6


@pytest.mark.usefixtures("digits_data")
def test_scores_are_those_of_codes_learned_from_the_other_items(digits, tmp_path):
    study = Study(methods=(("dpsh", {}),), n_bits=(12,), seeds=(5,), params={"epochs": 2, "learning_rate": 0.3})
    trials = plan(study, n_trials=1)
    ((_, rows, is_new),) = tuning.run_trials(trials, ["AP", "NDCG"], tmp_path / "trials.csv")
    items = digits.features[digits.train]
    labels = digits.labels[digits.train]
    order = np.random.default_rng(5).permutation(1000)
    held, others = order[:200], order[200:]
    codes = DPSH(12, epochs=2, learning_rate=0.3, random_state=5).fit(items[others], labels[others]).transform(items)
    for row in rows.values():
        for key, query, database in [("among_held_out", held[:100], held[100:]), ("to_trained", held, others)]:
            pair = labels[query], labels[database]
            expected = evaluate(codes[query], codes[database], pair, [row["metric"]]).summary[row["metric"]].mean
            assert float(row[key]) == pytest.approx(expected, abs=1e-6)
    assert read_trials(tmp_path / "trials.csv") == rows
    assert is_new
    assert [*tuning.run_trials(trials, ["AP", "NDCG"], tmp_path / "trials.csv")] == [(trials[0], rows, False)]


@pytest.mark.usefixtures("digits_data")
def test_a_failure_is_one_line_of_the_file(tmp_path, monkeypatch):
    trials = plan(Study(methods=(("itq", {}),), n_bits=(8,)), 1)
    failed = [Outcome(trials[0].job, None, refusal="a\r\nb\x0cc\u2028d")]
    monkeypatch.setattr(tuning, "run_all", lambda *arguments: failed)
    ((_, rows, _),) = tuning.run_trials(trials, ["AP"], tmp_path / "trials.csv")
    assert {row["failure"] for row in rows.values()} == {"a b c d"}
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 2
    assert read_trials(tmp_path / "trials.csv") == rows
    failed[0] = Outcome(trials[0].job, None, refusal="a" * 200_000)
    assert len([*tuning.run_trials(trials, ["AP"], tmp_path / "trials.csv")]) == 1
    assert len(read_trials(tmp_path / "trials.csv")) == 1


@pytest.mark.usefixtures("digits_data")
def test_a_failure_names_the_dataset_as_the_user_does(tmp_path, monkeypatch):
    trials = plan(Study(methods=(("itq", {}),), n_bits=(8,)), 1)
    split, _ = load_dataset(trials[0].job.dataset)
    outcome = Outcome(trials[0].job, None, f"{trials[0].job} ended: {split.name!r} is bad.", f"/logs/{split.name}.log")
    monkeypatch.setattr(tuning, "run_all", lambda *arguments: [outcome])
    ((_, rows, _),) = tuning.run_trials(trials, ["AP"], tmp_path / "trials.csv")
    (row,), (written,) = rows.values(), read_trials(tmp_path / "trials.csv").values()
    assert written["failure"] == "digits itq 8 bits seed 0 ended: 'digits' is bad."
    assert row["failure"] == f"{written['failure']} Fix it; its traceback is in /logs/{split.name}.log."


@pytest.mark.parametrize("name", ["\udcff.h5", "a\rb.h5"])
def test_a_dataset_whose_name_a_file_of_trials_cannot_hold_is_refused(name):
    with pytest.raises(HashbenchError, match=r"has a name that trials\.csv cannot hold"):
        plan(Study(datasets=(name,), methods=(("itq", {}),), n_bits=(8,)), 1)


@pytest.mark.usefixtures("digits_data")
def test_only_listed_values_are_tried_each_once_beside_the_default():
    listed = {"csq:learning_rate": Sweep((1e9, 0.1, 1e9)), "csq:epochs": 3}
    study = Study(methods=(("csq", {}),), n_bits=(8,), params=listed)
    assert [trial.job.params for trial in plan(study, 2)] == [{"epochs": 3}, {"epochs": 3, "learning_rate": 1e9}]
    assert [*about_effort(study, 2, "--trials ")] == []
    assert [*about_effort(study, 1, "--trials ")] == ["csq: 1 of 2 settings are tried; --trials 2 tries all."]
    assert [*about_effort(study, 9, "n_trials=")] == ["csq: all 2 settings are tried, fewer than n_trials=9."]
    study = Study(methods=(("itq", {}), ("csq", {})), n_bits=(8,), params={"itq:n_iter": Sweep((5, 20, 40, 80))})
    assert [*about_effort(study, 4, "--trials ")] == ["itq: 4 of 5 settings are tried; --trials 5 tries all."]
    fixed = Study(methods=(("itq", {}), ("lsh", {})), n_bits=(8,), params={"itq:n_iter": 5})
    assert [*about_effort(fixed, 9, "--trials ")] == [
        "itq declares no other values to try; its defaults stand.",
        "lsh declares no values to try; its defaults stand.",
    ]

    def tried(n_trials):
        return [trial.job.params.get("n_iter", 50) for trial in plan(study, n_trials) if trial.job.method == "itq"]

    assert tried(5) == [50, 5, 20, 40, 80]
    assert tried(4)[0] == 50
    assert len({*tried(4)}) == 4


@pytest.mark.usefixtures("digits_data")
def test_values_of_parameters_fix_them_and_lists_are_tried(digits):
    params = {"epochs": 2, "itq:n_iter": Sweep((5, 20)), "dpsh:eta": 3.0}
    trials = plan(Study(methods=(("dpsh", {}), ("itq", {})), n_bits=(8,), params=params), 9)
    assert {trial.job.params.get("epochs") for trial in trials if trial.job.method == "itq"} == {None}
    assert {trial.job.params.get("epochs") for trial in trials if trial.job.method == "dpsh"} == {2}
    del params["epochs"]
    trials = plan(Study(methods=(("dpsh", {}), ("itq", {})), n_bits=(8, 16), params=params), 9)
    tried = Counter((trial.job.method, trial.setting) for trial in trials)
    of_dpsh = ['{"eta": 3.0}', '{"eta": 3.0, "learning_rate": 0.03}', '{"eta": 3.0, "learning_rate": 0.3}']
    of_itq = ["{}", '{"n_iter": 20}', '{"n_iter": 5}']
    assert tried == {("dpsh", text): 2 for text in of_dpsh} | {("itq", text): 2 for text in of_itq}
    assert {trial.fingerprint for trial in trials} == {digits.fingerprint}
    with pytest.raises(HashbenchError, match="takes no preset"):
        plan(Study(methods=(("dsh", {}),), n_bits=(8,), params={"preset": "paper"}), 9)


def test_trials_see_no_query(digits_data):
    data, _ = load_dataset("digits")
    (trial,) = plan(Study(methods=(("itq", {}),), n_bits=(8,)), 1)
    split, _ = load_dataset(trial.job.dataset)
    queries = {row.tobytes() for row in data.features[data.query]}
    trained = {row.tobytes() for row in data.features[data.train]}
    assert {row.tobytes() for row in split.features} <= trained
    assert not {row.tobytes() for row in split.features} & (queries - trained)


def row_of(key, score, seconds="1.0", failure=""):
    """Return a row of a file of trials, by its key."""
    return {key: dict(zip(tuning.COLUMNS, (*key, score, score, seconds, "c0de", failure), strict=True))}


@pytest.mark.usefixtures("digits_data")
def test_the_best_is_the_highest_mean_without_a_failure_and_errors_count_down():
    study = Study(methods=(("hashnet", {}),), n_bits=(8, 16), params={"learning_rate": 0.1})
    trials = plan(study, 9)  # slopes 10, 5 and 20
    values = {"10": (0.5, 0.6), "5.0": (0.9, None), "20.0": (0.55, 0.6)}

    rows = {}
    for trial in trials:
        value = values[str(trial.job.params.get("slope", "10"))][trial.job.n_bits // 16]
        for metric, is_error in (("AP", False), ("PairwiseError", True)):
            score = "" if value is None else str(1 - value if is_error else value)
            rows |= row_of(trial.key(metric), score, failure="" if score else "failed")
    for metrics, best, default in (
        (["AP"], 0.575, 0.55),
        (["PairwiseError"], 0.425, 0.45),  # as it is
        (["AP", "PairwiseError"], 0.575, 0.55),  # AP and 1 - PairwiseError
    ):
        (choice,) = choose(trials, metrics, rows)
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
    rows = {}
    for trial, score in zip(trials, (default, best), strict=True):
        score = f"{1 - float(score):.6f}" if score and metric == "PairwiseError" else score
        rows |= row_of(trial.key(metric), score, failure="" if score else "failed")
    (choice,) = choose(trials, [metric], rows)
    assert choice.params == chosen


@pytest.mark.usefixtures("digits_data")
@pytest.mark.parametrize("lacking", tuning.SCORES)
def test_a_setting_with_one_of_the_two_scores_is_no_candidate(lacking):
    trials = plan(Study(methods=(("itq", {}),), n_bits=(8,), params={"n_iter": Sweep((50, 5))}), 2)
    keys = [trial.key("P@r2:skip") for trial in trials]
    half, whole = row_of(keys[0], "0.607100"), row_of(keys[1], "0.218000")
    half[keys[0]][lacking] = ""
    (choice,) = choose(trials, ["P@r2:skip"], half | whole)
    assert (choice.best, choice.params, choice.n_failed) == ({"n_iter": 5}, {"n_iter": 5}, 1)
    assert tuning.shown(half[keys[0]]).startswith("failed. P@r2:skip has no value for held-out queries among the ")


def test_a_grid_file_is_read_as_it_was_written(tmp_path):
    params = {"a": None, "b": 1e-05, "c": True, "d": 'w "x"', "e": [1, 2], "f": 30}
    written = Study(datasets=("mine", "mine"), n_bits=(16, 48, np.int64(16)), seeds=(0, np.int64(1), 0))
    choices = [Choice("m-1", params, {}, 0.5, 0.4, 0.1, 9, 0), Choice("other", None, None, 0, 0, 0, 9, 9)]
    text = grid_text(written, choices, ["AP", "NDCG"])
    assert text.startswith("# Chosen by hashbench tune: AP, NDCG of held-out training items, seed 0, 1;")
    (tmp_path / "grid.toml").write_text(text)
    study = read_study(tmp_path / "grid.toml")
    assert study.methods == (("m-1", {"tuned": 9, **params}),)
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


def test_numbers_of_numpy_are_written_as_plain_ones():
    params = {"a": np.int64(5), "b": np.float64(0.1), "c": np.bool_(True), "d": (1, 2), "e": np.float32(0.5)}
    text = grid_text(Study(n_bits=(16,)), [Choice("m", params, {}, 0.5, 0.4, 0.1, 9, 0)], ["AP"])
    assert tomllib.loads(text)["methods"]["m"] == {"tuned": 9, "a": 5, "b": 0.1, "c": True, "d": [[1, 2]], "e": 0.5}


def test_a_row_replaces_that_of_the_same_trial(tmp_path):
    path = tmp_path / "trials.csv"
    key = ("mine", "0123", "itq", "1", "{}", "8", "0", "AP")
    for n_bits, score in (("16", "0.1"), ("8", "0.2"), ("8", "0.3")):
        add_trials(path, row_of((*key[:5], n_bits, *key[6:]), score, failure='a, "b"\nc'))
    rows = read_trials(path).values()
    assert [(row["n_bits"], row["to_trained"]) for row in rows] == [("8", "0.3"), ("16", "0.1")]
    assert {row["failure"] for row in rows} == {'a, "b"\nc'}
    failure = "a\x0cb\x1cc\x85d\u2028e"  # at which str.splitlines would part it
    add_trials(path, row_of(key, "", "", failure))
    assert read_trials(path)[key]["failure"] == failure
    odd = ("+x.h5", *key[1:7], "@AP")  # what a spreadsheet would compute stays as it is
    add_trials(path, row_of(odd, "0.1", failure="-no"))
    assert read_trials(path)[odd]["failure"] == "-no"
