"""Blocks of a table as readers see them, and in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hashbench.reports.formatting import markdown_table, markdown_text
from hashbench.reports.marks import SIGNS


class Style(NamedTuple):
    """How numbers are shown."""

    digits: int
    has_spread: bool = True

    def number(self, value: float) -> str:
        """Write a number, "-" if there is none."""
        return "-" if value != value else f"{value:.{self.digits}f}"

    def span(self, low: float, high: float) -> str:
        """Write a range, "-" if it is not known."""
        return "-" if low != low else f"{self.number(low)} to {self.number(high)}"


class Entry(NamedTuple):
    """One cell: its text, spread over seeds and interval, whether it is bold, and its marks."""

    text: str
    spread: str = ""
    interval: tuple[str, str] | tuple[()] = ()
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


KEY = ("±", "Bold", "Dash", *SIGNS, "Tuned", "Defaults")  # what Markdown explains, in order
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


def markdown(title: str, blocks: Sequence[TableBlock]) -> str:
    """Write a table for people: a heading, per block a Markdown table and its notes, and the key."""
    lines = [f"# {title}", ""]
    key = dict.fromkeys((sign, text) for block in blocks for sign, text in block.key.items())
    for block in blocks:
        header = ["method", *(_heading(span.heading, column) for span in block.spans for column in span.columns)]
        rows = []
        for group, body in block.groups:
            rows.append([f"*{group}*", *[""] * (len(header) - 1)])
            rows += [[markdown_text(line.label), *map(_entry, line.entries)] for line in body]
        notes = [" ".join([*block.notes, *[f"Data {block.data}."] * bool(block.data)]), *block.paragraphs]
        table = markdown_table(header, rows, is_markup=True)
        lines += [f"## {markdown_text(block.title)}", "", table, ""]
        lines += [text for note in notes if note for text in (markdown_text(note), "")]
    explained = sorted((item for item in key if item[0] in KEY), key=lambda item: KEY.index(item[0]))
    lines += [*(f"- {sign}: {markdown_text(text)}" for sign, text in explained), *[""] * bool(explained)]
    return "\n".join(lines)


def _heading(heading: str, column: str) -> str:
    return {"paper": "paper", "ours": heading, "": heading}.get(column, f"{heading} {column}")


def _entry(entry: Entry) -> str:
    text = f"{entry.text} ± {entry.spread}" if entry.spread else entry.text
    return (f"**{text}**" if entry.is_best else text) + entry.marks
