"""Scoring scripts: worked examples that their originals were run on, and the sums of causes."""

import math
import re
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench import evaluate
from hashbench.affinity import SameLabel, SharedLabels
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.reports.explain import orders
from hashbench.reports.explain.conventions import EMPTY
from hashbench.reports.explain.emulation import Cause, TieRange, explain, shapley_values
from hashbench.reports.explain.evaluators import EVALUATORS, named
from hashbench.reports.explain.explanation_text import answers, format_answers, format_explanations

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
        "ranx-here": 0.289646,
        "ranx-run-here": 0.301936,
    },
    **{"dsh": math.nan, "faiss-cumsum": 0.301936, "retrieval-map": 0.300878, "retrieval-map-bits-less-d": 0.294705},
}
FIRST_5 = {
    **{"calc-top-map": 0.233333, "hashnet": 0.7, "hashnet-caffe": 0.35, "csq": 0.233333, "thulab": 0.502778},
    **{"orthohash": 0.194444, "fire": 0.361111, "fire-old": 0.541667, "treezzz": 0.233333, "calc-map-k": 0.297099},
    **{"callmap": 0.233333, "deepbit": 0.233333, "talr-ap": 0.122222, "mihash-k": 0.7, "torchmetrics-map": 0.194444},
    **{"torchmetrics-map-less-d": 0, "torchmetrics-map-bits-less-d": 0.194444, "trec_eval-unjudged": 0.098148},
    **{"trec_eval": 0.065432, "ranx-here": 0.065432, "ranx-run-here": 0.077778},
    **{"faiss-cumsum": 0.233333, "retrieval-map": 0.244444, "retrieval-map-bits-less-d": 0.244444},
}
OTHERS = {
    "NDCG": {"talr-ndcg": 0.762701, "talr-tiendcg": 0.751591, "sklearn-ndcg": 0.418257},
    "NDCG@5": {"talr-ndcg": 0.538811, "sklearn-ndcg": 0.205364},
    "NDCG:trec": {"sklearn-ndcg-linear": 0.418257},
    "NDCG@5:trec": {"sklearn-ndcg-linear": 0.205364},
    "P@5": {
        **{"mihash-prec-k": 0.2, "rp5": 0.2, "deepbit-p": 0.2, "trec_eval-p": 0.2, "ksh": 0.2, "bihalf-p": 0.2},
        **{"calc-top-map-p": 0.3, "pytorch-deephash-p": 0.2},
    },
    "R@5": {"csq-r": math.nan, "rp5-r": 3 / 12, "bihalf-r": 3 / 12},  # of twelve relevant pairs
    "P@r2": {
        **{"sdh-r2": 0.263889, "mihash-prec-n": 0.263889, "thulab-r2": 0.263889},
        **{"pytorch-deephash-r2": 0.263889, "bihalf-pr": 0.395833, "bihalf-pairs-p": 0.28},
    },
    "R@r2": {"sdh-recall": 0.333333, "thulab-recall": math.nan, "bihalf-recall": 0.5},
}
CURVES = {  # from radius 0, or rank 1
    ("thulab-all", "P@r0"): [0.333333, 0.25, 0.281019, 0.295763, 0.301936],
    ("bihalf-pr", "P@r0"): [0.5, 0.5, 0.395833, 0.475, 0.5],
    ("bihalf-recall", "R@r0"): [0.111111, 0.222222, 0.5, 0.833333, 1],
    ("area-rp-p", "P@r0"): [0.333333, 0.2, 0.28, 0.333333, math.nan],  # the last radius is missing
    ("area-rp-r", "R@r0"): [0.083333, 0.166667, 0.583333, 0.916667, math.nan],
    ("bihalf-pairs-p", "P@r0"): [0.333333, 0.2, 0.28, 0.333333, math.nan],
    ("bihalf-pairs-r", "R@r0"): [0.083333, 0.166667, 0.583333, 0.916667, math.nan],
    ("pytorch-deephash-r2", "P@r3"): [math.nan, math.nan],  # all are inside for one query, then for all
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


def test_every_script_says_what_was_read_of_it():
    for one in EVALUATORS:
        assert re.match(r"[\w.-]+/[\w.-]+@[0-9a-f]{7}[ ,(]|[\w-]+ \d+\.\d+", one.source), one.source


def test_similarities_of_8_bits_merge_the_nearest_and_the_farthest():
    database = np.arange(256) < np.array([[250], [200], [1], [3]])
    found = explained(["AP"], np.zeros((1, 256), bool), database, (np.array([1]), np.array([1, 0, 0, 1])))
    by_name = {one.evaluator.name: one.value for one in found}
    assert by_name["mihash"] == pytest.approx((1 / 2 + 2 / 3) / 2)  # in the order 1 3 250 200
    assert by_name["dtsh"] == pytest.approx((1 / 2 + 2 / 4) / 2)


@pytest.mark.parametrize(("n_bits", "radius", "inside"), [(64, 2, [1, 2]), (256, 63, []), (256, 64, [1, 2, 60, 70])])
def test_radii_of_8_bits_end_at_63(n_bits, radius, inside):
    distances = np.array([1, 2, 60, 70] if n_bits > 70 else [1, 2, 60])
    database = np.arange(n_bits) < distances[:, None]
    labels = np.array([1]), np.array([1, 0, 0, 0])[: len(distances)]
    (one,) = explained([f"P@r{radius}"], np.zeros((1, n_bits), bool), database, labels, [named("mihash-prec-n")])
    assert one.value == (1 / len(inside) if inside else 0)


def test_cuts_beyond_the_database_are_for_those_that_take_what_there_is():
    found = explained(["AP@13", "P@13", "R@13"])
    given = {metric: {one.evaluator.name for one in found if one.metric == metric} for metric in ("AP@13", "P@13")}
    assert given["P@13"] == {"rp5", "deepbit-p", "pytorch-deephash-p"}
    assert given["AP@13"] >= {"calc-top-map", "csq", "treezzz", "deepbit", "talr-ap", "trec_eval"}
    refusing = "hashnet hashnet-caffe thulab orthohash fire fire-old callmap mihash-k faiss-cumsum"
    assert not given["AP@13"] & set(refusing.split())


def test_orthohash_takes_no_cut_of_one():
    assert "orthohash" not in values("AP@1")
    assert "orthohash" in values("AP@2")
    with pytest.raises(HashbenchError, match=r"ask for AP, AP@k, k from 2 within the database\.$"):
        explained(["AP@1"], scripts=[named("orthohash")])


def test_a_cut_beyond_the_database_is_refused_by_what_scripts_of_that_metric_take():
    for scripts in (EVALUATORS, [named("fire-hit"), named("csq")]):
        with pytest.raises(HashbenchError, match=r"gives? Hit@13 of 12 items; .*, k within the database\.$"):
            explained(["Hit@13"], scripts=scripts)


def test_queries_that_the_exact_ap_of_talr_forgets_are_told_from_those_that_it_counts_0():
    labels = np.array([2, 0, 2]), LABELS[1]
    (one,) = explained(["AP"], labels=labels, scripts=[named("talr-tieap")])
    assert one.value == pytest.approx(one.ours.mean / 2)
    assert [cause.words for cause in one.causes] == ["without relevant items: 0, the last left out"]


def one_class_per_code(n_items=300, n_queries=40):
    """Return codes, one per class, with wrong labels among them, the database sorted by label."""
    rng = np.random.default_rng(0)
    classes, labels = rng.integers(0, 4, n_items), np.sort(rng.integers(0, 4, n_items))
    query, database = np.eye(4, dtype=bool)[classes[:n_queries]], np.eye(4, dtype=bool)[classes]
    return query, database, (labels[:n_queries], labels)


def test_causes_have_their_mean_share_over_both_sequences_of_switching():
    script = named("trec_eval")
    (one,) = explained(["AP@5"], *one_class_per_code(), [script])
    (order_alone,) = explained(["AP@5"], *one_class_per_code(), [replace(script, divisor="retrieved")])
    divisor_alone = evaluate(*one_class_per_code(), ["AP@5:relevant"]).summary["AP@5:relevant"].mean
    none, both = one.ours.mean, one.value
    order = ((order_alone.value - none) + (both - divisor_alone)) / 2
    assert abs(order - (both - divisor_alone)) > 0.01  # the sequence matters here
    assert {cause.words: cause.share for cause in one.causes} == pytest.approx(
        {"tie order": order, "divisor: all relevant items": both - none - order}
    )


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8))
def test_shares_of_three_switches_are_means_over_all_sequences(numbers):
    subsets = [frozenset(some) for n in range(4) for some in combinations("abc", n)]
    values = dict(zip(subsets, numbers, strict=True))
    expected = dict.fromkeys("abc", 0.0)
    for sequence in permutations("abc"):
        for place, switch in enumerate(sequence):
            before = frozenset(sequence[:place])
            expected[switch] += (values[before | {switch}] - values[before]) / 6
    assert shapley_values(values) == pytest.approx(expected, abs=1e-12)


