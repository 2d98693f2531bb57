"""How far two codes of the same items differ: bits per item, items per bit, equal codes."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, IntArray
from hashbench.bits import as_packed, unpack
from hashbench.errors import HashbenchError

_ROWS = 1 << 16  # unpacked at a time


@dataclass(frozen=True, eq=False)
class Drift:
    """The bits in which two codes of each item differ.

    Parameters
    ----------
    bits_per_item : ndarray of shape (n_items,), int64
        How many bits of each item differ: the Hamming distance of its two codes.
    items_per_bit : ndarray of shape (n_bits,), int64
        In how many items each bit differs.

    Examples
    --------
    >>> found = drift([[0, 0], [0, 1]], [[0, 0], [1, 1]])
    >>> found, found.bits_per_item.tolist(), found.items_per_bit.tolist()
    (<Drift of 2 items; 0.5000 of 2 bits differ per item, at most 1; 0.5000 of the codes are equal>, [0, 1], [1, 0])
    """

    bits_per_item: IntArray
    items_per_bit: IntArray

    @property
    def mean_bits(self) -> float:
        """How many bits differ per item, on average."""
        return float(self.bits_per_item.mean())

    @property
    def most_bits(self) -> int:
        """The most bits that differ in an item."""
        return int(self.bits_per_item.max())

    @property
    def share_equal(self) -> float:
        """Share of the items whose two codes are equal."""
        return float((self.bits_per_item == 0).mean())

    def __repr__(self) -> str:
        n_items, n_bits = len(self.bits_per_item), len(self.items_per_bit)
        differing = f"{self.mean_bits:.4f} of {n_bits} bits differ per item, at most {self.most_bits}"
        return f"<Drift of {n_items:,} items; {differing}; {self.share_equal:.4f} of the codes are equal>"


def drift(
    codes: npt.ArrayLike,
    other_codes: npt.ArrayLike,
    *,
    n_bits: int | None = None,
    bit_order: str | None = None,
) -> Drift:
    """Count the bits in which two codes of the same items differ, such as those of two implementations of one hash.

    Parameters
    ----------
    codes, other_codes : array of shape (n_items, n_bits)
        In any form that `hashbench.evaluate` takes, with the same items in the same order.
    n_bits, bit_order
        As in `hashbench.evaluate`.

    Returns
    -------
    Drift
        Bits that differ per item, items that differ per bit, and the share of equal codes.

    Raises
    ------
    HashbenchError
        If there are not equally many codes of one length.

    Examples
    --------
    >>> drift([[0, 0], [0, 1]], [[0, 0], [1, 1]]).share_equal
    0.5
    """
    first, length = as_packed(codes, n_bits, "codes", bit_order)
    other, other_length = as_packed(other_codes, n_bits, "other codes", bit_order)
    check_same(len(first), length, len(other), other_length)
    return drift_packed(first, other, length)


def check_same(n_codes: int, n_bits: int, n_other: int, n_other_bits: int, role: str = "") -> None:
    """Refuse other codes of another length, or more or fewer than there are, of a role such as ``"query "``."""
    if n_bits != n_other_bits:
        raise HashbenchError(
            f"the {role}codes have {n_bits} bits and the other ones {n_other_bits}; both must be equally long."
        )
    if n_codes != n_other:
        raise HashbenchError(
            f"there are {n_codes:,} {role}codes and {n_other:,} other ones; give both codes of each item, in one order."
        )
    if not n_codes:
        raise HashbenchError(f"there are no {role}codes; at least one is needed.")


def drift_packed(codes: ByteArray, other: ByteArray, n_bits: int) -> Drift:
    """Count the bits in which packed codes, (n_items, ceil(n_bits / 8)), differ."""
    per_item, per_bit = np.empty(len(codes), dtype=np.int64), np.zeros(n_bits, dtype=np.int64)
    for rows in chunks(0, len(codes), _ROWS):
        differing = unpack(codes[rows] ^ other[rows], n_bits)
        per_item[rows], per_bit = differing.sum(axis=1), per_bit + differing.sum(axis=0)
    return Drift(per_item, per_bit)
