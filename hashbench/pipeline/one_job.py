"""One job, from its dataset to rows; finished steps are skipped."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, JobFailure, Refusal
from hashbench.pipeline.grid import Job, contained
from hashbench.pipeline.preparation import find_dataset, load_dataset
from hashbench.pipeline.recipes import Recipe, differences, recipe_of
from hashbench.pipeline.steps import Demands, codes_of, codes_path, kept_scores, model_path, rows_of, scores_of
from hashbench.registry import is_built_in
from hashbench.scoring.evaluation import Evaluation, evaluation_of
from hashbench.store.hdf5 import holds_model
from hashbench.store.origin import Origin
from hashbench.store.result_rows import Row
from hashbench.store.results import find_files, folder_of, merge_rows, read_record, read_rows
from hashbench.unseen import split_name


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a job."""

    job: Job
    evaluation: Evaluation | None  # None if the method refused or failed, or only codes were wanted
    refusal: str = ""  # why it refused or failed, and where the traceback is; empty if it did neither
    has_failed: bool = False  # whether something went wrong, such as training or a plug-in
    codes: Path | None = None  # their file
    model: Path | None = None  # file of the fitted method, if it was kept and only codes were wanted
    rows: tuple[Row, ...] = ()  # for the results files
    made: Origin | None = None  # what made them, if the codes record it
    recipes: Mapping[str, Recipe] = field(default_factory=dict)  # of the user's own dataset, by fingerprint
    hints: tuple[str, ...] = ()  # sentences that readers of the scores need
    notes: tuple[str, ...] = ()  # what was done and what was reused
    held_out: tuple[str, float] | None = None  # metric and score of the held-out items that chose the epoch, if any

    @property
    def is_new(self) -> bool:
        """Whether anything was computed rather than reused."""
        return self.has_failed or not all(note.startswith("reused") for note in self.notes)


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
            advice = job.estimator.advice
            hints = [f"{job}: {note[0].lower()}{note[1:]} {advice}".rstrip() for note in scored.notes]
        made = codes.job_origin
        return Outcome(
            job,
            scored,
            codes=path,
            rows=rows_of(codes.made, scored),
            made=made and made._replace(trials=job.n_trials),
            recipes=recipe_of(dataset),
            hints=(*dataset.notes, *hints),
            notes=tuple(notes),
            held_out=None if codes.held_out is None else (codes.held_out_metric, codes.held_out),
        )
    except HashbenchError as error:
        has_failed = isinstance(error, JobFailure) or not isinstance(error, Refusal)
        return Outcome(job, None, str(error), has_failed=has_failed, notes=tuple(notes))


def write_rows(folder: Path, outcome: Outcome) -> tuple[list[Path], str]:
    """Add the rows of a job to a folder of results; return the files.

    Also returns a sentence if the user's own dataset was prepared in another way than that of the rows there, or if
    earlier rows are gone, else "".
    """
    sentence = ""
    for row in outcome.rows[:1]:
        place, base = folder_of(folder, row.dataset), split_name(row.dataset)[0]
        for fingerprint, recipe in outcome.recipes.items():
            known = read_record(find_files(place)).recipes
            if known and fingerprint not in known:
                changes = min((differences(recipe, other) for other in known.values()), key=len)
                sentence = (
                    f"{base} was prepared in another way than for the rows in {place}: "
                    f"{', '.join(changes) or 'by other versions'}. Its rows are added as those of other data."
                )
    files, gone = merge_rows(folder, outcome.rows, outcome.made, outcome.recipes)
    if gone:
        what = f"{gone[0].dataset} {gone[0].method} {gone[0].n_bits} bits seed {gone[0].seed}"
        metrics = ", ".join(row.metric for row in gone)
        sentence = f"{sentence} Rows of {what} by earlier code of the plug-in are removed: {metrics}.".strip()
    return files, sentence


def remaining(
    jobs: Sequence[Job], demands: Demands, results: Path | None = None, unprepared: Container[str] = ()
) -> Iterator[str]:
    """Yield for each job what `run` would still do, "" if it is done; nothing is computed or written.

    ``results`` is the folder for the rows, if they are to be written. Datasets called ``unprepared``, and those cut out
    of them, are to be prepared first. A method's refusal shows only when it is run.
    """
    datasets = {
        spec: None if split_name(spec.partition(":")[0])[0] in unprepared else find_dataset(spec)
        for spec in dict.fromkeys(job.dataset for job in jobs)
    }
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
