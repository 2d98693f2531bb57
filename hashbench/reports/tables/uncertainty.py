"""Intervals and tests of cells, column by column."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.reports.aggregate import LINE, line_labels
from hashbench.reports.tables.cells import COLUMN
from hashbench.reports.uncertainty import assess
from hashbench.scoring.comparison import ALPHA


def add_confidence(
    cells: pd.DataFrame, rows: Sequence[pd.DataFrame], against: str = "", on_progress: Progress = silent
) -> pd.DataFrame:
    """Add 95 % intervals, and p values of the difference to the best of the column or a named line, to cells.

    ``rows`` are the results behind each cell, one per seed. New columns are those of
    `hashbench.reports.uncertainty.Uncertainty`; ``is_reference``, the cell that the others of its column are tested
    against; ``is_unshown``, whether a test, or the lack of one, leaves it open that a cell differs from that; and
    ``against``, the label of the line named by the user.
    """
    label, is_reference = _named(cells, against) if against else ("", cells["is_best"])
    is_reference = is_reference & ~cells.assign(is_reference=is_reference).duplicated([*COLUMN, "is_reference"])
    parts = []
    columns = cells.groupby(list(COLUMN), sort=False)
    for number, (_, column) in enumerate(columns, start=1):
        places = np.flatnonzero(is_reference[column.index])
        reference = int(places[0]) if len(places) else None
        found = assess(column, [rows[cell] for cell in column.index], reference, is_named=bool(against))
        parts.append(pd.DataFrame(found._asdict(), column.index))
        on_progress("columns", number, len(columns))
    cells = cells.join(pd.concat(parts)).assign(is_reference=is_reference, against=label)
    is_rival = (cells["group"] != "baseline") & cells["value"].notna() & ~is_reference
    has_reference = cells.groupby(list(COLUMN))["is_reference"].transform("any")
    return cells.assign(is_unshown=is_rival & has_reference & ~(cells["p_value"] < ALPHA))


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
