"""Running the jobs of a grid side by side, in processes of joblib or on the workers of a cluster."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

from hashbench._parallel import n_processors
from hashbench._typing import Progress
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import Job
from hashbench.pipeline.one_job import Outcome, finish, load, load_once, remaining
from hashbench.pipeline.preparation import find_dataset
from hashbench.pipeline.steps import Demands
from hashbench.store.files import data_dir, data_folder, lock_timeout
from hashbench.store.provenance import Provenance


def side_by_side(
    jobs: Sequence[Job], demands: Demands, on_progress: Progress, n_jobs: int, cluster: Cluster | None
) -> Iterator[Outcome]:
    """Run unfinished jobs ``n_jobs`` at a time, each with its share of the processors, or on the workers of a cluster.

    Longer codes come first. If a process is killed (out of memory, say), only its job fails.
    """
    numbered: dict[int, tuple[Job, Provenance]] = {}
    for job, provenance in _prepared(jobs, on_progress):
        if isinstance(provenance, HashbenchError):
            yield finish(job, provenance, demands)
        else:
            numbered[len(numbered)] = job, provenance
    if cluster is not None:
        from hashbench.pipeline.cluster_jobs import on_workers

        outcomes = on_workers(numbered, cluster, demands, on_progress)
    else:
        outcomes = _surviving(numbered, n_jobs, demands)
    for number, outcome in outcomes:
        yield replace(outcome, job=numbered[number][0])


def undone(jobs: Sequence[Job], demands: Demands) -> Iterator[Job]:
    """Yield the unfinished jobs, and all jobs of a dataset that cannot be read."""
    for of_dataset in _by_dataset(jobs):
        try:
            plan = [*remaining(of_dataset, demands)]
        except HashbenchError:  # raised again when the dataset is loaded
            yield from of_dataset
        else:
            yield from (job for job, steps in zip(of_dataset, plan, strict=True) if steps)


def _by_dataset(jobs: Sequence[Job]) -> list[list[Job]]:
    return [[job for job in jobs if job.dataset == spec] for spec in dict.fromkeys(job.dataset for job in jobs)]


def _prepared(jobs: Sequence[Job], on_progress: Progress) -> Iterator[tuple[Job, Provenance | HashbenchError]]:
    """Prepare the datasets; yield the jobs, the longest codes of each first, with their provenance or an error."""
    for of_dataset in _by_dataset(jobs):
        spec = of_dataset[0].dataset
        try:
            dataset = find_dataset(spec) or load(spec, on_progress)[0]
        except HashbenchError as error:
            dataset = error
        if isinstance(dataset, HashbenchError):
            yield from ((job, dataset) for job in of_dataset)
        else:
            longest_first = sorted(of_dataset, key=lambda job: -job.n_bits)
            yield from ((job, job.provenance(dataset)) for job in longest_first)


def _surviving(
    jobs: Mapping[int, tuple[Job, Provenance]], n_jobs: int, demands: Demands
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs in processes. If one is killed, the jobs that ran then are repeated one by one before the others."""
    unfinished, suspects = dict(jobs), list[int]()
    while unfinished:
        batch = suspects[:1] or list(unfinished)
        try:
            for number, outcome in _in_processes({number: unfinished[number] for number in batch}, n_jobs, demands):
                del unfinished[number]
                yield number, outcome
        except BrokenProcessPool:
            if suspects:
                job, _ = unfinished.pop(suspects[0])
                why = "its process was killed, likely out of memory. Give it more, or fewer --jobs."
                yield suspects[0], Outcome(job, None, f"{job} ended without an error: {why}", has_failed=True)
            else:
                suspects = list(unfinished)[:n_jobs]
                continue
        suspects = suspects[1:]


def _in_processes(
    jobs: Mapping[int, tuple[Job, Provenance]], n_jobs: int, demands: Demands
) -> Iterator[tuple[int, Outcome]]:
    from joblib import Parallel, delayed, parallel_config

    n_threads = max(1, n_processors() // n_jobs)
    settings = str(data_dir().absolute()), n_threads, lock_timeout.get()
    tasks = (
        delayed(_run_job)(number, job, provenance.dataset_fingerprint, demands, settings)
        for number, (job, provenance) in jobs.items()
    )
    with parallel_config(backend="loky", inner_max_num_threads=n_threads):
        parallel = Parallel(n_jobs, pre_dispatch=n_jobs, batch_size=1, return_as="generator_unordered")
        yield from parallel(tasks)


def _run_job(
    number: int,
    job: Job,
    fingerprint: str,
    demands: Demands,
    settings: tuple[str, int, float],
) -> tuple[int, Outcome]:
    """Run a job in its own process, with the parent's settings."""
    folder, n_threads, seconds = settings
    data_folder.set(folder)
    os.environ["LOKY_MAX_CPU_COUNT"] = str(n_threads)
    lock_timeout.set(seconds)
    try:
        dataset: Dataset | HashbenchError = load_once(job.dataset, fingerprint)
    except HashbenchError as error:
        dataset = error
    return number, finish(job, dataset, demands)
