"""Precision-recall curves as data: by Hamming radius, and by rank averaged over ties."""

import numpy as np
import pandas as pd

from hashbench.scoring.evaluation import Evaluation


def curve_metrics(n_bits: int, n_database: int, *, by_radius: bool = True, n_ranks: int = 50) -> list[str]:
    """Name the metrics that the curves are made of.

    Parameters
    ----------
    n_bits : int
        Code length: the last radius.
    n_database : int
        Items in the database: the last rank.
    by_radius : bool, default=True
        Whether there are Hamming radii; a real-valued ranking has none.
    n_ranks : int, default=50
        How many ranks, spaced evenly on a logarithmic axis.

    Returns
    -------
    list of str
        ``P@rN`` and ``R@rN`` for each radius, ``P@k`` and ``R@k`` for each rank.
    """
    ranks = np.unique(np.geomspace(1, n_database, n_ranks).round().astype(int))
    cutoffs = [f"r{radius}" for radius in range(n_bits + 1)] if by_radius else []
    return [f"{name}@{cutoff}" for cutoff in [*cutoffs, *map(str, ranks)] for name in "PR"]


def lay_out(evaluation: Evaluation) -> pd.DataFrame:
    """Lay out the points of the curves.

    Parameters
    ----------
    evaluation : Evaluation
        Scored on what `curve_metrics` names; other metrics are passed over.

    Returns
    -------
    DataFrame
        One row a point: ``curve`` (radius or rank), ``cutoff``, then ``precision`` and ``recall``, each the
        mean over the queries, with ``_low`` and ``_high`` over tie orders (no ties in a ball).
    """
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
