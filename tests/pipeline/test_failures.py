import pickle
import tempfile
from contextvars import copy_context

import pytest
from helpers.paths import built_in_methods
from helpers.result_files import rows_in

from hashbench import testing
from hashbench.errors import HashbenchError, JobFailure
from hashbench.pipeline import one_job, runner, steps
from hashbench.pipeline.grid import contained, grid
from hashbench.pipeline.preparation import find_dataset
from hashbench.pipeline.steps import Demands
from hashbench.store.files import data_dir

METHOD = '''
"""A method that {what}."""

import sys

import numpy as np

from hashbench.method import HashMethod


class Mine(HashMethod):
    """A method.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    """

    def _fit(self, X, y):
        pass

    def _project(self, X):
        return X[:, : self.n_bits]

    {override}
'''
EXIT = "def _fit(self, X, y):\n        sys.exit(0)"
OVERRIDES = {
    "exits": (EXIT, "SystemExit: 0"),
    "exits in words": (EXIT.replace("0", "'bye'"), "SystemExit: bye"),
    "divides": ("def _fit(self, X, y):\n        1 / 0", "ZeroDivisionError: division by zero"),
    "exits late": ("def _project(self, X):\n        sys.exit(0)", "SystemExit: 0"),
    "says nothing": ("def _fit(self, X, y):\n        raise KeyError", "KeyError: no message"),
    "refuses oddly": ("def refusal(self, dataset):\n        raise OSError(28, 'full')", r"OSError: [Errno 28] full"),
}
RUN = ["run", "--method", "mine", "--method", "lsh", "--bits", 8, "--metric", "AP"]


@pytest.mark.usefixtures("digits_data")
@pytest.mark.parametrize(("override", "words"), OVERRIDES.values(), ids=OVERRIDES)
def test_any_exception_of_a_method_fails_only_its_job(hashbench, plugin, data, tmp_path, override, words):
    plugin("mine", METHOD.format(what="fails", override=override))
    result = hashbench(*RUN, "--results", tmp_path / "results")
    log = data / "logs" / "digits-mine-8-bits-seed-0.log"
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"[1/2] digits mine 8 bits seed 0: failed. method 'mine' failed with {words}; "
        f"hashbench check method mine may say why. Fix it; its traceback is in {log}.",
        "[2/2] digits lsh 8 bits seed 0: encoded codes, computed scores",
        "Error: 1 of the 2 jobs failed; the reasons are above.",
    ]
    assert [line.split()[1] for line in result.stdout.splitlines()[2:3]] == ["lsh"]
    assert "Traceback" in log.read_text()
    assert "mine.py" in log.read_text()


@pytest.mark.usefixtures("digits_data")
def test_a_dataset_that_cannot_be_loaded_fails_only_its_jobs(hashbench, tiny_file, tmp_path, plugin):
    adapter = "from hashbench.adapter import DatasetAdapter\nclass Mine(DatasetAdapter):\n    name = 'mine'\n"
    plugin("mine", f"{adapter}    summary = ''\n    def prepare(self):\n        raise SystemExit(0)\n", "datasets")
    broken = tmp_path / "broken.h5"
    broken.write_bytes(b"")
    common = ["--method", "lsh", "--bits", 8, "--metric", "AP", "--results", tmp_path / "results"]
    result = hashbench("run", "--dataset", broken, "--dataset", "mine", "--dataset", tiny_file(), *common)
    first, second, third, last = result.stderr.splitlines()
    assert result.exit_code == 1
    assert f"failed. {broken}" in first
    assert "failed. dataset 'mine' failed with SystemExit: 0. Fix it" in second
    assert "computed scores" in third
    assert last == "Error: 2 of the 3 jobs failed; the reasons are above."
    assert (tmp_path / "results" / "tiny" / "lsh.csv").exists()


@pytest.mark.parametrize("override", [EXIT, "def __init__(self, n_bits=32):\n        sys.exit(0)"])
def test_check_does_not_pass_a_method_that_exits(hashbench, plugin, override):
    plugin("mine", METHOD.format(what="exits", override=override))
    result = hashbench("check", "method", "mine")
    assert result.exit_code == 1
    assert "FAIL  same seed gives same codes: SystemExit: 0" in result.stdout
    assert len(result.stdout.splitlines()) == len(testing.METHOD_CHECKS)
    assert "Error: method 'mine' fails" in result.stderr


