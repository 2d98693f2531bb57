"""The commands that report on results: tables, figures, differences."""

import math
import os
from pathlib import Path
from typing import Any

import click

from hashbench.cli.options import LENGTH, METRIC, RESULTS, completing, several
from hashbench.cli.outputs import refuse_folder, results_files

_METHODS = several("--method", "methods", "Method that has results, repeatable. [all]")
_FEATURES = several("--features", "features", "Kind of features, repeatable. [all]")
_VARIANTS = click.option(
    "--variants", is_flag=True, help="All parameters and versions of a method, not only one line of each."
)


@click.command()
@click.argument("names", nargs=-1, metavar="[TABLE]...", shell_complete=completing("tables"))
@several("--dataset", "datasets", "Name, or NAME:FEATURES, that has results, repeatable. [all]")
@_METHODS
@METRIC
@_FEATURES
@click.option("--bits", "n_bits", type=LENGTH, multiple=True, help="Columns other than the papers', repeatable.")
@_VARIANTS
@click.option("--name", default="selection", show_default=True, help="Of your own table: its files and LaTeX label.")
@click.option("--digits", type=click.IntRange(1, 6), help="Behind the point. [4, in LaTeX 3]")
@click.option("--no-spread", is_flag=True, help="Leave out the spread over seeds.")
@click.option(
    "--significance",
    is_flag=True,
    help="Also test against the best, and give intervals over queries, by the scores in your data folder.",
)
@click.option(
    "--against",
    default="",
    metavar="METHOD",
    help="With --significance: test against this method, chosen before you saw results, not the best.",
)
@RESULTS
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder of the tables. [RESULTS/tables]"
)
def tables(
    names: tuple[str, ...],
    digits: int | None,
    no_spread: bool,
    significance: bool,
    against: str,
    results: Path,
    output: Path | None,
    **chosen: Any,
) -> None:
    """Lay out all results like the papers' tables, their values beside ours; print and write them.

    With --dataset, --method, --metric or --features and no TABLE, those rows in a table of their own. What options
    change is printed only, unless --output is given.

    \b
    table1         AP of the whole ranking (TALR, Table 1)
    table2         AP@1000 (TALR, Table 2)
    table3         NDCG (TALR, Table 3)
    continuation   AP of talr-ap with and without continuation (TALR, appendix D)
    mlgap          mLGAP beside AP (mLGAP, Table 1)
    ablation       AP of methods with other parameters than in the other tables
    unseen         AP of classes that training did not see, over folds
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.reports.aggregate import describe_hidden
    from hashbench.reports.tables import TableSelection, make_tables, write_tables

    if output is not None and os.path.realpath(output) == os.path.realpath(results):
        raise click.UsageError(f"{output} is the folder of the results, which tables would be taken for; give another.")
    if names and chosen["metrics"]:
        raise click.UsageError(f"{names[0]} has its own metric; leave out the name, or --metric.")
    if against and not significance:
        raise click.UsageError("--against names whom --significance tests against; give both.")
    selection, folder = TableSelection(**chosen), output or results / "tables"
    is_written = output is not None or (
        selection == TableSelection() and not significance and not no_spread and digits is None
    )
    if is_written:
        refuse_folder(folder, ("*.md", "*.csv", "*.tex"), results_files(results))
    is_own = selection.is_of_rows and not names
    made = make_tables(results, names, selection)
    if significance:
        from hashbench.cli.progress import Progress
        from hashbench.store.results import read_results

        if against:
            having = {name: table for name, table in made.items() if against in table.lines}
            made = having or made  # a method that no table has is refused below
        with Progress() as progress:
            rows = read_results(results)
            made = {name: table.confident(rows, against, progress.tell) for name, table in made.items()}
    shown: dict[str, Any] = {"has_spread": not no_spread} | ({} if digits is None else {"digits": digits})
    for table in made.values():
        click.echo(table.to_markdown(**shown))
    hidden = describe_hidden(made[selection.name].cells) if is_own else ""
    if hidden:
        click.echo(hidden, err=True)
    if is_written:
        write_tables(folder, made, **shown)
        ends = ".md, .csv, .tex, -tie-range.csv and, of a paper's, -published.csv and -orders.csv"
        click.echo(f"Written to {folder}: each table as {ends}.", err=True)
    else:
        click.echo("Printed only; with --output FOLDER the tables are also written.", err=True)


@click.command()
@click.argument("names", nargs=-1, metavar="[FIGURE]...", shell_complete=completing("figures"))
@several("--dataset", "datasets", "Name or HDF5 file that has results, repeatable. [all]")
@_METHODS
@click.option("--bits", "n_bits", type=LENGTH, multiple=True, help="Code length, repeatable. [all, or one by figure]")
@click.option(
    "--metric",
    default="AP",
    show_default=True,
    metavar="METRIC",
    shell_complete=completing("metrics"),
    help="What methods are judged by; see `hashbench list metrics`.",
)
@_FEATURES
@_VARIANTS
@click.option(
    "--bands/--no-bands", default=None, help="The worst case of ties behind lines. [up to 4 lines in a panel]"
)
@click.option(
    "--width", type=click.FloatRange(2.5, 30), default=6.9, show_default=True, help="Inches; a column has 3.3."
)
@click.option("--title/--no-title", "has_title", default=True, help="What is shown is told above it, or for a caption.")
@RESULTS
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder of the figures. [RESULTS/figures]"
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png", "pdf", "both"]),
    default="both",
    show_default=True,
    help="Of the files; both are svg and png.",
)
def plot(
    names: tuple[str, ...],
    results: Path,
    output: Path | None,
    form: str,
    bands: bool | None,
    width: float,
    has_title: bool,
    **chosen: Any,
) -> None:
    """Draw figures of the results, and of the codes behind them; prints the files.

    \b
    tie-ranges        the worst case of ties of each score
    ap-bits           the metric against the code length
    unseen            the metric of classes that training did not see against that of all, all seen, at 32 bits
    precision-recall  from codes in the data folder, at 32 bits
    precision-at-k    likewise
    code-usage        likewise: how many items share each code, at 12 bits
    time-quality      likewise: the metric against the time to fit and to encode, at 32 bits

    Without FIGURE all are drawn. No panel has more than eight lines.
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import Progress
    from hashbench.reports.plots import FORMATS, draw_figures, write_figure
    from hashbench.reports.plots.figure_selection import FigureSelection
    from hashbench.reports.plots.style import FigureLayout

    formats = FORMATS[:2] if form == "both" else (form,)
    folder = output or results / "figures"
    refuse_folder(folder, [f"*.{one}" for one in formats], results_files(results))
    layout = FigureLayout(width, has_title, bands)
    with Progress() as progress:
        for drawing in draw_figures(results, names, FigureSelection(**chosen), layout, progress.tell):
            for path in write_figure(drawing, folder, formats):
                click.echo(path)
            if drawing.caption:
                progress.say(f"{drawing.stem}: {drawing.caption}")
            for note in drawing.notes:
                progress.say(f"{drawing.stem}: {note}")


