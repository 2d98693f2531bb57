import dataclasses
import sys
from collections import Counter
from contextlib import suppress

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.artifacts import edit, record_in
from helpers.error_sentences import complaint

import hashbench
from hashbench.cli.descriptions import describe
from hashbench.errors import Damaged, HashbenchError, TooLarge
from hashbench.methods.lsh import LSH
from hashbench.store import artifact, hdf5, inputs
from hashbench.store.provenance import Provenance

ARRAYS = ("features", "images", "query", "database", "train", "labels", "coarse_labels", "neighbours")
WORDS = ("name", "rule", "features_name", "about", "fingerprint")
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 2, 3, 3)).astype(np.uint8)


PARAMS = '{"kind": "full", "n_iter": 50}'
MADE = Provenance("tiny", "pixels", "itq", PARAMS, 12, 7, "0123456789abcdef", 4, '{"numpy": "2.0"}')
OF_MODEL = dataclasses.replace(MADE, method="lsh", params="{}", method_version=1)
X = np.random.default_rng(0).normal(size=(40, 5))


def make_codes(n_bits=12, **changes):
    rng = np.random.default_rng(0)
    made = dataclasses.replace(MADE, n_bits=n_bits, **{key: changes.pop(key) for key in changes.keys() & vars(MADE)})
    arrays = {
        "query": np.packbits(rng.random((3, n_bits)) < 0.5, axis=1, bitorder="little"),
        "database": np.packbits(rng.random((9, n_bits)) < 0.5, axis=1, bitorder="little"),
        "fit_seconds": 0.25,
        "encode_seconds": 1.5,
    }
    return hdf5.Codes(**(arrays | changes), made=made)


@pytest.fixture
def codes_file(tmp_path):
    path = tmp_path / "codes.h5"
    hdf5.write_codes(make_codes(), path)
    return path


def read_codes(path):
    with hdf5.open_codes(path) as codes:
        return codes, codes.database[:]


# ---------------------------------------------------------------- what is written is read


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("same-label", {"about": {"summary": "süß"}}),
        ("shared-labels", {"features_name": "gist"}),
        ("distance", {}),
        ("distance", {"labels": np.arange(40)}),
        ("explicit", {}),
        ("explicit", {"matrix": sp.csr_array(np.eye(8, 32, dtype=np.int64) * 3)}),
        ("explicit", {"matrix": sp.csr_array((8, 32), dtype=np.uint8)}),
        ("same-label", {"images": IMAGES}),
        ("same-label", {"images": IMAGES[..., :1], "features": None, "features_name": "images"}),
        ("neighbours", {"neighbours": np.arange(16).reshape(8, 2)}),
        ("hierarchy", {"labels": np.arange(40) % 4, "coarse_labels": np.arange(40) % 4 // 2}),
    ],
)
def test_dataset_is_read_as_it_was_written(tiny, tiny_file, rule, changes):
    dataset, read = tiny(rule, **changes), hdf5.read_dataset(tiny_file(rule, **changes))
    for key in ARRAYS:
        written, stored = getattr(dataset, key), getattr(read, key)
        assert (written is None) == (stored is None)
        if written is not None:
            assert written.dtype == stored.dtype
            np.testing.assert_array_equal(written, stored)
    assert [getattr(read, key) for key in WORDS] == [getattr(dataset, key) for key in WORDS]
    assert dict(read.rule_params) == dict(dataset.rule_params)
    assert sp.issparse(read.matrix) == sp.issparse(dataset.matrix)
    whole = slice(0, 8), slice(0, 32)
    np.testing.assert_array_equal(read.affinity().block(*whole), dataset.affinity().block(*whole))


@pytest.mark.parametrize("n_bits", [1, 12, 64])
def test_codes_are_read_as_they_were_written(tmp_path, n_bits):
    codes, path = make_codes(n_bits), tmp_path / "codes.h5"
    hdf5.write_codes(codes, path)
    with hdf5.open_codes(path) as read:
        assert isinstance(read.query, np.ndarray)
        assert not isinstance(read.database, np.ndarray)  # still on disk
        for field in dataclasses.fields(codes):
            written, stored = getattr(codes, field.name), getattr(read, field.name)
            if field.name in ("query", "database"):
                np.testing.assert_array_equal(stored[:], written)
            else:
                assert isinstance(stored, type(written))
                assert stored == written
        assert read.content == codes.content
    for seed, is_found in ((7, True), (8, False)):
        with hdf5.open_codes(path, dataclasses.replace(codes.made, seed=seed)) as read:
            assert (read is not None) is is_found


