"""The same codes through every script, and where each number comes from: its conventions switched in every sequence."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hashbench._parallel import QUERY_CHUNK, chunks, in_threads
from hashbench._typing import ByteArray, FloatArray, IntArray, Progress, silent
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError, counted
from hashbench.reports.explain import conventions as by
from hashbench.reports.explain.conventions import EMPTY, Distance, Evaluator, Mean, Query
from hashbench.reports.explain.evaluators import EVALUATORS
from hashbench.reports.explain.orders import BY_CUT
from hashbench.scoring.evaluator import check_counts, evaluate_counts
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import Scores, get_metric
from hashbench.scoring.metrics.ndcg import exponential_gains

_AT_A_TIME = 16  # queries whose levels are held at once


class Cause(NamedTuple):
    """A convention of a script that is not ours, and by how much its number changes with it.

    What a convention changes depends on those switched before it; the share is the mean over all sequences (Shapley's
    value). A quantity of the script's own comes last.
    """

    words: str
    share: float


class TieRange(NamedTuple):
    """An exact value, and its range over tie-breaking."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Explanation:
    """A script's number beside ours."""

    evaluator: Evaluator
    metric: str  # as we call it
    value: float  # the script's
    ours: TieRange  # exact, with queries without relevant items left out
    its: TieRange  # exact under the script's conventions, and bounds over orders of ties
    causes: tuple[Cause, ...]  # their shares add up to the difference
    n_queries: int
    n_undefined: int  # without relevant items

    @property
    def difference(self) -> float:
        """The script's value less ours."""
        return self.value - self.ours.mean


class _Asked(NamedTuple):
    """A script and what it is asked for: a metric of ours, and how many items, or which radius, it looks at."""

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
    on_progress: Progress = silent,
) -> list[Explanation]:
    """Score packed codes by the scripts that compute one of the metrics, the database in the order in which it stands.

    Metrics are AP, NDCG, NDCG:trec, P@k, R@k, Hit@k, P@rN or R@rN, with any cut. Explanations stand metric by metric,
    scripts in their order. Raises HashbenchError if no script computes one of the metrics.
    """
    check_counts((len(query), len(database)), (affinity.n_queries, affinity.n_database))
    asked = []
    for name in dict.fromkeys(get_metric(name).name for name in metrics):
        cuts = [(script, cut_of(script, name, len(database))) for script in evaluators]
        able = [_Asked(script, name, cut) for script, cut in cuts if cut is not None]
        if not able:
            raise HashbenchError(not_given(name, evaluators, len(database)))
        asked += able
    ranked = _Ranked.of(query, database, n_bits, affinity, asked, on_progress)
    return [ranked.explanation(number) for number in range(len(asked))]


def given_of(metrics: Sequence[str], evaluators: Sequence[Evaluator], n_items: int) -> list[str]:
    """Return the metrics that some script computes on a database."""
    return [name for name in metrics if any(cut_of(script, name, n_items) is not None for script in evaluators)]


def cut_of(evaluator: Evaluator, name: str, n_items: int) -> int | None:
    """Return how many items a script looks at for a metric; None if it does not compute that."""
    return evaluator.cut_of(_cutoff(name), n_items) if metric_pattern(name) in evaluator.gives else None


def metric_pattern(name: str) -> str:
    """Return the pattern of a metric as scripts have it: NDCG with its gains, AP whatever its divisor."""
    pattern, (_, colon, option) = get_metric(name).family.pattern, name.partition(":")
    return f"{pattern}{colon}{option}" if pattern.startswith("NDCG") else pattern


def not_given(name: str, evaluators: Sequence[Evaluator], n_items: int) -> str:
    """Return a sentence on what scripts compute instead of a metric that none of them has."""
    names, pattern = ", ".join(script.name for script in evaluators), metric_pattern(name)
    none = "no script that is known here gives" if evaluators is EVALUATORS else f"none of {names} gives"
    none = f"{names} does not give" if len(evaluators) == 1 else none
    known = dict.fromkeys(pattern for script in evaluators for pattern in script.gives)
    cutting = [script for script in evaluators if pattern in script.gives and "@k" in pattern]
    least = min((script.least_cut for script in cutting), default=1)
    from_least = f"from {least} " if least > 1 else ""
    within = f", k {from_least}within the database" if cutting and all(script.is_within for script in cutting) else ""
    return f"{none} {name} of {counted(n_items, 'item')}; ask for {', '.join(known)}{within}."


