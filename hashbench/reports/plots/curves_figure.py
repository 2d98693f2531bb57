"""Figure of the curves of one set of codes, as `hashbench.scoring.curves` computes them."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hashbench.reports.plots.result_figures import RANGE
from hashbench.reports.plots.style import FigureLayout, Look, make_panels, one_look, plain_powers

_LOOK = Look("own", "#0072b2", "o", "-")
_HEIGHT, _GAP = 1.9, 0.5  # inches


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
            axes.plot(ranks[x], ranks["precision"], markevery=max(len(ranks) // 8, 1), **_LOOK.curve())
        first.fill_between(ranks["cutoff"], ranks["precision_low"], ranks["precision_high"], **_LOOK.band())
        recall.set(xlim=(-0.02, 1.02), xticks=np.linspace(0, 1, 6), xlabel="recall (0 to 1)")
        first.set(xscale="log", xlabel="k (items)")
        recall.set_ylabel("precision (0 to 1)")
        plain_powers(first.xaxis, np.log10(n_database))
    return figure
