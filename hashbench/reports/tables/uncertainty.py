"""What the scores of every query tell about cells: bootstrap intervals and paired tests."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hashbench._typing import FloatArray, Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.reports.aggregate import LINE, line_labels
from hashbench.reports.significance import all_pairs_tests, bootstrap_intervals, paired_tests
from hashbench.reports.tables.cells import COLUMN
from hashbench.store.result_rows import as_row
from hashbench.store.score_cache import find_scores


def add_confidence(
    cells: pd.DataFrame, rows: Sequence[pd.DataFrame], against: str = "", on_progress: Progress = silent
) -> pd.DataFrame:
    """Add bootstrap intervals over queries, and p values of the difference to the best of the column, to cells.

    ``rows`` are the results behind each cell, one a seed. What is added are ``from_`` and ``to`` of the interval,
    ``p_value``, corrected in each column, whether a cell ``is_reference`` for the others of its column, and the label
    of the line that was named as such, ``against``. NaN where the data folder does not hold the scores of every query.
    Sanity baselines are not tested.

    The best of a column is chosen by the same queries, so that all pairs are tested; a line that was named beforehand
    is tested against each other one, corrected by Holm.
    """
    scores = []
    for number, behind in enumerate(rows, start=1):
        scores.append(_over_seeds(behind))
        on_progress("scores of every query", number, len(rows))
    intervals = [(np.nan, np.nan) if one is None else interval(one) for one in scores]
    label, is_named = _named(cells, against) if against else ("", cells["is_best"])
    made = cells.assign(from_=[low for low, _ in intervals], to=[high for _, high in intervals])
    made = made.assign(p_value=np.nan, is_reference=False, against=label)
    columns = cells.groupby(list(COLUMN))
    for number, (_, column) in enumerate(columns, start=1):
        reference = next(iter(column.index[is_named[column.index]]), None)
        if reference is not None:
            made.loc[reference, "is_reference"] = True
        if reference is not None and scores[reference] is not None:
            others = [
                position
                for position in column.index[column["group"] != "baseline"]
                if position != reference and scores[position] is not None
            ]
            if not others:
                continue
            values = np.stack([scores[position] for position in (reference, *others)])
            if against:
                made.loc[others, "p_value"] = [test.p_holm for test in paired_tests(values[0] - values[1:])]
            else:
                made.loc[others, "p_value"] = all_pairs_tests(values)[0, 1:]
        on_progress("paired tests", number, len(columns))
    return made


def _named(cells: pd.DataFrame, against: str) -> tuple[str, "pd.Series[bool]"]:
    """Find the one line that is meant by its label, or by its method if that has one line only."""
    labels = line_labels(cells)
    names = pd.Series([labels[line] for line in cells[list(LINE)].itertuples(index=False, name=None)], cells.index)
    meant = {against} if (names == against).any() else set(names[cells["method"] == against])
    if not meant:
        raise unknown_name("method of the table", against, sorted({*cells["method"], *names}))
    if len(meant) > 1:
        raise HashbenchError(f"{against} has several lines: name one of {'; '.join(sorted(meant))}.")
    (label,) = meant
    return label, names == label


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
