"""Submitted results: each problem of a file is a sentence, and a cell that cannot be reproduced is named."""

import re
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.diff_rows import git, needs_git, row, write
from helpers.paths import ROOT

from hashbench.cards import method_card
from hashbench.pipeline.grid import Job
from hashbench.reports import submissions
from hashbench.store.origin import JobRecord
from hashbench.store.provenance import settings_name
from hashbench.store.results import merge_rows, read_rows

FINGERPRINT = "cecf02ca0edd5963"  # of digits
digits_row = partial(row, dataset_fingerprint=FINGERPRINT)


def store(*rows):
    """Replace all results by these, each with a record of its job, and return the first file."""
    shutil.rmtree("results", ignore_errors=True)
    files = [path for one in rows for path in merge_rows(Path("results"), [one], record_of(one))]
    return files[0]


def record_of(one):
    job = one.dataset, one.features, settings_name(one.params), one.n_bits, one.seed
    content = one.dataset_fingerprint, one.method_version
    return JobRecord(*job, *content, "", "0.1.0", "numpy=2", "x86_64 Nobody avx2", 1, "cpu", "2026-01-31", "1.00")


def commit(*rows):
    """Commit these rows as all results."""
    store(*rows)
    git("add", ".")
    git("commit", "-qm", "results")


@pytest.mark.usefixtures("empty_folder")
def test_good_files_are_counted(hashbench):
    nothing = float("nan")  # a mean of no query
    of_none = digits_row(seed=1, value=nothing, low=nothing, high=nothing, n_undefined=200)
    store(digits_row(), of_none, digits_row(dataset="digits-pairs"))
    result = hashbench("results", "check")
    assert (result.exit_code, result.stdout) == (0, "2 files with 3 rows: all is well.\n")


def test_own_rows_have_the_content_of_the_others_unless_they_leave_items_out():
    own = partial(digits_row, method="mine", dataset_fingerprint="0" * 16)
    rows = {one.key: one for one in (digits_row(), own(params='{"codes": "own"}'))}
    assert f"is over 200 queries of {'0' * 16}" in submissions.about_contents(rows)[0]
    rows = {one.key: one for one in (digits_row(), own(params='{"codes": "own", "junk_label": "3"}'))}
    assert submissions.about_contents(rows) == []


@pytest.mark.usefixtures("empty_folder")
def test_rows_of_an_older_version_are_refused(hashbench):
    store(digits_row(method="bre", method_version=1))
    words = f"bre 16 bits seed 0 is of version 1 of bre, which is at {method_card('bre').version} here. Run it again."
    assert words in hashbench("results", "check").stderr


def test_committed_results_pass(hashbench):
    assert hashbench("results", "check", ROOT / "results").exit_code == 0


def unsorted(text):
    header, *lines = text.splitlines()
    return "\n".join([header, *lines[::-1], ""])


SPOILT = {  # a change to a good file, of its text or of each row, and words of the problem
    "four decimals": (lambda text: text.replace("0.500000", "0.5000"), "expected six decimals each"),
    "not sorted": (unsorted, "lsh.csv, line 2, is not as hashbench writes it but out of order: rows are sorted by"),
    "a number spelt otherwise": (lambda text: text.replace(",16,0,", ",1_6,0,"), "line 2, is not as hashbench writes"),
    "bits beyond any code": (lambda text: text.replace(",16,0,", ",1000000000,0,"), "codes of 1,000,000,000 bits, and"),
    "two contents": (lambda text: text.replace(FINGERPRINT, "0" * 16, 1), f"is over 200 queries of {FINGERPRINT}"),
    "other queries": (lambda text: text.replace(",200,0,", ",199,0,", 1), "AP over 199 queries of "),
    "no such metric": (lambda text: text.replace(",AP,", ",XP,"), "unknown metric 'XP'"),
    "a metric's other name": (lambda text: text.replace(",AP,", ",mAP,"), "which results call AP"),
    "of the future": (lambda text: text.replace(f"{FINGERPRINT},1", f"{FINGERPRINT},99"), "Update hashbench"),
    "nothing": (lambda text: text.splitlines()[0] + "\n", "holds no row"),
}


def change_text(path, change):
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


@pytest.mark.usefixtures("empty_folder")
def test_another_name_of_a_metric_is_all_that_is_wrong_with_its_file(hashbench):
    for metric in ("AP", "AP@1000"):
        merge_rows(Path("results"), [one := digits_row(metric=metric)], record_of(one))
    change_text(Path("results/digits/lsh.csv"), lambda text: text.replace(",AP,", ",mAP,", 1))
    (line,) = hashbench("results", "check").stderr.splitlines()
    assert line.startswith("Error: digits (pixels) lsh 16 bits seed 0 mAP calls the metric mAP, which results call AP")


