"""The figure of unseen classes: scores on classes that training did not see against scores on seen ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hashbench._typing import BoolArray, FloatArray
from hashbench.reports.aggregate import LINE, all_lines
from hashbench.reports.folds import ALL_SEEN, PLACE, SCOPES, bases, fold_cells, most_folds
from hashbench.reports.plots.figure_selection import (
    FigureBlock,
    FigureSelection,
    chooser,
    dataset_names,
    drawable,
    nearest_length,
    short_names,
    stems_of,
)
from hashbench.reports.plots.result_figures import RANGE
from hashbench.reports.plots.style import (
    INK,
    LEFT,
    SMALL,
    group_looks,
    in_rows,
    make_panels,
    panel_width,
    text_height,
    text_width,
)
from hashbench.scoring.metrics import get_metric

_AMONG = {SCOPES["unseen", "unseen"]: "themselves", SCOPES["unseen", "all"]: "all classes"}
_WHOSE = [*PLACE, "metric", *LINE, "n_bits"]
_AXES = {"value": ("value", "low", "high"), "seen": ("seen", "seen_low", "seen_high")}
_RIGHT, _GAP = 0.1, 0.2  # inches: at the right of a panel, and below it
_LEAST, _HIGHEST = 2.4, 4.2  # inches of a panel
_COLUMNS = 3  # of the legend
_ROUND = np.stack([wave(np.linspace(0, 2 * np.pi, 24, endpoint=False)) for wave in (np.cos, np.sin)], axis=1)
_ROUND /= abs(_ROUND).max(axis=1, keepdims=True)  # from the middle of a square to its edge
_DETOUR = 0.3  # inches that a name may move to avoid covering a bar, or a line that passes another point
_NEAR = 0.06  # inches up to which a name needs no line to its point
_MARK = 0.045  # inches from the centre of a mark to its edge
_STEPS = np.arange(0.05, 1.8, 0.05)  # inches from a point to the candidate places of its name
_RADII = np.repeat(_STEPS, len(_ROUND))[:, None]
_DIRECTIONS = np.tile(_ROUND, (len(_STEPS), 1))


def choose_fold_blocks(
    results: pd.DataFrame, selection: FigureSelection, usual_bits: int | None = None
) -> list[FigureBlock]:
    """Return the chosen results of datasets with unseen classes: a block per base, features and number; or none.

    Cells are means over folds for queries of unseen classes, searched among these or among all; columns ``seen``,
    ``seen_low`` and ``seen_high`` are those of the same line trained on all classes.
    """
    metric = get_metric(selection.metric).name
    of_bases = bases(results)
    choose = chooser(of_bases, replace(selection, metric=metric, datasets=dataset_names(selection.datasets)[0]))
    cells = fold_cells(results.loc[choose(of_bases).index], has_variants=selection.variants)
    if cells.empty:
        return []
    seen = cells.loc[cells["scope"] == ALL_SEEN, [*_WHOSE, "value", "low", "high"]]
    seen = seen.rename(columns={"value": "seen", "low": "seen_low", "high": "seen_high"})
    cells = cells[cells["scope"].isin(_AMONG)].merge(seen, how="left")
    cells["dataset"] = cells["dataset"].str.replace("-database-all", "")  # a panel beside the other
    cells = cells.merge(all_lines(results)[[*LINE, "label"]], how="left")
    stems = stems_of(zip(cells["dataset"], cells["features"], strict=True))
    blocks = []
    for keys, part in cells.groupby(["dataset", "features"], sort=True):
        dataset, features = map(str, keys)
        part, notes = drawable(part)
        has_both = np.isfinite(part["seen"])
        if not has_both.all():
            lacking = ", ".join(sorted(part.loc[~has_both, "label"].unique()))
            notes.append(f"{lacking}: not run with the same settings on {part['base'].iloc[0]}, and left out.")
        part = part[has_both] if selection.n_bits else nearest_length(part[has_both], usual_bits)
        names, remarks = short_names(part)
        stem = (stems[dataset, features], *([metric.replace(":", "-")] if metric != FigureSelection.metric else []))
        looks = {label: group_looks()[group] for label, group in zip(part["label"], part["group"], strict=True)}
        blocks.append(
            FigureBlock(
                dataset,
                features,
                dataset_fingerprint="",
                metric=metric,
                cells=part.reset_index(drop=True),
                rows=part,
                looks=looks,
                names=names,
                remarks=remarks,
                stem=stem,
                notes=notes,
            )
        )
    return blocks


def unseen_against_seen(block: FigureBlock) -> Figure:
    """Draw the metric of unseen classes against that of training on all classes.

    There is a panel per code length and database: only the unseen classes, or all. Points are expectations, thin bars
    run from low to high over tie orders, thick ones span the standard deviation over folds. Marks are those of groups;
    the dotted line is at the best method that learns without labels.
    """
    layout, cells = block.layout, block.cells
    scopes = [scope for scope in _AMONG if scope in set(cells["scope"])]
    places = [(n_bits, scope) for n_bits in block.n_bits for scope in scopes]
    rows = in_rows(len(places), layout, _LEAST, LEFT + _RIGHT, _RIGHT)
    height = min(panel_width(layout, max(rows), LEFT + _RIGHT, _RIGHT), _HIGHEST)
    groups = [group for group in group_looks() if group in set(cells["group"])]
    n_lines = -(-len(groups) // _COLUMNS)
    base, n_unseen = cells[["base", "n_unseen"]].iloc[0]
    folds = most_folds(cells["folds"])
    text = [
        f"Mark: mean over {'folds' if ',' in folds else 'fold'} {folds}, seeds and orders of tied items. Vertical: "
        f"queries of the {n_unseen} classes that training did not see, among "
        f"{' or '.join(_AMONG[scope] for scope in scopes)}; horizontal: queries of all classes among all, all seen. "
        f"Fewer classes give any ranking more, so compare heights with heights. Thin bar: {RANGE} "
        "Thick bar: standard deviation over folds. Baselines have neither here."
    ]
    if "unsupervised" in groups:
        text.append("Dotted: the best that learns without labels, from the same items.")
    figure, grid = make_panels(
        layout,
        [(n_panels, height) for n_panels in rows],
        f"{base} ({block.features}): {block.metric} of {n_unseen} unseen classes, "
        f"{' or '.join(map(str, block.n_bits))} bits",
        [*text, *block.remarks],
        gap=(LEFT + _RIGHT, _GAP),
        right=_RIGHT,
        above=0.15 + text_height("\n" * (n_lines - 1), SMALL),
    )
    all_axes = [axes for row in grid for axes in row]
    for axes, (n_bits, scope) in zip(all_axes, places, strict=True):
        _draw_points(figure, axes, cells[(cells["n_bits"] == n_bits) & (cells["scope"] == scope)], block)
        axes.set(xlabel=f"{block.metric}, all classes seen", ylabel=f"{block.metric}, {scope}")
        axes.set_title(
            f"{n_bits} bits" if len(block.n_bits) > 1 else "", pad=4 + 72 * text_height("\n" * (n_lines - 1), SMALL)
        )
    looks = group_looks()
    all_axes[0].legend(
        handles=[Line2D([], [], linestyle="none", label=group or "other", **looks[group].points()) for group in groups],
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=_COLUMNS,
        borderaxespad=0.2,
        borderpad=0,
        handlelength=1.0,
        handletextpad=0.3,
        labelspacing=0.2,
        columnspacing=1.0,
    )
    return figure


def _draw_points(figure: Figure, axes: Axes, cells: pd.DataFrame, block: FigureBlock) -> None:
    others = cells[cells["group"] != "baseline"]
    for key, columns in _AXES.items():
        ends = np.concatenate([cells[key], *(others[column].dropna() for column in columns)])
        if key == "value":
            ends = np.concatenate([ends, *(others["value"] + sign * others["spread"].fillna(0) for sign in (-1, 1))])
        margin = 0.06 * (np.ptp(ends) or 1.0)
        limits = ends.min() - margin, ends.max() + margin
        (axes.set_ylim if key == "value" else axes.set_xlim)(limits)
    unsupervised = cells.loc[cells["group"] == "unsupervised", "value"]
    if len(unsupervised):
        axes.axhline(unsupervised.max(), color=INK, linestyle=(0, (1, 1.5)), linewidth=0.7, zorder=1)
    axes.grid(visible=True, axis="x")
    bars = []
    for cell in others.to_dict("records"):
        look: dict[str, Any] = {"color": block.looks[cell["label"]].colour, "alpha": 0.55, "linewidth": 0.8}
        axes.vlines(cell["seen"], cell["low"], cell["high"], label=cell["label"], zorder=1.5, **look)
        if np.isfinite(cell["spread"]):
            low, high = cell["value"] - cell["spread"], cell["value"] + cell["spread"]
            axes.vlines(cell["seen"], low, high, color=look["color"], alpha=0.25, linewidth=3, label="_", zorder=1.4)
        axes.hlines(cell["value"], cell["seen_low"], cell["seen_high"], label=cell["label"], zorder=1.5, **look)
        bars += [np.linspace((cell["seen"], cell["low"]), (cell["seen"], cell["high"]), 15)]
        bars += [np.linspace((cell["seen_low"], cell["value"]), (cell["seen_high"], cell["value"]), 15)]
    _write_names(figure, axes, cells, block, np.concatenate([cells[["seen", "value"]], *bars]))


def _write_names(figure: Figure, axes: Axes, cells: pd.DataFrame, block: FigureBlock, marks: FloatArray) -> None:
    """Draw the mark of each method and its name beside it, connected by a thin line if farther off."""
    inches = axes.transData - figure.dpi_scale_trans
    points = inches.transform(cells[["seen", "value"]].to_numpy())
    corners = inches.transform(np.stack([axes.get_xlim(), axes.get_ylim()], axis=1))
    names = [block.names[label] for label in cells["label"]]
    sizes = np.array([[text_width(name, SMALL), text_height(name, SMALL)] for name in names])
    offsets = place_names(points, sizes, corners, inches.transform(marks)) - points
    for cell, name, offset, size in zip(cells.to_dict("records"), names, offsets, sizes, strict=True):
        look, point = block.looks[cell["label"]], (cell["seen"], cell["value"])
        axes.plot(*point, linestyle="none", label=cell["label"], **look.points())
        line = {
            "arrowstyle": "-",
            "color": look.colour,
            "linewidth": 0.4,
            "shrinkA": 0,
            "shrinkB": 3,
            "relpos": (0.5, 0.5),
        }
        axes.annotate(
            name,
            point,
            tuple(72 * offset),
            textcoords="offset points",
            ha="center",
            va="center",
            color=INK,
            size=SMALL,
            arrowprops=line if (abs(offset) - size / 2 > _NEAR).any() else None,
        )


def place_names(points: FloatArray, sizes: FloatArray, corners: FloatArray, marks: FloatArray) -> FloatArray:
    """Place names beside points, each as near to its own as there is room; all in inches.

    ``sizes`` are widths and heights of the names, ``corners`` the lower left and upper right of the panel, ``marks``
    points that names should avoid. Returns the centres of names, (n, 2): no name covers a point, another name, or the
    way from one to its point, unless there is no room.
    """
    placed = np.zeros((0, 2, 2))  # corners of the names placed so far
    ways = np.zeros((0, 2))  # points on the ways from these names to their points
    places = np.empty_like(points)
    along = np.linspace(0, 1, 20)[:, None]
    distances = np.hypot(*(points[:, None] - points).T) + np.diag(np.full(len(points), np.inf))
    for number in np.argsort(distances.min(axis=1, initial=np.inf), kind="stable"):  # the most crowded first
        point, half = points[number], sizes[number] / 2
        centres = point + _DIRECTIONS * (half + _RADII)  # (n_candidates, 2)
        boxes = np.stack([centres - half, centres + half], axis=1)  # (n_candidates, 2, 2)
        is_inside = ((boxes >= corners[0]) & (boxes <= corners[1])).all(axis=(1, 2))
        is_free = ~_covers(boxes, np.concatenate([points, ways]), _MARK).any(axis=1)
        meets = (boxes[:, None, 0] < placed[:, 1]) & (placed[:, 0] < boxes[:, None, 1])
        is_free &= ~np.any(np.all(meets, axis=2), axis=1)
        own = point + along * (centres - point)[:, None]  # (n_candidates, 20, 2)
        is_free &= ~_covers(placed, own.reshape(-1, 2)).any(axis=0).reshape(len(own), -1).any(axis=1)
        others = np.delete(points, number, axis=0)
        passed = _covers(np.stack([others - _MARK, others + _MARK], axis=1), own.reshape(-1, 2))
        n_passed = passed.reshape(len(others), len(own), -1).any(axis=2).sum(axis=0)
        is_clear = ~_covers(boxes, marks).any(axis=1)
        best = np.argmin(_RADII[:, 0] + _DETOUR * (100.0 * ~is_inside + 10.0 * ~is_free + ~is_clear + n_passed))
        places[number] = centres[best]
        placed = np.concatenate([placed, boxes[best, None]])
        ways = np.concatenate([ways, own[best]])
    return places


def _covers(boxes: FloatArray, points: FloatArray, margin: float = 0.0) -> BoolArray:
    (left, low), (right, high) = (corner[:, :, None] for corner in (boxes[:, 0].T - margin, boxes[:, 1].T + margin))
    x, y = points.T
    return np.asarray((x > left) & (x < right) & (y > low) & (y < high))
