"""The command that shows where a number comes from: explain."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from cloup import option, option_group

from hashbench.cli.options import METHOD, METRIC_TO_SCORE, SEEDS, NotWith, lengths, output_format, several
from hashbench.cli.outputs import echo
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
    from hashbench.reports.explain.explained import Explained


@cloup.command()
@CODES
@own_codes_group(
    lengths("Code length of packed codes or integers; of cached ones, repeatable.", show_default="all"), EXCLUDE_SELF
)
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
    METRIC_TO_SCORE,
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
    from hashbench.reports.explain.explained import explain_codes, explain_lists
    from hashbench.scoring.compilation import reporting_compilation

    progress = ProgressBar(short=True)
    if run is not None:
        lists = read_run_files(run, qrels, {})
        explained_by: Callable[[], Explained] = partial(explain_lists, *lists, metrics, scripts, value)
    elif dataset is not None and codes is None and not any(own.values()):
        from hashbench.reports.explain.spreads import explain_cached, format_spreads

        if scripts or value is not None:
            raise click.UsageError("--script and --value explain one file of codes; give it.")
        with progress:
            orders = None if database_order is None else [database_order]
            chosen = metrics or ("AP",)
            cells, notes = explain_cached(dataset, n_bits, methods, seed or 0, chosen, orders, progress.update)
        for note in notes:
            click.echo(note, err=True)
        echo(format_spreads(cells, form))
        return
    elif len(n_bits) > 1:
        raise click.UsageError("several --bits choose cached codes; give --dataset without codes.")
    else:
        own["n_bits"] = next(iter(n_bits), None)
        loaded: Any = read_codes_file(codes, own, dataset, {})
        if loaded is None and shards_of(**own):
            raise click.UsageError("explain reads codes and labels whole; give each as one file, not in shards.")
        loaded = loaded or read_own_codes(own, dataset, {})
        parts = loaded.query, loaded.database, loaded.n_bits, loaded.affinity
        explained_by = partial(explain_codes, *parts, metrics, scripts, database_order, value, progress.update)
    with progress, reporting_compilation(progress.update):
        explained = explained_by()
    for note in explained.notes:
        click.echo(note, err=True)
    echo(explained.to_text(form))
