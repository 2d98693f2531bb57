"""The command that says why a number differs: explain."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashbench.cli.options import METRIC, several
from hashbench.cli.scoring import Drawn, are_of_a_file, own_codes, write_drawn

if TYPE_CHECKING:
    from hashbench.pipeline.own_codes import OwnCodes

_METRICS = ("AP", "AP@1000")
_ORDERS = "given|by-class|shuffled[:SEED]"


@click.command()
@own_codes
@METRIC
@click.option(
    "--database-order",
    default="given",
    show_default=True,
    metavar=_ORDERS,
    help="What scripts break ties by; public repositories feed CIFAR-10 by class.",
)
@several("--script", "scripts", "Script, repeatable; see `hashbench list scripts`. [all that give the metric]")
@click.option("--value", metavar="NUMBER", help="Which scripts give this, to its printed digits, which could or not.")
@click.option("--figure", type=Drawn(), help="Also draw them on the range of ties: .svg, .png or .pdf.")
@click.option("--format", "form", type=click.Choice(["table", "markdown", "json"]), default="table", show_default=True)
def explain(
    codes: Path | None,
    dataset: str | None,
    metrics: tuple[str, ...],
    database_order: str,
    scripts: tuple[str, ...],
    value: str | None,
    figure: Path | None,
    form: str,
    **own: Any,
) -> None:
    """Say why your number differs: the same codes through the scoring scripts that people use.

    Each script's value stands beside the exact one, with what makes the difference: one convention switched at a time,
    and the shares add up. Codes are CODES.h5 or your own, as of evaluate.

    \b
    hashbench explain CODES.h5 --metric AP@1000 --database-order by-class
    hashbench explain CODES.h5 --metric mAP@5000 --value 0.731
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import Progress
    from hashbench.reports.explain import emulation, layout
    from hashbench.reports.explain.evaluators import EVALUATORS, named
    from hashbench.reports.explain.orders import rearranged
    from hashbench.scoring.compilation import telling_of_compilation
    from hashbench.scoring.evaluator import check_counts
    from hashbench.store.files import check_output

    chosen = list(dict.fromkeys(map(named, scripts))) or EVALUATORS
    if value is not None:
        layout.parse_printed(value)
    if figure is not None:
        check_output(figure)
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
    if figure is not None:
        from hashbench.reports.explain.figure import draw

        name = f"{codes.stem if codes else 'own codes'}, {given.n_bits} bits, database order: {database_order}"
        write_drawn(figure, draw(found, name, value))
    if value is None:
        click.echo(layout.format_explanations(found, form))
    else:
        click.echo(layout.format_answers(layout.answers(found, value), value, form))
    if form != "json" and any(one.evaluator.name.endswith("-here") for one in found):
        click.echo("\n-here: in the order of ties of this machine's NumPy or numba; elsewhere another.")


def _read(codes: Path | None, dataset: str | None, own: dict[str, Any]) -> "OwnCodes":
    """Read codes with what is relevant to them, of ours or of the user's own."""
    from hashbench.pipeline.own_codes import read_file, read_own
    from hashbench.pipeline.sharded_codes import shards_of

    if are_of_a_file(codes, own):
        return read_file(codes, dataset)
    if shards_of(**own):
        raise click.UsageError("explain reads codes and labels whole; give each as one file, not in shards.")
    return read_own(**own, dataset=dataset)
