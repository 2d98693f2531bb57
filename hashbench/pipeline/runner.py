"""Running the jobs of a grid; finished steps are skipped."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, JobFailure, Refusal, with_log
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.failures import contained
from hashbench.pipeline.grid import Job
from hashbench.pipeline.preparation import find_dataset, load_dataset
from hashbench.pipeline.steps import (
    Demands,
    codes_of,
    codes_path,
    evaluation_of,
    kept_scores,
    model_path,
    rows_of,
    scores_of,
)
from hashbench.registry import is_built_in
from hashbench.scoring.evaluation import Evaluation
from hashbench.store.models import holds_model
from hashbench.store.origin import JobRecord
from hashbench.store.result_rows import Row
from hashbench.store.results import read_rows


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a job."""

    job: Job
    evaluation: Evaluation | None  # None if the method refused or failed, or only codes were wanted
    refusal: str = ""  # why it refused or failed
    log: str = ""  # file of the traceback, if a plug-in failed
    has_failed: bool = False  # whether something went wrong, such as training or a plug-in
    codes: Path | None = None  # their file
    model: Path | None = None  # file of the fitted method, if it was kept and only codes were wanted
    rows: tuple[Row, ...] = ()  # for the results files
    made: JobRecord | None = None  # what made them, if the codes record it
    hints: tuple[str, ...] = ()  # sentences that readers of the scores need
    notes: tuple[str, ...] = ()  # what was done and what was reused
    held_out: tuple[str, float] | None = None  # metric and score of the held-out items that chose the epoch, if any

    @property
    def reason(self) -> str:
        """Why it refused or failed, and where the traceback is; empty if it did neither."""
        return with_log(self.refusal, self.log)

    @property
    def is_new(self) -> bool:
        """Whether anything was computed rather than reused."""
        return self.has_failed or not all(note.startswith("reused") for note in self.notes)


def run_all(
    jobs: Sequence[Job],
    demands: Demands,
    on_progress: Progress = silent,
    n_jobs: int = 1,
    cluster: Cluster | None = None,
) -> Iterator[Outcome]:
    """Run the jobs of a grid, and yield the outcome of each; a failure does not stop the next.

    They run one after the other, or ``n_jobs`` at a time in processes, -1 for one per processor, or on the workers of
    a cluster: see `hashbench.pipeline.workers`.
    """
    if n_jobs != -1 and n_jobs < 1:
        raise HashbenchError(f"n_jobs is {n_jobs}, expected 1 or more, or -1 for one per processor.")
    if cluster is not None and n_jobs != 1:
        raise HashbenchError(
            f"n_jobs is {n_jobs}, but a cluster runs one job per worker. Leave out n_jobs or the cluster."
        )
    if n_jobs == 1 and cluster is None:
        return run(jobs, demands, on_progress)
    from hashbench.pipeline.workers import run_side_by_side

    return run_side_by_side(jobs, demands, on_progress, n_jobs, cluster)


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


def load(spec: str, on_progress: Progress = silent) -> tuple[Dataset | HashbenchError, str]:
    """Load a dataset for jobs as `load_dataset` does; return the error if that fails."""
    try:
        with contained(f"dataset {spec!r}", spec):
            return load_dataset(spec, on_progress)
    except HashbenchError as error:
        return error, ""


@lru_cache(maxsize=1)
def load_once(spec: str, fingerprint: str) -> Dataset:
    """Load a dataset once for consecutive jobs; ``fingerprint`` distinguishes its contents."""
    dataset, _ = load(spec)
    if isinstance(dataset, HashbenchError):
        raise dataset  # which is not cached: the next job may find the dataset
    return dataset


def finish(job: Job, dataset: Dataset | HashbenchError, demands: Demands, on_progress: Progress = silent) -> Outcome:
    """Do the unfinished steps of a job and return its outcome, even if there is no dataset or a step fails."""
    notes: list[str] = []
    try:
        if isinstance(dataset, HashbenchError):
            raise dataset
        return _finish(job, dataset, demands, on_progress, notes)
    except JobFailure as error:
        return Outcome(job, None, error.what, error.log, has_failed=True, notes=tuple(notes))
    except HashbenchError as error:
        return Outcome(job, None, str(error), has_failed=not isinstance(error, Refusal), notes=tuple(notes))


def _finish(job: Job, dataset: Dataset, demands: Demands, on_progress: Progress, notes: list[str]) -> Outcome:
    """Encode and score; add to ``notes`` what was done."""
    check = "" if is_built_in(job.method) else f"hashbench check method {job.method}"
    with ExitStack() as opened:
        with contained(f"method {job.method!r}", str(job), check):
            codes, words = opened.enter_context(codes_of(dataset, job, demands, on_progress))
        notes.append(f"{words or 'reused'} codes")
        path = codes_path(dataset, job)
        if not demands.metrics:
            model = model_path(dataset, job) if demands.keep_models else None
            return Outcome(job, None, codes=path, model=model, notes=tuple(notes))
        with contained("scoring", str(job)):
            scored, words = scores_of(dataset, codes, demands, on_progress)
    notes.append(f"{words or 'reused'} scores")
    hints = []
    if scored.notes and job.estimator.group != "baseline":  # whose codes are as they should be
        hints = [f"{job}: {note[0].lower()}{note[1:]}" for note in scored.notes]
    made = codes.job_record
    return Outcome(
        job,
        scored,
        codes=path,
        rows=rows_of(codes.made, scored),
        made=made and made._replace(trials=job.n_trials),
        hints=(*dataset.notes, *hints),
        notes=tuple(notes),
        held_out=None if codes.held_out is None else (codes.held_out_metric, codes.held_out),
    )


def remaining(jobs: Sequence[Job], demands: Demands, results: Path | None = None) -> Iterator[str]:
    """Yield for each job what `run` would still do, "" if it is done; nothing is computed or written.

    ``results`` is the folder for the rows, if they are to be written. A method's refusal shows only when it is run.
    """
    datasets = {spec: find_dataset(spec) for spec in dict.fromkeys(job.dataset for job in jobs)}
    written = {spec: {*read_rows(results, dataset.name)} for spec, dataset in datasets.items() if results and dataset}
    for job in jobs:
        dataset = datasets[job.dataset]
        scores = None if dataset is None or demands.force else kept_scores(dataset, job)
        if demands.keep_models and dataset and not holds_model(model_path(dataset, job), job.provenance(dataset)):
            scores = None
        if dataset is None or scores is None:
            yield ", ".join(["prepare"] * (dataset is None) + ["encode"] + ["score"] * bool(demands.metrics))
        elif missing := [name for name in demands.metrics if name not in scores]:
            yield f"score {', '.join(missing)}"
        elif results:
            rows = rows_of(job.provenance(dataset), evaluation_of(scores, demands.metrics))
            yield "" if written[job.dataset].issuperset(rows) else "write rows"
        else:
            yield ""
