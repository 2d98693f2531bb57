"""Candidates: the database items nearest to each query in Hamming distance, in order of a float distance."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hashbench._typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Candidates:
    """Items to be re-ranked, those of one query after those of another.

    Parameters
    ----------
    starts : ndarray of shape (n_queries + 1,), int64
        Where each query's items begin, and where the last one's end.
    value : ndarray of shape (n_candidates,), float64
        Float distance to the query, ascending in each query.
    level : ndarray of shape (n_candidates,), int16
        Affinity level, ascending among items of one query and one float distance.
    hamming : ndarray of shape (n_candidates,), uint16
        Hamming distance to the query.
    """

    starts: IntArray
    value: FloatArray
    level: np.ndarray
    hamming: np.ndarray

    def part(self, queries: slice) -> Self:
        """Cut some queries out."""
        first, last, _ = queries.indices(len(self.starts) - 1)
        return replace(self, starts=self.starts[first : last + 1])
