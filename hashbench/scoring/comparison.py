"""Whether one method is better than another: the difference of two means, with an interval over queries and seeds.

Three things could undo a difference: another order of tied items, other queries, other seeds. The interval is about
queries and seeds; what a shuffle of the database can do is reported beside it and never added.
"""

from __future__ import annotations  # so that help() shows types as they are written

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._typing import FloatArray, IntArray
from hashbench._validation import as_array
from hashbench.errors import HashbenchError, counted, needing
from hashbench.scoring.evaluation import ByMetric, Evaluation, Summary
from hashbench.scoring.metrics import is_error

ALPHA = 0.05  # of tests and, as 95 %, of intervals
_MOST_SEEDS = 1000  # named as the number that would show a difference
_LIMIT = 1 << 40  # seeds, which leave the queries as the only source of chance


class Moments(NamedTuple):
    """Mean and variance of a difference of two methods, by source of chance."""

    value: float
    of_queries: float  # variance due to the choice of queries
    of_seeds: tuple[float, float]  # due to the seeds of either method, 0 if it has one seed
    interactions: tuple[float, float]  # what both of these hold, and is taken off once
    degrees: tuple[float, float, float]  # of freedom, of the queries and of the seeds of either method

    @property
    def variance(self) -> float:
        """The variance of the value."""
        both = self.of_queries + sum(self.of_seeds)
        return max(both - sum(self.interactions), self.of_queries, sum(self.of_seeds))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance, by Satterthwaite."""
        parts = (self.of_queries, *self.of_seeds)
        squares = sum(part**2 / degree for part, degree in zip(parts, self.degrees, strict=True) if part)
        return sum(parts) ** 2 / squares if squares else self.degrees[0]


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
    tie_sd : float
        Estimate of the standard deviation of ``value`` under random orders of the database, or of the most that it can
        be where the items of both methods are not known to be the same; NaN if it is not known.
    n_queries : int
        Queries that both methods are scored on.
    n_seeds : tuple of int
        Seeds of the first and of the second method; 0 for a method that draws nothing.
    basis : str
        What interval and p value are about: ``queries and seeds``, ``queries`` (of these codes, since a method has one
        seed) or ``seeds`` (on these queries, since the scores of single queries are not known).
    n_clusters : int or None
        Number of groups of alike queries, such as classes, that stand for the queries; None for single queries.
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
    n_clusters: int | None = None
    n_seeds_needed: int | None = None
    p_holm: float | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the p value, corrected if it has to be, is below 0.05."""
        return (self.p if self.p_holm is None else self.p_holm) < ALPHA

    def __str__(self) -> str:
        first, second = self.names
        is_same = self.value == self.low == self.high == 0
        if is_same and self.basis != "seeds":
            each = "query" if self.n_clusters is None else "class"
            return f"{first} and {second} have the same {self.metric} on every {each}."
        if is_same or math.isnan(self.low):
            equal = "seeds" if self.basis == "seeds" else "differences"
            interval = f"no interval over {self._sample}, as all {equal} are equal"
        else:
            interval = f"95 % interval {self.low:.4f} to {self.high:.4f} over {self._sample}"
        if self.value == 0:
            return f"{first} and {second} do not differ in the mean of {self.metric} ({interval})."
        direction = "above" if self.value > 0 else "below"
        by = f"{abs(self.value):.4f}" if abs(self.value) >= 1e-4 else "less than 0.0001"
        size = f"{first} is {direction} {second} by {by} {self.metric}"
        verdict = f"the difference is {'' if self.is_shown else 'not '}statistically shown"
        about = {"queries": " for these codes", "seeds": " on these queries"}.get(self.basis, "")
        p = f"p {_p_text(self.p)}" if self.p_holm is None else f"corrected p {_p_text(self.p_holm)}"
        lower = " Lower is better." if is_error(self.metric) else ""
        return f"{size} ({interval}, {p}): {verdict}{about}.{self._advice}{lower}"

    @property
    def _sample(self) -> str:
        parts = []
        if self.basis != "seeds":
            queries = counted(self.n_queries, "query", "queries")
            parts.append(queries if self.n_clusters is None else f"{queries} of {self.n_clusters:,} classes")
        if self.basis != "queries":
            parts.append(self._seeds)
        return " and ".join(part for part in parts if part)

    @property
    def _seeds(self) -> str:
        drawn = [(n, name) for n, name in zip(self.n_seeds, self.names, strict=True) if n]
        if len(drawn) == 2 and drawn[0][0] == drawn[1][0]:
            return f"{drawn[0][0]} seeds each"
        return " and ".join(f"{counted(n, 'seed', 'seeds')} of {name}" for n, name in drawn)

    @property
    def _advice(self) -> str:
        if self.basis == "queries" and any(self.n_seeds):
            single = [name for n, name in zip(self.n_seeds, self.names, strict=True) if n == 1]
            return f" A claim about the methods needs several seeds of {' and of '.join(single)}."
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

    Returns
    -------
    dict of str to Difference
        By metric, those that all evaluations have.

    Raises
    ------
    HashbenchError
        If they are not of the same queries, or of fewer than two.

    Notes
    -----
    The interval is about other queries and other seeds together. A test over queries, of means over seeds, calls many
    differences between two trainings of one method real (docs/explanation/comparing.md).

    Examples
    --------
    >>> from hashbench import evaluate
    >>> labels = [0, 1, 0, 1], [0, 0, 1, 1]
    >>> ours = evaluate([[0, 0], [1, 1], [0, 1], [1, 1]], [[0, 0], [0, 1], [1, 1], [1, 1]], labels, ["AP"])
    >>> theirs = evaluate([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 0], [1, 1], [1, 1], [0, 1]], labels, ["AP"])
    >>> found = compare(ours, theirs, names=("ours", "theirs"))["AP"]
    >>> print(str(found).partition(":")[0])
    ours is above theirs by 0.3264 AP (95 % interval 0.1665 to 0.4863 over 4 queries, p = 0.0074)
    """
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise HashbenchError(f"names must be those of the two methods, got {names!r}.")
    if names[0] == names[1]:
        raise HashbenchError(f"both methods are called {names[0]!r}; give each its own name, to tell them apart.")
    if isinstance(draws_nothing, str) or not {*draws_nothing} <= {*names}:
        raise HashbenchError(f"draws_nothing must be a list of {' or '.join(names)}, got {draws_nothing!r}.")
    sides = [_side(side, name) for side, name in zip((first, second), names, strict=True)]
    _check(sides, names)
    n_queries = len(sides[0][0].kind)
    labels = None if clusters is None else as_array(clusters, "clusters")
    if labels is not None and labels.shape != (n_queries,):
        raise HashbenchError(f"clusters have shape {labels.shape}; give a label for each of the {n_queries} queries.")
    metrics = [name for name in sides[0][0].scores if all(name in one.scores for side in sides for one in side)]
    if not metrics:
        raise HashbenchError(f"{names[0]} and {names[1]} have no metric in common; evaluate both by the same.")
    summaries = [[one.summary for one in side] for side in sides]
    return ByMetric(
        {
            name: _difference(sides, name, names, draws_nothing, _shuffle_deviation(sides, summaries, name), labels)
            for name in metrics
        }
    )


def _side(side: Evaluation | Sequence[Evaluation], name: str) -> list[Evaluation]:
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


def _check(sides: Sequence[Sequence[Evaluation]], names: tuple[str, str]) -> None:
    for side, name in zip(sides, names, strict=True):
        if not side:
            raise HashbenchError(f"there is no evaluation of {name}; give one for each seed.")
    lengths = {len(next(iter(one.scores.values())).mean) for side in sides for one in side}
    queries = {None if one.queries is None else tuple(one.queries) for side in sides for one in side}
    if len(lengths) > 1:
        few = " and ".join(map(str, sorted(lengths)))
        raise HashbenchError(
            f"the evaluations are of {few} queries; a comparison needs the same queries, in one order."
        )
    if len(queries) > 1:
        raise HashbenchError("the evaluations name different queries; a comparison needs the same, in one order.")
    differ = _other_queries([one for side in sides for one in side])
    if len(differ):
        raise HashbenchError(
            f"the evaluations have other relevant items for {counted(len(differ), 'query', 'queries')}, the first in "
            f"row {differ[0]}; a comparison needs the same queries, database and labels, in one order."
        )
    if any(one is other for one in sides[0] for other in sides[1]):
        raise HashbenchError(f"{names[0]} and {names[1]} hold the same evaluation; give those of two methods.")


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


def _difference(
    sides: Sequence[Sequence[Evaluation]],
    metric: str,
    names: tuple[str, str],
    draws_nothing: Sequence[str],
    tie_sd: float,
    clusters: npt.ArrayLike | None,
) -> Difference:
    scores = [np.stack([one.scores[metric].mean for one in side]) for side in sides]
    first, second = (0 if name in draws_nothing else len(side) for side, name in zip(sides, names, strict=True))
    return of_scores(scores[0], scores[1], metric, names, (first, second), tie_sd, clusters)


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
) -> Difference:
    """Return the difference of scores, (n_seeds, n_queries) each, NaN where a query is undefined."""
    undefined = np.isnan(first[0])
    if not all(np.array_equal(np.isnan(row), undefined) for row in (*first, *second)):
        raise other_queries(metric, names)
    labels = None if clusters is None else np.asarray(clusters)[~undefined]
    first, second = first[:, ~undefined], second[:, ~undefined]
    n_queries = first.shape[1]
    n_clusters = None if labels is None else len(np.unique(labels))
    n_units = n_queries if n_clusters is None else n_clusters
    if n_units < 2:
        unit = ("query", "queries") if n_clusters is None else ("class", "classes")
        defined_for = counted(n_units, *unit)
        raise HashbenchError(f"{metric} is defined for {defined_for}; an interval needs two or more.")
    is_over_seeds = 1 not in n_seeds and any(n_seeds)
    first, second = (
        side if n and is_over_seeds else side.mean(axis=0, keepdims=True)
        for side, n in zip((first, second), n_seeds, strict=True)
    )
    found = moments(first, second, labels)
    low, high, p = _interval_and_p(found.value, found.variance, found.freedom)
    return Difference(
        names=names,
        metric=metric,
        value=found.value,
        low=low,
        high=high,
        p=p,
        tie_sd=tie_sd,
        n_queries=n_queries,
        n_seeds=n_seeds,
        basis="queries and seeds" if is_over_seeds else "queries",
        n_clusters=n_clusters,
        n_seeds_needed=_seeds_needed(found, n_seeds) if is_over_seeds else None,
    )


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
) -> Difference:
    """Return the difference of means over the same queries, one per seed, by Welch's test: only seeds are known."""
    n_seeds = tuple(
        0 if name in draws_nothing else len(side) for name, side in zip(names, (first, second), strict=True)
    )
    if 1 in n_seeds or not any(n_seeds):
        name = names[n_seeds.index(1)] if 1 in n_seeds else names[0]
        reason = "has one seed" if 1 in n_seeds else "draws nothing at random"
        raise HashbenchError(
            f"{name} {reason}, and the scores of single queries are not kept here. Run or evaluate both here, so that "
            "queries are compared."
        )
    parts = [float(np.var(side, ddof=1)) / n if n else 0.0 for side, n in zip((first, second), n_seeds, strict=True)]
    value = float(np.mean(first) - np.mean(second))
    low, high, p = _interval_and_p(value, *map(float, of_seed_variances(parts, n_seeds)))
    return Difference(
        names=names,
        metric=metric,
        value=value,
        low=low,
        high=high,
        p=p,
        tie_sd=tie_sd,
        n_queries=n_queries,
        n_seeds=(n_seeds[0], n_seeds[1]),
        basis="seeds",
    )


