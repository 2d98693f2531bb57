"""AGH against what the paper says of its graph, formed whole here."""

import numpy as np
import pytest

from hashbench.errors import Refusal
from hashbench.methods.agh import AGH


@pytest.fixture(scope="module")
def items():
    return np.random.default_rng(0).normal(size=(300, 5)) * [3, 2, 1, 1, 1]


def graph_of(method, X):
    """Compute Z item by item."""
    rows = []
    for x in X:
        squared = ((x - method.origin_ - method.anchors_) ** 2).sum(axis=1)
        near = np.argsort(squared, kind="stable")[: method.n_nearest]
        row = np.zeros(len(method.anchors_))
        row[near] = np.exp(-squared[near] / method.squared_width_)
        rows.append(row / row.sum())
    return np.array(rows)


@pytest.mark.parametrize("n_nearest", [2, 3])
def test_projections_are_orthogonal_of_mean_0_and_eigenvectors_of_the_graph(items, n_nearest):
    method = AGH(8, n_anchors=40, n_nearest=n_nearest, n_layers=1).fit(items)
    graph = graph_of(method, items)
    along = method.project(items)
    np.testing.assert_allclose(along, graph @ method.weights_, atol=1e-9)
    np.testing.assert_allclose(along.T @ along, len(items) * np.eye(8), atol=1e-6)
    np.testing.assert_allclose(along.mean(axis=0), 0, atol=1e-8)
    adjacency = graph @ np.diag(1 / graph.sum(axis=0)) @ graph.T
    values = (along * (adjacency @ along)).sum(axis=0) / len(items)
    np.testing.assert_allclose(adjacency @ along, along * values, atol=1e-6)
    every = np.sort(np.linalg.eigvalsh(adjacency))[::-1]
    np.testing.assert_allclose(values, every[every < 1 - 1e-3][:8], atol=1e-8)


def test_the_width_is_the_mean_distance_to_the_farthest_of_the_nearest_anchors(items):
    method = AGH(8, n_anchors=40, n_nearest=3).fit(items)
    distances = np.linalg.norm((items - method.origin_)[:, None] - method.anchors_, axis=2)
    assert method.squared_width_ == pytest.approx(np.sort(distances, axis=1)[:, 2].mean() ** 2)


def test_second_cuts_are_those_of_the_formulas_with_the_graph_formed_whole(items):
    method = AGH(8, n_anchors=40, n_nearest=3).fit(items)
    graph = graph_of(method, items)
    adjacency, n = graph @ np.diag(1 / graph.sum(axis=0)) @ graph.T, len(items)
    along = graph @ method.weights_
    for number, values in enumerate(along.T):
        is_positive = values > 0
        n1, n2 = is_positive.sum(), (~is_positive).sum()
        s1 = is_positive @ adjacency @ np.abs(values)
        s2 = n1 - is_positive @ adjacency @ is_positive
        s3 = values[is_positive].sum()
        c = (s3 - s1) / s2
        above, below = (2 * s3 + n2 * c) / n, (n1 * c - 2 * s3) / n
        np.testing.assert_allclose(method.thresholds_[:, number], [above, below], atol=1e-9)
        second = np.where(is_positive, values - above > 0, below - values > 0)
        np.testing.assert_array_equal(method.transform(items)[:, 4 + number], second)


def test_items_far_from_all_anchors_have_codes(items):
    method = AGH(8, n_anchors=40).fit(items)
    assert np.isfinite(method.project(1e6 + items[:3])).all()
    np.testing.assert_allclose(graph_of(method, items[:3]).sum(axis=1), 1)


def test_an_anchor_that_is_near_to_no_item_is_left_out(items):
    method = AGH(4, n_anchors=40, n_nearest=2)
    method._find_anchors = lambda X: np.vstack([X[:39], [1e3] * 5])
    assert np.isfinite(method.fit(items).project(items)).all()
    assert not method.weights_[39].any()


def test_more_bits_than_eigenvectors_are_refused_and_parts_without_a_link_give_no_bits():
    rng = np.random.default_rng(0)
    apart = np.concatenate([rng.normal(size=(50, 3)) + 100 * part for part in range(3)])  # three parts
    with pytest.raises(Refusal, match=r"30 eigenvectors for n_bits=60, and the graph of 20 different anchors has"):
        AGH(60, n_anchors=20).fit(apart)
    method = AGH(4, n_anchors=20, n_layers=1).fit(apart)
    parts = np.arange(150) // 50
    constant = [len(np.unique(bit[parts == part])) == 1 for bit in method.transform(apart).T for part in range(3)]
    assert not all(constant)


def test_entries_of_a_vector_outside_its_part_are_0_and_not_rounding():
    rng = np.random.default_rng(0)
    apart = np.concatenate([rng.normal(size=(60, 3)) + 100 * part for part in range(2)])
    along = AGH(6, n_anchors=20, n_layers=1).fit(apart).project(apart)
    largest = np.stack([abs(along[:60]).max(axis=0), abs(along[60:]).max(axis=0)])
    assert (largest.min(axis=0) == 0).all()  # a vector is of one part
    assert (largest.max(axis=0) > 0.1).all()


def test_items_that_repeat_are_one_anchor_and_not_the_two_nearest():
    X = np.random.default_rng(0).normal(size=(40, 6))
    once, twice = AGH(8).fit(X), AGH(8).fit(np.concatenate([X, X]))
    assert len(once.anchors_) == len(twice.anchors_) == 40
    assert once.squared_width_ == pytest.approx(twice.squared_width_)
    binary = np.random.default_rng(0).integers(0, 2, size=(1000, 6)).astype(float)  # 64 different items
    method = AGH(8).fit(binary)
    assert len(np.unique(method.anchors_, axis=0)) == len(method.anchors_) <= 64
    assert method.squared_width_ > 0.01
