"""Arrays in files of every format: read back as they were written, whole and in slices; `test_tables` has tables."""

import os
import pickle
import sys
import warnings

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.error_sentences import complaint
from scipy.io import savemat

from hashbench.sources.array_files import (
    ShardedArray,
    opened_arrays,
    read_array,
    read_codes,
    read_features,
    read_items,
    read_levels,
    read_matrix,
)
from hashbench.sources.formats import LABEL_KEYS, VECTOR_SUFFIXES
from hashbench.store import inputs

X = np.random.default_rng(0).normal(scale=40, size=(7, 3)).astype(np.float32)
Y = np.array([0, 1, 2, 1, 0, 2, 1])
NAMES = np.array(["cat", "", "süß", "dog", "cat", "süß", "dog"])


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.h5"])
def test_words_that_are_bytes_are_read_as_utf_8(tmp_path, name):
    words = np.array([word.encode() for word in NAMES.tolist()])
    if name == "a.npy":
        np.save(tmp_path / name, words)
    elif name == "a.npz":
        np.savez(tmp_path / name, label=words)
    else:
        with h5py.File(tmp_path / name, "w") as file:
            file["label"] = words
    assert read_array(str(tmp_path / name), LABEL_KEYS).tolist() == NAMES.tolist()


def test_objects_are_not_unpickled(tmp_path):
    for save, name in ((np.save, "a.npy"), (np.savez, "a.npz")):
        save(tmp_path / name, np.array([{"a": 1}], dtype=object))
        assert "it holds Python objects" in complaint(read_features, str(tmp_path / name))
    np.savez(tmp_path / "b.npz", X=X, objects=np.array([{}], dtype=object))
    np.testing.assert_array_equal(read_features(f"{tmp_path / 'b.npz'}:X"), X)


# ---------------------------------------------------------------- MATLAB and HDF5


