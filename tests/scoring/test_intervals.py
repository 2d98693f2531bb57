"""Intervals over dependent pairs, against leaving classes out, SciPy, and how often they hold in simulations."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

import hashbench
from hashbench.affinity import Explicit, Hierarchy, SameLabel
from hashbench.scoring.ignored import leave_out
from hashbench.scoring.intervals import Moments, Units, intervals, mean_interval, variance_of

N_BITS = 16
SHARES = ("precision", "recall", "fpr")


def draw(rng, n_classes, n_copies):
    """Draw copies of items whose bits are skewed and depend on each other, so that a few items match many others."""
    load, classes = rng.normal(size=(n_classes, 1)), np.repeat(np.arange(n_classes), n_copies)
    items = rng.normal(size=(n_classes, N_BITS)) + load * np.linspace(0.3, 2.5, N_BITS) + np.linspace(-1, 1, N_BITS) > 0
    return items[classes] ^ (rng.random((len(classes), N_BITS)) < 0.05), classes


def shares_of(codes, classes):
    found = hashbench.Problem.of_codes(codes, codes, (classes, classes), exclude_self=True).thresholds()
    return np.array([[getattr(match, name) for match in found.matches[:8]] for name in SHARES])


def test_pairs_of_a_group_have_any_levels_and_queries_may_be_alike():
    rng = np.random.default_rng(3)
    codes, database = rng.random((6, N_BITS)) > 0.5, rng.random((40, N_BITS)) > 0.5
    levels = np.where(np.arange(40) < 2, rng.integers(-1, 8, (6, 40)), rng.integers(0, 2, (6, 40)))  # 2 to 7 are rare
    query, levels = np.repeat(codes, 3, axis=0), np.repeat(levels, 3, axis=0)
    rule = Explicit(levels)
    found, units = hashbench.Problem.of_codes(query, database, rule).thresholds(), Units.of(rule)
    distances = (query[:, None] != database).sum(axis=2)
    for group in range(units.n_groups):
        is_touched = (units.of_query[:, None] == group) | (units.of_item == group)
        for is_relevant, counts in enumerate(found.by_group[group]):
            is_counted = is_touched & (levels >= 0) & ((levels > 0) == is_relevant)
            assert counts.tolist() == np.bincount(distances[is_counted], minlength=N_BITS + 1).tolist()


@pytest.mark.parametrize(("n_classes", "split"), [(8, False), (40, False), (40, True)])
def test_pairs_of_a_group_are_those_that_touch_it(n_classes, split):
    codes, classes = draw(np.random.default_rng(0), n_classes, 3)
    rows = columns = np.arange(len(codes))
    if split:
        rows, columns = rows[rows % 3 == 0], rows[rows % 3 > 0]
    rule = leave_out(SameLabel(classes[rows], classes[columns]), exclude_self=not split)
    found, units = hashbench.Problem.of_codes(codes[rows], codes[columns], rule).thresholds(), Units.of(rule)
    assert units.are_classes == (n_classes == 40)
    of_item = units.of_query if units.of_item is None else units.of_item
    is_pair = np.ones((len(rows), len(columns)), dtype=bool) if split else np.triu(rows[:, None] != columns, 1)
    distances = (codes[rows][:, None] != codes[columns]).sum(axis=2)
    for group in range(units.n_groups):
        touches = is_pair & ((units.of_query[:, None] == group) | (of_item == group))
        for is_relevant, counts in enumerate(found.by_group[group]):
            chosen = touches & ((classes[rows][:, None] == classes[columns]) == is_relevant)
            np.testing.assert_array_equal(counts, np.bincount(distances[chosen], minlength=N_BITS + 1))


def test_the_variance_is_that_of_leaving_each_class_out():
    codes, classes = draw(np.random.default_rng(1), 50, 4)
    without = np.array([shares_of(codes[classes != left_out], classes[classes != left_out]) for left_out in range(50)])
    expected = 49 / 50 * ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    found = hashbench.Problem.of_codes(codes, codes, (classes, classes), exclude_self=True).thresholds()
    false, true = np.cumsum(found.by_group, axis=2).transpose(1, 0, 2)
    n_false, n_true = np.cumsum(found.n_false), np.cumsum(found.n_true)
    counts = [
        (n_true, n_true + n_false, true, true + false),
        (n_true, n_true[-1:].repeat(17), true, true[:, -1:]),
        (n_false, n_false[-1:].repeat(17), false, false[:, -1:]),
    ]
    variance = np.array([variance_of(*parts, found.n_independent)[:8] for parts in counts])
    np.testing.assert_allclose(variance[:, 1:] ** 0.5, expected[:, 1:] ** 0.5, rtol=0.12)


def test_the_interval_is_scipys_exact_one_of_as_many_independent_pairs_as_have_the_variance():
    n_groups, hits = 50, np.array([2])
    by_group = np.zeros((n_groups, 1), dtype=int)
    by_group[:2] = 1
    pairs, pairs_by_group = np.array([1000]), np.full((n_groups, 1), 20)
    variance = variance_of(hits, pairs, by_group, pairs_by_group, n_groups)[0]
    n_effective = 0.002 * 0.998 / max(variance, 0.002 * 0.998 / 1000)
    n_effective *= (norm.ppf(0.975) / t.ppf(0.975, n_groups - 1)) ** 2
    low, high = intervals(hits, pairs, by_group, pairs_by_group, n_groups)
    around = [binomtest(2 * int(n_effective) // 1000 + more, int(n_effective)).proportion_ci() for more in (0, 1)]
    assert around[0].low <= low[0] <= around[1].low
    assert around[0].high <= high[0] <= around[1].high


def test_without_a_hit_pairs_count_as_much_as_at_the_next_radius_with_one():
    hits, pairs, n_groups = np.array([0, 0, 30, 1000]), np.full(4, 1000), 25
    by_group = np.zeros((n_groups, 4), dtype=int)
    by_group[:, 3], by_group[:2, 2] = 80, 30  # all 30 are of two classes
    low, high = intervals(hits, pairs, by_group, np.full((n_groups, 4), 80), n_groups)
    assert high[0] == high[1] > 10 * binomtest(0, 1000).proportion_ci().high
    assert high[1] < high[2]
    assert (low[0], high[3]) == (0, 1)
    n_effective = n_groups * (norm.ppf(0.975) / t.ppf(0.975, n_groups - 1)) ** 2
    (upper,) = intervals(hits[:1], pairs[:1], by_group[:, :1], np.full((n_groups, 1), 80), n_groups)[1]
    assert binomtest(0, 22).proportion_ci().high > upper > binomtest(0, 23).proportion_ci().high  # a pair per class
    assert 22 < n_effective < 23


def test_one_query_shows_nothing_of_others_and_no_pairs_nothing_at_all():
    codes, _ = draw(np.random.default_rng(0), 9, 1)
    found = hashbench.Problem.of_codes(codes[:1], codes, np.eye(1, 9, dtype=int)).thresholds()
    assert found.at(0)[-4:] == (0, 1, 0, 1)
    assert np.isnan(
        hashbench.Problem.of_codes(codes[:1], codes, np.zeros((1, 9), dtype=int)).thresholds().at(0).recall_low
    )


def test_superclasses_are_resampled_where_they_define_relevance():
    classes = np.repeat(np.arange(60), 2)
    assert Units.of(SameLabel(classes, classes)).words == "60 classes"
    assert Units.of(Hierarchy(classes, classes, classes // 2, classes // 2)).words == "30 classes"
    assert Units.of(Hierarchy(classes, classes, classes // 4, classes // 4)).words == "120 queries and 120 items"


DRAWN = {  # scores of queries, as a generator and a number of them give
    "nearly all found": lambda draw, n: np.where(draw.random(n) < 0.05, draw.random(n).round(1), 1.0),
    "few found": lambda draw, n: draw.beta(0.6, 1.4, n),
    "found or not": lambda draw, n: (draw.random(n) < 0.95).astype(float),
    "mean levels": lambda draw, n: draw.gamma(4.0, 0.5, n),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_the_interval_of_a_mean_holds_where_students_fails(kind):
    draw = np.random.default_rng(0)
    true, held = DRAWN[kind](draw, 1_000_000).mean(), []
    for _ in range(600):
        low, high = mean_interval(Moments.of(DRAWN[kind](draw, 100)), is_share=kind != "mean levels")
        held.append(low <= true <= high)
    assert 0.93 <= np.mean(held) <= 0.995


def test_a_mean_of_equal_scores_is_that_of_as_many_draws_as_queries():
    for hits in (0, 40):
        exact = binomtest(hits, 40).proportion_ci(0.95)
        for rounding in (0, 1e-16, -1e-16):  # of scores
            low, high = mean_interval(Moments.of(np.full(40, hits / 40) + rounding))
            assert low <= exact.low < exact.high <= high
            assert high - low < 0.1
    assert np.isnan(mean_interval(Moments.of(np.array([0.5, np.nan])))).all()


def test_alike_queries_count_as_often_as_they_occur():
    values, times = np.array([0.2, 0.9, 0.5, np.nan]), np.array([3, 5, 0, 2])
    assert Moments.of(values, times) == pytest.approx(Moments.of(np.repeat(values, times)))
