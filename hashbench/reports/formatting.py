"""Tables as text, for a terminal, in Markdown and as CSV, and JSON."""

import io
import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hashbench import __version__
from hashbench._validation import FORMULA

JSON_SCHEMA = 1  # rises when a key of any command's JSON is renamed, removed, or changes its meaning
_NAME_WIDTH, _PROSE_WIDTH = 40, 100  # characters of a line
# What Markdown would not show as it is.
_MARKUP = re.compile(r"[\\`\[<|]|\*(?=\S)|(?<=\S)\*|&(?=#?\w+;)|(?<!\w)_|_(?!\w)|~(?=~)")


def plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1, *, is_wrapped: bool = False
) -> str:
    """Lay out a table for a terminal: the first ``n_left`` columns flush left, the others right; no final newline.

    With ``is_wrapped``, the left columns hold names with settings, and long ones take several lines.
    """
    import rich.box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=rich.box.SIMPLE, pad_edge=False)
    for position, title in enumerate(header):
        table.add_column(title, justify="left" if position < n_left else "right", no_wrap=True)
    for row in rows:
        names = [wrapped(cell, _NAME_WIDTH) for cell in row[:n_left]] if is_wrapped else row[:n_left]
        table.add_row(*names, *row[n_left:])
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


def p_text(p_value: float) -> str:
    """Write a p value, "-" if there is none."""
    return "-" if p_value != p_value else "<0.0001" if p_value < 1e-4 else f"{p_value:.4f}"


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
    from hashbench.store.result_files import csv_text

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


def json_text(content: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """Write an object or a list of objects as JSON, each with the version of hashbench and of its JSON.

    NaN, such as a mean over no query, is null.
    """
    version = {"hashbench": {"version": __version__, "schema_version": JSON_SCHEMA}}
    stamped = version | dict(content) if isinstance(content, Mapping) else [version | dict(part) for part in content]
    return json.dumps(_without_nan(stamped), indent=2)


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if content != content else content
