"""Supervision as `fit` takes it, and what the supervised methods share."""

from unicodedata import normalize

import numpy as np
import pytest
from helpers.thoroughness import QUICK, slow
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from hashbench import evaluate, registry
from hashbench.affinity import Distance, Explicit, SameLabel, SharedLabels
from hashbench.errors import HashbenchError, Refusal
from hashbench.methods._anchors import draw_anchors
from hashbench.methods._pairs import draw_pairs, similar_matrix
from hashbench.methods.ksh import KSH
from hashbench.methods.sdh import SDH
from hashbench.pipeline.grid import grid

FROM_CLASSES = ["cca-itq", "classifier-lsh", "sdh"]
FROM_PAIRS = ["bre", "fasthash", "ksh", "lfh", "machash", "structhash"]
SUPERVISED = [*FROM_CLASSES, *FROM_PAIRS]


def make(name, n_bits, **params):
    """Return a method with quick settings."""
    return registry.get_method(name)(n_bits, **QUICK.get(name, {}) | params)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def classes(rng):
    """Draw 60 items of three separate classes, and their labels."""
    y = np.arange(60) % 3
    return rng.normal(size=(60, 6)) + 3 * np.eye(6)[y], y


@pytest.mark.parametrize("name", [name for name in SUPERVISED if name != "classifier-lsh"])  # a plane per class number
def test_labels_however_named_and_their_affinity_teach_the_same(name, classes):
    X, y = classes
    codes = make(name, 4).fit(X, y).transform(X)
    affinities = [SameLabel(y, y)] if name in FROM_PAIRS else []
    for supervision in (np.array(["b", "c", "a"])[y], np.eye(3)[y], *affinities):
        np.testing.assert_array_equal(make(name, 4).fit(X, supervision).transform(X), codes)


def test_a_class_is_the_same_however_unicode_spells_it(classes):
    X, y = classes
    names = np.array(["Käse", "Öl", "süß"])[y]
    mixed = np.array([normalize(("NFC", "NFD")[item % 2], name) for item, name in enumerate(names.tolist())])
    for given in (mixed, mixed.astype(object)):
        np.testing.assert_array_equal(make("sdh", 4).fit(X, given).transform(X), make("sdh", 4).fit(X, y).transform(X))


@pytest.mark.parametrize("name", FROM_PAIRS)
def test_every_kind_of_affinity_is_learnt_from(name, classes, rng):
    X, _ = classes
    shared = rng.integers(0, 2, (60, 5))
    shared[0] = 0  # an item without any similar one
    levels = rng.integers(0, 3, (60, 60))
    near = Distance(X, X, [12.0, 4.0], [1, 5])
    for affinity in (SharedLabels(shared, shared), near, Explicit(levels), Explicit(csr_array(levels))):
        codes = make(name, 4).fit(X, affinity).transform(X)
        assert len(np.unique(codes, axis=0)) > 1


REFUSED = {
    "no labels": (lambda X, y: (X, None), HashbenchError, r"requires y.*labels of the training items"),
    "too few labels": (lambda X, y: (X, y[:59]), HashbenchError, r"60 items.*\(59,\)"),
    "labels not finite": (lambda X, y: (X, np.r_[np.nan, y[1:]]), HashbenchError, "1 labels that are not finite"),
    "too large": (lambda X, y: (X * 1e160, y), HashbenchError, "Scale the features"),
    "too small": (lambda X, y: (X * 1e-170, y), HashbenchError, "Scale the features"),
    "equal items": (lambda X, y: (np.ones((60, 6)), y), Refusal, "n_samples=60, all of them equal"),
    "one class": (lambda X, y: (X, 0 * y), Refusal, r"n_samples=60.*two classes"),
    "no similar items": (lambda X, y: (X, np.arange(60)), Refusal, "several of each"),
    "affinity of other items": (lambda X, y: (X, SameLabel(y[:59], y)), HashbenchError, r"\(59, 60\).*\(60, 60\)"),
}
NOT_FOR = {
    "talr-ap": ["no similar items", "one class"],
    **{name: ["affinity of other items", "no similar items"] for name in FROM_CLASSES},
}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *((name, case) for name in [*SUPERVISED, "talr-ap"] for case in REFUSED if case not in NOT_FOR.get(name, ())),
        ("lsh", "too large"),
        ("lsh", "too small"),
    ],
)
def test_items_and_supervision_that_cannot_be_learnt_from_are_refused(name, case, classes):
    change, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        registry.get_method(name)(8).fit(*change(*classes))


