"""Which results users choose for tables and figures, by the names that results hold."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Self

import pandas as pd

from hashbench.errors import HashbenchError, suggestion
from hashbench.registry import dataset_names, features_kind, method_names
from hashbench.reports.aggregate import without_folds
from hashbench.scoring.metrics import get_metric
from hashbench.store import hdf5
from hashbench.store.files import HDF5_SUFFIXES


@dataclass(frozen=True)
class Selection:
    """Which results tables and figures show; an empty field chooses all."""

    datasets: Sequence[str] = ()  # names, NAME:FEATURES, or HDF5 files
    methods: Sequence[str] = ()  # in the order in which they are shown
    features: Sequence[str] = ()  # kinds of features, or their full names
    n_bits: Sequence[int] = ()
    metrics: Sequence[str] = ()
    variants: bool = False  # whether a method has a line for all parameters and versions, not only one

    @property
    def is_of_rows(self) -> bool:
        """Whether more is chosen than code lengths."""
        return bool(self.datasets or self.methods or self.metrics or self.features)

    @property
    def files(self) -> tuple[Path, ...]:
        """The datasets that are files."""
        return tuple(Path(spec) for spec in self.datasets if spec.endswith(HDF5_SUFFIXES))

    def read(self) -> Self:
        """Return the selection with the canonical names of metrics, and names of datasets for files."""
        datasets = [hdf5.read_dataset(path) for path in self.files]
        names = [spec for spec in self.datasets if Path(spec) not in self.files]
        names += [f"{dataset.name}:{dataset.features_name}" for dataset in datasets]
        for n_bits in self.n_bits:
            if not isinstance(n_bits, Integral):
                raise HashbenchError(f"code lengths are whole numbers, got {n_bits!r}.")
        metrics = tuple(dict.fromkeys(get_metric(name).name for name in self.metrics))
        return replace(self, datasets=names, metrics=metrics)

    def check(self, results: pd.DataFrame) -> None:
        """Check that each dataset, method and kind of features has results."""
        datasets, features = zip(*map(_names, places(results).unique()), strict=True)
        demand("dataset", self.datasets, chain(*datasets))
        demand("method", self.methods, results["method"])
        demand("feature kind", self.features, chain(*features))

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the chosen rows of results or cells; datasets with unseen classes only if they are named."""
        frame = self.at(frame)
        frame = frame[frame["metric"].isin(self.metrics)] if self.metrics else frame
        return frame[frame["n_bits"].isin(self.n_bits)] if self.n_bits else frame

    def at(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the chosen methods, datasets and features, whatever their metric and code length."""
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
        rows = self.at(results)
        rows = results if rows.empty else rows
        known = {key: ", ".join(map(str, sorted(rows[key].unique()))) for key in ("metric", "n_bits", "dataset")}
        return HashbenchError(
            f"there are no results in {metric}{of}{on}{lengths}. There are results in {known['metric']} at "
            f"{known['n_bits']} bits on {known['dataset']}; choose others, or make them: {self.command(metric)}."
        )

    def command(self, metric: str) -> str:
        """Return the command that makes the chosen results in a metric."""
        if not {*self.methods} <= {*method_names()}:
            return "hashbench save NAME, with your codes as before"
        options = {"--method": self.methods or ["METHOD"], "--dataset": self.datasets, "--bits": map(str, self.n_bits)}
        words = [word for option, values in options.items() for value in values for word in (option, value)]
        return f"hashbench run {shlex.join([*words, '--metric', metric.partition(' ')[0]])}"


def places(frame: pd.DataFrame) -> pd.MultiIndex:
    """Return dataset and features of each row."""
    return pd.MultiIndex.from_frame(frame[["dataset", "features"]])


def _names(place: tuple[str, str]) -> tuple[set[str], set[str]]:
    """Return the names that users may give a dataset, with or without its features, and these: in full, or the kind."""
    dataset, features = place
    kinds = {features, features_kind(features)}
    return {dataset, *(f"{dataset}:{kind}" for kind in kinds)}, kinds


def demand(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Check that each name has results; the error lists short names only, since full ones of features are long."""
    known_names = set(known) if names else set()  # of many rows it takes a while
    for name in names:
        if name not in known_names:
            short = sorted(other for other in known_names if " " not in other and (":" in name or ":" not in other))
            is_misspelt = name not in {*dataset_names(), *method_names()}
            hint = suggestion(name, sorted(known_names)) if is_misspelt else ""
            raise HashbenchError(
                f"there are no results of {kind} {name!r}.{hint} There are results of {', '.join(short)}."
            )
