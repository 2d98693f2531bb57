"""Whether one method is better than another: the difference of two means, with an interval over queries and seeds.

Three things could undo a difference: another order of tied items, other queries, other seeds. The interval is about
queries and seeds; what a shuffle of the database can do is reported beside it and never added.
"""

from __future__ import annotations  # so that help() shows types as they are written

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, IntArray
from hashbench._validation import as_array
from hashbench.errors import HashbenchError, counted, needing
from hashbench.scoring.equal_rows import number_rows
from hashbench.scoring.evaluation import ByMetric, Evaluation, Summary
from hashbench.scoring.metrics import Scores, get_metric, is_error

ALPHA = 0.05  # of tests and, as 95 %, of intervals
LEAST_SEEDS = 3  # for an interval over queries and seeds, unless their variance is known from elsewhere
_MOST_SEEDS = 1000  # named as the number that would show a difference
_DECIMALS = 12  # of scores; what lies beyond are errors of rounding
_LIMIT = 1 << 40  # seeds, which leave the queries as the only source of chance


class SeedVariance(NamedTuple):
    """Variance of one seed's mean over queries, and its degrees of freedom, known from more than the seeds compared."""

    variance: float
    freedom: float


VariancesOfSides = tuple[SeedVariance | None, SeedVariance | None]  # of two methods, where they are known
_NO_VARIANCES: VariancesOfSides = (None, None)


