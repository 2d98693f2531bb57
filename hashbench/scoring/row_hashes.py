"""Hashes of rows of numbers, the same on every machine."""

from itertools import chain

import numpy as np

from hashbench._parallel import compiled_or
from hashbench._typing import IntArray, WordArray

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplied by it, near numbers lie far apart


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
