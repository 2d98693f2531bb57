"""Run grids of jobs, one after the other, whatever of each is not done yet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, JobFailure, Refusal
from hashbench.pipeline.failures import contained
from hashbench.pipeline.grid import Job
from hashbench.pipeline.preparation import find_dataset, load_dataset
from hashbench.pipeline.rows import rows_of
from hashbench.pipeline.steps import ensure_codes, ensure_scores, evaluation_of, kept_scores, model_path
from hashbench.scoring.evaluation import DEFAULT_METRICS, Evaluation
from hashbench.scoring.metrics import get_metric
from hashbench.store.models import holds_model
from hashbench.store.results import Row, read_rows


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a job."""

    job: Job
    evaluation: Evaluation | None  # None if the method refused, or if only codes were asked for
    refusal: str = ""  # why it refused
    has_failed: bool = False  # whether it refused because something went wrong, such as training or a plug-in
    codes: Path | None = None  # their file
    model: Path | None = None  # that of the fitted method, if it was kept and only codes were asked for
    rows: tuple[Row, ...] = ()  # for the results file
    n_neighbours: int = 0  # listed for each query, and relevant; 0 if another rule says what is
    notes: tuple[str, ...] = ()  # what was done and what was found again


def run(
    jobs: Sequence[Job],
    metric_names: Sequence[str] = DEFAULT_METRICS,
    *,
    force: bool = False,
    resume: bool = False,
    keep_models: bool = False,
    on_progress: Progress = silent,
) -> Iterator[Outcome]:
    """Do the jobs of a grid one after the other, and yield what became of each; none that fails stops the next.

    Without metrics they end with their codes. ``force`` repeats finished steps, ``resume`` goes on with interrupted
    training where its last epoch ended, ``keep_models`` keeps fitted methods beside their codes.
    """
    names = [get_metric(name).name for name in metric_names]
    datasets: dict[str, Dataset | HashbenchError] = {}
    for job in jobs:
        notes = []
        if job.dataset not in datasets:
            datasets.clear()  # one dataset in memory at a time
            datasets[job.dataset], how = _load(job, on_progress)
            notes.append(f"{how or 'reused'} dataset")
        dataset = datasets[job.dataset]
        try:
            if isinstance(dataset, HashbenchError):
                raise dataset
            with contained(f"method {job.method!r}", str(job)):
                path, how = ensure_codes(
                    dataset, job, force=force, resume=resume, keep_model=keep_models, on_progress=on_progress
                )
            notes.append(f"{how or 'reused'} codes")
            if not names:
                model = model_path(dataset, job) if keep_models else None
                yield Outcome(job, None, codes=path, model=model, notes=tuple(notes))
                continue
            with contained("scoring", str(job)):
                scored, how = ensure_scores(dataset, path, names, force=force, on_progress=on_progress)
        except HashbenchError as error:
            has_failed = isinstance(error, JobFailure) or not isinstance(error, Refusal)
            yield Outcome(job, None, str(error), has_failed, notes=tuple(notes))
            continue
        notes.append(f"{how or 'reused'} scores")
        yield Outcome(
            *(job, scored),
            codes=path,
            rows=rows_of(job.provenance(dataset), scored),
            n_neighbours=dataset.n_neighbours,
            notes=tuple(notes),
        )


def remaining(
    jobs: Sequence[Job],
    metric_names: Sequence[str],
    *,
    results: Path | None = None,
    force: bool = False,
    keep_models: bool = False,
) -> Iterator[str]:
    """Tell of each job what `run` would still do, nothing if it is done; without doing or writing anything.

    ``results`` is the folder for the rows, if they are to be written. Whether a method refuses shows only when it is
    run.
    """
    names = list(dict.fromkeys(get_metric(name).name for name in metric_names))
    datasets = {spec: find_dataset(spec) for spec in dict.fromkeys(job.dataset for job in jobs)}
    written = {
        spec: {*read_rows(results / f"{found.name}.csv")} for spec, found in datasets.items() if results and found
    }
    for job in jobs:
        dataset = datasets[job.dataset]
        scores = None if dataset is None or force else kept_scores(dataset, job)
        if keep_models and dataset is not None and not holds_model(model_path(dataset, job), job.provenance(dataset)):
            scores = None
        if dataset is None or scores is None:
            yield ", ".join([*([] if dataset else ["prepare"]), "encode", *(["score"] if names else [])])
        elif missing := [name for name in names if name not in scores]:
            yield f"score {', '.join(missing)}"
        elif results:
            rows = rows_of(job.provenance(dataset), evaluation_of(scores, names))
            yield "" if written[job.dataset].issuperset(rows) else "write rows"
        else:
            yield ""


def _load(job: Job, on_progress: Progress) -> tuple[Dataset | HashbenchError, str]:
    """Load a job's dataset, and say what of it was made now; or give why that cannot be."""
    try:
        with contained(f"dataset {job.dataset!r}", job.dataset):
            return load_dataset(job.dataset, on_progress)
    except HashbenchError as error:
        return error, ""
