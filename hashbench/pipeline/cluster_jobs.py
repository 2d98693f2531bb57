"""Jobs on the workers of a Dask cluster, whose scheduler places them, and repeats those of a lost worker.

Jobs and scores are sent; datasets are opened where they are needed.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, one_line
from hashbench.pipeline.cluster import Cluster, Tasks, UnfitWorker, connected, prepared_worker, version_difference
from hashbench.pipeline.grid import Job
from hashbench.pipeline.one_job import Outcome, finish, load_once
from hashbench.pipeline.steps import Demands
from hashbench.store.files import data_dir, data_folder, lock_timeout
from hashbench.store.provenance import SCORES_VERSION, Provenance

if TYPE_CHECKING:
    from distributed import Future


def on_workers(
    jobs: Mapping[int, tuple[Job, Provenance]],
    cluster: Cluster,
    demands: Demands,
    on_progress: Progress = silent,
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs, each with the provenance of its codes, on workers that would give the same codes.

    A job that a worker refuses goes to the others; a job whose worker is lost is repeated until Dask gives up.
    """
    with connected(cluster) as client:
        from distributed import KilledWorker

        killed: set[int] = set()

        def send(number: int, placed: dict[str, Any]) -> "Future":
            job, provenance = jobs[number]
            if (path := Path(job.dataset)).is_file():  # a worker may have another working directory
                job = replace(job, dataset=str(path.absolute()))
            return client.submit(
                _run_job,
                job,
                (provenance, SCORES_VERSION),
                demands,
                (str(data_dir().absolute()), lock_timeout.get()),
                priority=-number - len(jobs) * (number in killed),  # jobs that killed workers go last
                **placed,
            )

        tasks = Tasks(client, cluster.scheduler, on_progress, send)
        try:
            for number in jobs:
                tasks.start(number)
            for number, future in tasks:
                error = future.exception()
                if isinstance(error, KilledWorker) and number not in killed:  # another job may have killed its worker
                    killed.add(number)
                    tasks.start(number)
                else:
                    yield number, future.result() if error is None else _failed(jobs[number][0], error)
        finally:
            client.cancel(list(tasks.under_way))


def _failed(job: Job, error: BaseException) -> Outcome:
    """Return the outcome of a job that has no other because of an error on its workers."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        why = "ended without an error: its workers were killed, likely for lack of memory. Give them more."
    elif isinstance(error, UnfitWorker):
        why = f"has no suitable worker: {error.worker} {error.why}"
    else:
        reason = f"{type(error).__name__}: {one_line(error).rstrip('.')}"
        why = f"failed on a worker with {reason}. Check that worker, and that it has what is installed here."
    return Outcome(job, None, f"{job} {why}", has_failed=True)


def _run_job(
    job: Job,
    expected: tuple[Provenance, int],
    demands: Demands,
    settings: tuple[str, float],
) -> Outcome:
    """Run a job on a worker, in the worker's data folder or else the client's, if it would give the client's codes."""
    (client_provenance, _), (folder, seconds) = expected, settings
    data_folder.set(folder if "HASHBENCH_DATA" not in os.environ and Path(folder).is_dir() else None)
    lock_timeout.set(seconds)
    worker = prepared_worker()
    try:
        dataset = load_once(job.dataset, client_provenance.dataset_fingerprint)
        provenance = job.provenance(dataset)
    except HashbenchError as error:
        raise UnfitWorker(worker, f"cannot take it: {error}") from error
    if (provenance, SCORES_VERSION) != expected:
        load_once.cache_clear()  # the dataset may be corrected before the next job
        raise UnfitWorker(worker, _difference(provenance, client_provenance))
    return finish(job, dataset, demands)


def _difference(worker: Provenance, client: Provenance) -> str:
    """Return in words how the provenance of codes on a worker differs from the client's."""
    if worker.dataset_fingerprint != client.dataset_fingerprint:
        return (
            f"has another {worker.dataset}, {worker.dataset_fingerprint} and not {client.dataset_fingerprint}. Share "
            "the data folder, or prepare it there from the same files."
        )
    return version_difference(json.loads(worker.libraries), json.loads(client.libraries))
