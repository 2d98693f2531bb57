"""The command that chooses settings: tune."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click import IntRange
from cloup import option, option_group

from hashbench.cli import options
from hashbench.cli.outputs import echo
from hashbench.errors import HashbenchError, counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hashbench.pipeline.tuning import Choice
    from hashbench.reports.formatting import Records


@cloup.command()
@option_group(
    "What to tune",
    options.METHOD,
    options.BITS,
    options.DATASET,
    options.METRIC,
    option("--trials", "n_trials", type=IntRange(1), default=9, help="Settings to try per method, defaults included."),
    options.random_seeds("Seed of the held-out items, of the settings drawn and of training, repeatable."),
    options.parameters("one value is fixed, and each of several is tried"),
)
@option_group("How to run", options.DEVICE, options.JOBS, options.RESUME, options.LOCK_TIMEOUT)
@option_group(
    "Output",
    options.folder(
        "--output",
        "-o",
        default=Path("tuning"),
        help="Folder for rows of all trials, and grid.toml, the chosen settings for `hashbench run --grid`.",
    ),
)
def tune(metrics: tuple[str, ...], n_trials: int, n_jobs: int, resume: bool, output: Path, **grid: Any) -> None:
    """Choose settings on held-out training items, never on queries, with the same number of trials for each method.

    A fifth of the training items is held out, and methods learn from the others. Each method goes from its defaults to
    better settings, one parameter at a time. It declares the values that are tried; values that --param lists replace
    them. With one value, --param fixes a parameter. grid.toml keeps the default settings of a method unless the best
    lead by more than 0.01.

    \b
    hashbench tune --dataset mine --method hashnet --method dpsh --bits 16 --bits 48 --trials 9
    hashbench run --grid tuning/grid.toml
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.console import warn_of
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline import tuning
    from hashbench.scoring.metrics import get_metric

    cluster = options.cluster()
    if cluster is not None and n_jobs != 1:
        raise click.UsageError("`hashbench on` runs one trial on each worker; leave --jobs out.")
    names = list(dict.fromkeys(get_metric(name).name for name in metrics or ("AP",)))
    tuning.check_folder(output)
    study = options.study_of(names, **grid)
    search = tuning.Search(study, n_trials, names)
    for sentence in search.about_effort("--trials "):
        click.echo(sentence, err=True)
    with ProgressBar(search.n_jobs) as progress:
        for spec in search.datasets:
            warn_of(spec, progress)
        progress.start_job("trials")
        for outcome in search.run(output, n_jobs, resume=resume, on_progress=progress.update, cluster=cluster):
            progress.finish_job(f"{outcome.job}: {tuning.shown(outcome, names)}", is_new=outcome.is_new)
    choices = tuning.conclude(search, output)
    echo(_records(choices, names).to_text("table"))
    if edges := tuning.about_edges(search, choices):
        echo(edges)
    if untuned := tuning.about_untuned(choices):
        click.echo(untuned, err=True)
    advice = f"Run the chosen settings: hashbench run --grid {output / tuning.GRID}"
    is_chosen = any(tuning.variant_of(choice) is not None for choice in choices)
    click.echo(f"Rows of finished trials are in {output}.{f' {advice}' * is_chosen}", err=True)
    if left_out := tuning.about_left_out(choices):
        raise HashbenchError(left_out)


def _records(choices: "Sequence[Choice]", metrics: "Sequence[str]") -> "Records":
    """Return the best settings of each method, what they gain over the default ones, and which of both were chosen."""
    from hashbench.pipeline.tuning import LEAD, criterion, less_is_better
    from hashbench.reports.formatting import Records, Table

    columns = (
        "method | best settings | chosen | default {default_score:.4f} | best {best_score:.4f} | margin {lead:+.4f} | "
        "trials {n_trials} | failed {n_failed}"
    )
    rows = [{**vars(choice), "best settings": _settings(choice.best), "chosen": _chosen(choice)} for choice in choices]
    direction = "less" if less_is_better(metrics) else "more"
    notes = [
        f"Mean of {criterion(metrics)} of held-out training items, among themselves and to those learned from; "
        f"{direction} is better.",
        f"The default settings are chosen unless the best lead by more than {LEAD}; settings with a failed trial never "
        "are.",
    ]
    if len({choice.n_trials for choice in choices}) > 1:
        efforts = ", ".join(f"{choice.method} {counted(choice.n_trials, 'trial')}" for choice in choices)
        notes.append(
            f"The effort is not equal: {efforts}. Declare more values in the methods, or list them in --param."
        )
    return Records([Table(columns, rows, n_left=3), "\n".join(notes)])


def _settings(params: "Mapping[str, Any] | None") -> str | None:
    return None if params is None else " ".join(f"{key}={value}" for key, value in params.items()) or "the default"


def _chosen(choice: "Choice") -> str | None:
    """Return which settings of a method are in the grid file."""
    if choice.params is None:
        return None
    return "default" if choice.params != choice.best or choice.lead == 0 else "best"
