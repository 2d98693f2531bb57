from itertools import combinations

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.cluster import KMeans

from hashbench.errors import Refusal
from hashbench.methods.dsh_density import DSHDensity

SPREADING = np.array([[0.0], [1], [3], [7], [15]])  # 0 and 15 are not among each other's three nearest


def entropy_of(method, i, j):
    """Compute the entropy of the plane between two groups, group by group."""
    middle, normal = (method.centroids_[i] + method.centroids_[j]) / 2, method.centroids_[i] - method.centroids_[j]
    above = sum(m for c, m in zip(method.centroids_, method.masses_, strict=True) if (c - middle) @ normal > 0)
    share = above / method.masses_.sum()
    return entropy([share, 1 - share])


def neighbouring_pairs(centroids, n_neighbors):
    pairs = set()
    for i, centroid in enumerate(centroids):
        others = sorted((np.linalg.norm(centroid - other), j) for j, other in enumerate(centroids) if j != i)
        pairs |= {(min(i, j), max(i, j)) for _, j in others[:n_neighbors]}
    return pairs


@pytest.mark.parametrize(("n_bits", "n_neighbors"), [(12, 3), (32, 1), (32, 5)])
@pytest.mark.filterwarnings("ignore:dsh-density pairs each")
def test_planes_chosen_have_the_largest_entropies_of_all_neighbouring_pairs(train, n_bits, n_neighbors):
    method = DSHDensity(n_bits, n_neighbors=n_neighbors, random_state=1).fit(train)
    chosen = [tuple(pair) for pair in method.pairs_.tolist()]
    candidates = neighbouring_pairs(method.centroids_, n_neighbors)
    if len(candidates) < n_bits:
        candidates = neighbouring_pairs(method.centroids_, n_neighbors + 1)
    assert set(chosen) <= candidates
    assert len(set(chosen)) == n_bits
    entropies = [entropy_of(method, *pair) for pair in chosen]
    rejected = [entropy_of(method, *pair) for pair in candidates - set(chosen)]
    assert (np.diff(entropies) <= 1e-12).all()
    assert rejected
    assert min(entropies) >= max(rejected) - 1e-12


def test_planes_pass_midway_between_their_groups(train):
    method = DSHDensity(24).fit(train)
    at_centroids = method.project(method.centroids_)
    for bit, (i, j) in enumerate(method.pairs_):
        length = np.linalg.norm(method.centroids_[i] - method.centroids_[j])
        assert at_centroids[i, bit] / length == pytest.approx(length / 2)
        assert at_centroids[j, bit] / length == pytest.approx(-length / 2)


@pytest.mark.parametrize(("n_bits", "alpha", "n_groups"), [(3, 1.5, 5), (16, 2, 32)])
def test_groups_are_alpha_a_bit_and_hold_all_items(train, n_bits, alpha, n_groups):
    method = DSHDensity(n_bits, alpha=alpha).fit(train)
    assert len(method.centroids_) == n_groups
    assert method.masses_.sum() == 1000
    assert method.masses_.min() > 0
    np.testing.assert_allclose(method.masses_ @ method.centroids_ / 1000, train.mean(axis=0), atol=1e-9)


def test_groups_are_as_tight_as_those_of_another_k_means(train):
    def loss(centroids):
        return np.mean([np.min(((centroids - item) ** 2).sum(axis=1)) for item in train])

    def mean_loss(n_iter):
        return np.mean(
            [loss(DSHDensity(16, n_iter=n_iter, random_state=seed).fit(train).centroids_) for seed in range(3)]
        )

    peers = [KMeans(24, init="random", n_init=1, max_iter=3, random_state=seed).fit(train) for seed in range(3)]
    assert mean_loss(3) == pytest.approx(np.mean([loss(peer.cluster_centers_) for peer in peers]), rel=0.03)
    assert mean_loss(3) < 0.97 * mean_loss(1)


def test_codes_do_not_change_when_items_move_or_come_in_another_order():
    rng = np.random.default_rng(0)
    cloud = rng.normal(size=(300, 20))
    codes = DSHDensity(24).fit(cloud).transform(cloud)
    np.testing.assert_array_equal(DSHDensity(24).fit(cloud + 8).transform(cloud + 8), codes)
    np.testing.assert_array_equal(DSHDensity(24).fit(rng.permutation(cloud)).transform(cloud), codes)
    padded = np.hstack([cloud, np.full((300, 2), 5.0)])
    np.testing.assert_array_equal(DSHDensity(24).fit(padded).transform(padded), codes)


def test_duplicate_items_share_a_group():
    items = np.repeat(SPREADING, 20, axis=0)
    method = DSHDensity(4).fit(items)  # round(1.5 * 4) = 6 groups asked
    np.testing.assert_allclose(np.sort(method.centroids_, axis=0), SPREADING)
    assert method.masses_.tolist() == [20] * 5
    assert np.abs(method.projection_).min() >= 1


def test_more_neighbours_are_taken_with_a_warning_where_pairs_run_short():
    assert DSHDensity(9).fit(SPREADING).pairs_.shape == (9, 2)
    with pytest.warns(UserWarning, match=r"n_neighbors=4 nearest instead of 3.*n_bits=10"):
        method = DSHDensity(10).fit(SPREADING)
    assert sorted(map(tuple, method.pairs_.tolist())) == list(combinations(range(5), 2))


def test_more_bits_than_pairs_of_groups_are_refused_by_number():
    with pytest.raises(Refusal, match=r"<= 10\b.* 5 groups .* 5 training items .*n_bits=11\b"):
        DSHDensity(11).fit(SPREADING)
    with pytest.raises(Refusal, match=r"<= 1\b.* 2 groups .*n_bits=4\b.*larger alpha than 0.5"):
        DSHDensity(4, alpha=0.5).fit(SPREADING)
