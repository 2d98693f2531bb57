"""What orders the items of each query, and the one loop that scores it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from hashbench._parallel import QUERY_CHUNK, chunks
from hashbench._typing import AnyArray, IntArray, Progress, Rows, Undefined, silent
from hashbench._validation import are_real
from hashbench.affinity import Affinity
from hashbench.bits import to_words
from hashbench.errors import HashbenchError
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.equal_rows import number_rows
from hashbench.scoring.evaluation import DEFAULT_METRICS, Evaluation
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import notes_on_ignored
from hashbench.scoring.metrics import Metric, checked_metrics
from hashbench.scoring.random_orders import measure
from hashbench.scoring.score_table import Counted, ItemSums, ScoreTable

ALL = slice(None)
_CHANCE = "All items of each query tie: the scores are those of chance."
Parts = tuple[Sequence[slice], Callable[[slice], Counted]]  # of the queries, and how one of them is counted


class QueryKinds(NamedTuple):
    """Kinds of queries, alike in code and in their level with every item; learned codes have few."""

    first: IntArray  # (n_kinds,): a query of each kind
    of_query: IntArray  # (n_queries,): the kind of each query

    @classmethod
    def of(cls, codes: AnyArray, keys: IntArray | None) -> Self:
        """Find kinds by packed codes, or other bytes, and `Affinity.query_keys`; without keys all queries differ."""
        if keys is None:
            return cls(np.arange(len(codes)), np.arange(len(codes)))
        of_query, first = number_rows([*to_words(codes).T, *keys.T])
        return cls(first, of_query)

    @property
    def are_few(self) -> bool:
        """Whether it pays to score one of each."""
        return 2 * len(self.first) <= len(self.of_query)


class Plan(NamedTuple):
    """How a ranking is counted for some metrics."""

    parts: Callable[[ItemSums | None, Progress], Iterator[Parts]]
    n_scored: int  # queries that are counted
    origin: Rows = ALL  # of each query the one that is counted for it
    n_alike: IntArray | None = None  # (n_scored,): queries that each stands for
    rows: IntArray | None = None  # items that stand for all where sums over items are kept; without, none are
    keys: IntArray | None = None  # (n_rows, n_keys), which differ where a row of other data holds another item


class Ranking(ABC):
    """Tie groups of items, in order of rank, and the relevance of each item, query by query."""

    n_queries: int
    n_items: int  # of the database, or documents
    relevance: Affinity | None  # None of lists
    by_radius = False  # whether tie group d is Hamming distance d
    of_run = False
    is_counted_one_by_one = False  # since queries have too many levels together

    @property
    def levels(self) -> AnyArray:
        """All levels of relevance that can occur, ascending."""
        return np.array([0, 1]) if self.relevance is None else self.relevance.levels

    @property
    def notes(self) -> list[str]:
        """Sentences on the codes or scores that their owner should read."""
        return []

    def check(self, metric: Metric) -> None:
        """Refuse a metric that needs what this ranking lacks."""
        metric.check_ranking(self.levels, by_radius=self.by_radius)

    @property
    @abstractmethod
    def key_bytes(self) -> AnyArray:
        """Bytes of each query, (n_queries, n_bytes) in uint8: equal ones rank items alike."""

    @cached_property
    def kinds(self) -> QueryKinds:
        """The kinds of queries."""
        return QueryKinds.of(self.key_bytes, None if self.relevance is None else self.relevance.query_keys())

    @cached_property
    def plain_kinds(self) -> QueryKinds:
        """The kinds of queries but for the items that they ignore."""
        if self.relevance is None or self.relevance.plain is self.relevance:
            return self.kinds
        return QueryKinds.of(self.key_bytes, self.relevance.plain.query_keys())

    @cached_property
    def alike(self) -> IntArray | None:
        """The first query with the same labels, of each query; None where that is not known."""
        keys = None if self.relevance is None else self.relevance.plain.query_keys()
        if keys is None:
            return None
        number, first = number_rows([*keys.T])
        return first[number]

    @abstractmethod
    def plan(self, metrics: Sequence[Metric]) -> Plan:
        """Return how queries are counted for some metrics."""

    @abstractmethod
    def ranked(self, queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        """Return a function from an order of all items to the histogram of some queries, tied items in that order."""


def score(
    ranking: Ranking,
    metrics: Sequence[Metric],
    undefined: str,
    random_orders: int = 0,
    on_progress: Progress = silent,
) -> Evaluation:
    """Score the queries of a ranking by metrics that `Ranking.check` lets pass; notes are on what was counted."""
    plan, items = ranking.plan(metrics), None
    if plan.rows is not None:
        items = ItemSums(metrics, plan.n_scored, plan.rows, ranking.n_items, plan.n_alike, plan.keys)
    table = ScoreTable(metrics, undefined, plan.n_scored, items)
    with reporting_compilation(on_progress):
        for parts, counted in plan.parts(items, on_progress):
            table.fill(parts, counted, one_by_one=ranking.is_counted_one_by_one)
    evaluation = table.evaluation(plan.origin, ranking.plain_kinds.of_query)
    notes = [_CHANCE] * (not ranking.by_radius and bool(table.is_tied.all()))  # of codes, `Ranking.notes` say it
    if ranking.relevance is not None:
        has_relevant = bool(table.n_relevant.any())
        notes += notes_on_ignored(ranking.relevance, table.n_left[plan.origin], has_relevant=has_relevant)
    notes += table.readings(plan.origin)
    evaluation = replace(evaluation, alike=ranking.alike, of_run=ranking.of_run, notes=notes)
    if not random_orders or not metrics:
        return evaluation
    ranking.ranked(np.arange(1))  # which reads what threads share
    return measure(
        evaluation,
        ranking.ranked,
        ranking.n_items,
        undefined,
        random_orders,
        on_progress,
        alike=ranking.kinds.of_query,
        are_real=are_real(ranking.levels),
    )


class CountedRanking(Ranking):
    """A histogram, of which the items behind the counts are not known."""

    relevance = None

    def __init__(self, histogram: TieHistogram) -> None:
        self.histogram, self.n_queries = histogram, histogram.n_queries
        self.n_items = int(histogram.n_database.max(initial=0))
        self.by_radius = histogram.by_radius

    @property
    def levels(self) -> AnyArray:
        """Those of the histogram."""
        return self.histogram.levels

    @property
    def key_bytes(self) -> AnyArray:
        """Of each query its number."""
        return np.arange(self.n_queries)[:, None].view(np.uint8)

    def plan(self, metrics: Sequence[Metric]) -> Plan:
        """Count parts by selecting them."""
        parts = chunks(0, self.n_queries, QUERY_CHUNK)
        return Plan(lambda *_: iter([(parts, lambda part: Counted(self.histogram.part(part)))]), self.n_queries)

    def ranked(self, queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        """Refuse, since no order of items is known."""
        raise NotImplementedError


def evaluate_histogram(
    histogram: TieHistogram, metrics: Iterable[str] = DEFAULT_METRICS, *, undefined: Undefined = "skip"
) -> Evaluation:
    """Score the queries of a histogram, such as one that you count while you stream a database.

    Parameters
    ----------
    histogram : TieHistogram
        The items of each level of relevance at each distance, of each query.
    metrics : iterable of str
        Names such as ``AP``.
    undefined : {"skip", "paper", "zero"}, default="skip"
        As in `hashbench.evaluate`.

    Returns
    -------
    Evaluation
        It is not known which items move several queries at once, so ``tie_sd`` takes the queries as independent and
        may be too small; ``tie_sd_bound`` holds.

    Raises
    ------
    HashbenchError
        If counts are not whole numbers of shape (n_queries, n_levels, n_groups) from 0 on, levels do not ascend from 0,
        or a metric needs more than a histogram has.

    Examples
    --------
    Of one query, an item of level 0 and one of level 1 at distance 0, and one of level 0 at distance 1:

    >>> evaluate_histogram(TieHistogram(np.array([[[1, 1], [1, 0]]])), ["AP"])
    <Evaluation of 1 query; AP: 0.7500 (0.5000 to 1.0000; tie_sd 0.2500)>
    """
    counts, levels = np.asarray(histogram.counts), np.asarray(histogram.levels)
    if counts.ndim != 3 or 0 in counts.shape or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise HashbenchError(
            f"counts are {counts.dtype} of shape {counts.shape}, expected whole numbers from 0 on, of shape "
            "(n_queries, n_levels, n_groups)."
        )
    if levels.shape != counts.shape[1:2] or levels[0] != 0 or (np.diff(levels) <= 0).any():
        raise HashbenchError(f"levels are {levels.tolist()}, expected {counts.shape[1]} that ascend from 0.")
    return score(CountedRanking(histogram), checked_metrics(metrics, undefined), undefined)
