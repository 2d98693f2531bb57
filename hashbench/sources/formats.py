"""Arrays in .npy, .npz, .mat, .pt, .safetensors, HDF5 and vector files: listed by name, then read if they fit."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from warnings import catch_warnings
from zipfile import ZipFile

import numpy as np

from hashbench._typing import AnyArray
from hashbench._validation import as_array, checked_sparse
from hashbench.errors import HashbenchError, how_to_install
from hashbench.sources._torch import import_library, import_torch
from hashbench.store.inputs import check_fits, check_stored, open_hdf5

SCORE_KEYS = ("scores", "similarity", "similarities")
FEATURE_KEYS = ("features", "X", "data", "x", "gist", "fea", "embeddings")
ROW_KEYS = ("train_index", "row", "rows", "train")
LABEL_KEYS = ("labels", "y", "Y", "label", "class", "target", "L", "gnd")
COARSE_KEYS = ("coarse", "coarse_labels", "superclass", *LABEL_KEYS)
GROUP_KEYS = ("groups", "group")
ID_KEYS = ("ids", "id")
CODE_KEYS = ("codes", "code", "hashes", "hash", "B")
MATRIX_KEYS = ("affinity", "levels", "S")
_IDENTIFIER = re.compile(r"(?i:(.*[\W_])?[gu]?u?ids?|idx|index|key|pk|rowid|unnamed: 0)|.*[a-z]I[Dd]s?")
VECTOR_SUFFIXES = {  # of faiss, each row after its length; of big-ann, after the shape of all
    **{".fvecs": "<f4", ".ivecs": "<i4", ".bvecs": "u1"},
    **{".fbin": "<f4", ".ibin": "<i4", ".u8bin": "u1", ".i8bin": "i1"},
}
_BLOCK_BYTES = 16 << 20
_NPY_HEAD = 1 << 12  # bytes that hold the dtype
_SAFE_DTYPES = {
    **{"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8"},
    **{"I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"},
}
_NUMBERS = {bool, int, float}


class Lazy(Mapping[str, Any]):
    """Arrays by name, each read when accessed."""

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
    """An array called ``name`` in messages, of which ``read`` reads some rows."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: Any,
        read: Callable[[Any], Any],
        chunks: tuple[int, ...] | None = None,
    ) -> None:
        self.name, self.shape, self.dtype, self.chunks, self._read = name, shape, np.dtype(dtype), chunks, read
        self.ndim, self.size = len(shape), prod(shape)

    def __getitem__(self, rows: Any) -> AnyArray:
        return np.asarray(self._read(rows))


class SparseRows(OnDisk):
    """A sparse matrix, of which some rows are read densely."""

    def __init__(self, path: Path, matrix: Any) -> None:
        self.matrix = checked_sparse(matrix, str(path))
        rows = self.matrix.tocsr()
        super().__init__(f"{path}, a sparse matrix", rows.shape, rows.dtype, lambda part: rows[part].toarray())


def shown(name: str) -> str:
    """Quote a name from a file if it cannot be printed as it is."""
    return name if name.isprintable() else repr(name)


def is_identifier(name: str) -> bool:
    """Return whether an array or column is named like an identifier of items, such as ``image_id`` or ``index``.

    >>> [is_identifier(name) for name in ("id", "imageId", "Unnamed: 0", "valid", "glycemic_index")]
    [True, True, True, False, False]
    """
    return _IDENTIFIER.fullmatch(name) is not None


def in_memory(stored: Any) -> AnyArray:
    """Read an array on disk into memory, if it fits."""
    if type(stored) is np.ndarray:
        return stored
    name = getattr(stored, "filename", None) or stored.name
    check_fits(stored.size * stored.dtype.itemsize, f"{name} of shape {stored.shape}")
    return np.array(stored[slice(None) if stored.ndim else ()])


