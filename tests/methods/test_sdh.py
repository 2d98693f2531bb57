import numpy as np
import pytest
from scipy.spatial.distance import cdist

from hashbench.errors import Refusal
from hashbench.methods.sdh import SDH, cyclic_sweep


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return rng.choice([-1.0, 1.0], (30, 6)), rng.normal(size=(6, 4)), rng.normal(size=(30, 4)), rng.normal(size=(30, 6))


def losses(codes, classifier, labels, fitted, nu=0.1):
    """Compute the part of the objective that depends on the codes, item by item."""
    return ((labels - codes @ classifier) ** 2).sum(axis=1) + nu * ((codes - fitted) ** 2).sum(axis=1)


def test_a_sweep_never_raises_the_loss_of_an_item_and_ends_where_no_flip_helps(problem):
    codes, classifier, labels, fitted = problem
    pull = labels @ classifier.T + 0.1 * fitted
    before = losses(codes, classifier, labels, fitted)
    while cyclic_sweep(codes, classifier, pull):
        after = losses(codes, classifier, labels, fitted)
        assert (after <= before + 1e-9).all()
        before = after
    assert set(np.unique(codes)) == {-1.0, 1.0}
    for bit in range(6):
        flipped = codes.copy()
        flipped[:, bit] *= -1
        assert (losses(flipped, classifier, labels, fitted) >= before - 1e-9).all()


def test_a_bit_without_preference_keeps_its_value():
    codes = np.array([[1.0], [-1.0]])
    assert not cyclic_sweep(codes, np.zeros((1, 2)), np.zeros((2, 1)))
    np.testing.assert_array_equal(codes, [[1.0], [-1.0]])


@pytest.mark.parametrize(("nu", "decay"), [(1e-2, 1.0), (1e-5, 100.0)])
def test_the_objective_never_rises(labelled, nu, decay):
    objective = SDH(16, n_anchors=200, weight_decay=decay, fit_weight=nu, n_iter=6).fit(*labelled).losses_
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()


def test_zero_items_have_a_code_and_length_does_not_count(labelled):
    X, y = labelled
    X = X.copy()
    X[0] = 0
    method = SDH(8, n_anchors=100).fit(X, y)
    np.testing.assert_array_equal(method.transform(3.5 * X), method.transform(X))


def test_the_bandwidth_can_come_from_the_data(labelled):
    X, y = labelled
    method = SDH(16, n_anchors=100, sigma=None).fit(X, y)
    assert method.anchors_.gamma != pytest.approx(1 / 0.32)
    np.testing.assert_allclose(
        method.anchors_.features(X / np.linalg.norm(X, axis=1)[:, None]).mean(axis=0), 0, atol=1e-9
    )


def test_short_items_are_scaled_to_unit_length_too(labelled):
    X, y = labelled
    method = SDH(8, n_anchors=100).fit(X, y)
    short = X * 2.0**-100
    np.testing.assert_array_equal(SDH(8, n_anchors=100).fit(short, y).transform(short), method.transform(X))


@pytest.mark.parametrize(("moved", "offset"), [("all", 1000.0), ("one", 1e6)])
def test_items_that_hardly_differ_at_unit_length_are_refused(labelled, moved, offset):
    X, y = labelled
    X = X + offset if moved == "all" else np.column_stack([X, np.full(len(X), 8 * offset)])
    with pytest.raises(Refusal, match=r"nearly equal items \(n_samples=1000.*sigma=0\.4.*Centre the features"):
        SDH(8, n_anchors=100).fit(X, y)
    codes = SDH(8, n_anchors=100, sigma=None).fit(X, y).transform(X)
    assert len(np.unique(codes, axis=0)) >= 10


def test_one_code_for_all_is_refused(labelled):
    X, y = labelled[0], np.zeros(1000, dtype=int)
    y[0] = 1
    with pytest.raises(Refusal, match="gives all 1000 training items one code"):
        SDH(8, n_anchors=100).fit(X, y)


def test_the_classifier_solves_the_ridge_regression_of_the_paper(labelled, monkeypatch):
    X, y = labelled[0][:200], labelled[1][:200]
    seen = []

    def spy(codes, classifier, pull):
        seen.append((codes.copy(), classifier.copy()))
        return cyclic_sweep(codes, classifier, pull)

    monkeypatch.setattr("hashbench.methods.sdh.cyclic_sweep", spy)
    SDH(6, n_anchors=40, weight_decay=100.0, n_iter=2, n_sweeps=1).fit(X, y)
    assert len(seen) == 2
    for codes, classifier in seen:
        # minimises ||Y - B W||^2 + 100 ||W||^2: the gradient is 0
        gradient = codes.T @ (codes @ classifier - np.eye(10)[y]) + 100 * classifier
        np.testing.assert_allclose(gradient, 0, atol=1e-9)


def test_the_functions_solve_the_ridge_regression_of_the_paper(labelled):
    X, y = labelled[0][:200], labelled[1][:200]
    method = SDH(6, n_anchors=40, sigma=0.3, kernel_decay=0.5).fit(X, y)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    raw = np.exp(-cdist(unit, method.anchors_.items, "sqeuclidean") / (2 * 0.3**2))
    features = np.column_stack([raw, np.ones(200)])
    gram = features.T @ features
    # weights = (F^T F + 0.5 I)^-1 F^T B: what F does not see of B is gone, and B holds -1 and +1 only
    pulled = (gram + 0.5 * np.eye(41)) @ method.weights_  # F^T B
    counts = pulled[-1]  # the constant's row: sums of 200 signs, even numbers
    np.testing.assert_allclose(counts, 2 * np.round(counts / 2), atol=1e-6)
    np.testing.assert_allclose(method.project(X), features @ method.weights_, atol=1e-9)
