import h5py
import numpy as np
import pytest
from scipy.io import savemat
from scipy.spatial.distance import cdist, pdist

from hashbench import testing
from hashbench.adapter import Options
from hashbench.datasets.labelme import LabelMe
from hashbench.errors import HashbenchError

GIST = np.random.default_rng(0).random((300, 6)).astype(np.float32)


class Small(LabelMe):
    shape = GIST.shape
    n_queries, n_train = 40, 100


def write_v5(path, **variables):
    others = {"img": np.zeros((2, 2, 3, 300), np.uint8), "DistLM": np.eye(300), "names": np.array(["a", "bc"], object)}
    savemat(path, others | variables)


def write_v73(path, **variables):
    """MATLAB's HDF5: axes the other way round, a block of its own before, cells behind references."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            file[name] = value.T
            file[name].attrs["MATLAB_class"] = np.bytes_("single")
        file["#refs#/a"] = np.arange(3, dtype=np.uint16)
        file.create_dataset("names", data=np.array([[file["#refs#/a"].ref]], dtype=h5py.ref_dtype))
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "LabelMe_gist.mat"
    write_v5(path, gist=GIST)
    return path


def prepared(source):
    return Small(Options(source=source)).prepare()


def test_roles_have_their_numbers_and_no_item_is_left_out(source):
    dataset = prepared(source)
    np.testing.assert_array_equal(dataset.features, GIST)
    assert (len(dataset.query), len(dataset.database), len(dataset.train)) == (40, 260, 100)
    np.testing.assert_array_equal(np.union1d(dataset.query, dataset.database), np.arange(300))
    assert set(dataset.train) <= set(dataset.database)


def test_levels_follow_percentiles_of_the_distances_between_training_items(source):
    dataset = prepared(source)
    near = np.percentile(pdist(GIST[dataset.train].astype(np.float64)), [5, 1, 0.2, 0.1], method="inverted_cdf")
    distances = cdist(GIST[dataset.query].astype(np.float64), GIST[dataset.database].astype(np.float64))
    expected = np.select([distances <= threshold for threshold in near[::-1]], [10, 5, 2, 1], 0)
    levels = dataset.affinity().block(slice(0, 40), slice(0, 260))
    np.testing.assert_array_equal(levels, expected)
    assert {1, 2} <= set(levels.ravel())


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_v73(path, gist=GIST, DistLM=np.eye(300)),
        lambda path: write_v5(path, gist=GIST.astype(np.float64)),
    ],
    ids=["7.3", "double precision"],
)
def test_other_forms_of_the_file_give_the_same(source, tmp_path, write):
    write(tmp_path / "other.mat")
    assert prepared(tmp_path / "other.mat").fingerprint == prepared(source).fingerprint


def test_folder_and_file_under_another_name_are_found(source, tmp_path):
    expected = prepared(tmp_path).fingerprint
    assert prepared(source.rename(tmp_path / "features.mat")).fingerprint == expected


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: write_v5(path, gist=GIST[1:]), r"shape \(299, 6\), that of LabelMe has \(300, 6\)"),
        (lambda path: write_v5(path, gist=GIST.T), r"gist of .* has shape \(6, 300\)"),
        (lambda path: write_v5(path, features=GIST), "unknown array '.*:gist'.* Known arrays: .*features"),
        (lambda path: write_v5(path, gist=np.where(GIST[7, 3] == GIST, np.nan, GIST)), "first nan in row 7"),
        (lambda path: write_v73(path, gist=GIST.T), r"gist of .* has shape \(6, 300\)"),
        (lambda path: path.write_bytes(b"MATLAB 5.0 MAT-file and then nothing"), "cannot read .* as .mat"),
        (lambda path: path.write_bytes(b""), "cannot read .* as .mat"),
    ],
)
def test_wrong_files_are_refused(tmp_path, write, words):
    path = tmp_path / "LabelMe_gist.mat"
    write(path)
    with pytest.raises(HashbenchError, match=words):
        prepared(path)


@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_adapter_keeps_the_contract(source, check):
    check(Small(Options(source=source)))
