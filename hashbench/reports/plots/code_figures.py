"""Figures of codes: precision and recall, how often each code is used, time against quality."""

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hashbench._typing import IntArray
from hashbench.reports.plots.cached_codes import read_curves, read_times, read_usage
from hashbench.reports.plots.result_figures import RANGE, count_seeds, heading, means_over, metric_label
from hashbench.reports.plots.selection import Block
from hashbench.reports.plots.style import INK, add_legend, group_title, legend_size, make_panels, plain_powers

_WIDTH, _HEIGHT = 4.6, 3.6  # inches of a panel of curves
_FLOOR = 0.7  # where the bars of a logarithmic histogram begin
_N_MARKERS = 8  # on a curve
_N_COLUMNS = 4
_NARROWEST, _WIDEST, _LETTER = 1.75, 10.0, 0.085  # inches of a histogram, of a row of them, of a letter of its title
_TIMES = {"fit_seconds": "time to fit (s)", "encode_seconds": "time to encode queries and database (s)"}


def precision_recall(block: Block) -> Figure:
    """Draw precision against recall, a panel for each group of methods and code length.

    Points are ranks, spaced evenly on a logarithmic axis; baselines stand in every panel.
    """
    figure, panels = _draw_curves(
        block, "recall", "precision and recall", "Line: mean over all orders of tied items, rank by rank."
    )
    for panel in panels:
        panel.set(xlim=(-0.02, 1.02), xticks=np.linspace(0, 1, 6), xlabel="recall (0 to 1)")
    return figure


def precision_at_k(block: Block) -> Figure:
    """Draw the precision of the first k items, a panel for each group of methods and code length.

    Bands run from low to high over tie orders; baselines stand in every panel.
    """
    figure, panels = _draw_curves(
        block, "cutoff", "precision of the first k", f"Line: mean over all orders of tied items. Band: {RANGE}"
    )
    for panel in panels:
        panel.set(xscale="log", xlabel="k (items)")
        plain_powers(panel.xaxis, np.log10(panel.dataLim.x1))
    return figure


