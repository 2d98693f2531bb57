"""Features, labels and codes read from files, whose suffix is their format, or from shards, read in slices."""

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from glob import glob
from itertools import accumulate, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hashbench._typing import AnyArray, Float32Array, IntArray
from hashbench.errors import HashbenchError, unknown_name
from hashbench.sources.formats import (
    COARSE_KEYS,
    CODE_KEYS,
    FEATURE_KEYS,
    GROUP_KEYS,
    ID_KEYS,
    LABEL_KEYS,
    MATRIX_KEYS,
    ROW_KEYS,
    VECTOR_SUFFIXES,
    Lazy,
    SparseRows,
    in_memory,
    is_identifier,
    opened_hdf5,
    opened_mat,
    opened_npy,
    opened_npz,
    opened_safetensors,
    opened_torch,
    opened_vectors,
    row_blocks,
    shown,
)
from hashbench.sources.tables import ARROW_SUFFIXES, LINE_SUFFIXES, TableFile, open_table, opened_in_slices
from hashbench.store.files import HDF5_SUFFIXES
from hashbench.store.inputs import check_file, check_fits, reading

TEXT_KEYS = ("text", "texts")
_WORD_KEYS = (LABEL_KEYS, COARSE_KEYS, GROUP_KEYS, ID_KEYS, TEXT_KEYS)
_Opener = Callable[[Path], AbstractContextManager[Mapping[str, Any]]]


class Format(NamedTuple):
    """How files of a suffix are opened."""

    open: Callable[[Path], AbstractContextManager[Mapping[str, Any]]]
    in_slices: Callable[[Path], AbstractContextManager[Mapping[str, Any]]] | None = (
        None  # for more than fits into memory
    )


_TABLE = Format(lambda path: nullcontext(open_table(path)))
FORMATS = {  # what it yields: arrays by name
    ".npy": Format(opened_npy, opened_npy),  # one, called features
    ".npz": Format(opened_npz),  # all; a sparse matrix is one, called features
    ".mat": Format(opened_mat),  # all
    **dict.fromkeys((".pt", ".pth"), Format(opened_torch)),  # those of nested dicts; a lone tensor is called features
    ".safetensors": Format(opened_safetensors, opened_safetensors),  # all
    **dict.fromkeys(VECTOR_SUFFIXES, Format(opened_vectors, opened_vectors)),  # one, called features
    **dict.fromkeys(HDF5_SUFFIXES, Format(opened_hdf5, partial(opened_hdf5, in_slices=True))),  # all, group/name
    **dict.fromkeys((".csv", *LINE_SUFFIXES), _TABLE),  # columns, and those of numbers together, called features
    **dict.fromkeys(ARROW_SUFFIXES, _TABLE._replace(in_slices=opened_in_slices)),  # the same; in slices, only columns
}
SLICED = tuple(suffix for suffix, kind in FORMATS.items() if kind.in_slices)
_MANIFESTS = {".json": json.loads, ".toml": tomllib.loads}
_ADVICE = {  # on other suffixes
    **dict.fromkeys((".tsv", ".xlsx"), " Save it as .csv, with commas."),
    **dict.fromkeys((".pkl", ".pickle"), " Opening pickles could run code; save arrays with numpy.savez."),
}
_NEIGHBOUR_SUFFIXES = (".ivecs", ".ibin")
_FEW, _CHECKED = 10, 10_000  # rows whose rounding is checked
_MOST_LOST = 1e-4  # part of the variance that rounding may take


class ItemFile(NamedTuple):
    """Items and labels of a file, if any, and a description of columns left out."""

    features: AnyArray  # (n, n_features), float32; or texts (n,)
    labels: AnyArray | None
    left_out: str


def read_array(spec: str, keys: tuple[str, ...]) -> AnyArray:
    """Read the array that ``PATH:KEY`` names; without a key, the first of ``keys`` that is there, or the only one."""
    path, key = split_spec(spec)
    with opened_arrays(path) as arrays:
        return _read_found(arrays, path, key, keys, spec)


