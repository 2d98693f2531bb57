"""Distances of features: fast where rounding has no say, exact where it would."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hashbench._parallel import compiled
from hashbench._typing import AnyArray, FloatArray, IntArray
from hashbench.errors import HashbenchError

COSINE_DECIMALS = 12  # what differs by less is rounding noise, and ties


def squared_distance_percentiles(features: npt.ArrayLike, percentiles: Sequence[float]) -> list[float]:
    """Find percentiles of the squared Euclidean distances between all pairs of items (n_samples, n_features).

    For each percentage, above 0 and at most 100, it is the smallest squared distance that at least so many pairs do not
    exceed: a distance that occurs, so percentiles of squared and of plain distances name the same pairs.
    """
    items = np.asarray(features, dtype=np.float64)
    if items.ndim != 2 or len(items) < 2:
        raise HashbenchError(f"features have shape {items.shape}; distances need two items or more, (n, n_features).")
    if not np.isfinite(items).all():
        raise HashbenchError(f"features hold {int((~np.isfinite(items)).sum())} values that are not finite.")
    if not all(0 < percentile <= 100 for percentile in percentiles):
        raise HashbenchError(f"percentiles are above 0 and at most 100, got {list(percentiles)}.")
    squared, error = fast_squared_distances(items, items)
    row, column = np.triu_indices(len(items), k=1)
    squared = squared[row, column]
    found = []
    for percentile in percentiles:
        rank = max(int(np.ceil(percentile / 100 * squared.size)), 1) - 1
        near = np.partition(squared, rank)[rank]
        open_pairs = np.flatnonzero(np.abs(squared - near) <= 2 * error)
        exact = np.sort(exact_at(items, items, row[open_pairs], column[open_pairs]))
        n_below = int((squared < near - 2 * error).sum())
        found.append(float(exact[rank - n_below]))
    return found


def fast_squared_distances(ours: FloatArray, theirs: FloatArray) -> tuple[FloatArray, float]:
    """Compute all squared distances, (n_ours, n_theirs), by a matrix product, and a bound on their rounding error."""
    our_norms, their_norms = (ours**2).sum(axis=1), (theirs**2).sum(axis=1)
    squared = our_norms[:, None] + their_norms[None, :] - 2 * ours @ theirs.T
    scale = our_norms.max(initial=0) + their_norms.max(initial=0)
    return squared, 4 * (ours.shape[1] + 8) * np.finfo(np.float64).eps * float(scale)


def exact_at(
    ours: AnyArray, theirs: AnyArray, row: IntArray, column: IntArray, distance: str = "euclidean"
) -> FloatArray:
    """Compute distances of some pairs in float64, added feature by feature, so the same on every machine.

    The smaller, the nearer: ``euclidean`` gives squared distances, ``cosine`` 1 - cosine (of items that are not zero)
    to 12 decimals, so that items of one direction tie, ``dot`` minus the inner product.
    """
    total = np.empty(len(row))
    _sum_by_feature(ours, theirs, row, column, distance == "euclidean", total)
    if distance == "euclidean":
        return total
    if distance == "dot":
        return -total
    ours_squared, theirs_squared = np.empty((2, len(row)))
    _sum_by_feature(ours, ours, row, row, False, ours_squared)
    _sum_by_feature(theirs, theirs, column, column, False, theirs_squared)
    return np.asarray(np.round(1 - total / np.sqrt(ours_squared) / np.sqrt(theirs_squared), COSINE_DECIMALS))


@compiled
def _sum_by_feature(ours, theirs, row, column, is_difference, out):  # type: ignore[no-untyped-def]
    """Sum squared differences, or else products, of pairs of rows in index order; two at a time, which is quicker."""
    for first in range(0, len(row), 2):
        second = min(first + 1, len(row) - 1)
        a, b, c, d = ours[row[first]], theirs[column[first]], ours[row[second]], theirs[column[second]]
        one, other = 0.0, 0.0
        for i in range(len(a)):
            if is_difference:
                x, y = np.float64(a[i]) - np.float64(b[i]), np.float64(c[i]) - np.float64(d[i])
                one += x * x
                other += y * y
            else:
                one += np.float64(a[i]) * np.float64(b[i])
                other += np.float64(c[i]) * np.float64(d[i])
        out[first], out[second] = one, other
