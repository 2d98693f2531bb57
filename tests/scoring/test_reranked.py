"""Re-ranked metrics against every choice of who of the cut tie enters, and every order of equal float distances."""

import itertools
import math
from functools import partial

import effort
import numpy as np
import oracles
import pytest

from hashbench.scoring.candidates import Candidates
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import get_metric

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
    """Mean, minimum and maximum over who enters, each choice as likely, and over the orders of equal floats."""
    items = sorted(range(len(levels)), key=lambda i: hamming[i])
    last = hamming[items[min(m, len(items)) - 1]]
    certain = [i for i in items if hamming[i] < last]
    tie = [i for i in items if hamming[i] == last]
    means, every = [], []
    for entering in itertools.combinations(tie, min(m, len(items)) - len(certain)):
        present = [*certain, *entering]
        groups = [[levels[i] for i in present if floats[i] == value] for value in sorted({floats[i] for i in present})]
        orders = itertools.product(*map(itertools.permutations, groups))
        values = [score(list(itertools.chain(*order))) for order in orders]
        means.append(math.fsum(values) / len(values))
        every += values
    return math.fsum(means) / len(means), min(every), max(every)


def histogram_of(hamming, floats, levels, n_bits):
    """Lay out queries (n_queries, n_database) with all their items as candidates."""
    whole = TieHistogram.from_pairs(hamming, levels, n_bits, level_values=LEVELS)
    orders = [np.lexsort((level, value)) for value, level in zip(floats, levels, strict=True)]
    value, level, distance = (
        np.concatenate([row[order] for row, order in zip(part, orders, strict=True)])
        for part in (floats.astype(float), levels.astype(np.int16), hamming.astype(np.uint16))
    )
    starts = np.arange(len(hamming) + 1) * hamming.shape[1]
    return TieHistogram(whole.counts, whole.levels, candidates=Candidates(starts, value, level, distance))


@pytest.mark.parametrize("pattern", SCORES)
def test_mean_low_and_high_equal_those_over_every_choice_and_order(pattern):
    rng = np.random.default_rng(0)
    for _ in range(1500 if effort.ALL else 150):
        n_items = int(rng.integers(1, 8))
        m = int(rng.integers(1, 9))
        k = int(rng.integers(1, m + 1))
        hamming = rng.integers(0, rng.integers(1, 4), (3, n_items))
        floats = rng.integers(0, rng.integers(1, 9), (3, n_items))
        levels = rng.choice(LEVELS, (3, n_items), p=[0.4, 0.3, 0.2, 0.1])
        levels[:, 0] = 1
        name = pattern.format(k=k, m=m)
        found = np.transpose(get_metric(name).scores(histogram_of(hamming, floats, levels, 4)))
        for row in range(3):
            score = partial(SCORES[pattern], all_levels=levels[row].tolist(), k=k)
            expected = over_every_order(score, hamming[row], floats[row], levels[row].tolist(), m)
            assert found[row] == pytest.approx(expected, abs=1e-12), (name, hamming[row], floats[row], levels[row])
