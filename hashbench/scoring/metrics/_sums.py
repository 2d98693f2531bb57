"""Sums that the closed forms over ties share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import HashbenchError
from hashbench.scoring.histogram import TieHistogram, once_per_histogram
from hashbench.scoring.metrics import _loops
from hashbench.scoring.metrics._grammar import Scores

HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 65))])  # harmonic numbers H(0) to H(64)
SQUARES = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 65) ** 2)])  # sums of 1/t^2 up to rank 0 to 64


def harmonic_range(before: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Sum 1/t over the ranks t of a tie, ``before + 1`` to ``before + size``.

    The absolute error is some 1e-15 near the top, the relative error some 1e-15 from rank 65 on at any depth: there
    the expansion of the digamma function around half-integers,
    ``psi(x + 1/2) = ln x + 1/(24 x^2) - 7/(960 x^4) + 31/(8064 x^6) - ...``, loses nothing to cancellation and needs
    no table as long as the database.

    >>> harmonic_range(1, 2)  # 1/2 + 1/3
    array(0.83333333)
    """
    first, count = np.asarray(before, dtype=np.int64), np.asarray(size, dtype=np.int64)
    if first.shape != count.shape:
        first, count = np.broadcast_arrays(first, count)
    sums = np.empty(first.size)
    _loops.harmonic(first.ravel(), count.ravel(), HARMONIC, sums)
    return sums.reshape(first.shape)


