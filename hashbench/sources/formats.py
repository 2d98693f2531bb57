"""Arrays in .npy, .npz, .mat, .pt, .safetensors, HDF5 and vector files: listed by name, then read if they fit."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from warnings import catch_warnings
from zipfile import ZipFile, is_zipfile

import numpy as np

from hashbench._typing import AnyArray
from hashbench._validation import as_array, checked_sparse, is_sparse
from hashbench.errors import HashbenchError
from hashbench.sources._torch import import_library, import_torch
from hashbench.store.inputs import check_fits, check_stored, open_hdf5

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

_MOST_NESTED = 8  # cell arrays in one another
_NUMBER_AS_TEXT = 32  # characters that NumPy gives a number among texts
_IN_LISTS = {bool, int, float, complex, str, bytes, type(None)}


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
        _check_npy(file.read(_NPY_HEAD))
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError("it is cut short or damaged") from error
    yield {"features": array}


def _check_npy(head: bytes) -> None:
    """Refuse what `numpy.save` did not write, or wrote of Python objects, by its first bytes."""
    if not head.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError("numpy.save did not write it" if head else "it is empty")
    if b"'|O'" in head:
        raise ValueError(
            "it holds Python objects, and opening them could run code. Save numbers or strings: labels.astype(str)"
        )


@contextmanager
def opened_vectors(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the array of a file of faiss or big-ann, called ``features``; it stays on disk."""
    suffix, n_bytes = path.suffix.lower(), path.stat().st_size
    dtype = np.dtype(VECTOR_SUFFIXES[suffix])
    is_big_ann = suffix.endswith("bin")
    head = np.fromfile(path, "<u4" if is_big_ann else "<i4", 2 if is_big_ann else 1).tolist()
    if is_big_ann:
        expected = 8 + dtype.itemsize * prod(head)
        has_distances = suffix == ".ibin" and n_bytes == expected + 4 * prod(head)  # after the neighbours
        if len(head) < 2 or not prod(head) or not (has_distances or n_bytes == expected):
            declared = f"{head[0]:,} rows of {head[1]:,} numbers, {expected:,} bytes," if len(head) == 2 else "no shape"
            raise HashbenchError(
                f"{path} declares {declared} and has {n_bytes:,} bytes. It is cut short, or not in the layout of "
                "big-ann."
            )
        yield {"features": np.memmap(path, dtype, "r", 8, tuple(head))}
        return
    width = head[0] if head else 0
    n_rows, n_left = divmod(n_bytes, 4 + dtype.itemsize * max(width, 1))
    if width < 1 or n_left:
        raise HashbenchError(
            f"{path} begins with a row of {width:,} numbers, and its {n_bytes:,} bytes are not a whole number of such "
            "rows. It is cut short, or not in the layout of faiss."
        )
    stored = np.memmap(path, [("width", "<i4"), ("row", dtype, (width,))], "r", 0, (n_rows,))

    def read(rows: Any) -> AnyArray:
        part = stored[rows]
        bad = np.flatnonzero(part["width"] != width)
        if bad.size:
            row, other = bad[0] + range(n_rows)[rows][0], part["width"][bad[0]]
            raise HashbenchError(
                f"row {row:,} of {path} (the first is 0) declares {other:,} numbers, and row 0 {width:,}. It is "
                "damaged, or not in the layout of faiss."
            )
        return np.asarray(part["row"])

    yield {"features": OnDisk(str(path), (n_rows, width), dtype, read)}


