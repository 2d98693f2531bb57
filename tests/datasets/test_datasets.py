import dataclasses

import numpy as np
import pytest
from helpers.paths import built_in_datasets
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

from hashbench import registry, testing
from hashbench.adapter import DatasetAdapter, Options
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError

PIXELS, LABELS = load_digits(return_X_y=True)


@pytest.fixture(scope="module", params=["digits", "digits-pairs", "digits-unlabelled"])
def dataset(request):
    return registry.get_dataset(request.param).prepare()


@pytest.fixture(scope="module")
def pairs():
    return registry.get_dataset("digits-pairs").prepare()


@pytest.fixture(scope="module")
def unlabelled():
    return registry.get_dataset("digits-unlabelled").prepare()


@pytest.mark.parametrize("name", [name for name in built_in_datasets() if not registry.get_dataset(name).needs])
@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_dataset_keeps_the_contract(name, check):
    check(registry.get_dataset(name))


@pytest.mark.parametrize(
    ("name", "role", "count", "first", "last"),
    [
        ("digits", "query", 200, (14, 348, [4]), (1796, 392, [8])),
        ("digits", "database", 1597, (0, 294, [0]), (1795, 344, [9])),
        ("digits", "train", 1000, (0, 294, [0]), (1795, 344, [9])),
        ("digits-pairs", "query", 300, (0, 585, [0, 4]), (299, 624, [3, 8])),
        ("digits-pairs", "database", 5700, (300, 555, [5]), (5999, 650, [1, 8])),
        ("digits-pairs", "train", 1000, (300, 555, [5]), (5991, 606, [5, 8])),
        ("digits-unlabelled", "query", 200, (14, 348, None), (1796, 392, None)),
        ("digits-unlabelled", "database", 1597, (0, 294, None), (1795, 344, None)),
        ("digits-unlabelled", "train", 1000, (0, 294, None), (1795, 344, None)),
    ],
)
def test_split_has_its_count_and_its_first_and_last_item(name, role, count, first, last):
    dataset = registry.get_dataset(name).prepare()
    index = getattr(dataset, role)

    def item(row):
        labels = None if dataset.labels is None else np.atleast_2d(dataset.labels.T == 1).T[row].nonzero()[0].tolist()
        if dataset.is_single_label:
            labels = [int(dataset.labels[row])]
        return int(row), float(dataset.features[row].sum()), labels

    assert (len(index), item(index[0]), item(index[-1])) == (count, first, last)


def test_roles_are_sorted_and_lie_where_they_should(dataset):
    for role in ("query", "database", "train"):
        index = getattr(dataset, role)
        assert index.dtype == np.int64
        assert (np.diff(index) > 0).all()
    assert not set(dataset.query) & set(dataset.database)
    assert set(dataset.train) <= set(dataset.database)
    assert len(dataset.query) + len(dataset.database) == dataset.n_samples
    assert dataset.features.dtype == np.float32
    assert dataset.features_name == "pixels"


def test_scans_and_labels_are_those_of_scikit_learn_in_their_order(digits, unlabelled):
    dataset = digits
    for features in (digits.features, unlabelled.features):
        np.testing.assert_array_equal(features, PIXELS)
    np.testing.assert_array_equal(digits.labels, LABELS)
    assert digits.rule == "same-label"
    np.testing.assert_array_equal(np.bincount(LABELS[dataset.query]), [20] * 10)
    np.testing.assert_array_equal(np.bincount(LABELS[dataset.train]), [100] * 10)


def test_unlabelled_digits_hide_their_labels_and_share_the_split(digits, unlabelled):
    assert unlabelled.labels is None
    for role in ("query", "database", "train"):
        np.testing.assert_array_equal(getattr(unlabelled, role), getattr(digits, role))


def test_thresholds_are_percentiles_of_the_distances_between_training_items(unlabelled):
    squared = pdist(PIXELS[unlabelled.train], "sqeuclidean")
    expected = np.percentile(squared, [5, 1, 0.2, 0.1], method="inverted_cdf")
    np.testing.assert_array_equal(unlabelled.rule_params["squared_thresholds"], expected)
    assert unlabelled.rule_params["levels"] == [1, 2, 5, 10]


def shown(pairs, rows):
    """Which scans of scikit-learn each row shows, left and right."""
    number = {scan.tobytes(): row for row, scan in enumerate(PIXELS.astype(np.float32))}
    assert len(number) == 1797  # no scan occurs twice
    halves = pairs.features[rows].reshape(len(rows), 2, 64)
    return np.array([[number[half.tobytes()] for half in row] for row in halves])


def test_pairs_show_two_different_scans_and_none_twice_and_share_the_split(digits, pairs):
    scans = shown(pairs, np.arange(pairs.n_samples))
    assert set(scans[pairs.query].ravel()) <= set(digits.query)
    assert set(scans[pairs.database].ravel()) <= set(digits.database)
    assert (scans[:, 0] != scans[:, 1]).all()
    assert len(np.unique(scans, axis=0)) == 6000


