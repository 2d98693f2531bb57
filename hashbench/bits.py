"""Everything that knows about bit order.

Bit ``i`` of an item is bit ``i % 8`` (least significant first) of its byte ``i // 8``: the order
of faiss and of ``numpy.packbits(..., bitorder="little")``. Padding bits of the last byte are zero.
"""

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from hashbench._typing import BoolArray, ByteArray, WordArray
from hashbench._validation import as_array
from hashbench.errors import HashbenchError

MAX_BITS = 4096


def n_bytes(n_bits: int) -> int:
    """Count the bytes that hold one code."""
    return -(-n_bits // 8)


def n_words(n_bits: int) -> int:
    """Count the 64-bit words that hold one code."""
    return -(-n_bits // 64)


def pack(codes: BoolArray) -> ByteArray:
    """Pack boolean codes into bytes.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_bits), bool
        One code a row.

    Returns
    -------
    ndarray of shape (n_samples, ceil(n_bits / 8)), uint8
        The packed codes; padding bits are zero.

    Examples
    --------
    >>> pack(np.array([[True, False, False, False, False, False, False, False, True]]))
    array([[1, 1]], dtype=uint8)
    """
    return np.packbits(codes, axis=1, bitorder="little")


def unpack(packed: ByteArray, n_bits: int) -> BoolArray:
    """Unpack bytes into boolean codes.

    Parameters
    ----------
    packed : ndarray of shape (n_samples, ceil(n_bits / 8)), uint8
        The packed codes.
    n_bits : int
        Code length in bits.

    Returns
    -------
    ndarray of shape (n_samples, n_bits), bool
        One code a row.
    """
    return np.unpackbits(packed, axis=1, count=n_bits, bitorder="little").astype(bool)


def to_words(packed: ByteArray) -> WordArray:
    """View packed codes as 64-bit words, (n_samples, n_words), padded with zero bits."""
    n_samples, width = packed.shape
    padded = np.zeros((n_samples, 8 * n_bytes(width)), dtype=np.uint8)
    padded[:, :width] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def check_packed(packed: npt.NDArray[Any], n_bits: int, name: str) -> None:
    """Refuse packed codes, called ``name``, whose dtype, width or padding bits do not fit ``n_bits``."""
    check_n_bits(n_bits)
    if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != n_bytes(n_bits):
        raise HashbenchError(
            f"{name} are {packed.dtype} of shape {packed.shape}, but codes of {n_bits} bits packed into bytes "
            f"are uint8 of shape (n, {n_bytes(n_bits)}). Check the number of bits."
        )
    n_padding = 8 * n_bytes(n_bits) - n_bits
    if n_padding and packed.size:
        dirty = np.flatnonzero(packed[:, -1] >> np.uint8(8 - n_padding))
        if dirty.size:
            raise HashbenchError(
                f"{name} have set bits beyond bit {n_bits} in {dirty.size} rows, first in row {dirty[0]}. "
                "Check the number of bits, and pack with the least significant bit first "
                "(numpy.packbits(..., bitorder='little'))."
            )


def check_n_bits(n_bits: int) -> None:
    """Refuse code lengths outside 1 to 4096 bits."""
    if not isinstance(n_bits, Integral) or not 1 <= n_bits <= MAX_BITS:
        raise HashbenchError(f"codes must have 1 to {MAX_BITS} bits, got {n_bits!r}.")


def check_codes(codes: Any, shape: tuple[int, int], owner: str) -> None:
    """Refuse codes that ``owner`` gave, if they are not boolean of that shape, (n_samples, n_bits)."""
    found = np.asarray(codes)
    if found.shape != shape or found.dtype != np.bool_:
        raise HashbenchError(
            f"{owner} gives {found.dtype} codes of shape {found.shape} for {shape[0]} items and {shape[1]} bits, "
            f"expected booleans of shape {shape}. Mend its transform."
        )


def as_packed(codes: npt.ArrayLike, n_bits: int | None = None, name: str = "codes") -> tuple[ByteArray, int]:
    """Pack codes in any of the forms people keep them in.

    Parameters
    ----------
    codes : array of shape (n_samples, n_bits) or (n_samples, ceil(n_bits / 8))
        Booleans, 0/1 or -1/+1 of any numeric dtype; or, with ``n_bits`` given, packed uint8.
    n_bits : int, optional
        Code length in bits; needed for packed codes alone.
    name : str, default="codes"
        How messages call the array.

    Returns
    -------
    packed : ndarray of shape (n_samples, ceil(n_bits / 8)), uint8
        The packed codes.
    n_bits : int
        Code length in bits.

    Raises
    ------
    HashbenchError
        If the array is not two-dimensional, has no rows or holds values that are no bits.

    Examples
    --------
    >>> as_packed([[-1, 1, 1]])
    (array([[6]], dtype=uint8), 3)
    """
    array = as_array(codes, name)
    if array.ndim != 2:
        raise HashbenchError(f"{name} have shape {array.shape}, expected two dimensions: (n_samples, n_bits).")
    if 0 in array.shape:
        raise HashbenchError(f"{name} are empty: shape {array.shape}. At least one row and one bit are needed.")
    if n_bits is not None:
        check_n_bits(n_bits)
        if array.shape[1] != n_bits:
            check_packed(array, n_bits, name)
            return array, n_bits
    width = array.shape[1]
    if array.dtype == np.uint8 and n_bits is None and array.max() > 1:
        if set(np.unique(array)) == {0, 255}:
            raise HashbenchError(
                f"{name} hold 0 and 255 alone, as masks do, or packed codes with all bits of a byte alike. Give bits "
                "as codes > 0; of packed codes, say how many bits they hold (--bits, or n_bits= in Python)."
            )
        raise HashbenchError(
            f"{name} are uint8 with values up to {array.max()}, as packed codes are. "
            f"Say how many bits they hold, at most {8 * width} (--bits, or n_bits= in Python)."
        )
    check_n_bits(width)
    return pack(_as_booleans(array, name)), width


def _as_booleans(array: npt.NDArray[Any], name: str) -> BoolArray:
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf":
        raise HashbenchError(f"{name} are of dtype {array.dtype}, expected booleans, 0/1 or -1/+1.")
    low = -1 if array.min() < 0 else 0
    is_bit = (array == low) | (array == 1)
    if not is_bit.all():
        row, column = np.argwhere(~is_bit)[0]
        n_bad = int(is_bit.size - is_bit.sum())
        odd = array[~is_bit]
        hint = ""
        if not np.isfinite(odd).all():
            hint = " Infinities and NaN mean nothing here: mend what computes them."
        elif (odd != np.floor(odd)).any():
            hint = " These look like real outputs: binarise them with (x > 0)."
        elif low < 0 and not odd.any():
            hint = " A zero beside -1 and +1 is often a sign(0): binarise with (x > 0)."
        raise HashbenchError(
            f"{name} hold {n_bad} values that are not {low} or 1, first {array[row, column]} "
            f"in row {row}, column {column}.{hint}"
        )
    return np.asarray(array > 0)
