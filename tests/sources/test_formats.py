"""Vectors of faiss and big-ann, safetensors and sparse .npz; `test_array_files` has how arrays are chosen."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.error_sentences import complaint

from hashbench.sources.array_files import read_array, read_codes, read_features, read_items, read_levels
from hashbench.sources.formats import LABEL_KEYS, VECTOR_SUFFIXES
from hashbench.sources.shards import ShardedArray
from hashbench.store import inputs

X = np.random.default_rng(0).normal(scale=40, size=(7, 3)).astype(np.float32)


def as_vectors(array, suffix):
    """Return the bytes of a file of faiss, or of big-ann, written out by hand."""
    if suffix.endswith("bin"):
        return np.array(array.shape, "<u4").tobytes() + array.tobytes()
    return b"".join(np.array([len(row)], "<i4").tobytes() + row.tobytes() for row in array)


@pytest.mark.parametrize("suffix", VECTOR_SUFFIXES)
def test_vectors_are_features_and_codes_whole_and_in_slices(tmp_path, suffix):
    array = np.abs(X).astype(VECTOR_SUFFIXES[suffix])
    (tmp_path / f"a{suffix}").write_bytes(as_vectors(array, suffix))
    path = str(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(read_features(path), array.astype(np.float32))
    assert read_codes(path).dtype == array.dtype
    np.testing.assert_array_equal(read_codes(path), array)
    np.testing.assert_array_equal(ShardedArray([path], ())[2:5], array[2:5])


FVECS, FBIN = as_vectors(X, ".fvecs"), as_vectors(X, ".fbin")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.fvecs", FVECS[:-1], "begins with a row of 3 numbers, and its 111 bytes are not a whole number of such"),
        ("a.fvecs", b"", "begins with a row of 0 numbers, and its 0 bytes"),
        ("a.fvecs", b"\xff" * 32, "begins with a row of -1 numbers"),
        ("a.fvecs", FVECS[:32] + b"\x05\0\0\0" + FVECS[36:], "(the first is 0) declares 5 numbers, and row 0 3"),
        ("a.bvecs", FVECS, "not in the layout of faiss"),
        ("a.fbin", FBIN[:-1], "declares 7 rows of 3 numbers, 92 bytes, and has 91 bytes. It is cut short, or not"),
        ("a.fbin", FBIN[:3], "declares no shape and has 3 bytes"),
        ("a.fbin", bytes(8), "declares 0 rows of 0 numbers"),
        ("a.ibin", FVECS, "not in the layout of big-ann"),
        ("a.fbin", FBIN + FBIN[8:], "declares 7 rows of 3 numbers, 92 bytes, and has 176 bytes"),
        ("a.ibin", FBIN + FBIN[9:], "declares 7 rows of 3 numbers, 92 bytes, and has 175 bytes"),
    ],
)
def test_vectors_that_do_not_fill_their_file_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert words in complaint(read_features, str(tmp_path / name))


@pytest.mark.parametrize("suffix", [".fvecs", ".fbin"])
def test_vectors_may_be_larger_than_memory_as_long_as_a_slice_fits(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(as_vectors(np.ones((10_000, 3), "<f4"), suffix))
    monkeypatch.setattr(inputs, "free_memory", lambda: 100_000)
    assert ShardedArray([str(path)], ())[9_000:].sum() == 3_000
    assert f"{path} of shape (10000, 3) takes" in complaint(read_codes, str(path))


@pytest.mark.parametrize(
    ("suffix", "distances"),
    [(".ivecs", b""), (".ibin", b""), (".ibin", np.array([[0.5, 2], [1, 1.5]], "<f4").tobytes())],
    ids=["faiss", "big-ann", "big-ann's ground truth"],
)
def test_neighbours_are_level_1(tmp_path, suffix, distances):
    nearest = np.array([[4, 0], [1, 3]], "<i4")
    (tmp_path / f"a{suffix}").write_bytes(as_vectors(nearest, suffix) + distances)
    levels = read_levels(str(tmp_path / f"a{suffix}"), 5)
    assert levels.toarray().tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0]]
    words = complaint(read_levels, str(tmp_path / f"a{suffix}"), 4)
    assert "lists neighbours 0 to 4, and the database has items 0 to 3" in words
    (tmp_path / f"a{suffix}").write_bytes(as_vectors(np.array([[4, 0], [1, 1]], "<i4"), suffix))
    assert "lists a neighbour twice for 1 queries, first 1" in complaint(read_levels, str(tmp_path / f"a{suffix}"), 5)


def test_arrays_of_safetensors_are_read_by_name_whole_and_in_slices(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    codes, path = X > 0, str(tmp_path / "a.safetensors")
    safetensors.save_file({"codes": codes, "embeddings": X, "labels": np.arange(7), "scale": np.array(2.0)}, path)
    np.testing.assert_array_equal(read_codes(path), codes)
    np.testing.assert_array_equal(read_features(path), X)
    assert read_items(path).labels.tolist() == [*range(7)]
    np.testing.assert_array_equal(ShardedArray([f"{path}:codes"], ())[2:5], codes[2:5])
    assert "Known arrays: codes, embeddings, labels" in complaint(read_array, f"{path}:scale", ())


def test_bfloat16_of_safetensors_is_refused_by_its_name(tmp_path):
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    safetensors.save_file({"features": torch.ones(3, 2, dtype=torch.bfloat16)}, tmp_path / "a.safetensors")
    assert "is BF16, which NumPy does not have" in complaint(read_features, str(tmp_path / "a.safetensors"))


def test_safetensors_need_their_library(tmp_path, monkeypatch):
    (tmp_path / "a.safetensors").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    words = "a.safetensors needs safetensors: pip install safetensors."
    assert words in complaint(read_features, str(tmp_path / "a.safetensors"))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_a_sparse_matrix_is_read_as_features_and_as_labels(tmp_path, form):
    matrix = np.random.default_rng(0).integers(0, 2, (20, 6)) * np.arange(20)[:, None]
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(matrix).asformat(form))
    path = str(tmp_path / "a.npz")
    np.testing.assert_array_equal(read_features(path), matrix)
    np.testing.assert_array_equal(read_array(path, LABEL_KEYS), matrix)


def test_arrays_named_as_those_of_a_sparse_matrix_need_not_be_one(tmp_path):
    for number, format in enumerate(([1, 2, 3], ["csr", "csc"], 5)):
        np.savez(tmp_path / f"{number}.npz", format=format, shape=X.shape, data=X)
        np.testing.assert_array_equal(read_features(f"{tmp_path / str(number)}.npz:data"), X)
        np.testing.assert_array_equal(read_features(f"{tmp_path / str(number)}.npz"), X)


def test_a_sparse_matrix_must_be_sound_and_fit_into_memory_densely(tmp_path, monkeypatch):
    path = str(tmp_path / "a.npz")
    sp.save_npz(path, sp.coo_array(([1.0], ([99], [999])), shape=(100, 1_000)))
    monkeypatch.setattr(inputs, "free_memory", lambda: 100_000)
    words = "a.npz, a sparse matrix of shape (100, 1000) takes 0.0 GB of memory"
    assert words in complaint(read_array, path, LABEL_KEYS)
    np.savez(path, format=b"csr", shape=(1, 2), data=[1.0], indices=[5], indptr=[0, 1])
    assert "a.npz of shape (1, 2) is damaged: indices must be < 2" in complaint(read_features, path)
