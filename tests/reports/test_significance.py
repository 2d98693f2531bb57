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


def scipy_alone(difference, n_resamples=9999):
    return stats.permutation_test(
        (difference,),
        lambda values, axis: np.mean(values, axis=axis),
        permutation_type="samples",
        n_resamples=n_resamples,
        rng=np.random.default_rng(0),
    ).pvalue


def all_pairs_in_words(scores):
    """Every sign flip of all queries; the pairs one by one, each with those that differ less."""
    pairs = list(itertools.combinations(range(len(scores)), 2))
    centred = scores - scores.mean(axis=0)

    def statistics(values):
        return {
            (one, other): abs(np.sum(values[one] - values[other])) / np.sqrt(np.sum((scores[one] - scores[other]) ** 2))
            for one, other in pairs
        }

    observed = statistics(scores)
    flipped = [statistics(centred * signs) for signs in itertools.product((1, -1), repeat=scores.shape[1])]
    p_values, floor = {}, 0.0
    for pair in sorted(pairs, key=observed.get, reverse=True):
        smaller = [one for one in pairs if observed[one] <= observed[pair]]
        n_as_far = sum(max(flip[one] for one in smaller) >= observed[pair] - 1e-12 for flip in flipped)
        floor = p_values[pair] = max(floor, n_as_far / len(flipped))
    return p_values


def test_holm_gives_the_numbers_computed_by_hand():
    # sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, which may not fall below its predecessor's 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.05, 0.3, 0.9, 1.0]), max_size=12))
def test_holm_steps_down_from_the_smallest(p_values):
    assert holm(p_values).tolist() == pytest.approx(holm_in_words(p_values))


def test_p_values_of_many_tests_are_those_of_scipy_for_each_alone():
    rng = np.random.default_rng(1)
    differences = [rng.normal(0.02, 0.2, length) for length in (40, 25, 40, 9, 25)]
    differences += [rng.normal(0.03, 0.2, 40) for _ in range(20)]
    tests = paired_tests(differences)
    alone = [scipy_alone(difference) for difference in differences]
    assert [test.p_value for test in tests] == pytest.approx(alone, abs=4 * np.sqrt(2 * 0.25 / 9999))  # both draw
    assert tests[3].p_value == alone[3]  # of 9 queries all sign flips
    assert [test.p_holm for test in tests] == pytest.approx(holm_in_words([test.p_value for test in tests]))
    assert len(set(alone)) > 10


def test_pairs_are_compared_with_the_largest_of_those_that_differ_less():
    scores = np.random.default_rng(3).normal([[0.4], [0.3], [0.0], [0.0]], 0.2, (4, 10))
    expected = all_pairs_in_words(scores)
    found = all_pairs_tests(scores)
    assert {pair: found[pair] for pair in expected} == pytest.approx(expected)
    assert found == pytest.approx(found.T, nan_ok=True)
    assert np.isnan(np.diag(found)).all()
    assert min(expected.values()) < 0.05 < max(expected.values())


def test_one_pair_is_the_paired_test_alone():
    scores = np.random.default_rng(4).normal([[0.03], [0.0]], 0.2, (2, 150))
    (alone,) = paired_tests([scores[0] - scores[1]])
    assert all_pairs_tests(scores)[0, 1] == alone.p_value
    assert 0.01 < alone.p_value < 0.99


def test_methods_with_the_same_scores_are_not_told_apart():
    scores = np.random.default_rng(5).random(50)
    assert all_pairs_tests(np.stack([scores, scores, scores + 0.1]))[0].tolist() == pytest.approx(
        [np.nan, 1.0, 1e-4], nan_ok=True
    )


def test_best_of_equal_methods_is_seldom_told_from_another():
    rng, n_columns, alarms, by_holm = np.random.default_rng(6), 300, 0, 0
    for _ in range(n_columns):
        scores = rng.uniform(0.2, 0.8, 60) + rng.normal(0, 0.1, (22, 60))
        best = int(scores.mean(axis=1).argmax())
        alarms += np.nanmin(all_pairs_tests(scores, 199)[best]) < 0.05
        alone = [stats.ttest_rel(scores[best], one).pvalue for one in np.delete(scores, best, axis=0)]
        by_holm += holm(alone).min() < 0.05
    assert alarms <= stats.binom.ppf(0.999, n_columns, 0.05)
    assert by_holm > stats.binom.ppf(0.999, n_columns, 0.05)  # which is made for a reference that was not chosen so


def test_all_sign_flips_are_taken_where_they_are_few():
    (test,) = paired_tests([np.array([1.0, 2.0, 3.0])])  # of 8 sign flips, two are as far from 0 as this one
    assert test.p_value == 2 / 8


def test_interval_is_the_bootstrap_percentile_interval_of_scipy():
    difference = np.random.default_rng(2).exponential(0.1, 60)
    (test,) = paired_tests([difference])
    expected = stats.bootstrap((difference,), np.mean, method="percentile", rng=np.random.default_rng(0))
    assert (test.low, test.high) == pytest.approx(tuple(expected.confidence_interval), abs=2e-3)
    assert test.low < difference.mean() < test.high


def test_queries_that_differ_alike_have_a_point_for_interval():
    (test,) = paired_tests([np.full(30, 0.25)])
    assert (test.low, test.high) == (0.25, 0.25)


def test_queries_that_do_not_differ_are_not_significant():
    (test,) = paired_tests([np.zeros(30)])
    assert test[:2] == (1.0, 1.0)


def test_no_tests_are_no_results():
    assert paired_tests([]) == []


def test_progress_ends_with_all_tests():
    seen = []
    paired_tests([np.arange(5.0)] * 20, 99, lambda *told: seen.append(told))
    assert seen == [("paired tests", 16, 20), ("paired tests", 20, 20)]
