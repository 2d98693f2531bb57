r"""Blocks of a table as LaTeX with booktabs, one float each.

A block with few columns takes a ``table``, a wider one a ``table*``; LaTeX shrinks what is wider than that.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from hashbench.reports.tables.text import Entry, Line, TableBlock

_COLUMN = 52  # characters of a line, which a column of an article has at most
_SHORT = 20  # characters of settings that stand in a line; longer ones go to the notes
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "_%&#${}"},
        "¶": r"$^{\P}$",
        "±": r"$\pm$",
        "†": r"$^{\dagger}$",
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
    numbers = _numbers(block)
    lines = [line for _, body in block.groups for line in body]
    widths = [len(_name(line, numbers)) + sum(2 + _length(entry) for entry in line.entries) for line in lines]
    environment = "table" if max(widths) <= _COLUMN else "table*"
    label = "-".join(re.findall(r"[a-z0-9@]+", f"{name} {block.title}".lower()))
    caption = re.sub(r"\(([^()]*) \(([^()]*)\)\)", r"(\1, \2)", block.caption)  # no parentheses within others
    obvious = {"Bold", "Dash", *["±"] * ("[]" in block.key)}
    key = [f"{sign}: {text}" for sign, text in block.key.items() if sign not in obvious]
    notes = [*(f"{number}: {_settings(settings)}." for settings, number in numbers.items()), *block.notes, *key]
    yield from [f"% data {block.data}"] * bool(block.data)
    yield rf"\begin{{{environment}}}"
    yield r"\centering"
    yield rf"\caption{{{_escaped(caption)}}}"
    yield rf"\label{{tab:{label}}}"
    yield r"\smallskip\scriptsize\setlength{\tabcolsep}{2pt}"
    yield r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    yield from _tabular(block, numbers)
    yield "}"
    yield rf"\par\smallskip\parbox{{\linewidth}}{{\raggedright {_escaped(' '.join(notes))}}}"
    yield rf"\end{{{environment}}}"


def _tabular(block: TableBlock, numbers: Mapping[str, str]) -> Iterator[str]:
    n_columns = sum(len(span.columns) for span in block.spans)
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
        yield from (_row([_escaped(_name(line, numbers)), *map(_entry, line.entries)]) for line in lines)
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


def _numbers(block: TableBlock) -> dict[str, str]:
    """Return a number for each of the settings that are too long for a line."""
    long = dict.fromkeys(line.settings for _, lines in block.groups for line in lines if len(line.settings) > _SHORT)
    return {settings: f"({number})" for number, settings in enumerate(long, start=1)}


def _name(line: Line, numbers: Mapping[str, str]) -> str:
    if not line.settings:
        return line.name
    if line.settings in numbers:
        return f"{line.name} {numbers[line.settings]}"
    return f"{line.name}, {_settings(line.settings)}"


def _settings(text: str) -> str:
    """Write parameters in words: ``n_iter=5 head=mlp`` is "n iter 5, head mlp"."""
    parts = (part.partition("=") for part in re.split(r" (?=[A-Za-z_]\w*=)", text))
    return ", ".join(f"{key.replace('_', ' ')} {value}".strip() for key, _, value in parts)


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


def _length(entry: Entry) -> int:
    return len(entry.text) + len(_beside(entry)) + len(entry.marks)


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
