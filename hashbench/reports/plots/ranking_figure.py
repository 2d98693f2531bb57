"""The figure of one code length: a row per method, the best first."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hashbench.reports.marks import explain
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.reports.plots.panels import baselines_of, describe_baselines
from hashbench.reports.plots.result_figures import RANGE, about_intervals, count_seeds, heading, too_little
from hashbench.reports.plots.style import INK, SMALL, Look, group_looks, make_panels, text_height, text_width
from hashbench.scoring.metrics import is_error

TITLE_HEIGHT, _ROW = 0.15, 0.135  # inches
_GAP, _VALUES, _NAMES = 0.2, 0.48, 0.12  # inches: between panels, for values at the right, beside names
_MARGIN, _REACH = 0.03, 0.1  # shares of a panel's range: left free at its ends, and that a baseline may widen it by
_COLUMNS = 3  # of the legend
_DOTTED: dict[str, Any] = {"color": INK, "linestyle": (0, (1, 1.5)), "linewidth": 0.7, "zorder": 1}


def ranking(block: FigureBlock) -> Figure:
    """Draw a row per method, sorted by score: the mean, its 95 % interval, the worst case of ties, and single seeds.

    There is a panel per code length. What is not shown to differ from its best is marked. Baselines that are near are
    dotted lines.
    """
    baselines = block.cells["label"].isin(baselines_of(block))
    cells = block.tested(on_progress=block.on_progress).cells[~baselines]
    if len(set(cells["label"])) < 2:
        raise too_little(block, "a single method")
    parts = [part.sort_values("value", ascending=is_error(block.metric)) for _, part in cells.groupby("n_bits")]
    title_height = TITLE_HEIGHT * (len(parts) > 1)
    figure, grid = make_panels(
        block.layout,
        [(1, rows_height(part, block.names)) for part in parts],
        heading(block, f"{block.metric} at {' or '.join(map(str, block.n_bits))} bits"),
        [
            f"Mark: mean over queries, {count_seeds(cells['n_seeds'])} and all orders of tied items.",
            f"Dots: single seeds. Thin bar: {RANGE}",
            *(f"{sign}: {text}" for sign, text in explain(cells).items()),
        ],
        gap=(_GAP, _GAP),
        left=names_width(cells, block.names),
        right=_VALUES,
        above=legend_height(cells) + title_height,
        foot=[about_intervals(cells, "Thick bar"), *describe_baselines(block), *block.remarks],
    )
    for (axes,), part in zip(grid, parts, strict=True):
        n_bits = part["n_bits"].iloc[0]
        draw_rows(axes, part, block.names)
        for place, label in enumerate(part["label"]):
            values = block.rows.loc[(block.rows["label"] == label) & (block.rows["n_bits"] == n_bits), "value"]
            if len(values) > 1:
                axes.plot(values, [place] * len(values), ".", color="black", markersize=1.8, label="_", zorder=3)
            axes.text(
                1.0,
                place,
                f"  {part['value'].iloc[place]:.4f}{part['marks'].iloc[place]}",
                transform=axes.get_yaxis_transform(),
                va="center",
                color=INK,
                size=SMALL,
            )
        draw_baselines(axes, block.cells.loc[baselines & (block.cells["n_bits"] == n_bits), "value"].to_list())
        axes.set_xlabel(f"{block.metric} (0 to 1)" if part is parts[-1] else "")
        axes.set_title(f"{n_bits} bits" if len(parts) > 1 else "")
    add_group_legend(grid[0][0], cells, title_height)
    return figure


def draw_rows(axes: Axes, cells: pd.DataFrame, names: Mapping[str, str] | None) -> None:
    """Draw cells from above to below: a mark at ``value``, and bars, thin from ``low`` to ``high``, thick to ``to``.

    Thick bars begin at ``from_``. Rows have the names of their labels at the left, or none.
    """
    looks = group_looks()
    for place, cell in enumerate(cells.to_dict("records")):
        look = looks[cell["group"]]
        axes.hlines(place, cell["low"], cell["high"], color=look.colour, alpha=0.6, linewidth=0.8, label=cell["label"])
        if np.isfinite(cell["from_"]):
            axes.hlines(place, cell["from_"], cell["to"], color=look.colour, alpha=0.3, linewidth=4, label="_")
        axes.plot(cell["value"], place, linestyle="none", label=cell["label"], **look.points())
    if cells["value"].notna().any():
        low, high = np.nanmin(cells[["value", "low", "from_"]]), np.nanmax(cells[["value", "high", "to"]])
        margin = _MARGIN * (high - low or 1.0)
        axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(len(cells) - 0.5, -0.75)
    axes.set_yticks(range(len(cells)), [names[label] for label in cells["label"]] if names else [""] * len(cells))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=True, axis="x")


def draw_baselines(axes: Axes, values: list[float]) -> None:
    """Draw dotted lines at these values; a panel reaches for those that are near."""
    low, high = axes.get_xlim()
    reach = _REACH * (high - low)
    near = [value for value in values if low - reach <= value <= high + reach]
    for value in near:
        axes.axvline(value, **_DOTTED)
    margin = reach / 4
    axes.set_xlim(min([low, *(value - margin for value in near)]), max([high, *(value + margin for value in near)]))


def rows_height(cells: pd.DataFrame, names: Mapping[str, str]) -> float:
    """Return the height of a row for each label in inches, all as high as the name of most lines."""
    labels = set(cells["label"])
    return (len(labels) + 0.5) * max(_ROW, *(text_height(names[label], SMALL) for label in labels))


def names_width(cells: pd.DataFrame, names: Mapping[str, str]) -> float:
    """Return the room for the names of rows in inches."""
    return _NAMES + max(text_width(names[label], SMALL) for label in cells["label"].unique())


def legend_height(cells: pd.DataFrame) -> float:
    """Return the room for a legend of groups in inches."""
    return 0.1 + text_height("\n" * (-(-len(_groups(cells)) // _COLUMNS) - 1), SMALL)


def add_group_legend(axes: Axes, cells: pd.DataFrame, above: float = 0.0) -> None:
    """Draw a legend of the groups of methods above a panel, with some inches between."""
    extent, dpi = axes.get_window_extent(), axes.figure.dpi
    axes.legend(
        handles=[
            Line2D([], [], linestyle="none", label=group or "other", **look.points())
            for group, look in _groups(cells).items()
        ],
        loc="lower left",
        bbox_to_anchor=(0.04 - extent.x0 / extent.width, 1 + above * dpi / extent.height),
        ncols=_COLUMNS,
        borderaxespad=0.2,
        borderpad=0,
        handlelength=1.0,
        handletextpad=0.3,
        labelspacing=0.2,
        columnspacing=1.0,
    )


def _groups(cells: pd.DataFrame) -> dict[str, Look]:
    return {group: look for group, look in group_looks().items() if group in set(cells["group"])}
