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

from hashbench.sources.shards import ShardedArray, find_shards, read_in_slices
from hashbench.store import inputs

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
    array = pickle.loads(pickle.dumps(ShardedArray(uneven, ())))
    assert (len(array), array.shape, array.dtype) == (20, ROWS.shape, ROWS.dtype)
    np.testing.assert_array_equal(array[start:stop], ROWS[start:stop])
    np.testing.assert_array_equal(array[start:], ROWS[start:])


def test_shards_are_found_from_another_folder(uneven):
    with chdir(Path(uneven[0]).parent):
        array = ShardedArray(["a.npy", "d.npy"], ())
    np.testing.assert_array_equal(array[:], ROWS[[0, *range(15, 20)]])


def test_a_pattern_gives_its_files_in_natural_order(tmp_path):
    for name in ("codes-10.npy", "codes-2.npy", "codes-1.npy", "codes-02.npy", "other.npy"):
        np.save(tmp_path / name, ROWS)
    names = [f"{tmp_path}/codes-{number}.npy" for number in ("1", "02", "2", "10")]
    assert find_shards(f"{tmp_path}/codes-*.npy") == names
    assert find_shards(f"{tmp_path}/codes-?.npy:key") == [f"{names[0]}:key", f"{names[2]}:key"]
    assert find_shards(f"{tmp_path}/codes-1.npy") is None
    np.save(tmp_path / "a[1].npy", ROWS)
    assert find_shards(f"{tmp_path}/a[1].npy") is None
    assert f"no file matches {tmp_path}/none-*.npy." in complaint(find_shards, f"{tmp_path}/none-*.npy")


@pytest.mark.parametrize("form", ["json", "toml"])
def test_a_manifest_lists_files_that_lie_beside_it(tmp_path, form):
    path = tmp_path / f"codes.{form}"
    listed = json.dumps(["b.npy", "/data/a.h5:group/codes"])
    path.write_text(f'{{"shards": {listed}}}' if form == "json" else f"shards = {listed}  # in order\n")
    assert find_shards(str(path)) == [f"{tmp_path}/b.npy", "/data/a.h5:group/codes"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["a.npy"]', "is not a manifest"),
        ('{"files": ["a.npy"]}', "is not a manifest"),
        ('{"shards": []}', "is not a manifest"),
        ('{"shards": ["a.npy", 3]}', "is not a manifest"),
        ('{"shards": "a.npy"}', "is not a manifest"),
        ('{"shards": ', "cannot read"),
        (None, "there is no file"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path, text, words):
    if text is not None:
        (tmp_path / "m.json").write_text(text)
    assert words in complaint(find_shards, f"{tmp_path}/m.json")


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
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["codes"] = ROWS
    for first, second in (("a.npy", "a.npy"), ("a.npy", "b.npy"), ("a.npy", "c.npy"), ("d.h5", "d.h5:codes")):
        specs = [f"{tmp_path}/{first}", f"{tmp_path}/{second}"]
        text = complaint(ShardedArray, specs, ("codes",))
        assert text.startswith(f"{specs[1]} comes twice among the shards")
        assert (f"first as {specs[0]}" in text) == (first != second)
    assert len(ShardedArray(uneven, ())) == 20  # two arrays of one file


def test_files_that_cannot_be_read_in_slices_are_refused_as_shards_and_read_whole_alone(tmp_path):
    np.savez(tmp_path / "a.npz", X=ROWS)
    text = complaint(ShardedArray, [f"{tmp_path}/a.npz"], ())
    assert text.startswith(f"{tmp_path}/a.npz cannot be read in slices")
    assert ".npy, .h5, .hdf5, .parquet, .arrow, .feather, .safetensors, .fvecs" in text
    np.testing.assert_array_equal(read_in_slices(f"{tmp_path}/a.npz", ()), ROWS)
    np.save(tmp_path / "a.npy", ROWS)
    assert isinstance(read_in_slices(f"{tmp_path}/a.npy", ()), ShardedArray)


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
