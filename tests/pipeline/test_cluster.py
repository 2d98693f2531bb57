"""Jobs and shards on a cluster: the same bytes as in one process, even if workers or the scheduler are lost."""

import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import dask
import numpy as np
import psutil
import pytest
from helpers.affinity_examples import N_BITS, RULES, database, query
from helpers.clusters import (
    Fragile,
    as_environment,
    certificate,
    cluster,
    end,
    hide_hashbench,
    hostile_scheduler,
    pretend_other_numpy,
    worker,
)
from helpers.jobs import Deadly, Waiting, rows_of_jobs
from helpers.score_assertions import assert_same_scores
from helpers.waiting import PATIENCE, wait_for

from hashbench import evaluate
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import Cluster, RankingOnWorkers, connected, is_of_this_machine, own_addresses
from hashbench.pipeline.grid import grid
from hashbench.pipeline.runner import run, run_all
from hashbench.pipeline.steps import Demands
from hashbench.scoring.problem import Problem, curve_metrics

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")]
METRICS = ["AP", "P@100"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("data")
        patch.setenv("HASHBENCH_DATA", str(folder))
        yield folder


@pytest.fixture(scope="module")
def address(data, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch, cluster(tmp_path_factory.mktemp("cluster")) as (address, _):
        patch.setattr("hashbench.pipeline.cluster._ANSWER_SECONDS", PATIENCE)
        yield address


def on(address, jobs, metrics=METRICS, **options):
    return run_all(jobs, Demands(metrics), cluster=Cluster(address), **options)


def serial(jobs, folder, monkeypatch):
    """Return the rows of one job after the other, in their own data folder."""
    monkeypatch.setenv("HASHBENCH_DATA", str(folder))
    return rows_of_jobs(run(jobs, Demands(METRICS)), jobs)


def counting_on(address, rule, codes=None, **options):
    """Return codes whose histograms the workers of a cluster count."""
    codes = pack(database) if codes is None else codes
    ranking = RankingOnWorkers(pack(query), codes, N_BITS, RULES[rule], cluster=Cluster(address), **options)
    return Problem.of_ranking(ranking)


def test_jobs_give_the_rows_of_one_after_the_other(address, data, monkeypatch, tmp_path):
    jobs = grid(["digits", "digits-unlabelled"], ["lsh", "pcah"], [4, 8], [0, 1], {})
    rows = rows_of_jobs(on(address, jobs), jobs)
    notes = {note for outcome in on(address, jobs) for note in outcome.notes}
    assert notes == {"reused dataset", "reused codes", "reused scores"}
    assert serial(jobs, tmp_path, monkeypatch) == rows


def test_a_job_whose_worker_is_killed_is_repeated(address, data, monkeypatch, tmp_path):
    jobs = grid(["digits"], ["lsh"], [5, 6, 7], [3], {})
    jobs[1].__dict__["estimator"] = Waiting(n_bits=6, random_state=3)
    path = data / "waits"

    def kill():
        wait_for(lambda: path.exists() and path.read_text())
        os.kill(int(path.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    rows = rows_of_jobs(on(address, jobs), jobs)
    killer.join()
    plain = grid(["digits"], ["lsh"], [5, 6, 7], [3], {})
    assert serial(plain, tmp_path, monkeypatch) == rows


def test_only_the_job_that_kills_workers_fails(address):
    jobs = grid(["digits"], ["lsh"], [9, 10, 11], [0], {})
    jobs[1].__dict__["estimator"] = Deadly(n_bits=10)
    outcomes = {outcome.job.n_bits: outcome for outcome in on(address, jobs)}
    assert outcomes[10].has_failed
    assert "lsh 10 bits seed 0 ended without an error: its workers were killed" in outcomes[10].refusal
    assert all(outcomes[n_bits].rows for n_bits in (9, 11))


def test_two_clients_at_once_give_the_rows_of_one(address, monkeypatch, tmp_path):
    jobs = grid(["digits"], ["lsh", "pcah"], [12, 13, 14], [0, 1], {})
    with ThreadPoolExecutor(2) as clients:
        first, second = clients.map(lambda _: rows_of_jobs(on(address, jobs), jobs), range(2))
    assert first == second == serial(jobs, tmp_path, monkeypatch)


def test_many_small_jobs_take_no_more_memory(address):
    def memory():
        with connected(Cluster(address)) as client:
            pids = client.run(os.getpid).values()
        return sum(psutil.Process(pid).memory_info().rss for pid in [os.getpid(), *pids])

    growth = []
    for start in range(100, 500, 100):
        before = memory()
        jobs = grid(["digits"], ["lsh"], [4], range(start, start + 100), {})
        assert all(outcome.rows for outcome in on(address, jobs, ["AP"]))
        growth.append(memory() - before)
    assert min(growth) < 20e6  # once, compiled loops are loaded


@pytest.mark.parametrize("rule", RULES)
def test_counts_of_shards_are_those_of_one_process(address, rule):
    metrics = [*METRICS, "NDCG", *curve_metrics(N_BITS, len(database))]
    actual = counting_on(address, rule).evaluate(metrics)
    assert_same_scores(actual, evaluate(query, database, RULES[rule], metrics))


def test_a_worker_that_is_killed_while_it_counts_loses_nothing(address, tmp_path):
    fragile = Fragile(pack(database), tmp_path / "read")
    actual = counting_on(address, "hierarchy", fragile).evaluate(METRICS)
    assert_same_scores(actual, evaluate(query, database, RULES["hierarchy"], METRICS))
    assert fragile.marker.exists()


def test_workers_that_would_give_other_numbers_are_refused_by_name(hashbench, data, tmp_path):
    pretend_other_numpy(tmp_path)
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).random((60, 8), dtype=np.float32))
    assert hashbench("prepare", "--name", "mine", "--from", tmp_path / "mine.npy").exit_code == 0
    with cluster(tmp_path, 1, HASHBENCH_DATA=str(tmp_path / "data")) as (address, _):
        outcomes = [*on(address, grid(["mine", "digits"], ["lsh"], [4], [7], {}), ["AP"])]
        of_mine, of_digits = (outcome.refusal for outcome in outcomes)
        assert f"has no suitable worker: {address.rpartition(':')[0]}:" in of_mine
        assert "cannot take it" in of_mine
        assert f"has numpy 1.0 instead of {np.__version__}" in of_digits
        with pytest.raises(HashbenchError, match=r"worker tcp://\S+ has numpy 1\.0 instead of"):
            counting_on(address, "csr").evaluate(["AP"])


def test_jobs_go_from_an_unfit_worker_to_fit_ones(data, tmp_path):
    (tmp_path / "other").mkdir()
    pretend_other_numpy(tmp_path / "other")
    messages = []

    def report(what, n_done, n):
        messages.append(what)

    jobs = grid(["digits"], ["lsh"], [4, 5, 6, 7], [9], {})
    with cluster(tmp_path, 1) as (address, _), worker(address, tmp_path / "other"):
        with connected(Cluster(address)) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
        assert all(outcome.rows for outcome in on(address, jobs, ["AP"], on_progress=report))
        (left_out,) = [message for message in messages if "leaving out worker" in message]
        assert f"has numpy 1.0 instead of {np.__version__}" in left_out
        messages.clear()
        actual = counting_on(address, "csr", on_progress=report).evaluate(METRICS)
        assert_same_scores(actual, evaluate(query, database, RULES["csr"], METRICS))
        assert [message for message in messages if "leaving out worker" in message] == [left_out]


def test_if_the_only_worker_lacks_hashbench_this_is_reported(data, tmp_path):
    (tmp_path / "other").mkdir()
    hide_hashbench(tmp_path / "other")
    messages = []

    def report(what, n_done, n):
        messages.append(what)
        if "waiting for workers, there are none" in what:
            raise KeyboardInterrupt

    with cluster(tmp_path, 0) as (address, _), worker(address, tmp_path / "other"):
        with connected(Cluster(address)) as client:
            client.wait_for_workers(1, timeout=PATIENCE)
        jobs = grid(["digits"], ["lsh"], [4], [10], {})
        with pytest.raises(KeyboardInterrupt):
            list(on(address, jobs, ["AP"], on_progress=report))
    assert f"`dask worker {address} --nthreads 1`" in messages[-1]


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("10.0.0.1", True),  # of an own interface
        ("::ffff:10.0.0.1", True),
        ("10.0.0.2", False),
        ("0.0.0.0", False),
        ("0", False),
        ("2130706433", False),  # 127.0.0.1 to some
        ("127.0.0.1.nip.io", False),
        ("localhost.example.org", False),
        ("fe80::1", False),
        ("", False),
    ],
)
def test_a_host_is_this_machine_or_another(host, is_own):
    assert is_of_this_machine(host, {"10.0.0.1"}) == is_own


