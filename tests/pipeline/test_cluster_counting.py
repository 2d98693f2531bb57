import pickle
from functools import cache, reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from helpers import oracles
from helpers.affinity_examples import N_BITS, N_DATABASE, N_QUERIES, RULES, database, query
from helpers.score_assertions import assert_same_scores
from helpers.slices import Slices, in_slices
from helpers.thoroughness import ALL
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench import Problem, TieHistogram, compare, evaluate
from hashbench.affinity import Explicit, SameLabel
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import count_rows
from hashbench.scoring import counting
from hashbench.scoring.evaluation import DEFAULT_METRICS
from hashbench.scoring.ranking import evaluate_histogram

METRICS = ["AP", "AP@7", "AP@7:relevant", "NDCG:linear", "NDCG@9", "P@5", "P@r2", "RR", "RPrec", "PairwiseError"]


def summed(affinity, stops, queries=slice(None)):
    """Add up what each shard counts, in whatever process: all that goes there is pickled."""
    cuts = [slice(*pair) for pair in pairwise([0, *stops, N_DATABASE])]
    part = affinity.part(queries)
    calls = [pickle.dumps((pack(query[queries]), pack(database), N_BITS, part, rows)) for rows in cuts]
    return reduce(add, [count_rows(*pickle.loads(call)) for call in calls]).histogram


@cache
def of_one_array(rule):
    return evaluate(query, database, RULES[rule], METRICS)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=200 if ALL else 8)
@given(stops=st.sets(st.integers(1, N_DATABASE - 1), max_size=6).map(sorted))
def test_histograms_of_shards_add_up_to_that_of_the_whole_to_the_last_bit(rule, stops):
    histogram = summed(RULES[rule], stops)
    np.testing.assert_array_equal(histogram.levels, RULES[rule].levels)
    evaluation = evaluate_histogram(histogram, METRICS, undefined="skip")
    assert_same_scores(evaluation, of_one_array(rule))


@pytest.mark.parametrize("rule", RULES)
def test_shards_of_one_row_add_up_to_what_is_counted_pair_by_pair(rule):
    affinity = RULES[rule]
    distances = np.array(oracles.hamming_distances(query, database))
    levels = affinity.block(slice(0, N_QUERIES), slice(0, N_DATABASE))
    expected = TieHistogram.from_pairs(distances, levels, N_BITS, affinity.levels)
    histogram = summed(affinity, range(1, N_DATABASE))
    np.testing.assert_array_equal(histogram.counts, expected.counts)
    some = np.array([7, 0])  # of which the second has all labels
    np.testing.assert_array_equal(summed(affinity, [9, 10], some).counts, expected.counts[some])


@pytest.mark.parametrize("rule", RULES)
def test_scores_and_curves_of_a_database_in_slices_are_those_of_one_array(rule, monkeypatch):
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 7 * 8)
    problem = in_slices(pack(query), pack(database), N_BITS, RULES[rule])
    assert_same_scores(problem.evaluate(METRICS), of_one_array(rule))
    assert problem.evaluate(METRICS).summary == of_one_array(rule).summary
    paper = evaluate(query, database, RULES[rule], ["NDCG"], undefined="paper")
    assert_same_scores(problem.evaluate(["NDCG"], undefined="paper"), paper)
    assert problem.curves().equals(Problem.of_codes(query, database, RULES[rule]).curves())


@pytest.mark.parametrize("rule", RULES)
def test_metrics_that_need_the_whole_database_get_it_from_slices(rule):
    options = {"random_orders": 3}
    names = ["AP", "LGAP@r2"]
    expected = evaluate(query, database, RULES[rule], names, **options)
    found = in_slices(pack(query), pack(database), N_BITS, RULES[rule]).evaluate(names, **options)
    assert found.summary == expected.summary
    np.testing.assert_array_equal(found.random_orders["AP"], expected.random_orders["AP"])


def test_counting_reads_each_row_of_a_part_once():
    stored = Slices(pack(database))
    count_rows(pack(query), stored, N_BITS, RULES["dense"], slice(3, 20))
    assert stored.read == list(range(3, 20))


def test_real_levels_of_slices_score_as_those_of_one_array():
    gains = Explicit(np.random.default_rng(0).random((len(query), len(database))).round(2))
    codes = in_slices(pack(query), pack(database), N_BITS, gains)
    for names in (["NDCG", "NDCG:linear", "NDCG@5:trec"], DEFAULT_METRICS):
        assert codes.evaluate(names).summary == evaluate(query, database, gains, names).summary


def test_queries_that_repeat_are_counted_once_and_scored_each():
    some = np.random.default_rng(0).integers(0, 3, 40)
    affinity = RULES["shared-labels"].part(some)
    codes = in_slices(pack(query[some]), pack(database), N_BITS, affinity)
    assert_same_scores(codes.evaluate(METRICS), evaluate(query[some], database, affinity, METRICS))


def test_items_of_slices_are_recognised_by_their_rows_and_relevance():
    rng = np.random.default_rng(0)
    labels, items = np.repeat(np.arange(3), 4), rng.integers(0, 3, 60)
    bits = [(rng.random((12, 8)) < 0.5, rng.random((60, 8)) < 0.5) for _ in range(2)]
    bits[1][0][:, :6], bits[1][1][:, :6] = bits[0][0][:, :6], bits[0][1][:, :6]  # six bits in common

    def sharded(number, order=slice(None), words=False):
        query, database = bits[number]
        of_items = np.array(["ant", "bee", "cat"])[items[order]] if words else items[order]
        of_queries = np.array(["ant", "bee", "cat"])[labels] if words else labels
        return in_slices(pack(query), pack(database[order]), 8, SameLabel(of_queries, of_items)).evaluate(["AP"])

    both, whole = [sharded(0), sharded(1)], [evaluate(*codes, (labels, items), ["AP"]) for codes in bits]
    expected = compare(*whole)["AP"].tie_sd
    most = sum(each["AP"].tie_sd for each in both)
    assert compare(*both)["AP"].tie_sd == pytest.approx(expected)
    assert expected < 0.95 * most
    assert compare(both[0], sharded(1, words=True))["AP"].tie_sd == pytest.approx(expected)
    assert compare(both[0], whole[1])["AP"].tie_sd == pytest.approx(expected)
    other = sharded(1, np.roll(np.arange(60), 1))  # whose items are others
    assert compare(both[0], other)["AP"].tie_sd == pytest.approx(most)
    np.testing.assert_array_equal(both[0].alike, whole[0].alike)
    turned = in_slices(pack(bits[1][0]), pack(bits[1][1]), 8, SameLabel(labels[::-1], items)).evaluate(["AP"])
    with pytest.raises(HashbenchError, match="have other relevant items"):
        compare(both[0], turned)
