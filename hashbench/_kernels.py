"""Counting loops: XOR, popcount and tally, compiled by numba where it is installed.

Database words are passed word-major, (n_words, n_rows), so that each pass reads memory in order.
Counts are added to, never reset: database blocks simply follow each other. Every compiled kernel
has the same signature as its NumPy version, which is the oracle of the tests and the fallback.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import numba
    from numba.core import types
    from numba.core.extending import intrinsic

    HAVE_NUMBA = True
except ImportError:  # pragma: no cover - exercised by a test in a process without numba
    HAVE_NUMBA = False

Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]

_CHUNK = 2048  # rows whose distances are held at once, in the first-level cache
_TILE = 16384  # rows that all queries of a call pass over before the next, in the second-level cache
_LANES = 4  # counters side by side, since equal distances in a row would wait for each other


def _compiled(function: Any) -> Any:
    """Compile a function that runs without the interpreter lock; leave it as it is without numba."""
    return numba.njit(nogil=True, cache=True)(function) if HAVE_NUMBA else function


def numpy_count_levels(query: Words, database: Words, levels: Any, weights: Counts, counts: Counts) -> None:
    """Count database rows per query, level and Hamming distance.

    Parameters
    ----------
    query : ndarray of shape (n_queries, n_words), uint64
        Codes of the queries.
    database : ndarray of shape (n_words, n_rows), uint64
        Codes of the database rows, word-major.
    levels : ndarray of shape (n_queries, n_rows), integer
        The index of each pair's level.
    weights : ndarray of shape (n_rows,) or (0,), int64
        How many items each row stands for; empty for one each.
    counts : ndarray of shape (n_queries, n_levels, n_groups), int64
        Added to in place.
    """
    _, n_levels, n_groups = counts.shape
    for row in range(len(query)):
        distances = np.bitwise_count(query[row, :, None] ^ database).sum(axis=0, dtype=np.int64)
        cells = levels[row].astype(np.int64) * n_groups + distances
        if weights.size:
            tally = np.zeros(n_levels * n_groups, dtype=np.int64)
            np.add.at(tally, cells, weights)
        else:
            tally = np.bincount(cells, minlength=n_levels * n_groups)
        counts[row] += tally.reshape(n_levels, n_groups)


def numpy_count_ranges(
    query: Words, start: Counts, stop: Counts, database: Words, weights: Counts, counts: Counts
) -> None:
    """Count as `numpy_count_levels` where the relevant rows of each query are one range.

    Parameters
    ----------
    query, database, weights, counts : ndarray
        As there, with two levels.
    start, stop : ndarray of shape (n_queries,), int64
        Rows ``start`` to ``stop`` (excluded) have level 1.
    """
    rows = np.arange(database.shape[1])
    levels = (start[:, None] <= rows) & (rows < stop[:, None])
    numpy_count_levels(query, database, levels, weights, counts)


def numpy_count_shared(
    query: Words, query_masks: Words, database: Words, masks: Words, weights: Counts, counts: Counts
) -> None:
    """Count as `numpy_count_levels` where the level is the number of common mask bits.

    Parameters
    ----------
    query, database, weights, counts : ndarray
        As there.
    query_masks : ndarray of shape (n_queries, n_mask_words), uint64
        Labels of the queries, one bit each.
    masks : ndarray of shape (n_mask_words, n_rows), uint64
        Labels of the database rows, word-major.
    """
    levels = np.empty((len(query), database.shape[1]), dtype=np.int64)
    for row in range(len(query)):
        levels[row] = np.bitwise_count(query_masks[row, :, None] & masks).sum(axis=0, dtype=np.int64)
    numpy_count_levels(query, database, levels, weights, counts)


if HAVE_NUMBA:

    def _emit_popcount(typingctx: Any, word: Any) -> Any:  # numba looks the parameters up by these names
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.uint64(types.uint64), generate

    _popcount: Any = intrinsic(_emit_popcount)

    @_compiled
    def _distances(query, database, first, last, out):  # type: ignore[no-untyped-def]
        """Put the Hamming distances of rows first..last into ``out``."""
        for i in range(last - first):
            out[i] = _popcount(query[0] ^ database[0, first + i])
        for word in range(1, len(query)):
            for i in range(last - first):
                out[i] += _popcount(query[word] ^ database[word, first + i])

    @_compiled
    def _tally(cells, n_cells, weights, first, lanes):  # type: ignore[no-untyped-def]
        """Count the cells, neighbours in different lanes."""
        n_even = n_cells - n_cells % _LANES
        if weights.size:
            for i in range(0, n_even, _LANES):
                lanes[0, cells[i]] += weights[first + i]
                lanes[1, cells[i + 1]] += weights[first + i + 1]
                lanes[2, cells[i + 2]] += weights[first + i + 2]
                lanes[3, cells[i + 3]] += weights[first + i + 3]
            for i in range(n_even, n_cells):
                lanes[0, cells[i]] += weights[first + i]
        else:
            for i in range(0, n_even, _LANES):
                lanes[0, cells[i]] += 1
                lanes[1, cells[i + 1]] += 1
                lanes[2, cells[i + 2]] += 1
                lanes[3, cells[i + 3]] += 1
            for i in range(n_even, n_cells):
                lanes[0, cells[i]] += 1

    @_compiled
    def _flush(lanes, counts):  # type: ignore[no-untyped-def]
        """Move the lanes' sums, a flat (n_levels x n_groups) each, into ``counts``."""
        n_groups = counts.shape[1]
        for level in range(counts.shape[0]):
            for group in range(n_groups):
                cell = level * n_groups + group
                total = lanes[0, cell] + lanes[1, cell] + lanes[2, cell] + lanes[3, cell]
                counts[level, group] += total
        lanes[:] = 0

    @_compiled
    def _numba_count_ranges(query, start, stop, database, weights, counts):  # type: ignore[no-untyped-def]
        n_rows = database.shape[1]
        cells = np.empty(_CHUNK, np.uint16)
        lanes = np.zeros((_LANES, counts.shape[2]), np.int64)
        edges = np.empty(4, np.int64)
        for tile in range(0, n_rows, _TILE):
            end = min(tile + _TILE, n_rows)
            for row in range(len(query)):
                edges[0], edges[3] = tile, end
                edges[1] = min(max(start[row], tile), end)
                edges[2] = min(max(stop[row], tile), end)
                for part in range(3):  # before, inside and after the range
                    if edges[part] == edges[part + 1]:
                        continue
                    for first in range(edges[part], edges[part + 1], _CHUNK):
                        last = min(first + _CHUNK, edges[part + 1])
                        _distances(query[row], database, first, last, cells)
                        _tally(cells, last - first, weights, first, lanes)
                    level = 1 if part == 1 else 0
                    _flush(lanes, counts[row, level : level + 1])

    @_compiled
    def _numba_count_shared(query, query_masks, database, masks, weights, counts):  # type: ignore[no-untyped-def]
        n_rows, n_groups = database.shape[1], counts.shape[2]
        cells = np.empty(_CHUNK, np.uint16)
        shared = np.empty(_CHUNK, np.uint16)
        wide = np.empty(_CHUNK, np.int64)
        lanes = np.zeros((_LANES, counts.shape[1] * n_groups), np.int64)
        for tile in range(0, n_rows, _TILE):
            end = min(tile + _TILE, n_rows)
            for row in range(len(query)):
                for first in range(tile, end, _CHUNK):
                    last = min(first + _CHUNK, end)
                    _distances(query[row], database, first, last, cells)
                    for i in range(last - first):
                        shared[i] = _popcount(query_masks[row, 0] & masks[0, first + i])
                    for word in range(1, masks.shape[0]):
                        for i in range(last - first):
                            shared[i] += _popcount(query_masks[row, word] & masks[word, first + i])
                    for i in range(last - first):
                        wide[i] = np.int64(shared[i]) * n_groups + np.int64(cells[i])
                    _tally(wide, last - first, weights, first, lanes)
                _flush(lanes, counts[row])

    @_compiled
    def _numba_count_levels(query, database, levels, weights, counts):  # type: ignore[no-untyped-def]
        n_rows, n_groups = database.shape[1], counts.shape[2]
        cells = np.empty(_CHUNK, np.uint16)
        wide = np.empty(_CHUNK, np.int64)
        lanes = np.zeros((_LANES, counts.shape[1] * n_groups), np.int64)
        for row in range(len(query)):
            for first in range(0, n_rows, _CHUNK):
                last = min(first + _CHUNK, n_rows)
                _distances(query[row], database, first, last, cells)
                for i in range(last - first):
                    wide[i] = np.int64(levels[row, first + i]) * n_groups + np.int64(cells[i])
                _tally(wide, last - first, weights, first, lanes)
            _flush(lanes, counts[row])

    count_ranges = _numba_count_ranges
    count_shared = _numba_count_shared
    count_levels = _numba_count_levels
