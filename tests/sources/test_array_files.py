"""Which array of a file is read, and shards of several files; `test_formats` and `test_tables` have what files hold."""

import json
import pickle
from contextlib import chdir
from pathlib import Path

import h5py
import numpy as np
import pytest
from helpers.error_sentences import complaint
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from hashbench.sources import array_files
from hashbench.sources.array_files import (
    FORMATS,
    ShardedArray,
    find_shards,
    read_array,
    read_codes,
    read_features,
    read_in_slices,
    read_items,
    split_spec,
)
from hashbench.sources.formats import FEATURE_KEYS, LABEL_KEYS
from hashbench.store import inputs

X = np.random.default_rng(0).normal(size=(7, 3))
Y = np.array([0, 1, 2, 1, 0, 2, 1])
NAMES = np.array(["cat", "dog", "süß", "dog", "cat", "süß", "dog"])


def save(path, **arrays):
    """Write arrays in the format of the suffix, as a user's program would."""
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        with path.open("wb") as file:
            np.save(file, *arrays.values()) if suffix == ".npy" else np.savez(file, **arrays)
    elif suffix == ".mat":
        savemat(path, arrays)
    else:
        with h5py.File(path, "w") as file:
            file.update(arrays)
            file["version"] = 5  # a number is no array
    return path


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.mat", "a.h5", "a.hdf5", "A.NPZ", "A.NPY", "A.MAT"])
def test_the_one_array_of_a_file_is_read_whatever_its_name(tmp_path, name):
    path = str(save(tmp_path / name, anything=X))
    np.testing.assert_array_equal(read_array(path, FEATURE_KEYS), X)
    items = read_items(path)
    assert (items.features.dtype, items.labels, items.left_out) == (np.float32, None, "")
    if name.lower() not in ("a.h5", "a.hdf5"):  # h5py writes no words of NumPy
        assert read_array(str(save(tmp_path / name, labels=NAMES)), LABEL_KEYS).tolist() == NAMES.tolist()


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "a.h5"])
@pytest.mark.parametrize(("key", "label_key"), [("X", "y"), ("features", "labels"), ("fea", "gnd"), ("gist", "L")])
def test_features_and_labels_are_found_by_the_names_people_give_them(tmp_path, name, key, label_key):
    path = str(save(tmp_path / name, other=2 * X, **{label_key: Y, key: X}))
    np.testing.assert_array_equal(read_array(path, FEATURE_KEYS), X)
    np.testing.assert_array_equal(read_items(path).labels.ravel(), Y)
    np.testing.assert_array_equal(read_array(f"{path}:other", FEATURE_KEYS), 2 * X)
    assert split_spec(f"{path}:other") == (Path(path), "other")


def test_a_colon_may_be_part_of_a_path(tmp_path):
    path = save(tmp_path / "a.npz:b.npz", X=X)
    assert split_spec(str(path)) == (path, None)
    np.testing.assert_array_equal(read_array(str(path), FEATURE_KEYS), X)
    assert split_spec(str(tmp_path / "10:30")) == (tmp_path / "10:30", None)


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "a.h5"])
def test_of_several_arrays_one_must_be_named(tmp_path, name):
    path = save(tmp_path / name, image_ids=Y, left=X, right=X)
    words = f"{path} holds arrays image_ids, left, right; name one of them, such as {path}:left."
    for read in (read_features, read_codes, read_items):
        assert complaint(read, str(path)) == words


@pytest.mark.parametrize("name", ["a.h5", "a.mat"])
def test_arrays_in_groups_of_hdf5_are_named_by_their_path(tmp_path, name):
    path = tmp_path / name
    with h5py.File(path, "w") as file:
        file["left"], file["group/inside"] = X, np.zeros(2)
        file["group/again"] = file["group"]
    assert f"{path} holds arrays left, group/inside; name one of them" in complaint(read_features, str(path))
    assert read_array(f"{path}:group/inside", FEATURE_KEYS).tolist() == [0, 0]
    assert "unknown array" in complaint(read_array, f"{path}:group", FEATURE_KEYS)
    with h5py.File(path, "a") as file:
        file.move("left", "codes")
    assert read_codes(str(path)).size == X.size


