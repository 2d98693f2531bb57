"""What to know about a dataset before trusting numbers made from it."""

from dataclasses import dataclass, replace

import numpy as np

from hashbench._typing import IntArray
from hashbench.dataset import Dataset
from hashbench.errors import counted
from hashbench.sources.copies import MOST_ITEMS, find_near, row_digests

WARNING = "warning"  # what a dataset says of copies about itself


@dataclass(frozen=True)
class Inspection:
    """Counts of what may be amiss."""

    n_queries_in_database: int  # whose features (or images) equal those of a database item, byte for byte
    n_queries_in_train: int
    n_near_database: int | None  # further ones, nearly equal to a database item; None without features or of too many
    n_near_train: int | None
    n_constant: int  # features that have one value in all items; 0 if there are images only
    n_zero: int  # items whose features are all zero
    class_sizes: IntArray | None  # items a class; None without labels
    n_without_label: int  # items with no label at all


def inspect(dataset: Dataset) -> Inspection:
    """Look for duplicates between roles, constant features and missing labels."""
    features, labels = dataset.features, dataset.labels
    keys = row_digests(features if features is not None else np.asarray(dataset.images))
    parts = {role: getattr(dataset, role) for role in ("database", "train")}
    equal = {role: np.isin(keys[dataset.query], keys[rows]) for role, rows in parts.items()}
    near: dict[str, int | None] = dict.fromkeys(parts)
    if features is not None and len(features) <= MOST_ITEMS:
        is_near = {role: find_near(features, dataset.query, rows) for role, rows in parts.items()}
        near = {role: int((is_near[role] & ~equal[role]).sum()) for role in parts}
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
        n_constant=0 if features is None else int((features.min(axis=0) == features.max(axis=0)).sum()),
        n_zero=0 if features is None else int((~features.any(axis=1)).sum()),
        class_sizes=sizes,
        n_without_label=n_without,
    )


def warning_of(found: Inspection, n_queries: int) -> str:
    """Say in words that queries have copies among items that they are searched in or learned from; "" if none has."""
    of_train = found.n_queries_in_train, found.n_near_train or 0, "training"
    of_database = found.n_queries_in_database, found.n_near_database or 0, "database"
    n_equal, n_near, role = of_train if any(of_train[:2]) else of_database
    if not (n_equal or n_near):
        return ""
    effect = "methods learn from them" if role == "training" else "each finds its copy"
    return (
        f"{n_equal:,} of {counted(n_queries, 'query', 'queries')} equal a {role} item, and {n_near:,} nearly: "
        f"{effect}, so scores are too high. Take such items out."
    )


def with_warning(dataset: Dataset) -> Dataset:
    """Give a dataset that says about itself whether queries have copies."""
    about = {key: text for key, text in dataset.about.items() if key != WARNING}
    if text := warning_of(inspect(dataset), len(dataset.query)):
        about[WARNING] = text
    return dataset if about == dataset.about else replace(dataset, about=about)
