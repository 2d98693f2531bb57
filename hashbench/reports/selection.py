"""Which results users choose for tables and figures, by the names that results hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import pandas as pd

from hashbench.errors import HashbenchError, suggestion
from hashbench.registry import dataset_names, features_kind, method_names
from hashbench.reports.folds import without_folds


@dataclass(frozen=True)
class Selection:
    """Which results tables and figures show; an empty field chooses all."""

    datasets: Sequence[str] = ()  # names, or NAME:FEATURES
    methods: Sequence[str] = ()
    features: Sequence[str] = ()  # kinds of features, or their full names
    n_bits: Sequence[int] = ()
    variants: bool = False  # whether a method has a line for all parameters and versions, not only one

    def check(self, results: pd.DataFrame) -> None:
        """Check that each dataset, method and kind of features has results."""
        datasets, features = zip(*map(_names, places(results).unique()), strict=True)
        _demand("dataset", self.datasets, chain(*datasets))
        _demand("method", self.methods, results["method"])
        _demand("feature kind", self.features, chain(*features))

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the chosen rows of results or cells; datasets with unseen classes only if they are named."""
        if self.methods:
            frame = frame[frame["method"].isin(self.methods)]
        if self.datasets or self.features:
            chosen = [place for place in places(frame).unique() if self._has(place)]
            frame = frame[places(frame).isin(chosen)]
        return without_folds(frame, self.datasets)

    def _has(self, place: tuple[str, str]) -> bool:
        datasets, features = _names(place)
        is_dataset = not self.datasets or not datasets.isdisjoint(self.datasets)
        return is_dataset and (not self.features or not features.isdisjoint(self.features))

    def nothing_left(self, results: pd.DataFrame, metric: str) -> HashbenchError:
        """Build the error for a choice without rows in a metric."""
        of = " of " + " or ".join(self.methods) if self.methods else ""
        on = " on " + " or ".join(self.datasets) if self.datasets else ""
        on += " with features " + " or ".join(self.features) if self.features else ""
        lengths = " at " + " or ".join(map(str, self.n_bits)) + " bits" if self.n_bits else ""
        rows = Selection.of(self, results)
        rows = results if rows.empty else rows
        return HashbenchError(
            f"there are no results in {metric}{of}{on}{lengths}. There are results in "
            f"{', '.join(sorted(rows['metric'].unique()))} at {', '.join(map(str, sorted(rows['n_bits'].unique())))} "
            f"bits; choose others, or run hashbench run --metric {metric.partition(' ')[0]}."
        )


def places(frame: pd.DataFrame) -> pd.MultiIndex:
    """Return dataset and features of each row."""
    return pd.MultiIndex.from_frame(frame[["dataset", "features"]])


def _names(place: tuple[str, str]) -> tuple[set[str], set[str]]:
    """Return the names that users may give a dataset, with or without its features, and these: in full, or the kind."""
    dataset, features = place
    kinds = {features, features_kind(features)}
    return {dataset, *(f"{dataset}:{kind}" for kind in kinds)}, kinds


def _demand(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Check that each name has results; the error lists short names only, since full ones of features are long."""
    known_names = set(known) if names else set()  # of many rows it takes a while
    for name in names:
        if name not in known_names:
            short = sorted(other for other in known_names if " " not in other and (":" in name or ":" not in other))
            is_misspelt = name not in {*dataset_names(), *method_names()}
            hint = suggestion(name, short) if is_misspelt else ""
            raise HashbenchError(
                f"there are no results of {kind} {name!r}.{hint} There are results of {', '.join(short)}."
            )
