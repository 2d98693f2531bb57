"""Which methods may be the best, and variances over seeds, against the rules written out, and by simulation."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from scipy.special import polygamma, psi

from hashbench import HashbenchError, evaluate, may_be_best
from hashbench.scoring.comparison import ALPHA, moments
from hashbench.scoring.may_be_best import (
    Chance,
    chance_of_queries,
    corrected_p_values,
    p_values_of_pairs,
    seed_variances,
)


def careful(first, second):
    """Return p of "the mean of the first is at most that of the second", with the fewer degrees of freedom."""
    sd = np.sqrt(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second))
    return stats.t.sf((np.mean(first) - np.mean(second)) / sd, min(len(first), len(second)) - 1)


def over_seeds(scores, is_borrowed=None):
    n_seeds = np.array([len(values) for values in scores])
    variances = np.array([np.var(values, ddof=1) / len(values) for values in scores])
    return np.array([np.mean(values) for values in scores]), Chance.over_seeds(variances, n_seeds - 1.0, is_borrowed)


@given(seed=st.integers(0, 1000), n_methods=st.integers(2, 8))
def test_a_method_stays_unless_another_one_beats_it(seed, n_methods):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_methods, 3)) * rng.uniform(0.1, 3, (n_methods, 1)) + rng.normal(size=(n_methods, 1))
    p = corrected_p_values(*over_seeds(scores))
    for i, mine in enumerate(scores):
        beaten = [careful(other, mine) < ALPHA / (n_methods - 1) for j, other in enumerate(scores) if j != i]
        assert (p[i] >= ALPHA) == (not any(beaten))
    assert (p >= ALPHA).any()
    assert p[scores.mean(axis=1).argmax()] >= ALPHA


def test_the_fewer_degrees_of_freedom_count_unless_both_variances_are_borrowed():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=3), 1 + rng.normal(size=10)
    welch = stats.ttest_ind(many, few, equal_var=False, alternative="greater").pvalue
    equal = p_values_of_pairs(*over_seeds([few, many[:3]]))[0, 1]
    assert equal == pytest.approx(stats.ttest_ind(many[:3], few, equal_var=False, alternative="greater").pvalue)
    for is_borrowed, p in ((None, careful(many, few)), ([True, False], careful(many, few)), ([True, True], welch)):
        means, chance = over_seeds([few, many], None if is_borrowed is None else np.array(is_borrowed))
        assert p_values_of_pairs(means, chance)[0, 1] == pytest.approx(p)


def test_over_queries_and_seeds_p_is_that_of_the_interval_of_comparing():
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=60) + rng.normal(0, 0.3, (3, 60)) + rng.normal(0, 0.1, (3, 1)) for _ in range(3)]
    of_queries, interactions, _ = chance_of_queries(scores)
    variances = np.array([values.mean(axis=1).var(ddof=1) / 3 for values in scores])
    borrowed = np.ones(3, dtype=bool)
    chance = Chance(variances, np.full(3, 2.0), borrowed, of_queries, interactions, np.full((3, 3), 60))
    p = p_values_of_pairs(np.array([values.mean() for values in scores]), chance)
    for i, mine in enumerate(scores):
        for j, other in enumerate(scores):
            if i != j:
                of_both = moments(other, mine)
                t_value = of_both.value / np.sqrt(of_both.variance)
                assert p[i, j] == pytest.approx(stats.t.sf(t_value, of_both.freedom))


def test_where_nothing_is_random_the_higher_one_is_better_on_these_queries():
    chance = Chance.over_seeds(np.zeros(3), np.ones(3))
    assert corrected_p_values(np.array([0.1, 0.2, 0.2]), chance).tolist() == [0.0, 1.0, 1.0]


def test_one_that_draws_nothing_has_the_degrees_of_freedom_of_the_other():
    seeds = np.array([0.50, 0.52, 0.57])
    chance = Chance.over_seeds(np.array([seeds.var(ddof=1) / 3, 0.0]), np.array([2.0, np.inf]))
    p = p_values_of_pairs(np.array([seeds.mean(), 0.6]), chance)[0, 1]
    assert p == pytest.approx(stats.ttest_1samp(seeds, 0.6, alternative="less").pvalue)


def test_the_best_is_left_out_in_five_percent_at_most_and_what_is_far_below_always():
    rng, left_out, kept = np.random.default_rng(0), 0, 0
    for _ in range(400):
        scores = rng.normal(size=(9, 5)) - np.array([0, 0, 0, 0, 0, 0, 0, 0, 30])[:, None]
        p = corrected_p_values(*over_seeds(scores))
        left_out += p[0] < ALPHA
        kept += p[8] >= ALPHA
    assert left_out <= 400 * 0.05
    assert kept == 0


@given(st.integers(0, 2**32 - 1))
def test_equal_differences_on_few_queries_are_a_sign_test_without_cancellation(seed):
    level = np.random.default_rng(seed).uniform(size=4)
    of_queries, interactions, n_queries = chance_of_queries([level[None], level[None] + 0.1])
    chance = Chance.over_seeds(np.zeros(2), np.ones(2))
    chance = chance._replace(of_queries=of_queries, interactions=interactions, n_queries=np.full((2, 2), n_queries))
    assert p_values_of_pairs(np.array([0.5, 0.6]), chance)[0, 1] == pytest.approx(0.5**4, rel=0.1)


def test_queries_of_one_kind_count_once():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 1, 15))
    kinds = np.arange(300) % 15
    repeated = chance_of_queries([values[:, kinds] for values in scores], kinds)
    once = chance_of_queries([*scores])
    assert repeated[2] == once[2] == 15
    np.testing.assert_allclose(repeated[0], once[0])


# ---------------------------------------------------------------- from Python


@cache
def scored(noise, seed):
    """Score codes of four classes, 40 queries and 200 items."""
    rng = np.random.default_rng(7)
    labels, centres = rng.integers(4, size=240), rng.normal(size=(4, 16))
    codes = centres[labels] + noise * np.random.default_rng(seed).normal(size=(240, 16)) > 0
    return evaluate(codes[:40], codes[40:], (labels[:40], labels[40:]), ["AP", "PairwiseError"])


def evaluations(noise, seeds):
    return [replace(scored(noise, seed)) for seed in seeds]


def test_evaluations_by_method_give_the_set_for_gains_and_errors():
    methods = {"a": evaluations(0.5, (0, 1, 2)), "b": evaluations(0.5, (3, 4, 5)), "far": evaluations(5, (6, 7, 8))}
    found = may_be_best(methods)
    for metric in ("AP", "PairwiseError"):
        assert found[metric].names == ("a", "b")
        assert found[metric].p["far"] < ALPHA
        assert found[metric].basis == "queries and seeds"
    assert "May be the best of 3 in AP: a, b" in str(found["AP"])


def test_one_seed_beside_several_is_not_tested_and_equal_seeds_are_one():
    several = {"a": evaluations(0.5, (0, 1, 2)), "b": evaluations(0.6, (3, 4, 5))}
    found = may_be_best(several | {"single": evaluations(0.5, (6,)), "forgotten": evaluations(0.5, (7, 7, 7))})["AP"]
    assert [*found.untested] == ["single", "forgotten"]
    assert {*found.p} == {"a", "b"}
    forgotten = "forgotten (its 3 seeds have the same scores and count as one)"
    assert f"Not tested: single (fewer than 3 seeds); {forgotten}." in str(found)
    fixed = may_be_best(several | {"single": evaluations(5, (6,))}, draws_nothing=["single"])["AP"]
    assert fixed.p["single"] < ALPHA
    codes = may_be_best({"a": evaluations(0.5, (0,)), "b": evaluations(5, (1,))})["AP"]
    assert (codes.basis, codes.names) == ("queries", ("a",))


def test_fewer_than_three_seeds_everywhere_are_about_these_codes_and_one_that_is_left_is_not_tested():
    codes = may_be_best({"a": evaluations(0.5, (0, 1)), "b": evaluations(5, (2, 3))})["AP"]
    assert (codes.basis, codes.names) == ("queries", ("a",))
    untestable = may_be_best({"a": evaluations(0.5, (0, 1, 2)), "b": evaluations(0.5, (3,))})["AP"]
    assert (untestable.names, untestable.p, [*untestable.untested]) == ((), {}, ["b"])
    assert "cannot be tested: fewer than two methods have enough seeds" in str(untestable)


def test_a_query_that_is_given_many_times_counts_once():
    queries, labels = np.array([[0, 0], [1, 0]] * 20), np.array([0, 1] * 20)
    database, of_database = np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), np.array([0, 0, 1, 1])
    sides, same = (
        {
            name: evaluate(queries[rows] ^ flip, database, (labels[rows], of_database), ["AP"])
            for flip, name in enumerate("ab")
        }
        for rows in (slice(None), slice(None, None, 2))
    )
    found = may_be_best(sides)["AP"]
    assert found.n_distinct == 2
    assert found.names == ("a", "b")
    assert may_be_best(sides, are_distinct=True)["AP"].names == ("a",)
    with pytest.raises(HashbenchError, match="1 distinct query"):
        may_be_best(same)


def test_what_cannot_be_compared_is_named():
    one, other = (scored(1, seed) for seed in (0, 1))
    for methods, options, words in (
        ({"a": one}, {}, "two methods or more"),
        ({"a": one, "b": other}, {"draws_nothing": ["c"]}, "some of a, b"),
        ({"a": one, "b": []}, {}, "no evaluation of b"),
        ([one, other], {}, "a dict of evaluations by the names of the methods, got a list"),
    ):
        with pytest.raises(HashbenchError, match=words):
            may_be_best(methods, **options)


# ---------------------------------------------------------------- variances over seeds


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