def test_leaving_out_queries_without_hits_has_a_share_beside_the_order_of_ties():
    found = {
        one.evaluator.name: {cause.words: cause.share for cause in one.causes}
        for one in explained(["AP@5"], *one_class_per_code())
    }
    assert set(found["hashnet"]) == {"queries without hits left out", "tie order"}
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
    shown = replace(one, value=exact + sum(shares), ours=TieRange(exact, 0, 1), causes=causes)
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
    assert max(map(len, (*EMPTY.values(), *(one.own for one in EVALUATORS)))) <= 44  # what the table leaves to causes


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
    with pytest.raises(HashbenchError, match="has too few digits"):
        answers(explained(["AP"]), printed)


@pytest.mark.parametrize("printed", ["x", "-1", "nan", "101"])
def test_what_is_no_score_is_refused(printed):
    with pytest.raises(HashbenchError, match=r"expected a score such as 0\.731, or 73\.1 in percent"):
        answers(explained(["AP"]), printed)


# ---------------------------------------------------------------- which metric of ours CalcTopMap is: docs/metrics.md


def calc_top_map(query, database, labels, metric):
    (found,) = explain(
        pack(query), pack(database), query.shape[1], SameLabel(*labels), [metric], [named("calc-top-map")]
    )
    return found.value