def cells(*values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


def test_files_of_matlab_hold_arrays_sparse_matrices_texts_and_cells(tmp_path, monkeypatch):
    good = {"X": X, "names": cells(*NAMES), "numbers": cells(*Y.tolist()), "tags": sp.csc_matrix(np.eye(7, 3))}
    bad = {
        "mixed": cells("a", 1.0),
        "gap": cells("a", np.zeros((0, 0))),
        "wide": cells(Y, Y),
        "deep": cells(cells("b")),
    }
    for is_zipped in (False, True):
        content = good | bad | {"chars": ["cat", "dog"], "large": np.zeros((1000, 100)), "struct": {"a": 1}}
        savemat(tmp_path / "a.mat", content, do_compression=is_zipped)
        spec = f"{tmp_path / 'a.mat'}:"
        for name, expected in {"X": X, "names": NAMES[:, None], "numbers": Y[:, None], "tags": np.eye(7, 3)}.items():
            np.testing.assert_array_equal(read_array(f"{spec}{name}", LABEL_KEYS), expected)
        assert read_array(f"{spec}chars", ()).tolist() == ["cat", "dog"]
        for name in bad:
            assert "cell array, expected one string in each cell" in complaint(read_array, f"{spec}{name}", LABEL_KEYS)
        assert "struct of " in complaint(read_array, f"{spec}struct", ())
        with monkeypatch.context() as patch:  # only what is asked for must fit
            patch.setattr(inputs, "free_memory", lambda: 1 << 15)
            np.testing.assert_array_equal(read_array(f"{spec}X", ()), X)
            assert "of shape (1000, 100), takes 0.0 GB of memory" in complaint(read_array, f"{spec}large", ())
    content = (tmp_path / "a.mat").read_bytes()
    for n_bytes in (0, 100, 130, 200):
        (tmp_path / "a.mat").write_bytes(content[:n_bytes])
        assert complaint(read_array, f"{spec}X", ())


@pytest.mark.parametrize("name", ["a.mat", "a.h5", "a.hdf5"])
def test_axes_of_matlab_7_3_are_turned_whatever_the_suffix(tmp_path, name):
    with h5py.File(tmp_path / name, "w") as file:
        for key, values, kind in (
            ("square", np.arange(9.0).reshape(3, 3).T, "double"),
            ("nothing", np.zeros(2, "u8"), "double"),
            ("chars", np.array([[*b"cat"]], "u2").T, "char"),
            ("cells", np.zeros((1, 2)), "cell"),
        ):
            file[key] = values
            file[key].attrs["MATLAB_class"] = np.bytes_(kind)
        file["nothing"].attrs["MATLAB_empty"] = np.uint8(1)
        file["#refs#/a"] = X  # which MATLAB hides
        file["plain"] = X.T if name == "a.mat" else X
    np.testing.assert_array_equal(read_array(f"{tmp_path / name}:square", ()), np.arange(9).reshape(3, 3))
    np.testing.assert_array_equal(read_array(f"{tmp_path / name}:plain", ()), X)
    with opened_arrays(tmp_path / name, in_slices=True) as arrays:
        assert [*arrays] == ["cells", "chars", "nothing", "plain", "square"]
        np.testing.assert_array_equal(arrays["square"][1:2], [[3, 4, 5]])
    assert "is an empty array of MATLAB 7.3" in complaint(read_array, f"{tmp_path / name}:nothing", ())
    for key in ("chars", "cells"):
        assert "Save it without -v7.3." in complaint(read_array, f"{tmp_path / name}:{key}", ())


@pytest.mark.parametrize("name", ["a.h5", "a.mat"])
def test_a_link_to_nothing_is_named(tmp_path, name):
    path = tmp_path / name
    with h5py.File(path, "w") as file:
        file["emb"], file["run/old"], file["run/emb"] = h5py.SoftLink("/run 3/emb"), h5py.SoftLink("older"), X
    expected = f"emb of {path} is a link to '/run 3/emb', which leads to no array. Write the array, or name another."
    assert complaint(read_features, f"{path}:emb") == expected
    assert f"{path} holds arrays emb, run/emb, run/old; name one" in complaint(read_features, str(path))
    assert read_array(f"{path}:run/emb", ()).size == X.size


# ---------------------------------------------------------------- vectors and safetensors


def as_vectors(array, suffix):
    """Return the bytes of a file of faiss, or of big-ann, written out by hand."""
    if suffix.endswith("bin"):
        return np.array(array.shape, "<u4").tobytes() + array.tobytes()
    return b"".join(np.array([len(row)], "<i4").tobytes() + row.tobytes() for row in array)


@pytest.mark.parametrize("suffix", VECTOR_SUFFIXES)
def test_vectors_are_features_and_codes_whole_and_in_slices(tmp_path, monkeypatch, suffix):
    array = np.abs(X).astype(VECTOR_SUFFIXES[suffix])
    (tmp_path / f"a{suffix}").write_bytes(as_vectors(array, suffix))
    path = str(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(read_features(path), array.astype(np.float32))
    assert read_codes(path).dtype == array.dtype
    np.testing.assert_array_equal(read_codes(path), array)
    monkeypatch.setattr(inputs, "free_memory", lambda: 20)  # bytes; a slice may fit where the whole does not
    np.testing.assert_array_equal(ShardedArray([path], ())[2:5], array[2:5])
    assert f"{path} of shape (7, 3) takes" in complaint(read_codes, path)


FVECS, FBIN = as_vectors(X, ".fvecs"), as_vectors(X, ".fbin")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.fvecs", FVECS[:-1], "begins with a row of 3 numbers, and 111 bytes are not a whole number of such rows"),
        ("a.fvecs", b"", "begins with a row of 0 numbers, and 0 bytes"),
        ("a.fvecs", b"\xff" * 32, "begins with a row of -1 numbers"),
        ("a.fvecs", FVECS[:32] + b"\x05\0\0\0" + FVECS[36:], "rows do not all declare 3 numbers"),
        ("a.bvecs", FVECS, "not faiss's layout"),
        ("a.fbin", FBIN[:-1], "declares shape (7, 3) and has 91 bytes: cut short, or not"),
        ("a.fbin", FBIN[:3], "declares shape () and has 3 bytes"),
        ("a.fbin", bytes(8), "declares shape (0, 0)"),
        ("a.fbin", FBIN + FBIN[8:], "declares shape (7, 3) and has 176 bytes"),
        ("a.ibin", FBIN + FBIN[9:], "declares shape (7, 3) and has 175 bytes"),
    ],
)
def test_vectors_that_do_not_fill_their_file_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert words in complaint(read_features, str(tmp_path / name))


