"""Tie orders and distances: forty items in the orders of the originals' sorts, and the scripts with these orders."""

import functools
import re

import numpy as np
import pytest
from helpers.script_values import explained, values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.misc.quicksort import make_py_quicksort

from hashbench.reports.explain import orders
from hashbench.reports.explain.scripts import EVALUATORS, twins_of

ALL_SCRIPTS = (*EVALUATORS, *twins_of(EVALUATORS))


def forty_items():
    """2 queries, 40 items with many ties, some of which differ in all bits of a byte, and their classes."""
    rng = np.random.default_rng(128)
    kinds = np.arange(16) < np.array([0, 1, 2, 7, 8, 9])[:, None]
    return kinds[[0, 1]], kinds[rng.integers(0, 6, 40)], (np.array([0, 1]), rng.integers(0, 2, 40))


def spread(codes):
    """Put the bits of a byte into two, so that none differs in all bits."""
    return codes.reshape(-1, 2, 8).swapaxes(1, 2).reshape(-1, 16)


def tensor(keys):
    return pytest.importorskip("torch", reason="PyTorch is not there: pip install 'hashbench[learned]'").tensor(keys)


SORTS = {  # the originals', from keys and how many come first
    "numpy": lambda keys, n: np.argsort(np.array(keys, np.int16)),  # which no vector instructions sort
    "numpy here": lambda keys, n: np.argsort(np.array(keys, np.float32)),
    "numpy twice": lambda keys, n: (first := np.argpartition(np.array(keys, np.int16), n - 1)[:n])[
        np.argsort(np.array(keys, np.int16)[first])
    ],
    "numpy here twice": lambda keys, n: (first := np.argpartition(np.array(keys, np.float32), n - 1)[:n])[
        np.argsort(np.array(keys, np.float32)[first])
    ],
    "torch": lambda keys, n: tensor(keys).float().argsort().numpy(),
    "topk": lambda keys, n: tensor(keys).float().topk(n, largest=False)[1].numpy(),
    "stable": lambda keys, n: sorted(range(40), key=lambda item: keys[item]),
    "descending": lambda keys, n: sorted(range(40), key=lambda item: (keys[item], -item)),
    "numba": lambda keys, n: make_py_quicksort(is_argsort=True).run_quicksort(np.array(keys, float)),
    "numba turned": lambda keys, n: make_py_quicksort(is_argsort=True).run_quicksort(-np.array(keys, float))[::-1],
}


def ap(hits, n_relevant):
    return np.mean([sum(hits[:rank]) / rank for rank in range(1, len(hits) + 1) if hits[rank - 1]])


def ndcg(hits, n_relevant):
    best = sum(1 / np.log2(rank + 2) for rank in range(min(len(hits), n_relevant)))
    return sum(hit / np.log2(rank + 2) for rank, hit in enumerate(hits)) / best


SCORES = {  # from the hits among the first items, and how many items are relevant in all
    "AP": ap,
    "AP of ten queries more": lambda hits, n_relevant: ap(hits, n_relevant) * 2 / 12,
    "AP@13": ap,
    "AP@13 of all relevant": lambda hits, n_relevant: ap(hits, n_relevant) * sum(hits) / n_relevant,
    "NDCG@13": ndcg,
    "NDCG@13:trec": ndcg,
    "P@13": lambda hits, n_relevant: sum(hits) / 13,
    "R@13": lambda hits, n_relevant: sum(hits) / n_relevant,
    "Hit@2": lambda hits, n_relevant: max(hits),
}
SCRIPTS = {  # by quantity and sort: the scripts that compute it in that order
    "AP": {
        "numpy": "calc-map pytorch-deephash",
        "numpy here": "calc-map-here pytorch-deephash-here",
        "stable": "ratio-baseline dtsh sdh dsh perf mihash",
        "descending": "ratio-baseline-flat",
    },
    "AP of ten queries more": {"stable": "perf10"},
    "AP@13": {
        "numpy": "calc-top-map hashnet hashnet-caffe csq",
        "numpy here": "calc-top-map-here hashnet-here hashnet-caffe-here csq-here",
        "numpy twice": "thulab",
        "numpy here twice": "thulab-here",
        "topk": "orthohash fire fire-old torchmetrics-map torchmetrics-map-bits-less-d",
        "torch": "treezzz",
        "stable": "callmap deepbit faiss-cumsum mihash-k",
    },
    "AP@13 of all relevant": {
        "descending": "trec_eval trec_eval-unjudged",
        "numba": "ranx-run-here",
        "numba turned": "ranx-here",
    },
    "NDCG@13": {"stable": "talr-ndcg", "numba": "ranx-run-burges-here", "numba turned": "ranx-burges-here"},
    "NDCG@13:trec": {"descending": "trec_eval-ndcg", "numba": "ranx-run-ndcg-here", "numba turned": "ranx-ndcg-here"},
    "P@13": {
        "numpy": "calc-top-map-p calc-top-map-p-topk bihalf-p pytorch-deephash-p",
        "numpy here": "calc-top-map-p-here calc-top-map-p-topk-here bihalf-p-here pytorch-deephash-p-here",
        "topk": "fire-p",
        "stable": "mihash-prec-k rp5 deepbit-p ksh",
        "descending": "trec_eval-p",
    },
    "R@13": {
        "numpy": "calc-top-map-r calc-top-map-r-topk csq-r",
        "numpy here": "calc-top-map-r-here calc-top-map-r-topk-here csq-r-here",
        "descending": "trec_eval-r",
    },
    "Hit@2": {"topk": "fire-hit"},
}


