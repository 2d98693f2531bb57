import dataclasses
import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles

from hashbench.affinity import Distance, Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError

rng = np.random.default_rng(0)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1])
MULTI_HOT = rng.integers(0, 2, (8, 3)).astype(np.uint8)
MATRIX = np.array([[0, 1, 0, 2, 0, 1], [1, 0, 0, 0, 10, 0]])
BASE = Dataset(
    name="tiny",
    features=np.arange(24, dtype=np.float32).reshape(8, 3),
    query=np.array([0, 5]),
    database=np.array([1, 2, 3, 4, 6, 7]),
    train=np.array([6, 2, 3]),
    rule="same-label",
    labels=LABELS,
)
WHOLE = slice(0, 2), slice(0, 6)  # queries and database
BY_MULTI_HOT = {"rule": "shared-labels", "labels": MULTI_HOT}
BY_DISTANCE = {"rule": "distance", "rule_params": {"squared_thresholds": [243.0, 27.0], "levels": [1, 2]}}
BY_MATRIX = {"rule": "explicit", "matrix": MATRIX}
NEIGHBOURS = np.array([[3, 0, 5], [1, 4, 2]])
BY_NEIGHBOURS = {"rule": "neighbours", "neighbours": NEIGHBOURS}
IMAGES = rng.integers(0, 256, (8, 4, 5, 3)).astype(np.uint8)


def changed(base=BASE, **changes):
    return dataclasses.replace(base, **changes)


def with_value(array, index, value):
    copy = array.copy()
    copy[index] = value
    return copy


