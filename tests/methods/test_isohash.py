import numpy as np
import pytest
from scipy.stats import ortho_group

from hashbench.methods.isohash import IsoHash
from hashbench.methods.pcah import PCAH


@pytest.mark.parametrize("n_bits", [1, 16, 61])
def test_bits_have_equal_variances(train, n_bits):
    variances = np.var(IsoHash(n_bits).fit(train).project(train), axis=0)
    total = np.linalg.svd(train - train.mean(axis=0), compute_uv=False)[:n_bits] ** 2 / len(train)
    np.testing.assert_allclose(variances, total.mean(), rtol=1e-9)


def test_bits_are_rotated_principal_components(train):
    directions, projection = (cls(16).fit(train).projection_ for cls in (PCAH, IsoHash))
    rotation = directions.T @ projection
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(16), atol=1e-10)
    np.testing.assert_allclose(directions @ rotation, projection, atol=1e-10)


def test_deviations_of_the_variances_never_rise(train):
    deviations = IsoHash(24).fit(train).deviations_
    assert (np.diff(deviations) <= 1e-9 * deviations[0]).all()
    assert deviations[-1] < 1e-9 * deviations[0]


def test_very_unequal_variances_become_equal_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 8)) * 2.0 ** -np.arange(8) @ ortho_group.rvs(8, random_state=0)
    variances = np.var(IsoHash(8, n_iter=300).fit(X).project(X), axis=0)
    assert np.ptp(np.var(X, axis=0)) > 0.1 * variances.mean()
    np.testing.assert_allclose(variances, variances.mean(), rtol=1e-6)
