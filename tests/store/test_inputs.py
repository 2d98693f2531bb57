import os
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
from helpers.error_sentences import complaint

from hashbench.sources.array_files import read_array, read_codes, read_features, read_matrix
from hashbench.store import hdf5, inputs

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def free(monkeypatch):
    """Set how many bytes of memory are free."""
    return lambda n_bytes: monkeypatch.setattr(inputs, "free_memory", lambda: n_bytes)


OF_SPECS = [lambda path, read=read: read(str(path)) for read in (read_codes, read_matrix, read_features)]


# ---------------------------------------------------------------- what is no file


def test_what_is_no_file_is_named_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "zero.npy").symlink_to("/dev/zero")  # a device without end
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "away.npy").symlink_to(tmp_path / "none")
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    for name, words in {
        "pipe.npy": "pipe.npy is a pipe or a device, expected a regular file",
        "zero.npy": "zero.npy is a pipe or a device, expected a regular file",
        "folder.npy": "folder.npy is a folder, expected a file.",
        "away.npy": f"away.npy is a link to {tmp_path / 'none'}, which does not exist.",
        "loop.npy": "Too many levels of symbolic links",
        "x" * 300: "File name too long",
        "none/a.npy": f"there is no file {tmp_path / 'none/a.npy'}.",
    }.items():
        for read in (*OF_SPECS, hdf5.read_dataset):
            assert words in complaint(read, tmp_path / name)


@pytest.mark.parametrize("method", ["open", "stat"])  # of a file, of its folder
def test_what_may_not_be_read_is_named(tmp_path, monkeypatch, method):
    path = tmp_path / "a.npy"
    np.save(path, X)
    with monkeypatch.context() as patch:
        patch.setattr(type(path), method, Mock(side_effect=PermissionError(13, "Permission denied")))
        text = complaint(inputs.check_file, path)
    assert text == f"cannot read {path}: Permission denied."


# ---------------------------------------------------------------- what leaves its file


def test_links_that_leave_an_hdf5_file_are_refused_and_those_inside_followed(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = X
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/X"] = X
        file["deep/again"] = file["deep"]
        file["features"] = h5py.SoftLink("/deep/X")
        file["nowhere"] = h5py.SoftLink("/none")
    np.testing.assert_array_equal(read_array(str(tmp_path / "a.h5"), ("features",)), X)
    for name in ("out", "deep/out"):
        with h5py.File(tmp_path / "a.h5", "a") as file:
            file[name] = h5py.ExternalLink(tmp_path / "other.h5", "/X")
        text = complaint(read_array, str(tmp_path / "a.h5"), ("features",))
        assert "a.h5 links 'out' to another file, and links that leave a file are not followed" in text
        with h5py.File(tmp_path / "a.h5", "a") as file:
            del file[name]


def test_values_in_other_files_and_references_are_refused(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(range(120)))
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["X"] = X
        file.create_dataset("raw", (10, 12), np.uint8, external=[(str(tmp_path / "secret"), 0, 120)])
        layout = h5py.VirtualLayout((40, 3), float)
        layout[:] = h5py.VirtualSource(".", "X", (40, 3))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("pointers", data=np.array([[file["X"].ref]], dtype=h5py.ref_dtype))
    for name in ("raw", "virtual"):
        text = complaint(read_features, f"{path}:{name}")
        assert text.startswith(f"{name} of {path} keeps its values in other arrays or files")
    assert f"pointers of {path} holds references to objects" in complaint(read_features, f"{path}:pointers")


# ---------------------------------------------------------------- what is larger than memory


def test_free_memory_is_a_sensible_number_also_without_proc(monkeypatch):
    assert 1 << 26 < inputs.free_memory() < 1 << 50

    def fail(*_, **__):
        raise OSError

    monkeypatch.setattr(inputs.Path, "read_text", fail)
    assert 1 << 26 < inputs.free_memory() < 1 << 50
    monkeypatch.setattr(inputs.os, "sysconf", fail)
    assert inputs.free_memory() == 1 << 62


MB = 1 << 20


def group(folder, limit, used, cache=0, names=("memory.max", "memory.current", "inactive_file")):
    """Files of a control group, by default of version 2."""
    return {
        f"{folder}/{names[0]}": limit,
        f"{folder}/{names[1]}": used,
        f"{folder}/memory.stat": f"anon 1\n{names[2]} {cache}\nactive_file 1",
    }


VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
SLURM = group("slurm/job_1/step_0", "max", 50 * MB) | group("slurm/job_1", 300 * MB, 60 * MB)


@pytest.mark.parametrize(
    ("groups", "files", "free"),
    [
        ("0::/job", group("job", "max", 5 * MB), 1000),
        ("0::/job", group("job", 300 * MB, 120 * MB, cache=20 * MB), 200),  # cache does not count
        ("0::/job", group("job", 100 * MB, 120 * MB), 0),
        ("1:name=systemd:/\n0::/slurm/job_1/step_0", SLURM | group("slurm", 900 * MB, 100 * MB), 240),
        ("0::/outside/name", group("", 300 * MB, 100 * MB), 200),  # in a container, whose own group is the top
        ("9:cpu:/x\n4:memory:/job\n0::/", group("memory/job", 300 * MB, 120 * MB, 20 * MB, VERSION_1), 200),
        ("4:memory:/job\n0::/", group("memory/job", 9223372036854771712, MB, 0, VERSION_1), 1000),  # no limit
    ],
)
def test_control_groups_limit_the_1000_mb_that_are_free_on_a_machine(tmp_path, groups, files, free):
    contents = {
        "proc/meminfo": f"MemTotal: 4096000 kB\nMemAvailable: {1000 << 10} kB\nHugePages_Total: 0\n",
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{path}": str(content) for path, content in files.items()},
    }
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{content}\n")
    assert inputs.free_memory(tmp_path) == free * MB


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path, free, suffix):
    path = tmp_path / f"a.{suffix}"
    np.save(path, X) if suffix == "npy" else np.savetxt(path, X, delimiter=",")
    needed = X.nbytes if suffix == "npy" else 2 * path.stat().st_size
    free(needed)
    np.testing.assert_allclose(read_array(str(path), ()), X)
    free(needed - 1)
    assert "takes 0.0 GB of memory, and 0.0 GB are free" in complaint(read_array, str(path), ())