def test_content_of_codes_changes_with_each_bit_and_with_their_length():
    codes = make_codes(12)
    flipped = codes.database.copy()
    flipped[-1, 0] ^= 1
    others = make_codes(12, database=flipped), make_codes(16), make_codes(13)
    assert len({codes.content, *(other.content for other in others)}) == 4
    assert make_codes(12, seed=8).content == codes.content
    assert len(codes.content) == 16


@pytest.mark.parametrize(
    "changes",
    [
        {"n_bits": 0},
        {"query": np.zeros((3, 3), np.uint8)},
        {"query": np.zeros((3, 2), np.int64)},
        {"database": np.zeros(6, np.uint8)},
    ],
)
def test_codes_that_are_no_packed_codes_are_refused(changes):
    with pytest.raises(HashbenchError):
        make_codes(**changes)


@pytest.mark.skipif(sys.platform == "win32", reason="cannot replace a mapped file there")
def test_large_arrays_are_mapped_of_files_in_the_data_folder_alone(tiny_file, monkeypatch):
    monkeypatch.setattr(artifact, "_MAPPED", 1)
    path = tiny_file("shared-labels")
    monkeypatch.setenv("HASHBENCH_DATA", str(path.parent))
    read = hdf5.read_dataset(path)
    arrays = [getattr(read, key) for key in ARRAYS if getattr(read, key) is not None]
    assert all(isinstance(array.base.base, np.memmap) for array in arrays)
    monkeypatch.setenv("HASHBENCH_DATA", str(path.parent / "elsewhere"))
    assert not isinstance(hdf5.read_dataset(path).features.base.base, np.memmap)


# ---------------------------------------------------------------- bad content


FILES = {  # how to write and to read it, its arrays and entries that cannot be lacking
    "dataset": (
        lambda tiny, path: hdf5.write_dataset(tiny(), path),
        hdf5.read_dataset,
        ["query", "train", "name", "rule_params", "fingerprint"],
    ),
    "codes": (
        lambda tiny, path: hdf5.write_codes(make_codes(), path),
        read_codes,
        ["query/codes", "database/codes", *vars(MADE), "content"],
    ),
    "model": (
        lambda tiny, path: hdf5.write_model(LSH(12).fit(X), OF_MODEL, path),
        hdf5.read_model,
        ["made", "state"],
    ),
}
kinds = pytest.mark.parametrize("kind", FILES)


@kinds
def test_whatever_an_entry_becomes_the_file_is_read_or_refused_in_a_sentence(kind, tiny, tmp_path):
    write, read, _ = FILES[kind]
    path = tmp_path / "file.h5"
    write(tiny, path)
    record, _ = edit(path)
    for key in record.keys() - {"hashbench", "schema_version", "arrays"}:
        for value in (-1, "coder", None, [{"a": 1}]):
            record_in(path, **{key: value})
            with suppress(HashbenchError):
                read(path)
        record_in(path, **{key: record[key]})
    assert read(path) is not None


@kinds
def test_a_lacking_array_or_entry_is_named_with_advice_for_the_kind(kind, tiny, tmp_path):
    write, read, names = FILES[kind]
    for name in names:
        path = tmp_path / "file.h5"
        write(tiny, path)
        edit(path, lambda record, arrays, name=name: (arrays if name in arrays else record).pop(name))
        assert f"it lacks {name}. {artifact.ADVICE[kind]}." in complaint(read, path)


@kinds
def test_info_advises_on_a_damaged_file_by_the_kind_that_it_states(kind, tiny, tmp_path):
    path = tmp_path / "file.h5"
    FILES[kind][0](tiny, path)
    with h5py.File(path, "a") as file:
        file["content"][()] = b"0" * 64
    assert f"its content and its checksum differ. {artifact.ADVICE[kind]}." in complaint(describe, str(path))
    with h5py.File(path, "a") as file:
        file["record"][()] = b"{no"
    assert complaint(describe, str(path)).endswith("Repeat the command that wrote it.")


def test_dataset_that_breaks_the_rules_is_named(tiny_file):
    path = tiny_file()
    edit(path, lambda record, arrays: arrays["features"].__setitem__((3, 1), np.nan))
    assert "not finite" in complaint(hdf5.read_dataset, path)


def test_set_padding_bits_of_query_codes_are_noticed(codes_file):
    edit(codes_file, lambda record, arrays: arrays["query/codes"].__setitem__((0, -1), 0x80))
    assert "bits beyond" in complaint(read_codes, codes_file)


