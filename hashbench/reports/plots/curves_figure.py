"""Figures of one set of codes: curves of `Problem.curves`, and matches of `Problem.thresholds`."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from hashbench.reports.plots.result_figures import RANGE
from hashbench.reports.plots.style import INK, FigureLayout, Look, new_figure, one_look, plain_powers
from hashbench.scoring.thresholds import Match, Thresholds

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
