"""The look that all figures share: colours, markers, dashes, sizes in inches, titles, legends."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from hashbench.method import GROUPS

# Okabe & Ito's colours for colour-blind readers, with a dark red for their yellow, which is too light for lines.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#882255")
MOST_LINES = len(_COLOURS)  # in a panel
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "h")  # their number is coprime to that of colours
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
_GREYS = ("#606060", "#8c8c8c", "#a8a8a8")
_BASELINE_DASH: Any = (0, (1, 1.2))
_FONT = "DejaVu Sans"  # comes with matplotlib
HEADING, TITLE, TEXT, SMALL = 9, 8, 7.5, 7  # points
_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelpad": 2.5,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.titlesize": TITLE,
    "font.family": _FONT,
    "font.size": TEXT,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "path.simplify": False,
    "pdf.fonttype": 42,  # TrueType, as publishers ask
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "hashbench",
    "text.parse_math": False,  # names may hold a $
    "xtick.labelsize": SMALL,
    "xtick.major.pad": 2,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.labelsize": SMALL,
    "ytick.major.pad": 2,
    "ytick.major.size": 2.5,
    "ytick.major.width": 0.6,
}
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Creator": "hashbench", "Date": None},
    "png": {"Software": "hashbench"},
    "pdf": {"Creator": "hashbench", "CreationDate": None},
}
LEFT = 0.5  # inches at the left of panels, for ticks and their label
_BOTTOM, _MARGIN = 0.36, 0.04  # inches: below panels, at the edges
_LEADING = 1.25  # from one line of text to the next, by its size
INK = "#444444"


@dataclass(frozen=True)
class FigureLayout:
    """The layout of figures."""

    width: float = 6.9  # inches; a paper's column has about 3.3, its page 6.9
    has_title: bool = True  # without a title, the caption describes the figure
    bands: bool | None = None  # draw the worst case of ties behind lines; None: in panels of few lines


@dataclass(frozen=True)
class Look:
    """The look of a line: colour, marker and dash by matplotlib's names; markers of variants are hollow."""

    group: str
    colour: str
    marker: str
    dash: Any
    is_variant: bool = False

    def curve(self) -> dict[str, Any]:
        """Return the keywords of a curve with markers, for `matplotlib.axes.Axes.plot`."""
        return {"color": self.colour, "linestyle": self.dash, **self.points()}

    def bar(self, scale: float = 1.0) -> dict[str, Any]:
        """Return the keywords of a range bar, for `matplotlib.axes.Axes.vlines`; markers are drawn over bars."""
        return {"color": self.colour, "alpha": 0.4, "linewidth": 2.4 * scale, "zorder": 1.5}

    def error(self) -> dict[str, Any]:
        """Return the keywords of an error bar, for `matplotlib.axes.Axes.vlines`."""
        return {"color": self.colour, "alpha": 0.5, "linewidth": 1.3, "zorder": 1.8}

    def band(self) -> dict[str, Any]:
        """Return the keywords of a band around a curve, for `matplotlib.axes.Axes.fill_between`."""
        return {"facecolor": (self.colour, 0.11), "edgecolor": (self.colour, 0.35), "linewidth": 0.5}

    def points(self, scale: float = 1.0) -> dict[str, Any]:
        """Return the keywords of markers, for `matplotlib.axes.Axes.plot`."""
        return {
            "marker": self.marker,
            "markersize": 4.2 * scale,
            "markerfacecolor": "white" if self.is_variant else self.colour,
            "markeredgecolor": self.colour if self.is_variant else "white",
            "markeredgewidth": (0.9 if self.is_variant else 0.4) * scale,
        }


@contextmanager
def one_look() -> Iterator[None]:
    """Draw and save with hashbench's settings, and restore the user's afterwards."""
    with style.context(["default", _STYLE]):
        yield


def group_looks() -> dict[str, Look]:
    """Return one look per group of methods, for figures that name each method."""
    colours = {"baseline": _GREYS[0], "unsupervised": INK}
    others = (name for name in GROUPS if name not in colours)
    colours |= dict(zip(others, _COLOURS, strict=False))
    return {
        group: Look(group, colour, marker, "-", is_variant=group == "unsupervised")
        for (group, colour), marker in zip({**colours, "": _GREYS[1]}.items(), ("X", *_MARKERS), strict=False)
    }


def choose_looks(cells: pd.DataFrame) -> dict[str, Look]:
    """Return a look for each line, by label: a colour and marker per method, dashes for its variants.

    Baselines are grey and dotted. ``cells`` are all results, so that a line looks the same in every figure.
    """
    lines = cells[["group", "method", "label"]].drop_duplicates("label").itertuples(index=False)
    in_order = sorted(lines, key=lambda line: (line[0] != "unsupervised", *line[:2], line[2] != line[1], line[2]))
    looks, numbers, n_variants = {}, {False: dict[str, int](), True: dict[str, int]()}, Counter[str]()
    for group, method, label in in_order:
        is_baseline = group == "baseline"
        number = numbers[is_baseline].setdefault(method, len(numbers[is_baseline]))
        variant = n_variants[method]
        n_variants[method] += 1
        if is_baseline:
            colour, dash = _GREYS[number % len(_GREYS)], _BASELINE_DASH
            marker = _MARKERS[(-1 - number - 4 * variant) % len(_MARKERS)]
        else:
            colour, dash = _COLOURS[number % len(_COLOURS)], _DASHES[variant % len(_DASHES)]
            marker = _MARKERS[(number + 4 * variant) % len(_MARKERS)]
        looks[label] = Look(group, colour, marker, dash, is_variant=variant > 0)
    return looks


