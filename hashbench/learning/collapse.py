"""Detection of training that cannot recover: collapsed codes, or a loss that is not finite."""

from collections.abc import Sequence

import numpy as np

from hashbench.affinity import Affinity
from hashbench.learning.state import Epoch

_PATIENCE = 3  # epochs with too few codes before training is stopped; many recover


class Stopped(Exception):  # its message is completed by the caller, who knows the likely cause
    """Training that cannot recover."""


class StoppedHead(Stopped):
    """Training of only the head, before its network, that cannot recover."""


def stop_if_failed(history: Sequence[Epoch], n_kinds: int, n_bits: int, *, is_over: bool = False) -> None:
    """Raise `Stopped` if training cannot recover.

    Codes of items of ``n_kinds`` kinds, none relevant to another, have collapsed if for three epochs there are codes
    for at most half of the kinds and their number does not grow, or if there is only one at the end.
    """
    last = history[-1]
    when = f"after epoch {last.number}, with mean |output| {last.mean_output:.3g}"
    if not np.isfinite(last.loss):
        raise Stopped(f"{when}: the loss is {last.loss}")
    share = 2 if 2**n_bits >= n_kinds**2 else 4  # with fewer bits kinds share codes even by chance
    n_too_few = max(min(n_kinds, 2**n_bits) // share, 1)
    counts = [epoch.n_distinct for epoch in history[-_PATIENCE:]]
    stays_collapsed = len(counts) == _PATIENCE and max(counts) <= n_too_few and counts[-1] <= counts[0]
    ends_collapsed = is_over and last.n_distinct == 1
    if n_kinds > 1 and n_bits > 1 and (stays_collapsed or ends_collapsed):  # a single bit may be constant
        codes = "1 code" if last.n_distinct == 1 else f"{last.n_distinct} different codes"
        kinds = f"{n_kinds} kinds, none relevant to another"
        raise Stopped(f"{when}: training items of {kinds}, have only {codes}")


def count_kinds(affinity: Affinity) -> int:
    """Count classes, superclasses or label sets that several items share and that are irrelevant to each other."""
    keys = affinity.query_keys()
    first, sizes = np.arange(affinity.n_queries), np.ones(affinity.n_queries, dtype=np.int64)
    if keys is not None:
        _, first, sizes = np.unique(keys, axis=0, return_index=True, return_counts=True)
    n_several = int((sizes > 1).sum())
    candidates = first[np.argsort(-sizes, kind="stable")][: n_several or None]  # the most frequent first
    max_kinds, n_kinds = n_several or 2, 0  # kinds of one item each hardly count
    while len(candidates) and n_kinds < max_kinds:
        is_relevant = affinity.block(candidates[:1], candidates)[0] > 0
        n_kinds += int(is_relevant.any())  # items without labels have no kind
        candidates = candidates[1:][~is_relevant[1:]]
    return n_kinds
