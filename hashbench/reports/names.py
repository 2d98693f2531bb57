"""What users call the datasets and features of results, and the refusal of names that no row has."""

from collections.abc import Iterable

import pandas as pd

from hashbench.errors import HashbenchError, suggestion
from hashbench.registry import dataset_names, features_kind, method_names


def places(frame: pd.DataFrame) -> pd.MultiIndex:
    """Give dataset and features of every row."""
    return pd.MultiIndex.from_frame(frame[["dataset", "features"]])


def names_of_features(features: str) -> set[str]:
    """Give all that a user may call features of the results: as they are named there, or their kind."""
    return {features, features_kind(features)}


def names_of_dataset(dataset: str, features: str) -> set[str]:
    """Give all that a user may call a dataset of the results, or it and others."""
    return {dataset, *(f"{dataset}:{name}" for name in names_of_features(features))}


def demand(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that no row has; those that are suggested are short, and of features only where it has some."""
    names = list(names)
    there = set(known) if names else set()  # of many rows it takes a while
    for name in names:
        if name not in there:
            usual = sorted(one for one in there if " " not in one and (":" in name or ":" not in one))
            is_misspelt = name not in {*dataset_names(), *method_names()}
            hint, listed = suggestion(name, usual) if is_misspelt else "", ", ".join(usual)
            raise HashbenchError(f"there are no results of {kind} {name!r}.{hint} There are results of {listed}.")
