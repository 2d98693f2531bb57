"""Intervals of shares of pairs, which depend on each other, and of means over queries.

Two pairs may share an item, or be of the same classes.
"""

from typing import NamedTuple

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.affinity import Affinity, Hierarchy, SameLabel
from hashbench.errors import counted, needing

CONFIDENCE = 0.95
_MOST_GROUPS = 100
_MOST_READ = 25  # of a database that is not the queries, each of which is counted by itself
FEW_CLASSES = 20  # fewer say little about other classes
_ALL = slice(None)
_ROUNDING = 1e-12  # of scores


class Units(NamedTuple):
    """What varies from sample to sample, classes or items, in groups of about equal size, drawn with a fixed seed."""

    of_query: IntArray  # (n_queries,): the group of each query
    of_item: IntArray | None  # (n_database,): that of each item; None of queries that are the items, or items that stay
    n_groups: int
    n_independent: int  # groups of the role that has the fewest
    are_classes: bool
    words: str  # such as 48 classes

    @classmethod
    def of(cls, relevance: Affinity, *, reads_items: bool = True) -> "Units":
        """Take classes if there are enough, which are superclasses if these define relevance, or else items."""
        reads_items &= not relevance.excludes_self  # whose items are the queries
        plain = relevance.part(_ALL, _ALL if reads_items else slice(0, 1)).plain
        n_queries, n_items = relevance.n_queries, relevance.n_database
        most = _MOST_READ if reads_items else _MOST_GROUPS
        if isinstance(plain, SameLabel | Hierarchy):
            kind = "coarse" if isinstance(plain, Hierarchy) else "labels"
            roles = ("query", "database") if reads_items else ("query",)
            classes, number = np.unique(
                np.concatenate([getattr(plain, f"{role}_{kind}") for role in roles]), return_inverse=True
            )
            if len(classes) >= FEW_CLASSES:
                groups, n_groups = groups_of(len(classes), most)
                of_query, of_item = np.split(groups[number], [n_queries])
                words = counted(len(classes), "class", "classes")
                words += "" if reads_items or relevance.excludes_self else " of queries"
                return cls(of_query, of_item if reads_items else None, n_groups, n_groups, True, words)
        of_query, n_groups = groups_of(n_queries)
        if relevance.excludes_self:
            return cls(of_query, None, n_groups, n_groups, False, counted(n_queries, "item"))
        words = counted(n_queries, "query", "queries")
        if not reads_items:
            return cls(of_query, None, n_groups, n_groups, False, words)
        of_item, n_more = groups_of(n_items, most)
        words = f"{words} and {counted(n_items, 'item')}"
        return cls(of_query, n_groups + of_item, n_groups + n_more, min(n_groups, n_more), False, words)


def groups_of(n_units: int, most: int = _MOST_GROUPS) -> tuple[IntArray, int]:
    """Put units into groups at random; return the group of each, and the number of groups."""
    n_groups = min(n_units, most)
    return np.random.default_rng(0).permutation(n_units) % n_groups, n_groups


def variance_of(
    hits: IntArray, pairs: IntArray, hits_by_group: IntArray, pairs_by_group: IntArray, n_independent: int
) -> FloatArray:
    """Return the variance of hits / pairs by the jackknife, linear: each group in turn is left out.

    Counts by group, (n_groups, n), are those of all pairs that touch the group.
    """
    residual = hits_by_group - hits / pairs * pairs_by_group
    residual -= residual.mean(axis=0)  # a pair touches one group or two
    return np.asarray(n_independent / (n_independent - 1) * (residual**2).sum(axis=0) / pairs.astype(float) ** 2)


