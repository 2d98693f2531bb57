"""What users call the datasets and features of results, and the check that a name has results."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import pandas as pd

from hashbench.errors import HashbenchError, suggestion
from hashbench.registry import dataset_names, features_kind, method_names


def places(frame: pd.DataFrame) -> pd.MultiIndex:
    """Return dataset and features of each row."""
    return pd.MultiIndex.from_frame(frame[["dataset", "features"]])


def names_of_features(features: str) -> set[str]:
    """Return the names that users may give features of the results: the full one, or their kind."""
    return {features, features_kind(features)}


def names_of_dataset(dataset: str, features: str) -> set[str]:
    """Return the names that users may give a dataset of the results, with or without its features."""
    return {dataset, *(f"{dataset}:{name}" for name in names_of_features(features))}


def chooser(results: pd.DataFrame, selection: Any, kind: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Check a selection's datasets, methods and features, and return a function that chooses rows of a frame by them.

    An empty field chooses all; ``kind`` is what errors call features.
    """
    of_places = results[["dataset", "features"]].drop_duplicates().itertuples(index=False, name=None)
    datasets = {place: names_of_dataset(*place) for place in of_places}
    features = {place: names_of_features(place[1]) for place in datasets}
    demand("dataset", selection.datasets, chain.from_iterable(datasets.values()))
    demand("method", selection.methods, results["method"])
    demand(kind, selection.features, chain.from_iterable(features.values()))
    chosen = [
        place
        for place in datasets
        if (not selection.datasets or datasets[place] & set(selection.datasets))
        and (not selection.features or features[place] & set(selection.features))
    ]

    def choose(frame: pd.DataFrame) -> pd.DataFrame:
        if selection.datasets or selection.features:
            frame = frame[places(frame).isin(chosen)]
        return frame[frame["method"].isin(selection.methods)] if selection.methods else frame

    return choose


def demand(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Check that each name has results; the error lists short names only, since full ones of features are long."""
    names = list(names)
    known_names = set(known) if names else set()  # of many rows it takes a while
    for name in names:
        if name not in known_names:
            short = sorted(other for other in known_names if " " not in other and (":" in name or ":" not in other))
            is_misspelt = name not in {*dataset_names(), *method_names()}
            hint = suggestion(name, short) if is_misspelt else ""
            raise HashbenchError(
                f"there are no results of {kind} {name!r}.{hint} There are results of {', '.join(short)}."
            )
