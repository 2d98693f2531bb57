import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hashbench.reports.significance import all_pairs_tests, holm, paired_tests


def holm_in_words(p_values):
    """Step down from the smallest p value, one test fewer each time; never below an earlier one."""
    ranked = sorted(range(len(p_values)), key=lambda position: p_values[position])
    corrected, floor = [0.0] * len(p_values), 0.0
    for rank, position in enumerate(ranked):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[position]))
        corrected[position] = floor
    return corrected


def scipy_p_value(difference):
    return stats.permutation_test(
        (difference,), np.mean, permutation_type="samples", vectorized=True, rng=np.random.default_rng(0)
    ).pvalue


def all_pairs_in_words(scores):
    """Take every sign flip of all queries, and the pairs one by one, each with those that differ less."""
    pairs = list(itertools.combinations(range(len(scores)), 2))
    centred = scores - scores.mean(axis=0)

    def statistics(values):
        return {
            (i, j): abs(np.sum(values[i] - values[j])) / np.sqrt(np.sum((scores[i] - scores[j]) ** 2)) for i, j in pairs
        }

    observed = statistics(scores)
    flipped = [statistics(centred * signs) for signs in itertools.product((1, -1), repeat=scores.shape[1])]
    p_values, floor = {}, 0.0
    for pair in sorted(pairs, key=observed.get, reverse=True):
        smaller = [other for other in pairs if observed[other] <= observed[pair]]
        n_as_far = sum(max(flip[other] for other in smaller) >= observed[pair] - 1e-12 for flip in flipped)
        floor = p_values[pair] = max(floor, n_as_far / len(flipped))
    return p_values


def test_holm_returns_the_numbers_computed_by_hand():
    # sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, which may not fall below its predecessor's 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.05, 0.3, 0.9, 1.0]), max_size=12))
def test_holm_steps_down_from_the_smallest(p_values):
    assert holm(p_values).tolist() == pytest.approx(holm_in_words(p_values))


def test_p_values_of_many_tests_are_those_of_scipy_for_each():
    rng = np.random.default_rng(1)
    differences = [rng.normal(0.02, 0.2, length) for length in (40, 25, 40, 9, 25)]
    differences += [rng.normal(0.03, 0.2, 40) for _ in range(20)]
    tests = paired_tests(differences)
    expected = [scipy_p_value(difference) for difference in differences]
    assert [test.p_value for test in tests] == pytest.approx(expected, abs=4 * np.sqrt(2 * 0.25 / 9999))  # both draw
    assert tests[3].p_value == expected[3]  # of 9 queries all sign flips
    assert [test.p_holm for test in tests] == pytest.approx(holm_in_words([test.p_value for test in tests]))
    assert len(set(expected)) > 10


def test_pairs_are_compared_with_the_largest_of_those_that_differ_less():
    scores = np.random.default_rng(3).normal([[0.4], [0.3], [0.0], [0.0]], 0.2, (4, 10))
    expected = all_pairs_in_words(scores)
    p_values = all_pairs_tests(scores)
    assert {pair: p_values[pair] for pair in expected} == pytest.approx(expected)
    assert p_values == pytest.approx(p_values.T, nan_ok=True)
    assert np.isnan(np.diag(p_values)).all()
    assert min(expected.values()) < 0.05 < max(expected.values())


def test_one_pair_is_the_paired_test():
    scores = np.random.default_rng(4).normal([[0.03], [0.0]], 0.2, (2, 150))
    (paired_test,) = paired_tests([scores[0] - scores[1]])
    assert all_pairs_tests(scores)[0, 1] == paired_test.p_value
    assert 0.01 < paired_test.p_value < 0.99


def test_methods_with_the_same_scores_do_not_differ():
    scores = np.random.default_rng(5).random(50)
    p_values = all_pairs_tests(np.stack([scores, scores, scores + 0.1]))[0]
    assert p_values[1:].tolist() == pytest.approx([1.0, 1e-4])


def test_best_of_equal_methods_seldom_differs_from_another():
    rng, n_columns, alarms, by_holm = np.random.default_rng(6), 120, 0, 0
    for _ in range(n_columns):
        scores = rng.uniform(0.2, 0.8, 60) + rng.normal(0, 0.1, (22, 60))
        best = int(scores.mean(axis=1).argmax())
        alarms += np.nanmin(all_pairs_tests(scores, 199)[best]) < 0.05
        p_values = [stats.ttest_rel(scores[best], other).pvalue for other in np.delete(scores, best, axis=0)]
        by_holm += holm(p_values).min() < 0.05
    assert alarms <= stats.binom.ppf(0.999, n_columns, 0.05)
    assert by_holm > stats.binom.ppf(0.999, n_columns, 0.05)  # which needs a reference chosen beforehand


def test_all_sign_flips_are_taken_where_they_are_few():
    (test,) = paired_tests([np.array([1.0, 2.0, 3.0])])  # of 8 sign flips, two are as far from 0 as this one
    assert test.p_value == 2 / 8


def test_interval_is_that_of_the_t_test():
    difference = np.random.default_rng(2).exponential(0.1, 60)
    (test,) = paired_tests([difference])
    expected = stats.ttest_1samp(difference, 0).confidence_interval()
    assert (test.low, test.high) == pytest.approx((expected.low, expected.high))


def test_queries_that_differ_by_the_same_have_a_point_as_interval_and_those_that_do_not_differ_p_1():
    equal, none = paired_tests([np.full(30, 0.25), np.zeros(30)])
    assert (equal.low, equal.high) == (0.25, 0.25)
    assert none[:2] == (1.0, 1.0)
    assert paired_tests([]) == []


def test_progress_ends_with_all_tests():
    seen = []
    paired_tests([np.arange(5.0)] * 20, 99, lambda *progress: seen.append(progress))
    assert seen == [("paired tests", 16, 20), ("paired tests", 20, 20)]
