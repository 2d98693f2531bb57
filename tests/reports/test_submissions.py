"""Submitted results: each problem of a file is a sentence, and a cell that cannot be reproduced is named."""

import re
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.diff_rows import git, needs_git, row, write
from helpers.error_sentences import complaint

from hashbench.cards import method_card
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import Job
from hashbench.reports import submissions
from hashbench.store.origin import Origin
from hashbench.store.results import merge_rows, read_rows

FINGERPRINT = "cecf02ca0edd5963"  # of digits
ORIGIN = Origin("", "0.1.0", "numpy=2", "x86_64 Nobody avx2", 1, "cpu", "2026-01-31", 1.0)
digits_row = partial(row, dataset_fingerprint=FINGERPRINT)


def store(*rows):
    """Replace all results by these, and return the first file."""
    shutil.rmtree("results", ignore_errors=True)
    return merge_rows(Path("results"), rows, ORIGIN)[0][0]


def change_text(path, change):
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


@pytest.mark.usefixtures("empty_folder")
def test_good_files_are_counted(hashbench):
    nothing = float("nan")  # a mean of no query
    of_none = digits_row(seed=1, value=nothing, low=nothing, high=nothing, n_undefined=200)
    store(digits_row(), of_none, digits_row(dataset="digits-pairs"))
    result = hashbench("results", "check")
    assert (result.exit_code, result.stdout) == (0, "2 files with 3 rows: all is well.\n")


def test_own_rows_have_the_content_of_the_others_unless_they_leave_items_out():
    own = partial(digits_row, method="mine", dataset_fingerprint="0" * 16)
    for params, n_problems in (('{"codes": "own"}', 1), ('{"codes": "own", "junk_label": "3"}', 0)):
        rows = {one.key: one for one in (digits_row(), own(params=params))}
        assert len([*submissions.about_contents(rows)]) == n_problems


def unsorted(text):
    header, *lines = text.splitlines()
    return "\n".join([header, *lines[::-1], ""])


AS_WRITTEN = "lsh.csv is not spelt or sorted as hashbench writes it"
SPOILT = {  # a change to the rows of a good file, or to their record, and words of the problem
    "four decimals": (".csv", lambda text: text.replace("0.500000", "0.5000"), "expected six decimals each"),
    "not sorted": (".csv", unsorted, AS_WRITTEN),
    "a number spelt otherwise": (".csv", lambda text: text.replace(",16,0,", ",1_6,0,"), AS_WRITTEN),
    "two contents": (".csv", lambda text: text.replace(FINGERPRINT, "0" * 16, 1), f"and 200 queries of {FINGERPRINT}"),
    "other queries": (".csv", lambda text: text.replace(",200,0,", ",199,0,", 1), "over 199 queries of "),
    "no such metric": (".csv", lambda text: text.replace(",AP,", ",XP,"), "unknown metric 'XP'"),
    "a metric's other name": (".csv", lambda text: text.replace(",AP,", ",mAP,"), "which results call AP"),
    "of the future": (".csv", lambda text: text.replace(f"{FINGERPRINT},1", f"{FINGERPRINT},99"), "Update hashbench"),
    "nothing": (".csv", lambda text: text.splitlines()[0] + "\n", "holds no row"),
    "of another job": (".json", lambda text: text.replace('"seed": 1', '"seed": 2'), "has no rows of digits pixels "),
    "no origin": (".json", lambda text: text.replace('"seed": 1', '"seed": 2'), "seed 1 has no line in lsh.json. Run"),
    "cut short": (".json", lambda text: text[:-20], "lsh.json is damaged"),
}


@pytest.mark.parametrize(("suffix", "spoil", "words"), SPOILT.values(), ids=SPOILT)
@pytest.mark.usefixtures("empty_folder")
def test_spoilt_file_is_described(hashbench, suffix, spoil, words):
    change_text(store(digits_row(), digits_row(seed=1)).with_suffix(suffix), spoil)
    result = hashbench("results", "check")
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr


@pytest.mark.usefixtures("empty_folder", "digits_data")
def test_every_problem_of_every_file_is_listed(hashbench):
    store(digits_row(method="bre", method_version=1), digits_row(dataset_fingerprint="0" * 16, metric="AP@1000"))
    write(Path("results/mine.csv"), digits_row(method="itq"))
    Path("results/other.csv").write_text("no results\n", encoding="utf-8")
    lines = hashbench("results", "check").stderr.splitlines()
    for line, words in zip(
        lines,
        [
            "mine.csv holds rows of itq on digits, which belong in digits/itq.csv",
            "other.csv has columns no results, expected dataset,",
            f"has rows over 200 queries of {'0' * 16} and 200 queries of {FINGERPRINT}. Delete",
            "itq 16 bits seed 0 has no line in itq.json",
            f"bre 16 bits seed 0 is of version 1 of bre, which is at {method_card('bre').version} here. Run it again.",
            "Error: 5 things are wrong",
        ],
        strict=True,
    ):
        assert words in line
    store(digits_row(dataset_fingerprint="0" * 16))
    assert f"and is {FINGERPRINT} as it is prepared here" in hashbench("results", "check", "results/digits").stderr


@pytest.fixture
def lsh_path(hashbench, repository, digits_data):
    """A results file of two cells of a run here."""
    run = ("run", "--method", "lsh", "--bits", 8, "--seed", 0, "--seed", 1, "--metric", "AP", "--metric", "P@10")
    assert hashbench(*run).exit_code == 0
    return Path("results/digits/lsh.csv")


