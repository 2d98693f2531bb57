from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kendalltau

from hashbench.reports.tables.nearness import Pair, agreement, count_verdicts, describe_agreement
from hashbench.reports.tables.published import published_values

PAPER = next(value for value in published_values() if (value.method, value.our_dataset) == ("BRE", "cifar10-s1"))


def pair(published, value, low=None, high=None, spread=np.nan, features="vgg-f", tie_sd=0.0, **changes):
    cell = SimpleNamespace(
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        tie_sd=tie_sd,
        n_queries=1,
        spread=spread,
        n_seeds=1 if np.isnan(spread) else 3,
        features=features,
        params="{}",
    )
    return Pair(PAPER._replace(value=published, **changes), cell)


@pytest.mark.parametrize(
    ("published", "ours", "verdict"),
    [
        ("0.500", {"value": 0.4996}, "within"),  # it prints three digits
        ("0.500", {"value": 0.4994}, "below"),
        ("0.500", {"value": 0.5006}, "above"),
        ("0.50", {"value": 0.504}, "within"),
        ("0.500", {"value": 0.45, "low": 0.4, "high": 0.51, "tie_sd": 0.0168}, "within"),  # 0.0495 is less than 0.0504
        ("0.500", {"value": 0.45, "low": 0.4, "high": 0.51, "tie_sd": 0.0162}, "below"),
        ("0.500", {"value": 0.45, "low": 0.4, "high": 0.49, "tie_sd": 0.01}, "below"),
        ("0.500", {"value": 0.55, "low": 0.49, "high": 0.6, "tie_sd": 0.02}, "within"),
        ("0.500", {"value": 0.55, "low": 0.49, "high": 0.6, "tie_sd": np.nan}, "unknown"),
        ("0.500", {"value": 0.55, "low": 0.51, "high": 0.6, "tie_sd": np.nan}, "above"),
        ("0.500", {"value": 0.55, "low": 0.49, "high": 0.6, "tie_sd": np.nan, "spread": 0.06}, "within"),
        ("0.500", {"value": 0.45, "spread": 0.06}, "within"),
        ("0.500", {"value": 0.45, "low": 0.44, "high": 0.46, "spread": 0.04}, "below"),  # each on its own
        ("0.500", {"value": 0.55, "low": 0.54, "high": 0.56, "spread": 0.04}, "above"),
    ],
)
def test_verdict_goes_by_the_spread_and_luck(published, ours, verdict):
    assert pair(published, **ours).verdict == verdict


def test_verdict_names_the_parts_of_the_set_up_that_differ():
    assert pair("0.5", 0.4, dataset_differs="").in_words == "below"
    assert pair("0.5", 0.4, features="gist").in_words == "below; set-up differs (features, data)"


def test_verdicts_are_counted():
    pairs = [
        pair("0.5", 0.4, n_bits=12),
        pair("0.5", 0.6, n_bits=24, features="gist"),
        pair("0.5", 0.5, n_bits=24, dataset_differs=""),
        pair("0.5", 0.4, n_bits=48),
    ]
    assert count_verdicts(8, pairs) == (
        "Of 8 published values 3 are compared in 4 pairs: 1 within our spread or not apart under a shuffle, "
        "1 ours above, 2 ours below; 1 with the paper's set-up (what differs: data 3, features 1); 5 not run."
    )
    assert count_verdicts(8, []) == "Of 8 published values 0 are compared."


@pytest.mark.parametrize(("tie_sd", "most"), [(0.03, 1), (0.005, 4 / 6), (np.nan, 1)])
def test_agreement_is_kendalls_tau_with_bounds_where_luck_could_turn_two(tie_sd, most):
    pairs = [
        pair("0.2", 0.1, 0.05, 0.15, tie_sd=tie_sd, method="BRE"),
        pair("0.4", 0.2, 0.18, 0.35, tie_sd=tie_sd, method="KSH"),
        pair("0.3", 0.3, 0.25, 0.32, tie_sd=tie_sd, method="ITQ"),
        pair("0.5", 0.6, 0.5, 0.7, tie_sd=tie_sd, method="DPSH"),
    ]
    assert agreement(pairs) == pytest.approx((4 / 6, 4 / 6, most, 4))  # the second and third could change places
    assert agreement([pair("0.2", 0.1)]) is None
    assert agreement([pair("0.2", 0.1), pair("0.2", 0.3)]) is None


@pytest.mark.parametrize(
    ("ours", "low"), [([(0.1, 0.1), (0.1, 0.1), (0.2, 0.2)], 1), ([(0.1, 0.2), (0.1, 0.2), (0.3, 0.3)], 2 / 6**0.5)]
)
def test_bounds_count_our_ties_as_tau_does(ours, low):
    texts = zip(("0.1", "0.1", "0.2"), ours, strict=True)
    pairs = [pair(text, a, a, b, tie_sd=b - a) for text, (a, b) in texts]
    assert agreement(pairs) == pytest.approx((1, low, 1, 1))


def test_methods_are_counted_and_not_their_lines():
    assert agreement([pair("0.2", 0.1), pair("0.3", 0.3, method="KSH"), pair("0.2", 0.2)]).n_methods == 2


def test_bounds_hold_whatever_the_order_of_ties_where_luck_is_unknown():
    rng = np.random.default_rng(0)
    for _ in range(30):
        low, papers = rng.integers(0, 4, 4), rng.integers(1, 4, 4)
        high = low + rng.integers(0, 4, 4)
        orders = [values for values in product(*map(range, low, high + 1)) if len(set(values)) > 1]
        ours = orders[rng.integers(len(orders))] if orders else low
        cells = zip(ours, low, high, strict=True)
        pairs = [
            pair(str(value), *np.divide(cell, 10), tie_sd=np.nan) for value, cell in zip(papers, cells, strict=True)
        ]
        bounds = agreement(pairs)
        if bounds is None:
            assert len(set(papers)) == 1 or not orders
            continue
        for values in orders:
            assert bounds.low - 1e-9 <= kendalltau(papers, values).statistic <= bounds.high + 1e-9


def test_agreement_is_described_by_column():
    columns = {"12 bits": [pair("0.2", 0.1), pair("0.3", 0.3, method="KSH")], "24 bits": [pair("0.2", 0.1)]}
    assert describe_agreement(columns).endswith(": 12 bits 1.00 (1.00 to 1.00, 2 methods).")
    assert describe_agreement({}) == ""
