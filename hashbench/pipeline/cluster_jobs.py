"""Jobs on the workers of a Dask cluster: its scheduler places them, and those of a lost worker once more.

What travels are jobs and scores; datasets are opened where they are needed.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, one_line
from hashbench.pipeline.cluster import Cluster, Others, Unfit, as_ready, connected, of_versions, placed, prepared_worker
from hashbench.pipeline.grid import Job
from hashbench.pipeline.runner import Demands, Outcome, finish, load_once
from hashbench.store.files import data_dir, lock_timeout
from hashbench.store.provenance import SCORER, Provenance, code_that_decides

if TYPE_CHECKING:
    from distributed import Future

_FOLDER = os.environ.get("HASHBENCH_DATA")  # a worker's own, before it takes a client's


def on_workers(
    jobs: Mapping[int, tuple[Job, Provenance]],
    cluster: Cluster,
    how: tuple[Sequence[str], Demands],
    on_progress: Progress = silent,
) -> Iterator[tuple[int, Outcome]]:
    """Do jobs, each with what its codes are to be made of, on workers that would make the same of them.

    One that a worker returns goes to the others; one whose worker is lost is done again, until Dask gives it up.
    """
    with connected(cluster) as client:
        from distributed import as_completed

        numbers: dict[Future, int] = {}
        others = Others(client, on_progress)
        killed: set[int] = set()

        def submit(number: int, workers: list[str] | None = None) -> "Future":
            job, made = jobs[number]
            settings = str(data_dir().absolute()), lock_timeout.get()
            task = _anywhere(job), (made, code_that_decides(*SCORER)), how, settings
            priority = -number - len(jobs) * (number in killed)  # what workers died of goes after the others
            future: Future = client.submit(_do, *task, pure=False, priority=priority, **placed(workers))
            numbers[future] = number
            return future

        running = as_completed([submit(number) for number in jobs], loop=client.loop)
        try:
            for future in as_ready(running, client, cluster.scheduler, on_progress):
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
                    if left := others.than(found, number):
                        running.add(submit(number, left))
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
        is_lacking = isinstance(error, ImportError | AttributeError)
        advice = "Install there what is here." if is_lacking else "See to that worker."
        return _failed(job, f"failed there with {type(error).__name__}: {one_line(error).rstrip('.')}. {advice}")
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
    worker = prepared_worker()
    if isinstance(worker, Unfit):
        return worker
    try:
        dataset = load_once(job.dataset, made.dataset_fingerprint)
        here = job.provenance(dataset)
    except HashbenchError as error:
        return Unfit(worker, f"cannot take it: {error}")
    if (here, code_that_decides(*SCORER)) != expected:
        load_once.cache_clear()  # by the next job it may have been mended
        return Unfit(worker, _difference(here, made))
    return finish(job, dataset, *how)


def _difference(here: Provenance, there: Provenance) -> str:
    """Say in what a worker differs from the client."""
    if here.dataset_fingerprint != there.dataset_fingerprint:
        return (
            f"has another {here.dataset}, {here.dataset_fingerprint} and not {there.dataset_fingerprint}. Share the "
            "data folder, or prepare it there from the same files."
        )
    return of_versions(json.loads(here.libraries), json.loads(there.libraries))
