"""Distances of features: fast where rounding does not matter, exact where it does."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hashbench._parallel import compiled_or
from hashbench._typing import AnyArray, FloatArray, IntArray
from hashbench._validation import real_rows
from hashbench.errors import HashbenchError

COSINE_DECIMALS = 12  # smaller differences are rounding noise, and tie


def squared_distance_percentiles(features: npt.ArrayLike, percentiles: Sequence[float]) -> list[float]:
    """Compute percentiles of the squared Euclidean distances between all pairs of items (n_samples, n_features).

    Each, above 0 and at most 100, is the smallest squared distance that so many pairs do not exceed: one that occurs,
    so percentiles of squared and of plain distances name the same pairs.
    """
    items = real_rows(features, "features", "n_features").astype(np.float64)
    if len(items) < 2:
        raise HashbenchError(f"features have shape {items.shape}; distances need two items or more.")
    if not all(0 < percentile <= 100 for percentile in percentiles):
        raise HashbenchError(f"percentiles are above 0 and at most 100, got {list(percentiles)}.")
    squared, error = fast_squared_distances(items, items)
    row, column = np.triu_indices(len(items), k=1)
    squared = squared[row, column]
    values = []
    for percentile in percentiles:
        rank = max(int(np.ceil(percentile / 100 * squared.size)), 1) - 1
        near = np.partition(squared, rank)[rank]
        open_pairs = np.flatnonzero(np.abs(squared - near) <= 2 * error)
        exact = np.sort(exact_at(items, items, row[open_pairs], column[open_pairs]))
        n_below = int((squared < near - 2 * error).sum())
        values.append(float(exact[rank - n_below]))
    return values


def fast_squared_distances(queries: FloatArray, items: FloatArray) -> tuple[FloatArray, float]:
    """Compute all squared distances, (n_queries, n_items), by a matrix product, and a bound on their rounding error."""
    query_norms, item_norms = (queries**2).sum(axis=1), (items**2).sum(axis=1)
    squared = query_norms[:, None] + item_norms[None, :] - 2 * queries @ items.T
    scale = query_norms.max(initial=0) + item_norms.max(initial=0)
    return squared, 4 * (queries.shape[1] + 8) * np.finfo(np.float64).eps * float(scale)


def exact_at(
    queries: AnyArray, items: AnyArray, row: IntArray, column: IntArray, distance: str = "euclidean"
) -> FloatArray:
    """Compute distances of some pairs in float64, added feature by feature, so the same on every machine.

    Smaller is nearer: ``euclidean`` gives squared distances, ``cosine`` 1 - cosine (of items that are not zero) to 12
    decimals, so that items of one direction tie, ``dot`` minus the inner product.
    """
    row, column = np.ascontiguousarray(row), np.ascontiguousarray(column)  # of other layouts it is compiled once more
    total = np.empty(len(row))
    _sum_by_feature(queries, items, row, column, distance == "euclidean", total)
    if distance == "euclidean":
        return total
    if distance == "dot":
        return -total
    query_squares, item_squares = np.empty((2, len(row)))
    _sum_by_feature(queries, queries, row, row, False, query_squares)
    _sum_by_feature(items, items, column, column, False, item_squares)
    return np.asarray(np.round(1 - total / np.sqrt(query_squares) / np.sqrt(item_squares), COSINE_DECIMALS))


def _sum_in_numpy(
    queries: AnyArray, items: AnyArray, row: IntArray, column: IntArray, is_difference: bool, out: FloatArray
) -> None:
    out[:] = 0
    for i in range(queries.shape[1]):
        x, y = queries[row, i].astype(np.float64), items[column, i].astype(np.float64)
        out += (x - y) ** 2 if is_difference else x * y


@compiled_or(_sum_in_numpy, lambda queries, items, row, *others: 1e-8 * len(row) * queries.shape[1])
def _sum_by_feature(queries, items, row, column, is_difference, out):  # type: ignore[no-untyped-def]
    """Sum squared differences, or else products, of pairs of rows in index order; two at a time, which is faster."""
    for first in range(0, len(row), 2):
        second = min(first + 1, len(row) - 1)
        a, b, c, d = queries[row[first]], items[column[first]], queries[row[second]], items[column[second]]
        first_sum, second_sum = 0.0, 0.0
        for i in range(len(a)):
            if is_difference:
                x, y = np.float64(a[i]) - np.float64(b[i]), np.float64(c[i]) - np.float64(d[i])
                first_sum += x * x
                second_sum += y * y
            else:
                first_sum += np.float64(a[i]) * np.float64(b[i])
                second_sum += np.float64(c[i]) * np.float64(d[i])
        out[first], out[second] = first_sum, second_sum
