"""Re-ranked metrics against every choice of who of the cut tie enters, and every order of equal float distances."""

import itertools
import math
from functools import partial

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles, thoroughness
from scipy.spatial.distance import cdist
from scipy.stats import hypergeom

from hashbench import HashbenchError, evaluate
from hashbench.affinity import Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.bits import pack
from hashbench.scoring import counting, reranking
from hashbench.scoring.histogram import Candidates, TieHistogram
from hashbench.scoring.metrics import get_metric, reranked
from hashbench.scoring.problem import Problem
from hashbench.scoring.reranking import Vectors

LEVELS = [0, 1, 2, 5]
SCORES = {  # of the levels in order, those of the whole database, and the cutoff
    "R@{k}:reranked={m}": lambda ranked, all_levels, k: sum(v > 0 for v in ranked[:k]) / sum(v > 0 for v in all_levels),
    "P@{k}:reranked={m}": lambda ranked, all_levels, k: sum(v > 0 for v in ranked[:k]) / min(k, len(all_levels)),
    "NDCG@{k}:reranked={m}": lambda ranked, all_levels, k: (
        oracles.dcg(ranked, k) / oracles.dcg(sorted(all_levels, reverse=True), k)
    ),
    "AP@{k}:capped:reranked={m}": lambda ranked, all_levels, k: (
        precisions(ranked, k) / min(k, sum(v > 0 for v in all_levels))
    ),
    "AP@{k}:relevant:reranked={m}": lambda ranked, all_levels, k: (
        precisions(ranked, k) / sum(v > 0 for v in all_levels)
    ),
}


def precisions(ranked, k):
    return math.fsum(oracles.precision(ranked, rank) for rank in range(1, min(k, len(ranked)) + 1) if ranked[rank - 1])


def over_every_order(score, hamming, floats, levels, m):
    """Mean, extremes and deviation over who enters, each choice as likely, and over the orders of equal floats."""
    items = sorted(range(len(levels)), key=lambda i: hamming[i])
    last = hamming[items[min(m, len(items)) - 1]]
    certain = [i for i in items if hamming[i] < last]
    tie = [i for i in items if hamming[i] == last]
    means, choices, every = [], [], []
    for entering in itertools.combinations(tie, min(m, len(items)) - len(certain)):
        present = [*certain, *entering]
        groups = [[levels[i] for i in present if floats[i] == value] for value in sorted({floats[i] for i in present})]
        orders = itertools.product(*map(itertools.permutations, groups))
        values = [score(list(itertools.chain(*order))) for order in orders]
        means.append(math.fsum(values) / len(values))
        choices.append(values)
        every += values
    mean = math.fsum(means) / len(means)
    variance = math.fsum(math.fsum((v - mean) ** 2 for v in values) / len(values) for values in choices) / len(choices)
    return mean, min(every), max(every), math.sqrt(variance)


def histogram_of(hamming, floats, levels, n_bits):
    """Lay out queries (n_queries, n_database) with all their items as candidates."""
    whole = TieHistogram.from_pairs(hamming, levels, n_bits, level_values=np.union1d(LEVELS, levels))
    orders = [np.lexsort((level, value)) for value, level in zip(floats, levels, strict=True)]
    value, level, distance = (
        np.concatenate([row[order] for row, order in zip(part, orders, strict=True)])
        for part in (floats.astype(float), levels, hamming.astype(np.uint16))
    )
    starts = np.arange(len(hamming) + 1) * hamming.shape[1]
    return TieHistogram(whole.counts, whole.levels, candidates=Candidates(starts, value, level, distance))


@pytest.mark.parametrize("pattern", SCORES)
def test_mean_low_high_and_deviation_equal_those_over_every_choice_and_order(pattern):
    rng = np.random.default_rng(0)
    for trial in range(1500 if thoroughness.ALL else 45):
        n_items = int(rng.integers(1, 8))
        m = int(rng.integers(1, 9))
        k = int(rng.integers(1, m + 1))
        hamming = rng.integers(0, rng.integers(1, 4), (3, n_items))
        floats = rng.integers(0, rng.integers(1, 9), (3, n_items))
        levels = rng.choice(LEVELS, (3, n_items), p=[0.4, 0.3, 0.2, 0.1])
        levels[:, 0] = 1
        if trial % 3 == 0:  # one gain
            levels[levels > 0] = 2
        elif trial % 3 == 1 and pattern.startswith("NDCG"):
            levels = 0.7 * levels
        name = pattern.format(k=k, m=m)
        result = np.transpose(get_metric(name).scores(histogram_of(hamming, floats, levels, 4)))
        assert not np.signbit(result).any()
        for row in range(3):
            score = partial(SCORES[pattern], all_levels=levels[row].tolist(), k=k)
            expected = over_every_order(score, hamming[row], floats[row], levels[row].tolist(), m)
            where = name, hamming[row], floats[row], levels[row]
            assert result[row, :3] == pytest.approx(expected[:3], abs=1e-12), where
            assert result[row, 3] ** 2 == pytest.approx(expected[3] ** 2, abs=1e-14), where