def row_blocks(stored: Any) -> Iterator[slice]:
    """Cut the rows of an array into small blocks of whole HDF5 chunks."""
    n_rows = max(1, _BLOCK_BYTES // max(1, prod(stored.shape[1:]) * stored.dtype.itemsize))
    n_together = (getattr(stored, "chunks", None) or (1,))[0]
    n_rows = -(-n_rows // n_together) * n_together
    return (slice(start, min(start + n_rows, stored.shape[0])) for start in range(0, stored.shape[0], n_rows))


@contextmanager
def opened_npy(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the array of an .npy file, called ``features``; it stays on disk."""
    with path.open("rb") as file:
        _refuse_objects(file.read(_NPY_HEAD))
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError("it is cut short, or numpy.save did not write it") from error
    yield {"features": array}


@contextmanager
def opened_npz(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of an .npz file; a sparse matrix of SciPy is one array, called ``features``."""
    with path.open("rb") as file, ZipFile(file) as members, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
        sizes = {info.filename: info.file_size for info in members.infolist() if info.filename.endswith(".npy")}

        def read(name: str) -> Any:
            check_fits(sizes[f"{name}.npy"], f"{shown(name)} of {path}")
            with members.open(f"{name}.npy") as member:
                _refuse_objects(member.read(_NPY_HEAD))
            return archive[f"{name}.npy"]

        arrays = Lazy((name.removesuffix(".npy") for name in sizes), read)
        form = arrays["format"] if {"format", "shape", "data"} <= set(arrays) else np.empty(0)
        is_sparse = form.ndim == 0 and form.dtype.kind in "SU"
        yield {"features": _load_sparse(path, arrays, sum(sizes.values()))} if is_sparse else arrays


def _refuse_objects(head: bytes) -> None:
    """Refuse Python objects by the first bytes of an .npy file."""
    if b"'|O'" in head:
        raise ValueError(
            "it holds Python objects, and opening them could run code. Save numbers or strings: labels.astype(str)"
        )


def _load_sparse(path: Path, arrays: Mapping[str, Any], n_bytes: int) -> SparseRows:
    from scipy.sparse import load_npz

    shape = arrays["shape"]
    check_fits(n_bytes + 8 * int(max(shape, default=0)), f"{path}, a sparse matrix of shape {tuple(shape)},")
    with path.open("rb") as file:
        return SparseRows(path, load_npz(file))


@contextmanager
def opened_vectors(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the array of a file of faiss or big-ann, called ``features``; it stays on disk."""
    suffix, n_bytes = path.suffix.lower(), path.stat().st_size
    dtype = np.dtype(VECTOR_SUFFIXES[suffix])
    if suffix.endswith("bin"):  # of big-ann
        shape = tuple(np.fromfile(path, "<u4", 2).tolist())
        size = prod(shape) if len(shape) == 2 else 0
        expected = 8 + dtype.itemsize * size
        # distances may follow the neighbours
        if not size or not (n_bytes == expected or (suffix == ".ibin" and n_bytes == expected + 4 * size)):
            raise ValueError(f"it declares shape {shape} and has {n_bytes:,} bytes: cut short, or not big-ann's layout")
        yield {"features": np.memmap(path, dtype, "r", 8, shape)}
        return
    width = int(np.fromfile(path, "<i4", 1).sum())  # 0 of an empty file
    n_rows, n_left = divmod(n_bytes, 4 + dtype.itemsize * max(width, 1))
    if width < 1 or n_left:
        raise ValueError(
            f"it begins with a row of {width:,} numbers, and {n_bytes:,} bytes are not a whole number of such rows: "
            "cut short, or not faiss's layout"
        )
    stored = np.memmap(path, [("width", "<i4"), ("row", dtype, (width,))], "r", 0, (n_rows,))

    def read(rows: Any) -> AnyArray:
        part = stored[rows]
        if (part["width"] != width).any():
            raise ValueError(f"its rows do not all declare {width:,} numbers: damaged, or not faiss's layout")
        return np.asarray(part["row"])

    yield {"features": OnDisk(str(path), (n_rows, width), dtype, read)}


@contextmanager
def opened_safetensors(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of a .safetensors file; they stay on disk."""
    advice = f"reading {path} needs safetensors: {how_to_install('safetensors')}."
    with import_library("safetensors", advice).safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # it is no dict

        def read(name: str) -> OnDisk:
            stored, what = arrays[name], f"{shown(name)} of {path}"
            dtype = _SAFE_DTYPES.get(stored.get_dtype())
            if dtype is None:
                raise HashbenchError(f"{what} is {stored.get_dtype()}, which NumPy does not have. Save it as float32.")
            return OnDisk(what, tuple(stored.get_shape()), dtype, stored.__getitem__)

        yield Lazy((name for name, stored in arrays.items() if stored.get_shape()), read)


@contextmanager
def opened_hdf5(path: Path, *, is_turned: bool = False, in_slices: bool = False) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of an HDF5 file, in groups as ``group/name``; they stay on disk."""
    with open_hdf5(path) as file:
        datasets = dict(_hdf5_arrays(file, set()))

        def read(name: str) -> Any:
            stored, what = datasets[name], f"{shown(name)} of {path}"
            if not hasattr(stored, "dtype"):
                raise HashbenchError(
                    f"{what} is a link to {stored.path!r}, which leads to no array. Write the array, or name another."
                )
            kind = stored.attrs.get("MATLAB_class")  # written by save -v7.3, for any file name
            if kind in (b"cell", b"char") or stored.attrs.get("MATLAB_empty"):
                is_text = kind in (b"cell", b"char")
                raise HashbenchError(
                    f"{what} is {'text or a cell array' if is_text else 'an empty array'} of MATLAB 7.3, expected "
                    f"numbers.{' Save it without -v7.3.' * is_text}"
                )
            check_stored(stored, what, in_slices=in_slices)
            if is_turned or kind is not None:  # MATLAB stores axes in reverse
                chunks = stored.chunks and stored.chunks[::-1]
                return OnDisk(what, stored.shape[::-1], stored.dtype, lambda rows: stored[..., rows].T, chunks)
            return OnDisk(what, stored.shape, stored.dtype, stored.__getitem__, stored.chunks)

        yield Lazy(datasets, read)


def _hdf5_arrays(group: Any, seen: set[int], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """List the arrays of a group and its subgroups, each once, and links to nothing, without MATLAB's hidden groups."""
    import h5py

    for name in group:
        value = group.get(name)
        if isinstance(value, h5py.Dataset) and value.ndim:
            yield prefix + name, value
        elif value is None:
            yield prefix + name, group.get(name, getlink=True)
        elif isinstance(value, h5py.Group) and not name.startswith("#"):
            address = h5py.h5o.get_info(value.id).addr
            if address not in seen:
                seen.add(address)
                yield from _hdf5_arrays(value, seen, f"{prefix}{name}/")


@contextmanager
def opened_mat(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of a MATLAB file; version 7.3 is HDF5 with transposed axes."""
    import h5py
    from scipy.io import loadmat, whosmat

    if h5py.is_hdf5(path):
        with opened_hdf5(path, is_turned=True) as arrays:
            yield arrays
        return
    variables = {name: (shape, kind) for name, shape, kind in whosmat(path)}

    def read(name: str) -> AnyArray:
        (shape, kind), what = variables[name], f"{shown(name)} of {path}"
        if kind in ("struct", "object", "function", "opaque", "unknown"):
            raise HashbenchError(f"{what} is a {kind}, expected an array.")
        check_fits(8 * prod(shape), f"{what}, of shape {tuple(shape)},")
        value = loadmat(path, variable_names=name)[name]
        return _of_cells(value, what) if kind == "cell" else as_array(value, what)

    yield Lazy(variables, read)


def _of_cells(cells: AnyArray, what: str) -> AnyArray:
    """Read a cell array of MATLAB with one text, or one number, in each cell; an empty text has no value."""
    values: list[Any] = [
        "" if cell.dtype.kind == "U" and not cell.size else cell.item() if cell.size == 1 else cell
        for cell in map(np.asarray, cells.flat)
    ]
    if not values or not (all(isinstance(value, str) for value in values) or not set(map(type, values)) - _NUMBERS):
        raise HashbenchError(
            f"{what} is a cell array, expected one string in each cell, or one number in each. Save it as such."
        )
    return np.array(values).reshape(cells.shape)


@contextmanager
def opened_torch(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the tensors of a PyTorch file: a single one, called ``features``, or those of nested dicts."""
    torch = import_torch()
    check_fits(path.stat().st_size, str(path))
    try:
        with catch_warnings(action="ignore"), torch.sparse.check_sparse_tensor_invariants():
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # PyTorch's own errors advise to run whatever a file holds
        raise HashbenchError(
            f"{path} is damaged, or holds more than tensors, lists and dicts, such as a model or NumPy arrays, which "
            "could run code and are not read. Save tensors: torch.save({'codes': codes}, FILE)."
        ) from error
    values = dict(_torch_arrays({"features": content}, set()))
    values = {name.removeprefix("features/"): value for name, value in values.items()}
    yield Lazy(values, lambda name: _of_torch(values[name], f"{shown(name)} of {path}"))


def _torch_arrays(group: Mapping[Any, Any], seen: set[int], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """List the tensors, and lists of words or numbers, of nested dicts and lists, each once."""
    for key, value in group.items():
        is_list = isinstance(value, list | tuple)
        if isinstance(value, dict) or (is_list and any(hasattr(item, "ndim") for item in value)):
            if id(value) not in seen:
                seen.add(id(value))
                content = value if isinstance(value, dict) else dict(enumerate(value))
                yield from _torch_arrays(content, seen, f"{prefix}{key}/")
        elif getattr(value, "ndim", 0) or (is_list and value):
            yield f"{prefix}{key}", value


def _of_torch(value: Any, what: str) -> AnyArray:
    """Read a tensor of any dtype, sparse too, or a list."""
    if not isinstance(value, list | tuple):
        check_fits(value.numel() * value.element_size(), f"{what} of shape {tuple(value.shape)}")  # a view may repeat
        value = value.detach().to_dense() if "sparse" in str(value.layout) else value
    array = as_array(value, what)
    if array.dtype.kind == "O" or (array.dtype.kind == "U" and not all(isinstance(cell, str) for cell in value)):
        raise HashbenchError(f"{what} is a list that mixes types, expected numbers or strings. Save a tensor.")
    return array
