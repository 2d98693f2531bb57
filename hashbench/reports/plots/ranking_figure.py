"""Figures with a row per method: the ranking at one code length, and classes that training does not see."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hashbench.reports.aggregate import ALL_SEEN, SCOPES, all_lines, bases, fold_cells, lines_of_folds, most_folds
from hashbench.reports.marks import explain, seeds_in_words
from hashbench.reports.plots.figure_selection import DEFAULT_METRIC, FigureBlock, make_block, stems_of
from hashbench.reports.plots.result_figures import (
    BEYOND,
    RANGE,
    about_intervals,
    heading,
    set_apart_baselines,
    too_little,
)
from hashbench.reports.plots.style import GROUP_LOOKS, INK, SMALL, Look, is_crowded, new_figure, open_ends
from hashbench.reports.selection import Selection
from hashbench.reports.view import view_of
from hashbench.scoring.metrics import is_error

ROW = 0.15  # inches of a row, of the name's first line
_TICKS = 1.8  # of a logit scale, per inch


def ranking(block: FigureBlock) -> Figure:
    """Draw a row per method, sorted by score: the mean, its 95 % interval, the worst case of ties, and single seeds.

    There is a panel per code length. What may be the best of it is marked.
    """
    block, baselines = set_apart_baselines(block)
    if len(block.labels) < 2:
        raise too_little(block, "a single method")
    cells = block.tested(on_progress=block.on_progress).cells
    parts = [part.sort_values("value", ascending=is_error(block.metric)) for _, part in cells.groupby("n_bits")]
    are_open = [is_crowded(part["value"].to_numpy()) for part in parts]
    text = [
        f"Mark: mean over queries, {seeds_in_words(cells['n_seeds'])} and all orders of tied items. "
        f"{about_intervals(cells, 'Thick bar')} Thin bar: {RANGE} Dots below: single seeds.",
        *[BEYOND] * any(are_open),
        *(f"{sign}: {text}" for sign, text in explain(cells).items()),
        *baselines,
        *block.remarks,
    ]
    figure = new_figure(
        block.layout,
        sum(rows_height(part, block.names) + 0.4 for part in parts),
        heading(block, f"{block.metric} at {' or '.join(map(str, block.n_bits))} bits"),
        text,
        groups_of(cells),
    )
    shares = [len(part) for part in parts]
    grid = figure.subplots(len(parts), squeeze=False, height_ratios=shares)
    for (axes,), part, is_open in zip(grid, parts, are_open, strict=True):
        n_bits = part["n_bits"].iloc[0]
        draw_rows(axes, part, block.names)
        rows = block.rows[block.rows["n_bits"] == n_bits]
        seeds = [rows.loc[rows["label"] == label, "value"].to_numpy() for label in part["label"]]
        if is_open:
            open_ends(axes.xaxis, np.concatenate(seeds), _TICKS * block.layout.width)
        for place, (values, value, marks) in enumerate(zip(seeds, part["value"], part["marks"], strict=True)):
            if len(values) > 1:
                dots = np.clip(values, *axes.get_xlim()) if is_open else values
                heights = place + 0.28 + 0.12 * (np.arange(len(dots)) % 3)
                axes.plot(dots, heights, ".", color=INK, markersize=2.4, markeredgewidth=0, label="_")
            axes.text(
                1.02,
                place,
                f"{value:.4f}{marks}",
                transform=axes.get_yaxis_transform(),
                va="center",
                color=INK,
                size=SMALL,
            )
        scale = "0 to 1, logit scale" if is_open else "0 to 1"
        axes.set_xlabel(f"{block.metric}{f' at {n_bits} bits' if len(parts) > 1 else ''} ({scale})")
    return figure


def draw_rows(axes: Axes, cells: pd.DataFrame, names: Mapping[str, str] | None) -> None:
    """Draw cells from above to below: a mark at ``value``, and bars, thin from ``low`` to ``high``, thick to ``to``.

    Thick bars begin at ``from_``. Rows have the names of their labels at the left, or none.
    """
    for place, cell in enumerate(cells.to_dict("records")):
        look = GROUP_LOOKS[cell["group"]]
        axes.hlines(place, cell["low"], cell["high"], color=look.colour, alpha=0.6, linewidth=0.8, label=cell["label"])
        if np.isfinite(cell["from_"]):
            axes.hlines(place, cell["from_"], cell["to"], color=look.colour, alpha=0.3, linewidth=4, label="_")
        axes.plot(cell["value"], place, linestyle="none", label=cell["label"], **look.points())
    axes.set_ylim(len(cells) - 0.5, -0.75)
    axes.set_yticks(range(len(cells)), [names[label] for label in cells["label"]] if names else [""] * len(cells))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=True, axis="x")


def rows_height(cells: pd.DataFrame, names: Mapping[str, str]) -> float:
    """Return the height of a row for each label in inches, all as high as the name of most lines."""
    labels = set(cells["label"])
    return ROW * (len(labels) + 1) * max(names[label].count("\n") + 1 for label in labels)


def groups_of(cells: pd.DataFrame) -> dict[str, Look]:
    """Return the looks of the groups of cells, for a legend."""
    return {group: look for group, look in GROUP_LOOKS.items() if group in set(cells["group"])}


# Columns, from left to right, and their names.
_SCOPES = {SCOPES["unseen", "unseen"]: "unseen", SCOPES["unseen", "all"]: "among all", ALL_SEEN: "all seen"}


def choose_fold_blocks(results: pd.DataFrame, selection: Selection, usual_bits: int | None = None) -> list[FigureBlock]:
    """Return the chosen results of datasets with unseen classes: a block per base, features and number; or none.

    Cells are means over folds for queries of unseen classes, searched among these or among all, and scores of the same
    lines trained on all classes, by ``scope``.
    """
    selection = replace(selection, metrics=selection.metrics or [DEFAULT_METRIC]).read()
    of_bases = bases(results)
    selection.check(of_bases)
    cells = fold_cells(results.loc[selection.of(of_bases).index], has_variants=selection.variants)
    cells = cells[cells["scope"].isin(_SCOPES)]
    if cells.empty:
        return []
    of_folds = cells["dataset"].where(cells["scope"] != ALL_SEEN).str.replace("-database-all", "")
    cells["dataset"] = of_folds.groupby([cells["base"], cells["n_unseen"]]).transform("first")  # panels side by side
    lines = lines_of_folds(all_lines(results))
    view = view_of(cells.assign(rivals=cells["scope"]), results, selection, lines, by_score=True)
    stems = stems_of(zip(cells["dataset"], cells["features"], strict=True))
    blocks = []
    for keys, part in view.cells.groupby(["dataset", "features", "metric"], sort=True):
        dataset, features, metric = map(str, keys)
        looks = {label: GROUP_LOOKS[group] for label, group in zip(part["label"], part["group"], strict=True)}
        stem = [stems[dataset, features]]
        blocks.append(make_block(selection, usual_bits, (dataset, features, "", metric), view.of(part), looks, stem))
    return blocks


def unseen_beside_seen(block: FigureBlock) -> Figure:
    """Draw a row per method, sorted by its score among unseen classes; a panel per scope, a row of panels per length.

    Marks are expectations, thin bars run from low to high over tie orders, thick ones span the standard deviation over
    folds. Dotted lines are at the best method that learns without labels.
    """
    cells = block.cells[block.cells["group"] != "baseline"]
    cells = cells.assign(from_=cells["value"] - cells["spread"], to=cells["value"] + cells["spread"])
    if len(set(cells["label"])) < 2:
        raise too_little(block, "a single method")
    scopes = [scope for scope in _SCOPES if scope in set(cells["scope"])]
    parts = {n_bits: cells[cells["n_bits"] == n_bits] for n_bits in block.n_bits}
    base, n_unseen = cells[["base", "n_unseen"]].iloc[0]
    folds = most_folds(cells.loc[cells["scope"] != ALL_SEEN, "folds"])
    figure = new_figure(
        block.layout,
        sum(rows_height(part, block.names) + 0.4 for part in parts.values()),
        f"{base} ({block.features}): {block.metric} of {n_unseen} unseen classes, {' or '.join(map(str, parts))} bits",
        [
            f"Mark: mean over {'folds' if ',' in folds else 'fold'} {folds}, seeds and orders of tied items. Thick "
            f"bar: a standard deviation over folds, or seeds if all classes were seen, to each side. Thin bar: {RANGE}",
            *["Dotted: the best without labels."] * ("unsupervised" in set(cells["group"])),
            "Each panel has its own scale.",
            *block.remarks,
        ],
        groups_of(cells),
    )
    shares = [part["label"].nunique() for part in parts.values()]
    grid = figure.subplots(len(parts), len(scopes), squeeze=False, height_ratios=shares)
    for (n_bits, at_length), row in zip(parts.items(), grid, strict=True):
        groups = at_length.groupby("label")["group"].first()
        scores = at_length.pivot_table(index="label", columns="scope", values="value").reindex(columns=scopes)
        labels = scores.sort_values(scopes, ascending=is_error(block.metric)).index  # by the first scope that has one
        for axes, scope in zip(row, scopes, strict=True):
            part = at_length[at_length["scope"] == scope].set_index("label").reindex(labels).reset_index()
            part["group"] = part["label"].map(groups)
            draw_rows(axes, part, block.names if axes is row[0] else None)
            without_labels = part.loc[part["group"] == "unsupervised", "value"].dropna()
            if len(without_labels):
                best = without_labels.min() if is_error(block.metric) else without_labels.max()
                axes.axvline(best, color=INK, linestyle=(0, (1, 1.5)), linewidth=0.7, zorder=1)
            axes.set_xlabel(f"{block.metric}, {_SCOPES[scope]}")
            axes.set_title(f"{n_bits} bits" if len(parts) > 1 and axes is row[0] else "")
    return figure