@pytest.mark.parametrize("name", SUPERVISED)
def test_duplicates_and_constant_features_do_no_harm(name, classes):
    X, y = classes
    X, y = np.tile(X[:15], (4, 1)), np.tile(y[:15], 4)
    X = np.column_stack([X, np.full(60, 7.0), np.zeros(60)])
    method = make(name, 16).fit(X, y)
    codes = method.transform(X)
    np.testing.assert_array_equal(codes[:15], codes[45:])
    assert len(np.unique(codes, axis=0)) > 1


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in ("bre", "cca-itq", "classifier-lsh", "ksh", "lfh", "machash")),
        ("dsh-density", {}),
        *slow(("fasthash", {}), ("structhash", {}), ("machash", {"kernel": "rbf"})),  # trees, or ksh's anchors
    ],
)
@pytest.mark.parametrize("offset", [1.7e9, *slow(1e12)])
def test_a_large_constant_feature_does_no_harm(name, params, offset, digits):
    """Such as a time: distances must not drown in its square."""
    X, y = digits.features[digits.train].astype(np.float64)[:200], digits.labels[digits.train][:200]
    moved = np.column_stack([X, np.full(len(X), offset)])
    same = y[:, None] == y
    contrast = []
    for items in (X, moved):
        codes = make(name, 16, **params).fit(items, y).transform(items)
        distances = cdist(codes, codes, "cityblock")
        contrast.append((distances[~same].mean() - distances[same].mean()) / 16)
    assert contrast[1] == pytest.approx(contrast[0], abs=0.02)


def test_labels_of_no_use_are_refused_in_a_sentence(classes):
    X, y = classes
    with pytest.raises(HashbenchError, match="sdh learns from labels, got y of kind SameLabel"):
        SDH(8).fit(X, SameLabel(y, y))
    with pytest.raises(HashbenchError, match="labels of different kinds: NoneType, str"):
        KSH(8).fit(X, np.array(["a", None] * 30, dtype=object))
    with pytest.raises(HashbenchError, match="labels of different kinds: float, str"):
        KSH(8).fit(X, ["a", np.nan] * 30)


@pytest.mark.parametrize("name", SUPERVISED)
def test_codes_of_unseen_items_keep_classes_apart(name, rng):
    y = np.arange(160) % 4
    X = rng.normal(size=(160, 8)) + 4 * np.eye(8)[y]
    codes = make(name, 16).fit(X[:80], y[:80]).transform(X[80:])
    distances = cdist(codes, codes, "cityblock")
    same = y[80:, None] == y[80:]
    assert distances[same].mean() < 0.5 * distances[~same].mean()


# ---------------------------------------------------------------- pairs


def test_pairs_are_different_items_once_each_with_their_level(rng):
    labels = rng.integers(0, 2, (50, 4))
    affinity = SharedLabels(labels, labels)
    rows = np.sort(rng.choice(50, 40, replace=False))
    pairs = draw_pairs(KSH(), affinity, rows, 5, 7, rng)
    assert (pairs.first < pairs.second).all()
    assert len(set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))) == len(pairs.first)
    common = labels[rows] @ labels[rows].T
    np.testing.assert_array_equal(pairs.level, common[pairs.first, pairs.second])
    both = np.concatenate([pairs.first, pairs.second])
    for kind, n_wanted in ((common > 0, 5), (common == 0, 7)):
        kind = kind & ~np.eye(40, dtype=bool)
        n_found = np.bincount(both[np.tile(kind[pairs.first, pairs.second], 2)], minlength=40)
        assert (n_found >= np.minimum(kind.sum(axis=1), n_wanted)).all()
        assert (n_found <= kind.sum(axis=1)).all()


