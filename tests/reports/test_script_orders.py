"""Codes in the tie orders of scripts: against explain, script by script, and by hand."""

import math

import numpy as np
import pytest
from helpers.paths import benchmark
from helpers.script_values import values_of

from hashbench.affinity import SameLabel
from hashbench.bits import pack
from hashbench.reports.explain.emulation import explain
from hashbench.reports.explain.orders import rearranged

tie_orders = benchmark("spreads")
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 4, 12), RNG.integers(0, 4, 300)
CODES = [pack(np.eye(4, dtype=bool)[part] ^ (RNG.random((len(part), 4)) < 0.2)) for part in LABELS]
AFFINITY = SameLabel(*LABELS)


@pytest.mark.parametrize("metric", ["AP", "P@20"])
def test_spread_is_that_of_the_scripts_that_differ_only_in_the_tie_order(metric):
    for spread in tie_orders.spreads("mine", *CODES, 4, AFFINITY, [metric]):
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


def make_spread(method, value, lowest, highest, end_of_ties=math.nan, low=0.0, high=1.0):
    return tie_orders.Spread(
        method, 12, "AP", "given", 200, value, 0.00025, low, high, lowest, highest, "a", "b", end_of_ties
    )


def test_pairs_are_counted_by_worst_case_shuffle_and_scripts():
    codes = [
        make_spread("one", 0.500, 0.49, 0.51, 0.45, low=0.4, high=0.6),
        make_spread("two", 0.501, 0.50, 0.52, 0.46, low=0.4, high=0.6),  # .001 apart, less than 3 times .0005
        make_spread("three", 0.515, 0.511, 0.52, 0.47, low=0.45, high=0.6),
        make_spread("four", 0.9, 0.9, 0.9, 0.9, low=0.8, high=1.0),
    ]
    (counted,) = tie_orders.pairs(codes)
    assert (counted.n_pairs, counted.meet, counted.open) == (6, 3, 1)
    assert counted.turned == (("one", "two"), ("two", "three"))


def test_cached_codes_are_scored_in_each_order_of_the_database(hashbench, tiny_file, empty_folder):
    dataset = str(tiny_file())
    grid = "--method", "lsh", "--method", "pcah", "--dataset", dataset, "--bits", 4
    hashbench("run", *grid, "--metric", "AP", "--results", "r")
    codes = tie_orders.explain_cached(dataset, [4])[0]
    assert {spread.n_queries for spread in codes} == {8}
    assert [(spread.method, spread.database) for spread in codes] == [
        (name, order) for name in ("lsh", "pcah") for order in ("given", "by-class", "shuffled")
    ]
    assert [pair.n_pairs for pair in tie_orders.pairs(codes)] == [1, 1, 1]