@pytest.mark.parametrize(
    ("suffix", "distances"),
    [(".ivecs", b""), (".ibin", b""), (".ibin", np.array([[0.5, 2], [1, 1.5]], "<f4").tobytes())],
    ids=["faiss", "big-ann", "big-ann's ground truth"],
)
def test_neighbours_are_level_1(tmp_path, suffix, distances):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(as_vectors(np.array([[4, 0], [1, 3]], "<i4"), suffix) + distances)
    assert read_levels(str(path), 5).toarray().tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0]]
    words = complaint(read_levels, str(path), 4)
    assert "lists neighbours 0 to 4, and the database has items 0 to 3" in words
    path.write_bytes(as_vectors(np.array([[4, 0], [1, 1]], "<i4"), suffix))
    assert "lists a neighbour twice for 1 queries, first 1" in complaint(read_levels, str(path), 5)


def test_arrays_of_safetensors_are_read_by_name_whole_and_in_slices(tmp_path, monkeypatch):
    safetensors, path = pytest.importorskip("safetensors.numpy"), str(tmp_path / "a.safetensors")
    codes = X > 0
    safetensors.save_file({"codes": codes, "embeddings": X, "labels": Y, "scale": np.array(2.0)}, path)
    np.testing.assert_array_equal(read_codes(path), codes)
    items = read_items(path)
    np.testing.assert_array_equal(items.features, X)
    np.testing.assert_array_equal(items.labels, Y)
    np.testing.assert_array_equal(ShardedArray([f"{path}:codes"], ())[2:5], codes[2:5])
    assert "Known arrays: codes, embeddings, labels" in complaint(read_array, f"{path}:scale", ())
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors.torch").save_file({"X": torch.ones(3, 2, dtype=torch.bfloat16)}, path)
    assert "is BF16, which NumPy does not have" in complaint(read_features, path)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert "a.safetensors needs safetensors: pip install 'hashbench[safetensors]'." in complaint(read_features, path)


# ---------------------------------------------------------------- sparse matrices of SciPy


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_a_sparse_matrix_is_read_as_features_and_as_labels(tmp_path, form):
    matrix = np.random.default_rng(0).integers(0, 2, (20, 6)) * np.arange(20)[:, None]
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(matrix).asformat(form))
    np.testing.assert_array_equal(read_features(str(tmp_path / "a.npz")), matrix)
    np.testing.assert_array_equal(read_array(str(tmp_path / "a.npz"), LABEL_KEYS), matrix)


def test_arrays_named_as_those_of_a_sparse_matrix_need_not_be_one(tmp_path):
    for number, kind in enumerate(([1, 2, 3], ["csr", "csc"], 5)):
        np.savez(tmp_path / f"{number}.npz", format=kind, shape=X.shape, data=X)
        np.testing.assert_array_equal(read_features(str(tmp_path / f"{number}.npz")), X)


def test_a_sparse_matrix_must_be_sound_and_fit_into_memory_densely(tmp_path, monkeypatch):
    path = str(tmp_path / "a.npz")
    sp.save_npz(path, sp.coo_array(([1.0], ([99], [999])), shape=(100, 1_000)))
    monkeypatch.setattr(inputs, "free_memory", lambda: 100_000)
    words = "a.npz, a sparse matrix of shape (100, 1000) takes 0.0 GB of memory"
    assert words in complaint(read_array, path, LABEL_KEYS)
    np.savez(path, format=b"csr", shape=(1, 2), data=[1.0], indices=[5], indptr=[0, 1])
    assert "a.npz of shape (1, 2) is damaged: indices must be < 2" in complaint(read_features, path)


