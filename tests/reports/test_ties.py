"""What ties leave open between two values, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashbench.reports.ties import ANSWERS, Score, compare

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        ((0.5, 0.003, 0.4, 0.6), (0.526, 0.004, 0.4, 0.7), "luck"),  # the root of .003^2 + .004^2 is .005
        ((0.5, 0.003, 0.4, 0.6), (0.525, 0.004, 0.4, 0.7), "open"),  # just five of them
        ((0.5, 0.003, 0.4, 0.6), (0.7, 0.004, 0.6, 0.8), "luck"),  # the edge belongs to a range
        ((0.5, 0.003, 0.4, 0.6), (0.7, 0.004, 0.600001, 0.8), "every order"),
        ((0.5, 0.003, 0.4, 0.6), (0.5, 0.004, 0.4, 0.7), "open"),
        ((0.5, NAN, 0.4, 0.6), (0.59, 0.004, 0.5, 0.7), "unknown"),
        ((0.5, NAN, 0.4, 0.6), (0.7, NAN, 0.61, 0.8), "every order"),
        ((0.5, NAN, NAN, NAN), (0.9, NAN, NAN, NAN), "unknown"),
        ((0.5, 0.001, NAN, NAN), (0.9, 0.001, NAN, NAN), "luck"),
        ((0.5, NAN, 0.5, 0.5), (0.5, NAN, 0.5, 0.5), "open"),  # no ties: known to be 0
        ((0.5, NAN, 0.5, 0.5), (0.500001, NAN, 0.500001, 0.500001), "every order"),
        ((NAN, NAN, NAN, NAN), (0.5, 0.1, 0.4, 0.6), "unknown"),
        # A deviation shown as 0.000000 is less than 0.0000005, and five of two such are 0.0000035.
        ((0.5, 0.0, 0.4, 0.6), (0.500003, 0.0, 0.4, 0.6), "open"),
        ((0.5, 0.0, 0.4, 0.6), (0.500004, 0.0, 0.4, 0.6), "luck"),
    ],
)
def test_two_values_are_apart_as_far_as_ties_leave_them(one, other, answer):
    assert compare(Score(*one), Score(*other)) == compare(Score(*other), Score(*one)) == answer
    assert answer in ANSWERS


def test_more_queries_need_more_deviations_as_the_root_of_their_number():
    one, near, far = (Score(value, 0.003, 0.3, 0.7, 800) for value in (0.5, 0.542, 0.543))  # 10 of .0042426
    assert (compare(one, near), compare(one, far)) == ("open", "luck")
    assert compare(one._replace(n_queries=100), near._replace(n_queries=200)) == "luck"
    assert compare(one._replace(n_queries=100), near) == "open"  # the more queries of the two


def test_columns_are_compared_row_by_row():
    rows = pd.DataFrame([(0.5, 0.003, 0.4, 0.6), (0.9, 0.003, 0.8, 1.0)], columns=Score._fields[:4])
    assert compare(rows, Score(0.55, 0.003, 0.4, 0.7)).tolist() == ["luck", "every order"]


scores = st.tuples(st.integers(0, 1000), st.integers(0, 100), st.integers(0, 100), st.floats(0, 0.5)).map(
    lambda drawn: Score(
        drawn[0] / 1000,
        drawn[3] * (drawn[1] + drawn[2]) / 1000,
        (drawn[0] - drawn[1]) / 1000,
        (drawn[0] + drawn[2]) / 1000,
    )
)


@given(scores, scores, st.floats(0, 1))
def test_values_that_are_moved_apart_are_told_apart_no_less(one, other, by):
    low, high = sorted([one, other], key=lambda score: score.value)
    moved = Score(high.value + by, high.tie_sd, high.low + by, high.high + by)
    rank = list(ANSWERS).index
    assert rank(str(compare(low, moved))) <= rank(str(compare(low, high)))


def test_random_orders_turn_no_two_codes_that_are_apart_under_luck():
    from hashbench import evaluate

    rng = np.random.default_rng(0)
    labels = np.arange(10).repeat(2), np.arange(10).repeat(60)
    found = []
    for share in (0.1, 0.12, 0.2, 0.3, 0.45):  # of bits that are wrong
        codes = [np.eye(10, dtype=bool)[some] ^ (rng.random((len(some), 10)) < share) for some in labels]
        found.append(evaluate(*codes, labels, ["AP"], random_orders=100))
    n_apart = 0
    for number, one in enumerate(found):
        for other in found[:number]:
            mine, theirs = (
                Score(score.mean, score.tie_sd, score.low, score.high)
                for score in (one.summary["AP"], other.summary["AP"])
            )
            if compare(mine, theirs) in ("luck", "every order"):
                n_apart += 1
                signs = np.sign(one.random_orders["AP"] - other.random_orders["AP"])
                assert (signs == np.sign(mine.value - theirs.value)).all()
    assert n_apart >= 5
