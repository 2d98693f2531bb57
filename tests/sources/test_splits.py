import numpy as np
import pytest

from hashbench.errors import HashbenchError
from hashbench.sources.splits import draw_any, draw_by_label, draw_split

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
