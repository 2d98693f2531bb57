"""The counting loops of `kernels` in NumPy, for where numba is missing: the same arguments and the same counts."""

import numpy as np

from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, LevelArray, WordArray
from hashbench.bits import to_words


def count_ranges(
    query: ByteArray, start: IntArray, stop: IntArray, database: ByteArray, weights: IntArray, counts: IntArray
) -> None:
    """Count distances where the items of each level and above are one range of rows, inside that of the level below."""
    words = _words(database)
    for row, code in enumerate(to_words(query)):
        distance = _distances(code, words)
        counts[row, 0] += _tally(distance, weights, counts.shape[2])
        for level, (first, last) in enumerate(zip(start[:, row], stop[:, row], strict=True)):
            inside = _tally(distance[first:last], weights[first:last], counts.shape[2])
            counts[row, level] -= inside
            counts[row, level + 1] += inside


def count_runs(
    query: ByteArray, query_masks: ByteArray, database: ByteArray, masks: ByteArray, edges: IntArray, counts: IntArray
) -> None:
    """Count distances where runs of rows have equal labels, and the level is the number shared with the query's."""
    words, mask_words, wanted = _words(database[:, : edges[-1]]), _words(masks), to_words(query_masks)
    for row, code in enumerate(to_words(query)):
        shared = np.repeat(_shared(wanted[row], mask_words), np.diff(edges))
        _add_levels(_distances(code, words), shared, np.empty(0, np.int64), counts[row])


def count_shared(
    query: ByteArray,
    query_masks: ByteArray,
    database: ByteArray,
    masks: ByteArray,
    first: int,
    weights: IntArray,
    counts: IntArray,
) -> None:
    """Count distances of rows from ``first`` on, where the level is the number of labels shared, row by row."""
    words, mask_words, wanted = _words(database[:, first:]), _words(masks[:, first:]), to_words(query_masks)
    for row, code in enumerate(to_words(query)):
        shared = _shared(wanted[row], mask_words)
        _add_levels(_distances(code, words), shared, weights[first:], counts[row])


def count_levels(query: ByteArray, database: ByteArray, levels: LevelArray, counts: IntArray) -> None:
    """Count distances where ``levels``, (n_queries, n_rows), holds the index of each pair's level."""
    words = _words(database)
    for row, code in enumerate(to_words(query)):
        _add_levels(_distances(code, words), levels[row].astype(np.int64), np.empty(0, np.int64), counts[row])


def largest_buckets(query: ByteArray, codes: ByteArray, sizes: IntArray, largest: IntArray) -> None:
    """Raise ``largest``, (n_queries, n_groups), to the largest of ``sizes`` among the codes at each distance."""
    words = _words(codes)
    for row, code in enumerate(to_words(query)):
        np.maximum.at(largest[row], _distances(code, words), sizes)


def collect(
    query: ByteArray,
    database: ByteArray,
    first_row: int,
    radius: IntArray,
    fill: IntArray,
    index: IntArray,
    hamming: AnyArray,
) -> None:
    """Put rows within each query's ``radius``, and their distances, into the outputs at ``fill``, which is advanced."""
    words = _words(database)
    for row, code in enumerate(to_words(query)):
        distance = _distances(code, words)
        near = np.flatnonzero(distance <= radius[row])
        places = slice(fill[row], fill[row] + len(near))
        index[places], hamming[places] = first_row + near, distance[near]
        fill[row] = places.stop


def all_cells(query: ByteArray, database: ByteArray, levels: LevelArray, n_groups: int, out: IntArray) -> None:
    """Put level * n_groups + distance of all pairs into ``out``, (n_queries, n_rows); ``levels`` are indices."""
    words = _words(database)
    for row, code in enumerate(to_words(query)):
        out[row] = levels[row].astype(np.int64) * n_groups + _distances(code, words)


def add_cells(cells: IntArray, tables: FloatArray, sums: FloatArray) -> None:
    """Add each query's table, (n_cells + 1, n_metrics), at the cells of the items, -1 for the last cell."""
    for table, of_query in zip(tables, cells, strict=True):
        sums += table[of_query]


def _words(columns: ByteArray) -> WordArray:
    """Return codes, byte by byte, (n_bytes, n_rows), as words, (n_words, n_rows): an eighth of the steps."""
    return np.ascontiguousarray(to_words(columns.T).T)


def _distances(code: WordArray, database: WordArray) -> IntArray:
    """Compute the Hamming distance of a code, (n_words,), to each row of a database, (n_words, n_rows)."""
    return np.asarray(np.bitwise_count(code[:, None] ^ database).sum(axis=0, dtype=np.int64))


def _shared(mask: WordArray, masks: WordArray) -> IntArray:
    """Count the labels that a mask, (n_mask_words,), shares with each of some, (n_mask_words, n_rows)."""
    return np.asarray(np.bitwise_count(mask[:, None] & masks).sum(axis=0, dtype=np.int64))


def _add_levels(distance: IntArray, level: IntArray, weights: IntArray, counts: IntArray) -> None:
    """Add rows of these distances and levels to the ``counts`` of one query, (n_levels, n_groups)."""
    counts += _tally(level * counts.shape[1] + distance, weights, counts.size).reshape(counts.shape)


def _tally(cells: IntArray, weights: IntArray, n_cells: int) -> IntArray:
    """Count the cells, each as often as its weight says; without weights, once."""
    if not weights.size:
        return np.bincount(cells, minlength=n_cells)
    return np.bincount(cells, weights, n_cells).astype(np.int64)  # whole numbers, exact below 2**53
