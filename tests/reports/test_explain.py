"""Scoring scripts: worked examples that their originals were run on, and the sums of causes."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench import evaluate
from hashbench.affinity import SameLabel, SharedLabels
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.reports.explain import orders
from hashbench.reports.explain.emulation import Cause, Range, explain
from hashbench.reports.explain.evaluators import EVALUATORS, named
from hashbench.reports.explain.layout import answers, format_answers, format_explanations

_HERE = [one.name for one in EVALUATORS if one.order is orders.numpy_here]


def bits(text):
    return np.array([[digit == "1" for digit in code] for code in text.split()])


QUERY = bits("0110 1001 0101")
DATABASE = bits("0001 1100 1011 0011 0110 1110 0011 0110 0100 0101 1011 1010")
LABELS = np.array([0, 1, 2]), np.array([0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0])  # nothing is relevant to the last query
WHOLE = {  # what the originals give of the whole list
    **{"calc-top-map": 0.293382, "calc-map": 0.301936, "hashnet": 0.452904, "hashnet-caffe": 0.452904},
    **{"csq": 0.301936, "thulab": 0.452904, "orthohash": 0.307668, "fire": 0.307668, "fire-old": 0.461502},
    **{"treezzz": 0.293382, "calc-map-k": 0.301936, "pytorch-deephash": math.nan, "ratio-baseline": 0.301936},
    **{"ratio-baseline-flat": 0.289646, "callmap": 0.301936, "dtsh": 0.452904, "sdh": 0.301936, "deepbit": 0.301936},
    **{"perf10": 0.075484, "area-rp": 0.252222, "talr-ap": 0.264899, "talr-tieap": 0.445076, "mihash": 0.452904},
    **{"sklearn-ap": (0.657407 + 0.191667) / 3, "sklearn-lrap": 0.616358},
    **{"perf": 0.452904, "torchmetrics-map-less-d": 0, "torchmetrics-map-bits-less-d": 0.304890},
    **{
        "torchmetrics-map": 0.307668,
        "trec_eval": 0.289646,
        "trec_eval-unjudged": 0.434470,
        "ranx": 0.289646,
        "ranx-run": 0.301936,
    },
    **{"dsh": math.nan, "faiss-cumsum": 0.301936, "retrieval-map": 0.300878, "retrieval-map-bits-less-d": 0.294705},
}
FIRST_5 = {
    **{"calc-top-map": 0.233333, "hashnet": 0.7, "hashnet-caffe": 0.35, "csq": 0.233333, "thulab": 0.502778},
    **{"orthohash": 0.194444, "fire": 0.361111, "fire-old": 0.541667, "treezzz": 0.233333, "calc-map-k": 0.297099},
    **{"callmap": 0.233333, "deepbit": 0.233333, "talr-ap": 0.122222, "mihash-k": 0.7, "torchmetrics-map": 0.194444},
    **{"torchmetrics-map-less-d": 0, "torchmetrics-map-bits-less-d": 0.194444, "trec_eval-unjudged": 0.098148},
    **{"trec_eval": 0.065432, "ranx": 0.065432, "ranx-run": 0.077778},
    **{"faiss-cumsum": 0.233333, "retrieval-map": 0.244444, "retrieval-map-bits-less-d": 0.244444},
}
OTHERS = {
    "NDCG": {"talr-ndcg": 0.762701, "talr-tiendcg": 0.751591, "sklearn-ndcg": 0.418257},
    "NDCG@5": {"talr-ndcg": 0.538811, "sklearn-ndcg": 0.205364},
    "NDCG:trec": {"sklearn-ndcg-linear": 0.418257},
    "NDCG@5:trec": {"sklearn-ndcg-linear": 0.205364},
    "P@5": {
        **{"mihash-prec-k": 0.2, "rp5": 0.2, "deepbit-p": 0.2, "trec_eval-p": 0.2, "ksh": 0.2, "bihalf-p": 0.2},
        **{"calc-top-map-p": 0.3},
    },
    "R@5": {"csq-r": math.nan, "rp5-r": 3 / 12, "bihalf-r": 3 / 12},  # of twelve relevant pairs
    "P@r2": {
        **{"sdh-r2": 0.263889, "mihash-prec-n": 0.263889, "thulab-r2": 0.263889},
        **{"pytorch-deephash-r2": 0.263889, "bihalf-pr": 0.395833},
    },
    "R@r2": {"sdh-recall": 0.333333, "thulab-recall": math.nan, "bihalf-recall": 0.5},
}
CURVES = {  # from radius 0, or rank 1
    ("thulab-all", "P@r0"): [0.333333, 0.25, 0.281019, 0.295763, 0.301936],
    ("bihalf-pr", "P@r0"): [0.5, 0.5, 0.395833, 0.475, 0.5],
    ("bihalf-recall", "R@r0"): [0.111111, 0.222222, 0.5, 0.833333, 1],
    ("area-rp-p", "P@r0"): [0.333333, 0.2, 0.28, 0.333333, math.nan],  # the last radius is missing
    ("area-rp-r", "R@r0"): [0.083333, 0.166667, 0.583333, 0.916667],
    ("calc-top-map-p", "P@1"): [0.5, 0.25, 0.166667, 0.25, 0.3],
}


def explained(metrics, query=QUERY, database=DATABASE, labels=LABELS, scripts=EVALUATORS):
    affinity = SameLabel(*labels) if isinstance(labels, tuple) else labels
    return explain(pack(query), pack(database), query.shape[1], affinity, metrics, scripts)


def values(metric, **how):
    """Values of one metric by script; the list is cut for scripts that share the largest cut, as `fire` does."""
    found = explained([metric, *({"AP": [], "AP@5": ["AP"]}.get(metric, []))], **how)
    return {one.evaluator.name: one.value for one in found if one.metric == metric and one.evaluator.name not in _HERE}


def test_scripts_of_ap_give_what_their_originals_give_of_the_whole_list():
    assert values("AP") == pytest.approx(WHOLE, abs=1e-6, nan_ok=True)


def test_scripts_of_ap_give_what_their_originals_give_of_the_first_five():
    assert values("AP@5") == pytest.approx(FIRST_5, abs=1e-6)


@pytest.mark.parametrize("metric", OTHERS)
def test_scripts_of_other_metrics_give_what_their_originals_give(metric):
    found = values(metric)
    assert {name: found[name] for name in OTHERS[metric]} == pytest.approx(OTHERS[metric], abs=1e-6, nan_ok=True)


@pytest.mark.parametrize(("script", "first"), CURVES)
def test_scripts_of_curves_give_what_their_originals_give_at_every_point(script, first):
    expected = CURVES[script, first]
    points = [f"{first[:-1]}{int(first[-1]) + point}" for point in range(len(expected))]
    found = explained(points, scripts=[named(script)])
    assert [one.value for one in found] == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_curves_of_calc_top_map_are_of_queries_with_a_hit_above_the_cut():
    found = explained(["P@5", "R@5"], scripts=[named("calc-top-map-p-topk"), named("calc-top-map-r-topk")])
    assert [one.value for one in found] == pytest.approx([3 / 5, 3 / 9])  # of the first query alone
    first = QUERY[:1], DATABASE, (LABELS[0][:1], LABELS[1])
    for script, mean in (("calc-top-map-p", 0.636697), ("calc-top-map-r", 0.472222)):  # printed if one query is left
        metric = script[-1].upper()
        found = explained([f"{metric}@{rank}" for rank in range(1, 13)], *first, [named(script)])
        assert np.mean([one.value for one in found]) == pytest.approx(mean, abs=1e-6)


def test_the_bounds_of_talr_are_those_of_ties():
    for metric, low, high in (("NDCG", 0.721347, 0.783674), ("NDCG@5", 0.453352, 0.614018)):
        (one,) = explained([metric], scripts=[named("talr-ndcg")])
        assert one.its[1:] == pytest.approx((low, high), abs=1e-6)


def test_torchmetrics_does_not_shuffle_many_pairs():
    assert orders.by_ids(3, 8, 4096).tolist() == list(range(4096))
    shuffled = orders.by_ids(3, 8, 4095).tolist()
    assert shuffled != list(range(4095))
    assert sorted(shuffled) == list(range(4095))


def test_calc_map_k_takes_the_first_hits_wherever_they_stand():
    assert explained(["AP@2"], scripts=[named("calc-map-k")])[0].value == pytest.approx(0.314815, abs=1e-6)


def test_fire_cuts_five_alone_otherwise_than_five_beside_all():
    found = explained(["P@5", "Hit@5"], scripts=[named("fire-p"), named("fire-hit")])
    assert [one.value for one in found] == pytest.approx([0.133333, 0.333333], abs=1e-6)


def test_the_mean_of_pytorch_deephash_is_a_number_where_all_queries_have_relevant_items():
    found = explained(["AP", "P@r2"], QUERY[:2], labels=(LABELS[0][:2], LABELS[1]))
    by_name = {one.evaluator.name: one.value for one in found}
    assert by_name["pytorch-deephash"] == pytest.approx(0.452904, abs=1e-6)
    assert by_name["pytorch-deephash-r2"] == pytest.approx(0.395833, abs=1e-6)


def test_a_byte_that_differs_in_all_bits_counts_seven():
    database = bits("11111111 11111110")
    found = explained(["AP"], bits("00000000"), database, (np.array([1]), np.array([1, 0])))
    by_name = {one.evaluator.name: one for one in found}
    assert by_name["callmap"].value == 1
    assert by_name["dtsh"].value == 0.5
    assert [cause.words for cause in by_name["callmap"].causes] == [
        "a byte that differs in all bits counts 7",
        "tie order",
    ]


def test_where_nothing_is_relevant_to_any_query_what_divides_by_that_is_no_number():
    labels = np.full(3, 2), LABELS[1]
    found = {one.evaluator.name: one.value for one in explained(["AP"], labels=labels)}
    assert math.isnan(found["area-rp"])
    assert math.isnan(found["dtsh"])
    assert found["sdh"] == 0
    assert found["sklearn-lrap"] == 1


ORDERS = {  # as the originals call their sorts; those with up to 15 items look alike
    "numpy_scalar": "calc-top-map calc-map hashnet hashnet-caffe csq pytorch-deephash pytorch-deephash-p csq-r "
    "calc-top-map-p calc-top-map-p-topk calc-top-map-r calc-top-map-r-topk bihalf-p bihalf-r thulab-all",
    "numpy_here": "calc-top-map-here hashnet-here",
    "numpy_partition": "thulab",
    "torch_topk": "orthohash fire fire-old fire-p fire-hit torchmetrics-map torchmetrics-map-bits-less-d "
    "retrieval-map retrieval-map-bits-less-d",
    "libstdcxx": "treezzz calc-map-k",
    "stable": "ratio-baseline callmap dtsh sdh deepbit perf10 perf talr-ap mihash mihash-k talr-ndcg mihash-prec-k rp5 "
    "deepbit-p dsh faiss-cumsum ksh rp5-r",
    "descending": "ratio-baseline-flat trec_eval trec_eval-unjudged trec_eval-p trec_eval-r trec_eval-ndcg",
    "numba_reversed": "ranx ranx-burges ranx-ndcg",
    "numba_here": "ranx-run ranx-run-burges ranx-run-ndcg",
}
# those with the fault of hammingDist
OF_BYTES = "callmap sdh perf10 perf area-rp area-rp-p area-rp-r rp5 rp5-r sdh-r2 sdh-recall"
OF_INT8 = "mihash mihash-k mihash-prec-k"


def test_scripts_sort_and_measure_as_their_originals_do():
    orders_of = {name: order for order, names in ORDERS.items() for name in names.split()}
    assert {one.name: one.order.__name__ for one in EVALUATORS if one.order} == orders_of
    for names, distance in ((OF_BYTES, "bytes_of_seven"), (OF_INT8, "of_int8")):
        assert {one.name for one in EVALUATORS if one.distance.__name__ == distance} == set(names.split())


def test_every_script_says_what_was_read_of_it():
    for one in EVALUATORS:
        assert re.match(r"[\w.-]+/[\w.-]+@[0-9a-f]{7}[ ,(]|[\w-]+ \d+\.\d+", one.source), one.source


def test_similarities_of_8_bits_merge_the_nearest_and_the_farthest():
    database = np.arange(256) < np.array([[250], [200], [1], [3]])
    found = explained(["AP"], np.zeros((1, 256), bool), database, (np.array([1]), np.array([1, 0, 0, 1])))
    by_name = {one.evaluator.name: one.value for one in found}
    assert by_name["mihash"] == pytest.approx((1 / 2 + 2 / 3) / 2)  # in the order 1 3 250 200
    assert by_name["dtsh"] == pytest.approx((1 / 2 + 2 / 4) / 2)


def test_what_leaving_out_does_is_told_apart_from_the_order_of_ties():
    rng = np.random.default_rng(0)
    classes, labels = rng.integers(0, 4, 300), np.sort(rng.integers(0, 4, 300))
    query, database = np.eye(4, dtype=bool)[classes[:40]], np.eye(4, dtype=bool)[classes]
    found = {
        one.evaluator.name: {cause.words: cause.share for cause in one.causes}
        for one in explained(["AP@5"], query, database, (labels[:40], labels))
    }
    assert found["hashnet"]["tie order"] == found["hashnet-caffe"]["tie order"]
    assert found["hashnet"]["queries without hits left out"] > 0


def test_fire_sorts_for_the_largest_cut_that_it_is_asked_for_alone():
    (alone,) = explained(["P@5"], scripts=[named("fire-p")])
    beside = explained(["P@5", "NDCG", "R@12"], scripts=[named("fire-p"), named("talr-ndcg"), named("trec_eval-r")])
    assert alone.value == beside[0].value


def test_gains_that_no_script_has_are_refused():
    with pytest.raises(HashbenchError, match="NDCG:linear"):
        explained(["NDCG:linear"])


def test_gains_of_8_bits_end_at_126():
    labels = SharedLabels(np.ones((1, 10), np.uint8), np.array([[1] * 5 + [0] * 5, [1] * 10], np.uint8))
    found = {one.evaluator.name: one for one in explained(["NDCG"], bits("00"), bits("00 01"), labels)}
    assert found["talr-tiendcg"].value == pytest.approx(0.759124, abs=1e-6)
    assert found["talr-tiendcg"].ours.mean == pytest.approx(0.648828, abs=1e-6)


@pytest.mark.parametrize(
    ("order", "n_first", "expected"),
    [
        (
            *(orders.numpy_scalar, 40),
            "0 15 26 20 11 10 21 16 30 6 5 36 25 1 35 31 23 38 13 33 "
            "8 3 18 28 32 34 29 37 19 24 22 17 14 12 9 7 4 2 27 39",
        ),
        (
            *(orders.libstdcxx, 40),
            "1 36 35 31 30 26 25 21 20 16 15 11 10 5 0 6 8 28 3 23 "
            "33 18 38 13 34 39 2 32 37 4 29 27 24 22 7 19 17 9 14 12",
        ),
        (orders.torch_topk, 7, "26 15 16 20 21 25 31"),
    ],
    ids=["numpy", "libstdc++", "topk"],
)
def test_sorts_leave_ties_as_their_originals_do(order, n_first, expected):
    i = np.arange(40)
    assert " ".join(map(str, order((7 * i * i + 3 * i) % 5, n_first))) == expected


@settings(max_examples=60)
@given(st.integers(1, 300), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_every_order_is_sorted_and_has_each_row_once(n_items, n_keys, seed):
    rng = np.random.default_rng(seed)
    keys, n_first = rng.integers(0, n_keys, n_items), int(rng.integers(1, n_items + 1))
    for order in (orders.numpy_scalar, orders.libstdcxx, orders.torch_topk, orders.numpy_partition, orders.descending):
        rows = order(keys, n_first)
        assert keys[rows[:n_first]].tolist() == np.sort(keys)[:n_first].tolist()
        assert len(set(rows.tolist())) == len(rows) >= n_first


METRICS = "AP", "AP@7", "NDCG@7", "NDCG:trec", "P@7", "R@7", "Hit@1", "P@r2", "R@r1"


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from(METRICS))
def test_causes_sum_to_the_difference_and_values_lie_in_the_range_of_ties(seed, n_items, metric):
    rng = np.random.default_rng(seed)
    query, database = rng.random((5, 6)) < 0.5, rng.random((n_items, 6)) < 0.5
    labels = rng.integers(0, 3, 5), rng.integers(0, 2, n_items)
    exact = evaluate(query, database, labels, [metric]).summary[metric]
    for one in explained([metric], query, database, labels):
        assert one.ours == pytest.approx(exact[:3], abs=1e-12, nan_ok=True)
        if math.isnan(one.difference):
            continue
        assert sum(cause.share for cause in one.causes) == pytest.approx(one.difference, abs=1e-12)
        if not one.evaluator.own:
            assert one.its.low - 1e-12 <= one.value <= one.its.high + 1e-12, one


@given(st.floats(0, 1), st.lists(st.floats(-1, 1) | st.floats(-3e-4, 3e-4), max_size=5))
def test_what_is_shown_adds_up(exact, shares):
    (one,) = explained(["AP"], scripts=[named("dtsh")])
    causes = tuple(Cause(f"cause {number}", share) for number, share in enumerate(shares))
    shown = replace(one, value=exact + sum(shares), ours=Range(exact, 0, 1), causes=causes)
    head, *lines = format_explanations([shown], "table").splitlines()
    rows = [line.split() for line in lines if line.strip() and line.split()[0] in ("dtsh", "cause")]
    (_, value, difference), *of_which = rows
    exact_shown = float(re.search(r"exactly (\S+),", head)[1])
    assert exact_shown + float(difference) == pytest.approx(float(value), abs=1e-9)
    assert sum(float(row[-1]) for row in of_which) == pytest.approx(float(difference), abs=1e-9)
    for row in of_which:
        assert float(row[-1]) == pytest.approx(shares[int(row[1])], abs=1e-4)


def test_tables_fit_a_terminal():
    found = explained(["AP", "AP@5", *OTHERS, "Hit@5"])
    for text in (format_explanations(found, "table"), format_answers(answers(found, "0.233"), "0.233", "table")):
        assert max(map(len, text.splitlines())) <= 80


def test_a_known_number_tells_which_scripts_give_it():
    found = {one.explanation.evaluator.name: one.verdict for one in answers(explained(["AP@5", "AP"]), "0.233")}
    assert found["deepbit"] == "not"  # of the whole list, which comes last
    found = {
        one.explanation.evaluator.name: one.verdict
        for one in answers(explained(["AP@5"], scripts=[named("csq"), named("orthohash"), named("trec_eval")]), "23.3")
    }
    assert found == {"csq": "gives", "orthohash": "could", "trec_eval": "not"}


def test_metrics_that_no_script_gives_are_refused():
    with pytest.raises(HashbenchError, match="no script that is known here gives RR"):
        explained(["RR"])


def test_a_quantity_of_its_own_may_be_another_in_another_order_of_ties():
    (found,) = answers(explained(["AP@5"], scripts=[named("talr-ap")]), "0.75")
    assert found.verdict == "unknown"


@pytest.mark.parametrize("printed", ["1", "0.5", "0"])
def test_a_number_of_few_digits_says_too_little(printed):
    with pytest.raises(HashbenchError, match="says too little: give two digits behind the point"):
        answers(explained(["AP"]), printed)


@pytest.mark.parametrize("printed", ["x", "-1", "nan", "101"])
def test_what_is_no_score_is_refused(printed):
    with pytest.raises(HashbenchError, match=r"expected a score such as 0\.731, or 73\.1 in percent"):
        answers(explained(["AP"]), printed)
