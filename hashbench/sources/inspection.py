"""What to know about a dataset before trusting numbers made from it."""

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hashbench._typing import AnyArray, IntArray
from hashbench.dataset import Dataset


@dataclass(frozen=True)
class Inspection:
    """Counts of what may be amiss."""

    n_queries_in_database: int  # whose features (or images) equal those of a database item, byte for byte
    n_queries_in_train: int
    n_constant: int  # features that have one value in all items; 0 if there are images only
    n_zero: int  # items whose features are all zero
    class_sizes: IntArray | None  # items a class; None without labels
    n_without_label: int  # items with no label at all


def inspect(dataset: Dataset) -> Inspection:
    """Look for duplicates between roles, constant features and missing labels."""
    features, labels = dataset.features, dataset.labels
    keys = _row_digests(features if features is not None else np.asarray(dataset.images))
    in_database, in_train = (
        int(np.isin(keys[dataset.query], keys[rows]).sum()) for rows in (dataset.database, dataset.train)
    )
    sizes, n_without = None, 0
    if labels is not None and labels.ndim == 1:
        sizes = np.unique(labels, return_counts=True)[1]
    elif labels is not None:
        sizes, n_without = labels.sum(axis=0, dtype=np.int64), int((labels.sum(axis=1, dtype=np.int64) == 0).sum())
    return Inspection(
        n_queries_in_database=in_database,
        n_queries_in_train=in_train,
        n_constant=0 if features is None else int((features.min(axis=0) == features.max(axis=0)).sum()),
        n_zero=0 if features is None else int((~features.any(axis=1)).sum()),
        class_sizes=sizes,
        n_without_label=n_without,
    )


def _row_digests(rows: AnyArray) -> npt.NDArray[np.void]:
    """Shorten each row to 16 bytes; equal rows, and no others in practice, have equal ones."""
    flat = rows.reshape(len(rows), -1)
    parts = b"".join(
        hashlib.blake2b(np.ascontiguousarray(row + row.dtype.type(0)).data, digest_size=16).digest() for row in flat
    )  # adding zero turns -0.0 into 0.0
    return np.frombuffer(parts, dtype=np.dtype((np.void, 16)))
