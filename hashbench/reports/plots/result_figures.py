"""Figures of the committed results alone: tie ranges, and the metric against the code length."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from hashbench._typing import FloatArray
from hashbench.method import GROUPS
from hashbench.reports.plots.selection import Block
from hashbench.reports.plots.style import INK, Look, add_legend, group_title, legend_size, make_panels

_BAR, _WIDEST = 0.085, 8.0  # inches from one bar to the next where there is room, and of the whole panel
_GAP = 2.0  # bars between code lengths
_LABEL = 0.19  # inches from one label to the next
_N_COLUMNS = 2
RANGE = "from the lowest to the highest that tie-breaking could give."


def tie_ranges(block: Block) -> Figure:
    """Draw how far tie-breaking could move each score: bars from low to high, the expectation a mark on them.

    Bars stand group by group, in the order of the legend, for one code length after the other.
    """
    labels = block.labels
    legend_width, legend_height = legend_size(labels, block.looks)
    step = len(labels) + _GAP
    pitch = min(_BAR, _WIDEST / (step * len(block.n_bits)))
    width = max(step * len(block.n_bits) * pitch, 4.5)
    figure, [[panel]] = make_panels(
        *(1, [width], max(3.2, legend_height), heading(block, f"range of {block.metric} over tie-breaking")),
        [f"Mark: mean over all orders of tied items. Bar: {RANGE}", means_over(block.cells["n_seeds"])],
        right=legend_width,
    )
    for position, label in enumerate(labels):
        line = block.cells[block.cells["label"] == label]
        x = line["n_bits"].map(block.n_bits.index) * step + position
        look = block.looks[label]
        panel.vlines(x, line["low"], line["high"], label=label, **look.bar(pitch / _BAR))
        panel.plot(x, line["value"], linestyle="none", label=label, **look.points((pitch / _BAR) ** 0.5))
    edges = np.arange(len(block.n_bits) + 1) * step - (_GAP + 1) / 2
    for left, right in zip(edges[::2], edges[1::2], strict=False):
        panel.axvspan(left, right, color="#f3f3f3", zorder=0)
    panel.set_xticks((edges[:-1] + edges[1:]) / 2, [str(length) for length in block.n_bits])
    panel.tick_params(axis="x", length=0)
    panel.set(xlim=(edges[0], edges[-1]), xlabel="code length (bits)", ylabel=metric_label(block))
    add_legend(panel, labels, block.looks, has_lines=False)
    return figure


def metric_against_bits(block: Block) -> Figure:
    """Draw the metric against the code length, a panel for each group of methods.

    Lines are expectations, bands behind them run from low to high; labels stand at the lines' ends. All panels but that
    of the baselines have the same scale.
    """
    groups = [group for group in (*GROUPS, "") if group in set(block.cells["group"])]
    n_columns = min(len(groups), _N_COLUMNS)
    n_rows = -(-len(groups) // n_columns)
    n_labels = max(block.cells[block.cells["group"] == group]["label"].nunique() for group in groups)
    label_width, _ = legend_size(block.labels, block.looks)
    height = max(3.2, n_labels * _LABEL)
    widths = [1.8, 3.9] if len(groups) == 2 and groups[0] == "baseline" else [3.0] * n_columns
    note = " Baselines have a scale of their own." if groups[0] == "baseline" and groups[1:] else ""
    figure, panels = make_panels(
        *(n_rows, widths, height, heading(block, f"{block.metric} by code length")),
        [f"Line: mean over all orders of tied items. Band: {RANGE}", means_over(block.cells["n_seeds"]) + note],
        gap=(label_width, 0.85),
        right=label_width,
    )
    spots = [panel for row in panels for panel in row]
    is_baseline = block.cells["group"] == "baseline"
    for panel, group in zip(spots, groups, strict=False):
        panel.set_title(group_title(group))
        panel.set_xscale("log", base=2)
        panel.set_xticks(block.n_bits, [str(length) for length in block.n_bits])
        panel.minorticks_off()
        alike = block.cells[is_baseline == (group == "baseline")]  # baselines can range over all of the axis
        low = float(np.nanmin(alike[["value", "low"]]))
        high = float(np.nanmax(alike[["value", "high"]]))
        margin = 0.03 * (high - low or 1.0)
        panel.set_ylim(low - margin, high + margin)
        _draw_lines(panel, block.cells[block.cells["group"] == group], block, height)
    for panel in spots[len(groups) :]:
        panel.remove()
    for position, panel in enumerate(spots[: len(groups)]):
        panel.set_xlabel("code length (bits)")
        if position % n_columns == 0:
            panel.set_ylabel(metric_label(block))
    return figure


def metric_label(block: Block) -> str:
    """Say what an axis shows: all our metrics are shares of 1."""
    return f"{block.metric} (0 to 1)"


def heading(block: Block, what: str) -> str:
    """Say what a figure is of: dataset and features, what it shows, and the number of queries."""
    undefined, n_queries = block.cells["n_undefined"].iloc[0], block.cells["n_queries"].iloc[0]
    queries = f"{n_queries - undefined:,} of {n_queries:,} queries" if undefined else f"{n_queries:,} queries"
    return f"{block.dataset} ({block.features}): {what}, {queries}"


def means_over(n_seeds: Iterable[int]) -> str:
    """Say in a sentence what was averaged."""
    return f"Means over queries, and over {count_seeds(n_seeds)}."


def count_seeds(n_seeds: Iterable[int]) -> str:
    """Say how many seeds are behind the points of a figure, such as ``1 or 3 seeds``."""
    numbers = sorted(set(n_seeds))
    return f"{' or '.join(map(str, numbers))} seed{'' if numbers == [1] else 's'}"


def _draw_lines(panel: Axes, cells: pd.DataFrame, block: Block, height: float) -> None:
    ends: list[tuple[str, float, float, Look]] = []
    for label, line in cells.groupby("label", sort=False):
        look = block.looks[str(label)]
        panel.fill_between(
            *(line["n_bits"], line["low"], line["high"]),
            label=str(label),
            **look.band(),
        )
        panel.plot(line["n_bits"], line["value"], label=str(label), **look.curve())
        ends.append((str(label), line["n_bits"].iloc[-1], line["value"].iloc[-1], look))
    bottom, top = panel.get_ylim()
    places = spread([end[2] for end in ends], (top - bottom) * _LABEL / height, (bottom, top))
    for (label, x, y, look), place in zip(ends, places, strict=True):
        panel.annotate(
            label,
            *((x, y), (1.05, place)),
            textcoords=panel.get_yaxis_transform(),
            va="center",
            color=INK,
            size=10,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": look.colour,
                "linewidth": 0.6,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
        )


def spread(values: list[float], gap: float, limits: tuple[float, float]) -> FloatArray:
    """Move labels apart, each as little as possible from the value it stands for.

    ``gap`` is the least from one label to the next; the labels are kept between ``limits`` where there is room. The
    squared distance is the least there is (isotonic regression).

    >>> spread([0.5, 0.5, 0.9], 0.1, (0.0, 1.0)).round(2)
    array([0.45, 0.55, 0.9 ])
    """
    order = np.argsort(values, kind="stable")
    steps = gap * np.arange(len(values))
    apart = isotonic_regression(np.asarray(values)[order] - steps).x
    places = np.empty(len(values))
    places[order] = np.clip(apart, limits[0], max(limits[1] - steps[-1], limits[0])) + steps
    return places
