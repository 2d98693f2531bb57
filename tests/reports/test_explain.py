"""Scoring scripts: worked examples that their originals were run on, and the sums of causes."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from helpers.script_values import explained, values_of
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench import evaluate
from hashbench.affinity import Explicit, SameLabel, SharedLabels
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.reports.explain.answers import answer_records, answers, explanation_records
from hashbench.reports.explain.emulation import Cause, TieRange, shapley_values
from hashbench.reports.explain.ranking import Query
from hashbench.reports.explain.scripts import EVALUATORS, named
from hashbench.scoring.ignored import WithoutEqualKeys


def bits(text):
    return np.array([[digit == "1" for digit in code] for code in text.split()])


QUERY = bits("0110 1001 0101")
DATABASE = bits("0001 1100 1011 0011 0110 1110 0011 0110 0100 0101 1011 1010")
LABELS = np.array([0, 1, 2]), np.array([0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0])  # nothing is relevant to the last query
EXAMPLE = QUERY, DATABASE, LABELS
# fmt: off
ORIGINALS = {  # by metric, what the original scripts give
    "AP": {
        "calc-top-map": 0.293382, "calc-map": 0.301936, "hashnet": 0.452904, "hashnet-caffe": 0.452904,
        "csq": 0.301936, "thulab": 0.452904, "orthohash": 0.307668, "fire": 0.307668, "fire-old": 0.461502,
        "treezzz": 0.293382, "calc-map-k": 0.301936, "pytorch-deephash": math.nan, "ratio-baseline": 0.301936,
        "ratio-baseline-flat": 0.289646, "callmap": 0.301936, "dtsh": 0.452904, "sdh": 0.301936, "deepbit": 0.301936,
        "perf10": 0.075484, "area-rp": 0.252222, "talr-ap": 0.264899, "talr-tieap": 0.445076, "mihash": 0.452904,
        "sklearn-ap": (0.657407 + 0.191667) / 3, "sklearn-lrap": 0.616358, "perf": 0.452904, "dsh": math.nan,
        "torchmetrics-map": 0.307668, "torchmetrics-map-less-d": 0, "torchmetrics-map-bits-less-d": 0.304890,
        "trec_eval": 0.289646, "trec_eval-unjudged": 0.434470, "ranx-here": 0.289646, "ranx-run-here": 0.301936,
        "faiss-cumsum": 0.301936, "retrieval-map": 0.300878, "retrieval-map-bits-less-d": 0.294705,
        "oxford-paris": 0.411012,
    },
    "AP@5": {
        "calc-top-map": 0.233333, "hashnet": 0.7, "hashnet-caffe": 0.35, "csq": 0.233333, "thulab": 0.502778,
        "orthohash": 0.194444, "fire": 0.361111, "fire-old": 0.541667, "treezzz": 0.233333, "calc-map-k": 0.297099,
        "callmap": 0.233333, "deepbit": 0.233333, "talr-ap": 0.122222, "mihash-k": 0.7, "torchmetrics-map": 0.194444,
        "torchmetrics-map-less-d": 0, "torchmetrics-map-bits-less-d": 0.194444, "trec_eval-unjudged": 0.098148,
        "trec_eval": 0.065432, "ranx-here": 0.065432, "ranx-run-here": 0.077778, "faiss-cumsum": 0.233333,
        "retrieval-map": 0.244444, "retrieval-map-bits-less-d": 0.244444,
        "mteb-binary": 0.088889, "mteb-binary-dot": 0.112963,
    },
    "NDCG": {"talr-ndcg": 0.762701, "talr-tiendcg": 0.751591, "sklearn-ndcg": 0.418257},
    "NDCG@5": {"talr-ndcg": 0.538811, "sklearn-ndcg": 0.205364},
    "NDCG:trec": {"sklearn-ndcg-linear": 0.418257},
    "NDCG@5:trec": {
        "sklearn-ndcg-linear": 0.205364, "mteb-binary-ndcg": 0.245630, "mteb-binary-dot-ndcg": 0.314198,
    },
    "P@5": {
        "mihash-prec-k": 0.2, "rp5": 0.2, "deepbit-p": 0.2, "trec_eval-p": 0.2, "ksh": 0.2, "bihalf-p": 0.2,
        "calc-top-map-p": 0.3, "pytorch-deephash-p": 0.2, "mteb-binary-p": 0.3, "mteb-binary-dot-p": 0.4,
    },
    "R@5": {  # of twelve relevant pairs
        "csq-r": math.nan, "rp5-r": 3 / 12, "bihalf-r": 3 / 12, "mteb-binary-r": 1 / 6, "mteb-binary-dot-r": 1 / 3,
    },
    "P@r2": {
        "sdh-r2": 0.263889, "mihash-prec-n": 0.263889, "thulab-r2": 0.263889, "pytorch-deephash-r2": 0.263889,
        "bihalf-pr": 0.395833, "bihalf-pairs-p": 0.28,
    },
    "R@r2": {"sdh-recall": 0.333333, "thulab-recall": math.nan, "bihalf-recall": 0.5},
}
# fmt: on
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


@pytest.mark.parametrize("metric", ORIGINALS)
def test_scripts_give_what_their_originals_give(metric):
    expected = ORIGINALS[metric]
    metrics = ["AP", metric] if metric == "AP@5" else [metric]  # `fire` sorts for the largest cut
    values = values_of(explained(metrics, *EXAMPLE), metric)
    if metric.startswith("AP"):
        assert values.keys() == expected.keys()
    assert {name: values[name] for name in expected} == pytest.approx(expected, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize(("script", "first"), CURVES)
def test_scripts_of_curves_give_what_their_originals_give_at_every_point(script, first):
    expected = CURVES[script, first]
    points = [f"{first[:-1]}{int(first[-1]) + point}" for point in range(len(expected))]
    values = [explanation.value for explanation in explained(points, *EXAMPLE, [script])]
    assert values == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_csq_leaves_out_queries_without_labels_and_counts_labelled_ones_without_relevant_items_as_0():
    # queries: labels of an item; a label that no item has; no label
    codes, labels = np.eye(3, 8, dtype=bool), np.eye(3, 4, dtype=bool)
    queries, of_queries = codes[[0, 1, 2]], np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    values = values_of(explained(["AP"], queries, codes, SharedLabels(of_queries, labels), ["csq", "calc-map"]), "AP")
    assert values == pytest.approx({"csq": 1 / 2, "calc-map": 1 / 3})
    for other, recall in ((1, np.nan), (2, 1)):
        rows = [0, other]
        (explanation,) = explained(["R@1"], queries[rows], codes, SharedLabels(of_queries[rows], labels), ["csq-r"])
        assert explanation.value == pytest.approx(recall, nan_ok=True)


def test_curves_of_calc_top_map_are_of_queries_with_a_hit_above_the_cut():
    explanations = explained(["P@5", "R@5"], *EXAMPLE, ["calc-top-map-p-topk", "calc-top-map-r-topk"])
    assert [explanation.value for explanation in explanations] == pytest.approx([3 / 5, 3 / 9])  # of the first query
    first = QUERY[:1], DATABASE, (LABELS[0][:1], LABELS[1])
    for script, mean in (("calc-top-map-p", 0.636697), ("calc-top-map-r", 0.472222)):  # printed if one query is left
        metric = script[-1].upper()
        explanations = explained([f"{metric}@{rank}" for rank in range(1, 13)], *first, [script])
        assert np.mean([explanation.value for explanation in explanations]) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(("metric", "low", "high"), [("NDCG", 0.721347, 0.783674), ("NDCG@5", 0.453352, 0.614018)])
def test_the_bounds_of_talr_are_those_of_ties(metric, low, high):
    (explanation,) = explained([metric], *EXAMPLE, ["talr-ndcg"])
    assert explanation.script_range[1:] == pytest.approx((low, high), abs=1e-6)


def test_oxford_and_paris_average_the_precisions_before_and_at_each_hit():
    # hits at ranks 1 and 4: (1 + 1) / 2, and (1/3 + 2/4) / 2; the last item is ignored, and would be between them
    example = bits("0000"), bits("0000 0001 0011 0111 0001"), Explicit(np.array([[1, 0, 0, 1, -1]]))
    (explanation,) = explained(["AP"], *example, ["oxford-paris"])
    assert explanation.value == pytest.approx((1 + 5 / 12) / 2)
    assert [cause.words for cause in explanation.causes] == ["mean of the precisions before and at a hit"]
    assert explanation.exact.mean == pytest.approx((1 + 2 / 4) / 2)


def test_fire_sorts_for_the_largest_of_its_own_cuts():
    values = values_of(explained(["P@5", "Hit@5"], *EXAMPLE, ["fire-p", "fire-hit"]))
    assert values == pytest.approx({"fire-p": 0.133333, "fire-hit": 0.333333}, abs=1e-6)


def test_a_byte_that_differs_in_all_bits_counts_seven():
    example = bits("00000000"), bits("11111111 11111110"), (np.array([1]), np.array([1, 0]))
    callmap, dtsh = explained(["AP"], *example, ["callmap", "dtsh"])
    assert (callmap.value, dtsh.value) == (1, 0.5)
    assert [cause.words for cause in callmap.causes] == ["a byte that differs in all bits counts 7", "tie order"]


def test_what_divides_by_relevant_items_is_nan_if_there_are_none():
    values = values_of(explained(["AP"], QUERY, DATABASE, (np.full(3, 2), LABELS[1])))
    assert math.isnan(values["area-rp"])
    assert math.isnan(values["dtsh"])
    assert (values["sdh"], values["sklearn-lrap"]) == (0, 1)


def test_every_script_names_its_source():
    for script in EVALUATORS:
        assert re.match(r"[\w.-]+/[\w.-]+@[0-9a-f]{7}[ ,(]|[\w-]+ \d+\.\d+", script.source), script.source


def test_similarities_of_8_bits_merge_the_nearest_and_the_farthest():
    database = np.arange(256) < np.array([[250], [200], [1], [3]])
    values = values_of(explained(["AP"], np.zeros((1, 256), bool), database, (np.array([1]), np.array([1, 0, 0, 1]))))
    assert values["mihash"] == pytest.approx((1 / 2 + 2 / 3) / 2)  # in the order 1 3 250 200
    assert values["dtsh"] == pytest.approx((1 / 2 + 2 / 4) / 2)


@pytest.mark.parametrize("n_bits", [3, 8, 50])
def test_cosines_and_dots_of_0_1_vectors_tie_as_fractions_do(n_bits):
    code, *database = (np.random.default_rng(n_bits).random((61, n_bits)) < 0.4) * (np.arange(61) != 7)[:, None]
    query = Query(pack(code[None])[0], pack(np.array(database)), n_bits, np.zeros(60, int), 0, np.array([60]))
    dots = [Fraction(int((code & item).sum())) for item in database]
    squares = [dot**2 / max(int(item.sum()), 1) for dot, item in zip(dots, database, strict=True)]
    for distance, similarities in (("dot_of_bits", dots), ("cosine_of_bits", squares)):
        ranks = [sorted({*similarities}, reverse=True).index(one) for one in similarities]
        assert np.unique(query.keys(distance), return_inverse=True)[1].tolist() == ranks


@pytest.mark.parametrize(("n_bits", "radius", "n_inside"), [(64, 2, 2), (256, 63, 0), (256, 64, 4)])
def test_radii_of_8_bits_end_at_63(n_bits, radius, n_inside):
    distances = np.array([1, 2, 60, 70] if n_bits > 70 else [1, 2, 60])
    labels = np.array([1]), np.array([1, 0, 0, 0])[: len(distances)]
    example = np.zeros((1, n_bits), bool), np.arange(n_bits) < distances[:, None], labels
    (explanation,) = explained([f"P@r{radius}"], *example, ["mihash-prec-n"])
    assert explanation.value == (1 / n_inside if n_inside else 0)


WITHIN = "csq hashnet hashnet-caffe thulab orthohash fire fire-old callmap mihash-k faiss-cumsum"


@pytest.mark.parametrize(
    ("metrics", "taking", "refusing"),
    [  # of twelve items; fire needs a largest cut of two
        (["AP@13"], "calc-top-map treezzz deepbit talr-ap trec_eval", WITHIN),
        (["P@13"], "rp5 deepbit-p", "calc-top-map-p ksh"),
        (["R@13"], "rp5-r trec_eval-r", "csq-r bihalf-r"),
        (["AP@1", "P@1"], "csq", "orthohash fire fire-old fire-p"),
        (["AP@2", "P@1"], "orthohash fire fire-old fire-p", ""),
    ],
)
def test_scripts_are_asked_for_cuts_that_they_take(metrics, taking, refusing):
    scripts = values_of(explained(metrics, *EXAMPLE)).keys()
    assert scripts >= set(taking.split())
    assert not scripts & set(refusing.split())


def test_the_exact_ap_of_talr_leaves_out_the_last_queries_without_relevant_items():
    (explanation,) = explained(["AP"], QUERY, DATABASE, (np.array([2, 0, 2]), LABELS[1]), ["talr-tieap"])
    assert explanation.value == pytest.approx(explanation.exact.mean / 2)
    assert [cause.words for cause in explanation.causes] == ["without relevant items: 0, the last left out"]


def test_gains_of_8_bits_end_at_126():
    labels = SharedLabels(np.ones((1, 10), np.uint8), np.array([[1] * 5 + [0] * 5, [1] * 10], np.uint8))
    (explanation,) = explained(["NDCG"], bits("00"), bits("00 01"), labels, ["talr-tiendcg"])
    assert explanation.value == pytest.approx(0.759124, abs=1e-6)
    assert explanation.exact.mean == pytest.approx(0.648828, abs=1e-6)


# ---------------------------------------------------------------- causes


def one_class_per_code(n_items=300, n_queries=40):
    """Codes, one per class, with wrong labels among them; the database is sorted by label."""
    rng = np.random.default_rng(0)
    classes, labels = rng.integers(0, 4, n_items), np.sort(rng.integers(0, 4, n_items))
    query, database = np.eye(4, dtype=bool)[classes[:n_queries]], np.eye(4, dtype=bool)[classes]
    return query, database, (labels[:n_queries], labels)


def test_causes_have_their_mean_share_over_both_sequences_of_switching():
    example, script = one_class_per_code(), named("trec_eval")
    explanation, only_order = explained(["AP@5"], *example, [script, replace(script, divisor="retrieved")])
    only_divisor = evaluate(*example, ["AP@5:relevant"]).summary["AP@5:relevant"].mean
    none, both = explanation.exact.mean, explanation.value
    order = ((only_order.value - none) + (both - only_divisor)) / 2
    assert abs(order - (both - only_divisor)) > 0.01  # the sequence matters here
    assert {cause.words: cause.share for cause in explanation.causes} == pytest.approx(
        {"tie order": order, "divisor: all relevant items": both - none - order}
    )


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8))
def test_shares_of_three_switches_are_means_over_all_sequences(numbers):
    subsets = [frozenset(switches) for n in range(4) for switches in combinations("abc", n)]
    values = dict(zip(subsets, numbers, strict=True))
    expected = dict.fromkeys("abc", 0.0)
    for sequence in permutations("abc"):
        for place, switch in enumerate(sequence):
            before = frozenset(sequence[:place])
            expected[switch] += (values[before | {switch}] - values[before]) / 6
    assert shapley_values(values) == pytest.approx(expected, abs=1e-12)


METRICS = "AP", "AP@7", "NDCG@7", "NDCG:trec", "P@7", "R@7", "Hit@2", "P@r2", "R@r1"


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from(METRICS))
def test_causes_sum_to_the_difference_and_values_lie_in_the_range_of_ties(seed, n_items, metric):
    rng = np.random.default_rng(seed)
    query, database = rng.random((5, 6)) < 0.5, rng.random((n_items, 6)) < 0.5
    labels = SameLabel(rng.integers(0, 3, 5), rng.integers(0, 2, n_items))
    exact = evaluate(query, database, labels, [metric]).summary[metric]
    for explanation in explained([metric], query, database, labels):
        assert explanation.exact == pytest.approx(exact[:3], abs=1e-12, nan_ok=True)
        if math.isnan(explanation.difference):
            continue
        shares = sum(cause.share for cause in explanation.causes)
        assert shares == pytest.approx(explanation.difference, abs=1e-12)
        if not explanation.evaluator.own:
            bounds = explanation.script_range
            assert bounds.low - 1e-12 <= explanation.value <= bounds.high + 1e-12, explanation


# ---------------------------------------------------------------- queries that never find themselves


def items_that_are_queries(seed):
    """Codes, many of them equal, classes of several items each, and an order of the database."""
    rng = np.random.default_rng(seed)
    codes = (rng.random((9, 8)) < 0.5)[rng.integers(0, 9, 30)]
    return codes, rng.permutation(np.arange(30) % 5), rng.permutation(30)


@pytest.mark.parametrize("metric", ["AP@7", "NDCG@7", "P@r2"])
def test_without_themselves_queries_score_as_each_in_a_database_that_lacks_it(metric):
    codes, labels, order = items_that_are_queries(3)
    affinity = WithoutEqualKeys(SameLabel(labels, labels[order]), np.arange(30), order, excludes_self=True)
    together = explained([metric], codes, codes[order], affinity)
    one_by_one = []
    for query in range(30):
        rows = order[order != query]
        one_by_one.append(values_of(explained([metric], codes[[query]], codes[rows], (labels[[query]], labels[rows]))))
    of_all_queries = {"perf10", "area-rp", "area-rp-p", "bihalf-pairs-p", "bihalf-pr"}  # no means over queries
    by_hits = {script.name for script in EVALUATORS if script.mean == "leave_out_without_hits"}
    for explanation in together:
        script = explanation.evaluator
        if script.name in of_all_queries or script.item_order:
            continue
        values = [values[script.name] for values in one_by_one]
        expected = np.nanmean(values) if script.name in by_hits else np.mean(values)
        assert explanation.value == pytest.approx(expected, abs=1e-12), script.name


# ---------------------------------------------------------------- as text


@given(st.floats(0, 1), st.lists(st.floats(-1, 1) | st.floats(-3e-4, 3e-4), max_size=5))
def test_what_is_shown_adds_up(exact, shares):
    (explanation,) = explained(["AP"], *EXAMPLE, ["dtsh"])
    causes = tuple(Cause(f"cause {number}", share) for number, share in enumerate(shares))
    explanation = replace(explanation, value=exact + sum(shares), exact=TieRange(exact, 0, 1), causes=causes)
    head, *lines = explanation_records([explanation]).to_text("table").splitlines()
    rows = [line.split() for line in lines if line.split()[:1] == ["dtsh"] or " cause " in line]
    (_, value, difference), *cause_rows = rows
    exact_shown = float(re.search(r"exactly (\S+),", head)[1])
    assert exact_shown + float(difference) == pytest.approx(float(value), abs=1e-9)
    assert sum(float(row[-1]) for row in cause_rows) == pytest.approx(float(difference), abs=1e-9)
    for row in cause_rows:
        assert float(row[-1]) == pytest.approx(shares[int(row[2])], abs=1e-4)


@pytest.mark.parametrize(
    ("metric", "printed", "expected"),
    [
        ("AP@5", "23.3", {"csq": "gives", "orthohash": "could", "trec_eval": "not"}),
        ("AP", "0.233", {"deepbit": "not"}),
        ("AP@5", "0.75", {"talr-ap": "unknown"}),  # its own quantity, in another tie order
    ],
)
def test_a_known_number_shows_which_scripts_give_it(metric, printed, expected):
    verdicts = answers({"given": explained([metric], *EXAMPLE, list(expected))}, printed)
    assert {answer.explanation.evaluator.name: answer.verdict for answer in verdicts} == expected


@pytest.mark.parametrize("printed", ["0.5", "x", "nan", "101"])
def test_what_is_no_score_of_two_digits_or_more_is_refused(printed):
    with pytest.raises(HashbenchError, match=r"two decimals or more, such as 0\.731"):
        answers({}, printed)


def test_candidates_are_sorted_by_nearness_and_those_that_agree_are_one_line():
    given_order = explained(["AP@5"], *EXAMPLE, ["csq", "hashnet", "sklearn-ap", "deepbit", "thulab"])
    reversed_order = explained(["AP@5"], QUERY, DATABASE[::-1], (LABELS[0], LABELS[1][::-1]), ["csq"])
    verdicts = answers({"given": given_order, "shuffled": reversed_order}, "0.233")
    text = answer_records(verdicts, "0.233").to_text("markdown")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    values = {
        ("csq, deepbit", "AP@5, given"): 0.233333, ("hashnet", "AP@5, given"): 0.7,
        ("thulab", "AP@5, given"): 0.502778, ("csq", "AP@5, shuffled"): reversed_order[0].value,
        ("exact, by hashbench", "AP@5"): given_order[0].exact.mean,
    }  # fmt: skip
    near = sorted(values, key=lambda key: abs(values[key] - 0.233))
    assert [(row[0], row[1]) for row in rows[2:]] == near
    assert rows[2][2:] == ["0.2333", "gives it"]
    assert rows[-1][3] == f"{values[near[-1]] - 0.233:+.4f}"


# ---------------------------------------------------------------- CalcTopMap and AP@k: docs/metrics.md


@pytest.mark.parametrize("metric", ["AP@2", "AP@4"])
def test_calc_top_map_over_all_orders_of_tied_items_is_ap_at_k(metric):
    database, query = bits("00 00 01 01 10"), bits("00 11")
    levels = np.array([0, 1]), np.array([0, 1, 0, 1, 1])
    values = []
    for order in map(np.array, permutations(range(5))):
        (explanation,) = explained([metric], query, database[order], (levels[0], levels[1][order]), ["calc-top-map"])
        values.append(explanation.value)
    exact = evaluate(query, database, levels, [metric], undefined="paper").summary[metric]
    assert np.mean(values) == pytest.approx(exact.mean, abs=1e-12)
    assert exact.low - 1e-12 <= min(values) < exact.mean < max(values) <= exact.high + 1e-12
