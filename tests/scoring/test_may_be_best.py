"""Which methods may be the best, against the rule written out pair by pair, and by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hashbench import HashbenchError, evaluate, may_be_best
from hashbench.scoring.comparison import ALPHA
from hashbench.scoring.may_be_best import Chance, chance_of_queries, corrected_p_values, p_values_of_pairs


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
                d = other.mean(axis=0) - mine.mean(axis=0)
                v_query, v_seed, both, squares = d.var(ddof=1) / 60, 0.0, 0.0, 0.0
                for x in (mine, other):
                    residual = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
                    both += (residual**2).sum() / (2 * 59 * 3 * 60)
                    v_seed += x.mean(axis=1).var(ddof=1) / 3
                    squares += (x.mean(axis=1).var(ddof=1) / 3) ** 2 / 2
                variance = max(v_query + v_seed - both, v_query, v_seed)
                freedom = (v_query + v_seed) ** 2 / (v_query**2 / 59 + squares)
                assert p[i, j] == pytest.approx(stats.t.sf(d.mean() / np.sqrt(variance), freedom))


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


@pytest.mark.parametrize("seed", range(100))
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


def evaluations(noise, seeds, n_queries=40):
    rng = np.random.default_rng(7)
    labels = rng.integers(4, size=n_queries + 200)
    centres = rng.normal(size=(4, 16))
    made = []
    for seed in seeds:
        codes = centres[labels] + noise * np.random.default_rng(seed).normal(size=(len(labels), 16)) > 0
        parts = codes[:n_queries], codes[n_queries:], (labels[:n_queries], labels[n_queries:])
        made.append(evaluate(*parts, ["AP", "PairwiseError"]))
    return made


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


FLIPS = ("a", 0), ("b", 1)


def test_a_query_that_is_given_many_times_counts_once():
    queries, labels = np.array([[0, 0], [1, 0]] * 20), np.array([0, 1] * 20)
    database, of_database = np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), np.array([0, 0, 1, 1])
    sides = {
        name: evaluate(queries ^ flip, database, (labels, of_database), ["AP"]) for name, flip in (("a", 0), ("b", 1))
    }
    found = may_be_best(sides)["AP"]
    assert found.n_distinct == 2
    assert found.names == ("a", "b")
    assert may_be_best(sides, are_distinct=True)["AP"].names == ("a",)
    same = {
        name: evaluate(queries[::2] ^ flip, database, (labels[::2], of_database), ["AP"])
        for name, flip in (("a", 0), ("b", 1))
    }
    with pytest.raises(HashbenchError, match="1 distinct query"):
        may_be_best(same)


@pytest.mark.parametrize(
    ("methods", "options", "words"),
    [
        ({"a": (0,)}, {}, "two methods or more"),
        ({"a": (0,), "b": (1,)}, {"draws_nothing": ["c"]}, "some of a, b"),
        ({"a": (0,), "b": ()}, {}, "no evaluation of b"),
    ],
)
def test_what_cannot_be_compared_is_named(methods, options, words):
    with pytest.raises(HashbenchError, match=words):
        may_be_best({name: evaluations(1, seeds) for name, seeds in methods.items()}, **options)


def test_evaluations_without_names_are_refused():
    with pytest.raises(HashbenchError, match="a dict of evaluations by the names of the methods, got a list"):
        may_be_best(evaluations(1, (0, 1)))
