import numpy as np
import pytest
from scipy.stats import kstest

from hashbench.methods.sklsh import SKLSH

LIMIT = 4 / np.pi**2


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(80, 5))  # fewer than 100: all items set the scale


def distance_to_neighbour(X, n_neighbors):
    return np.mean([np.sort(np.linalg.norm(X - item, axis=1))[n_neighbors - 1] for item in X])


def share_of_differing_bits(X, first, second, gamma=1.0):
    codes = [
        SKLSH(4096, gamma=gamma, random_state=seed).fit(X).transform(np.stack([first, second])) for seed in range(10)
    ]
    return np.mean([code[0] != code[1] for code in codes])


def expected_share(kernel):
    """Sum the series of the paper for a Gaussian kernel of this value: K(m u) = K(u)^(m^2)."""
    m = np.arange(1, 100_001.0)
    return 8 / np.pi**2 * np.sum((1 - kernel ** (m**2)) / (4 * m**2 - 1))


@pytest.mark.parametrize(
    ("ratio", "gamma", "measured"),
    [(0.3, 1, 0.0755), (1, 1, 0.2337), (2, 1, 0.3686), (10, 1, 0.4052), (1, 4, 0.3686)],
)
def test_bits_differ_as_often_as_the_kernel_says(cloud, ratio, gamma, measured):
    direction = np.array([0.6, 0, 0, -0.8, 0])
    second = cloud[3] + ratio * distance_to_neighbour(cloud, 50) * direction
    share = share_of_differing_bits(cloud, cloud[3], second, gamma)
    noise = 4 * np.sqrt(0.25 / 40960)
    kernel = np.exp(-gamma * ratio**2 / 2)
    assert share == pytest.approx(expected_share(kernel), abs=noise)
    assert share == pytest.approx(measured, abs=noise)
    upper = min(np.sqrt(1 - kernel) / 2, LIMIT * (1 - 2 * kernel / 3))
    assert LIMIT * (1 - kernel) - noise <= share <= upper + noise


@pytest.mark.parametrize("item", [np.zeros(5), np.full(5, 3.0), np.array([-40.0, 0, 7, 1, 0])])
def test_every_bit_of_every_item_is_1_with_probability_one_half(cloud, item):
    codes = [SKLSH(4096, random_state=seed).fit(cloud).transform(item[None]) for seed in range(10)]
    assert np.mean(codes) == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 40960))


def test_waves_have_the_distributions_of_the_paper(cloud):
    method = SKLSH(4096, gamma=0.25).fit(cloud)
    assert kstest(method.phases_ / (2 * np.pi), "uniform").pvalue > 1e-3
    assert kstest((method.thresholds_ + 1) / 2, "uniform").pvalue > 1e-3
    assert kstest(method.projection_.ravel() * method.scale_ / 0.5, "norm").pvalue > 1e-3


def test_bits_are_cosines_above_a_threshold(cloud):
    method = SKLSH(8).fit(cloud)
    for item, code in zip(cloud, method.transform(cloud), strict=True):
        for bit in range(8):
            wave = np.cos(item @ method.projection_[:, bit] + method.phases_[bit])
            assert code[bit] == (wave > -method.thresholds_[bit])


@pytest.mark.parametrize(("n_items", "n_neighbors"), [(80, 50), (80, 2), (50, 49), (20, 19), (3, 2)])
def test_scale_is_the_mean_distance_to_the_fiftieth_neighbour_or_the_last_but_one(cloud, n_items, n_neighbors):
    asked = 50 if n_items <= 50 else n_neighbors
    scale = SKLSH(4, n_neighbors=asked).fit(cloud[:n_items]).scale_
    assert scale == pytest.approx(distance_to_neighbour(cloud[:n_items], n_neighbors))


def test_scale_of_many_items_is_a_sample_s(train):
    train = train[:400]
    distances = [np.sort(np.linalg.norm(train - item, axis=1))[49] for item in train]
    scales = [SKLSH(4, random_state=seed).fit(train).scale_ for seed in range(20)]
    assert np.mean(scales) == pytest.approx(np.mean(distances), abs=4 * np.std(distances) / np.sqrt(2000))
    assert np.std(scales) < 2 * np.std(distances) / np.sqrt(100)
    assert len(set(scales)) == 20


def test_where_most_items_are_equal_the_scale_is_that_of_those_that_differ():
    twins = np.repeat([[0.0, 0.0], [3.0, 4.0]], 60, axis=0)
    assert SKLSH(4).fit(twins).scale_ == pytest.approx(5)
    assert SKLSH(4).fit(twins[59:61]).scale_ == pytest.approx(5)
