"""The graph cuts that infer a bit from pairs."""

import numpy as np
import pytest

from hashbench.methods._graph_cuts import Energy
from hashbench.methods._pairs import Pairs


def all_signs(n):
    return 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1


def energy_of(signs, pairs, couplings, unary):
    return couplings @ (signs[pairs.first] * signs[pairs.second]) + unary @ signs


def random_problem(seed, n, share_similar):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n, k=1)
    is_drawn = rng.random(len(first)) < 0.6
    level = (rng.random(is_drawn.sum()) < share_similar).astype(np.int64)
    pairs = Pairs(first[is_drawn], second[is_drawn], level)
    couplings = np.where(level > 0, -1, 1) * rng.exponential(size=len(level))
    return pairs, couplings, rng.normal(size=n) * rng.choice([0.1, 1.0, 5.0]), rng


@pytest.mark.parametrize("seed", range(9))
def test_a_block_of_similar_items_is_minimised_exactly(seed):
    n = 2 + seed % 9
    pairs, couplings, unary, rng = random_problem(seed, n, 1.0)
    energy = Energy(pairs, n, rng)
    assert len(energy.blocks) == 1
    best = energy.lower(rng.choice([-1.0, 1.0], n), couplings, unary, 1)
    lowest = min(energy_of(signs, pairs, couplings, unary) for signs in all_signs(n))
    assert energy_of(best, pairs, couplings, unary) == pytest.approx(lowest, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_energy_never_rises_and_mostly_ends_at_the_lowest(seed):
    pairs, couplings, unary, rng = random_problem(seed, 10, 0.6)
    energy = Energy(pairs, 10, rng)
    signs = np.ones(10)
    before = energy_of(signs, pairs, couplings, unary)
    for _ in range(4):
        signs = energy.lower(signs, couplings, unary, 1)
        after = energy_of(signs, pairs, couplings, unary)
        assert after <= before + 1e-9
        before = after
    lowest = min(energy_of(each, pairs, couplings, unary) for each in all_signs(10))
    assert lowest - 1e-9 <= after <= energy_of(np.ones(10), pairs, couplings, unary)


@pytest.mark.parametrize("seed", range(2))
def test_no_block_holds_a_dissimilar_pair_and_every_item_is_in_one(seed):
    pairs, _, _, rng = random_problem(seed, 30, 0.7)
    blocks = [set(block.items.tolist()) for block in Energy(pairs, 30, rng).blocks]
    assert set().union(*blocks) == set(range(30))
    for first, second, level in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.level, strict=True):
        assert level or not any({first, second} <= block for block in blocks)


def test_classes_are_the_blocks_of_labelled_items():
    labels = np.arange(40) % 4
    first, second = np.triu_indices(40, k=1)
    pairs = Pairs(first, second, (labels[first] == labels[second]).astype(np.int64))
    blocks = Energy(pairs, 40, np.random.default_rng(0)).blocks
    assert sorted(block.items.tolist() for block in blocks) == [list(range(c, 40, 4)) for c in range(4)]


def test_items_without_pairs_follow_their_own_preference():
    pairs = Pairs(np.array([0]), np.array([1]), np.array([1]))
    unary = np.array([3.0, -1.0, 2.0, -2.0])
    best = Energy(pairs, 4, np.random.default_rng(0)).lower(np.ones(4), np.array([-5.0]), unary, 1)
    np.testing.assert_array_equal(best, [-1, -1, -1, 1])


def test_large_and_small_couplings_are_cut_alike():
    for seed in range(3):
        pairs, couplings, unary, _ = random_problem(seed, 9, 1.0)
        small, middle, large = (
            Energy(pairs, 9, np.random.default_rng(0)).lower(np.ones(9), couplings * scale, unary * scale, 1)
            for scale in (1e-12, 1.0, 1e12)
        )
        np.testing.assert_array_equal(small, middle)
        np.testing.assert_array_equal(large, middle)
