"""Blocks of a table as Markdown and as LaTeX."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hashbench.reports.formatting import markdown_table


@dataclass(frozen=True)
class Entry:
    """One cell: its text, whether it is in bold, and the marks of its footnotes."""

    text: str
    is_best: bool = False
    marks: str = ""


Groups = Sequence[tuple[str, Sequence[tuple[str, Sequence[Entry]]]]]  # name, and lines: label and entries


@dataclass(frozen=True)
class Block:
    """One dataset and metric of a table, as it is to be seen; the notes are sentences below it."""

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
    """Write a table for people: a heading, then a Markdown table and its notes a block."""
    lines = [f"# {title}", ""]
    for block in blocks:
        rows = []
        for group, body in block.groups:
            rows.append([f"*{group}*", *[""] * (len(block.header) - 1)])
            rows += [[label, *map(_markdown_entry, entries)] for label, entries in body]
        lines += [f"## {block.title}", "", markdown_table(block.header, rows), "", " ".join(block.notes), ""]
    return "\n".join(lines)


def latex(name: str, title: str, blocks: Sequence[Block]) -> str:
    """Write a table for a paper that uses booktabs: an environment a block, its label beginning with the name."""
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
