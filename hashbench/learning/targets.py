"""Target codes, one per class: Hadamard rows, codes far from each other, and random ones.

Losses that pull the codes of a class to a fixed target need targets that differ in many bits, and bits that do not
repeat each other.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, IntArray, Progress, WordArray, silent
from hashbench.bits import n_words, pack, to_words
from hashbench.errors import Refusal

if TYPE_CHECKING:
    from torch import Tensor

_DRAWS = 100  # sets of signed rows, of which the best is used
_BALANCED_DRAWS = 20
_FAILURES, _FIRST_SHARE, _LOWERED = 10_000, 0.61, 0.01  # of OrthoHash's algorithm 3
_BLOCK = 1000  # codes drawn at a time
_MANY = 5000  # classes whose targets take seconds to draw
_COMPARED = 256  # targets that a block is compared with at a time: their distances stay near the processor


def draw_targets(
    n_classes: int, n_bits: int, kind: str, rng: np.random.Generator, on_progress: Progress = silent
) -> IntArray:
    """Draw a target code for each class; ``on_progress`` counts those of max-distance.

    Returns int8 (n_classes, n_bits), -1 and +1, no two rows alike; raises Refusal if there are no such targets. Kinds:

    ``"hadamard"``: random rows of a Hadamard matrix, each multiplied by a random sign, so that no bit is constant or
    repeats another where possible; for more classes than bits, also their negatives. Two targets differ in ``n_bits /
    2`` bits or in all; if there are only two, in all. Available where ``n_bits`` is a power of two, or a power of two
    times q + 1, q a prime congruent to 3 modulo 4. ``"max-distance"``: random codes, each far from the others.
    ``"balanced"``: as many ones as zeros, else random, the best of 20 draws. ``"bernoulli"``: independent bits. A
    target that another class has is drawn again. ``"auto"``: Hadamard rows where they exist, else max-distance.

    Notes
    -----
    In the first rows of a Sylvester matrix, which CSQ's authors use, bits repeat each other: for ten classes, 16 of 32
    are distinct. Random rows and signs avoid this. Paley's construction is from R. E. A. C. Paley, "On Orthogonal
    Matrices", 1933; max-distance is algorithm 3 of the supplement to OrthoHash, which lowers the required distance
    after every 10,000 rejected codes.
    """
    if n_classes > 2**n_bits:
        raise Refusal(f"{n_bits} bits have only {2**n_bits} targets, got {n_classes} classes. Use more bits.")
    if kind == "auto":
        kind = "hadamard" if n_classes <= 2 * n_bits and _order_is_known(n_bits) else "max-distance"
    draw = partial(_max_distance, on_progress=on_progress) if kind == "max-distance" else _KINDS[kind]
    targets = draw(n_classes, n_bits, rng)
    for _ in range(_DRAWS):
        first = np.unique(targets, axis=0, return_index=True)[1]
        repeated = np.setdiff1d(np.arange(n_classes), first)
        if not repeated.size:
            return targets.astype(np.int8)
        targets[repeated] = draw(len(repeated), n_bits, rng)
    raise Refusal(
        f"{kind} targets of {n_bits} bits are too few for {n_classes} classes: two were equal in all {_DRAWS} draws. "
        "Choose targets=max-distance, or more bits."
    )


def least_distance(targets: AnyArray, enough: int = 0) -> int:
    """Compute the smallest Hamming distance of two targets (n_classes, n_bits); stop at one of ``enough`` or less."""
    words, least = _words(targets), targets.shape[1]
    for rows in chunks(0, len(words), _BLOCK):
        if least <= enough:
            break
        own = _distances(words[rows], words[rows])[np.triu_indices(rows.stop - rows.start, 1)]
        least = min(least, own.min(initial=least), _nearest(words[rows], words[rows.stop :], least).min())
    return int(least)


def item_targets(targets: "Tensor", tie_bits: "Tensor", multi_hot: "Tensor") -> "Tensor":
    """Return the bitwise majority (n_items, n_bits) of the targets of each item's classes, CSQ's rule.

    ``targets`` (n_classes, n_bits) and ``tie_bits`` (n_bits,), which break ties, are -1 and +1; ``multi_hot`` (n_items,
    n_classes) is 0 and 1. All have one floating dtype.
    """
    votes = 2 * (multi_hot @ targets) + tie_bits
    return (votes > 0).to(targets).mul_(2).sub_(1)


def hadamard_matrix(order: int) -> IntArray:
    """Return a Hadamard matrix of -1 and +1 whose first row is all ones; raise Refusal if no construction is known."""
    if order & (order - 1) == 0:
        return np.asarray(hadamard(order), dtype=np.int64)
    if _is_prime(order - 1) and order % 4 == 0:
        return _paley(order - 1)
    if order % 8 == 0:
        half = hadamard_matrix(order // 2)
        return np.block([[half, half], [half, -half]])
    raise Refusal(f"no Hadamard matrix is available for {order} bits. Choose targets=max-distance, or a power of two.")


def _order_is_known(order: int) -> bool:
    try:
        hadamard_matrix(order)
    except Refusal:
        return False
    return True


def _paley(q: int) -> IntArray:
    """Return the Paley matrix of order q + 1, for a prime q congruent to 3 modulo 4."""
    residues = np.full(q, -1)
    residues[np.arange(1, q) ** 2 % q] = 1
    residues[0] = 0
    skew = np.zeros((q + 1, q + 1), dtype=np.int64)
    skew[0, 1:], skew[1:, 0] = 1, -1
    skew[1:, 1:] = residues[np.subtract.outer(np.arange(q), np.arange(q)) % q]
    matrix = skew + np.eye(q + 1, dtype=np.int64)
    return np.asarray(matrix * matrix[0])


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, int(number**0.5) + 1))


def _words(codes: AnyArray) -> WordArray:
    """Pack codes of -1 and +1, (n, n_bits), into words, (n, n_words)."""
    return to_words(pack(codes > 0))


def _distances(first: WordArray, second: WordArray) -> npt.NDArray[Any]:
    """Compute the Hamming distances (n_first, n_second) between packed codes."""
    distance = np.zeros((len(first), len(second)), dtype=np.uint16)
    for a, b in zip(first.T, second.T, strict=True):
        distance += np.bitwise_count(a[:, None] ^ b)
    return distance


def _nearest(codes: WordArray, targets: WordArray, most: int) -> npt.NDArray[Any]:
    """Compute the distance (n_codes,) of each code to the nearest target, at most ``most``."""
    nearest = np.full(len(codes), most)
    for part in chunks(0, len(targets), _COMPARED):
        np.minimum(nearest, _distances(codes, targets[part]).min(axis=1), out=nearest)
    return nearest


def _hadamard(n_classes: int, n_bits: int, rng: np.random.Generator) -> IntArray:
    if n_classes > 2 * n_bits:
        raise Refusal(
            f"{n_bits} bits have at most {2 * n_bits} Hadamard targets, got {n_classes} classes. Choose "
            "targets=max-distance, or more bits."
        )
    matrix = hadamard_matrix(n_bits)
    best, fewest = matrix[:0], n_bits + 1
    for _ in range(_DRAWS):
        if n_classes == 2:  # two rows agree in half of the bits
            row = rng.choice([-1, 1], (1, n_bits))
            return np.concatenate([row, -row])
        if n_classes < n_bits:
            rows = 1 + rng.choice(n_bits - 1, n_classes, replace=False)
            drawn = matrix[rows] * rng.choice([-1, 1], (n_classes, 1))
        else:
            rows = rng.permutation(n_bits)
            signed = matrix[rows] * rng.choice([-1, 1], (n_bits, 1))
            drawn = rng.permutation(np.concatenate([signed, -signed[: n_classes - n_bits]]))
        if (n_useless := _count_useless(drawn)) < fewest:
            best, fewest = drawn, n_useless
        if not fewest:
            break
    return best


def _count_useless(targets: IntArray) -> int:
    """Count bits that are constant over classes, or that another bit repeats, possibly inverted."""
    varying = targets[:, (targets != targets[0]).any(axis=0)]
    return int(targets.shape[1] - np.unique(varying * varying[:1], axis=1).shape[1])


def _max_distance(n_classes: int, n_bits: int, rng: np.random.Generator, on_progress: Progress = silent) -> IntArray:
    targets, signs = np.empty((n_classes, n_words(n_bits)), np.uint64), np.empty((n_classes, n_bits), np.int8)
    n_found, share, n_failed = 0, _FIRST_SHARE, 0
    if n_classes >= _MANY:
        on_progress(f"drawing targets of {n_classes:,} classes", 0, 0)
    drawn, words, distance = signs[:0], targets[:0], np.empty(0)
    while n_found < n_classes:
        if not len(drawn):
            drawn = rng.choice([-1, 1], (_BLOCK, n_bits))
            words = _words(drawn)
            distance = _nearest(words, targets[:n_found], n_bits)
            on_progress("targets of classes", n_found, n_classes)
        fits = np.flatnonzero(distance >= max(share * n_bits, 1))
        n_next = min(fits[0] if fits.size else len(drawn), _FAILURES - n_failed)
        n_failed += n_next
        drawn, words, distance = drawn[n_next:], words[n_next:], distance[n_next:]
        if n_failed == _FAILURES:
            share, n_failed = share - _LOWERED, 0
        elif len(drawn):
            targets[n_found], signs[n_found] = words[0], drawn[0]
            n_found += 1
            distance = np.minimum(distance, _distances(words, words[:1])[:, 0])[1:]
            drawn, words = drawn[1:], words[1:]
    on_progress("targets of classes", n_classes, n_classes)
    return rng.permutation(signs)


def _balanced(n_classes: int, n_bits: int, rng: np.random.Generator) -> IntArray:
    ones = np.where(np.arange(n_bits) < (n_bits + 1) // 2, 1, -1)
    best, most = ones[None], -1
    for _ in range(_BALANCED_DRAWS):
        drawn = rng.permuted(np.tile(ones, (n_classes, 1)), axis=1)
        if (least := least_distance(drawn, enough=most)) > most:
            best, most = drawn, least
    return best


def _bernoulli(n_classes: int, n_bits: int, rng: np.random.Generator) -> IntArray:
    return rng.choice([-1, 1], (n_classes, n_bits))


_KINDS: dict[str, Callable[[int, int, np.random.Generator], IntArray]] = {
    "hadamard": _hadamard,
    "max-distance": _max_distance,
    "balanced": _balanced,
    "bernoulli": _bernoulli,
}
KINDS = ("auto", *_KINDS)
