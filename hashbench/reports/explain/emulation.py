"""The same codes through every script, and where each number comes from.

The conventions of a script are switched on one by one, in every sequence.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hashbench._parallel import chunks, in_threads
from hashbench._typing import BoolArray, ByteArray, FloatArray, IntArray, Progress, silent
from hashbench.affinity import Affinity, SharedLabels
from hashbench.errors import HashbenchError, counted
from hashbench.reports.explain import conventions as by
from hashbench.reports.explain.conventions import MEAN_WORDS, Evaluator, Mean, Query, RankBy
from hashbench.reports.explain.evaluators import EVALUATORS
from hashbench.reports.explain.orders import BY_CUT
from hashbench.scoring.evaluator import check_counts, evaluate_histogram
from hashbench.scoring.histogram import TieHistogram, count_groups
from hashbench.scoring.metrics import Scores, get_metric
from hashbench.scoring.metrics.ndcg import exponential_gains

TIE_ORDER = "tie order"
_AT_A_TIME = 16  # queries whose levels are held at once


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


class _Job(NamedTuple):
    """A script, a metric, and how many items, or which radius, the script looks at."""

    evaluator: Evaluator
    metric: str
    cut: int


def explain(
    query: ByteArray,
    database: ByteArray,
    n_bits: int,
    affinity: Affinity,
    metrics: Sequence[str],
    evaluators: Sequence[Evaluator] = EVALUATORS,
    own_rows: IntArray | None = None,
    on_progress: Progress = silent,
) -> list[Explanation]:
    """Score packed codes by the scripts that compute one of the metrics, the database in the order given.

    Metrics are AP, NDCG, NDCG:trec, P@k, R@k, Hit@k, P@rN or R@rN, with any cut. ``own_rows``, (n_queries,), are the
    rows of the database that are the queries themselves; each query's is left out of its ranking. Returns the
    explanations metric by metric, scripts in their order. Raises HashbenchError if no script computes one of the
    metrics. Whether the queries are these rows is for the caller to check (`hashbench.scoring.self_pairs`).
    """
    check_counts((len(query), len(database)), (affinity.n_queries, affinity.n_database))
    n_items = len(database)
    if own_rows is not None:
        n_items -= 1
    accepting = _accepting(metrics, evaluators, n_items)
    jobs: list[_Job] = []
    for name in dict.fromkeys(get_metric(name).name for name in metrics):
        cuts = [(script, cut_of(script, name, n_items)) for script in accepting]
        jobs_of_metric = [_Job(script, name, cut) for script, cut in cuts if cut is not None]
        if not jobs_of_metric:
            raise HashbenchError(describe_missing(name, evaluators, n_items))
        jobs += jobs_of_metric
    ranked = _Ranked.of(query, database, n_bits, affinity, jobs, own_rows, on_progress)
    return [ranked.explanation(job) for job in jobs]


def metrics_of(metrics: Sequence[str], evaluators: Sequence[Evaluator], n_items: int) -> list[str]:
    """Return the metrics that at least one script computes on a database of this size."""
    accepting = _accepting(metrics, evaluators, n_items)
    return [name for name in metrics if any(cut_of(script, name, n_items) is not None for script in accepting)]


def _accepting(metrics: Iterable[str], evaluators: Iterable[Evaluator], n_items: int) -> list[Evaluator]:
    """Return the scripts, without those that sort once for the largest cut if they do not accept that."""
    scripts, names = list(evaluators), list(metrics)
    cuts = [cut_of(script, name, n_items) or 0 for script in scripts if script.shares_cut for name in names]
    largest = max(cuts, default=0)
    return [script for script in scripts if not script.shares_cut or largest >= script.least_cut]


def cut_of(evaluator: Evaluator, name: str, n_items: int) -> int | None:
    """Return how many items a script looks at for a metric; None if it does not compute that."""
    return evaluator.cut_of(_cutoff(name), n_items) if metric_pattern(name) in evaluator.gives else None


def metric_pattern(name: str) -> str:
    """Return the pattern of a metric as scripts have it: with its option, but AP@k without its divisor."""
    metric = get_metric(name)
    pattern, (_, colon, option) = metric.family.pattern, metric.name.partition(":")
    return pattern if pattern == "AP@k" else f"{pattern}{colon}{option}"


def describe_missing(name: str, evaluators: Sequence[Evaluator], n_items: int) -> str:
    """Return a sentence on a metric that no script is compared with, and on those that some are."""
    names = {script.name for script in evaluators}
    chosen, pattern = [script.name for script in evaluators if script.twin_of not in names], metric_pattern(name)
    none = f"compares none of {', '.join(chosen)} with" if len(chosen) > 1 else f"does not compare {chosen[0]} with"
    none = "compares no script with" if len(chosen) >= len(EVALUATORS) else none
    known = dict.fromkeys(pattern for script in evaluators for pattern in script.gives)
    cutting = [script for script in evaluators if pattern in script.gives and "@k" in pattern]
    least = min((script.least_cut for script in cutting), default=1)
    from_least = f"from {least} " if least > 1 else ""
    within = f", k {from_least}within the database" if cutting and all(script.is_within for script in cutting) else ""
    return f"explain {none} {name} of {counted(n_items, 'item')}; ask for {', '.join(known)}{within}."


def _cutoff(name: str) -> int | None:
    return next((value for value in get_metric(name).arguments if isinstance(value, int)), None)


Switches = frozenset[str]  # the script's conventions that are on; hashbench's stands in for the others


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Scores of every query, arrays (n_queries,), 0 where nothing is relevant; and the counts behind exact scores."""

    ranked: dict[_Job, FloatArray]  # of `_in_order`, (3, n_queries)
    counts: dict[RankBy, TieHistogram]  # of distances with few keys; exact scores by the others are known
    is_labelled: BoolArray  # queries
    _exact_scores: dict[tuple[str, RankBy], Scores]  # scripts share most of them

    @classmethod
    def of(
        cls,
        query: ByteArray,
        database: ByteArray,
        n_bits: int,
        affinity: Affinity,
        jobs: list[_Job],
        own_rows: IntArray | None,
        progress: Progress,
    ) -> "_Ranked":
        n_queries, levels = len(query), affinity.levels
        n_items = len(database) - (own_rows is not None)
        largest = max((job.cut for job in jobs if job.evaluator.shares_cut), default=0)
        distances = {by.hamming, *(job.evaluator.distance for job in jobs)}
        shape = n_queries, len(levels), 2 * n_bits + 1
        counts = {distance: np.zeros(shape, dtype=np.int64) for distance in distances.difference(by.MANY_KEYS)}
        variants = {job: [_variant(job, on, n_items) for on in subsets(_switches(job, n_items))] for job in jobs}
        ranked = {
            variant: np.zeros((3, n_queries))
            for job in jobs
            if job.evaluator.order is not None
            for variant in (job, *variants[job])
        }
        exact = {
            (name, variant.evaluator.distance): np.zeros((4, n_queries))
            for job in jobs
            for variant in variants[job]
            if variant.evaluator.distance in by.MANY_KEYS
            for name in (_exact_metric(variant, n_items), f"Hit@{variant.cut}")
        }

        def rank(queries: slice) -> int:
            block = affinity.block(queries, slice(0, len(database)))
            groups: dict[RankBy, list[tuple[IntArray, IntArray]]] = {distance: [] for _, distance in exact}
            for row, query_levels in enumerate(block, start=queries.start):
                items = database
                if own_rows is not None:
                    items = np.delete(database, own_rows[row], axis=0)
                    query_levels = np.delete(query_levels, own_rows[row])
                query_view = Query(query[row], items, n_bits, query_levels, row, n_queries)
                at_level = np.searchsorted(levels, query_levels)
                for distance, table in counts.items():
                    cells = at_level * table.shape[2] + query_view.keys(distance)
                    table[row] = np.bincount(cells, minlength=table[row].size).reshape(table[row].shape)
                for distance, cells_of_queries in groups.items():
                    cells_of_queries.append((at_level, query_view.keys(distance)))
                for variant, scores in ranked.items():
                    scores[:, row] = _in_order(variant, query_view, largest)
            for distance, cells_of_queries in groups.items():
                at_levels, keys = ([part[i] for part in cells_of_queries] for i in range(2))
                histogram = count_groups(at_levels, keys, levels)
                for (name, of_distance), scores in exact.items():
                    if of_distance is distance:
                        scores[:, queries] = get_metric(name).scores(histogram)
            return len(block)

        n_done = 0
        for n_ranked in in_threads(rank, chunks(0, n_queries, _AT_A_TIME)):
            n_done += n_ranked
            progress("queries ranked", n_done, n_queries)
        histograms = {distance: TieHistogram(table, levels) for distance, table in counts.items()}
        is_labelled: BoolArray = np.ones(n_queries, dtype=bool)
        if isinstance(affinity, SharedLabels):
            is_labelled = np.asarray(affinity.query_labels.any(axis=1))
        exact_scores: dict[tuple[str, RankBy], Scores]
        exact_scores = {key: Scores(*np.nan_to_num(scores)) for key, scores in exact.items()}
        return cls(ranked, histograms, is_labelled, exact_scores)

    @cached_property
    def n_relevant(self) -> IntArray:
        return self.counts[by.hamming].n_relevant

    @cached_property
    def n_items(self) -> int:
        return int(self.counts[by.hamming].n_database[0])

    def explanation(self, job: _Job) -> Explanation:
        """Share the difference between the exact value and the script's among its conventions."""
        script, words = job.evaluator, _switches(job, self.n_items)
        values = {on: self._value(job, on) for on in subsets(words)}
        causes = causes_of(values, words, "mean")
        value = by_conventions = values[frozenset(words)]
        if script.own:
            value = self._own(job)
            if value != by_conventions and not math.isnan(by_conventions):
                causes += (Cause(script.own, value - by_conventions),)
        return Explanation(
            script,
            job.metric,
            value,
            exact=self._exact(job.metric, job.cut, by.hamming, by.leave_out),
            script_range=self._exact(_exact_metric(job, self.n_items), job.cut, script.distance, script.mean),
            causes=causes,
            n_queries=len(self.n_relevant),
            n_undefined=int((self.n_relevant == 0).sum()),
        )

    def _value(self, job: _Job, on: Switches) -> float:
        """Compute the value with some of the script's conventions on."""
        mean = job.evaluator.mean if "mean" in on else by.leave_out
        variant = _variant(job, on, self.n_items)
        if "order" in on:
            plain, _, hit = self.ranked[variant]
            return self._averaged(mean, plain, hit)
        metric = _exact_metric(variant, self.n_items)
        return self._exact(metric, variant.cut, variant.evaluator.distance, mean).mean

    def _own(self, job: _Job) -> float:
        mean, of_counts = job.evaluator.mean, job.evaluator.of_counts
        if of_counts is None:
            _, own, hit = self.ranked[job]
            return self._averaged(mean, own, hit)
        quantity = of_counts(self.counts[job.evaluator.distance], job.cut)
        if isinstance(quantity, float):
            return quantity
        values = np.nan_to_num(quantity)
        return self._averaged(mean, values, values)

    def _averaged(self, mean: Mean, values: FloatArray, hit: FloatArray) -> float:
        """Average values over the queries that a script keeps."""
        kept = self.is_labelled if mean in by.OF_LABELLED else slice(None)
        return mean(values[kept], hit[kept], self.n_relevant[kept])

    def _exact(self, metric: str, cut: int, distance: RankBy, mean: Mean) -> TieRange:
        """Average exact scores as a script does; ties give each query a probability of a hit."""
        scores = self._scores(metric, distance)
        if mean is not by.leave_out_without_hits:
            return TieRange(*(self._averaged(mean, values, values) for values in scores[:3]))
        hits = self._scores(f"Hit@{cut}", distance)
        return TieRange(mean(scores.mean, hits.mean, self.n_relevant), *_bounds_with_hits(scores, hits))

    def _scores(self, metric: str, distance: RankBy) -> Scores:
        """Score every query, 0 where nothing is relevant."""
        key = metric, distance
        if key not in self._exact_scores:
            counts = self.counts[distance]
            scored = evaluate_histogram(counts, [metric], undefined="skip")
            self._exact_scores[key] = Scores(*map(np.nan_to_num, scored.scores[metric]))
        return self._exact_scores[key]


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


