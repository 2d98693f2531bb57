"""Checks of a dataset: copies of queries, constant features, missing labels."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, BoolArray, Float32Array, FloatArray, IntArray
from hashbench.affinity import row_digests
from hashbench.dataset import Dataset
from hashbench.errors import counted

WARNING = "warning"  # key of ``Dataset.about``
LEFT_OUT = "left_out"  # key of it, in JSON: the rows that prepare left out of the files of items and of queries
_N_NAMED = 5  # queries in a warning
MOST_ITEMS = 1_000_000  # largest dataset that is searched for near-copies
NEAR = 1e-4  # of the median distance between a query and an item: how far apart near-copies may be
_N_SAMPLED = 1_000  # distances whose median is computed
_N_DIRECTIONS = 8
_N_CANDIDATES, _N_COMPARED = 1 << 14, 1 << 10  # items near a query in the first direction, in all directions
_BLOCK = 1 << 14  # rows widened at a time


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
    parts = {role: getattr(dataset, role) for role in ("database", "train")}
    equal, is_near, has_copy = find_copies(features, dataset.images, dataset.query, parts)
    near: dict[str, int | None] = dict.fromkeys(parts)
    near |= {role: int((is_near[role] & ~equal[role]).sum()) for role in is_near}
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
    """Describe which queries have copies among database or training items; "" if none has."""
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
        f"scores are too high: {named}{f' and {n_more:,} more' if n_more > 0 else ''} (counted from 0; `hashbench "
        "info` with --format json lists all). `prepare --leave-out duplicates` leaves them out of your own data."
    )


def with_warning(dataset: Dataset) -> Dataset:
    """Return the dataset with a warning in ``about`` if queries have copies."""
    about = {key: text for key, text in dataset.about.items() if key != WARNING}
    if text := warning_of(inspect(dataset), len(dataset.query)):
        about[WARNING] = text
    return dataset if about == dataset.about else replace(dataset, about=about)


# ---------------------------------------------------------------- copies


def find_copies(
    features: Float32Array | None, images: AnyArray | None, query: IntArray, parts: Mapping[str, IntArray]
) -> tuple[dict[str, BoolArray], dict[str, BoolArray], BoolArray]:
    """Return whether each query equals an item of each part, whether it is near to one, and whether it is any of these.

    Nearly equal items are found by their features, if there are not too many items; otherwise the second is empty.
    """
    digests = row_digests(features if features is not None else np.asarray(images))
    keys = digests.view(np.dtype((np.void, digests.shape[1]))).ravel()
    equal = {role: np.isin(keys[query], keys[rows]) for role, rows in parts.items()}
    near: dict[str, BoolArray] = {}
    if features is not None and len(features) <= MOST_ITEMS:
        near = {role: find_near(features, query, rows) for role, rows in parts.items()}
    return equal, near, np.any([*equal.values(), *near.values()], axis=0)


def find_near(features: Float32Array, query: IntArray, rows: IntArray) -> BoolArray:
    """Return whether each query has an item of ``rows`` within `NEAR` times the median Euclidean distance.

    Projections on a random direction are at most as far apart as the items, so only items near in a few random
    directions are compared.
    """
    rng = np.random.default_rng(0)
    pairs = features[rng.choice(query, _N_SAMPLED)], features[rng.choice(rows, _N_SAMPLED)]
    radius = NEAR * float(np.median(np.linalg.norm(np.subtract(*pairs, dtype=np.float64), axis=1)))
    directions = np.linalg.qr(rng.normal(size=(features.shape[1], _N_DIRECTIONS)))[0]  # (n_features, up to 8)
    queries, items = (_projected(features, index, directions) for index in (query, rows))
    order = np.argsort(items[:, 0], kind="stable")
    items, rows = items[order], rows[order]
    margin = radius * (1 + 1e-6) + 1e-12 * float(np.abs(items[:, 0]).max())  # with a bound of rounding errors
    starts, middles, stops = (np.searchsorted(items[:, 0], queries[:, 0] + side) for side in (-margin, 0, margin))
    starts, stops = np.maximum(starts, middles - _N_CANDIDATES), np.minimum(stops, middles + _N_CANDIDATES)
    is_near = np.zeros(len(query), dtype=bool)
    for position in np.flatnonzero(stops > starts):
        part = slice(starts[position], stops[position])
        is_candidate = (np.abs(items[part] - queries[position]) <= margin).all(axis=1)
        candidates = features[rows[part][is_candidate][:_N_COMPARED]]
        apart = np.subtract(candidates, features[query[position]], dtype=np.float64)
        is_near[position] = (np.linalg.norm(apart, axis=1) <= radius).any()
    return is_near


def _projected(features: Float32Array, index: IntArray, directions: FloatArray) -> FloatArray:
    blocks = chunks(0, len(index), _BLOCK)
    return np.concatenate([features[index[rows]].astype(np.float64) @ directions for rows in blocks])
