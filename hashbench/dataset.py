"""A dataset: items, three roles (query, database, train) and one affinity rule, checked on construction."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hashbench._choices import TRUE_DISTANCES
from hashbench._typing import AnyArray, ByteArray, Float32Array, IntArray, Rows
from hashbench._validation import (
    check_name,
    check_words,
    is_sparse,
    read_only,
    refuse_fractions,
    summed_csr,
    unexpected,
)
from hashbench.affinity import Affinity, Distance, Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.errors import HashbenchError

_FINGERPRINT_ROWS = 1 << 12  # widened at a time
_CHECKED_ROWS = 1 << 16  # looked through at a time
N_NEIGHBOURS = "n_neighbours"  # key of ``rule_params``
TIES = "ties"  # key of ``about``: of neighbours with items left out
_ARRAYS = ("features", "labels", "coarse_labels", "query", "database", "train", "matrix", "neighbours", "images")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Items, their split, and the rule by which items are relevant to a query; its arrays cannot be written.

    Parameters
    ----------
    name : str
        Used in file names and rows of results.
    features : ndarray of shape (n_samples, n_features), float32, or None
        One row per item; finite. None if there are images only.
    query, database, train : ndarray of int64
        Row numbers. Queries are outside the database; training items are all inside it, or all outside both.
    rule : str
        One of ``same-label``, ``shared-labels``, ``hierarchy``, ``distance``, ``neighbours`` and ``explicit``.
    rule_params : mapping, optional
        For ``distance``: ``squared_thresholds`` and ``levels``, see `hashbench.affinity.Distance`. For any other rule:
        ``true_distance``, if it is ``cosine`` or ``dot`` and not ``euclidean``. For ``neighbours``: ``n_neighbours``,
        the k of each query, if items as near as the k-th are listed too.
    labels : ndarray, optional
        int64 class labels of shape (n_samples,), or uint8 multi-hot of shape (n_samples, n_classes).
    coarse_labels : ndarray of shape (n_samples,), int64, optional
        The superclasses of the ``hierarchy`` rule.
    neighbours : ndarray of shape (n_query, k), int64, optional
        For the ``neighbours`` rule: the k nearest of each query, as positions in ``database``; level 1. With
        ``n_neighbours`` in ``rule_params`` there may be more columns, -1 where a query has fewer.
    matrix : ndarray or CSR array of shape (n_query, n_database), optional
        The levels of the ``explicit`` rule.
    images : ndarray of shape (n_samples, height, width, n_channels), uint8, optional
        The items as images, for methods that learn end to end; 1 or 3 channels.
    features_name : str, default="features"
        Kind of features, such as ``pixels`` or ``gist``.
    part_of : str, optional
        Fingerprint of the dataset that this one is a part of.
    about : mapping of str to str, optional
        Summary, protocol, licence, citation and source, for people. Not part of the fingerprint.

    Raises
    ------
    HashbenchError
        If an array has the wrong shape or dtype, a feature is not finite, roles overlap or the rule
        lacks what it needs.

    Examples
    --------
    >>> rows = np.arange(4)
    >>> features = rows[:, None].astype(np.float32)
    >>> data = Dataset("four", features, rows[:1], rows[1:], rows[1:], "same-label", labels=rows % 2)
    >>> data.affinity().block(slice(None), slice(None)).tolist()
    [[0, 1, 0]]
    """

    name: str
    features: Float32Array | None
    query: IntArray
    database: IntArray
    train: IntArray
    rule: str
    rule_params: Mapping[str, Any] = field(default_factory=dict)
    labels: AnyArray | None = None
    coarse_labels: IntArray | None = None
    neighbours: IntArray | None = None
    matrix: Any = None
    images: ByteArray | None = None
    features_name: str = "features"
    part_of: str = ""
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name, "a dataset's name")
        check_words(self.features_name, "a dataset's features_name")
        for key in ("rule_params", "about"):
            if not isinstance(getattr(self, key), Mapping):
                raise HashbenchError(f"{key} of dataset {self.name!r} is {getattr(self, key)!r}, expected a mapping.")
        _check_features(self)
        _check_split(self)
        _check_labels(self)
        _check_rule(self)
        for key in _ARRAYS:  # no plug-in may change what other jobs get
            object.__setattr__(self, key, read_only(getattr(self, key)))

    @property
    def n_samples(self) -> int:
        """The number of items."""
        return len(self.images if self.features is None else self.features)  # type: ignore[arg-type]

    @property
    def is_single_label(self) -> bool:
        """Whether each item has exactly one class."""
        return self.labels is not None and self.labels.ndim == 1

    @property
    def true_distance(self) -> str:
        """The distance to compare features by: ``euclidean``, ``cosine`` or ``dot``."""
        return str(self.rule_params.get("true_distance", "euclidean"))

    @property
    def n_neighbours(self) -> int:
        """Number of nearest items of each query that are relevant, not counting ties; 0 for other rules."""
        return 0 if self.neighbours is None else int(self.rule_params.get(N_NEIGHBOURS, self.neighbours.shape[1]))

    @property
    def notes(self) -> list[str]:
        """Sentences on the relevance of neighbours that readers of its scores need."""
        if self.neighbours is None:
            return []
        if N_NEIGHBOURS in self.rule_params:
            return [
                f"{self.name}: only the {self.n_neighbours:,} nearest items of each query, and those as near as the "
                f"last of them, are relevant; P@{self.n_neighbours} is the recall by distance."
            ]
        notes = [f"{self.name}: only the {self.n_neighbours:,} listed neighbours of each query are relevant."]
        if TIES in self.about:
            notes.append(
                f"{self.name}: {self.about[TIES]}, and count as irrelevant. hashbench prepare --neighbour-ties all "
                "makes them relevant."
            )
        return notes

    def affinity(self) -> Affinity:
        """Return the affinity of the queries (rows) to the database (columns).

        Returns
        -------
        Affinity
            Of shape (n_query, n_database), in the order of ``query`` and ``database``.
        """
        return RULES[self.rule](self, as_slice(self.query), as_slice(self.database))

    def train_affinity(self) -> Affinity:
        """Return the affinity of the training items to each other.

        Returns
        -------
        Affinity
            Of shape (n_train, n_train), in the order of ``train``.

        Raises
        ------
        HashbenchError
            If the rule is ``explicit`` or ``neighbours``, which rate queries only.
        """
        if self.rule in RULES_OF_QUERIES:
            raise HashbenchError(
                f"dataset {self.name!r} has {self.rule} affinities, which do not rate pairs of training items; "
                "choose an unsupervised method."
            )
        rows = as_slice(self.train)
        return RULES[self.rule](self, rows, rows)

    @cached_property
    def fingerprint(self) -> str:
        """The first 16 hex digits of a SHA-256 over arrays, split and rule, independent of the file.

        For a part of another dataset: the first 8 of that dataset's, then 8 of its own.
        """
        digest = hashlib.sha256()
        for key in _ARRAYS:
            value = getattr(self, key)
            if value is None:
                continue
            if is_sparse(value):
                canonical = summed_csr(value)
                canonical.eliminate_zeros()
                canonical.sort_indices()
                parts = {"data": canonical.data, "indices": canonical.indices, "indptr": canonical.indptr}
            else:
                parts = {"": value}
            for part, array in parts.items():
                kind = "|u1" if key == "images" else "<i8" if array.dtype.kind in "iub" else "<f4"
                digest.update(f"{key}.{part}:{array.shape};".encode())
                for start in range(0, len(array), _FINGERPRINT_ROWS):
                    rows = array[start : start + _FINGERPRINT_ROWS]
                    digest.update(np.ascontiguousarray(rows, dtype=kind).data)
        digest.update(canonical_json([self.rule, dict(self.rule_params)]).encode())
        return (self.part_of[:8] + digest.hexdigest())[:16]


