"""Queries that have a copy, or nearly one, among other items."""

import hashlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, BoolArray, Float32Array, FloatArray, IntArray

MOST_ITEMS = 1_000_000  # largest dataset that is searched for near-copies
NEAR = 1e-4  # of the median distance between a query and an item: how far apart near-copies may be
_N_SAMPLED = 1_000  # distances whose median is computed
_N_DIRECTIONS = 8
_N_CANDIDATES, _N_COMPARED = 1 << 14, 1 << 10  # items near a query in the first direction, in all directions
_BLOCK = 1 << 14  # rows widened at a time


def row_digests(rows: AnyArray) -> npt.NDArray[np.void]:
    """Compute a digest of 16 bytes for each row."""
    flat = rows.reshape(len(rows), -1)
    parts = b"".join(
        hashlib.blake2b(np.ascontiguousarray(row + row.dtype.type(0)).data, digest_size=16).digest() for row in flat
    )  # adding zero turns -0.0 into 0.0
    return np.frombuffer(parts, dtype=np.dtype((np.void, 16)))


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
    blocks: Iterator[FloatArray] = (
        features[index[rows]].astype(np.float64) @ directions for rows in chunks(0, len(index), _BLOCK)
    )
    return np.concatenate(list(blocks))
