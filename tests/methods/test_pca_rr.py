import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest, ortho_group

from hashbench.methods.itq import ITQ
from hashbench.methods.pca_rr import PCARR


def principal_axes(X, n_bits):
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:n_bits].T


@pytest.mark.parametrize("n_bits", [1, 61])
@pytest.mark.parametrize("make", [PCARR, ITQ])
def test_projection_is_a_rotation_within_the_principal_directions(make, n_bits, train):
    axes, projection = principal_axes(train, n_bits), make(n_bits, random_state=2).fit(train).projection_
    rotation = axes.T @ projection
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(n_bits), atol=1e-10)
    np.testing.assert_allclose(axes @ rotation, projection, atol=1e-10)


def test_equals_itq_before_its_first_iteration(train):
    itq = ITQ(20, n_iter=0, random_state=5).fit(train)
    assert itq.losses_.shape == (0,)
    np.testing.assert_array_equal(PCARR(20, random_state=5).fit(train).project(train), itq.project(train))


def test_rotations_are_uniform_over_the_orthogonal_matrices():
    X = np.random.default_rng(0).normal(size=(20, 3)) * [3, 2, 1]
    axes = principal_axes(X, 3)
    rotations = np.array([axes.T @ PCARR(3, random_state=seed).fit(X).projection_ for seed in range(150)])
    for row, column in np.ndindex(3, 3):  # a coordinate of a uniformly random direction in space is uniform
        assert kstest(rotations[:, row, column], "uniform", args=(-1, 2)).pvalue > 1e-3
    peers = ortho_group.rvs(3, size=2000, random_state=1)
    assert ks_2samp(np.trace(rotations, axis1=1, axis2=2), np.trace(peers, axis1=1, axis2=2)).pvalue > 1e-3
    assert 50 < np.sum(np.linalg.det(rotations) > 0) < 100


def test_constant_features_and_duplicate_items_change_nothing(train):
    values = PCARR(16).fit(train).project(train)
    padded = np.hstack([np.full((1000, 2), 7.0), train])
    np.testing.assert_allclose(np.abs(PCARR(16).fit(padded).project(padded)), np.abs(values), atol=1e-8)
    np.testing.assert_allclose(PCARR(16).fit(np.vstack([train, train])).project(train), values, atol=1e-8)
