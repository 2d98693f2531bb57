"""The command that shows where a number comes from: explain."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from cloup import option, option_group

from hashbench.cli.options import METHOD, METRIC, SEEDS, NotWith, lengths, output_format, several
from hashbench.cli.outputs import FigurePath, save_figure
from hashbench.cli.scoring import (
    CODES,
    DATASET,
    EXCLUDE_SELF,
    RELEVANCE,
    own_codes_group,
    read_codes_file,
    read_own_codes,
    read_run_files,
    run_group,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hashbench.pipeline.own_codes import OwnCodes
    from hashbench.reports.explain.emulation import Explanation


@cloup.command()
@CODES
@own_codes_group(lengths("Code length of packed codes; of cached codes, repeatable.", show_default="all"), EXCLUDE_SELF)
@RELEVANCE
@option_group(
    "Cached codes of a dataset",
    METHOD,
    option("--seed", type=SEEDS, show_default="0", help="Seed of the codes."),
    constraint=NotWith("CODES.h5", "--query-codes", "--run"),
)
@run_group()
@option_group(
    "What to explain",
    DATASET,
    METRIC,
    several(
        "--script",
        names="scripts",
        show_default="all with the metric",
        help="Script, repeatable; see `hashbench list scripts`.",
    ),
    option(
        "--database-order",
        metavar="given|by-class|shuffled[:SEED]",
        show_default="given; all three for cached codes",
        help="Order of the database, which breaks ties; some repositories sort CIFAR-10 by class.",
    ),
    option(
        "--value",
        metavar="NUMBER",
        help="Value to look for, in the metric; without --metric, in many metrics, cuts and database orders.",
    ),
)
@option_group(
    "Output",
    output_format("table", "markdown", "json"),
    option("--figure", type=FigurePath(), help="Figure of the values on the range of ties: .svg, .png or .pdf."),
)
@cloup.constraint(NotWith("--run"), ["codes", "dataset", "database_order"])
def explain(
    codes: Path | None,
    dataset: str | None,
    n_bits: tuple[int, ...],
    run: Path | None,
    qrels: Path | None,
    methods: tuple[str, ...],
    seed: int | None,
    metrics: tuple[str, ...],
    database_order: str | None,
    scripts: tuple[str, ...],
    value: str | None,
    figure: Path | None,
    form: str,
    **own: Any,
) -> None:
    """Show why your number differs: the same codes, scored by the scripts that people use.

    Each script's value stands beside the exact one, with the causes of the difference: one convention is switched at a
    time, and the shares add up. Score CODES.h5, your own codes as in evaluate, or all cached codes of a dataset; for
    the latter the table compares the scripts' orders of ties with a shuffle and the worst case, and shows which methods
    change places. For a run with its qrels, it shows the values of trec_eval, pytrec_eval, ir_measures and ranx.

    \b
    hashbench explain CODES.h5 --metric AP@1000 --database-order by-class
    hashbench explain CODES.h5 --value 0.731
    hashbench explain --dataset digits --bits 12 --bits 32
    hashbench explain --run run.txt --qrels qrels.txt --metric AP
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.sharded_codes import shards_of
    from hashbench.reports.explain import answers, explanation_text
    from hashbench.reports.explain.orders import describe_order

    if value is not None:
        answers.parse_printed(value)
    if run is not None:
        described = ""
        name, by_order = run.name, {"": _explain_run(run, qrels, metrics, scripts, figure)}
    elif dataset is not None and codes is None and not any(own.values()):
        from hashbench.reports.explain.spreads import explain_cached, format_spreads

        if scripts or value is not None or figure is not None:
            raise click.UsageError("--script, --value and --figure explain one file of codes; give it.")
        with ProgressBar(short=True) as progress:
            orders = None if database_order is None else [database_order]
            cells = explain_cached(dataset, n_bits, methods, seed or 0, metrics or ("AP",), orders, progress.update)
        click.echo(format_spreads(cells, form))
        return
    elif len(n_bits) > 1:
        raise click.UsageError("several --bits choose cached codes; give --dataset without codes.")
    else:
        own["n_bits"] = next(iter(n_bits), None)
        is_search = value is not None and not metrics
        if is_search and figure is not None:
            raise click.UsageError("--figure draws metrics; give --metric, too.")
        outputs = {"--figure": figure}
        loaded: Any = read_codes_file(codes, own, dataset, outputs)
        if loaded is None and shards_of(**own):
            raise click.UsageError("explain reads codes and labels whole; give each as one file, not in shards.")
        loaded = loaded or read_own_codes(own, dataset, outputs)
        orders = [database_order] if database_order is not None else None if is_search else ["given"]
        has_twins = not scripts or form != "json"
        by_order = _explain_codes(loaded, metrics, scripts, orders, has_twins, is_search)
        order = next(iter(by_order))
        name = f"{codes.stem if codes else 'own codes'}, {loaded.n_bits} bits, database order: {order}"
        described = describe_order(order, loaded.affinity)
    explanations = next(iter(by_order.values()))
    if figure is not None:
        from hashbench.reports.explain.figure import draw

        save_figure(figure, draw(explanations, name, value))
    if value is None:
        text = explanation_text.format_explanations(explanations, form, described)
    else:
        text = answers.format_answers(answers.answers(by_order, value), value, form)
    click.echo(text)


