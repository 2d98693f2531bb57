"""Figures of codes: precision and recall, how often each code is used, time against quality."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hashbench.reports.plots.cached_codes import find_codes, read_curves, read_times, read_usage
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.reports.plots.panels import Panel, baselines_of, describe_baselines, fit_range, has_bands, panels_of
from hashbench.reports.plots.result_figures import (
    LOWEST,
    RANGE,
    count_seeds,
    heading,
    lay_out,
    means_over,
)
from hashbench.reports.plots.style import (
    INK,
    SMALL,
    TITLE,
    add_legend,
    broken_text,
    in_rows,
    legend_height,
    legend_width,
    make_panels,
    panel_width,
    plain_powers,
    text_height,
)

_FLOOR = 0.7  # lower end of the bars of a logarithmic histogram
_N_MARKERS = 8  # on a curve
_HISTOGRAM = (1.25, 0.95)  # inches of a histogram: least width, and height
_TIMES = {"fit_seconds": "time to fit (s)", "encode_seconds": "time to encode (s)"}
_OTHERS = "#c8c8c8"


def precision_recall(block: FigureBlock) -> Figure:
    """Draw precision against recall at ranks spaced evenly on a logarithmic axis, per code length and `panels_of`.

    Baselines that are near are grey lines.
    """
    text = "Line: mean over all orders of tied items, rank by rank."
    figure, panels = _draw_curves(block, "recall", "precision and recall", text)
    for axes in panels:
        axes.set(xlim=(-0.02, 1.02), xticks=np.linspace(0, 1, 6))
    return figure


def precision_at_k(block: FigureBlock) -> Figure:
    """Draw the precision of the first k items, per code length and `panels_of`.

    Bands run from low to high over tie orders. Baselines that are near are grey lines.
    """
    text = "Line: mean over all orders of tied items."
    figure, panels = _draw_curves(block, "cutoff", "precision of the first k", text)
    for axes in panels:
        axes.set(xscale="log")
        plain_powers(axes.xaxis, np.log10(axes.dataLim.x1))
    return figure


def usage_histograms(block: FigureBlock) -> Figure:
    """Draw how many items share each distinct code, the most frequent first; a panel per method and length."""
    used = list(read_usage(find_codes(block)))
    layout, gap, right = block.layout, 0.12, 0.08
    per_row = in_rows(len(used), layout, _HISTOGRAM[0], gap, right)
    width = panel_width(layout, max(per_row), gap, right)
    titles = [broken_text(f"{block.names[file.label]}, {file.n_bits} bits", TITLE, width) for file, _ in used]
    title_height = max(text_height(title, TITLE) for title in titles)
    n_items = int(used[0][1].sum())
    seeds = sorted({file.seed for file, _ in used})
    figure, rows = make_panels(
        layout,
        [(n_panels, _HISTOGRAM[1]) for n_panels in per_row],
        f"{block.dataset} ({block.features}): how often each code is used",
        [
            f"Items that share a code, the most frequent code first; {n_items:,} database items, "
            f"seed {' or '.join(map(str, seeds))}. Above: distinct codes, and items in the most frequent one.",
        ],
        gap=(gap, 0.2),
        right=right,
        foot=block.remarks,
        above=title_height + text_height("", SMALL) + 0.1,
    )
    panels = [(position, row, axes) for row in rows for position, axes in enumerate(row)]
    widest = max(len(sizes) for _, sizes in used)
    for (position, row, axes), title, (file, sizes) in zip(panels, titles, used, strict=True):
        colour = block.looks[file.label].colour
        axes.stairs(sizes, np.arange(1, len(sizes) + 2), baseline=_FLOOR, fill=True, color=colour, label=file.label)
        axes.set(xscale="log", yscale="log", xlim=(1, widest * 1.5), ylim=(_FLOOR, n_items * 1.5))
        plain_powers(axes.xaxis, np.log10(widest))
        plain_powers(axes.yaxis, np.log10(n_items))
        axes.set_title(title, pad=13)
        counts = f"{len(sizes):,} code{'s' if len(sizes) > 1 else ''}, {sizes[0]:,} in one"
        axes.text(0, 1.04, counts, transform=axes.transAxes, size=SMALL, color=INK)
        axes.tick_params(labelleft=position == 0)
        axes.set(ylabel="items" if position == 0 else "", xlabel="rank of the code" if row is rows[-1] else "")
    return figure


def time_against_quality(block: FigureBlock) -> Figure:
    """Draw the metric against the time to fit and to encode; a row per code length and `panels_of`.

    Points are expectations, bars run from low to high over tie orders. Methods of other rows are grey.
    """
    points = read_times(find_codes(block)).merge(block.cells, on=["label", "n_bits"])
    block = block.only(points["label"])
    panels = panels_of(block)
    shown = list(product(sorted(points["n_bits"].unique()), panels))
    right = legend_width(block.names.values())
    height = max(LOWEST, *(legend_height(block.names[label] for label in panel.labels) for _, panel in shown))
    figure, rows = make_panels(
        block.layout,
        [(2, height)] * len(shown),
        heading(block, f"{block.metric} against time"),
        [
            f"Mark: mean over all orders of tied items. Bar: {RANGE}",
            f"{means_over(points['n_seeds'])} Times: medians over {count_seeds(points['n_timed'])}, of the machine "
            "that made the codes." + " In grey: methods of the other panels." * (len(panels) > 1),
        ],
        gap=(0.12, 0.2),
        right=right,
        foot=[*describe_baselines(block), *block.remarks],
    )
    for (n_bits, panel), row in zip(shown, rows, strict=True):
        at_length = points[points["n_bits"] == n_bits]
        is_baseline = at_length["label"].isin(baselines_of(block))
        near = fit_range(row[0], at_length[~is_baseline], at_length[is_baseline], ["value", "low", "high"])
        for axes, key in zip(row, _TIMES, strict=True):
            for point in at_length.to_dict("records"):
                _draw_point(axes, point, key, panel, near, block)
            low, high = np.floor(np.log10(points[key].min())), np.ceil(np.log10(points[key].max()))
            axes.set(xscale="log", xlim=(10**low / 1.4, 10**high * 1.4))
            plain_powers(axes.xaxis, high, low, most=3)
        row[0].set(title=_title(panel, n_bits), ylabel=f"{block.metric} (0 to 1)")
        row[1].set_ylim(row[0].get_ylim())
        row[1].tick_params(labelleft=False)
        names = {label: block.names[label] for label in panel.labels if label in set(at_length["label"])}
        add_legend(row[1], names, panel.looks, has_lines=False)
    for axes, name in zip(rows[-1], _TIMES.values(), strict=True):
        axes.set_xlabel(name)
    return figure


def _draw_point(
    axes: Axes, point: Mapping[Any, Any], key: str, panel: Panel, near: list[str], block: FigureBlock
) -> None:
    """Draw a method: in its own look in its panel, as a grey mark in the others."""
    label, look = point["label"], panel.looks[point["label"]]
    if label in panel.labels:
        axes.vlines(point[key], point["low"], point["high"], label=label, **look.bar())
        axes.plot(point[key], point["value"], linestyle="none", label=label, **look.points())
    elif label in near or label not in baselines_of(block):
        axes.plot(point[key], point["value"], "o", color=_OTHERS, markersize=2.5, zorder=1)


def _draw_curves(block: FigureBlock, x: str, what: str, text: str) -> tuple[Figure, list[Axes]]:
    points = read_curves(block)
    block = block.only(points["label"])
    shown = list(product(sorted(points["n_bits"].unique()), panels_of(block)))
    is_banded = x == "cutoff" and has_bands(block, [panel for _, panel in shown])
    text += f" Band: {RANGE}" if is_banded else ""
    figure, spots = lay_out(
        block,
        [replace(panel, title=_title(panel, n_bits)) for n_bits, panel in shown],
        what,
        [text, means_over(points["n_seeds"])],
        axis_labels=("recall (0 to 1)" if x == "recall" else "k (items)", "precision (0 to 1)"),
    )
    for (n_bits, panel), axes in zip(shown, spots, strict=True):
        at_length = points[points["n_bits"] == n_bits]
        own = at_length[at_length["label"].isin(panel.labels)]
        baselines = at_length[at_length["label"].isin(baselines_of(block))]
        near = fit_range(axes, own, baselines, ["precision", *["precision_low", "precision_high"] * is_banded])
        labels = [label for label in panel.labels if label in set(own["label"])]
        for position, label in enumerate([*near, *labels]):
            line, look = at_length[at_length["label"] == label], panel.looks[label]
            if is_banded and label not in near:
                axes.fill_between(line[x], line["precision_low"], line["precision_high"], label=label, **look.band())
            step = max(len(line) // _N_MARKERS, 1)
            axes.plot(line[x], line["precision"], label=label, markevery=(position % step, step), **look.curve())
        add_legend(axes, {label: block.names[label] for label in (*labels, *near)}, panel.looks)
    return figure, spots


def _title(panel: Panel, n_bits: int) -> str:
    return f"{panel.title}, {n_bits} bits" if panel.title else f"{n_bits} bits"
