"""Intervals of shares of pairs, which depend on each other: two pairs may share an item, or be of the same classes."""

from typing import NamedTuple

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.affinity import Affinity, Hierarchy, SameLabel
from hashbench.errors import counted, needing

CONFIDENCE = 0.95
_MOST_GROUPS = 100
_MOST_READ = 25  # of a database that is not the queries, each of which is counted by itself
_FEW_CLASSES = 20  # fewer say little about other classes
_ALL = slice(None)


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
            if len(classes) >= _FEW_CLASSES:
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
    with needing("the interval of a share"):
        from scipy.stats import beta, norm, t

    low, high = np.where(pairs > 0, 0.0, np.nan), np.where(pairs > 0, 1.0, np.nan)
    if n_independent < 2:
        return low, high
    tail = (1 - CONFIDENCE) / 2
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
    n_effective = pairs / pairs_per_independent * (norm.ppf(tail) / t.ppf(tail, n_independent - 1)) ** 2
    some, more = (hits > 0) & (pairs > 0), (hits < pairs) & (pairs > 0)
    n_hits = n_effective * np.nan_to_num(share)
    low[some] = beta.ppf(tail, n_hits[some], (n_effective - n_hits)[some] + 1)
    high[more] = beta.ppf(1 - tail, n_hits[more] + 1, (n_effective - n_hits)[more])
    return low, high