def _explain_codes(
    codes: "OwnCodes",
    metrics: tuple[str, ...],
    scripts: tuple[str, ...],
    orders: list[str] | None,
    has_twins: bool,
    is_search: bool,
) -> "dict[str, Sequence[Explanation]]":
    """Score codes by scripts, and by their twins on this machine, for each database order; print what is left out."""
    from dataclasses import replace

    import numpy as np

    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.explain import emulation
    from hashbench.reports.explain.answers import searched_metrics
    from hashbench.reports.explain.orders import database_orders, rearranged, rows_in
    from hashbench.reports.explain.scripts import EVALUATORS, named, twins_of
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.evaluator import check_counts
    from hashbench.scoring.metrics import get_metric
    from hashbench.scoring.self_pairs import check_labels, check_self

    chosen = list(dict.fromkeys(map(named, scripts))) or EVALUATORS
    check_counts((len(codes.query), len(codes.database)), (codes.affinity.n_queries, codes.affinity.n_database))
    notes = check_self(codes.query, codes.database, is_excluded=codes.exclude_self)
    if codes.exclude_self:
        check_labels(codes.affinity)
    n_items = len(codes.database) - codes.exclude_self
    searched = searched_metrics(n_items) if is_search else metrics or ("AP", "AP@1000")
    with_twins = list(dict.fromkeys([*chosen, *twins_of(chosen)] if has_twins else chosen))
    if is_search:  # as if each cut were the only one
        with_twins = [replace(script, shares_cut=False) for script in with_twins]
    explanations: dict[str, Sequence[emulation.Explanation]] = {}
    with ProgressBar(short=True) as progress, reporting_compilation(progress.update):
        for order in database_orders(codes.affinity) if orders is None else orders:
            database, affinity = rearranged(codes.database, codes.affinity, order)
            own_rows = np.argsort(rows_in(order, codes.affinity)) if codes.exclude_self else None
            explanations[order] = emulation.explain(
                codes.query, database, codes.n_bits, affinity, searched, with_twins, own_rows, progress.update
            )
    of_order = next(iter(explanations.values()))
    computed = dict.fromkeys(explanation.metric for explanation in of_order)
    missing = [name for name in dict.fromkeys(metrics) if get_metric(name).name not in computed]
    notes = [*(f"Left out: {emulation.describe_missing(name, chosen, n_items)}" for name in missing), *notes]
    idle = {script.name for script in chosen} - {explanation.evaluator.name for explanation in of_order}
    notes += [f"{name} gives none of {', '.join(computed)}." for name in sorted(idle if scripts else ())]
    for note in notes:
        click.echo(note, err=True)
    return explanations


def _explain_run(
    run: Path, qrels: Path | None, metrics: tuple[str, ...], scripts: tuple[str, ...], figure: Path | None
) -> "Sequence[Explanation]":
    """Score a run by the tools for runs; print which are left out."""
    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.explain import run_tools
    from hashbench.scoring.compilation import reporting_compilation

    tools = list(dict.fromkeys(map(run_tools.named, scripts))) or run_tools.TOOLS
    lists, grades = read_run_files(run, qrels, {"--figure": figure})
    with ProgressBar(short=True) as progress, reporting_compilation(progress.update):
        explanations = run_tools.explain_run(lists, grades, metrics or ("AP", "NDCG:trec"), tools)
    explained = {explanation.evaluator.name for explanation in explanations}
    for name in [tool.evaluator.name for tool in tools] if scripts else ():
        if name not in explained:
            click.echo(f"Left out: {name} gives none of the metrics, or refuses the queries of this run.", err=True)
    return explanations
