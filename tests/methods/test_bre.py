import numpy as np
import pytest
from scipy.spatial.distance import cdist

from hashbench.affinity import Distance, SharedLabels
from hashbench.methods._training_items import draw_rows
from hashbench.methods.bre import BRE, best_step


def loss_after(step, values, slopes, first, second, residual, share):
    """Recount the squared residuals with the bit at its new values."""
    was, now = (moved[first] > 0 for moved in (values, values + step * slopes))
    was_other, now_other = (moved[second] > 0 for moved in (values, values + step * slopes))
    return ((residual + share * ((now != now_other).astype(int) - (was != was_other))) ** 2).sum()


@pytest.mark.parametrize(
    ("kind", "seed"),
    [(kind, seed) for kind, n in (("plain", 3), ("duplicates", 6), ("zeros", 3)) for seed in range(n)],
)
def test_a_step_is_the_best_of_all_steps(seed, kind):
    rng = np.random.default_rng(seed)
    values, slopes = rng.normal(size=12), rng.normal(size=12)
    if kind == "duplicates":
        values, slopes = np.tile(values[:4], 3), np.tile(slopes[:4], 3)
    elif kind == "zeros":
        slopes[:5] = 0
    first, second = np.triu_indices(12, k=1)
    residual = rng.integers(-4, 5, len(first))
    arguments = values, slopes, first, second, residual, 2
    moving = slopes != 0
    borders = np.unique(-values[moving] / slopes[moving])
    tries = np.concatenate([[borders[0] - 1], (borders[1:] + borders[:-1]) / 2, [borders[-1] + 1], [0.0]])
    best = min(loss_after(step, *arguments) for step in tries)
    assert loss_after(best_step(*arguments), *arguments) == best


def test_a_weight_that_moves_nothing_stays():
    pairs = np.array([0]), np.array([1])
    assert best_step(np.array([1.0, -1.0]), np.zeros(2), *pairs, np.array([3]), 1) == 0.0


@pytest.mark.parametrize("n_copies", [1, 4])
def test_the_loss_never_rises(labelled, n_copies):
    X, y = (np.tile(part[::10], (n_copies,) + (1,) * (part.ndim - 1)) for part in labelled)
    losses = BRE(12).fit(X, y).losses_
    assert (np.diff(losses) <= 0).all()
    assert losses[-1] < 0.9 * losses[0]


def last_loss_from_codes(X, affinity, target):
    """Return the last loss of a fit to all pairs, and the one recounted from codes and a matrix of targets."""
    method = BRE(12, n_similar=100, n_dissimilar=100).fit(X, affinity)
    bits = method.transform(X)
    residual = cdist(bits, bits, "cityblock") / 12 - target
    return method.losses_[-1], (residual**2)[np.triu_indices(100, k=1)].sum()


@pytest.mark.parametrize("labels", [np.eye(10, dtype=int), np.random.default_rng(0).integers(0, 2, (10, 4))])
def test_similar_pairs_of_any_level_should_have_equal_codes(labelled, labels):
    X, labels = labelled[0][:100], labels[labelled[1][:100]]
    last, recounted = last_loss_from_codes(X, SharedLabels(labels, labels), labels @ labels.T == 0)
    assert last == pytest.approx(recounted)


def test_where_distances_define_levels_codes_should_be_as_far_apart_as_items(labelled):
    X = labelled[0][:100]
    target = cdist(X - X.mean(axis=0), X - X.mean(axis=0), "cosine") / 2
    last, recounted = last_loss_from_codes(X, Distance(X, X, [900.0, 400.0], [1, 2]), target)
    assert last == pytest.approx(recounted, rel=2e-3)  # targets are rounded


def test_each_bit_has_anchors_of_its_own():
    X = np.random.default_rng(0).normal(size=(20, 40))
    method = BRE(12, n_items=10, n_anchors=3).fit(X, np.arange(20) % 2)
    rows = draw_rows(20, 10, np.random.default_rng(0))
    centred = X[rows] - X.mean(axis=0)
    items = centred / np.linalg.norm(centred, axis=1)[:, None]
    coefficients = np.linalg.lstsq(items.T, method.projection_)[0]  # (n_items, n_bits): 10 items in 40 dimensions
    chosen = np.abs(coefficients) > 1e-9
    assert (chosen.sum(axis=0) <= 3).all()
    assert len(np.unique(chosen, axis=1).T) > 6


def test_only_the_direction_of_an_item_from_the_mean_counts(labelled):
    X, y = labelled[0][:100], labelled[1][:100]
    centred = X - 8  # whole numbers, so that sums are exact
    factors = 2.0 ** np.random.default_rng(0).integers(-2, 3, (100, 1))
    paired = np.concatenate([centred[:100], -centred[:100]])  # the mean stays 0 however pairs are stretched
    labels = np.concatenate([y[:100], y[:100]])
    stretched = paired * np.tile(factors, (2, 1))
    codes = BRE(8).fit(paired, labels).transform(paired)
    np.testing.assert_array_equal(BRE(8).fit(stretched, labels).transform(stretched), codes)
