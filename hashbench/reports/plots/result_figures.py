"""Figures by code length, and of one set of codes: curves of `Problem.curves`, and `Problem.thresholds`.

Lines of methods share panels of at most `MOST_LINES`, the best first; baselines are named at the foot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from scipy.special import expit, logit

from hashbench._typing import FloatArray
from hashbench.errors import HashbenchError
from hashbench.reports.marks import bases_in_words, queries_in_words, seeds_in_words
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.reports.plots.style import (
    INK,
    MOST_LINES,
    FigureLayout,
    Look,
    add_legend,
    add_panels,
    distinct_looks,
    is_crowded,
    new_figure,
    one_look,
    open_ends,
    plain_powers,
)
from hashbench.scoring.metrics import is_error
from hashbench.scoring.thresholds import Match, Thresholds

RANGE = "the worst case of ties, those of each query on its own."
BEYOND = "Bars that meet the edge of the logit scale end beyond it."
_WIDTH = 3.2  # inches of a panel with its legend
_TICKS = 10  # of a logit scale
_FEW, _SQUASHED = 0.1, 2 / 3  # such a share of bars may end beyond the axis, if it is so much shorter without them
_REACH = 0.5  # how far bars widen a logit scale, in its units
_LINE, _LETTER, _TICK = 0.135, 0.055, 0.17  # inches of a line and a letter of a legend, and of a code length


@dataclass(frozen=True)
class Panel:
    """Lines that share a panel, by label and in order, and their looks."""

    title: str
    labels: Sequence[str]
    looks: dict[str, Look]


@dataclass(frozen=True, eq=False)
class Scale:
    """The scale of several panels: the values it shows, and a sentence on what it leaves out."""

    shown: FloatArray
    is_logit: bool = False
    sentence: str = ""


def set_apart_baselines(block: FigureBlock) -> tuple[FigureBlock, list[str]]:
    """Return the block without baselines, and a sentence on their scores; the block itself if it has nothing else."""
    is_baseline = block.cells["group"] == "baseline"
    if is_baseline.all() or not is_baseline.any():
        return block, []
    scores = []
    for label, values in block.cells[is_baseline].groupby("label", sort=True)["value"]:
        ends = dict.fromkeys(f"{value:.3f}" for value in (values.min(), values.max()))
        scores.append(f"{block.names[str(label)]} {' to '.join(ends)}")
    return block.only(block.cells.loc[~is_baseline, "label"]), [f"Baselines: {', '.join(scores)}."]


def panels_of(block: FigureBlock) -> list[Panel]:
    """Divide lines into panels: one if they fit, else several, by mean value, the best first."""
    labels = block.labels
    if n_more := (len(labels) - 1) // MOST_LINES:
        means = block.cells.groupby("label")["value"].mean()
        labels = list(means.sort_values(ascending=is_error(block.metric), kind="stable").index)
    parts = [part.tolist() for part in np.array_split(labels, n_more + 1)]
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    titles = [f"{first + 1} to {last} of {ends[-1]}" if n_more else "" for first, last in pairwise(ends)]
    methods = dict(zip(block.cells["label"], block.cells["method"], strict=True))
    return [
        Panel(title, part, distinct_looks(block.looks, {label: methods[label] for label in part}))
        for title, part in zip(titles, parts, strict=True)
    ]


def tie_ranges(block: FigureBlock) -> Figure:
    """Draw the worst case of ties of each score: bars from low to high, with a mark at the expectation.

    Within a code length, bars have the order of the legend.
    """
    block, baselines = set_apart_baselines(block)
    if len(block.cells) == 1:
        raise too_little(block, "a single point")
    text = [f"Mark: mean over all orders of tied items. Bar: {RANGE}", means_over(block.cells["n_seeds"]), *baselines]
    panels = panels_of(block)
    scale = choose_scale(block, panels, ("low", "high"))
    figure, grid = lay_out(block, panels, f"worst case of ties of {block.metric}", text, scale, n_columns=1)
    for axes, panel in zip(grid, panels, strict=True):
        n_bars = len(block.n_bits) * len(panel.labels)
        size = float(np.clip(72 * (block.layout.width - 1.5) / n_bars / 5, 0.5, 1))  # as many as stand side by side
        _draw_lengths(axes, panel, block, ("low", "high"), 0.75, block.layout.width, size)
        for slot in range(0, len(block.n_bits), 2):
            axes.axvspan(slot - 0.5, slot + 0.5, color="#f3f3f3", zorder=0)
        add_legend(axes, {label: block.names[label] for label in panel.labels}, panel.looks, has_lines=False)
    share_scale(grid, scale)
    return figure


def metric_against_bits(block: FigureBlock) -> Figure:
    """Draw the metric against the code length: lines of expectations with bars of 95 % intervals, side by side.

    The legend has the order in which lines end.
    """
    block, baselines = set_apart_baselines(block)
    if len(block.n_bits) == 1:
        raise too_little(block, "a single code length")
    block = block.with_intervals()
    text = ["Line: mean over all orders of tied items.", means_over(block.cells["n_seeds"])]
    text += [about_intervals(block.cells), *baselines]
    panels = panels_of(block)
    scale = choose_scale(block, panels, ("from_", "to"))
    figure, grid = lay_out(block, panels, f"{block.metric} by code length", text, scale)
    for axes, panel in zip(grid, panels, strict=True):
        _draw_lengths(
            axes,
            panel,
            block,
            ("from_", "to"),
            min(0.4, 0.07 * len(block.n_bits)),
            block.layout.width / block.layout.n_columns(len(panels), _WIDTH),
        )
        ends = block.cells[block.cells["label"].isin(panel.labels)].groupby("label")["value"].last()
        names = {str(label): block.names[str(label)] for label in ends.sort_values(ascending=False).index}
        add_legend(axes, names, panel.looks)
    share_scale(grid, scale)
    return figure


def _draw_lengths(
    axes: Axes,
    panel: Panel,
    block: FigureBlock,
    bar: tuple[str, str],
    share: float,
    width: float,
    scale: float | None = None,
) -> None:
    """Draw lines with bars, or only their marks at a ``scale``; those of a code length fill a share of its room.

    ``width`` is that of the panel with its legend in inches.
    """
    for position, label in enumerate(panel.labels):
        line, look = block.cells[block.cells["label"] == label], panel.looks[label]
        shift = share * ((position + 0.5) / len(panel.labels) - 0.5)
        x = line["n_bits"].map(block.n_bits.index) + shift
        axes.vlines(x, line[bar[0]], line[bar[1]], label=label, **look.bar(scale or 0.65))
        marks = look.curve() if scale is None else {"linestyle": "none", **look.points(scale)}
        axes.plot(x, line["value"], label=label, **marks)
    longest = max(len(line) for label in panel.labels for line in block.names[label].split("\n"))
    room = width - 0.9 - _LETTER * longest
    shown = block.n_bits[:: int(np.ceil(_TICK * len(block.n_bits) / max(room, _TICK)))]
    axes.set_xticks([block.n_bits.index(length) for length in shown], [str(length) for length in shown])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(block.n_bits) - 0.5)


def lay_out(
    block: FigureBlock,
    panels: Sequence[Panel],
    what: str,
    text: Sequence[str],
    scale: Scale | None,
    n_columns: int | None = None,
) -> tuple[Figure, list[Axes]]:
    """Create titled axes for panels, side by side where there is room, each with room for a legend at its right."""
    n_columns = n_columns or block.layout.n_columns(len(panels), _WIDTH)
    is_open = scale is not None and scale.is_logit
    if len(panels) > 1:
        text = [*text, "Panels have the best lines first, and one scale."]
    text = [*text, *([scale.sentence] if scale and scale.sentence else []), *block.remarks]
    height = max(1.8, legend_height(block, panels), *[0.4 * block.layout.width] * (len(panels) == 1)) + 0.4
    figure = new_figure(block.layout, 0.2 + -(-len(panels) // n_columns) * height, heading(block, what), text)
    labels = "code length (bits)", f"{block.metric} (0 to 1{', logit scale' if is_open else ''})"
    all_axes = add_panels(figure, len(panels), n_columns, *labels)
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.set_title(panel.title)
    return figure, all_axes


def choose_scale(block: FigureBlock, panels: Sequence[Panel], bar: tuple[str, str]) -> Scale | None:
    """Return the scale of several panels: all values, and bars without the few that would squash the others.

    It is a logit scale if many values crowd next to 0 or 1.
    """
    if len(panels) == 1:
        return None
    values = block.cells["value"].to_numpy()
    ends = block.cells[[*bar]].dropna().to_numpy()
    if is_crowded(values):
        least, most = logit(values).min() - _REACH, logit(values).max() + _REACH
        within = expit(np.clip(logit(np.clip(ends.ravel(), 0, 1)), least, most))
        return Scale(np.concatenate([values, within]), is_logit=True, sentence=BEYOND)
    shown = np.concatenate([values, ends.ravel()])
    lengths = np.ptp(ends, axis=1)
    is_long = lengths > np.quantile(lengths, 1 - _FEW) if len(lengths) else np.zeros(0, bool)
    usual = np.concatenate([values, ends[~is_long].ravel()])
    if _SQUASHED * np.ptp(shown) <= np.ptp(usual):
        return Scale(shown)
    ends_in_words = f"{shown.min():.3f} and {shown.max():.3f}"
    return Scale(usual, sentence=f"Triangle: the bar ends beyond the axis. All bars lie between {ends_in_words}.")


def share_scale(grid: Sequence[Axes], scale: Scale | None) -> None:
    """Give all panels one scale, with triangles where bars end beyond it."""
    if scale is None:
        return
    if scale.is_logit:
        for axes in grid:
            open_ends(axes.yaxis, scale.shown, _TICKS)
        return
    low, high = scale.shown.min(), scale.shown.max()
    margin = 0.05 * (high - low or 1)
    for axes in grid:
        axes.set_ylim(low - margin, high + margin)
        for bars in [drawn for drawn in axes.collections if isinstance(drawn, LineCollection)]:
            look: dict[str, Any] = {"color": bars.get_edgecolor()[0], "markersize": 4, "clip_on": False, "label": "_"}
            for segment in filter(len, bars.get_segments()):  # without an end it is empty
                (x, start), (_, end) = segment
                if start < low - margin:
                    axes.plot(x, low - margin, "v", markeredgewidth=0, **look)
                if end > high + margin:
                    axes.plot(x, high + margin, "^", markeredgewidth=0, **look)


def legend_height(block: FigureBlock, panels: Sequence[Panel]) -> float:
    """Return the height of the longest legend of panels in inches."""
    return max(_LINE * sum(block.names[label].count("\n") + 1 for label in panel.labels) for panel in panels)


def heading(block: FigureBlock, what: str) -> str:
    """Return a figure's heading: dataset, features, content if there are several, what it shows, number of queries."""
    data = f", data {block.dataset_fingerprint}" * (block.dataset_fingerprint in block.stem)
    return f"{block.dataset} ({block.features}){data}: {what}, {queries_in_words(block.cells)}"


