"""The loops that count here: in NumPy, and once that pays compiled, those of `kernels`, with the same results."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hashbench._parallel import plain_first
from hashbench._typing import AnyArray, FloatArray, IntArray, LevelArray, WordArray

_SOURCE = str(Path(__file__).with_name("kernels.py"))
_SECONDS = 7e-9  # of the plain loops, for each query and 8 bytes of the database


def count_ranges(
    query: WordArray, start: IntArray, stop: IntArray, database: WordArray, weights: IntArray, counts: IntArray
) -> None:
    """Count distances where the items of each level and above are one range of rows, inside that of the level below."""
    for row, code in enumerate(query):
        distance = _distances(code, database)
        counts[row, 0] += _tally(distance, weights, counts.shape[2])
        for level, (first, last) in enumerate(zip(start[:, row], stop[:, row], strict=True)):
            inside = _tally(distance[first:last], weights[first:last], counts.shape[2])
            counts[row, level] -= inside
            counts[row, level + 1] += inside


def count_runs(
    query: WordArray, query_masks: WordArray, database: WordArray, masks: WordArray, edges: IntArray, counts: IntArray
) -> None:
    """Count distances where runs of rows have equal labels, and the level is the number shared with the query's."""
    for row, code in enumerate(query):
        shared = np.repeat(_shared(query_masks[row], masks), np.diff(edges))
        _add_levels(_distances(code, database[:, : edges[-1]]), shared, np.empty(0, np.int64), counts[row])


def count_shared(
    query: WordArray,
    query_masks: WordArray,
    database: WordArray,
    masks: WordArray,
    first: int,
    weights: IntArray,
    counts: IntArray,
) -> None:
    """Count distances of rows from ``first`` on, where the level is the number of labels shared, row by row."""
    for row, code in enumerate(query):
        shared = _shared(query_masks[row], masks[:, first:])
        _add_levels(_distances(code, database[:, first:]), shared, weights[first:], counts[row])


def count_levels(query: WordArray, database: WordArray, levels: LevelArray, counts: IntArray) -> None:
    """Count distances where ``levels``, (n_queries, n_rows), holds the index of each pair's level."""
    for row, code in enumerate(query):
        _add_levels(_distances(code, database), levels[row].astype(np.int64), np.empty(0, np.int64), counts[row])


def largest_buckets(query: WordArray, codes: WordArray, sizes: IntArray, largest: IntArray) -> None:
    """Raise ``largest``, (n_queries, n_groups), to the largest of ``sizes`` among the codes at each distance."""
    for row, code in enumerate(query):
        np.maximum.at(largest[row], _distances(code, codes), sizes)


def collect(
    query: WordArray,
    database: WordArray,
    first_row: int,
    radius: IntArray,
    fill: IntArray,
    index: IntArray,
    hamming: AnyArray,
) -> None:
    """Put rows within each query's ``radius``, and their distances, into the outputs at ``fill``, which is advanced."""
    for row, code in enumerate(query):
        distance = _distances(code, database)
        near = np.flatnonzero(distance <= radius[row])
        places = slice(fill[row], fill[row] + len(near))
        index[places], hamming[places] = first_row + near, distance[near]
        fill[row] = places.stop


def all_cells(query: WordArray, database: WordArray, levels: LevelArray, n_groups: int, out: IntArray) -> None:
    """Put level * n_groups + distance of all pairs into ``out``, (n_queries, n_rows); ``levels`` are indices."""
    for row, code in enumerate(query):
        out[row] = levels[row].astype(np.int64) * n_groups + _distances(code, database)


def add_cells(cells: IntArray, tables: FloatArray, sums: FloatArray) -> None:
    """Add each query's table, (n_cells + 1, n_metrics), at the cells of the items, -1 for the last cell."""
    for table, of_query in zip(tables, cells, strict=True):
        sums += table[of_query]


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


def _either(plain: Callable[..., Any], n_steps: Callable[..., int]) -> Callable[..., Any]:
    def load() -> Any:
        return getattr(import_module("hashbench.scoring.kernels"), plain.__name__)

    return plain_first(plain, load, _SOURCE, lambda *arguments: _SECONDS * n_steps(*arguments))


_LOOPS: dict[Callable[..., Any], Callable[..., int]] = {
    count_ranges: lambda query, start, stop, database, *others: len(query) * database.nbytes // 8,
    count_runs: lambda query, masks, database, *others: len(query) * database.nbytes // 8,
    count_shared: lambda query, masks, database, *others: len(query) * database.nbytes // 8,
    count_levels: lambda query, database, *others: len(query) * database.nbytes // 8,
    largest_buckets: lambda query, codes, *others: len(query) * codes.nbytes // 8,
    collect: lambda query, database, *others: len(query) * database.nbytes // 8,
    all_cells: lambda query, database, *others: len(query) * database.nbytes // 8,
    add_cells: lambda cells, tables, sums: cells.size * sums.shape[1] // 4,
}
kernels: Any = SimpleNamespace(**{plain.__name__: _either(plain, n_steps) for plain, n_steps in _LOOPS.items()})
