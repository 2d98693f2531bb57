"""Blocks of a table as Markdown and as LaTeX."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One cell.

    Parameters
    ----------
    text : str
        What it says.
    is_best : bool
        Whether it is in bold.
    marks : str
        Of the footnotes.
    """

    text: str
    is_best: bool = False
    marks: str = ""


Groups = Sequence[tuple[str, Sequence[tuple[str, Sequence[Entry]]]]]


@dataclass(frozen=True)
class Block:
    """One dataset and metric of a table, as it is to be seen.

    Parameters
    ----------
    title : str
        Its heading.
    header : sequence of str
        The first column's title, then those of the others.
    groups : sequence of tuple
        A group's name, and its lines: label and entries.
    notes : sequence of str
        Sentences below.
    """

    title: str
    header: Sequence[str]
    groups: Groups
    notes: Sequence[str]


_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "_%&#${}"},
        **{"±": r"$\pm$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"$<$", ">": r"$>$", "§": r"$^{\S}$"},
    }
)


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """Write a table for people.

    Parameters
    ----------
    title : str
        Its heading.
    blocks : sequence of Block
        Its blocks.

    Returns
    -------
    str
        A heading, then a Markdown table and its notes a block; it reads well as plain text too.
    """
    lines = [f"# {title}", ""]
    for block in blocks:
        grid = [list(block.header)]
        for group, rows in block.groups:
            grid.append([f"*{group}*", *[""] * (len(block.header) - 1)])
            grid += [[label, *(_markdown_entry(entry) for entry in entries)] for label, entries in rows]
        lines += [f"## {block.title}", "", *_aligned(grid), "", " ".join(block.notes), ""]
    return "\n".join(lines)


def latex(name: str, title: str, blocks: Sequence[Block]) -> str:
    """Write a table for a paper; it needs the package booktabs.

    Parameters
    ----------
    name, title : str
        What its labels begin with, and its heading.
    blocks : sequence of Block
        Its blocks.

    Returns
    -------
    str
        One ``table`` environment a block, with the notes in its caption.
    """
    lines = [r"% needs \usepackage{booktabs}"]
    for block in blocks:
        width = len(block.header)
        lines += ["", r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}", r"\toprule"]
        lines.append(" & ".join(map(_escaped, block.header)) + r" \\")
        for group, rows in block.groups:
            lines += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{\textit{{{_escaped(group)}}}}} \\"]
            lines += [" & ".join([_escaped(label), *map(_latex_entry, entries)]) + r" \\" for label, entries in rows]
        caption = " ".join(_escaped(text) for text in (f"{title}. {block.title}.", *block.notes))
        lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}"]
        label = "-".join(re.findall(r"[a-z0-9@]+", f"{name} {block.title}".lower()))
        lines += [rf"\label{{tab:{label}}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _markdown_entry(entry: Entry) -> str:
    return (f"**{entry.text}**" if entry.is_best else entry.text) + entry.marks


def _latex_entry(entry: Entry) -> str:
    text = "--" if entry.text == "-" else _escaped(entry.text)
    return (rf"\textbf{{{text}}}" if entry.is_best else text) + _escaped(entry.marks)


def _escaped(text: str) -> str:
    return text.translate(_LATEX)


def _aligned(grid: list[list[str]]) -> list[str]:
    """Lay out a Markdown table that reads well as plain text too: names left, numbers right."""
    widths = [max(len(row[column]) for row in grid) for column in range(len(grid[0]))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [
        "| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |"
        for row in [grid[0], rule, *grid[1:]]
    ]
