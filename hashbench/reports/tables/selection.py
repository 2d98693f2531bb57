"""Which rows of the results users choose for tables, by the names that the results hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hashbench.errors import HashbenchError
from hashbench.reports.selection import Selection
from hashbench.reports.tables.layout import LAYOUTS, TableLayout
from hashbench.reports.tables.published import Published
from hashbench.scoring.metrics import get_metric


@dataclass(frozen=True)
class TableSelection(Selection):
    """Which results tables show; code lengths are columns other than the papers'.

    Raises HashbenchError if ``name`` is that of another table, or cannot be the name of a file.
    """

    metrics: Sequence[str] = ()  # of a table of chosen rows
    name: str = "selection"  # of a table of chosen rows, in its files and labels in LaTeX

    def __post_init__(self) -> None:
        is_taken = re.split(r"-(?:tie-range|published|orders)$", self.name.lower())[0] in LAYOUTS
        if is_taken or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise HashbenchError(
                f"{self.name!r} cannot name a table. Use letters, digits, points, dashes and underscores, and no name "
                f"of another table: {', '.join(LAYOUTS)}."
            )

    @property
    def is_of_rows(self) -> bool:
        """Whether rows are chosen, for a table of their own."""
        return bool(self.datasets or self.methods or self.metrics or self.features)

    @property
    def layout(self) -> TableLayout:
        """The layout of a table of chosen rows, of AP unless metrics are named."""
        metrics = tuple(dict.fromkeys(get_metric(name).name for name in self.metrics or ["AP"]))
        heading = "Selection" if self.name == TableSelection.name else self.name
        return TableLayout(heading, ", ".join(metrics), metrics, tuple(self.n_bits))

    def has(self, value: Published) -> bool:
        """Return whether a published value belongs to what was chosen."""
        datasets = [name.partition(":")[0] for name in self.datasets]
        return (
            (not datasets or value.our_dataset in datasets)
            and (not self.methods or value.our_method in self.methods)
            and (not self.n_bits or value.n_bits in self.n_bits)
        )
