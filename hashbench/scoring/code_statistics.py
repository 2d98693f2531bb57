"""How codes use their bits, and how far two codes of the same items differ, without any labels."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, FloatArray, IntArray, SliceableCodes
from hashbench.bits import as_packed, to_words, unpack
from hashbench.errors import HashbenchError
from hashbench.scoring.equal_rows import sort_equal_rows

_ROWS = 1 << 16  # unpacked at a time
_FEW_ROWS = 256  # in which all bits of most codes vary
_N_RUNS = 16  # parts of the database that a sample of so few rows is from
_LEAST_ITEMS = 8  # in fewer, bits may be constant and codes equal by chance
ADVICE = "If bits are signs of real values, subtract the mean of each column before taking signs."


@dataclass(frozen=True)
class CodeUsage:
    """Statistics of a set of codes (mLGAP fig. 1 and 8).

    Parameters
    ----------
    n_codes, n_bits : int
        How many codes of which length.
    n_distinct : int
        How many of them differ.
    largest_bucket : int
        Items that share the most frequent code.
    share_of_space : float
        ``n_distinct / 2**n_bits``.
    bit_balance : float
        Mean over the bits of the share of the rarer value: 0.5 for balanced bits, 0 for constant ones.
    bit_correlation : float
        Mean absolute correlation between different bits; 0 where a bit is constant.

    Examples
    --------
    >>> usage = code_usage([[0, 0], [0, 1], [0, 1], [0, 1]])
    >>> usage.largest_bucket, usage.share_of_space, usage.bit_balance
    (3, 0.5, 0.125)
    """

    n_codes: int
    n_bits: int
    n_distinct: int
    largest_bucket: int
    share_of_space: float
    bit_balance: float
    bit_correlation: float


def code_usage(codes: npt.ArrayLike, n_bits: int | None = None) -> CodeUsage:
    """Compute how a set of codes uses its bits.

    Parameters
    ----------
    codes : array of shape (n, n_bits), or packed uint8 with ``n_bits``
        As in `hashbench.evaluate`.
    n_bits : int, optional
        Code length, needed only for packed codes and integers.

    Returns
    -------
    CodeUsage
        The statistics.

    Raises
    ------
    HashbenchError
        If the array holds no codes.

    Examples
    --------
    >>> code_usage([[0, 0], [0, 1], [0, 1], [0, 1]]).n_distinct
    2
    """
    packed, length = as_packed(codes, n_bits)
    sizes = bucket_sizes(packed, length)
    ones, both = _moments(packed, length)
    mean = ones / len(packed)
    covariance = both / len(packed) - np.outer(mean, mean)
    deviation = np.sqrt(np.diag(covariance))
    scale = np.outer(deviation, deviation)
    correlation = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
    pairs = correlation[np.triu_indices(length, k=1)]
    return CodeUsage(
        n_codes=len(packed),
        n_bits=length,
        n_distinct=len(sizes),
        largest_bucket=int(sizes[0]),
        share_of_space=len(sizes) / 2.0**length if length < 1024 else 0.0,
        bit_balance=float(np.minimum(mean, 1 - mean).mean()),
        bit_correlation=float(np.abs(pairs).mean()) if pairs.size else 0.0,
    )


def bucket_sizes(codes: npt.ArrayLike, n_bits: int | None = None) -> IntArray:
    """Count how many items share each distinct code, the most frequent first; ``n_bits`` is for packed codes only.

    >>> bucket_sizes([[0, 0], [0, 1], [0, 1], [0, 1]])
    array([3, 1])
    """
    packed, _ = as_packed(codes, n_bits)
    order, first = sort_equal_rows(list(to_words(packed).T))
    return np.sort(np.diff(first, append=len(order)))[::-1]


def usage_notes(query: ByteArray, database: SliceableCodes, n_bits: int, advice: str = ADVICE) -> list[str]:
    """Report packed codes that rank little or nothing, with ``advice``, by default that for codes of any origin.

    They do if all are equal, or, of at least 8 items, if more than half are equal or a quarter of the bits is constant.
    """
    n_items = int(database.shape[0])
    n_equal = _n_most_frequent(database) if n_items >= _LEAST_ITEMS else 0
    return notes_on_bits(query, n_items, _all_bits_seen(database, n_bits), n_bits, n_equal, advice)


def notes_on_bits(
    query: ByteArray, n_items: int, seen: ByteArray, n_bits: int, n_equal: int = 0, advice: str = ADVICE
) -> list[str]:
    """Report as `usage_notes` does, given what is known of the database codes.

    This is their number, the `bits_seen`, and how many have the most frequent code, or 0 if nobody counted.
    """
    n_constant = n_bits - _n_varying(seen)
    if n_items > 1 and n_constant == n_bits:
        return [f"All {n_items:,} database codes are equal: every item ties, and the scores are those of chance."]
    notes, faults = [], []
    if 2 * n_equal > n_items:
        faults.append(f"{n_equal:,} of {n_items:,} database codes are equal and always tie")
    if n_items >= _LEAST_ITEMS and 4 * n_constant >= n_bits:
        faults.append(f"{n_constant:,} of {n_bits:,} bits are the same in all {n_items:,} database codes")
    if faults:
        notes.append(f"{', and '.join(faults)}. {advice}".rstrip())
    if len(query) > 1 and not _n_varying(_all_bits_seen(query, n_bits)):
        notes.append(f"All {len(query):,} query codes are equal: every query ranks the database alike.")
    return notes


def bits_seen(packed: ByteArray) -> ByteArray:
    """Return which bits are 1 in some of the codes, and which are 0 in some, (2, ceil(n_bits / 8))."""
    return np.stack([np.bitwise_or.reduce(packed), ~np.bitwise_and.reduce(packed)])


def _n_varying(seen: ByteArray) -> int:
    return int(np.bitwise_count(seen[0] & seen[1]).sum())


def _all_bits_seen(codes: SliceableCodes, n_bits: int) -> ByteArray:
    """Return `bits_seen` of packed codes, of which no more are read once all bits vary."""
    seen, n_codes = np.zeros((2, codes.shape[1]), dtype=np.uint8), int(codes.shape[0])
    for rows in [slice(0, _FEW_ROWS), *chunks(_FEW_ROWS, n_codes, _ROWS)]:
        seen |= bits_seen(np.asarray(codes[rows]))
        if _n_varying(seen) == n_bits:
            break
    return seen


def _n_most_frequent(codes: SliceableCodes) -> int:
    """Count the code that is most frequent in a sample; return 0 if it is there on less than a quarter of the rows."""
    n_codes = int(codes.shape[0])
    n_runs = _N_RUNS if n_codes > _FEW_ROWS else 1
    n_rows = _FEW_ROWS // n_runs
    starts = np.linspace(0, max(n_codes - n_rows, 0), n_runs, dtype=np.int64).tolist()
    runs = [np.asarray(codes[start : start + n_rows]) for start in starts]
    sample = np.ascontiguousarray(np.concatenate(runs))  # (n_runs * n_rows, ceil(n_bits / 8))
    ((frequent, count),) = Counter(sample.view(f"V{sample.shape[1]}").ravel().tolist()).most_common(1)
    if 4 * count < len(sample):
        return 0
    frequent = np.frombuffer(frequent, dtype=np.uint8)
    parts = chunks(0, n_codes, _ROWS)
    return sum(int((np.asarray(codes[rows]) == frequent).all(axis=1).sum()) for rows in parts)


def _moments(packed: ByteArray, n_bits: int) -> tuple[FloatArray, FloatArray]:
    """Count how often each bit, and each pair of bits, is set."""
    ones, both = np.zeros(n_bits), np.zeros((n_bits, n_bits))
    for rows in chunks(0, len(packed), _ROWS):
        bits = unpack(packed[rows], n_bits).astype(np.float32)  # sums below 2**24 are exact
        ones += bits.sum(axis=0)
        both += bits.T @ bits
    return ones, both


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
    >>> found = compare_codes([[0, 0], [0, 1]], [[0, 0], [1, 1]])
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


def compare_codes(
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
    >>> compare_codes([[0, 0], [0, 1]], [[0, 0], [1, 1]]).share_equal
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