def _read_found(arrays: Mapping[str, Any], path: Path, key: str | None, keys: tuple[str, ...], spec: str) -> AnyArray:
    """Read the array that `find_array` finds; labels and texts of a table as they are written."""
    name = _find_name(arrays, path, key, keys)
    if isinstance(arrays, TableFile) and name in arrays.columns and keys in _WORD_KEYS:
        stored = arrays.texts(name) if keys == TEXT_KEYS else arrays.labels(name)
    else:
        stored = arrays[name]
    return _as_text(_whole(stored, path), spec)


def read_features(spec: str) -> Float32Array:
    """Read features (n, n_features), float32, from ``PATH`` or ``PATH:KEY``; refuse what float32 cannot hold."""
    path, key = split_spec(spec)
    with opened_arrays(path) as arrays:
        return _as_float32(find_array(arrays, path, key, FEATURE_KEYS)[1], spec, path)


def read_items(spec: str, labels: str | None = None, *, are_texts: bool = False) -> ItemFile:
    """Read features as `read_features` does, or texts, with labels from another file or from the same, opened once.

    Texts are the lines of a ``.txt`` file or a column of words; without a key, that of a table is its column ``text``
    or its only one. If ``labels`` names a column of the same table, that column is not a feature.
    """
    path, key = split_spec(spec)
    label_path, label_key = split_spec(labels or spec)
    for file in (path, label_path):
        check_file(file)
    is_beside = bool(labels) and path.resolve() == label_path.resolve()
    array = read_array(labels, LABEL_KEYS) if labels and not is_beside else None
    left_out = ""
    with opened_arrays(path) as arrays:
        if isinstance(arrays, TableFile) and is_beside:
            arrays.aside = (*LABEL_KEYS, label_key)
        if are_texts:
            key = _text_column(arrays, label_key) if key is None and isinstance(arrays, TableFile) else key
            items: AnyArray = _checked_texts(_read_found(arrays, path, key, TEXT_KEYS, spec), spec)
        else:
            found, stored = find_array(arrays, path, key, FEATURE_KEYS)
            items = _as_float32(stored, spec, path)
            left_out = arrays.left_out(found) if key is None and isinstance(arrays, TableFile) else ""
        name = next((name for name in LABEL_KEYS if name in arrays and not (are_texts and name == key)), None)
        if is_beside or (array is None and name is not None):
            array = _read_found(arrays, path, label_key if is_beside else name, LABEL_KEYS, labels or spec)
    return ItemFile(items, array, left_out)


def _checked_texts(texts: AnyArray, spec: str) -> AnyArray:
    """Return texts as (n,); refuse other shapes, and what is not a text or blank."""
    texts = texts.ravel() if texts.ndim == 2 and 1 in texts.shape else texts
    if texts.ndim != 1 or not texts.size or texts.dtype.kind not in "OU":
        raise HashbenchError(
            f"{spec} holds {texts.dtype} of shape {texts.shape}, expected texts of shape (n,); for a model of images, "
            "give a folder of images."
        )
    for row, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise HashbenchError(
                f"{spec} has {text!r} in row {row} (the first is 0), expected a text. Remove that row."
            )
    return texts.astype(object)


def _text_column(table: TableFile, label: str | None) -> str:
    names = [name for name in table.words if name != label]
    chosen = [name for name in TEXT_KEYS if name in table.columns and name != label] or names
    if len(chosen) == 1:
        return chosen[0]
    raise HashbenchError(
        f"{table.path} has {len(names)} columns of words ({', '.join(map(shown, names)) or 'none'}), expected one or a "
        f"column {TEXT_KEYS[0]!r}. Name the column: {table.path}:COLUMN."
    )


