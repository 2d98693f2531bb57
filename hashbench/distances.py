"""Squared Euclidean distances: fast where rounding has no say, exact where it would."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import HashbenchError

_PAIRS = 1 << 14  # whose features are gathered at a time


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


def _exact_squared_distances(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """Squared distances of paired rows, added in index order whatever the machine."""
    total = np.zeros(len(ours))
    for feature in range(ours.shape[1]):
        total += (ours[:, feature] - theirs[:, feature]) ** 2
    return total


def exact_at(ours: FloatArray, theirs: FloatArray, row: IntArray, column: IntArray) -> FloatArray:
    """Compute squared distances of some pairs, added feature by feature, so the same on every machine."""
    total = np.empty(len(row))
    for start in range(0, len(row), _PAIRS):
        few = slice(start, start + _PAIRS)
        total[few] = _exact_squared_distances(ours[row[few]], theirs[column[few]])
    return total
