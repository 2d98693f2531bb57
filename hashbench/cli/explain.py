"""The command that shows where a number comes from: explain."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from cloup import option, option_group

from hashbench.cli.options import METHOD, METRIC, SEEDS, NotWith, lengths, output_format, several
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
@option_group("Output", output_format("table", "markdown", "json"))
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
    form: str,
    **own: Any,
) -> None:
    """Show why another script gives another number for the same codes.

    Print the exact value, the value of each script that people use, and the causes of the difference. One convention
    is switched at a time, and the shares add up. Pass CODES.h5, or your own codes as to evaluate.

    With a dataset, all its cached codes are scored. The table compares the scripts' orders of ties with a shuffle and
    the worst case, and shows which methods change places. With a run and its qrels, the scripts are trec_eval,
    pytrec_eval, ir_measures and ranx.

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
    described = ""
    if run is not None:
        by_order = {"": _explain_run(run, qrels, metrics, scripts)}
    elif dataset is not None and codes is None and not any(own.values()):
        from hashbench.reports.explain.spreads import explain_cached, format_spreads

        if scripts or value is not None:
            raise click.UsageError("--script and --value explain one file of codes; give it.")
        with ProgressBar(short=True) as progress:
            orders = None if database_order is None else [database_order]
            cells = explain_cached(dataset, n_bits, methods, seed or 0, metrics or ("AP",), orders, progress.update)
        click.echo(format_spreads(cells, form))
        return
    elif len(n_bits) > 1:
        raise click.UsageError("several --bits choose cached codes; give --dataset without codes.")
    else:
        own["n_bits"] = next(iter(n_bits), None)
        loaded: Any = read_codes_file(codes, own, dataset, {})
        if loaded is None and shards_of(**own):
            raise click.UsageError("explain reads codes and labels whole; give each as one file, not in shards.")
        loaded = loaded or read_own_codes(own, dataset, {})
        is_search = value is not None and not metrics
        orders = [database_order] if database_order is not None else None if is_search else ["given"]
        by_order = _explain_codes(loaded, metrics, scripts, orders, is_search)
        described = describe_order(next(iter(by_order)), loaded.affinity)
    if value is None:
        text = explanation_text.format_explanations(next(iter(by_order.values())), form, described)
    else:
        text = answers.format_answers(answers.answers(by_order, value), value, form)
    click.echo(text)


def _explain_codes(
    codes: "OwnCodes",
    metrics: tuple[str, ...],
    scripts: tuple[str, ...],
    orders: list[str] | None,
    is_search: bool,
) -> "dict[str, Sequence[Explanation]]":
    """Score codes by scripts for each database order; print what is left out."""
    from dataclasses import replace

    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.explain import emulation
    from hashbench.reports.explain.answers import searched_metrics
    from hashbench.reports.explain.orders import database_orders, rearranged
    from hashbench.reports.explain.ranking import n_left
    from hashbench.reports.explain.scripts import EVALUATORS, named, twins_of
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.evaluator import check_counts
    from hashbench.scoring.metrics import get_metric
    from hashbench.scoring.self_pairs import check_self

    chosen = list(dict.fromkeys(map(named, scripts))) or [*EVALUATORS, *twins_of(EVALUATORS)]
    check_counts((len(codes.query), len(codes.database)), (codes.affinity.n_queries, codes.affinity.n_database))
    notes = check_self(codes.query, codes.database, codes.affinity)
    n_items = int(n_left(codes.affinity).max())
    searched = searched_metrics(n_items) if is_search else metrics or ("AP", "AP@1000")
    if is_search:  # as if each cut were the only one
        chosen = [replace(script, shares_cut=False) for script in chosen]
    explanations: dict[str, Sequence[emulation.Explanation]] = {}
    with ProgressBar(short=True) as progress, reporting_compilation(progress.update):
        for order in database_orders(codes.affinity) if orders is None else orders:
            database, affinity = rearranged(codes.database, codes.affinity, order)
            explanations[order] = emulation.explain(
                codes.query, database, codes.n_bits, affinity, searched, chosen, progress.update
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
    run: Path, qrels: Path | None, metrics: tuple[str, ...], scripts: tuple[str, ...]
) -> "Sequence[Explanation]":
    """Score a run by the tools for runs; print which are left out."""
    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.explain.run_tools import explain_run
    from hashbench.scoring.compilation import reporting_compilation

    lists, grades = read_run_files(run, qrels, {})
    with ProgressBar(short=True) as progress, reporting_compilation(progress.update):
        explanations = explain_run(lists, grades, metrics or ("AP", "NDCG:trec"), scripts)
    explained = {explanation.evaluator.name for explanation in explanations}
    for name in dict.fromkeys(script for script in map(str.casefold, scripts) if script not in explained):
        click.echo(f"Left out: {name} gives none of the metrics, or refuses the queries of this run.", err=True)
    return explanations
