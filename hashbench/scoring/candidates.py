"""How many candidates a two-stage search must fetch: the smallest number whose re-ranking reaches a recall."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from hashbench._typing import FloatArray, IntArray, Progress, silent
from hashbench._validation import refuse_fractions
from hashbench.errors import HashbenchError, needing
from hashbench.scoring.evaluation import Summary
from hashbench.scoring.hamming import HammingRanking
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.intervals import Moments, mean_interval
from hashbench.scoring.metrics import Metric, checked_metrics
from hashbench.scoring.ranking import Ranking
from hashbench.scoring.thresholds import count_kinds

if TYPE_CHECKING:
    import pandas as pd

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
    n_candidates_low, n_candidates_high : int
        95 % interval of the smallest number over other queries like these: the smallest numbers at which the upper and
        the lower end of the recall's interval reach ``wanted``.
    recall : Summary
        The recall with ``n_candidates``: its mean, its lowest and highest value over tie orders, and how far a shuffle
        of the database moves it.

    Examples
    --------
    >>> from hashbench import Problem
    >>> problem = Problem.of_codes([[0, 0]], [[0, 0], [0, 1], [0, 1], [1, 1]], [[1, 1, 0, 0]])
    >>> problem.candidates("R@2", 0.75)[0][:4]
    (0.75, 2, 2, 3)
    """

    wanted: float
    n_candidates: int
    fewest: int
    most: int
    n_candidates_low: int
    n_candidates_high: int
    recall: Summary


class CandidateCounts(list[CandidateCount]):
    """Numbers of candidates, one for each recall."""

    def to_frame(self) -> "pd.DataFrame":
        """One row per recall: the fields of `CandidateCount`, with those of its recall by their names."""
        with needing("to_frame"):
            import pandas as pd

        return pd.DataFrame([{**count._asdict(), **count.recall.by_name} for count in self]).drop(columns="recall")


def count_candidates(
    ranking: Ranking, k: int, wanted_recall: Sequence[float], on_progress: Progress = silent
) -> list[list[int]]:
    """Find the numbers of a `CandidateCount` for each wanted recall; see `Problem.candidates`."""
    refuse_fractions(ranking.levels, f"R@{k}")  # before loops are compiled
    steps = _Steps.of(_histograms(ranking, on_progress), k)
    curves = [*steps.recalls, *steps.interval_ends]
    return [[steps.fewest(recall, k, wanted) for recall in curves] for wanted in wanted_recall]


def _histograms(ranking: Ranking, on_progress: Progress) -> Iterator[tuple[TieHistogram, IntArray]]:
    """Yield histograms of some queries, with the number of queries that each row stands for."""
    if isinstance(ranking, HammingRanking):
        for part in count_kinds(ranking, on_progress):
            yield part.histogram, part.weights
        return
    for parts, counted in ranking.plan([]).parts(None, on_progress):
        for histogram in (counted(part).histogram for part in parts):
            yield histogram, np.ones(histogram.n_queries, dtype=np.int64)


def check_wanted(metric: str, wanted_recall: Sequence[float]) -> Metric:
    """Return the metric ``R@k``; refuse other metrics, and recalls that are not above 0 and at most 1."""
    (chosen,) = checked_metrics([metric], "skip")
    if chosen.family.pattern != "R@k":
        raise HashbenchError(f"candidates are counted for a recall such as R@10, got metric {metric!r}.")
    if not wanted_recall:
        raise HashbenchError("wanted_recall is empty, expected one recall or several, such as [0.9, 0.95].")
    for wanted in wanted_recall:
        if not (isinstance(wanted, int | float) and 0 < wanted <= 1):
            raise HashbenchError(f"the wanted recall is {wanted!r}, expected a number above 0 and at most 1.")
    return chosen


