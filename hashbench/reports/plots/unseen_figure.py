"""The figure of unseen classes: a row per method, its scores on classes that training did not see and on seen ones."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from hashbench.reports.aggregate import all_lines
from hashbench.reports.folds import ALL_SEEN, SCOPES, bases, fold_cells, lines_of_folds, most_folds
from hashbench.reports.plots.figure_selection import DEFAULT_METRIC, FigureBlock, make_block, stems_of
from hashbench.reports.plots.ranking_figure import draw_rows, groups_of, rows_height
from hashbench.reports.plots.result_figures import RANGE, too_little
from hashbench.reports.plots.style import GROUP_LOOKS, INK, new_figure
from hashbench.reports.selection import Selection
from hashbench.reports.view import view_of
from hashbench.scoring.metrics import is_error

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