def as_slice(index: IntArray) -> Rows:
    """Return consecutive row numbers as a slice, which needs no copy; other row numbers as they are."""
    for start in range(0, len(index), _CHECKED_ROWS):
        part = index[start : start + _CHECKED_ROWS]
        if not np.array_equal(part, np.arange(index[0] + start, index[0] + start + len(part))):
            return index
    return slice(int(index[0]), int(index[0]) + len(index))


def canonical_json(value: Any) -> str:
    """Return JSON types and NumPy values as one line of JSON with sorted keys."""

    def plain(other: Any) -> Any:
        if isinstance(other, np.ndarray | np.generic):
            return other.tolist()
        raise HashbenchError(f"{other!r} cannot be stored as JSON; use numbers, strings, lists or None.")

    return json.dumps(value, sort_keys=True, default=plain)


def _check_features(dataset: Dataset) -> None:
    features, images = dataset.features, dataset.images
    if images is not None and (images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] not in (1, 3)):
        expected = "uint8 of shape (n_samples, height, width, 1 or 3)"
        raise unexpected(images, f"images of dataset {dataset.name!r}", expected)
    if features is None:
        if images is None or not images.size:
            raise HashbenchError(f"dataset {dataset.name!r} has neither features nor images; give at least one.")
        return
    if images is not None and len(images) != len(features):
        raise HashbenchError(f"dataset {dataset.name!r} has {len(features)} rows of features but {len(images)} images.")
    if features.ndim != 2 or 0 in features.shape or features.dtype != np.float32:
        expected = "float32 of shape (n_samples, n_features), not empty"
        raise unexpected(features, f"features of dataset {dataset.name!r}", expected)
    check_finite(features, dataset.name)


