"""Figures that need only the results: tie ranges, and the metric against the code length."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from hashbench._typing import FloatArray
from hashbench.errors import HashbenchError
from hashbench.reports.marks import queries_in_words
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.reports.plots.panels import Panel, baselines_of, describe_baselines, fit_range, has_bands, panels_of
from hashbench.reports.plots.style import (
    INK,
    LEFT,
    SMALL,
    Look,
    add_legend,
    in_rows,
    legend_height,
    legend_width,
    make_panels,
    panel_width,
    text_height,
)
from hashbench.reports.uncertainty import BOTH, IN_WORDS, assess, draw_at_random

LOWEST, _TALLEST, _NARROWEST, _DOWN = 1.45, 1.7, 1.2, 0.18  # inches of a panel, and between rows of them
_GAP, _PITCH = 2.0, 0.055  # between code lengths, in bars, and from bar to bar, in inches
_BESIDE, _SHARE = 0.05, 0.6  # inches between bars of one code length, and the share of its room that they fill
_TICK, _LEADER = 0.17, 0.14  # inches from one code length to the next, and from a panel to the names beside it
RANGE = "the worst case of ties, those of each query on its own."


def tie_ranges(block: FigureBlock) -> Figure:
    """Draw the worst case of ties of each score: bars from low to high, with a mark at the expectation.

    Within a code length, bars have the order of the legend.
    """
    if len(block.cells) == 1:
        raise too_little(block, "a single point")
    panels = panels_of(block)
    text = [f"Mark: mean over all orders of tied items. Bar: {RANGE}", means_over(block.cells["n_seeds"])]
    least = _PITCH * len(block.n_bits) * (max(len(panel.labels) for panel in panels) + _GAP)
    what = f"worst case of ties of {block.metric}"
    figure, all_axes = lay_out(block, panels, what, text, _axis_labels(block), least)
    for axes, panel in zip(all_axes, panels, strict=True):
        lengths = sorted(block.cells[block.cells["label"].isin(panel.labels)]["n_bits"].unique().tolist())
        step = len(panel.labels) + _GAP
        pitch = 72 * axes.get_position().width * figure.get_figwidth() / (step * len(lengths))  # points
        for position, label in enumerate(panel.labels):
            line = block.cells[block.cells["label"] == label]
            x = line["n_bits"].map(lengths.index) * step + position
            look = panel.looks[label]
            axes.vlines(x, line["low"], line["high"], label=label, **look.bar(min(pitch / 4, 1)))
            axes.plot(x, line["value"], linestyle="none", label=label, **look.points(min(max(pitch / 3.3, 0.6), 1)))
        edges = np.arange(len(lengths) + 1) * step - (_GAP + 1) / 2
        for left, right in zip(edges[::2], edges[1::2], strict=False):
            axes.axvspan(left, right, color="#f3f3f3", zorder=0)
        axes.set_xticks((edges[:-1] + edges[1:]) / 2, [str(length) for length in lengths])
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(edges[0], edges[-1])
        own = block.cells[block.cells["label"].isin(panel.labels)]
        baselines = block.cells[block.cells["label"].isin(baselines_of(block))]
        for label in fit_range(axes, own, baselines, ["value", "low", "high"]):
            line = baselines[baselines["label"] == label]
            axes.axhline(line["value"].mean(), label=label, **{**panel.looks[label].curve(), "marker": ""})
        add_legend(axes, {label: block.names[label] for label in panel.labels}, panel.looks, has_lines=False)
    return figure


def metric_against_bits(block: FigureBlock) -> Figure:
    """Draw the metric against the code length; a panel per group of methods if they do not fit into one.

    Lines are expectations, with names at their ends; bars are 95 % intervals, side by side at each code length; bands
    behind them run from low to high.
    Each panel has its own range. Baselines that are near are grey lines.
    """
    if len(block.n_bits) == 1:
        raise too_little(block, "a single code length")
    panels = panels_of(block)
    is_banded = has_bands(block, panels)
    found = assess(block.cells, block.rows_of_cells)
    block = replace(block, cells=block.cells.assign(from_=found.from_, to=found.to, basis=found.basis))
    text = ["Line: mean over all orders of tied items." + (f" Band: {RANGE}" if is_banded else "")]
    text += [means_over(block.cells["n_seeds"])]
    foot = [about_intervals(block.cells)]
    own = block.cells[block.cells["group"] != "baseline"]
    if len(set(own["label"])) > 1 and own["from_"].notna().any():
        foot[0] += " Bars of one code length stand side by side."
    figure, all_axes = lay_out(block, panels, f"{block.metric} by code length", text, _axis_labels(block), foot=foot)
    for axes, panel in zip(all_axes, panels, strict=True):
        width, height = axes.get_position().size * figure.get_size_inches()
        _draw_lines(axes, panel, block, (width, height), is_banded=is_banded)
    return figure


def lay_out(
    block: FigureBlock,
    panels: list[Panel],
    what: str,
    text: list[str],
    axis_labels: tuple[str, str],
    least: float = 0.0,
    foot: Sequence[str] = (),
) -> tuple[Figure, list[Axes]]:
    """Create labelled axes for panels, ``least`` inches wide if possible, with room for names at their right."""
    right = legend_width(block.names.values())
    gap = LEFT + right
    rows = in_rows(len(panels), block.layout, max(least, _NARROWEST), gap, right)
    height = max(LOWEST, 0.62 * panel_width(block.layout, max(rows), gap, right))
    height = min(height, _TALLEST) if len(rows) > 1 else height
    beside = [*baselines_of(block), *max((panel.labels for panel in panels), key=len)]
    height = max(height, legend_height(block.names[label] for label in beside))
    figure, grid = make_panels(
        block.layout,
        [(n_panels, height) for n_panels in rows],
        heading(block, what),
        [*text, *["Each panel has its own scale."] * (len(panels) > 1)],
        gap=(gap, _DOWN),
        right=right,
        above=0.22 if any(panel.title for panel in panels) else 0.1,
        foot=[*foot, *describe_baselines(block), *block.remarks],
    )
    for axes in grid[-1]:
        axes.set_xlabel(axis_labels[0])
    for row in grid:
        row[0].set_ylabel(axis_labels[1])
    all_axes = [axes for row in grid for axes in row]
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.locator_params(axis="y", steps=[1, 2, 5, 10])  # quarters need a digit more
        axes.set_title(panel.title)
    return figure, all_axes


def heading(block: FigureBlock, what: str) -> str:
    """Return a figure's heading: dataset, features, what it shows, and the number of queries."""
    return f"{block.dataset} ({block.features}): {what}, {queries_in_words(block.cells)}"


