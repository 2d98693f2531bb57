"""The page on run files, letter by letter: its files, its commands and what they print."""

import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest
from helpers.documents import blocks, commands
from helpers.json_output import scores_in
from helpers.paths import ROOT
from scipy.stats import ttest_rel

import hashbench as package

PAGE = "docs/run-files.md"
TEXTS = dict(blocks(PAGE, r"text (\S+)"))
FIRST, SECOND, EXPLAIN = commands(PAGE)
CHANGES = (
    "1 of the 3 queries of the qrels have no list in the run and are left out, as trec_eval does without -c.\n"
    "Grades below 0 count as 0, not relevant; there are 1.\n"
    "1 of 2 lists end in a tie at 4 documents. If the run was cut there, chance decided which of the tied documents it "
    "holds, and low and high leave out the others.\n"
)


@pytest.fixture
def folder(empty_folder):
    """The working directory, with the page's files in it."""
    for name in ("run.txt", "qrels.txt"):
        (empty_folder / name).write_text(TEXTS[name])
    return empty_folder


def test_the_first_command_prints_what_the_page_shows(folder, hashbench):
    done = hashbench(*FIRST)
    assert done.exit_code == 0
    assert done.stdout.strip("\n") == TEXTS["stdout"].strip("\n")
    assert done.stderr.endswith(CHANGES)  # after a line about compiled loops, the first time
    assert sorted(path.name for path in folder.iterdir()) == ["qrels.txt", "run.txt"]


def test_the_command_that_explains_prints_what_the_page_shows(folder, hashbench):
    # numba's order of ties is its own, so numbers of ranx are not held
    ranx = re.compile(r"( ranx-comparable-here +).*\n(.*\n).*")
    texts = hashbench(*EXPLAIN).stdout, TEXTS["explained"]
    printed, shown = (ranx.sub(r"\1\n\2", text).strip("\n") for text in texts)
    assert printed == shown


def test_the_second_command_writes_each_query_under_its_name(folder, hashbench):
    done = hashbench(*SECOND)
    assert done.exit_code == 0
    assert "1 of the 3 queries of the qrels have no list in the run and count as empty lists." in done.stderr
    scores = pd.read_csv(folder / "scores.csv")
    assert scores["query"].tolist() == ["q1", "q2", "q3"] * 2
    assert scores["metric"].unique().tolist() == ["AP", "NDCG@2:trec"]
    assert scores.loc[scores["query"] == "q3", ["value", "low", "high"]].to_numpy().tolist() == [[0, 0, 0]] * 2


def test_zipped_files_score_alike_in_all_formats(folder, hashbench):
    for name in ("run.txt", "qrels.txt"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    done = hashbench("evaluate", "--run", "run.txt.gz", "qrels.txt.gz", "--format", "json")
    values = scores_in(done.stdout)
    assert list(values) == ["AP", "NDCG:trec", "NDCG@10:trec", "P@10", "R@1000", "RR"]
    assert values["AP"]["mean"] == pytest.approx(13 / 24)
    as_csv = hashbench("evaluate", "--run", "run.txt", "qrels.txt", "--format", "csv").stdout
    assert re.fullmatch(r"AP,0\.541667,0\.127041,0\.\d+,0\.133328,,0\.388889,0\.694444,2,0", as_csv.splitlines()[1])


def test_the_first_lines_of_python_score_a_tie_of_three_with_two_relevant_ones():
    exec(blocks(PAGE, "python")[0], scope := {})
    score = scope["found"].summary["AP"]
    assert [score.low, score.mean, score.high] == pytest.approx([5 / 18, 1 / 3, 7 / 18])  # at ranks 2 to 4, of three
    assert scope["found"].per_query["metric"].tolist() == ["AP", "NDCG@10:trec"]


def test_without_ties_ir_measures_gives_the_same_numbers_by_the_options_that_the_page_names(folder):
    ir_measures = pytest.importorskip("ir_measures")
    words = 'data frames of what its readers return to `evaluate_run`, with `complete=True` and `undefined="zero"`'
    assert words in " ".join((ROOT / PAGE).read_text().split())
    names = {
        "AP": "AP", "AP@2": "AP@2:relevant", "nDCG": "NDCG:trec", "nDCG@10": "NDCG@10:trec", "P@2": "P@2", "R@3": "R@3",
        "RR": "RR", "RR@2": "RR@2", "Rprec": "RPrec", "Success@1": "Hit@1",
    }  # fmt: skip
    (folder / "run.txt").write_text("q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq1 Q0 c 3 1 x\nq2 Q0 a 1 1 x\n")
    (folder / "qrels.txt").write_text("q1 0 b 2\nq1 0 c 1\nq1 0 d 1\nq2 0 a 0\nq3 0 a 1\n")
    run, qrels = [*ir_measures.read_trec_run("run.txt")], [*ir_measures.read_trec_qrels("qrels.txt")]
    theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in names], qrels, run)
    frames = pd.DataFrame(run), pd.DataFrame(qrels)
    ours = package.evaluate_run(*frames, [*names.values()], complete=True, undefined="zero").summary
    assert {name: ours[names[name]].mean for name in names} == pytest.approx(
        {str(measure): value for measure, value in theirs.items()}, abs=1e-12
    )