def usage_histograms(block: Block) -> Figure:
    """Draw how many items share each distinct code, the most frequent first, a panel for each method and length."""
    used = list(read_usage(block))
    titles = [f"{file.label}, {file.n_bits} bits" for file, _ in used]
    width = max(_NARROWEST, _LETTER * max(map(len, titles)))
    n_columns = min(len(used), _N_COLUMNS, max(int(_WIDEST / width), 1))
    n_items = int(used[0][1].sum())
    seeds = sorted({file.seed for file, _ in used})
    figure, rows = make_panels(
        *(-(-len(used) // n_columns), [width] * n_columns, 1.15),
        f"{block.dataset} ({block.features}): how often each code is used",
        [
            f"Items that share a code, the most frequent code first; {n_items:,} database items, "
            f"seed {' or '.join(map(str, seeds))}.",
            "Above: distinct codes, and items in the most frequent one.",
        ],
        gap=(0.25, 0.75),
    )
    panels = [panel for row in rows for panel in row]
    widest = max(len(sizes) for _, sizes in used)
    for position, (panel, (file, sizes)) in enumerate(zip(panels, used, strict=False)):
        colour = block.looks[file.label].colour
        panel.stairs(sizes, np.arange(1, len(sizes) + 2), baseline=_FLOOR, fill=True, color=colour, label=file.label)
        panel.set(xscale="log", yscale="log", xlim=(1, widest * 1.5), ylim=(_FLOOR, n_items * 1.5))
        plain_powers(panel.xaxis, np.log10(widest))
        plain_powers(panel.yaxis, np.log10(n_items))
        panel.set_title(titles[position], pad=16, size=10.5)
        panel.text(0, 1.04, _counts(sizes), transform=panel.transAxes, size=9, color=INK)
        panel.tick_params(labelsize=9.5)
        is_last = position + n_columns >= len(used)
        panel.tick_params(labelleft=position % n_columns == 0, labelbottom=is_last)
        panel.set(ylabel="items" if position % n_columns == 0 else "", xlabel="rank of the code" if is_last else "")
    for panel in panels[len(used) :]:
        panel.remove()
    return figure


def time_against_quality(block: Block) -> Figure:
    """Draw the metric against the time to fit and the time to encode, a row of panels for each code length.

    Points are expectations, bars run from low to high over tie orders.
    """
    points = read_times(block).merge(block.cells, on=["label", "n_bits"])
    legend_width, legend_height = legend_size(block.labels, block.looks)
    lengths = sorted(points["n_bits"].unique())
    figure, rows = make_panels(
        *(len(lengths), [3.0, 3.0], max(3.2, legend_height), heading(block, f"{block.metric} against time")),
        [
            f"Mark: mean over all orders of tied items. Bar: {RANGE}",
            f"{means_over(points['n_seeds'])} "
            f"Times: medians over {count_seeds(points['n_timed'])}, of the machine that made the codes.",
        ],
        gap=(0.35, 0.95),
        right=legend_width,
    )
    for n_bits, panels in zip(lengths, rows, strict=True):
        panels[0].set(title=f"{n_bits} bits", ylabel=metric_label(block))
        for panel, (key, name) in zip(panels, _TIMES.items(), strict=True):
            for point in points[points["n_bits"] == n_bits].to_dict("records"):
                label, look = point["label"], block.looks[point["label"]]
                panel.vlines(point[key], point["low"], point["high"], label=label, **look.bar())
                panel.plot(point[key], point["value"], linestyle="none", label=label, **look.points())
            low, high = np.floor(np.log10(points[key].min())), np.ceil(np.log10(points[key].max()))
            panel.set(xscale="log", xlabel=name, xlim=(10**low / 1.4, 10**high * 1.4))
            plain_powers(panel.xaxis, high, low)
        panels[1].sharey(panels[0])
        panels[1].tick_params(labelleft=False)
    add_legend(rows[0][-1], list(points["label"].unique()), block.looks, has_lines=False)
    return figure


def _counts(sizes: IntArray) -> str:
    return f"{len(sizes):,} code{'s' if len(sizes) > 1 else ''}, {sizes[0]:,} in one"


def _draw_curves(block: Block, x: str, what: str, text: str) -> tuple[Figure, list[Axes]]:
    """Draw precision against a column of the curves."""
    points = read_curves(block)
    labels = [label for label in block.labels if label in set(points["label"])]
    of_group = {label: block.looks[label].group for label in labels}
    groups = [group for group in dict.fromkeys(of_group.values()) if group != "baseline"] or ["baseline"]
    shown = list(product(sorted(points["n_bits"].unique()), groups))
    n_columns = min(len(shown), 2)
    legend_width, legend_height = legend_size(labels, block.looks)
    n_rows = -(-len(shown) // n_columns)
    figure, rows = make_panels(
        *(n_rows, [_WIDTH / n_columns**0.5] * n_columns, max(_HEIGHT, legend_height if n_rows == 1 else 0)),
        heading(block, what),
        [text, means_over(points["n_seeds"])],
        gap=(0.3, 0.9),
        right=legend_width,
    )
    panels = [panel for row in rows for panel in row]
    for (n_bits, group), panel in zip(shown, panels, strict=False):
        own = [label for label in labels if of_group[label] in (group, "baseline")]
        _draw_panel(panel, points[points["n_bits"] == n_bits], x, own, block)
        panel.set(title=f"{group_title(group)}, {n_bits} bits", ylim=(-0.02, 1.02))
        panel.tick_params(labelleft=panel in [row[0] for row in rows])
    for panel in panels[len(shown) :]:
        panel.remove()
    for row in rows:
        row[0].set_ylabel("precision (0 to 1)")
    add_legend(rows[0][-1], labels, block.looks)
    return figure, panels[: len(shown)]


def _draw_panel(panel: Axes, points: pd.DataFrame, x: str, labels: list[str], block: Block) -> None:
    for position, label in enumerate(labels):
        line, look = points[points["label"] == label], block.looks[label]
        if x == "cutoff":
            panel.fill_between(
                *(line[x], line["precision_low"], line["precision_high"]),
                label=label,
                **look.band(is_filled=look.group != "baseline"),
            )
        step = max(len(line) // _N_MARKERS, 1)
        panel.plot(line[x], line["precision"], label=label, markevery=(position % step, step), **look.curve())
