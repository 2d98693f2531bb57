import hashlib

import numpy as np
import pytest
from helpers.website import whole, zipped
from PIL import Image

from hashbench import testing
from hashbench.adapter import Options
from hashbench.datasets.mscoco import MSCoco, MSCocoDisjoint
from hashbench.errors import HashbenchError

PARTS = ("train2014", "val2014")
PREFIX = "/home/somebody/dataset/coco"
PHOTOS = [f"COCO_{('train', 'val')[number % 2]}2014_{number * 37:012}.jpg" for number in range(20)]
LABELS = np.eye(4, dtype=np.uint8)[np.arange(20) % 4] | np.eye(4, dtype=np.uint8)[np.arange(20) // 5]
DATABASE = [11, 3, 7, 0, 19, 4, 5, 16, 2, 9, 14, 8, 1, 13]
LISTS = {"train": [6, 12, 18, 10, 15, 17], "database": DATABASE, "test": [4, 13, 11]}
SIZES = {"n_train": 6, "n_database": 14, "n_test": 3, "n_classes": 4, "archives": {}}
Small = type("Small", (MSCoco,), SIZES)
SmallDisjoint = type("SmallDisjoint", (MSCocoDisjoint,), SIZES)


def write_list(folder, name, numbers, labels=LABELS):
    lines = [f"{PREFIX}/{PHOTOS[n][5:-17]}/{PHOTOS[n]} {' '.join(map(str, labels[n]))}\n" for n in numbers]
    (folder / f"{name}.txt").write_text("".join(lines))


def write_photos(folder):
    """Each photo is of one colour, another for each."""
    for number, name in enumerate(PHOTOS):
        place = folder / ("val2014" if "val" in name else "train2014")
        place.mkdir(exist_ok=True)
        Image.new("RGB", (9 + number % 4, 10), (10 * number, 0, 0)).save(place / name, quality=100, subsampling=0)


@pytest.fixture
def source(tmp_path):
    for name, numbers in LISTS.items():
        write_list(tmp_path, name, numbers)
    write_photos(tmp_path)
    return tmp_path


def prepared(source, cls=Small):
    return cls(Options(source=source, features="images", image_size=8)).prepare()


def refused(source, words):
    """Check that a source is refused; return the error."""
    with pytest.raises(HashbenchError, match=words) as caught:
        prepared(source)
    return str(caught.value)


def shown(dataset, role):
    """Return which photos a role has."""
    return np.rint(dataset.images[getattr(dataset, role), 4, 4, 0] / 10).astype(int).tolist()


def test_roles_are_those_of_the_lists_with_the_queries_in_the_database(source):
    dataset = prepared(source)
    assert {role: shown(dataset, role) for role in ("query", "database", "train")} == {
        "query": LISTS["test"],
        "database": DATABASE,
        "train": LISTS["train"],
    }
    assert (dataset.name, dataset.rule, dataset.n_samples) == ("mscoco", "shared-labels", 23)
    for role, name in (("query", "test"), ("database", "database"), ("train", "train")):
        np.testing.assert_array_equal(dataset.labels[getattr(dataset, role)], LABELS[LISTS[name]])


def test_each_query_finds_itself_and_shares_its_categories(source):
    dataset = prepared(source)
    for row, number in zip(dataset.query, LISTS["test"], strict=True):
        own = dataset.database[DATABASE.index(number)]
        np.testing.assert_array_equal(dataset.images[row], dataset.images[own])
    levels = dataset.affinity().block(slice(0, 3), slice(0, 14))
    np.testing.assert_array_equal(levels, LABELS[LISTS["test"]].astype(int) @ LABELS[DATABASE].astype(int).T)


def test_the_other_variant_has_no_query_in_the_database(source):
    dataset = prepared(source, SmallDisjoint)
    assert shown(dataset, "query") == LISTS["test"]
    assert shown(dataset, "database") == [number for number in DATABASE if number not in LISTS["test"]]
    assert shown(dataset, "train") == LISTS["train"]
    assert (dataset.name, dataset.n_samples) == ("mscoco-disjoint", 20)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda line: line[:-1] + "2", "one or several of them 1"),
        (lambda line: line.replace(" 1", " 0"), "one or several of them 1"),
        (lambda line: line[:-2], "expected a path and 4 digits"),
    ],
    ids=["two", "none", "short"],
)
def test_lines_without_categories_are_refused(source, change, expected):
    lines = (source / "test.txt").read_text().splitlines()
    (source / "test.txt").write_text("\n".join([*lines[:2], change(lines[2])]))
    refused(source, f"test.txt has a line that begins .*{expected}")


def test_lists_of_other_lengths_are_refused(source):
    write_list(source, "train", LISTS["train"][:-1])
    refused(source, "train.txt has 5 lines with 5 images, expected 6")


@pytest.mark.parametrize(
    ("name", "numbers", "labels", "expected"),
    [
        ("train", [6, 12, 18, 10, 15, 3], LABELS, "1 training images inside the database"),
        ("test", [4, 13, 6], LABELS, "1 queries outside the database"),
        ("test", [4, 13, 11], LABELS[::-1], "queries of other categories"),
    ],
)
def test_lists_that_contradict_each_other_are_refused(source, name, numbers, labels, expected):
    write_list(source, name, numbers, labels)
    refused(source, f"name .*{expected}, first COCO_")


def test_missing_photos_and_lists_are_requested(source):
    (source / "val2014" / PHOTOS[9]).unlink()
    refused(source, f"1 of the 20 images of .* missing below {source}: {PHOTOS[9]}")
    (source / "database.txt").unlink()
    message = refused(source, "dataset 'mscoco' lacks 1 of 3 files")
    assert "\n  database.txt from https://github.com/thuml/HashNet" in message


def test_photos_are_downloaded_once_there_are_lists(data, site, tmp_path):
    write_photos(tmp_path)
    archives = [zipped({str(p.relative_to(tmp_path)): p for p in tmp_path.glob(f"{part}/*")}) for part in PARTS]
    site.answering(*map(whole, archives))
    home = site.url.rpartition("/")[0]
    sums = [hashlib.sha256(archive).hexdigest() for archive in archives]
    of_site = dict(zip([f"{home}/{part}.zip" for part in PARTS], sums, strict=True))
    cls = type("Downloaded", (SmallDisjoint,), {"archives": of_site})
    options = Options(features="images", image_size=8)
    with pytest.raises(HashbenchError, match="lacks 3 of 3 files"):
        cls(options).prepare()
    assert not site.n_sent
    folder = data / "sources" / "mscoco"
    folder.mkdir(parents=True)
    for name, numbers in LISTS.items():
        write_list(folder, name, numbers)
    for _ in range(2):
        assert shown(cls(options).prepare(), "train") == LISTS["train"]
    assert len(site.n_sent) == 2
    assert [path.name for path in (data / "downloads").iterdir() if path.suffix == ".zip"] == []


@pytest.mark.parametrize("cls", [Small, SmallDisjoint])
@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_adapter_keeps_the_contract(source, check, cls):
    check(cls(Options(source=source, features="pixels", image_size=8)))
