import hashlib

import numpy as np
import pytest
from helpers.website import whole, zipped
from PIL import Image

from hashbench import testing
from hashbench.adapter import Options
from hashbench.datasets.mirflickr import MIRFlickr, MIRFlickr38
from hashbench.errors import HashbenchError

N_ALL = 40
UNLABELLED = [0, 13, 39]


class Small(MIRFlickr):
    n_all, n_labelled, n_queries, n_train, archives = N_ALL, 37, 5, 10, {}


class Small38(MIRFlickr38):
    n_all, n_labelled, n_queries, n_train, archives = N_ALL, 37, 5, 10, {}


@pytest.fixture(scope="module")
def labels():
    """Columns in the order of the sorted names; strict labels are among the potential ones."""
    names = MIRFlickr38.names
    rng = np.random.default_rng(0)
    multi_hot = (rng.random((N_ALL, 38)) < 0.05).astype(np.uint8)
    for row in range(N_ALL):
        multi_hot[row, names.index(MIRFlickr.names[row % 8])] = 1
    multi_hot[UNLABELLED] = 0
    for column, name in enumerate(names):
        if name.endswith("_r1"):
            multi_hot[:, column] &= multi_hot[:, names.index(name[:-3])]
    return multi_hot


def write_annotations(folder, labels):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.txt").write_text("what the files hold")
    for name, column in zip(MIRFlickr38.names, labels.T, strict=True):
        (folder / f"{name}.txt").write_text("".join(f"{row + 1}\r\n" for row in np.flatnonzero(column)))


def write_photos(folder):
    """Each photo is of one colour, another for each."""
    folder.mkdir(parents=True)
    for row in range(N_ALL):
        Image.new("RGB", (8 + row % 3, 9), (6 * row, 0, 0)).save(folder / f"im{row + 1}.jpg", quality=100)


@pytest.fixture
def source(tmp_path, labels):
    write_photos(tmp_path / "mirflickr")
    write_annotations(tmp_path / "mirflickr25k_annotations_v080", labels)
    return tmp_path


def prepared(source, cls=Small):
    return cls(Options(source=source, features="images", image_size=8)).prepare()


@pytest.mark.parametrize(("cls", "n_labels"), [(Small, 24), (Small38, 38)])
def test_photos_with_labels_are_kept_with_these(source, labels, cls, n_labels):
    dataset = prepared(source, cls)
    rows = np.delete(np.arange(N_ALL), UNLABELLED)
    np.testing.assert_array_equal(np.rint(dataset.images[:, 4, 4, 0] / 6), rows)
    names = MIRFlickr38.names
    columns = [column for column, name in enumerate(names) if n_labels == 38 or not name.endswith("_r1")]
    np.testing.assert_array_equal(dataset.labels, labels[rows][:, columns])
    assert dataset.labels.shape == (37, n_labels)
    assert dataset.rule == "shared-labels"


def test_training_items_are_in_the_database_of_the_first(source):
    dataset = prepared(source)
    assert (len(dataset.query), len(dataset.database), len(dataset.train)) == (5, 32, 10)
    assert {*dataset.train} <= {*dataset.database}


def test_the_roles_of_the_second_are_apart(source):
    dataset = prepared(source, Small38)
    assert (len(dataset.query), len(dataset.database), len(dataset.train)) == (5, 22, 10)
    roles = np.concatenate([dataset.query, dataset.database, dataset.train])
    np.testing.assert_array_equal(np.sort(roles), np.arange(37))


def refused(source, words, cls=Small):
    """Check that a source is refused; return the error."""
    with pytest.raises(HashbenchError, match=words) as caught:
        prepared(source, cls)
    return str(caught.value)


@pytest.mark.parametrize("line", ["0", "41", "im3", "-1", "3.5"])
def test_lines_without_the_number_of_a_photo_are_refused(source, line):
    with (source / "mirflickr25k_annotations_v080" / "sky.txt").open("a") as file:
        file.write(f"{line}\n")
    refused(source, f"sky.txt has a line '{line}', expected numbers of photos, 1 to 40")


def test_another_number_of_labelled_photos_is_refused(source, labels):
    write_annotations(source / "mirflickr25k_annotations_v080", np.maximum(labels, np.eye(N_ALL, 38, dtype=np.uint8)))
    refused(source, "39 photos have a label, expected 37; fetch them again")


def test_missing_files_are_requested(source):
    (source / "mirflickr" / "im2.jpg").unlink()
    refused(source, r"1 of .* missing below .*: im2.jpg")
    (source / "mirflickr25k_annotations_v080" / "tree_r1.txt").unlink()
    message = refused(source, "dataset 'mirflickr-38' lacks 1 of 38 files", Small38)
    assert "tree_r1.txt from https://press.liacs.nl/mirflickr" in message
    (source / "empty").mkdir()
    refused(source / "empty", f"lacks 24 of 24 files(.|\n)*to {source}/empty/animals.txt")


def test_photos_and_annotations_are_downloaded_once_for_both(data, site, source):
    expected = prepared(source).fingerprint
    parts = ("mirflickr", "mirflickr25k_annotations_v080")
    archives = [
        zipped({f"{path.parent.name}/{path.name}": path for path in (source / part).iterdir()}) for part in parts
    ]
    site.answering(*map(whole, archives))
    home = site.url.rpartition("/")[0]
    of_site = {
        f"{home}/{name}.zip": f"md5:{hashlib.md5(archive).hexdigest()}"
        for name, archive in zip(("mirflickr25k", parts[1]), archives, strict=True)
    }
    options = Options(features="images", image_size=8)
    assert type("First", (Small,), {"archives": of_site})(options).prepare().fingerprint == expected
    assert type("Second", (Small38,), {"archives": of_site})(options).prepare().n_samples == 37
    assert len(site.n_sent) == 2


@pytest.mark.parametrize("cls", [Small, Small38])
@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_adapter_keeps_the_contract(source, check, cls):
    check(cls(Options(source=source, features="pixels", image_size=8)))
