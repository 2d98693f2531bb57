"""Affinity rules: which level of relevance a (query, item) pair has, a whole number but in some matrices.

Level 0 is irrelevant; binary metrics call level > 0 relevant. Level -1 is ignored: the ranking lacks the item. Levels
are computed block by block, so a (queries x database) matrix is never held whole.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from hashbench._typing import AnyArray, ByteArray, IntArray, LevelArray, Rows, SparseMatrix
from hashbench._validation import (
    are_real,
    as_array,
    as_labels,
    check_few,
    check_levels,
    check_superclasses,
    class_pair,
    is_sparse,
    largest_row_sum,
    list_of_numbers,
    multi_hot,
    real_row_pair,
    summed_csr,
)
from hashbench.bits import pack, to_words
from hashbench.distances import exact_at, fast_squared_distances
from hashbench.errors import HashbenchError, nearest_pair

_ALL = slice(None)
_KEYED = 1 << 24  # levels of an explicit matrix held at a time
_FEW_LABELS = 2048  # of a database, which may have all classes of the queries
_KEY_QUERIES = 64  # queries whose levels tell items apart


class Affinity(ABC):
    """Levels of relevance between queries and database items.

    Attributes
    ----------
    n_queries, n_database : int
        The shape of the matrix this rule stands for.
    notes : sequence of str
        Sentences about labels or neighbours that their owner should read.
    true_distance : str or None
        The distance by which relevance was computed, if it was.
    ignores : bool
        Whether pairs may have level -1, which is none of ``levels``: no ranking has them.
    excludes_self : bool
        Whether queries are the items of the database, in its order, and ignore themselves.

    Examples
    --------
    >>> affinity = SameLabel([0, 1], [0, 1, 1])
    >>> affinity.n_queries, affinity.n_database, affinity.levels.tolist()
    (2, 3, [0, 1])
    """

    n_queries: int
    n_database: int
    notes: Sequence[str] = ()
    true_distance: str | None = None
    ignores: bool = False
    excludes_self: bool = False
    is_read_in_slices: bool = False  # whether labels of the database are read when rows are selected

    @property
    def plain(self) -> "Affinity":
        """The rule itself, without pairs that options ignore."""
        return self

    @property
    @abstractmethod
    def levels(self) -> AnyArray:
        """All levels that can occur, ascending, the first one 0: int64, or float64 if some are not whole."""

    @abstractmethod
    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Compute the levels of one block.

        Parameters
        ----------
        query, database : slice or ndarray of int64
            Rows and columns of the block: a slice with step 1, or row numbers in any order.

        Returns
        -------
        ndarray of shape (rows, columns), int16, or float64 if some levels are not whole
            Levels, each one of ``self.levels``; -1 for a pair that is ignored.
        """

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "Affinity":
        """Return the affinity of some queries to some items.

        Parameters
        ----------
        query, database : slice or ndarray of int64, default=all
            A slice with step 1, or row numbers in any order.

        Returns
        -------
        Affinity
            Of these queries and items only; hashbench's own rules return their own class.
        """
        return _Part(self, query, database)

    def query_keys(self) -> IntArray | None:
        """Return keys of the queries: queries with equal keys have the same level with every item.

        Returns
        -------
        ndarray of shape (n_queries, n_keys), int64, or None
            None if the rule has no such keys.
        """
        return None

    def item_keys(self) -> IntArray:
        """Return keys of the items, by which those of a sample are drawn: equal items have equal keys.

        Returns
        -------
        ndarray of shape (n_database, n_keys), int64
            By default one key, of the levels with some of the queries: each level times a random number of 64 bits.
        """
        queries = np.unique(np.linspace(0, max(self.n_queries - 1, 0), _KEY_QUERIES).astype(np.int64))[: self.n_queries]
        factors = np.random.default_rng(0).integers(-(2**63), 2**63, len(queries))
        levels = self.block(queries, _ALL)
        if are_real(levels):  # as bits, those that differ last: a product with zeros at the end would keep few bits
            return (factors @ (levels + np.float64(0)).view(np.int64).byteswap())[:, None]
        return (factors @ levels.astype(np.int64))[:, None]


def level_indices(levels: AnyArray, block: LevelArray) -> LevelArray:
    """Return levels as indices of ``levels``, and -1 for pairs that are ignored; refuse unlisted fractions."""
    if are_real(levels) or are_real(block):
        index, is_ignored = np.searchsorted(levels[:-1], block), block < 0
        is_unknown = (levels[index] != block) & ~is_ignored
        if is_unknown.any():
            raise unlisted_level(block[is_unknown][0])
        return np.where(is_ignored, -1, index).astype(np.int16)
    if len(levels) == levels[-1] + 1:
        return block
    index = np.full(levels[-1] + 2, -1, dtype=np.int16)
    index[levels] = np.arange(len(levels))
    return np.asarray(index[block])