def check_finite(features: Float32Array, name: str) -> None:
    """Refuse features (n_samples, n_features) of the dataset ``name`` with values that are not finite."""
    starts = range(0, len(features), _CHECKED_ROWS)
    n_bad = [int((~np.isfinite(features[start : start + _CHECKED_ROWS])).sum()) for start in starts]
    if any(n_bad):
        first = starts[next(block for block, n in enumerate(n_bad) if n)]
        row, column = np.argwhere(~np.isfinite(features[first : first + _CHECKED_ROWS]))[0]
        raise HashbenchError(
            f"features of dataset {name!r} hold {sum(n_bad)} values that are not finite, first "
            f"{features[first + row, column]} in row {first + row}, column {column} (counted from 0). Remove "
            "or impute them."
        )


def _check_split(dataset: Dataset) -> None:
    n_samples, is_in = dataset.n_samples, {}
    for role in ("query", "database", "train"):
        index = getattr(dataset, role)
        if index.ndim != 1 or index.dtype != np.int64:
            raise unexpected(index, f"{role} rows of dataset {dataset.name!r}", "int64 row numbers of shape (n,)")
        if not index.size:
            raise HashbenchError(f"dataset {dataset.name!r} has no {role} items; at least one is needed.")
        if index.min() < 0 or index.max() >= n_samples:
            raise HashbenchError(
                f"{role} of dataset {dataset.name!r} names rows {index.min()} to {index.max()}, "
                f"but there are {n_samples} items."
            )
        is_in[role] = np.zeros(n_samples, dtype=bool)
        is_in[role][index] = True
        if is_in[role].sum() != len(index):
            raise HashbenchError(f"{role} of dataset {dataset.name!r} names some rows twice.")
    n_shared = int((is_in["query"] & is_in["database"]).sum())
    if n_shared:
        raise HashbenchError(f"{n_shared} queries of dataset {dataset.name!r} are also in its database.")
    n_scored = int((is_in["train"] & is_in["query"]).sum())
    if n_scored:
        raise HashbenchError(f"{n_scored} training items of dataset {dataset.name!r} are also queries.")
    n_outside = int((is_in["train"] & ~is_in["database"]).sum())
    if n_outside not in (0, len(dataset.train)):
        raise HashbenchError(
            f"{n_outside} of {len(dataset.train)} training items of dataset {dataset.name!r} are outside its database; "
            "let it hold all of them, or none."
        )


def _check_labels(dataset: Dataset) -> None:
    labels, coarse = dataset.labels, dataset.coarse_labels
    if coarse is not None and (coarse.shape, coarse.dtype) != ((dataset.n_samples,), np.dtype(np.int64)):
        raise unexpected(coarse, f"coarse_labels of dataset {dataset.name!r}", f"int64 of shape {(dataset.n_samples,)}")
    if labels is None:
        return
    if labels.ndim and len(labels) != dataset.n_samples:
        raise HashbenchError(f"dataset {dataset.name!r} has {dataset.n_samples} items but labels for {len(labels)}.")
    if (labels.ndim, labels.dtype) not in ((1, np.dtype(np.int64)), (2, np.dtype(np.uint8))):
        expected = "int64 of shape (n,) or uint8 multi-hot of shape (n, n_classes)"
        raise unexpected(labels, f"labels of dataset {dataset.name!r}", expected)


def _check_rule(dataset: Dataset) -> None:
    if dataset.rule not in RULES:
        raise HashbenchError(
            f"dataset {dataset.name!r} has affinity rule {dataset.rule!r}; known rules: {', '.join(RULES)}."
        )
    if dataset.true_distance not in TRUE_DISTANCES:
        raise HashbenchError(
            f"true_distance of dataset {dataset.name!r} is {dataset.true_distance!r}, expected one of "
            f"{', '.join(TRUE_DISTANCES)}."
        )
    dataset.affinity()  # raises if the dataset lacks what its rule needs


