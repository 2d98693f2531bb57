"""Bootstrap intervals and paired tests of cells, from the scores of every query."""

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

    ``rows`` are the results behind each cell, one per seed. New columns are ``from_`` and ``to`` of the interval,
    ``p_value``, corrected in each column, ``is_reference``, the cell that the others of its column are tested against,
    ``is_unpaired``, whether its scores are known but of other queries than those, and ``against``, the label of the
    line named by the user. Cells without scores of every query in the data folder have NaN. Sanity baselines are not
    tested.

    The best of a column is chosen by the same queries, so that all pairs are tested; a line that was named beforehand
    is tested against each other one, corrected by Holm.
    """
    scores = []
    for number, behind in enumerate(rows, start=1):
        scores.append(_over_seeds(behind))
        on_progress("scores of every query", number, len(rows))
    unknown = np.full(2, np.nan)
    intervals = [
        unknown if values is None or not _has_two(values) else bootstrap_intervals(values[None, ~np.isnan(values)])[0]
        for values in scores
    ]
    label, is_named = _named(cells, against) if against else ("", cells["is_best"])
    cells = cells.assign(from_=[low for low, _ in intervals], to=[high for _, high in intervals])
    cells = cells.assign(p_value=np.nan, is_reference=False, is_unpaired=False, against=label)
    columns = cells.groupby(list(COLUMN))
    for number, (_, column) in enumerate(columns, start=1):
        reference = next(iter(column.index[is_named[column.index]]), None)
        if reference is not None:
            cells.loc[reference, "is_reference"] = True
            rivals = column.index[(column["group"] != "baseline") & (column.index != reference)]
            known = [position for position in rivals if scores[position] is not None and scores[reference] is not None]
            tested = [position for position in known if _is_paired(scores[position], scores[reference])]
            cells.loc[[position for position in known if position not in tested], "is_unpaired"] = True
            if tested:
                values = np.stack([scores[position] for position in (reference, *tested)])
                values = values[:, ~np.isnan(values[0])]
                if against:
                    cells.loc[tested, "p_value"] = [test.p_holm for test in paired_tests(values[0] - values[1:])]
                else:
                    cells.loc[tested, "p_value"] = all_pairs_tests(values)[0, 1:]
        on_progress("paired tests", number, len(columns))
    return cells


def _named(cells: pd.DataFrame, against: str) -> tuple[str, "pd.Series[bool]"]:
    """Return the label that a label or method names, and whether each cell is of its line."""
    labels = line_labels(cells)
    names = pd.Series([labels[line] for line in cells[list(LINE)].itertuples(index=False, name=None)], cells.index)
    lines = {against} if (names == against).any() else set(names[cells["method"] == against])
    if not lines:
        raise unknown_name("method of the table", against, sorted({*cells["method"], *names}))
    if len(lines) > 1:
        raise HashbenchError(f"{against} has several lines: name one of {'; '.join(sorted(lines))}.")
    (label,) = lines
    return label, names == label


def _is_paired(rival: FloatArray, reference: FloatArray) -> bool:
    """Return whether two lines score the same queries, at least two; P@rN:skip need not."""
    return _has_two(reference) and np.array_equal(np.isnan(rival), np.isnan(reference))


def _has_two(values: FloatArray) -> bool:
    return int(np.count_nonzero(~np.isnan(values))) > 1


def _over_seeds(rows: pd.DataFrame) -> FloatArray | None:
    """Average the scores of every query over seeds, NaN if undefined; all are NaN if seeds score different queries.

    None unless the scores of all rows are cached.
    """
    scores = [find_scores(as_row(row)) for row in rows.to_dict("records")]
    cached = [values for values in scores if values is not None]
    if len(cached) < len(scores):
        return None
    mean: FloatArray = np.mean(cached, axis=0)
    is_same = all(np.array_equal(np.isnan(values), np.isnan(mean)) for values in cached)
    return mean if is_same else np.full_like(mean, np.nan)
