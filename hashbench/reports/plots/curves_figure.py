"""Figures of one set of codes: curves of `hashbench.scoring.curves`, and matches of `hashbench.thresholds`."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hashbench.reports.plots.result_figures import RANGE
from hashbench.reports.plots.style import SMALL, FigureLayout, Look, make_panels, one_look, plain_powers
from hashbench.scoring.thresholds import Thresholds

_PRECISION, _RECALL = Look("precision", "#0072b2", "o", "-"), Look("recall", "#d55e00", "s", (0, (5, 1.5)))
_HEIGHT, _GAP = 1.9, 0.5  # inches
_APART = 4  # times the false positive rate of the last radius that is named


def draw_curves(
    points: pd.DataFrame, name: str, n_bits: int, n_database: int, layout: FigureLayout | None = None
) -> Figure:
    """Draw precision against recall, and of the first k, by the rank-wise rows of ``points``, one line each."""
    ranks = points[points["curve"] == "rank"]
    with one_look():
        figure, [(recall, first)] = make_panels(
            layout or FigureLayout(),
            [(2, _HEIGHT)],
            f"{name}, {n_bits} bits: precision and recall",
            [f"Line: mean over all orders of tied items, rank by rank; {n_database:,} database items. Band: {RANGE}"],
            gap=(_GAP, 0.0),
            right=0.1,
        )
        for axes, x in ((recall, "recall"), (first, "cutoff")):
            axes.plot(ranks[x], ranks["precision"], markevery=max(len(ranks) // 8, 1), **_PRECISION.curve())
        first.fill_between(ranks["cutoff"], ranks["precision_low"], ranks["precision_high"], **_PRECISION.band())
        recall.set(xlim=(-0.02, 1.02), xticks=np.linspace(0, 1, 6), xlabel="recall (0 to 1)")
        first.set(xscale="log", xlabel="k (items)")
        recall.set_ylabel("precision (0 to 1)")
        plain_powers(first.xaxis, np.log10(n_database))
    return figure


def draw_thresholds(found: Thresholds, name: str) -> Figure:
    """Draw precision and recall against the radius, and recall against the false positive rate."""
    matches = [match for match in found.matches if match.n_matches]
    radii = [match.radius for match in matches]
    with one_look():
        figure, [(by_radius, by_rate)] = make_panels(
            FigureLayout(),
            [(2, _HEIGHT)],
            f"{name}, {found.n_bits} bits: what a Hamming threshold matches",
            [
                f"All pairs together, {found.n_relevant:,} relevant and {found.n_irrelevant:,} irrelevant ones. "
                "Numbers on the right are radii."
            ],
            gap=(_GAP, 0.0),
            right=0.1,
        )
        for look, values in (
            (_PRECISION, [match.precision for match in matches]),
            (_RECALL, [match.recall for match in matches]),
        ):
            by_radius.plot(radii, values, label=look.group, markevery=max(len(radii) // 12, 1), **look.curve())
        by_radius.legend(loc="center right", frameon=False)
        by_radius.set(xlabel="Hamming radius (bits)", ylabel="0 to 1", ylim=(-0.02, 1.02))
        by_radius.xaxis.set_major_locator(MaxNLocator(integer=True))
        shown = [match for match in matches if match.n_false]
        by_rate.plot([match.fpr for match in shown], [match.recall for match in shown], **_RECALL.curve())
        by_rate.set(xscale="log", xlabel="false positive rate (log scale)", ylabel="recall", ylim=(-0.02, 1.02))
        by_rate.xaxis.set_major_locator(LogLocator(numticks=6))
        by_rate.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:g}"))
        by_rate.xaxis.set_minor_formatter(NullFormatter())
        labelled = 0.0
        for match in shown:
            if match.fpr > _APART * labelled:
                labelled = match.fpr
                place = (match.fpr, match.recall)
                by_rate.annotate(f"{match.radius}", place, xytext=(0, -10), textcoords="offset points", size=SMALL)
        if not shown:
            by_rate.text(0.5, 0.5, "no false match at any radius", ha="center", transform=by_rate.transAxes)
        by_rate.set_yticks(np.linspace(0, 1, 6))
    return figure
