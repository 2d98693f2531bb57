"""The same codes through every script, and where each number comes from.

The conventions of a script are switched on one by one, in every sequence.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hashbench._typing import BoolArray, ByteArray, FloatArray, IntArray, Progress, silent
from hashbench._validation import refuse_fractions
from hashbench.affinity import Affinity, SharedLabels
from hashbench.errors import HashbenchError, counted
from hashbench.reports.explain import quantities
from hashbench.reports.explain.quantities import DIVISOR_WORDS, MEANS, First
from hashbench.reports.explain.ranking import DISTANCES, Query, Scoring, Sort, count_ties, n_left, score, visit_queries
from hashbench.reports.explain.scripts import EVALUATORS, Evaluator, metric_pattern
from hashbench.scoring.hamming import check_counts
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import Scores, get_metric

TIE_ORDER = "tie order"
N_ERRORS = 5  # standard errors that an estimate may be off
_N_PARTS = 32  # of a sample, for its standard error


class Cause(NamedTuple):
    """A convention in which a script differs from hashbench, and its share of the difference.

    The change that a convention makes depends on those switched before it; the share is the mean over all sequences
    (Shapley value). A quantity of the script's own comes last.
    """

    words: str
    share: float


class Estimate(NamedTuple):
    """A script's value over all queries, estimated from some of them."""

    value: float
    low: float
    high: float
    n_queries: int  # that were ranked; if none were, low and high bound every order of ties


class TieRange(NamedTuple):
    """An exact value, and its range over tie orders."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Explanation:
    """A script's value beside the exact one."""

    evaluator: Evaluator
    metric: str  # by hashbench's name
    value: float  # the script's; NaN also if there is only an estimate
    exact: TieRange  # hashbench's; queries without relevant items are left out
    script_range: TieRange  # exact under the script's conventions, and bounds over tie orders
    causes: tuple[Cause, ...]  # their shares add up to the difference
    n_queries: int
    n_undefined: int  # without relevant items
    estimate: Estimate | None = None  # where a search has ruled the script out without ranking all queries

    @property
    def difference(self) -> float:
        """The script's value minus the exact one."""
        return self.value - self.exact.mean


def explain(
    query: ByteArray,
    database: ByteArray,
    n_bits: int,
    affinity: Affinity,
    metrics: Sequence[str],
    evaluators: Sequence[Evaluator] = EVALUATORS,
    on_progress: Progress = silent,
) -> list[Explanation]:
    """Score packed codes by the scripts that compute one of the metrics, the database in the order given.

    Metrics are AP, NDCG, NDCG:trec, P@k, R@k, Hit@k, P@rN or R@rN, with any cut. Scripts get the items that a query
    does not ignore. Returns the explanations metric by metric, scripts in their order. Raises HashbenchError if no
    script computes any of the metrics.
    """
    return Emulation(query, database, n_bits, affinity, metrics, evaluators).explanations(on_progress)


def _jobs(sizes: IntArray, metrics: Sequence[str], evaluators: Sequence[Evaluator]) -> list["Job"]:
    """List the scripts that compute each metric of queries with so many items."""
    n_items, n_fewest = int(sizes.max()), int(sizes.min())
    names = dict.fromkeys(get_metric(name).name for name in metrics)
    cuts = [
        (script, name, cut)
        for name in names
        for script in _accepting(metrics, evaluators, n_items)
        if (cut := script.cut_of(name, n_items, n_fewest)) is not None
    ]
    if not cuts:
        raise HashbenchError(describe_missing(next(iter(names)), evaluators, n_items))
    largest = max((cut for script, _, cut in cuts if script.shares_cut), default=0)
    return [Job.of(*cut, n_items, largest, int(sizes.sum())) for cut in cuts]


def _accepting(metrics: Iterable[str], evaluators: Iterable[Evaluator], n_items: int) -> list[Evaluator]:
    """Return the scripts, without those that sort once for the largest cut if they do not accept that."""
    scripts, names = list(evaluators), list(metrics)
    cuts = [script.cut_of(name, n_items) or 0 for script in scripts if script.shares_cut for name in names]
    largest = max(cuts, default=0)
    return [script for script in scripts if not script.shares_cut or largest >= script.least_cut]


