"""The command that says why a number differs: explain."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashbench.cli.options import FILE, METHOD, METRIC, several
from hashbench.cli.outputs import Drawn, refuse_outputs, write_drawn
from hashbench.cli.scoring import are_of_a_file, files_of, files_of_codes, own_codes, refuse_beside_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hashbench.pipeline.own_codes import OwnCodes
    from hashbench.reports.explain.emulation import Explanation

_METRICS = ("AP", "AP@1000")
_OF_RUNS = ("run", "qrels", "metrics", "scripts", "value", "figure", "form")
_ORDERS = "given|by-class|shuffled[:SEED]"


_BITS = click.option(
    "--bits", "n_bits", type=int, multiple=True, help="Code length of packed codes; of kept ones, repeatable. [all]"
)


@click.command()
@partial(own_codes, bits=_BITS)
@click.option("--run", type=FILE, help="Instead of codes: lists of documents by score, as evaluate reads them.")
@click.option("--qrels", type=FILE, help="With --run: which documents are relevant to a query.")
@METHOD
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of kept codes. [0]")
@METRIC
@click.option(
    "--database-order",
    metavar=_ORDERS,
    help="What scripts break ties by; some repositories feed CIFAR-10 by class. [given; of kept codes all three]",
)
@several("--script", "scripts", "Script, repeatable; see `hashbench list scripts`. [all that give the metric]")
@click.option("--value", metavar="NUMBER", help="Which scripts give this, to its printed digits, which could or not.")
@click.option("--figure", type=Drawn(), help="Also draw them on the range of ties: .svg, .png or .pdf.")
@click.option("--format", "form", type=click.Choice(["table", "markdown", "json"]), default="table", show_default=True)
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
    """Say why your number differs: the same codes through the scoring scripts that people use.

    Each script's value stands beside the exact one, with what makes the difference: one convention switched at a time,
    and the shares add up. Codes are CODES.h5 or your own, as of evaluate. Or they are all codes of a dataset that are
    kept: then the scripts' orders of ties stand beside luck and the worst case, and it says which methods they turn.
    Of a run with its qrels it shows what trec_eval, pytrec_eval, ir_measures and ranx make of it.

    \b
    hashbench explain CODES.h5 --metric AP@1000 --database-order by-class
    hashbench explain CODES.h5 --metric mAP@5000 --value 0.731
    hashbench explain --dataset digits --bits 12 --bits 32
    hashbench explain --run run.txt --qrels qrels.txt --metric AP
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import Progress
    from hashbench.reports.explain import emulation, explanation_text
    from hashbench.reports.explain.evaluators import EVALUATORS, named
    from hashbench.reports.explain.orders import rearranged
    from hashbench.scoring.compilation import telling_of_compilation
    from hashbench.scoring.evaluator import check_counts

    if run is not None or qrels is not None:
        _explain_run(run, qrels, metrics, scripts, value, figure, form)
        return
    if dataset is not None and codes is None and not any(own.values()):
        if scripts or value is not None or figure is not None:
            raise click.UsageError("--script, --value and --figure explain one file of codes; give it.")
        _explain_kept(dataset, n_bits, methods, seed or 0, metrics, database_order, form)
        return
    if methods or seed is not None or len(n_bits) > 1:
        raise click.UsageError("--method, --seed and several --bits choose kept codes; give --dataset without codes.")
    own["n_bits"], database_order = next(iter(n_bits), None), database_order or "given"
    chosen = list(dict.fromkeys(map(named, scripts))) or EVALUATORS
    if value is not None:
        explanation_text.parse_printed(value)
    if figure is not None:
        inputs = files_of_codes(codes, dataset) if are_of_a_file(codes, own) else files_of(own, dataset)
        refuse_outputs({"--figure": figure}, inputs)
    given = _read(codes, dataset, own)
    check_counts((len(given.query), len(given.database)), (given.affinity.n_queries, given.affinity.n_database))
    database, affinity = rearranged(given.database, given.affinity, database_order)
    asked = tuple(emulation.given_of(metrics or _METRICS, chosen, len(database))) or metrics or _METRICS
    for name in dict.fromkeys(metrics):
        if name not in asked:
            click.echo(f"Left out: {emulation.not_given(name, chosen, len(database))}", err=True)
    with Progress(short=True) as progress, telling_of_compilation(progress.tell):
        parts = given.query, database, given.n_bits, affinity, asked, chosen
        found = emulation.explain(*parts, on_progress=progress.tell)
    silent = {one.name for one in chosen} - {one.evaluator.name for one in found} if scripts else ()
    for name in sorted(silent):
        click.echo(f"{name} gives none of {', '.join(asked)}.", err=True)
    name = f"{codes.stem if codes else 'own codes'}, {given.n_bits} bits, database order: {database_order}"
    _show(found, name, value, figure, form)


