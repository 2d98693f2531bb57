"""Rows that are equal in all that counts: supervised codes collapse, and what is equal need be counted only once."""

from collections.abc import Sequence

import numpy as np

from hashbench._typing import AnyArray, IntArray


def sort_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows, the last key first, and tell where in that order each run of equal rows begins.

    Keys have shape (n_rows,); rows are equal if all keys are.
    """
    order = np.lexsort(keys)
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    return order, np.flatnonzero(is_first)


def merge_equal_rows(keys: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Sort rows, the last key first, and merge equal ones where that pays.

    Gives the rows to keep, in order, and how many each stands for (empty for one each).
    """
    order, first = sort_equal_rows(keys)
    if 2 * len(first) > len(order):
        return order, np.zeros(0, dtype=np.int64)
    return order[first], np.diff(first, append=len(order))
