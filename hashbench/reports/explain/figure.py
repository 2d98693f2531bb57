"""Figure of scripts on the range of ties: one dot each."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from hashbench.errors import HashbenchError
from hashbench.reports.explain.emulation import Explanation
from hashbench.reports.explain.layout import parse_printed
from hashbench.reports.plots.style import INK, SMALL, Layout, make_panels, one_look, text_width

_ROW, _BESIDE = 0.135, 0.12  # inches of a script, and from a panel to its name
_COLOUR, _ASKED = "#0072b2", "#d55e00"


def draw(
    explanations: Sequence[Explanation], name: str, printed: str | None = None, layout: Layout | None = None
) -> Figure:
    """Draw every script's value of each metric; behind them the exact one, and the range over orders of ties.

    A number that is ``printed`` elsewhere, and looked for, is a line across them.
    """
    metrics = [
        sorted(
            (one for one in explanations if one.metric == metric and not math.isnan(one.value)),
            key=lambda one: one.value,
        )
        for metric in dict.fromkeys(one.metric for one in explanations)
    ]
    metrics = [those for those in metrics if those]
    if not metrics:
        raise HashbenchError("there is nothing to draw: of no script is the value a number; leave out --figure.")
    text = ["Dot: a script's value. Line: the exact mean over all orders of tied items. Band: lowest to highest."]
    if printed is not None:
        text.append(f"Dashed: {printed}, the value asked for.")
    with one_look():
        widest = max(text_width(one.evaluator.name, SMALL) for those in metrics for one in those)
        figure, rows = make_panels(
            *(layout or Layout(), [(1, _ROW * (len(those) + 1)) for those in metrics], f"What scripts print of {name}"),
            text,
            gap=(0.0, 0.3),
            right=widest + _BESIDE,
        )
        for (axes,), those in zip(rows, metrics, strict=True):
            ours = those[0].ours
            axes.axvspan(ours.low, ours.high, facecolor="#e8e8e8", edgecolor="none", zorder=0)
            axes.axvline(ours.mean, color=INK, linewidth=0.8, zorder=1)
            if printed is not None:
                axes.axvline(parse_printed(printed)[0], color=_ASKED, linewidth=0.9, linestyle="--", zorder=2)
            axes.plot([one.value for one in those], range(len(those)), "o", color=_COLOUR, markersize=3.5, zorder=3)
            axes.set_yticks(range(len(those)), [one.evaluator.name for one in those])
            axes.yaxis.tick_right()
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
            axes.set_ylim(-0.8, len(those) - 0.2)
            axes.set_title(those[0].metric)
    return figure
