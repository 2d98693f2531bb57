import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import check_grad
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info, threadpool_limits

from hashbench.methods import ksh, structhash
from hashbench.methods._quadratic import agreement, candidate_bits, smooth_loss, whitening
from hashbench.methods.ksh import KSH


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(120, 15))
    matrix = rng.normal(size=(120, 120))
    return features, matrix + matrix.T


def test_spectral_start_is_the_top_generalised_eigenvector(problem):
    features, matrix = problem
    root = whitening(features, 1e-8)
    white = np.linalg.solve(root, features.T).T
    direction = np.linalg.solve(root.T, candidate_bits(white, matrix, white.T @ matrix @ white, 1, 0)[1].direction)
    _, vectors = eigh(features.T @ matrix @ features, features.T @ features)
    expected = vectors[:, -1] * np.sqrt(len(features))  # a^T K^T K a = number of items
    np.testing.assert_allclose(np.abs(direction), np.abs(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_items", [40, 10])
def test_repeated_anchors_and_few_items_do_not_break_the_start(n_items):
    features = np.random.default_rng(0).normal(size=(n_items, 15))
    features[:, 7] = features[:, 3]
    root = whitening(features, 1e-4)
    gram = features.T @ features
    np.testing.assert_allclose(root @ root.T, gram, atol=1e-3 * gram.trace() / 15)


def test_gradient_of_the_smooth_loss_is_that_of_differences(problem):
    features, matrix = problem
    direction = np.random.default_rng(1).normal(size=15)
    error = check_grad(
        lambda a: smooth_loss(a, features, matrix)[0], lambda a: smooth_loss(a, features, matrix)[1], direction
    )
    assert error < 1e-3 * np.linalg.norm(smooth_loss(direction, features, matrix)[1])


def test_gains_account_for_the_fit_to_the_similarity(labelled):
    X, y = (part[::4] for part in labelled)
    method = KSH(12, n_anchors=50).fit(X, y)  # all 250 items are used
    codes = np.where(method.transform(X), 1.0, -1.0)
    similarity = np.where(y[:, None] == y, 12.0, -12.0)
    gains, residual = [], similarity.copy()
    for bit in codes.T:
        gains.append(bit @ residual @ bit)
        residual -= np.outer(bit, bit)
    np.testing.assert_allclose(method.gains_[:, 1], gains)
    np.testing.assert_allclose(residual, similarity - codes @ codes.T)
    # ||R - h h^T||^2 = ||R||^2 - 2 h^T R h + n^2
    lost = (similarity**2).sum() - (residual**2).sum()
    assert lost == pytest.approx(2 * np.sum(gains) - 12 * 250**2)
    assert lost > 0


def test_the_smooth_optimisation_fits_the_similarity_better(labelled):
    X, y = (part[::4] for part in labelled)
    similarity = np.where(y[:, None] == y, 1.0, -1.0)

    def misfit(n_steps):
        codes = np.where(KSH(12, n_anchors=50, n_steps=n_steps).fit(X, y).transform(X), 1.0, -1.0)
        return ((codes @ codes.T / 12 - similarity) ** 2).mean()

    assert misfit(20) < 0.9 * misfit(0)


@pytest.mark.parametrize(("module", "name"), [(ksh, "KSH"), (structhash, "StructHash")])
def test_fits_use_one_thread(module, name, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    threads = []

    def whitened(*args):
        threads.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return whitening(*args)

    monkeypatch.setattr(module, "whitening", whitened)
    with threadpool_limits(2):
        getattr(module, name)(4).fit(rng.normal(size=(60, 5)) + y[:, None], y)
    assert set(threads) == {1}


@pytest.mark.parametrize("sparse", [False, True])
def test_agreement_is_a_double_sum(sparse, problem):
    matrix = problem[1]
    signs = np.where(problem[0][:, 0] > 0, 1.0, -1.0)
    total = sum(signs[i] * matrix[i, j] * signs[j] for i in range(120) for j in range(120))
    assert agreement(csr_array(matrix) if sparse else matrix, signs) == pytest.approx(total)


def test_eigenvectors_have_their_largest_entry_positive(problem):
    features, matrix = problem
    for bit in candidate_bits(features, matrix, features.T @ matrix @ features, 3, 0)[1:]:
        assert bit.direction[abs(bit.direction).argmax()] > 0
