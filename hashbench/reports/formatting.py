"""How everything is printed: records as tables for a terminal, in Markdown, as CSV and as JSON."""

import io
import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

from hashbench import __version__
from hashbench._validation import FORMULA

JSON_SCHEMA = 1  # rises when a key of any command's JSON is renamed, removed, or changes its meaning
NAME_WIDTH, _PROSE_WIDTH = 40, 100  # characters of a line
# What Markdown would not show as it is.
_MARKUP = re.compile(r"[\\`\[<|]|\*(?=\S)|(?<=\S)\*|&(?=#?\w+;)|(?<!\w)_|_(?!\w)|~(?=~)")
Row = Mapping[Any, Any]  # values by name


@dataclass(frozen=True)
class Table:
    """Rows of values at full precision, and how people see them.

    ``columns`` are headings, each with a template for the row's values, such as ``"bits | range {low:.4f} to
    {high:.4f}"``; without one, the row has a value of that name. Beside Python's formats there are ``score`` and ``p``.
    If a value is missing (None or NaN), the cell is "-". The first ``n_left`` columns are flush left; a terminal breaks
    their texts at ``width``.
    """

    columns: str
    rows: Sequence[Row]
    n_left: int = 1
    width: int = 1000

    def to_text(self, form: str = "table") -> str:
        """Lay out for a terminal, or as markdown, without a final newline."""
        columns = [re.split(r" (?={)", column, maxsplit=1) for column in self.columns.split(" | ")]
        header = [heading for heading, *_ in columns]
        cells = [[_cell(row, *column) for column in columns] for row in self.rows]
        if form == "markdown":
            return markdown_table(header, cells, self.n_left)
        return plain_table(header, cells, self.n_left, self.width)


@dataclass(frozen=True)
class Records:
    """What a command prints, in any form.

    ``parts`` are tables and texts for people, ``content`` is for programs. For spreadsheets there are ``fields`` of
    ``rows`` (by default all), floats with ``decimals`` (by default all digits).
    """

    parts: Sequence[Table | str]
    content: Row | Sequence[Row] = ()
    rows: Sequence[Row] = ()
    fields: Sequence[str] = ()
    decimals: int | None = None

    def to_text(self, form: str) -> str:
        """Lay out as json, csv or markdown, else for a terminal, without a final newline."""
        if form == "json":
            return json_text(self.content)
        if form == "csv":
            fields = self.fields or [*self.rows[0]]
            return sheet_text(fields, ([self._digits(row[name]) for name in fields] for row in self.rows)).rstrip("\n")
        return "\n\n".join(part if isinstance(part, str) else part.to_text(form) for part in self.parts)

    def _digits(self, value: Any) -> Any:
        if is_missing(value):
            return ""
        return f"{value:.{self.decimals}f}" if isinstance(value, float) and self.decimals is not None else value


class _Cells(Formatter):
    def format_field(self, value: Any, form: str) -> str:
        return _NAMED[form](value) if form in _NAMED else format(value, form)


_CELLS = _Cells()


def _cell(row: Row, heading: str, template: str = "") -> str:
    names = [name for _, name, _, _ in _CELLS.parse(template) if name] or [heading]
    if any(is_missing(row[name]) for name in names):
        return "-"
    return _CELLS.vformat(template, (), row) if template else str(row[heading])


def is_missing(value: Any) -> bool:
    """Return whether a value is None or NaN."""
    return value is None or value != value


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1, width: int = 1000) -> str:
    """Lay out a table for a terminal: ``n_left`` columns of this width flush left, others right; no final newline."""
    import rich.box
    from rich.console import Console
    from rich.table import Table as TerminalTable

    table = TerminalTable(box=rich.box.SIMPLE, pad_edge=False)
    for position, title in enumerate(header):
        table.add_column(title, justify="left" if position < n_left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(wrapped(cell, width) for cell in row[:n_left]), *row[n_left:])
    text = io.StringIO()
    Console(file=text, width=1000, markup=False, emoji=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")


def markdown_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    n_left: int = 1,
    *,
    is_padded: bool = True,
    is_markup: bool = False,
) -> str:
    """Lay out a table in Markdown, padded to read well as plain text; with ``is_markup``, cells are not escaped."""
    grid = [[cell if is_markup else markdown_text(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) if is_padded else 0 for column in zip(*grid, strict=True)]
    rule = ["-" * (width or 3) for width in widths[:n_left]]
    rule += ["-" * ((width or 4) - 1) + ":" for width in widths[n_left:]]
    lines = [
        [*map(str.ljust, row[:n_left], widths), *map(str.rjust, row[n_left:], widths[n_left:])]
        for row in (grid[0], rule, *grid[1:])
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def score_text(score: float) -> str:
    """Write four decimals, rounded from the six that results have, so that all tables show the same."""
    return f"{float(f'{score:.6f}'):.4f}"


def p_text(p_value: float) -> str:
    """Write a p value, "-" if there is none."""
    return "-" if p_value != p_value else "<0.0001" if p_value < 1e-4 else f"{p_value:.4f}"


_NAMED = {"score": score_text, "p": p_text}  # formats of a cell


def wrapped(text: str, width: int = _PROSE_WIDTH) -> str:
    """Break a text at blanks into lines of this width; later lines are indented."""
    if len(text) <= width:
        return text
    return textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown_text(text: str) -> str:
    r"""Escape text, such as a name from a row, so that Markdown shows it as it is.

    >>> print(markdown_text("n_iter=<b> *|"))
    n_iter=\<b> \*\|
    """
    return _MARKUP.sub(r"\\\g<0>", text)


def sheet_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Write CSV that is safe to open in a spreadsheet, which evaluates none of its cells; not meant to be read back."""
    from hashbench.store.results import csv_text

    return csv_text(map(as_text, header), (map(as_text, row) for row in rows))


def as_text(cell: object) -> object:
    """Put an apostrophe before a text that begins like a formula and is not a number; return others unchanged.

    >>> as_text("=1+1"), as_text("-0.5"), as_text("-")
    ("'=1+1", '-0.5', '-')
    """
    if not isinstance(cell, str) or len(cell) < 2 or cell[0] not in FORMULA:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def json_text(content: Row | Sequence[Row]) -> str:
    """Write an object or a list of objects as JSON, each with the version of hashbench and of its JSON.

    NaN, such as a mean over no query, is null; NumPy's values become lists and numbers, and all else becomes text.
    """
    version = {"hashbench": {"version": __version__, "schema_version": JSON_SCHEMA}}
    stamped = version | dict(content) if isinstance(content, Mapping) else [version | dict(part) for part in content]
    return json.dumps(_plain(stamped), indent=2, default=str)


def _plain(content: Any) -> Any:
    if hasattr(content, "tolist"):  # of NumPy, which is not imported here
        content = content.tolist()
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if content != content else content