# ---------------------------------------------------------------- PyTorch


@pytest.fixture
def saved(tmp_path):
    torch = pytest.importorskip("torch")

    def save(content, name="a.pt", **options):
        torch.save(content, tmp_path / name, **options)
        return str(tmp_path / name)

    return save


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_tensors_of_every_kind_are_read(saved):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(X)
    for name, is_zip in (("a.pt", True), ("A.PTH", False)):
        np.testing.assert_array_equal(read_features(saved(tensor, name, _use_new_zipfile_serialization=is_zip)), X)
    views = [tensor.T.contiguous().T, tensor.double(), tensor.to_sparse().requires_grad_(), tensor.to_sparse_csr()]
    for view in (*views, torch.nn.Parameter(tensor)):
        np.testing.assert_array_equal(read_array(saved(view), ()), X)
    signs = (tensor > 0).float() * 2 - 1
    for kind in (torch.bfloat16, torch.float8_e4m3fn, torch.float16):
        np.testing.assert_array_equal(read_array(saved(signs.to(kind)), ()), signs.numpy())
    np.testing.assert_array_equal(read_matrix(saved(torch.eye(3, dtype=torch.int64).to_sparse())), np.eye(3))


def test_tensors_and_lists_of_nested_dicts_are_found_by_name(tmp_path, saved):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(X)
    content = {"epoch": 3, "codes": tensor > 0, "embeddings": tensor, "labels": NAMES.tolist()}
    content["again"] = content  # which ends
    path = saved(content | {"split": {"query": (tensor, tensor + 1)}})
    with opened_arrays(tmp_path / "a.pt") as arrays:
        assert list(arrays)[:3] == ["codes", "embeddings", "labels"]
    np.testing.assert_array_equal(read_codes(path), X > 0)
    np.testing.assert_array_equal(read_array(f"{path}:split/query/1", ()), X + 1)
    assert read_items(path).labels.tolist() == NAMES.tolist()
    assert "holds arrays a, b; " in complaint(read_codes, saved({"a": tensor, "b": tensor}))
    assert read_codes(saved({"codes": [[0, 1], [1, 0]]})).tolist() == [[0, 1], [1, 0]]


class Runs:
    """A pickle that runs a command when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_what_is_no_tensor_is_refused_and_no_code_is_run(tmp_path, saved):
    torch = pytest.importorskip("torch")
    ran = str(tmp_path / "ran")

    def sparse(row, shape):
        indices = torch.tensor([[row], [5]])
        return torch.sparse_coo_tensor(indices, torch.tensor([1.0]), shape, check_invariants=False)

    with warnings.catch_warnings(action="ignore"):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for content, words in (
        (Runs(ran), "holds more than tensors"),
        ({"codes": X}, "a.pt is damaged, or holds more than tensors, lists and dicts"),
        (torch.nn.Linear(2, 2), "holds more than tensors"),
        (sparse(99, (6, 8)), "a.pt is damaged"),
        (torch.empty(6, 8, device="meta"), "no data"),
        (torch.zeros(1).expand(10**8, 10**8), "GB of memory"),
        ({"labels": [[1], [2, 3]]}, "lists of unequal lengths"),
        ({"labels": [1, {}]}, "is a list that mixes types"),
        ({"labels": ["a", 1]}, "is a list that mixes types"),
        ({"codes": nested}, "cannot read"),
        (torch.tensor(3), "holds no arrays"),
        (None, "holds no arrays"),
    ):
        assert words in complaint(read_array, saved(content), ())
    for content in (b"", b"hello", b"PK\x03\x04", pickle.dumps(Runs(ran), protocol=2)):
        (tmp_path / "a.pt").write_bytes(content)
        assert "a.pt is damaged, or holds more than tensors" in complaint(read_codes, str(tmp_path / "a.pt"))
    assert not (tmp_path / "ran").exists()
