"""The command that chooses settings: tune."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hashbench.cli.options import (
    BITS,
    DATASET,
    DEVICE,
    JOBS,
    LOCK_TIMEOUT,
    METHOD,
    METRIC,
    PARAM,
    Chosen,
    OneEach,
    on_workers,
)
from hashbench.errors import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.tuning import Choice, Rows


@click.command()
@METHOD
@BITS
@DATASET
@METRIC
@click.option(
    *("--trials", "n_trials"),
    type=click.IntRange(1),
    default=9,
    show_default=True,
    help="Number of settings to try for each method, its default ones included.",
)
@click.option(
    *("--seed", "seeds"),
    type=OneEach(click.IntRange(0, 2**32 - 1)),
    multiple=True,
    help="Seed of the held-out items, of the settings drawn and of training, repeatable. [0]",
)
@PARAM
@DEVICE
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("tuning"),
    show_default=True,
    help="Folder for trials.csv, all trials, and grid.toml, the chosen settings for `hashbench run --grid`.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Repeat no trial that trials.csv holds, failed ones included, and go on with interrupted training.",
)
@JOBS
@on_workers
@LOCK_TIMEOUT
def tune(
    methods: tuple[str, ...],
    n_bits: tuple[int, ...],
    datasets: tuple[str, ...],
    metrics: tuple[str, ...],
    n_trials: int,
    seeds: tuple[int, ...],
    params: tuple[str, ...],
    output: Path,
    resume: bool,
    n_jobs: int,
    cluster: "Cluster | None",
) -> None:
    """Choose settings on held-out training items, never on queries, with the same number of trials for each method.

    A fifth of the training items is held out, and methods learn from the others. Each method declares the values that
    are tried; if --param lists values, only these are. With one value, --param fixes a parameter. grid.toml keeps the
    default settings of a method unless the best lead by more than 0.01.

    \b
    hashbench tune --dataset mine --method hashnet --method dpsh --bits 16 --bits 48 --trials 9
    hashbench run --grid tuning/grid.toml
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.console import warn_of
    from hashbench.cli.progress import Progress
    from hashbench.pipeline.tuning import (
        GRID,
        TRIALS,
        check_folder,
        conclude,
        numbers_of_listed,
        plan,
        run_trials,
        shown,
    )
    from hashbench.scoring.metrics import get_metric

    if cluster is not None and n_jobs != 1:
        raise click.UsageError("--workers runs one trial on each worker; leave --jobs out.")
    names = list(dict.fromkeys(get_metric(name).name for name in metrics or ("AP",)))
    table, file = output / TRIALS, output / GRID
    check_folder(output)
    study = Chosen(None, methods, n_bits, seeds, datasets, params).study(names)
    trials = plan(study, n_trials)
    for method, number in numbers_of_listed(study, n_trials).items():
        click.echo(f"{method}: {n_trials} of {number} settings are tried; --trials {number} tries all.", err=True)
    rows: Rows = {}
    with Progress(len(trials)) as progress:
        for spec in dict.fromkeys(trial.dataset for trial in trials):
            warn_of(spec, progress)
        progress.start("trials")
        done = run_trials(trials, names, table, n_jobs, resume=resume, on_progress=progress.tell, cluster=cluster)
        for trial, found, is_new in done:
            rows |= found
            progress.done(f"{trial}: {', '.join(dict.fromkeys(map(shown, found.values())))}", is_new=is_new)
    click.echo(_format(conclude(study, trials, names, rows, output), names))
    click.echo(f"Trials are in {table}, the chosen settings in {file}: hashbench run --grid {file}", err=True)


def _format(choices: "Sequence[Choice]", metrics: "Sequence[str]") -> str:
    """Lay out the best settings of each method, what they gain over the default ones, and which of both were chosen."""
    from hashbench.pipeline.tuning import LEAD, criterion, less_is_better
    from hashbench.reports.formatting import plain_table

    lines = []
    for choice in choices:
        settings = "-" if choice.best is None else " ".join(f"{key}={value}" for key, value in choice.best.items())
        scores = (f"{choice.default_score:.4f}", f"{choice.best_score:.4f}", f"{choice.lead:+.4f}")
        lines.append(
            [
                choice.method,
                settings or "the default",
                _chosen(choice),
                *(score.replace("+nan", "-").replace("nan", "-") for score in scores),
                str(choice.n_trials),
                str(choice.n_failed),
            ]
        )
    header = ["method", "best settings", "chosen", "default", "best", "margin", "trials", "failed"]
    direction = "less" if less_is_better(metrics) else "more"
    notes = [
        f"Mean of {criterion(metrics)} of held-out training items, among themselves and to those learned from; "
        f"{direction} is better.",
        f"The default settings are chosen unless the best lead by more than {LEAD}; settings with a failed trial never "
        "are.",
    ]
    if len({choice.n_trials for choice in choices}) > 1:
        told = ", ".join(f"{choice.method} {counted(choice.n_trials, 'trial')}" for choice in choices)
        notes.append(
            f"The effort is not equal: {told}. Let each method declare enough values, or give them by --param."
        )
    return "\n".join([plain_table(header, lines, n_left=3), "", *notes])


def _chosen(choice: "Choice") -> str:
    """Return which settings of a method are in the grid file."""
    if choice.params is None:
        return "-"
    return "default" if choice.params != choice.best or choice.lead == 0 else "best"
