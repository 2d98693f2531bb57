"""When training has failed for good: codes that have collapsed, numbers that are none."""

from collections.abc import Sequence

import numpy as np

from hashbench.affinity import Affinity
from hashbench.learning.state import Epoch

_PATIENCE = 3  # epochs that training may spend with next to no codes; many recover


class Stopped(Exception):  # it says when and what, for whoever knows the likely cause
    """Training that cannot recover."""


class StoppedHead(Stopped):
    """Training of a head alone, before that of its network, that cannot recover."""


def stop_if_failed(history: Sequence[Epoch], n_kinds: int, n_bits: int, *, is_over: bool = False) -> None:
    """Raise `Stopped` where training has failed for good.

    Codes of items of ``n_kinds`` kinds, none relevant to another, have collapsed if for three epochs at most half of
    the kinds could have a code of their own and there are no more of them each time; or if one is left in the end.
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
    if n_kinds > 1 and n_bits > 1 and (stays_collapsed or ends_collapsed):  # one bit may have nothing to tell
        codes = "1 code" if last.n_distinct == 1 else f"{last.n_distinct} different codes"
        kinds = f"{n_kinds} kinds, none relevant to another"
        raise Stopped(f"{when}: training items of {kinds}, have only {codes}")


def count_kinds(affinity: Affinity) -> int:
    """Count classes, superclasses or sets of labels that several items have and that are irrelevant to each other."""
    keys = affinity.query_keys()
    first, sizes = np.arange(affinity.n_queries), np.ones(affinity.n_queries, dtype=np.int64)
    if keys is not None:
        _, first, sizes = np.unique(keys, axis=0, return_index=True, return_counts=True)
    n_several = int((sizes > 1).sum())
    left = first[np.argsort(-sizes, kind="stable")][: n_several or None]
    most, n_kinds = n_several or 2, 0  # items that are alone are hardly a measure
    while len(left) and n_kinds < most:  # the most frequent first
        is_relevant = affinity.block(left[:1], left)[0] > 0
        n_kinds += int(is_relevant.any())  # items without labels are of no kind
        left = left[1:][~is_relevant[1:]]
    return n_kinds
