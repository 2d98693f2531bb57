"""The commands that report on results: tables, plot, report, diff."""

import os
from pathlib import Path
from typing import Any

import click
import cloup
from click import Choice, IntRange
from cloup import option, option_group

from hashbench.cli.options import (
    FILE,
    METRIC,
    RESULTS,
    NamedPath,
    Number,
    OnlyWith,
    completing,
    folder,
    lengths,
    output_format,
    several,
)
from hashbench.cli.outputs import echo, refuse_folder, refuse_outputs, results_files

_METHODS = several("--method", "-m", names="methods", show_default="all", help="Method with results, repeatable.")
_FEATURES = several("--features", names="features", show_default="all", help="Kind of features, repeatable.")
_VARIANTS = option("--variants", is_flag=True, help="Show all parameters and versions of a method, not only one.")


@cloup.command()
@click.argument("names", nargs=-1, metavar="[TABLE]...", shell_complete=completing("tables"))
@option_group(
    "Rows",
    several("--dataset", names="datasets", show_default="all", help="Dataset, NAME or NAME:FEATURES, repeatable."),
    _METHODS,
    METRIC,
    _FEATURES,
    lengths("Code length of a column, repeatable.", show_default="as in the papers"),
    _VARIANTS,
)
@option_group(
    "Layout",
    option("--name", default="selection", metavar="NAME", help="Name of your own table: its files and LaTeX label."),
    option(
        "--rename",
        nargs=2,
        multiple=True,
        metavar="NAME TEXT",
        help="Text to show for a row, method, dataset or metric of the tables, or as `caption` in LaTeX, repeatable.",
    ),
    option(
        "--rename-from", type=FILE, help="TOML file, such as a grid, whose table [rename] holds more (docs/tables.md)."
    ),
    option("--digits", type=IntRange(1, 6), show_default="4; 3 in LaTeX; 6 in CSV", help="Decimal places."),
    option("--no-spread", is_flag=True, help="Leave out ±, the standard deviation over seeds."),
)
@option_group(
    "Significance",
    option(
        "--significance",
        is_flag=True,
        help="Mark what may be the best, and show 95 % intervals, over queries and seeds (or only seeds, if your data "
        "folder lacks the scores of queries).",
    ),
    option(
        "--against",
        metavar="METHOD",
        default="",
        show_default="the best",
        help="Method to test against; choose it before you see results.",
    ),
    constraint=OnlyWith("--significance"),
)
@option_group("Output", RESULTS, folder("--output", "-o", show_default="RESULTS/tables", help="Folder of the tables."))
def tables(
    names: tuple[str, ...],
    name: str,
    rename: tuple[tuple[str, str], ...],
    rename_from: Path | None,
    digits: int | None,
    no_spread: bool,
    significance: bool,
    against: str,
    results: Path,
    output: Path | None,
    **selected: Any,
) -> None:
    """Print and write all results as tables like the papers', with the papers' values.

    With --dataset, --method, --metric or --features and no TABLE, those rows form one table. Tables that options
    change are only printed, unless you pass --output.

    \b
    table1         AP of the whole ranking (TALR, Table 1)
    table2         AP@1000 (TALR, Table 2)
    table3         NDCG (TALR, Table 3)
    continuation   AP of talr-ap with and without continuation (TALR, appendix D)
    mlgap          mLGAP and AP (mLGAP, Table 1)
    ablation       AP of methods with parameters that the other tables leave out
    unseen         AP of classes that training did not see, over folds
    asymmetric     AP@1000 by codes of queries, and by their real-valued outputs
    embeddings     R@10, and after re-ranking, at 64 to 1,024 bits
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.reports.marks import describe_hidden
    from hashbench.reports.selection import Selection
    from hashbench.reports.tables import DisplayNames, make_tables, write_tables

    if output is not None and os.path.realpath(output) == os.path.realpath(results):
        raise click.UsageError(f"{output} is the folder of the results; give another folder for tables.")
    if names and selected["metrics"]:
        raise click.UsageError(f"{names[0]} has its own metric; leave out the name, or --metric.")
    selection, tables_folder = Selection(**selected), output or results / "tables"
    shown = DisplayNames(dict(rename), rename_from)
    is_usual = selection == Selection() and not (significance or no_spread or shown or digits)
    is_written = output is not None or is_usual
    if is_written:
        refuse_folder(tables_folder, ("*.md", "*.csv", "*.tex"), results_files(results))
    is_own = selection.is_of_rows and not names
    laid_out = make_tables(results, names, selection, name, shown)
    if significance:
        from hashbench.cli.progress import ProgressBar

        if against:  # a method that no table has is refused below
            laid_out = {key: table for key, table in laid_out.items() if against in table.lines} or laid_out
        with ProgressBar() as progress:
            laid_out = {key: table.tested(against, progress.update) for key, table in laid_out.items()}
    layout: dict[str, Any] = {"has_spread": not no_spread}
    if digits is not None:
        layout["digits"] = digits
    for table in laid_out.values():
        echo(table.to_markdown(**layout))
    if is_own and (hidden := describe_hidden(laid_out[name].cells)):
        click.echo(hidden, err=True)
    if is_written:
        write_tables(tables_folder, laid_out, **layout)
        suffixes = ".md, .csv, .tex, -tie-range.csv and, for a paper's, -published.csv"
        click.echo(f"Written to {tables_folder}: each table as {suffixes}.", err=True)
    else:
        click.echo("Only printed; pass --output FOLDER to write the tables.", err=True)


@cloup.command()
@click.argument("names", nargs=-1, metavar="[FIGURE]...", shell_complete=completing("figures"))
@option_group(
    "Rows",
    several("--dataset", names="datasets", show_default="all", help="Dataset, by name or HDF5 file, repeatable."),
    _METHODS,
    lengths("Code length, repeatable.", show_default="all, or one per figure"),
    option(
        "--metric",
        default="AP",
        metavar="METRIC",
        shell_complete=completing("metrics"),
        help="Metric to compare methods by; see `hashbench list metrics`.",
    ),
    _FEATURES,
    _VARIANTS,
)
@option_group(
    "Layout",
    option("--width", type=Number(2.5, 30), default=6.9, help="Width in inches; a column of an article has 3.3."),
    option(
        "--title/--no-title",
        "has_title",
        default=True,
        help="Put the description above the figure, or print it, for a caption.",
    ),
)
@option_group(
    "Output",
    RESULTS,
    folder("--output", "-o", show_default="RESULTS/figures", help="Folder of the figures."),
    option(
        "--format",
        "forms",
        type=Choice(["svg", "png", "pdf", "both"]),
        multiple=True,
        default=["both"],
        help="Format of the files, repeatable; both are svg and png.",
    ),
)
def plot(
    names: tuple[str, ...],
    results: Path,
    output: Path | None,
    forms: tuple[str, ...],
    width: float,
    has_title: bool,
    metric: str,
    **selected: Any,
) -> None:
    """Draw figures of the results, and print their paths.

    \b
    ranking           methods sorted by score, one per row, at 32 bits
    tie-ranges        the worst case of ties of each score
    ap-bits           the metric against the code length
    unseen            the metric on unseen classes, and where training saw all classes, at 32 bits

    Without FIGURE, all are drawn.
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.plots import FORMATS, draw_figures, write_figure
    from hashbench.reports.plots.style import FigureLayout
    from hashbench.reports.selection import Selection

    formats = list(dict.fromkeys(name for form in forms for name in (FORMATS[:2] if form == "both" else (form,))))
    figures_folder = output or results / "figures"
    refuse_folder(figures_folder, [f"*.{suffix}" for suffix in formats], results_files(results))
    layout = FigureLayout(width, has_title)
    with ProgressBar() as progress:
        for drawing in draw_figures(results, names, Selection(**selected, metrics=[metric]), layout, progress.update):
            for path in write_figure(drawing, figures_folder, formats):
                echo(path)
            for note in [drawing.caption, *drawing.notes]:
                if note:
                    progress.print(f"{drawing.stem}: {note}")


