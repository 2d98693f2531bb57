import io
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers.cifar_files import binary_files, content, pickled, python_files, tree_files, write_archive, write_folder
from helpers.paths import DATA
from scipy.spatial.distance import pdist

from hashbench import testing
from hashbench.adapter import Options
from hashbench.datasets import _cifar, cifar10, cifar100
from hashbench.datasets._cifar import CifarImages
from hashbench.errors import HashbenchError
from hashbench.sources.images import ImageArrays

TEN = replace(cifar10.Cifar10S1.format, n_train=50, n_test=20)
HUNDRED = replace(cifar100.Cifar100.format, n_train=150, n_test=100)
FORMS = {"ten": TEN, "hundred": HUNDRED}


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def pixels_of(items):
    return items.images.read(slice(0, len(items.images)))


def refused(source, words, form=TEN):
    with pytest.raises(HashbenchError, match=words):
        _cifar.read(source, form)


VERSIONS = {
    "python": python_files,
    "python 3": lambda *args: python_files(*args, dump=pickle.dumps),
    "binary": binary_files,
}


@pytest.mark.parametrize(("version", "packed"), [("python", True), ("python 3", False), ("binary", True)])
def test_official_versions_give_all_images_and_labels_in_order(form, version, packed, tmp_path):
    images, labels = content(form)
    files = VERSIONS[version](form, images, labels)
    source = write_archive(tmp_path / "c.tar.gz", files) if packed else write_folder(tmp_path / "a" / "b", files).parent
    items = _cifar.read(source, form)
    np.testing.assert_array_equal(pixels_of(items), images)
    np.testing.assert_array_equal(items.labels, labels)
    assert items.labels.dtype == np.int64
    assert items.n_train == form.n_train
    assert (items.variant, items.images.native_size) == ("", 32)


def labelled(images, labels):
    """Return the labels of images by their bytes."""
    return {image.tobytes(): tuple(label) for image, label in zip(images, labels, strict=True)}


@pytest.mark.parametrize("packing", ["folder", "c.tar.gz"])
def test_tree_of_image_files_holds_the_same_images_with_the_same_labels(form, packing, tmp_path):
    images, labels = content(form)
    write = write_folder if packing == "folder" else write_archive
    source = write(tmp_path / packing, tree_files(form, images, labels))
    items = _cifar.read(source, form)
    assert items.n_train == form.n_train
    assert items.variant == ""
    for part in (slice(0, form.n_train), slice(form.n_train, None)):
        assert labelled(pixels_of(items)[part], items.labels.T[part]) == labelled(images[part], labels.T[part])


def test_jpeg_files_show_in_the_name_of_the_features(tmp_path):
    source = write_folder(tmp_path, tree_files(TEN, *content(TEN), suffix=".jpg"))
    dataset = with_format(cifar10.Cifar10S2, TEN)(Options(source=source)).prepare()
    assert dataset.features_name == "pixels (JPEG)"
    assert "JPEG" in dataset.about["source"]


def test_larger_images_of_a_tree_are_brought_to_32_pixels(tmp_path):
    images, labels = content(TEN)
    smooth = np.broadcast_to(images[:, :1, :1], images.shape).repeat(2, axis=1).repeat(2, axis=2)
    items = _cifar.read(write_folder(tmp_path, tree_files(TEN, smooth, labels)), TEN)
    assert pixels_of(items).shape == (70, 32, 32, 3)
    assert {tuple(image[5, 7]) for image in pixels_of(items)} == {tuple(image[0, 0]) for image in images}


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("version", VERSIONS)
def test_missing_batch_is_named(version, tmp_path):
    files = VERSIONS[version](TEN, *content(TEN))
    gone = next(name for name in files if name.startswith("data_batch_3"))
    del files[gone]
    for source in (write_archive(tmp_path / "c.tar.gz", files), write_folder(tmp_path / "folder", files)):
        refused(source, rf"lacks {gone} of CIFAR-10; fetch")


@pytest.mark.parametrize("version", VERSIONS)
def test_other_numbers_of_images_are_refused(form, version, tmp_path):
    larger = replace(form, n_train=form.n_train + 5)
    source = write_folder(tmp_path, VERSIONS[version](larger, *content(larger)))
    refused(source, f"holds {form.n_train + 5} training and {form.n_test} test images", form)


