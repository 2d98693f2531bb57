"""Figure of scripts on the range of ties: one dot each."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from hashbench.errors import HashbenchError
from hashbench.reports.explain.answers import parse_printed
from hashbench.reports.explain.emulation import Explanation
from hashbench.reports.explain.explanation_text import without_twins
from hashbench.reports.plots.style import INK, FigureLayout, new_figure, one_look

_ROW = 0.135  # inches of the row of a script
_COLOUR, _PRINTED_COLOUR = "#0072b2", "#d55e00"


def draw(explanations: Sequence[Explanation], name: str, printed: str | None = None) -> Figure:
    """Draw every script's value of each metric over the exact value and its range over tie orders.

    ``printed`` is a number published elsewhere, drawn as a dashed line.
    """
    panels = []
    for metric in dict.fromkeys(explanation.metric for explanation in explanations):
        of_metric = [explanation for explanation in explanations if explanation.metric == metric]
        scripts = [script for script in without_twins(of_metric)[0] if not math.isnan(script.value)]
        if scripts:
            panels.append(sorted(scripts, key=lambda script: script.value))
    if not panels:
        raise HashbenchError("no script's value is a number, so there is nothing to draw. Leave out --figure.")
    text = ["Dot: a script's value. Line: the exact mean over all orders of tied items. Band: lowest to highest."]
    if printed is not None:
        text.append(f"Dashed: {printed}, the value asked for.")
    with one_look():
        rows = [len(scripts) + 1 for scripts in panels]
        height = sum(_ROW * n_rows + 0.4 for n_rows in rows)
        figure = new_figure(FigureLayout(), height, f"What scripts print of {name}", text)
        grid = figure.subplots(len(rows), squeeze=False, height_ratios=rows)
        for (axes,), scripts in zip(grid, panels, strict=True):
            exact = scripts[0].exact
            axes.axvspan(exact.low, exact.high, facecolor="#e8e8e8", edgecolor="none", zorder=0)
            axes.axvline(exact.mean, color=INK, linewidth=0.8, zorder=1)
            if printed is not None:
                axes.axvline(parse_printed(printed)[0], color=_PRINTED_COLOUR, linewidth=0.9, linestyle="--", zorder=2)
            axes.plot(
                [script.value for script in scripts], range(len(scripts)), "o", color=_COLOUR, markersize=3.5, zorder=3
            )
            axes.set_yticks(range(len(scripts)), [script.evaluator.name for script in scripts])
            axes.yaxis.tick_right()
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
            axes.set_ylim(-0.8, len(scripts) - 0.2)
            axes.set_title(scripts[0].metric)
    return figure
