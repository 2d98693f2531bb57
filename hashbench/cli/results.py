"""The commands on result files: merge, check, rerun."""

import random
from pathlib import Path

import click
from click import IntRange
from cloup import option

from hashbench.cli.options import RESULTS, SEEDS, NamedPath
from hashbench.cli.outputs import echo
from hashbench.errors import HashbenchError, counted

_FILES = click.argument("paths", nargs=-1, type=NamedPath(exists=True), metavar="[FILE|FOLDER]...")


@click.group()
def results() -> None:
    """Check, merge and rerun result files."""


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

    n_rows = merge_folders(results, folders)
    echo(f"{counted(n_rows, 'row')} added; those of {counted(len(folders), 'folder')} are in {results}.")


@results.command()
@_FILES
@RESULTS
def check(paths: tuple[Path, ...], results: Path) -> None:
    """Check result files; by default all in the folder of --results.

    Columns, types, ranges, order and spelling must be those that hashbench writes, and keys unique. Fingerprints of a
    dataset must agree with each other and with the dataset prepared here. Metrics must exist, the origin of each job
    must be recorded, rows must be of the method's version here, and those of a plug-in must have been made by one code
    of it. Each problem is printed as a sentence, and the exit code is 1.
    """
    from hashbench.reports import submissions

    files = submissions.result_files(paths or (results,))
    rows, record, problems = submissions.read_files(files)
    _raise([*problems, *submissions.about_contents(rows), *submissions.about_jobs(rows, record.origins)])
    echo(f"{counted(len(files), 'file')} with {counted(len(rows), 'row')}: all is well.")


@results.command()
@_FILES
@option("--against", metavar="REVISION", help="Only cells that are not in a commit, branch, folder or file.")
@option("--cells", "n_cells", type=IntRange(1), default=1, help="Number of cells to run.")
@option("--seed", type=SEEDS, help="Seed of the draw of random cells.", show_default="the first cells")
def rerun(paths: tuple[Path, ...], against: str | None, n_cells: int, seed: int | None) -> None:
    """Run a cell of result files again, in a fresh folder, and compare every digit; by default of those in results/.

    A cell is a dataset, method, parameters, code length and seed. The first cell whose dataset is built in or
    prepared here is run; with --seed, a random one. Rows that differ are listed as by hashbench diff, with differences
    between their environment and this one, and the exit code is 1; it is 0 for values up to 0.03 apart of methods that
    train, as another processor may cause that. Cells that cannot be run here, such as those of an older version, are
    skipped with a warning; if none can be run, the exit code is 1 without --against. To rerun any other cell, run it
    into another folder, and compare: hashbench diff results FOLDER --only-changed.
    """
    from hashbench.reports import submissions
    from hashbench.reports.diff import format_diff
    from hashbench.reports.revisions import read_side

    rows, record, problems = submissions.read_files(submissions.result_files(paths or (Path("results"),)))
    _raise(problems)
    cells = submissions.changed_cells(rows, {} if against is None else read_side(against, Path("results")).rows)
    if seed is not None:
        random.Random(seed).shuffle(cells)
    done, skipped = dict[str, bool](), dict[str, None]()
    for cell in cells:
        try:
            job = submissions.job_of(cell[0])
        except HashbenchError as error:
            skipped[f"{cell[0].dataset} {cell[0].method} ({str(error).rstrip('.')})"] = None
            continue
        if len(done) < n_cells:
            echo(f"{job}: {counted(len(cell), 'row')} ...")
            diff, here = submissions.rerun(job, cell)
            echo(format_diff(diff, "table"))
            if diff.counts["unchanged"] < len(diff.rows):
                echo(submissions.compare_origins(record.origins.get(cell[0].job), here))
            done[str(job)] = submissions.is_reproduced(diff, job.method)
    if skipped:
        sentence = f"cells cannot be run here: {', '.join([*skipped][:6])}{', ...' * (len(skipped) > 6)}."
        if not done and against is None:
            raise HashbenchError(sentence)
        click.echo(f"Warning: {sentence}", err=True)
    if wrong := [job for job, is_right in done.items() if not is_right]:
        raise HashbenchError(
            f"not reproduced: {', '.join(wrong)}. Rerun with the versions of constraints.txt; see "
            "docs/explanation/numbers.md on what processors may change."
        )
    kind = "cell" if against is None else "new or changed cell"
    echo(f"{counted(len(done), 'cell')} rerun and reproduced, of {counted(len(cells), kind)}.")


def _raise(problems: list[str]) -> None:
    """Raise an error if there are problems: the only one, or their number after all of them."""
    if len(problems) == 1:
        raise HashbenchError(problems[0])
    if problems:
        for problem in problems:
            click.echo(problem, err=True)
        raise HashbenchError(f"{len(problems)} things are wrong; each is listed above.")
