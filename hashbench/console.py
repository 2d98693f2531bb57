"""What people see: tables of scores, descriptions, and the progress of long work."""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
import rich.box
import rich.progress
from rich.console import Console
from rich.table import Table

from hashbench import registry, storage
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import HashbenchError
from hashbench.evaluation import Evaluation, Summary
from hashbench.experiment import Outcome, run
from hashbench.jobs import Job
from hashbench.metrics import FAMILIES, get_metric
from hashbench.results import COLUMNS, csv_text
from hashbench.steps import dataset_path
from hashbench.usage import CodeUsage, code_usage


class Progress:
    """Progress of a grid on stderr: a bar on a terminal, plain lines elsewhere.

    Parameters
    ----------
    n_jobs : int
        How many jobs there are.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.n_done = 0
        self._console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._bar: rich.progress.Progress | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = rich.progress.Progress(
                rich.progress.TextColumn("{task.description}"),
                rich.progress.BarColumn(),
                rich.progress.MofNCompleteColumn(),
                rich.progress.TimeRemainingColumn(),
                console=self._console,
                transient=True,
                redirect_stdout=False,  # results go to stdout even while the bar is drawn
                redirect_stderr=False,
            )
            self._bar.start()
            self._jobs = self._bar.add_task("jobs", total=self.n_jobs)
            self._step = self._bar.add_task("", total=None, visible=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, text: str) -> None:
        """Announce a job.

        Parameters
        ----------
        text : str
            What it is.
        """
        if self._bar is not None:
            self._bar.update(self._jobs, description=text)
            self._bar.update(self._step, visible=False)

    def part(self, n_done: int, n_all: int) -> None:
        """Tell how far the current step is.

        Parameters
        ----------
        n_done, n_all : int
            Items done, and all items.
        """
        if self._bar is not None:
            self._bar.update(self._step, completed=n_done, total=n_all, visible=True, description="items")

    def done(self, text: str) -> None:
        """Close a job with a line.

        Parameters
        ----------
        text : str
            What became of it.
        """
        self.n_done += 1
        self._console.print(f"[{self.n_done}/{self.n_jobs}] {text}")
        if self._bar is not None:
            self._bar.update(self._jobs, completed=self.n_done)


def run_jobs(jobs: Sequence[Job], metrics: Sequence[str], *, force: bool) -> Iterator[Outcome]:
    """Run jobs with their progress on stderr.

    Parameters
    ----------
    jobs : sequence of Job
        What to run.
    metrics : sequence of str
        Metrics; if there are none, the jobs end with their codes.
    force : bool
        Repeat finished steps.

    Yields
    ------
    Outcome
        Of each job that was not refused.

    Raises
    ------
    HashbenchError
        If all jobs were refused.
    """
    refusals = []
    with Progress(len(jobs)) as progress:
        progress.start(str(jobs[0]))
        for position, outcome in enumerate(run(jobs, metrics, force=force, on_progress=progress.part), start=1):
            if outcome.refusal:
                refusals.append(outcome.refusal)
                if len(jobs) > 1:  # a single one ends in an error that says why
                    progress.done(f"{outcome.job}: refused. {outcome.refusal}")
            else:
                yield outcome
                progress.done(f"{outcome.job}: {', '.join(outcome.notes)}")
            if position < len(jobs):
                progress.start(str(jobs[position]))
    if len(refusals) == len(jobs):
        raise HashbenchError(
            refusals[0] if len(jobs) == 1 else f"none of the {len(jobs)} jobs could run; the reasons are above."
        )


def format_evaluation(evaluation: Evaluation, form: str) -> str:
    """Write scores for people or programs.

    Parameters
    ----------
    evaluation : Evaluation
        The scores.
    form : {"table", "csv", "json"}
        JSON has full precision, the others six and four decimals.

    Returns
    -------
    str
        The text, without a final newline.
    """
    summary = evaluation.summary
    if form == "json":
        content = {name: _json_values(values._asdict()) for name, values in summary.items()}
        return json.dumps(content, indent=2)
    if form == "csv":
        rows = [[name, *(f"{value:.6f}" for value in values[:3]), *values[3:]] for name, values in summary.items()]
        return csv_text(("metric", *Summary._fields), rows).rstrip("\n")
    text = _table(
        ["metric", "mean", "low", "high"],
        [[name, *(f"{value:.4f}" for value in values[:3])] for name, values in summary.items()],
    )
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    text += f"\n\n{n_queries} queries; mean over all orders of tied items, low and high over the worst and the best."
    if evaluation.n_undefined:
        text += f"\n{evaluation.n_undefined} of them have no relevant item in the database"
        is_counted = not any(np.isnan(scores.mean).any() for scores in evaluation.scores.values())
        text += " and count by the papers' convention." if is_counted else " and are left out."
    return text


def format_outcomes(outcomes: Sequence[Outcome], form: str, *, is_grid: bool = True) -> str:
    """Write the scores of a grid for people or programs.

    Parameters
    ----------
    outcomes : sequence of Outcome
        At least one, all scored.
    form : {"table", "csv", "json"}
        As for `format_evaluation`.
    is_grid : bool, default=True
        Whether to name the job of each row, even if there is only one.

    Returns
    -------
    str
        The text, without a final newline.
    """
    if form == "csv":
        return csv_text(COLUMNS, (row for outcome in outcomes for row in outcome.rows)).rstrip("\n")
    if form == "json":
        content = [
            {
                **{"dataset": outcome.rows[0].dataset, "method": outcome.job.method},
                **{"n_bits": outcome.job.n_bits, "seed": outcome.job.seed, "params": dict(outcome.job.params)},
                "scores": json.loads(format_evaluation(_evaluation(outcome), "json")),
            }
            for outcome in outcomes
        ]
        return json.dumps(content, indent=2)
    if not is_grid:
        return format_evaluation(_evaluation(outcomes[0]), "table")
    names = list(_evaluation(outcomes[0]).scores)
    lines = []
    for outcome in outcomes:
        first, *others = _evaluation(outcome).summary.values()
        label = " ".join([outcome.job.method, *(f"{key}={value}" for key, value in outcome.job.params.items())])
        lines.append(
            [
                *(outcome.rows[0].dataset, label, str(outcome.job.n_bits), str(outcome.job.seed)),
                *(f"{first.mean:.4f}", f"{first.low:.4f}-{first.high:.4f}"),
                *(f"{other.mean:.4f}" for other in others),
            ]
        )
    header = ["dataset", "method", "bits", "seed", names[0], f"{names[0]} low-high", *names[1:]]
    return _table(header, lines, n_left=2)


def describe(name: str) -> str:
    """Tell what there is to know about a name or file.

    Parameters
    ----------
    name : str
        A dataset (name or file), a codes file, a method or a metric.

    Returns
    -------
    str
        Lines for people.

    Raises
    ------
    HashbenchError
        If it is none of these.
    """
    if name and Path(name).is_dir():
        raise HashbenchError(f"{name} is a folder; name a file in it.")
    if Path(name).is_file() and not h5py.is_hdf5(name):
        raise HashbenchError(
            f"{name} is no HDF5 file; info tells of those that hashbench writes. Score codes in .npy files with "
            "hashbench evaluate."
        )
    if Path(name).is_file() or name.endswith((".h5", ".hdf5")):
        kind = storage.read_attributes(Path(name)).get("hashbench")
        if kind == "codes":
            return _describe_codes(Path(name))
        if kind == "scores":
            return f"{name}: scores of every query, kept by hashbench to find them again"
        return describe_dataset(storage.read_dataset(Path(name)))
    if name in registry.dataset_names():
        path = dataset_path(name)
        if path.is_file():
            return describe_dataset(storage.read_dataset(path))
        adapter = registry.get_dataset(name)
        return f"{name}: {adapter.summary}\nnot prepared yet: hashbench prepare {name}"
    if name in registry.method_names():
        return _describe_method(name)
    try:
        metric = get_metric(name)
    except HashbenchError:
        if name in FAMILIES:
            return f"{name}\n{FAMILIES[name].summary}\nsource: {FAMILIES[name].source}"
        raise HashbenchError(
            f"{name!r} is no dataset, method, metric or file. See: hashbench list datasets|methods|metrics."
        ) from None
    return f"{metric.name}\n{metric.family.summary}\nsource: {metric.family.source}"


def describe_dataset(dataset: Dataset) -> str:
    """Tell what a dataset holds.

    Parameters
    ----------
    dataset : Dataset
        The dataset.

    Returns
    -------
    str
        Lines for people.
    """
    facts = {
        "dataset": dataset.name,
        **{key: dataset.about[key] for key in sorted(dataset.about, key=_about_rank)},
        "items": f"{dataset.n_samples:,} x {dataset.features.shape[1]} {dataset.features_name}",
        "split": (
            f"{len(dataset.query):,} queries, {len(dataset.database):,} database, {len(dataset.train):,} training"
        ),
        "affinity": dataset.rule,
        "fingerprint": dataset.fingerprint,
    }
    if dataset.rule == "distance":
        thresholds = np.sqrt(dataset.rule_params["squared_thresholds"])
        steps = zip(dataset.rule_params["levels"], thresholds, strict=True)
        facts["affinity"] += ": " + ", ".join(f"level {level} up to {step:.4f}" for level, step in steps)
    if dataset.labels is not None:
        facts["classes"] = _describe_labels(dataset)
    facts["duplicates"] = _describe_duplicates(dataset)
    return _facts(facts)


def _about_rank(key: str) -> tuple[int, str]:
    first = ("summary", "protocol", "source", "licence", "citation")
    return first.index(key) if key in first else len(first), key


def _describe_labels(dataset: Dataset) -> str:
    labels = np.asarray(dataset.labels)
    counts = np.unique(labels, return_counts=True)[1] if labels.ndim == 1 else labels.sum(axis=0, dtype=np.int64)
    text = f"{len(counts)}, {counts.min():,} to {counts.max():,} items each"
    if labels.ndim == 2:
        text += (
            f", {labels.sum() / len(labels):.2f} labels an item, {int((labels.sum(axis=1) == 0).sum())} items without"
        )
    return text


def _describe_duplicates(dataset: Dataset) -> str:
    rows = np.ascontiguousarray(dataset.features + np.float32(0))  # -0.0 becomes 0.0
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    in_database = int(np.isin(keys[dataset.query], keys[dataset.database]).sum())
    in_train = int(np.isin(keys[dataset.query], keys[dataset.train]).sum())
    return f"{in_database} queries equal a database item, {in_train} a training item"


def _describe_codes(path: Path) -> str:
    with storage.open_codes(path) as codes:
        return _facts(
            {
                "codes": f"{codes.n_bits} bits, {len(codes.query):,} queries, {len(codes.database):,} database items",
                "method": f"{codes.method}, version {codes.method_version}",
                "parameters": canonical_json(dict(codes.params)),
                "seed": str(codes.seed),
                "dataset": f"{codes.dataset} ({codes.features}), content {codes.dataset_fingerprint}",
                "content": codes.content,
                "usage": _describe_usage(code_usage(np.asarray(codes.database[:]), codes.n_bits)),
                "libraries": ", ".join(f"{name} {version}" for name, version in codes.libraries.items()),
                "time": f"{codes.fit_seconds:.3f} s to fit, {codes.encode_seconds:.3f} s to encode",
            }
        )


def _describe_usage(usage: CodeUsage) -> str:
    return (
        f"{usage.n_distinct:,} distinct database codes ({usage.share_of_space:.2%} of the space), the most frequent "
        f"one {usage.largest_bucket:,} times; bit balance {usage.bit_balance:.3f}, "
        f"bit correlation {usage.bit_correlation:.3f}"
    )


def _describe_method(name: str) -> str:
    cls = registry.get_method(name)
    return _facts(
        {
            "method": name,
            "about": registry.method_summary(name),
            "group": cls.group,
            "supervision": cls.supervision,
            "version": str(cls.version),
            "parameters": ", ".join(f"{key}={value}" for key, value in cls().get_params().items()),
        }
    )


def _facts(facts: dict[str, str]) -> str:
    width = max(map(len, facts)) + 2
    return "\n".join(f"{key}:".ljust(width) + value for key, value in facts.items())


def _table(header: list[str], rows: list[list[str]], n_left: int = 1) -> str:
    table = Table(box=rich.box.SIMPLE, pad_edge=False)
    for position, title in enumerate(header):
        table.add_column(title, justify="left" if position < n_left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    text = io.StringIO()
    Console(file=text, width=1000).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")


def _json_values(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN: a mean over no query is null."""
    return {key: None if value != value else value for key, value in values.items()}


def _evaluation(outcome: Outcome) -> Evaluation:
    if outcome.evaluation is None:
        raise ValueError(f"{outcome.job} has no scores")
    return outcome.evaluation
