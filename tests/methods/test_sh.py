import numpy as np
import pytest

from hashbench.errors import Refusal
from hashbench.methods.sh import SH

LINE = np.linspace(0, 1, 101)[:, None]
RECTANGLE = np.array([[0.0, 0], [3, 0], [0, 2], [3, 2]])


def modes(method):
    return list(zip(method.mode_direction_.tolist(), method.mode_number_.tolist(), strict=True))


def test_modes_of_a_rectangle_are_those_counted_by_hand():
    # half waves over length: 1/3, 1/2, 2/3, 3/3 = 2/2, 4/3, 3/2
    method = SH(7).fit(RECTANGLE)
    np.testing.assert_allclose(np.abs(method.directions_), np.eye(2), atol=1e-12)
    assert modes(method) == [(0, 1), (1, 1), (0, 2), (0, 3), (1, 2), (0, 4), (1, 3)]


@pytest.mark.parametrize("n_bits", [1, 64, 200])
def test_modes_are_those_of_smallest_eigenvalue_of_all(train, n_bits):
    centred = train - train.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    widths = np.ptp(centred @ vectors[:, ::-1][:, : min(n_bits, 61)], axis=0)
    eigenvalues = sorted(
        (1 - np.exp(-((1e-1 * k * np.pi / width) ** 2) / 2), direction, k)  # equation 10 of the paper, epsilon = 0.1
        for direction, width in enumerate(widths)
        for k in range(1, 301)
    )
    assert modes(SH(n_bits).fit(train)) == [(direction, k) for _, direction, k in eigenvalues[:n_bits]]


def test_bits_of_a_line_are_signs_of_cosines():
    method = SH(5).fit(LINE)
    expected = np.cos(np.pi * LINE * [1, 2, 3, 4, 5])
    np.testing.assert_allclose(method.project(LINE), expected, atol=1e-12)


def test_first_mode_of_a_direction_cuts_in_the_middle_of_its_range(train):
    method = SH(32).fit(train)
    codes = method.transform(train)
    along = (train - train.mean(axis=0)) @ method.directions_
    middle = (along.min(axis=0) + along.max(axis=0)) / 2
    firsts = np.flatnonzero(method.mode_number_ == 1)
    assert len(firsts) > 10
    for bit in firsts:
        direction = method.mode_direction_[bit]
        np.testing.assert_array_equal(codes[:, bit], along[:, direction] < middle[direction])


def test_code_may_be_longer_than_there_are_directions_with_variance(train):
    method = SH(64).fit(train)
    assert method.directions_.shape == (64, 61)
    constant = np.hstack([RECTANGLE, np.ones((4, 3))])
    assert modes(SH(64).fit(constant)) == modes(SH(64).fit(RECTANGLE))
    assert SH(64).fit(constant).directions_.shape == (5, 2)


def test_wave_goes_on_beyond_the_range():
    outside = np.array([[1.75], [-1.0], [2.0], [3.0]])  # cos(pi x) > 0, < 0, > 0, < 0
    assert SH(1).fit(LINE).transform(outside).ravel().tolist() == [True, False, True, False]


def test_far_outlier_takes_the_bits_away_from_all_directions_unless_it_is_left_out(train):
    centre = train.mean(axis=0)
    spoilt = np.vstack([train, centre + 50 * (train[0] - centre)])
    n_directions = [
        len(set(SH(32, percentile=percentile).fit(X).mode_direction_.tolist()))
        for X, percentile in ((train, 0), (spoilt, 0), (spoilt, 1))
    ]
    assert n_directions[0] > 15
    assert n_directions[1] < 6
    assert n_directions[2] > 15


def test_percentile_bounds_the_range():
    method = SH(1, percentile=10).fit(LINE)
    assert method.low_ == pytest.approx(-0.4)
    assert method.width_ == pytest.approx(0.8)


def test_percentiles_between_which_no_item_varies_are_refused():
    X = np.zeros((100, 1))
    X[0] = 1
    assert SH(2).fit(X).transform(X).shape == (100, 2)
    with pytest.raises(Refusal, match="smaller percentile"):
        SH(2, percentile=5).fit(X)