@pytest.mark.parametrize("quantity", SCRIPTS)
def test_forty_items_come_in_the_order_of_the_sorts_that_the_originals_call(quantity):
    query, database, labels = forty_items()
    metric = quantity.split()[0]
    by_script = values_of(explained([metric], spread(query), spread(database), labels, ALL_SCRIPTS))
    n_first, values = int((re.findall(r"@(\d+)", metric) or [40])[0]), {}
    for order, names in SCRIPTS[quantity].items():
        scores = []
        for code, label in zip(query, labels[0], strict=True):
            keys = [int((code != item).sum()) for item in database]
            hits = [int(labels[1][row] == label) for row in SORTS[order](keys, n_first)]
            scores.append(SCORES[quantity](hits[:n_first], sum(labels[1] == label)))
        values[order] = np.mean(scores)
        assert [by_script[name] for name in names.split()] == pytest.approx(
            [values[order]] * len(names.split()), abs=1e-6
        )
    of_any_machine = [round(value, 9) for order, value in values.items() if "here" not in order]
    assert len({*of_any_machine}) == len(of_any_machine)  # the sorts differ


OTHERS = """
talr-ap calc-map-k thulab-all thulab-all-here rp5-r bihalf-r bihalf-r-here retrieval-map oxford-paris oxford-paris-here
""".split()  # noqa: SIM905


def test_other_scripts_of_forty_items_come_in_the_order_of_the_sorts_that_their_originals_call():
    query, database, labels = forty_items()
    relevant = labels[0][:, None] == labels[1]
    distances = (query[:, None] != database).sum(axis=2)
    ids = SORTS["torch"](np.repeat([0, 1], 40).tolist(), 80).reshape(2, 40) - [[0], [40]]
    expected = {name: [] for name in OTHERS}
    for number, keys in enumerate(distances):
        hits = {name: relevant[number][SORTS[name](keys, 40)] for name in ("stable", "torch", "numpy", "numpy here")}
        first = hits["stable"][:13]
        expected["talr-ap"].append(ap(first, 0) - first[0] / first.sum())
        thirteenth = np.flatnonzero(hits["torch"])[12]
        expected["calc-map-k"].append(ap(hits["torch"][: thirteenth + 1], 0))
        expected["rp5-r"].append(first.sum() * 2 / relevant.sum())
        for name, ending in (("numpy", ""), ("numpy here", "-here")):
            expected[f"thulab-all{ending}"].append(ap(hits[name][: (keys <= 7).sum()], 0))
            trapezoids = [
                ((hit / rank if rank else 1) + (hit + 1) / (rank + 1)) / 2
                for hit, rank in enumerate(np.flatnonzero(hits[name]))
            ]
            expected[f"oxford-paris{ending}"].append(np.mean(trapezoids))
            expected[f"bihalf-r{ending}"].append(hits[name][:13].sum() * 2 / relevant.sum())
        order = ids[number]
        expected["retrieval-map"].append(ap(relevant[number][order][SORTS["topk"](keys[order], 13)], 0))
    expected["retrieval-map-bits-less-d"] = expected["retrieval-map"]  # no item differs in all bits
    metrics = {"thulab-all": "P@r7", "oxford-paris": "AP", "rp5-r": "R@13", "bihalf-r": "R@13"}
    for name, values in expected.items():
        (explanation,) = explained(
            [metrics.get(name.removesuffix("-here"), "AP@13")], spread(query), spread(database), labels, [name]
        )
        assert explanation.value == pytest.approx(np.mean(values), abs=1e-6), name


