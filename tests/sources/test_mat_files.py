"""MATLAB 5 files."""

import numpy as np
import pytest
from helpers.error_sentences import complaint
from scipy.io import savemat

from hashbench.sources.array_files import read_array
from hashbench.store import inputs

X = np.random.default_rng(0).normal(size=(7, 3))


def saved(path, is_zipped=False, **arrays):
    savemat(path, arrays, do_compression=is_zipped)
    return path


@pytest.mark.parametrize("is_zipped", [False, True])
def test_only_the_variable_that_is_asked_for_is_unpacked_and_checked(tmp_path, monkeypatch, is_zipped):
    path = saved(tmp_path / "a.mat", is_zipped, large=np.zeros((1000, 100)), X=X, y=np.arange(7))
    monkeypatch.setattr(inputs, "free_memory", lambda: 1 << 15)
    np.testing.assert_array_equal(read_array(f"{path}:X", ()), X)
    text = complaint(read_array, f"{path}:large", ())
    assert text.startswith(f"large of {path}, of shape (1000, 100), takes 0.0 GB of memory")


def test_cells_of_words_are_read_also_empty_ones(tmp_path):
    names = np.array(["cat", "", "süß"], dtype=object)
    for is_zipped in (False, True):
        path = saved(tmp_path / "a.mat", is_zipped, names=names, empty=np.zeros((0, 3)))
        assert read_array(f"{path}:names", ()).tolist() == [["cat", "", "süß"]]
        assert read_array(f"{path}:empty", ()).shape == (0, 3)


def test_cells_of_structs_are_no_array_of_numbers_or_words(tmp_path):
    path = saved(tmp_path / "a.mat", cells=np.array([{"a": 1}], dtype=object), X=X)
    assert complaint(read_array, f"{path}:cells", ())
    np.testing.assert_array_equal(read_array(f"{path}:X", ()), X)


@pytest.mark.parametrize("n_bytes", [0, 100, 130, 200])
def test_a_file_that_is_cut_short_is_refused(tmp_path, n_bytes):
    path = saved(tmp_path / "a.mat", X=X)
    path.write_bytes(path.read_bytes()[:n_bytes])
    assert complaint(read_array, f"{path}:X", ())
