"""What users call the datasets and features of results, and the check that a name has results."""

from collections.abc import Iterable

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