def describe_missing(name: str, evaluators: Sequence[Evaluator], n_items: int) -> str:
    """Return a sentence on a metric that no script is compared with, and on those that some are."""
    chosen = [script.name for script in evaluators]
    scripts = "no script gives" if len(chosen) >= len(EVALUATORS) else f"none of {', '.join(chosen)} gives"
    known = dict.fromkeys(pattern for script in evaluators for pattern in script.gives)
    cut = f", k from 2 to {n_items}" if metric_pattern(name) in known and "@k" in metric_pattern(name) else ""
    return f"{scripts} {name} of {counted(n_items, 'item')}; ask for {', '.join(known)}{cut}."


Switches = frozenset[str]  # the script's conventions that are on; hashbench's stands in for the others


class _Conventions(NamedTuple):
    """What decides a value, apart from a quantity of a script's own; each field is a switch."""

    mean: str
    divisor: str  # of AP@k
    cut: int  # how many items, or which radius
    distance: str
    sort: Sort | None  # None: the exact value over all orders of ties


class Job(NamedTuple):
    """A script and a metric, by the script's conventions and by hashbench's."""

    evaluator: Evaluator
    metric: str
    n_items: int
    script: _Conventions
    exact: _Conventions
    own_sort: Sort | None  # of a quantity of the script's own

    @classmethod
    def of(cls, script: Evaluator, metric: str, cut: int, n_items: int, largest: int, n_pairs: int) -> "Job":
        """Return a job; a script that shares its cut sorts for the ``largest``."""
        divisor, own = (metric.partition(":")[2], script.divisor) if metric.startswith("AP@") else ("", "")
        all_or_cut = cut if "@" in metric else n_items
        sort = None if "@r" in metric else script.sort(largest if script.shares_cut else cut, n_pairs)
        own_sort = script.sort(cut, n_pairs) if script.quantity else None
        theirs = _Conventions(script.mean, own, cut, script.distance, sort)
        exact = _Conventions("leave_out", divisor, all_or_cut, "hamming", None)
        return cls(script, metric, n_items, theirs, exact, own_sort)

    @property
    def switches(self) -> dict[str, str]:
        """The conventions in which the script differs from hashbench, in words."""
        words = {
            "mean": MEANS[self.script.mean].words,
            "divisor": f"divisor: {DIVISOR_WORDS.get(self.script.divisor)}",
            "cut": "the last item is lost",
            "distance": DISTANCES[self.script.distance].words,
            "sort": TIE_ORDER,
        }
        return {name: text for name, text in words.items() if getattr(self.script, name) != getattr(self.exact, name)}

    def variant(self, on: Switches) -> _Conventions:
        """Return the conventions with the script's where they are switched on, else hashbench's."""
        return self.exact._replace(**{name: getattr(self.script, name) for name in on})

    @property
    def over_all_orders(self) -> _Conventions:
        """The script's conventions, over all orders of ties."""
        return self.script._replace(sort=None)

    @property
    def needs(self) -> "list[Need]":
        """All that the explanation is computed from."""
        variants = [*map(self.variant, subsets(self.switches)), self.over_all_orders]
        return [*(scoring for variant in variants for scoring in self.scorings(variant)), *self._own_needs]

    @property
    def value_needs(self) -> "list[Need]":
        """All that the script's value is computed from."""
        return self._own_needs or [*self.scorings(self.script)]

    @property
    def _own_needs(self) -> "list[Need]":
        return [self if self.own_sort else self.script.distance] if self.evaluator.quantity else []

    @property
    def sorts(self) -> bool:
        """Whether the value depends on how the script sorts."""
        return bool(self.own_sort if self.evaluator.quantity else self.script.sort)

    def scorings(self, conventions: _Conventions) -> tuple[Scoring, Scoring]:
        """Return the scorings of the metric by some conventions, and of hits."""
        metric = self.metric
        if metric.startswith("AP@"):
            metric = f"{metric.partition(':')[0]}:{conventions.divisor or 'retrieved'}"
        elif metric == "AP" and conventions.cut < self.n_items:
            metric = f"AP@{conventions.cut}"
        names = metric, f"Hit@{conventions.cut}" if conventions.mean == "leave_out_without_hits" else metric
        first, second = (Scoring(name, conventions.distance, conventions.sort) for name in names)
        return first, second