class _Steps(NamedTuple):
    """The tie groups that hold relevant items: the places where the mean recall grows with the candidates."""

    before: IntArray  # items ranked before each group
    size: IntArray
    n_rel: IntArray  # relevant items
    query: IntArray  # the row of each group's query
    n_relevant: IntArray  # relevant items of each query
    n_alike: IntArray  # queries that each row stands for
    n_database: int

    @classmethod
    def of(cls, counted: Iterable[tuple[TieHistogram, IntArray]], k: int) -> Self:
        """Collect the groups of all queries with relevant items; refuse queries with more than ``k``."""
        groups, queries, n_rows, n_database = [], [], 0, 0
        for histogram, weights in counted:
            n_relevant = histogram.n_relevant
            if (largest := int(n_relevant.max(initial=0))) > k:
                raise HashbenchError(
                    f"a query has {largest:,} relevant items, and R@{k} counts at most {k:,} after re-ranking. Make "
                    f"the {k:,} nearest relevant (hashbench prepare --neighbours {k}), or ask for R@{largest}."
                )
            row, group = np.nonzero(histogram.n_rel)
            arrays = (histogram.before, histogram.size, histogram.n_rel)
            groups.append([*(array[row, group] for array in arrays), n_rows + row])
            queries.append([n_relevant, weights * (n_relevant > 0)])
            n_rows += len(n_relevant)
            n_database = max(n_database, int(histogram.n_database.max(initial=0)))
        before, size, n_rel, query = (np.concatenate(column) for column in zip(*groups, strict=True))
        n_relevant, n_alike = (np.concatenate(column) for column in zip(*queries, strict=True))
        steps = cls(before, size, n_rel, query, n_relevant, n_alike, n_database)
        if not steps.n_alike.any():
            raise HashbenchError("no query has a relevant item, so no number of candidates has a recall.")
        return steps

    def mean(self, n_found: FloatArray | IntArray) -> float:
        """Return the mean recall of the queries, given the relevant items found in each group."""
        return float(self.n_alike @ self.of_queries(n_found) / self.n_alike.sum())

    def of_queries(self, n_found: FloatArray | IntArray) -> FloatArray:
        """Return the recall of each row of queries; 0 of those without relevant items, which have no weight."""
        sums = np.bincount(self.query, n_found, minlength=len(self.n_relevant))
        return np.asarray(sums / np.maximum(self.n_relevant, 1))

    def expected(self, m: int) -> FloatArray:
        """Return the relevant items of each group among m candidates, as the mean over tie orders."""
        return np.asarray(self.n_rel * np.clip((m - self.before) / self.size, 0, 1))

    @property
    def recalls(self) -> list[Callable[[int], float]]:
        """The recall as a function of the number of candidates: the mean over tie orders, then the best, the worst."""
        before, size, n_rel, *_ = self
        return [
            lambda m: self.mean(self.expected(m)),
            lambda m: self.mean(np.clip(m - before, 0, n_rel)),
            lambda m: self.mean(np.clip(m - before - (size - n_rel), 0, n_rel)),
        ]

    @property
    def interval_ends(self) -> list[Callable[[int], float]]:
        """The upper and the lower end of the mean's interval over queries; 0 and 1 of a single query.

        Where all queries find all, which shows nothing of others, they count as much as with one candidate less than
        they need for it.
        """

        def moments(m: int) -> Moments:
            return Moments.of(self.of_queries(self.expected(m)), self.n_alike)

        all_found = int((self.before + self.size).max())
        n_draws = moments(all_found - 1).n_draws

        def end(m: int, number: int, unknown: float) -> float:
            value = mean_interval(moments(m), n_draws=n_draws if m >= all_found else None)[number]
            return unknown if np.isnan(value) else value

        return [lambda m: end(m, 1, 1.0), lambda m: end(m, 0, 0.0)]

    def fewest(self, recall: Callable[[int], float], k: int, wanted: float) -> int:
        """Return the smallest number of candidates, at least ``k``, at which a recall reaches the wanted one."""
        numbers = range(min(k, self.n_database), self.n_database)  # all of them have recall 1
        return numbers.start + bisect_left(numbers, True, key=lambda m: recall(m) >= wanted - _ROUNDING)
