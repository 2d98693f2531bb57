"""Bit order: packing codes, and reading codes of any form.

Bit ``i`` of an item is bit ``i % 8`` (least significant first) of its byte ``i // 8``: the order
of faiss and of ``numpy.packbits(..., bitorder="little")``. Padding bits of the last byte are zero.
`as_packed` reads codes in other forms and orders too.
"""

import re
import sys
from base64 import b64decode
from collections import Counter
from numbers import Integral
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from hashbench._choices import BIT_ORDERS
from hashbench._typing import BoolArray, ByteArray, WordArray
from hashbench._validation import as_array, check_choice
from hashbench.errors import HashbenchError

MAX_BITS = 4096
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1), axis=1, bitorder="little")[:, 0]
_TEXT_PARTS = re.compile(  # the name of a perceptual hash; the prefix of Python and C, or of PostgreSQL; digits
    r"\s*(?:([a-z]\w*):)?\s*(0[xb]|\\x)?(.*?)\s*", re.IGNORECASE | re.DOTALL
)
_INT8_HINT = (
    " int8 are read as the byte minus 128, as sentence-transformers writes them. If they are the byte itself, as in "
    "Vespa and Elasticsearch, give codes.view(np.uint8) with --bit-order big."
)


def n_bytes(n_bits: int) -> int:
    """Return the number of bytes of a code."""
    return -(-n_bits // 8)


def n_words(n_bits: int) -> int:
    """Return the number of 64-bit words of a code."""
    return -(-n_bits // 64)


def pack(codes: BoolArray) -> ByteArray:
    """Pack boolean codes (n_samples, n_bits) into bytes (n_samples, ceil(n_bits / 8)); padding bits are zero.

    >>> pack(np.array([[True, False, False, False, False, False, False, False, True]]))
    array([[1, 1]], dtype=uint8)
    """
    n_samples, n_bits = codes.shape
    width = n_bytes(n_bits)
    if n_bits < 8 * width:
        padded = np.zeros((n_samples, 8 * width), dtype=bool)
        padded[:, :n_bits] = codes
        codes = padded
    return np.packbits(codes.ravel(), bitorder="little").reshape(n_samples, width)  # NumPy is slow on short rows


def unpack(packed: ByteArray, n_bits: int) -> BoolArray:
    """Unpack bytes (n_samples, ceil(n_bits / 8)) into boolean codes (n_samples, n_bits)."""
    return np.unpackbits(packed, axis=1, count=n_bits, bitorder="little").astype(bool)


def to_words(packed: ByteArray) -> WordArray:
    """View packed codes as 64-bit words, (n_samples, n_words), padded with zero bits; not to be written to."""
    n_samples, width = packed.shape
    if width % 8 == 0 and sys.byteorder == "little" and packed.flags.c_contiguous:
        words: WordArray = packed.view(np.uint64)
        if words.flags.carray:  # for which loops are compiled
            return words
    padded = np.zeros((n_samples, 8 * n_bytes(width)), dtype=np.uint8)
    padded[:, :width] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def check_packed(packed: npt.NDArray[Any], n_bits: int, name: str, *, is_signed: bool = False) -> None:
    """Refuse packed codes, called ``name`` in messages, whose dtype, width or padding bits do not fit ``n_bits``.

    ``is_signed`` means that they were converted from int8.
    """
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
                f"{name} have set bits beyond bit {n_bits} in {dirty.size} rows, first in row {dirty[0]} (counted "
                "from 0). Check the number of bits, and which bit of a byte is the first: the least significant, as in "
                "numpy.packbits(..., bitorder='little') and faiss, or the most (--bit-order big, or bit_order='big')."
                f"{_INT8_HINT if is_signed else ''}"
            )


def check_n_bits(n_bits: int) -> None:
    """Refuse code lengths outside 1 to 4096 bits."""
    if not isinstance(n_bits, Integral) or not 1 <= n_bits <= MAX_BITS:
        raise HashbenchError(
            f"codes must have 1 to {MAX_BITS} bits, got {n_bits!r}. Give a whole number in this range."
        )


def check_codes(codes: Any, shape: tuple[int, int], owner: str) -> None:
    """Refuse codes of a method, called ``owner`` in messages, that are not boolean of shape (n_samples, n_bits)."""
    array = np.asarray(codes)
    if array.shape != shape or array.dtype != np.bool_:
        raise HashbenchError(
            f"{owner} gives {array.dtype} codes of shape {array.shape} for {shape[0]} items and {shape[1]} bits, "
            f"expected booleans of shape {shape}. Fix its transform."
        )


def as_packed(
    codes: npt.ArrayLike,
    n_bits: int | None = None,
    name: str = "codes",
    bit_order: str | None = None,
    encoding: str | None = None,
) -> tuple[ByteArray, int]:
    """Pack codes of any form, called ``name`` in messages; return them and their length in bits.

    Forms: booleans, 0/1, -1/+1 or 0/255 of any numeric dtype, (n_samples, n_bits), or square, (n_samples, k, k), as in
    imagehash; packed uint8, or int8 that are 128 less, as sentence-transformers' ``binary``, (n_samples,
    ceil(n_bits / 8)), or strings of these bytes in the ``encoding`` base64; strings of hexadecimal digits, or of 0b, 0
    and 1, the first bit first; integers, of which the last ``n_bits`` are the code, the most significant bit first.

    ``n_bits`` is needed for packed codes, for uint8 of 0/255, which may be packed, and for integers, unless they are of
    64 bits and one is 2**32 or more, since smaller ones may be something else. ``bit_order`` is that of packed bytes,
    by default little, of int8 big.

    >>> as_packed([[-1, 1, 1]])
    (array([[6]], dtype=uint8), 3)
    >>> as_packed([[6]], 3), as_packed([[0b01100000]], 3, bit_order="big")
    ((array([[6]], dtype=uint8), 3), (array([[6]], dtype=uint8), 3))
    >>> as_packed(["3"], 3), as_packed(["0b011"]), as_packed(["Bg=="], 3, encoding="base64")
    ((array([[6]], dtype=uint8), 3), (array([[6]], dtype=uint8), 3), (array([[6]], dtype=uint8), 3))

    An integer, signed or not, and its hexadecimal digits are one code:

    >>> [as_packed(code, 32)[0].tobytes().hex() for code in ([2**32 - 2], [-2], ["fffffffe"])]
    ['ffffff7f', 'ffffff7f', 'ffffff7f']
    """
    packed, length, _ = _pack_any(codes, n_bits, name, bit_order, encoding)
    return packed, length


def _pack_any(
    codes: npt.ArrayLike, n_bits: int | None, name: str, bit_order: str | None, encoding: str | None
) -> tuple[ByteArray, int, str]:
    """Return the packed codes, their length, and the form they were in."""
    array = as_array(codes, name)
    if encoding is not None:
        array = _decoded(array, name)
        if n_bits is None:
            raise HashbenchError(
                f"{name} are {array.shape[1]} bytes each, in base64. Say how many bits they hold, at most "
                f"{8 * array.shape[1]}: --bits, or n_bits= in Python."
            )
    if array.dtype == np.bool_ and array.ndim == 3 and array.shape[1] == array.shape[2]:  # squares, as of imagehash
        array = array.reshape(len(array), array.shape[1] ** 2)
    check_choice(bit_order, (None, *BIT_ORDERS), "bit_order")
    if n_bits is not None:
        check_n_bits(n_bits)
    form = _form(array, n_bits)
    if form == _TEXT:
        _refuse_order(bit_order, form, name)
        return _pack_texts(array, n_bits, name)
    if form == _WORDS:
        _refuse_order(bit_order, form, name)
        return *_pack_words(array, n_bits or 8 * array.itemsize, name), form
    if array.shape == (0,):
        raise HashbenchError(f"{name} are empty: there is no row. At least one is needed.")
    if array.ndim != 2:
        hint = " Reshape them: codes.reshape(len(codes), -1)." if array.ndim > 2 else ""
        if array.ndim == 1 and array.dtype.kind in "iufO" and array.size:
            hint = " If each is a hash, give integers, and say how many bits it has: --bits, or n_bits= in Python."
        raise HashbenchError(f"{name} have shape {array.shape}, expected two dimensions: (n_samples, n_bits).{hint}")
    if 0 in array.shape:
        raise HashbenchError(f"{name} are empty: shape {array.shape}. At least one row and one bit are needed.")
    if n_bits is not None and form != _BITS:
        packed = _as_bytes(array, form)
        if packed.dtype == np.uint8 and (bit_order == "big" or (bit_order is None and form == _SIGNED)):
            packed = _REVERSED[packed]
        check_packed(packed, n_bits, name, is_signed=form == _SIGNED)
        return packed, n_bits, form
    width = array.shape[1]
    if n_bits not in (None, width):
        raise HashbenchError(
            f"{name} are booleans of shape {array.shape}, a column for each bit, and codes of {n_bits} bits have "
            f"{n_bits}. Check the number of bits."
        )
    if array.dtype in (np.uint8, np.int8) and n_bits is None:
        _refuse_bytes(array, name)
    _refuse_order(bit_order, form, name)
    check_n_bits(width)
    return pack(_as_booleans(array, name)), width, form


def as_packed_pair(
    query_codes: npt.ArrayLike,
    database_codes: npt.ArrayLike,
    n_bits: int | None = None,
    bit_order: str | None = None,
    encoding: str | None = None,
) -> tuple[ByteArray, ByteArray, int]:
    """Pack codes of queries and database as `as_packed` does; refuse different forms or lengths."""
    query, query_bits, query_form = _pack_any(query_codes, n_bits, "query codes", bit_order, encoding)
    database, database_bits, form = _pack_any(database_codes, n_bits, "database codes", bit_order, encoding)
    if query_form != form and {query_form, form} != {_TEXT, _WORDS}:  # texts and words have the same bit order
        raise HashbenchError(f"query codes are {query_form}, database codes {form}. Give both in the same form.")
    if query_bits != database_bits:
        raise HashbenchError(
            f"query codes have {query_bits} bits and database codes {database_bits}; both must be equally long."
        )
    return query, database, query_bits


_BITS, _TEXT = "a column for each bit", "strings"
_PACKED, _SIGNED = "packed bytes", "packed signed bytes"
_WORDS = "integers, one per code"
_LARGE = 1 << 32  # beyond class labels and counts, below nearly all random hashes
_SHORT = 32  # bits of an integer that tables may keep in 64


def _form(array: npt.NDArray[Any], n_bits: int | None) -> str:
    """Return the form of codes, in words for messages."""
    if array.dtype.kind in "US" or (array.dtype.kind == "O" and array.size and isinstance(array.flat[0], str | bytes)):
        return _TEXT
    is_column = array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
    if array.dtype.kind in "iu" and is_column and array.size:
        is_large = array.itemsize == 8 and (array.max() >= _LARGE or array.min() <= -_LARGE)
        if is_large if n_bits is None else array.ndim == 1 or n_bits > 8:
            return _WORDS
    if n_bits is None or array.ndim != 2 or array.shape[1] == n_bits or array.dtype == np.bool_:
        return _BITS
    return _SIGNED if array.dtype == np.int8 or (array.dtype.kind in "if" and (array < 0).any()) else _PACKED


def _refuse_order(bit_order: str | None, form: str, name: str) -> None:
    if bit_order is not None:
        raise HashbenchError(f"{name} are {form}, where the order of bits ({bit_order}) has no effect: leave it out.")


def _as_bytes(array: npt.NDArray[Any], form: str) -> npt.NDArray[Any]:
    """Convert packed codes, of any dtype that holds bytes, to uint8; return others as they are."""
    kind = np.int8 if form == _SIGNED else np.uint8
    if array.dtype == kind == np.uint8:
        return array
    if array.dtype.kind in "iuf":
        with np.errstate(invalid="ignore"):
            cast = array.astype(kind)
        if (cast == array).all():
            return cast.view(np.uint8) ^ np.uint8(0x80 if form == _SIGNED else 0)
    return array


def _refuse_bytes(array: npt.NDArray[Any], name: str) -> None:
    """Refuse bytes that may be packed codes of unknown length."""
    low, high, width = int(array.min()), int(array.max()), array.shape[1]
    if high > 1 or low < -1:
        raise HashbenchError(
            f"{name} are {array.dtype} from {low} to {high}: packed codes, masks, or embeddings quantised to bytes. "
            f"Say how many bits they hold (--bits, or n_bits= in Python), masks {width} and packed codes up to "
            f"{8 * width}; rank embeddings by --distance cosine or dot (distance=)."
        )


def _decoded(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Decode strings in base64, perhaps without padding or with - and _ for + and /, to bytes (n_samples, n_bytes)."""
    if array.dtype == np.uint8 and array.ndim == 2:  # strings in a column of bytes
        array = np.array([row.tobytes() for row in array], dtype=object)
    rows = [_from_base64(text) for text in _texts_of(array, name)]
    for row, content in enumerate(rows):
        if not content or len(content) != len(rows[0]):
            raise HashbenchError(
                f"{name} are read as base64, and row {row} (the first is 0) holds {len(content)} bytes, row 0 "
                f"{len(rows[0])}; expected equally many in each row. Fix that row, or leave out --encoding."
            )
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def _from_base64(text: Any) -> bytes:
    digits = text.strip().rstrip("=").replace("-", "+").replace("_", "/") if isinstance(text, str) else ""
    try:
        return b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except ValueError:
        return b""


def _texts_of(array: npt.NDArray[Any], name: str) -> list[Any]:
    """Return strings (n,), a column or a row as a list; refuse other shapes and numbers."""
    cells = array.ravel() if 1 in array.shape[1:] else array
    if cells.ndim != 1 or not cells.size or cells.dtype.kind not in "OSU":
        raise HashbenchError(
            f"{name} are {array.dtype} of shape {array.shape}, expected strings of shape (n,), or numbers in two "
            "dimensions and no --encoding."
        )
    return [cell.decode("ascii", "replace") if isinstance(cell, bytes) else cell for cell in cells.tolist()]


def _pack_texts(array: npt.NDArray[Any], n_bits: int | None, name: str) -> tuple[ByteArray, int, str]:
    """Pack strings of hexadecimal digits, right-aligned with the first bit first, or of 0 and 1, as `_pack_any`."""
    digits, is_binary, kind = _digits_of(_texts_of(array, name), name)
    width = len(digits[0])
    values = np.frombuffer(bytes.fromhex("".join(f"0{digit}" for digit in "".join(digits))), np.uint8)
    if not is_binary and values.max() <= 1:
        if n_bits not in (width, 4 * width):
            raise HashbenchError(
                f"{name} are strings of only 0 and 1, each a bit or a hexadecimal digit. Say how many bits a "
                f"code has (--bits, or n_bits= in Python): {width} or {4 * width}."
            )
        is_binary = n_bits == width
    size = 1 if is_binary else 4  # bits of a digit
    bits = np.unpackbits(values[:, None], axis=1)[:, -size:].reshape(len(digits), -1)
    n_bits = size * width if n_bits is None else n_bits
    n_filled = size * width - n_bits
    if not 0 <= n_filled < size or bits[:, :n_filled].any():
        raise HashbenchError(
            f"{name} are strings of {width} {'binary' if is_binary else 'hexadecimal'} digits, {size * width} bits, of "
            f"which {n_bits} cannot be the last. Check the number of bits."
        )
    check_n_bits(n_bits)
    return pack(bits[:, n_filled:].astype(bool)), n_bits, f"{_TEXT} of kind {kind!r}" if kind else _TEXT


def _digits_of(texts: list[Any], name: str) -> tuple[list[str], bool, str]:
    """Return the digits of each string, without prefixes, whether they are binary, and the kind of hash before them."""
    parts = [_TEXT_PARTS.fullmatch(text.lower() if isinstance(text, str) else "") for text in texts]
    kinds, prefixes, digits = zip(*(part.groups("") for part in parts if part), strict=True)
    is_binary = set(prefixes) == {"0b"} and all(text and not set(text) - {"0", "1"} for text in digits)
    if not is_binary:  # 0b are hexadecimal digits, too
        digits = tuple(f"{'0b' * (prefix == '0b')}{text}" for prefix, text in zip(prefixes, digits, strict=True))
    width = max(Counter(map(len, digits)).items(), key=itemgetter(1, 0))[0]
    for row, text in enumerate(digits):
        where = f"{name} are strings, and row {row} (the first is 0)"
        if not text or text.strip("0123456789abcdef"):
            holds = f"holds {texts[row][:40]!r}" if text else "is empty"
            raise HashbenchError(
                f"{where} {holds}, expected hexadecimal digits, as many as in all rows. Fix that row, or give codes as "
                "numbers; bytes in base64 need --encoding base64."
            )
        if kinds[row] != kinds[0]:
            raise HashbenchError(
                f"{where} is a hash of kind {kinds[row]!r}, row 0 of kind {kinds[0]!r}. Give hashes of one kind."
            )
        if len(text) != width:
            written = f"format(number, '0{width}{'b' if is_binary else 'x'}')"
            advice = f"If it lost leading zeros, write {written}" if len(text) < width else "Fix that row"
            raise HashbenchError(f"{where} has {len(text)} digits, most others {width}. {advice}.")
    return list(digits), is_binary, kinds[0]


def _pack_words(array: npt.NDArray[Any], n_bits: int, name: str) -> tuple[ByteArray, int]:
    """Pack the last bits of integers, the most significant bit first, as in their hexadecimal digits."""
    low, high, width = int(array.min()), int(array.max()), 8 * array.itemsize
    half = 1 << n_bits - 1
    fits = n_bits <= width and -half <= low and high < 2 * half - half * (low < 0)
    if (high >= _LARGE or not fits) and all(set(str(number)) <= {"0", "1"} for number in (high, *array.flat)):
        raise HashbenchError(
            f"{name} are integers whose digits are all 0 and 1, such as {high}: strings of bits that lost leading "
            "zeros when they were read as numbers. Read them as strings, in pandas with dtype=str."
        )
    if not fits:
        raise HashbenchError(
            f"{name} are {array.dtype} from {low:,} to {high:,}, expected integers of {n_bits} bits: 0 to "
            f"{2 * half - 1:,}, or signed ones from {-half:,} to {half - 1:,}. Check the number of bits."
        )
    if n_bits > _SHORT and -(1 << _SHORT - 1) <= low < 0 and high < 1 << _SHORT - 1:
        raise HashbenchError(
            f"{name} are signed integers of at most {_SHORT} bits, which {n_bits} bits would fill with copies of the "
            f"sign. Give --bits {_SHORT}, or n_bits={_SHORT} in Python; if they have {n_bits} bits, give "
            "codes.view(np.uint64)."
        )
    first = array.ravel().astype(f"u{array.itemsize}") << np.array(width - n_bits, f"u{array.itemsize}")
    big = first.astype(first.dtype.newbyteorder(">")).view(np.uint8).reshape(len(first), array.itemsize)
    return _REVERSED[big[:, : n_bytes(n_bits)]], n_bits


def _as_booleans(array: npt.NDArray[Any], name: str) -> BoolArray:
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf":
        raise HashbenchError(f"{name} are of dtype {array.dtype}, expected booleans, 0/1 or -1/+1.")
    low = -1 if (array < 0).any() else 0  # which NaN does not hide, as it does from min
    high = 255 if low == 0 and np.fmax.reduce(array, axis=None) == 255 else 1
    is_bit = (array == low) | (array == high)
    if not is_bit.all():
        row, column = np.argwhere(~is_bit)[0]
        n_bad = int(is_bit.size - is_bit.sum())
        raise HashbenchError(
            f"{name} hold {n_bad} values that are not {low} or {high}, first {array[row, column]} in row {row}, column "
            f"{column} (counted from 0). Fill empty cells; if they are real outputs, or sign(0), binarise with (x > 0)."
        )
    return np.asarray(array > 0)
