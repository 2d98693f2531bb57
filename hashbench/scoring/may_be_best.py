"""Which of several methods may be the best: a set that holds it with about 95 % confidence.

A method stays in the set unless another one beats it. That is the question readers of a table have, and it has power
where a list of tests against the method that came out first has none: nothing is owed for having looked.
"""

from __future__ import annotations  # so that help() shows types as they are written

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import HashbenchError, counted, needing
from hashbench.scoring.comparison import ALPHA, evaluations_of, kinds_of, moments, other_queries, paired
from hashbench.scoring.evaluation import ByMetric, Evaluation
from hashbench.scoring.metrics import is_error


class Chance(NamedTuple):
    """What could move the means of k methods; the parts are those of `hashbench.scoring.comparison.Moments`."""

    of_seeds: FloatArray  # (k,) variance of each mean due to its seeds, 0 for a method that draws nothing
    freedom: FloatArray  # (k,) degrees of freedom of it
    of_queries: FloatArray  # (k, k) variance of each difference due to queries, 0 without scores of both
    interactions: FloatArray  # (k, k) what queries and seeds both hold
    n_queries: IntArray  # (k, k) queries with scores of both, 0 without
    is_careful: bool = (
        True  # of different numbers of seeds, the fewer count: Welch's test is too sure of two beside ten
    )

    @classmethod
    def over_seeds(cls, of_seeds: FloatArray, freedom: FloatArray, *, is_careful: bool = True) -> Self:
        """Return that of methods whose scores of single queries are not known."""
        shape = len(of_seeds), len(of_seeds)
        return cls(of_seeds, freedom, np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64), is_careful)


def p_values_of_pairs(values: FloatArray, chance: Chance) -> FloatArray:
    """Return p, (k, k), of the one-sided tests that the mean of the column's method is at most that of the row's.

    By Welch and Satterthwaite. Where nothing is random, p is 0 or 1; where only queries are, and all differ by the
    same, it is that of a sign test.
    """
    with needing("comparing methods"):
        from scipy.special import stdtr

    difference = values[None, :] - values[:, None]
    seeds = chance.of_seeds[None, :] + chance.of_seeds[:, None]
    degrees = np.where(chance.of_seeds > 0, chance.freedom, np.inf)
    squares = (chance.of_seeds**2 / degrees)[None, :] + (chance.of_seeds**2 / degrees)[:, None]
    if chance.is_careful:
        least, most = np.minimum(degrees[None, :], degrees[:, None]), np.maximum(degrees[None, :], degrees[:, None])
        squares = np.where((least < most) & np.isfinite(most), seeds**2 / least, squares)
    squares = squares + chance.of_queries**2 / np.maximum(chance.n_queries - 1, 1)
    both = chance.of_queries + seeds
    variance = np.maximum(both - chance.interactions, np.maximum(chance.of_queries, seeds))
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
    p = p_values_of_pairs(values, chance)
    np.fill_diagonal(p, 1.0)
    return np.minimum((n_methods - 1) * p.min(axis=1, initial=1.0), 1.0) if n_methods > 1 else np.ones(n_methods)