def of_seed_variances(parts: npt.ArrayLike, n_seeds: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return variance and degrees of freedom by Welch, of the variances of two means of seeds in the last axis.

    Where no seed differs, there are none.
    """
    parts, degrees = np.asarray(parts), np.maximum(np.asarray(n_seeds) - 1, 1)
    variance, squares = parts.sum(axis=-1), (parts**2 / degrees).sum(axis=-1)
    return variance, np.divide(variance**2, squares, out=np.zeros_like(variance), where=squares > 0)


def interval_over_queries(scores: FloatArray) -> tuple[float, float]:
    """Return the interval of a mean over queries and seeds, NaN for fewer than two; scores are (n_seeds, n_queries)."""
    scores = scores[:, ~np.isnan(scores[0])]
    if scores.shape[1] < 2:
        return math.nan, math.nan
    found = moments(scores, np.zeros_like(scores[:1]))
    low, high, _ = interval(found.value, found.variance, found.freedom)
    return float(low), float(high)


def interval_over_seeds(means: FloatArray) -> tuple[float, float]:
    """Return the interval of a mean over two or more seeds, on the same queries."""
    low, high, _ = interval(means.mean(), means.var(ddof=1) / len(means), len(means) - 1)
    return float(low), float(high)


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


def interval(
    value: npt.ArrayLike, variance: npt.ArrayLike, freedom: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the ends of intervals of values, and the p values of 0.

    Where all differ by the same, up to rounding, p is that of a sign test of one more than ``freedom`` differences.
    """
    with needing("comparing evaluations"):
        from scipy.special import stdtr, stdtrit

    value, sd = np.asarray(value), np.sqrt(variance)
    is_equal = sd <= 1e-12 * np.abs(value)
    half = np.where(is_equal, 0.0, stdtrit(freedom, 1 - ALPHA / 2) * sd)
    p = 2 * stdtr(freedom, -np.abs(value) / np.where(is_equal, 1.0, sd))
    of_signs = np.where(value == 0, 1.0, np.exp2(-np.asarray(freedom, dtype=float)))
    return value - half, value + half, np.where(is_equal, of_signs, p)


def _interval_and_p(value: float, variance: float, freedom: float) -> tuple[float, float, float]:
    low, high, p = map(float, interval(value, variance, freedom))
    return (low, high, p) if low < high or value == 0 else (math.nan, math.nan, p)


def _seeds_needed(found: Moments, n_seeds: tuple[int, int]) -> int | None:
    """Return the smallest number of seeds of each method that would show the value if the variances stay.

    As samples vary about the value, half of them show it then.
    """
    single = [of_seeds * n for of_seeds, n in zip(found.of_seeds, n_seeds, strict=True)]
    both = sum(found.interactions)
    of_queries = max(found.of_queries - both, 0.0)
    interaction = [part * n for part, n in zip(found.interactions, n_seeds, strict=True)]

    def is_shown(n: int) -> bool:
        expected = Moments(
            found.value,
            of_queries + sum(interaction) / n,
            (single[0] / n, single[1] / n),
            (interaction[0] / n, interaction[1] / n),
            (found.degrees[0], n - 1, n - 1),
        )
        return bool(interval(found.value, expected.variance, expected.freedom)[2] < ALPHA)

    n = bisect(range(_LIMIT), False, lo=2, key=is_shown)
    return n if n < _LIMIT else None


def _p_text(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.3g}"


def moments(first: FloatArray, second: FloatArray, clusters: npt.ArrayLike | None = None) -> Moments:
    """Return the moments of the mean difference of scores, (n_seeds, n_queries) each, of the same queries.

    With ``clusters``, (n_queries,), queries of one cluster are taken to be alike, and the claim is about new clusters.

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

    def of_method(scores: FloatArray) -> tuple[float, float]:
        """Return the variance due to seeds, and what queries and seeds have in common."""
        n_seeds, means = len(scores), scores.mean(axis=1)
        if n_seeds < 2:
            return 0.0, 0.0
        residuals = scores - means[:, None] - scores.mean(axis=0) + scores.mean()
        return float(means.var(ddof=1)) / n_seeds, unit * squares(residuals) / (n_seeds * (n_seeds - 1))

    (seeds, interaction), (other_seeds, other_interaction) = of_method(first), of_method(second)
    degrees = (n_groups - 1, max(len(first) - 1, 1), max(len(second) - 1, 1))
    return Moments(
        value,
        unit * squares(differences - value),
        (seeds, other_seeds),
        (interaction, other_interaction),
        degrees,
    )