Need = Scoring | Job | str  # scores, values of the own quantity of a job, or counts by a distance


def is_exact(need: Need) -> bool:
    """Return whether no order affects it."""
    return need.sort is None if isinstance(need, Scoring) else isinstance(need, str)


class Emulation:
    """Scores of queries by the scripts that compute one of the metrics, the database in the order given.

    Raises HashbenchError if no script computes any of the metrics.
    """

    def __init__(
        self,
        query: ByteArray,
        database: ByteArray,
        n_bits: int,
        affinity: Affinity,
        metrics: Sequence[str],
        evaluators: Sequence[Evaluator] = EVALUATORS,
    ) -> None:
        check_counts((len(query), len(database)), (affinity.n_queries, affinity.n_database))
        refuse_fractions(affinity.levels, "hashbench explain")
        self._pairs = query, database, n_bits, affinity
        self.n_queries, self._levels = len(query), affinity.levels
        self.jobs = _jobs(n_left(affinity), metrics, evaluators)
        self._is_done: dict[Need, BoolArray] = {}  # by need and query
        self._scores: dict[Need, FloatArray] = {}  # (4, n_queries), or (1, n_queries) if sorted
        self._own_values: dict[Need, FloatArray] = {}  # (n_queries,)
        self._counts: dict[Need, IntArray] = {}  # (n_queries, n_levels, n_groups)
        self._n_relevant = np.zeros(self.n_queries, np.int64)
        self._is_labelled: BoolArray = np.ones(self.n_queries, dtype=bool)
        if isinstance(affinity.plain, SharedLabels):
            self._is_labelled = np.asarray(affinity.plain.query_labels.any(axis=1))

    def score(
        self,
        needs: Iterable[Need],
        rows: IntArray | None = None,
        what: str = "",
        on_progress: Progress = silent,
    ) -> None:
        """Compute what is needed of some queries, by default all, unless it is known; 0 where nothing is relevant."""
        needs = dict.fromkeys(needs)
        if not needs:
            return
        shape = self.n_queries, len(self._levels), 2 * self._pairs[2] + 1
        for need in needs:
            self._is_done.setdefault(need, np.zeros(self.n_queries, dtype=bool))
            if isinstance(need, Scoring):
                self._scores.setdefault(need, np.zeros((1 if need.sort else 4, self.n_queries)))
            elif isinstance(need, Job):
                self._own_values.setdefault(need, np.zeros(self.n_queries))
            elif need not in self._counts:
                self._counts[need] = np.zeros(shape, np.int64)

        def add(queries: list[Query]) -> None:
            numbers = np.array([query.number for query in queries])
            self._add(queries, numbers, [need for need in needs if not self._is_done[need][numbers].all()])

        visit_queries(*self._pairs, add, rows, what, on_progress)

    def _add(self, queries: list[Query], rows: IntArray, needs: list[Need]) -> None:
        self._n_relevant[rows] = [np.count_nonzero(query.levels) for query in queries]
        scorings = [need for need in needs if isinstance(need, Scoring)]
        for scoring, of_queries in zip(scorings, score(queries, scorings, self._levels), strict=True):
            self._scores[scoring][:, rows] = of_queries[: len(self._scores[scoring])]
        for need in needs:
            if isinstance(need, Job):
                assert need.own_sort is not None
                quantity, own = getattr(quantities, need.evaluator.quantity), (need.script.distance, need.own_sort)
                first = [First(query, *own, need.script.cut) for query in queries]
                self._own_values[need][rows] = [quantity(of_query) for of_query in first]
            elif isinstance(need, str):
                counts = count_ties(queries, need, self._levels).counts
                self._counts[need][rows, :, : counts.shape[2]] = counts
            self._is_done[need][rows] = True

    def share_exact(self, other: "Emulation") -> None:
        """Take what does not depend on the order of the database from an emulation of another order."""
        for need in filter(is_exact, other._is_done):
            self._is_done[need] = other._is_done[need]
            if isinstance(need, str):
                self._counts[need] = other._counts[need]
            else:
                self._scores[need] = other._scores[need]
        self._n_relevant = other._n_relevant

    def explanations(self, on_progress: Progress = silent) -> list[Explanation]:
        """Score all queries, and explain the values of all scripts."""
        self.score((need for job in self.jobs for need in job.needs), None, "queries ranked", on_progress)
        return [self.explanation(job) for job in self.jobs]

    def explanation(self, job: Job) -> Explanation:
        """Share the difference between the exact value and the script's among its conventions."""
        words = job.switches
        values = {on: self._range(job, job.variant(on)).mean for on in subsets(words)}
        causes = causes_of(values, words, "mean")
        value = by_conventions = values[frozenset(words)]
        if job.evaluator.own:
            value = self._own(job)
            if value != by_conventions and not math.isnan(by_conventions):
                causes += (Cause(job.evaluator.own, value - by_conventions),)
        return self._explained(job, value, causes)

    def bounds(self, job: Job) -> Estimate:
        """Return the value of a script that sorts over all orders of ties, and bounds: 0 and 1 for its own quantity."""
        mean, low, high = self._range(job, job.over_all_orders)
        if job.evaluator.quantity and not math.isnan(mean):
            low, high = 0.0, 1.0
        return Estimate(mean, low, high, 0)

    def estimate(self, job: Job, rows: IntArray) -> Estimate:
        """Estimate the value of a script that sorts from a random sample of queries.

        What is estimated is how far the script's value lies from that over all orders of ties, which is known of all
        queries. The standard error is a jackknife's, and larger, as if the sample had missed a query that lies as far
        off as the bounds allow, or as the farthest one in the sample.
        """
        mean, low, high = self._range(job, job.over_all_orders)
        widest = max(high - mean, mean - low)
        exact, exact_hits = (scores.mean for scores in self._of(job, job.over_all_orders))
        if job.evaluator.quantity:
            values = hits = self._own_values[job]
        else:
            values, hits = (scores.mean for scores in self._of(job, job.script))

        def distance(sample: IntArray) -> float:
            alike = np.resize(sample, self.n_queries)  # as if all queries were like these
            theirs, ours = (
                self._averaged(job.script.mean, *scores, alike) for scores in ((values, hits), (exact, exact_hits))
            )
            return theirs - ours

        widest = max(widest, float(np.abs(values - exact)[rows].max()))
        parts = np.array_split(rows, _N_PARTS)
        others = [distance(np.concatenate(parts[:number] + parts[number + 1 :])) for number in range(_N_PARTS)]
        error = np.hypot(np.sqrt((_N_PARTS - 1) * np.var(others)), widest / len(rows))
        error *= np.sqrt(1 - len(rows) / self.n_queries)  # a sample of all queries has none
        value, margin = mean + distance(rows), N_ERRORS * float(error)
        return Estimate(value, value - margin, value + margin, len(rows))

    def estimated(self, job: Job, estimate: Estimate) -> Explanation:
        """Return an explanation that has only an estimate of the value, or none if that is not a number."""
        words, is_nan = job.switches, math.isnan(estimate.value)
        causes: tuple[Cause, ...] = ()
        if is_nan:
            ends = {frozenset(): self._range(job, job.exact).mean, frozenset(words): math.nan}
            causes = causes_of(ends, words, "mean")
        return self._explained(job, math.nan, causes, None if is_nan else estimate)

    def _explained(
        self, job: Job, value: float, causes: tuple[Cause, ...], estimate: Estimate | None = None
    ) -> Explanation:
        return Explanation(
            job.evaluator,
            job.metric,
            value,
            exact=self._range(job, job.exact),
            script_range=self._range(job, job.over_all_orders),
            causes=causes,
            n_queries=self.n_queries,
            n_undefined=int((self._n_relevant == 0).sum()),
            estimate=estimate,
        )

    def _own(self, job: Job) -> float:
        values = self._own_values.get(job)
        if values is None:
            counts = TieHistogram(self._counts[job.script.distance], self._levels)
            quantity = getattr(quantities, job.evaluator.quantity)(counts, job.script.cut)
            if isinstance(quantity, float):
                return quantity
            values = quantity
        return self._averaged(job.script.mean, values, values)

    def _averaged(self, mean: str, values: FloatArray, hit: FloatArray, rows: IntArray | None = None) -> float:
        """Average values over the queries, or these rows of them, that a script keeps."""
        rows = np.arange(self.n_queries) if rows is None else rows
        kept = rows[self._is_labelled[rows]] if MEANS[mean].of_labelled else rows
        return float(MEANS[mean].average(values[kept], hit[kept], self._n_relevant[kept]))

    def _of(self, job: Job, conventions: _Conventions) -> tuple[Scores, Scores]:
        """Return scores by some conventions, and of hits."""
        shape = 4, self.n_queries
        first, second = (
            Scores(*np.broadcast_to(self._scores[scoring], shape)) for scoring in job.scorings(conventions)
        )
        return first, second

    def _range(self, job: Job, conventions: _Conventions) -> TieRange:
        """Average scores as a script does; ties give each query a probability of a hit."""
        scores, hits = self._of(job, conventions)
        value = self._averaged(conventions.mean, scores.mean, hits.mean)
        if conventions.mean == "leave_out_without_hits":
            return TieRange(value, *_bounds_with_hits(scores, hits))
        return TieRange(value, *(self._averaged(conventions.mean, bound, bound) for bound in scores[1:3]))