def test_a_tiny_file_that_declares_a_huge_array_is_refused_by_its_size(tmp_path, free):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (10**7, 100), np.float32, chunks=(1000, 100), compression="gzip")
    assert "declares shape (10000000, 100), but some of its values" in complaint(read_features, str(tmp_path / "a.h5"))
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["X"][:1000] = 1
    free(1 << 30)
    text = complaint(read_features, str(tmp_path / "a.h5"))
    assert text.startswith("X of ")
    assert "of shape (10000000, 100) takes 3.7 GB of memory, and 1.0 GB are free" in text


@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}])
def test_an_array_with_unwritten_chunks_is_refused_unless_it_has_a_fill_value(tmp_path, options):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name, rows in (("whole", slice(40)), ("half", slice(20))):
            file.create_dataset(name, X.shape, X.dtype, chunks=(16, 2), **options)[rows] = X[rows]
        file.create_dataset("filled", X.shape, X.dtype, chunks=(16, 2), fillvalue=0.5, **options)[:20] = X[:20]
        file.create_dataset("grown", data=X, chunks=(16, 2), maxshape=(None, 3)).resize((30, 3))
    np.testing.assert_array_equal(read_array(f"{path}:whole", ()), X)
    np.testing.assert_array_equal(read_array(f"{path}:grown", ()), X[:30])
    np.testing.assert_array_equal(read_array(f"{path}:filled", ())[:20], X[:20])
    text = complaint(read_array, f"{path}:half", ())
    assert text.startswith(f"half of {path} declares shape (40, 3), but some of its values were never written.")


def test_a_zipped_or_matlab_bomb_is_refused_before_it_is_unpacked(tmp_path, free):
    from scipy.io import savemat
    from scipy.sparse import coo_array

    free(1 << 20)
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 200)))
    savemat(tmp_path / "a.mat", {"X": np.zeros((1000, 200))}, do_compression=True)
    savemat(tmp_path / "b.mat", {"X": coo_array(([1.0], ([0], [0])), shape=(10**6, 10**5)).tocsc()})
    for name in ("a.npz", "a.mat", "b.mat"):
        assert "GB of memory, and 0.0 GB are free" in complaint(read_features, str(tmp_path / name))


def test_a_header_that_declares_more_rows_than_the_file_holds_is_refused(tmp_path):
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)}
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(100))
    for read in OF_SPECS:
        assert f"cannot read {tmp_path / 'a.npy'} as" in complaint(read, tmp_path / "a.npy")


@pytest.mark.parametrize("suffix", ["npy", "h5", "mat"])
@pytest.mark.parametrize("dtype", [np.float64, ">f4"])
def test_features_are_the_same_read_in_blocks(tmp_path, monkeypatch, suffix, dtype):
    from hashbench.sources import formats

    monkeypatch.setattr(formats, "_BLOCK_BYTES", 64)
    values, path = (100 * X).astype(dtype), tmp_path / f"a.{suffix}"
    if suffix == "npy":
        np.save(path, np.asfortranarray(values))
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=values.T if suffix == "mat" else values, chunks=(2, 2))
    features = read_features(str(path))
    assert features.flags.c_contiguous
    np.testing.assert_array_equal(features, values.astype(np.float32))
