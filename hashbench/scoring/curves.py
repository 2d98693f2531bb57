"""Precision-recall curves as data: by Hamming radius, and by rank averaged over ties."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hashbench._validation import refuse_fractions
from hashbench.affinity import as_affinity
from hashbench.bits import as_packed_pair
from hashbench.errors import needing
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.evaluator import evaluate, evaluate_packed
from hashbench.scoring.ignored import leave_out

if TYPE_CHECKING:
    import pandas as pd


@reporting_compilation()
def curves(
    query_codes: npt.ArrayLike,
    database_codes: npt.ArrayLike,
    affinity: Any,
    *,
    n_bits: int | None = None,
    bit_order: str | None = None,
    distance: str = "hamming",
    exclude_self: bool = False,
    exclude_same_id: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    junk_label: int | str | Sequence[int | str] | None = None,
) -> pd.DataFrame:
    """Compute precision-recall curves of codes of any origin.

    Parameters
    ----------
    query_codes, database_codes, affinity, n_bits, bit_order, distance
        As in `hashbench.evaluate`.
    exclude_self, exclude_same_id, groups, junk_label
        As in `hashbench.evaluate`.

    Returns
    -------
    DataFrame
        One point per row: ``curve`` (radius or rank), ``cutoff``, then ``precision`` and ``recall``, means over the
        queries, with ``_low`` and ``_high`` over tie orders (no ties in a ball), and ``n_not_empty``, how many of the
        queries have an item within the cutoff; the precision of the others is 0.

    Raises
    ------
    HashbenchError
        If codes and affinity do not fit together.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 0], [1, 1]])
    >>> points = curves(codes[:1], codes[1:], (np.array([5]), np.array([5, 7])))
    >>> points["precision"].round(2).tolist()
    [1.0, 1.0, 0.5, 1.0, 0.5]
    """
    with needing("curves"):
        import pandas as pd  # noqa: F401  # for the result; missing, it is reported before any work
    rule = leave_out(as_affinity(affinity), exclude_self, exclude_same_id, groups, junk_label)
    refuse_fractions(rule.levels, "a curve")
    if distance == "hamming":
        query, database, width = as_packed_pair(query_codes, database_codes, n_bits, bit_order)
        return lay_out(evaluate_packed(query, database, width, rule, curve_metrics(width, len(database))))
    points = curve_metrics(0, len(np.asarray(database_codes)), by_radius=False)
    codes = query_codes, database_codes
    return lay_out(evaluate(*codes, rule, points, n_bits=n_bits, bit_order=bit_order, distance=distance))


def curve_metrics(n_bits: int, n_database: int, *, by_radius: bool = True) -> list[str]:
    """Return the metrics of curves: P and R at each radius, and at ranks spaced evenly on a logarithmic axis."""
    ranks = np.unique(np.geomspace(1, n_database, 50).round().astype(int))
    cutoffs = [f"r{radius}" for radius in range(n_bits + 1)] if by_radius else []
    return [f"{name}@{cutoff}" for cutoff in [*cutoffs, *map(str, ranks)] for name in "PR"]


def lay_out(evaluation: Evaluation) -> pd.DataFrame:
    """Lay out the scores of `curve_metrics` as the table that `curves` returns."""
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