def test_labels_of_a_pair_are_the_digits_it_shows(pairs):
    digits_shown = LABELS[shown(pairs, np.arange(pairs.n_samples))]
    assert [set(row.nonzero()[0]) for row in pairs.labels] == [set(row) for row in digits_shown]


def test_level_of_two_pairs_is_the_number_of_digits_in_common(pairs):
    queries, database = (LABELS[shown(pairs, rows)] for rows in (pairs.query[:60], pairs.database[::19]))
    expected = [[len({*query} & {*item}) for item in database.tolist()] for query in queries.tolist()]
    levels = pairs.affinity().block(slice(0, 60), slice(0, 5700))[:, ::19]
    np.testing.assert_array_equal(levels, expected)
    assert set(np.unique(levels)) == {0, 1, 2}


# ---------------------------------------------------------------- the conformance suite can fail


def adapter(make, adapter_name="tiny"):
    class Adapter(DatasetAdapter):
        name = adapter_name
        summary = "made up"
        prepare = staticmethod(make)

    return Adapter()


class Unwritable(Dataset):
    fingerprint = "0123456789abcdef"


def test_conformance_suite_finds_a_broken_adapter(tiny):
    seeds = iter(range(100))
    words = dict.fromkeys(["summary", "protocol", "source", "licence"], "words")
    changed = {field.name: getattr(tiny(), field.name) for field in dataclasses.fields(Dataset)}
    for check, broken in (
        (testing.check_prepares_the_same_twice, adapter(lambda: tiny(seed=next(seeds)))),
        (testing.check_prepares_the_same_twice, adapter(tiny, "other")),
        (testing.check_tells_its_origin, adapter(lambda: tiny(about=words))),
        (testing.check_tells_its_origin, adapter(lambda: tiny(about={**words, "citation": ""}))),
        (testing.check_survives_a_round_trip, adapter(lambda: Unwritable(**changed))),
        (testing.check_queries_have_relevant_items, adapter(lambda: tiny(labels=np.arange(40)))),
        (testing.check_queries_have_relevant_items, adapter(lambda: tiny(labels=np.zeros(40, np.int64)))),
    ):
        with pytest.raises((testing.ConformanceError, HashbenchError)):
            check(broken)
    for check in testing.DATASET_CHECKS:
        check(adapter(lambda: tiny(about={**words, "citation": "words"})))


@pytest.mark.parametrize(
    ("name", "kind", "files"),
    [
        ("corel5k", None, ["corel5k.npz from http://mulan"]),
        (
            "imagenet100",
            "gist",
            ["train.txt from https://", "database.txt", "test.txt", "image from https://image-net"],
        ),
        ("labelme", None, ["LabelMe_gist.mat from http://www.cs.toronto.edu/~norouzi/"]),
        ("mscoco", "gist", ["train.txt from https://", "database.txt from https://", "test.txt from https://"]),
        ("nuswide", None, ["AllLabels81.txt from https://lms.comp.nus.edu.sg/", "features.npy"]),
        ("nuswide", "gist", ["AllLabels81.txt from https://lms", "Imagelist.txt from https://lms", "Flickr"]),
    ],
)
def test_missing_files_are_asked_for_with_their_address_and_place(data, name, kind, files):
    with pytest.raises(HashbenchError) as caught:
        registry.get_dataset(name, Options(features=kind)).prepare()
    first, *lines = str(caught.value).split("\n  ")
    assert first.startswith(f"dataset '{name}")
    assert f"lacks {len(files)} of {len(files)} files" in first
    for line, file in zip(lines, files, strict=True):
        assert line.startswith(file)
        assert f", to {data / 'sources' / name / file.split()[0]} (" in line


@pytest.mark.parametrize(
    ("changed", "is_read"),
    [({}, True), ({"features": np.ones((501, 4))}, False), ({"labels": np.ones((500, 2), np.uint8)}, False)],
)
def test_a_file_of_the_mulan_repository_is_read_if_it_has_the_shape_of_the_dataset(
    tmp_path, monkeypatch, changed, is_read
):
    corel5k = registry.get_dataset("corel5k", Options(source=tmp_path / "a.npz"))
    monkeypatch.setattr(type(corel5k), "shape", (501, 3, 2))
    np.savez(tmp_path / "a.npz", **{"features": np.ones((501, 3)), "labels": np.ones((501, 2), np.uint8)} | changed)
    if is_read:
        made = corel5k.prepare()
        assert made.features.shape == (501, 3)
        assert (len(made.query), len(made.database)) == (500, 1)
    else:
        with pytest.raises(HashbenchError, match=r"labels of shape .* corel5k has \(501, 3\) and \(501, 2\)"):
            corel5k.prepare()
