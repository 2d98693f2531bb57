from collections import Counter

import numpy as np
import pandas as pd
import pytest
from helpers.table_rows import parsed

from hashbench.reports import tables
from hashbench.reports.tables.nearness import count_orders, make_orders
from hashbench.reports.tables.published import published_values

HYP2 = [value for value in published_values() if value.source.startswith("HyP2") and value.our_dataset == "nuswide"]


def cells(*rows, features="alexnet"):
    """Return cells of methods at 12 bits: value, and how far ties can move it; a shuffle a tenth as far."""
    ranges = [(name, value, value - by, value + by, by / 10) for name, value, by in rows]
    return pd.DataFrame(ranges, columns=["method", "value", "low", "high", "tie_sd"]).assign(
        dataset="nuswide",
        features=features,
        dataset_fingerprint="aaaa",
        metric="AP@5000",
        n_bits=12,
        n_queries=1,
        params="{}",
        method_version=1,
    )


@pytest.mark.parametrize(
    ("hyp2", "csq", "verdict"),
    [
        ((0.6, 0.01), (0.5, 0.01), ("holds", "every order")),
        ((0.5, 0.01), (0.6, 0.01), ("turned", "every order")),
        ((0.6, 0.06), (0.5, 0.05), ("holds", "shuffle")),  # three times the sum of .006 and .005 is .033
        ((0.5, 0.06), (0.6, 0.05), ("turned", "shuffle")),
        ((0.58, 0.06), (0.6, 0.05), ("open", "open")),
        ((0.57, np.nan), (0.6, 0.05), ("open", "unknown")),
    ],
)
def test_order_of_a_paper_holds_or_is_turned_as_far_as_ties_leave_it(hyp2, csq, verdict):
    (order,) = make_orders(cells(("hyp2", *hyp2), ("csq", *csq)), HYP2)
    assert (order.higher.published.method, order.lower.published.method) == ("HyP2 Loss", "CSQ")  # 0.794 and 0.692
    assert order.verdict == verdict
    assert count_orders([order]).startswith("Of 1 orders of two methods in one table of a paper ")


def test_every_two_methods_of_a_source_and_block_are_ordered_once():
    block = cells(("hyp2", 0.6, 0.01), ("csq", 0.5, 0.01), ("orthohash", 0.55, 0.02), ("lsh", 0.1, 0.0))
    orders = make_orders(pd.concat([block, block.assign(features="squeezenet")]), HYP2)
    counts = Counter((order.higher.cell.method, order.lower.cell.method) for order in orders)
    assert counts == {("hyp2", "orthohash"): 2, ("hyp2", "csq"): 2, ("orthohash", "csq"): 2}
    assert all(order.higher.cell.features == order.lower.cell.features for order in orders)
    assert count_orders(orders) == (
        "Of 6 orders of two methods in one table of a paper (HyP2 Loss 6) 6 hold here in every order of ties."
    )


def test_papers_and_classes_of_networks_are_not_mixed():
    hyp2, csq = (
        next(value for value in HYP2 if (value.our_method, value.n_bits) == (name, 12)) for name in ("hyp2", "csq")
    )
    ours = cells(("hyp2", 0.6, 0.01), ("csq", 0.5, 0.01))
    assert len(make_orders(ours, [hyp2, csq])) == 1
    assert make_orders(ours, [hyp2, csq._replace(source="another")]) == []
    assert make_orders(ours, [hyp2, csq._replace(backbone="ResNet-50")]) == []
    assert make_orders(ours, [hyp2, csq._replace(value=hyp2.value)]) == []  # which it ties
    assert count_orders([]) == ""


def test_two_rows_of_a_paper_that_one_of_ours_stands_for_are_no_order():
    ours = cells(("orthohash", 0.5, 0.01)).assign(dataset="imagenet100", metric="AP@1000", n_bits=64)
    assert make_orders(ours, published_values()) == []


def test_orders_are_written_a_line_each():
    rows = cells(("hyp2", 0.6, 0.01), ("csq", 0.5, 0.01)).assign(seed=0, n_queries=10, n_undefined=0)
    table1 = tables.make_table(rows, "table1")
    (row,) = parsed(table1.to_orders_csv())
    higher, lower = ([row[name] for name in row if name.endswith(side)] for side in ("higher", "lower"))
    assert higher == ["HyP2 Loss", "0.794", "hyp2", "0.600000", "{}", "1"]
    assert lower == ["CSQ", "0.692", "csq", "0.500000", "{}", "1"]
    assert (row["verdict"], row["ties"]) == ("holds", "every order")
    assert "1 hold here in every order of ties" in table1.to_markdown()