def distinct_looks(looks: Mapping[str, Look], methods: Mapping[str, str]) -> dict[str, Look]:
    """Return the looks of lines in one panel, with a colour per method; ``methods`` are by label.

    A method keeps its colour unless an earlier one has it.
    """
    panel_looks, colours, free = dict(looks), dict[str, str](), list(_COLOURS)
    for label, method in methods.items():
        look = looks[label]
        if look.group != "baseline":
            if method not in colours:
                colours[method] = look.colour if look.colour in free else free[0]
                free.remove(colours[method])
            panel_looks[label] = replace(look, colour=colours[method])
    return panel_looks


def panel_width(layout: FigureLayout, n_panels: int, gap: float, right: float, left: float = LEFT) -> float:
    """Return the width in inches of each of ``n_panels`` panels side by side."""
    return (layout.width - left - right - (n_panels - 1) * gap) / n_panels


def in_rows(n_panels: int, layout: FigureLayout, least: float, gap: float, right: float) -> list[int]:
    """Return the number of panels per row; rows fill the width, and panels are at least ``least`` wide if possible."""
    n_columns = max([n for n in range(1, n_panels + 1) if panel_width(layout, n, gap, right) >= least], default=1)
    n_rows = -(-n_panels // n_columns)
    return [n_panels // n_rows + (row < n_panels % n_rows) for row in range(n_rows)]


def make_panels(
    layout: FigureLayout,
    rows: Sequence[tuple[int, float]],
    heading: str,
    text: Sequence[str],
    *,
    gap: tuple[float, float],
    right: float,
    left: float = LEFT,
    above: float = 0.22,
    foot: Sequence[str] = (),
) -> tuple[Figure, list[list[Axes]]]:
    """Lay out panels between a heading with sentences and a foot of more, without pyplot; all sizes are in inches.

    ``rows`` has the number of panels and their height per row. ``above`` is the room for titles, ``gap`` that between
    panels (across, down), and ``left`` and ``right`` that beside them. Returns the panels row by row. The figure's
    label is all of the text in one line, for a caption.
    """
    room = layout.width - 2 * _MARGIN
    parts = [(broken_text(heading, HEADING, room), HEADING, "bold", "black")] * layout.has_title
    if text and layout.has_title:
        parts.append((broken_text(" ".join(text), SMALL, room), SMALL, "normal", INK))
    below = broken_text(" ".join(foot), SMALL, room) if foot and layout.has_title else ""
    top = above + sum(text_height(part, size) + 0.05 for part, size, *_ in parts)
    bottom = _BOTTOM + (text_height(below, SMALL) if below else 0)
    total = top + sum(height for _, height in rows) + (len(rows) - 1) * (gap[1] + above) + bottom
    figure = Figure(figsize=(layout.width, total), label=". ".join([heading, " ".join([*text, *foot])]))
    y = total - _MARGIN
    for part, size, weight, colour in parts:
        at: dict[str, Any] = {"va": "top", "linespacing": _LEADING, "size": size, "weight": weight, "color": colour}
        figure.text(_MARGIN / layout.width, y / total, part, **at)
        y -= text_height(part, size) + 0.05
    if below:
        figure.text(_MARGIN / layout.width, _MARGIN / total, below, linespacing=_LEADING, size=SMALL, color=INK)
    panels, upper = [], total - top
    for n_panels, height in rows:
        width = panel_width(layout, n_panels, gap[0], right, left)
        lefts = [left + column * (width + gap[0]) for column in range(n_panels)]
        boxes = [(x / layout.width, (upper - height) / total, width / layout.width, height / total) for x in lefts]
        panels.append([figure.add_axes(box) for box in boxes])
        upper -= height + gap[1] + above
    return figure, panels


@cache
def text_width(text: str, size: float) -> float:
    """Measure text, of one or more lines, in inches."""
    font = FontProperties(family=_FONT, size=size)
    return max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in text.split("\n")) / 72


def text_height(text: str, size: float) -> float:
    """Return the height of lines of text in inches."""
    return (text.count("\n") + 1) * size * _LEADING / 72


def broken_text(line: str, size: float, width: float) -> str:
    """Wrap a line of text to a width in inches; bold letters are a tenth wider."""
    return textwrap.fill(line, int(0.88 * width * len(line) / text_width(line, size)))


def legend_width(names: Iterable[str]) -> float:
    """Return the width of a legend in inches."""
    return 0.3 + max(text_width(name, SMALL) for name in names)


def legend_height(names: Iterable[str]) -> float:
    """Return the height of a legend in inches."""
    return sum(text_height(name, SMALL) for name in names) + 0.05


def add_legend(panel: Axes, names: Mapping[str, str], looks: Mapping[str, Look], *, has_lines: bool = True) -> None:
    """Draw a legend at the right of a panel; names and looks are by label."""
    lines = {label: looks[label].curve() if has_lines else looks[label].points() for label in names}
    panel.legend(
        handles=[Line2D([], [], label=names[label], **{"linestyle": "none", **line}) for label, line in lines.items()],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0,
        borderpad=0,
        handlelength=1.9 if has_lines else 1.0,
        handletextpad=0.5,
        labelspacing=0.2,
    )


def plain_powers(axis: Axis, last: float, first: float = 0, most: int = 4) -> None:
    """Label a logarithmic axis with powers of ten from 10**first to 10**last, at most about ``most`` of them."""
    powers = range(int(first), int(last) + 1, -(-int(last - first) // most) or 1)
    texts = [f"{10**power:,}" if power >= 0 else f"{10**power:g}" for power in powers]
    axis.set_ticks([10.0**power for power in powers], texts)
    axis.set_ticks([], minor=True)
