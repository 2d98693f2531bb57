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
from hashbench.scoring.comparison import (
    SeedVariance,
    compare,
    holm,
    interval,
    moments,
    of_means,
    of_scores,
)
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
    degrees = len(a) - 1, len(b) - 1
    if len(a) != len(b):
        degrees = (min(degrees) * parts[0] / sum(parts), min(degrees) * parts[1] / sum(parts))  # the fewer of both
    squares = v_query**2 / (n_queries - 1) + sum(part**2 / few for part, few in zip(parts, degrees, strict=True))
    freedom = (v_query + sum(parts)) ** 2 / squares
    half = t.ppf(0.975, freedom) * math.sqrt(variance)
    return value, value - half, value + half, 2 * t.sf(abs(value) / math.sqrt(variance), freedom)


@settings(max_examples=20)
@given(st.integers(3, 5), st.integers(3, 5), st.integers(2, 12), st.integers(0, 2**32 - 1))
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
    means = rng.normal(0.7, 0.01, 4), rng.normal(0.69, 0.03, 4)
    found, theirs = of_means(*means, "AP", OURS_AND_CSQ, 30, 0.0), ttest_ind(*means, equal_var=False)
    interval = theirs.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((theirs.pvalue, interval.low, interval.high))
    fixed = of_means(means[0], np.array([0.69]), "AP", OURS_AND_CSQ, 30, 0.0, ["csq"])
    assert fixed.p == pytest.approx(ttest_1samp(means[0], 0.69).pvalue)
    assert fixed.n_seeds == (4, 0)


@pytest.mark.parametrize(
    ("n_first", "n_second", "seed_sd", "interaction"), [(3, 3, 0.02, 0.05), (5, 5, 0, 0.2), (3, 10, 0.02, 0.05)]
)
def test_two_trainings_of_one_method_differ_by_chance(n_first, n_second, seed_sd, interaction):
    rng = np.random.default_rng(0)
    alarms = [
        difference(*(draw(rng, n, 50, seed_sd, interaction) for n in (n_first, n_second))).is_shown for _ in range(200)
    ]
    assert np.mean(alarms) < 0.08  # a paired test of the means over seeds: up to .8


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
    noise = rng.normal(0, 0.4, (2, 3, 1))
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


