"""Jobs and shards on the workers of a Dask cluster: its scheduler places them, and those of a lost worker once more.

What travels are jobs, places of files, codes of queries, and counts; datasets and shards are opened where they are
needed.
"""

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, Progress, Rows, silent
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError, one_line
from hashbench.pipeline.grid import Job
from hashbench.pipeline.runner import Demands, Outcome, finish, load_once
from hashbench.scoring.counting import SliceableCodes
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.shards import Relevance, count_shard
from hashbench.store.files import data_dir, lock_timeout
from hashbench.store.provenance import SCORER, Provenance, code_that_decides, versions

if TYPE_CHECKING:
    from distributed import Client, Future

_FOLDER = os.environ.get("HASHBENCH_DATA")  # a worker's own, before it takes a client's
_ANSWER_SECONDS = 10
TASK_ROWS = 1 << 22  # of a database at most, for one worker at a time
_ADDED = 8  # histograms added in one go
_SCORING = ("numpy", "numba")  # what counts depend on besides our own code


class Unfit(NamedTuple):
    """A worker that would not make the numbers of this machine."""

    worker: str
    why: str


@contextmanager
def connected(address: str) -> "Iterator[Client]":
    """Connect with a scheduler, by its address or the file it wrote; a lost one is an error in a sentence."""
    try:
        from distributed import Client
        from distributed.client import FutureCancelledError
        from distributed.comm import get_address_host_port
        from distributed.versions import VersionMismatchWarning
    except ImportError as error:
        raise HashbenchError(
            "--workers needs Dask, which is not installed: pip install 'hashbench[cluster]'."
        ) from error
    is_file = Path(address).is_file()
    try:
        is_file or get_address_host_port(address, strict=True)
    except ValueError as error:
        raise HashbenchError(
            f"--workers is {address!r}, expected the address of a scheduler, such as tcp://127.0.0.1:8786, or the file "
            "that it wrote."
        ) from error
    with _silent("distributed"):  # it would tell in many lines what follows in one
        try:
            where = {"scheduler_file": address} if is_file else {"address": address}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", VersionMismatchWarning)  # of versions that matter each task tells
                client = Client(**where, timeout=_ANSWER_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise HashbenchError(
                f"no scheduler of Dask answers at {address}: {one_line(error).rstrip('.')}. Start one with `dask "
                "scheduler`, and its workers with `dask worker tcp://HOST:8786 --nthreads 1`."
            ) from error
        try:
            yield client
        except (FutureCancelledError, OSError, TimeoutError) as error:
            if client.status == "running" and not isinstance(error, FutureCancelledError):
                raise  # a worker's own
            raise HashbenchError(
                f"the scheduler at {address} is lost. What is finished is kept; start it again, and the same command "
                "goes on from there."
            ) from error
        finally:
            with suppress(Exception):  # it may be gone
                client.close(timeout=5)


def _tell_of_none(client: "Client", address: str, on_progress: Progress) -> None:
    if not client.scheduler_info()["workers"]:
        on_progress(f"waiting for workers; `dask worker {address} --nthreads 1` starts one", 0, 0)


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Let a library's loggers say nothing, of which several have levels of their own."""
    logs = [logging.getLogger(one) for one in [name, *logging.root.manager.loggerDict] if one.startswith(name)]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


# ---------------------------------------------------------------- jobs


def on_workers(
    jobs: Mapping[int, tuple[Job, Provenance]],
    address: str,
    how: tuple[Sequence[str], Demands],
    on_progress: Progress = silent,
) -> Iterator[tuple[int, Outcome]]:
    """Do jobs, each with what its codes are to be made of, on workers that would make the same of them.

    One that a worker returns goes to the others; one whose worker is lost is done again, until Dask gives it up.
    """
    with connected(address) as client:
        from distributed import as_completed

        _tell_of_none(client, address, on_progress)
        numbers: dict[Future, int] = {}
        unfit: dict[int, set[str]] = {}  # workers, by job
        killed: set[int] = set()
        told: set[str] = set()

        def submit(number: int, workers: list[str] | None = None) -> "Future":
            job, made = jobs[number]
            settings = str(data_dir().absolute()), lock_timeout.get()
            task = _anywhere(job), (made, code_that_decides(*SCORER)), how, settings
            place = {"workers": workers, "allow_other_workers": True} if workers else {}  # which may be gone by then
            priority = -number - len(jobs) * (number in killed)  # what workers died of goes after the others
            future: Future = client.submit(_do, *task, pure=False, priority=priority, **place)
            numbers[future] = number
            return future

        running = as_completed([submit(number) for number in jobs], loop=client.loop)
        try:
            for future in running:
                number = numbers.pop(future)
                job, _ = jobs[number]
                found = _result(future, job)
                if found is None:
                    if number not in killed:  # or another job of its worker was the one
                        killed.add(number)
                        running.add(submit(number))
                        continue
                    why = "ended without a word: its workers were killed, likely for want of memory. Give them more."
                    found = _failed(job, why)
                if isinstance(found, Unfit):
                    unfit.setdefault(number, set()).add(found.worker)
                    others = [one for one in client.scheduler_info()["workers"] if one not in unfit[number]]
                    notice = f"leaving out worker {found.worker}: it {found.why.rstrip('.')}"
                    if notice not in told:
                        told.add(notice)
                        on_progress(notice, 0, 0)
                    if others:
                        running.add(submit(number, others))
                        continue
                    found = _failed(job, f"has no worker to go to: {found.worker} {found.why}")
                yield number, found
        finally:
            client.cancel(list(numbers))


def _result(future: "Future", job: Job) -> Outcome | Unfit | None:
    """Give what came of a job, None if workers were killed; whatever else went wrong there is its failure."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        found: Outcome | Unfit = future.result()
    except KilledWorker:
        return None
    except FutureCancelledError:  # the scheduler is lost
        raise
    except Exception as error:
        why = f"failed there with {type(error).__name__}: {one_line(error).rstrip('.')}. Install there what is here."
        return _failed(job, why)
    return found


def _failed(job: Job, why: str) -> Outcome:
    return Outcome(job, None, f"{job} {why}", has_failed=True)


def _anywhere(job: Job) -> Job:
    """Give the job for another folder to run in."""
    path = Path(job.dataset)
    return replace(job, dataset=str(path.absolute())) if path.is_file() else job


def _do(
    job: Job,
    expected: tuple[Provenance, str],
    how: tuple[Sequence[str], Demands],
    settings: tuple[str, float],
) -> Outcome | Unfit:
    """Do a job in a worker, in its own data folder or else the client's, if the same comes of it as at the client."""
    made, (folder, seconds) = expected[0], settings
    if _FOLDER is None:
        os.environ.pop("HASHBENCH_DATA", None)
        if Path(folder).is_dir():
            os.environ["HASHBENCH_DATA"] = folder
    lock_timeout.set(seconds)
    worker = _prepare_worker()
    if isinstance(worker, Unfit):
        return worker
    try:
        dataset = load_once(job.dataset, made.dataset_fingerprint)
        here = job.provenance(dataset)
    except HashbenchError as error:
        return Unfit(worker, f"cannot take it: {error}")
    if (here, code_that_decides(*SCORER)) != expected:
        return Unfit(worker, _difference(here, made))
    return finish(job, dataset, *how)


def _difference(here: Provenance, there: Provenance) -> str:
    """Say in what a worker differs from the client."""
    if here.dataset_fingerprint != there.dataset_fingerprint:
        return (
            f"has another {here.dataset}, {here.dataset_fingerprint} and not {there.dataset_fingerprint}. Share the "
            "data folder, or prepare it there from the same files."
        )
    return _of_versions(json.loads(here.libraries), json.loads(there.libraries))


def _of_versions(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    found = [
        f"{name} {here.get(name)} and not {version}" for name, version in there.items() if here.get(name) != version
    ]
    return f"has {', '.join(found) or 'other code of hashbench'}. Install there what is installed here."


def _prepare_worker() -> str | Unfit:
    """Give the address of this worker, once it keeps to as many threads as BLAS has in it, unless it is unfit."""
    from distributed import get_worker

    worker = get_worker()
    if worker.state.nthreads > 1:
        why = f"does {worker.state.nthreads} tasks at a time in one process, expected one. Start it with --nthreads 1."
        return Unfit(worker.address, why)
    if threads := os.environ.get("OMP_NUM_THREADS"):
        os.environ.setdefault("LOKY_MAX_CPU_COUNT", threads)
    return str(worker.address)


# ---------------------------------------------------------------- shards


def count_on_workers(
    query: ByteArray,
    database: SliceableCodes,
    n_bits: int,
    relevance: Relevance,
    rows: slice,
    queries: Rows = slice(None),
    *,
    address: str,
    on_progress: Progress = silent,
) -> TieHistogram:
    """Count as `hashbench.scoring.shards.count_shard` does, some rows a worker, and add up in a tree.

    Every row is read by one worker. Of an affinity in memory each worker gets its rows alone.
    """
    with connected(address) as client:
        from distributed import KilledWorker, as_completed

        _tell_of_none(client, address, on_progress)
        n_rows = rows.stop - rows.start
        n_workers = max(1, len(client.scheduler_info()["workers"]))
        parts = chunks(rows.start, rows.stop, min(TASK_ROWS, max(1, -(-n_rows // (4 * n_workers)))))
        expected = code_that_decides(*SCORER), versions(_SCORING)
        futures = []
        for part in parts:
            mine = (
                _Window(relevance.part(slice(None), part), part.start) if isinstance(relevance, Affinity) else relevance
            )
            futures.append(client.submit(_count, expected, query, database, n_bits, mine, part, queries, pure=False))
        waiting = as_completed(list(futures), loop=client.loop)
        while len(futures) > 1:
            groups = chunks(0, len(futures), _ADDED)
            futures = [client.submit(_added, *futures[group], pure=False) for group in groups]
        try:
            for n_done, future in enumerate(waiting, start=1):
                future.result()
                on_progress("parts of the database counted", n_done, len(parts))
            total: TieHistogram = futures[0].result()
        except KilledWorker as error:
            raise HashbenchError(
                "workers that counted were killed, most likely for want of memory. Give them more, or fewer queries."
            ) from error
        return total


def _count(expected: tuple[str, str], *what: Any) -> TieHistogram:
    """Count rows in a worker, if it counts as the client would."""
    worker = _prepare_worker()
    if isinstance(worker, Unfit):
        raise HashbenchError(f"worker {worker.worker} {worker.why}")
    here = code_that_decides(*SCORER), versions(_SCORING)
    if here != expected:
        raise HashbenchError(f"worker {worker} {_of_versions(json.loads(here[1]), json.loads(expected[1]))}")
    try:
        return count_shard(*what)
    except HashbenchError as error:
        raise HashbenchError(f"worker {worker}: {error}") from error


def _added(*histograms: TieHistogram) -> TieHistogram:
    return reduce(add, histograms)


@dataclass(frozen=True)
class _Window:
    """An affinity of rows that follow each other, which go by their numbers in the whole."""

    affinity: Affinity
    first: int

    def part(self, query: Rows, database: slice) -> Affinity:
        return self.affinity.part(query, slice(database.start - self.first, database.stop - self.first))