def test_the_addresses_of_this_machine_are_found():
    assert "127.0.0.1" in own_addresses()


def refuse_all(monkeypatch):
    monkeypatch.setattr("hashbench.pipeline.cluster.is_of_this_machine", lambda host, own: False)


def test_a_hostile_scheduler_runs_code_here_only_if_it_is_trusted(tmp_path, monkeypatch):
    unpickled = tmp_path / "unpickled"
    with hostile_scheduler(unpickled) as address:
        refuse_all(monkeypatch)
        (tmp_path / "scheduler.json").write_text(json.dumps({"address": address}))
        with (
            pytest.raises(HashbenchError, match=rf"{address} is another machine, .* Use tls:// .* or --trust-workers"),
            connected(Cluster(str(tmp_path / "scheduler.json"))),
        ):
            pass
        assert not unpickled.exists()
        with suppress(Exception), connected(Cluster(address, is_trusted=True)):
            pass
        assert unpickled.exists()


def test_nothing_is_sent_to_another_machine(monkeypatch):
    import distributed

    monkeypatch.setattr(distributed, "Client", None)
    for address in ("tcp://10.255.255.1:8786", "ws://scheduler.invalid:8786", "tcp://[2001:db8::1]:8786"):
        with pytest.raises(HashbenchError, match="is another machine"), connected(Cluster(address)):
            pass


