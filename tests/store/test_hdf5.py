import dataclasses
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.artifacts import edit
from helpers.error_sentences import complaint

from hashbench.errors import HashbenchError
from hashbench.store import artifact, hdf5
from hashbench.store.provenance import Provenance

ARRAYS = ("features", "images", "query", "database", "train", "labels", "coarse_labels", "neighbours")
WORDS = ("name", "rule", "features_name", "about", "fingerprint")
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 2, 3, 3)).astype(np.uint8)


PARAMS = '{"kind": "full", "n_iter": 50}'
MADE = Provenance("tiny", "pixels", "itq", PARAMS, 12, 7, "0123456789abcdef", 4, '{"numpy": "2.0"}')


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
