"""Every kind of file, whole, damaged and hostile."""

import json
import re
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from helpers.artifacts import edit, record_in
from helpers.error_sentences import complaint

from hashbench.errors import Damaged, HashbenchError, JobFailure
from hashbench.learning.state import TrainingState
from hashbench.methods.lsh import LSH
from hashbench.store import artifact, hdf5
from hashbench.store.artifact import ADVICE, Blocks, cached, cached_array
from hashbench.store.models import holds_model, read_model, write_model
from hashbench.store.provenance import Provenance

MADE = Provenance("tiny", "pixels", "lsh", '{"a": [1, null]}', 12, 7, "0123456789abcdef", 1, '{"numpy": "2.0"}')
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5)).astype(np.float32)
CODES = hdf5.Codes(*(RNG.integers(0, 16, (n, 2), dtype=np.uint8) for n in (3, 9)), MADE, 0.25, 1.5)


def training():
    network = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(network.parameters())
    return TrainingState(network, None, optimizer, torch.Generator(), torch.ones(4, 2))


def read_training(path, key="this"):
    state = training()
    state.read(path, key)
    return [*state.network.state_dict().values()], state.all_outputs


def read_codes(path):
    with hdf5.open_codes(path) as codes:
        return codes.made, codes.query, codes.database[:]


def find_codes(path):
    with hdf5.find_codes(path, replace(MADE, seed=8)) as codes:
        return codes


def all_arrays(found):
    return [found.array(name) for name in found.record["arrays"]]


def read_scores(path, key="this"):
    return artifact.read(path, "scores", all_arrays, {"code": key})


def find_training(path):
    with suppress(JobFailure):
        return read_training(path, "other")


def read_array(path, key="this"):
    return artifact.read(path, "array", all_arrays, {"key": key, "shape": [40, 5], "dtype": "<f4"})


READERS = {
    "dataset": hdf5.read_dataset,
    "codes": read_codes,
    "scores": read_scores,
    "model": read_model,
    "checkpoint": read_training,
    "array": read_array,
}
OTHERS = {  # a key that the file does not have
    "dataset": lambda path: artifact.read(path, "dataset", hdf5.dataset_of, {"fingerprint": "other"}),
    "codes": find_codes,
    "scores": lambda path: read_scores(path, "other"),
    "model": lambda path: holds_model(path, replace(MADE, seed=8)) or None,
    "checkpoint": find_training,
    "array": lambda path: read_array(path, "other"),
}
kinds = pytest.mark.parametrize("kind", READERS)


@pytest.fixture
def written(tiny, tmp_path):
    """Write a file of a kind."""

    def write(kind, name="file.h5"):
        path = tmp_path / name
        {
            "dataset": lambda: hdf5.write_dataset(tiny("shared-labels"), path),
            "codes": lambda: hdf5.write_codes(CODES, path),
            "scores": lambda: artifact.write(
                path, "scores", {"code": "this"}, {"AP": np.eye(3), "(kinds)": RNG.random(3)}
            ),
            "model": lambda: write_model(LSH(12, random_state=3).fit(X), MADE, path),
            "checkpoint": lambda: training().write(path, "this"),
            "array": lambda: cached_array(path, "this", Blocks(X.shape, X.dtype, [X[:30], X[30:]])),
        }[kind]()
        return path

    return write


def refused(kind, path):
    """Return the sentence on a damaged file, which names it and what to do."""
    with pytest.raises(Damaged):
        READERS[kind](path)
    sentence = complaint(READERS[kind], path)
    assert str(path) in sentence
    return sentence


# ---------------------------------------------------------------- written and read


@kinds
def test_what_is_written_is_read_and_only_by_its_key(kind, written):
    path = written(kind)
    assert READERS[kind](path) is not None
    assert OTHERS[kind](path) is None
    path.unlink()
    assert OTHERS[kind](path) is None
    if kind in ("dataset", "codes", "model"):
        assert "there is no file" in complaint(READERS[kind], path)


@kinds
def test_the_digest_is_what_the_documentation_says(kind, written):
    path = written(kind)
    with h5py.File(path) as file:
        record, content = json.loads(file["record"][()]), sha256()
        assert (record["hashbench"], record["schema_version"]) == (kind, 2)
        arrays = {name: np.asarray(file[name][()]) for name in ("record", *sorted(record["arrays"]))}
        for name, array in arrays.items():
            content.update(f"{name};{array.dtype.str};{array.shape};".encode() + array.tobytes())
        assert file["content"][()].decode() == content.hexdigest()


@pytest.mark.parametrize(
    "array",
    [
        np.float16([[1, np.nan]]),
        np.array(3.5),
        np.array([True, False]),
        np.zeros((0, 3)),
        np.arange(6).reshape(2, 3).T,
        np.arange(3, dtype=">i4"),
        np.arange(3) * 1j,
        np.array([b"a", b"bcd"]),
        np.arange(5_000_000, dtype=np.float32).reshape(-1, 5),
    ],
    ids=lambda array: f"{array.dtype}-{array.shape}",
)
def test_arrays_of_any_kind_come_back(array, tmp_path):
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


@kinds
def test_only_records_of_good_files_are_read(kind, written):
    path = written(kind)
    assert artifact.read_record(path)["hashbench"] == kind
    path.write_bytes(path.read_bytes()[:1000])
    assert artifact.read_record(path) == {}
    path.unlink()
    assert artifact.read_record(path) == {}


