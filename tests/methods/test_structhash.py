from itertools import permutations

import numpy as np
import pytest
from helpers.thoroughness import slow

from hashbench.affinity import Explicit, SameLabel
from hashbench.methods._anchors import draw_anchors
from hashbench.methods._ndcg_bound import Master, RankedList, worst_ranking, worst_rankings
from hashbench.methods._training_items import draw_rows
from hashbench.methods.structhash import StructHash


@pytest.fixture(scope="module")
def fitted(labelled):
    return StructHash(12, n_anchors=40, n_queries=40).fit(*(part[::4] for part in labelled))


def value_of(order, scores, n_relevant):
    """Compute 1 - NDCG of a ranking, less its margin, by counting pairs; items below n_relevant are relevant."""
    p, q = n_relevant, len(scores) - n_relevant
    ideal = sum(1 / np.log2(rank + 2) for rank in range(p))
    gain = sum(1 / np.log2(rank + 2) for rank, item in enumerate(order) if item < p)
    above = [(item, other) for rank, item in enumerate(order) if item < p for other in order[:rank] if other >= p]
    return 1 - gain / ideal - 2 / (p * q) * sum(scores[item] - scores[other] for item, other in above)


@pytest.mark.parametrize("scale", [0.1, 5.0])
@pytest.mark.parametrize(
    ("seed", "sizes"),
    [(0, (2, 4)), (1, (3, 3)), (2, (1, 3)), (3, (3, 1)), *slow(*((seed, (3, 4)) for seed in range(8)))],
)
def test_the_worst_ranking_is_the_worst_of_all(seed, sizes, scale):
    rng = np.random.default_rng(seed)
    relevant, irrelevant = (-np.sort(rng.normal(size=n) * scale) for n in sizes)
    loss, of_relevant, of_irrelevant = worst_ranking(relevant, irrelevant)
    scores = np.concatenate([relevant, irrelevant])
    best = max(value_of(order, scores, sizes[0]) for order in permutations(range(sum(sizes))))
    assert loss - of_relevant @ relevant - of_irrelevant @ irrelevant == pytest.approx(best)


def test_tied_items_are_placed_worst():
    loss, _, _ = worst_ranking(np.zeros(2), np.zeros(3))
    discounts = 1 / np.log2(np.arange(5) + 2)
    assert loss == pytest.approx(1 - discounts[3:].sum() / discounts[:2].sum())


def test_couplings_give_the_margin_of_a_bit():
    rng = np.random.default_rng(0)
    signs, weights = rng.choice([-1.0, 1.0], (30, 5)), rng.exponential(size=5)
    lists = [RankedList(q, np.arange(3, 9) + q, np.arange(12, 20) + q) for q in range(3)]
    loss, couplings = worst_rankings(lists, signs, weights)
    margins, losses = [], []
    for ranked in lists:
        scores = [
            -(weights * (signs[items] != signs[ranked.query])).sum(axis=1)
            for items in (ranked.relevant, ranked.irrelevant)
        ]
        loss_of_list, of_relevant, of_irrelevant = worst_ranking(*(-np.sort(-part) for part in scores))
        losses.append(loss_of_list)
        margins.append(of_relevant @ np.sort(scores[0])[::-1] + of_irrelevant @ np.sort(scores[1])[::-1])
    gains = [bit @ (couplings @ bit) / 2 for bit in signs.T]
    assert loss == pytest.approx(np.mean(losses))
    assert weights @ gains == pytest.approx(np.mean(margins))


def test_duals_close_the_gap_of_the_master_and_weigh_its_rankings():
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (30, 4))
    lists = [RankedList(q, np.arange(3, 9) + q, np.arange(12, 20) + q) for q in range(3)]
    master = Master(C=50.0)
    for weights in (np.zeros(4), np.ones(4), np.arange(4.0)):
        master.add_constraint(*worst_rankings(lists, signs, weights), signs)
    objective, weights, slack, duals = master.solve()
    assert (duals >= 0).all()
    assert duals.sum() <= 50 + 1e-9
    assert objective == pytest.approx(weights.sum() + 50 * slack)
    assert objective == pytest.approx(duals @ master.losses)  # strong duality
    combined = master.combined(duals)
    for bit, weight in zip(signs.T, weights, strict=True):
        assert bit @ combined @ bit / 2 <= 1 + 1e-9  # a bit in the program is worth no more than it costs
        assert weight == 0 or bit @ combined @ bit / 2 == pytest.approx(1)


def test_weighted_distances_do_not_depend_on_the_order_of_bits(fitted):
    rng = np.random.default_rng(0)
    signs, weights = rng.choice([-1.0, 1.0], (50, 12)), fitted.bit_weights_
    assert np.count_nonzero(weights) > 5
    sums = {tuple(sum(signs[:, bit] * weights[bit] for bit in rng.permutation(12))) for _ in range(20)}
    assert len(sums) == 1  # to the last digit, so that items of one code tie


@pytest.mark.slow
def test_the_bound_never_rises_as_bits_are_added_and_cuts_are_made_to_the_end(labelled):
    X, y = labelled[0][::3], labelled[1][::3]
    losses = StructHash(4, n_queries=30, n_cuts=200, tol=1e-6).fit(X, y).losses_
    assert (np.diff(losses) <= 1e-3 * losses[:-1]).all()
    assert losses[-1] < losses[0]


def test_no_bit_is_another_one_again(labelled, fitted):
    codes = fitted.transform(labelled[0])
    same = (codes[:, :, None] == codes[:, None, :]).mean(axis=0)
    assert (np.abs(same - 0.5)[np.triu_indices(12, k=1)] < 0.5).all()


def test_lists_ask_for_every_level(labelled):
    levels = np.random.default_rng(0).integers(0, 4, (300, 300))
    method = StructHash(8, n_items=300, n_queries=200, n_relevant=300, n_irrelevant=300)
    lists = method._draw_lists(Explicit(levels), np.arange(300), np.random.default_rng(0))
    asked = []
    for ranked in lists:
        assert ranked.query not in {*ranked.relevant, *ranked.irrelevant}
        lowest, highest = levels[ranked.query, ranked.relevant].min(), levels[ranked.query, ranked.irrelevant].max()
        assert lowest == highest + 1
        asked.append(lowest)
    assert (np.bincount(asked, minlength=4)[1:] > 40).all()


def test_the_first_bit_promises_the_gain_of_the_first_rankings(labelled):
    X, y = labelled[0][:200], labelled[1][:200]
    method = StructHash(1, n_anchors=50, n_queries=40).fit(X, y)
    rng = np.random.default_rng(0)
    draw_anchors(method, X, 50, rng)
    lists = method._draw_lists(SameLabel(y, y), draw_rows(200, 5000, rng), rng)
    _, couplings = worst_rankings(lists, np.zeros((200, 0)), np.zeros(0))
    signs = np.where(method.transform(X)[:, 0], 1.0, -1.0)
    assert method.gains_[0] == pytest.approx(50 * (signs @ (couplings @ signs)) / 2)  # the only dual is C
