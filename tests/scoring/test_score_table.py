"""What random keys of the items explain of a mean over queries, against every order of a small database."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from helpers import oracles, thoroughness
from helpers.affinity_examples import LEVELS, RULES, database, query
from helpers.slices import in_slices
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

import hashbench
from hashbench.bits import pack
from hashbench.scoring import counting, item_sample
from hashbench.scoring.metrics import get_metric

NAMES = ["AP:ranked", "AP@3:retrieved", "AP@3:relevant", "AP@2:capped", "AP@R", "NDCG:exponential"]
NAMES += ["NDCG@3:exponential", "NDCG:linear", "NDCG@3:trec"]
NAMES += ["P@2", "R@3", "RPrec", "RR", "Hit@2", "PairwiseError"]


@cache
def orders_of(n_items):
    return np.array(list(permutations(range(n_items))))  # rank of each item


def score(name, ranked):
    metric = get_metric(name)
    return oracles.ORACLES[metric.family.pattern](ranked, *metric.arguments)


def over_every_order(name, distance, level, left_out=None):
    """Return the mean over queries in every order, (n_orders,), and its covariance with each item's key.

    Given the ranks of n uniform keys, the key of rank r has mean r / (n + 1).
    """
    ranks, means = orders_of(distance.shape[1]), []
    for keys in ranks:
        values = []
        for q, (row, levels) in enumerate(zip(distance, level, strict=True)):
            order = [i for i in np.lexsort((keys, row)) if left_out is None or i != left_out[q]]
            ranked = [levels[i].item() for i in order]
            if any(ranked):
                values.append(score(name, ranked))
        means.append(np.mean(values))
    means = np.array(means)
    covariance = ((means - means.mean())[:, None] * (ranks - ranks.mean(axis=0))).mean(axis=0)
    return means, covariance / (distance.shape[1] + 1)


def check(summary, name, means, covariance):
    assert summary.mean == pytest.approx(means.mean(), abs=1e-12), name
    explained = 12 * (covariance**2).sum()
    assert summary.tie_sd_low == pytest.approx(np.sqrt(explained), abs=1e-9), name
    assert summary.tie_sd_low <= means.std() + 1e-9, name
    assert means.std() <= summary.tie_sd_bound + 1e-9, name
    assert summary.tie_sd_low <= summary.tie_sd <= summary.tie_sd_bound + 1e-12, name


items = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=4, max_size=4)


@settings(max_examples=60 if thoroughness.ALL else 6)
@given(items, st.lists(st.integers(0, 2), min_size=2, max_size=3))
def test_bounds_are_those_of_every_order_of_the_database(database_items, classes):
    bits, labels = (np.array(part) for part in zip(*database_items, strict=True))
    if not np.isin(classes, labels).any():
        labels[0] = classes[0]
    queries, codes = np.array(classes)[:, None] % 2, bits[:, None]
    evaluation = hashbench.evaluate(queries, codes, (np.array(classes), labels), NAMES)
    distance, level = np.abs(queries - bits), np.equal.outer(classes, labels)
    for name in NAMES:
        check(evaluation.summary[name], name, *over_every_order(name, distance, level))


@pytest.mark.parametrize(
    ("name", "levels"),
    [*((name, [0, 0, 1, 3]) for name in NAMES), *((name, [0, 0.3, 1.75, 2]) for name in NAMES if "NDCG" in name)],
)
def test_graded_levels_and_cut_ties_have_those_bounds_too(name, levels):
    rng = np.random.default_rng(1)
    distance, level = rng.integers(0, 2, (3, 5)), rng.choice(levels, (3, 5))
    level[:, 0] = levels[2], levels[3], 0
    runs = {f"q{q}": {f"d{i}": -float(d) for i, d in enumerate(row)} for q, row in enumerate(distance)}
    qrels = {f"q{q}": {f"d{i}": value.item() for i, value in enumerate(row)} for q, row in enumerate(level)}
    means, covariance = over_every_order(name, distance, level)
    check(
        hashbench.evaluate_ranking(relevance=level, scores=-distance, metrics=[name]).summary[name],
        name,
        means,
        covariance,
    )
    if name not in ("NDCG:linear", "PairwiseError"):  # which a list out of a database does not have
        check(hashbench.evaluate_run(runs, qrels, [name]).summary[name], name, means, covariance)


@pytest.mark.parametrize("distance", ["hamming", "cosine"])
def test_items_that_are_left_out_of_their_own_rankings_have_those_bounds(distance):
    bits, labels = np.array([[0, 0], [0, 0], [0, 0], [1, 1], [0, 1]]), np.array([0, 0, 1, 1, 0])
    codes = bits if distance == "hamming" else 2.0 * bits - 1
    names = ["AP:ranked", "P@1", "NDCG@2", "RR"]
    evaluation = hashbench.evaluate(codes, codes, (labels, labels), names, exclude_self=True, distance=distance)
    hamming, level = cdist(bits, bits, "cityblock"), np.equal.outer(labels, labels)
    for name in names:
        check(evaluation.summary[name], name, *over_every_order(name, hamming, level, left_out=range(5)))


def test_lists_of_other_items_move_independently():
    rng = np.random.default_rng(0)
    level, scores = rng.integers(0, 2, (2, 30, 40))
    level[:, 0] = 1
    shared = hashbench.evaluate_ranking(relevance=level, scores=scores, metrics=["AP"])
    apart = hashbench.evaluate_ranking(
        relevance=[*level, [1, 0]], scores=[*scores, [1, 0]], metrics=["AP"]
    )  # of other lengths
    of_each = shared.scores["AP"].tie_sd
    assert apart.summary["AP"].tie_sd == pytest.approx(np.linalg.norm(of_each) / 31)
    alike = hashbench.evaluate_ranking(
        relevance=np.repeat(level[:1], 30, axis=0), scores=np.repeat(scores[:1], 30, axis=0), metrics=["AP"]
    )
    assert alike.summary["AP"].tie_sd_low > 0.8 * of_each[0]


METRICS = ["AP", "AP@7", "NDCG@9", "P@5", "RR"]


def numbers(evaluation):
    summaries = (evaluation.summary[name].by_name.values() for name in METRICS)
    return [value for values in summaries for value in values if value is not None]


@pytest.mark.parametrize("rule", RULES)
def test_sampled_items_are_the_same_whatever_the_order_of_the_database(rule, monkeypatch):
    monkeypatch.setattr(item_sample, "N_SAMPLED", 9)
    whole = hashbench.evaluate(query, database, RULES[rule], METRICS)
    order = np.random.default_rng(0).permutation(len(database))
    if rule in ("dense", "csr"):
        shuffled = hashbench.evaluate(query, database[order], LEVELS[rule][:, order], METRICS)
    else:
        shuffled = hashbench.evaluate(query, database[order], RULES[rule].part(slice(None), order), METRICS)
    assert numbers(shuffled) == numbers(whole)


@pytest.mark.parametrize("rule", RULES)
def test_sampled_items_of_large_databases_are_those_of_their_shards_and_blocks(rule, monkeypatch):
    monkeypatch.setattr(item_sample, "N_SAMPLED", 9)
    monkeypatch.setattr(item_sample, "_IN_ANY_ORDER", 0)
    whole = numbers(hashbench.evaluate(query, database, RULES[rule], METRICS))
    for n_rows in (7, 1000):
        monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * n_rows)
        codes = in_slices(pack(query), pack(database), query.shape[1], RULES[rule])
        assert numbers(codes.evaluate(METRICS)) == pytest.approx(whole, rel=1e-12)


def test_samples_of_parts_unite_to_that_of_the_whole(monkeypatch):
    monkeypatch.setattr(item_sample, "N_SAMPLED", 20)
    rng = np.random.default_rng(0)
    words, keys = rng.integers(0, 2**63, (300, 2), dtype=np.uint64), np.zeros((300, 1), np.int64)
    whole = item_sample.Sample.draw(words, keys, 0)
    parts = [item_sample.Sample.draw(words[:170], keys[:170], 0), item_sample.Sample.draw(words[170:], keys[170:], 170)]
    united = parts[0] + parts[1]
    assert united.n_items == 300
    np.testing.assert_array_equal(words[united.rows], united.words)
    assert len(np.unique(united.rows[united.chosen])) == 20
    np.testing.assert_array_equal(united.draws, whole.draws)
    np.testing.assert_array_equal(united.rows, whole.rows)


def test_the_estimate_of_a_sample_is_near_what_random_orders_show(monkeypatch):
    monkeypatch.setattr(item_sample, "N_SAMPLED", 300)
    images, labels = load_digits(return_X_y=True)
    codes = (images - images.mean(axis=0)) @ np.random.default_rng(1).normal(size=(64, 12)) > 0
    names = ["AP", "NDCG", "P@100", "RR"]
    relevance = labels[:100], labels[100:]
    evaluation = hashbench.evaluate(codes[:100], codes[100:], relevance, names, random_orders=150)
    for name in names:
        summary = evaluation.summary[name]
        assert summary.tie_sd == pytest.approx(summary.tie_sd_measured, rel=0.25), name


def test_metrics_that_do_not_know_single_items_keep_the_deviation_of_their_queries():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 3)), rng.normal(size=(90, 3))
    codes, labels = [part > 0 for part in vectors], (rng.integers(0, 3, 40), rng.integers(0, 3, 90))
    evaluation = hashbench.evaluate(*codes, labels, ["R@5:reranked=20"], vectors=vectors)
    summary, of_each = evaluation.summary["R@5:reranked=20"], evaluation.scores["R@5:reranked=20"].tie_sd
    by_kind = np.bincount(evaluation.kind, weights=of_each)
    assert summary.tie_sd == pytest.approx(np.linalg.norm(by_kind) / 40)
    assert summary.tie_sd_low == 0