def _cutoff(name: str) -> int | None:
    return next((value for value in get_metric(name).arguments if isinstance(value, int)), None)


Switches = frozenset[str]  # the conventions of a script that are on; where one is off, ours stands


@dataclass(frozen=True, eq=False)
class _Ranked:
    """What ranking found for every query; arrays (n_queries,) are 0 where there is nothing."""

    asked: Sequence[_Asked]
    plain: dict[_Asked, FloatArray]  # the metric, under the script's tie order
    own: dict[_Asked, FloatArray]  # the script's own quantity, or the same
    hit: dict[_Asked, FloatArray]  # whether there is a relevant item above the cut
    counts: dict[Distance, TieHistogram]
    _exact_scores: dict[tuple[str, Distance], Scores] = field(default_factory=dict)  # scripts share most of them

    @classmethod
    def of(
        cls,
        query: ByteArray,
        database: ByteArray,
        n_bits: int,
        affinity: Affinity,
        asked: Sequence[_Asked],
        on_progress: Progress,
    ) -> "_Ranked":
        n_queries, n_items, levels = len(query), len(database), affinity.levels
        largest = max((each.cut for each in asked if each.evaluator.shares_cut), default=0)
        distances = {by.hamming, *(each.evaluator.distance for each in asked)}
        shape = n_queries, len(levels), 2 * n_bits + 1
        counts = {distance: np.zeros(shape, dtype=np.int64) for distance in distances}
        ranked = {
            variant: np.zeros((3, n_queries))
            for each in asked
            if each.evaluator.order is not None
            for variant in (each, *(_variant(each, on, n_items) for on in subsets(_switches(each, n_items))))
        }

        def rank(queries: slice) -> int:
            block = affinity.block(queries, slice(0, n_items))
            for row, of_query in zip(range(queries.start, queries.stop), block, strict=True):
                seen = Query(query[row], database, n_bits, of_query, row, n_queries)
                at_level = np.searchsorted(levels, of_query)
                for distance, table in counts.items():
                    cells = at_level * table.shape[2] + seen.keys(distance)
                    table[row] = np.bincount(cells, minlength=table[row].size).reshape(table[row].shape)
                for variant, scores in ranked.items():
                    scores[:, row] = _of_order(variant, seen, largest)
            return len(block)

        n_done = 0
        for n_more in in_threads(rank, chunks(0, n_queries, _AT_A_TIME)):
            n_done += n_more
            on_progress("queries ranked", n_done, n_queries)
        plain, own, hit = ({variant: scores[i] for variant, scores in ranked.items()} for i in range(3))
        histograms = {distance: TieHistogram(table, levels) for distance, table in counts.items()}
        return cls(asked, plain, own, hit, histograms)

    @cached_property
    def n_relevant(self) -> IntArray:
        return self.counts[by.hamming].n_relevant

    @cached_property
    def n_items(self) -> int:
        return int(self.counts[by.hamming].n_database[0])

    def explanation(self, number: int) -> Explanation:
        """Share the difference between our number and the script's among its conventions."""
        asked = self.asked[number]
        script, words = asked.evaluator, _switches(asked, self.n_items)
        ours = self._exact(asked.metric, asked.cut, by.hamming, by.leave_out)
        values = {on: self._value(asked, on) for on in subsets(words)}
        last = values[frozenset(words)]
        causes = causes_of(values, words, "mean")
        value = self._own(asked) if script.own else last
        if script.own and value != last and not math.isnan(last):
            causes += (Cause(script.own, value - last),)
        metric = _with_cut(_with_divisor(asked), asked.cut, self.n_items)
        its = self._exact(metric, asked.cut, script.distance, script.mean)
        n_undefined = int((self.n_relevant == 0).sum())
        return Explanation(script, asked.metric, value, ours, its, causes, len(self.n_relevant), n_undefined)

    def _value(self, asked: _Asked, on: Switches) -> float:
        """Compute what the script would give if only some of its conventions were its own."""
        mean = asked.evaluator.mean if "mean" in on else by.leave_out
        variant = _variant(asked, on, self.n_items)
        if "order" in on:
            return mean(self.plain[variant], self.hit[variant], self.n_relevant)
        metric = _with_cut(_with_divisor(variant), variant.cut, self.n_items)
        return self._exact(metric, variant.cut, variant.evaluator.distance, mean).mean

    def _own(self, asked: _Asked) -> float:
        mean, of_counts = asked.evaluator.mean, asked.evaluator.of_counts
        if of_counts is None:
            return mean(self.own[asked], self.hit[asked], self.n_relevant)
        quantity = of_counts(self.counts[asked.evaluator.distance], asked.cut)
        if isinstance(quantity, float):
            return quantity
        values = np.nan_to_num(quantity)
        return mean(values, values, self.n_relevant)

    def _exact(self, metric: str, cut: int, distance: Distance, mean: Mean) -> TieRange:
        """Average exact scores as a script does; hits are as likely as ties make them."""
        scores = self._scores(metric, distance)
        if mean is not by.leave_out_without_hits:
            return TieRange(*(mean(part, part, self.n_relevant) for part in scores[:3]))
        hits = self._scores(f"Hit@{cut}", distance)
        return TieRange(mean(scores.mean, hits.mean, self.n_relevant), *_of_those_with_hits(scores, hits))

    def _scores(self, metric: str, distance: Distance) -> Scores:
        """Score every query, 0 where nothing is relevant."""
        key = metric, distance
        if key not in self._exact_scores:
            counts = self.counts[distance]
            scored = evaluate_counts(counts.part, counts.n_queries, QUERY_CHUNK, [metric], undefined="skip")
            self._exact_scores[key] = Scores(*map(np.nan_to_num, scored.scores[metric]))
        return self._exact_scores[key]