MOVING = """
import os
import tempfile

print("imported")


def move(what):
    print(what)
    os.chdir(tempfile.gettempdir())


move("module")
"""
ADAPTER = (
    MOVING
    + """
import numpy as np
from hashbench.plugins import Dataset, DatasetAdapter


class Mine(DatasetAdapter):
    name, summary = "minedata", "Few items."

    def __init__(self, options=None):
        move("construction")
        super().__init__(options)

    def prepare(self):
        move("prepare")
        rows, features = np.arange(40), np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
        return Dataset("minedata", features, rows[:8], rows[8:], rows[8:], "same-label", labels=rows % 2)
"""
)
MEASURE = (
    MOVING
    + """
from hashbench.plugins import register_metric
from hashbench.scoring.metrics import get_metric


@register_metric("Mine", source="a book")
def mine(histogram):
    move("metric")
    return get_metric("AP").scores(histogram)
"""
)


@pytest.fixture
def movers(plugin, tmp_path, monkeypatch):
    """Install plug-ins of each kind that print and go to a folder, which is returned."""
    away = tmp_path / "away"
    away.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(away))
    fit = 'def _fit(self, X, y):\n        move("fit")\n\n    def refusal(self, dataset):\n        move("refusal")'
    method = METHOD.format(what="moves", override=fit).replace("import sys\n", MOVING, 1)
    plugin("mine", method.replace("return X[", 'move("project")\n        return X['))
    plugin("minedata", ADAPTER, "datasets")
    plugin("minemetric", MEASURE, "metrics", "mine")
    return away


def test_plugins_that_print_and_leave_the_folder_change_no_output(hashbench, movers, empty_folder, monkeypatch):
    monkeypatch.setenv("HASHBENCH_DATA", "data")
    options = ["--bits", 2, "--metric", "Mine", "--dataset", "minedata", "--results", "results"]
    done = hashbench("run", "--method", "mine", *options, "--format", "csv")
    assert done.exit_code == 0
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["dataset", "minedata"]
    assert {"imported", "module", "construction", "prepare", "refusal", "fit", "project", "metric"} <= {
        *done.stderr.splitlines()
    }
    (row,) = rows_in(empty_folder / "results" / "minedata")
    assert row["metric"] == "Mine"
    assert {path.name for path in empty_folder.iterdir()} == {"data", "results"}
    assert [*(empty_folder / "data").glob("codes/*/mine*.h5")]
    assert not [*movers.iterdir()]


@pytest.mark.usefixtures("digits_data")
def test_what_a_plugin_prints_in_a_worker_goes_to_standard_error(capsys, plugin, monkeypatch):
    plugin("mine", METHOD.format(what="prints", override='def _fit(self, X, y):\n        print("fit")'))
    (job,) = grid(["digits"], ["mine"], [2], [0], {})
    settings = str(data_dir()), 1, 0.0
    fingerprint = find_dataset("digits").fingerprint
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    own = copy_context()  # a worker sets its folder and more
    _, outcome = own.run(runner._run_job, 0, job, fingerprint, Demands(("AP",)), settings)
    out, err = capsys.readouterr()
    assert (outcome.refusal, out, err) == ("", "", "fit\n")


FAILS = "cannot be imported: "
BROKEN = {
    "exits": ("import sys\nsys.exit(0)\n", "Mine", f"{FAILS}SystemExit: 0"),
    "is not there": ("", "Mine", f"{FAILS}AttributeError: module 'mine' has no attribute 'Mine'"),
    "has no syntax": ("class Mine(:\n", "Mine", f"{FAILS}SyntaxError: invalid syntax"),
    "lacks a package": ("import no_such_package\n", "Mine", f"{FAILS}ModuleNotFoundError: No module named 'no_such_"),
    "is no class": ("Mine = 5\n", "Mine", "is 5, expected a subclass of "),
    "is another class": ("class Mine:\n    pass\n", "Mine", "is <class 'mine.Mine'>, expected a subclass of "),
    # as Python or importlib_metadata says it
    "is no name": ("", "Mine Own", (f"{FAILS}AttributeError: ", f"{FAILS}ValueError: ")),
}


