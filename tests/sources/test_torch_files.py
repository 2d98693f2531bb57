"""Tensors in files of PyTorch; nothing else in them is run or read."""

import os
import pickle
import warnings

import numpy as np
import pytest
from helpers.error_sentences import complaint

from hashbench.sources.array_files import opened_arrays, read_array, read_codes, read_features, read_items, read_matrix

torch = pytest.importorskip("torch")

X = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32))
WORDS = ["cat", "süß", "cat", "dog", "dog", "süß"]


def saved(path, content, **options):
    torch.save(content, path, **options)
    return str(path)


@pytest.mark.parametrize("name", ["a.pt", "a.pth", "A.PT"])
@pytest.mark.parametrize("is_zip", [True, False])
def test_a_lone_tensor_is_read(tmp_path, name, is_zip):
    path = saved(tmp_path / name, X, _use_new_zipfile_serialization=is_zip)
    np.testing.assert_array_equal(read_features(path), X.numpy())
    np.testing.assert_array_equal(read_codes(saved(tmp_path / name, X > 0)), X.numpy() > 0)


def test_tensors_and_lists_of_a_dict_are_found_by_name(tmp_path):
    content = {"epoch": 3, "note": "x", "codes": X > 0, "embeddings": X, "labels": WORDS}
    path = saved(tmp_path / "a.pt", content | {"split": {"query": (X, X + 1)}})
    with opened_arrays(tmp_path / "a.pt") as arrays:
        assert list(arrays) == ["codes", "embeddings", "labels", "split/query/0", "split/query/1"]
    np.testing.assert_array_equal(read_codes(path), X.numpy() > 0)
    np.testing.assert_array_equal(read_array(f"{path}:split/query/1", ()), X.numpy() + 1)
    items = read_items(path)
    np.testing.assert_array_equal(items.features, X.numpy())
    assert items.labels.tolist() == WORDS
    assert "holds arrays a, b; " in complaint(read_codes, saved(tmp_path / "b.pt", {"a": X, "b": X}))
    assert "unknown array" in complaint(read_codes, f"{path}:code")
    assert read_codes(saved(tmp_path / "c.pt", {"codes": [[0, 1], [1, 0]]})).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: tensor.clone().requires_grad_(),
        torch.nn.Parameter,
        lambda tensor: tensor.T.contiguous().T,
        lambda tensor: tensor.double(),
        lambda tensor: tensor.to_sparse(),
        lambda tensor: tensor.to_sparse_csr(),
        lambda tensor: tensor.to_sparse().requires_grad_(),
        lambda tensor: torch.complex(tensor, -tensor).conj().imag,
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_tensors_of_any_layout_are_read(tmp_path, change):
    np.testing.assert_array_equal(read_array(saved(tmp_path / "a.pt", change(X)), ()), X.numpy())


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn, torch.float16])
def test_tensors_of_few_bits_are_read(tmp_path, kind):
    signs = (X > 0).float() * 2 - 1
    np.testing.assert_array_equal(read_array(saved(tmp_path / "a.pt", signs.to(kind)), ()), signs.numpy())
    path = saved(tmp_path / "a.pt", torch.eye(3, dtype=torch.int64).to_sparse())
    np.testing.assert_array_equal(read_matrix(path), np.eye(3))


def test_dicts_that_hold_each_other_end(tmp_path):
    circle = {"codes": X}
    circle["again"] = circle
    np.testing.assert_array_equal(read_codes(saved(tmp_path / "a.pt", circle)), X.numpy())
    many = {"x": X}
    for _ in range(64):
        many = {"left": many, "right": many}
    assert read_codes(saved(tmp_path / "b.pt", many)).shape == (6, 8)


class Runs:
    """A pickle that runs a command when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_code_in_a_file_is_not_run(tmp_path):
    ran = tmp_path / "ran"
    saved(tmp_path / "a.pt", Runs(str(ran)))
    (tmp_path / "b.pt").write_bytes(pickle.dumps(Runs(str(ran)), protocol=2))
    for name in ("a.pt", "b.pt"):
        assert "holds more than tensors" in complaint(read_codes, str(tmp_path / name))
    assert not ran.exists()


def sparse(row, shape):
    return torch.sparse_coo_tensor(torch.tensor([[row], [5]]), torch.tensor([1.0]), shape, check_invariants=False)


def nested():
    with warnings.catch_warnings(action="ignore"):
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"codes": X.numpy()}, "a.pt is damaged, or holds more than tensors, lists and dicts"),
        (torch.nn.Linear(2, 2), "holds more than tensors"),
        (sparse(99, (6, 8)), "a.pt is damaged"),
        (torch.empty(6, 8, device="meta"), "no data"),
        (torch.zeros(1).expand(10**8, 10**8), "GB of memory"),
        (sparse(0, (10**8, 10**8)), "GB of memory"),
        ({"labels": [[1], [2, 3]]}, "lists of unequal lengths"),
        ({"labels": [[1] * 300_000] * 300_000}, "a list of 90,000,000,000 values, takes"),
        ({"labels": ["a" * 10**7] * 10**5}, "a list of 100,000 values, takes"),
        ({"labels": [[[1]]]}, "is a list that holds list, expected numbers or strings"),
        ({"labels": [1, {}]}, "is a list that holds dict, expected numbers or strings"),
        ({"codes": nested()}, "is a nested tensor, expected a tensor of one shape"),
        (torch.tensor(3), "holds no arrays"),
        (None, "holds no arrays"),
        ([X.numpy() > 0], "holds more than tensors"),
        ([torch.eye(6) > 0] * 3, "holds arrays 0, 1, 2; "),
    ],
)
def test_what_is_no_tensor_is_refused(tmp_path, content, words):
    assert words in complaint(read_array, saved(tmp_path / "a.pt", content), ())


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04"])
def test_what_is_no_file_of_pytorch_is_refused(tmp_path, content):
    (tmp_path / "a.pt").write_bytes(content)
    assert "a.pt is damaged, or holds more than tensors" in complaint(read_codes, str(tmp_path / "a.pt"))
