from contextlib import nullcontext

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.exceptions import ConvergenceWarning

from hashbench.methods.sph import SpH


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(300, 20))


def distances(X, centres):
    return np.array([[np.linalg.norm(item - centre) for centre in centres] for item in X])


@pytest.mark.parametrize(("n_items", "half"), [(300, 150), (7, 3), (2, 1)])
@pytest.mark.filterwarnings("ignore:sph has not converged")
def test_each_ball_holds_half_of_the_training_items(cloud, n_items, half):
    method = SpH(3).fit(cloud[:n_items])
    assert method.transform(cloud[:n_items]).sum(axis=0).tolist() == [half] * 3
    radii = np.sort(distances(cloud[:n_items], method.centres_), axis=0)[half - 1]
    np.testing.assert_allclose(method.squared_radii_, radii**2, rtol=1e-12)


def test_bit_is_1_inside_the_ball_and_on_it(cloud):
    method = SpH(16).fit(cloud[:200])
    margin = np.sqrt(method.squared_radii_) - distances(cloud[200:], method.centres_)
    assert (np.abs(margin) > 1e-9).all()
    np.testing.assert_array_equal(method.transform(cloud[200:]), margin > 0)
    on_a_line = np.array([[0.0], [2.0], [4.0], [6.0]])
    method.centres_, method.squared_radii_ = np.array([[2.0]]), np.array([4.0])
    method.n_bits = method.n_features_in_ = 1
    assert method.transform(on_a_line).ravel().tolist() == [True, True, True, False]


@pytest.mark.parametrize("n_bits", [12, 64])
def test_settled_balls_overlap_like_independent_bits(train, n_bits):
    method = SpH(n_bits).fit(train)
    inside = method.transform(train).astype(int)
    overlaps = (inside.T @ inside)[np.triu_indices(n_bits, k=1)]
    assert np.abs(overlaps - 250).mean() <= 25
    assert overlaps.std() <= 37.5
    assert 1 < method.n_iter_ < 100


def test_one_pair_of_balls_that_overlaps_too_much_keeps_all_moving():
    few = np.random.default_rng(0).normal(size=(24, 40))
    overlaps = []
    for max_iter in (7, 100):  # after seven measurements the mean would do, but not the spread
        with pytest.warns(ConvergenceWarning) if max_iter == 7 else nullcontext():
            inside = SpH(5, max_iter=max_iter, random_state=138).fit(few).transform(few).astype(int)
        overlaps.append((inside.T @ inside)[np.triu_indices(5, k=1)] / 6)
    assert np.abs(overlaps[0] - 1).mean() <= 0.1 + 1e-12
    assert overlaps[0].std() > 0.15 >= overlaps[1].std()


def test_first_centres_are_means_of_five_items(train):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        centres = SpH(32, max_iter=1).fit(train).centres_
    np.testing.assert_allclose(5 * centres, np.round(5 * centres), atol=1e-9)  # pixels are whole numbers
    assert np.abs(centres - np.round(centres)).max() > 0.1
    assert (
        distances(centres, train.mean(axis=0)[None]).mean() < 0.75 * distances(train, train.mean(axis=0)[None]).mean()
    )


def test_balls_move_by_the_force_of_the_paper_all_at_once(train):
    with pytest.warns(ConvergenceWarning):
        first, second = (SpH(6, max_iter=max_iter).fit(train) for max_iter in (1, 2))
    inside = first.transform(train)
    expected = first.centres_.copy()
    for k in range(6):
        for other in range(6):
            if other != k:
                overlap = np.sum(inside[:, k] & inside[:, other])
                force = 0.5 * (overlap - 250) / 250 * (first.centres_[k] - first.centres_[other])
                expected[k] += force / 6
    np.testing.assert_allclose(second.centres_, expected, rtol=1e-10)
    assert second.n_iter_ == 2


def test_codes_do_not_change_when_items_move_turn_or_stretch(cloud):
    codes = SpH(24).fit(cloud).transform(cloud)
    turned = cloud @ ortho_group.rvs(20, random_state=0)
    for moved in (cloud + 3, turned, 0.01 * cloud, np.hstack([cloud, np.full((300, 3), 5.0)])):
        np.testing.assert_array_equal(SpH(24).fit(moved).transform(moved), codes)


@pytest.mark.parametrize(
    "items",
    [np.random.default_rng(0).normal(size=(500, 1)), np.random.default_rng(0).normal(size=(20, 8)).repeat(50, axis=0)],
    ids=["one dimension", "20 distinct items"],
)
def test_items_too_simple_for_independent_balls_are_encoded_with_a_warning(items):
    with pytest.warns(ConvergenceWarning, match="has not converged after max_iter=100"):
        method = SpH(16).fit(items)
    codes = method.transform(items)
    assert method.n_iter_ == 100
    assert (codes.sum(axis=0) >= len(items) // 2).all()
    assert 2 <= len(np.unique(codes, axis=0)) <= len(np.unique(items, axis=0))