def _switches(job: _Job, n_items: int) -> dict[str, str]:
    """Return the conventions in which a script differs from hashbench, in words."""
    script = job.evaluator
    words = {
        "mean": MEAN_WORDS[script.mean],
        "divisor": f"divisor: {by.DIVISOR_WORDS[script.divisor]}" if _with_divisor(job) != job.metric else "",
        "cut": "the last item is lost" if _with_cut(job.metric, job.cut, n_items) != job.metric else "",
        "distance": _DISTANCES.get(script.distance, ""),
        "order": TIE_ORDER if script.order is not None else "",
    }
    return {switch: text for switch, text in words.items() if text}


def _variant(job: _Job, on: Switches, n_items: int) -> _Job:
    """Return the job with hashbench's convention where the script's is off, and without the script's own quantity."""
    script, divisor = job.evaluator, job.metric.partition(":")[2] if job.metric.startswith("AP@") else ""
    variant = replace(
        script,
        of_ranks=None,
        divisor=script.divisor if "divisor" in on else divisor or "retrieved",
        distance=script.distance if "distance" in on else by.hamming,
    )
    is_cut = "cut" in on or _cutoff(job.metric) is not None
    return _Job(variant, job.metric, job.cut if is_cut else n_items)


def _exact_metric(job: _Job, n_items: int) -> str:
    """Return the metric that the script gives, apart from its tie order and its own quantity."""
    return _with_cut(_with_divisor(job), job.cut, n_items)


