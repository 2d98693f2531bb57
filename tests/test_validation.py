from dataclasses import dataclass

import numpy as np
import pytest

from hashbench._validation import check_settings, choice, real, real_parameters, setting, whole, with_floats
from hashbench.errors import HashbenchError

HELD = [
    (whole(1), [1, np.int64(5), 10**20]),
    (whole(1, 3), [1, 3]),
    (real(0), [0, 0.0, np.float32(2), 7]),
    (real(0, 1, closed="left"), [0, 0.999]),
    (real(0, 1, closed="right"), [1, 0.001]),
    (real(0, 1, closed="neither"), [0.5]),
    (choice("mlp", "linear"), ["mlp"]),
    (bool, [True, np.True_]),
    (str, ["any"]),
    (None, [None]),
]
REFUSED = [
    ([whole(1)], [0, 1.0, "1", None, [1]], "must be an int in the range [1, inf). Got"),
    ([whole(1, 3)], [4, 0], "must be an int in the range [1, 3]. Got"),
    (
        [real(0)],
        [-1, float("nan"), "a", 1j],
        "must be a float in the range [0.0, inf). Got",
    ),
    ([real(0, 1, closed="neither")], [0, 1], "must be a float in the range (0.0, 1.0). Got"),
    ([real(0, 1, closed="right"), None], [0, 1.5], "must be a float in the range (0.0, 1.0] or None. Got"),
    ([choice("mlp", "linear")], ["lin", 3, ["mlp"]], "must be a str among {'linear', 'mlp'}. Got"),
    ([bool], [1, "yes", None], "must be an instance of 'bool'. Got"),
    ([whole(0), str, None], [-1, 2.5], "must be an int in the range [0, inf), an instance of 'str' or None. Got"),
]


@pytest.mark.parametrize(("rule", "values"), HELD)
def test_values_that_a_rule_allows_pass(rule, values):
    for value in values:
        check_settings({"x": [rule], "other": [whole(1)]}, {"x": value, "free": object()}, "mine")


@pytest.mark.parametrize(("rules", "values", "words"), REFUSED)
def test_values_that_no_rule_allows_are_refused_in_words(rules, values, words):
    for value in values:
        with pytest.raises(HashbenchError) as caught:
            check_settings({"x": rules}, {"x": value}, "mine")
        assert str(caught.value) == f"The 'x' parameter of mine {words} {value!r} instead."


@dataclass
class Mine:
    free: float = 1
    margin: float = setting(1, real(0))
    open: float | None = setting(None, real(0), None)
    either: float = setting(1, whole(0), real(0))
    own: float = setting(1, int, real(0))
    count: int = setting(1, whole(0))
    kind: str = setting("a", choice("a", "b"))
    flag: bool = setting(True, bool)


class Child(Mine):
    pass


def test_whole_numbers_become_floats_only_where_numbers_are_real():
    names = real_parameters(Child)
    assert names == ("margin", "open")
    values = {"free": 2, "margin": np.int64(2), "open": None, "either": 2, "own": 2, "count": 2, "flag": True}
    found = with_floats(values, names)
    assert found == values
    assert {key for key, value in found.items() if type(value) is float} == {"margin"}
    assert with_floats({"margin": True}, names)["margin"] is True
