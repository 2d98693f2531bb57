import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from hashbench.affinity import SameLabel
from hashbench.errors import HashbenchError
from hashbench.methods._graph_cuts import Energy
from hashbench.methods._pairs import draw_pairs
from hashbench.methods.fasthash import FastHash, Trees, pair_losses
from hashbench.methods.lsh import LSH


@pytest.fixture(scope="module")
def fitted(labelled):
    return FastHash(12, n_trees=5).fit(*(part[::3] for part in labelled))


def test_pair_losses_are_those_of_the_paper():
    share, similar = np.array([0.0, 0.25, 0.75, 0.25, 0.75]), np.array([True, True, True, False, False])
    np.testing.assert_allclose(pair_losses("hinge", share, similar), [0, 0.0625, 0.5625, 0.0625, 0])
    np.testing.assert_allclose(pair_losses("bre", share, similar), [0, 0.0625, 0.5625, 0.5625, 0.0625])
    # (y - (r - 2 D) / r)^2
    np.testing.assert_allclose(pair_losses("ksh", share, similar), [0, 0.25, 2.25, 2.25, 0.25])


@pytest.mark.parametrize("loss", ["hinge", "ksh", "bre"])
def test_similar_pairs_never_gain_by_one_bit_more(loss):
    for length in range(1, 40):
        distance = np.arange(length)
        similar = np.ones(length, dtype=bool)
        now, more = (pair_losses(loss, d / length, similar) for d in (distance, distance + 1))
        assert (now - more <= 0).all()
        now, more = (pair_losses(loss, d / length, ~similar) for d in (distance, distance + 1))
        assert (now - more >= 0).all()


def test_the_last_loss_is_that_of_the_codes(labelled):
    X, y = labelled[0][:150], labelled[1][:150]
    method = FastHash(6, n_trees=3, n_similar=150, n_dissimilar=150).fit(X, y)
    codes = method.transform(X)
    first, second = np.triu_indices(150, k=1)
    share = (codes[first] != codes[second]).mean(axis=1)
    same = y[first] == y[second]
    expected = np.where(same, share, np.maximum(0.5 - share, 0)) ** 2
    assert method.losses_[-1] == pytest.approx(expected.mean())


def test_pairs_lose_less_than_with_random_projections(labelled, fitted):
    X, y = labelled
    pairs = draw_pairs(fitted, SameLabel(y, y), np.arange(len(y)), 50, 50, np.random.default_rng(1))
    losses = []
    for codes in (fitted.transform(X), LSH(12).fit(X).transform(X)):
        share = (codes[pairs.first] != codes[pairs.second]).mean(axis=1)
        losses.append(pair_losses("hinge", share, pairs.level > 0).mean())
    assert losses[0] < 0.4 * losses[1]


def test_constant_features_and_the_scale_of_features_do_not_count(labelled):
    X, y = labelled[0][:200], labelled[1][:200]
    codes = FastHash(4, n_trees=2).fit(X, y).transform(X)
    more = np.column_stack([np.full(200, 3.0), 8 * X, np.zeros(200)])
    np.testing.assert_array_equal(FastHash(4, n_trees=2).fit(more, y).transform(more), codes)


def test_a_bit_that_all_items_share_is_a_constant(labelled):
    X, y = labelled[0][:100], labelled[1][:100]
    method = FastHash(3)
    method.fit(X, y)
    method.trees_[1] = -1.0
    codes = method.transform(X)
    assert not codes[:, 1].any()
    assert method._grow(X, np.ones(100), np.ones(100)) == 1.0


def test_features_of_many_values_are_binned_at_percentiles():
    X = np.random.default_rng(0).normal(size=(500, 3))
    X[:, 2] = np.arange(500) % 5
    y = np.arange(500) % 2
    method = FastHash(2, n_trees=2).fit(X, y)
    bins = method._bins(X)
    assert [len(edges) for edges in method.edges_] == [62, 62, 4]
    assert (np.bincount(bins[:, 0].astype(int)) <= 9).all()  # 500 items in 63 bins
    np.testing.assert_array_equal(bins[:, 2], X[:, 2])
    assert (np.diff(bins[X[:, 0].argsort(), 0]) >= 0).all()


def test_trees_weigh_each_item_by_its_couplings(labelled, monkeypatch):
    X, y = labelled[0][:60], labelled[1][:60]
    grown = []
    monkeypatch.setattr(FastHash, "_grow", lambda self, items, signs, weights: grown.append(weights) or 1.0)
    FastHash(1, n_similar=60, n_dissimilar=60).fit(X, y)
    # all pairs, D = 0: a similar pair couples by |0 - 1| and a dissimilar one by |1/4 - 0|
    n_similar = (y[:, None] == y).sum(axis=1) - 1
    expected = n_similar + (59 - n_similar) / 4
    np.testing.assert_allclose(grown[0], expected / expected.mean(), atol=1e-5)


def test_couplings_are_of_the_bits_that_trees_learnt_at_the_length_so_far(labelled, monkeypatch):
    X, y = labelled[0][:80], labelled[1][:80]
    seen, lower = [], Energy.lower

    def spy(self, signs, couplings, fields, n_passes):
        seen.append((couplings.copy(), n_passes))
        return lower(self, signs, couplings, fields, n_passes)

    monkeypatch.setattr(Energy, "lower", spy)
    method = FastHash(4, n_trees=1, max_depth=1, n_similar=80, n_dissimilar=80, n_passes=3).fit(X, y)  # all pairs
    codes = method.transform(X)  # stumps, which cannot learn the inferred bits by heart
    first, second = np.triu_indices(80, k=1)
    for length, (couplings, n_passes) in enumerate(seen, start=1):
        distance = (codes[first, : length - 1] != codes[second, : length - 1]).sum(axis=1)
        same, share = y[first] == y[second], [distance / length, (distance + 1) / length]
        losses = [np.where(same, part, np.maximum(0.5 - part, 0)) ** 2 for part in share]
        np.testing.assert_allclose(couplings, losses[0] - losses[1], atol=1e-12)
        assert n_passes == 3


def test_as_many_trees_are_grown_as_asked_for(labelled):
    X, y = labelled[0][:100], labelled[1][:100]
    assert [len(trees.roots) for trees in FastHash(1, n_trees=7).fit(X, y).trees_] == [7]


def test_trees_give_what_the_model_that_grew_them_gives(labelled):
    X, y = labelled
    model = HistGradientBoostingClassifier(max_iter=9, max_bins=63, random_state=0).fit(X, y > 4)
    np.testing.assert_array_equal(Trees.of(model).values(X), model.decision_function(X))


@pytest.mark.parametrize("heavy", [-1.0, 1.0])
def test_trees_believe_items_of_more_weight(heavy):
    X, signs = np.repeat([0.0, 1.0], 20)[:, None], np.tile([-1.0, 1.0], 20)
    trees = FastHash(1)._grow(X, signs, np.where(signs == heavy, 1000.0, 1.0))
    assert (np.sign(trees.values(X)) == heavy).all()


def test_a_scikit_learn_that_keeps_its_trees_elsewhere_is_named(labelled):
    model = HistGradientBoostingClassifier(max_iter=1).fit(*labelled)
    del model._predictors
    with pytest.raises(HashbenchError, match=r"^fasthash cannot read the trees of scikit-learn \d+\.\d.*_predictors"):
        Trees.of(model)
