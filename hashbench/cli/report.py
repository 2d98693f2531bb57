"""The command that writes the results as a page."""

from pathlib import Path

import click

from hashbench.cli.options import RESULTS
from hashbench.cli.outputs import refuse_folder, refuse_outputs, results_files


@click.command()
@RESULTS
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="An .html file, or else a folder, whose page loads queries as they are looked at. [RESULTS/report.html]",
)
@click.option("--against", metavar="REV", help="Also show what changed since a revision, or from a folder or file.")
@click.option(
    "--queries",
    "n_queries",
    type=click.IntRange(0),
    help="Of each dataset, whose tie groups are shown, of codes in the data folder. [20; 500 in a folder]",
)
@click.option("--thumbnails", is_flag=True, help="Also put images of queries and items near to them into the folder.")
def report(results: Path, output: Path | None, against: str | None, n_queries: int | None, thumbnails: bool) -> None:
    """Write all results as a page that any browser opens, without a server or network; prints the page's path.

    One file holds everything: leaderboards to sort and filter, plots, methods, and what the data folder keeps of
    codes and queries.
    """
    from hashbench.cli.progress import Progress
    from hashbench.reports.html import PAGE_SUFFIXES, write_report

    output = output or results / "report.html"
    others = results_files(Path(against)) if against else []
    if output.suffix.lower() in PAGE_SUFFIXES:
        refuse_outputs({"--output": output}, [*results_files(results), *others])
    elif output.is_dir():
        refuse_folder(output, ("index.html", "data/*"), [*results_files(results), *others])
    with Progress() as progress:
        page = write_report(
            results,
            output,
            against=against,
            n_queries=n_queries,
            has_thumbnails=thumbnails,
            on_progress=progress.tell,
        )
    click.echo(page)
