"""Arrays in the files people keep them in: .npy, .npz, .mat, .parquet, .csv and HDF5."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from hashbench._typing import AnyArray, Float32Array
from hashbench._validation import is_sparse
from hashbench.errors import HashbenchError, one_line, unknown_name
from hashbench.store.files import HDF5_SUFFIXES

FEATURE_KEYS = ("features", "X", "data", "x", "gist", "fea", "embeddings")
LABEL_KEYS = ("labels", "y", "Y", "label", "class", "target", "L", "gnd")
SUFFIXES = (".npy", ".npz", ".mat", ".parquet", ".csv", *HDF5_SUFFIXES)
_TABLES = (".parquet", ".csv")
_FEW, _CHECKED = 10, 10_000  # rows whose rounding is checked
_MOST_LOST = 1e-4  # part of the variance that rounding may take


def read_array(spec: str, keys: tuple[str, ...], aside: str | None = None) -> AnyArray:
    """Read the array that ``PATH:KEY`` names; of a ``PATH`` alone the first called as in ``keys``, or the only one.

    Columns of a table are put side by side, but for ``aside``, the one that holds the labels.
    """
    path, key = split_spec(spec)
    if key is not None:
        arrays = read_arrays(path, key)
        if key not in arrays:
            raise unknown_name("array", f"{path}:{key}", read_arrays(path), like=key)
        return arrays[key]
    arrays = read_arrays(path, aside=aside)
    if not arrays:
        raise HashbenchError(f"{path} holds no arrays.")
    if path.suffix.lower() in _TABLES:
        keys = (*keys, "features")
    found = next((arrays[name] for name in keys if name in arrays), None)
    if found is None and len(arrays) == 1:
        (found,) = arrays.values()
    if found is None:
        raise HashbenchError(
            f"{path} holds arrays {', '.join(arrays)}; say which one you mean, such as {path}:{next(iter(arrays))}."
        )
    return found


def find_array(spec: str, keys: tuple[str, ...]) -> AnyArray | None:
    """Look in the file of another array for one called as in ``keys``; None if there is none."""
    path, _ = split_spec(spec)
    arrays = {} if path.suffix == ".npy" else read_arrays(path)
    return next((arrays[name] for name in keys if name in arrays), None)


def read_features(spec: str, labels: str | None = None) -> Float32Array:
    """Read features (n, n_features), float32, from ``PATH`` or ``PATH:KEY``; refuse what float32 cannot tell apart.

    Where ``labels`` names a column of the same table, that column is no feature.
    """
    (path, _), (label_path, label_key) = split_spec(spec), split_spec(labels or "")
    array = read_array(spec, FEATURE_KEYS, aside=label_key if path.resolve() == label_path.resolve() else None)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "biuf":
        raise HashbenchError(
            f"{spec} holds {array.dtype} of shape {array.shape}, expected numbers of shape (n, n_features), not empty."
        )
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(array, dtype=np.float32)
    if not np.can_cast(array.dtype, np.float32):
        _check_rounding(spec, array, rounded)
    return rounded


def _check_rounding(spec: str, array: AnyArray, rounded: Float32Array) -> None:
    """Refuse features that float32 cannot hold or tell apart."""
    if (np.isfinite(array) & ~np.isfinite(rounded)).any():
        largest = np.abs(array[np.isfinite(array)]).max()
        raise HashbenchError(f"{spec} holds numbers up to {largest:.3g}, too large for float32. Scale them.")
    if len(array) < _FEW:  # such as a query or two, which may well be alike
        return
    some = slice(None, None, -(-len(array) // _CHECKED))
    with np.errstate(invalid="ignore"):
        lost, spread = (part.var(axis=0).sum() for part in (array[some] - rounded[some], array[some]))
    if lost > _MOST_LOST * spread > 0:  # False where one is not a number, which Dataset refuses
        raise HashbenchError(
            f"{spec} holds numbers that float32 cannot tell apart: rounding would blur {np.sqrt(lost / spread):.1%} of "
            "their spread. Subtract one number from each column first, the same in all files, or scale them."
        )


def split_spec(spec: str) -> tuple[Path, str | None]:
    """Split ``PATH:KEY``; the key is None for a path alone, and for a file whose own name has the colon."""
    head, colon, tail = spec.rpartition(":")
    if colon and not Path(spec).exists() and (Path(head).suffix.lower() in SUFFIXES or Path(head).is_file()):
        return Path(head), tail
    return Path(spec), None


def read_arrays(path: Path, only: str | None = None, aside: str | None = None) -> dict[str, AnyArray]:
    """Read the arrays of a file by name; its ending tells the format.

    The array of an ``.npy`` file is called ``features``. With ``only``, the other arrays of an ``.npz``, ``.mat`` or
    HDF5 file, which may be huge, stay unread. A table gives its numeric columns together as ``features``, but for those
    called like labels and the column ``aside``. A ``.csv`` file may begin with the names of its columns, and each of
    its lines with a number that pandas gave it.
    """
    if not path.is_file():
        raise HashbenchError(f"there is no file {path}.")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise HashbenchError(f"{path} has no known ending; arrays are read from {', '.join(SUFFIXES)}.")
    try:
        if suffix == ".npy":
            return {"features": load_array(path)}
        if suffix == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files if only in (None, name)}
        if suffix in HDF5_SUFFIXES:
            return _of_hdf5(path, only)
        return _of_mat(path, only) if suffix == ".mat" else _of_table(path, suffix, aside)
    except ImportError as error:
        raise HashbenchError(f"reading {path} needs pyarrow: pip install 'hashbench[parquet]'.") from error
    except Exception as error:  # each library raises its own on damaged files
        if isinstance(error, HashbenchError):
            raise
        raise HashbenchError(f"cannot read {path} as {suffix}: {one_line(error).rstrip('.')}.") from error


def load_array(path: Path) -> AnyArray:
    """Read an ``.npy`` file of numbers as `numpy.save` writes it."""
    if not path.is_file():
        raise HashbenchError(f"there is no file {path}.")
    with path.open("rb") as file:
        magic = file.read(6)
    if magic[:2] == b"PK":
        raise HashbenchError(f"{path} is an .npz archive, expected one array as numpy.save writes it.")
    if magic != b"\x93NUMPY":
        raise HashbenchError(f"{path} is no .npy file. Write it with numpy.save.")
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError, OSError) as error:
        raise HashbenchError(f"cannot read {path} as an array of numbers: {one_line(error).rstrip('.')}.") from error


def load_matrix(path: Path) -> Any:
    """Read an ``.npy`` file, or a sparse matrix from an ``.npz`` file as `scipy.sparse.save_npz` writes it."""
    if path.suffix != ".npz":
        return load_array(path)
    if not path.is_file():
        raise HashbenchError(f"there is no file {path}.")
    from scipy.sparse import load_npz

    try:
        return load_npz(path)
    except (ValueError, KeyError, EOFError, OSError, BadZipFile) as error:
        raise HashbenchError(
            f"cannot read {path} as written by scipy.sparse.save_npz: {one_line(error).rstrip('.')}."
        ) from error


def _of_hdf5(path: Path, only: str | None) -> dict[str, AnyArray]:
    import h5py

    with h5py.File(path, "r") as file:
        return {
            name: value[()]
            for name, value in file.items()
            if isinstance(value, h5py.Dataset) and value.ndim and only in (None, name)
        }


def _of_mat(path: Path, only: str | None) -> dict[str, AnyArray]:
    """Read a MATLAB file; version 7.3 is HDF5 with the axes the other way round."""
    import h5py
    from scipy.io import loadmat

    if h5py.is_hdf5(path):
        return {name: array.T for name, array in _of_hdf5(path, only).items()}
    content = loadmat(path, variable_names=only)
    arrays = {name: value.toarray() if is_sparse(value) else value for name, value in content.items()}
    return {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}


def _of_table(path: Path, suffix: str, aside: str | None) -> dict[str, AnyArray]:
    import pandas as pd

    table = pd.read_parquet(path) if suffix == ".parquet" else _read_csv(path)
    arrays: dict[str, AnyArray] = {}
    numeric = []
    for name, (_, column) in zip(table.columns.astype(str), table.items(), strict=True):
        if len(column) and isinstance(column.iloc[0], (list, tuple, np.ndarray)):
            arrays[name] = np.stack([np.asarray(cell) for cell in column])
        else:
            arrays[name] = column.to_numpy()
            if name not in (*LABEL_KEYS, aside) and pd.api.types.is_numeric_dtype(column):
                numeric.append(name)
    if numeric and not any(key in arrays and arrays[key].ndim == 2 for key in FEATURE_KEYS):
        arrays["features"] = np.column_stack([arrays[name] for name in numeric])
    return arrays


def _read_csv(path: Path) -> Any:
    """Read a table whose first line may hold names: words, or 0, 1, 2 and so on as pandas counts columns."""
    import pandas as pd

    top = pd.read_csv(path, header=None, nrows=2, dtype=str, keep_default_na=False)
    first = top.iloc[0]
    has_index = first.iloc[0] == ""  # pandas leaves the name of its index empty
    names = first.iloc[int(has_index) :]
    n_numbers = int(pd.to_numeric(names, errors="coerce").notna().sum())
    is_counted = names.tolist() == [str(number) for number in range(len(names))]
    if 0 < n_numbers < len(names):
        raise HashbenchError(
            f"the first line of {path} mixes {n_numbers} numbers with words, so it may be names or an item; put a "
            "line of names, one a column, first."
        )
    if is_counted and not has_index and len(names) > 1 and top.iloc[-1].str.fullmatch(r"[+-]?\d+").all():
        raise HashbenchError(
            f"the first line of {path} counts from 0 to {len(names) - 1}, so it may be names or an item; put a line of "
            "names, one a column, first."
        )
    has_names = n_numbers == 0 or (is_counted and (has_index or len(names) > 1))
    return pd.read_csv(path, header=0 if has_names else None, index_col=0 if has_index and has_names else None)
