"""Which of several methods may be the best: a set that holds it with about 95 % confidence.

A method stays in the set unless another one beats it. That is the question readers of a table have, and it has power
where a list of tests against the method that came out first has none: nothing is owed for having looked.

The variance over few seeds is hardly known: three leave two degrees of freedom. Variances of a method are alike at its
code lengths, so `seed_variances` lets each length borrow from the others, as far as the data of all methods allow.
"""

from __future__ import annotations  # so that help() shows types as they are written

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from hashbench._typing import BoolArray, FloatArray, IntArray
from hashbench.errors import HashbenchError, counted, needing
from hashbench.scoring.comparison import (
    ALPHA,
    LEAST_SEEDS,
    are_equal,
    combined,
    evaluations_of,
    kinds_of,
    moments,
    other_queries,
    paired,
    refuse_few,
)
from hashbench.scoring.evaluation import ByMetric, Evaluation
from hashbench.scoring.metrics import is_error

_FEWEST = 8  # methods of several lengths, from which to learn how alike their variances are


class Chance(NamedTuple):
    """What could move the means of k methods; the parts are those of `hashbench.scoring.comparison.Moments`."""

    of_seeds: FloatArray  # (k,) variance of each mean due to its seeds, 0 for a method that draws nothing
    freedom: FloatArray  # (k,) degrees of freedom of it
    is_borrowed: BoolArray  # (k,) whether these are also those of other code lengths
    of_queries: FloatArray  # (k, k) variance of each difference due to queries, 0 without scores of both
    interactions: FloatArray  # (k, k) what queries and seeds both hold
    n_queries: IntArray  # (k, k) distinct queries with scores of both, 0 without

    @classmethod
    def over_seeds(cls, of_seeds: FloatArray, freedom: FloatArray, is_borrowed: BoolArray | None = None) -> Self:
        """Return that of methods whose scores of single queries are not known."""
        if is_borrowed is None:
            is_borrowed = np.zeros(len(of_seeds), dtype=bool)
        shape = len(of_seeds), len(of_seeds)
        return cls(of_seeds, freedom, is_borrowed, np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64))


def p_values_of_pairs(values: FloatArray, chance: Chance, *, is_careful: bool = False) -> FloatArray:
    """Return p, (k, k), of the one-sided tests that the mean of the column's method is at most that of the row's.

    By Satterthwaite; unless both variances over seeds are borrowed, with the fewer degrees of freedom where they
    differ, or with ``is_careful`` everywhere, since Welch's test is too sure of few seeds in the far tails. Where
    nothing is random, p is 0 or 1; where only queries are, and all differ by the same, it is that of a sign test.
    """
    with needing("comparing methods"):
        from scipy.special import stdtr

    difference = values[None, :] - values[:, None]
    shape = difference.shape
    of_both, degrees, are_borrowed = (
        np.stack([np.broadcast_to(part[:, None], shape), np.broadcast_to(part[None, :], shape)], axis=-1)
        for part in (chance.of_seeds, chance.freedom, chance.is_borrowed)
    )
    is_unequal = degrees[..., 0] != degrees[..., 1]
    seeds, freedom = combined(of_both, degrees, ~are_borrowed.all(axis=-1) & (is_careful | is_unequal))
    both = chance.of_queries + seeds
    variance = np.maximum(both - chance.interactions, np.maximum(chance.of_queries, seeds))
    squares = np.divide(seeds**2, freedom, out=np.zeros_like(seeds), where=freedom > 0)
    squares = squares + chance.of_queries**2 / np.maximum(chance.n_queries - 1, 1)
    is_fixed = (variance == 0) | (np.sqrt(variance) <= 1e-12 * np.abs(difference))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = stdtr(both**2 / squares, -difference / np.sqrt(variance))
    by_signs = np.where(chance.n_queries > 0, 0.5**chance.n_queries, 0.0)
    return np.where(is_fixed, np.where(difference > 0, by_signs, 1.0), p)


def corrected_p_values(values: FloatArray, chance: Chance) -> FloatArray:
    """Return p, (k,), of each method's tests that no other one beats it, corrected for their number.

    Values are larger for better methods. Those of at least `hashbench.scoring.comparison.ALPHA` may be the best.

    Notes
    -----
    Method i is left out if some p of "mean j <= mean i" is below alpha / (k - 1). The best method is left out only if
    one of k - 1 true hypotheses is rejected, so with probability alpha at most. Sources: S. S. Gupta, "On some multiple
    decision (selection and ranking) rules", 1965; J. C. Hsu, "Constrained simultaneous confidence intervals for
    multiple comparisons with the best", 1984.
    """
    n_methods = len(values)
    p = p_values_of_pairs(values, chance, is_careful=True)
    np.fill_diagonal(p, 1.0)
    return np.minimum((n_methods - 1) * p.min(axis=1, initial=1.0), 1.0) if n_methods > 1 else np.ones(n_methods)