def test_all_pairs_are_drawn_if_so_many_are_asked_for(rng):
    labels = np.arange(300) % 3
    pairs = draw_pairs(KSH(), SameLabel(labels, labels), np.arange(300), 300, 300, rng)
    assert len(pairs.first) == 300 * 299 // 2


def test_a_pair_has_the_higher_level_of_its_two_directions(rng):
    levels = rng.integers(0, 3, (40, 40)) * (rng.random((40, 40)) < 0.3)
    rows, either = np.arange(40), np.maximum(levels, levels.T)
    pairs = draw_pairs(KSH(), Explicit(levels), rows, 40, 40, rng)
    np.testing.assert_array_equal(pairs.level, either[pairs.first, pairs.second])
    assert len(pairs.level) == 40 * 39 // 2
    np.testing.assert_array_equal(similar_matrix(KSH(), Explicit(levels), rows), (either > 0) | np.eye(40, dtype=bool))


@pytest.mark.parametrize("name", ["bre", "sdh", "sph", "dpsh", "csq", "bihalf", "lsh"])
def test_new_items_whose_squares_leave_float64_are_refused(name, classes):
    X, y = classes
    method = make(name, 4).fit(X, y)
    for factor in (1e154, 1e250):
        with pytest.raises(HashbenchError, match=r"got features up to .*, whose squares leave .* Scale the features"):
            method.transform(X * factor)
        with pytest.raises(HashbenchError, match="Scale the features"):
            method.transform(np.where(np.arange(60)[:, None] == 7, X * factor, X))


@pytest.mark.parametrize("name", ["dpsh", "sdh", "lsh"])
def test_new_items_of_any_other_size_are_encoded(name, classes):
    X, y = classes
    method = make(name, 4).fit(X, y)
    np.testing.assert_array_equal(method.transform(X * 1e151), method.transform(X * 1e100))
    assert len(method.transform(X * 0)) == len(method.transform(X * 1e-200)) == 60


# ---------------------------------------------------------------- anchors


@pytest.mark.parametrize("n_items", [70, 9000])
def test_anchor_features_follow_their_definition(n_items, rng):
    X = rng.normal(size=(n_items, 4))
    anchors = draw_anchors(KSH(), X, 20, rng)
    squared = cdist(X, anchors.items, "sqeuclidean")
    raw = np.exp(-squared / (2 * squared.mean()))
    np.testing.assert_allclose(anchors.features(X), raw - raw.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(anchors.features(X).mean(axis=0), 0, atol=1e-12)
    assert {tuple(row) for row in anchors.items} <= {tuple(row) for row in X}
    assert len(np.unique(anchors.items, axis=0)) == 20


def test_anchor_functions_are_computed_alike_in_batches(rng):
    X, weights = rng.normal(size=(20000, 3)), rng.normal(size=(5, 2))
    anchors = draw_anchors(KSH(), X, 5, rng, gamma=0.3)
    np.testing.assert_allclose(anchors.project(X, weights), np.exp(-0.3 * cdist(X, anchors.items) ** 2) @ weights)


@pytest.mark.parametrize("name", ["fasthash", "ksh", "lfh", "machash", "structhash"])
def test_papers_settings_are_a_preset_that_learns(name):
    (job,) = grid(["digits"], [name], [4], [0], {"preset": "paper"})
    assert job.params == registry.get_method(name).preset("paper", 4)
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    X = rng.normal(size=(60, 5)) + 3 * np.eye(5)[labels]
    codes = job.estimator.fit(X, labels).transform(X)
    assert evaluate(codes, codes, (labels, labels), ["AP"]).summary["AP"].mean > 0.9
