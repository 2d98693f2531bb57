"""Pairs of training items, similar (level above 0) or not; shared by the supervised methods.

A pair has one level: where the affinity's two directions differ, the higher one. An affinity relates all training
items to each other, and ``rows`` selects some of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

from hashbench._typing import BoolArray, IntArray, LevelArray
from hashbench.affinity import Affinity
from hashbench.errors import Refusal
from hashbench.method import HashMethod

_BATCH = 256  # items whose affinity to all others is held at once


@dataclass(frozen=True)
class Pairs:
    """Unordered pairs of different items, each pair once."""

    first: IntArray  # positions of the items, (n_pairs,); the first is the smaller
    second: IntArray
    level: IntArray  # of each pair, (n_pairs,); above 0 is similar


def similar_matrix(method: HashMethod, affinity: Affinity, rows: IntArray) -> BoolArray:
    """Return which pairs of items are similar, (n, n); True on the diagonal. Raise Refusal if none is, or all are."""
    similar = affinity.block(rows, rows) > 0
    similar |= similar.T
    np.fill_diagonal(similar, True)
    n_similar = int(similar.sum()) - len(rows)
    check_both_kinds(method, len(rows), n_similar, similar.size - len(rows) - n_similar)
    return np.asarray(similar)


def draw_pairs(
    method: HashMethod, affinity: Affinity, rows: IntArray, n_similar: int, n_dissimilar: int, rng: np.random.Generator
) -> Pairs:
    """Draw ``n_similar`` similar and ``n_dissimilar`` dissimilar partners, or all if there are fewer, for each item.

    Pairs hold positions in ``rows``. An item that is also drawn as a partner ends up in more pairs. Raises Refusal if
    there is no similar pair, or no dissimilar one.
    """
    n = len(rows)
    keys, levels = [], []
    for start, level in _pair_levels(affinity, rows):
        order = rng.random(level.shape, dtype=np.float32)
        for wanted, kind in ((n_similar, level > 0), (n_dissimilar, level == 0)):
            n_most = min(wanted, n)
            partners = np.argpartition(np.where(kind, order, 2), n_most - 1, axis=1)[:, :n_most]
            row, column = np.nonzero(np.take_along_axis(kind, partners, axis=1))
            item, partner = row + start, partners[row, column]
            keys.append(np.minimum(item, partner) * n + np.maximum(item, partner))
            levels.append(level[row, partner])
    distinct, index = np.unique(np.concatenate(keys), return_index=True)
    first, second = np.divmod(distinct, n)
    chosen = np.concatenate(levels)[index].astype(np.int64)
    check_both_kinds(method, n, int((chosen > 0).sum()), int((chosen == 0).sum()))
    return Pairs(first, second, chosen)


def _pair_levels(affinity: Affinity, rows: IntArray) -> Iterator[tuple[int, LevelArray]]:
    """Yield the number of the first item of a batch and its levels to all items; -1 for an item and itself."""
    for batch in gen_batches(len(rows), _BATCH):
        level = np.maximum(affinity.block(rows[batch], rows), affinity.block(rows, rows[batch]).T)
        level[np.arange(len(level)), batch.start + np.arange(len(level))] = -1
        yield batch.start, level


def check_both_kinds(method: HashMethod, n_items: int, n_similar: int, n_dissimilar: int) -> None:
    """Raise Refusal unless there are similar and dissimilar pairs."""
    if not n_similar or not n_dissimilar:
        lacking = "similar" if not n_similar else "dissimilar"
        raise Refusal(
            f"{method.label} learns from similar and dissimilar pairs of training items, got n_samples={n_items} "
            f"without any {lacking} pair. Pass items of at least two classes, several of each."
        )
