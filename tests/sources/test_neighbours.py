import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from hashbench._choices import TRUE_DISTANCES
from hashbench.errors import HashbenchError
from hashbench.sources import neighbours
from hashbench.sources.neighbours import find_neighbours

rng = np.random.default_rng(0)
QUERY, DATABASE = (rng.normal(size=(n, 6)).astype(np.float32) for n in (9, 40))


def peer(query, database, distance):
    """All distances, by SciPy or a plain product."""
    query, database = query.astype(np.float64), database.astype(np.float64)
    return -query @ database.T if distance == "dot" else cdist(query, database, distance)


@pytest.mark.parametrize("distance", TRUE_DISTANCES)
@pytest.mark.parametrize(("n_pairs", "n_neighbours"), [(1, 1), (90, 7), (10_000, 40)])
def test_neighbours_are_the_nearest_ones_in_order(distance, n_pairs, n_neighbours, monkeypatch):
    monkeypatch.setattr(neighbours, "_PAIRS", n_pairs)
    monkeypatch.setattr(neighbours, "_ROWS", 7)
    reports = []
    nearest, n_tied = find_neighbours(QUERY, DATABASE, n_neighbours, distance, lambda *state: reports.append(state))
    expected = peer(QUERY, DATABASE, distance).argsort(axis=1)[:, :n_neighbours]
    np.testing.assert_array_equal(nearest, expected)
    assert (nearest.dtype, n_tied) == (np.int64, 0)
    assert reports[-1][1:] == (9, 9)


def whole_numbers(n_items):
    """Few and small ones: distances are exact, and many are equal."""
    return arrays(np.float32, (n_items, 2), elements=st.integers(-2, 2))


@given(whole_numbers(4), whole_numbers(9), st.data())
def test_of_equally_near_items_the_first_are_neighbours_and_ties_are_counted(query, database, data):
    distance, k = data.draw(st.sampled_from(["euclidean", "dot"])), data.draw(st.integers(1, 9))
    nearest, n_tied = find_neighbours(query, database, k, distance)
    values = np.round(peer(query, database, "sqeuclidean" if distance == "euclidean" else distance))
    order = values.argsort(axis=1, kind="stable")
    np.testing.assert_array_equal(nearest, order[:, :k])
    ranked = np.take_along_axis(values, order, axis=1)
    assert n_tied == (0 if k == 9 else (ranked[:, k - 1] == ranked[:, k]).sum())
    nearest, _ = find_neighbours(query, database, k, distance, with_ties=True)
    n_near = (values <= ranked[:, k - 1, None]).sum(axis=1)
    assert nearest.shape == (4, n_near.max())
    for row, n, expected in zip(nearest.tolist(), n_near, order.tolist(), strict=True):
        assert row == expected[:n] + [-1] * (len(row) - n)


@pytest.mark.parametrize("distance", TRUE_DISTANCES)
def test_copies_tie_wherever_the_origin_lies(distance):
    database = np.repeat(rng.normal(size=(10, 33)), 3, axis=0).astype(np.float32) + np.float32(1000)
    database = database[rng.permutation(30)]
    query = database[:5] + rng.normal(size=(5, 33)).astype(np.float32) / 10
    nearest, n_tied = find_neighbours(query, database, 2, distance)
    assert n_tied == 5
    for row, values in zip(nearest, peer(query, database, distance), strict=True):
        copies = np.flatnonzero((database == database[row[0]]).all(axis=1))
        np.testing.assert_array_equal(row, copies[:2])
        assert values[row[0]] == pytest.approx(values.min(), rel=1e-9)


def test_items_of_one_direction_tie_by_cosine():
    rng = np.random.default_rng(0)
    direction, other = rng.integers(1, 9, (2, 7))
    database = np.float32([factor * direction for factor in (3, 7, 1, 11)] + [other])
    query = np.float32(direction + 0.25 * rng.normal(size=(3, 7)))
    nearest, n_tied = find_neighbours(query, database, 2, "cosine")
    np.testing.assert_array_equal(nearest, [[0, 1]] * 3)
    assert n_tied == 3


def test_by_cosine_length_does_not_count():
    database = np.float32([[1, 0], [100, 1], [1, 1], [4, 4], [0.25, 0.25], [0, 1e-30]])
    nearest, n_tied = find_neighbours(np.float32([[3, 3], [0, 5]]), database, 2, "cosine")
    np.testing.assert_array_equal(nearest, [[2, 3], [5, 2]])
    assert n_tied == 2


def test_what_has_no_answer_is_refused():
    with pytest.raises(HashbenchError, match="40 database items, 41 neighbours of each query"):
        find_neighbours(QUERY, DATABASE, 41)
    with pytest.raises(HashbenchError, match=r"queries are all zeros in 1 rows, .* choose another --true-distance"):
        find_neighbours(np.vstack([QUERY, np.zeros((1, 6), np.float32)]), DATABASE, 3, "cosine")