def _show(found: "Sequence[Explanation]", name: str, value: str | None, figure: Path | None, form: str) -> None:
    """Print explanations, or which of them give a value, and draw them, if that is asked for."""
    from hashbench.reports.explain import explanation_text

    if figure is not None:
        from hashbench.reports.explain.figure import draw

        write_drawn(figure, draw(found, name, value))
    if value is None:
        click.echo(explanation_text.format_explanations(found, form))
    else:
        click.echo(explanation_text.format_answers(explanation_text.answers(found, value), value, form))
    if form != "json" and any(one.evaluator.name.endswith("-here") for one in found):
        click.echo("\n-here: in the order of ties of this machine's NumPy or numba; elsewhere another.")


def _explain_run(
    run: Path | None,
    qrels: Path | None,
    metrics: tuple[str, ...],
    scripts: tuple[str, ...],
    value: str | None,
    figure: Path | None,
    form: str,
) -> None:
    """Show what tools for runs make of one."""
    from hashbench.reports.explain import explanation_text, run_tools
    from hashbench.scoring.compilation import telling_of_compilation
    from hashbench.sources.run_files import read_qrels, read_run

    refuse_beside_run(_OF_RUNS)
    if run is None or qrels is None:
        raise click.UsageError("give both --run and --qrels.")
    chosen = list(dict.fromkeys(map(run_tools.named, scripts))) or run_tools.TOOLS
    if value is not None:
        explanation_text.parse_printed(value)
    if figure is not None:
        refuse_outputs({"--figure": figure}, [run, qrels])
    with telling_of_compilation(lambda what, *_: click.echo(f"{what} ...", err=True)):
        found = run_tools.explain_run(read_run(run), read_qrels(qrels), metrics or ("AP", "NDCG:trec"), chosen)
    told = {one.evaluator.name for one in found}
    for name in [one.described.name for one in chosen if scripts and one.described.name not in told]:
        click.echo(f"Left out: {name}, which gives none of the metrics, or refuses the queries of this run.", err=True)
    _show(found, run.name, value, figure, form)


def _explain_kept(
    dataset: str,
    n_bits: tuple[int, ...],
    methods: tuple[str, ...],
    seed: int,
    metrics: tuple[str, ...],
    database_order: str | None,
    form: str,
) -> None:
    """Show what scripts make of all codes of a dataset that are kept."""
    from hashbench.cli.progress import Progress
    from hashbench.reports.explain.spreads import explain_kept, format_spreads

    with Progress(short=True) as progress:
        orders = None if database_order is None else [database_order]
        found = explain_kept(dataset, n_bits, methods, seed, metrics or ("AP",), orders, progress.tell)
    click.echo(format_spreads(found, form))


def _read(codes: Path | None, dataset: str | None, own: dict[str, Any]) -> "OwnCodes":
    """Read codes with what is relevant to them, of ours or of the user's own."""
    from hashbench.pipeline.own_codes import read_file, read_own
    from hashbench.pipeline.sharded_codes import shards_of

    if are_of_a_file(codes, own):
        return read_file(codes, dataset)
    if shards_of(**own):
        raise click.UsageError("explain reads codes and labels whole; give each as one file, not in shards.")
    return read_own(**own, dataset=dataset)