@pytest.mark.parametrize(
    ("version", "value", "classes"),
    [("python", 10, "11 classes from 0 to 10"), ("binary", 200, "11 classes from 0 to 200")],
)
def test_labels_out_of_range_are_refused(version, value, classes, tmp_path):
    images, labels = content(TEN)
    labels[0, 7] = value
    source = write_folder(tmp_path, VERSIONS[version](TEN, images, labels))
    refused(source, f"labels of .* hold {classes}, CIFAR-10 has 10, 0 to 9")


def test_superclasses_out_of_range_and_missing_classes_are_refused(tmp_path):
    images, labels = content(HUNDRED)
    labels[0, 3] = 20
    refused(
        write_folder(tmp_path / "a", binary_files(HUNDRED, images, labels)),
        r"coarse_labels of .* hold 21 classes from 0 to 20, CIFAR-100 has 20",
        HUNDRED,
    )
    labels = content(HUNDRED)[1]
    labels[1, labels[1] == 99] = 0
    refused(
        write_folder(tmp_path / "b", binary_files(HUNDRED, images, labels)),
        r"fine_labels of .* hold 99 classes from 0 to 98",
        HUNDRED,
    )


def test_binary_file_cut_short_is_refused(form, tmp_path):
    files = binary_files(form, *content(form))
    name = f"{form.test[0]}.bin"
    for length in (len(files[name]) - 1, 0):
        source = write_folder(tmp_path / str(length), files | {name: files[name][:length]})
        refused(source, rf"{name} of .* has {length} bytes, expected a multiple of 307\d", form)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_pickle_cut_short_is_refused(share, tmp_path):
    files = python_files(TEN, *content(TEN))
    files["data_batch_2"] = files["data_batch_2"][: int(share * len(files["data_batch_2"]))]
    refused(write_folder(tmp_path, files), r"cannot read data_batch_2 of .* as a batch of CIFAR-10")


def test_garbage_instead_of_a_pickle_is_refused_in_a_sentence():
    start = python_files(TEN, *content(TEN))["test_batch"][:400]
    rng = np.random.default_rng(0)
    for _ in range(200):
        broken = bytearray(start)
        for position in rng.integers(0, len(broken), 4):
            broken[position] = rng.integers(256)
        with pytest.raises(HashbenchError, match="cannot read the batch as a batch of CIFAR-10: "):
            _cifar._parse_pickle(io.BytesIO(broken), "the batch", TEN)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ([1, 2], "TypeError"),
        ({b"data": np.zeros((4, 3072), np.uint8)}, "KeyError: b'labels'"),
        ({b"labels": [0, 1]}, "KeyError: b'data'"),
        ({b"data": np.zeros((4, 3072), np.uint8), b"labels": 3}, r"shape \(4, 3072\) and 1 labels"),
        ({b"data": np.zeros((4, 3072), np.uint8), b"labels": [1, [2, 3]]}, "ValueError"),
        ({b"data": np.zeros((4, 3072), np.float32), b"labels": [0] * 4}, "float32 data .* and 4 labels"),
        ({b"data": np.zeros((4, 3071), np.uint8), b"labels": [0] * 4}, r"uint8 data of shape \(4, 3071\)"),
        ({b"data": np.zeros((4, 3072), np.uint8), b"labels": [0] * 5}, r"shape \(4, 3072\) and 5 labels"),
    ],
)
def test_pickle_of_something_else_is_refused(batch, words, tmp_path):
    files = python_files(TEN, *content(TEN)) | {"data_batch_1": pickled(batch)}
    refused(write_folder(tmp_path, files), words)


class Call:
    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    "make",
    [lambda marker: Call(os.system, f"touch {marker}"), lambda marker: Call(eval, f"open({str(marker)!r}, 'w')")],
)
def test_pickle_that_calls_anything_is_refused_and_nothing_is_called(make, tmp_path):
    marker = tmp_path / "called"
    files = python_files(TEN, *content(TEN)) | {"data_batch_1": pickle.dumps({b"data": make(marker)})}
    refused(write_folder(tmp_path / "source", files), r"data_batch_1 of .* it wants to call \w+[.](system|eval)")
    assert not marker.exists()


