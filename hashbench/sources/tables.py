"""Tables, .csv, .txt, .parquet and .arrow, as arrays: which columns are features, labels, codes or words."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench._validation import is_missing
from hashbench.errors import HashbenchError, how_to_install
from hashbench.sources._torch import import_library
from hashbench.sources.formats import CODE_KEYS, FEATURE_KEYS, LABEL_KEYS, Lazy, is_identifier, shown
from hashbench.store.inputs import check_fits, reading

ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
LINE_SUFFIXES = (".txt", ".lst")  # one text, code or label per line
TABLE_SUFFIXES = (".csv", *LINE_SUFFIXES, *ARROW_SUFFIXES)
_LINE = "text"  # name of the only column
_SHOWN = 40  # characters of a cell
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_SIGNS = [-1, 0, 1]
_HEXADECIMAL = 16  # digits of 64 bits; in decimal they are mostly 17 to 20
_FEW = 10  # rows in which whole numbers may differ by chance
_FACTOR = 2  # least bytes of memory per byte of a table: measured 2 for numbers of 17 digits, 14 for one digit
_BATCH = 1 << 12  # rows of Parquet that are read at a time
_MAGIC = b"ARROW1"  # of files; streams, as of Hugging Face's datasets, have none
_ENDS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")  # of streams; the second until Arrow 0.14


class TableFile(Mapping[str, AnyArray], ABC):
    """The columns of a table by name, each read when accessed, and the numeric columns together as ``features``.

    Columns ``aside``, such as labels, are not features, nor are ``words`` and ``lists``.
    """

    columns: Sequence[str]
    words: Sequence[str]  # columns that hold neither numbers nor lists
    lists: Sequence[str] = ()
    vectors: Sequence[str] = ()  # lists of numbers
    aside: Sequence[str | None] = LABEL_KEYS

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._reading():
            self._open()
        _check_names(self.columns, path)

    @abstractmethod
    def _open(self) -> None:
        """Find the columns."""

    @abstractmethod
    def _cells(self, name: str) -> AnyArray:
        """Read a column: numbers, or objects that are texts, or bytes."""

    def labels(self, name: str) -> AnyArray:
        """Return a column of labels: numbers, unless one is written as 01, or words."""
        return self[name]

    def texts(self, name: str) -> AnyArray:
        """Return a column of texts, also of texts such as 001 and NA, which pandas reads as numbers in a .csv file."""
        return self[name]

    @abstractmethod
    def codes(self, name: str, spec: str, n_bits: int | None) -> AnyArray:
        """Return a column of codes, called ``spec`` in messages: strings, integers, bits or bytes."""

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.path, self.path.suffix.lower())

    @cached_property
    def _numeric(self) -> list[str]:
        """Columns of numbers that may be features; none if all are named like identifiers."""
        names = [name for name in self.columns if name not in (*self.aside, *self.lists, *self.words)]
        return [] if len(self.columns) > 1 and all(map(is_identifier, names)) else names

    @property
    def _has_features(self) -> bool:
        return set(FEATURE_KEYS).isdisjoint(self.lists) and bool(self._numeric)

    def is_unclear(self, keys: tuple[str, ...]) -> bool:
        """Return whether ``keys``, none of which is a column, may mean another column than all of numbers together."""
        others = [name for name in self.columns if name not in (*self.aside, *self._numeric)]
        is_lone = keys == CODE_KEYS and len(self._numeric) == 1
        return keys in (FEATURE_KEYS, CODE_KEYS) and bool(others if is_lone else {*self.vectors} & {*others})

    def left_out(self, name: str) -> str:
        """Describe the columns that are neither labels nor part of the features called ``name``."""
        others = (*self.aside, name, *(() if name in self.columns else self._numeric))
        names = ", ".join(shown(column) for column in self.columns if column not in others)
        reason = "" if name in self.columns else ", since they hold no numbers"
        return f"left out{reason}: {names}" if names else ""

    def __getitem__(self, name: str) -> AnyArray:
        if name != "features" or not self._has_features:
            with self._reading():
                return self._cells(name)
        columns = {column: self[column] for column in self._numeric}
        _refuse_identifiers(columns, self.path)
        return np.column_stack([*columns.values()])

    def __contains__(self, name: object) -> bool:
        return name in self.columns or (name == "features" and self._has_features)

    def __iter__(self) -> Iterator[str]:
        yield from self.columns
        if "features" not in self.columns and self._has_features:
            yield "features"

    def __len__(self) -> int:
        return len(list(iter(self)))


class _Typed(TableFile):
    """A Parquet or Arrow file, whose columns have types."""

    def _open(self) -> None:
        with opened_arrow(self.path) as file:
            self.columns, kinds = file.names, file.kinds
        self.lists = [name for name in self.columns if _holds(kinds[name], "list")]
        self.vectors = [name for name in self.lists if _holds(kinds[name].value_type, "number")]
        self._bytes = [name for name in self.columns if _holds(kinds[name], "binary")]
        others = [name for name in self.columns if name not in self.lists]
        self.words = [name for name in others if not _holds(kinds[name], "number")]

    def _cells(self, name: str) -> AnyArray:
        with opened_arrow(self.path) as file:
            return file.read(name)

    def codes(self, name: str, spec: str, n_bits: int | None) -> AnyArray:
        if name not in self._bytes:
            codes = self[name]
            if codes.ndim == 1 and codes.dtype.kind == "f":
                raise _no_codes(spec)
            return codes
        with self._reading(), opened_arrow(self.path) as file:
            packed = file.read(name, as_bytes=True)
        if not packed.size or not np.isin(packed, np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)).all():
            return packed
        return np.ascontiguousarray(packed).view(f"S{packed.shape[1]}").ravel()


class _Text(TableFile):
    """A file of texts, in which numbers are what reads like some."""

    @abstractmethod
    def _written(self, name: str, **options: Any) -> AnyArray:
        """Read a column as it is written, NaN if missing; ``options`` as of pandas."""

    def labels(self, name: str) -> AnyArray:
        texts = self._written(name)
        is_padded = any(isinstance(text, str) and re.match(r"[+-]?0\d", text.strip()) for text in texts)
        return texts if is_padded else self[name]

    def texts(self, name: str) -> AnyArray:
        return self._written(name, keep_default_na=False, na_values=[""])

    def codes(self, name: str, spec: str, n_bits: int | None) -> AnyArray:
        cells = self[name]
        if cells.ndim > 1:
            return cells
        texts = self._written(name)
        digits = [text.strip() for text in texts if isinstance(text, str)]
        is_number = cells.dtype.kind in "iuf" and not _are_strings(digits)
        if is_number and (cells.dtype.kind == "f" or may_be_hexadecimal(digits, n_bits)):
            raise _no_codes(spec)
        if digits and len(name) == len(digits[0]) and not name.strip("0123456789abcdefABCDEF"):
            raise HashbenchError(f"the first line of {spec} reads like a code; put the name of the column before it.")
        return cells if is_number else texts


class _Lines(_Text):
    """A text, code or label per line."""

    def _open(self) -> None:
        check_fits(_FACTOR * self.path.stat().st_size, str(self.path))
        *lines, last = self.path.read_bytes().decode("utf-8-sig").split("\n")  # at no other ends of lines
        self._lines = np.array([line.rstrip("\r") for line in (*lines, *filter(None, [last]))], dtype=object)
        self.columns = self.words = [_LINE]

    def _written(self, name: str, **options: Any) -> AnyArray:
        return np.array([line or None for line in self._lines], dtype=object)

    def texts(self, name: str) -> AnyArray:
        return self._lines

    def _cells(self, name: str) -> AnyArray:
        cells = re.split(r"[\s,;]+", self._lines[0].strip()) if self._lines.size else []
        if len(cells) > 1 and all(map(_NUMBER.fullmatch, cells)):
            raise HashbenchError(
                f"the first line of {self.path} holds {len(cells)} numbers, expected one code or label. Save it as "
                ".csv, with commas between the numbers."
            )
        texts = self._written(name)
        return texts if (numbers := _as_numbers(texts)) is None else numbers


class _Csv(_Text):
    """A .csv file, read whole: where only some columns are parsed, pandas overlooks lines with too many."""

    def _open(self) -> None:
        check_fits(_FACTOR * self.path.stat().st_size, str(self.path))
        self._whole, self._header, self._index = _read_csv(self.path)
        self._whole.columns = self._whole.columns.astype(str)
        self.columns = [*self._whole.columns]

    @cached_property
    def words(self) -> list[str]:  # type: ignore[override]
        """Columns of words."""
        return [name for name in self.columns if self._cells(name).dtype.kind not in "biufc"]

    def __getitem__(self, name: str) -> AnyArray:
        for column in self.words if name == "features" and name not in self.columns else ():
            cells = self._cells(column)
            if column not in self.aside and (stray := stray_word(cells)) is not None:
                cell = str(cells[stray])[:_SHOWN]
                raise HashbenchError(
                    f"column {column!r} of {self.path} holds numbers, but {cell!r} in row {stray} (the first is 0). "
                    "Fix that cell, or remove the column."
                )
        return super().__getitem__(name)

    def _cells(self, name: str) -> AnyArray:
        column = self._whole[name]
        if column.dtype.kind not in "biufc":
            column = column.to_numpy(object)
            numbers = _as_numbers(column)
            return column if numbers is None else numbers
        return np.asarray(column)

    def _written(self, name: str, **options: Any) -> AnyArray:
        import pandas as pd

        place = self.columns.index(name) + (self._index is not None)
        with self._reading():
            column = pd.read_csv(self.path, header=self._header, usecols=[place], dtype=str, **options)
        return column.iloc[:, 0].to_numpy(dtype=object)  # type: ignore[no-any-return]


def open_table(path: Path) -> TableFile:
    """Open a table in the format of its suffix."""
    suffix = path.suffix.lower()
    kind = _Csv if suffix == ".csv" else _Lines if suffix in LINE_SUFFIXES else _Typed
    return kind(path)


def _no_codes(spec: str) -> HashbenchError:
    return HashbenchError(
        f"{spec} holds one column of numbers, expected a column per bit or byte, whole numbers without empty cells and "
        "--bits, or strings of hexadecimal digits or of 0 and 1. If the numbers are such strings, write each as 0x and "
        "its digits, or as 0b and its bits."
    )


def _are_strings(digits: list[str]) -> bool:
    """Return whether digits are bits, or begin with 0 though not all are equally long; lost zeros make them shorter."""
    lengths = set(map(len, digits))
    if max(lengths, default=0) > 1 and set("".join(digits)) <= {"0", "1"}:
        return True
    return len(lengths) > 1 and any(re.match(r"0\d", text) for text in digits)


def may_be_hexadecimal(texts: list[str], n_bits: int | None = None) -> bool:
    """Return whether numbers may be hexadecimal strings of ``n_bits``: equally long, and short or with leading zeros.

    >>> may_be_hexadecimal(["1234567890", "2345678901"]), may_be_hexadecimal(["1234567890", "2345678901"], 32)
    (True, False)
    """
    lengths = set(map(len, texts))
    fits = (len(lengths) == 1 and n_bits is None) or lengths == {-(-(n_bits or 0) // 4)}
    return fits and all(text.isdecimal() and (len(text) <= _HEXADECIMAL or text.startswith("0")) for text in texts)


def _refuse_identifiers(columns: Mapping[str, AnyArray], path: Path) -> None:
    """Refuse identifiers among columns of features, codes or labels, whose numbers would outweigh all others."""
    whole = [name for name, column in columns.items() if column.dtype.kind in "iu"]
    n_real = sum(column.dtype.kind == "f" for column in columns.values())
    for name, column in columns.items():
        is_named = len(columns) > 1 and is_identifier(name) and not np.isin(column, _SIGNS).all()
        is_odd = whole == [name] and n_real > 1 and len(column) >= _FEW and len(np.unique(column)) == len(column)
        if is_named or is_odd:
            why = "is named like an identifier" if is_named else "is the only one of whole numbers, all different"
            way = "rename it" if is_named else "save it as floats"
            raise HashbenchError(f"column {name!r} of {path} {why}. Remove it, or {way} if it is a feature.")


def _as_numbers(cells: Iterable[Any]) -> AnyArray | None:
    """Return texts as int64, uint64 or float64, NaN if empty; None if one is no number, or all are empty."""
    texts = [None if is_missing(cell) else str(cell).strip() for cell in cells]
    if not any(texts) or not all(text is None or _NUMBER.fullmatch(text) for text in texts):
        return None
    if all(text is not None and _WHOLE.fullmatch(text) for text in texts):
        whole = [int(text) for text in texts if text]
        for limits in map(np.iinfo, (np.int64, np.uint64)):
            if limits.min <= min(whole) and max(whole) <= limits.max:
                return np.array(whole, limits.dtype)
    return np.array([float(text or "nan") for text in texts])


def stray_word(cells: Iterable[Any]) -> int | None:
    """Return the row of the first cell that is no number where most are; None if few, or all, are."""
    are_numbers = [is_missing(cell) or _NUMBER.fullmatch(str(cell).strip()) is not None for cell in cells]
    n_missing = sum(map(is_missing, cells))
    n_numbers = sum(are_numbers) - n_missing
    is_mixed = n_numbers < len(are_numbers) - n_missing < 2 * n_numbers
    return are_numbers.index(False) if is_mixed else None


def _check_names(names: Iterable[str], path: Path) -> None:
    for name, n_columns in Counter(filter(None, names)).items():
        if n_columns > 1:
            raise HashbenchError(f"{path} has {n_columns} columns called {name!r}; give each its own name.")


def _read_csv(path: Path) -> tuple[Any, int | None, int | None]:
    """Read a table whose first line may hold names: words, or the column numbers 0, 1, 2, ... of pandas.

    Returns it with the line of its names and the column of its index, None without.
    """
    import pandas as pd

    top = pd.read_csv(path, header=None, nrows=2, dtype=str, keep_default_na=False)
    first = top.iloc[0]
    for separator in (";", "\t"):
        if len(first) == 1 and all(separator in line for line in top[0]):
            raise HashbenchError(f"{path} separates columns by {separator!r}, expected commas. Save it with commas.")
    has_index = first.iloc[0] == ""  # pandas leaves the name of its index empty
    names = first.iloc[int(has_index) :]
    is_number = pd.to_numeric(names, errors="coerce").notna()
    n_numbers = int(is_number.sum())
    is_counted = n_numbers > 1 and names[is_number].tolist() == [str(number) for number in range(n_numbers)]
    if 0 < n_numbers < len(names) and not is_counted:
        raise HashbenchError(
            f"the first line of {path} mixes {n_numbers} numbers with words, so it may be names or an item; add a "
            "first line of names, one per column."
        )
    has_names = n_numbers == 0 or is_counted or (has_index and names.tolist() == ["0"])
    index = 0 if has_index and has_names else None
    header = 0 if has_names else None
    _check_names(names if has_names else (), path)
    table = pd.read_csv(path, header=header, index_col=index, low_memory=False)  # one dtype per column
    if is_counted and not has_index:
        below = table.loc[:, [*is_number]]
        are_bits = n_numbers > 2 and below.isin(_SIGNS).all(axis=None)  # 2 is no bit
        if not are_bits and all(dtype.kind in "biu" for dtype in below.dtypes):
            raise HashbenchError(
                f"the first line of {path} counts from 0 to {n_numbers - 1}, so it may be names or an item; add a line "
                "of names above it, one per column."
            )
    return table, header, index


# ---------------------------------------------------------------- Parquet and Arrow


class ArrowFile(ABC):
    """The columns of an open Parquet or Arrow file, without the index of pandas, and their types."""

    def __init__(self, path: Path, schema: Any) -> None:
        self.path = path
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
        self.names = [name for name in schema.names if name not in index]
        kinds = [getattr(kind, "storage_type", kind) for kind in schema.types]
        self.kinds = dict(zip(schema.names, kinds, strict=True))

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def batches(self, name: str, start: int = 0) -> Iterator[tuple[int, Any]]:
        """Yield batches of a column with the number of their first row, from that of row ``start`` on."""

    def read(self, name: str, *, as_bytes: bool = False) -> AnyArray:
        """Read a whole column: (n,), or (n, length) if it holds lists, or bytes if asked for, of one length."""
        kind = self.kinds[name]
        is_matrix = as_bytes or _holds(kind, "list")
        parts, n_bytes = [], 0
        for _, column in self.batches(name):
            n_bytes += column.nbytes + 8 * len(column)
            check_fits(
                n_bytes, f"{shown(name)} of {self.path}"
            )  # the next may be as large, since they may be compressed
            if len(column):
                is_exact = is_matrix or (_holds(kind, "number") and not column.null_count)
                parts.append(_as_array(column, name, self.path) if is_exact else np.asarray(column.to_pandas()))
        _check_lengths({part.shape[1] for part in parts if is_matrix}, name, self.path)
        return np.concatenate(parts) if parts else np.empty((0, 0) if is_matrix else 0)


class _Parquet(ArrowFile):
    def __init__(self, path: Path, file: Any) -> None:
        super().__init__(path, file.schema_arrow)
        self._file = file
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        self._bounds: list[int] = [*accumulate((group.num_rows for group in groups), initial=0)]

    @property
    def n_rows(self) -> int:
        return self._bounds[-1]

    def batches(self, name: str, start: int = 0) -> Iterator[tuple[int, Any]]:
        for number, (row, end) in enumerate(zip(self._bounds, self._bounds[1:], strict=False)):
            if end > start:
                for batch in self._file.iter_batches(_BATCH, row_groups=[number], columns=[name]):
                    yield row, batch.column(batch.schema.names.index(name))
                    row += batch.num_rows


class _Arrow(ArrowFile):
    def __init__(self, path: Path, source: Any) -> None:
        self._source, self._ipc = source, import_arrow("pyarrow.ipc", path)
        self._is_file = source.read(len(_MAGIC)) == _MAGIC
        schema = self._reader([]).schema
        self._fields = schema.names
        super().__init__(path, schema)

    def _reader(self, fields: list[int]) -> Any:
        """Open the file, or the stream, with some columns; with all, if there are none."""
        self._source.seek(0)
        options = self._ipc.IpcReadOptions(included_fields=fields)
        return (self._ipc.open_file if self._is_file else self._ipc.open_stream)(self._source, options=options)

    def _batches(self, field: int) -> Iterator[Any]:
        reader = self._reader([field])
        if self._is_file:
            yield from map(reader.get_batch, range(reader.num_record_batches))
            return
        end = self._source.tell()
        for batch in reader:
            end = self._source.tell()
            yield batch
        self._source.seek(end)
        if not self._source.read(len(_ENDS[0])).startswith(_ENDS):
            raise HashbenchError(f"{self.path} is cut short: its end is missing. Copy it again, or write it anew.")

    @property
    def n_rows(self) -> int:
        return sum(int(batch.num_rows) for batch in self._batches(0))

    def batches(self, name: str, start: int = 0) -> Iterator[tuple[int, Any]]:
        row = 0
        for batch in self._batches(self._fields.index(name)):
            if row + batch.num_rows > start:
                batch.validate(full=True)  # whose offsets would lead out of a damaged file
                yield row, batch.column(0)
            row += batch.num_rows


class SlicedColumn:
    """A column of numbers (n,), or of lists or bytes of one length (n, length), of which slices are read."""

    def __init__(self, file: ArrowFile, name: str) -> None:
        self._file, self._name = file, name
        columns = (column for _, column in file.batches(name) if len(column))
        first = next((_as_array(column, name, file.path) for column in columns), np.empty((0, 0)))
        self.shape: tuple[int, ...] = (file.n_rows, *first.shape[1:])
        self.dtype = first.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> AnyArray:
        start, stop, _ = rows.indices(len(self))
        parts = [np.empty((0, *self.shape[1:]), self.dtype)]
        for begin, column in self._file.batches(self._name, start) if start < stop else ():
            if begin >= stop:
                break
            if len(column):
                part = _as_array(column, self._name, self._file.path)
                _check_lengths({*part.shape[1:], *self.shape[1:]}, self._name, self._file.path)
                parts.append(part[max(start - begin, 0) : stop - begin])
        return np.concatenate(parts)


def _holds(kind: Any, what: str) -> bool:
    """Return whether a column of this type holds lists, binary strings or numbers."""
    types: Any = import_module("pyarrow.types")
    names = {
        "list": ("is_list", "is_large_list", "is_fixed_size_list"),
        "binary": ("is_binary", "is_large_binary", "is_fixed_size_binary"),
        "number": ("is_integer", "is_floating", "is_boolean", "is_decimal"),
    }[what]
    return any(getattr(types, name)(kind) for name in names)


def _as_array(column: Any, name: str, path: Path) -> AnyArray:
    """Convert an array of pyarrow to numbers (n,), or lists or bytes of one length to (n, length)."""
    column = getattr(column, "storage", column)
    kind = column.type
    values = column.flatten() if _holds(kind, "list") else column
    if column.null_count or values.null_count:
        raise HashbenchError(f"column {name!r} of {path} has empty cells; fill or drop these rows.")
    if _holds(kind, "binary"):
        cells = column.to_pylist()
        _check_lengths(set(map(len, cells)), name, path)
        return np.frombuffer(b"".join(cells), np.uint8).reshape(len(cells), -1)
    if not _holds(values.type, "number"):
        raise HashbenchError(
            f"column {name!r} of {path} holds {kind}, expected numbers, or lists of numbers or bytes of one length."
        )
    if "decimal" in str(values.type):
        values = values.cast("float64")
    if values.type == kind or not _holds(kind, "list"):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    _check_lengths({kind.list_size} if hasattr(kind, "list_size") else set(np.diff(column.offsets)), name, path)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1)


def _check_lengths(lengths: set[int], name: str, path: Path) -> None:
    if len(lengths) > 1:
        raise HashbenchError(
            f"column {name!r} of {path} holds rows of {min(lengths)} and of {max(lengths)} values; all need the same "
            "number."
        )


def import_arrow(module: str, path: Path) -> Any:
    """Return a module of pyarrow, with which ``path`` is read."""
    return import_library(module, f"reading {path} needs pyarrow: {how_to_install('pyarrow')}.")


@contextmanager
def opened_arrow(path: Path) -> Iterator[ArrowFile]:
    """Open the columns of a Parquet or Arrow file."""
    if path.suffix.lower() == ".parquet":
        with import_arrow("pyarrow.parquet", path).ParquetFile(path) as file:
            yield _Parquet(path, file)
    else:
        with import_arrow("pyarrow", path).memory_map(str(path)) as source:
            yield _Arrow(path, source)


@contextmanager
def opened_in_slices(path: Path) -> Iterator[Mapping[str, SlicedColumn]]:
    """Open the columns of a Parquet or Arrow file by name, each read when it is sliced."""
    with opened_arrow(path) as file:
        yield Lazy(file.names, lambda name: SlicedColumn(file, name))