class Moments(NamedTuple):
    """Mean and variance of a difference of two methods, by source of chance."""

    value: float
    of_queries: float  # variance due to the choice of queries
    of_seeds: tuple[float, float]  # due to the seeds of either method, 0 if it has one seed
    interactions: tuple[float, float]  # what both of these hold, and is taken off once
    degrees: tuple[float, float, float]  # of freedom, of the queries and of the seeds of either method
    is_borrowed: bool = False  # whether all variances over seeds borrow from elsewhere

    @property
    def variance(self) -> float:
        """The variance of the value."""
        both = self.of_queries + sum(self.of_seeds)
        return max(both - sum(self.interactions), self.of_queries, sum(self.of_seeds))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance, by Satterthwaite."""
        of_queries, *of_seeds = self.degrees
        variance, freedom = map(float, combined(self.of_seeds, of_seeds, False if self.is_borrowed else None))
        parts = (self.of_queries, of_queries), (variance, freedom)
        squares = sum(part**2 / degrees for part, degrees in parts if part)
        return (self.of_queries + variance) ** 2 / squares if squares else of_queries


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of two methods in one metric; as ``str`` the sentence that says what is shown.

    Parameters
    ----------
    names : tuple of str
        The two methods.
    metric : str
        The metric.
    value : float
        Mean of the first method less that of the second, over queries and seeds.
    low, high : float
        95 % interval of the value; NaN if all differences are equal, and not 0: their spread is not known.
    p : float
        Two-sided p value, of the hypothesis that there is no difference; if all differences are equal, by a sign test.
        NaN if it cannot be tested: there is nothing random in what is known, or only one value of it.
    freedom : float
        Degrees of freedom of interval and p value; NaN if there are none.
    tie_sd : float
        Estimate of the standard deviation of ``value`` under random orders of the database, or of the most that it can
        be where the items of both methods are not known to be the same; NaN if it is not known.
    n_queries : int
        Queries that both methods are scored on.
    n_seeds : tuple of int
        Seeds of the first and of the second method; 0 for a method that draws nothing, 1 if all have the same scores.
    basis : str
        What interval and p value are about: ``queries and seeds``, ``queries`` (of these codes, since a method has
        fewer than three seeds) or ``seeds`` (on these queries, since the scores of single queries are not known).
    n_clusters : int or None
        Number of groups of alike queries, such as classes, that stand for the queries; None for single queries.
    n_distinct : int or None
        Number of distinct queries, if some have equal codes and labels and so count once; None if all differ.
    n_equal_seeds : tuple of int
        Seeds of either method that count as one, since all have the same scores; 0 if they differ.
    are_runs : bool
        Whether the methods are systems whose runs were scored, not codes.
    n_seeds_needed : int or None
        Seeds of each method that would show a true difference of this size about half of the time, if only seeds are
        added; None if no number would.
    p_holm : float or None
        ``p`` corrected for the comparisons made together by Holm's method; None for one.

    Examples
    --------
    >>> from hashbench import evaluate
    >>> database, labels = [[0, 0], [0, 1], [1, 1], [1, 1]], ([0, 1], [0, 0, 1, 1])
    >>> ours = evaluate([[0, 0], [1, 1]], database, labels, ["AP"])
    >>> theirs = evaluate([[0, 1], [1, 0]], database, labels, ["AP"])
    >>> difference = compare(ours, theirs)["AP"]
    >>> f"{difference.value:.4f}", difference.is_shown, difference.basis
    ('0.1667', False, 'queries')
    """

    names: tuple[str, str]
    metric: str
    value: float
    low: float
    high: float
    p: float
    tie_sd: float
    n_queries: int
    n_seeds: tuple[int, int]
    basis: str
    freedom: float = math.nan
    n_clusters: int | None = None
    n_distinct: int | None = None
    n_equal_seeds: tuple[int, int] = (0, 0)
    are_runs: bool = False
    n_seeds_needed: int | None = None
    p_holm: float | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the p value, corrected if it has to be, is below 0.05."""
        return (self.p if self.p_holm is None else self.p_holm) < ALPHA

    @property
    def is_tested(self) -> bool:
        """Whether there is a p value."""
        return not math.isnan(self.p)

    def __str__(self) -> str:
        first, second = self.names
        if self.value == 0:
            size = f"{first} and {second} do not differ in the mean of {self.metric}"
        else:
            by = f"{abs(self.value):.4f}" if abs(self.value) >= 1e-4 else "less than 0.0001"
            size = f"{first} is {'above' if self.value > 0 else 'below'} {second} by {by} {self.metric}"
        lower = " Lower is better." if is_error(self.metric) and self.value else ""
        if not self.is_tested:
            return f"{size} on these queries: {self._why_untested}.{self._equal_seeds}{lower}"
        if self.value == self.low == self.high == 0:
            each = "query" if self.n_clusters is None else "class"
            return f"{first} and {second} have the same {self.metric} on every {each}.{self._equal_seeds}"
        if math.isnan(self.low):
            interval = f"no interval over {self._sample}, as all differences are equal"
        else:
            freedom = f"{self.freedom:,.1f}".removesuffix(".0")
            degrees = f"{freedom} {'degree' if freedom == '1' else 'degrees'} of freedom"
            interval = f"95 % interval {self.low:.4f} to {self.high:.4f} over {self._sample}, {degrees}"
        if self.value == 0:
            return f"{size} ({interval}).{self._equal_seeds}"
        verdict = f"the difference is {'' if self.is_shown else 'not '}statistically shown {self._about}"
        p = f"p {_p_text(self.p)}" if self.p_holm is None else f"corrected p {_p_text(self.p_holm)}"
        return f"{size} ({interval}, {p}): {verdict}.{self._advice}{self._equal_seeds}{lower}"

    @property
    def _about(self) -> str:
        """What interval and p value are about."""
        if self.basis == "seeds":
            return "on these queries"
        if self.basis == "queries":
            return f"for these {'systems' if self.are_runs else 'codes'}"
        return f"for other {'queries' if self.n_clusters is None else 'classes'} and {self._seed}s"

    @property
    def _why_untested(self) -> str:
        if not any(self.n_seeds):
            return (
                "neither method draws anything at random, so there is nothing random to test over. A test over queries "
                "needs the scores of single queries: run or save both here"
            )
        single = [name for n, name in zip(self.n_seeds, self.names, strict=True) if n == 1]
        if not single:
            return f"the difference cannot be tested, as all seeds have the same {self.metric}"
        have = f"{' and '.join(single)} {'have' if len(single) > 1 else 'has'}"
        return (
            f"the difference cannot be tested, as {have} one seed and the scores of single queries are not kept here. "
            "Run or save both here, so that queries are compared"
        )

    @property
    def _seed(self) -> str:
        return "run" if self.are_runs else "seed"

    @property
    def _sample(self) -> str:
        parts = []
        if self.basis != "seeds":
            queries = counted(self.n_queries, "query", "queries")
            if self.n_clusters is not None:
                queries += f" of {self.n_clusters:,} classes"
            elif self.n_distinct is not None:
                queries += f", {self.n_distinct:,} of them distinct"
            parts.append(queries)
        if self.basis != "queries":
            parts.append(self._seeds)
        return (", and " if self.n_distinct is not None else " and ").join(part for part in parts if part)

    @property
    def _seeds(self) -> str:
        drawn = [(n, name) for n, name in zip(self.n_seeds, self.names, strict=True) if n]
        if len(drawn) == 2 and drawn[0][0] == drawn[1][0]:
            return f"{counted(drawn[0][0], self._seed)} each"
        return " and ".join(f"{counted(n, self._seed)} of {name}" for n, name in drawn)

    @property
    def _equal_seeds(self) -> str:
        """Return a sentence on the seeds that count as one."""
        return "".join(
            f" The {counted(n, self._seed)} of {name} have the same scores and count as one."
            for n, name in zip(self.n_equal_seeds, self.names, strict=True)
            if n
        )

    @property
    def _advice(self) -> str:
        if self.are_runs:
            return ""
        if self.basis == "queries" and any(self.n_seeds):
            few = [name for n, name in zip(self.n_seeds, self.names, strict=True) if 0 < n < LEAST_SEEDS]
            return f" A claim about the methods needs at least {LEAST_SEEDS} seeds of {' and of '.join(few)}."
        if self.is_shown or self.p_holm is not None or self.basis != "queries and seeds" or self.value == 0:
            return ""
        if self.n_seeds_needed is None:
            return " No number of seeds would show a difference of this size on as many queries."
        is_much = self.n_seeds_needed > _MOST_SEEDS
        number = f"More than {_MOST_SEEDS:,}" if is_much else f"About {self.n_seeds_needed:,}"
        drawing = [name for n, name in zip(self.n_seeds, self.names, strict=True) if n]
        whose = "each" if len(drawing) == 2 else f"of {drawing[0]}"
        return f" {number} seeds {whose} would show a true difference of this size about half of the time."


def compare(
    first: Evaluation | Sequence[Evaluation],
    second: Evaluation | Sequence[Evaluation],
    *,
    names: tuple[str, str] = ("the first", "the second"),
    draws_nothing: Sequence[str] = (),
    clusters: npt.ArrayLike | None = None,
    metrics: Sequence[str] | None = None,
    are_distinct: bool = False,
    seed_variances: VariancesOfSides = _NO_VARIANCES,
) -> ByMetric[Difference]:
    """Compare two methods by their scores of the same queries, each with one evaluation per seed.

    Parameters
    ----------
    first, second : Evaluation or sequence of Evaluation
        What `hashbench.evaluate` returns for the codes of each seed.
    names : tuple of str
        Names of the methods, for the sentences.
    draws_nothing : sequence of str
        Names of methods that draw nothing at random, so that one evaluation is all there is.
    clusters : array of shape (n_queries,), optional
        Labels of the queries. Queries of one label are taken to be alike, and the claim is about new classes.
    metrics : sequence of str, optional
        Metrics to compare in; by default those that all evaluations have.
    are_distinct : bool
        Whether all queries are known to be different items, so that each counts, also where codes and labels are equal.
    seed_variances : tuple of SeedVariance or None, optional
        Variance of either method between seeds, if more is known of it than these seeds show; in a single metric.

    Returns
    -------
    dict of str to Difference
        By metric. The p values of several metrics are not corrected for their number.

    Raises
    ------
    HashbenchError
        If they are not of the same queries, or of fewer than two.

    Notes
    -----
    The interval is about other queries and other seeds together. A test over queries, of means over seeds, calls many
    differences between two trainings of one method real (docs/explanation/comparing.md).

    Queries are paired by name where both have names, as those of runs do, and else by row: both must then have the same
    queries in the same order, which is checked by their numbers of relevant items and their labels only. Queries that
    have equal codes, labels and scores in all evaluations count once, unless they ``are_distinct``: they may be one
    query that was given twice. Those of runs, whose codes are not known, all count. Seeds of a method that all have the
    same scores are one seed.

    Examples
    --------
    >>> from hashbench import evaluate
    >>> labels = [0, 1, 0, 1], [0, 0, 1, 1]
    >>> ours = evaluate([[0, 0], [1, 1], [0, 1], [1, 1]], [[0, 0], [0, 1], [1, 1], [1, 1]], labels, ["AP"])
    >>> theirs = evaluate([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 0], [1, 1], [1, 1], [0, 1]], labels, ["AP"])
    >>> found = compare(ours, theirs, names=("ours", "theirs"))["AP"]
    >>> print(str(found).partition(":")[0])
    ours is above theirs by 0.3264 AP (95 % interval 0.1665 to 0.4863 over 4 queries, 3 degrees of freedom, p = 0.0074)
    """
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise HashbenchError(f"names must be those of the two methods, got {names!r}.")
    if names[0] == names[1]:
        raise HashbenchError(f"both methods are called {names[0]!r}; give each its own name, to tell them apart.")
    if isinstance(draws_nothing, str) or not {*draws_nothing} <= {*names}:
        raise HashbenchError(f"draws_nothing must be a list of {' or '.join(names)}, got {draws_nothing!r}.")
    sides = paired([evaluations_of(side, name) for side, name in zip((first, second), names, strict=True)], names)
    n_queries = len(sides[0][0].kind)
    labels = None if clusters is None else as_array(clusters, "clusters")
    if labels is not None and labels.shape != (n_queries,):
        raise HashbenchError(f"clusters have shape {labels.shape}; give a label for each of the {n_queries} queries.")
    common = [name for name in sides[0][0].scores if all(name in one.scores for side in sides for one in side)]
    if not common:
        raise HashbenchError(f"{names[0]} and {names[1]} have no metric in common; evaluate both by the same.")
    chosen = common if metrics is None else [get_metric(name).name for name in metrics]
    if lacking := [name for name in chosen if name not in common]:
        raise HashbenchError(f"not all evaluations have scores in {lacking[0]}; choose from {', '.join(common)}.")
    if seed_variances != _NO_VARIANCES and len(chosen) != 1:
        raise HashbenchError(f"seed_variances are of one metric, got {', '.join(chosen)}; choose one in metrics.")
    summaries = [
        [replace(one, scores={name: one.scores[name] for name in chosen}).summary for one in side] for side in sides
    ]
    n_seeds = [0 if name in draws_nothing else len(side) for name, side in zip(names, sides, strict=True)]
    is_repeated = [are_equal(side) for side in sides]
    differences: dict[str, Difference] = {}
    for name in chosen:
        scores = [np.stack([one.scores[name].mean for one in side]) for side in sides]
        differences[name] = of_scores(
            scores[0],
            scores[1],
            name,
            names,
            (n_seeds[0], n_seeds[1]),
            _shuffle_deviation(sides, summaries, name),
            labels,
            are_equal=(is_repeated[0], is_repeated[1]),
            kinds=None if are_distinct else kinds_of(sides, name),
            are_runs=all(one.queries is not None for side in sides for one in side),
            seed_variances=seed_variances,
        )
    return ByMetric(differences)


def evaluations_of(side: Evaluation | Sequence[Evaluation], name: str) -> list[Evaluation]:
    """Return the evaluations of a method, one per seed."""
    given = [side] if isinstance(side, Evaluation) else side
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise HashbenchError(f"{name} is a {type(side).__name__}; give what `evaluate` returns, or a list of it.")
    for one in given:
        if not isinstance(one, Evaluation):
            raise HashbenchError(f"{name} holds a {type(one).__name__}; give what `evaluate` returns for each seed.")
    if len({id(one) for one in given}) < len(given):
        raise HashbenchError(f"{name} holds an evaluation twice; give that of each seed once.")
    return list(given)


def paired(sides: Sequence[Sequence[Evaluation]], names: Sequence[str]) -> list[list[Evaluation]]:
    """Return the evaluations with the queries of the first one, in its order; refuse those of others."""
    for side, name in zip(sides, names, strict=True):
        if not side:
            raise HashbenchError(f"there is no evaluation of {name}; give one for each seed.")
    lengths = {len(next(iter(one.scores.values())).mean) for side in sides for one in side}
    if len(lengths) > 1:
        few = " and ".join(map(str, sorted(lengths)))
        raise HashbenchError(
            f"the evaluations are of {few} queries; a comparison needs the same queries, in one order."
        )
    for (name, side), (other_name, other_side) in combinations(zip(names, sides, strict=True), 2):
        if any(one is other for one in side for other in other_side):
            raise HashbenchError(f"{name} and {other_name} hold the same evaluation; give those of two methods.")
    queries = sides[0][0].queries
    named = [[one if one.queries is queries else _in_order(one, queries) for one in side] for side in sides]
    differ = _other_queries([one for side in named for one in side])
    if len(differ):
        raise HashbenchError(
            f"the evaluations have other relevant items for {counted(len(differ), 'query', 'queries')}, the first in "
            f"row {differ[0]}; a comparison needs the same queries, database and labels, in one order."
        )
    return named


def _in_order(evaluation: Evaluation, queries: Sequence[str] | None) -> Evaluation:
    """Return an evaluation with its queries in another order, of names."""
    if queries is None or evaluation.queries is None or {*evaluation.queries} != {*queries}:
        raise HashbenchError("the evaluations name different queries; a comparison needs the same.")
    places = {name: place for place, name in enumerate(evaluation.queries)}
    order = np.array([places[name] for name in queries])
    if (order[1:] > order[:-1]).all():
        return evaluation

    def ordered(values: IntArray | None) -> IntArray | None:
        return None if values is None else values[order]

    effects = {
        name: effect._replace(remainder=effect.remainder[order], kinds=ordered(effect.kinds))
        for name, effect in evaluation.order_effects.items()
    }
    return replace(
        evaluation,
        scores={name: Scores(*(part[order] for part in parts)) for name, parts in evaluation.scores.items()},
        queries=queries,
        kinds=ordered(evaluation.kinds),
        n_relevant=ordered(evaluation.n_relevant),
        alike=None,  # which numbers rows in the old order
        order_effects=effects,
    )


def are_equal(side: Sequence[Evaluation]) -> bool:
    """Return whether several seeds have the same scores in all metrics that they share."""
    first, *others = side
    return bool(others) and all(
        np.array_equal(np.round(part, _DECIMALS), np.round(other_part, _DECIMALS), equal_nan=True)
        for other in others
        for name in first.scores.keys() & other.scores.keys()
        for part, other_part in zip(first.scores[name], other.scores[name], strict=True)
    )


def kinds_of(sides: Sequence[Sequence[Evaluation]], metric: str) -> IntArray:
    """Return a number for each query, equal for those that have equal codes, labels and scores in all evaluations."""
    evaluations = [one for side in sides for one in side]
    rounded = [one.scores[metric].mean.round(_DECIMALS) + 0.0 for one in evaluations]  # no negative zeros
    scores = [np.ascontiguousarray(values, dtype=np.float64).view(np.int64) for values in rounded]
    return number_rows([*(one.kind for one in evaluations), *scores])[0]


def _other_queries(evaluations: Sequence[Evaluation]) -> IntArray:
    """Return the rows of queries that differ in their number of relevant items, or in the queries of their labels."""
    is_other = np.zeros(len(evaluations[0].kind), dtype=bool)
    counts = [one.n_relevant for one in evaluations if one.n_relevant is not None]
    alike = [one.alike for one in evaluations if one.alike is not None]
    for of_each in (counts, alike):
        for values in of_each[1:]:
            is_other |= values != of_each[0]
    if counts:
        is_other &= np.any(counts, axis=0)  # no label matters where nothing is relevant
    return np.flatnonzero(is_other)


def _shuffle_deviation(
    sides: Sequence[Sequence[Evaluation]], of_sides: Sequence[Sequence[Mapping[str, Summary]]], metric: str
) -> float:
    """Estimate how far random orders of the database move the difference: a standard deviation.

    By the triangle inequality it is the sum of both deviations at most, and these are estimates. Where all evaluations
    know the covariances with the keys of the same items, these are subtracted item by item, and only the remainders are
    added.
    """
    summaries = [[summary[metric] for summary in side] for side in of_sides]
    most = sum(float(np.mean([summary.tie_sd for summary in side])) for side in summaries)
    effects = [[one.order_effects.get(metric) for one in side] for side in sides]
    known = [[effect for effect in side if effect and effect.items is not None] for side in effects]
    if any(len(few) < len(side) for few, side in zip(known, effects, strict=True)):
        return most
    items, *others = [effect.items for side in known for effect in side if effect.items is not None]
    if not all(np.array_equal(items, other) for other in others):
        return most
    sums = [np.mean([effect.sums for effect in side if effect.sums is not None], axis=0) for side in known]
    n_defined = summaries[0][0].n_queries - int(np.isnan(known[0][0].remainder).sum())
    of_items = float(np.linalg.norm(sums[0] - sums[1])) / n_defined
    rests = [np.mean([math.sqrt(max(s.tie_sd**2 - s.tie_sd_low**2, 0)) for s in side]) for side in summaries]
    return min(most, math.hypot(of_items, float(sum(rests))))


def of_scores(
    first: FloatArray,
    second: FloatArray,
    metric: str,
    names: tuple[str, str],
    n_seeds: tuple[int, int],
    tie_sd: float,
    clusters: npt.ArrayLike | None = None,
    *,
    are_equal: tuple[bool, bool] = (False, False),
    kinds: IntArray | None = None,
    are_runs: bool = False,
    seed_variances: VariancesOfSides = _NO_VARIANCES,
) -> Difference:
    """Return the difference of scores, (n_seeds, n_queries) each, NaN where a query is undefined.

    Seeds that ``are_equal`` count as one, and so do queries of one of the ``kinds``, unless there are ``clusters``.
    """
    undefined = np.isnan(first[0])
    if not all(np.array_equal(np.isnan(row), undefined) for row in (*first, *second)):
        raise other_queries(metric, names)
    units, n_queries = kinds if clusters is None else np.asarray(clusters), int((~undefined).sum())
    labels = None if units is None else units[~undefined]
    first, second = first[:, ~undefined], second[:, ~undefined]
    n_units = n_queries if labels is None else len(np.unique(labels))
    unit = "class" if clusters is not None else "distinct query" if n_units < n_queries else "query"
    refuse_few(n_units, unit, metric)
    n_distinct_seeds, n_equal = _distinct_seeds(n_seeds, are_equal)
    is_known = [
        n not in range(1, LEAST_SEEDS) or known is not None
        for n, known in zip(n_distinct_seeds, seed_variances, strict=True)
    ]
    is_over_seeds = all(is_known) and any(n_distinct_seeds)
    first, second = (
        side if n > 1 and is_over_seeds else side.mean(axis=0, keepdims=True)
        for side, n in zip((first, second), n_distinct_seeds, strict=True)
    )
    found = moments(first, second, labels, seed_variances if is_over_seeds else _NO_VARIANCES)
    low, high, p = _interval_and_p(found.value, found.variance, found.freedom)
    return Difference(
        names=names,
        metric=metric,
        value=found.value,
        low=low,
        high=high,
        p=p,
        freedom=found.freedom,
        tie_sd=tie_sd,
        n_queries=n_queries,
        n_seeds=n_distinct_seeds,
        basis="queries and seeds" if is_over_seeds else "queries",
        n_clusters=None if clusters is None else n_units,
        n_distinct=n_units if clusters is None and n_units < n_queries else None,
        n_equal_seeds=n_equal,
        are_runs=are_runs,
        n_seeds_needed=_seeds_needed(found, n_distinct_seeds) if is_over_seeds else None,
    )


def refuse_few(n_units: int, unit: str, metric: str) -> None:
    """Refuse fewer queries, or classes of them, than say how far they vary."""
    if n_units < 2:
        units = f"{unit.removesuffix('y')}ies" if unit.endswith("y") else f"{unit}es"
        raise HashbenchError(f"{metric} is defined for {counted(n_units, unit, units)}; an interval needs two or more.")


def _distinct_seeds(n_seeds: tuple[int, int], are_equal: tuple[bool, bool]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the seeds of two methods, where equal ones count as one, and how many of these are equal."""
    first, second = (n if n > 1 and equal else 0 for n, equal in zip(n_seeds, are_equal, strict=True))
    return (1 if first else n_seeds[0], 1 if second else n_seeds[1]), (first, second)


