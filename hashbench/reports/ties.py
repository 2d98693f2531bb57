"""What ties leave open between two values: the one comparison that tables, figures, the diff and the page share.

Three things are told apart. Luck: ties in random order, as in a shuffled database, which moves a value by its
``tie_sd``. A given order under a real script: `hashbench.reports.explain`. The worst case: ``low`` and ``high``, the
ties of each query on its own at their worst and best.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

N_DEVIATIONS = 5  # of the estimates, of up to so many queries: three true ones even if both are a third too small
N_QUERIES = 200  # beyond, as the root of their number: what queries have in common does not average out
_DIGIT = 5e-7  # results have six decimals: a deviation shown as 0 is less than this

EVERY_ORDER, LUCK, OPEN, UNKNOWN = "every order", "luck", "open", "unknown"
ANSWERS = {  # from strong to weak
    EVERY_ORDER: "apart in every order",
    LUCK: "apart under luck",
    OPEN: "not told apart by luck",
    UNKNOWN: "unknown",
}


class Score(NamedTuple):
    """A value and what ties could make of it."""

    value: float
    tie_sd: float
    low: float
    high: float
    n_queries: int = 0


def compare(one: Any, other: Any) -> Any:
    """Say how far ties can be trusted to leave the order of two values as it is.

    Parameters
    ----------
    one, other : with attributes value, tie_sd, low, high and, if it is known, n_queries
        Numbers, or arrays or columns of them, of one metric.

    Returns
    -------
    ndarray of str
        Keys of ``ANSWERS``: ``every order`` where the ranges do not meet; ``luck`` where the values are more than five
        deviations of their difference apart, sqrt(sd^2 + sd^2), of more than 200 queries 5 sqrt(n_queries / 200);
        ``open`` where they are not; ``unknown`` where ranges meet, or are unknown, and a deviation is not known.

    Notes
    -----
    The estimate takes queries of different codes as independent. What they have in common stays as their number grows,
    so that it falls short by as much as their root: benchmarks/luck.py measures .56 of what random orders show at 200
    queries, and .31 at 1,000.
    """
    mine, theirs = (
        [np.asarray(getattr(side, name), dtype=float) for name in ("value", "tie_sd", "low", "high")]
        for side in (one, other)
    )
    is_apart = (mine[2] > theirs[3]) | (mine[3] < theirs[2])
    deviation = np.hypot(_deviation(*mine[1:]), _deviation(*theirs[1:]))
    difference = np.abs(mine[0] - theirs[0]).round(6)
    n_queries = np.maximum(*(np.asarray(getattr(side, "n_queries", 0), dtype=float) for side in (one, other)))
    most = N_DEVIATIONS * np.sqrt(np.maximum(n_queries / N_QUERIES, 1)) * deviation
    return np.select(
        [is_apart, np.isnan(deviation + difference), difference > most],
        [EVERY_ORDER, UNKNOWN, LUCK],
        OPEN,
    )


def _deviation(tie_sd: npt.NDArray[Any], low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Any:
    """Give a deviation, at least what six decimals hide where order matters at all."""
    return np.where(low < high, np.maximum(tie_sd, _DIGIT), np.where(low == high, 0.0, tie_sd))
