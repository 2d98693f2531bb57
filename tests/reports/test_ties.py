"""What ties leave open between two values, computed by hand."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashbench import evaluate
from hashbench.reports.marks import ANSWERS, Score, compare

NAN = float("nan")


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [
        ((0.5, 0.003, 0.4, 0.6), (0.5211, 0.004, 0.4, 0.7), "shuffle"),
        ((0.5, 0.003, 0.4, 0.6), (0.521, 0.004, 0.4, 0.7), "open"),  # just three times .007
        ((0.5, 0.003, 0.4, 0.6), (0.7, 0.004, 0.6, 0.8), "shuffle"),  # the edge belongs to a range
        ((0.5, 0.003, 0.4, 0.6), (0.7, 0.004, 0.600001, 0.8), "every order"),
        ((0.5, 0.003, 0.4, 0.6), (0.5, 0.004, 0.4, 0.7), "open"),
        ((0.5, NAN, 0.4, 0.6), (0.59, 0.004, 0.5, 0.7), "unknown"),
        ((0.5, NAN, 0.4, 0.6), (0.7, NAN, 0.61, 0.8), "every order"),
        ((0.5, NAN, NAN, NAN), (0.9, NAN, NAN, NAN), "unknown"),
        ((0.5, 0.001, NAN, NAN), (0.9, 0.001, NAN, NAN), "shuffle"),
        ((0.5, NAN, 0.5, 0.5), (0.5, NAN, 0.5, 0.5), "open"),  # no ties: known to be 0
        ((0.5, NAN, 0.5, 0.5), (0.500001, NAN, 0.500001, 0.500001), "every order"),
        ((NAN, NAN, NAN, NAN), (0.5, 0.1, 0.4, 0.6), "unknown"),
        # A deviation shown as 0.000000 is less than 0.0000005, and three times two such are 0.000003.
        ((0.5, 0.0, 0.4, 0.6), (0.500003, 0.0, 0.4, 0.6), "open"),
        ((0.5, 0.0, 0.4, 0.6), (0.500004, 0.0, 0.4, 0.6), "shuffle"),
    ],
)
def test_two_values_are_apart_as_far_as_ties_leave_them(first, second, answer):
    assert compare(Score(*first), Score(*second)) == compare(Score(*second), Score(*first)) == answer
    assert answer in ANSWERS


def test_columns_are_compared_row_by_row():
    rows = pd.DataFrame([(0.5, 0.003, 0.4, 0.6), (0.9, 0.003, 0.8, 1.0)], columns=Score._fields)
    assert compare(rows, Score(0.56, 0.003, 0.4, 0.7)).tolist() == ["shuffle", "every order"]


scores = st.builds(
    lambda value, below, above, share: Score(
        value / 1000, share * (below + above) / 1000, (value - below) / 1000, (value + above) / 1000
    ),
    st.integers(0, 1000),
    st.integers(0, 100),
    st.integers(0, 100),
    st.floats(0, 0.5),
)


@given(scores, scores, st.floats(0, 1))
def test_values_that_are_moved_apart_are_no_less_apart(first, second, by):
    low, high = sorted([first, second], key=lambda score: score.value)
    moved = Score(high.value + by, high.tie_sd, high.low + by, high.high + by)
    rank = list(ANSWERS).index
    assert rank(str(compare(low, moved))) <= rank(str(compare(low, high)))


CLASSES = [np.eye(10, dtype=bool)[np.arange(10).repeat(n_items)] for n_items in (2, 60)]
TOPICS = np.split(
    np.random.default_rng(0).normal(size=(350, 3)) @ np.random.default_rng(1).normal(size=(3, 6)) > 0, [50]
)


@pytest.mark.parametrize("labels", [CLASSES, TOPICS], ids=["one label", "several labels"])
def test_random_orders_reverse_no_two_codes_that_are_apart_under_a_shuffle(labels):
    rng = np.random.default_rng(0)
    scored = []
    for share in (0.1, *3 * [0.2], *4 * [0.3], 0.45, 0.45):  # of bits that are wrong
        codes = [hot ^ (rng.random(hot.shape) < share) for hot in labels]
        evaluation = evaluate(*codes, labels, ["AP"], random_orders=100)
        summary = evaluation.summary["AP"]
        score = Score(summary.mean, summary.tie_sd, summary.low, summary.high)
        scored.append((score, evaluation.random_orders["AP"]))
    n_apart = 0
    for (first, first_orders), (second, second_orders) in combinations(scored, 2):
        if compare(first, second) in ("shuffle", "every order"):
            n_apart += 1
            assert (np.sign(first_orders - second_orders) == np.sign(first.value - second.value)).all()
    assert n_apart >= 5