def chance_of_queries(
    scores: Sequence[FloatArray], kinds: IntArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    """Return the variances of differences due to queries, and the interactions of queries and seeds, both (k, k).

    Scores are (n_seeds, n_queries) of each method, all of the same queries; of the ``kinds``, (n_queries,), each counts
    once. The last value is the number of distinct queries, which must be two at least.
    """
    means = np.stack([values.mean(axis=0) for values in scores])
    n_queries = means.shape[1]
    kinds = np.arange(n_queries) if kinds is None else np.unique(kinds, return_inverse=True)[1]
    n_distinct = int(kinds.max()) + 1
    ends = np.cumsum(np.bincount(kinds))[:-1]
    means = means[:, np.argsort(kinds, kind="stable")]  # those of a kind beside each other
    of_queries = np.empty((len(means), len(means)))
    for place, own in enumerate(means):  # by differences, since a sum of squares and products would cancel
        differences = means - own
        centred = differences - differences.mean(axis=1, keepdims=True)
        sums = np.add.reduceat(centred, [0, *ends], axis=1)
        of_queries[place] = (sums**2).sum(axis=1)
    of_queries *= n_distinct / (n_distinct - 1) / n_queries**2
    interactions = np.array([moments(values, np.zeros_like(values[:1]), kinds).interactions[0] for values in scores])
    return of_queries, interactions[:, None] + interactions[None, :], n_distinct


@dataclass(frozen=True, kw_only=True)
class MayBeBest:
    """The methods that may be the best in one metric; as ``str`` the sentence that says so.

    Parameters
    ----------
    metric : str
        The metric.
    names : tuple of str
        The methods that may be the best: each best of those tested is among them with about 95 % confidence.
    p : dict of str to float
        By method, the p value, corrected for the number of methods, of the hypothesis that no other one is better.
        Empty if fewer than two methods can be tested.
    means : dict of str to float
        By method, the mean over queries and seeds.
    untested : dict of str to str
        Methods that cannot be tested beside others of three seeds and more, and why.
    basis : str
        What the confidence is about, as in `Difference`: ``queries and seeds``, or ``queries`` (of these codes).
    n_queries : int
        Queries that all methods are scored on.
    n_distinct : int or None
        Number of distinct queries, as in `Difference`.

    Examples
    --------
    >>> p, means = {"ours": 1.0, "theirs": 0.03}, {"ours": 0.7, "theirs": 0.6}
    >>> found = MayBeBest(metric="AP", names=("ours",), p=p, means=means, untested={}, basis="queries", n_queries=200)
    >>> print(found)
    May be the best of 2 in AP: ours (each best is named with about 95 % confidence, for these codes, over 200 queries).
    """

    metric: str
    names: tuple[str, ...]
    p: dict[str, float]
    means: dict[str, float]
    untested: dict[str, str]
    basis: str
    n_queries: int
    n_distinct: int | None = None

    def __str__(self) -> str:
        queries = counted(self.n_queries, "query", "queries")
        if self.n_distinct is not None:
            queries += f", {self.n_distinct:,} of them distinct"
        about = "for these codes, over" if self.basis == "queries" else "over seeds and"
        if self.p:
            of_all = f"May be the best of {len(self.p)} in {self.metric}: {', '.join(self.names)}"
            sentence = f"{of_all} (each best is named with about 95 % confidence, {about} {queries})."
        else:
            reason = "fewer than two methods have enough seeds"
            sentence = f"Which method may be the best in {self.metric} cannot be tested: {reason}."
        reasons = "; ".join(f"{name} ({reason})" for name, reason in self.untested.items())
        return sentence + (f" Not tested: {reasons}." if reasons else "")


def may_be_best(
    evaluations: Mapping[str, Evaluation | Sequence[Evaluation]],
    *,
    draws_nothing: Sequence[str] = (),
    are_distinct: bool = False,
) -> ByMetric[MayBeBest]:
    """Find the methods that may be the best, from their scores of the same queries, with one evaluation per seed.

    Parameters
    ----------
    evaluations : dict of str to Evaluation or sequence of Evaluation
        By the name of the method, what `hashbench.evaluate` returns for the codes of each seed.
    draws_nothing : sequence of str
        Names of methods that draw nothing at random, so that one evaluation is all there is.
    are_distinct : bool
        Whether all queries are known to be different items, as in `compare`.

    Returns
    -------
    dict of str to MayBeBest
        By metric, those that all evaluations have.

    Raises
    ------
    HashbenchError
        If there are fewer than two methods, or they are not of the same queries, or of fewer than two.

    Notes
    -----
    The set holds each truly best of the tested methods with a probability of about 95 %. A tested method that it leaves
    out is shown not to be the best; those in it are not shown to be equal. See docs/explanation/comparing.md.

    Examples
    --------
    >>> from hashbench import evaluate
    >>> labels = [0, 1, 0, 1], [0, 0, 1, 1]
    >>> queries, database = [[0, 0], [1, 1], [0, 1], [1, 1]], [[0, 0], [0, 1], [1, 1], [1, 1]]
    >>> ours = evaluate(queries, database, labels, ["AP"])
    >>> theirs = evaluate([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 0], [1, 1], [1, 1], [0, 1]], labels, ["AP"])
    >>> may_be_best({"ours": ours, "theirs": theirs})["AP"].names
    ('ours',)
    """
    if not isinstance(evaluations, Mapping):
        kind = type(evaluations).__name__
        raise HashbenchError(f"evaluations must be a dict of evaluations by the names of the methods, got a {kind}.")
    names = [*evaluations]
    if len(names) < 2:
        raise HashbenchError(f"there must be two methods or more to compare, got {', '.join(names) or 'none'}.")
    if isinstance(draws_nothing, str) or not {*draws_nothing} <= {*names}:
        raise HashbenchError(f"draws_nothing must be a list of some of {', '.join(names)}, got {draws_nothing!r}.")
    sides = paired([evaluations_of(side, name) for name, side in evaluations.items()], names)
    metrics = [name for name in sides[0][0].scores if all(name in one.scores for side in sides for one in side)]
    if not metrics:
        raise HashbenchError(f"{', '.join(names)} have no metric in common; evaluate all by the same.")
    n_seeds = [
        0 if name in draws_nothing else 1 if are_equal(side) else len(side)
        for name, side in zip(names, sides, strict=True)
    ]
    return ByMetric(
        {
            metric: _of_scores(
                {
                    name: np.stack([one.scores[metric].mean for one in side])
                    for name, side in zip(names, sides, strict=True)
                },
                n_seeds,
                metric,
                None if are_distinct else kinds_of(sides, metric),
            )
            for metric in metrics
        }
    )


def _of_scores(
    scores: Mapping[str, FloatArray], n_seeds: Sequence[int], metric: str, kinds: IntArray | None
) -> MayBeBest:
    names = [*scores]
    is_defined = ~np.isnan(scores[names[0]][0])
    for name, values in scores.items():
        if (np.isnan(values) == is_defined).any():
            raise other_queries(metric, (names[0], name))
    n_queries = int(is_defined.sum())
    kinds = np.arange(len(is_defined))[is_defined] if kinds is None else kinds[is_defined]
    n_distinct = len(np.unique(kinds))
    refuse_few(n_distinct, "distinct query" if n_distinct < n_queries else "query", metric)
    is_over_seeds = max(n_seeds) >= LEAST_SEEDS
    is_tested = [not is_over_seeds or n == 0 or n >= LEAST_SEEDS for n in n_seeds]
    tested = [name for name, has_enough in zip(names, is_tested, strict=True) if has_enough]
    kept = [
        scores[name][:, is_defined] if is_over_seeds and n else scores[name][:, is_defined].mean(axis=0, keepdims=True)
        for name, n, has_enough in zip(names, n_seeds, is_tested, strict=True)
        if has_enough
    ]
    p: dict[str, float] = {}
    if len(tested) > 1:
        of_seeds = [values.mean(axis=1).var(ddof=1) / len(values) if len(values) > 1 else 0.0 for values in kept]
        degrees = np.array([max(len(values) - 1.0, 1.0) for values in kept])
        chance = Chance.over_seeds(np.array(of_seeds), degrees)
        of_queries, interactions, _ = chance_of_queries(kept, kinds)
        chance = chance._replace(
            of_queries=of_queries, interactions=interactions, n_queries=np.full(of_queries.shape, n_distinct)
        )
        means = np.array([values.mean() for values in kept])
        p_values = corrected_p_values(-means if is_error(metric) else means, chance)
        p = dict(zip(tested, p_values.tolist(), strict=True))
    return MayBeBest(
        metric=metric,
        names=tuple(name for name, value in p.items() if value >= ALPHA),
        p=p,
        means={name: float(values[:, is_defined].mean()) for name, values in scores.items()},
        untested={
            name: f"fewer than {LEAST_SEEDS} seeds"
            if len(scores[name]) < LEAST_SEEDS
            else f"its {len(scores[name])} seeds have the same scores and count as one"
            for name in names
            if name not in tested
        },
        basis="queries and seeds" if is_over_seeds else "queries",
        n_queries=n_queries,
        n_distinct=n_distinct if n_distinct < n_queries else None,
    )


class SeedVariances(NamedTuple):
    """The variance of a single seed, and its degrees of freedom: NaN where it is not known.

    Both have the shape of the scores without their last axis.
    """

    variance: FloatArray
    freedom: FloatArray
    is_borrowed: BoolArray  # whether any of the degrees of freedom are those of other lengths


def seed_variances(scores: FloatArray) -> SeedVariances:
    """Estimate the variance over seeds of each method at each code length.

    Parameters
    ----------
    scores : ndarray of shape (n_methods, n_lengths, n_seeds), float64
        Means over the queries of one metric, NaN where there is none; equal places of the last axis are equal seeds.
        Methods that draw nothing at random do not belong here.

    Returns
    -------
    SeedVariances
        ``variance`` and ``freedom`` of shape (n_methods, n_lengths). A single seed has neither.

    Notes
    -----
    An empirical Bayes estimate, with a prior for each method at each length made of its other lengths. With ``s2`` of
    ``d`` degrees of freedom in a cell, ``e = log s2 - digamma(d / 2) + log(d / 2)`` estimates its log variance, with
    variance trigamma(d / 2). What remains of ``e`` less an effect of the method and one of the length, ``r`` with ``f``
    degrees of freedom, says how far variances of a method differ between lengths, beyond chance and with a standard
    error added; as degrees of freedom, ``prior``::

        trigamma(prior / 2) = max(sum(r**2) / f - mean(trigamma(d / 2)), 0)
                              + sqrt(mean(polygamma(3, d / 2) + 2 * trigamma(d / 2)**2) / f)

    One seed may move all lengths of a method together, which makes them look more alike than they are and worth less;
    ``shared`` is the squared correlation ``c**2`` of the seeds of two lengths, less chance, the mean of
    ``(c**2 - 1 / k) / (1 - 1 / k)`` over pairs of lengths with ``k + 1 >= 3`` common seeds, from 0 to 1: that of all
    methods, or the method's own where that is more. With ``m`` other lengths, of ``D`` degrees of freedom together,
    ``w`` the effect of the length (geometric mean 1) and ``others`` the mean of ``s2 / w`` over the other lengths,
    weighted by ``d``::

        worth = D * (1 - shared) / (1 + m * shared)
        borrowed = 1 / ((1 + 1 / m) / prior + 1 / worth)
        variance = max(s2, (borrowed * w * others + d * s2) / (borrowed + d)), with borrowed + d degrees of freedom

    Nothing is borrowed with fewer than eight methods of several lengths or without a cell of three seeds.

    Sources: G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression", 2004;
    `benchmarks/may_be_best.py` simulates the rule.

    Examples
    --------
    >>> found = seed_variances(np.array([[[0.1, 0.2, 0.3]]]))
    >>> found.variance.round(3).tolist(), found.freedom.tolist(), found.is_borrowed.tolist()
    ([[0.01]], [[2.0]], [[False]])
    """
    n_seeds = (~np.isnan(scores)).sum(axis=-1)
    freedom = np.where(n_seeds > 1, n_seeds - 1.0, np.nan)
    centred = scores - np.nansum(scores, axis=-1, keepdims=True) / np.maximum(n_seeds, 1)[..., None]
    own = np.nansum(centred**2, axis=-1) / freedom
    is_used = own > 0
    is_used &= is_used.sum(axis=1, keepdims=True) > 1
    if is_used.any(axis=1).sum() < _FEWEST or not (freedom[is_used] > 1).any():
        return SeedVariances(own, freedom, np.zeros_like(is_used))
    effect, prior = _fit(own, freedom, is_used)
    if not prior:
        return SeedVariances(own, freedom, np.zeros_like(is_used))
    shared = _shared_by_lengths(scores, is_used)[:, None]
    weights = np.where(is_used, freedom, 0.0)  # (n_methods, n_lengths)
    scaled = np.where(is_used, own, 0.0) / effect
    of_others = weights.sum(axis=1, keepdims=True) - weights
    n_others = is_used.sum(axis=1, keepdims=True) - is_used
    has_others = (n_others > 0) & ~np.isnan(freedom) & is_used.any(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        others = ((weights * scaled).sum(axis=1, keepdims=True) - weights * scaled) / of_others
        worth = of_others * (1 - shared) / (1 + n_others * shared)
        borrowed = 1 / ((1 + 1 / n_others) / prior + 1 / worth)
        mixed = (borrowed * others * effect + freedom * own) / (borrowed + freedom)
    is_borrowed = has_others & (borrowed > 0)
    variance = np.where(is_borrowed, np.fmax(own, mixed), own)
    return SeedVariances(variance, freedom + np.where(is_borrowed, borrowed, 0.0), is_borrowed)


def _fit(own: FloatArray, freedom: FloatArray, is_used: BoolArray) -> tuple[FloatArray, float]:
    """Return the effect of each length, with geometric mean 1, and how alike lengths are, as degrees of freedom.

    These are 0 if nothing is left to learn it from.
    """
    with needing("variances over seeds"):
        from scipy.special import digamma, polygamma

    methods, lengths = np.nonzero(is_used)
    half = freedom[is_used] / 2
    logs = np.log(own[is_used]) - digamma(half) + np.log(half)
    n_methods, n_lengths = own.shape
    design = np.zeros((len(logs), n_methods + n_lengths))
    design[np.arange(len(logs)), methods] = design[np.arange(len(logs)), n_methods + lengths] = 1
    effects, _, rank, _ = np.linalg.lstsq(design, logs, rcond=None)
    n_left = len(logs) - int(rank)
    remainders = logs - design @ effects
    chance, of_chance = polygamma(1, half), polygamma(3, half) + 2 * polygamma(1, half) ** 2
    of_length = np.where(is_used.any(axis=0), effects[n_methods:], np.nan)
    effect = np.exp(np.nan_to_num(of_length - np.nanmean(of_length)))
    if not n_left:
        return effect, 0.0
    excess = float((remainders**2).sum()) / n_left - chance.mean()
    return effect, 2 * _trigamma_inverse(max(excess, 0.0) + float(np.sqrt(of_chance.mean() / n_left)))


def _trigamma_inverse(value: float) -> float:
    """Return the argument of trigamma with this value, by Newton's method on its reciprocal, as Smyth has it."""
    from scipy.special import polygamma

    found = 0.5 + 1 / value
    for _ in range(20):  # which converges from below, quadratically
        trigamma = polygamma(1, found)
        found += trigamma * (1 - trigamma / value) / polygamma(2, found)
    return float(found)


def _shared_by_lengths(scores: FloatArray, is_used: BoolArray) -> FloatArray:
    """Return how far one seed moves all lengths of each method: a squared correlation less that of chance, 0 to 1."""
    n_methods, n_lengths, _ = scores.shape
    sums, n_pairs = np.zeros(n_methods), np.zeros(n_methods)
    for first in range(n_lengths):
        for second in range(first + 1, n_lengths):
            pair = scores[:, [first, second]]  # (n_methods, 2, n_seeds)
            is_both = ~np.isnan(pair).any(axis=1, keepdims=True)
            n_both = is_both.sum(axis=2, keepdims=True)
            freedom = n_both[:, 0, 0] - 1.0
            kept = np.where(is_both, pair, 0.0)
            centred = np.where(is_both, kept - kept.sum(axis=2, keepdims=True) / np.maximum(n_both, 1), 0.0)
            squares = (centred**2).sum(axis=2).prod(axis=1)
            is_known = is_used[:, first] & is_used[:, second] & (freedom > 1) & (squares > 0)
            chance = 1 / freedom[is_known]
            correlation = (centred[is_known].prod(axis=1).sum(axis=1)) ** 2 / squares[is_known]
            sums[is_known] += (correlation - chance) / (1 - chance)
            n_pairs[is_known] += 1
    of_all = sums.sum() / max(n_pairs.sum(), 1)
    shared: FloatArray = np.clip(np.maximum(sums / np.maximum(n_pairs, 1), of_all), 0.0, 1.0)
    return shared