def _with_divisor(job: _Job) -> str:
    stem, divisor = job.metric.partition(":")[0], job.evaluator.divisor
    return f"{stem}:{divisor}" if stem.startswith("AP@") else job.metric


def _with_cut(name: str, cut: int, n_items: int) -> str:
    return f"AP@{cut}" if name == "AP" and cut < n_items else name


_DISTANCES: dict[RankBy, str] = {
    by.bytes_of_seven: "a byte that differs in all bits counts 7",
    by.of_int8: "similarities end at 127",
    by.radii_of_int8: "similarities end at 127",
    by.dot_of_bits: "dot of 0/1 vectors, not Hamming distance",
    by.cosine_of_bits: "cosine of 0/1 vectors, not Hamming distance",
}


def _in_order(job: _Job, query: Query, largest: int) -> tuple[float, float, float]:
    """Score a query under the script's tie order: the metric, its own quantity, and whether there is a hit."""
    script, cut = job.evaluator, job.cut
    if script.metric.endswith("@r"):
        cut = int((query.keys(script.distance) <= cut).sum())
    ranks = query.ranks(script, largest if script.shares_cut else cut)
    hits = ranks[: np.searchsorted(ranks, cut, side="right")]
    plain = own = _METRICS[script.metric](hits, cut, query, script)
    if script.of_ranks is not None:
        ranks = hits if script.order in BY_CUT else query.ranks(script, query.n_items)
        own = script.of_ranks(ranks, cut, query, script)
    return plain, own, float(len(hits) > 0)


