"""What people see of runs: their progress, and tables of scores."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hashbench.cli.progress import Progress
from hashbench.errors import HashbenchError, counted
from hashbench.reports.formatting import json_number, markdown_table, plain_table, sheet_text

if TYPE_CHECKING:
    from hashbench.adapter import Options, OwnData
    from hashbench.dataset import Dataset
    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.grid import Job
    from hashbench.pipeline.runner import Demands, Outcome
    from hashbench.scoring.evaluation import Evaluation


def run_jobs(
    jobs: Sequence["Job"],
    metrics: Sequence[str],
    demands: "Demands",
    n_jobs: int = 1,
    cluster: "Cluster | None" = None,
) -> Iterator["Outcome"]:
    """Run jobs, with progress on stderr, ``n_jobs`` at a time or on a cluster; yield what became of those not refused.

    Without metrics they end with their codes. Raises HashbenchError if all jobs were refused, or, after the last one,
    if any failed.
    """
    from hashbench.pipeline.workers import run_side_by_side

    if demands.resume and not any(hasattr(job.estimator, "session") for job in jobs):
        names = ", ".join(dict.fromkeys(job.method for job in jobs))
        raise HashbenchError(f"--resume goes on with training in epochs, and {names} has none. Leave it out.")
    if not jobs:  # of a part that has none
        return
    refusals, n_failed = [], 0
    unwarned = {job.dataset for job in jobs}
    with Progress(len(jobs)) as progress:
        is_serial = n_jobs == 1 and cluster is None
        progress.start(str(jobs[0]) if is_serial else "jobs")
        outcomes = run_side_by_side(jobs, metrics, n_jobs, demands, progress.tell, cluster)
        for position, outcome in enumerate(outcomes, start=1):
            if outcome.refusal:
                n_failed += outcome.has_failed
                if len(jobs) > 1:  # a single one ends in an error that says why
                    reason = outcome.refusal if outcome.refusal not in refusals else "As above."
                    progress.done(f"{outcome.job}: {'failed' if outcome.has_failed else 'refused'}. {reason}")
                refusals.append(outcome.refusal)
            else:
                if outcome.job.dataset in unwarned:  # it is prepared by now
                    unwarned.remove(outcome.job.dataset)
                    warn_of(outcome.job.dataset, progress)
                yield outcome
                progress.done(f"{outcome.job}: {', '.join(outcome.notes)}", is_new=outcome.is_new)
            if position < len(jobs) and is_serial:
                progress.start(str(jobs[position]))
    if len(refusals) == len(jobs):
        raise HashbenchError(
            refusals[0] if len(jobs) == 1 else f"none of the {len(jobs)} jobs could run; the reasons are above."
        )
    if n_failed:
        raise HashbenchError(f"{n_failed} of the {len(jobs)} jobs failed; the reasons are above.")


def warn_of(spec: str, progress: Progress) -> None:
    """Print that queries of a prepared dataset have copies, if `prepare` found some."""
    from hashbench.pipeline.preparation import find_warning

    if warning := find_warning(spec):
        progress.say(f"Warning: in {spec}, {warning}")


def format_evaluation(evaluation: "Evaluation", form: str, ordered: str = "database") -> str:
    """Write scores, without a final newline: table, markdown or latex (four decimals), csv (six), json (all).

    ``ordered`` is what ties are ordered by: the database, or the documents of a run.
    """
    summary = evaluation.summary
    if form == "json":
        content = {
            name: {key: None if value is None else json_number(value) for key, value in values.by_name.items()}
            for name, values in summary.items()
        }
        return json.dumps(content, indent=2)
    if form == "csv":
        rows = [[name, *map(_six, values.by_name.values())] for name, values in summary.items()]
        return sheet_text(("metric", *next(iter(summary.values())).by_name), rows).rstrip("\n")
    n_orders = next(map(len, evaluation.random_orders.values()), 0)
    lines = [
        [
            *(name, f"{_four(values.mean)} ± {_five(values.tie_sd)}"),
            *([] if values.tie_sd_measured is None else [_five(values.tie_sd_measured)]),
            *(_four(values.low), _four(values.high)),
        ]
        for name, values in summary.items()
    ]
    cells = ["metric", "mean ± sd", *(["measured sd"] if n_orders else []), "low", "high"], lines
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    notes = [
        f"{counted(n_queries, 'query', 'queries')}; mean over all orders of tied items.",
        *luck_and_worst_case(ordered),
    ]
    if n_orders:
        notes.insert(2, f"measured sd: what {n_orders:,} such orders show.")
    notes += [f"{evaluation.n_undefined} of the queries {_fate(evaluation)}"] * bool(evaluation.n_undefined)
    if form == "latex":
        from hashbench.reports.tables.latex import tabular

        return "\n".join([*(f"% {note}" for note in notes), *tabular(*cells)])
    text = (markdown_table if form == "markdown" else plain_table)(*cells)
    return "\n".join([text, "", *notes])


def luck_and_worst_case(ordered: str = "database") -> tuple[str, str]:
    """Return what the columns sd, low and high of a table are, a line each."""
    return (
        f"sd: luck, the standard deviation of the mean over random orders of the {ordered}, each the same for all "
        "queries (an estimate).",
        "low, high: the worst case, the ties of each query on its own at their worst and best; no one order need reach "
        "it.",
    )


def _four(value: float) -> str:
    """Show four decimals of the six that results have, so that tables show the same."""
    return f"{float(f'{value:.6f}'):.4f}"


def _five(value: float) -> str:
    """Show five decimals of a deviation; a dash if it is not known."""
    return "-" if value != value else f"{value:.5f}"


def _six(value: float | None) -> str:
    """Show six decimals, of a count none; nothing of what was not asked for."""
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.6f}"


def format_outcomes(outcomes: Sequence["Outcome"], form: str, *, is_grid: bool = True) -> str:
    """Write the scores of a grid, all scored, likewise; a single outcome need be no grid, then its job is not named."""
    if form == "csv":
        from hashbench.store.result_rows import COLUMNS

        return sheet_text(COLUMNS, (row for outcome in outcomes for row in outcome.rows)).rstrip("\n")
    if form == "json":
        content = [
            {
                **{"dataset": outcome.rows[0].dataset, "method": outcome.job.method},
                **{"n_bits": outcome.job.n_bits, "seed": outcome.job.seed, "params": dict(outcome.job.params)},
                "scores": json.loads(format_evaluation(_evaluation(outcome), "json")),
                **({"held_out": {outcome.held_out[0]: outcome.held_out[1]}} if outcome.held_out else {}),
            }
            for outcome in outcomes
        ]
        return json.dumps(content, indent=2)
    listed = {outcome.rows[0].dataset: outcome.n_neighbours for outcome in outcomes if outcome.n_neighbours}
    last = "".join(
        f"\nOf each query of {name} the {n:,} listed neighbours are relevant, no other item."
        for name, n in listed.items()
    )
    if any(outcome.held_out for outcome in outcomes):
        shown = "" if is_grid else f" {_held_out(outcomes[0])},"
        last = f"\nheld out:{shown} the training items that chose the epoch, as queries to the other ones.{last}"
    return (_grid_table(outcomes) if is_grid else format_evaluation(_evaluation(outcomes[0]), "table")) + last


def _held_out(outcome: "Outcome") -> str:
    return f"{outcome.held_out[0]} {_four(outcome.held_out[1])}" if outcome.held_out else "-"


def _grid_table(outcomes: Sequence["Outcome"]) -> str:
    names = list(_evaluation(outcomes[0]).scores)
    lines, has_held_out = [], any(outcome.held_out for outcome in outcomes)
    for outcome in outcomes:
        first, *others = _evaluation(outcome).summary.values()
        label = " ".join([outcome.job.method, *(f"{key}={value}" for key, value in outcome.job.params.items())])
        lines.append(
            [
                *(outcome.rows[0].dataset, label, str(outcome.job.n_bits), str(outcome.job.seed)),
                *(f"{_four(first.mean)} ± {_five(first.tie_sd)}", f"{_four(first.low)}-{_four(first.high)}"),
                *(_four(other.mean) for other in others),
                *([_held_out(outcome)] if has_held_out else []),
            ]
        )
    header = ["dataset", "method", "bits", "seed", f"{names[0]} ± sd", f"{names[0]} low-high", *names[1:]]
    header += ["held out"] * has_held_out
    text = plain_table(header, lines, n_left=2, is_wrapped=True)
    by_dataset = {outcome.rows[0].dataset: _evaluation(outcome) for outcome in outcomes}
    notes = [f"\n{note}" for note in luck_and_worst_case()] + [
        f"\n{found.n_undefined} of {len(next(iter(found.scores.values())).mean)} queries of {name} {_fate(found)}"
        for name, found in by_dataset.items()
        if found.n_undefined
    ]
    return text + "".join(["\n", *notes])


def _fate(evaluation: "Evaluation") -> str:
    is_counted = not any(np.isnan(scores.mean).any() for scores in evaluation.scores.values())
    fate = "count by the papers' convention" if is_counted else "are left out"
    return f"have no relevant item in the database and {fate}."


def prepare_all(
    names: Sequence[str], kinds: Sequence[str], options: "Options", own: "OwnData | None", *, force: bool
) -> Iterator[str]:
    """Prepare datasets with their progress on stderr, and tell what became of each and what it holds.

    Without kinds of features each dataset has its default one; ``own`` are the user's data instead of named ones.
    """
    from hashbench.cli.descriptions import describe_dataset
    from hashbench.pipeline.preparation import prepare, prepare_own
    from hashbench.sources.inspection import WARNING

    def told(dataset: "Dataset", what: str) -> str:
        if WARNING in dataset.about:
            progress.say(f"Warning: in {dataset.name}, {dataset.about[WARNING]}")
        return f"{what}\n{describe_dataset(dataset)}"

    with Progress() as progress:
        options = replace(options, on_progress=progress.tell)
        for spec in [f"{name}:{kind}" if kind else name for name in names for kind in kinds or [""]]:
            dataset, path, how = prepare(spec, options, force=force)
            yield told(dataset, f"{how or 'reused'} {path}")
        if own is not None:
            dataset, path = prepare_own(own, replace(options, features=(*kinds, None)[0]))
            yield told(dataset, f"prepared {path}")


def _evaluation(outcome: "Outcome") -> "Evaluation":
    if outcome.evaluation is None:
        raise ValueError(f"{outcome.job} has no scores")
    return outcome.evaluation
