"""Files that users name for output: looked at before any work, and never an input of the same command."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashbench.cli.options import File

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = (".svg", ".png", ".pdf")
DASH = Path("-")
STDOUT, STDERR = 1, 2


class Drawn(File):
    """A file of a figure, whose ending says of what kind; or, where it may hold them, of numbers."""

    def __init__(self, *, or_numbers: bool = False) -> None:
        super().__init__(allow_dash=or_numbers)
        self.or_numbers = or_numbers

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: D102
        path: Path = super().convert(value, param, ctx)
        known = (*FIGURES, *(("", ".csv") if self.or_numbers else ()))
        if path.suffix.lower() not in known:
            numbers = ", or in .csv for numbers" if self.or_numbers else ""
            self.fail(f"{str(value)!r} is to end in {', '.join(FIGURES[:-1])} or {FIGURES[-1]}{numbers}.", param, ctx)
        return path


def refuse_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Refuse outputs, by option, that cannot be written, that go to one place, or that take the place of an input."""
    from hashbench.store.files import check_output

    given = {option: output for option, output in outputs.items() if output is not None}
    for output in given.values():
        if output != DASH:
            check_output(output)
        if output.suffix.lower() in FIGURES:
            import hashbench.reports.plots  # noqa: F401  # which matplotlib's settings may forbid
    options: dict[int | Path, str] = {}
    for option, output in given.items():
        other = options.setdefault(place(output), option)
        if other != option:
            raise click.UsageError(f"{other} and {option} name the same file; give each its own.")
    _refuse_inputs(given.values(), inputs)


def refuse_folder(folder: Path, patterns: Iterable[str], inputs: Iterable[Path]) -> None:
    """Refuse a folder for output that is none, takes no files, or in which a file of such a name is an input."""
    from hashbench.store.files import check_output

    check_output(folder, is_folder=True)
    _refuse_inputs([path for pattern in patterns for path in folder.glob(pattern)], inputs)


def _refuse_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    from hashbench.store.files import is_one_of

    files = list(inputs)
    for output in outputs:
        if is_one_of(output, files):
            raise click.UsageError(f"{output} is read and would be written over; write to another file.")


def results_files(results: Path) -> list[Path]:
    """List the files that results are read from, of a folder or beside a file."""
    from hashbench.store.result_files import find_files, made_path, settings_path

    files = find_files(results) if results.is_dir() else [results]
    return [one for path in files for one in (path, settings_path(path), made_path(path))]


def place(output: Path) -> int | Path:
    """Tell where an output goes: to the open file of a number, or to a file."""
    from hashbench.store.files import descriptor

    number = STDOUT if output == DASH else descriptor(output)
    return output.resolve() if number is None else number


def write(output: Path, text: str) -> None:
    """Write to standard output and error as all else is that goes there, after what is."""
    from hashbench.store.files import write_text

    to = place(output)
    if to in (STDOUT, STDERR):
        click.echo(text, nl=False, err=to == STDERR)
    else:
        write_text(output, text)


def write_drawn(output: Path, figure: "Figure") -> None:
    """Write a figure as what its file's ending says."""
    from hashbench.reports.plots import figure_bytes
    from hashbench.store.files import write_bytes

    write_bytes(output, figure_bytes(figure, output.suffix.lower()[1:]))