def _labels_of(dataset: Dataset, n_dims: int) -> AnyArray:
    if dataset.labels is None or dataset.labels.ndim != n_dims:
        form = "class labels of shape (n,)" if n_dims == 1 else "multi-hot labels of shape (n, n_classes)"
        raise HashbenchError(f"rule {dataset.rule!r} of dataset {dataset.name!r} needs {form}.")
    return dataset.labels


def _same_label(dataset: Dataset, rows: Rows, columns: Rows) -> Affinity:
    labels = _labels_of(dataset, 1)
    return SameLabel(labels[rows], labels[columns])


def _shared_labels(dataset: Dataset, rows: Rows, columns: Rows) -> Affinity:
    labels = _labels_of(dataset, 2)
    return SharedLabels(labels[rows], labels[columns])


def _hierarchy(dataset: Dataset, rows: Rows, columns: Rows) -> Affinity:
    labels, coarse = _labels_of(dataset, 1), dataset.coarse_labels
    if coarse is None:
        raise HashbenchError(f"rule 'hierarchy' of dataset {dataset.name!r} needs superclasses, coarse_labels (n,).")
    return Hierarchy(labels[rows], labels[columns], coarse[rows], coarse[columns])


def _distance(dataset: Dataset, rows: Rows, columns: Rows) -> Affinity:
    features = dataset.features
    if features is None:
        raise HashbenchError(f"rule 'distance' of dataset {dataset.name!r} needs features, and it has images only.")
    if set(dataset.rule_params) != {"squared_thresholds", "levels"}:
        raise HashbenchError(
            f"rule 'distance' of dataset {dataset.name!r} needs squared_thresholds and levels, "
            f"got {sorted(dataset.rule_params)}."
        )
    return Distance(features[rows], features[columns], **dataset.rule_params)


def _neighbours(dataset: Dataset, rows: Rows, columns: Rows) -> Affinity:
    from scipy.sparse import csr_array

    nearest, n_query, n_database = dataset.neighbours, len(dataset.query), len(dataset.database)
    if nearest is None or nearest.ndim != 2 or nearest.dtype != np.int64 or len(nearest) != n_query or not nearest.size:
        form = "none" if nearest is None else f"{nearest.dtype} of shape {nearest.shape}"
        raise HashbenchError(
            f"rule 'neighbours' of dataset {dataset.name!r} needs neighbours, int64 of shape ({n_query}, k), "
            f"got {form}."
        )
    is_listed = nearest >= 0
    is_filled = (nearest >= -1).all() and is_listed[:, : dataset.n_neighbours].all()
    if not is_filled or nearest.max() >= n_database:
        raise HashbenchError(
            f"neighbours of dataset {dataset.name!r} name positions {nearest.min()} to {nearest.max()}, "
            f"but there are {n_database} database items."
        )
    in_order = np.sort(nearest, axis=1)
    is_repeated = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    repeated = np.flatnonzero(is_repeated.any(axis=1))
    if repeated.size:
        raise HashbenchError(
            f"neighbours of dataset {dataset.name!r} name an item twice for {repeated.size} queries, "
            f"first query {repeated[0]}."
        )
    starts = np.concatenate([[0], np.cumsum(is_listed.sum(axis=1))])
    ones = np.ones(starts[-1], dtype=np.int8)
    affinity = Explicit(csr_array((ones, nearest[is_listed], starts), shape=(n_query, n_database)))
    affinity.true_distance, affinity.notes = dataset.true_distance, dataset.notes
    return affinity


def _explicit(dataset: Dataset, rows: Rows, columns: Rows) -> Affinity:
    expected = len(dataset.query), len(dataset.database)
    shape = None if dataset.matrix is None else dataset.matrix.shape
    if shape != expected:
        raise HashbenchError(
            f"rule 'explicit' of dataset {dataset.name!r} needs a matrix of shape {expected} "
            f"(queries, database), got {shape}."
        )
    affinity = Explicit(dataset.matrix)
    refuse_fractions(affinity.levels, f"dataset {dataset.name!r}")
    return affinity


# The affinity rules by name: each checks that a dataset has what it needs, and rates the items of some rows (first)
# for those of others.
RULES: dict[str, Callable[[Dataset, Rows, Rows], Affinity]] = {
    "same-label": _same_label,
    "shared-labels": _shared_labels,
    "hierarchy": _hierarchy,
    "distance": _distance,
    "neighbours": _neighbours,
    "explicit": _explicit,
}
RULES_OF_QUERIES = ("neighbours", "explicit")  # these do not rate pairs of training items