def intervals(
    hits: IntArray, pairs: IntArray, hits_by_group: IntArray, pairs_by_group: IntArray, n_independent: int
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the 95 % interval of hits / pairs by radius, from 0 on; NaN without pairs.

    It is the binomial one of as many independent pairs as have the variance (Korn and Graubard, 1998).
    Where all or no pairs are hits, pairs count as much as at the next radius with a variance.
    """
    if n_independent < 2:
        return np.where(pairs > 0, 0.0, np.nan), np.where(pairs > 0, 1.0, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = hits / pairs
        variance = variance_of(hits, pairs, hits_by_group, pairs_by_group, n_independent)
        pairs_per_independent = np.maximum(variance * pairs / (share * (1 - share)), 1)
    (known,) = np.nonzero((hits > 0) & (hits < pairs))
    if known.size:
        nearest = np.searchsorted(known, np.arange(len(pairs))).clip(max=known.size - 1)
        pairs_per_independent = pairs_per_independent[known[nearest]]
    else:
        pairs_per_independent = np.maximum(pairs / n_independent, 1)
    return _binomial_ends(share, pairs / pairs_per_independent, n_independent)


class Moments(NamedTuple):
    """Scores of queries like others: their number and mean, and the variance of this mean."""

    n_queries: int
    mean: float
    variance: float

    @classmethod
    def of(cls, values: FloatArray, weights: IntArray | None = None) -> "Moments":
        """Compute those of values that are not NaN; ``weights`` are the queries that each stands for."""
        times = np.ones(len(values)) if weights is None else weights
        is_defined = ~np.isnan(values) & (times > 0)
        values, times = values[is_defined], times[is_defined]
        n_queries = int(times.sum())
        if n_queries < 2:
            return cls(n_queries, np.nan, np.nan)
        mean = float(times @ values / n_queries)
        if float(np.ptp(values)) < _ROUNDING:
            return cls(n_queries, mean, 0.0)
        return cls(n_queries, mean, float(times @ (values - mean) ** 2) / (n_queries - 1) / n_queries)

    @property
    def n_draws(self) -> float:
        """How many independent draws of 0 or 1 have this variance; as many as there are queries if these are equal."""
        return self.mean * (1 - self.mean) / self.variance if self.variance else float(self.n_queries)


def mean_interval(scores: Moments, *, is_share: bool = True, n_draws: float | None = None) -> tuple[float, float]:
    """Return the 95 % interval of the mean of a score over queries like these; NaN of fewer than two.

    Shares, scores from 0 to 1, get the binomial interval of as many draws of 0 or 1 as have the variance, unless these
    are given; others, which are not negative, get that of Student's t.
    """
    n_queries, mean, variance = scores
    if n_queries < 2:
        return np.nan, np.nan
    if not is_share:
        with needing("the interval of a mean"):
            from scipy.stats import t
        half = float(-t.ppf((1 - CONFIDENCE) / 2, n_queries - 1)) * variance**0.5
        return max(mean - half, 0.0), mean + half
    share = np.clip([mean], 0, 1).round(12)  # sums of equal scores are not quite 0 or 1
    low, high = _binomial_ends(share, np.array([n_draws or scores.n_draws]), n_queries)
    return float(low[0]), float(high[0])


def _binomial_ends(share: FloatArray, n_draws: FloatArray, n_independent: int) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the intervals of shares of independent draws (Clopper and Pearson); NaN of NaN.

    A variance that is known from few independent units makes them wider, as in Student's t (Korn and Graubard, 1998).
    """
    with needing("the interval of a share"):
        from scipy.stats import beta, norm, t

    tail = (1 - CONFIDENCE) / 2
    n_draws = n_draws * (norm.ppf(tail) / t.ppf(tail, n_independent - 1)) ** 2
    low, high = np.where(share >= 0, 0.0, np.nan), np.where(share >= 0, 1.0, np.nan)
    n_hits, some, more = n_draws * share, share > 0, share < 1
    low[some] = beta.ppf(tail, n_hits[some], (n_draws - n_hits)[some] + 1)
    high[more] = beta.ppf(1 - tail, n_hits[more] + 1, (n_draws - n_hits)[more])
    return low, high
