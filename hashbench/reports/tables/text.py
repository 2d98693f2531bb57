"""Blocks of tables, and how they look in Markdown and LaTeX."""

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from hashbench.reports.formatting import markdown_table, markdown_text
from hashbench.reports.marks import SIGNS

DASH, SPREAD = "-", "±"
Content = float | tuple[float, float] | str  # a number, NaN if unknown; a range; or text as it is


def is_dash(content: Content) -> bool:
    """Return whether a cell shows a dash only."""
    if isinstance(content, tuple):
        return any(map(is_dash, content))
    return content == DASH if isinstance(content, str) else math.isnan(content)


class Style(NamedTuple):
    """How numbers are shown."""

    digits: int
    has_spread: bool = True

    def text(self, content: Content) -> str:
        """Write what a cell holds, a dash where a number or a range is not known."""
        if is_dash(content):
            return DASH
        if isinstance(content, tuple):
            return " to ".join(map(self.text, content))
        return content if isinstance(content, str) else f"{content:.{self.digits}f}"

    def spread(self, entry: "Entry") -> str:
        """Write the spread of a cell, nothing where there is none or none is shown."""
        return self.text(entry.spread) if self.has_spread and not is_dash(entry.spread) else ""


class Entry(NamedTuple):
    """One cell: what it holds, its spread over seeds, whether it is bold, and its marks."""

    content: Content
    spread: float = math.nan
    is_best: bool = False
    marks: str = ""


class Line(NamedTuple):
    """One line: its label and its cells."""

    label: str
    entries: Sequence[Entry]


class Span(NamedTuple):
    """Columns under one heading, perhaps with their own headings."""

    heading: str
    columns: Sequence[str] = ("",)


KEY = (SPREAD, "Bold", "Dash", *SIGNS, "Tuned", "Defaults")  # what Markdown explains, in order
Groups = Sequence[tuple[str, Sequence[Line]]]  # name, and lines


@dataclass(frozen=True)
class TableBlock:
    """One dataset and metric of a table, as readers see it.

    The notes are sentences below it, and the key explains its signs. LaTeX has both below the block, Markdown the key
    once below all blocks. Only Markdown has the paragraphs, on the sources of the papers' values.
    """

    title: str
    caption: str
    spans: Sequence[Span]
    groups: Groups
    notes: Sequence[str]
    paragraphs: Sequence[str] = ()
    data: str = ""  # the dataset's fingerprint
    key: Mapping[str, str] = field(default_factory=dict)
    is_detail: bool = False  # only Markdown shows it
    slug: str = ""  # what LaTeX's label is made of; the title may have the user's names


def markdown(title: str, blocks: Sequence[TableBlock], style: Style) -> str:
    """Write a table for people: a heading, per block a Markdown table and its notes, and the key."""
    lines = [f"# {markdown_text(title)}", ""]
    key = dict.fromkeys((sign, text) for block in blocks for sign, text in block.key.items())
    for block in blocks:
        headings = [_heading(span.heading, column) for span in block.spans for column in span.columns]
        header = ["method", *map(markdown_text, headings)]
        rows = []
        for group, body in block.groups:
            rows.append([f"*{group}*", *[""] * (len(header) - 1)])
            rows += [
                [markdown_text(line.label), *(_markdown_cell(entry, style) for entry in line.entries)] for line in body
            ]
        notes = [" ".join([*block.notes, *[f"Data {block.data}."] * bool(block.data)]), *block.paragraphs]
        table = markdown_table(header, rows, is_markup=True)
        lines += [f"## {markdown_text(block.title)}", "", table, ""]
        lines += [text for note in notes if note for text in (markdown_text(note), "")]
    shown = [sign for sign in KEY if style.has_spread or sign != SPREAD]
    explained = sorted((item for item in key if item[0] in shown), key=lambda item: KEY.index(item[0]))
    lines += [*(f"- {sign}: {markdown_text(text)}" for sign, text in explained), *[""] * bool(explained)]
    return "\n".join(lines)


def _heading(heading: str, column: str) -> str:
    return {"paper": "paper", "ours": heading, "": heading}.get(column, f"{heading} {column}")


def _markdown_cell(entry: Entry, style: Style) -> str:
    spread = style.spread(entry)
    text = style.text(entry.content) + (f" {SPREAD} {spread}" if spread else "")
    return (f"**{text}**" if entry.is_best else text) + entry.marks


