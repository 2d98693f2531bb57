r"""Blocks of a table as LaTeX: as wide as a column of a two-column article, else as its page or a one-column article.

Only LaTeX knows how wide a text is; here the width is estimated, on the safe side, from its 7 point roman. That
decides between ``table`` and ``table*``. A block that is too wide even for that is broken into parts; parts that would
not fit on one page become separate tables, and notes that do not fit below one float by themselves.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hashbench.reports.tables.markdown import Entry, Line, Span, TableBlock, key_lines

COLUMN_WIDTH, PAGE_WIDTH = 225.0, 340.0  # points: a column of article with two, its page with one; a little less
PAGE_HEIGHT, _LINE = 500.0, 9.5  # points: of article with 10 point type, and of a line of ours with its rules
_COLUMN_SEP = 2.0
_SHORT = 20  # characters of settings that stand in a line; longer ones go to the notes

Part = Sequence[tuple[Span, range]]  # spans with the numbers of their columns

_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "_%&#${}"},
        "¶": r"$^{\P}$",
        "±": r"$\pm$",
        "†": r"$^{\dagger}$",
        "‡": r"$^{\ddagger}$",
        "§": r"$^{\S}$",
        "<": r"$<$",
        ">": r"$>$",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
_WIDTHS = {  # of characters at 7 points; others are 4.5
    **dict.fromkeys("il.,:;'|! ", 2.4),
    **dict.fromkeys("cefrstz()[]-", 3.6),
    **dict.fromkeys("0123456789ao", 4.0),
    **dict.fromkeys("mwMW±", 6.7),
    **dict.fromkeys("ABCDEFGHKNOPQRSTUVXYZ", 5.6),
}


def latex(name: str, title: str, blocks: Sequence[TableBlock], foot: str = "") -> str:
    """Write a table for a paper: one environment per block, whose label begins with the name."""
    lines = [f"% {title}. Made by hashbench; needs \\usepackage{{booktabs}}."]
    for block in blocks:
        lines += ["", *_environment(name, block)]
    return "\n".join([*lines, *(["", f"% {foot}"] if foot else [])]) + "\n"


def _environment(name: str, block: TableBlock) -> Iterator[str]:
    marks = _marks(block)
    widths = _widths(block, marks)
    parts = _parts(block.spans, widths)
    is_wide = len(parts) > 1 or _total(parts[0], widths) > COLUMN_WIDTH
    environment = "table*" if is_wide else "table"
    label = "-".join(re.findall(r"[a-z0-9@]+", f"{name} {block.title}".lower()))
    notes = " ".join(
        [*(f"{mark}: {_settings(settings)}." for settings, mark in marks.items()), *block.notes, *key_lines(block.key)]
    )
    if block.data:
        yield f"% data {block.data}"
    height = _LINE * (4 + sum(1 + len(lines) for _, lines in block.groups))  # of a part
    below = _LINE * (3 + _width(notes) / (PAGE_WIDTH if is_wide else COLUMN_WIDTH))
    at_once = max(1, int((PAGE_HEIGHT - below) / height))
    caption = re.sub(r"\(([^()]*) \(([^()]*)\)\)", r"(\1, \2)", block.caption)  # no parentheses within others
    for first in range(0, len(parts), at_once):
        is_last = first + at_once >= len(parts)
        yield rf"\begin{{{environment}}}"
        yield r"\centering"
        yield rf"\caption{{{_escaped(caption)}{' Continued.' if first else ''}}}"
        yield rf"\label{{tab:{label}{f'-{first // at_once + 1}' if first else ''}}}"
        yield r"\smallskip\scriptsize"
        yield rf"\setlength{{\tabcolsep}}{{{_COLUMN_SEP}pt}}"
        for part in parts[first : first + at_once]:
            yield from _tabular(block, part, marks)
            yield r"\par\smallskip"
        if is_last and height + below > PAGE_HEIGHT:  # no room below the part: notes float by themselves
            yield rf"\end{{{environment}}}"
            yield rf"\begin{{{environment}}}\scriptsize"
        if is_last:
            yield rf"\parbox{{\linewidth}}{{\raggedright {_escaped(notes)}}}"
        yield rf"\end{{{environment}}}"


def _tabular(block: TableBlock, part: Part, marks: Mapping[str, str]) -> Iterator[str]:
    columns = [column for _, columns in part for column in columns]
    yield rf"\begin{{tabular}}{{@{{}}{'l' * (1 + len(columns))}@{{}}}}"
    yield r"\toprule"
    if all(len(span.columns) == 1 for span, _ in part):
        yield _row(["method", *(_escaped(span.heading) for span, _ in part)])
    else:
        yield _row(
            ["", *(rf"\multicolumn{{{len(numbers)}}}{{l}}{{{_escaped(span.heading)}}}" for span, numbers in part)]
        )
        shift = columns[0] - 2  # of the first column of this part from the second of the table
        yield "".join(rf"\cmidrule(lr){{{numbers[0] - shift}-{numbers[-1] - shift}}}" for _, numbers in part)
        yield _row(["method", *(_escaped(column) for span, _ in part for column in span.columns)])
    for group, lines in block.groups:
        yield r"\midrule"
        yield _row([rf"\multicolumn{{{1 + len(columns)}}}{{@{{}}l}}{{\textit{{{_escaped(group)}}}}}"])
        for line in lines:
            yield _row([_escaped(_name(line, marks)), *(_entry(line.entries[column]) for column in columns)])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def tabular(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a plain table, line by line: the first column flush left, the others right."""
    yield rf"\begin{{tabular}}{{@{{}}l{'r' * (len(header) - 1)}@{{}}}}"
    for line, cells in (("toprule", [header]), ("midrule", rows)):
        yield rf"\{line}"
        yield from (_row(map(_escaped, row)) for row in cells)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _parts(spans: Sequence[Span], widths: Sequence[float]) -> list[Part]:
    """Break the columns where they would be wider than a page, never within a span, with the widest part narrowest."""
    parts = list(_filled(spans, widths, PAGE_WIDTH))
    while len(parts) > 1:
        widest = max(_total(part, widths) for part in parts)
        narrower = list(_filled(spans, widths, widest - 0.01))
        if len(narrower) > len(parts) or max(_total(part, widths) for part in narrower) >= widest:
            break
        parts = narrower
    return parts


