r"""Blocks of a table as LaTeX with booktabs, one float each.

A block with few columns takes a ``table``, one with more a ``table*``; LaTeX shrinks what is larger than its place.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from hashbench.reports.tables.text import Entry, TableBlock

_FEW = 4  # columns that a column of an article takes
_LABEL_WIDTH = 26  # characters of a label in one line; longer ones take several
_SHRUNK = (  # to the place, if it is wider or higher
    r"\resizebox*{!}{\ifdim\totalheight>.8\textheight .8\textheight\else\totalheight\fi}"
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
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def latex(name: str, title: str, blocks: Sequence[TableBlock]) -> str:
    """Write a table for a paper: one environment per block, whose label begins with the name."""
    lines = [f"% {title}. Made by hashbench; needs \\usepackage{{booktabs,graphicx}}."]
    for block in blocks:
        if not block.is_detail:
            lines += ["", *_environment(name, block)]
    return "\n".join(lines) + "\n"


def _environment(name: str, block: TableBlock) -> Iterator[str]:
    n_columns = sum(len(span.columns) for span in block.spans)
    environment = "table" if n_columns <= _FEW else "table*"
    label = "-".join(re.findall(r"[a-z0-9@]+", f"{name} {block.title}".lower()))
    caption = re.sub(r"\(([^()]*) \(([^()]*)\)\)", r"(\1, \2)", block.caption)  # no parentheses within others
    entries = [entry for _, lines in block.groups for line in lines for entry in line.entries]
    has_spread = any(entry.spread and not entry.interval for entry in entries)
    obvious = {"Bold", "Dash", *["±"] * (not has_spread)}
    key = [f"{sign}: {text}" for sign, text in block.key.items() if sign not in obvious]
    yield from [f"% data {block.data}"] * bool(block.data)
    yield rf"\begin{{{environment}}}"
    yield r"\centering"
    yield rf"\caption{{{_escaped(caption)}}}"
    yield rf"\label{{tab:{label}}}"
    yield r"\smallskip\scriptsize\setlength{\tabcolsep}{2pt}"
    yield _SHRUNK
    yield from _tabular(block, n_columns)
    yield "}}"
    yield rf"\par\smallskip\parbox{{\linewidth}}{{\raggedright {_escaped(' '.join([*block.notes, *key]))}}}"
    yield rf"\end{{{environment}}}"


def _tabular(block: TableBlock, n_columns: int) -> Iterator[str]:
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
        yield from (_row([_label(line.label), *map(_entry, line.entries)]) for line in lines)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _label(label: str) -> str:
    lines = textwrap.wrap(label, _LABEL_WIDTH)
    text = r"\\".join("{}" * (line[0] in "[*") + _escaped(line) for line in lines)  # else they would be options
    return rf"\shortstack[l]{{{text}}}" if len(lines) > 1 else text


def _entry(entry: Entry) -> str:
    text = "--" if entry.text == "-" else _escaped(entry.text)
    text = rf"\textbf{{{text}}}" if entry.is_best else text
    about = _beside(entry)
    gap = r"\," if entry.interval else ""
    return text + (rf"{{\tiny{gap}{_escaped(about)}}}" if about else "") + _escaped(entry.marks)


def _beside(entry: Entry) -> str:
    """Return what stands beside a value in small type: its interval, or else its spread, without leading zeros."""
    if entry.interval:
        return f"[{', '.join(end.removeprefix('0') for end in entry.interval)}]"
    return f"±{entry.spread.removeprefix('0')}" if entry.spread else ""


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
