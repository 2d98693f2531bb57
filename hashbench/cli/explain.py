"""The command that says why a number differs: explain."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashbench.cli.options import METRIC, File, several
from hashbench.cli.scoring import FIGURES, own_codes

if TYPE_CHECKING:
    from hashbench.pipeline.own_codes import OwnCodes

_METRICS = ("AP", "AP@1000")
_ORDERS = "given|by-class|shuffled[:SEED]"


class _Figure(File):
    """A file of a figure, whose ending says of what kind."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path: Path = super().convert(value, param, ctx)
        if path.suffix.lower() not in FIGURES:
            self.fail(f"{str(value)!r} is to end in {', '.join(FIGURES[:-1])} or {FIGURES[-1]}.", param, ctx)
        return path


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
@several("--script", "scripts", "Scripts, by name, repeatable. [all that give the metric]")
@click.option("--value", metavar="NUMBER", help="Which scripts give this, to its printed digits, which could or not.")
@click.option("--figure", type=_Figure(), help="Also draw them on the range of ties: .svg, .png or .pdf.")
@click.option("--format", "form", type=click.Choice(["table", "markdown", "json"]), default="table", show_default=True)
def explain(
    codes: Path | None,
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
    from hashbench._parallel import telling_of_compilation
    from hashbench.cli.progress import Progress
    from hashbench.reports.explain import emulation, layout
    from hashbench.reports.explain.evaluators import EVALUATORS, named
    from hashbench.reports.explain.orders import rearranged
    from hashbench.scoring.evaluator import check_counts
    from hashbench.store.files import check_output

    chosen = [named(name) for name in dict.fromkeys(scripts)] or EVALUATORS
    if value is not None:
        layout.parse_printed(value)
    if figure is not None:
        check_output(figure)
    given = _read(codes, own)
    check_counts((len(given.query), len(given.database)), (given.affinity.n_queries, given.affinity.n_database))
    database, affinity = rearranged(given.database, given.affinity, database_order)
    asked = metrics or emulation.given_of(_METRICS, chosen, len(database)) or _METRICS
    with Progress(short=True) as progress, telling_of_compilation(progress.tell):
        parts = given.query, database, given.n_bits, affinity, asked, chosen
        found = emulation.explain(*parts, on_progress=progress.tell)
    silent = {one.name for one in chosen} - {one.evaluator.name for one in found} if scripts else ()
    for name in sorted(silent):
        click.echo(f"{name} gives none of {', '.join(asked)}.", err=True)
    if figure is not None:
        _draw(found, f"{codes.stem if codes else 'own codes'}, {given.n_bits} bits, {database_order}", figure)
    if value is None:
        click.echo(layout.format_explanations(found, form))
    else:
        click.echo(layout.format_answers(layout.answers(found, value), value, form))


def _read(codes: Path | None, own: dict[str, Any]) -> "OwnCodes":
    """Read codes with what is relevant to them, of ours or of the user's own."""
    from hashbench.pipeline.own_codes import read_file, read_own
    from hashbench.pipeline.sharded_codes import shards_of

    if codes is not None:
        if any(value is not None for key, value in own.items() if key != "dataset"):
            raise click.UsageError("give either CODES.h5 or your own --query-codes and --database-codes, not both.")
        return read_file(codes, own["dataset"])
    if own["query_codes"] is None or own["database_codes"] is None:
        raise click.UsageError("give CODES.h5, or both --query-codes and --database-codes.")
    if shards_of(**own):
        raise click.UsageError("explain reads codes and labels whole; give each as one file, not in shards.")
    return read_own(**own)


def _draw(found: Any, name: str, output: Path) -> None:
    from hashbench.reports.explain.figure import draw
    from hashbench.reports.plots import figure_bytes
    from hashbench.store.files import write_bytes

    write_bytes(output, figure_bytes(draw(found, name), output.suffix.lower()[1:]))
