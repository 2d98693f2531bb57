"""Scores held against others to the last bit."""

import numpy as np


def assert_same_scores(evaluation, expected):
    assert list(evaluation.scores) == list(expected.scores)
    assert evaluation.n_undefined == expected.n_undefined
    for name, scores in expected.scores.items():
        np.testing.assert_array_equal(evaluation.scores[name], scores, err_msg=name)
