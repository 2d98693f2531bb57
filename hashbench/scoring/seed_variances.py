"""Variances over seeds: each method's own, and what its other code lengths say of it.

Three seeds leave two degrees of freedom, which are few. The variance of a method is alike at its code lengths, so each
length borrows from the others, as far as the data of all methods allow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hashbench._typing import BoolArray, FloatArray
from hashbench.errors import needing

_FEWEST = 8  # methods of several lengths, from which to learn how alike their variances are


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
    variance trigamma(d / 2). What remains of ``e`` less an effect of the method and one of the length, beyond chance
    and with a standard error added, is how far variances of a method differ between lengths; as degrees of freedom,
    ``prior``. One seed may move all lengths of a method together, which makes them look more alike than they are and
    worth less; ``shared`` is the squared correlation of seeds at two lengths, less chance: that of all methods, or
    the method's own where that is more. No variance is less than that of the length's own seeds. Nothing is borrowed
    with fewer than eight methods of several lengths or without a cell of three seeds.

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