else:  # pragma: no cover
    count_ranges = numpy_count_ranges
    count_shared = numpy_count_shared
    count_levels = numpy_count_levels


@_compiled
def hypergeometric_ratio(  # type: ignore[no-untyped-def]
    size, n_rel, slots, rel_before, constant, per_one, per_pair, out
):
    """Average (constant + per_one m + per_pair m (m - 1)) / (rel_before + m) over a hypergeometric m.

    Parameters
    ----------
    size, n_rel, slots : ndarray of shape (n_queries,), int64
        m is the number of relevant ones when ``slots`` of ``size`` items are drawn, ``n_rel`` of
        which are relevant.
    rel_before : ndarray of shape (n_queries,), int64
        Added to m in the divisor; 0 / 0 counts as 0.
    constant, per_one, per_pair : ndarray of shape (n_queries,), float64
        Coefficients of the numerator.
    out : ndarray of shape (n_queries,), float64
        Filled with the averages.

    Notes
    -----
    Probabilities are built by their ratios from the mode outward, so nothing over- or underflows;
    terms below 1e-19 of the largest are left out.
    """
    for q in range(len(size)):
        n, r, s, c = size[q], n_rel[q], slots[q], rel_before[q]
        fewest, most = max(0, s - (n - r)), min(s, r)
        mode = min(max(((s + 1) * (r + 1)) // (n + 2), fewest), most)
        weight_sum, total = 0.0, 0.0
        for step in (1, -1):
            weight, m = 1.0, mode
            while fewest <= m <= most and weight > 1e-19:
                if m != mode or step == 1:
                    weight_sum += weight
                    if c + m > 0:
                        numerator = constant[q] + per_one[q] * m + per_pair[q] * m * (m - 1)
                        total += weight * numerator / (c + m)
                if step == 1:
                    weight *= (r - m) / (m + 1) * (s - m) / (n - r - s + m + 1)
                else:
                    weight *= m / (r - m + 1) * (n - r - s + m) / (s - m + 1)
                m += step
        out[q] = total / weight_sum
