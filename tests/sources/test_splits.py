import dataclasses
import re

import numpy as np
import pytest

from hashbench.errors import HashbenchError
from hashbench.sources.splits import draw_any, draw_by_label, draw_split, leave_out
from hashbench.store.hdf5 import read_dataset, write_dataset
from hashbench.unseen import UnseenClasses

# 90 items of 4 labels: label 2 is rare, label 3 belongs to the items of label 2 as well.
MULTI_HOT = np.random.default_rng(3).integers(0, 2, (90, 4)).astype(np.uint8)
MULTI_HOT[:, 2] = np.arange(90) < 12
MULTI_HOT[:12, 3] = 1


def assert_is_split(split, n_samples):
    query, database, train = split
    for index in split:
        assert index.dtype == np.int64
        assert (np.diff(index) > 0).all()
    assert sorted([*query, *database]) == list(range(n_samples))
    assert set(train) <= set(database)


def assert_is_reproducible(draw, *arguments):
    first, again, other = (draw(*arguments, random_state=seed) for seed in (0, 0, 1))
    for part, same in zip(first, again, strict=True):
        np.testing.assert_array_equal(part, same)
    assert other[0].tolist() != first[0].tolist()


def test_a_drawn_split_is_balanced_disjoint_and_the_same_each_time():
    labels = np.random.default_rng(1).permutation(np.arange(4).repeat([20, 15, 30, 12]))
    split = query, _, train = draw_split(labels, 3, 5, random_state=0)
    assert_is_split(split, 77)
    assert np.bincount(labels[query]).tolist() == [3] * 4
    assert np.bincount(labels[train]).tolist() == [5] * 4
    assert_is_reproducible(draw_split, labels, 3, 5)


def test_a_split_larger_than_a_class_is_refused_in_words():
    with pytest.raises(HashbenchError, match="class 1 has 7 items, but 3 queries and 5 training items"):
        draw_split(np.arange(2).repeat([8, 7]), 3, 5, random_state=0)


@pytest.mark.parametrize("seed", range(5))
def test_a_split_by_label_has_enough_items_of_each_label(seed):
    split = query, _, train = draw_by_label(MULTI_HOT, 4, 6, random_state=seed)
    assert_is_split(split, 90)
    assert (len(query), len(train)) == (4 * 4, 6 * 4)
    assert (MULTI_HOT[query].sum(axis=0) >= 4).all()
    assert (MULTI_HOT[train].sum(axis=0) >= 6).all()


def test_a_split_by_label_is_the_same_each_time_and_may_lack_training_items():
    assert_is_reproducible(draw_by_label, MULTI_HOT, 4, 6)
    query, database, train = draw_by_label(MULTI_HOT, 2, 0, random_state=0)
    assert (len(query), len(database), train.shape, train.dtype) == (8, 82, (0,), np.int64)


@pytest.mark.parametrize(("role", "counts"), [(0, (4, 0)), (2, (0, 4))])
def test_rare_labels_are_drawn_before_frequent_ones_take_their_items(role, counts):
    labels = np.ones((30, 2), dtype=np.uint8)
    labels[4:, 1] = 0  # four items of label 1, which have label 0 too
    for seed in range(10):
        assert set(range(4)) <= set(draw_by_label(labels, *counts, random_state=seed)[role])


@pytest.mark.parametrize(
    ("n_queries", "n_train", "message"),
    [
        (13, 0, "label 2 has 12 items not drawn before, but 13 queries are to be drawn of each label"),
        (6, 7, r"label 2 has [0-6] items not drawn before, but 7 training items are to be drawn"),
    ],
)
def test_more_items_than_a_label_has_are_refused_in_words(n_queries, n_train, message):
    with pytest.raises(HashbenchError, match=message):
        draw_by_label(MULTI_HOT, n_queries, n_train, random_state=0)