def chance_of_queries(
    scores: Sequence[FloatArray], kinds: IntArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    """Return the variances of differences due to queries, and the interactions of queries and seeds, both (k, k).

    Scores are (n_seeds, n_queries) of each method, all of the same queries; of the ``kinds``, (n_queries,), each counts
    once. The last value is the number of distinct queries, two at least.
    """
    means = np.stack([values.mean(axis=0) for values in scores])
    n_queries = means.shape[1]
    kinds = np.arange(n_queries) if kinds is None else np.unique(kinds, return_inverse=True)[1]
    n_distinct = int(kinds.max()) + 1
    centred = means - means.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(kinds, weights=row, minlength=n_distinct) for row in centred])
    products = sums @ sums.T * (n_distinct / max(n_distinct - 1, 1) / n_queries**2)
    squares = np.diag(products)
    of_queries = np.maximum(squares[:, None] + squares[None, :] - 2 * products, 0.0)
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
        The methods that may be the best: each best of those compared is among them with about 95 % confidence.
    p : dict of str to float
        By method, the p value, corrected for the number of methods, of the hypothesis that no other one is better.
    means : dict of str to float
        By method, the mean over queries and seeds.
    untested : tuple of str
        Methods that could not be tested: those of one seed beside others of several.
    basis : str
        What the confidence is about, as in `Difference`: ``queries and seeds``, or ``queries`` (of these codes).
    n_queries : int
        Queries that all methods are scored on.

    Examples
    --------
    >>> p, means = {"ours": 1.0, "theirs": 0.03}, {"ours": 0.7, "theirs": 0.6}
    >>> found = MayBeBest(metric="AP", names=("ours",), p=p, means=means, untested=(), basis="queries", n_queries=200)
    >>> print(found)
    May be the best of 2 in AP: ours (each best is named with about 95 % confidence, for these codes, over 200 queries).
    """

    metric: str
    names: tuple[str, ...]
    p: dict[str, float]
    means: dict[str, float]
    untested: tuple[str, ...]
    basis: str
    n_queries: int

    def __str__(self) -> str:
        about = "for these codes, over" if self.basis == "queries" else "over seeds and"
        queries = counted(self.n_queries, "query", "queries")
        of_all = f"May be the best of {len(self.p)} in {self.metric}: {', '.join(self.names)}"
        sentence = f"{of_all} (each best is named with about 95 % confidence, {about} {queries})."
        return sentence + (f" Not tested, as of one seed: {', '.join(self.untested)}." if self.untested else "")


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
    The set holds each truly best method with probability of about 95 %. What it leaves out is shown not to be the best;
    what it holds is not shown to be equal. See docs/explanation/comparing.md.

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
    names = [*evaluations]
    if len(names) < 2:
        raise HashbenchError(f"there must be two methods or more to compare, got {', '.join(names) or 'none'}.")
    if isinstance(draws_nothing, str) or not {*draws_nothing} <= {*names}:
        raise HashbenchError(f"draws_nothing must be a list of some of {', '.join(names)}, got {draws_nothing!r}.")
    sides = paired([evaluations_of(side, name) for name, side in evaluations.items()], names)
    metrics = [name for name in sides[0][0].scores if all(name in one.scores for side in sides for one in side)]
    if not metrics:
        raise HashbenchError(f"{', '.join(names)} have no metric in common; evaluate all by the same.")
    scores = {metric: [np.stack([one.scores[metric].mean for one in side]) for side in sides] for metric in metrics}
    return ByMetric(
        {
            metric: _of_scores(of_all, None if are_distinct else kinds_of(sides, metric), metric, names, draws_nothing)
            for metric, of_all in scores.items()
        }
    )


def _of_scores(
    scores: Sequence[FloatArray],
    kinds: IntArray | None,
    metric: str,
    names: Sequence[str],
    draws_nothing: Sequence[str],
) -> MayBeBest:
    is_defined = ~np.isnan(scores[0][0])
    for name, values in zip(names, scores, strict=True):
        if any((np.isnan(row) == is_defined).any() for row in values):
            raise other_queries(metric, (names[0], name))
    if is_defined.sum() < 2:
        raise HashbenchError(
            f"{metric} is defined for {counted(int(is_defined.sum()), 'query', 'queries')}; choosing needs two or more."
        )
    kept = {name: _distinct(values[:, is_defined]) for name, values in zip(names, scores, strict=True)}
    for name in draws_nothing:
        kept[name] = kept[name].mean(axis=0, keepdims=True)
    is_over_seeds = any(len(values) > 1 for values in kept.values())
    tested = [name for name in names if not is_over_seeds or name in draws_nothing or len(kept[name]) > 1]
    chosen = [kept[name] for name in tested]
    n_seeds = np.array([len(values) for values in chosen])
    variances = np.array([values.mean(axis=1).var(ddof=1) / len(values) if len(values) > 1 else 0 for values in chosen])
    means = np.array([values.mean() for values in chosen])
    of_queries, interactions, n_distinct = chance_of_queries(chosen, None if kinds is None else kinds[is_defined])
    n_queries = np.full(of_queries.shape, n_distinct)
    chance = Chance(variances, np.maximum(n_seeds - 1.0, 1.0), of_queries, interactions, n_queries)
    p = corrected_p_values(-means if is_error(metric) else means, chance)
    return MayBeBest(
        metric=metric,
        names=tuple(name for name, value in zip(tested, p, strict=True) if value >= ALPHA),
        p=dict(zip(tested, p.tolist(), strict=True)),
        means={name: float(values.mean()) for name, values in kept.items()},
        untested=tuple(name for name in names if name not in tested),
        basis="queries and seeds" if is_over_seeds else "queries",
        n_queries=int(is_defined.sum()),
    )


def _distinct(scores: FloatArray) -> FloatArray:
    """Return the scores of each seed, once if all are equal: a seed that was forgotten, or a method without chance."""
    return scores[:1] if (scores == scores[0]).all() else scores