def other_queries(metric: str, names: tuple[str, str]) -> HashbenchError:
    """Return the error for means over different queries."""
    return HashbenchError(
        f"{metric} is defined for different queries of {names[0]} and {names[1]}, or of their seeds, so their means do "
        "not compare; choose a metric that is defined for the same, such as P@r2 for P@r2:skip."
    )


def of_means(
    first: FloatArray,
    second: FloatArray,
    metric: str,
    names: tuple[str, str],
    n_queries: int,
    tie_sd: float,
    draws_nothing: Sequence[str] = (),
    *,
    are_equal: tuple[bool, bool] = (False, False),
    seed_variances: VariancesOfSides = _NO_VARIANCES,
) -> Difference:
    """Return the difference of means over the same queries, one per seed, by Welch's test: only seeds are known.

    Seeds that ``are_equal``, in all that is known of them, count as one. One seed of a method that draws at random, or
    nothing random in either, leaves nothing to test.
    """
    sides = first, second
    given = [0 if name in draws_nothing else len(side) for name, side in zip(names, sides, strict=True)]
    n_seeds, n_equal = _distinct_seeds((given[0], given[1]), are_equal)
    variances, degrees = [], []
    for side, n, known in zip(sides, n_seeds, seed_variances, strict=True):
        if n and known is not None:
            variances.append(known.variance / n)
            degrees.append(known.freedom)
        else:
            variances.append(math.nan if n == 1 else float(np.var(side, ddof=1)) / n if n else 0.0)
            degrees.append(max(n - 1, 1))
    value, is_borrowed = float(np.mean(first) - np.mean(second)), _are_borrowed(variances, seed_variances)
    variance, freedom = map(float, combined(variances, degrees, False if is_borrowed else None))
    low, high, p = _interval_and_p(value, variance, freedom)
    return Difference(
        names=names,
        metric=metric,
        value=value,
        low=low,
        high=high,
        p=p,
        freedom=math.nan if math.isnan(p) else freedom,
        tie_sd=tie_sd,
        n_queries=n_queries,
        n_seeds=n_seeds,
        basis="seeds",
        n_equal_seeds=n_equal,
    )


