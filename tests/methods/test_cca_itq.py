import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.cross_decomposition import CCA

from hashbench.methods.cca_itq import CCAITQ


@pytest.fixture
def tagged():
    """Draw 400 items of several labels each, and their multi-hot labels."""
    rng = np.random.default_rng(0)
    labels = (rng.random((400, 5)) < [0.5, 0.4, 0.3, 0.2, 0.1]).astype(np.uint8)
    return labels @ rng.normal(size=(5, 12)) + rng.normal(size=(400, 12)) * np.linspace(0.5, 2, 12), labels


def scaled_directions(method):
    """Return an orthonormal basis of the space in which a method's bits lie."""
    left, sizes, _ = np.linalg.svd(method.projection_, full_matrices=False)
    return left[:, sizes > 1e-9 * sizes[0]]


@pytest.mark.parametrize("ridge", [1e-4, 10.0])
def test_directions_solve_the_generalised_eigenproblem_of_the_paper(tagged, ridge):
    X, Y = tagged[0] - tagged[0].mean(axis=0), tagged[1] - tagged[1].mean(axis=0)
    inner = X.T @ Y @ np.linalg.inv(Y.T @ Y + ridge * np.eye(5)) @ Y.T @ X
    squares, vectors = eigh(inner, X.T @ X + ridge * np.eye(12))
    method = CCAITQ(3, ridge=ridge).fit(*tagged)
    np.testing.assert_allclose(method.correlations_, np.sqrt(squares[::-1][:3]), rtol=1e-8)
    # W R for a rotation R: W lambda lambda W^T does not depend on it
    scaled = np.sqrt(400 * squares[::-1][:3]) * vectors[:, ::-1][:, :3]
    np.testing.assert_allclose(method.projection_ @ method.projection_.T, scaled @ scaled.T, rtol=1e-7, atol=1e-9)


def test_correlations_are_those_of_scikit_learn(tagged):
    X, Y = tagged
    rotated_x, rotated_y = CCA(n_components=5, max_iter=5000, tol=1e-12).fit_transform(X, Y.astype(float))
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(rotated_x.T, rotated_y.T, strict=True)]
    np.testing.assert_allclose(CCAITQ(8).fit(X, Y).correlations_, expected, atol=1e-4)


def test_single_labels_span_the_space_between_classes_as_discriminant_analysis_does(labelled):
    X, y = labelled
    method = CCAITQ(16, ridge=1e-6).fit(X, y)
    means = np.stack([X[y == label].mean(axis=0) for label in range(10)]) - X.mean(axis=0)
    within = sum(np.cov(X[y == label], rowvar=False, bias=True) * (y == label).sum() for label in range(10))
    discriminants = np.linalg.pinv(within, rtol=1e-10) @ means.T  # rank 9
    basis = scaled_directions(method)
    assert basis.shape[1] == 9
    outside = discriminants - basis @ (basis.T @ discriminants)
    assert np.linalg.norm(outside) < 1e-6 * np.linalg.norm(discriminants)


@pytest.mark.parametrize("n_bits", [10, 24])
def test_more_bits_than_directions_cut_the_same_space(labelled, n_bits):
    method = CCAITQ(n_bits).fit(*labelled)
    assert scaled_directions(method).shape[1] == 9
    assert (np.linalg.norm(method.projection_, axis=0) > 0).all()
    assert len(np.unique(method.transform(labelled[0]), axis=1).T) == n_bits


def test_fewer_bits_use_the_most_correlated_directions(labelled):
    longer, shorter = (scaled_directions(CCAITQ(n_bits).fit(*labelled)) for n_bits in (9, 3))
    np.testing.assert_allclose(longer @ (longer.T @ shorter), shorter, atol=1e-8)
    np.testing.assert_array_equal(CCAITQ(9).fit(*labelled).correlations_[:3], CCAITQ(3).fit(*labelled).correlations_)


def test_quantisation_loss_never_rises_and_falls(labelled):
    losses = CCAITQ(32).fit(*labelled).losses_
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    assert losses[-1] < 0.99 * losses[0]


def test_labels_that_all_items_or_none_have_do_not_count(tagged):
    X, Y = tagged
    more = np.column_stack([Y, np.zeros(400, dtype=np.uint8), np.ones(400, dtype=np.uint8)])
    np.testing.assert_array_equal(CCAITQ(8).fit(X, more).transform(X), CCAITQ(8).fit(X, Y).transform(X))
