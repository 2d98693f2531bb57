"""Which rows of the results tables are made of: what users choose, by the names that the results hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pandas as pd

from hashbench.errors import HashbenchError
from hashbench.reports.folds import without_folds
from hashbench.reports.names import demand, names_of_dataset, names_of_features, places
from hashbench.reports.tables.layout import LAYOUTS, TableLayout
from hashbench.reports.tables.published import Published
from hashbench.scoring.metrics import get_metric


@dataclass(frozen=True)
class TableSelection:
    """What the user wants to see; what is empty means all.

    Parameters
    ----------
    datasets : sequence of str
        Names, or NAME:FEATURES.
    methods : sequence of str
        Names.
    metrics : sequence of str
        Names; a table of its own is made of them.
    features : sequence of str
        Kinds of features, or their full names.
    n_bits : sequence of int
        Columns other than the papers'.
    variants : bool
        Whether methods are shown with all their parameters and versions, not only by one line.
    name : str
        What a table of its own is called: its files, and its labels in LaTeX.

    Raises
    ------
    HashbenchError
        If the name is that of another table, or has other signs than letters, digits, points, dashes and underscores.
    """

    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()
    metrics: Sequence[str] = ()
    features: Sequence[str] = ()
    n_bits: Sequence[int] = ()
    variants: bool = False
    name: str = "selection"

    def __post_init__(self) -> None:
        is_taken = re.split(r"-(?:tie-range|published|orders)$", self.name.lower())[0] in LAYOUTS
        if is_taken or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise HashbenchError(
                f"a table of your own cannot be called {self.name!r}: give letters, digits, points, dashes or "
                f"underscores, and none of {', '.join(LAYOUTS)}."
            )

    @property
    def is_of_rows(self) -> bool:
        """Whether it names rows, which a table of its own can be made of."""
        return bool(self.datasets or self.methods or self.metrics or self.features)

    @property
    def layout(self) -> TableLayout:
        """The table of its own, of AP unless metrics are named."""
        metrics = tuple(dict.fromkeys(get_metric(name).name for name in self.metrics or ["AP"]))
        heading = "Selection" if self.name == TableSelection.name else self.name
        return TableLayout(heading, ", ".join(metrics), metrics, tuple(self.n_bits))

    def check_name(self, tables: Sequence[str]) -> None:
        """Raise HashbenchError if there is a name, and no table of its own that has it."""
        if self.name != TableSelection.name and (tables or not self.is_of_rows):
            raise HashbenchError(
                f"{self.name!r} would be the name of a table of your own; choose its rows by dataset, method, metric "
                "or features, and leave out the names of other tables."
            )

    def of_rows(self, results: pd.DataFrame) -> pd.DataFrame:
        """Keep the rows of the chosen datasets, methods and features, refuse names that no row has.

        Datasets with unseen classes are kept if they are named.
        """
        there = places(results)
        kinds = {place: names_of_features(place[1]) for place in there.unique()}
        named = {place: names_of_dataset(*place) for place in there.unique()}
        is_chosen = pd.Series(True, index=results.index)
        for what, names, words in (("dataset", self.datasets, named), ("feature kind", self.features, kinds)):
            demand(what, names, chain.from_iterable(words.values()))
            if names:
                is_chosen &= there.isin([place for place, ones in words.items() if not ones.isdisjoint(names)])
        demand("method", self.methods, results["method"])
        if self.methods:
            is_chosen &= results["method"].isin(self.methods)
        return without_folds(results[is_chosen], self.datasets)

    def has(self, one: Published) -> bool:
        """Tell whether a published value is of what was chosen."""
        datasets = [name.partition(":")[0] for name in self.datasets]
        return (
            (not datasets or one.our_dataset in datasets)
            and (not self.methods or one.our_method in self.methods)
            and (not self.n_bits or one.n_bits in self.n_bits)
        )

    def nothing_left(self, results: pd.DataFrame) -> HashbenchError:
        """Build the error for a table of its own without rows."""
        metrics = " or ".join(self.layout.metrics)
        of = " of " + " or ".join(self.methods) if self.methods else ""
        on = " on " + " or ".join([*self.datasets, *self.features]) if self.datasets or self.features else ""
        lengths = " at " + " or ".join(map(str, self.n_bits)) + " bits" if self.n_bits else ""
        there = results if self.of_rows(results).empty else self.of_rows(results)
        return HashbenchError(
            f"there are no results in {metrics}{of}{on}{lengths}. There are results in "
            f"{', '.join(sorted(there['metric'].unique()))} at "
            f"{', '.join(map(str, sorted(there['n_bits'].unique())))} bits; choose others, or make some with "
            f"hashbench run --metric {self.layout.metrics[0]}."
        )