ABOVE = "ours is above csq by 0.0101 AP (95 % interval -0.0180 to 0.0380"
NOT_SHOWN = "the difference is not statistically shown"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            f"{ABOVE} over 200 queries and 3 seeds each, 4.3 degrees of freedom, p = 0.4): {NOT_SHOWN} for other "
            "queries and seeds. About 11 seeds each would show a true difference of this size about half of the time.",
        ),
        (
            {"n_seeds": (3, 0), "n_seeds_needed": 1001},
            f"{ABOVE} over 200 queries and 3 seeds of ours, 4.3 degrees of freedom, p = 0.4): {NOT_SHOWN} for other "
            "queries and seeds. More than 1,000 seeds of ours would show a true difference of this size about half of "
            "the time.",
        ),
        (
            {"metric": "PairwiseError", "p": 0.01, "n_seeds": (3, 5)},
            "ours is above csq by 0.0101 PairwiseError (95 % interval -0.0180 to 0.0380 over 200 queries and 3 seeds "
            "of ours and 5 seeds of csq, 4.3 degrees of freedom, p = 0.01): the difference is statistically shown for "
            "other queries and seeds. Lower is better.",
        ),
        (
            {"value": 0.0, "low": -0.02, "high": 0.02, "p": 1.0},
            "ours and csq do not differ in the mean of AP (95 % interval -0.0200 to 0.0200 over 200 queries and 3 "
            "seeds each, 4.3 degrees of freedom).",
        ),
        (
            {"value": -3e-6, "low": -0.02, "high": 0.02, "n_seeds": (0, 0), "basis": "queries", "freedom": 1999.0},
            "ours is below csq by less than 0.0001 AP (95 % interval -0.0200 to 0.0200 over 200 queries, 1,999 degrees "
            f"of freedom, p = 0.4): {NOT_SHOWN} for these codes.",
        ),
        (
            {"n_seeds_needed": None},
            f"{ABOVE} over 200 queries and 3 seeds each, 4.3 degrees of freedom, p = 0.4): {NOT_SHOWN} for other "
            "queries and seeds. No number of seeds would show a difference of this size on as many queries.",
        ),
        (
            {"n_seeds": (1, 3), "n_equal_seeds": (4, 0), "basis": "queries", "n_distinct": 150},
            f"{ABOVE} over 200 queries, 150 of them distinct, 4.3 degrees of freedom, p = 0.4): {NOT_SHOWN} for these "
            "codes. A claim about the methods needs at least 3 seeds of ours. The 4 seeds of ours have the same scores "
            "and count as one.",
        ),
        (
            {"n_seeds": (1, 1), "basis": "queries", "are_runs": True},
            f"{ABOVE} over 200 queries, 4.3 degrees of freedom, p = 0.4): {NOT_SHOWN} for these systems.",
        ),
        (
            {"are_runs": True, "n_distinct": 150, "freedom": 1.0},
            f"{ABOVE} over 200 queries, 150 of them distinct, and 3 runs each, 1 degree of freedom, p = 0.4): "
            f"{NOT_SHOWN} for other queries and runs.",
        ),
        (
            {"basis": "seeds"},
            f"{ABOVE} over 3 seeds each, 4.3 degrees of freedom, p = 0.4): {NOT_SHOWN} on these queries.",
        ),
        (
            {"p": 0.01, "p_holm": 0.07, "n_clusters": 10},
            f"{ABOVE} over 200 queries of 10 classes and 3 seeds each, 4.3 degrees of freedom, corrected p = 0.07): "
            f"{NOT_SHOWN} for other classes and seeds.",
        ),
        (
            {"p": math.nan, "n_seeds": (0, 0), "basis": "seeds"},
            "ours is above csq by 0.0101 AP on these queries: neither method draws anything at random, so there is "
            "nothing random to test over. A test over queries needs the scores of single queries: run or save both "
            "here.",
        ),
        (
            {"p": math.nan, "n_seeds": (0, 1), "basis": "seeds", "n_equal_seeds": (0, 3), "metric": "PairwiseError"},
            "ours is above csq by 0.0101 PairwiseError on these queries: the difference cannot be tested, as csq "
            "has one seed and the scores of single queries are not kept here. Run or save both here, so that "
            "queries are compared. The 3 seeds of csq have the same scores and count as one. Lower is better.",
        ),
        (
            {"p": math.nan, "n_seeds": (3, 0), "basis": "seeds"},
            "ours is above csq by 0.0101 AP on these queries: the difference cannot be tested, as all seeds have the "
            "same AP.",
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
        freedom=4.3,
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


@pytest.mark.parametrize(("n_queries", "is_shown"), [(2, False), (5, False), (6, True)])
def test_equal_differences_have_no_interval_and_are_tested_by_their_signs(n_queries, is_shown):
    found = difference(QUERIES[None, :n_queries] + 0.1, QUERIES[None, :n_queries])
    assert (found.p, found.is_shown) == (binomtest(n_queries, n_queries).pvalue, is_shown)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    verdict = "statistically shown" if is_shown else "not statistically shown"
    reason = f"(no interval over {n_queries} queries, as all differences are equal, p = {found.p:.3g})"
    assert str(found).startswith(f"ours is above csq by 0.1000 AP {reason}: the difference is {verdict} for these")


# ---------------------------------------------------------------- what cannot be tested, and what counts once


@pytest.mark.parametrize(
    ("first", "second", "draws_nothing", "are_equal", "n_seeds"),
    [
        ([0.9], [0.2], ["ours", "csq"], (False, False), (0, 0)),
        ([0.9, 0.9, 0.9], [0.2], ["csq"], (True, False), (1, 0)),  # as ksh beside sign on digits
        ([0.9, 0.9, 0.9], [0.2], ["csq"], (False, False), (3, 0)),  # which differ in another metric
        ([0.9, 0.8, 0.7], [0.2], [], (False, False), (3, 1)),
        ([0.9, 0.9, 0.9], [0.2, 0.2, 0.2], [], (True, True), (1, 1)),
        ([0.9, 0.9], [0.9, 0.9], [], (False, False), (2, 2)),
    ],
)
def test_without_degrees_of_freedom_nothing_is_tested(first, second, draws_nothing, are_equal, n_seeds):
    sides = np.array(first), np.array(second)
    found = of_means(*sides, "AP", OURS_AND_CSQ, 200, 0.0, draws_nothing, are_equal=are_equal)
    assert found.value == pytest.approx(np.mean(first) - np.mean(second))
    assert found.n_seeds == n_seeds
    assert np.isnan([found.p, found.low, found.high, found.freedom]).all()
    assert (found.is_tested, found.is_shown) == (False, False)
    assert "p = " not in str(found)
    assert np.isnan(interval(0.7, 0.0, 0.0)[2])


def test_a_draw_saved_as_three_seeds_is_one_seed():
    rng = np.random.default_rng(0)
    one, other = draw(rng, 1, 200, 0.05)[0], draw(rng, 1, 200, 0.05)[0]
    (found,) = compare([evaluation(one) for _ in range(3)], [evaluation(other) for _ in range(3)]).values()
    assert (found.basis, found.n_seeds, found.n_equal_seeds) == ("queries", (1, 1), (3, 3))
    assert found.is_shown  # which three seeds each would say of the methods
    assert "for these codes. A claim about the methods needs at least 3 seeds of" in str(found)
    assert "The 3 seeds of the second have the same scores and count as one." in str(found)
    other_metric = [replace(evaluation(one), scores=evaluation(one).scores | more.scores) for more in _others(3)]
    differing = compare(other_metric, [evaluation(row) for row in draw(rng, 3, 200)])["AP"]
    assert differing.n_seeds == (3, 3)  # equal AP, but other codes
    fixed = compare([evaluation(one) for _ in range(3)], evaluation(other), draws_nothing=["the first", "the second"])
    assert (fixed["AP"].n_seeds, fixed["AP"].n_equal_seeds) == ((0, 0), (0, 0))


def _others(n_seeds):
    return [evaluation(np.full(200, 0.1 * seed), "P@1") for seed in range(n_seeds)]


def test_queries_given_twenty_times_count_once():
    rng = np.random.default_rng(5)
    labels, items = rng.integers(0, 3, 15), rng.integers(0, 3, 300)
    codes = [(rng.random((15, 12)) < 0.5, rng.random((300, 12)) < 0.5) for _ in range(2)]
    once, repeated = (
        compare(*(hashbench.evaluate(q[rows], d, (labels[rows], items), ["AP"]) for q, d in codes))["AP"]
        for rows in (np.arange(15), np.tile(np.arange(15), 20))
    )
    assert (repeated.value, repeated.p, repeated.low) == pytest.approx((once.value, once.p, once.low))
    assert (once.n_distinct, repeated.n_distinct, repeated.n_queries) == (None, 15, 300)
    assert "over 300 queries, 15 of them distinct, 14 degrees of freedom" in str(repeated)
    scores = [evaluation(np.tile(rng.random(15), 20)) for _ in range(2)]  # of which no codes are known
    assert compare(*scores)["AP"].n_distinct is None
    single = [hashbench.evaluate(q[[0, 0]], d, (labels[[0, 0]], items), ["AP"]) for q, d in codes]
    with pytest.raises(HashbenchError, match="AP is defined for 1 distinct query; an interval needs two or more"):
        compare(*single)


@pytest.mark.parametrize("n_seeds", [(2, 10), (10, 2), (2, 2), (2, 0)])
def test_two_seeds_say_nothing_about_a_method(n_seeds):
    rng = np.random.default_rng(0)
    found = difference(*(draw(rng, max(n, 1), 50, 0.1) for n in n_seeds), n_seeds)
    assert found.basis == "queries"
    assert "for these codes. A claim about the methods needs at least 3 seeds of" in str(found)


def test_a_known_variance_of_seeds_takes_the_place_of_that_of_the_seeds():
    rng = np.random.default_rng(0)
    first, second = draw(rng, 3, 60), draw(rng, 1, 60)
    known = SeedVariance(0.0004, 20.0), SeedVariance(0.0009, 14.5)
    found = of_scores(first, second, "AP", OURS_AND_CSQ, (3, 1), 0.0, seed_variances=known)
    assert found.basis == "queries and seeds"
    of_queries = (first.mean(axis=0) - second[0]).var(ddof=1) / 60
    parts, degrees = np.array([of_queries, 0.0004 / 3, 0.0009]), np.array([59, 20, 14.5])
    assert found.freedom == pytest.approx(parts.sum() ** 2 / (parts**2 / degrees).sum())
    means = of_means(first.mean(axis=1), second.mean(axis=1), "AP", OURS_AND_CSQ, 60, 0.0, seed_variances=known)
    assert means.freedom == pytest.approx(parts[1:].sum() ** 2 / (parts[1:] ** 2 / degrees[1:]).sum())
    half = (means.high - means.low) / 2
    assert half == pytest.approx(t.ppf(0.975, means.freedom) * math.sqrt(parts[1:].sum()))
    assert means.n_seeds == (3, 1)
    sides = [evaluation(row) for row in first], evaluation(second[0])
    assert compare(*sides, names=OURS_AND_CSQ, seed_variances=known)["AP"].low == pytest.approx(found.low)
    assert found.n_seeds_needed is None or found.n_seeds_needed > 1
    both = [replace(one, scores=one.scores | {"RR": one.scores["AP"]}) for one in (*sides[0], sides[1])]
    with pytest.raises(HashbenchError, match="seed_variances are of one metric, got AP, RR; choose one in metrics"):
        compare(both[:3], both[3], seed_variances=known)


def test_metrics_are_chosen_by_any_name():
    both = [
        replace(evaluation(QUERIES), scores=evaluation(QUERIES).scores | evaluation(row, "RR").scores)
        for row in (QUERIES, QUERIES[::-1])
    ]
    assert [*compare(*both)] == ["AP", "RR"]
    assert [*compare(*both, metrics=["mAP"])] == ["AP"]


def test_runs_are_compared_as_systems_by_the_names_of_their_queries():
    rng = np.random.default_rng(0)
    qrels = {f"q{n}": {"a": 1, "b": n % 2} for n in range(9)}
    runs = [{q: dict(zip("abcd", rng.random(4).tolist(), strict=True)) for q in qrels} for _ in range(2)]
    one, other = (hashbench.evaluate_run(run, qrels, ["AP"]) for run in runs)
    found = compare(one, other, names=OURS_AND_CSQ)["AP"]
    assert str(found).endswith("statistically shown for these systems.")
    turned = hashbench.evaluate_run(runs[1], dict(reversed(qrels.items())), ["AP"])
    assert turned.queries != other.queries
    again = compare(one, turned, names=OURS_AND_CSQ)["AP"]
    assert (again.value, again.p, again.tie_sd) == pytest.approx((found.value, found.p, found.tie_sd))
    fewer = hashbench.evaluate_run({q: runs[1][q] for q in list(qrels)[1:]} | {"x": {"a": 1}}, qrels | {"x": {"a": 1}})
    with pytest.raises(HashbenchError, match="name different queries; a comparison needs the same"):
        compare(one, fewer)


def evaluation(values, name="AP", queries=None):
    scores = np.asarray(values, dtype=float)
    return Evaluation({name: Scores(scores, scores, scores, 0 * scores)}, int(np.isnan(scores).sum()), queries)


ONE = evaluation(QUERIES)
NAMED = [evaluation(QUERIES, queries=[f"{letter}{i}" for i in range(8)]) for letter in "ab"]


@pytest.mark.parametrize(
    ("first", "second", "options", "complaint"),
    [
        (evaluation([0.5]), evaluation([0.4]), {}, "AP is defined for 1 query; an interval needs two or more."),
        (evaluation([np.nan] * 2), evaluation([np.nan] * 2), {}, "AP is defined for 0 queries; an interval needs two"),
        (evaluation([0.5, 0.4]), ONE, {}, "of 2 and 8 queries; a comparison needs the same queries"),
        (evaluation([0.5, np.nan]), evaluation([np.nan, 0.1]), {}, "AP is defined for different queries of the first"),
        ([evaluation(QUERIES), ONE], [ONE], {}, "hold the same evaluation; give those of two methods"),
        (ONE, [], {}, "there is no evaluation of the second; give one for each seed"),
        (ONE, evaluation(QUERIES, "RR"), {}, "have no metric in common"),
        (*NAMED, {}, "name different queries"),
        (ONE, "itq", {}, "the second is a str; give what `evaluate` returns, or a list of it."),
        (ONE, {"AP": 0.5}, {}, "the second is a dict; give what `evaluate` returns"),
        (ONE, [0.5, 0.4], {}, "the second holds a float; give what `evaluate` returns for each seed."),
        (ONE, 2 * [evaluation(QUERIES)], {}, "the second holds an evaluation twice; give that of each seed once."),
        (ONE, evaluation(QUERIES), {"names": ("a",)}, r"names must be those of the two methods, got \('a',\)."),
        (ONE, evaluation(QUERIES), {"names": "ab"}, "names must be those of the two methods, got 'ab'."),
        (ONE, evaluation(QUERIES), {"draws_nothing": ["pcha"]}, r"a list of the first or the second, got \['pcha'\]."),
        (ONE, evaluation(QUERIES), {"draws_nothing": "the second"}, "a list of the first or the second, got 'the sec"),
        (ONE, evaluation(QUERIES), {"clusters": [0, 1]}, r"clusters have shape \(2,\); give a label for each of the 8"),
        (ONE, evaluation(QUERIES), {"metrics": ["P@1"]}, "not all evaluations have scores in P@1; choose from AP"),
    ],
)
def test_what_does_not_compare_is_refused(first, second, options, complaint):
    with pytest.raises(HashbenchError, match=complaint):
        compare(first, second, **options)


def test_a_shuffle_moves_a_difference_by_less_than_both_methods():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60), rng.integers(0, 3, 300)
    codes = [(rng.random((60, 8)) < 0.5, rng.random((300, 8)) < 0.5) for _ in range(2)]
    codes[1][0][:, :6], codes[1][1][:, :6] = codes[0][0][:, :6], codes[0][1][:, :6]  # six bits in common
    both = [hashbench.evaluate(*pair, labels, ["AP", "P@20"], random_orders=200) for pair in codes]
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
