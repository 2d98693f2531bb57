"""Rows that are equal in all that counts: supervised codes collapse, and what is equal need be counted only once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hashbench._typing import AnyArray, IntArray

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplied by it, near numbers lie far apart


def sort_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows so that equal ones follow each other, and tell where in that order each run of them begins.

    Keys have shape (n_rows,), whole numbers; rows are equal if all keys are.
    """
    if len(keys) == 1:
        order = np.argsort(keys[0])
        return order, _changes(keys, order)
    return _sort_by_hash(keys, _hashes(keys))


def _sort_by_hash(keys: Sequence[AnyArray], hashes: npt.NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
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
    n_rows = len(keys[0])
    hashes = _hashes(keys)
    ascending = np.sort(hashes)  # far faster than their order is found; equal rows have equal ones
    if 2 * (1 + np.count_nonzero(ascending[1:] != ascending[:-1])) > n_rows:
        return np.arange(n_rows), np.zeros(0, dtype=np.int64)
    order, first = _sort_by_hash(keys, hashes)
    return order[first], np.diff(first, append=n_rows)


def _hashes(keys: Sequence[AnyArray]) -> npt.NDArray[np.uint64]:
    """Mix the keys of each row into one word, since NumPy sorts an array of words far faster than rows."""
    hashes = np.zeros(len(keys[0]), dtype=np.uint64)
    for key in keys:
        hashes = (hashes ^ key.astype(np.uint64)) * _ODD
        hashes ^= hashes >> np.uint64(32)
    return hashes


def _changes(keys: Sequence[AnyArray], order: IntArray) -> IntArray:
    """Tell where rows, in that order, differ from the one before."""
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys])
    return np.flatnonzero(is_first)
