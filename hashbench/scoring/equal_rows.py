"""Equal rows, counted only once, since supervised codes collapse to few; hashes of rows, the same on every machine."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from hashbench._parallel import compiled_or
from hashbench._typing import AnyArray, IntArray, WordArray

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplied by it, near numbers lie far apart
_STEP = 8


def sort_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows so that those equal in all keys, (n_rows,) each, are adjacent; return order and starts of runs."""
    number, _ = number_rows(keys)
    return sort_rows([number])


def sort_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows by their keys, the last key first; return the order and where each run of equal rows begins."""
    shortened = [_shortened(key) for key in keys]
    order = _sort(shortened[0])
    for key in shortened[1:]:
        order = order[_sort(key[order])]
    is_first = np.zeros(len(order), dtype=bool)
    is_first[:1] = True
    for key in shortened:
        in_order = key[order]
        is_first[1:] |= in_order[1:] != in_order[:-1]
    return order, np.flatnonzero(is_first)


def _shortened(key: AnyArray) -> AnyArray:
    """Return a key in 16 bits if its range allows it: few values are counted to be sorted, not compared."""
    low, high = key.min(initial=0), key.max(initial=0)
    return key if int(high) - int(low) >= 1 << 16 else (key - low).astype(np.uint16)


def _sort(key: AnyArray) -> IntArray:
    """Return the order of a key of `_shortened`; equal ones stay in order."""
    if key.dtype == np.uint16 and key.max(initial=0) < len(key):
        return np.asarray(_sort_counted(key))
    return np.argsort(key, kind="stable")


@compiled_or(lambda key: np.argsort(key, kind="stable"), 1e-8)
def _sort_counted(key):  # type: ignore[no-untyped-def]
    """Sort a key of 16 bits, (n_rows,), by counting its values."""
    most = np.int64(key.max())
    fill = np.zeros(most + 2, np.int64)
    for i in range(len(key)):
        fill[np.int64(key[i]) + 1] += 1
    for value in range(most):
        fill[value + 1] += fill[value]
    order = np.empty(len(key), np.int64)
    for i in range(len(key)):
        order[fill[key[i]]] = i
        fill[key[i]] += 1
    return order


def merge_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Merge equal rows where that pays; return the rows to keep and how many each stands for (empty: one each)."""
    n_rows = len(keys[0])
    if n_rows >= 1024:  # of rows that share half as many codes, 8 in 9 of every eighth would differ
        sample = [key[::_STEP] for key in keys]
        most = len(sample[0]) * 9 // 10
        _, first = number_rows(sample, most)
        if len(first) > most:
            return np.arange(n_rows), np.zeros(0, dtype=np.int64)
    number, first = number_rows(keys, n_rows // 2)
    if len(first) > n_rows // 2:
        return np.arange(n_rows), np.zeros(0, dtype=np.int64)
    return first, np.bincount(number)


def number_rows(keys: Sequence[AnyArray], most: int | None = None) -> tuple[IntArray, IntArray]:
    """Return a number for each row, equal for equal rows, in order of occurrence, and the first row of each number.

    Stops at ``most + 1`` distinct rows.
    """
    rows = np.empty((len(keys[0]), len(keys)), dtype=np.uint64)
    for column, key in zip(rows.T, keys, strict=True):
        column[:] = key.view(np.uint64) if key.dtype == np.int64 else key
    number, first = _number(rows, len(rows) if most is None else most, ODD)
    return number, first


def _number_by_sorting(rows: AnyArray, most: int, odd: np.uint64) -> tuple[IntArray, IntArray]:
    order = np.lexsort(rows.T)  # equal rows in order of occurrence
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    first = order[is_first]
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.argsort(np.argsort(first))[np.cumsum(is_first) - 1]
    return number, np.sort(first)[: most + 1]


@compiled_or(_number_by_sorting)
def _number(rows, most, odd):  # type: ignore[no-untyped-def]
    """Look up rows, (n_rows, n_keys), in a hash table of open addressing."""
    n_rows, n_keys = rows.shape
    n_places = 2
    while n_places < 2 * min(n_rows, most + 1):
        n_places *= 2
    table = np.full(n_places, -1, np.int64)
    number = np.empty(n_rows, np.int64)
    first = np.empty(min(n_rows, most + 1), np.int64)
    n_distinct = 0
    for row in range(n_rows):
        mixed = np.uint64(0)
        for key in range(n_keys):
            mixed = (mixed ^ rows[row, key]) * odd
            mixed ^= mixed >> np.uint64(32)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * odd  # keys may differ only in their highest bits
        place = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(n_places - 1))
        while True:
            other = table[place]
            if other < 0:
                table[place] = n_distinct
                first[n_distinct] = row
                number[row] = n_distinct
                n_distinct += 1
                break
            is_equal = True
            for key in range(n_keys):
                is_equal &= rows[first[other], key] == rows[row, key]
            if is_equal:
                number[row] = other
                break
            place = (place + 1) & (n_places - 1)
        if n_distinct > most:
            break
    return number, first[:n_distinct]


def row_hashes(*tables: WordArray | IntArray) -> WordArray:
    """Hash rows of tables, (n_rows, n_columns) each; equal ones alike."""
    hashes = np.zeros(len(tables[0]), dtype=np.uint64)
    for column in chain(*(table.T for table in tables)):
        _mix_in(hashes, column.astype(np.uint64))
    return hashes


def _mix_in_whole(hashes: WordArray, column: WordArray) -> None:
    hashes[:] = mixed((hashes + ODD) ^ column)


@compiled_or(_mix_in_whole, 1e-8)
def _mix_in(hashes, column):  # type: ignore[no-untyped-def]
    """Mix a column, (n_rows,), into the hashes of rows, (n_rows,)."""
    for row in range(len(hashes)):
        hashes[row] = mixed((hashes[row] + ODD) ^ column[row])


def mixed(words: WordArray) -> WordArray:
    """Mix the bits of 64-bit words, as the finaliser of splitmix64 does."""
    words = words ^ (words >> np.uint64(30))
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words
