"""The form of all files: whole, damaged and hostile."""

import json
import tracemalloc
from contextlib import suppress

import h5py
import numpy as np
import pytest

from hashbench.errors import Damaged, HashbenchError, TooLarge
from hashbench.store import artifact, inputs
from hashbench.store.artifact import ADVICE, Blocks, cached, cached_array

X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    """A file of scores."""
    artifact.write(tmp_path / "file.h5", "scores", {"key": 1}, {"AP": X, "group/kinds": np.arange(3)})
    return tmp_path / "file.h5"


def read(path, key=None):
    return artifact.read(path, "scores", lambda file: {name: file.array(name) for name in file.record["arrays"]}, key)


def refused(path):
    """Return the sentence on a damaged file, which names it and ends with advice."""
    with pytest.raises(Damaged) as caught:
        read(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


# ---------------------------------------------------------------- written and read


def test_what_is_written_is_read_and_only_by_its_key(path):
    for key in (None, {"key": 1}, lambda record: record["key"] < 2):
        np.testing.assert_array_equal(read(path, key)["AP"], X)
    for key in ({"key": 2}, {"key": 1, "other": None, "more": 1}, lambda record: False):
        assert read(path, key) is None
    assert artifact.read_record(path)["hashbench"] == "scores"
    path.unlink()
    assert read(path, {"key": 1}) is None
    assert artifact.read_record(path) == {}


ARRAYS = [
    np.float16([[1, np.nan]]),
    np.array(3.5),
    np.array([True, False]),
    np.zeros((0, 3)),
    np.arange(6).reshape(2, 3).T,
    np.arange(3, dtype=">i4"),
    np.arange(3) * 1j,
    np.array([b"a", b"bcd"]),
    np.array(b"a\0", "S3"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}-{array.shape}")
def test_arrays_of_any_kind_come_back(array, tmp_path, monkeypatch):
    monkeypatch.setattr(artifact, "_PIECE", 8)  # bytes, so that the digest is of several pieces
    path = tmp_path / "a.h5"
    artifact.write(path, "array", {}, {"one": array, "group/two": array[..., None]})
    one, two = artifact.read(path, "array", lambda found: [found.array("one"), found.array("group/two")])
    assert one.dtype == array.dtype
    np.testing.assert_array_equal(one, array)
    np.testing.assert_array_equal(two, array[..., None])


def test_a_large_array_is_mapped_and_stays_as_it_was_when_its_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(artifact, "_MAPPED", 1)
    path = tmp_path / "a.h5"
    first, again = (cached_array(path, "key", Blocks(X.shape, X.dtype, [X])) for _ in range(2))
    for values in (first, again):
        assert isinstance(values.base, np.memmap)
        assert values.ctypes.data % 64 == 0
    cached_array(path, "other", Blocks(X.shape, X.dtype, [X + 1]))
    first[0] = 0  # does not reach the file
    np.testing.assert_array_equal(again, X)


def test_blocks_are_written_as_they_come(tmp_path):
    block = np.ones((1 << 12, 1 << 8), np.float32)  # 4 MB
    tracemalloc.start()
    cached_array(tmp_path / "a.h5", "key", Blocks((8 << 12, 1 << 8), block.dtype, (block for _ in range(8))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * block.nbytes


@pytest.mark.parametrize("block", [X.T, X[::-1], X.astype(float)], ids=["by columns", "backwards", "float64"])
def test_blocks_of_any_layout_are_kept_as_what_they_hold(tmp_path, block):
    np.testing.assert_array_equal(cached_array(tmp_path / "a.h5", "", Blocks(block.shape, X.dtype, [block])), block)


@pytest.mark.parametrize(
    "blocks", [[], [X[:30]], [X, X[:1]], [X[:30], X[30:, :1]]], ids=["none", "few", "many", "narrow"]
)
def test_blocks_of_other_rows_than_announced_are_not_written(blocks, tmp_path):
    with pytest.raises(ValueError, match=r"rows, expected 40|of an array of shape \(40, 5\)"):
        cached_array(tmp_path / "a.h5", "", Blocks(X.shape, X.dtype, blocks))
    assert not [*tmp_path.iterdir()]


def test_a_record_that_could_not_be_read_is_not_written(tmp_path):
    with pytest.raises(HashbenchError, match="Put long lists in arrays"):
        artifact.write(tmp_path / "a.h5", "array", {"key": "x" * artifact._RECORD}, {})
    assert not [*tmp_path.iterdir()]


# ---------------------------------------------------------------- computed unless it is there


def test_a_value_is_made_once_for_each_key_by_force_and_where_its_file_is_of_no_use(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.h5", []

    def value(key, **options):
        def make():
            seen.append(key)
            artifact.write(path, "scores", {"key": key}, {"AP": X})
            return X

        return cached(path, "scores", {"key": key}, lambda found: found.array("AP"), make, **options)[1]

    words = [value(1), value(1), value(2), value(2, force=True), value(2)]
    assert words == ["computed", "", "computed", "computed", ""]
    path.write_bytes(path.read_bytes().replace(b'"key": 2', b'"key": 1'))
    assert [value(1), value(1)] == ["re-computed damaged", ""]
    assert seen == [1, 2, 2, 1]
    artifact.write(path, "array", {"key": 1}, {"AP": X})  # not called damaged, nor is a file of another version
    assert [value(1), value(1)] == ["computed", ""]
    for version in (artifact.SCHEMA_VERSION - 1, 99):
        monkeypatch.setattr(artifact, "SCHEMA_VERSION", version)
        assert [value(1), value(1)] == ["computed", ""]


def test_a_file_that_does_not_fit_into_memory_is_neither_damaged_nor_missing(path, monkeypatch):
    monkeypatch.setattr(inputs, "_SMALL", 0)
    monkeypatch.setattr(inputs, "free_memory", lambda: 0)
    with pytest.raises(TooLarge, match=r"of .*file.h5 of shape \(.*\) takes 0.0 GB of memory"):
        cached(path, "scores", {}, lambda found: found.array("AP"), pytest.fail)


def test_a_damaged_array_is_reported_and_computed_again(tmp_path, caplog):
    path, blocks = tmp_path / "a.h5", Blocks(X.shape, X.dtype, [X[:30], X[30:]])
    cached_array(path, "", blocks)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    np.testing.assert_array_equal(cached_array(path, "", blocks), X)
    assert path.read_bytes() == whole
    (message,) = caplog.messages
    assert message.startswith(f"{path} is damaged")


# ---------------------------------------------------------------- damaged, of another kind, hostile


def cut(share):
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def without(structure):
    return lambda path: path.write_bytes(path.read_bytes().replace(structure, b"XXXX"))


def with_record(value):
    def change(path):
        with h5py.File(path, "a") as file:
            del file["record"]
            file["record"] = value
        without(b"GCOL")(path)  # the heap of texts of any length, in which HDF5 may run in circles

    return change


def with_link(path):
    with h5py.File(path, "a") as file:
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/X")


def with_arrays(change):
    """Change the list of the names of arrays."""

    def write(path):
        record = artifact.read_record(path)
        change(record["arrays"])
        with_record(np.bytes_(json.dumps(record)))(path)

    return write


DAMAGES = {
    "link": (with_link, "links 'elsewhere' to another file"),
    "empty": (cut(0), ""),
    "cut in the structure": (cut(0.1), ""),
    "cut in the values": (cut(0.999), ""),
    **{f"no {structure}": (without(structure), "") for structure in (b"TREE", b"HEAP", b"SNOD")},
    "text": (lambda path: path.write_bytes(b"text"), "it is not HDF5"),
    "of another program": (lambda path: h5py.File(path, "w").close(), "it lacks record"),
    "record in a heap": (with_record("of any length"), "record holds objects"),
    "record of numbers": (with_record(np.arange(3)), "its record is not a text"),
    "record without entries": (with_record(b"[1]"), ""),
    "record not in JSON": (with_record(b"{no"), ""),
    "record of any size": (with_record(np.array(b"{}", f"S{artifact._RECORD + 1}")), "its record is not a text"),
    "names unsorted": (with_arrays(list.reverse), "its arrays are not a sorted list"),
    "a name twice": (with_arrays(lambda names: names.append(names[-1])), "its arrays are not a sorted list"),
    "a number for a name": (with_arrays(lambda names: names.append(9)), "its arrays are not a sorted list"),
    "a group for an array": (with_arrays(lambda names: names.insert(1, "group")), "it lacks group"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_refused_in_one_sentence(damage, reason, path):
    damage(path)
    sentence = refused(path)
    assert (reason or "is damaged, or was not written by hashbench: ") in sentence
    assert sentence.endswith(f"{ADVICE['scores']}.")


def test_a_flipped_byte_of_any_value_is_noticed(path):
    whole = path.read_bytes()
    with h5py.File(path) as file:
        stored = [file[name].id for name in ("record", "content", "AP", "group/kinds")]
        places = np.concatenate([part.get_offset() + np.arange(part.get_storage_size()) for part in stored])
    for place in places[::29]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with suppress(Damaged):
            pytest.fail(f"byte {place} of {read(path)}")


def test_a_file_of_another_kind_or_version_is_named(path, monkeypatch):
    with pytest.raises(Damaged, match=r"file.h5 is a scores file, expected the .model.h5 file"):
        artifact.read(path, "model", pytest.fail)
    version = artifact.SCHEMA_VERSION
    with monkeypatch.context() as patch:
        patch.setattr(artifact, "SCHEMA_VERSION", None)
        artifact.write(path, "scores", {}, {})
    assert f"has schema version None, this hashbench reads {version}. Upgrade" in refused(path)


@pytest.mark.parametrize("shape", [(20_000_000_000,), (1, 20_000_000_000)])
def test_arrays_larger_than_free_memory_are_refused_before_they_are_read(shape, tmp_path, monkeypatch):
    """They take no place on the disk, since almost nothing was written into them."""
    path = tmp_path / "sparse.h5"
    with h5py.File(path, "w") as file:
        file["record"] = np.bytes_(json.dumps({"arrays": ["AP"]}))
        file.create_dataset("AP", shape, np.uint8)[(-1,) * len(shape)] = 1
    monkeypatch.setattr(inputs, "free_memory", lambda: 10_000_000_000)
    with artifact.open_hdf5(path) as file:
        found = artifact.Artifact(path, file)
        with pytest.raises(TooLarge, match=r"takes 18\.6 GB of memory, and 9\.3 GB are free"):
            found.array("AP")
        if len(shape) == 2:
            with pytest.raises(TooLarge, match=r"a row of AP of .* takes 18\.6 GB of memory"):
                found.content()