def test_two_runs_are_compared_as_python_compares_them(empty_folder, hashbench):
    rng = np.random.default_rng(0)
    names = [f"d{number}" for number in range(20)]
    grades = {f"q{query}": dict(zip(names, rng.integers(0, 2, 20).tolist(), strict=True)) for query in range(12)}
    runs = {}
    for name, n_listed in (("one.run", 20), ("other.run", 15)):
        scores = rng.integers(0, 4, (12, n_listed)).tolist()
        runs[name] = {query: dict(zip(names, row, strict=False)) for query, row in zip(grades, scores, strict=True)}
    runs["other.run"].pop("q7")  # counts as an empty list
    for name, run in runs.items():
        lines = (f"{q} Q0 {d} 0 {score} x\n" for q, of in run.items() for d, score in of.items())
        (empty_folder / name).write_text("".join(lines))
    lines = (f"{q} 0 {d} {grade}\n" for q, of in grades.items() for d, grade in of.items())
    (empty_folder / "qrels.txt").write_text("".join(lines))
    command = ["compare", *runs, "--qrels", "qrels.txt", "--metric", "AP", "--metric", "P@5"]
    done = hashbench(*command, "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert "1 of the 12 queries of the qrels have no list in the run and count as empty lists." in done.stderr
    content = json.loads(done.stdout)
    scored = [package.evaluate_run(run, grades, ["AP", "P@5"], complete=True) for run in runs.values()]
    assert [each["run"] for each in content["scores"]] == [*runs]
    for metric, answer in content["differences"].items():
        found, expected = (of.scores[metric].mean for of in scored)
        test = ttest_rel(found, expected)
        assert (answer["value"], answer["p"]) == pytest.approx((np.mean(found - expected), test.pvalue))
    text = hashbench(*command).stdout
    assert re.search(rf"^ one\.run +AP +{scored[0]['AP'].mean:.4f} ", text, re.MULTILINE)
    assert content["differences"]["AP"]["sentence"] in " ".join(text.split())


def test_lists_leave_out_the_document_that_is_the_query(empty_folder, hashbench):
    (empty_folder / "run.txt").write_text("a Q0 a 0 3 x\na Q0 b 0 2 x\na Q0 c 0 1 x\n")
    (empty_folder / "qrels.txt").write_text("a 0 a 1\na 0 c 1\n")
    for options, expected in (((), (1 + 2 / 3) / 2), (("--exclude-self",), 1 / 2)):
        done = hashbench("evaluate", "--run", "run.txt", "qrels.txt", "--metric", "AP", "--format", "json", *options)
        assert scores_in(done.stdout)["AP"]["mean"] == pytest.approx(expected)