@pytest.mark.parametrize(
    ("changes", "kind", "levels"),
    [
        ({}, SameLabel, oracles.same_label(LABELS, LABELS)),
        (BY_MULTI_HOT, SharedLabels, oracles.shared_labels(MULTI_HOT, MULTI_HOT)),
        (
            {"rule": "hierarchy", "coarse_labels": LABELS // 2},
            Hierarchy,
            np.add(oracles.same_label(LABELS, LABELS), oracles.same_label(LABELS // 2, LABELS // 2)),
        ),
        (BY_DISTANCE, Distance, oracles.distance_levels(BASE.features, BASE.features, [243.0, 27.0], [1, 2])),
    ],
)
def test_affinities_are_in_the_order_of_the_split(changes, kind, levels):
    dataset = changed(**changes)
    affinity, of_train = dataset.affinity(), dataset.train_affinity()
    assert isinstance(affinity, kind)
    assert (affinity.n_queries, affinity.n_database) == (2, 6)
    query, database, train = dataset.query, dataset.database, dataset.train
    np.testing.assert_array_equal(affinity.block(*WHOLE), np.array(levels)[np.ix_(query, database)])
    np.testing.assert_array_equal(of_train.block(slice(0, 3), slice(0, 3)), np.array(levels)[np.ix_(train, train)])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_an_explicit_affinity_is_the_matrix_and_does_not_rate_training_items(form):
    dataset = changed(rule="explicit", matrix=form(MATRIX))
    assert isinstance(dataset.affinity(), Explicit)
    assert dataset.affinity().block(*WHOLE).tolist() == MATRIX.tolist()
    with pytest.raises(HashbenchError, match="dataset 'tiny' has explicit affinities"):
        dataset.train_affinity()


def test_neighbours_are_relevant_and_do_not_rate_training_items():
    items = np.random.default_rng(5).normal(size=(60, 3)).astype(np.float32)
    query, database = np.arange(0, 60, 6), np.setdiff1d(np.arange(60), np.arange(0, 60, 6))[::-1].copy()
    nearest = np.argsort(((items[query, None] - items[None, database]) ** 2).sum(axis=2), axis=1)[:, :7]
    dataset = Dataset("near", items, query, database, database, "neighbours", neighbours=nearest)
    levels = dataset.affinity().block(slice(0, 10), slice(0, 50))
    expected = [[int(position in near) for position in range(50)] for near in nearest.tolist()]
    assert levels.tolist() == expected
    assert dataset.affinity().levels.tolist() == [0, 1]
    every_item = changed(rule="neighbours", neighbours=np.array([[5, 4, 3, 2, 1, 0]] * 2)).affinity()
    assert every_item.block(*WHOLE).all()
    with pytest.raises(HashbenchError, match=r"dataset 'near' has neighbours affinities"):
        dataset.train_affinity()


@pytest.mark.parametrize("n_channels", [1, 3])
def test_items_may_be_only_images_or_images_beside_their_features(n_channels):
    images = IMAGES[..., :n_channels]
    both, images_only = changed(images=images), changed(images=images, features=None)
    assert (both.n_samples, images_only.n_samples) == (8, 8)
    assert images_only.affinity().block(*WHOLE).tolist() == BASE.affinity().block(*WHOLE).tolist()


def test_a_dataset_knows_its_size_and_kind():
    assert BASE.n_samples == 8
    assert BASE.is_single_label
    assert not changed(**BY_MULTI_HOT).is_single_label
    assert not changed(**BY_DISTANCE, labels=None).is_single_label


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": BASE.features.astype(float)}, r"features of dataset 'tiny' are float64 of shape \(8, 3\)"),
        ({"features": BASE.features[0]}, r"are float32 of shape \(3,\), expected float32 of shape \(n_samples"),
        ({"features": BASE.features[:, :0]}, r"of shape \(8, 0\).*not empty"),
        ({"features": with_value(BASE.features, ([2, 4], [1, 0]), np.nan)}, "hold 2 .* first nan in row 2, column 1"),
        ({"features": with_value(BASE.features, (7, 2), np.inf)}, "hold 1 values .* first inf in row 7, column 2"),
        ({"query": BASE.query.astype(np.int32)}, r"query rows of dataset 'tiny' are int32 of shape \(2,\)"),
        ({"train": BASE.train[None]}, r"train rows of dataset 'tiny' are int64 of shape \(1, 3\)"),
        ({"query": BASE.query[:0]}, "dataset 'tiny' has no query items"),
        ({"database": BASE.database[:0]}, "dataset 'tiny' has no database items"),
        ({"train": BASE.train[:0]}, "dataset 'tiny' has no train items"),
        ({"query": np.array([0, 8])}, "query of dataset 'tiny' names rows 0 to 8, but there are 8 items"),
        ({"query": np.array([-1, 0])}, "query of dataset 'tiny' names rows -1 to 0, but there are 8 items"),
        ({"database": np.array([1, 2, 3, 6, 1])}, "database of dataset 'tiny' names some rows twice"),
        ({"query": np.array([0, 1, 2])}, "2 queries of dataset 'tiny' are also in its database"),
        ({"train": np.array([1, 5])}, "1 training items of dataset 'tiny' are also queries"),
        ({"database": BASE.database[:-1], "train": np.array([6, 7])}, "1 of 2 training items .* outside its database"),
        ({"labels": LABELS[1:]}, "dataset 'tiny' has 8 items but labels for 7"),
        ({"labels": LABELS.astype(np.int32)}, r"labels of dataset 'tiny' are int32 of shape \(8,\)"),
        ({"labels": MULTI_HOT.astype(np.int64)}, r"labels of dataset 'tiny' are int64 of shape \(8, 3\)"),
        ({"rule": "same-labels"}, "affinity rule 'same-labels'; known rules: same-label, shared-labels, hierarchy"),
        ({"rule": "hierarchy"}, r"rule 'hierarchy' of dataset 'tiny' needs superclasses"),
        ({"rule": "hierarchy", "coarse_labels": LABELS[:3]}, r"coarse_labels .* are int64 of shape \(3,\)"),
        ({"rule": "hierarchy", "coarse_labels": np.arange(8)}, "class 0 has items of several superclasses"),
        ({"labels": None}, r"rule 'same-label' of dataset 'tiny' needs class labels of shape \(n,\)"),
        ({"labels": MULTI_HOT}, "rule 'same-label' of dataset 'tiny' needs class labels"),
        ({"rule": "shared-labels"}, "rule 'shared-labels' of dataset 'tiny' needs multi-hot labels"),
        ({"rule": "shared-labels", "labels": MULTI_HOT * np.uint8(2)}, "labels are not multi-hot"),
        ({"rule": "distance"}, r"rule 'distance' .* needs squared_thresholds and levels, got \[\]"),
        (BY_DISTANCE | {"rule_params": {"squared_thresholds": [1.0], "levels": [1, 2]}}, "and 1 thresholds"),
        ({"rule": "explicit"}, r"rule 'explicit' .* needs a matrix of shape \(2, 6\).*got None"),
        ({"rule": "explicit", "matrix": MATRIX.T}, r"needs a matrix of shape \(2, 6\).*got \(6, 2\)"),
        ({"rule": "explicit", "matrix": -MATRIX}, "an affinity holds levels 0 to 1000"),
        ({"rule": "explicit", "matrix": MATRIX / 4}, "dataset 'tiny' needs whole-number levels of relevance, and one"),
        ({"features": None}, "dataset 'tiny' has neither features nor images"),
        ({"features": None, "images": IMAGES[:, :0]}, "dataset 'tiny' has neither features nor images"),
        ({"images": IMAGES.astype(np.float32)}, r"images of dataset 'tiny' are float32 of shape \(8, 4, 5, 3\)"),
        ({"images": IMAGES[..., 0]}, r"images .* uint8 of shape \(8, 4, 5\), expected uint8 of shape"),
        ({"images": IMAGES[..., :2]}, r"images .* of shape \(8, 4, 5, 2\), expected .* 1 or 3\)"),
        ({"images": IMAGES[:7]}, "dataset 'tiny' has 8 rows of features but 7 images"),
        ({"features": None, "images": IMAGES[:7]}, "database .* names rows 1 to 7, but there are 7 items"),
        (BY_DISTANCE | {"features": None, "images": IMAGES}, "rule 'distance' .* needs features, .* images only"),
        ({"rule_params": {"true_distance": "angular"}}, "true_distance .* is 'angular', expected one of"),
        ({"rule": "neighbours"}, r"needs neighbours, int64 of shape \(2, k\), got none"),
        (BY_NEIGHBOURS | {"neighbours": NEIGHBOURS[:1]}, r"\(2, k\), got int64 of shape \(1, 3\)"),
        (BY_NEIGHBOURS | {"neighbours": NEIGHBOURS[0]}, r"\(2, k\), got int64 of shape \(3,\)"),
        (BY_NEIGHBOURS | {"neighbours": NEIGHBOURS[:, :0]}, r"\(2, k\), got int64 of shape \(2, 0\)"),
        (BY_NEIGHBOURS | {"neighbours": NEIGHBOURS.astype(np.int32)}, r"got int32 of shape \(2, 3\)"),
        (
            BY_NEIGHBOURS | {"neighbours": with_value(NEIGHBOURS, (1, 1), 6)},
            "positions 0 to 6, but there are 6 database",
        ),
        (BY_NEIGHBOURS | {"neighbours": with_value(NEIGHBOURS, (0, 1), -1)}, "name positions -1 to 5"),
        (BY_NEIGHBOURS | {"neighbours": with_value(NEIGHBOURS, (1, 2), 1)}, "twice for 1 queries, first query 1"),
    ],
)
def test_a_dataset_that_breaks_the_contract_is_refused_in_words(changes, message):
    with pytest.raises(HashbenchError, match=message) as caught:
        changed(**changes)
    assert re.fullmatch(r".*\.", str(caught.value))  # one line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"features": with_value(BASE.features, (0, 0), 0.5)}),
        ({}, {"labels": with_value(LABELS, 3, 5)}),
        ({}, {"query": BASE.query[::-1]}),
        ({}, {"query": BASE.query[:1]}),
        ({}, {"database": np.array([2, 1, 3, 4, 6, 7])}),
        ({}, {"train": np.array([6, 2])}),
        ({}, BY_DISTANCE),
        (BY_DISTANCE, {"rule_params": {"squared_thresholds": [243.0, 28.0], "levels": [1, 2]}}),
        (BY_DISTANCE, {"rule_params": {"squared_thresholds": [243.0, 27.0], "levels": [1, 5]}}),
        (BY_DISTANCE, {"labels": None}),
        (BY_MATRIX, {"matrix": with_value(MATRIX, (0, 0), 1)}),
        (BY_MATRIX | {"matrix": sp.csr_array(MATRIX)}, {"matrix": sp.csr_array(2 * MATRIX)}),
        (BY_MATRIX | {"matrix": sp.csr_array(MATRIX)}, {"matrix": sp.csr_array(MATRIX[:, ::-1])}),
        (BY_MULTI_HOT, {"labels": with_value(MULTI_HOT, (1, 1), 1 - MULTI_HOT[1, 1])}),
        ({}, {"images": IMAGES}),
        ({"images": IMAGES}, {"features": None}),
        ({"images": IMAGES}, {"images": with_value(IMAGES, (7, 3, 4, 2), IMAGES[7, 3, 4, 2] ^ 1)}),
        ({"images": IMAGES}, {"images": IMAGES.reshape(8, 5, 4, 3)}),
        (BY_NEIGHBOURS, {"neighbours": with_value(NEIGHBOURS, (1, 2), 0)}),
        (BY_NEIGHBOURS, {"neighbours": NEIGHBOURS[:, :2]}),
    ],
)
def test_the_fingerprint_changes_with_each_part_of_the_content(before, after):
    dataset = changed(**before)
    assert changed(dataset, **after).fingerprint != dataset.fingerprint