@needs_git
def test_cells_are_rerun_and_a_digit_that_is_not_reproduced_is_named_with_its_environment(hashbench, lsh_path, data):
    def rerun():
        return hashbench("results", "rerun", "--cells", 2)

    before = sorted(data.rglob("*"))
    done = rerun()
    assert done.stdout.count("no differences, 2 rows unchanged.") == 2
    assert done.stdout.endswith("2 cells rerun and reproduced, of 2 cells.\n")
    assert sorted(data.rglob("*")) == before  # another folder is its cache
    first, *_ = read_rows("results", "digits")
    value = f"{float(first.value) + 1e-6:.6f}"
    change_text(lsh_path, lambda text: text.replace(f",AP,{first.value},", f",AP,{value},"))
    done = rerun()
    assert (done.exit_code, done.stderr.startswith("Error: not reproduced: digits lsh 8 bits seed 0. ")) == (1, True)
    assert re.search(rf"AP .*{value} .*{first.value} .*-0.000001", done.stdout)
    assert "Environment of the rows: the same." in done.stdout
    change_text(lsh_path.with_suffix(".json"), lambda text: re.sub(r"numpy=[\d.]+", "numpy=1.0", text))
    assert "Environment of the rows: libraries numpy=1.0" in rerun().stdout


@needs_git
def test_cells_to_rerun_are_drawn_by_a_seed(hashbench, lsh_path):
    def drawn(seed):
        done = hashbench("results", "rerun", "--seed", seed)
        assert done.stdout.endswith("1 cell rerun and reproduced, of 2 cells.\n")
        return done.stdout.partition(":")[0]

    cells = [drawn(seed) for seed in range(6)]
    assert {*cells} == {"digits lsh 8 bits seed 0", "digits lsh 8 bits seed 1"}
    assert drawn(3) == cells[3]


@needs_git
def test_only_new_or_changed_cells_are_rerun(hashbench, lsh_path):
    rows = read_rows("results", "digits")
    store(*rows[:2])
    git("add", ".")
    git("commit", "-qm", "results")
    store(*rows[:2], *(row._replace(seed=1) for row in rows[:2]))
    rerun = hashbench("results", "rerun", "--against", "HEAD")
    assert rerun.stdout.startswith("digits lsh 8 bits seed 1: 2 rows ...")
    store(*rows[:2])
    sentence = "0 cells rerun and reproduced, of 0 new or changed cells.\n"
    assert hashbench("results", "rerun", "--against", "HEAD").stdout == sentence


NEAR, FAR = {"value": "0.530000"}, {"value": "0.530001"}


@pytest.mark.parametrize(
    ("method", "change", "is_right"),
    [
        ("itq", {}, True),
        ("itq", {"tie_sd": ""}, True),
        ("itq", NEAR, False),
        ("itq", {"high": "0.600001"}, False),
        ("mihash", NEAR, True),
        ("mihash", FAR, False),
        ("mihash", {"n_undefined": 1}, False),
        ("mihash", {"value": "nan", "low": "nan", "high": "nan", "n_undefined": 200}, False),
        ("mihash", {"dataset_fingerprint": "0" * 16}, False),
        ("mihash", {"metric": "AP@5"}, False),
    ],
)
def test_digits_that_another_processor_may_change_are_near_of_methods_that_train(monkeypatch, method, change, is_right):
    cell = [digits_row(method=method, metric=metric) for metric in ("AP", "P@10")]
    outcome = SimpleNamespace(refusal="", rows=[cell[0], cell[1]._replace(**change)], made=None)
    for name in ("load_dataset", "dataset_path"):
        monkeypatch.setattr(submissions, name, lambda dataset: Path("digits.h5"))
    monkeypatch.setattr(submissions, "run", lambda *args, **kwargs: [outcome])
    diff, here = submissions.rerun(Job("digits", method_card(method), 16, 0, {}), cell)
    assert submissions.is_reproduced(diff, method) == is_right
    assert submissions.compare_origins(ORIGIN, here) == "The environment of the rows was not recorded."


def test_a_network_from_random_weights_is_run_without_a_file_of_weights(data):
    params = '{"backbone": "dsh-net", "weights": "random"}'
    row = digits_row(method="dsh", dataset="cifar10-s2", features="images (JPEG)", params=params)
    with pytest.raises(HashbenchError, match=r"^not prepared\.$"):
        submissions.job_of(row)


@pytest.mark.usefixtures("empty_folder")
def test_cells_that_cannot_be_run_here_are_a_warning(hashbench):
    store(digits_row(method="ksh", method_version=3), digits_row(method="someone-else"))
    sentence = r"cells cannot be run here: digits ksh \(.*; method_version 3, here 4\), digits someone-else \(no such"
    done = hashbench("results", "rerun")
    assert (done.exit_code, done.stdout) == (1, "")
    assert re.match(f"Error: {sentence}", done.stderr)
    done = hashbench("results", "rerun", "--against", write(Path("base.csv"), digits_row(seed=1)))
    assert (done.exit_code, done.stdout) == (0, "0 cells rerun and reproduced, of 2 new or changed cells.\n")
    assert re.match(f"Warning: {sentence}", done.stderr)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dataset": "far"}, "unknown dataset 'far'"),
        ({"dataset": "cifar10-s1", "features": "gist"}, "not prepared"),
        ({"dataset_fingerprint": "0" * 16}, f"dataset_fingerprint {'0' * 16}, here {FINGERPRINT}"),
        ({"params": '{"sides": 3}'}, 'params {"sides": 3}, here {}'),
        ({"method": "pcah", "seed": 1}, "seed 1, here 0"),
        ({"n_bits": 10**6}, "codes must have 1 to 4096 bits"),
    ],
)
@pytest.mark.usefixtures("digits_data")
def test_cell_that_cannot_be_run_here_has_a_reason(changes, reason):
    assert reason in complaint(submissions.job_of, digits_row(**changes))
