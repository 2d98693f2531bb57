"""Which lines share a panel, and the range it shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.reports.plots.style import MOST_LINES, Look, distinct_looks

_MOST_BANDS = 4
_REACH = 0.25  # share of a panel's range by which a baseline may widen it
_MARGIN = 0.04


@dataclass(frozen=True)
class Panel:
    """Lines that share a panel, by label and in order, and the looks of all lines in it."""

    title: str
    labels: list[str]
    looks: Mapping[str, Look]


def baselines_of(block: FigureBlock) -> list[str]:
    """Return the lines of baselines; none if there are no other lines."""
    labels = [label for label in block.labels if block.looks[label].group == "baseline"]
    return labels if len(labels) < len(block.labels) else []


def panels_of(block: FigureBlock) -> list[Panel]:
    """Divide lines into panels of at most ``MOST_LINES``, none for a single line.

    All share one panel if they fit; else there is one per group, or one for all supervised groups if they fit. A group
    of one line joins its neighbour. A panel with too many lines is split, the better half first.
    """
    excluded = baselines_of(block)
    labels = [label for label in block.labels if label not in excluded]
    if len(labels) <= MOST_LINES:
        return [_panel("", labels, block)]
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(_title(block.looks[label].group), []).append(label)
    based = [title for title in groups if title.endswith("-based")]
    if len(based) > 1 and sum(len(groups[title]) for title in based) <= MOST_LINES:
        groups["supervised"] = [label for title in based for label in groups.pop(title)]
    parts = list(groups.items())
    while len(parts) > 1 and any(len(lines) == 1 for _, lines in parts):
        single = next(position for position, (_, lines) in enumerate(parts) if len(lines) == 1)
        first = min(single, len(parts) - 2)
        (title, lines), (other, other_lines) = parts[first : first + 2]
        parts[first : first + 2] = [(f"{title} and {other}", lines + other_lines)]
    return [panel for title, lines in parts for panel in _split(title, lines, block)]


def has_bands(block: FigureBlock, panels: Sequence[Panel]) -> bool:
    """Return whether a figure shows bands: as its layout says, else if all its panels have few lines."""
    if block.layout.bands is None:
        return all(len(panel.labels) <= _MOST_BANDS for panel in panels)
    return block.layout.bands


def fit_range(axes: Axes, own: pd.DataFrame, baselines: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Set a panel's range by its own lines, and return the labels of baselines near enough to be drawn in it.

    Both frames have a ``label``; the first of ``columns`` holds the baselines' values.
    """
    low, high = float(np.nanmin(own[columns])), float(np.nanmax(own[columns]))
    reach = _REACH * (high - low)
    extent = baselines.groupby("label", sort=False)[columns[0]].agg(["min", "max"])
    near = extent[(extent["min"] >= low - reach) & (extent["max"] <= high + reach)]
    low, high = min([low, *near["min"]]), max([high, *near["max"]])
    margin = _MARGIN * (high - low or 1.0)
    axes.set_ylim(low - margin, high + margin)
    return [str(label) for label in near.index]


def describe_baselines(block: FigureBlock) -> list[str]:
    """Return a sentence on the scores of baselines, if there are any."""
    cells = block.cells[block.cells["label"].isin(baselines_of(block))]
    scores = []
    for label, values in cells.groupby("label", sort=True)["value"]:
        ends = list(dict.fromkeys(f"{value:.3f}" for value in (values.min(), values.max())))
        scores.append(f"{block.names[str(label)]} {' to '.join(ends)}")
    return [f"Baselines, in grey where they are near: {', '.join(scores)}."] if scores else []


def _title(group: str) -> str:
    return {"": "other", "baseline": "baselines"}.get(group, group)


def _split(title: str, labels: list[str], block: FigureBlock) -> list[Panel]:
    n_parts = -(-len(labels) // MOST_LINES)
    if n_parts == 1:
        return [_panel(title, labels, block)]
    score = block.cells.groupby("label")["value"].mean()
    parts = np.array_split(sorted(labels, key=lambda label: -score[label]), n_parts)
    return [_panel(f"{title} ({n} of {n_parts})", part.tolist(), block) for n, part in enumerate(parts, 1)]


def _panel(title: str, labels: list[str], block: FigureBlock) -> Panel:
    method = dict(zip(block.cells["label"], block.cells["method"], strict=True))
    return Panel(title, labels, distinct_looks(block.looks, {label: method[label] for label in labels}))