def means_over(n_seeds: Iterable[int]) -> str:
    """Return a sentence on what was averaged."""
    return f"Means over queries, and over {count_seeds(n_seeds)}."


def count_seeds(n_seeds: Iterable[int]) -> str:
    """Return the numbers of seeds in words, such as ``1 or 3 seeds``."""
    numbers = sorted(set(n_seeds))
    return f"{' or '.join(map(str, numbers))} seed{'' if numbers == [1] else 's'}"


def about_intervals(cells: pd.DataFrame, bar: str = "Bar") -> str:
    """Return sentences on what the intervals of cells are over, and which cells have none."""
    cells = cells[cells["group"] != "baseline"]
    if cells["from_"].isna().all():
        reason = "one seed each, and the data folder lacks the scores of single queries of some lines"
        return f"No {bar.lower()}s: {reason}."
    bases = sorted(cells["basis"].unique())
    is_single = (cells["n_seeds"] == 1) & draw_at_random(cells) & cells["from_"].notna()
    sentences = [f"{bar}: 95 % interval of the mean, {' or '.join(IN_WORDS[basis] for basis in bases)}."]
    if is_single.any() and BOTH in bases:
        sentences.append("Lines of one seed: for these codes.")
    if cells["from_"].isna().any():
        sentences.append(f"No {bar.lower()}: one seed.")
    return " ".join(sentences)


def _axis_labels(block: FigureBlock) -> tuple[str, str]:
    return "code length (bits)", f"{block.metric} (0 to 1)"


def too_little(block: FigureBlock, what: str) -> HashbenchError:
    """Return the error for a figure with nothing to compare."""
    return HashbenchError(
        f"there is nothing to compare on {block.dataset} ({block.features}): {what} in {block.metric}. "
        "Choose more methods or code lengths, or add results with hashbench run."
    )


