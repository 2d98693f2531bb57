"""The look that all figures share: colours, markers, dashes, sizes in inches, titles, legends."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from scipy.special import expit, logit

from hashbench._typing import FloatArray
from hashbench.method import GROUPS

# Okabe & Ito's colours for colour-blind readers, with a dark red for their yellow, which is too light for lines.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#882255")
MOST_LINES = len(_COLOURS)  # in a panel
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "h")  # their number is coprime to that of colours
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
_GREYS = ("#606060", "#8c8c8c", "#a8a8a8")
_BASELINE_DASH: Any = (0, (1, 1.2))
_FONT = "DejaVu Sans"  # comes with matplotlib
HEADING, SMALL = 9, 7  # points; other sizes are in the style
_STYLE = files("hashbench.reports.plots").joinpath("hashbench.mplstyle")
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Creator": "hashbench", "Date": None},
    "png": {"Software": "hashbench"},
    "pdf": {"Creator": "hashbench", "CreationDate": None},
}
_LETTERS = 17  # of text at the foot, per inch
_ENTRY = 1.05  # inches of an entry of the legend of groups
_CROWD = 1 / 3  # of the values in a tenth of their range is a crowd
_PLACES = (0.5, 0.9, 0.1, 0.99, 0.01, 0.999, 0.001, 0.7, 0.3, 0.97, 0.03, 0.95, 0.8, 0.2, 0.995, 0.98, 0.6)  # of ticks
_LEADING = 0.13  # inches from one line of text to the next
INK = "#444444"


@dataclass(frozen=True)
class FigureLayout:
    """The layout of figures."""

    width: float = 6.9  # inches; a paper's column has about 3.3, its page 6.9
    has_title: bool = True  # without a title, the caption describes the figure

    def n_columns(self, n_panels: int, least: float) -> int:
        """Return how many panels stand side by side, at ``least`` inches each."""
        return min(max(int(self.width / least), 1), n_panels)


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
        """Return the keywords of a bar, for `matplotlib.axes.Axes.vlines`; markers are drawn over bars."""
        return {"color": self.colour, "alpha": 0.45, "linewidth": 2.0 * scale, "zorder": 1.5}

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
    with style.context(["default", str(_STYLE)]):
        yield


GROUP_LOOKS = {  # for figures that name each method; without a group are methods no longer installed, and own codes
    group: Look(group, colour, marker, "-", is_variant=group == "unsupervised")
    for group, colour, marker in zip(
        (*GROUPS, ""), (_GREYS[0], INK, *_COLOURS[:4], _GREYS[1]), ("X", *_MARKERS[:6]), strict=True
    )
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


def new_figure(
    layout: FigureLayout, height: float, heading: str, text: Sequence[str], groups: Mapping[str, Look] | None = None
) -> Figure:
    """Create a figure without pyplot: a heading, a legend of groups, ``height`` inches for panels, and sentences.

    The figure's label is the heading and the text in one line, for a caption.
    """
    groups = groups or {}
    letters = layout.width * _LETTERS
    foot = textwrap.fill(" ".join(text), int(letters), break_on_hyphens=False)
    title = textwrap.fill(heading, int(letters * 0.7), break_on_hyphens=False)
    n_columns = max(layout.n_columns(len(groups), _ENTRY), 1)
    n_lines = -(-len(groups) // n_columns) + layout.has_title * (title.count("\n") + foot.count("\n") + 3)
    size = (layout.width, height + _LEADING * n_lines)
    figure = Figure(size, layout="constrained", label=". ".join([heading, " ".join(text)]))
    if layout.has_title:
        figure.supxlabel(foot, x=0.06 / layout.width, ha="left", size=SMALL, color=INK, linespacing=1.25)
    if layout.has_title or groups:
        figure.legend(
            handles=[_handle(name or "other", look.points()) for name, look in groups.items()],
            loc="outside upper left",
            title=title if layout.has_title else None,
            title_fontproperties={"family": _FONT, "size": HEADING, "weight": "bold"},
            alignment="left",
            ncols=n_columns,
            handlelength=1.0,
        )
    return figure


def add_panels(figure: Figure, n_panels: int, n_columns: int, x_label: str, y_label: str) -> list[Axes]:
    """Add panels row by row, with labels at the left and below the last of each column."""
    panels = list(figure.subplots(-(-n_panels // n_columns), n_columns, squeeze=False).flat)
    for axes in panels[n_panels:]:
        axes.remove()
    for axes in panels[:n_panels:n_columns]:
        axes.set_ylabel(y_label)
    for axes in panels[n_panels - n_columns : n_panels]:
        axes.set_xlabel(x_label)
    return panels[:n_panels]


def add_legend(axes: Axes, names: Mapping[str, str], looks: Mapping[str, Look], *, has_lines: bool = True) -> None:
    """Draw a legend at the right of a panel; names and looks are by label."""
    axes.legend(
        handles=[
            _handle(name, looks[label].curve() if has_lines else looks[label].points()) for label, name in names.items()
        ],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0,
        handlelength=1.9 if has_lines else 1.0,
    )


def _handle(name: str, look: Mapping[str, Any]) -> Line2D:
    return Line2D([], [], label=name, **{"linestyle": "none", **look})


def plain_powers(axis: Axis) -> None:
    """Label a logarithmic axis with powers of ten as plain numbers, as many as have room."""
    axis.set_major_locator(LogLocator())
    axis.set_major_formatter(FuncFormatter(lambda power, _: f"{power:,.0f}" if power >= 1 else f"{power:g}"))
    axis.set_minor_locator(NullLocator())


def is_crowded(values: FloatArray) -> bool:
    """Return whether a logit scale helps: many values stand in the tenth of their range next to 0 or 1, and not on it.

    >>> is_crowded(np.array([0.3, 0.6, 0.96, 0.98, 0.99])), is_crowded(np.array([0.3, 0.6, 0.8]))
    (True, False)
    """
    low, high = values.min(), values.max()
    reach = (high - low) / 10
    for end, near, far in ((1 - values, 1 - high, 1 - low), (values, low, high)):
        if near > 0 and far > 10 * near and np.mean(end <= near + reach) >= _CROWD:
            return bool(low > 0 and high < 1)
    return False


def open_ends(axis: Axis, values: FloatArray, n_ticks: float) -> None:
    """Set a logit scale that shows these values, with plain ticks, about so many at most."""
    low, high = logit([*values[values > 0], 1 - 1e-9]).min(), logit([*values[values < 1], 1e-9]).max()
    margin = 0.07 * (high - low)
    limits = expit([low - margin, high + margin])
    if isinstance(axis, XAxis):
        axis.axes.set_xscale("logit", nonpositive="clip")
        axis.axes.set_xlim(*limits)
    else:
        axis.axes.set_yscale("logit", nonpositive="clip")
        axis.axes.set_ylim(*limits)
    apart = (high - low) / n_ticks
    ticks: list[float] = []
    for place in (place for place in _PLACES if low - margin <= logit(place) <= high + margin):
        if all(abs(logit(place) - logit(tick)) > apart for tick in ticks):
            ticks.append(place)
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())