ORIGINS = {  # changes to the origins beside it
    "of another job": (lambda text: text.replace(",16,1,", ",16,2,"), "has no rows of digits pixels "),
    "of another version": (lambda text: re.sub(r"(\w{16}),1,", r"\1,2,", text), "no rows of"),
    "no origin": (lambda text: text.splitlines()[0] + "\n", "lsh 16 bits seed 1 has no line in lsh.jobs.csv. Run it"),
    "bytes": (lambda text: "\0\r\n" + text, "lsh.jobs.csv is damaged: its bytes are not text in UTF-8. Restore it"),
    "origins cut short": (lambda text: text[:-20], "cells, expected 16"),
}


@pytest.mark.parametrize(
    ("suffix", "spoil", "words"),
    [(".csv", *case) for case in SPOILT.values()] + [(".jobs.csv", *case) for case in ORIGINS.values()],
    ids=[*SPOILT, *ORIGINS],
)
@pytest.mark.usefixtures("empty_folder")
def test_spoilt_file_is_described(hashbench, suffix, spoil, words):
    for seed in (0, 1):
        merge_rows(Path("results"), [one := digits_row(seed=seed)], record_of(one))
    assert hashbench("results", "check").stdout == "1 file with 2 rows: all is well.\n"
    change_text(Path("results/digits/lsh.csv").with_suffix(suffix), spoil)
    for path in ("results", "results/digits", "results/digits/lsh.csv"):
        result = hashbench("results", "check", path)
        assert (result.exit_code, result.stdout) == (1, "")
        assert words in result.stderr


@pytest.mark.usefixtures("empty_folder")
def test_a_file_of_another_name_and_a_broken_one_are_both_listed(hashbench):
    write(Path("results/mine.csv"), digits_row())
    Path("results/other.csv").write_text("no results\n", encoding="utf-8")
    first, second, third, last = hashbench("results", "check").stderr.splitlines()
    assert "mine.csv holds rows of lsh on digits, which belong in digits/lsh.csv" in first
    assert "other.csv is not a results file" in second
    assert "has no line in lsh.jobs.csv" in third
    assert last.startswith("Error: 3 things are wrong")


@pytest.mark.usefixtures("empty_folder", "digits_data")
def test_a_fingerprint_must_be_that_of_the_dataset_prepared_here(hashbench):
    store(digits_row(dataset_fingerprint="0" * 16))
    assert f"and {FINGERPRINT} as it is prepared here" in hashbench("results", "check").stderr


@pytest.fixture
def lsh_path(hashbench, repository, digits_data):
    """A results file of two cells of a run here."""
    run = ("run", "--method", "lsh", "--bits", 8, "--seed", 0, "--seed", 1, "--metric", "AP", "--metric", "P@10")
    assert hashbench(*run).exit_code == 0
    return Path("results/digits/lsh.csv")


@needs_git
def test_a_cell_is_rerun_and_comes_out_the_same(hashbench, lsh_path, data):
    before = sorted(data.rglob("*"))
    result = hashbench("results", "rerun", "--cells", 2)
    assert result.stdout.splitlines()[-1] == "2 of 2 new or changed cells run again: every digit is the same."
    assert sorted(data.rglob("*")) == before  # another folder is its cache


def spoil_last_digit(lsh_path):
    """Change the sixth decimal of the first AP; return its row as it was, and its new value."""
    first, *_ = read_rows("results", "digits")
    value = f"{float(first.value) + 1e-6:.6f}"
    change_text(lsh_path, lambda text: text.replace(f",AP,{first.value},", f",AP,{value},"))
    return first, value


@needs_git
def test_a_digit_that_is_not_reproduced_is_named_with_its_environment(hashbench, lsh_path):
    first, value = spoil_last_digit(lsh_path)
    origins = lsh_path.with_suffix(".jobs.csv")
    result = hashbench("results", "rerun", "--cells", 2)
    assert result.exit_code == 1
    for words in (f"AP is {value} ", f"and {first.value} {first.tie_sd} {first.low} ", "Its environment was the same."):
        assert words in result.stderr
    change_text(origins, lambda text: re.sub(r",(x86_64|aarch64|arm64) \w+ ", ",riscv64 Nobody ", text))
    change_text(origins, lambda text: re.sub(r"numpy=[\d.]+", "numpy=1.0", text))
    other = r"another processor class \(riscv64 Nobody \w+, here .*\), numpy 1\.0 \(here "
    assert re.search(other, hashbench("results", "rerun", "--cells", 2).stderr)
    origins.unlink()
    assert "Its environment was not recorded." in hashbench("results", "rerun", "--cells", 2).stderr


@needs_git
def test_only_new_or_changed_cells_are_rerun(hashbench, lsh_path):
    rows = read_rows("results", "digits")
    commit(*rows[:2])
    store(*rows[:2], *(row._replace(seed=1) for row in rows[:2]))
    rerun = hashbench("results", "rerun", "--against", "HEAD")
    assert rerun.stdout.startswith("digits lsh 8 bits seed 1: 2 rows ...")
    git("add", ".")
    git("commit", "-qm", "all")
    assert hashbench("results", "rerun", "--against", "HEAD").stdout == "No cell is new or changed.\n"