N_BITS, N_DATABASE, N_QUERIES = 4, 9, 6
rng = np.random.default_rng(1)
query, database = rng.random((N_QUERIES, N_BITS)) < 0.5, rng.random((N_DATABASE, N_BITS)) < 0.5
query_vectors = rng.integers(1, 4, (N_QUERIES, 3)).astype(np.float32)
database_vectors = rng.integers(1, 4, (N_DATABASE, 3)).astype(np.float32)
VECTORS = query_vectors, database_vectors
classes = rng.integers(0, 3, N_QUERIES), rng.integers(0, 3, N_DATABASE)
multi_hot = rng.integers(0, 2, (N_QUERIES, 3)), rng.integers(0, 2, (N_DATABASE, 3))
RULES = {
    "same-label": SameLabel(*classes),
    "hierarchy": Hierarchy(*classes, classes[0] % 2, classes[1] % 2),
    "shared-labels": SharedLabels(*multi_hot),
    "csr": Explicit(sp.csr_array(rng.choice([0, 0, 1, 5], (N_QUERIES, N_DATABASE)))),
}
DISTANCES = {  # as SciPy has them; equal ones would differ by rounding, so to 12 digits
    "euclidean": lambda: np.round(cdist(query_vectors, database_vectors), 12),
    "cosine": lambda: np.round(cdist(query_vectors, database_vectors, "cosine"), 12),
    "dot": lambda: -(query_vectors @ database_vectors.T),
}
CASES = [*zip(SCORES, (2, 3, 3, 3, 2), (4, 50, 3, 6, 4), strict=True)]  # with k and m
NAMES = ["AP", *(pattern.format(k=k, m=m) for pattern, k, m in CASES)]


@pytest.mark.parametrize(("rule", "true_distance"), [*zip(RULES, [*DISTANCES, "dot"], strict=True), ("csr", "cosine")])
def test_codes_and_vectors_score_as_by_brute_force(rule, true_distance):
    if true_distance == "cosine":
        assert len(np.unique(DISTANCES["cosine"]())) > 15
    result = evaluate(query, database, RULES[rule], NAMES, vectors=VECTORS, true_distance=true_distance)
    hamming = (query[:, None] ^ database[None]).sum(axis=2)
    levels = RULES[rule].block(slice(0, N_QUERIES), slice(0, N_DATABASE))
    for pattern, k, m in CASES:
        scores = np.transpose(result.scores[pattern.format(k=k, m=m)])
        for row in range(N_QUERIES):
            if not levels[row].any():
                assert np.isnan(scores[row]).all()
                continue
            score = partial(SCORES[pattern], all_levels=levels[row].tolist(), k=k)
            floats = DISTANCES[true_distance]()[row]
            expected = over_every_order(score, hamming[row], floats, levels[row].tolist(), m)
            assert scores[row] == pytest.approx(expected, abs=1e-12), (pattern, row)


def test_parts_of_queries_and_blocks_on_disk_score_like_the_whole(tmp_path, monkeypatch):
    vectors = Vectors(*VECTORS)
    whole = evaluate(query, database, classes, NAMES, vectors=VECTORS)
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * 4)
    monkeypatch.setattr(reranking, "_MEMORY", reranking._CANDIDATE * 14)
    with h5py.File(tmp_path / "codes.h5", "w") as file:
        stored = file.create_dataset("codes", data=pack(database))
        result = Problem.of_packed(pack(query), stored, N_BITS, RULES["same-label"], vectors=vectors).evaluate(NAMES)
    for name, scores in whole.scores.items():
        np.testing.assert_array_equal(result.scores[name], scores)


def test_a_large_tie_keeps_its_mean_between_low_and_high_and_near_that_of_drawn_choices():
    rng = np.random.default_rng(3)
    n, m, k = 2000, 200, 60
    values, levels = rng.normal(size=n), rng.choice([0, 1, 2], n, p=[0.9, 0.08, 0.02])
    histogram = histogram_of(np.full((1, n), 2), values[None], levels[None], 4)
    for pattern, score in SCORES.items():
        result = get_metric(pattern.format(k=k, m=m)).scores(histogram)
        drawn = []
        for _ in range(100):
            entering = rng.choice(n, m, replace=False)
            ranked = levels[entering[np.argsort(values[entering])]].tolist()
            drawn.append(score(ranked, levels.tolist(), k))
        mean, low, high, tie_sd = (float(part[0]) for part in result)
        assert tie_sd == pytest.approx(np.std(drawn), rel=0.35)  # five deviations of that of 100
        assert low <= min(drawn) <= max(drawn) <= high
        assert abs(np.mean(drawn) - mean) < 4 * np.std(drawn) / math.sqrt(len(drawn))