def _filled(spans: Sequence[Span], widths: Sequence[float], limit: float) -> Iterator[Part]:
    """Yield parts filled from the left as far as their width allows, each with at least one span."""
    part: list[tuple[Span, range]] = []
    first = 0
    for span in spans:
        placed = span, range(first, first + len(span.columns))
        if part and _total([*part, placed], widths) > limit:
            yield part
            part = []
        part.append(placed)
        first += len(span.columns)
    yield part


def _total(part: Part, widths: Sequence[float]) -> float:
    return widths[-1] + sum(widths[column] for _, columns in part for column in columns)


def _widths(block: TableBlock, marks: Mapping[str, str]) -> list[float]:
    """Estimate the widths of all columns, in points; the last is that of the methods."""
    lines = [line for _, body in block.groups for line in body]
    headings = [(span.heading if len(span.columns) == 1 else column) for span in block.spans for column in span.columns]
    widths = [
        max(_width(heading), *(_entry_width(line.entries[number]) for line in lines)) + 2 * _COLUMN_SEP
        for number, heading in enumerate(headings)
    ]
    return [*widths, max(_width(_name(line, marks)) for line in lines)]


def _entry_width(entry: Entry) -> float:
    number = _width(entry.text) * (1.15 if entry.is_best else 1)
    return number + 0.8 * _width(_short_spread(entry)) + 4 * len(entry.marks)


def _width(text: str) -> float:
    return sum(_WIDTHS.get(character, 4.5) for character in text)


def _marks(block: TableBlock) -> dict[str, str]:
    """Return a number for each of the settings that are too long for a line."""
    long = dict.fromkeys(line.settings for _, lines in block.groups for line in lines if len(line.settings) > _SHORT)
    return {settings: f"({number})" for number, settings in enumerate(long, start=1)}


def _name(line: Line, marks: Mapping[str, str]) -> str:
    if not line.settings:
        return line.name
    if line.settings in marks:
        return f"{line.name} {marks[line.settings]}"
    return f"{line.name}, {_settings(line.settings)}"


def _settings(text: str) -> str:
    """Write parameters in words: ``n_iter=5 head=mlp`` is "n iter 5, head mlp"."""
    parts = (part.partition("=") for part in re.split(r" (?=[A-Za-z_]\w*=)", text))
    return ", ".join(f"{key.replace('_', ' ')} {value}".strip() for key, _, value in parts)


def _entry(entry: Entry) -> str:
    text = "--" if entry.text == "-" else _escaped(entry.text)
    text = rf"\textbf{{{text}}}" if entry.is_best else text
    spread = rf"{{\tiny$\pm${_short_spread(entry)[1:]}}}" if entry.spread else ""
    return text + spread + _escaped(entry.marks)


def _short_spread(entry: Entry) -> str:
    return f"±{entry.spread.removeprefix('0')}" if entry.spread else ""


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
