"""Variances over seeds, against the rule written out cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import polygamma, psi

from hashbench.scoring.may_be_best import seed_variances


def draw(seed, shape, missing=0.0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=shape) * np.exp(rng.normal(size=(shape[0], 1, 1)))
    scores[rng.random(shape) < missing] = np.nan
    scores[rng.random(shape[:2]) < 0.05] = 0.5  # all seeds alike at a length
    return scores


def written_out(scores):
    """Return variances and degrees of freedom by loops over cells; None where nothing is borrowed."""
    cells = {}
    for method, lengths in enumerate(scores):
        of_method = {}
        for length, values in enumerate(lengths):
            known = values[~np.isnan(values)]
            if len(known) > 1 and np.ptp(known) > 0:
                of_method[length] = (len(known) - 1, np.var(known, ddof=1))
        if len(of_method) > 1:
            cells |= {(method, length): cell for length, cell in of_method.items()}
    methods, lengths = sorted({m for m, _ in cells}), sorted({b for _, b in cells})
    if len(methods) < 8 or max(d for d, _ in cells.values()) < 2:
        return None
    design = np.array([[m == i for i in methods] + [b == j for j in lengths] for m, b in cells], dtype=float)
    logs = np.array([np.log(s2) - psi(d / 2) + np.log(d / 2) for d, s2 in cells.values()])
    effects = np.linalg.pinv(design) @ logs
    n_left = len(cells) - np.linalg.matrix_rank(design)
    if n_left == 0:
        return None
    chance = np.mean([polygamma(1, d / 2) for d, _ in cells.values()])
    of_chance = np.mean([polygamma(3, d / 2) + 2 * polygamma(1, d / 2) ** 2 for d, _ in cells.values()])
    excess = np.sum((logs - design @ effects) ** 2) / n_left - chance
    wanted = max(excess, 0) + np.sqrt(of_chance / n_left)
    prior = 2 * brentq(lambda half: polygamma(1, half) - wanted, 1e-6, 1e6, xtol=1e-13)
    of_length = effects[len(methods) :]
    effect = dict(zip(lengths, np.exp(of_length - of_length.mean()), strict=True))
    less_chance = {m: [] for m in methods}
    for m, b in cells:
        for other in (other for i, other in cells if i == m and other > b):
            both = ~np.isnan(scores[m, b]) & ~np.isnan(scores[m, other])
            if both.sum() > 2 and min(np.ptp(scores[m, b][both]), np.ptp(scores[m, other][both])) > 0:
                r = np.corrcoef(scores[m, b][both], scores[m, other][both])[0, 1]
                chance = 1 / (both.sum() - 1)
                less_chance[m].append((r**2 - chance) / (1 - chance))
    of_all = np.mean(np.concatenate([*less_chance.values()])) if any(less_chance.values()) else 0
    found = {}
    for (m, b), (d, s2) in cells.items():
        others = [(*cells[i, other], effect[other]) for i, other in cells if i == m and other != b]
        shared = np.clip(max(np.mean(less_chance[m]) if less_chance[m] else 0, of_all), 0, 1)
        worth = sum(d_o for d_o, _, _ in others) * (1 - shared) / (1 + len(others) * shared)
        borrowed = 1 / ((1 + 1 / len(others)) / prior + 1 / worth) if worth > 0 else 0
        of_others = sum(d_o * s2_o / w for d_o, s2_o, w in others) / sum(d_o for d_o, _, _ in others)
        mixed = (borrowed * of_others * effect[b] + d * s2) / (borrowed + d)
        found[m, b] = max(s2, mixed) if borrowed else s2, d + borrowed
    return found


@given(seed=st.integers(0, 1000), n_methods=st.integers(8, 15), n_lengths=st.integers(2, 5), n_seeds=st.integers(2, 4))
@pytest.mark.filterwarnings("error")
def test_variances_are_those_of_the_rule_written_out(seed, n_methods, n_lengths, n_seeds):
    scores = draw(seed, (n_methods, n_lengths, n_seeds), missing=0.1)
    found, expected = seed_variances(scores), written_out(scores)
    if expected is None:
        assert not found.is_borrowed.any()
    for (method, length), numbers in (expected or {}).items():
        assert (found.variance[method, length], found.freedom[method, length]) == pytest.approx(numbers, rel=1e-6)
        own = (~np.isnan(scores[method, length])).sum() - 1
        assert found.is_borrowed[method, length] == (found.freedom[method, length] > own)


def test_without_enough_methods_or_lengths_each_cell_has_the_variance_of_its_own_seeds():
    for shape in ((7, 4, 3), (12, 1, 3), (12, 4, 2)):
        scores = draw(3, shape)
        found = seed_variances(scores)
        assert not found.is_borrowed.any()
        np.testing.assert_allclose(found.variance, scores.var(axis=2, ddof=1))
        assert (found.freedom == shape[2] - 1).all()


def test_a_single_seed_has_no_variance_and_more_than_its_own_is_never_taken_away():
    scores = draw(1, (12, 5, 3))
    scores[0, 0, 1:] = np.nan
    found = seed_variances(scores)
    assert np.isnan([found.variance[0, 0], found.freedom[0, 0]]).all()
    own = np.nanvar(scores[1:], axis=2, ddof=1)
    assert (found.variance[1:] >= own * (1 - 1e-12)).all()
    assert (found.freedom[1:] >= 2).all()
    assert (found.freedom[1:] > 2.5).any()


def test_lengths_that_one_seed_moves_together_are_worth_less():
    rng = np.random.default_rng(0)
    of_seed = rng.normal(size=(20, 1, 3))
    of_length = rng.normal(size=(20, 4, 3))
    together, apart = seed_variances(of_seed + 0.1 * of_length), seed_variances(of_length)
    assert together.freedom.mean() < apart.freedom.mean() - 1