@pytest.mark.parametrize("name", ["NDCG@{k}:reranked={k}", "R@{k}:reranked={k}", "P@{k}:reranked={k}"])
def test_extremes_over_a_large_tie_of_one_gain_read_each_item_a_few_times_whatever_the_cutoff(name, monkeypatch):
    n, k = 500, 200
    n_reads = 0

    class Watched(np.ndarray):
        def __getitem__(self, place):
            nonlocal n_reads
            n_reads += 1
            return super().__getitem__(place)

    def watching(loop):
        return lambda *arguments: loop.__wrapped__(
            *(item.view(Watched) if isinstance(item, np.ndarray) else item for item in arguments)
        )

    for loop in ("extreme", "graded_extreme"):
        monkeypatch.setattr(reranked, loop, watching(getattr(reranked, loop)))
    levels = np.zeros((1, n), dtype=int)
    levels[0, -10:] = 1  # the farthest
    histogram = histogram_of(np.full((1, n), 2), np.arange(n)[None] / 1.0, levels, 4)
    _, (low,), (high,), _ = get_metric(name.format(k=k)).scores(histogram)
    assert 2 * n < n_reads < 50 * n  # of low and high; 750 n if all of k were read for each item
    last = (1 / np.log2(np.arange(k - 9, k + 1) + 1)).sum() / oracles.dcg([1] * 10, k)
    assert (low, high) == (0, pytest.approx({"R": 1, "P": 10 / k, "N": last}[name[0]]))


@pytest.mark.parametrize(("m", "k"), [(400, 150), (4000, 250)])
def test_the_mean_over_a_large_tie_is_that_of_the_hypergeometric_distribution(m, k):
    rng = np.random.default_rng(4)
    n, n_rel = 5000, 20
    place = np.sort(rng.choice(n, n_rel, replace=False))  # of relevant items, by their values
    levels = np.zeros((1, n), dtype=int)
    levels[0, place] = 1
    histogram = histogram_of(np.full((1, n), 2), np.arange(n)[None] / 1.0, levels, 4)
    before = np.arange(k)  # who enter of the items before one that enters, if it is among the first k
    chance = m / n * hypergeom(n - 1, place[:, None], m - 1).pmf(before)  # (n_rel, k)
    precision = (1 + before * np.arange(n_rel)[:, None] / np.maximum(place, 1)[:, None]) / (before + 1)
    expected = {
        "R": chance.sum() / n_rel,
        "NDCG": (chance / np.log2(before + 2)).sum() / oracles.dcg([1] * n_rel, k),
        "AP": (chance * precision).sum() / n_rel,
    }
    for name, value in expected.items():
        assert get_metric(f"{name}@{k}:reranked={m}").scores(histogram).mean == pytest.approx([value], abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "R@2:reranked=4 re-ranks .* by the float vectors that were coded, and there are none here"),
        ({"vectors": (query_vectors[1:], database_vectors)}, "there are 5 query vectors for 6 query codes"),
        ({"vectors": (query_vectors, database_vectors[1:])}, "there are 8 database vectors for 9 database codes"),
        ({"vectors": (query_vectors[:, 1:], database_vectors)}, "have 2 columns and database vectors 3; both must"),
        (
            {"vectors": (query_vectors[0], database_vectors)},
            r"query vectors are float32 of shape \(3,\), expected real",
        ),
        ({"vectors": (query_vectors, database_vectors * np.nan)}, "vectors hold values that are not finite in 9"),
        (
            {"vectors": (0 * query_vectors, database_vectors), "true_distance": "cosine"},
            "zeros in 6 rows, first in row 0",
        ),
        ({"vectors": VECTORS, "true_distance": "l1"}, "one of euclidean, cosine, dot, got 'l1'"),
        ({"vectors": query_vectors}, "vectors must be .*, got a ndarray"),
        (
            {"vectors": VECTORS, "distance": "cosine"},
            "vectors re-rank codes that are ranked by Hamming distance, got distance='cosine'; leave one",
        ),
        ({"distance": "cosine"}, "re-ranks the nearest items by Hamming distance, which runs and rankings by"),
    ],
)
def test_vectors_that_lack_or_do_not_fit_are_refused_in_words(options, message):
    codes_or_outputs = (query + 0.5, database + 0.5) if "distance" in options else (query, database)
    with pytest.raises(HashbenchError, match=message):
        evaluate(*codes_or_outputs, classes, ["R@2:reranked=4"], **options)
