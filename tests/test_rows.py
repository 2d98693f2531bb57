"""The committed rows: each is a job of a grid, has its shuffle deviation, and is of its method's version here."""

import json

import pytest

from hashbench.pipeline.study import read_study
from tests.helpers.paths import ROOT
from tests.helpers.result_files import jobs_in, rows_in

RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def rows():
    folders = {path.parent for path in RESULTS.glob("*/*.json")}
    return [row for folder in sorted(folders) for row in rows_in(folder)]


@pytest.fixture(scope="module")
def planned():
    """The greatest number of tried settings that grids give, by job."""
    trials = {}
    for path in (ROOT / "benchmarks/rows").glob("*.toml"):
        for job in read_study(path).jobs():
            key = job.dataset.partition(":")[0], job.method, job.n_bits, job.seed, settings_of(job)
            trials[key] = max(job.n_trials, trials.get(key, 0))
    return trials


def test_every_row_is_a_job_of_a_grid(rows, planned):
    for row in rows:
        job = row["dataset"], row["method"], int(row["n_bits"]), int(row["seed"]), of_row(row["params"])
        assert job in planned


def test_every_job_says_how_many_settings_its_grid_gives(planned):
    for path in RESULTS.glob("*/*.json"):
        settings = json.loads(path.read_text())["settings"]
        for job in jobs_in(path):
            params = json.dumps(settings[job["settings"]], sort_keys=True)
            key = job["dataset"], job["method"], job["n_bits"], job["seed"], of_row(params)
            assert job["trials"] == planned.get(key, 0), key


def settings_of(job):
    """Return a job's parameters as JSON; None for squeezenet, which needs its file of weights to name them."""
    is_named = getattr(job.estimator, "backbone", None) != "squeezenet"
    return json.dumps(job.estimator.recorded_params(), sort_keys=True) if is_named else None


def of_row(params):
    """Return the parameters (JSON) of a row as `settings_of` does those of its job."""
    return None if '"backbone": "squeezenet"' in params else params


def test_every_row_has_its_shuffle_deviation(rows):
    without = {(row["dataset"], row["method"]) for row in rows if row["tie_sd"] == ""}
    assert without == set()


def test_results_check_accepts_the_committed_rows(hashbench):
    done = hashbench("results", "check", RESULTS)
    assert done.exit_code == 0, done.stderr