def shapley_values(values: Mapping[Switches, float]) -> dict[str, float]:
    """Share the value of all switches among them: what each changes, in the mean over all sequences of switching."""
    switches = sorted(frozenset().union(*values))
    shares = dict.fromkeys(switches, 0.0)
    for on, value in values.items():
        for switch in switches:
            if switch not in on:
                n_sequences = math.factorial(len(on)) * math.factorial(len(switches) - len(on) - 1)
                shares[switch] += n_sequences / math.factorial(len(switches)) * (values[on | {switch}] - value)
    return shares


def causes_of(values: Mapping[Switches, float], words: Mapping[str, str], mean: str) -> tuple[Cause, ...]:
    """Return the share of each switch in words, without those that change nothing.

    Only the ``mean`` over queries, if it is a switch, can make a number NaN; it is the one cause then.
    """
    ends = values[frozenset()], values[frozenset(words)]
    shares = {mean: math.nan} if any(map(math.isnan, ends)) else shapley_values(values)
    if all(map(math.isnan, ends)):
        return ()
    return tuple(Cause(words[switch], shares[switch]) for switch in words if shares.get(switch))


def subsets(switches: Iterable[str]) -> list[Switches]:
    """List all choices of switches, from none to all."""
    every = list(switches)
    return [frozenset(some) for n_on in range(len(every) + 1) for some in combinations(every, n_on)]


def _switches(asked: _Asked, n_items: int) -> dict[str, str]:
    """Return the conventions of a script that are not ours, in words."""
    script = asked.evaluator
    words = {
        "mean": EMPTY[script.mean],
        "divisor": f"divisor: {by.OF_DIVISOR[script.divisor]}" if _with_divisor(asked) != asked.metric else "",
        "cut": "the last item is lost" if _with_cut(asked.metric, asked.cut, n_items) != asked.metric else "",
        "distance": _DISTANCES.get(script.distance, ""),
        "order": "tie order" if script.order is not None else "",
    }
    return {switch: text for switch, text in words.items() if text}