_FEW = 4  # columns that a column of an article takes
_LABEL_WIDTH = 26  # characters of a label in one line; longer ones take several
_SHRUNK = (  # to the place, if it is wider or higher
    r"\resizebox*{!}{\ifdim\totalheight>.75\textheight .75\textheight\else\totalheight\fi}"
    r"{\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
)
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "_%&#${}"},
        "¶": r"$^{\P}$",
        "±": r"$\pm$",
        "†": r"$^{\dagger}$",
        "★": r"$^{\star}$",
        "‡": r"$^{\ddagger}$",
        "°": r"$^{\circ}$",
        "§": r"$^{\S}$",
        "<": r"$<$",
        ">": r"$>$",
        "|": r"$|$",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def latex(name: str, title: str, blocks: Sequence[TableBlock], style: Style) -> str:
    """Write a table for a paper: one ``table`` per block, ``table*`` for many columns, shrunk if too large."""
    lines = [f"% {title}. Made by hashbench; needs \\usepackage{{booktabs,graphicx}}."]
    for block in blocks:
        if not block.is_detail:
            lines += ["", *_environment(name, block, style)]
    return "\n".join(lines) + "\n"


def _environment(name: str, block: TableBlock, style: Style) -> Iterator[str]:
    n_columns = sum(len(span.columns) for span in block.spans)
    environment = "table" if n_columns <= _FEW else "table*"
    label = "-".join(re.findall(r"[a-z0-9@]+", f"{name} {block.slug}".lower()))
    caption = re.sub(r"\(([^()]*) \(([^()]*)\)\)", r"(\1, \2)", block.caption)  # no parentheses within others
    obvious = {"Bold", "Dash", *[SPREAD] * (not style.has_spread)}
    key = [f"{sign}: {text}" for sign, text in block.key.items() if sign not in obvious]
    yield from [f"% data {block.data}"] * bool(block.data)
    yield rf"\begin{{{environment}}}"
    yield r"\centering"
    yield rf"\caption{{{_escaped(caption)}}}"
    yield rf"\label{{tab:{label}}}"
    yield r"\smallskip\scriptsize\setlength{\tabcolsep}{2pt}"
    yield _SHRUNK
    yield from _tabular(block, n_columns, style)
    yield "}}"
    yield rf"\par\smallskip\parbox{{\linewidth}}{{\raggedright {_escaped(' '.join([*block.notes, *key]))}}}"
    yield rf"\end{{{environment}}}"


def _tabular(block: TableBlock, n_columns: int, style: Style) -> Iterator[str]:
    yield rf"\begin{{tabular}}{{@{{}}{'l' * (1 + n_columns)}@{{}}}}"
    yield r"\toprule"
    if all(len(span.columns) == 1 for span in block.spans):
        yield _row(["method", *(_escaped(span.heading) for span in block.spans)])
    else:
        headings = [(len(span.columns), _escaped(span.heading)) for span in block.spans]
        yield _row(["", *(rf"\multicolumn{{{width}}}{{l}}{{{heading}}}" for width, heading in headings)])
        ends = [2 + sum(width for width, _ in headings[:number]) for number in range(len(headings) + 1)]
        yield "".join(rf"\cmidrule(lr){{{a}-{b - 1}}}" for a, b in pairwise(ends))
        yield _row(["method", *(_escaped(column) for span in block.spans for column in span.columns)])
    for group, lines in block.groups:
        yield r"\midrule"
        yield _row([rf"\multicolumn{{{1 + n_columns}}}{{@{{}}l}}{{\textit{{{_escaped(group)}}}}}"])
        yield from (
            _row([_label(line.label), *(_latex_cell(entry, style) for entry in line.entries)]) for line in lines
        )
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _label(label: str) -> str:
    lines = textwrap.wrap(label, _LABEL_WIDTH)
    text = r"\\".join("{}" * (line[0] in "[*") + _escaped(line) for line in lines)  # else they would be options
    return rf"\shortstack[l]{{{text}}}" if len(lines) > 1 else text


def _latex_cell(entry: Entry, style: Style) -> str:
    text = "--" if is_dash(entry.content) else _escaped(style.text(entry.content))
    text = rf"\textbf{{{text}}}" if entry.is_best else text
    spread = style.spread(entry).removeprefix("0")
    return text + (rf"{{\tiny{_escaped(SPREAD + spread)}}}" if spread else "") + _escaped(entry.marks)


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