def _average_precision(hits: IntArray, cut: int, query: Query, script: Evaluator) -> float:
    divisor = by.DIVISORS[script.divisor](len(hits), query.n_relevant, cut)
    return float(by.precisions(hits).sum() / divisor) if divisor else 0.0


def _ndcg(hits: IntArray, cut: int, query: Query, script: Evaluator) -> float:
    gains = query.levels.astype(np.float64) if script.metric.endswith(":trec") else exponential_gains(query.levels)
    rows = query.rows(script, cut)[:cut]
    discounts = 1.0 / np.log2(np.arange(2, len(rows) + 2))
    best = float((np.sort(gains)[::-1][:cut] * discounts).sum())
    return float((gains[rows] * discounts).sum() / best) if best else 0.0


_METRICS: dict[str, Callable[[IntArray, int, Query, Evaluator], float]] = {
    "AP": _average_precision,
    "NDCG": _ndcg,
    "NDCG:trec": _ndcg,
    "P@k": lambda hits, cut, query, script: len(hits) / max(cut, 1),
    "P@r": lambda hits, cut, query, script: len(hits) / max(cut, 1),
    "R@k": lambda hits, cut, query, script: len(hits) / max(query.n_relevant, 1),
    "Hit@k": lambda hits, cut, query, script: float(len(hits) > 0),
}


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