@pytest.mark.parametrize(("asked", "ours"), [("AP@5", "AP@5"), ("AP@100", "AP@100"), ("AP", "AP@16")])
def test_calc_top_map_without_ties_is_ap_at_k_by_the_papers_convention(asked, ours):
    database = np.tri(17, 16, -1, dtype=bool)[
        np.random.default_rng(0).permutation(17)
    ]  # at distances 0 to 16, each once
    query = np.repeat([[False] * 16], 4, axis=0)
    labels = np.array([0, 1, 2, 9]), np.arange(17) % 3  # nothing is relevant to the last query
    exact = evaluate(query, database, labels, [ours], undefined="paper").summary[ours]
    assert exact.low == exact.high
    assert calc_top_map(query, database, labels, asked) == pytest.approx(exact.mean, abs=1e-12)
    other = evaluate(query, database, labels, ["AP@5:relevant"], undefined="paper").summary["AP@5:relevant"]
    assert abs(other.mean - exact.mean) > 1e-3


@pytest.mark.parametrize("metric", ["AP@2", "AP@4"])
def test_calc_top_map_over_all_orders_of_tied_items_is_ap_at_k(metric):
    database, query = bits("00 00 01 01 10"), bits("00 11")
    levels = np.array([0, 1]), np.array([0, 1, 0, 1, 1])
    orders_of_it = [np.array(order) for order in permutations(range(5))]
    values = [calc_top_map(query, database[order], (levels[0], levels[1][order]), metric) for order in orders_of_it]
    exact = evaluate(query, database, levels, [metric], undefined="paper").summary[metric]
    assert np.mean(values) == pytest.approx(exact.mean, abs=1e-12)
    assert exact.low - 1e-12 <= min(values) < exact.mean < max(values) <= exact.high + 1e-12