def _variant(asked: _Asked, on: Switches, n_items: int) -> _Asked:
    """Return the script with our convention wherever its own is off, and without its own quantity."""
    script, divisor = asked.evaluator, asked.metric.partition(":")[2] if asked.metric.startswith("AP@") else ""
    variant = replace(
        script,
        of_ranks=None,
        divisor=script.divisor if "divisor" in on else divisor or "retrieved",
        distance=script.distance if "distance" in on else by.hamming,
    )
    is_cut = "cut" in on or _cutoff(asked.metric) is not None
    return _Asked(variant, asked.metric, asked.cut if is_cut else n_items)


def _with_divisor(asked: _Asked) -> str:
    stem, divisor = asked.metric.partition(":")[0], asked.evaluator.divisor
    return f"{stem}:{divisor}" if stem.startswith("AP@") else asked.metric


def _with_cut(name: str, cut: int, n_items: int) -> str:
    return f"AP@{cut}" if name == "AP" and cut < n_items else name


_DISTANCES: dict[Distance, str] = {
    by.bytes_of_seven: "a byte that differs in all bits counts 7",
    by.of_int8: "similarities end at 127",
    by.radii_of_int8: "similarities end at 127",
}


def _of_order(asked: _Asked, seen: Query, largest: int) -> tuple[float, float, float]:
    """Score a query under the script's tie order: the metric, its own quantity, and whether there is a hit."""
    script, cut = asked.evaluator, asked.cut
    if script.metric.endswith("@r"):
        cut = int((seen.keys(script.distance) <= cut).sum())
    ranks = seen.ranks(script, largest if script.shares_cut else cut)
    hits = ranks[: np.searchsorted(ranks, cut, side="right")]
    plain = _METRICS[script.metric](hits, cut, seen, script)
    if script.of_ranks is None:
        return plain, plain, float(len(hits) > 0)
    whole = hits if script.order in BY_CUT else seen.ranks(script, seen.n_items)
    return plain, script.of_ranks(whole, cut, seen, script), float(len(hits) > 0)


def _average_precision(hits: IntArray, cut: int, seen: Query, script: Evaluator) -> float:
    divisor = by.DIVISORS[script.divisor](len(hits), seen.n_relevant, cut)
    return float(by.precisions(hits).sum() / divisor) if divisor else 0.0


def _ndcg(hits: IntArray, cut: int, seen: Query, script: Evaluator) -> float:
    gains = seen.levels.astype(np.float64) if script.metric.endswith(":trec") else exponential_gains(seen.levels)
    rows = seen.rows(script, cut)[:cut]
    discounts = 1.0 / np.log2(np.arange(2, len(rows) + 2))
    best = float((np.sort(gains)[::-1][:cut] * discounts).sum())
    return float((gains[rows] * discounts).sum() / best) if best else 0.0


def _precision(hits: IntArray, cut: int, seen: Query, script: Evaluator) -> float:
    return len(hits) / cut if cut else 0.0


def _recall(hits: IntArray, cut: int, seen: Query, script: Evaluator) -> float:
    return len(hits) / seen.n_relevant if seen.n_relevant else 0.0


def _hit(hits: IntArray, cut: int, seen: Query, script: Evaluator) -> float:
    return float(len(hits) > 0)


_METRICS: dict[str, Callable[[IntArray, int, Query, Evaluator], float]] = {
    "AP": _average_precision,
    "NDCG": _ndcg,
    "NDCG:trec": _ndcg,
    "P@k": _precision,
    "P@r": _precision,
    "R@k": _recall,
    "Hit@k": _hit,
}


def _of_those_with_hits(scores: Scores, hits: Scores) -> tuple[float, float]:
    """Bound the mean over queries with a hit, where tie orders decide which these are."""
    surely = hits.low > 0
    if not hits.high.any():
        return float("nan"), float("nan")
    low = float(scores.low.sum() / hits.high.sum())
    n_kept, total = int(surely.sum()), float(scores.high[surely].sum())
    for value in np.sort(scores.high[(hits.high > 0) & ~surely])[::-1]:  # those that raise it
        if n_kept == 0 or value * n_kept > total:
            n_kept, total = n_kept + 1, total + float(value)
    return low, total / n_kept
