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
    help="Folder for trials.csv, all trials, and grid.toml, the best settings for `hashbench run --grid`.",
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

    A fifth of the training items is held out, and methods learn from the others. --param fixes a parameter, or with
    several values has these tried; of other parameters those values are tried that the method declares.

    \b
    hashbench tune --dataset mine --method hashnet --method dpsh --bits 16 --bits 48 --trials 9
    hashbench run --grid tuning/grid.toml
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.console import warn_of
    from hashbench.cli.progress import Progress
    from hashbench.pipeline.tuning import GRID, TRIALS, conclude, plan, read_trials, run_trials, shown
    from hashbench.scoring.metrics import get_metric
    from hashbench.store.files import check_output

    if cluster is not None and n_jobs != 1:
        raise click.UsageError("--workers runs one trial on each worker; leave --jobs out.")
    names = list(dict.fromkeys(get_metric(name).name for name in metrics or ("AP",)))
    table, file = output / TRIALS, output / GRID
    check_output(table)
    read_trials(table)  # a file that cannot be added to is told before any work
    study = Chosen(None, methods, n_bits, seeds, datasets, params).study(names)
    trials = plan(study, n_trials)
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
    click.echo(f"Trials are in {table}, the best settings in {file}: hashbench run --grid {file}", err=True)


def _format(choices: "Sequence[Choice]", metrics: "Sequence[str]") -> str:
    """Lay out the best settings of each method, with what they gain over the default ones."""
    from hashbench.reports.formatting import plain_table

    lines = []
    for choice in choices:
        settings = "-" if choice.params is None else " ".join(f"{key}={value}" for key, value in choice.params.items())
        scores = (f"{choice.default:.4f}", f"{choice.score:.4f}", f"{choice.score - choice.default:+.4f}")
        lines.append(
            [
                choice.method,
                settings or "the default",
                *(score.replace("+nan", "-").replace("nan", "-") for score in scores),
                str(choice.n_trials),
                str(choice.n_failed),
            ]
        )
    text = plain_table(["method", "best settings", "default", "best", "margin", "trials", "failed"], lines, n_left=2)
    notes = [f"Mean of {', '.join(metrics)} of held-out training items, among themselves and to those learned from."]
    if len({choice.n_trials for choice in choices}) > 1:
        told = ", ".join(f"{choice.method} {counted(choice.n_trials, 'trial')}" for choice in choices)
        notes.append(
            f"The effort is not equal: {told}. Let each method declare enough values, or give them by --param."
        )
    return "\n".join([text, "", *notes])
