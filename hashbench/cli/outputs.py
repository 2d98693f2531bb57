"""What commands print, and checks of output files before any work."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from hashbench.cli.options import NamedPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = (".svg", ".png", ".pdf")
DASH = Path("-")
STDOUT, STDERR = 1, 2
_stdout: ContextVar[IO[Any] | None] = ContextVar("stdout", default=None)  # that commands print on


@contextmanager
def only_own_output() -> Iterator[None]:
    """Keep standard output for what `echo` prints; what plug-ins print goes to standard error."""
    token = _stdout.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _stdout.reset(token)


def echo(text: object, *, nl: bool = True, err: bool = False) -> None:
    """Print on standard output or error; if the reader, such as head, has ended, the command goes on without it."""
    try:
        click.echo(text, None if err else _stdout.get(), nl, err)
    except BrokenPipeError:
        close(sys.stderr if err else _stdout.get() or sys.stdout)


def close(stream: IO[Any]) -> None:
    """Send what is printed from now on, and the rest of what was, to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class FigurePath(NamedPath):
    """A figure's file, in the format of its suffix; with ``or_numbers`` also a CSV file or stdout."""

    def __init__(self, *, or_numbers: bool = False) -> None:
        super().__init__(dir_okay=False, allow_dash=or_numbers)
        self.or_numbers = or_numbers

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        path: Any = super().convert(value, param, ctx)
        is_of_numbers = self.or_numbers and path.suffix.lower() in ("", ".csv")
        if path.suffix.lower() not in FIGURES and not is_of_numbers:
            numbers = ", or in .csv for numbers" if self.or_numbers else ""
            self.fail(f"{str(value)!r} must end in .svg, .png or .pdf{numbers}.", param, ctx)
        return path


def check_installed(*modules: str) -> None:
    """Import what the end of a command needs, so that a package that is missing is reported before any work."""
    for module in modules:
        import_module(module)


def refuse_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Refuse outputs, by option, that cannot be written, that share a file, or that would replace an input."""
    from hashbench.store.files import check_output

    chosen = {option: output for option, output in outputs.items() if output is not None}
    option_of: dict[int | Path, str] = {}
    for option, output in chosen.items():
        if output != DASH:
            check_output(output)
        if output.suffix.lower() in FIGURES:
            check_installed("hashbench.reports.plots")  # fails, too, if matplotlib cannot be set up
        other = option_of.setdefault(target_of(output), option)
        if other != option:
            raise click.UsageError(f"{other} and {option} name the same file; give each its own.")
    _refuse_inputs(chosen.values(), inputs)


def refuse_folder(folder: Path, patterns: Iterable[str], inputs: Iterable[Path]) -> None:
    """Refuse an output folder that cannot be written to, or in which a file to be written is an input."""
    from hashbench.store.files import check_output

    check_output(folder, is_folder=True)
    _refuse_inputs([path for pattern in patterns for path in folder.glob(pattern)], inputs)


def _refuse_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    from hashbench.store.files import identities

    input_files = identities(inputs)
    for output in outputs:
        if identities([output]) & input_files:
            raise click.UsageError(f"{output} is read and would be overwritten; write to another file.")


def results_files(results: Path) -> list[Path]:
    """List the files that results are read from, in a folder or beside a file."""
    from hashbench.store.results import find_files, record_path

    tables = find_files(results) if results.is_dir() else [results]
    return [file for table in tables for file in (table, record_path(table))]


def target_of(output: Path) -> int | Path:
    """Return the file that an output goes to, or the descriptor of an open one."""
    from hashbench.store.files import descriptor

    number = STDOUT if output == DASH else descriptor(output)
    return output.resolve() if number is None else number


def write(output: Path, text: str) -> None:
    """Write text to a file, or print it on standard output or error in its turn."""
    from hashbench.store.files import write_text

    target = target_of(output)
    if target in (STDOUT, STDERR):
        echo(text, nl=False, err=target == STDERR)
    else:
        write_text(output, text)


def save_figure(output: Path, figure: "Figure") -> None:
    """Write a figure in the format of the file's suffix."""
    from hashbench.reports.plots import figure_bytes
    from hashbench.store.files import write_bytes

    write_bytes(output, figure_bytes(figure, output.suffix.lower()[1:]))
