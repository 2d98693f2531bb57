"""Jobs side by side: the same rows as one after the other, whatever becomes of the processes."""

import os
import signal
import subprocess
import sys

import pytest

from hashbench.errors import HashbenchError
from hashbench.methods.lsh import LSH
from hashbench.pipeline import workers
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import grid
from hashbench.pipeline.runner import Demands, run
from hashbench.pipeline.workers import run_side_by_side
from hashbench.store import hdf5

pytestmark = pytest.mark.slow


class Deadly(LSH):
    """A method that takes its process along."""

    def fit(self, X, y=None):
        os.kill(os.getpid(), signal.SIGKILL)
        return self


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path))
    return tmp_path


def lines(outcomes, jobs):
    """Rows as they are written, in the order of the jobs."""
    found = {id(outcome.job): outcome.rows for outcome in outcomes}
    return [found[id(job)] for job in jobs]


def test_jobs_side_by_side_make_the_rows_of_one_after_the_other(data, monkeypatch, tmp_path_factory):
    jobs = grid(["digits", "digits-unlabelled"], ["lsh", "pcah"], [4], [0, 1], {})
    found = lines(run_side_by_side(jobs, ["AP", "P@100"], 2, Demands()), jobs)
    again = [*run_side_by_side(jobs, ["AP", "P@100"], 2, Demands())]
    assert {note for outcome in again for note in outcome.notes} == {"reused dataset", "reused codes", "reused scores"}
    assert lines(again, jobs) == found
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path_factory.mktemp("serial")))
    assert lines(run(jobs, ["AP", "P@100"]), jobs) == found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_process_that_dies_fails_its_own_job_alone(data):
    jobs = grid(["digits"], ["lsh"], [4, 6, 8], [0], {})
    jobs[1].__dict__["estimator"] = Deadly(n_bits=6)
    outcomes = {outcome.job.n_bits: outcome for outcome in run_side_by_side(jobs, ["AP"], 2, Demands())}
    assert sorted(outcomes) == [4, 6, 8]
    assert outcomes[6].has_failed
    assert "lsh 6 bits seed 0 ended without a word: its process was killed" in outcomes[6].refusal
    assert all(outcomes[n_bits].rows for n_bits in (4, 8))


KILLED_TRACKER = """
import os, signal, sys
from joblib.externals.loky.backend.resource_tracker import _resource_tracker
from hashbench.pipeline.grid import grid
from hashbench.pipeline.runner import Demands
from hashbench.pipeline.workers import run_side_by_side

outcomes = run_side_by_side(grid(["digits"], ["lsh"], [4, 5, 6, 7], [0], {}), ["AP"], 2, Demands())
done = [next(outcomes)]
os.kill(_resource_tracker._pid, signal.SIGKILL)
print(len([*done, *outcomes]))
print("still here", file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_tracker_of_joblib_leaves_no_tracebacks(data):
    done = subprocess.run([sys.executable, "-c", KILLED_TRACKER], capture_output=True, text=True, check=True)
    assert done.stdout == "4\n"
    assert "still here" in done.stderr
    assert "Traceback" not in done.stderr


def in_this_process(jobs, n_jobs, how):
    """Stand in for processes, whose start takes seconds."""
    for number, (job, _) in jobs.items():
        yield number, next(run([job], how[0], how[1]))


def test_what_cannot_be_prepared_fails_its_own_jobs(data, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_surviving", in_this_process)
    (tmp_path / "damaged.h5").write_bytes(b"no HDF5")
    jobs = grid([str(tmp_path / "damaged.h5"), "digits"], ["lsh"], [4, 8], [0], {})
    outcomes = [*run_side_by_side(jobs, ["AP"], 2, Demands())]
    told = {outcome.refusal for outcome in outcomes if outcome.job in jobs[:2]}
    assert told == {outcome.refusal for outcome in run(jobs[:2], ["AP"])}
    assert all(outcome.rows for outcome in outcomes if outcome.job in jobs[2:])


def test_the_longest_go_first_and_those_never_done_before_them(data):
    jobs = grid(["digits"], ["lsh"], [4, 6, 8], [0], {})
    for job, seconds in ((jobs[0], 9.0), (jobs[1], 5.0)):
        ((outcome,),) = [[*run([job], [])]]
        with hdf5.open_codes(outcome.codes) as codes:
            content = {"query": codes.query, "database": codes.database[:], "made": codes.made}
        hdf5.write_codes(hdf5.Codes(**content, fit_seconds=seconds, encode_seconds=0.0), outcome.codes)
    order = [job.n_bits for job, _ in workers._prepared(jobs, lambda *told: None)]
    assert order == [8, 4, 6]


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_a_number_of_jobs_that_is_none_is_refused(n_jobs):
    jobs = grid(["digits"], ["lsh"], [4, 8], [0], {})
    with pytest.raises(HashbenchError, match=rf"n_jobs is {n_jobs}, expected 1 or more, or -1 for one per processor"):
        next(run_side_by_side(jobs, ["AP"], n_jobs, Demands()))


def test_a_cluster_without_dask_or_with_an_address_that_is_none_is_one_sentence(data, monkeypatch):
    jobs = grid(["digits"], ["lsh"], [4], [0], {})
    with pytest.raises(
        HashbenchError, match=r"--workers is 'nonsense', expected the address of a scheduler, such as tcp"
    ):
        next(run_side_by_side(jobs, ["AP"], 1, Demands(), cluster=Cluster("nonsense")))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HashbenchError, match=r"--workers needs Dask, .* pip install 'hashbench\[cluster\]'"):
        next(run_side_by_side(jobs, ["AP"], 1, Demands(), cluster=Cluster("tcp://127.0.0.1:1")))