def test_failed_dataset_leaves_the_old_one(tiny, tiny_file):
    path = tiny_file()
    before = path.read_bytes()
    with pytest.raises(HashbenchError, match="cannot be stored as JSON"):
        hdf5.write_dataset(tiny(about={"summary": object()}), path)
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("key", ["dataset", "method"])
@pytest.mark.parametrize("name", ["../../etc", ""])
def test_names_that_lead_out_of_a_folder_are_refused(tmp_path, key, name):
    path = tmp_path / "codes.h5"
    hdf5.write_codes(make_codes(**{key: name}), path)
    with pytest.raises(HashbenchError, match=f"the name of the {key} may contain only letters"), hdf5.open_codes(path):
        pytest.fail("it was opened")


# ---------------------------------------------------------------- models


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "lsh.model.h5"
    hdf5.write_model(LSH(12, random_state=3).fit(X), OF_MODEL, path)
    return path


def test_a_model_is_read_with_its_parameters_and_provenance(model_file):
    model = hashbench.read_model(str(model_file))
    assert model.made == OF_MODEL
    assert model.method.get_params() == {"n_bits": 12, "random_state": 3}
    np.testing.assert_array_equal(model.method.transform(X), LSH(12, random_state=3).fit(X).transform(X))
    assert hdf5.holds_model(model_file, OF_MODEL)
    assert not hdf5.holds_model(model_file, dataclasses.replace(OF_MODEL, seed=8))
    assert not hdf5.holds_model(model_file.with_name("none"), OF_MODEL)


def test_a_model_that_does_not_fit_into_memory_is_not_taken_for_missing(model_file, monkeypatch):
    monkeypatch.setattr(inputs, "_SMALL", 0)
    monkeypatch.setattr(inputs, "free_memory", lambda: 0)
    with pytest.raises(TooLarge):
        hdf5.holds_model(model_file, OF_MODEL)


STATE = {
    "some_": {
        "one": [1, 2.5, None],
        "two": (True, "text", {"a/b": np.arange(2), "a:b": np.arange(1), "deep": np.arange(3)}),
    },
    "names_": np.array(["a", "bc"], dtype=object),
    "texts_": np.array([["süß", ""]]),
    "number_": np.float64(0.1),
    "zero_": np.array(0),
}


def test_values_of_any_plain_kind_come_back_as_they_were(tmp_path):
    method = LSH(4).fit(X)
    vars(method).update(STATE)
    hdf5.write_model(method, dataclasses.replace(OF_MODEL, n_bits=4), tmp_path / "lsh.h5")
    parameters, state, arrays = artifact.read(tmp_path / "lsh.h5", "model", hdf5._parts_of)[2:]
    again = vars(hdf5.from_arrays(LSH, parameters, state, arrays))
    expected = {**STATE, "number_": 0.1}
    assert {name: repr(again[name]) for name in STATE} == {name: repr(value) for name, value in expected.items()}


@pytest.mark.parametrize(
    "value",
    [Counter, {1, 2}, np.array([Counter()]), {1: 2.0}, {"a": [{"b": 1, None: 2}]}],
    ids=["class", "set", "objects", "number as key", "None as key"],
)
def test_values_that_are_not_plain_are_refused(tmp_path, value):
    method = LSH(4).fit(X)
    method.odd_ = value
    with pytest.raises(HashbenchError, match=r"LSH cannot be saved: odd_\S* is .*expected"):
        hdf5.write_model(method, dataclasses.replace(OF_MODEL, n_bits=4), tmp_path / "lsh.h5")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["subprocess:Popen", "urllib.parse:SplitResult"])  # a named tuple
def test_a_file_makes_no_objects_but_the_methods_own(model_file, name):
    edit(model_file, lambda record, arrays: record["state"].update(mean_={"class": name, "fields": {}}))
    with pytest.raises(Damaged, match=f"'{name}', which LSH does not use"):
        hdf5.read_model(model_file)


def version(number):
    return lambda record, arrays: record["made"].update(method_version=number)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (version(9), r"fitted by version 9 of lsh \(hashbench 0.1.0\). The method here is version 1"),
        (lambda record, arrays: record["made"].update(method="lhs"), "Did you mean 'lsh'"),
        (lambda record, arrays: record["parameters"].update(n_trees=3), "is damaged"),
        (lambda record, arrays: arrays.pop("state/mean_"), "is damaged"),
    ],
    ids=["version", "method", "parameters", "array"],
)
def test_what_another_hashbench_wrote_is_refused(model_file, change, message):
    edit(model_file, change)
    with pytest.raises(HashbenchError, match=message):
        hdf5.read_model(model_file)
