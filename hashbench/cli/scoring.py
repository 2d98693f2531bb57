"""The commands that score codes of any origin, or a run, and count candidates: evaluate, candidates."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click import IntRange
from cloup import option, option_group

from hashbench.cli import inputs, options
from hashbench.cli.outputs import FIGURES, STDOUT, FigurePath, check_installed, echo, save_figure, target_of, write

if TYPE_CHECKING:
    import pandas as pd


@cloup.command()
@inputs.CODES
@inputs.own_codes_group(
    inputs.BITS,
    inputs.DISTANCE,
)
@inputs.RELEVANCE
@inputs.vectors_group()
@option_group(
    "Real-valued queries",
    inputs.QUERY_OUTPUTS,
    constraint=inputs.ONLY_OWN,
)
@option_group(
    "Run files",
    inputs.RUN,
    option("--complete", is_flag=True, help="Count queries of QRELS without a list as 0, like trec_eval -c."),
    constraint=options.OnlyWith("--run"),
)
@option_group(
    "What to score",
    inputs.DATASET,
    options.METRIC_TO_SCORE,
    inputs.EXCLUDE_SELF,
    inputs.UNDEFINED_QUERIES,
    option(
        "--random-orders",
        type=IntRange(2),
        help="Number of random orders of the database, or of a run's documents, to score as well, with a fixed seed; "
        "their deviation is printed.",
    ),
)
@option_group(
    "Output",
    options.output_format("table", "csv", "json", "markdown"),
    option("--per-query", type=options.OUTPUT, help="CSV file for the scores of every query; - for stdout."),
    option(
        "--curves",
        type=FigurePath(or_numbers=True),
        help="CSV file (- for stdout) for precision and recall, with low and high over tie orders, at each Hamming "
        "radius and at up to 50 ranks; or a figure by rank: .svg, .png or .pdf.",
    ),
)
@cloup.constraint(options.NotWith("--run"), ["codes", "dataset", "curves"])
@cloup.constraint(options.NotWith("CODES.h5"), ["exclude_self"])
def evaluate(
    codes: Path | None,
    dataset: str | None,
    run: tuple[Path, Path] | None,
    complete: bool,
    exclude_self: bool,
    metrics: tuple[str, ...],
    undefined: str,
    random_orders: int | None,
    form: str,
    per_query: Path | None,
    curves: Path | None,
    **own: Any,
) -> None:
    """Score CODES.h5, your own codes, or a TREC run, exactly over all orders of tied items.

    \b
    hashbench evaluate --query-codes q.npy --database-codes d.npy --query-labels ql.npy --database-labels dl.npy
    hashbench evaluate --query-codes c.mat:B_test --database-codes c.mat:B_train --dataset digits
    hashbench evaluate --run run.txt qrels.txt
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench._typing import silent
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.evaluation import DEFAULT_METRICS

    outputs, progress = {"--per-query": per_query, "--curves": curves}, ProgressBar()
    if per_query is not None and per_query.suffix in (".parquet", ".tsv", ".xlsx"):
        raise click.UsageError(f"--per-query writes CSV, got {per_query.name}; name it {per_query.stem}.csv.")
    check_installed(*(["pandas"] if per_query or curves else []))
    if run is not None:
        problem = inputs.read_run_problem(run, outputs, complete=complete, exclude_self=exclude_self)
    else:
        own["exclude_self"] = exclude_self
        counting = {"cluster": options.cluster(), "on_progress": progress.update}
        with progress:
            read = inputs.read_problem(codes, own, dataset, outputs, **counting)
        read.check_metrics(metrics or DEFAULT_METRICS)
        problem = read.problem
    how: dict[str, Any] = {"undefined": undefined, "random_orders": random_orders or 0}
    if random_orders or (problem.ranking.by_radius and not problem.codes.is_whole):  # which may take long
        how["on_progress"] = progress.update
    with progress, reporting_compilation(progress.update):
        evaluation = problem.evaluate(metrics or DEFAULT_METRICS, **how)
        points = problem.curves(how.get("on_progress", silent)) if curves is not None else None
    for note in evaluation.notes:
        click.echo(note, err=True)
    if per_query is not None:
        write(per_query, evaluation.per_query.to_csv(index=False, lineterminator="\n"))
    if curves is not None and points is not None:
        sizes = problem.codes.n_bits if problem.ranking.by_radius else 0, problem.ranking.n_items
        _write_curves(curves, points, codes.stem if codes else "codes", sizes)
    is_stdout_taken = any(path and target_of(path) == STDOUT for path in outputs.values())
    records = console.evaluation_records(evaluation, "documents" if run else "database")
    echo(records.to_text(form), err=is_stdout_taken)


def _write_curves(output: Path, points: "pd.DataFrame", name: str, sizes: tuple[int, int]) -> None:
    if output.suffix.lower() not in FIGURES:
        write(output, points.to_csv(index=False, lineterminator="\n"))
        return
    from hashbench.reports.plots.result_figures import draw_curves

    save_figure(output, draw_curves(points, name, *sizes))


@cloup.command()
@inputs.CODES
@inputs.own_codes_group(inputs.BITS, inputs.EXCLUDE_SELF, constraint=options.NotWith("CODES.h5"))
@inputs.relevance_group(options.NotWith("CODES.h5"))
@option_group(
    "What to look for",
    inputs.DATASET,
    option(
        "--metric",
        metavar="METRIC",
        required=True,
        help="Recall to reach after re-ranking, such as R@10: the share of a query's relevant items, at most k.",
    ),
    option(
        "--wanted-recall",
        type=options.Number(0, 1, min_open=True),
        multiple=True,
        required=True,
        help="How much of it, such as .95, repeatable.",
    ),
)
@option_group("Output", options.output_format("table", "csv", "json", "markdown"))
def candidates(
    codes: Path | None, dataset: str | None, metric: str, wanted_recall: tuple[float, ...], form: str, **own: Any
) -> None:
    """Count how many candidates by Hamming distance a two-stage search must fetch for a recall after re-ranking.

    \b
    hashbench candidates CODES.h5 --metric R@10 --wanted-recall .95
    hashbench candidates --query-codes q.npy --database-codes d.npy --dataset vectors --metric R@10 --wanted-recall .95
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.scoring.candidates import check_wanted, count_candidates
    from hashbench.scoring.compilation import reporting_compilation

    check_wanted(metric, wanted_recall)
    progress = ProgressBar()
    with progress, reporting_compilation(progress.update):
        counting = {"cluster": options.cluster(), "on_progress": progress.update}
        problem = inputs.read_problem(codes, own, dataset, {}, **counting).problem
        counts, evaluation = count_candidates(problem.codes, metric, wanted_recall, progress.update)
    for note in [*problem.notes, *evaluation.notes]:
        click.echo(note, err=True)
    echo(console.candidate_records(counts, evaluation, metric).to_text(form))
