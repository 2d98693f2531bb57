"""The commands that score codes of any origin, or a run: evaluate, candidates, save, explain."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click import IntRange
from cloup import option, option_group

from hashbench.cli import inputs, options
from hashbench.cli.outputs import (
    FIGURES,
    STDOUT,
    FigurePath,
    check_installed,
    echo,
    refuse_outputs,
    save_figure,
    target_of,
    write,
)

if TYPE_CHECKING:
    import pandas as pd

    from hashbench.pipeline.own_codes import OwnCodes, Saving

_OF_CODES = (
    "--query-codes",
    "--database-codes",
    "--bits",
    "--bit-order",
    "--encoding",
    "--distance",
    "--vectors",
    "--true-distance",
)
_IGNORING = ("exclude_self", "exclude_same_id", "groups", "junk_label")  # options that leave items out of rankings


@cloup.command()
@inputs.CODES
@inputs.own_codes_group(inputs.BITS, inputs.DISTANCE)
@inputs.RELEVANCE
@inputs.vectors_group()
@option_group("Real-valued queries", inputs.QUERY_OUTPUTS, constraint=inputs.ONLY_OWN)
@option_group(
    "Scores instead of codes",
    option(
        "--scores",
        type=options.ARRAY,
        help="Scores of all items of the database for each query, (n_queries, n_database), such as similarities: the "
        "higher, the nearer.",
    ),
    constraint=options.NotWith("CODES.h5", "--run", *_OF_CODES),
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
    options.INTERVAL,
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
@cloup.constraint(options.NotWith("--scores"), ["curves", "query_outputs"])
def evaluate(
    codes: Path | None,
    dataset: str | None,
    scores: str | None,
    run: tuple[Path, Path] | None,
    complete: bool,
    exclude_self: bool,
    metrics: tuple[str, ...],
    undefined: str,
    random_orders: int | None,
    form: str,
    interval: bool,
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
    elif scores is not None:
        own["exclude_self"] = exclude_self
        problem = inputs.read_score_problem(scores, own, dataset, outputs, metrics or DEFAULT_METRICS)
    else:
        own["exclude_self"] = exclude_self
        counting = {"cluster": options.cluster(), "on_progress": progress.update}
        with progress:
            read = inputs.read_problem(codes, own, dataset, outputs, metrics, **counting)
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
    records = console.evaluation_records(evaluation, "documents" if run else "database", with_interval=interval)
    echo(records.to_text(form), err=is_stdout_taken)


def _write_curves(output: Path, points: "pd.DataFrame", name: str, sizes: tuple[int, int]) -> None:
    if output.suffix.lower() not in FIGURES:
        write(output, points.to_csv(index=False, lineterminator="\n"))
        return
    from hashbench.reports.plots.result_figures import draw_curves

    save_figure(output, draw_curves(points, name, *sizes))


@cloup.command()
@inputs.CODES
@inputs.own_codes_group(inputs.BITS, inputs.EXCLUDE_SELF, inputs.QUERY_OUTPUTS, constraint=options.NotWith("CODES.h5"))
@inputs.relevance_group(options.NotWith("CODES.h5"))
@option_group(
    "What to look for",
    inputs.DATASET,
    option(
        "--metric",
        metavar="METRIC",
        required=True,
        help="Recall to reach after re-ranking, such as R@10: the share of a query's relevant items, at most k. With "
        "R@10:dot, candidates are the nearest to the real-valued outputs of queries.",
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
    """Count how many candidates a two-stage search must fetch for a recall after re-ranking.

    \b
    hashbench candidates CODES.h5 --metric R@10 --wanted-recall .95
    hashbench candidates --query-codes q.npy --database-codes d.npy --dataset vectors --metric R@10 --wanted-recall .95
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.scoring.candidates import check_wanted
    from hashbench.scoring.compilation import reporting_compilation

    check_wanted(metric, wanted_recall)
    progress = ProgressBar()
    with progress, reporting_compilation(progress.update):
        counting = {"cluster": options.cluster(), "on_progress": progress.update}
        problem = inputs.read_problem(codes, own, dataset, {}, [metric], **counting).problem
        counts, evaluation = problem.candidates_and_scores(metric, wanted_recall, progress.update)
    for note in evaluation.notes:
        click.echo(note, err=True)
    echo(console.candidate_records(counts, evaluation, metric).to_text(form))