def test_a_split_regardless_of_labels_has_the_numbers_asked_for():
    split = query, database, train = draw_any(50, 7, 20, random_state=0)
    assert_is_split(split, 50)
    assert (len(query), len(database), len(train)) == (7, 43, 20)
    assert_is_reproducible(draw_any, 50, 7, 20)
    _, database, train = draw_any(50, 7, None, random_state=0)
    np.testing.assert_array_equal(train, database)


def test_training_items_are_drawn_at_random():
    _, database, train = draw_any(1000, 10, 100, random_state=0)
    assert train.max() > 800  # not the first ones
    assert not np.array_equal(train, database[:100])


@pytest.mark.parametrize(("n_queries", "n_train"), [(0, 5), (10, None), (11, None), (3, 8)])
def test_a_split_of_more_items_than_there_are_is_refused_in_words(n_queries, n_train):
    with pytest.raises(HashbenchError, match=f"of 10 items, {n_queries} queries and {n_train or 1} training items"):
        draw_any(10, n_queries, n_train, random_state=0)


def test_all_items_may_be_used():
    assert_is_split(draw_any(10, 3, 7, random_state=0), 10)


# ---------------------------------------------------------------- classes left out of training


SCOPES = [("unseen", "unseen"), ("unseen", "all"), ("all", "all")]


@pytest.fixture
def dataset(tiny):
    """Ten classes, four items each, of which one is a query; the classes are not numbered from 0."""
    labels = np.arange(40) % 10 * 3 + 5
    return tiny(labels=labels, query=np.arange(10), database=np.arange(10, 40), train=np.arange(20, 40))


def classes_of(dataset, role):
    return {*dataset.labels[getattr(dataset, role)]}


@pytest.mark.parametrize(("queries", "database"), SCOPES)
def test_training_sees_no_item_of_the_unseen_classes_and_all_of_the_others(dataset, queries, database):
    part = leave_out(dataset, UnseenClasses(3, 1, queries, database))
    everything = {*dataset.labels}
    unseen = everything - classes_of(part, "train")
    assert len(unseen) == 3
    assert classes_of(part, "query") == (unseen if queries == "unseen" else everything)
    assert classes_of(part, "database") == (unseen if database == "unseen" else everything)
    for role, classes in (("train", everything - unseen), ("query", classes_of(part, "query"))):
        before = getattr(dataset, role)
        expected = dataset.features[before[np.isin(dataset.labels[before], [*classes])]]
        np.testing.assert_array_equal(part.features[getattr(part, role)], expected)


def test_items_without_a_role_are_dropped_and_arrays_that_lose_none_are_not_copied(dataset):
    everything = leave_out(dataset, UnseenClasses(3, 0, "all", "all"))
    assert everything.features is dataset.features
    part = leave_out(dataset, UnseenClasses(3, 0))
    assert part.n_samples == 3 + 9 + 14
    assert {*np.concatenate([part.query, part.database, part.train])} == {*range(part.n_samples)}


def test_folds_share_no_class_and_the_seed_does_not_depend_on_them(dataset):
    unseen = [{*dataset.labels} - classes_of(leave_out(dataset, UnseenClasses(3, fold)), "train") for fold in range(3)]
    assert len(set.union(*unseen)) == 9
    order = np.random.default_rng(0).permutation(np.unique(dataset.labels))
    assert unseen == [{*order[:3]}, {*order[3:6]}, {*order[6:9]}]


def test_training_items_outside_the_database_stay_there(dataset):
    apart = dataclasses.replace(dataset, database=np.arange(10, 20))
    part = leave_out(apart, UnseenClasses(3, 0, "unseen", "all"))
    assert (len(part.query), len(part.database), len(part.train)) == (3, 10, 14)
    assert not {*part.train} & {*part.database}