def _draw_lines(axes: Axes, panel: Panel, block: FigureBlock, size: tuple[float, float], *, is_banded: bool) -> None:
    own = block.cells[block.cells["label"].isin(panel.labels)]
    lengths = sorted(own["n_bits"].unique().tolist())
    shown = block.cells[block.cells["n_bits"].between(lengths[0], lengths[-1])]
    cells = {str(label): line for label, line in shown.groupby("label")}
    baselines = shown[shown["label"].isin(baselines_of(block))]
    near = fit_range(axes, own, baselines, ["value", "from_", "to", *["low", "high"] * is_banded])
    shifts = _shifts(panel.labels, lengths, size[0]) if own["from_"].notna().any() else {}
    for label in (*near, *panel.labels):
        line, look = cells[label], panel.looks[label]
        cells[label] = line = line.assign(n_bits=line["n_bits"] * shifts.get(label, 1.0))
        if is_banded and label not in near:
            axes.fill_between(line["n_bits"], line["low"], line["high"], label=label, **look.band())
        if label not in near:
            axes.vlines(line["n_bits"], line["from_"], line["to"], label="_", **look.error())
        axes.plot(line["n_bits"], line["value"], label=label, **look.curve())
    axes.set_xscale("log", base=2)
    beside = 1.06 * max(shifts.values(), default=1.0)
    axes.set_xlim(lengths[0] / beside, lengths[-1] * beside)
    axes.set_xticks(*_ticks(lengths, size[0]))
    axes.minorticks_off()
    ends = {label: cells[label].iloc[-1] for label in (*panel.labels, *near)}
    _name_lines(axes, ends, block.names, panel.looks, size)


def _shifts(labels: Sequence[str], lengths: list[int], width: float) -> dict[str, float]:
    """Return factors of the code length that set the marks and bars of lines side by side, by label."""
    doublings = np.diff(np.log2(lengths)) if len(lengths) > 1 else np.ones(1)
    pitch = min(_BESIDE * doublings.sum() / width, _SHARE * doublings.min() / len(labels))
    places = pitch * (np.arange(len(labels)) - (len(labels) - 1) / 2)
    return dict(zip(labels, np.exp2(places).tolist(), strict=True))


def _ticks(lengths: list[int], width: float) -> tuple[list[int], list[str]]:
    """Return code lengths as ticks of a logarithmic axis, and labels for those with room."""
    places = np.log(lengths) * width / (np.log(lengths[-1] / lengths[0]) or 1.0)
    names, last = [], -np.inf
    for length, place in zip(lengths, places, strict=True):
        names.append(str(length) if place - last >= _TICK else "")
        last = place if names[-1] else last
    return lengths, names


def _name_lines(
    axes: Axes,
    ends: Mapping[str, pd.Series],
    names: Mapping[str, str],
    looks: Mapping[str, Look],
    size: tuple[float, float],
) -> None:
    """Write the names of lines at the right of a panel, each connected to its last point by a thin line."""
    bottom, top = axes.get_ylim()
    heights = [(top - bottom) * text_height(names[label], SMALL) / size[1] for label in ends]
    places = spread([float(end["value"]) for end in ends.values()], heights, (bottom, top))
    for (label, end), place in zip(ends.items(), places, strict=True):
        axes.annotate(
            names[label],
            (end["n_bits"], end["value"]),
            (1 + _LEADER / size[0], place),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            color=INK,
            size=SMALL,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": looks[label].colour,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 3,
                "relpos": (0, 0.5),
            },
        )


def spread(values: list[float], heights: list[float], limits: tuple[float, float]) -> FloatArray:
    """Move centred labels of these heights apart, each as little as possible from its value.

    They do not overlap, and stay between ``limits`` if there is room. The sum of squared distances is least (isotonic
    regression).

    >>> spread([0.5, 0.5, 0.9], [0.1, 0.1, 0.1], (0.0, 1.0)).round(2)
    array([0.45, 0.55, 0.9 ])
    """
    order = np.argsort(values, kind="stable")
    sizes = np.asarray(heights)[order]
    steps = np.cumsum(sizes) - sizes / 2 - sizes[0] / 2
    apart = isotonic_regression(np.asarray(values)[order] - steps).x
    places = np.empty(len(values))
    places[order] = np.clip(apart, limits[0], max(limits[1] - steps[-1], limits[0])) + steps
    return places