def shapley_values(values: Mapping[Switches, float]) -> dict[str, float]:
    """Share the value of all switches among them: the change that each makes, averaged over all sequences."""
    switches = sorted(frozenset().union(*values))
    shares = dict.fromkeys(switches, 0.0)
    for on, value in values.items():
        for switch in switches:
            if switch not in on:
                n_sequences = math.factorial(len(on)) * math.factorial(len(switches) - len(on) - 1)
                shares[switch] += n_sequences / math.factorial(len(switches)) * (values[on | {switch}] - value)
    return shares


def causes_of(values: Mapping[Switches, float], words: Mapping[str, str], mean: str) -> tuple[Cause, ...]:
    """Return the shares of switches, in words, without those that change nothing.

    Only the ``mean`` over queries, if it is a switch, can make a value NaN; then it is the only cause.
    """
    ends = values[frozenset()], values[frozenset(words)]
    shares = {mean: math.nan} if any(map(math.isnan, ends)) else shapley_values(values)
    if all(map(math.isnan, ends)):
        return ()
    return tuple(Cause(words[switch], shares[switch]) for switch in words if shares.get(switch))


def subsets(switches: Iterable[str]) -> list[Switches]:
    """List all choices of switches, from none to all."""
    every = list(switches)
    return [frozenset(on) for n_on in range(len(every) + 1) for on in combinations(every, n_on)]


def _bounds_with_hits(scores: Scores, hits: Scores) -> tuple[float, float]:
    """Bound the mean over queries with a hit, where tie orders decide which these are."""
    has_hit = hits.low > 0  # in every tie order
    if not hits.high.any():
        return float("nan"), float("nan")
    low = float(scores.low.sum() / hits.high.sum())
    n_queries, total = int(has_hit.sum()), float(scores.high[has_hit].sum())
    for value in np.sort(scores.high[(hits.high > 0) & ~has_hit])[::-1]:  # add those that raise the mean
        if n_queries == 0 or value * n_queries > total:
            n_queries, total = n_queries + 1, total + float(value)
    return low, total / n_queries
