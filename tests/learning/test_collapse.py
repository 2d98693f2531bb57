import math
from contextlib import nullcontext

import numpy as np
import pytest
from helpers.learned_methods import LEARNED, OF_CLASSES, OF_PAIRS, UNSUPERVISED, fitted
from helpers.thoroughness import slow

from hashbench import evaluate, registry
from hashbench.affinity import Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.errors import HashbenchError, Refusal
from hashbench.learning import state
from hashbench.methods.talr_ap import TALRAP

COLLAPSED = r"of 10 kinds, .* have only (1 code|\d different)"


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("dtsh", {"learning_rate": 1e12}, r"outputs are no longer finite"),
        ("hashnet", {"scaling": "none", "learning_rate": 1.0}, COLLAPSED),
        ("talr-ap", {"scaling": "none", "alpha": 5.0, "learning_rate": 1.0}, COLLAPSED),
    ],
)
def test_collapsed_training_stops_with_the_likely_cause(name, params, message, example):
    X, y = example
    with pytest.raises(HashbenchError, match=message) as caught:
        fitted((100 * X, y), name, epochs=15, n_hidden=1024, **params)
    assert "lower learning_rate" in str(caught.value)
    is_scaled = params.get("scaling", "variance") == "variance"
    assert ("scaling='variance'" in str(caught.value)) != is_scaled


@pytest.mark.parametrize("name", [*OF_PAIRS, *OF_CLASSES, *slow(*UNSUPERVISED)])
def test_one_class_is_learnt_from_or_refused_and_as_many_classes_as_items_are_learnt_from(name, example):
    X = example[0][:40]
    method = registry.get_method(name)(16, epochs=2, n_hidden=32)
    with np.errstate(all="raise"):
        assert method.fit(X, np.arange(40)).transform(X).shape == (40, 16)
        if name not in OF_CLASSES:
            assert method.fit(X, np.zeros(40, dtype=int)).transform(X).shape == (40, 16)
            return
    with pytest.raises(Refusal, match=rf"{name} needs .* two classes, but all 40 training items have the same"):
        method.fit(X, np.zeros(40, dtype=int))


@pytest.mark.parametrize("name", ["dtsh", "talr-ap", *slow(*{*LEARNED, *UNSUPERVISED} - {"dtsh", "talr-ap"})])
def test_outputs_that_are_not_finite_stop_any_method_with_the_likely_cause(name, example):
    with pytest.raises(HashbenchError, match=r"stopped .*lower learning_rate"):
        fitted(example, name, learning_rate=1e12)


def test_labels_that_many_items_share_are_no_collapse():
    """Forty kinds of items, each with several of 100 labels: fewer than 50 codes can be all there is to find."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 40, 800)
    X = rng.normal(size=(40, 20))[kind] + 0.05 * rng.normal(size=(800, 20))
    labels = np.c_[np.eye(40, dtype=int)[kind], rng.random((800, 60)) < 0.05].astype(int)
    assert len(TALRAP(8, epochs=8, n_hidden=64).fit(X, labels).history_) == 8


def superclasses():
    """Fifty classes in five superclasses, far apart."""
    rng = np.random.default_rng(0)
    classes = np.arange(500) % 50
    coarse = classes // 10
    X = 3 * rng.normal(size=(5, 32))[coarse] + rng.normal(size=(50, 32))[classes] + 0.3 * rng.normal(size=(500, 32))
    return X, Hierarchy(classes, classes, coarse, coarse)


def broad_labels():
    """One of two broad labels an item, and one of forty others."""
    rng = np.random.default_rng(0)
    broad, tag = np.arange(500) % 2, rng.integers(0, 40, 500)
    labels = np.concatenate([np.eye(2, dtype=int)[broad], np.eye(40, dtype=int)[tag]], axis=1)
    X = 3 * rng.normal(size=(2, 32))[broad] + rng.normal(size=(40, 32))[tag] + 0.3 * rng.normal(size=(500, 32))
    return X, SharedLabels(labels, labels)


@pytest.mark.parametrize("name", ["hashnet", "mihash", *slow("dpsh", "talr-ap")])
def test_fewer_codes_than_classes_are_no_collapse(name):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(40), 10)
    X = rng.normal(size=(40, 32))[classes] + 0.3 * rng.normal(size=(400, 32))
    codes = registry.get_method(name)(3, epochs=10, n_hidden=64).fit(X, classes).transform(X)
    assert len(np.unique(codes, axis=0)) >= 7


@pytest.mark.parametrize("epochs", [8, *slow(30)])
@pytest.mark.parametrize("name", ["hashnet", *slow("dpsh", "dsh", "mihash")])
@pytest.mark.parametrize("make", [superclasses, broad_labels])
def test_one_code_for_all_that_is_relevant_is_no_collapse(name, make, epochs):
    X, affinity = make()
    codes = registry.get_method(name)(16, epochs=epochs, n_hidden=64).fit(X, affinity).transform(X)
    assert evaluate(codes, codes, affinity, ["AP"]).summary["AP"].mean > 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rate"), [("dtsh", 0.03), ("talr-ndcg", 0.003), ("talr-ap", 0.3)])
def test_fewer_codes_than_half_the_kinds_may_be_the_way_up(name, rate):
    """A hundred classes in three dimensions: 8 bits can separate about fifty of them."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(100), 10)
    X = (rng.normal(size=(100, 3)) @ rng.normal(size=(3, 32)))[classes] + 0.02 * rng.normal(size=(1000, 32))
    methods = [registry.get_method(name)(8, learning_rate=rate), registry.get_method("itq")(8)]
    codes = [method.fit(X, classes).transform(X) for method in methods]
    score, itq = (evaluate(one, one, (classes, classes), ["AP"]).summary["AP"].mean for one in codes)
    assert min(epoch.n_distinct for epoch in methods[0].history_) <= 50
    assert score > itq + 0.05


