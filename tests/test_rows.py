"""The committed rows: they are those of all jobs of the grids, have shuffle deviations, and are of today's versions."""

import json
from itertools import product

import pytest

from hashbench.pipeline.study import read_study
from hashbench.registry import get_method
from hashbench.scoring.evaluation import DEFAULT_METRICS
from tests.helpers.paths import ROOT
from tests.helpers.result_files import jobs_in, rows_in

RESULTS = ROOT / "results"
UNLABELLED = ("digits-unlabelled", "cifar10-gist-unlabelled", "wordnet-minilm")
LONGEST = {  # codes that the rank of the features allows, of agh its 300 anchors
    **dict.fromkeys(product(("digits", "digits-unlabelled"), ("isohash", "itq", "pca-rr", "pcah")), 61),
    ("wordnet-minilm", "itq"): 381,
    ("wordnet-minilm", "pca-rr"): 381,
    ("wordnet-minilm", "sign"): 384,
    ("wordnet-minilm", "agh"): 600,
}


@pytest.fixture(scope="module")
def rows():
    folders = {path.parent for path in RESULTS.glob("*/*.json")}
    return [row for folder in sorted(folders) for row in rows_in(folder)]


@pytest.fixture(scope="module")
def planned():
    """The greatest number of tried settings that grids give, and their metrics, by job."""
    jobs = {}
    for path in (ROOT / "benchmarks/rows").glob("*.toml"):
        study = read_study(path)
        for job in study.jobs():
            key = job.dataset.partition(":")[0], job.method, job.n_bits, job.seed, settings_of(job)
            n_trials, metrics = jobs.get(key, (0, frozenset()))
            jobs[key] = max(job.n_trials, n_trials), metrics.union(study.metrics or DEFAULT_METRICS)
    return jobs


def test_rows_are_those_of_all_jobs_of_grids_that_can_run(rows, planned):
    made = {
        (row["dataset"], row["method"], int(row["n_bits"]), int(row["seed"]), of_row(row["params"]), row["metric"])
        for row in rows
    }
    assert made == {(*job, metric) for job, (_, metrics) in planned.items() if can_run(*job) for metric in metrics}


def can_run(dataset, method, n_bits, seed, settings):
    estimator = get_method(method)()
    reads_labels = estimator.supervision == "labels" or estimator.input_kind == "labels"
    has_labels = dataset not in UNLABELLED and (dataset != "digits-pairs" or estimator.input_kind != "labels")
    is_free = method == "sign" and '"rotate": true' in settings
    longest = n_bits if is_free else LONGEST.get((dataset, method), n_bits)
    return (has_labels or not reads_labels) and n_bits <= longest


def test_every_job_says_how_many_settings_its_grid_gives(planned):
    for path in RESULTS.glob("*/*.json"):
        settings = json.loads(path.read_text())["settings"]
        for job in jobs_in(path):
            params = json.dumps(settings[job["settings"]], sort_keys=True)
            key = job["dataset"], job["method"], job["n_bits"], job["seed"], of_row(params)
            assert job["trials"] == planned.get(key, (0,))[0], key


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