@cloup.command()
@click.argument("name")
@inputs.own_codes_group(inputs.BITS, inputs.DISTANCE, inputs.EXCLUDE_SELF, constraint=None, may_be_several=False)
@inputs.relevance_group(None)
@inputs.vectors_group(None)
@option_group(
    "What to score",
    option(
        "--dataset",
        required=True,
        metavar="DATASET",
        shell_complete=options.completing("datasets"),
        help="Dataset of the rows, by name or file, whose labels define what is relevant; or, with your own labels or "
        "affinity, a new name.",
    ),
    options.METRIC_TO_SCORE,
    inputs.QUERY_OUTPUTS,
)
@option_group(
    "How tables show it",
    option("--group", metavar="GROUP", show_default="after all groups", help="Group in tables, such as pair-based."),
    option("--label", metavar="TEXT", show_default="NAME codes=own", help="Name of the codes in tables and figures."),
    option("--seed", type=options.SEEDS, default=0, help="Seed to record in the rows."),
    option(
        "--draws-nothing",
        is_flag=True,
        help="The method draws nothing at random, like PCA or a fixed hash, so one run stands for all seeds.",
    ),
    option("--keep-codes", is_flag=True, help="Keep the codes in the data folder, too, for the report and figures."),
)
@option_group("Output", options.RESULTS, options.output_format("table", "csv", "json", "markdown"))
def save(
    name: str,
    dataset: str,
    metrics: tuple[str, ...],
    group: str | None,
    label: str | None,
    seed: int,
    draws_nothing: bool,
    keep_codes: bool,
    results: Path,
    form: str,
    **own: Any,
) -> None:
    """Score your own codes, and save rows of NAME in the results, beside those of the methods.

    In the names of files, {bits} and {seed} stand for numbers; each file is scored, and all are saved or none.

    \b
    hashbench save mine --query-codes c.mat:B_test --database-codes c.mat:B_train --dataset digits
    hashbench save mine --query-codes 'q-{bits}-{seed}.npy' --database-codes 'd-{bits}-{seed}.npy' --dataset digits
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.own_codes import OwnFiles, Saving, judge_of, names_own_relevance, save_all
    from hashbench.pipeline.own_grid import evaluate_each, find_pairs, missing_seeds
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.evaluation import DEFAULT_METRICS
    from hashbench.sources.array_files import find_shards, split_spec

    check_installed("filelock", "platformdirs")
    inputs.require_codes(own)
    saving = Saving(name, dataset, results, group, label, seed, keep_codes, draws_nothing)
    judge = judge_of(saving, own)
    saving.check(own["distance"], is_labelled=judge is None, ignoring=[key for key in _IGNORING if own[key]])
    pairs = find_pairs(own["query_codes"], own["database_codes"])
    if find_shards(pairs[0].database):
        raise click.UsageError("codes are saved from one file; give the database as one.")
    others = {key: value for key, value in own.items() if key not in ("query_codes", "database_codes")}
    codes_files = [split_spec(spec)[0] for pair in pairs for spec in (pair.query, pair.database)]

    def check(codes: "OwnCodes", saving: "Saving") -> None:
        refuse_outputs(dict(codes.saved_files(saving)), [*codes_files, *inputs.files_of(others, judge)])

    with ProgressBar() as progress, reporting_compilation(progress.update):
        files = OwnFiles(**own, dataset=judge)
        scored = evaluate_each(files, pairs, saving, metrics or DEFAULT_METRICS, check, progress.update)
    notes = [inputs.order_note(judge)] if judge is not None and not names_own_relevance(own) else []
    notes += [*missing_seeds(pairs), *(note for _, _, evaluation in scored for note in evaluation.notes)]
    for note in dict.fromkeys([*notes, *save_all(scored)]):
        click.echo(note, err=True)
    of_each = [(codes.n_bits, each.seed, scores) for codes, each, scores in scored]
    is_one = len(scored) == 1
    echo((console.evaluation_records(scored[0][2]) if is_one else console.several_records(of_each)).to_text(form))


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
            problem = inputs.read_problem(codes, own, dataset, {}, metrics).problem
            explained = explain_problem(problem, metrics, scripts, database_order, value, progress.update)
    for note in explained.notes:
        click.echo(note, err=True)
    echo(explained.to_text(form))
