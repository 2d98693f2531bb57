"""Jobs side by side: the same rows as one after the other, even if processes are killed."""

import sys

import pytest
from helpers.jobs import Deadly, rows_of_jobs

from hashbench.errors import HashbenchError
from hashbench.pipeline import runner
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import grid
from hashbench.pipeline.runner import run, run_all
from hashbench.pipeline.steps import Demands

pytestmark = pytest.mark.slow


def test_jobs_side_by_side_give_the_rows_of_one_after_the_other(monkeypatch, tmp_path):
    jobs = grid(["digits", "digits-unlabelled"], ["lsh", "pcah"], [4], [0, 1], {})
    rows = rows_of_jobs(run_all(jobs, Demands(["AP", "P@100"]), n_jobs=2), jobs)
    cached = [*run_all(jobs, Demands(["AP", "P@100"]), n_jobs=2)]
    assert {note for outcome in cached for note in outcome.notes} == {"reused dataset", "reused codes", "reused scores"}
    assert rows_of_jobs(cached, jobs) == rows
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path))
    assert rows_of_jobs(run(jobs, Demands(["AP", "P@100"])), jobs) == rows


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_process_that_dies_fails_only_its_own_job():
    jobs = grid(["digits"], ["lsh"], [4, 6, 8], [0], {})
    jobs[1].__dict__["estimator"] = Deadly(n_bits=6)
    outcomes = {outcome.job.n_bits: outcome for outcome in run_all(jobs, Demands(["AP"]), n_jobs=2)}
    assert sorted(outcomes) == [4, 6, 8]
    assert outcomes[6].has_failed
    assert "lsh 6 bits seed 0 ended without an error: its process was killed" in outcomes[6].refusal
    assert all(outcomes[n_bits].rows for n_bits in (4, 8))


def in_this_process(jobs, n_jobs, demands):
    """Stand in for processes, whose start takes seconds."""
    for number, (job, _) in jobs.items():
        yield number, next(run([job], demands))


def test_a_dataset_that_cannot_be_prepared_fails_its_own_jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_surviving", in_this_process)
    (tmp_path / "damaged.h5").write_bytes(b"no HDF5")
    jobs = grid([str(tmp_path / "damaged.h5"), "digits"], ["lsh"], [4, 8], [0], {})
    outcomes = [*run_all(jobs, Demands(["AP"]), n_jobs=2)]
    refusals = {outcome.refusal for outcome in outcomes if outcome.job in jobs[:2]}
    assert refusals == {outcome.refusal for outcome in run(jobs[:2], ["AP"])}
    assert all(outcome.rows for outcome in outcomes if outcome.job in jobs[2:])


def test_a_cluster_without_dask_is_refused(monkeypatch):
    jobs = grid(["digits"], ["lsh"], [4], [0], {})
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HashbenchError, match=r"workers need Dask, .* pip install 'hashbench\[cluster\]'"):
        next(run_all(jobs, Demands(["AP"]), cluster=Cluster("tcp://127.0.0.1:1")))
