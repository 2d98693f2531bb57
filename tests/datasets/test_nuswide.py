import numpy as np
import pytest
from PIL import Image

from hashbench import testing
from hashbench.adapter import Options
from hashbench.datasets.nuswide import NusWide
from hashbench.errors import HashbenchError

N_ALL = 60
CONCEPTS = ["airport", "animal", "boats", "book", "sun", "sunset"]
KEPT_COLUMNS = [1, 4, 5]  # how often: 1, 30, 3, 3, 20, 15


class Small(NusWide):
    n_all, n_concepts = N_ALL, len(CONCEPTS)
    n_frequent, n_kept = 3, 50
    n_queries, n_train = 2, 4


@pytest.fixture(scope="module")
def labels():
    """Rows 0 to 49 have frequent concepts, of the last ten some have rare ones alone."""
    multi_hot = np.zeros((N_ALL, len(CONCEPTS)), np.uint8)
    multi_hot[:30, 1] = 1
    multi_hot[25:45, 4] = 1
    multi_hot[35:50, 5] = 1
    multi_hot[55, 0] = 1
    multi_hot[[3, 4, 56], 2] = 1
    multi_hot[[5, 6, 57], 3] = 1
    return multi_hot[np.random.default_rng(0).permutation(N_ALL)]


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(1).normal(size=(N_ALL, 5)).astype(np.float32)


@pytest.fixture
def source(tmp_path, labels, features):
    """A source folder as TALR's script wants it, with features."""
    write_table(tmp_path / "AllLabels81.txt", labels)
    np.save(tmp_path / "features.npy", features)
    return tmp_path


def write_table(path, labels):
    path.write_text("".join(" ".join(map(str, row)) + " \n" for row in labels.tolist()))


def write_columns(folder, labels):
    """The folder of the official Groundtruth.zip; files come in no particular order."""
    folder.mkdir(parents=True)
    for column in np.random.default_rng(2).permutation(len(CONCEPTS)):
        text = "".join(f"{label}\r\n" for label in labels[:, column])
        (folder / f"Labels_{CONCEPTS[column]}.txt").write_text(text, newline="")


def write_photos(folder, prefix=""):
    """Photos of one colour each, all called alike in 20 folders of three, and the official list of them."""
    lines = []
    for number in range(N_ALL):
        path = folder / f"actor{number // 3}" / f"000{number % 3}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8 + number % 5, 9), (4 * number, 0, 0)).save(path, quality=100, subsampling=0)
        lines.append(f"{prefix}actor{number // 3}\\000{number % 3}.jpg\n")
    return "".join(lines)


@pytest.fixture
def photos(tmp_path, labels):
    """A source folder with photos."""
    write_table(tmp_path / "AllLabels81.txt", labels)
    (tmp_path / "Imagelist.txt").write_text(write_photos(tmp_path / "Flickr"))
    return tmp_path


def prepared(source, kind=None, **options):
    return Small(Options(source=source, features=kind, **options)).prepare()


def refused(source, words, *arguments, **options):
    with pytest.raises(HashbenchError, match=words):
        prepared(source, *arguments, **options)


def test_frequent_concepts_and_the_items_that_have_some_are_kept(source, labels, features):
    dataset = prepared(source)
    rows = labels[:, KEPT_COLUMNS].any(axis=1)
    np.testing.assert_array_equal(dataset.labels, labels[rows][:, KEPT_COLUMNS])
    np.testing.assert_array_equal(dataset.features, features[rows])
    assert (dataset.rule, dataset.features_name) == ("shared-labels", "features")


def test_queries_and_training_items_are_drawn_for_each_concept(source):
    dataset = prepared(source)
    assert (len(dataset.query), len(dataset.database), len(dataset.train)) == (6, 44, 12)
    assert set(dataset.train) <= set(dataset.database)
    np.testing.assert_array_equal(np.union1d(dataset.query, dataset.database), np.arange(50))
    assert (dataset.labels[dataset.query].sum(axis=0) >= 2).all()
    assert (dataset.labels[dataset.train].sum(axis=0) >= 4).all()


def test_of_concepts_equally_frequent_the_first_is_kept(tmp_path, features):
    class Two(Small):
        n_concepts, n_frequent, n_kept, n_queries, n_train = 30, 2, 4, 1, 1

    multi_hot = np.eye(30, dtype=np.uint8).repeat(2, axis=0)
    write_table(tmp_path / "AllLabels81.txt", multi_hot)
    np.save(tmp_path / "features.npy", features)
    np.testing.assert_array_equal(Two(Options(source=tmp_path)).prepare().features, features[:4])


@pytest.mark.parametrize("folder", ["AllLabels", "Groundtruth/AllLabels", "NUS-WIDE/Groundtruth/AllLabels"])
def test_single_files_of_concepts_give_the_same_as_the_table(source, labels, folder):
    expected = prepared(source).fingerprint
    (source / "AllLabels81.txt").unlink()
    write_columns(source / folder, labels)
    assert prepared(source).fingerprint == expected


