"""The commands on result files: merge, info, check, rerun."""

from pathlib import Path

import click
from click import IntRange
from cloup import option

from hashbench.cli.options import BITS, METHOD, METRIC, RESULTS, NamedPath, OneEach, completing
from hashbench.cli.outputs import echo
from hashbench.errors import HashbenchError, counted

_FILES = click.argument("paths", nargs=-1, type=NamedPath(exists=True), metavar="[FILE|FOLDER]...")


@click.group()
def results() -> None:
    """Check, inspect, merge and rerun result files."""


@results.command()
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=NamedPath(exists=True, file_okay=False),
    metavar="FOLDER...",
)
@RESULTS
def merge(folders: tuple[Path, ...], results: Path) -> None:
    """Add the rows of other folders to those of --results, for example parts of a grid that ran elsewhere.

    Their provenance is added, too. If rows have the same key but different numbers, nothing is written.
    """
    from hashbench.store.results import merge_folders

    _, n_rows = merge_folders(results, folders)
    echo(f"{counted(n_rows, 'row')} added; those of {counted(len(folders), 'folder')} are in {results}.")


@results.command()
@click.argument("dataset", shell_complete=completing("datasets"))
@click.argument("method", shell_complete=completing("methods"))
@RESULTS
def info(dataset: str, method: str, results: Path) -> None:
    """Show the provenance of a METHOD's results on a DATASET: commit, libraries, processor and date of each job."""
    from hashbench.reports.row_origins import origin_table

    echo(origin_table(results, dataset, method))


@results.command()
@_FILES
def check(paths: tuple[Path, ...]) -> None:
    """Check result files; by default those in results/.

    Columns, types, ranges, order and spelling must be those that hashbench writes, and keys unique. Fingerprints of a
    dataset must agree with each other and with the dataset prepared here. Metrics must exist, each job must have its
    line in the file of jobs, and rows must be of the method's version here and, for a plug-in, of the same code. Each
    problem is printed as a sentence, and the exit code is 1.
    """
    from hashbench.reports import submissions
    from hashbench.reports.row_origins import read_origins

    files = submissions.result_files(paths or (Path("results"),))
    rows, problems = submissions.read_files(files)
    origins = read_origins(files)
    problems += (
        submissions.about_rows(rows)
        + submissions.about_contents(rows, submissions.find_recipes(files))
        + submissions.about_jobs(rows, origins)
    )
    _raise(problems + submissions.about_code(rows, origins))
    echo(f"{counted(len(files), 'file')} with {counted(len(rows), 'row')}: all is well.")


@results.command()
@_FILES
@option("--against", metavar="REVISION", help="Only cells that are not in a commit, branch, folder or file.")
@option("--cells", "n_cells", type=IntRange(1), default=1, help="Number of cells to run.")
@METHOD
@BITS
@option("--seed", "seeds", type=OneEach(int), multiple=True, help="Seed of the cells, repeatable.")
@METRIC
def rerun(
    paths: tuple[Path, ...],
    against: str | None,
    n_cells: int,
    methods: tuple[str, ...],
    n_bits: tuple[int, ...],
    seeds: tuple[int, ...],
    metrics: tuple[str, ...],
) -> None:
    """Run a cell of result files again, in a fresh folder, and compare every digit; by default of those in results/.

    A cell is a dataset, method, parameters, code length and seed. It is the first among the new or changed cells of
    datasets that are built in, prepared here, or recorded in the results with files that are here; options choose
    others. Rows that differ are listed, with differences between their environment and this one, and the exit code
    is 1. Differences up to 0.03 are only a warning for methods that train, as another processor may cause them; it
    names the largest of each metric. Cells that cannot be run here, such as those of an older version, also only cause
    a warning; if none can be run, the exit code is 1 without --against.
    """
    from hashbench.reports import submissions
    from hashbench.reports.revisions import read_side
    from hashbench.reports.row_origins import origin_of, read_origins
    from hashbench.scoring.metrics import get_metric

    files = submissions.result_files(paths or (Path("results"),))
    rows, problems = submissions.read_files(files)
    _raise(problems + submissions.about_rows(rows))
    base = {} if against is None else read_side(against, Path("results")).rows
    choice = {"method": methods, "n_bits": n_bits, "seed": seeds, "metric": [get_metric(name).name for name in metrics]}
    cells, origins = submissions.chosen_cells(submissions.changed_cells(rows, base), choice), read_origins(files)
    recipes = submissions.find_recipes(files)
    runnable_cells, others = submissions.runnable(cells, recipes)
    if not cells:
        echo("No cell is new or changed.")
    if others:
        n_others = counted(len(cells) - len(runnable_cells), "new or changed cell")
        sentence = f"{n_others} cannot be run here: {', '.join(others[:6])}{', ...' * (len(others) > 6)}."
        if not runnable_cells and against is None:
            raise HashbenchError(sentence)
        _warn(sentence)
    problems, warnings = [], []
    for job, cell in runnable_cells[:n_cells]:
        echo(f"{job}: {counted(len(cell), 'row')} ...")
        cell_problems, cell_warnings = submissions.rerun(job, cell, origin_of(origins, cell[0].key), recipes)
        problems += cell_problems
        warnings += cell_warnings
    for warning in warnings:
        _warn(warning)
    _raise(problems)
    if n_run := len(runnable_cells[:n_cells]):
        verdict = "differences are within those between processors" if warnings else "every digit is the same"
        echo(f"{n_run:,} of {counted(len(cells), 'new or changed cell')} run again: {verdict}.")


def _warn(sentence: str) -> None:
    click.echo(f"Warning: {sentence}", err=True)


def _raise(problems: list[str]) -> None:
    """Raise an error if there are problems: the only one, or their number after all of them."""
    if len(problems) == 1:
        raise HashbenchError(problems[0])
    if problems:
        for problem in problems:
            click.echo(problem, err=True)
        raise HashbenchError(f"{len(problems)} things are wrong; each is listed above.")