def read_rows(spec: str, n_rows: int) -> IntArray:
    """Read row numbers from 0 to ``n_rows`` - 1 from ``PATH`` or ``PATH:KEY``; return them sorted."""
    path, key = split_spec(spec)
    with opened_arrays(path) as arrays:
        name, stored = find_array(arrays, path, key, ROW_KEYS)
        rows = _whole(stored, path)
    if isinstance(arrays, TableFile) and name == "0":
        raise HashbenchError(f"the first line of {spec} may be a row number or a name; put the name `row` before it.")
    if rows.ndim == 2 and 1 in rows.shape:  # a column, or a row as MATLAB has them
        rows = rows.ravel()
    if rows.ndim != 1 or not rows.size or rows.dtype.kind not in "iuf" or not (rows == np.floor(rows)).all():
        raise HashbenchError(
            f"{spec} holds {rows.dtype} of shape {rows.shape}, expected row numbers of the database of shape (n,)."
        )
    outside = (rows < 0) | (rows >= n_rows)
    if outside.any():
        raise HashbenchError(
            f"{spec} names row {rows[outside][0]}, and the database has rows 0 to {n_rows - 1}. Count rows from 0."
        )
    different, counts = np.unique(rows.astype(np.int64), return_counts=True)
    if (counts > 1).any():
        raise HashbenchError(f"{spec} names row {different[counts > 1][0]} more than once; name each once.")
    return different


def read_codes(spec: str, n_bits: int | None = None) -> AnyArray:
    """Read codes of any form and length that `hashbench.bits.as_packed` takes, from ``PATH`` or ``PATH:KEY``."""
    path, key = split_spec(spec)
    with opened_arrays(path) as arrays:
        name = _find_name(arrays, path, key, CODE_KEYS)
        if not isinstance(arrays, TableFile):
            return _whole(arrays[name], path)
        return arrays.codes(name, spec, n_bits)


def read_matrix(spec: str) -> Any:
    """Read a matrix of levels as `read_array` does, or a sparse one of `scipy.sparse.save_npz`."""
    path, key = split_spec(spec)
    with opened_arrays(path) as arrays:
        stored = find_array(arrays, path, key, MATRIX_KEYS)[1]
        return stored.matrix if isinstance(stored, SparseRows) else _whole(stored, path)


def read_levels(spec: str, n_database: int) -> Any:
    """Read a matrix of levels as `read_matrix` does; from .ivecs and .ibin, level 1 for the listed rows of a query."""
    if split_spec(spec)[0].suffix.lower() not in _NEIGHBOUR_SUFFIXES:
        return read_matrix(spec)
    from scipy.sparse import csr_array

    neighbours = np.sort(read_array(spec, ()), axis=1)  # (n_queries, n_neighbours)
    low, high = neighbours.min(), neighbours.max()
    if low < 0 or high >= n_database:
        raise HashbenchError(
            f"{spec} lists neighbours {low:,} to {high:,}, and the database has items 0 to {n_database - 1:,}. Give "
            "the neighbours of each query as rows of the database."
        )
    if repeats := np.flatnonzero((np.diff(neighbours, axis=1) == 0).any(axis=1)).tolist():
        raise HashbenchError(
            f"{spec} lists a neighbour twice for {len(repeats):,} queries, first {repeats[0]:,} (counted from 0)."
        )
    n_queries, width = neighbours.shape
    parts = np.ones(neighbours.size, np.int8), neighbours.ravel(), np.arange(n_queries + 1) * width
    return csr_array(parts, shape=(n_queries, n_database))


def refuse_transposed(array: AnyArray, spec: str, n_items: tuple[int, ...]) -> None:
    """Refuse an array (n, width) whose number of columns, and not of rows, is among possible numbers of items."""
    if array.ndim == 2 and array.shape[1] in n_items and array.shape[0] not in n_items:
        n_rows, n_columns = array.shape
        raise HashbenchError(
            f"{spec} has {n_rows:,} rows and {n_columns:,} columns, expected {n_columns:,} rows, one per item. If its "
            "columns are the items, save it transposed: with ' in MATLAB, .T in NumPy."
        )