@click.command()
@click.argument("old", default="HEAD", metavar="[A")
@click.argument("new", required=False, metavar="[B]]")
@METRIC
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the result files. [the nearest `results`, here or above]",
)
@click.option("--only-changed", is_flag=True, help="Leave out rows that are not comparable, new or gone.")
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json", "markdown"]), default="table", show_default=True
)
@click.option(
    "--fail-on-drop",
    "limit",
    type=click.FloatRange(0),
    metavar="X",
    help="Exit with code 3 if a comparable row's value falls by more than X.",
)
@click.option(
    "--resamples",
    type=click.IntRange(0),
    default=9999,
    show_default=True,
    help="Of the tests over queries; with 0 there are none.",
)
def diff(
    old: str,
    new: str | None,
    metrics: tuple[str, ...],
    results: Path | None,
    only_changed: bool,
    form: str,
    limit: float | None,
    resamples: int,
) -> None:
    """Compare results at A and B: revisions, tags, folders or files; by default HEAD and the working tree.

    As with git diff, A..B is A and B, and A...B what B changed since it left A: their merge base and B.
    """
    if limit is not None and math.isnan(limit):
        raise click.BadParameter("nan is no amount.", param_hint="--fail-on-drop")
    from hashbench.cli.progress import Progress
    from hashbench.reports import diff_text, revisions
    from hashbench.reports.diff import compare, with_tests
    from hashbench.scoring.metrics import get_metric

    found = compare(*revisions.read_sides(old, new, results), [get_metric(name).name for name in metrics])
    if resamples:
        with Progress() as progress:
            found = with_tests(found, resamples, progress.tell)
    click.echo(diff_text.format_diff(found, form, only_changed=only_changed))
    if limit is not None and found.drops(limit):
        click.echo(diff_text.describe_drops(found, limit), err=True)
        raise click.exceptions.Exit(3)
