"""How arrays are found and read in .npy, .npz, .mat and HDF5: names first, then what is asked for, if it fits."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile
from zlib import decompressobj

import numpy as np

from hashbench._typing import AnyArray
from hashbench._validation import is_sparse
from hashbench.errors import HashbenchError
from hashbench.store.inputs import check_fits, check_stored, open_hdf5

FEATURE_KEYS = ("features", "X", "data", "x", "gist", "fea", "embeddings")
LABEL_KEYS = ("labels", "y", "Y", "label", "class", "target", "L", "gnd")
_BLOCK_BYTES = 16 << 20
_MAT_ARRAY, _MAT_ZIPPED = 14, 15
_MAT_NUMBERS = {*range(1, 8), 9, 12, 13}
_MAT_KINDS = {*_MAT_NUMBERS, _MAT_ARRAY, _MAT_ZIPPED, 16, 17, 18}
_MAT_FLAGS, _MAT_SPARSE, _MAT_COMPLEX = 6, 5, 0x800


class Lazy(Mapping[str, Any]):
    """Arrays by name, each read when it is asked for."""

    def __init__(self, names: Iterable[str], read: Callable[[str], Any]) -> None:
        self._names, self._read = dict.fromkeys(names), read

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class OnDisk:
    """An array of an HDF5 file, read by rows; MATLAB keeps its axes the other way round."""

    def __init__(self, stored: Any, *, is_turned: bool = False) -> None:
        step = -1 if is_turned else 1
        self.shape, self.dtype, self.ndim, self.size = stored.shape[::step], stored.dtype, stored.ndim, stored.size
        self.chunks = stored.chunks and stored.chunks[::step]
        self._stored, self._is_turned = stored, is_turned

    def __getitem__(self, rows: slice) -> AnyArray:
        return np.asarray(self._stored[..., rows].T if self._is_turned else self._stored[rows])


def shown(name: str) -> str:
    """Give a name from a file as it may stand in a sentence."""
    return name if name.isprintable() else repr(name)


def in_memory(stored: Any) -> AnyArray:
    """Read an array that `opened_npy` and its like found."""
    return stored if type(stored) is np.ndarray else np.array(stored[slice(None) if stored.ndim else ()])


def row_blocks(stored: Any) -> Iterator[slice]:
    """Cut the rows of an array into blocks of few bytes, whole chunks of an HDF5 file at a time."""
    n_rows = max(1, _BLOCK_BYTES // max(1, prod(stored.shape[1:]) * stored.dtype.itemsize))
    n_together = (getattr(stored, "chunks", None) or (1,))[0]
    n_rows = -(-n_rows // n_together) * n_together
    return (slice(start, min(start + n_rows, stored.shape[0])) for start in range(0, stored.shape[0], n_rows))


@contextmanager
def opened_npy(path: Path) -> Iterator[Mapping[str, Any]]:
    """Find the array of an .npy file, called ``features``; it stays on disk."""
    yield {"features": np.lib.format.open_memmap(path, mode="r")}


@contextmanager
def opened_npz(path: Path) -> Iterator[Mapping[str, Any]]:
    """Find the arrays of an .npz file."""
    with path.open("rb") as file, ZipFile(file) as members, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
        sizes = {info.filename: info.file_size for info in members.infolist() if info.filename.endswith(".npy")}

        def read(name: str) -> Any:
            check_fits(sizes[f"{name}.npy"], f"{shown(name)} of {path}")
            return archive[f"{name}.npy"]

        yield Lazy((name.removesuffix(".npy") for name in sizes), read)


@contextmanager
def opened_hdf5(path: Path, *, is_turned: bool = False) -> Iterator[Mapping[str, Any]]:
    """Find the arrays at the top of an HDF5 file; they stay on disk."""
    import h5py

    with open_hdf5(path) as file:
        found = {name: file.get(name) for name in file}

        def read(name: str) -> OnDisk:
            check_stored(found[name], f"{shown(name)} of {path}")
            return OnDisk(found[name], is_turned=is_turned)

        yield Lazy((name for name, value in found.items() if isinstance(value, h5py.Dataset) and value.ndim), read)


@contextmanager
def opened_mat(path: Path) -> Iterator[Mapping[str, Any]]:
    """Find the arrays of a MATLAB file; version 7.3 is HDF5 with the axes the other way round."""
    import h5py
    from scipy.io import loadmat, whosmat

    if h5py.is_hdf5(path):
        with opened_hdf5(path, is_turned=True) as arrays:
            yield arrays
        return
    _check_mat(path)
    kinds = {name: kind for name, _, kind in whosmat(path)}
    shapes = {name: shape for name, shape, _ in whosmat(path)}

    def read(name: str) -> AnyArray:
        if kinds[name] in ("struct", "object", "function", "opaque", "unknown"):
            raise HashbenchError(f"{shown(name)} of {path} is a {kinds[name]}, expected an array.")
        check_fits(8 * prod(shapes[name]), f"{shown(name)} of {path}, of shape {tuple(shapes[name])},")
        value = loadmat(path, variable_names=name)[name]
        if is_sparse(value):
            value.check_format(full_check=True)  # compiled code trusts its indices
            value = value.toarray()
        if not isinstance(value, np.ndarray):
            raise HashbenchError(f"{shown(name)} of {path} is no array.")
        return value

    yield Lazy(shapes, read)


def _check_mat(path: Path) -> None:
    """Refuse a file of MATLAB 5 whose elements do not fit into each other: SciPy trusts their types and sizes."""
    with path.open("rb") as file:
        mark = file.read(128)[126:]
        if mark in (b"IM", b"MI"):  # not version 4
            content = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
            _check_elements(content[128:], "little" if mark == b"IM" else "big", path)


def _check_elements(data: memoryview, order: Literal["little", "big"], path: Path) -> None:
    at, found = 0, []
    while at < len(data):
        kind, size, start = (*(int.from_bytes(data[at + i : at + i + 4], order) for i in (0, 4)), at + 8)
        if kind >> 16:  # up to 4 bytes stand where their number would
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        inner = data[start : start + size]
        if kind not in _MAT_KINDS or len(inner) < size or (start == at + 4 and size > 4):
            raise ValueError(f"it is cut short or damaged: an element of kind {kind} and {size:,} bytes")
        if kind == _MAT_ZIPPED:
            unzip = decompressobj()
            head = unzip.decompress(inner, 8)
            check_fits(n_bytes := int.from_bytes(head[4:], order), str(path))
            inner = memoryview(head + unzip.decompress(unzip.unconsumed_tail, max(n_bytes, 1)))
        if kind in (_MAT_ARRAY, _MAT_ZIPPED):
            _check_elements(inner, order, path)
        found.append((kind, inner))
        at = start + size + (0 if kind == _MAT_ZIPPED else -(start + size - at) % 8)
    if found and found[0][0] == _MAT_FLAGS:  # of an array: flags, dimensions, name, and its parts
        flags = int.from_bytes(found[0][1][:4], order)
        n_parts = {_MAT_SPARSE: 3, **dict.fromkeys(range(6, 16), 1)}.get(flags & 0xFF)
        kinds = {kind for kind, _ in found[3:]}
        if n_parts and (len(found) != 3 + n_parts + bool(flags & _MAT_COMPLEX) or not kinds <= _MAT_NUMBERS):
            raise ValueError(f"it is damaged: an array of class {flags & 0xFF} in {len(found)} parts")


def load_sparse(path: Path) -> Any:
    """Read a sparse matrix as `scipy.sparse.save_npz` writes it; its indices may be wrong still."""
    from scipy.sparse import load_npz

    with opened_npz(path) as arrays:
        for name in ("data", "indices", "indptr", "row", "col", "shape"):
            found = arrays.get(name)
            if name == "shape" and found is not None:
                check_fits(8 * int(max(found, default=0)), f"{path}, a sparse matrix of shape {tuple(found)},")
    with path.open("rb") as file:
        return load_npz(file)