@pytest.mark.parametrize(("source", "attribute", "reason"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("kind", ["methods", "datasets"])
def test_broken_entry_point_is_listed_and_refused_with_its_reason(
    hashbench, plugin, tmp_path, kind, source, attribute, reason
):
    plugin("mine", source, kind, attribute)
    result = hashbench("list", kind)
    assert result.exit_code == 0
    assert {"lsh", "digits"} & {line.split()[0] for line in result.stdout.splitlines()}
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("mine ")]
    assert line.partition(f"({kind[:-1]} plugin 'mine' ")[2].startswith(reason)
    grid = {"methods": ["--method", "mine"], "datasets": ["--method", "lsh", "--dataset", "mine"]}[kind]
    result = hashbench("run", *grid, "--bits", 8, "--results", tmp_path / "results")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.partition(f"Error: {kind[:-1]} plugin 'mine' ")[2].startswith(reason)
    assert not (tmp_path / "results").exists()


def test_a_plugin_is_listed_and_described_beside_built_in_methods(hashbench, plugin):
    plugin("mine", METHOD.format(what="keeps pixels", override=""))
    listed = [line.split() for line in hashbench("list", "methods").stdout.splitlines()]
    assert [line[0] for line in listed] == sorted([*built_in_methods(), "mine"])
    assert ["mine", "A", "method", "that", "keeps", "pixels."] in listed
    assert "n_bits=32  Code length." in hashbench("info", "mine").stdout


@pytest.mark.usefixtures("digits_data")
def test_results_of_a_plugin_that_broke_are_still_shown(hashbench, plugin, tmp_path):
    results = tmp_path / "results"
    assert hashbench("run", "--method", "lsh", "--bits", 16, "--metric", "AP", "--results", results).exit_code == 0
    path = results / "digits" / "lsh.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[1].replace(",lsh,", ",mine,") + "\n")
    plugin("mine", "import sys\nsys.exit(0)\n")
    assert hashbench("tables", "table1", "--results", results).exit_code == 0


def test_a_log_has_a_valid_file_name_whatever_the_job_is_called(data):
    with pytest.raises(JobFailure, match="failed with ValueError: no") as caught, contained("x", "../é\0/" + 300 * "a"):
        raise ValueError("no")
    failure = pickle.loads(pickle.dumps(caught.value))  # as workers send it
    (path,) = (data / "logs").glob("*.log")
    assert path.name == 100 * "a" + ".log"
    assert str(failure) == f"x failed with ValueError: no. Fix it; its traceback is in {path}."


def test_a_failure_is_reported_even_if_its_log_cannot_be_written(data):
    (data / "logs").write_text("no folder")
    with pytest.raises(JobFailure, match="its traceback is in no file: cannot write"), contained("x", "job"):
        raise ValueError("no")


class Stop(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise ValueError("nothing to say")


@pytest.mark.parametrize(("error", "words"), [(Stop("now"), "Stop: now."), (Mute(), "Mute: no message.")])
def test_an_exception_of_any_class_is_the_failure_of_its_job(error, words):
    with pytest.raises(JobFailure, match=f"^x failed with {words}"), contained("x", "job"):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), HashbenchError("plain")])
def test_interrupts_and_errors_of_hashbench_pass_unchanged(error):
    with pytest.raises(type(error)) as caught, contained("x", "job"):
        raise error
    assert caught.value is error


@pytest.mark.usefixtures("digits_data")
def test_any_exception_of_scoring_fails_only_its_job(hashbench, tmp_path, monkeypatch):
    real = steps.scores_of

    def scores(dataset, codes, *args):
        if codes.n_bits == 8:
            raise MemoryError
        return real(dataset, codes, *args)

    monkeypatch.setattr(one_job, "scores_of", scores)
    options = ["--bits", 8, "--bits", 12, "--metric", "AP", "--results", tmp_path / "results"]
    result = hashbench("run", "--method", "lsh", *options)
    first, second, last = result.stderr.splitlines()
    assert first.startswith("[1/2] digits lsh 8 bits seed 0: failed. scoring failed with MemoryError: no message")
    assert second == "[2/2] digits lsh 12 bits seed 0: encoded codes, computed scores"
    assert (result.exit_code, last) == (1, "Error: 1 of the 2 jobs failed; the reasons are above.")
    (row,) = rows_in(tmp_path / "results" / "digits")
    assert (row["method"], row["n_bits"]) == ("lsh", "12")