def _are_borrowed(variances: Sequence[float], known: VariancesOfSides) -> bool:
    """Return whether the variances of all sides that draw at random borrow from elsewhere."""
    return all(one is not None or variance == 0 for variance, one in zip(variances, known, strict=True))


def combined(
    parts: npt.ArrayLike, degrees: npt.ArrayLike, is_careful: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the sum of two variances in the last axis, and its degrees of freedom, given those of each.

    They are Welch's, or where ``is_careful`` the fewer of both, by default where they differ: with two seeds beside
    ten, Welch's would make one of ten tests of equal methods significant. Where nothing varies, there are none.
    """
    parts, degrees = np.asarray(parts, dtype=float), np.asarray(degrees, dtype=float)
    variance, squares = parts.sum(axis=-1), (parts**2 / degrees).sum(axis=-1)
    welch = np.divide(variance**2, squares, out=np.zeros_like(variance), where=squares > 0)
    is_careful = degrees[..., 0] != degrees[..., 1] if is_careful is None else np.asarray(is_careful)
    return variance, np.where((parts > 0).all(axis=-1) & is_careful, degrees.min(axis=-1), welch)


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Correct p values, (n,), for their number by Holm's step-down method.

    The i-th smallest is multiplied by n - i + 1, no less than those before it, at most 1. Tests with a value below
    alpha include a false alarm with probability alpha at most, however the tests depend on each other: S. Holm, "A
    Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics, 1979.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1.0)
    return corrected


def each_difference(
    first: Evaluation, second: Evaluation, names: tuple[str, ...], *, by_class: bool = False
) -> dict[str, dict[str, Any]]:
    """Compare two evaluations without seeds metric by metric, each without the others; several are corrected together.

    With ``by_class``, queries with the same labels belong together, and intervals are about other classes. Where there
    is no interval, a sentence says why, and the numbers are None.
    """
    pair = names[0], names[1]
    if by_class and first.alike is None:
        raise HashbenchError("the classes of queries are not known here; give --query-labels, or leave --by class out.")
    clusters = first.alike if by_class else None
    parts = (
        "value",
        "low",
        "high",
        "p",
        "p_holm",
        "freedom",
        "tie_sd",
        "n_queries",
        "n_distinct",
        "n_clusters",
        "is_shown",
    )
    found: dict[str, Difference | HashbenchError] = {}
    for metric in first.scores:
        one, other = (replace(scored, scores={metric: scored.scores[metric]}) for scored in (first, second))
        try:
            found[metric] = compare(one, other, names=pair, draws_nothing=pair, clusters=clusters)[metric]
        except HashbenchError as error:
            found[metric] = error
    differences = iter(corrected([one for one in found.values() if isinstance(one, Difference)]))
    answers: dict[str, dict[str, Any]] = {}
    for metric, result in found.items():
        if isinstance(result, HashbenchError):
            answers[metric] = dict.fromkeys(parts) | {"sentence": f"{metric}: no interval: {result}"}
        else:
            answer = next(differences)
            answers[metric] = {part: getattr(answer, part) for part in parts} | {"sentence": str(answer)}
    return answers


def corrected(differences: Sequence[Difference]) -> list[Difference]:
    """Correct the p values of differences that are reported together by Holm's method, if several are tested."""
    p_values = [one.p for one in differences if one.is_tested]
    if len(p_values) < 2:
        return list(differences)
    p_holm = iter(holm(p_values).tolist())
    return [replace(one, p_holm=next(p_holm)) if one.is_tested else one for one in differences]


def interval(
    value: npt.ArrayLike, variance: npt.ArrayLike, freedom: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the ends of intervals of values, and the p values of 0.

    Where all differ by the same, up to rounding, p is that of a sign test of one more than ``freedom`` differences;
    without degrees of freedom there is none, and it is NaN.
    """
    with needing("comparing evaluations"):
        from scipy.special import stdtr, stdtrit

    value, sd, freedom = np.asarray(value), np.sqrt(variance), np.asarray(freedom, dtype=float)
    is_equal = sd <= 1e-12 * np.abs(value)
    half = np.where(is_equal, 0.0, stdtrit(freedom, 1 - ALPHA / 2) * sd)
    p = 2 * stdtr(freedom, -np.abs(value) / np.where(is_equal, 1.0, sd))
    of_signs = np.where(value == 0, 1.0, np.exp2(-freedom))
    return value - half, value + half, np.where(freedom > 0, np.where(is_equal, of_signs, p), np.nan)


def _interval_and_p(value: float, variance: float, freedom: float) -> tuple[float, float, float]:
    low, high, p = map(float, interval(value, variance, freedom))
    return (low, high, p) if p == p and (low < high or value == 0) else (math.nan, math.nan, p)


def _seeds_needed(found: Moments, n_seeds: tuple[int, int]) -> int | None:
    """Return the smallest number of seeds of each method that would show the value if the variances stay.

    As samples vary about the value, half of them show it then.
    """
    single = [of_seeds * n for of_seeds, n in zip(found.of_seeds, n_seeds, strict=True)]
    both = sum(found.interactions)
    of_queries = max(found.of_queries - both, 0.0)
    interaction = [part * n for part, n in zip(found.interactions, n_seeds, strict=True)]
    known = found.degrees[1:] if found.is_borrowed else (1.0, 1.0)

    def is_shown(n: int) -> bool:
        expected = Moments(
            found.value,
            of_queries + sum(interaction) / n,
            (single[0] / n, single[1] / n),
            (interaction[0] / n, interaction[1] / n),
            (found.degrees[0], max(n - 1, known[0]), max(n - 1, known[1])),
            found.is_borrowed,
        )
        return bool(interval(found.value, expected.variance, expected.freedom)[2] < ALPHA)

    n = bisect(range(_LIMIT), False, lo=LEAST_SEEDS, key=is_shown)
    return n if n < _LIMIT else None


def _p_text(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.3g}"


def moments(
    first: FloatArray,
    second: FloatArray,
    clusters: npt.ArrayLike | None = None,
    seed_variances: VariancesOfSides = _NO_VARIANCES,
) -> Moments:
    """Return the moments of the mean difference of scores, (n_seeds, n_queries) each, of the same queries.

    With ``clusters``, (n_queries,), queries of one cluster are taken to be alike, and the claim is about new clusters.
    Known variances of seeds take the place of those of the scores.

    Notes
    -----
    Of d_q, the difference of the means over seeds, v_query = var(d_q) / Q. Each method adds v_X = var(seed means) / S.
    Both hold the interaction of queries and seeds, e_X = sum (x_sq - x_s. - x_.q + x_..)^2 / ((S - 1) (Q - 1) S Q).
    Sources: J. Cornfield and J. W. Tukey, "Average values of mean squares in factorials", 1956; A. B. Owen, "The
    pigeonhole bootstrap", 2007.
    """
    n_queries = first.shape[1]
    group = np.arange(n_queries) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    n_groups = int(group.max()) + 1
    unit = n_groups / (n_groups - 1) / n_queries**2

    def squares(values: FloatArray) -> float:
        """Sum the squares of the sums over each cluster."""
        sums = np.stack([np.bincount(group, weights=row, minlength=n_groups) for row in np.atleast_2d(values)])
        return float((sums**2).sum())

    differences = first.mean(axis=0) - second.mean(axis=0)
    value = float(differences.mean())

    def of_method(scores: FloatArray, known: SeedVariance | None) -> tuple[float, float, float]:
        """Return the variance due to seeds, what queries and seeds have in common, and degrees of freedom."""
        n_seeds, means = len(scores), scores.mean(axis=1)
        variance, degrees = known or (float(means.var(ddof=1)) if n_seeds > 1 else 0.0, max(n_seeds - 1, 1))
        if n_seeds < 2:
            return variance, 0.0, degrees
        residuals = scores - means[:, None] - scores.mean(axis=0) + scores.mean()
        return variance / n_seeds, unit * squares(residuals) / (n_seeds * (n_seeds - 1)), degrees

    of_first, of_second = (of_method(*side) for side in zip((first, second), seed_variances, strict=True))
    return Moments(
        value,
        unit * squares(differences - value),
        (of_first[0], of_second[0]),
        (of_first[1], of_second[1]),
        (n_groups - 1, of_first[2], of_second[2]),
        _are_borrowed((of_first[0], of_second[0]), seed_variances),
    )
