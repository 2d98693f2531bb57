"""Exact nearest neighbours of queries in a database, by Euclidean or cosine distance or dot product."""

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, Float32Array, FloatArray, IntArray, Progress, silent
from hashbench._validation import check_directions
from hashbench.dataset import TIES
from hashbench.distances import COSINE_DECIMALS, exact_at, fast_squared_distances
from hashbench.errors import HashbenchError

_PAIRS = 1 << 24  # of queries and database items whose distances are in memory at a time
_ROWS = 1 << 14  # of the database that are widened at a time


def find_neighbours(
    query: Float32Array,
    database: Float32Array,
    n_neighbours: int,
    distance: str = "euclidean",
    on_progress: Progress = silent,
    *,
    with_ties: bool = False,
) -> tuple[IntArray, int]:
    """Compute the nearest database items of each query, (n_query, n_neighbours), and the number of tied queries.

    ``distance`` is ``euclidean``, ``cosine`` or ``dot``. Where rounding of a matrix product leaves the order open,
    distances are those of `exact_at`, so the same on every machine; items at equal distance are in database order. A
    query is tied if a further item is as near as its last neighbour. ``with_ties`` lists these items too, and -1 in
    the last columns of queries that have fewer.
    """
    if n_neighbours > len(database):
        raise HashbenchError(
            f"got {len(database):,} database items, {n_neighbours:,} neighbours of each query. Choose fewer neighbours."
        )
    if distance == "cosine":
        for role, items in (("queries", query), ("database items", database)):
            check_directions(items, f"features of {role}", "Leave such items out, or choose another --true-distance")
    counts, columns, n_tied = [], [], 0
    for rows in chunks(0, len(query), max(_PAIRS // len(database), 1)):
        near, error = _fast_distances(query[rows], database, distance)
        last = np.partition(near, n_neighbours - 1, axis=1)[:, n_neighbours - 1]
        row, column = np.nonzero(near <= last[:, None] + 2 * error)  # the neighbours are among these
        exact = exact_at(query[rows], database, row, column, distance)
        order = np.lexsort((column, exact, row))
        row, column, exact = row[order], column[order], exact[order]
        first = np.searchsorted(row, np.arange(len(near)))
        is_neighbour = np.arange(len(row)) - first[row] < n_neighbours
        is_near = exact <= exact[first + n_neighbours - 1][row]
        n_tied += len(np.unique(row[is_near & ~is_neighbour]))
        is_listed = is_near if with_ties else is_neighbour
        counts.append(np.bincount(row[is_listed], minlength=len(near)))
        columns.append(column[is_listed])
        on_progress("queries whose neighbours are found", rows.stop, len(query))
    return padded(np.concatenate(columns), np.concatenate(counts)), n_tied


def padded(columns: IntArray, counts: IntArray) -> IntArray:
    """Lay out the neighbours of all queries, one after the other, as rows that end in -1 where a query has fewer."""
    neighbours = np.full((len(counts), counts.max()), -1)
    neighbours[np.arange(counts.max()) < counts[:, None]] = columns
    return neighbours


def describe_neighbours(n_neighbours: int, distance: str, *, with_ties: bool = False) -> str:
    """Describe the neighbours of a dataset."""
    return f"{n_neighbours} nearest by {distance} distance" + ", and all others as near as the last" * with_ties


def describe_ties(n_tied: int, n_queries: int, *, with_ties: bool = False) -> dict[str, str]:
    """Return what `Dataset.about` has of ties of the last neighbours; nothing if there are none, or they are listed."""
    if not n_tied or with_ties:
        return {}
    return {TIES: f"for {n_tied:,} of {n_queries:,} queries, items left out are as near as the last neighbour"}


def _fast_distances(query: AnyArray, database: Float32Array, distance: str) -> tuple[FloatArray, float]:
    """Compute distances, up to a monotone function per query, and a bound of their rounding error."""
    query = query.astype(np.float64)
    near, error = np.empty((len(query), len(database))), 0.0
    for rows in chunks(0, len(database), _ROWS):
        items = database[rows].astype(np.float64)
        if distance == "cosine":
            near[:, rows], bound = fast_squared_distances(_unit(query), _unit(items))  # 2 (1 - cosine)
            bound += 10.0**-COSINE_DECIMALS
        else:
            near[:, rows], bound = fast_squared_distances(query, items)
        if distance == "dot":
            near[:, rows] -= (query**2).sum(axis=1)[:, None] + (items**2).sum(axis=1)
        error = max(error, bound)
    return near, error


def _unit(items: FloatArray) -> FloatArray:
    return np.asarray(items / np.linalg.norm(items, axis=1, keepdims=True))
