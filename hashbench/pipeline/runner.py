"""Running the jobs of a grid, one after the other or side by side."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hashbench._parallel import n_processors
from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import Job
from hashbench.pipeline.one_job import Outcome, finish, load
from hashbench.pipeline.steps import Demands


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
    if n_jobs != -1 and n_jobs < 1:
        raise HashbenchError(f"n_jobs is {n_jobs}, expected 1 or more, or -1 for one per processor.")
    if cluster is not None and n_jobs != 1:
        raise HashbenchError(
            f"n_jobs is {n_jobs}, but a cluster runs one job per worker. Leave out n_jobs or the cluster."
        )
    n_jobs = n_processors() if n_jobs == -1 else n_jobs
    if n_jobs == 1 and cluster is None:
        yield from run(jobs, demands, on_progress)
        return
    from hashbench.pipeline.workers import side_by_side, undone

    todo = [*undone(jobs, demands)]
    if len(todo) < 2 and (cluster is None or not todo):
        yield from run(jobs, demands, on_progress)
        return
    numbers = {*map(id, todo)}
    yield from run([job for job in jobs if id(job) not in numbers], demands)
    yield from side_by_side(todo, demands, on_progress, n_jobs, cluster)


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
    positions = {id(job): position for position, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: positions[id(outcome.job)])
