"""Blocks of a table as readers see them, and in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hashbench.reports.formatting import markdown_table, markdown_text


class Style(NamedTuple):
    """How numbers are shown."""

    digits: int
    has_spread: bool = True

    def number(self, value: float) -> str:
        """Write a number, "-" if there is none."""
        return "-" if value != value else f"{value:.{self.digits}f}"


class Entry(NamedTuple):
    """One cell: its text and spread over seeds, whether it is bold, and the marks of its notes."""

    text: str
    spread: str = ""
    is_best: bool = False
    marks: str = ""


class Line(NamedTuple):
    """One line: its name, its settings, and its cells."""

    name: str
    settings: str
    entries: Sequence[Entry]

    @property
    def label(self) -> str:
        """Name and settings."""
        return f"{self.name} {self.settings}".strip()


class Span(NamedTuple):
    """Columns under one heading, perhaps with their own headings."""

    heading: str
    columns: Sequence[str] = ("",)


SIGNS = ("±", "Bold", "†", "‡", "§", "¶")  # in the order of the key
Groups = Sequence[tuple[str, Sequence[Line]]]  # name, and lines


@dataclass(frozen=True)
class TableBlock:
    """One dataset and metric of a table, as readers see it.

    The notes are paragraphs below it; the key explains each of its ``SIGNS``, in Markdown once below all blocks.
    """

    title: str
    caption: str
    spans: Sequence[Span]
    groups: Groups
    notes: Sequence[str]
    data: str = ""  # the dataset's fingerprint
    key: Mapping[str, str] = field(default_factory=dict)


def key_lines(key: Mapping[str, str]) -> list[str]:
    """Return a key as lines, one per sign."""
    return [f"{sign}: {key[sign]}" for sign in SIGNS if sign in key]


def markdown(title: str, blocks: Sequence[TableBlock], foot: str = "") -> str:
    """Write a table for people: a heading, per block a Markdown table and its notes, the key, and a foot."""
    lines = [f"# {title}", ""]
    for block in blocks:
        header = ["method", *(_heading(span.heading, column) for span in block.spans for column in span.columns)]
        rows = []
        for group, body in block.groups:
            rows.append([f"*{group}*", *[""] * (len(header) - 1)])
            rows += [[markdown_text(line.label), *map(_entry, line.entries)] for line in body]
        first, *others = block.notes
        notes = [f"{first} Data {block.data}." if block.data else first, *others]
        notes = [markdown_text(note) for note in notes]
        table = markdown_table(header, rows, is_markup=True)
        lines += [f"## {markdown_text(block.title)}", "", table, "", "\n\n".join(notes), ""]
    if key := key_lines({sign: text for block in blocks for sign, text in block.key.items()}):
        lines += [*(f"- {markdown_text(line)}" for line in key), ""]
    return "\n".join([*lines, *([foot, ""] if foot else [])])


def _heading(heading: str, column: str) -> str:
    return {"paper": "paper", "ours": heading, "": heading}.get(column, f"{heading} {column}")


def _entry(entry: Entry) -> str:
    text = f"{entry.text} ± {entry.spread}" if entry.spread else entry.text
    return (f"**{text}**" if entry.is_best else text) + entry.marks