def test_numbers_are_not_texts(tmp_path):
    words = "holds int64 of shape (7,), expected texts"
    assert words in complaint(lambda spec: read_items(spec, are_texts=True), str(save(tmp_path / "a.npy", Y=Y)))


@pytest.mark.parametrize("name", ["a.npy", "a.h5", "a.csv"])
def test_a_bug_is_not_reported_as_an_unreadable_file(tmp_path, monkeypatch, name):
    np.savetxt(tmp_path / name, X, delimiter=",") if name == "a.csv" else save(tmp_path / name, X=X)
    monkeypatch.setattr(array_files, "_check_rounding", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        read_features(str(tmp_path / name))


@pytest.mark.parametrize("name", ["a.doc", "a", "a.npy.gz"])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path, name):
    (tmp_path / name).write_text("1,2\n")
    text = complaint(read_features, str(tmp_path / name))
    assert text == f"{tmp_path / name} has an unknown suffix; arrays are read from {', '.join(FORMATS)}."


# ---------------------------------------------------------------- shards


ROWS = np.arange(60).reshape(20, 3)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Twenty rows in four files, 1 to 8 in a shard, two of them in one HDF5 file."""
    folder = tmp_path_factory.mktemp("uneven")
    np.save(folder / "a.npy", ROWS[:1])
    np.save(folder / "b.npy", np.asfortranarray(ROWS[1:9]))
    with h5py.File(folder / "c.h5", "w") as file:
        file.create_dataset("group/codes", data=ROWS[9:14], chunks=(2, 3), compression="gzip")
        file["group/other"] = ROWS[14:15]
    np.save(folder / "d.npy", ROWS[15:])
    return [str(folder / name) for name in ("a.npy", "b.npy", "c.h5:group/codes", "c.h5:group/other", "d.npy")]


@given(start=st.integers(0, 20), stop=st.integers(0, 20))
def test_slices_of_shards_are_those_of_one_array(uneven, start, stop):
    start, stop = sorted((start, stop))
    with chdir(Path(uneven[0]).parent):
        array = pickle.loads(pickle.dumps(ShardedArray([Path(uneven[0]).name, *uneven[1:]], ())))
    assert (len(array), array.shape, array.dtype) == (20, ROWS.shape, ROWS.dtype)
    np.testing.assert_array_equal(array[start:stop], ROWS[start:stop])
    np.testing.assert_array_equal(array[start:], ROWS[start:])


def test_a_pattern_gives_its_files_in_natural_order(tmp_path):
    for name in ("codes-10.npy", "codes-2.npy", "codes-1.npy", "codes-02.npy", "other.npy", "a[1].npy"):
        np.save(tmp_path / name, ROWS)
    names = [f"{tmp_path}/codes-{number}.npy" for number in ("1", "02", "2", "10")]
    assert find_shards(f"{tmp_path}/codes-*.npy") == names
    assert find_shards(f"{tmp_path}/codes-?.npy:key") == [f"{names[0]}:key", f"{names[2]}:key"]
    assert find_shards(f"{tmp_path}/codes-1.npy") is find_shards(f"{tmp_path}/a[1].npy") is None
    assert f"no file matches {tmp_path}/none-*.npy." in complaint(find_shards, f"{tmp_path}/none-*.npy")


def test_a_manifest_lists_files_that_lie_beside_it(tmp_path):
    listed = json.dumps(["b.npy", "/data/a.h5:group/codes"])
    for name, text in {"m.json": f'{{"shards": {listed}}}', "m.toml": f"shards = {listed}  # in order\n"}.items():
        (tmp_path / name).write_text(text)
        assert find_shards(f"{tmp_path}/{name}") == [f"{tmp_path}/b.npy", "/data/a.h5:group/codes"]
    for text in ('["a.npy"]', '{"files": ["a.npy"]}', '{"shards": []}', '{"shards": ["a.npy", 3]}', '{"shards": "a"}'):
        (tmp_path / "m.json").write_text(text)
        assert "is not a manifest" in complaint(find_shards, f"{tmp_path}/m.json")
    (tmp_path / "m.json").write_text('{"shards": ')
    assert "cannot read" in complaint(find_shards, f"{tmp_path}/m.json")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (ROWS[:, :2], "b.npy holds int64 of shape (20, 2), but {a} int64 of shape (20, 3);"),
        (ROWS.astype(np.uint8), "b.npy holds uint8 of shape (20, 3), but {a} int64"),
        (ROWS[:, 0], "b.npy holds int64 of shape (20,), but"),
        (ROWS[:0], "b.npy is empty: shape (0, 3). Leave it out"),
        (ROWS[:, :0], "b.npy is empty: shape (20, 0)."),
        (np.array(3), "b.npy is empty: shape ()."),
    ],
    ids=["width", "dtype", "dimensions", "rows", "columns", "number"],
)
def test_shards_that_differ_or_are_empty_are_refused(tmp_path, other, words):
    np.save(tmp_path / "a.npy", ROWS)
    np.save(tmp_path / "b.npy", other)
    specs = [f"{tmp_path}/a.npy", f"{tmp_path}/b.npy"]
    assert words.format(a=specs[0]) in complaint(ShardedArray, specs, ())


def test_a_shard_that_is_named_twice_is_refused_under_whatever_name(tmp_path, uneven):
    np.save(tmp_path / "a.npy", ROWS)
    (tmp_path / "b.npy").symlink_to("a.npy")
    (tmp_path / "c.npy").hardlink_to(tmp_path / "a.npy")
    save(tmp_path / "d.h5", codes=ROWS)
    for first, second in (("a.npy", "a.npy"), ("a.npy", "b.npy"), ("a.npy", "c.npy"), ("d.h5", "d.h5:codes")):
        specs = [f"{tmp_path}/{first}", f"{tmp_path}/{second}"]
        text = complaint(ShardedArray, specs, ("codes",))
        assert text.startswith(f"{specs[1]} comes twice among the shards")
        assert (f"first as {specs[0]}" in text) == (first != second)
    assert len(ShardedArray(uneven, ())) == 20  # two arrays of one file


def test_files_that_cannot_be_read_in_slices_are_refused_as_shards_and_read_whole_alone(tmp_path):
    path = str(save(tmp_path / "a.npz", X=ROWS))
    text = complaint(ShardedArray, [path], ())
    assert text.startswith(f"{path} cannot be read in slices")
    assert ".npy, .safetensors, .fvecs" in text
    np.testing.assert_array_equal(read_in_slices(path, ()), ROWS)
    assert isinstance(read_in_slices(str(save(tmp_path / "a.npy", X=ROWS)), ()), ShardedArray)


def test_a_shard_that_changes_while_it_is_scored_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    array = ShardedArray([f"{tmp_path}/a.npy"], ())
    np.save(tmp_path / "a.npy", ROWS[:9])
    np.testing.assert_array_equal(array[:9], ROWS[:9])
    assert "a.npy changed while" in complaint(array.__getitem__, slice(0, 20))


@pytest.mark.parametrize("name", ["a.npy", "a.h5"])
def test_shards_may_be_larger_than_memory_as_long_as_a_slice_fits(tmp_path, monkeypatch, name):
    np.save(tmp_path / "a.npy", np.zeros((10_000, 4)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("codes", data=np.zeros((10_000, 4)), chunks=(1000, 4))
    monkeypatch.setattr(inputs, "free_memory", lambda: 40_000)
    array = ShardedArray([f"{tmp_path}/{name}"], ())
    assert array[990:1010].shape == (20, 4)
    monkeypatch.setattr(inputs, "free_memory", lambda: 30_000)
    if name == "a.h5":  # of which a whole chunk is read
        assert "codes of " in complaint(array.__getitem__, slice(0, 1))
