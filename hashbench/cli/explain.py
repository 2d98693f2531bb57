"""The command that shows where a number comes from: explain."""

from pathlib import Path
from typing import Any

import click
import cloup
from cloup import option, option_group

from hashbench.cli import inputs, options
from hashbench.cli.outputs import echo


@cloup.command()
@inputs.CODES
@inputs.own_codes_group(inputs.BITS, inputs.EXCLUDE_SELF)
@inputs.RELEVANCE
@option_group("Run files", inputs.RUN)
@option_group(
    "What to explain",
    inputs.DATASET,
    options.METRIC_TO_SCORE,
    options.several(
        "--script",
        names="scripts",
        show_default="all with the metric",
        help="Script, repeatable; see `hashbench list scripts`.",
    ),
    option(
        "--database-order",
        metavar="given|by-class|shuffled[:SEED]",
        show_default="given",
        help="Order of the database, which breaks ties; some repositories sort CIFAR-10 by class.",
    ),
    option(
        "--value",
        metavar="NUMBER",
        help="Value to look for, in the metric; without --metric, in many metrics, cuts and database orders.",
    ),
)
@option_group("Output", options.output_format("table", "markdown", "json"))
@cloup.constraint(options.NotWith("--run"), ["codes", "dataset", "database_order"])
def explain(
    codes: Path | None,
    dataset: str | None,
    run: tuple[Path, Path] | None,
    metrics: tuple[str, ...],
    database_order: str | None,
    scripts: tuple[str, ...],
    value: str | None,
    form: str,
    **own: Any,
) -> None:
    """Show why another script gives another number for the same codes.

    Print the exact value, the value of each script that people use, and the causes of the difference. One convention
    is switched at a time, and the shares add up. Pass CODES.h5, or your own codes as to evaluate. With a run and its
    qrels, the scripts are trec_eval, pytrec_eval, ir_measures and ranx.

    \b
    hashbench explain CODES.h5 --metric AP@1000 --database-order by-class
    hashbench explain CODES.h5 --value 0.731
    hashbench explain --run run.txt qrels.txt --metric AP
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.explain.explained import explain_lists, explain_problem
    from hashbench.scoring.compilation import reporting_compilation

    with ProgressBar(short=True) as progress, reporting_compilation(progress.update):
        if run is not None:
            explained = explain_lists(*inputs.read_run_files(run, {}), metrics, scripts, value)
        else:
            problem = inputs.read_problem(codes, own, dataset, {}).problem
            explained = explain_problem(problem, metrics, scripts, database_order, value, progress.update)
    for note in explained.notes:
        click.echo(note, err=True)
    echo(explained.to_text(form))
