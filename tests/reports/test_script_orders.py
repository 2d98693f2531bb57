"""Many codes through the orders of ties of scripts: against explain, script by script, and by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from hashbench.affinity import SameLabel
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.reports.explain.emulation import explain
from hashbench.reports.explain.orders import rearranged
from hashbench.reports.explain.spreads import Spread, explain_kept, format_spreads, pairs, spreads

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 4, 12), RNG.integers(0, 4, 300)
CODES = [pack(np.eye(4, dtype=bool)[part] ^ (RNG.random((len(part), 4)) < 0.2)) for part in LABELS]
AFFINITY = SameLabel(*LABELS)


@pytest.mark.parametrize("metric", ["AP", "AP@40", "P@20"])
def test_spread_is_that_of_the_scripts_that_differ_in_the_order_of_ties_alone(metric):
    for found in spreads("mine", *CODES, 4, AFFINITY, [metric]):
        database, affinity = rearranged(CODES[1], AFFINITY, found.database)
        told = explain(CODES[0], database, 4, affinity, [metric])
        exact = told[0].ours
        assert (found.value, found.low, found.high) == pytest.approx((exact.mean, exact.low, exact.high))
        alone = {  # nothing but the order of ties is theirs
            one.evaluator.name: one.value
            for one in told
            if one.evaluator.order is not None and {cause.words for cause in one.causes} <= {"tie order"}
        }
        assert len(alone) > 2
        assert found.lowest <= min(alone.values()) + 1e-12
        assert found.highest >= max(alone.values()) - 1e-12
        for script, value in ((found.lowest_script, found.lowest), (found.highest_script, found.highest)):
            if script in alone:
                assert value == pytest.approx(alone[script])
        assert found.low - 1e-12 <= found.lowest <= found.highest <= found.high + 1e-12
        if metric == "AP":
            (sklearn,) = [one for one in told if one.evaluator.name == "sklearn-ap"]
            assert found.end_of_ties == pytest.approx(sklearn.value)
        else:
            assert math.isnan(found.end_of_ties)


def test_a_database_by_class_moves_scripts_more_than_a_shuffled_one():
    by_class, shuffled = spreads("mine", *CODES, 4, AFFINITY, ["AP@40"], ["by-class", "shuffled"])
    assert by_class.highest - by_class.lowest > shuffled.highest - shuffled.lowest
    assert (by_class.value, by_class.tie_sd) == (shuffled.value, shuffled.tie_sd)


def spread(method, value, lowest, highest, end_of_ties=math.nan, low=0.0, high=1.0):
    return Spread(method, 12, "AP", "given", 200, value, 0.001, low, high, lowest, highest, "a", "b", end_of_ties)


def test_pairs_are_counted_by_worst_case_luck_and_scripts():
    found = [
        spread("one", 0.500, 0.49, 0.51, 0.45, low=0.4, high=0.6),
        spread("two", 0.505, 0.50, 0.52, 0.46, low=0.4, high=0.6),  # .005 apart, less than five times .0014
        spread("three", 0.515, 0.511, 0.52, 0.47, low=0.45, high=0.6),
        spread("four", 0.9, 0.9, 0.9, 0.9, low=0.8, high=1.0),
    ]
    (counted,) = pairs(found)
    assert (counted.n_pairs, counted.meet, counted.open) == (6, 3, 1)
    assert counted.turned == (("one", "two"), ("two", "three"))
    assert counted.turned_at_end == (("one", "three"),)  # one at its highest, .51, and three at its end of ties, .47


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_kept_codes_are_shown_with_the_pairs_that_scripts_turn(hashbench, digits_data, empty_folder, form):
    hashbench("run", "--method", "lsh", "--method", "pcah", "--bits", 8, "--metric", "AP", "--results", "r")
    result = hashbench("explain", "--dataset", "digits", "--bits", 8, "--format", form)
    assert result.exit_code == 0, result.stderr
    found = explain_kept("digits", [8])
    assert [(one.method, one.database) for one in found] == [
        (name, order) for name in ("lsh", "pcah") for order in ("given", "by-class", "shuffled")
    ]
    assert result.stdout == format_spreads(found, form) + "\n"
    if form == "json":
        content = json.loads(result.stdout)
        assert content["codes"][0]["lowest"] == found[0].lowest
        assert [one["n_pairs"] for one in content["pairs"]] == [1, 1, 1]
    else:
        assert f"{found[0].value:.4f} ± {found[0].tie_sd:.5f}" in result.stdout


def test_codes_that_are_not_kept_are_named_with_what_makes_them(hashbench, digits_data):
    with pytest.raises(HashbenchError, match=r"no codes of digits with seed 7 are kept .* --method itq --bits 32 "):
        explain_kept("digits", seed=7)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--dataset", "digits", "--script", "csq"], 2, "--script, --value and --figure explain one file of codes"),
        (["--dataset", "digits", "--metric", "P@r2"], 1, "no script that sorts gives P@r2"),
        (["c.h5", "--method", "itq"], 2, "--method does not go with CODES.h5"),
    ],
)
def test_options_of_the_other_use_are_refused(hashbench, digits_data, empty_folder, options, code, message):
    Path("c.h5").write_bytes(b"")
    hashbench("run", "--method", "lsh", "--bits", 8, "--metric", "AP", "--results", "r")
    result = hashbench("explain", *options)
    assert result.exit_code == code
    assert message in result.stderr