def means_over(n_seeds: Iterable[int]) -> str:
    """Return a sentence on what was averaged."""
    return f"Means over queries, and over {seeds_in_words(n_seeds)}."


def about_intervals(cells: pd.DataFrame, bar: str = "Bar") -> str:
    """Return sentences on what the intervals of cells are over, and which cells have none."""
    cells = cells[cells["group"] != "baseline"]
    if cells["from_"].isna().all():
        reason = "one seed each, and the data folder lacks the scores of single queries of some lines"
        return f"No {bar.lower()}s: {reason}."
    sentences = [f"{bar}: 95 % interval of the mean, {bases_in_words(cells[cells['from_'].notna()])}."]
    if cells["from_"].isna().any():
        sentences.append(f"No {bar.lower()}: one seed.")
    return " ".join(sentences)


def too_little(block: FigureBlock, what: str) -> HashbenchError:
    """Return the error for a figure with nothing to compare."""
    return HashbenchError(
        f"there is nothing to compare on {block.dataset} ({block.features}): {what} in {block.metric}. "
        "Choose more methods or code lengths, or add results with hashbench run."
    )


_PRECISION, _RECALL = Look("precision", "#0072b2", "o", "-"), Look("recall", "#d55e00", "s", (0, (5, 1.5)))
_RATE = Look("fpr", "#000000", "^", "-")
_WORDS = {"precision": "precision", "recall": "recall", "fpr": "false positive rate"}
_BAND = {"alpha": 0.2, "linewidth": 0}
_ASKED = ("#009e73", "#882255", "#cc79a7", "#e69f00", "#000000", "#56b4e9")  # colours of radii that were asked for
_HEIGHT = 2.3  # inches
_FLAT = 0.01  # radii are left out that change neither precision nor recall by more


