"""Rows that are equal in all that counts: supervised codes collapse, and what is equal need be counted only once."""

from collections.abc import Sequence

import numpy as np

from hashbench._typing import AnyArray, IntArray

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplied by it, near numbers lie far apart


def sort_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows so that equal ones follow each other, and tell where in that order each run of them begins.

    Keys have shape (n_rows,), whole numbers; rows are equal if all keys are.
    """
    hashes = np.zeros(len(keys[0]), dtype=np.uint64)  # NumPy sorts one array of words far faster than rows
    for key in keys:
        hashes = (hashes ^ key.astype(np.uint64)) * _ODD
        hashes ^= hashes >> np.uint64(32)
    order = np.argsort(hashes)
    by_hash = _changes([hashes], order)
    if len(by_hash) == len(order):  # all rows differ
        return order, by_hash
    first = _changes(keys, order)
    if len(first) > len(by_hash):  # unequal rows share a hash, and may alternate
        order = np.lexsort(keys)
        first = _changes(keys, order)
    return order, first


def merge_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Merge equal rows where that pays: which rows to keep, and how many each stands for (empty for one each)."""
    order, first = sort_equal_rows(keys)
    if 2 * len(first) > len(order):
        return np.arange(len(order)), np.zeros(0, dtype=np.int64)
    return order[first], np.diff(first, append=len(order))


def _changes(keys: Sequence[AnyArray], order: IntArray) -> IntArray:
    """Tell where rows, in that order, differ from the one before."""
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys])
    return np.flatnonzero(is_first)
