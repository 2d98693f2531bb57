"""Intervals and tests of the cells of a table, column by column."""

from collections.abc import Sequence

import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.reports.aggregate import LINE, line_labels
from hashbench.reports.tables.cells import COLUMN
from hashbench.reports.uncertainty import add_uncertainty


def add_confidence(
    cells: pd.DataFrame, rows: Sequence[pd.DataFrame], against: str = "", on_progress: Progress = silent
) -> pd.DataFrame:
    """Add the columns of `add_uncertainty` to cells, and ``against``, the label of the line named by the user.

    ``rows`` are the results behind each cell, one per seed. Unless a line is named, the reference is the best.
    """
    label, is_reference = _named(cells, against) if against else ("", cells["is_best"])
    cells = add_uncertainty(cells, rows, COLUMN, is_reference, is_named=bool(against), on_progress=on_progress)
    return cells.assign(against=label)


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
