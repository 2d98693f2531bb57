"""Codes in the tie orders of scripts: against explain, script by script, and by hand."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.script_values import values_of

from hashbench.affinity import SameLabel
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.reports.explain import orders
from hashbench.reports.explain.emulation import explain
from hashbench.reports.explain.orders import rearranged
from hashbench.reports.explain.spreads import Spread, explain_cached, format_spreads, pairs, spreads

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 4, 12), RNG.integers(0, 4, 300)
CODES = [pack(np.eye(4, dtype=bool)[part] ^ (RNG.random((len(part), 4)) < 0.2)) for part in LABELS]
AFFINITY = SameLabel(*LABELS)


@pytest.mark.parametrize("metric", ["AP", "AP@40", "P@20"])
def test_spread_is_that_of_the_scripts_that_differ_only_in_the_tie_order(metric):
    for spread in spreads("mine", *CODES, 4, AFFINITY, [metric]):
        database, affinity = rearranged(CODES[1], AFFINITY, spread.database)
        explanations = explain(CODES[0], database, 4, affinity, [metric])
        assert (spread.value, spread.low, spread.high) == pytest.approx(explanations[0].exact)
        values = {
            explanation.evaluator.name: explanation.value
            for explanation in explanations
            if explanation.evaluator.order and {cause.words for cause in explanation.causes} <= {"tie order"}
        }
        assert len(values) > 2
        assert spread.lowest <= min(values.values()) + 1e-12
        assert spread.highest >= max(values.values()) - 1e-12
        for script, value in ((spread.lowest_script, spread.lowest), (spread.highest_script, spread.highest)):
            assert value == pytest.approx(values.get(script, value))
        assert spread.low - 1e-12 <= spread.lowest <= spread.highest <= spread.high + 1e-12
        end_of_ties = values_of(explanations)["sklearn-ap"] if metric == "AP" else math.nan
        assert spread.end_of_ties == pytest.approx(end_of_ties, nan_ok=True)


@pytest.mark.parametrize(("of_numpy", "script"), [("numpy", "calc-top-map-here"), ("numpy_partition", "thulab-here")])
def test_every_script_that_sorts_by_numpy_is_also_sorted_by_that_of_this_machine(monkeypatch, of_numpy, script):
    def even_rows_first(keys, n_first):
        return np.argsort(np.arange(len(keys)) % 2, kind="stable")

    monkeypatch.setattr(orders, f"{of_numpy}_here", even_rows_first)
    query, database = (pack(np.zeros((n_rows, 4), dtype=bool)) for n_rows in (1, 40))
    affinity = SameLabel(np.ones(1, dtype=int), np.arange(1, 41) % 2)
    (spread,) = spreads("tied", query, database, 4, affinity, ["AP"], ["given"])
    assert (spread.highest, spread.highest_script) == (1.0, script)


def make_spread(method, value, lowest, highest, end_of_ties=math.nan, low=0.0, high=1.0):
    return Spread(method, 12, "AP", "given", 200, value, 0.00025, low, high, lowest, highest, "a", "b", end_of_ties)


def test_pairs_are_counted_by_worst_case_shuffle_and_scripts():
    codes = [
        make_spread("one", 0.500, 0.49, 0.51, 0.45, low=0.4, high=0.6),
        make_spread("two", 0.501, 0.50, 0.52, 0.46, low=0.4, high=0.6),  # .001 apart, less than 3 times .0005
        make_spread("three", 0.515, 0.511, 0.52, 0.47, low=0.45, high=0.6),
        make_spread("four", 0.9, 0.9, 0.9, 0.9, low=0.8, high=1.0),
    ]
    (counted,) = pairs(codes)
    assert (counted.n_pairs, counted.meet, counted.open) == (6, 3, 1)
    assert counted.turned == (("one", "two"), ("two", "three"))


def test_cached_codes_are_shown_with_the_pairs_that_scripts_turn(hashbench, tiny_file, empty_folder):
    of = "--dataset", str(tiny_file()), "--bits", 4
    hashbench("run", "--method", "lsh", "--method", "pcah", *of, "--metric", "AP", "--results", "r")
    codes, _ = explain_cached(of[1], [4])
    assert {spread.n_queries for spread in codes} == {8}
    assert [(spread.method, spread.database) for spread in codes] == [
        (name, order) for name in ("lsh", "pcah") for order in ("given", "by-class", "shuffled")
    ]
    result = hashbench("explain", *of)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == format_spreads(codes, "table") + "\n"
    for form in ("table", "markdown"):
        assert re.search(rf"{codes[0].value:.4f}[ |]+{codes[0].tie_sd:.5f}", format_spreads(codes, form))
    content = json.loads(format_spreads(codes, "json"))
    assert content["codes"][0]["lowest"] == codes[0].lowest
    assert [pair["n_pairs"] for pair in content["pairs"]] == [1, 1, 1]


def test_codes_that_are_not_cached_are_named_with_the_command_that_makes_them(digits_data):
    with pytest.raises(HashbenchError, match=r"no matching codes of digits with seed 7 .* --method itq --bits 32 "):
        explain_cached("digits", seed=7)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--dataset", "digits", "--script", "csq"], 2, "--script and --value explain one file of codes"),
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