@pytest.mark.parametrize(
    "same",
    [
        {"name": "other"},
        {"about": {"summary": "Words for people."}},
        {"features": np.asfortranarray(BASE.features)},
        {"labels": LABELS.copy()},
    ],
)
def test_the_fingerprint_does_not_depend_on_name_words_or_memory_layout(same):
    assert changed(**same).fingerprint == BASE.fingerprint


def test_the_fingerprint_of_a_sparse_matrix_ignores_how_it_is_stored_and_does_not_change_it():
    plain = sp.csr_array(MATRIX)
    untidy = sp.csr_array(
        (np.array([2, 1, 0, 1, 10, 1]), np.array([3, 1, 0, 5, 4, 0]), np.array([0, 4, 6])), shape=(2, 6)
    )
    assert untidy.toarray().tolist() == MATRIX.tolist()
    dataset = changed(rule="explicit", matrix=untidy)
    assert dataset.fingerprint == changed(rule="explicit", matrix=plain).fingerprint
    assert untidy.toarray().tolist() == MATRIX.tolist()


def test_rule_parameters_may_be_numpy_numbers():
    params = {"squared_thresholds": np.array([243.0, 27.0]), "levels": np.array([1, 2])}
    assert changed(rule="distance", rule_params=params).fingerprint == changed(**BY_DISTANCE).fingerprint
