"""Precision-recall curves as data: by Hamming radius, and by rank averaged over ties."""

from __future__ import annotations  # pandas is imported when it is used

from typing import TYPE_CHECKING

import numpy as np

from hashbench.scoring.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd


def curve_metrics(n_bits: int | None, n_items: int) -> list[str]:
    """Return the metrics of curves: P and R at each radius, and at ranks spaced evenly on a logarithmic axis.

    There are radii if there is a code length.
    """
    ranks = np.unique(np.geomspace(1, n_items, 50).round().astype(int))
    cutoffs = [] if n_bits is None else [f"r{radius}" for radius in range(n_bits + 1)]
    return [f"{name}@{cutoff}" for cutoff in [*cutoffs, *map(str, ranks)] for name in "PR"]


def lay_out(evaluation: Evaluation) -> pd.DataFrame:
    """Lay out the scores of `curve_metrics` as the table that `Problem.curves` returns."""
    import pandas as pd  # slow to import, and not needed to name the metrics

    summary = evaluation.summary
    cutoffs = [name.removeprefix("P@") for name in summary if name.startswith("P@") and ":" not in name]
    points = []
    for cutoff in cutoffs:
        if f"R@{cutoff}" not in summary:
            continue
        row: dict[str, object] = {"curve": "radius" if cutoff[0] == "r" else "rank", "cutoff": int(cutoff.lstrip("r"))}
        for letter, column in (("P", "precision"), ("R", "recall")):
            scores = summary[f"{letter}@{cutoff}"]
            row |= {column: scores.mean, f"{column}_low": scores.low, f"{column}_high": scores.high}
        row["n_not_empty"] = scores.n_queries - scores.n_undefined - evaluation.n_empty.get(f"P@{cutoff}", 0)
        points.append(row)
    return pd.DataFrame(points)
