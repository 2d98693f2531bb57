"""Run grids of jobs side by side, in processes of joblib's or on the workers of a cluster."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from hashbench._parallel import n_processors
from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import Job
from hashbench.pipeline.preparation import find_dataset
from hashbench.pipeline.runner import Demands, Outcome, finish, load, load_once, remaining, run
from hashbench.pipeline.steps import seconds_taken
from hashbench.scoring.metrics import get_metric
from hashbench.store.files import data_dir, lock_timeout
from hashbench.store.provenance import Provenance


def run_side_by_side(
    jobs: Sequence[Job],
    metric_names: Sequence[str],
    n_jobs: int,
    demands: Demands,
    on_progress: Progress = silent,
    cluster: Cluster | None = None,
) -> Iterator[Outcome]:
    """Do the jobs of a grid as `hashbench.pipeline.runner.run` does, ``n_jobs`` at a time, -1 for one a processor.

    What is done already is found again first; then those that took longest go first, and those never done before them.
    Each has its share of the processors. A process that dies, as for want of memory, fails the job alone that it dies
    of. Outcomes come as they are ready. With a ``cluster`` they are done on its workers.
    """
    if n_jobs != -1 and n_jobs < 1:
        raise HashbenchError(f"n_jobs is {n_jobs}, expected 1 or more, or -1 for one a processor.")
    if cluster is not None and n_jobs != 1:
        raise HashbenchError(f"n_jobs is {n_jobs}, but workers do as many jobs as there are of them; leave one out.")
    n_jobs = n_processors() if n_jobs == -1 else n_jobs
    todo = [] if n_jobs == 1 and cluster is None else [*_undone(jobs, metric_names, demands)]
    if not todo or (len(todo) == 1 and cluster is None):
        yield from run(jobs, metric_names, demands, on_progress)
        return
    undone = {id(job) for job in todo}
    yield from run([job for job in jobs if id(job) not in undone], metric_names, demands)
    names = [get_metric(name).name for name in metric_names]
    left: dict[int, tuple[Job, Provenance]] = {}
    for job, made in _prepared(todo, on_progress):
        if isinstance(made, HashbenchError):
            yield finish(job, made, names, demands)
        else:
            left[len(left)] = job, made
    if cluster is not None:
        from hashbench.pipeline.cluster_jobs import on_workers  # which imports what counts

        outcomes = on_workers(left, cluster, (names, demands), on_progress)
    else:
        outcomes = _surviving(left, n_jobs, (names, demands))
    for number, outcome in outcomes:
        yield replace(outcome, job=left[number][0])


def _undone(jobs: Sequence[Job], metric_names: Sequence[str], demands: Demands) -> Iterator[Job]:
    """Give the jobs that are not done, all of a dataset that cannot be read among them."""
    for of_dataset in _by_dataset(jobs):
        try:
            plan = [*remaining(of_dataset, metric_names, demands)]
        except HashbenchError:  # whoever loads the dataset says why
            yield from of_dataset
        else:
            yield from (job for job, steps in zip(of_dataset, plan, strict=True) if steps)


def _by_dataset(jobs: Sequence[Job]) -> list[list[Job]]:
    return [[job for job in jobs if job.dataset == spec] for spec in dict.fromkeys(job.dataset for job in jobs)]


def _prepared(jobs: Sequence[Job], on_progress: Progress) -> Iterator[tuple[Job, Provenance | HashbenchError]]:
    """Prepare the datasets; give the jobs, the longest of each dataset first, with their provenance or why it lacks."""
    for of_dataset in _by_dataset(jobs):
        spec = of_dataset[0].dataset
        try:
            found = find_dataset(spec) or load(spec, on_progress)[0]
        except HashbenchError as error:
            found = error
        if isinstance(found, HashbenchError):
            yield from ((job, found) for job in of_dataset)
            continue
        seconds = {id(job): (seconds_taken(found, job), job.n_bits) for job in of_dataset}
        yield from ((job, job.provenance(found)) for job in sorted(of_dataset, key=lambda job: seconds[id(job)])[::-1])


def _surviving(
    jobs: Mapping[int, tuple[Job, Provenance]], n_jobs: int, how: tuple[Sequence[str], Demands]
) -> Iterator[tuple[int, Outcome]]:
    """Do jobs in processes. If one dies, those that it may have died of are done one by one before the others go on."""
    left, suspects = dict(jobs), list[int]()
    while left:
        batch = suspects[:1] or list(left)
        try:
            for number, outcome in _in_processes({number: left[number] for number in batch}, n_jobs, how):
                del left[number]
                yield number, outcome
        except BrokenProcessPool:
            if suspects:
                job, _ = left.pop(suspects[0])
                why = "its process was killed, most likely for want of memory. Give it more, or fewer --jobs."
                yield suspects[0], Outcome(job, None, f"{job} ended without a word: {why}", has_failed=True)
            else:
                suspects = list(left)[:n_jobs]
                continue
        suspects = suspects[1:]


def _in_processes(
    jobs: Mapping[int, tuple[Job, Provenance]], n_jobs: int, how: tuple[Sequence[str], Demands]
) -> Iterator[tuple[int, Outcome]]:
    from joblib import Parallel, delayed, parallel_config

    _hush_new_tracker()
    n_threads = max(1, n_processors() // n_jobs)
    there = {"HASHBENCH_DATA": str(data_dir().absolute()), "LOKY_MAX_CPU_COUNT": str(n_threads)}
    tasks = (
        delayed(_do)(number, job, made.dataset_fingerprint, how, there, lock_timeout.get())
        for number, (job, made) in jobs.items()
    )
    with parallel_config(backend="loky", inner_max_num_threads=n_threads):
        parallel = Parallel(n_jobs, pre_dispatch=n_jobs, batch_size=1, return_as="generator_unordered")
        yield from parallel(tasks)


def _hush_new_tracker() -> None:
    """Keep joblib's tracker of semaphores from stderr, should it be killed: a new one has a KeyError for each older.

    What it inherits as stderr is all that decides; joblib has no setting for it.
    """
    from joblib.externals.loky.backend import resource_tracker

    resource_tracker.ensure_running()
    tracker = resource_tracker._resource_tracker
    launch = getattr(tracker, "_launch", None)
    if launch is None or "_launch" in vars(tracker):  # of another version of joblib, or hushed already
        return

    def launch_silently() -> None:
        try:
            stderr = os.dup(2)
        except OSError:  # closed, so that nothing is printed
            launch()
            return
        try:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)
            launch()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)

    tracker._launch = launch_silently


def _do(
    number: int,
    job: Job,
    fingerprint: str,
    how: tuple[Sequence[str], Demands],
    there: Mapping[str, str],
    seconds: float,
) -> tuple[int, Outcome]:
    """Do a job in a process of its own, where the parent's settings hold."""
    os.environ.update(there)
    lock_timeout.set(seconds)
    try:
        dataset: Dataset | HashbenchError = load_once(job.dataset, fingerprint)
    except HashbenchError as error:
        dataset = error
    return number, finish(job, dataset, *how)
