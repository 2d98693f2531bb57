import numpy as np
import pytest

from hashbench.affinity import Explicit, SameLabel, SharedLabels
from hashbench.methods.lfh import LFH, log_posterior, similar_to, update


@pytest.fixture
def problem():
    """Return factors of 12 items, those drawn, and which items are similar to them."""
    rng = np.random.default_rng(0)
    y, drawn = np.arange(12) % 3, np.array([1, 4, 5, 9])
    return rng.normal(size=(12, 5)), drawn, similar_to(SameLabel(y, y), drawn)


def objective(factors, drawn, similar, beta):
    """Add up the objective pair by pair, each of two different items in both directions."""
    total = -(factors**2).sum() / (2 * beta)
    for i in range(len(factors)):
        for j in range(len(factors)):
            if i != j and (i in drawn or j in drawn):
                item, column = (i, list(drawn).index(j)) if j in drawn else (j, list(drawn).index(i))
                theta = factors[i] @ factors[j] / 2
                total += similar[item, column] * theta - np.log(1 + np.exp(theta))
    return total


@pytest.mark.parametrize("beta", [0.5, 30.0])
def test_the_objective_is_that_of_the_paper(problem, beta):
    assert log_posterior(*problem, beta) == pytest.approx(objective(*problem, beta))
    everything = np.arange(12)
    similar = similar_to(SameLabel(everything % 3, everything % 3), everything)
    expected = objective(problem[0], everything, similar, beta)
    assert log_posterior(problem[0], everything, similar, beta) == pytest.approx(expected)


@pytest.mark.parametrize("n_drawn", [1, 12])
def test_updates_never_lower_the_objective_and_end_where_its_gradient_is_zero(n_drawn):
    rng = np.random.default_rng(1)
    factors, y, drawn = 3 * rng.normal(size=(12, 5)), np.arange(12) % 3, np.arange(n_drawn) * (12 // n_drawn)
    similar = similar_to(SameLabel(y, y), drawn)
    values = [log_posterior(factors, drawn, similar, 2.0)]
    for _ in range(400):
        update(factors, drawn, similar, 2.0)
        values.append(log_posterior(factors, drawn, similar, 2.0))
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0] + 1
    point, step = factors.ravel(), 1e-5
    for direction in np.eye(point.size):
        beyond, before = (
            log_posterior((point + sign * step * direction).reshape(12, 5), drawn, similar, 2.0) for sign in (1, -1)
        )
        assert (beyond - before) / (2 * step) == pytest.approx(0, abs=1e-4)


def test_a_step_of_one_item_maximises_the_quadratic_bound_of_the_paper(problem):
    factors, drawn, similar = problem
    item, beta = 2, 7.0  # not drawn
    sample, before = factors[drawn], factors[2].copy()
    sigmoid = 1 / (1 + np.exp(-sample @ before / 2))
    gradient = (similar[item] - sigmoid) @ sample - before / beta
    bound = -sample.T @ sample / 8 - np.eye(5) / beta
    update(factors, drawn, similar, beta)
    np.testing.assert_allclose(factors[item], before - np.linalg.inv(bound) @ gradient)


def test_with_all_items_the_objective_never_falls_from_one_iteration_to_the_next(labelled):
    X, y = (part[:120] for part in labelled)
    before, after = LFH(6, n_sampled=120, n_iter=15).fit(X, y).log_posteriors_.T
    np.testing.assert_allclose(before[1:], after[:-1])
    assert (np.diff(after) > 0).all()


@pytest.mark.parametrize("target", ["signs", "factors"])
def test_bits_are_predicted_by_a_ridge_regression_of_the_factors(labelled, target, monkeypatch):
    X, y = labelled
    seen = []

    def spy(factors, *arguments):
        update(factors, *arguments)
        seen.append(factors)

    monkeypatch.setattr("hashbench.methods.lfh.update", spy)
    method = LFH(6, ridge=50.0, target=target, n_iter=3).fit(X, y)
    wanted = seen[-1] if target == "factors" else 2.0 * (seen[-1] > 0) - 1
    centred = X - X.mean(axis=0)
    gradient = centred.T @ (centred @ method.projection_ - wanted) + 50 * method.projection_
    np.testing.assert_allclose(gradient, 0, atol=1e-8)
    assert np.abs(centred.T @ wanted).max() > 10


def test_a_pair_is_similar_if_it_is_in_either_direction():
    levels = np.array([[0, 2, 0], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(
        similar_to(Explicit(levels), np.array([0, 2])), [[True, False], [True, True], [False, True]]
    )


def test_memory_grows_with_the_number_of_items_only(monkeypatch):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (600, 4))
    shapes = []
    block = SharedLabels.block

    def spy(affinity, rows, columns):
        levels = block(affinity, rows, columns)
        shapes.append(levels.size)
        return levels

    monkeypatch.setattr(SharedLabels, "block", spy)
    LFH(4, n_iter=2, n_sampled=20).fit(rng.normal(size=(600, 5)), SharedLabels(labels, labels))
    assert shapes
    assert max(shapes) == 20 * 600
