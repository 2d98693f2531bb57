"""MATLAB 5 files, in which SciPy trusts what it finds."""

import struct
import zlib

import numpy as np
import pytest
from helpers.error_sentences import complaint
from scipy.io import savemat

from hashbench.sources.array_files import read_array
from hashbench.store import inputs

X = np.random.default_rng(0).normal(size=(7, 3))
CELLS = np.array(["cat", "dog"], dtype=object)


def saved(path, is_zipped=False, **arrays):
    savemat(path, arrays, do_compression=is_zipped)
    return path


def edited(path, old, new):
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    return path


def shape(*lengths):
    """Dimensions as they lie in a file."""
    return struct.pack(f"<II{len(lengths)}i", 5, 4 * len(lengths), *lengths)


@pytest.mark.parametrize("is_zipped", [False, True])
def test_only_the_variable_that_is_asked_for_is_unpacked_and_checked(tmp_path, monkeypatch, is_zipped):
    path = saved(tmp_path / "a.mat", is_zipped, large=np.zeros((1000, 100)), X=X, y=np.arange(7))
    monkeypatch.setattr(inputs, "free_memory", lambda: 1 << 15)
    np.testing.assert_array_equal(read_array(f"{path}:X", ()), X)
    text = complaint(read_array, f"{path}:large", ())
    assert text.startswith(f"large of {path}, of shape (1000, 100), takes 0.0 GB of memory")


def test_a_size_declared_inside_a_zipped_variable_counts_before_it_is_unpacked(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.mat", is_zipped=False, X=np.zeros((40, 50)))
    content = path.read_bytes()
    array = content[136:] + bytes(10**6)  # more than its shape needs
    zipped = zlib.compress(struct.pack("<II", 14, len(array)) + array)
    path.write_bytes(content[:128] + struct.pack("<II", 15, len(zipped)) + zipped)
    monkeypatch.setattr(inputs, "free_memory", lambda: 1 << 19)
    text = complaint(read_array, f"{path}:X", ())
    assert text.startswith(f"X of {path} takes 0.0 GB of memory, and 0.0 GB are free")


def test_of_two_variables_with_one_name_the_first_is_read_and_checked(tmp_path):
    first, second = (saved(tmp_path / f"{name}.mat", X=X + number).read_bytes() for number, name in enumerate("ab"))
    (tmp_path / "a.mat").write_bytes(first + second[128:])
    np.testing.assert_array_equal(read_array(f"{tmp_path / 'a.mat'}:X", ()), X)


def test_cells_of_words_are_read_also_empty_ones(tmp_path):
    names = np.array(["cat", "", "süß"], dtype=object)
    for is_zipped in (False, True):
        path = saved(tmp_path / "a.mat", is_zipped, names=names, empty=np.zeros((0, 3)))
        assert read_array(f"{path}:names", ()).tolist() == [["cat", "", "süß"]]
        assert read_array(f"{path}:empty", ()).shape == (0, 3)


@pytest.mark.parametrize("n_cells", [1, 3, 1 << 30, -2])
def test_cells_that_would_run_into_the_next_variable_are_refused(tmp_path, n_cells):
    path = saved(tmp_path / "a.mat", names=CELLS, X=X)
    edited(path, shape(1, 2), shape(1, n_cells))
    text = complaint(read_array, f"{path}:names", ())
    assert "class 1 in 2 parts" in text or "of memory" in text
    np.testing.assert_array_equal(read_array(f"{path}:X", ()), X)


@pytest.mark.parametrize("n_letters", [5, 10**9])
def test_words_longer_than_their_bytes_are_refused(tmp_path, n_letters):
    path = edited(saved(tmp_path / "a.mat", names=CELLS[:1]), shape(1, 3), shape(1, n_letters))
    assert "it is damaged" in complaint(read_array, f"{path}:names", ())


def test_words_of_no_shape_at_all_are_refused(tmp_path):
    path = edited(saved(tmp_path / "a.mat", names=CELLS[:1]), shape(1, 3), struct.pack("<IIII", 5, 0, 1 | 3 << 16, 0))
    assert "it is damaged" in complaint(read_array, f"{path}:names", ())


def test_cells_of_structs_are_no_array_of_numbers_or_words(tmp_path):
    path = saved(tmp_path / "a.mat", cells=np.array([{"a": 1}], dtype=object), X=X)
    assert "or holds more than numbers and strings" in complaint(read_array, f"{path}:cells", ())
    np.testing.assert_array_equal(read_array(f"{path}:X", ()), X)


def test_a_variable_without_flags_is_refused_whatever_the_mark_of_byte_order(tmp_path):
    path = saved(tmp_path / "a.mat", X=X)
    edited(path, struct.pack("<II", 6, 8), struct.pack("<II", 6, 0))
    assert "an array without flags, dimensions or name" in complaint(read_array, f"{path}:X", ())
    content = bytearray(path.read_bytes())
    content[127:128] = b"?"  # SciPy takes it for big-endian
    path.write_bytes(content)
    assert "it is cut short or damaged" in complaint(read_array, f"{path}:X", ())
