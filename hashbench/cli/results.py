"""The commands that keep result files in order."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashbench.cli.options import BITS, METHOD, METRIC, OneEach
from hashbench.errors import HashbenchError, counted

if TYPE_CHECKING:
    from hashbench.store.results import Row

_FILES = click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[FILE|FOLDER]...")
_AGAINST = click.option("--against", metavar="REVISION", help="What is accepted: a commit, branch, folder or file.")


@click.group()
def results() -> None:
    """Keep the result files in order."""


@results.command()
@click.argument("base", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("ours", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("theirs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("name", required=False)
def merge(base: Path, ours: Path, theirs: Path, name: str | None) -> None:
    """Unite the rows of two versions of a results file by key, and write them to OURS.

    BASE is the version both come from. A row that only one side changed, added or deleted is as that side has it. Rows
    that both changed, each in its own way, stand there between git's markers, and the exit code is 1. NAME is what git
    calls the file; where it is given and a version is no results file, both sides stand there whole, likewise marked.
    For git to do it, with a merge of its own where it does not find hashbench:

    \b
    echo 'results/*.csv text eol=lf merge=hashbench' >> .gitattributes
    git config merge.hashbench.driver \
        'hashbench results merge %O %A %B %P; s=$?; test $s = 127 && git merge-file %A %O %B || exit $s'
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.store.results import merge_files

    conflicts = merge_files(base, ours, theirs, name)
    if conflicts:
        shown = "; ".join(" ".join(map(str, key)) for key in conflicts[:3])
        raise HashbenchError(
            f"both sides changed {len(conflicts)} row{'s' * (len(conflicts) > 1)}, each in its own way: {shown}"
            f"{'; ...' if len(conflicts) > 3 else ''}. In {name or ours} they stand between git's markers; "
            "keep one of each."
        )


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
    that come out otherwise are named, and the exit code is 1; where methods that optimise end within 0.02, as they may
    on another processor, it is a warning. So is what cannot be run here.
    """
    from hashbench.reports.submissions import (
        about_rows,
        changed_cells,
        chosen_cells,
        read_files,
        result_files,
        runnable,
    )
    from hashbench.reports.submissions import rerun as run_again

    rows, problems = read_files(result_files(paths or (Path("results"),)))
    base = _accepted(against)
    _end(problems + about_rows(rows, base))
    cells = chosen_cells(changed_cells(rows, base), **asked)
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
        wrong, doubtful = run_again(job, cell)
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
