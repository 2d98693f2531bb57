"""Checks of a dataset: copies of queries, constant features, missing labels."""

from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from hashbench._typing import IntArray
from hashbench.dataset import Dataset
from hashbench.errors import counted
from hashbench.sources.copies import MOST_ITEMS, find_near, row_digests

WARNING = "warning"  # key of ``Dataset.about``
_N_NAMED = 5  # queries in a warning


@dataclass(frozen=True)
class Inspection:
    """Counts of possible faults of a dataset."""

    n_queries_in_database: int  # whose features (or images) equal those of a database item, byte for byte
    n_queries_in_train: int
    n_near_database: int | None  # further queries nearly equal to an item; None without features or if too many
    n_near_train: int | None
    copied: IntArray  # numbers of the queries with an equal or nearly equal item in database or training set
    n_constant: int  # features that have one value in all items; 0 if there are images only
    n_zero: int  # items whose features are all zero
    class_sizes: IntArray | None  # items per class; None without labels
    n_without_label: int


_LAST: dict[str, Inspection] = {}  # of the last inspected dataset, by its fingerprint


def inspect(dataset: Dataset) -> Inspection:
    """Count duplicates between roles, constant features and missing labels; the last result is cached."""
    if dataset.fingerprint not in _LAST:
        _LAST.clear()
        _LAST[dataset.fingerprint] = _inspect(dataset)
    return _LAST[dataset.fingerprint]


def _inspect(dataset: Dataset) -> Inspection:
    features, labels = dataset.features, dataset.labels
    keys = row_digests(features if features is not None else np.asarray(dataset.images))
    parts = {role: getattr(dataset, role) for role in ("database", "train")}
    equal = {role: np.isin(keys[dataset.query], keys[rows]) for role, rows in parts.items()}
    near: dict[str, int | None] = dict.fromkeys(parts)
    has_copy = equal["database"] | equal["train"]
    if features is not None and len(features) <= MOST_ITEMS:
        is_near = {role: find_near(features, dataset.query, rows) for role, rows in parts.items()}
        near = {role: int((is_near[role] & ~equal[role]).sum()) for role in parts}
        has_copy = has_copy | is_near["database"] | is_near["train"]
    sizes, n_without = None, 0
    if labels is not None and labels.ndim == 1:
        sizes = np.unique(labels, return_counts=True)[1]
    elif labels is not None:
        sizes, n_without = labels.sum(axis=0, dtype=np.int64), int((labels.sum(axis=1, dtype=np.int64) == 0).sum())
    return Inspection(
        n_queries_in_database=int(equal["database"].sum()),
        n_queries_in_train=int(equal["train"].sum()),
        n_near_database=near["database"],
        n_near_train=near["train"],
        copied=np.flatnonzero(has_copy),
        n_constant=0 if features is None else int((features.min(axis=0) == features.max(axis=0)).sum()),
        n_zero=0 if features is None else int((~features.any(axis=1)).sum()),
        class_sizes=sizes,
        n_without_label=n_without,
    )


def warning_of(inspection: Inspection, n_queries: int) -> str:
    """Describe in a sentence which queries have copies among database or training items; "" if none has."""
    if not inspection.copied.size:
        return ""
    counts = [
        (inspection.n_queries_in_database + (inspection.n_near_database or 0), "in the database"),
        (inspection.n_queries_in_train + (inspection.n_near_train or 0), "among the training items"),
    ]
    (most, place), *fewer = sorted(filter(itemgetter(0), counts), key=itemgetter(0), reverse=True)
    others = "".join(f" and {n:,} {other}" for n, other in fewer)
    named, n_more = ", ".join(map(str, inspection.copied[:_N_NAMED])), len(inspection.copied) - _N_NAMED
    return (
        f"{most:,} of {counted(n_queries, 'query', 'queries')} have an equal or nearly equal item {place}{others}, so "
        f"scores are too high; take these queries out: {named}{f' and {n_more:,} more' if n_more > 0 else ''} (counted "
        "from 0)."
    )


def with_warning(dataset: Dataset) -> Dataset:
    """Return the dataset with a warning in ``about`` if queries have copies."""
    about = {key: text for key, text in dataset.about.items() if key != WARNING}
    if text := warning_of(inspect(dataset), len(dataset.query)):
        about[WARNING] = text
    return dataset if about == dataset.about else replace(dataset, about=about)