def test_jobs_go_over_tls_only_with_the_own_certificate(data, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    own, other = certificate(tmp_path), certificate(tmp_path / "other")
    refuse_all(monkeypatch)
    jobs = grid(["digits"], ["lsh"], [4], [11], {})
    with dask.config.set(own), cluster(tmp_path, 1, protocol="tls", **as_environment(own)) as (address, _):
        (outcome,) = on(address, jobs)
        assert outcome.rows
        with (
            dask.config.set(other),
            pytest.raises(HashbenchError, match=r"no Dask scheduler answers .*certificate"),
            connected(Cluster(address)),
        ):
            pass
    with (
        dask.config.set(other),
        hostile_scheduler(tmp_path / "unpickled", "tls") as address,
        dask.config.set(own),
        pytest.raises(HashbenchError, match="certificate"),
        connected(Cluster(address)),
    ):
        pass
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize(
    ("scheduler", "words"),
    [
        ("{folder}/other.json", "expected the address of a scheduler, such as tcp://127.0.0.1:8786, or the file"),
        ("tls://127.0.0.1:8786", "needs certificates, and Dask's configuration has none"),
    ],
)
def test_an_invalid_address_of_a_scheduler_is_refused(scheduler, words, tmp_path):
    (tmp_path / "other.json").write_text('{"id": 1}')
    with pytest.raises(HashbenchError, match=words), connected(Cluster(scheduler.format(folder=tmp_path))):
        pass


def test_workers_with_several_threads_are_refused(data, tmp_path):
    with cluster(tmp_path, 1, 2) as (address, _):
        (outcome,) = on(address, grid(["digits"], ["lsh"], [4], [8], {}), ["AP"])
    assert "runs 2 tasks at a time in one process, expected one" in outcome.refusal


def test_a_lost_scheduler_is_reported_in_a_sentence_and_finished_jobs_are_kept(data, tmp_path):
    (data / "waits").unlink(missing_ok=True)
    jobs = grid(["digits"], ["lsh"], [15, 16], [0], {})
    jobs[0].__dict__["estimator"] = Waiting(n_bits=15)  # the shorter one goes last
    with cluster(tmp_path, 1) as (address, group):
        outcomes = on(address, jobs)
        first = next(outcomes)
        end(group)
        with pytest.raises(HashbenchError, match=rf"the scheduler at {address} is lost. Finished jobs are kept"):
            next(outcomes)
    assert first.rows
    (outcome,) = run([jobs[1]], Demands(METRICS))
    assert "reused scores" in outcome.notes
