"""How many candidates a two-stage search must fetch: the smallest number whose re-ranking reaches a recall."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._typing import ByteArray, FloatArray, IntArray, Progress, silent
from hashbench._validation import refuse_fractions
from hashbench.affinity import Affinity, as_affinity
from hashbench.bits import as_packed_pair
from hashbench.errors import HashbenchError
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.counting import SliceableCodes
from hashbench.scoring.evaluation import Evaluation, Summary
from hashbench.scoring.evaluator import check_counts, evaluate_packed
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import leave_out
from hashbench.scoring.metrics import checked_metrics
from hashbench.scoring.self_pairs import check_self
from hashbench.scoring.thresholds import count_kinds

_ROUNDING = 1e-12  # of a mean over queries


class CandidateCount(NamedTuple):
    """The smallest number of candidates whose re-ranking reaches a recall.

    Parameters
    ----------
    wanted : float
        The recall to reach.
    n_candidates : int
        The smallest number whose recall, the mean over all tie orders, is at least ``wanted``.
    fewest, most : int
        The smallest number if each query's ties are broken in the best order, and in the worst.
    recall : Summary
        The recall with ``n_candidates``: its mean, its lowest and highest value over tie orders, and how far a shuffle
        of the database moves it.

    Examples
    --------
    >>> candidates([[0, 0]], [[0, 0], [0, 1], [0, 1], [1, 1]], [[1, 1, 0, 0]], "R@2", 0.75)[0][:4]
    (0.75, 2, 2, 3)
    """

    wanted: float
    n_candidates: int
    fewest: int
    most: int
    recall: Summary


@reporting_compilation()
def candidates(
    query_codes: npt.ArrayLike,
    database_codes: npt.ArrayLike,
    affinity: Any,
    metric: str,
    wanted_recall: float | Sequence[float],
    *,
    n_bits: int | None = None,
    bit_order: str | None = None,
    exclude_self: bool = False,
    exclude_same_id: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    junk_label: int | str | Sequence[int | str] | None = None,
) -> list[CandidateCount]:
    """Find the smallest number of candidates by Hamming distance whose re-ranking reaches a recall.

    Parameters
    ----------
    query_codes, database_codes, affinity, n_bits, bit_order, exclude_self, exclude_same_id, groups, junk_label
        As in `hashbench.evaluate`. The relevant items are taken to be the nearest by the distance that re-ranks, as
        true neighbours are.
    metric : str
        ``R@k``, such as ``R@10``: the share of a query's relevant items, at most k of them, among the first k of the
        re-ranked candidates.
    wanted_recall : float or sequence of float
        Recalls to reach, above 0 and at most 1.

    Returns
    -------
    list of CandidateCount
        One for each recall, in order. No number is below k.

    Raises
    ------
    HashbenchError
        If codes, affinity and metric do not fit together, or a query has more than k relevant items.

    Notes
    -----
    Re-ranking puts the true neighbours among m candidates first. There are at most k of them, so the recall of the
    first k is the share that was fetched: ``R@m``, which grows with m.

    Examples
    --------
    Two of three tied items are true neighbours:

    >>> found = candidates([[0, 0]], [[0, 1], [0, 1], [1, 0], [1, 1]], [[1, 1, 0, 0]], "R@2", [0.6, 0.9])
    >>> [(count.n_candidates, count.fewest, count.most) for count in found]
    [(2, 2, 3), (3, 2, 3)]
    """
    query, database, width = as_packed_pair(query_codes, database_codes, n_bits, bit_order)
    wanted = np.atleast_1d(wanted_recall).tolist()
    rule = leave_out(as_affinity(affinity), exclude_self, exclude_same_id, groups, junk_label)
    return candidates_packed(query, database, width, rule, metric, wanted)[0]


def candidates_packed(
    query: ByteArray,
    database: SliceableCodes,
    n_bits: int,
    affinity: Affinity,
    metric: str,
    wanted_recall: Sequence[float],
    on_progress: Progress = silent,
) -> tuple[list[CandidateCount], Evaluation]:
    """Find candidates of packed codes, (n, ceil(n_bits / 8)), and the evaluation that their recalls are from."""
    codes = query, database, n_bits, affinity
    k = check_wanted(metric, wanted_recall)
    refuse_fractions(affinity.levels, f"R@{k}")  # before loops are compiled
    check_counts((len(query), database.shape[0]), (affinity.n_queries, affinity.n_database))
    check_self(query, database, affinity)
    score = partial(evaluate_packed, *codes, on_progress=on_progress)
    counted = ((part.histogram, part.weights) for part in count_kinds(*codes, on_progress))
    return count_candidates(counted, score, metric, wanted_recall)


def count_candidates(
    counted: Iterable[tuple[TieHistogram, IntArray]],
    score: Callable[[Iterable[str]], Evaluation],
    metric: str,
    wanted_recall: Sequence[float],
) -> tuple[list[CandidateCount], Evaluation]:
    """Find candidates given histograms with the number of queries that each counts for, and a way to score metrics."""
    k = check_wanted(metric, wanted_recall)
    steps = _Steps.of(counted, k)
    counts = [[steps.fewest(recall, k, wanted) for recall in steps.recalls] for wanted in wanted_recall]
    evaluation = score([f"R@{n_candidates}" for n_candidates, _, _ in counts])
    found = [
        CandidateCount(wanted, n_candidates, fewest, most, evaluation[f"R@{n_candidates}"])
        for wanted, (n_candidates, fewest, most) in zip(wanted_recall, counts, strict=True)
    ]
    return found, evaluation


def check_wanted(metric: str, wanted_recall: Sequence[float]) -> int:
    """Return the cutoff of ``R@k``; refuse other metrics, and recalls that are not above 0 and at most 1."""
    (chosen,) = checked_metrics([metric], "skip")
    if chosen.form:
        raise HashbenchError(
            f"candidates are counted by Hamming distance, got metric {metric!r}; leave :{chosen.form} out."
        )
    if chosen.family.pattern != "R@k":
        raise HashbenchError(f"candidates are counted for a recall such as R@10, got metric {metric!r}.")
    if not wanted_recall:
        raise HashbenchError("wanted_recall is empty, expected one recall or several, such as [0.9, 0.95].")
    for wanted in wanted_recall:
        if not (isinstance(wanted, int | float) and 0 < wanted <= 1):
            raise HashbenchError(f"the wanted recall is {wanted!r}, expected a number above 0 and at most 1.")
    return int(chosen.arguments[0])


class _Steps(NamedTuple):
    """The tie groups that hold relevant items: the places where the mean recall grows with the candidates."""

    before: IntArray  # items ranked before each group
    size: IntArray
    n_rel: IntArray  # relevant items
    gain: FloatArray  # of one relevant item, to the mean over the queries
    n_database: int

    @classmethod
    def of(cls, counted: Iterable[tuple[TieHistogram, IntArray]], k: int) -> _Steps:
        """Collect the groups of all queries with relevant items; refuse queries with more than ``k``."""
        columns, n_scored, n_database = [], 0, 0
        for histogram, weights in counted:
            n_relevant = histogram.n_relevant
            if (largest := int(n_relevant.max(initial=0))) > k:
                raise HashbenchError(
                    f"a query has {largest:,} relevant items, and R@{k} counts at most {k:,} after re-ranking. Make "
                    f"the {k:,} nearest relevant (hashbench prepare --neighbours {k}), or ask for R@{largest}."
                )
            row, group = np.nonzero(histogram.n_rel)
            arrays = (histogram.before, histogram.size, histogram.n_rel)
            columns.append([*(array[row, group] for array in arrays), weights[row] / n_relevant[row]])
            n_scored += int(weights @ (n_relevant > 0))
            n_database = max(n_database, int(histogram.n_database.max(initial=0)))
        if not n_scored:
            raise HashbenchError("no query has a relevant item, so no number of candidates has a recall.")
        before, size, n_rel, gain = (np.concatenate(column) for column in zip(*columns, strict=True))
        return cls(before, size, n_rel, gain / n_scored, n_database)

    @property
    def recalls(self) -> list[Callable[[int], float]]:
        """The recall as a function of the number of candidates: the mean over tie orders, then the best, the worst."""
        before, size, n_rel, gain, _ = self
        return [
            lambda m: float(np.sum(gain * n_rel * np.clip((m - before) / size, 0, 1))),
            lambda m: float(np.sum(gain * np.clip(m - before, 0, n_rel))),
            lambda m: float(np.sum(gain * np.clip(m - before - (size - n_rel), 0, n_rel))),
        ]

    def fewest(self, recall: Callable[[int], float], k: int, wanted: float) -> int:
        """Return the smallest number of candidates, at least ``k``, at which a recall reaches the wanted one."""
        numbers = range(min(k, self.n_database), self.n_database)  # all of them have recall 1
        return numbers.start + bisect_left(numbers, True, key=lambda m: recall(m) >= wanted - _ROUNDING)