@contextmanager
def opened_safetensors(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of a .safetensors file; they stay on disk."""
    advice = f"reading {path} needs safetensors: pip install safetensors."
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
def opened_npz(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of an .npz file; a sparse matrix of SciPy is one array, called ``features``."""
    with path.open("rb") as file, ZipFile(file) as members, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
        sizes = {info.filename: info.file_size for info in members.infolist() if info.filename.endswith(".npy")}

        def read(name: str) -> Any:
            check_fits(sizes[f"{name}.npy"], f"{shown(name)} of {path}")
            with members.open(f"{name}.npy") as member:
                _check_npy(member.read(_NPY_HEAD))
            return archive[f"{name}.npy"]

        arrays = Lazy((name.removesuffix(".npy") for name in sizes), read)
        form = arrays["format"] if {"format", "shape", "data"} <= set(arrays) else np.empty(0)
        is_sparse = form.ndim == 0 and form.dtype.kind in "SU"
        yield {"features": SparseRows(path, _load_sparse(path, arrays))} if is_sparse else arrays


@contextmanager
def opened_hdf5(path: Path, *, is_turned: bool = False, in_slices: bool = False) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of an HDF5 file, in groups as ``group/name``; they stay on disk."""
    import h5py

    with open_hdf5(path) as file:
        datasets = dict(_hdf5_arrays(file, set()))

        def read(name: str) -> Any:
            stored, what = datasets[name], f"{shown(name)} of {path}"
            if isinstance(stored, h5py.SoftLink):
                raise HashbenchError(
                    f"{what} is a link to {stored.path!r}, which leads to no array. Write the array, or name another."
                )
            kind = stored.attrs.get("MATLAB_class")  # written by save -v7.3, for any file name
            if stored.attrs.get("MATLAB_empty"):
                raise HashbenchError(f"{what} is an empty MATLAB array, expected one with values.")
            if kind == b"cell":
                return _of_cells(_hdf5_cells(stored, what), what)
            check_stored(stored, what, in_slices=in_slices)
            if kind == b"char":
                return _hdf5_text(stored)
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


def _hdf5_text(stored: Any) -> AnyArray:
    """Read a MATLAB char array, whose columns in HDF5 are its rows, as one text per row."""
    columns = stored[()].reshape(len(stored), -1).T
    return np.array([column.astype("<u2").tobytes().decode("utf-16-le") for column in columns])


def _hdf5_cells(stored: Any, what: str, depth: int = 0) -> AnyArray:
    """Read what the references of a MATLAB cell array point to, other arrays of the same file."""
    import h5py

    if not h5py.check_ref_dtype(stored.dtype):
        raise ValueError("it is damaged: a cell array without references")
    check_fits(stored.nbytes, what)
    cells = np.empty(stored.shape[::-1], dtype=object)
    n_bytes, n_measured = 0, _BLOCK_BYTES
    for place, reference in np.ndenumerate(stored[()].T):
        cell = stored.file[reference]
        kind = cell.attrs.get("MATLAB_class")
        if not isinstance(cell, h5py.Dataset):
            raise _bad_cell(what, place, "a struct or an object")
        if kind == b"cell" and cells.size == 1 and depth < _MOST_NESTED:
            cells[place] = _hdf5_cells(cell, what, depth + 1)
            continue
        check_stored(cell, what)
        if cell.attrs.get("MATLAB_empty"):  # its values are its shape
            cells[place] = np.empty(0, dtype=np.str_ if kind == b"char" else np.float64)
            continue
        if (prod(cell.shape[1:]) if kind == b"char" else cell.size) != 1:
            raise _bad_cell(what, place, f"{kind.decode() if kind else cell.dtype} of shape {cell.shape[::-1]}")
        n_bytes += 2 * cell.nbytes  # a letter takes 2 bytes in the file, 4 in memory
        if n_bytes > n_measured:
            check_fits(n_bytes, what)  # as much again may be read before the next look
            n_measured = 2 * n_bytes
        cells[place] = _hdf5_text(cell) if kind == b"char" else cell[()].T
    return cells


def _of_cells(cells: AnyArray, what: str) -> AnyArray:
    """Read a MATLAB cell array with one text, or one number, in each cell; it may be the only cell of another."""
    while cells.size == 1 and isinstance(inner := cells.item(), np.ndarray) and inner.dtype.kind == "O":
        cells = inner
    values = np.empty(cells.shape, dtype=object)
    for place, cell in np.ndenumerate(cells):
        array = np.asarray(cell)
        is_empty_text = array.dtype.kind == "U" and not array.size
        if array.dtype.kind not in "biufU" or (array.size != 1 and not is_empty_text):
            raise _bad_cell(what, place, f"{array.dtype} of shape {array.shape}")
        values[place] = "" if is_empty_text else array.item()
    if len({isinstance(value, str) for value in values.flat}) != 1:
        raise HashbenchError(
            f"{what} is a cell array that is empty or mixes strings and numbers, expected one of these in each cell."
        )
    check_fits(_n_bytes_of(values.flat, values.size), what)
    return np.array(values.tolist())


def _bad_cell(what: str, place: tuple[int, ...], content: str) -> HashbenchError:
    return HashbenchError(
        f"{what} is a cell array, and its cell at row {place[0]} (the first is 0) holds {content}, expected one "
        "string, or one number, in each."
    )


def _n_bytes_of(values: Iterable[Any], n_values: int) -> int:
    """Return the size in bytes of an array of ``n_values`` such values; each text takes as much as the longest."""
    longest = max((len(value) for value in values if isinstance(value, str | bytes)), default=0)
    return n_values * (4 * max(longest, _NUMBER_AS_TEXT) if longest else 16)


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
        shape, kind = variables[name]
        if kind in ("struct", "object", "function", "opaque", "unknown"):
            raise HashbenchError(f"{shown(name)} of {path} is a {kind}, expected an array.")
        check_fits(8 * prod(shape), f"{shown(name)} of {path}, of shape {tuple(shape)},")
        value = loadmat(path, variable_names=name)[name]
        if is_sparse(value):
            value.check_format(full_check=True)  # compiled code trusts its indices
            value = value.toarray()
        if not isinstance(value, np.ndarray):
            raise HashbenchError(f"{shown(name)} of {path} is not an array.")
        return _of_cells(value, f"{shown(name)} of {path}") if kind == "cell" else value

    yield Lazy(variables, read)


@contextmanager
def opened_torch(path: Path) -> Iterator[Mapping[str, Any]]:
    """Open the tensors of a PyTorch file: a single one, called ``features``, or those of nested dicts."""
    torch = import_torch()
    n_bytes = path.stat().st_size
    if is_zipfile(path):
        with ZipFile(path) as members:
            n_bytes = sum(info.file_size for info in members.infolist())
    check_fits(n_bytes, str(path))
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
    """Read a tensor of any layout and dtype, or a list."""
    if isinstance(value, list | tuple):
        _check_list(value, what)
        return as_array(value, what)
    if value.is_nested:
        raise HashbenchError(f"{what} is a nested tensor, expected a tensor of one shape. Save its parts in a dict.")
    check_fits(value.numel() * value.element_size(), f"{what} of shape {tuple(value.shape)}")  # a view may repeat
    value = value.detach()
    if value.is_quantized:
        value = value.dequantize()
    value = value.to_dense() if "sparse" in str(value.layout) else value.resolve_conj().resolve_neg()
    return as_array(value, what)


def _check_list(values: Any, what: str) -> None:
    """Check that a list holds numbers or words, or lists of these, and fits into memory."""
    are_lists = all(isinstance(row, list | tuple) for row in values)
    rows = {id(row): row for row in (values if are_lists else [values])}  # a list in a file may be named many times
    flat = [value for row in rows.values() for value in row]
    if other_types := {type(value) for value in flat} - _IN_LISTS:
        raise HashbenchError(
            f"{what} is a list that holds {min(kind.__name__ for kind in other_types)}, expected numbers or strings, "
            "or lists of these. Save a tensor."
        )
    n_values = sum(map(len, values)) if are_lists else len(values)
    check_fits(_n_bytes_of(flat, n_values), f"{what}, a list of {n_values:,} values,")


def _load_sparse(path: Path, arrays: Mapping[str, Any]) -> Any:
    """Read a sparse matrix of `scipy.sparse.save_npz`, given the arrays of the file; its indices are not checked."""
    from scipy.sparse import load_npz

    for name in ("data", "indices", "indptr", "row", "col", "shape"):
        array = arrays.get(name)
        if name == "shape" and array is not None:
            check_fits(8 * int(max(array, default=0)), f"{path}, a sparse matrix of shape {tuple(array)},")
    with path.open("rb") as file:
        return load_npz(file)