@pytest.mark.parametrize(("module", "name"), [("numpy.ma.core", "ndarray"), ("numpyx", "dtype"), ("numpy", "bytes")])
def test_only_the_very_names_of_a_pickle_of_arrays_are_looked_up(module, name):
    with pytest.raises(pickle.UnpicklingError, match=f"{module}.{name}"):
        _cifar._Unpickler(io.BytesIO()).find_class(module, name)


@pytest.mark.parametrize(("files_of", "name"), [(python_files, "c.tar.gz"), (tree_files, "c.tar.xz")])
def test_archive_cut_short_or_damaged_is_refused(files_of, name, tmp_path):
    path = write_archive(tmp_path / name, files_of(TEN, *content(TEN)))
    whole = path.read_bytes()
    for share in (0.001, 0.3, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        refused(path, r"cannot read .*c.tar")
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(200) + whole[middle + 200 :])
    with pytest.raises(HashbenchError):
        _cifar.read(path, TEN)


def test_file_that_is_no_archive_and_missing_file_are_refused(tmp_path):
    (tmp_path / "c.tar.gz").write_bytes(b"<html>not found</html>")
    refused(tmp_path / "c.tar.gz", r"cannot read .*c.tar.gz as a CIFAR archive")
    refused(tmp_path / "d.tar.gz", r"d.tar.gz does not exist")


def test_tree_with_other_classes_is_refused(tmp_path):
    images, labels = content(TEN)
    source = write_folder(tmp_path, tree_files(TEN, images, labels))
    (source / "train" / "truck").rename(source / "train" / "lorry")
    refused(source, r"folders for 11 classes, CIFAR-10 has 10; .*: lorry")
    refused(source, r"folders for 11 classes, CIFAR-100 has 100; .*, [.][.][.]", HUNDRED)


def test_tree_without_splits_or_images_is_refused(tmp_path):
    files = {name.partition("/")[2]: stored for name, stored in tree_files(TEN, *content(TEN)).items()}
    refused(write_folder(tmp_path / "flat", files), "holds 0 training and 70 test images")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "there are no images in")


# ---------------------------------------------------------------- the datasets


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    form = replace(TEN, n_train=6_000, n_test=500)
    images, labels = content(form)
    return form, write_folder(tmp_path_factory.mktemp("bin"), binary_files(form, images, labels)), images, labels[0]


def with_format(cls, form):
    return type(cls.__name__, (cls,), {"format": form})


def test_split_1_draws_queries_and_training_items_of_each_class(many):
    form, source, images, labels = many
    dataset = with_format(cifar10.Cifar10S1, form)(Options(source=source, features="images")).prepare()
    np.testing.assert_array_equal(dataset.images, images)
    np.testing.assert_array_equal(dataset.labels, labels)
    np.testing.assert_array_equal(np.bincount(labels[dataset.query]), [100] * 10)
    np.testing.assert_array_equal(np.bincount(labels[dataset.train]), [500] * 10)
    np.testing.assert_array_equal(np.union1d(dataset.query, dataset.database), np.arange(6_500))
    assert len(dataset.database) == 5_500
    assert dataset.rule == "same-label"
    assert 100 < (dataset.query < 6_000).sum() < 1_000  # of both official parts


def test_split_3_is_split_1_with_the_training_items_outside_the_database(many):
    form, source, _, _ = many
    S1, S3 = (with_format(cls, form) for cls in (cifar10.Cifar10S1, cifar10.Cifar10S3))
    first, third = (cls(Options(source=source, features="images")).prepare() for cls in (S1, S3))
    np.testing.assert_array_equal(third.query, first.query)
    np.testing.assert_array_equal(third.train, first.train)
    roles = np.concatenate([third.query, third.database, third.train])
    np.testing.assert_array_equal(np.sort(roles), np.arange(6_500))
    np.testing.assert_array_equal(np.bincount(third.labels[third.database]), [50] * 10)
    assert third.rule == "same-label"
    testing.check_survives_a_round_trip(S3(Options(source=source)))