def unlisted_level(level: Any) -> HashbenchError:
    """Return the error for a level that an affinity computes and does not list."""
    return HashbenchError(
        f"an affinity holds level {level}, which is none of its levels. List all that occur in its attribute levels, "
        "those that are not whole in float64 in both."
    )


class _Part(Affinity):
    """Some rows and columns of an affinity without a ``part`` of its own."""

    def __init__(self, whole: Affinity, query: Rows, database: Rows) -> None:
        self.whole = whole
        self.rows, self.columns = np.arange(whole.n_queries)[query], np.arange(whole.n_database)[database]
        self.n_queries, self.n_database = len(self.rows), len(self.columns)
        self.ignores = whole.ignores

    @property
    def levels(self) -> AnyArray:
        return self.whole.levels

    def block(self, query: Rows, database: Rows) -> LevelArray:
        return self.whole.block(self.rows[query], self.columns[database])

    def query_keys(self) -> IntArray | None:
        keys = self.whole.query_keys()
        return None if keys is None else keys[self.rows]


class SameLabel(Affinity):
    """Level 1 for equal labels, else 0.

    Parameters
    ----------
    query_labels : array of shape (n_queries,), integer or words
        The class of each query.
    database_labels : array of shape (n_database,), integer or words
        The class of each database item.

    Examples
    --------
    >>> SameLabel([0, 1], [0, 1, 1]).block(slice(None), slice(None)).tolist()
    [[1, 0, 0], [0, 1, 1]]
    """

    def __init__(self, query_labels: npt.ArrayLike, database_labels: npt.ArrayLike) -> None:
        self.query_labels, self.database_labels, self.class_names = class_pair(query_labels, database_labels)
        self.n_queries, self.n_database = len(self.query_labels), len(self.database_labels)

    @property
    def levels(self) -> IntArray:
        """Levels 0 and 1."""
        return np.array([0, 1])

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Compare labels; see `Affinity.block`."""
        equal = self.query_labels[query, None] == self.database_labels[None, database]
        return np.asarray(equal, dtype=np.int16)

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "SameLabel":
        """Select labels; see `Affinity.part`."""
        part = copy(self)
        part.query_labels, part.database_labels = self.query_labels[query], self.database_labels[database]
        part.n_queries, part.n_database = len(part.query_labels), len(part.database_labels)
        return part

    def query_keys(self) -> IntArray:
        """Return the label of each query; see `Affinity.query_keys`."""
        return self.query_labels[:, None]

    def item_keys(self) -> IntArray:
        """Return the label of each item; see `Affinity.item_keys`."""
        return self.database_labels[:, None]


class Hierarchy(Affinity):
    """Level 2 for equal classes, 1 for equal superclasses, else 0.

    Parameters
    ----------
    query_labels, database_labels : array of shape (n,), integer or words
        Classes of queries and database items.
    query_coarse, database_coarse : array of shape (n,), integer or words
        Their superclasses; a class lies in one superclass.

    Examples
    --------
    >>> Hierarchy([0], [0, 1, 2], [0], [0, 0, 1]).block(slice(None), slice(None)).tolist()
    [[2, 1, 0]]
    """

    def __init__(
        self,
        query_labels: npt.ArrayLike,
        database_labels: npt.ArrayLike,
        query_coarse: npt.ArrayLike,
        database_coarse: npt.ArrayLike,
    ) -> None:
        self.query_labels, self.database_labels, self.class_names = class_pair(query_labels, database_labels)
        pair = class_pair(query_coarse, database_coarse, "superclasses")
        self.query_coarse, self.database_coarse, self.coarse_names = pair
        self.n_queries, self.n_database = len(self.query_labels), len(self.database_labels)
        if (len(self.query_coarse), len(self.database_coarse)) != (self.n_queries, self.n_database):
            raise HashbenchError(
                f"there are classes for {self.n_queries} queries and {self.n_database} database items, but "
                f"superclasses for {len(self.query_coarse)} and {len(self.database_coarse)}."
            )
        check_superclasses(
            np.concatenate([self.query_labels, self.database_labels]),
            np.concatenate([self.query_coarse, self.database_coarse]),
            self.class_names,
        )

    @property
    def levels(self) -> IntArray:
        """Levels 0, 1 and 2."""
        return np.array([0, 1, 2])

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Compare classes and superclasses; see `Affinity.block`."""
        same_class = self.query_labels[query, None] == self.database_labels[None, database]
        same_superclass = self.query_coarse[query, None] == self.database_coarse[None, database]
        return np.asarray(same_class.astype(np.int16) + same_superclass)

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "Hierarchy":
        """Select classes and superclasses; see `Affinity.part`."""
        selected = copy(self)
        selected.query_labels, selected.database_labels = self.query_labels[query], self.database_labels[database]
        selected.query_coarse, selected.database_coarse = self.query_coarse[query], self.database_coarse[database]
        selected.n_queries, selected.n_database = len(selected.query_labels), len(selected.database_labels)
        return selected

    def query_keys(self) -> IntArray:
        """Return class and superclass of each query; see `Affinity.query_keys`."""
        return np.stack([self.query_labels, self.query_coarse], axis=1)

    def item_keys(self) -> IntArray:
        """Return class and superclass of each item; see `Affinity.item_keys`."""
        return np.stack([self.database_labels, self.database_coarse], axis=1)