def test_every_script_that_sorts_is_held_to_the_sort_of_its_original():
    tested = [*OTHERS, *" ".join(names for sorts in SCRIPTS.values() for names in sorts.values()).split()]
    of_originals = {script.name for script in ALL_SCRIPTS if script.name.startswith("mteb-binary")}  # test_originals.py
    untested = {script.name for script in ALL_SCRIPTS if script.order} - {*tested, "retrieval-map-bits-less-d"}
    assert untested == of_originals


ALL = "AP", "AP@25", "NDCG@25", "NDCG@25:trec", "P@25", "R@25", "Hit@1", "P@r7", "R@r7"


def changed(arrange):
    """Return the scripts for which the places of the differing bits in codes matter."""
    query, database, labels = forty_items()
    plain, arranged = (
        explained(ALL, *codes, labels) for codes in ((query, database), (arrange(query), arrange(database)))
    )
    return {
        before.evaluator.name
        for before, after in zip(plain, arranged, strict=True)
        if before.value != pytest.approx(after.value, abs=1e-9, nan_ok=True)
    }


def test_the_fault_of_bytes_is_that_of_scripts_with_hammingdist():
    scripts = "callmap sdh perf10 perf area-rp area-rp-p area-rp-r rp5 rp5-r sdh-r2 sdh-recall"
    assert changed(spread) == set(scripts.split())


def test_similarities_of_8_bits_are_those_of_mihash():
    longer = functools.partial(np.pad, pad_width=[(0, 0), (0, 128)])
    assert changed(longer) == {"mihash", "mihash-k", "mihash-prec-k", "mihash-prec-n"}


def test_torchmetrics_does_not_shuffle_many_pairs():
    assert orders.by_ids(3, np.full(8, 4096)).tolist() == list(range(4096))
    shuffled = orders.by_ids(3, np.full(8, 4095)).tolist()
    assert shuffled != list(range(4095))
    assert sorted(shuffled) == list(range(4095))


@pytest.mark.parametrize(
    ("order", "n_first", "expected"),
    [
        (
            orders.libstdcxx,
            40,
            "1 36 35 31 30 26 25 21 20 16 15 11 10 5 0 6 8 28 3 23 "
            "33 18 38 13 34 39 2 32 37 4 29 27 24 22 7 19 17 9 14 12",
        ),
        (orders.torch_topk, 7, "26 15 16 20 21 25 31"),
    ],
    ids=["libstdc++", "topk"],
)
def test_sorts_leave_ties_as_their_originals_do(order, n_first, expected):
    i = np.arange(40)
    assert " ".join(map(str, order((7 * i * i + 3 * i) % 5, n_first))) == expected


@settings(max_examples=60)
@given(st.integers(1, 300), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_every_order_is_sorted_and_has_each_row_once(n_items, n_keys, seed):
    rng = np.random.default_rng(seed)
    keys, n_first = rng.integers(0, n_keys, n_items), int(rng.integers(1, n_items + 1))
    partitions = orders.numpy_partition, orders.numpy_partition_here
    for order in (orders.numpy_scalar, orders.libstdcxx, orders.torch_topk, *partitions, orders.descending):
        rows = order(keys, n_first)
        assert keys[rows[:n_first]].tolist() == np.sort(keys)[:n_first].tolist()
        assert len(set(rows.tolist())) == len(rows) >= n_first


@pytest.mark.parametrize("order", [orders.stable, orders.descending])
def test_keys_of_more_than_15_bits_are_sorted_as_they_are(order):
    keys = np.array([70_000, 5, 33_000, 5, 70_000, 0])
    expected = sorted(range(6), key=lambda row: (keys[row], row if order is orders.stable else -row))
    assert order(keys, 6).tolist() == expected