def rerun_as_if(monkeypatch, method, *changes, tie_sd=0.01):
    """Rerun a cell of AP and P@10 as if these rows came out; return the problems and the warnings."""
    cell = [digits_row(method=method, metric=metric, tie_sd=tie_sd) for metric in ("AP", "P@10")]
    job = Job("digits", submissions.method_card(method), 16, 0, {})
    rows = [row._replace(**change) for row, change in zip(cell, changes, strict=True)]
    outcome = SimpleNamespace(refusal="", rows=rows, made=None)
    for name in ("load_dataset", "dataset_path"):
        monkeypatch.setattr(submissions, name, lambda dataset: Path("digits.h5"))
    monkeypatch.setattr(submissions, "run", lambda *args, **kwargs: [outcome])
    return submissions.rerun(job, cell)


NEAR, FAR = {"value": "0.530000"}, {"value": "0.530001"}


@pytest.mark.parametrize("method", ["itq", "mihash"])
def test_a_deviation_that_was_not_known_is_no_difference(monkeypatch, method):
    known = {"tie_sd": "0.010000"}
    assert rerun_as_if(monkeypatch, method, known, known, tie_sd=None) == ([], [])


def test_digits_that_another_processor_may_change_are_a_warning(monkeypatch):
    problems, (warning,) = rerun_as_if(monkeypatch, "mihash", NEAR, {"low": "0.390000"})
    assert not problems
    largest = "AP by up to 0.030000, P@10 by up to 0.010000"
    assert warning.startswith(f"digits mihash 16 bits seed 0 differs here in {largest}. Processors round sums")


@pytest.mark.parametrize(
    ("method", "change"),
    [("itq", NEAR), ("mihash", FAR), ("mihash", {"high": "0.700000"}), ("mihash", {"n_undefined": 1})],
)
def test_digits_beyond_what_a_processor_changes_are_wrong(monkeypatch, method, change):
    (problem,), warnings = rerun_as_if(monkeypatch, method, {}, change)
    assert f"{method} 16 bits seed 0 P@10 is 0.500000 " in problem
    assert ("which differ by up to 0." in problem) is ("n_undefined" not in change)
    assert not warnings


@needs_git
def test_a_warning_on_digits_leaves_the_exit_code_0(hashbench, lsh_path, monkeypatch):
    monkeypatch.setattr(submissions, "_is_exact", lambda card: False)
    spoil_last_digit(lsh_path)
    result = hashbench("results", "rerun", "--cells", 2)
    assert result.exit_code == 0
    assert "Warning: digits lsh 8 bits seed 0 differs here in AP by up to 0.000001" in result.stderr
    assert "run again: differences are within" in result.stdout


@pytest.mark.usefixtures("empty_folder")
def test_a_cell_of_a_users_dataset_is_rerun(hashbench):
    prepare = ("prepare", "--from", "features.npy", "--labels", "labels.npy", "--name", "own")
    np.save("features.npy", np.random.default_rng(0).normal(size=(60, 4)))
    np.save("labels.npy", np.arange(60) % 3)
    assert hashbench(*prepare).exit_code == 0
    assert hashbench("run", "--dataset", "own", "--method", "lsh", "--bits", 8, "--metric", "AP").exit_code == 0
    assert hashbench("results", "rerun").stdout == (
        "own lsh 8 bits seed 0: 1 row ...\n1 of 1 new or changed cell run again: every digit is the same.\n"
    )


@pytest.mark.usefixtures("empty_folder")
def test_cells_that_cannot_be_run_here_are_a_warning(hashbench):
    store(digits_row(method="ksh", method_version=3), digits_row(method="someone-else"))
    sentence = "2 new or changed cells cannot be run here: digits ksh (of version 3, here 4), digits someone-else (no "
    alone = hashbench("results", "rerun")
    assert (alone.exit_code, alone.stdout) == (1, "")
    assert alone.stderr.startswith(f"Error: {sentence}")
    result = hashbench("results", "rerun", "--against", write(Path("base.csv"), digits_row(seed=1)))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"Warning: {sentence}")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dataset": "far"}, "no such dataset or settings here"),
        ({"dataset": "cifar10-s1", "features": "gist"}, "not prepared"),
        ({"params": '{"sides": 3}'}, "other parameters here"),
        ({"method": "pcah", "seed": 1}, "deterministic, so only seed 0 is run"),
    ],
)
def test_cell_that_cannot_be_run_here_has_a_reason(changes, reason):
    row = digits_row(**changes)
    assert submissions.runnable([[row]]) == ([], [f"{row.dataset} {row.method} ({reason})"])


@needs_git
def test_cells_can_be_chosen(hashbench, lsh_path):
    chosen = ("--method", "lsh", "--bits", 8, "--seed", 1, "--metric", "P@10")
    lines = hashbench("results", "rerun", *chosen).stdout.splitlines()
    assert lines == [
        "digits lsh 8 bits seed 1: 1 row ...",
        "1 of 1 new or changed cell run again: every digit is the same.",
    ]
    assert "no new or changed row has all of the chosen values" in hashbench("results", "rerun", "--seed", 7).stderr