def test_labels_written_by_matlab_as_real_numbers_are_read(source, labels):
    expected = prepared(source).fingerprint
    np.savetxt(source / "AllLabels81.txt", labels, fmt="   %.7e")
    assert prepared(source).fingerprint == expected


@pytest.mark.parametrize(
    ("prefix", "folder", "list_folder"),
    [("", "Flickr", ""), ("C:\\ImageData\\Flickr\\", "Flickr", "ImageList"), ("", "some/where", "")],
)
def test_photos_are_found_by_folder_and_name_in_the_order_of_the_list(tmp_path, labels, prefix, folder, list_folder):
    write_table(tmp_path / "AllLabels81.txt", labels)
    (tmp_path / list_folder).mkdir(exist_ok=True)
    (tmp_path / list_folder / "Imagelist.txt").write_text(write_photos(tmp_path / folder, prefix))
    dataset = prepared(tmp_path, "images", image_size=8)
    rows = np.flatnonzero(labels[:, KEPT_COLUMNS].any(axis=1))
    assert dataset.images.shape == (50, 8, 8, 3)
    np.testing.assert_allclose(dataset.images[:, 4, 4, 0], 4 * rows, atol=2)
    assert dataset.images[..., 1:].max() <= 2


def test_missing_photos_are_counted_and_named(photos, labels):
    needed, unneeded = (np.flatnonzero(labels[:, KEPT_COLUMNS].any(axis=1) == keep) for keep in (True, False))
    paths = [photos / "Flickr" / f"actor{number // 3}" / f"000{number % 3}.jpg" for number in range(N_ALL)]
    paths[unneeded[0]].unlink()
    prepared(photos, "images", image_size=8)
    for number in needed[:2]:
        paths[number].unlink()
    names = sorted("/".join(paths[number].parts[-2:]) for number in needed[:2])
    refused(photos, f"2 of the 50 images .* missing below .*: {', '.join(names)}[.] Put", "images", image_size=8)


def test_photos_need_a_size_and_a_list_as_long_as_the_labels(photos):
    refused(photos, "give --image-size", "pixels")
    lines = (photos / "Imagelist.txt").read_text().splitlines(keepends=True)
    (photos / "Imagelist.txt").write_text("".join(lines[:-1]))
    refused(photos, "Imagelist.txt lists 59 photos, but there are labels for 60", "images", image_size=8)


def spoil(labels, fault):
    labels = labels.astype(object)
    if fault in ("row", "column", "all"):
        return {"row": labels[:-1], "column": labels[:, 1:], "all": labels[:0]}[fault]
    labels[7, 2] = fault
    return labels


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("row", r"labels of shape \(59, 6\), expected \(60, 6\)"),
        ("column", r"labels of shape \(60, 5\), expected \(60, 6\)"),
        (2, r"neither 0 nor 1, first 2.0 in row 7, column 2"),
        (-1, r"neither 0 nor 1, first -1.0 in row 7, column 2"),
        ("", r"neither 0 nor 1, first nan in row 7, column 5"),
        ("x", r"cannot read .*AllLabels81.txt as labels"),
        ("0 0", r"cannot read .*AllLabels81.txt as labels"),
        ("all", r"cannot read .*AllLabels81.txt as labels"),
    ],
)
def test_wrong_tables_of_labels_are_refused(source, labels, fault, words):
    write_table(source / "AllLabels81.txt", spoil(labels, fault))
    refused(source, words)


def test_table_with_another_number_of_labelled_items_is_refused(source, labels):
    other = labels.copy()
    other[labels[:, KEPT_COLUMNS].any(axis=1).argmin()] = 1
    write_table(source / "AllLabels81.txt", other)
    refused(source, "51 photos have one of the 3 most frequent concepts, expected 50")


def test_wrong_files_of_concepts_are_refused(source, labels):
    (source / "AllLabels81.txt").unlink()
    write_columns(source / "AllLabels", labels)
    book = source / "AllLabels" / "Labels_book.txt"
    book.write_text("".join(f"{label}\n" for label in labels[:-1, 3]))
    refused(source, r"Labels_book.txt has 59 rows, Labels_airport.txt has 60")
    book.unlink()
    refused(source, r"labels of shape \(60, 5\)")


def test_wrong_features_are_refused(source, features):
    np.save(source / "features.npy", features[:-1])
    refused(source, "features.npy has 59 rows, expected 60: one for each line of Imagelist.txt")
    np.save(source / "features.npy", features[:, 0])
    refused(source, r"float32 of shape \(60,\), expected numbers of shape")


@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_adapter_keeps_the_contract(source, check):
    check(Small(Options(source=source)))