def draw_curves(points: pd.DataFrame, name: str, n_bits: int, n_database: int) -> Figure:
    """Draw precision against recall, and of the first k, by the rank-wise rows of ``points``, one line each."""
    ranks = points[points["curve"] == "rank"]
    with one_look():
        figure = new_figure(
            FigureLayout(),
            _HEIGHT,
            f"{name}, {n_bits} bits: precision and recall",
            [f"Line: mean over all orders of tied items, rank by rank; {n_database:,} database items. Band: {RANGE}"],
        )
        recall, first = figure.subplots(1, 2)
        for axes, x in ((recall, "recall"), (first, "cutoff")):
            axes.plot(ranks[x], ranks["precision"], markevery=max(len(ranks) // 8, 1), **_PRECISION.curve())
        lows, highs = ranks["precision_low"], ranks["precision_high"]
        first.fill_between(ranks["cutoff"], lows, highs, color=_PRECISION.colour, **_BAND)
        recall.set(xlim=(-0.02, 1.02), xticks=np.linspace(0, 1, 6), xlabel="recall (0 to 1)")
        first.set(xscale="log", xlabel="k (items)")
        recall.set_ylabel("precision (0 to 1)")
        plain_powers(first.xaxis)
    return figure


def draw_thresholds(
    found: Thresholds,
    name: str,
    asked: Mapping[str, Match | None] | None = None,
    rates: Sequence[float] = (),
    precisions: Sequence[float] = (),
) -> Figure:
    """Draw precision, recall and the false positive rate against the radius, up to where they no longer change.

    Marked are the radii that ``asked`` names, and the false positive rates and precisions that they had to keep.
    """
    chosen = {f"{name}:\nradius {match.radius}": match.radius for name, match in (asked or {}).items() if match}
    matches = [match for match in found.matches if match.n_matches]
    precision, recall = matches[-1].precision, matches[-1].recall
    changing = [
        match.radius
        for match in matches
        if np.nanmax(np.abs([match.precision - precision, match.recall - recall])) > _FLAT
    ]
    end = max([*changing, *chosen.values(), matches[0].radius + 1]) + 1
    shown = pd.DataFrame(matches[: end - matches[0].radius + 1])
    with one_look():
        figure = new_figure(
            FigureLayout(),
            _HEIGHT,
            f"{name}, {found.n_bits} bits: what a Hamming threshold matches",
            [
                f"All pairs together, {found.n_relevant:,} relevant and {found.n_irrelevant:,} irrelevant ones. "
                f"Bands: 95 % intervals for others like these {found.units}.",
                *["Dotted: what was asked for."] * bool([*rates, *precisions]),
            ],
        )
        by_radius, by_rate = figure.subplots(1, 2)
        every = max(len(shown) // 12, 1)
        for axes, looks in ((by_radius, (_PRECISION, _RECALL)), (by_rate, (_RATE,))):
            for look in looks:
                shares = shown[look.group].where((shown[look.group] > 0) | (look is not _RATE))
                axes.plot(shown["radius"], shares, label=_WORDS[look.group], markevery=every, **look.curve())
                ends = (shown[f"{look.group}_{end}"] for end in ("low", "high"))
                axes.fill_between(shown["radius"], *ends, color=look.colour, **_BAND)
            for (words, radius), colour in zip(chosen.items(), cycle(_ASKED)):
                axes.axvline(radius, color=colour, linewidth=0.9, label=words, zorder=1)
            axes.set(xlabel="Hamming radius (bits)", xlim=(shown["radius"].min() - 0.5, shown["radius"].max() + 0.5))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        by_radius.set(ylabel="precision, recall (0 to 1)", ylim=(-0.02, 1.02))
        by_rate.set_ylabel("false positive rate (log scale)")
        for axes, limits in ((by_radius, precisions), (by_rate, rates)):
            for limit in limits:
                axes.axhline(limit, color=INK, linestyle=(0, (1, 1.5)), linewidth=0.9)
        if found.n_irrelevant:
            least = shown["fpr"].where(shown["fpr"] > 0, shown["fpr_high"]).min()
            by_rate.set(yscale="log", ylim=(min([least, *filter(None, rates)]) / 2, 2 * shown["fpr_high"].max()))
            by_rate.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"1e{np.log10(rate):.0f}"))
            by_rate.yaxis.set_minor_locator(NullLocator())
        else:
            by_rate.text(0.5, 0.5, "no pair is irrelevant", ha="center", transform=by_rate.transAxes)
        lines = [*by_radius.get_lines()[:2], *(line for line in by_rate.get_lines() if line.get_label()[0] != "_")]
        by_rate.legend(handles=lines, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    return figure
