import os

import h5py
import numpy as np
import pytest
from helpers.error_sentences import complaint

from hashbench.errors import Damaged
from hashbench.sources.array_files import read_array, read_codes, read_features, read_items, read_matrix
from hashbench.store import hdf5, inputs

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def free(monkeypatch):
    """Set how many bytes of memory are free."""
    return lambda n_bytes: monkeypatch.setattr(inputs, "free_memory", lambda: n_bytes)


OF_SPECS = [lambda path, read=read: read(str(path)) for read in (read_codes, read_matrix, read_features)]
READERS = [*OF_SPECS, hdf5.read_dataset]


# ---------------------------------------------------------------- what is no file


@pytest.mark.parametrize("read", READERS)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "a.npy")
    assert f"{tmp_path / 'a.npy'} is a pipe or a device" in complaint(read, tmp_path / "a.npy")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")  # a device without end
    assert "is a pipe or a device" in complaint(read_items, str(tmp_path / "zero.csv"))


@pytest.mark.parametrize("read", READERS)
def test_a_folder_a_dangling_link_and_a_name_too_long_are_named(tmp_path, read):
    (tmp_path / "a.npy").mkdir()
    (tmp_path / "b.npy").symlink_to(tmp_path / "none")
    (tmp_path / "c.npy").symlink_to(tmp_path / "c.npy")
    assert complaint(read, tmp_path / "a.npy").endswith("a.npy is a folder, expected a file.")
    assert f"b.npy is a link to {tmp_path / 'none'}, which does not exist." in complaint(read, tmp_path / "b.npy")
    assert "Too many levels of symbolic links" in complaint(read, tmp_path / "c.npy")
    assert "File name too long" in complaint(read, tmp_path / ("x" * 300 + ".npy"))
    assert "there is no file" in complaint(read, tmp_path / "none" / "a.npy")


@pytest.mark.parametrize("name", ["a.npy", "closed/a.npy"])
def test_what_may_not_be_read_is_named(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    np.save(path, X)
    (path if name == "a.npy" else path.parent).chmod(0)
    if os.geteuid() == 0:  # who may read anything
        denied = PermissionError(13, "Permission denied")
        method = "open" if name == "a.npy" else "stat"
        monkeypatch.setattr(type(path), method, lambda *_, **__: (_ for _ in ()).throw(denied))
    text = complaint(inputs.check_file, path)
    monkeypatch.undo()
    path.parent.chmod(0o700)
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
        layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "X", (40, 3))
        file.create_virtual_dataset("virtual", layout)
        layout = h5py.VirtualLayout((40, 3), float)
        layout[:] = h5py.VirtualSource(".", "X", (40, 3))
        file.create_virtual_dataset("inside", layout)
        file.create_dataset("pointers", data=np.array([[file["X"].ref]], dtype=h5py.ref_dtype))
    for name in ("raw", "virtual", "inside"):
        text = complaint(read_features, f"{path}:{name}")
        assert text.startswith(f"{name} of {path} keeps its values in other arrays or files")
    assert f"pointers of {path} holds references to objects" in complaint(read_features, f"{path}:pointers")
    np.testing.assert_array_equal(read_array(f"{path}:X", ()), X)


def test_a_dataset_file_with_links_to_other_files_is_damaged(tiny_file, tmp_path):
    path = tiny_file()
    with h5py.File(path, "a") as file:
        del file["features"]
        file["features"] = h5py.ExternalLink(tmp_path / "other.h5", "/X")
    with pytest.raises(Damaged, match="links 'features' to another file"):
        hdf5.read_dataset(path)


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


def group(folder, limit, used, cache=0):
    """Files of a control group of version 2."""
    return {
        f"{folder}memory.max": limit,
        f"{folder}memory.current": used,
        f"{folder}memory.stat": f"anon 1\ninactive_file {cache}\nactive_file 1",
    }


def group_of_version_1(limit):
    return {
        "memory/job/memory.limit_in_bytes": limit,
        "memory/job/memory.usage_in_bytes": 120 * MB,
        "memory/job/memory.stat": f"inactive_file 1\ntotal_inactive_file {20 * MB}",
    }


SLURM = group("slurm/job_1/step_0/", "max", 50 * MB) | group("slurm/job_1/", 300 * MB, 60 * MB)


@pytest.mark.parametrize(
    ("groups", "files", "free"),
    [
        ("0::/", {}, 1000),
        ("0::/job", group("job/", "max", 5 * MB), 1000),
        ("0::/job", group("job/", 300 * MB, 120 * MB, cache=20 * MB), 200),  # cache does not count
        ("0::/job", group("job/", 5000 * MB, 120 * MB), 1000),
        ("0::/job", group("job/", 100 * MB, 120 * MB), 0),
        ("1:name=systemd:/\n0::/slurm/job_1/step_0", SLURM | group("slurm/", 900 * MB, 100 * MB), 240),
        ("0::/outside/name", group("", 300 * MB, 100 * MB), 200),  # in a container, whose own group is the top
        ("9:cpu,cpuacct:/other\n4:memory:/job\n0::/", group_of_version_1(300 * MB), 200),
        ("9:cpu,cpuacct:/other\n4:memory:/job\n0::/", group_of_version_1(9223372036854771712), 1000),  # no limit
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


def test_a_table_larger_than_memory_is_refused_before_it_is_read(tmp_path, free):
    path = tmp_path / "a.csv"
    np.savetxt(path, X, delimiter=",")
    free(2 * path.stat().st_size)
    np.testing.assert_allclose(read_features(str(path)), X, rtol=1e-6)
    free(2 * path.stat().st_size - 1)
    assert complaint(read_features, str(path)).startswith(f"{path} takes 0.0 GB of memory, and 0.0 GB are free")


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


@pytest.mark.parametrize("read", [*OF_SPECS[:2], lambda path: read_array(str(path), ())])
def test_an_array_of_numpys_larger_than_memory_is_refused_before_it_is_read(tmp_path, free, read):
    path = tmp_path / "a.npy"
    np.save(path, X)
    free(X.nbytes)
    np.testing.assert_array_equal(read(path), X)
    free(X.nbytes - 1)
    assert complaint(read, path).startswith(f"{path} of shape (40, 3) takes 0.0 GB of memory")


@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}, {"maxshape": (None, 3)}])
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
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, ">f4"])
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
