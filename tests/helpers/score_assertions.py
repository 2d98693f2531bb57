"""Scores held against others to the last bit."""

import numpy as np


def assert_same_scores(found, expected):
    assert list(found.scores) == list(expected.scores)
    assert found.n_undefined == expected.n_undefined
    for name, scores in expected.scores.items():
        np.testing.assert_array_equal(found.scores[name], scores, err_msg=name)