def refuse_nameless(labels: AnyArray, spec: str, n_items: int) -> None:
    """Refuse words of a .csv file that are one fewer than the items, since the first line is read as names."""
    are_words = labels.dtype.kind in "OU" and split_spec(spec)[0].suffix.lower() == ".csv"
    if are_words and labels.shape[:1] == (n_items - 1,):
        raise HashbenchError(
            f"{spec} holds labels for {len(labels):,} of {n_items:,} items, since its first line is read as names. If "
            "that line is an item, put a line of names above it."
        )


def split_spec(spec: str) -> tuple[Path, str | None]:
    """Split ``PATH:KEY``; the key is None for a plain path, and for a file whose own name has the colon."""
    head, colon, tail = spec.rpartition(":")
    try:
        if colon and not Path(spec).exists() and (Path(head).suffix.lower() in FORMATS or Path(head).is_file()):
            return Path(head), tail
    except OSError:  # such as a name that is too long; reading the file reports it
        pass
    return Path(spec), None


@contextmanager
def opened_arrays(path: Path, *, in_slices: bool = False) -> Iterator[Mapping[str, Any]]:
    """Open the arrays of a file by name, as `FORMATS` says, each read when accessed."""
    check_file(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise HashbenchError(
            f"{path} has an unknown suffix; arrays are read from {', '.join(FORMATS)}.{_ADVICE.get(suffix, '')}"
        )
    kind = FORMATS[suffix]
    with ExitStack() as stack:
        with _reading(path):
            arrays = stack.enter_context(((in_slices and kind.in_slices) or kind.open)(path))

        def read(name: str) -> Any:
            with _reading(path):
                return arrays[name]

        yield arrays if isinstance(arrays, TableFile) else Lazy(arrays, read)


def _reading(path: Path) -> AbstractContextManager[None]:
    """Turn what libraries raise on a damaged file into a sentence; wrap only code that reads it."""
    return reading(path, path.suffix.lower())


def _whole(stored: Any, path: Path) -> AnyArray:
    with _reading(path):
        return in_memory(stored)


def _as_text(array: AnyArray, spec: str) -> AnyArray:
    """Decode words that HDF5 and Parquet keep as bytes."""
    is_bytes = array.dtype.kind == "S" or (
        array.dtype.kind == "O" and any(isinstance(cell, bytes) for cell in array.flat)
    )
    if not is_bytes:
        return array
    try:
        words = [cell.decode("utf-8") if isinstance(cell, bytes) else cell for cell in array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise HashbenchError(
            f"{spec} holds strings as bytes that are not UTF-8: {error}. Save them as UTF-8."
        ) from error
    return np.array(words, dtype=object if array.dtype.kind == "O" else np.str_).reshape(array.shape)


def find_array(arrays: Mapping[str, Any], path: Path, key: str | None, keys: tuple[str, ...]) -> tuple[str, Any]:
    """Return name and array of ``key``; without a key, of the first of ``keys`` that is there, or the only array."""
    name = _find_name(arrays, path, key, keys)
    return name, arrays[name]


def _find_name(arrays: Mapping[str, Any], path: Path, key: str | None, keys: tuple[str, ...]) -> str:
    if key is not None:
        if key not in arrays:
            raise unknown_name(_kind(path), f"{path}:{key}", map(shown, arrays), like=key)
        return key
    table = arrays if isinstance(arrays, TableFile) else None
    names = sorted(arrays if table is None else table.columns, key=lambda name: "/" in name)
    if not names:
        raise HashbenchError(f"{path} holds no arrays.")
    likely = [name for name in names if not (name in LABEL_KEYS or is_identifier(name))] or names
    chosen = next((name for name in keys if name in arrays), None)
    if chosen is None and names == likely[:1]:
        chosen = names[0]
    elif chosen is None and "features" in arrays:
        chosen = "features"
    is_unclear = table is not None and chosen == "features" and table.is_unclear(keys)
    if chosen is None or is_unclear:
        likely = [*(name for name in (() if table is None else table.vectors) if name in likely), *likely]
        may_be_item = path.suffix.lower() == ".csv" and not any(map(is_identifier, names))
        raise HashbenchError(
            f"{path} holds {_kind(path)}s {', '.join(map(shown, names))}; name one of them, such as "
            f"{path}:{shown(likely[0])}{', or remove that column' * is_unclear}."
            f"{' If its first line is an item, put a line of names above it.' if may_be_item else ''}"
        )
    return chosen


def _kind(path: Path) -> str:
    """Return the word for what a file holds under each name."""
    return "column" if FORMATS[path.suffix.lower()].open is _TABLE.open else "array"


def _as_float32(stored: Any, spec: str, path: Path) -> Float32Array:
    if stored.ndim != 2 or not stored.size or stored.dtype.kind not in "biuf":
        raise HashbenchError(
            f"{spec} holds {stored.dtype} of shape {stored.shape}, expected numbers of shape (n, n_features), not "
            f"empty.{' For texts, add --features hf:MODEL.' if stored.dtype.kind in 'OSU' else ''}"
        )
    if type(stored) is np.ndarray and stored.dtype == np.float32:
        return np.ascontiguousarray(stored)
    check_fits(4 * stored.size, f"{spec} of shape {stored.shape}")
    features = np.empty(stored.shape, dtype=np.float32)
    step = -(-len(features) // _CHECKED)
    samples = []
    for rows in row_blocks(stored):
        with _reading(path):
            block = stored[rows]
        try:
            with np.errstate(over="raise"):
                features[rows] = block
        except FloatingPointError:
            raise HashbenchError(f"{spec} holds numbers too large for float32. Scale them.") from None
        samples.append(np.array(block[-rows.start % step :: step]))
    if not np.can_cast(stored.dtype, np.float32):
        _check_rounding(spec, np.concatenate(samples), features[::step])
    return features


def _check_rounding(spec: str, samples: AnyArray, rounded: Float32Array) -> None:
    """Refuse features that float32 cannot distinguish, judged by a sample of rows."""
    if len(samples) < _FEW:  # such as a query or two, which may be alike
        return
    with np.errstate(invalid="ignore"):
        lost, spread = (part.var(axis=0).sum() for part in (samples - rounded, samples))
    if lost > _MOST_LOST * spread > 0:  # False where one is not a number, which Dataset refuses
        raise HashbenchError(
            f"{spec} holds numbers that float32 cannot distinguish: rounding would blur {np.sqrt(lost / spread):.1%} "
            "of their spread. Subtract a constant from each column, the same in all files, or scale them."
        )


# ---------------------------------------------------------------- shards


class ShardedArray:
    """An array whose rows are in several files that can be read in slices.

    It holds paths only: a file is open only while a slice of it is read, and pickles are small.
    """

    def __init__(self, specs: Sequence[str], keys: tuple[str, ...]) -> None:
        self._keys = keys
        headers = []
        seen: dict[tuple[int, int, str], str] = {}
        for spec in specs:
            with _opened_shard(spec, keys) as (name, stored):
                headers.append((stored.shape, stored.dtype))
            file = split_spec(spec)[0].stat()
            other = seen.setdefault((file.st_dev, file.st_ino, name), spec)
            if len(seen) < len(headers):
                raise HashbenchError(
                    f"{spec} comes twice among the shards{f', first as {other}' * (other != spec)}. Name each once."
                )
            shape, dtype = headers[-1]
            if 0 in shape or not shape:
                raise HashbenchError(f"{spec} is empty: shape {shape}. Leave it out of the shards.")
            if (shape[1:], dtype) != (headers[0][0][1:], headers[0][1]):
                raise HashbenchError(
                    f"{spec} holds {dtype} of shape {shape}, but {specs[0]} {headers[0][1]} of shape {headers[0][0]}; "
                    "all shards need one dtype, and one width of their rows."
                )
        stops = list(accumulate(shape[0] for shape, _ in headers))
        places = (str(Path(spec).absolute()) for spec in specs)
        self._shards = list(zip(places, [0, *stops[:-1]], stops, strict=True))
        self.shape, self.dtype = (stops[-1], *headers[0][0][1:]), headers[0][1]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> AnyArray:
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        first = bisect_right(self._shards, start, key=itemgetter(2))
        inside = takewhile(lambda shard: shard[1] < stop, self._shards[first:])
        parts = [self._read(place, max(start - begin, 0), min(stop, end) - begin) for place, begin, end in inside]
        return np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def _read(self, place: str, start: int, stop: int) -> AnyArray:
        with _opened_shard(place, self._keys) as (_, stored), reading(split_spec(place)[0]):
            part = np.array(stored[start:stop])
        if (part.shape, part.dtype) != ((stop - start, *self.shape[1:]), self.dtype):
            raise HashbenchError(f"{place} changed while codes were scored. Score again when it no longer changes.")
        return part


def read_in_slices(spec: str, keys: tuple[str, ...]) -> ShardedArray | AnyArray:
    """Open shards, or a file that can be read in slices; read any other file whole."""
    shards = find_shards(spec)
    suffix = split_spec(spec)[0].suffix.lower()
    if shards is None and (suffix in ARROW_SUFFIXES or suffix not in SLICED):  # a table may hold words
        return read_array(spec, keys)
    return ShardedArray(shards or [spec], keys)


def read_whole(spec: str, keys: tuple[str, ...]) -> AnyArray:
    """Read an array from one file, or from shards."""
    shards = find_shards(spec)
    return ShardedArray(shards, keys)[:] if shards else read_array(spec, keys)


def files_behind(spec: str) -> list[str]:
    """List the files that a manifest or a pattern names, or the one file itself."""
    return find_shards(spec) or [spec]


def find_shards(spec: str) -> list[str] | None:
    """List the files that a manifest or a pattern such as ``codes-*.npy`` names, 2 before 10; None for other files."""
    path, key = split_spec(spec)
    if path.suffix.lower() in _MANIFESTS:
        return _read_manifest(path)
    if not set("*?[") & set(str(path)) or path.exists():
        return None
    names = sorted(glob(str(path)), key=_natural)  # noqa: PTH207 - a pattern may be absolute
    if not names:
        raise HashbenchError(f"no file matches {path}. Fix the pattern, or write the files first.")
    return [name if key is None else f"{name}:{key}" for name in names]


def _read_manifest(path: Path) -> list[str]:
    """Read the files that a manifest beside them lists as ``shards``."""
    check_file(path)
    with reading(path, path.suffix.lower()):
        content = _MANIFESTS[path.suffix.lower()](path.read_text(encoding="utf-8"))
    shards = content["shards"] if isinstance(content, dict) and set(content) == {"shards"} else None
    if not isinstance(shards, list) or not shards or not all(isinstance(shard, str) and shard for shard in shards):
        raise HashbenchError(
            f"{path} is not a manifest of shards, expected one key, shards: a list of FILE or FILE:KEY in order."
        )
    return [str(path.parent / shard) for shard in shards]


def _natural(name: str) -> tuple[list[int | str], str]:
    """Return a key that sorts names by the numbers in them."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)], name


@contextmanager
def _opened_shard(spec: str, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    path, key = split_spec(spec)
    if path.suffix.lower() not in SLICED:
        raise HashbenchError(f"{path} cannot be read in slices, as shards are; write it as one of {', '.join(SLICED)}.")
    with opened_arrays(path, in_slices=True) as arrays:
        yield find_array(arrays, path, key, keys)
