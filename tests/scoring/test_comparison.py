"""Differences of two methods against the formulas written out, simulated samples, and sentences word by word."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, t, ttest_1samp, ttest_ind

import hashbench
from hashbench import HashbenchError
from hashbench.scoring.comparison import compare, holm, moments, of_means, of_scores
from hashbench.scoring.evaluation import Evaluation, arrays_of, evaluation_of
from hashbench.scoring.metrics import Scores

OURS_AND_CSQ = ("ours", "csq")


def draw(rng, n_seeds, n_queries=200, seed_sd=0.01, interaction=0.05, level=0.7):
    of_seeds = rng.normal(0, seed_sd, n_seeds)[:, None]
    return level + of_seeds + rng.normal(0, interaction, (n_seeds, n_queries))


def difference(first, second, n_seeds=None, clusters=None):
    return of_scores(first, second, "AP", OURS_AND_CSQ, n_seeds or (len(first), len(second)), 0.0, clusters)


def written_out(a, b):
    """The interval as the model has it, sum by sum."""
    n_queries = a.shape[1]
    d = [float(np.mean(a[:, q]) - np.mean(b[:, q])) for q in range(n_queries)]
    value = sum(d) / n_queries
    v_query = sum((x - value) ** 2 for x in d) / (n_queries - 1) / n_queries
    parts, both = [], 0.0
    for x in (a, b):
        n_seeds = len(x)
        means = [float(np.mean(row)) for row in x]
        parts.append(sum((m - np.mean(means)) ** 2 for m in means) / (n_seeds - 1) / n_seeds)
        residual = sum(
            (x[s, q] - means[s] - np.mean(x[:, q]) + np.mean(x)) ** 2 for s in range(n_seeds) for q in range(n_queries)
        )
        both += residual / ((n_seeds - 1) * (n_queries - 1)) / (n_seeds * n_queries)
    variance = max(v_query + sum(parts) - both, v_query, sum(parts))
    squares = v_query**2 / (n_queries - 1) + sum(part**2 / (len(x) - 1) for part, x in zip(parts, (a, b), strict=True))
    freedom = (v_query + sum(parts)) ** 2 / squares
    half = t.ppf(0.975, freedom) * math.sqrt(variance)
    return value, value - half, value + half, 2 * t.sf(abs(value) / math.sqrt(variance), freedom)


@settings(max_examples=20)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_interval_and_p_are_those_of_the_model(n_first, n_second, n_queries, seed):
    rng = np.random.default_rng(seed)
    first, second = draw(rng, n_first, n_queries), draw(rng, n_second, n_queries)
    found = difference(first, second)
    assert (found.value, found.low, found.high, found.p) == pytest.approx(written_out(first, second))


def test_one_seed_each_is_the_paired_t_test_and_means_of_seeds_are_welchs():
    rng = np.random.default_rng(0)
    first, second = draw(rng, 1, 30, level=0.72), draw(rng, 1, 30)
    found, theirs = difference(first, second), ttest_1samp((first - second)[0], 0)
    interval = theirs.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((theirs.pvalue, interval.low, interval.high))
    means = rng.normal(0.7, 0.01, 4), rng.normal(0.69, 0.03, 3)
    found, theirs = of_means(*means, "AP", OURS_AND_CSQ, 30, 0.0), ttest_ind(*means, equal_var=False)
    interval = theirs.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((theirs.pvalue, interval.low, interval.high))
    fixed = of_means(means[0], np.array([0.69]), "AP", OURS_AND_CSQ, 30, 0.0, ["csq"])
    assert fixed.p == pytest.approx(ttest_1samp(means[0], 0.69).pvalue)
    assert fixed.n_seeds == (4, 0)


@pytest.mark.parametrize("n_seeds", [2, 3])
@pytest.mark.parametrize(("seed_sd", "interaction"), [(0, 0.05), (0.02, 0.05), (0.02, 0.2)])
def test_two_trainings_of_one_method_differ_by_chance(n_seeds, seed_sd, interaction):
    rng = np.random.default_rng(0)
    alarms = [
        difference(*(draw(rng, n_seeds, 100, seed_sd, interaction) for _ in range(2))).is_shown for _ in range(200)
    ]
    assert np.mean(alarms) < 0.09  # a paired test of the means over seeds: up to .8


def test_alike_queries_count_as_their_classes():
    rng = np.random.default_rng(0)
    first, second = draw(rng, 3, 40), draw(rng, 3, 40)
    of_each = np.repeat(first, 5, axis=1), np.repeat(second, 5, axis=1)
    classes = np.repeat(np.arange(40), 5)
    repeated, single = difference(*of_each, clusters=classes), difference(first, second)
    assert (repeated.value, repeated.low, repeated.high) == pytest.approx((single.value, single.low, single.high))
    assert repeated.n_clusters == 40
    assert difference(*of_each).high < repeated.high
    assert moments(first, second, np.arange(40)) == moments(first, second)


def test_seeds_that_are_said_to_be_needed_show_a_difference_of_this_size():
    rng = np.random.default_rng(3)
    seeds = 0.02 * np.array([[-1], [0], [1]])  # whose deviation is that of those drawn below
    few = difference(0.015 + seeds + draw(rng, 3, 400, 0), seeds + draw(rng, 3, 400, 0))
    assert not few.is_shown
    assert few.n_seeds_needed > 3
    shown = [
        difference(
            *(draw(rng, few.n_seeds_needed, 400, 0.02, level=level) for level in (0.7 + few.value, 0.7))
        ).is_shown
        for _ in range(60)
    ]
    assert 0.35 < np.mean(shown) < 0.65


def test_only_queries_decide_whether_any_number_of_seeds_would_do():
    rng = np.random.default_rng(3)
    queries = rng.normal(0, 0.05, 400)
    noise = rng.normal(0, 0.4, (2, 2, 1))
    noise -= noise.mean(axis=1, keepdims=True)
    never = difference(0.502 + noise[0] + queries, 0.5 + noise[1] + 0 * queries)
    late = difference(0.512 + noise[0] + queries, 0.5 + noise[1] + 0 * queries)
    assert never.n_seeds_needed is None
    assert 1000 < late.n_seeds_needed < 10**7
    assert "More than 1,000 seeds each" in str(late)


def test_one_seed_of_a_method_leaves_seeds_out_altogether():
    rng = np.random.default_rng(0)
    first, second = draw(rng, 5, 60, seed_sd=0.1), draw(rng, 1, 60)
    found, theirs = difference(first, second), ttest_1samp(first.mean(axis=0) - second[0], 0)
    interval = theirs.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((theirs.pvalue, interval.low, interval.high))
    assert found.basis == "queries"
    several = draw(rng, 3, 60, seed_sd=0.1)  # of a method that draws nothing
    fixed, once = (difference(first, side, (5, 0)) for side in (several, several.mean(axis=0, keepdims=True)))
    assert (fixed.low, fixed.high) == pytest.approx((once.low, once.high))


QUERIES = np.linspace(0.2, 0.9, 8)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 200 queries and 3 seeds each, p = "
            "0.4): the difference is not statistically shown. About 11 seeds each would show a true difference of "
            "this size about half of the time.",
        ),
        (
            {"n_seeds": (3, 0), "n_seeds_needed": 1001},
            "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 200 queries and 3 seeds of ours, p "
            "= 0.4): the difference is not statistically shown. More than 1,000 seeds of ours would show a true "
            "difference of this size about half of the time.",
        ),
        (
            {"metric": "PairwiseError", "p": 0.01},
            "ours is above csq by 0.0101 PairwiseError (95 % interval -0.0180 to 0.0380 over 200 queries and 3 seeds "
            "each, p = 0.01): the difference is statistically shown. Lower is better.",
        ),
        (
            {"value": 0.0, "low": -0.02, "high": 0.02, "p": 1.0},
            "ours and csq do not differ in the mean of AP (95 % interval -0.0200 to 0.0200 over 200 queries and 3 "
            "seeds each).",
        ),
        (
            {"value": -3e-6, "low": -0.02, "high": 0.02, "n_seeds": (0, 0), "basis": "queries"},
            "ours is below csq by less than 0.0001 AP (95 % interval -0.0200 to 0.0200 over 200 queries, p = 0.4): "
            "the difference is not statistically shown for these codes.",
        ),
        (
            {"n_seeds_needed": None},
            "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 200 queries and 3 seeds each, p = "
            "0.4): the difference is not statistically shown. No number of seeds would show a difference of this size"
            " on as many queries.",
        ),
        (
            {"value": -0.0101, "p": 0.01, "n_seeds": (3, 5)},
            "ours is below csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 200 queries and 3 seeds of ours and"
            " 5 seeds of csq, p = 0.01): the difference is statistically shown.",
        ),
        (
            {"n_seeds": (1, 0), "basis": "queries", "n_queries": 1500},
            "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 1,500 queries, p = 0.4): the "
            "difference is not statistically shown for these codes. A claim about the methods needs several seeds of "
            "ours.",
        ),
        (
            {"n_seeds": (0, 0), "basis": "queries"},
            "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 200 queries, p = 0.4): the "
            "difference is not statistically shown for these codes.",
        ),
        (
            {"basis": "seeds"},
            "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 3 seeds each, p = 0.4): the "
            "difference is not statistically shown on these queries.",
        ),
        (
            {"p": 0.01, "p_holm": 0.07, "n_clusters": 10},
            "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380 over 200 queries of 10 classes and 3 "
            "seeds each, corrected p = 0.07): the difference is not statistically shown.",
        ),
    ],
)
def test_the_sentence_says_what_is_shown(changes, sentence):
    found = hashbench.Difference(
        names=OURS_AND_CSQ,
        metric="AP",
        value=0.0101,
        low=-0.018,
        high=0.038,
        p=0.4,
        tie_sd=0.001,
        n_queries=200,
        n_seeds=(3, 3),
        basis="queries and seeds",
        n_seeds_needed=11,
    )
    assert str(replace(found, **changes)) == sentence


def test_equal_scores_have_no_difference_and_equal_differences_no_spread():
    same = difference(QUERIES[None], QUERIES[None])
    assert (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)
    assert str(same) == "ours and csq have the same AP on every query."
    seeds = np.full(3, 0.5)
    assert str(of_means(seeds, seeds, "AP", OURS_AND_CSQ, 8, 0.0)) == (
        "ours and csq do not differ in the mean of AP (no interval over 3 seeds each, as all seeds are equal)."
    )


@pytest.mark.parametrize(("n_queries", "is_shown"), [(2, False), (5, False), (6, True)])
def test_equal_differences_have_no_interval_and_are_tested_by_their_signs(n_queries, is_shown):
    found = difference(QUERIES[None, :n_queries] + 0.1, QUERIES[None, :n_queries])
    assert (found.p, found.is_shown) == (binomtest(n_queries, n_queries).pvalue, is_shown)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    verdict = "statistically shown" if is_shown else "not statistically shown"
    reason = f"(no interval over {n_queries} queries, as all differences are equal, p = {found.p:.3g})"
    assert str(found).startswith(f"ours is above csq by 0.1000 AP {reason}: the difference is {verdict} for these")
    seeds = np.full(5, 0.5)
    equal = of_means(seeds + 0.1, seeds, "AP", OURS_AND_CSQ, 8, 0.0)
    assert (equal.p, math.isnan(equal.low)) == (1, True)
    assert "(no interval over 5 seeds each, as all seeds are equal, p = 1): the difference is not stat" in str(equal)


def evaluation(values, name="AP", queries=None):
    scores = np.asarray(values, dtype=float)
    return Evaluation({name: Scores(scores, scores, scores, 0 * scores)}, int(np.isnan(scores).sum()), queries)


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ([0.5], [0.4], "AP is defined for 1 query; an interval needs two or more."),
        ([0.5, 0.4], [0.4, 0.3, 0.1], "of 2 and 3 queries; a comparison needs the same queries"),
        ([0.5, 0.4, np.nan], [0.4, np.nan, 0.1], "AP is defined for different queries of ours and csq"),
        ([np.nan, np.nan], [np.nan, np.nan], "AP is defined for 0 queries; an interval needs two or more."),
    ],
)
def test_what_does_not_compare_is_refused(first, second, complaint):
    with pytest.raises(HashbenchError, match=complaint):
        compare(evaluation(first), evaluation(second), names=OURS_AND_CSQ)


def test_evaluations_that_do_not_fit_are_refused():
    one = evaluation(QUERIES)
    other = evaluation(QUERIES)
    with pytest.raises(HashbenchError, match="hold the same evaluation; give those of two methods"):
        compare([other, one], [one])
    with pytest.raises(HashbenchError, match="there is no evaluation of the second; give one for each seed"):
        compare(one, [])
    with pytest.raises(HashbenchError, match="have no metric in common"):
        compare(one, evaluation(QUERIES, "RR"))
    named = [evaluation(QUERIES, queries=[f"{letter}{i}" for i in range(8)]) for letter in "ab"]
    with pytest.raises(HashbenchError, match="name different queries"):
        compare(*named)


@pytest.mark.parametrize(
    ("second", "options", "complaint"),
    [
        ("itq", {}, "the second is a str; give what `evaluate` returns, or a list of it."),
        ({"AP": 0.5}, {}, "the second is a dict; give what `evaluate` returns"),
        ([0.5, 0.4], {}, "the second holds a float; give what `evaluate` returns for each seed."),
        (2 * [evaluation(QUERIES)], {}, "the second holds an evaluation twice; give that of each seed once."),
        (None, {"names": ("a",)}, r"names must be those of the two methods, got \('a',\)."),
        (None, {"names": "ab"}, "names must be those of the two methods, got 'ab'."),
        (None, {"draws_nothing": ["pcha"]}, r"a list of the first or the second, got \['pcha'\]."),
        (None, {"draws_nothing": "the second"}, "a list of the first or the second, got 'the second'."),
        (None, {"clusters": [0, 1]}, r"clusters have shape \(2,\); give a label for each of the 8 queries."),
        (None, {"clusters": np.ones((8, 2))}, r"clusters have shape \(8, 2\); give a label for each of the 8 queries."),
    ],
)
def test_what_is_no_evaluation_name_or_label_is_refused(second, options, complaint):
    with pytest.raises(HashbenchError, match=complaint):
        compare(evaluation(QUERIES), evaluation(QUERIES) if second is None else second, **options)


def test_a_shuffle_moves_a_difference_by_less_than_both_methods():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60), rng.integers(0, 3, 300)
    codes = [(rng.random((60, 8)) < 0.5, rng.random((300, 8)) < 0.5) for _ in range(2)]
    codes[1][0][:, :6], codes[1][1][:, :6] = codes[0][0][:, :6], codes[0][1][:, :6]  # six bits in common
    both = [hashbench.evaluate(*pair, labels, ["AP", "P@20"], random_orders=300) for pair in codes]
    for name, found in compare(*both).items():
        measured = (both[0].random_orders[name] - both[1].random_orders[name]).std(ddof=1)
        assert 0.85 * measured < found.tie_sd <= sum(each.summary[name].tie_sd for each in both)
        assert found.tie_sd < 1.6 * measured


def test_evaluations_of_other_data_are_refused_and_their_items_told_apart():
    rng = np.random.default_rng(1)
    query, database = rng.random((40, 8)) < 0.5, rng.random((300, 8)) < 0.5
    labels, items = rng.integers(0, 3, 40), rng.integers(0, 3, 300)
    one = hashbench.evaluate(query, database, (labels, items), ["AP"])
    complaint = "have other relevant items for .* queries, the first in row 0; a comparison needs the same"
    with pytest.raises(HashbenchError, match=complaint):
        compare(one, hashbench.evaluate(query, database, ((labels + 1) % 3, items), ["AP"]))
    with pytest.raises(HashbenchError, match=complaint):  # which cached scores know too
        compare(one, evaluation_of(arrays_of(hashbench.evaluate(query, database, (labels, 2 - items), ["AP"])), ["AP"]))
    order = rng.permutation(300)
    turned = hashbench.evaluate(query, database[order], (labels, items[order]), ["AP"])
    as_outputs = hashbench.evaluate(query * 2.0 - 1, database * 2.0 - 1, (labels, items), ["AP"], distance="cosine")
    assert compare(one, turned)["AP"].tie_sd == pytest.approx(2 * one["AP"].tie_sd)  # whose items are others
    assert compare(one, as_outputs)["AP"].tie_sd < one["AP"].tie_sd  # the same items, which have the same effect


@pytest.mark.parametrize("distance", ["hamming", "cosine"])
def test_queries_in_another_order_are_refused_though_classes_have_equal_numbers_of_items(distance):
    labels = np.arange(12) % 3
    codes = np.random.default_rng(0).random((12, 8)) < 0.5
    outputs = codes if distance == "hamming" else 2.0 * codes - 1
    orders = labels, np.sort(labels)
    cached, other = (hashbench.evaluate(outputs, outputs, (of, labels), ["AP"], distance=distance) for of in orders)
    matrix = hashbench.evaluate(outputs, outputs, labels[:, None] == labels, ["AP"], distance=distance)
    for one in (cached, evaluation_of(arrays_of(cached), ["AP"])):
        assert compare(one, matrix)["AP"].value == 0
        with pytest.raises(HashbenchError, match="have other relevant items for 10 queries, the first in row 1; "):
            compare(one, other)


def test_items_of_runs_are_recognised_by_name():
    runs = [{q: {f"{letter}{i}": float(i // 2) for i in range(8)} for q in "xy"} for letter in "ab"]
    qrels = {q: {name: 1 for run in runs for name in list(run[q])[: 3 + (q == "y")]} for q in "xy"}
    one, same, other = (hashbench.evaluate_run(run, qrels, ["AP"]) for run in (runs[0], dict(runs[0]), runs[1]))
    effects = [each.order_effects["AP"].items.tolist() for each in (one, same, other)]
    assert effects[0] == effects[1]
    assert not {*effects[0]} & {*effects[2]}


# ---------------------------------------------------------------- several comparisons


def holm_in_words(p_values):
    """Step down from the smallest p value, one test fewer each time; never below an earlier one."""
    ranked = sorted(range(len(p_values)), key=lambda position: p_values[position])
    corrected, floor = [0.0] * len(p_values), 0.0
    for rank, position in enumerate(ranked):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[position]))
        corrected[position] = floor
    return corrected


def test_holm_returns_the_numbers_computed_by_hand():
    # sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, which may not fall below its predecessor's 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.05, 0.3, 0.9, 1.0]), max_size=12))
def test_holm_steps_down_from_the_smallest(p_values):
    assert holm(p_values).tolist() == pytest.approx(holm_in_words(p_values))