@pytest.mark.parametrize(
    ("counts", "n_bits", "n_kinds", "stops"),
    [
        ([90, 5, 5, 5], 16, 10, True),
        ([5, 3, 4], 16, 10, True),
        ([5, 5], 16, 10, False),  # there may be more soon
        ([3, 4, 5], 16, 10, False),  # there are more each time
        ([5, 6, 5], 16, 10, False),
        ([5, 5, 5], 6, 10, False),  # of 64 codes, kinds would share some by chance
        ([2, 2, 2], 6, 10, True),
        ([16, 16, 16], 4, 100, False),  # all codes there are
        ([4, 4, 4], 4, 100, True),
        ([1, 1, 1], 16, 2, True),
        ([1, 1, 1], 16, 1, False),
    ],
)
def test_training_stops_where_few_codes_do_not_become_more(counts, n_bits, n_kinds, stops):
    epochs = [state.Epoch(number, 9, 0.5, count, 1.0, math.nan) for number, count in enumerate(counts, 1)]
    with pytest.raises(state.Stopped) if stops else nullcontext():
        state.stop_if_failed(epochs, n_kinds, n_bits)


@pytest.mark.parametrize(
    ("affinity", "n_kinds"),
    [
        (SameLabel([0, 0, 1, 1, 2], [0, 0, 1, 1, 2]), 2),  # a class of one item is no measure
        (SameLabel([0, 1, 2], [0, 1, 2]), 2),
        (SameLabel([4, 4, 4], [4, 4, 4]), 1),
        (superclasses()[1], 5),
        (broad_labels()[1], 2),
        (SharedLabels(*2 * (np.repeat(np.eye(7, dtype=int), 2, axis=0),)), 7),
        (SharedLabels(*2 * (np.repeat([[0, 0], [0, 1], [1, 1]], 2, axis=0),)), 1),  # items without labels are of none
        (Explicit(np.eye(5, dtype=int)), 2),
        (Explicit(np.ones((5, 5), dtype=int)), 1),
        (Explicit(np.kron(np.eye(2, dtype=int), 1 - np.eye(3, dtype=int))), 2),  # no item is relevant to itself
        (SharedLabels(*2 * (np.c_[np.ones(9, dtype=int), np.eye(9, dtype=int)],)), 1),
    ],
)
def test_kinds_are_irrelevant_to_each_other(affinity, n_kinds):
    assert state.count_kinds(affinity) == n_kinds


@pytest.mark.parametrize(("n_bits", "epochs", "rate"), [(2, 5, 1.0), (3, 5, 1.0), (4, 5, 1.0), (8, 3, 30.0)])
def test_collapse_of_short_codes_and_in_the_last_epoch_is_found(n_bits, epochs, rate, example):
    """The codes of the last visits do not show what the last steps changed."""
    X, y = example
    with pytest.raises(HashbenchError, match=COLLAPSED):
        registry.get_method("hashnet")(n_bits, epochs=epochs, scaling="none", learning_rate=rate).fit(100 * X, y)
