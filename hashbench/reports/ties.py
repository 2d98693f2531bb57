"""What ties leave open between two values: the one comparison that tables, figures, the diff and the page share.

There are three questions. A shuffle of the database moves a value by its ``tie_sd``, a standard deviation. A given
order under a real script: `hashbench.reports.explain`. The worst case: ``low`` and ``high``, each query's ties broken
separately.
"""

from typing import Any, NamedTuple

import numpy as np

_N_DEVIATIONS = 3
_DIGIT = 5e-7  # results have six decimals: a deviation shown as 0 is less than this

EVERY_ORDER, SHUFFLE, OPEN, UNKNOWN = "every order", "shuffle", "open", "unknown"
ANSWERS = {  # from strong to weak
    EVERY_ORDER: "apart in every order",
    SHUFFLE: "apart under a shuffle",
    OPEN: "not apart under a shuffle",
    UNKNOWN: "unknown",
}


class Score(NamedTuple):
    """A value and what ties could make of it: numbers, or arrays of them."""

    value: Any
    tie_sd: Any
    low: Any
    high: Any


def compare(first: Any, second: Any) -> Any:
    """Return how far ties leave the order of two values as it is, as keys of ``ANSWERS``.

    Each side has attributes ``value``, ``tie_sd``, ``low`` and ``high``: numbers, or arrays or columns of them, of one
    metric.

    - ``every order``: the ranges do not meet.
    - ``shuffle``: the values are more than three times the sum of their deviations apart, which is the largest
      deviation that their difference can have under one order of the database.
    - ``open``: they are not.
    - ``unknown``: ranges meet, or are unknown, and a deviation is not known.
    """
    first, second = (
        Score(*(np.asarray(getattr(side, name), dtype=float) for name in Score._fields)) for side in (first, second)
    )
    is_apart = (first.low > second.high) | (first.high < second.low)
    difference = np.abs(first.value - second.value).round(6)
    both = reach(first) + reach(second)
    return np.select([is_apart, np.isnan(both + difference), difference > both], [EVERY_ORDER, UNKNOWN, SHUFFLE], OPEN)


def reach(score: Any) -> Any:
    """Return how far a shuffle may move a value: three deviations, at least what six decimals hide if order matters.

    Two values are apart under a shuffle if their difference is more than the sum of both.
    """
    least = np.where(score.low == score.high, 0.0, score.tie_sd)
    return _N_DEVIATIONS * np.where(score.low < score.high, np.maximum(score.tie_sd, _DIGIT), least)
