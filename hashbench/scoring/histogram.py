"""The tie histogram: counts of distance per affinity level, all that any ranking metric needs.

It does not depend on the order of the database or inside ties. Counts of database blocks add up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hashbench._typing import AnyArray, FloatArray, IntArray
from hashbench._validation import are_real, read_only
from hashbench.errors import HashbenchError

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Items to be re-ranked: those of the first query, then those of the second, and so on."""

    starts: IntArray  # (n_queries + 1,): where each query's items begin, and where the last one's end
    value: FloatArray  # (n_candidates,): float distance to the query, ascending in each query
    level: np.ndarray  # int16 or float64, ascending among items of one query and one float distance
    hamming: np.ndarray  # uint16, Hamming distance to the query

    def part(self, queries: slice) -> Self:
        """Select some queries."""
        first, last, _ = queries.indices(len(self.starts) - 1)
        return replace(self, starts=self.starts[first : last + 1])


@dataclass(frozen=True, eq=False)
class TieHistogram:
    """Counts of database items per query, affinity level and group of equal distance.

    Parameters
    ----------
    counts : ndarray of shape (n_queries, n_levels, n_groups), int64
        Groups are in order of rank: for Hamming distance ``n_bits + 1`` groups, group d at distance d.
        Empty groups are allowed.
    levels : ndarray of shape (n_levels,), int64 or float64
        Affinity levels, ascending, the first one 0.
    by_radius : bool, default=True
        Whether group d is Hamming distance d; groups of a real-valued ranking are in order only.
    largest_bucket : ndarray of shape (n_queries, n_groups), int64, optional
        The most items that share one code, in each group; only if a metric needs it.
    unretrieved : ndarray of shape (n_queries, n_levels), int64, optional
        Items of each level above 0 that are known, but not in the ranking: no cutoff reaches them. A ranking with
        this is a list out of a database of unknown size; without, it holds the whole database.
    candidates : Candidates, optional
        The items to be re-ranked; only if a metric needs them.

    Examples
    --------
    Histograms of two blocks of a database add up:

    >>> first = TieHistogram.from_pairs([[0, 1]], [[1, 0]], n_bits=1)
    >>> second = TieHistogram.from_pairs([[1]], [[1]], n_bits=1)
    >>> (first + second).counts.tolist()
    [[[0, 1], [1, 1]]]
    """

    counts: IntArray
    levels: AnyArray = field(default_factory=lambda: np.array([0, 1]))
    by_radius: bool = True
    largest_bucket: IntArray | None = None
    unretrieved: IntArray | None = None
    candidates: Candidates | None = None

    @classmethod
    def from_pairs(
        cls,
        distances: npt.ArrayLike,
        levels: npt.ArrayLike,
        n_bits: int,
        level_values: Sequence[float] | None = None,
    ) -> Self:
        """Count explicit (distance, level) pairs.

        Parameters
        ----------
        distances : array of shape (n_queries, n_database), integer
            Hamming distances, 0 to ``n_bits``.
        levels : array of shape (n_queries, n_database)
            Affinity levels; a query ignores items of level -1.
        n_bits : int
            Code length in bits.
        level_values : sequence of float, optional
            The levels to count; by default 0, 1 and those that occur.

        Returns
        -------
        TieHistogram
            One row a query.

        Raises
        ------
        HashbenchError
            If shapes differ, a distance is not a whole number from 0 to ``n_bits``, or a level is below -1.

        Examples
        --------
        >>> TieHistogram.from_pairs([[0, 0, 1]], [[1, 0, 0]], n_bits=1).counts.tolist()
        [[[1, 1], [1, 0]]]
        """
        distance, level = np.asarray(distances), np.asarray(levels)
        if distance.ndim != 2 or distance.shape != level.shape:
            raise HashbenchError(
                f"distances have shape {distance.shape} and levels {level.shape}; both need (n_queries, n_database)."
            )
        if distance.dtype.kind not in "iu" or ((distance < 0) | (distance > n_bits)).any():
            raise HashbenchError(f"distances are {distance.dtype}, expected whole numbers from 0 to {n_bits}.")
        is_left = level != -1
        values = np.union1d([0, 1], level[is_left] if level_values is None else level_values)
        if values[0] < 0:
            raise HashbenchError(f"levels hold {values[0]}, expected 0 or more, or -1 for items that a query ignores.")
        counts = np.zeros((len(distance), len(values), n_bits + 1), dtype=np.int64)
        index = np.searchsorted(values[:-1], level)
        is_unknown = is_left & (values[index] != level)
        if is_unknown.any():
            raise HashbenchError(f"levels hold {level[is_unknown][0]}, which is none of level_values. Add it there.")
        rows = np.broadcast_to(np.arange(len(distance))[:, None], distance.shape)
        np.add.at(counts, (rows[is_left], index[is_left], distance[is_left]), 1)
        return cls(counts, values)

    def __add__(self, other: "TieHistogram") -> "TieHistogram":
        (n_queries, _, n_groups), shape = self.counts.shape, other.counts.shape
        if shape[::2] != (n_queries, n_groups):
            raise HashbenchError(f"histograms of shapes {self.counts.shape} and {shape} do not add up.")
        levels = np.union1d(self.levels, other.levels)  # a part of the database may lack some
        counts = np.zeros((n_queries, len(levels), n_groups), dtype=np.int64)
        for part in (self, other):
            counts[:, np.searchsorted(levels, part.levels)] += part.counts
        return TieHistogram(counts, levels)  # without buckets, which may be in both

    def part(self, queries: slice) -> "TieHistogram":
        """Select some queries."""
        largest, unretrieved = (
            None if array is None else array[queries] for array in (self.largest_bucket, self.unretrieved)
        )
        candidates = None if self.candidates is None else self.candidates.part(queries)
        return TieHistogram(self.counts[queries], self.levels, self.by_radius, largest, unretrieved, candidates)

    def read_only(self) -> "TieHistogram":
        """Return a copy in arrays that cannot be written, for a plug-in; one that forces it changes only its own."""

        def copied(array: Any) -> Any:
            return read_only(array.copy()) if isinstance(array, np.ndarray) else array

        candidates = self.candidates and Candidates(*map(copied, vars(self.candidates).values()))
        counted = {name: copied(getattr(self, name)) for name in _COUNTED}
        shared = replace(self, candidates=candidates, **counted)
        derived = {name: copied(getattr(self, name)) for name in _DERIVED}
        vars(shared).update(derived)  # where cached properties keep their values
        _originals[shared] = original_of(self)
        return shared

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.counts)

    @cached_property
    def size(self) -> IntArray:
        """Items in each tie group, (n_queries, n_groups)."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def n_rel(self) -> IntArray:
        """Relevant items (level > 0) in each tie group, (n_queries, n_groups)."""
        return self.size - self.counts[:, 0]

    @cached_property
    def before(self) -> IntArray:
        """Items ranked before each tie group, (n_queries, n_groups)."""
        return np.cumsum(self.size, axis=1) - self.size

    @cached_property
    def rel_before(self) -> IntArray:
        """Relevant items ranked before each tie group, (n_queries, n_groups)."""
        return np.cumsum(self.n_rel, axis=1) - self.n_rel

    @cached_property
    def n_database(self) -> IntArray:
        """Items in the database, or in the list if the ranking is one, (n_queries,)."""
        return np.asarray(self.size.sum(axis=1))

    @cached_property
    def n_at_level(self) -> IntArray:
        """Items of each level, in the ranking or not, (n_queries, n_levels)."""
        in_ranking = np.asarray(self.counts.sum(axis=2))
        return in_ranking if self.unretrieved is None else in_ranking + self.unretrieved

    @cached_property
    def n_relevant(self) -> IntArray:
        """Relevant items, in the ranking or not, (n_queries,)."""
        return np.asarray(self.n_at_level[:, 1:].sum(axis=1))


_originals: WeakKeyDictionary[TieHistogram, TieHistogram] = WeakKeyDictionary()  # of those that are read-only
_COUNTED = ("counts", "levels", "largest_bucket", "unretrieved")
_DERIVED = tuple(name for name, value in vars(TieHistogram).items() if isinstance(value, cached_property))


def original_of(histogram: TieHistogram) -> TieHistogram:
    """Return the histogram that `read_only` was called for, or this one: loops are compiled for writable arrays."""
    return _originals.get(histogram, histogram)


def levels_of(grades: Sequence[AnyArray], levels: AnyArray) -> AnyArray:
    """Return the levels to count for some queries: all ``levels``, or of real ones, which may be many, their own."""
    return np.union1d([0.0], np.concatenate(grades)) if are_real(levels) else levels


def count_groups(
    level: Sequence[AnyArray] | AnyArray, group: Sequence[AnyArray] | AnyArray, levels: AnyArray
) -> TieHistogram:
    """Count rankings by the level, as an index, and the tie group of each query's items; groups are -1 if left out."""
    n_groups = 1 + max(0, *(int(of_query.max(initial=-1)) for of_query in group))
    counts = np.empty((len(group), len(levels), n_groups), dtype=np.int64)
    for row, (levels_of_query, groups) in enumerate(zip(level, group, strict=True)):
        cells = levels_of_query.astype(np.int64) * n_groups + groups
        counts[row] = np.bincount(cells[groups >= 0], minlength=counts[row].size).reshape(counts[row].shape)
    return TieHistogram(counts, levels, by_radius=False)


def once_per_histogram(function: Callable[..., T]) -> Callable[..., T]:
    """Cache the results of a function of a histogram and hashable arguments for as long as the histogram lives."""
    known: WeakKeyDictionary[TieHistogram, dict[tuple[Any, ...], T]] = WeakKeyDictionary()

    @wraps(function)
    def remembering(histogram: TieHistogram, *arguments: Any) -> T:
        results = known.setdefault(histogram, {})
        if arguments not in results:
            results[arguments] = function(histogram, *arguments)
        return results[arguments]

    return remembering
