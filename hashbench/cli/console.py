"""What people see: tables of scores, and descriptions."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import rich.box
from rich.console import Console
from rich.table import Table

from hashbench.adapter import Options, Own
from hashbench.cli.descriptions import describe_dataset
from hashbench.cli.progress import Progress
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import Job
from hashbench.pipeline.preparation import prepare, prepare_own
from hashbench.pipeline.runner import Outcome, run
from hashbench.scoring.evaluation import Evaluation, Summary
from hashbench.store.results import COLUMNS, csv_text


def run_jobs(jobs: Sequence[Job], metrics: Sequence[str], *, force: bool, resume: bool = False) -> Iterator[Outcome]:
    """Run jobs with their progress on stderr.

    Parameters
    ----------
    jobs : sequence of Job
        What to run.
    metrics : sequence of str
        Metrics; if there are none, the jobs end with their codes.
    force : bool
        Repeat finished steps.
    resume : bool, default=False
        Go on with interrupted training where its last epoch ended.

    Yields
    ------
    Outcome
        Of each job that was not refused.

    Raises
    ------
    HashbenchError
        If all jobs were refused, or, after the last one, if any failed.
    """
    refusals, n_failed = [], 0
    with Progress(len(jobs)) as progress:
        progress.start(str(jobs[0]))
        outcomes = run(jobs, metrics, force=force, resume=resume, on_progress=progress.part)
        for position, outcome in enumerate(outcomes, start=1):
            if outcome.refusal:
                n_failed += outcome.has_failed
                if len(jobs) > 1:  # a single one ends in an error that says why
                    reason = outcome.refusal if outcome.refusal not in refusals else "As above."
                    progress.done(f"{outcome.job}: {'failed' if outcome.has_failed else 'refused'}. {reason}")
                refusals.append(outcome.refusal)
            else:
                yield outcome
                progress.done(f"{outcome.job}: {', '.join(outcome.notes)}")
            if position < len(jobs):
                progress.start(str(jobs[position]))
    if len(refusals) == len(jobs):
        raise HashbenchError(
            refusals[0] if len(jobs) == 1 else f"none of the {len(jobs)} jobs could run; the reasons are above."
        )
    if n_failed:
        raise HashbenchError(f"{n_failed} of the {len(jobs)} jobs failed; the reasons are above.")


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
    text = format_table(
        ["metric", "mean", "low", "high"],
        [[name, *(f"{value:.4f}" for value in values[:3])] for name, values in summary.items()],
    )
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    text += f"\n\n{n_queries} queries; mean over all orders of tied items, low and high over the worst and the best."
    return text + (f"\n{evaluation.n_undefined} of them {_fate(evaluation)}" if evaluation.n_undefined else "")


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
    text = format_table(header, lines, n_left=2)
    by_dataset = {outcome.rows[0].dataset: _evaluation(outcome) for outcome in outcomes}
    notes = [
        f"\n{found.n_undefined} of {len(next(iter(found.scores.values())).mean)} queries of {name} {_fate(found)}"
        for name, found in by_dataset.items()
        if found.n_undefined
    ]
    return text + "".join(["\n", *notes] if notes else [])


def _fate(evaluation: Evaluation) -> str:
    is_counted = not any(np.isnan(scores.mean).any() for scores in evaluation.scores.values())
    fate = "count by the papers' convention" if is_counted else "are left out"
    return f"have no relevant item in the database and {fate}."


def prepare_all(
    names: Sequence[str], kinds: Sequence[str], options: Options, own: Own | None, *, force: bool
) -> Iterator[str]:
    """Prepare datasets with their progress on stderr.

    Parameters
    ----------
    names : sequence of str
        Datasets.
    kinds : sequence of str
        Kinds of features; each dataset's default if there are none.
    options : Options
        What the user chose.
    own : Own or None
        The user's own data instead of named datasets.
    force : bool
        Make them even if they are there.

    Yields
    ------
    str
        What became of each dataset, and what it holds.
    """
    with Progress(0) as progress:
        options = replace(options, on_progress=progress.work)
        for spec in [f"{name}:{kind}" if kind else name for name in names for kind in kinds or [""]]:
            dataset, path, is_new = prepare(spec, options, force=force)
            yield f"{'prepared' if is_new else 'reused'} {path}\n{describe_dataset(dataset)}"
        if own is not None:
            dataset, path = prepare_own(own, replace(options, features=(*kinds, None)[0]))
            yield f"prepared {path}\n{describe_dataset(dataset)}"


def format_table(header: list[str], rows: list[list[str]], n_left: int = 1) -> str:
    """Lay out a table for a terminal.

    Parameters
    ----------
    header : list of str
        Titles of the columns.
    rows : list of list of str
        Cells.
    n_left : int, default=1
        How many columns are flush left, the first ones; the others are flush right.

    Returns
    -------
    str
        The text, without a final newline.
    """
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