class SharedLabels(Affinity):
    """Level = the number of labels that query and item have in common.

    Parameters
    ----------
    query_labels : array of shape (n_queries, n_classes), 0/1
        The labels of each query, multi-hot.
    database_labels : array of shape (n_database, n_classes), 0/1
        The labels of each database item, multi-hot.

    Examples
    --------
    >>> SharedLabels([[1, 1, 0]], [[1, 1, 0], [0, 1, 1], [0, 0, 1]]).block(slice(None), slice(None)).tolist()
    [[2, 1, 0]]
    """

    def __init__(self, query_labels: npt.ArrayLike, database_labels: npt.ArrayLike) -> None:
        self.query_labels = multi_hot(query_labels, "query labels")
        self.database_labels = multi_hot(database_labels, "database labels")
        if self.query_labels.shape[1] != self.database_labels.shape[1]:
            raise HashbenchError(
                f"query labels have {self.query_labels.shape[1]} classes and database labels "
                f"{self.database_labels.shape[1]}; multi-hot labels need the same columns."
            )
        self.n_queries, self.n_database = len(self.query_labels), len(self.database_labels)

    @cached_property
    def levels(self) -> IntArray:
        """Levels 0 to the largest number of labels that a query can share with an item."""
        most = min(largest_row_sum(self.query_labels), largest_row_sum(self.database_labels))
        return check_levels(np.arange(max(most, 1) + 1))

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Count common labels; see `Affinity.block`."""
        query_labels = self.query_labels[query].astype(np.float32)  # a float product runs in BLAS and is exact
        with np.errstate(invalid="ignore"):  # on some processors, BLAS reads past small arrays and sets this flag
            counts = query_labels @ self.database_labels[database].astype(np.float32).T
        return counts.astype(np.int16)

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "SharedLabels":
        """Select labels, and the levels that these can have; see `Affinity.part`."""
        return SharedLabels(self.query_labels[query], self.database_labels[database])

    def query_keys(self) -> IntArray:
        """Pack the labels of each query, 64 per number; see `Affinity.query_keys`."""
        return _packed_labels(self.query_labels)

    def item_keys(self) -> IntArray:
        """Pack the labels of each item, 64 per number; see `Affinity.item_keys`."""
        return _packed_labels(self.database_labels)


def _packed_labels(labels: AnyArray) -> IntArray:
    return to_words(pack(labels.astype(bool))).view(np.int64)


class Distance(Affinity):
    """Level by Euclidean distance: the nearer the item, the higher the level.

    Parameters
    ----------
    query_features : array of shape (n_queries, n_features)
        Features of the queries.
    database_features : array of shape (n_database, n_features)
        Features of the database items.
    squared_thresholds : sequence of float
        Squared Euclidean distances, descending; a pair at or below ``squared_thresholds[i]`` has at
        least level ``levels[i]``.
    levels : sequence of int
        Ascending levels above 0, one for each threshold.

    Notes
    -----
    Where the rounding error of the fast matrix product could change a level, squared distances are summed
    feature by feature in float64, in index order: levels do not depend on the machine.

    Examples
    --------
    >>> Distance([[0.0]], [[0.5], [1.5], [3.0]], [4.0, 1.0], [1, 2]).block(slice(None), slice(None)).tolist()
    [[2, 1, 0]]
    """

    true_distance = "euclidean"

    def __init__(
        self,
        query_features: npt.ArrayLike,
        database_features: npt.ArrayLike,
        squared_thresholds: Sequence[float],
        levels: Sequence[int],
    ) -> None:
        pair = real_row_pair(query_features, database_features, "features", "n_features")
        self.query_features, self.database_features = pair
        levels = list_of_numbers(levels, "levels")
        self.squared_thresholds = thresholds = list_of_numbers(squared_thresholds, "squared thresholds")
        self._levels = check_levels([0, *levels])
        if not len(thresholds) == len(levels) == len(self._levels) - 1 or list(levels) != sorted(levels):
            raise HashbenchError(
                f"a distance rule needs one ascending level above 0 for each threshold, got levels "
                f"{list(levels)} and {len(thresholds)} thresholds."
            )
        if not (np.isfinite(thresholds).all() and (np.diff(thresholds) <= 0).all()):
            raise HashbenchError(f"thresholds must descend as levels rise, and be finite, got {thresholds}.")
        self.n_queries, self.n_database = len(self.query_features), len(self.database_features)

    @property
    def levels(self) -> IntArray:
        """Level 0 and those of the thresholds."""
        return self._levels

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Compare squared distances with the thresholds; see `Affinity.block`."""
        query_features = self.query_features[query].astype(np.float64)
        database_features = self.database_features[database].astype(np.float64)
        squared, error = fast_squared_distances(query_features, database_features)
        for threshold in self.squared_thresholds:
            row, column = np.nonzero(np.abs(squared - threshold) <= error)
            squared[row, column] = exact_at(query_features, database_features, row, column)
        level = np.zeros(squared.shape, dtype=np.int16)
        for threshold, value in zip(self.squared_thresholds, self._levels[1:], strict=True):
            level[squared <= threshold] = value
        return level

    def query_keys(self) -> IntArray:
        """Compute a digest of the features of each query; see `Affinity.query_keys`."""
        return row_digests(self.query_features).view(np.int64)

    def item_keys(self) -> IntArray:
        """Compute a digest of the features of each item; see `Affinity.item_keys`."""
        return row_digests(self.database_features).view(np.int64)

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "Distance":
        """Select features; see `Affinity.part`."""
        levels = self._levels[1:].tolist()
        return Distance(self.query_features[query], self.database_features[database], self.squared_thresholds, levels)


