"""The commands that keep result files in order."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashbench.cli.options import BITS, METHOD, METRIC, RESULTS, OneEach, completing
from hashbench.errors import HashbenchError, counted

if TYPE_CHECKING:
    from hashbench.store.results import Row

_FILES = click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[FILE|FOLDER]...")
_AGAINST = click.option("--against", metavar="REVISION", help="What is accepted: a commit, branch, folder or file.")


@click.group()
def results() -> None:
    """Keep the result files in order."""


@results.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path("results"))
def convert(folder: Path) -> None:
    """Convert result files of the earlier layout, one a dataset, to one a dataset and method; none of it is lost.

    FOLDER is by default results/. A file is removed once its rows are in their new place.
    """
    from hashbench.store.results import convert as convert_all

    earlier, files, n_rows = convert_all(folder)
    click.echo(
        f"Converted {counted(len(earlier), 'file')} with {counted(n_rows, 'row')} into {counted(len(files), 'file')}."
    )


@results.command()
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER...",
)
@RESULTS
def merge(folders: tuple[Path, ...], results: Path) -> None:
    """Add the rows of other folders to those of --results, such as of parts of a grid that ran elsewhere.

    What made them comes along. Rows of the same key with other numbers are refused, and nothing is written.
    """
    from hashbench.store.results import merge_folders

    _, n_rows = merge_folders(results, folders)
    click.echo(f"{counted(n_rows, 'row')} added; those of {counted(len(folders), 'folder')} are in {results}.")


@results.command()
@click.argument("dataset", shell_complete=completing("datasets"))
@click.argument("method", shell_complete=completing("methods"))
@RESULTS
def info(dataset: str, method: str, results: Path) -> None:
    """Tell what made the results of a METHOD on a DATASET: commit, libraries, processor, day and time of each job."""
    from hashbench.reports.row_origins import origin_table

    click.echo(origin_table(results, dataset, method))


@results.command()
@_FILES
@_AGAINST
def check(paths: tuple[Path, ...], against: str | None) -> None:
    """Say what is wrong with result files, as of a pull request; by default those in results/.

    Columns, types, ranges, order and spelling are those that hashbench writes, and no key stands twice. Fingerprints of
    a dataset agree with each other, with those accepted and with the dataset as it is prepared here. Metrics exist, and
    methods are not ahead of their version. With --against, new rows are of hashbench's own methods, and no accepted
    row of the files, or of the folder, is gone or has other numbers unless the version of its method rises. What is
    wrong is a sentence each, and the exit code is 1.
    """
    from hashbench.reports.submissions import (
        about_accepted,
        about_makers,
        about_rows,
        changed_cells,
        read_files,
        result_files,
    )

    paths = paths or (Path("results"),)
    files = result_files(paths)
    rows, problems = read_files(files)
    base = _accepted(against)
    if not problems:  # else rows that cannot be read would be gone
        problems = about_accepted(rows, base, paths)
    _end(problems + about_rows(rows, base) + (about_makers(rows, base) if against else []))
    n_cells = f", {counted(len(changed_cells(rows, base)), 'cell')} of them new or changed" if against else ""
    click.echo(f"{counted(len(files), 'file')} with {counted(len(rows), 'row')}: all is well{n_cells}.")


@results.command()
@_FILES
@_AGAINST
@click.option("--cells", "n_cells", type=click.IntRange(1), default=1, show_default=True, help="How many to run.")
@METHOD
@BITS
@click.option("--seed", "seeds", type=OneEach(int), multiple=True, help="Seed of the cells, repeatable.")
@METRIC
def rerun(paths: tuple[Path, ...], against: str | None, n_cells: int, **asked: Any) -> None:
    """Run a cell of result files again, in a fresh folder, and compare every digit; by default of those in results/.

    A cell is a dataset, method, parameters, code length and seed. It is chosen among those that are new or changed,
    always the same one of the same rows, of a dataset that is built in or prepared here. Methods most likely to differ
    come first: learned ones, then quick ones, slow ones, baselines; or name some, and lengths, seeds and metrics. Rows
    that come out otherwise are named, with how what made them differs from here, and the exit code is 1; where methods
    that optimise end within 0.02, as they may on another processor, it is a warning. So is what cannot be run here.
    """
    from hashbench.reports.row_origins import origin_of, read_origins
    from hashbench.reports.submissions import (
        about_rows,
        changed_cells,
        chosen_cells,
        read_files,
        result_files,
        runnable,
    )
    from hashbench.reports.submissions import rerun as run_again

    files = result_files(paths or (Path("results"),))
    rows, problems = read_files(files)
    base = _accepted(against)
    _end(problems + about_rows(rows, base))
    cells, origins = chosen_cells(changed_cells(rows, base), **asked), read_origins(files)
    known, others = runnable(cells)
    if not cells:
        click.echo("No cell is new or changed.")
    if others:
        _warn(
            f"{counted(len(cells) - len(known), 'new or changed cell')} cannot be run here: {', '.join(others[:6])}"
            f"{', ...' * (len(others) > 6)}."
        )
    chosen = known[:n_cells]
    problems, warnings = [], []
    for job, cell in chosen:
        click.echo(f"{job}: {counted(len(cell), 'row')} ...")
        wrong, doubtful = run_again(job, cell, origin_of(origins, cell[0].key))
        problems += wrong
        warnings += doubtful
    for warning in warnings:
        _warn(warning)
    _end(problems)
    if chosen:
        how = "no digit is further off than another processor may end" if warnings else "every digit is the same"
        click.echo(f"{len(chosen):,} of {counted(len(cells), 'new or changed cell')} run again: {how}.")


def _warn(sentence: str) -> None:
    """Tell what a reviewer should know; on GitHub it stands beside the pull request too."""
    click.echo(f"Warning: {sentence}", err=True)
    if os.environ.get("GITHUB_ACTIONS"):
        click.echo(f"::warning::{sentence}")


def _accepted(against: str | None) -> dict[tuple[Any, ...], "Row"]:
    """Read the rows that are accepted already."""
    if against is None:
        return {}
    from hashbench.reports.revisions import read_side

    return read_side(against, Path("results")).rows


def _end(problems: list[str]) -> None:
    """End the command if something is wrong: one sentence, or all with their number below."""
    if len(problems) == 1:
        raise HashbenchError(problems[0])
    if problems:
        for problem in problems:
            click.echo(problem, err=True)
        raise HashbenchError(f"{len(problems)} things are wrong; each is told above.")
