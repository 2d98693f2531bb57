"""Figure of what Hamming thresholds match, as `hashbench.thresholds` counts it."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hashbench.reports.plots.style import SMALL, FigureLayout, Look, make_panels, one_look
from hashbench.scoring.thresholds import Thresholds

_PRECISION, _RECALL = Look("precision", "#0072b2", "o", "-"), Look("recall", "#d55e00", "s", (0, (5, 1.5)))
_HEIGHT, _GAP = 1.9, 0.5  # inches
_APART = 4  # times the false positive rate of the last radius that is named


def draw_thresholds(found: Thresholds, name: str, layout: FigureLayout | None = None) -> Figure:
    """Draw precision and recall against the radius, and recall against the false positive rate."""
    matches = [match for match in found.matches if match.n_matches]
    radii = [match.radius for match in matches]
    with one_look():
        figure, [(by_radius, by_rate)] = make_panels(
            layout or FigureLayout(),
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