class Explicit(Affinity):
    """Levels read from a matrix.

    Parameters
    ----------
    matrix : array or SciPy sparse matrix of shape (n_queries, n_database)
        Levels, -1 for pairs to ignore; a missing entry of a sparse matrix is level 0. Levels that are not whole
        numbers are gains for NDCG; at most 1,000 of them may differ, since a histogram has a row for each.

    Examples
    --------
    >>> Explicit([[0, 3, 1]]).levels.tolist()
    [0, 1, 3]
    """

    def __init__(self, matrix: Any) -> None:
        self.is_sparse = is_sparse(matrix)
        self.matrix = summed_csr(matrix) if self.is_sparse else as_array(matrix, "affinities")
        if self.matrix.ndim != 2:
            raise HashbenchError(
                f"an affinity matrix has two dimensions, (queries, database), got shape {self.matrix.shape}."
            )
        stored = self.matrix.data if self.is_sparse else self.matrix
        levels = check_levels(stored, may_ignore=True, may_be_real=True)
        self._levels, self.ignores = levels[levels >= 0], bool((levels < 0).any())
        self.n_queries, self.n_database = self.matrix.shape
        check_few(self._levels, "an affinity")
        are_whole = levels.dtype == np.int64
        self._dtype: type[np.generic] = np.int16 if are_whole else np.float64
        if are_whole and self.ignores and np.count_nonzero(stored) == self.n_queries * self.n_database:
            raise HashbenchError(
                "an affinity holds level -1 and no 0, so queries would ignore all items but the relevant ones. Write 0 "
                "for irrelevant pairs, and -1 only for pairs to ignore."
            )

    @property
    def levels(self) -> AnyArray:
        """Level 0 and those that occur in the matrix."""
        return self._levels

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Cut the block out of the matrix; see `Affinity.block`."""
        cut = self._cut(query, database)
        return np.asarray(cut.toarray() if self.is_sparse else cut, dtype=self._dtype)

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "Explicit":
        """Cut the part out of the matrix; its levels stay those of the whole; see `Affinity.part`."""
        part = copy(self)
        part.matrix = self._cut(query, database)
        part.n_queries, part.n_database = part.matrix.shape
        return part

    def query_keys(self) -> IntArray:
        """Compute a digest of the levels of each query; see `Affinity.query_keys`."""
        at_a_time = max(_KEYED // max(self.n_database, 1), 1)
        parts = (slice(first, first + at_a_time) for first in range(0, self.n_queries, at_a_time))
        digests = [row_digests(self.block(part, _ALL)) for part in parts]
        return np.concatenate([*digests, np.zeros((0, 16), dtype=np.uint8)]).view(np.int64)

    def _cut(self, query: Rows, database: Rows) -> Any:
        if isinstance(query, slice) or isinstance(database, slice):
            return self.matrix[query, database]
        return self.matrix[np.ix_(query, database)]


AffinityLike = Affinity | tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike | SparseMatrix  # that `as_affinity` takes


def as_affinity(affinity: Any) -> Affinity:
    """Convert labels ``(query_labels, database_labels)`` or a matrix of levels to an `Affinity`; return one as it is.

    Class labels give `SameLabel`, multi-hot labels `SharedLabels`, a matrix, dense or sparse, gives `Explicit`. Classes
    of queries that no database item has are noted, and refused if nothing is relevant; a `SameLabel` may be a part.
    """
    is_pair = isinstance(affinity, tuple) or (
        isinstance(affinity, list) and all(isinstance(part, np.ndarray) for part in affinity)
    )
    if is_pair:
        if len(affinity) != 2:
            raise HashbenchError(
                "labels must be a pair (query_labels, database_labels), "
                f"got a {type(affinity).__name__} of {len(affinity)}."
            )
        affinity = by_labels(*affinity)
    if isinstance(affinity, SameLabel):
        classes = affinity.query_labels, affinity.database_labels, affinity.class_names
        affinity.notes = _unmatched(*classes, must_match=is_pair)
    if isinstance(affinity, Hierarchy):
        coarse = affinity.query_coarse, affinity.database_coarse
        classes = affinity.query_labels, affinity.database_labels, affinity.class_names
        affinity.notes = [
            *_unmatched(*classes, must_match=not np.intersect1d(*coarse).size),
            *_unmatched(*coarse, affinity.coarse_names, "superclass"),
        ]
    return affinity if isinstance(affinity, Affinity) else Explicit(affinity)


def by_labels(query_labels: npt.ArrayLike, database_labels: npt.ArrayLike) -> SameLabel | SharedLabels:
    """Return the rule that fits class labels or multi-hot labels."""
    query, database = as_labels(query_labels, "query labels"), as_labels(database_labels, "database labels")
    if query.ndim != database.ndim:
        raise HashbenchError(
            f"query labels have shape {query.shape} and database labels {database.shape}; give both as class "
            "labels of shape (n,) or both as multi-hot of shape (n, n_classes)."
        )
    return SameLabel(query, database) if query.ndim == 1 else SharedLabels(query, database)


def _unmatched(
    query: IntArray, database: IntArray, names: Sequence[str], what: str = "class", *, must_match: bool = True
) -> list[str]:
    """Report classes of queries, perhaps given as words, that no database item has; refuse them if one must match."""
    wanted = np.unique(query)
    if np.isin(wanted, database[:_FEW_LABELS]).all():
        return []
    known = np.unique(database)
    unmatched = np.setdiff1d(wanted, known, assume_unique=True)
    if not (unmatched.size and known.size):
        return []
    name, near = str(unmatched[0]), f"; the database has {known[0]}"
    advice = f"Number the {what}es of both in the same way"
    if names:
        word, other = nearest_pair(*([names[number] for number in numbers] for numbers in (unmatched, known)))
        name, near = repr(word), f"; the nearest there is {other!r}" if other else ""
        advice = f"Write the same {what} as the same word"
    if must_match and len(unmatched) == len(wanted):
        raise HashbenchError(f"no {what} of the queries is a {what} of the database, such as {name}{near}. {advice}.")
    verb = "occurs" if len(unmatched) == 1 else "occur"
    return [
        f"{len(unmatched):,} of the {len(wanted):,} {what}es of queries {verb} nowhere in the database, such as "
        f"{name}{near if names else ''}."
    ]


def row_digests(rows: AnyArray) -> ByteArray:
    """Compute a digest of 16 bytes for each row, (n_rows, 16); rows may have several dimensions."""
    zero = rows.dtype.type(0)  # adding zero turns -0.0 into 0.0
    parts = (blake2b(np.ascontiguousarray(row + zero).data, digest_size=16).digest() for row in rows)
    return np.frombuffer(b"".join(parts), np.uint8).reshape(-1, 16)
