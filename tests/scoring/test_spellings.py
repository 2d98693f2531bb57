"""Names that mean two metrics in use: which was taken, what the other is called here, and its value."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.affinity_examples import N_BITS, database, matrix, query
from helpers.json_output import scores_in
from helpers.slices import in_slices

from hashbench import Problem, evaluate, evaluate_ranking, explain, run
from hashbench.affinity import Explicit
from hashbench.bits import pack
from hashbench.scoring.metrics import get_metric, readings

LEVELS = Explicit(matrix)
FOUND, ANY = "share of the relevant items found", "any relevant item found"
OF_CODES = {
    "Recall@3": ("R@3", FOUND, "in metric learning it is", {"Hit@3": ANY}),
    "Hits@3": (
        "Hit@3",
        ANY,
        "in link prediction, which ranks relevant items one by one,",
        {"R@3": FOUND},
    ),
    "nDCG": ("NDCG", "gain 2^level - 1", "in trec_eval and scikit-learn it is", {"NDCG:trec": "gain level"}),
    "nDCG@5": ("NDCG@5", "gain 2^level - 1", "in trec_eval and scikit-learn it is", {"NDCG@5:trec": "gain level"}),
    "mAP@4": (
        "AP@4",
        "divided by the relevant items in the first 4",
        "in trec_eval it is",
        {"AP@4:relevant": "divided by all relevant items", "AP@4:capped": "divided by 4 at most"},
    ),
}


def score(names):
    return evaluate(query, database, LEVELS, names)


@pytest.mark.parametrize("spelling", OF_CODES)
def test_a_name_with_two_meanings_says_which_was_taken_and_what_the_other_is_called_and_worth(spelling):
    taken, words, elsewhere, others = OF_CODES[spelling]
    scored, others_scored = score([spelling]), score(list(others))
    assert list(scored) == [taken]
    (note,) = scored.notes
    assert note.startswith(f"{spelling} is read as {taken} ({words}: {scored[taken].mean:.4f}); {elsewhere} ")
    for name, meaning in others.items():
        assert f"{name} ({meaning}: {others_scored[name].mean:.4f})" in note


def test_names_of_one_meaning_here_and_equal_values_say_nothing():
    assert not score(["R@3", "Hit@3", "NDCG", "NDCG@5:trec", "AP@4", "recall_3", "map_cut_4", "nDCG@5:trec"]).notes
    assert not score(["Recall@3", "Hit@3"]).notes  # both were asked for
    first = np.arange(matrix.shape[1]) == matrix.argmax(axis=1)[:, None]  # one relevant item each, of level 1
    names = ["Recall@3", "Hits@3", "nDCG", "nDCG@5"]
    assert not evaluate(query, database, Explicit(first.astype(int)), names).notes
    assert readings([get_metric("Recall@3")]) == [  # where no values are at hand
        "Recall@3 is read as R@3 (share of the relevant items found); in metric learning it is Hit@3 (any relevant "
        "item found)."
    ]


def test_all_ways_to_score_say_the_same():
    note = score(["Recall@3"]).notes
    sharded = in_slices(pack(query), pack(database), N_BITS, LEVELS).evaluate(["Recall@3"])
    distances = (query[:, None] != database).sum(axis=2)
    ranked = evaluate_ranking(relevance=matrix, scores=-distances, metrics=["Recall@3"])
    signs = 2.0 * query - 1, 2.0 * database - 1
    by_cosine = evaluate(*signs, LEVELS, ["Recall@3"], distance="cosine")
    assert [*sharded.notes] == [*ranked.notes] == [*by_cosine.notes] == [*note]
    assert len(note) == 1


@pytest.fixture
def files(empty_folder):
    """The user's own codes with several relevant items a query."""
    np.save("q.npy", query), np.save("d.npy", database), np.save("a.npy", matrix)
    return ["--query-codes", "q.npy", "--database-codes", "d.npy", "--affinity", "a.npy"]


def test_commands_say_it_on_stderr_and_keep_stdout_clean(hashbench, files):
    note = next(iter(score(["Recall@3"]).notes))
    done = hashbench("evaluate", *files, "--metric", "Recall@3", "--format", "json")
    assert done.exit_code == 0
    assert note in done.stderr.splitlines()
    assert list(scores_in(done.stdout)) == ["R@3"]
    explained = hashbench("explain", *files, "--metric", "Recall@3", "--format", "json")
    assert {one["metric"] for one in json.loads(explained.stdout)} == {"R@3"}
    assert "Recall@3 is read as R@3 (share of the relevant items found); in metric learning" in explained.stderr
    Path("study.toml").write_text('methods = ["itq"]\nbits = [8]\nmetrics = ["Recall@3"]\n')
    done = hashbench("run", "--grid", "study.toml", "--dry-run")
    assert (done.exit_code, done.stderr.count("Recall@3 is read as R@3 (")) == (0, 1)
    for command in ("run --method itq --bits 8 --dry-run", "tables", "compare itq lsh", "diff"):
        done = hashbench(*command.split(), "--metric", "Recall@3")
        assert done.stderr.count("Recall@3 is read as R@3 (") == 1, command


def test_explain_looks_for_a_value_in_the_other_meaning_too(hashbench, files):
    value = f"{score(['Hit@3'])['Hit@3'].mean:.4f}"
    done = hashbench("explain", *files, "--metric", "Recall@3", "--value", value)
    assert any("Hit@3" in line and "gives it" in line for line in done.stdout.splitlines())
    searched, explained = (
        explain(Problem.of_codes(query, database, LEVELS), "Recall@3", value=text).scripts for text in (value, None)
    )
    assert set(searched["metric"]) == {"R@3", "Hit@3"}
    assert set(explained["metric"]) == {"R@3"}


def test_running_from_python_warns(digits_data):
    with pytest.warns(UserWarning, match=r"Recall@3 is read as R@3 \(.*\); in metric learning it is Hit@3") as warned:
        assert run("lsh", 8, metrics="Recall@3")["metric"].tolist() == ["R@3"]
    assert [warning.filename for warning in warned] == [__file__]