def _shared_by_threads(maxsize: int) -> Callable[[Callable[..., FloatArray]], Callable[..., FloatArray]]:
    """Cache the last tables of a function, which are as long as the database; one thread at a time computes one."""

    def decorate(function: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
        cached, one_at_a_time = lru_cache(maxsize)(function), Lock()

        @wraps(function)
        def table(*arguments: int, **options: int) -> FloatArray:
            with one_at_a_time:
                return cached(*arguments, **options)

        return table

    return decorate


@_shared_by_threads(maxsize=2)
def harmonic_sums(n_ranks: int) -> FloatArray:
    """Compute the harmonic numbers H(0) to H(n_ranks)."""
    return np.append(0.0, np.cumsum(1 / np.arange(1, n_ranks + 1)))


@_shared_by_threads(maxsize=1)
def weighted_discount_sums(n_ranks: int) -> FloatArray:
    """Compute the sums of rank times discount over the first n ranks, n = 0 to ``n_ranks``."""
    ranks = np.arange(1, n_ranks + 1)
    return np.append(0.0, np.cumsum(ranks / np.log2(ranks + 1)))


@_shared_by_threads(maxsize=2)
def discount_sums(n_ranks: int, power: int = 1) -> FloatArray:
    """Compute the sums of discounts 1/log2(t + 1), or of a power, over the first n ranks, n = 0 to ``n_ranks``."""
    sums = np.zeros(n_ranks + 1)
    width = 1024  # sums in rows, then of rows, then of blocks: rounding grows with the depth, not with n
    for start in range(0, n_ranks, width * width):
        last = min(start + width * width, n_ranks)
        discounts = np.zeros((-(-(last - start) // width), width))
        discounts.ravel()[: last - start] = 1 / np.log2(np.arange(start + 2, last + 2)) ** power
        discounts = np.cumsum(discounts, axis=1)
        discounts[1:] += np.cumsum(discounts[:-1, -1])[:, None]
        sums[start + 1 : last + 1] = sums[start] + discounts.ravel()[: last - start]
    return sums


def sum_groups(parts: FloatArray) -> FloatArray:
    """Sum the groups of each query: (n_parts, n_queries, n_groups) to (n_parts, n_queries)."""
    sums = np.empty(parts.shape[:2])
    _loops.sum_groups(parts, sums)
    return sums


def rank_variance(counts: npt.ArrayLike, levels: FloatArray) -> FloatArray:
    """Sum the variances over ties of the ranks' sum, weighted by level; counts (n_queries, n_levels, n_groups)."""
    numbers = np.asarray(counts, dtype=np.float64)
    size = numbers.sum(axis=1)  # (n_queries, n_groups)
    mean = np.einsum("l,qlg->qg", levels, numbers) / np.maximum(size, 1)
    of_levels = sum(numbers[:, i] * (level - mean) ** 2 for i, level in enumerate(levels))
    (sums,) = sum_groups((of_levels * size * (size + 1) / 12)[None])
    return np.asarray(sums)


def check_whole(histogram: TieHistogram, name: str) -> None:
    """Refuse a list out of a database of unknown size, for the metric called ``name``."""
    if histogram.unretrieved is not None:
        raise HashbenchError(
            f"{name} counts the items below each relevant one to the end of the database, which a run does not hold. "
            "Leave it out."
        )


class Sums(NamedTuple):
    """A sum over items of each query: expected, least and most over tie orders, and its variance."""

    mean: FloatArray
    low: FloatArray | IntArray
    high: FloatArray | IntArray
    variance: FloatArray

    def over(self, divisor: IntArray | FloatArray) -> Scores:
        """Divide by a number of each query."""
        tie_sd = np.sqrt(np.maximum(self.variance, 0))  # rounding may leave it below 0
        return Scores(self.mean / divisor, self.low / divisor, self.high / divisor, tie_sd / divisor)


@dataclass(frozen=True)
class Cut:
    """The tie group that a cutoff k falls into; all arrays have shape (n_queries,).

    A cutoff at or beyond the end of the ranking falls into an empty group after the last.
    """

    before: IntArray  # items ranked before the group
    rel_before: IntArray  # relevant items ranked before the group
    size: IntArray  # items in the group
    n_rel: IntArray  # relevant items in the group
    slots: IntArray  # places of the group above the cutoff, 0 <= slots < size
    group: IntArray  # index of the group

    @property
    def fewest(self) -> IntArray:
        """The smallest number of relevant items that a tie order can place above the cutoff."""
        return np.maximum(0, self.slots - (self.size - self.n_rel))

    @property
    def most(self) -> IntArray:
        """The largest number of relevant items that a tie order can place above the cutoff."""
        return np.minimum(self.slots, self.n_rel)

    @property
    def expected(self) -> FloatArray:
        """The expected number of relevant items above the cutoff."""
        return np.asarray(self.slots * (self.n_rel / np.maximum(self.size, 1)))

    @property
    def variance(self) -> FloatArray:
        """The variance of the number of relevant items above the cutoff: hypergeometric."""
        size = np.maximum(self.size, 2)
        share = self.n_rel / size
        return np.asarray(self.slots * share * (1 - share) * ((size - self.slots) / (size - 1)))

    @property
    def places(self) -> FloatArray:
        """The sum over the places k above the cutoff of k - (n + 1) / 2, over n^2 - 1: the slope of a count."""
        size = np.maximum(self.size, 2).astype(np.float64)
        return np.asarray(-self.slots * (size - self.slots) / (2 * (size * size - 1)))

    def in_group(self, slope: FloatArray, n_groups: int) -> FloatArray:
        """Put a number of each query at its cut group: (n_queries,) to (n_queries, n_groups), 0 elsewhere."""
        slopes = np.zeros((len(slope), n_groups))
        rows = np.flatnonzero(self.group < n_groups)
        slopes[rows, self.group[rows]] = slope[rows]
        return slopes

    def share_of(self, divisor: IntArray) -> Scores:
        """Divide the number of relevant items above the cutoff: expected, fewest, most, and its deviation."""
        low, high = self.rel_before + self.fewest, self.rel_before + self.most
        return Sums(self.rel_before + self.expected, low, high, self.variance).over(divisor)


@once_per_histogram
def cut_at(histogram: TieHistogram, k: int | None) -> Cut:
    """Find the tie group that a cutoff of k items falls into; None is the number of each query's relevant items."""
    cutoff = np.minimum(histogram.n_relevant if k is None else k, histogram.n_database)
    parts = np.empty((5, histogram.n_queries), dtype=np.int64)
    _loops.cut_groups(histogram.size, histogram.n_rel, cutoff, parts)
    before, rel_before, size, n_rel, group = parts
    return Cut(before, rel_before, size, n_rel, cutoff - before, group)


def n_slots(histogram: TieHistogram, k: int) -> IntArray:
    """Return the divisor of a mean over the first k: k, cut to the database, but not to a list out of one."""
    return np.minimum(k, histogram.n_database) if histogram.unretrieved is None else np.asarray(k)
