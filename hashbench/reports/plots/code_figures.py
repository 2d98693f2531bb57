"""Figures of codes: precision and recall, how often each code is used, time against quality."""

import textwrap
from dataclasses import replace
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hashbench.reports.marks import seeds_in_words
from hashbench.reports.plots.cached_codes import find_codes, read_curves, read_times, read_usage
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.reports.plots.result_figures import (
    RANGE,
    Panel,
    heading,
    lay_out,
    legend_height,
    means_over,
    panels_of,
    set_apart_baselines,
)
from hashbench.reports.plots.style import INK, SMALL, add_legend, add_panels, new_figure, plain_powers

_FLOOR = 0.7  # lower end of the bars of a logarithmic histogram
_N_MARKERS = 8  # on a curve
_HISTOGRAM = (1.5, 0.95)  # inches of a histogram: least width, and height
_TIMES = {"fit_seconds": "time to fit (s)", "encode_seconds": "time to encode (s)"}


def precision_recall(block: FigureBlock) -> Figure:
    """Draw precision against recall at ranks spaced evenly on a logarithmic axis, per code length and `panels_of`."""
    text = "Line: mean over all orders of tied items, rank by rank."
    figure, panels = _draw_curves(block, "recall", "precision and recall", text)
    for axes in panels:
        axes.set(xlim=(-0.02, 1.02), xticks=np.linspace(0, 1, 6))
    return figure


def precision_at_k(block: FigureBlock) -> Figure:
    """Draw the precision of the first k items, per code length and `panels_of`."""
    text = "Line: mean over all orders of tied items."
    figure, panels = _draw_curves(block, "cutoff", "precision of the first k", text)
    for axes in panels:
        axes.set(xscale="log")
        plain_powers(axes.xaxis)
    return figure


def usage_histograms(block: FigureBlock) -> Figure:
    """Draw how many items share each distinct code, the most frequent first; a panel per method and length."""
    used = list(read_usage(find_codes(block)))
    n_columns = block.layout.n_columns(len(used), _HISTOGRAM[0])
    n_letters = int(14 * (block.layout.width / n_columns - 0.4))
    titles = [textwrap.fill(f"{block.names[file['label']]}, {file['n_bits']} bits", n_letters) for file, _ in used]
    n_items, widest = int(used[0][1].sum()), max(len(sizes) for _, sizes in used)
    seeds = " or ".join(map(str, sorted({file["seed"] for file, _ in used})))
    figure = new_figure(
        block.layout,
        -(-len(used) // n_columns) * (_HISTOGRAM[1] + 0.3 + 0.14 * max(title.count("\n") + 1 for title in titles))
        + 0.2,
        f"{block.dataset} ({block.features}): how often each code is used",
        [
            f"Items that share a code, the most frequent code first; {n_items:,} database items, seed {seeds}. "
            "Numbers: distinct codes, and items in the most frequent one.",
            *block.remarks,
        ],
    )
    panels = add_panels(figure, len(used), n_columns, "rank of the code", "items")
    for axes, title, (file, sizes) in zip(panels, titles, used, strict=True):
        colour = block.looks[file["label"]].colour
        axes.stairs(sizes, np.arange(1, len(sizes) + 2), baseline=_FLOOR, fill=True, color=colour, label=file["label"])
        axes.set(xscale="log", yscale="log", xlim=(1, widest * 1.5), ylim=(_FLOOR, n_items * 1.5))
        plain_powers(axes.xaxis)
        plain_powers(axes.yaxis)
        axes.set_title(title)
        counts = f"{len(sizes):,} code{'s' if len(sizes) > 1 else ''}\n{sizes[0]:,} in one"
        axes.text(1, 1, counts, transform=axes.transAxes, ha="right", va="top", size=SMALL, color=INK)
    return figure


def time_against_quality(block: FigureBlock) -> Figure:
    """Draw the metric against the time to fit and to encode; a row per code length and `panels_of`.

    Points are expectations, bars run from low to high over tie orders.
    """
    points = read_times(find_codes(block))
    block, baselines = set_apart_baselines(block.only(points["label"]))
    points = points.merge(block.cells, on=["label", "n_bits"])
    panels = panels_of(block)
    shown = list(product(sorted(points["n_bits"].unique()), panels))
    figure = new_figure(
        block.layout,
        len(shown) * (max(1.45, legend_height(block, panels)) + 0.4) + 0.2,
        heading(block, f"{block.metric} against time"),
        [
            f"Mark: mean over all orders of tied items. Bar: {RANGE}",
            f"{means_over(points['n_seeds'])} Times: medians over {seeds_in_words(points['n_timed'])}, of the machine "
            "that made the codes.",
            *baselines,
            *block.remarks,
        ],
    )
    grid = figure.subplots(len(shown), 2, squeeze=False, sharex="col", sharey="row")
    for (n_bits, panel), row in zip(shown, grid, strict=True):
        at_length = points[points["n_bits"] == n_bits].set_index("label")
        labels = [label for label in panel.labels if label in at_length.index]
        for axes, key in zip(row, _TIMES, strict=True):
            for label in labels:
                point, look = at_length.loc[label], panel.looks[label]
                axes.vlines(point[key], point["low"], point["high"], label=label, **look.bar())
                axes.plot(point[key], point["value"], linestyle="none", label=label, **look.points())
            first, last = np.floor(np.log10(points[key].min())), np.ceil(np.log10(points[key].max()))
            axes.set(xscale="log", xlim=(10**first / 1.4, 10**last * 1.4))
            plain_powers(axes.xaxis)
        row[0].set(title=_title(panel, n_bits), ylabel=f"{block.metric} (0 to 1)")
        add_legend(row[1], {label: block.names[label] for label in labels}, panel.looks, has_lines=False)
    for axes, name in zip(grid[-1], _TIMES.values(), strict=True):
        axes.set_xlabel(name)
    return figure


def _draw_curves(block: FigureBlock, x: str, what: str, text: str) -> tuple[Figure, list[Axes]]:
    points = read_curves(block)
    block, baselines = set_apart_baselines(block.only(points["label"]))
    points = points[points["label"].isin(block.labels)]
    shown = list(product(sorted(points["n_bits"].unique()), panels_of(block)))
    figure, spots = lay_out(
        block,
        [replace(panel, title=_title(panel, n_bits)) for n_bits, panel in shown],
        what,
        [text, means_over(points["n_seeds"]), *baselines],
        axis_labels=("recall (0 to 1)" if x == "recall" else "k (items)", "precision (0 to 1)"),
    )
    for (n_bits, panel), axes in zip(shown, spots, strict=True):
        at_length = points[points["n_bits"] == n_bits]
        labels = [label for label in panel.labels if label in set(at_length["label"])]
        for position, label in enumerate(labels):
            line = at_length[at_length["label"] == label]
            step = max(len(line) // _N_MARKERS, 1)
            marks = {"markevery": (position % step, step), **panel.looks[label].curve()}
            axes.plot(line[x], line["precision"], label=label, **marks)
        add_legend(axes, {label: block.names[label] for label in labels}, panel.looks)
    return figure, spots


def _title(panel: Panel, n_bits: int) -> str:
    return f"{panel.title}, {n_bits} bits" if panel.title else f"{n_bits} bits"
