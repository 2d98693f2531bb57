"""What the scores of every query tell about cells: bootstrap intervals, and paired tests against the best."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hashbench._typing import FloatArray, Progress, silent
from hashbench.reports.significance import bootstrap_intervals, paired_tests
from hashbench.reports.tables.cells import COLUMN
from hashbench.store.results import as_row
from hashbench.store.score_cache import find_scores


def add_confidence(cells: pd.DataFrame, rows: Sequence[pd.DataFrame], on_progress: Progress = silent) -> pd.DataFrame:
    """Add bootstrap intervals over queries, and p-values of the difference to the best of the column, to cells.

    ``rows`` are the results behind each cell, one a seed. What is added are ``from_`` and ``to`` of the interval and
    ``p_value``, adjusted by Holm in each column; NaN where the data folder does not hold the scores of every query.
    Sanity baselines are not tested.
    """
    scores = []
    for number, behind in enumerate(rows, start=1):
        scores.append(_over_seeds(behind))
        on_progress("scores of every query", number, len(rows))
    intervals = [(np.nan, np.nan) if one is None else interval(one) for one in scores]
    made = cells.assign(from_=[low for low, _ in intervals], to=[high for _, high in intervals], p_value=np.nan)
    columns = cells.groupby(list(COLUMN))
    for number, (_, column) in enumerate(columns, start=1):
        best = [scores[position] for position in column.index[column["is_best"]]]
        tested = [
            position
            for position in column.index[~column["is_best"] & (column["group"] != "baseline")]
            if scores[position] is not None and best and best[0] is not None
        ]
        tests = paired_tests([best[0] - scores[position] for position in tested])
        made.loc[tested, "p_value"] = [test.p_holm for test in tests]
        on_progress("paired tests", number, len(columns))
    return made


def interval(scores: FloatArray) -> tuple[float, float]:
    """Compute the 95 % bootstrap interval of a mean over queries: its low and high end."""
    low, high = bootstrap_intervals(scores[None])[0]
    return float(low), float(high)


def _over_seeds(rows: pd.DataFrame) -> FloatArray | None:
    """Average the scores of every query over seeds; None unless those behind all rows are there."""
    found = [find_scores(as_row(row)) for row in rows.to_dict("records")]
    if any(one is None for one in found):
        return None
    mean = np.mean([one for one in found if one is not None], axis=0)
    defined: FloatArray = mean[~np.isnan(mean)]
    return defined if len(defined) > 1 else None