def test_images_are_cut_with_the_items_and_relevant_is_the_class_not_the_superclass(dataset):
    images = np.arange(40 * 12, dtype=np.uint16).astype(np.uint8).reshape(40, 2, 2, 3)
    whole = dataclasses.replace(dataset, rule="hierarchy", coarse_labels=dataset.labels // 10, images=images)
    part = leave_out(whole, UnseenClasses(4))
    rows = [next(row for row in range(40) if (whole.features[row] == item).all()) for item in part.features]
    assert (part.rule, part.coarse_labels) == ("same-label", None)
    assert "not the same superclass" in part.about["protocol"]
    np.testing.assert_array_equal(part.images, images[rows])


@pytest.mark.parametrize("rule", ["same-label", "hierarchy"])
@pytest.mark.parametrize("database", ["unseen", "all"])
def test_nothing_relevant_to_an_unseen_query_is_of_a_class_that_training_saw(dataset, rule, database):
    whole = dataclasses.replace(dataset, rule=rule, coarse_labels=dataset.labels // 10 if rule == "hierarchy" else None)
    part = leave_out(whole, UnseenClasses(3, 0, "unseen", database))
    relevant = part.affinity().block(np.arange(len(part.query)), np.arange(len(part.database))) > 0
    assert relevant.any(axis=1).all()
    relevant_classes = part.labels[part.database][relevant.any(axis=0)]
    assert not {*relevant_classes} & classes_of(part, "train")


def test_parts_of_a_dataset_are_known_by_the_first_digits_of_its_fingerprint(dataset, tmp_path):
    parts = [leave_out(dataset, UnseenClasses(3, fold)) for fold in (0, 1)]
    assert {part.fingerprint[:8] for part in parts} == {dataset.fingerprint[:8]}
    assert len({part.fingerprint for part in [dataset, *parts]}) == 3
    assert all(len(part.fingerprint) == 16 for part in parts)
    write_dataset(parts[0], tmp_path / "part.h5")
    assert read_dataset(tmp_path / "part.h5").fingerprint == parts[0].fingerprint


def test_name_content_and_protocol_are_its_own(dataset):
    parts = [leave_out(dataset, UnseenClasses(3, fold, *scope)) for fold in (0, 1) for scope in SCOPES]
    assert len({part.fingerprint for part in [dataset, *parts]}) == len({part.name for part in [dataset, *parts]}) == 7
    assert parts[0].name == "tiny-unseen3-fold0"
    listed = ", ".join(map(str, sorted({*dataset.labels} - classes_of(parts[0], "train"))))
    for words in (f"training sees 7 of 10 classes, not {listed} ", "fold 0", "seed 0"):
        assert words in parts[0].about["protocol"]
    assert "Sablayrolles" in parts[0].about["citation"]


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ((3, 3), "10 classes of tiny give 3 folds of 3 unseen classes, got fold 3; choose 0 to 2"),
        ((9, 0), "9 of the 10 classes of tiny cannot be unseen; choose 1 to 8"),
        ((0, 0), "0 of the 10 classes of tiny"),
    ],
)
def test_too_many_classes_and_folds_are_refused(dataset, protocol, expected):
    with pytest.raises(HashbenchError, match=re.escape(expected)):
        leave_out(dataset, UnseenClasses(*protocol))


@pytest.mark.parametrize(
    ("rule", "changes", "expected"),
    [
        ("shared-labels", {}, "several labels per item and the rule shared-labels"),
        ("distance", {}, "no labels and the rule distance"),
        ("neighbours", {"neighbours": np.arange(16).reshape(8, 2)}, "and the rule neighbours"),
    ],
)
def test_datasets_without_single_labels_are_refused(tiny, rule, changes, expected):
    with pytest.raises(HashbenchError, match=f"tiny-unseen1-fold0 needs one label per item .* tiny has .*{expected}"):
        leave_out(tiny(rule, **changes), UnseenClasses(1))


def test_a_role_that_loses_all_items_is_told(dataset):
    of_one = dataclasses.replace(dataset, query=np.arange(1))
    with pytest.raises(HashbenchError, match="has no query items, since tiny has none of those classes"):
        [leave_out(of_one, UnseenClasses(3, fold)) for fold in range(3)]