def test_split_2_is_the_official_one(many):
    form, source, images, _ = many
    dataset = with_format(cifar10.Cifar10S2, form)(Options(source=source)).prepare()
    np.testing.assert_array_equal(dataset.features, images.reshape(6_500, -1))
    np.testing.assert_array_equal(dataset.query, np.arange(6_000, 6_500))
    np.testing.assert_array_equal(dataset.database, np.arange(6_000))
    np.testing.assert_array_equal(dataset.train, np.arange(6_000))
    assert dataset.features_name == "pixels"


def test_cifar100_grades_classes_and_superclasses(tmp_path):
    images, labels = content(HUNDRED)
    source = write_archive(tmp_path / "c.tar.gz", python_files(HUNDRED, images, labels))
    dataset = with_format(cifar100.Cifar100, HUNDRED)(Options(source=source)).prepare()
    levels = dataset.affinity().block(slice(0, 100), slice(0, 150))
    (coarse, fine), part = labels, slice(150, None)
    expected = (coarse[part, None] == coarse[None, :150]).astype(int) + (fine[part, None] == fine[None, :150])
    np.testing.assert_array_equal(levels, expected)
    assert set(np.unique(levels)) == {0, 1, 2}


def test_superclasses_partition_the_classes():
    names = [name for group in HUNDRED.superclasses for name in group.split()]
    assert len(HUNDRED.superclasses) == 20
    assert len(set(names)) == len(names) == 100
    assert list(HUNDRED.classes) == sorted(names)
    assert all(len(group.split()) == 5 for group in HUNDRED.superclasses)


@pytest.mark.slow
def test_unlabelled_items_have_levels_by_distance():
    features = np.random.default_rng(0).random((22_500, 3)).astype(np.float32)
    items = CifarImages(ImageArrays(np.zeros((22_500, 1, 1, 3), np.uint8)), np.zeros((1, 22_500), np.int64), 22_500, "")
    fields = cifar10.Cifar10Unlabelled().fields(items, features)
    assert len(np.unique(fields["features"], axis=0)) == len(fields["features"]) == 22_000
    assert [len(rows) for rows in fields["split"]] == [2_000, 20_000, 5_000]
    squared = pdist(fields["features"][fields["split"][2]].astype(np.float64), "sqeuclidean")
    expected = np.percentile(squared, [5, 1, 0.2, 0.1], method="inverted_cdf")
    np.testing.assert_allclose(fields["rule_params"]["squared_thresholds"], expected, rtol=1e-12)
    assert fields["rule_params"]["levels"] == [1, 2, 5, 10]


@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("cls", "form"), [(cifar10.Cifar10S2, TEN), (cifar100.Cifar100, HUNDRED)])
def test_adapter_keeps_the_contract(cls, form, check, tmp_path):
    source = write_folder(tmp_path, python_files(form, *content(form)))
    check(with_format(cls, form)(Options(source=source)))


def test_command_line_remembers_the_source_and_keeps_each_kind_of_features_apart(tmp_path, monkeypatch, hashbench):
    monkeypatch.setattr(cifar10.Cifar10S2, "format", TEN)
    source = write_folder(tmp_path / "source", python_files(TEN, *content(TEN)))
    first = hashbench("prepare", "cifar10-s2", "--source", source)
    assert first.exit_code == 0
    assert first.stdout.startswith("prepared ")
    assert hashbench("prepare", "cifar10-s2").stdout == first.stdout.replace("prepared", "reused", 1)
    images = hashbench("prepare", "cifar10-s2", "--features", "images", "--source", source)
    assert images.stdout.splitlines()[0].endswith("cifar10-s2-images.h5")
    arguments = ("--dataset", "cifar10-s2", "--method", "lsh", "--bits", 16, "--results", tmp_path / "results")
    assert "20 queries" in hashbench("run", *arguments).stdout


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "cifar10-images.tar.xz").exists(), reason="needs the real images")
def test_real_images_have_the_official_counts():
    items = _cifar.read(DATA / "cifar10-images.tar.xz", cifar10.Cifar10S1.format)
    assert (len(items.images), items.n_train) == (60_000, 50_000)
    np.testing.assert_array_equal(np.bincount(items.labels[0, :50_000]), [5_000] * 10)
    np.testing.assert_array_equal(np.bincount(items.labels[0, 50_000:]), [1_000] * 10)
