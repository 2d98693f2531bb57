"""Rows that are equal in all that counts: supervised codes collapse, and what is equal need be counted only once."""

from collections.abc import Sequence

import numpy as np

from hashbench._parallel import compiled
from hashbench._typing import AnyArray, IntArray

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplied by it, near numbers lie far apart
_STEP = 8


def group_equal_rows(keys: Sequence[AnyArray], most: int | None = None) -> tuple[IntArray, IntArray] | None:
    """Give distinct rows numbers, as they first occur: the number of each row, and the first row of each number.

    Keys have shape (n_rows,), whole numbers; rows are equal if all keys are. None if there are more than ``most``.
    """
    rows = np.column_stack([np.asarray(key).astype(np.uint64) for key in keys])
    most = len(rows) if most is None else most
    number, first = _number(rows, most, _ODD)
    return None if len(first) > most else (number, first)


def sort_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows so that equal ones follow each other, and tell where in that order each run of them begins."""
    groups = group_equal_rows(keys)
    assert groups is not None
    return sort_rows(groups[:1])


def sort_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows of which many are equal by their keys, the last one first; tell where each run of equal rows begins."""
    order = np.arange(len(keys[0]))
    is_first = np.zeros(len(order), dtype=bool)
    is_first[:1] = True
    for key in keys:
        low, high = key.min(initial=0), key.max(initial=0)
        short = (key - low).astype(np.uint16) if high - low < 1 << 16 else key  # 16 bits are counted, not compared
        order = order[np.argsort(short[order], kind="stable")]
    for key in keys:
        is_first[1:] |= np.diff(key[order]) != 0
    return order, np.flatnonzero(is_first)


def merge_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Merge equal rows where that pays: which rows to keep, and how many each stands for (empty for one each)."""
    n_rows = len(keys[0])
    some = [key[::_STEP] for key in keys]  # of rows that fall on half as many codes, 8 in 9 of these differ
    is_worth = n_rows < 1024 or group_equal_rows(some, most=len(some[0]) * 9 // 10) is not None
    groups = group_equal_rows(keys, most=n_rows // 2) if is_worth else None
    if groups is None:
        return np.arange(n_rows), np.zeros(0, dtype=np.int64)
    number, first = groups
    return first, np.bincount(number)


@compiled
def _number(rows, most, odd):  # type: ignore[no-untyped-def]
    """Look rows, (n_rows, n_keys), up in a hash table, which ends where more than ``most`` are distinct."""
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
        place = np.int64(mixed & np.uint64(n_places - 1))
        while True:
            found = table[place]
            if found < 0:
                table[place] = n_distinct
                first[n_distinct] = row
                number[row] = n_distinct
                n_distinct += 1
                break
            is_equal = True
            for key in range(n_keys):
                is_equal &= rows[first[found], key] == rows[row, key]
            if is_equal:
                number[row] = found
                break
            place = (place + 1) & (n_places - 1)
        if n_distinct > most:
            break
    return number, first[:n_distinct]
