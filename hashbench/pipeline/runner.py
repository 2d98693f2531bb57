"""Running the jobs of a grid: one after the other, in processes of joblib, or on the workers of a cluster."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout
from dataclasses import replace
from numbers import Integral

from hashbench._parallel import n_processors
from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import Job
from hashbench.pipeline.one_job import Outcome, finish, load, load_once, remaining
from hashbench.pipeline.preparation import PreparedDataset, find_dataset
from hashbench.pipeline.steps import Demands
from hashbench.store.files import data_dir, data_folder, lock_timeout
from hashbench.store.provenance import Provenance


def run_all(
    jobs: Sequence[Job],
    demands: Demands,
    on_progress: Progress = silent,
    n_jobs: int = 1,
    cluster: Cluster | None = None,
) -> Iterator[Outcome]:
    """Run the jobs of a grid, and yield the outcome of each; a failure does not stop the next.

    They run one after the other, or ``n_jobs`` at a time in processes, -1 for one per processor, or on the workers of
    a cluster. Side by side, finished jobs come first, and outcomes are yielded as jobs finish.
    """
    if not isinstance(n_jobs, Integral) or (n_jobs != -1 and n_jobs < 1):
        raise HashbenchError(f"n_jobs is {n_jobs!r}, expected a whole number from 1, or -1 for one per processor.")
    if cluster is not None and n_jobs != 1:
        raise HashbenchError(
            f"n_jobs is {n_jobs}, but a cluster runs one job per worker. Leave out n_jobs or the cluster."
        )
    n_jobs = n_processors() if n_jobs == -1 else n_jobs
    todo = {*_undone(jobs, demands)} if n_jobs > 1 or cluster is not None else set[Job]()
    if len(todo) < 2 and (cluster is None or not todo):
        yield from run(jobs, demands, on_progress)
        return
    yield from run([job for job in jobs if job not in todo], demands)
    yield from _side_by_side([job for job in jobs if job in todo], demands, on_progress, n_jobs, cluster)


def run(jobs: Sequence[Job], demands: Demands, on_progress: Progress = silent) -> Iterator[Outcome]:
    """Run the jobs of a grid one after the other, as `run_all` does."""
    datasets: dict[str, Dataset | HashbenchError] = {}
    for job in jobs:
        notes = []
        if job.dataset not in datasets:
            datasets.clear()  # one dataset in memory at a time
            datasets[job.dataset], words = load(job.dataset, on_progress)
            notes.append(f"{words or 'reused'} dataset")
        outcome = finish(job, datasets[job.dataset], demands, on_progress)
        yield replace(outcome, notes=(*notes, *outcome.notes))


def in_order(outcomes: Iterable[Outcome], jobs: Sequence[Job]) -> list[Outcome]:
    """Sort outcomes as their jobs are."""
    positions = {job: position for position, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: positions[outcome.job])


# ---------------------------------------------------------------- side by side


def _by_dataset(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    return {spec: [job for job in jobs if job.dataset == spec] for spec in dict.fromkeys(job.dataset for job in jobs)}


def _undone(jobs: Sequence[Job], demands: Demands) -> Iterator[Job]:
    """Yield the unfinished jobs, and all jobs of a dataset that cannot be read."""
    for of_dataset in _by_dataset(jobs).values():
        try:
            plan = [*remaining(of_dataset, demands)]
        except HashbenchError:  # raised again when the dataset is loaded
            yield from of_dataset
        else:
            yield from (job for job, steps in zip(of_dataset, plan, strict=True) if steps)


def _side_by_side(
    jobs: Sequence[Job], demands: Demands, on_progress: Progress, n_jobs: int, cluster: Cluster | None
) -> Iterator[Outcome]:
    """Run unfinished jobs ``n_jobs`` at a time, each with its share of the processors, or on the workers of a cluster.

    Longer codes of a dataset come first. If a process is killed (out of memory, say), only its job fails.
    """
    numbered: dict[int, tuple[Job, Provenance]] = {}
    for spec, of_dataset in _by_dataset(jobs).items():
        dataset: Dataset | PreparedDataset | HashbenchError
        try:
            dataset = find_dataset(spec) or load(spec, on_progress)[0]
        except HashbenchError as error:
            dataset = error
        for job in sorted(of_dataset, key=lambda job: -job.n_bits):
            if isinstance(dataset, HashbenchError):
                yield finish(job, dataset, demands)
            else:
                numbered[len(numbered)] = job, job.provenance(dataset)
    if cluster is not None:
        from hashbench.pipeline.cluster import on_workers

        outcomes = on_workers(numbered, cluster, demands, on_progress)
    else:
        outcomes = _surviving(numbered, n_jobs, demands)
    for number, outcome in outcomes:
        yield replace(outcome, job=numbered[number][0])


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
                why = "its process was killed, likely for lack of memory. Free some, or use fewer --jobs (n_jobs)."
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
    number: int, job: Job, fingerprint: str, demands: Demands, settings: tuple[str, int, float]
) -> tuple[int, Outcome]:
    """Run a job in its own process, with the parent's settings."""
    folder, n_threads, seconds = settings
    data_folder.set(folder)
    os.environ["LOKY_MAX_CPU_COUNT"] = str(n_threads)
    lock_timeout.set(seconds)
    with redirect_stdout(sys.stderr):  # what plug-ins print; the parent prints results
        try:
            dataset: Dataset | HashbenchError = load_once(job.dataset, fingerprint)
        except HashbenchError as error:
            dataset = error
        return number, finish(job, dataset, demands)
