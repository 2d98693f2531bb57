import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hashbench.reports.significance import holm, paired_tests


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
    tests = paired_tests(differences, 999)
    alone = [scipy_alone(difference, 999) for difference in differences]
    assert [test.p_value for test in tests] == alone
    assert [test.p_holm for test in tests] == pytest.approx(holm_in_words(alone))
    assert len(set(alone)) > 10


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
