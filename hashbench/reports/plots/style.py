"""The one look of all figures: colours, markers, dashes, sizes in inches, titles, legends."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# Okabe & Ito's colours, which colour-blind people tell apart, without their yellow, too light for lines.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "h")  # as many as share no factor with the colours
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
_GREYS = ("#606060", "#8c8c8c", "#a8a8a8")
_BASELINE_DASH: Any = (0, (1, 1.2))
_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 10.5,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "path.simplify": False,
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "hashbench",
    "text.parse_math": False,  # names may hold a $
}
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Creator": "hashbench", "Date": None},
    "png": {"Software": "hashbench"},
}
_LEFT, _BOTTOM, _LINE = 0.8, 0.6, 0.2  # inches: left of panels, below them, a line of text
_LETTERS, _HEADING_LETTERS = 14.3, 8.5  # of the text under the heading, and of the heading, in an inch
_LEGEND_WIDTH = 1.85
INK = "#444444"


@dataclass(frozen=True)
class Look:
    """How a line is drawn: colour, marker and dash as matplotlib knows them."""

    group: str  # its heading in the legend
    colour: str
    marker: str
    dash: Any

    def curve(self) -> dict[str, Any]:
        """Give the keywords of a curve with markers, for `matplotlib.axes.Axes.plot`."""
        return {"color": self.colour, "linestyle": self.dash, **self.points()}

    def bar(self, scale: float = 1.0) -> dict[str, Any]:
        """Give the keywords of a range bar, for `matplotlib.axes.Axes.vlines`; markers stand before the bars."""
        return {"color": self.colour, "alpha": 0.4, "linewidth": 3.5 * scale, "zorder": 1.5}

    def band(self, *, is_filled: bool = True) -> dict[str, Any]:
        """Give the keywords of a band around a curve, or of its edges alone, for `Axes.fill_between`."""
        return {
            "facecolor": (self.colour, 0.11 if is_filled else 0.0),
            "edgecolor": (self.colour, 0.35),
            "linewidth": 0.6,
        }

    def points(self, scale: float = 1.0) -> dict[str, Any]:
        """Give the keywords of markers, for `matplotlib.axes.Axes.plot`."""
        return {
            "marker": self.marker,
            "markersize": 5.5 * scale,
            "markerfacecolor": self.colour,
            "markeredgecolor": "white",
            "markeredgewidth": 0.5,
        }


@contextmanager
def one_look() -> Iterator[None]:
    """Draw and save with our settings whatever the user's are; these are back afterwards."""
    with style.context(["default", _STYLE]):
        yield


def choose_looks(cells: pd.DataFrame) -> dict[str, Look]:
    """Give each line, by label, a colour, marker and dash of its own; baselines are grey and dotted.

    ``cells`` are all results there are, so that a line looks the same in whatever figure it stands.
    """
    group = dict(zip(cells["label"], cells["group"], strict=True))
    looks, n_methods, n_baselines = {}, 0, 0
    for label in sorted(group, key=lambda label: (group[label] != "unsupervised", group[label], label)):
        if group[label] == "baseline":
            colour, dash = _GREYS[n_baselines % len(_GREYS)], _BASELINE_DASH
            marker = _MARKERS[-1 - n_baselines % len(_MARKERS)]
            n_baselines += 1
        else:
            colour, marker = _COLOURS[n_methods % len(_COLOURS)], _MARKERS[n_methods % len(_MARKERS)]
            dash = _DASHES[n_methods // len(_COLOURS) % len(_DASHES)]
            n_methods += 1
        looks[label] = Look(group[label], colour, marker, dash)
    return looks


def make_panels(
    n_rows: int,
    widths: Sequence[float],
    height: float,
    heading: str,
    text: Sequence[str],
    *,
    gap: tuple[float, float] = (0.3, 0.5),
    right: float = 0.2,
) -> tuple[Figure, list[list[Axes]]]:
    """Lay out panels in rows and columns under a heading, without pyplot; all sizes are in inches.

    The lines of text under the heading are wrapped to the figure's width; ``gap`` is between panels, across and down,
    and ``right`` the room at the right of them. Gives the panels row by row.
    """
    width = max(_LEFT + sum(widths) + (len(widths) - 1) * gap[0] + right, 0.2 + len(heading) / _HEADING_LETTERS)
    lines = [part for line in text for part in textwrap.wrap(line, int(width * _LETTERS))]
    top = 0.75 + _LINE * len(lines)
    total = top + n_rows * height + (n_rows - 1) * gap[1] + _BOTTOM
    figure = Figure(figsize=(width, total))
    figure.text(0.1 / width, 1 - 0.12 / total, heading, size=12.5, weight="bold", va="top")
    figure.text(0.1 / width, 1 - 0.40 / total, "\n".join(lines), size=9.5, color=INK, va="top", linespacing=1.3)
    panels: list[list[Axes]] = []
    for row in range(n_rows):
        bottom = _BOTTOM + (n_rows - 1 - row) * (height + gap[1])
        lefts = [_LEFT + sum(widths[:column]) + column * gap[0] for column in range(len(widths))]
        panels.append(
            [
                figure.add_axes((left / width, bottom / total, one / width, height / total))
                for left, one in zip(lefts, widths, strict=True)
            ]
        )
    return figure, panels


def legend_size(labels: Sequence[str], looks: Mapping[str, Look]) -> tuple[float, float]:
    """Say how much room a legend takes: width and height in inches."""
    n_lines = len(labels) + len({looks[label].group for label in labels})
    return max(_LEGEND_WIDTH, 0.75 + 0.085 * max(map(len, labels))), n_lines * 0.21


def add_legend(panel: Axes, labels: Sequence[str], looks: Mapping[str, Look], *, has_lines: bool = True) -> None:
    """Put a legend at the right of a panel, under a heading for each group; the labels come group by group."""
    handles, group = [], None
    for label in labels:
        look = looks[label]
        if look.group != group:
            group = look.group
            handles.append(Line2D([], [], linestyle="none", label=group_title(group)))
        drawn = look.curve() if has_lines else {"linestyle": "none", **look.points()}
        handles.append(Line2D([], [], label=label, **drawn))
    legend = panel.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.03),
        handlelength=2.6 if has_lines else 1.0,
        labelspacing=0.3,
        borderpad=0,
    )
    for text in legend.get_texts():
        if text.get_text() not in labels:
            text.set_fontweight("bold")


def plain_powers(axis: Axis, last: float, first: float = 0) -> None:
    """Label a logarithmic axis with 1, 10, 100 and so on up to 10**last, all or every other one.

    ``first`` is the power of ten to begin with, a whole one.
    """
    powers = range(int(first), int(last) + 1, 1 if last - first < 4 else 2)
    texts = [f"{10**power:,}" if power >= 0 else f"{10**power:g}" for power in powers]
    axis.set_ticks([10.0**power for power in powers], texts)
    axis.set_ticks([], minor=True)


def group_title(group: str) -> str:
    """Say what a group of methods is called: one of `hashbench.method.GROUPS`, or empty."""
    return {"": "not installed", "baseline": "baselines"}.get(group, group)