@click.command()
@RESULTS
@option(
    "--output",
    "-o",
    type=NamedPath(),
    metavar="FILE|FOLDER",
    show_default="RESULTS/report.html",
    help="An .html file for everything, or a folder, whose page loads queries when they are opened.",
)
@option("--against", metavar="REVISION", help="Revision, folder or file to show changes since.")
@option(
    "--queries",
    "n_queries",
    type=IntRange(0),
    show_default="20; 500 in a folder",
    help="Number of queries per dataset whose tie groups are shown, from codes in the data folder.",
)
@option("--thumbnails", is_flag=True, help="Add images of queries and of items near them to the folder.")
def report(results: Path, output: Path | None, against: str | None, n_queries: int | None, thumbnails: bool) -> None:
    """Write all results as a page that any browser opens, without a server or network, and print its path.

    The page holds leaderboards to sort and filter, plots, methods, and the codes and queries cached in the data folder.
    """
    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.html import PAGE_SUFFIXES, write_report

    output = output or results / "report.html"
    inputs = [*results_files(results), *(results_files(Path(against)) if against else [])]
    if output.suffix.lower() in PAGE_SUFFIXES:
        refuse_outputs({"--output": output}, inputs)
    elif output.is_dir():
        refuse_folder(output, ("index.html", "data/*"), inputs)
    with ProgressBar() as progress:
        page = write_report(
            results,
            output,
            against=against,
            n_queries=n_queries,
            has_thumbnails=thumbnails,
            on_progress=progress.update,
        )
    echo(page)


@click.command()
@click.argument("old", default="HEAD", metavar="[A")
@click.argument("new", required=False, metavar="[B]]")
@METRIC
@folder("--results", show_default="the nearest `results`, here or above", help="Folder of the result files.")
@option("--only-changed", is_flag=True, help="Leave out rows that are not comparable, new or gone.")
@output_format("table", "csv", "json", "markdown")
@option(
    "--fail-on-drop", "limit", type=Number(0), metavar="X", help="Exit with code 3 if a value falls by more than X."
)
def diff(
    old: str,
    new: str | None,
    metrics: tuple[str, ...],
    results: Path | None,
    only_changed: bool,
    form: str,
    limit: float | None,
) -> None:
    """Compare results at A and B: revisions, tags, folders or files; by default HEAD and the working tree.

    As in git diff, A..B compares A and B, and A...B compares their merge base with B.
    """
    from hashbench.cli.progress import ProgressBar
    from hashbench.reports.diff import describe_drops, format_diff, read_diff

    with ProgressBar() as progress:
        comparison = read_diff(old, new, metrics, results, progress.update)
    echo(format_diff(comparison, form, only_changed=only_changed))
    if limit is not None and len(comparison.drops(limit)):
        click.echo(describe_drops(comparison, limit), err=True)
        raise click.exceptions.Exit(3)
