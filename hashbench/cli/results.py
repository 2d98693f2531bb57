"""The commands that keep result files in order."""

from pathlib import Path

import click

from hashbench.errors import HashbenchError


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
