"""The same codes through every script, and where each number comes from.

The conventions of a script are switched on one by one, in every sequence.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hashbench._typing import BoolArray, ByteArray, FloatArray, Progress, silent
from hashbench._validation import refuse_fractions
from hashbench.affinity import Affinity, SharedLabels
from hashbench.errors import HashbenchError, counted
from hashbench.reports.explain import quantities
from hashbench.reports.explain.quantities import DIVISOR_WORDS, MEANS, First
from hashbench.reports.explain.ranking import DISTANCES, Query, Scoring, Sort, n_left, score, visit_queries
from hashbench.reports.explain.scripts import EVALUATORS, Evaluator, metric_pattern
from hashbench.scoring.evaluator import check_counts
from hashbench.scoring.histogram import TieHistogram, count_groups
from hashbench.scoring.metrics import Scores, get_metric

TIE_ORDER = "tie order"


class Cause(NamedTuple):
    """A convention in which a script differs from hashbench, and its share of the difference.

    The change that a convention makes depends on those switched before it; the share is the mean over all sequences
    (Shapley value). A quantity of the script's own comes last.
    """

    words: str
    share: float


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
    value: float  # the script's
    exact: TieRange  # hashbench's; queries without relevant items are left out
    script_range: TieRange  # exact under the script's conventions, and bounds over tie orders
    causes: tuple[Cause, ...]  # their shares add up to the difference
    n_queries: int
    n_undefined: int  # without relevant items

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
    check_counts((len(query), len(database)), (affinity.n_queries, affinity.n_database))
    refuse_fractions(affinity.levels, "hashbench explain")
    sizes = n_left(affinity)
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
    jobs = [_Job.of(*cut, n_items, largest) for cut in cuts]
    scores = _Scores(len(query), n_bits, affinity, jobs)
    visit_queries(query, database, n_bits, affinity, scores.add, on_progress)
    return [scores.explanation(job) for job in jobs]


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


class _Job(NamedTuple):
    """A script and a metric, by the script's conventions and by hashbench's."""

    evaluator: Evaluator
    metric: str
    n_items: int
    script: _Conventions
    exact: _Conventions

    @classmethod
    def of(cls, script: Evaluator, metric: str, cut: int, n_items: int, largest: int) -> "_Job":
        divisor, own = (metric.partition(":")[2], script.divisor) if metric.startswith("AP@") else ("", "")
        all_or_cut = cut if "@" in metric else n_items
        sort = None if "@r" in metric else script.sort(largest if script.shares_cut else cut)
        theirs = _Conventions(script.mean, own, cut, script.distance, sort)
        return cls(script, metric, n_items, theirs, _Conventions("leave_out", divisor, all_or_cut, "hamming", None))

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
    def variants(self) -> list[_Conventions]:
        """All choices of conventions, and the script's over all orders of ties."""
        return [*map(self.variant, subsets(self.switches)), self.script._replace(sort=None)]

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


class _Scores:
    """Scores of every query, (4, n_queries), 0 where nothing is relevant; values and counts for quantities."""

    def __init__(self, n_queries: int, n_bits: int, affinity: Affinity, jobs: list[_Job]) -> None:
        scorings = {scoring for job in jobs for variant in job.variants for scoring in job.scorings(variant)}
        self._scores = {scoring: np.zeros((4, n_queries)) for scoring in scorings}
        own = [job for job in jobs if job.evaluator.quantity]
        self._own_values = {job: np.zeros(n_queries) for job in own if job.evaluator.order}
        shape = n_queries, len(affinity.levels), 2 * n_bits + 1
        counted = {job.script.distance for job in own if not job.evaluator.order}
        self._counts = {distance: np.zeros(shape, np.int64) for distance in counted}
        self._levels, self._n_relevant = affinity.levels, np.zeros(n_queries, np.int64)
        self._is_labelled: BoolArray = np.ones(n_queries, dtype=bool)
        if isinstance(affinity.plain, SharedLabels):
            self._is_labelled = np.asarray(affinity.plain.query_labels.any(axis=1))

    def add(self, queries: list[Query]) -> None:
        """Score some consecutive queries."""
        rows = slice(queries[0].number, queries[-1].number + 1)
        self._n_relevant[rows] = [np.count_nonzero(query.levels) for query in queries]
        for scores, of_queries in zip(self._scores.values(), score(queries, self._scores, self._levels), strict=True):
            scores[:, rows] = of_queries
        for job, values in self._own_values.items():
            sort = job.evaluator.sort(job.script.cut)
            assert sort is not None
            quantity = getattr(quantities, job.evaluator.quantity)
            values[rows] = [quantity(First(query, job.script.distance, sort, job.script.cut)) for query in queries]
        for distance, table in self._counts.items():
            at_levels = [np.searchsorted(self._levels, query.levels) for query in queries]
            counts = count_groups(at_levels, [query.keys(distance) for query in queries], self._levels).counts
            table[rows, :, : counts.shape[2]] = counts

    def explanation(self, job: _Job) -> Explanation:
        """Share the difference between the exact value and the script's among its conventions."""
        words = job.switches
        values = {on: self._range(job, job.variant(on)).mean for on in subsets(words)}
        causes = causes_of(values, words, "mean")
        value = by_conventions = values[frozenset(words)]
        if job.evaluator.own:
            value = self._own(job)
            if value != by_conventions and not math.isnan(by_conventions):
                causes += (Cause(job.evaluator.own, value - by_conventions),)
        return Explanation(
            job.evaluator,
            job.metric,
            value,
            exact=self._range(job, job.exact),
            script_range=self._range(job, job.script._replace(sort=None)),
            causes=causes,
            n_queries=len(self._n_relevant),
            n_undefined=int((self._n_relevant == 0).sum()),
        )

    def _own(self, job: _Job) -> float:
        values = self._own_values.get(job)
        if values is None:
            counts = TieHistogram(self._counts[job.script.distance], self._levels)
            quantity = getattr(quantities, job.evaluator.quantity)(counts, job.script.cut)
            if isinstance(quantity, float):
                return quantity
            values = quantity
        return self._averaged(job.script.mean, values, values)

    def _averaged(self, mean: str, values: FloatArray, hit: FloatArray) -> float:
        """Average values over the queries that a script keeps."""
        kept = self._is_labelled if MEANS[mean].of_labelled else slice(None)
        return float(MEANS[mean].average(values[kept], hit[kept], self._n_relevant[kept]))

    def _range(self, job: _Job, conventions: _Conventions) -> TieRange:
        """Average scores as a script does; ties give each query a probability of a hit."""
        scores, hits = (Scores(*self._scores[scoring]) for scoring in job.scorings(conventions))
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