@pytest.mark.parametrize("n_characters", [59_999, 70_000, 1_000_000])
def test_records_may_be_long(n_characters, tmp_path):
    artifact.write(tmp_path / "a.h5", "array", {"key": "ü" + "x" * n_characters}, {})
    assert artifact.read(tmp_path / "a.h5", "array", lambda found: found.record["key"]) == "ü" + "x" * n_characters


# ---------------------------------------------------------------- computed unless it is there


def test_a_value_is_made_once_for_each_key_by_force_and_if_its_file_is_damaged(tmp_path):
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


def test_what_fails_midway_leaves_no_file(tmp_path):
    def failing():
        yield X[:4]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_array(tmp_path / "a.h5", "key", Blocks(X.shape, X.dtype, failing()))
    assert not [*tmp_path.iterdir()]


def test_a_damaged_array_is_reported_and_computed_again(written, caplog):
    path = written("array")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    written("array")
    assert path.read_bytes() == whole
    (message,) = caplog.messages
    assert message.startswith(f"{path} is damaged")


# ---------------------------------------------------------------- damaged, of another kind, hostile


@kinds
@pytest.mark.parametrize("share", [0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_damaged(kind, share, written):
    path = written(kind)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert re.search(f"is damaged, or was not written by hashbench: .* {re.escape(ADVICE[kind])}", refused(kind, path))


@kinds
def test_a_flipped_byte_of_any_value_is_noticed(kind, written):
    path = written(kind)
    whole = path.read_bytes()
    with h5py.File(path) as file:
        stored = {name: file[name] for name in ("record", "content", *json.loads(file["record"][()])["arrays"])}
        places = {name: (part.id.get_offset(), part.nbytes) for name, part in stored.items() if part.nbytes}
    for start, length in places.values():
        for place in {start, start + length // 2, start + length - 1}:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with suppress(Damaged, JobFailure):
                assert READERS[kind](path) is None  # of another key


@kinds
@pytest.mark.parametrize("other", READERS)
def test_a_file_of_another_kind_is_named(kind, other, written):
    if other != kind:
        path = written(other)
        edit(path, lambda record, arrays: record.update(code="this", key="this", shape=[40, 5], dtype="<f4"))
        expected = "the .model.h5 file" if kind == "model" else f"a {kind} file"
        assert f"{path} is a {other} file, expected {expected}" in refused(kind, path)


@kinds
@pytest.mark.parametrize("version", [1, 99, None, "2"])
def test_a_file_of_another_version_is_named(kind, version, written, monkeypatch):
    monkeypatch.setattr(artifact, "SCHEMA_VERSION", version)
    path = written(kind)
    monkeypatch.undo()
    assert f"{path} has schema version {version}, this hashbench reads 2. Upgrade" in refused(kind, path)


@kinds
@pytest.mark.parametrize("structure", [b"TREE", b"HEAP", b"SNOD"])
def test_a_damaged_structure_is_noticed(kind, structure, written):
    path = written(kind)
    path.write_bytes(path.read_bytes().replace(structure, b"XXXX"))
    refused(kind, path)


@kinds
@pytest.mark.parametrize("value", [0, -1, 99, "coder", "", None, [], {"a": 1}, [[1, 2]] * 3])
def test_whatever_an_entry_becomes_the_file_is_read_or_refused_in_a_sentence(kind, value, written):
    path = written(kind)
    record, _ = edit(path)
    for key in record.keys() - {"hashbench", "schema_version", "arrays"}:
        record_in(path, **{key: value})
        with suppress(HashbenchError):
            READERS[kind](path)
        record_in(path, **{key: record[key]})
    READERS[kind](path)


@kinds
def test_a_lacking_array_or_entry_is_named(kind, written):
    path = written(kind)
    record, arrays = edit(path)
    needed = {"codes": ["query/codes", "database/codes"], "dataset": ["query", "train"], "checkpoint": ["state"]}
    for name in needed.get(kind, []):
        edit(path, lambda record, arrays, name=name: arrays.pop(name))
        assert name in refused(kind, path)
        edit(path, lambda record, arrays, name=name, array=arrays[name]: arrays.update({name: array}))
    needed = {
        "codes": [*vars(MADE), "content"],
        "dataset": ["name", "rule_params", "fingerprint"],
        "model": ["made", "state"],
    }
    for name in needed.get(kind, []):
        edit(path, lambda record, arrays, name=name: record.pop(name))
        assert name in refused(kind, path)
        record_in(path, **{name: record[name]})


@kinds
@pytest.mark.parametrize("record", ["none", "heap", "group", "numbers", "a list", "no JSON"])
def test_a_record_of_any_other_form_is_refused(kind, record, written):
    path = written(kind)
    with h5py.File(path, "a") as file:
        del file["record"]
        if record == "group":
            file.create_group("record")
        elif record != "none":
            values = {"heap": "of any length", "numbers": np.arange(3), "a list": np.bytes_("[1]"), "no JSON": b"{no"}
            file["record"] = values[record]
    if record == "heap":  # in which HDF5 may run in circles, once it is damaged
        assert b"GCOL" in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(b"GCOL", b"XXXX"))
    refused(kind, path)


@kinds
@pytest.mark.parametrize("content", [b"", b"text", b"\x89HDF\r\n\x1a\n" * 9])
def test_other_files_are_refused(kind, content, tmp_path):
    path = tmp_path / "other.h5"
    path.write_bytes(content)
    refused(kind, path)


def test_full_disk_leaves_the_old_file(written, monkeypatch):
    path = written("array")
    whole = path.read_bytes()

    def fail(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(HashbenchError, match="No space left on device"):
        artifact.write(path, "array", {}, {"values": X})
    assert [file.read_bytes() for file in path.parent.iterdir()] == [whole]
