"""Precision-recall curves as data: by Hamming radius, and by rank averaged over ties."""

from typing import TYPE_CHECKING

import numpy as np

from hashbench.scoring.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd


def curve_metrics(n_bits: int, n_database: int, *, by_radius: bool = True, n_ranks: int = 50) -> list[str]:
    """Name what curves are made of: P and R at each radius, and at ranks spaced evenly on a logarithmic axis."""
    ranks = np.unique(np.geomspace(1, n_database, n_ranks).round().astype(int))
    cutoffs = [f"r{radius}" for radius in range(n_bits + 1)] if by_radius else []
    return [f"{name}@{cutoff}" for cutoff in [*cutoffs, *map(str, ranks)] for name in "PR"]


def lay_out(evaluation: Evaluation) -> "pd.DataFrame":
    """Lay out the points of the curves, one a row, of what was scored on `curve_metrics`.

    Columns are ``curve`` (radius or rank), ``cutoff``, then ``precision`` and ``recall``, each the mean over the
    queries, with ``_low`` and ``_high`` over tie orders (no ties in a ball).
    """
    import pandas as pd  # here, since naming the metrics has no need to wait for it

    summary = evaluation.summary
    points = []
    for name in summary:
        if not name.startswith("P@"):
            continue
        cutoff = name.partition("@")[2]
        if ":" in cutoff or f"R@{cutoff}" not in summary:
            continue
        row: dict[str, object] = {"curve": "radius" if cutoff[0] == "r" else "rank", "cutoff": int(cutoff.lstrip("r"))}
        for letter, what in (("P", "precision"), ("R", "recall")):
            scores = summary[f"{letter}@{cutoff}"]
            row |= {what: scores.mean, f"{what}_low": scores.low, f"{what}_high": scores.high}
        points.append(row)
    return pd.DataFrame(points)
