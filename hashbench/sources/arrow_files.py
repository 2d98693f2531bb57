"""Columns of Parquet, Arrow and Feather files, read by name: whole, or in slices of a few row groups or batches."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError
from hashbench.sources._torch import import_library
from hashbench.sources.formats import Lazy
from hashbench.store.inputs import check_fits

ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
_MAGIC = b"ARROW1"  # of files; streams, as of Hugging Face's datasets, have none
_ENDS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")  # of streams; the second until Arrow 0.14


class Columns(ABC):
    """The columns of an open file.

    ``names`` leaves out the index of pandas, and ``kinds`` are the types of all columns.
    """

    def __init__(self, path: Path, schema: Any) -> None:
        self.path = path
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
        self.names = [name for name in schema.names if name not in index]
        kinds = [getattr(kind, "storage_type", kind) for kind in schema.types]
        self.kinds = dict(zip(schema.names, kinds, strict=True))

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Numbers of rows that are stored together."""

    @abstractmethod
    def read(self, names: Sequence[str]) -> Any:
        """Read whole columns as a table of pyarrow, after checking that they fit into memory."""

    @abstractmethod
    def read_group(self, name: str, number: int) -> Any:
        """Read the rows of a column that are stored together as an array of pyarrow."""

    def read_matrix(self, name: str) -> AnyArray:
        """Read a whole column of lists or bytes of one length, (n, length)."""
        parts = [as_numbers(chunk, name, self.path) for chunk in self.read([name]).column(name).chunks if len(chunk)]
        _check_lengths({part.shape[1] for part in parts}, name, self.path)
        return np.concatenate(parts) if parts else np.empty((0, 0))


class _Parquet(Columns):
    def __init__(self, path: Path, file: Any) -> None:
        super().__init__(path, file.schema_arrow)
        self._file, about = file, file.metadata
        self._groups = [about.row_group(number) for number in range(about.num_row_groups)]

    @property
    def sizes(self) -> list[int]:
        return [group.num_rows for group in self._groups]

    def read(self, names: Sequence[str]) -> Any:
        prefixes = tuple(f"{name}." for name in names)
        n_bytes = sum(
            column.total_uncompressed_size
            for group in self._groups
            for column in (group.column(number) for number in range(group.num_columns))
            if f"{column.path_in_schema}.".startswith(prefixes)
        )
        n_rows = sum(self.sizes)
        n_bytes, what = max(n_bytes, 8 * n_rows * len(names)), f"{self.path}, a table of {n_rows:,} rows,"
        check_fits(n_bytes, what)
        check_fits(n_bytes + self._size_of_texts(names), what)
        return self._file.read(columns=[*names]).select(names)

    def _size_of_texts(self, names: Sequence[str]) -> int:
        """Sum the lengths of all texts, of which equal ones are stored once, without expanding them."""
        compute: Any = import_module("pyarrow.compute")
        schema = self._file.schema
        columns = [schema.column(number) for number in range(len(schema))]
        of_texts = [
            column.path
            for column in columns
            if column.path in names and column.physical_type == "BYTE_ARRAY" and not column.max_repetition_level
        ]
        n_bytes = 0
        with import_arrow("pyarrow.parquet", self.path).ParquetFile(self.path, read_dictionary=of_texts) as file:
            for batch in file.iter_batches(columns=of_texts) if of_texts else ():
                for texts in filter(lambda column: hasattr(column, "dictionary"), batch.columns):
                    lengths = compute.binary_length(texts.dictionary).take(texts.indices)
                    n_bytes += compute.sum(lengths).as_py() or 0
        return n_bytes

    def read_group(self, name: str, number: int) -> Any:
        return self._file.read_row_group(number, columns=[name]).column(name).combine_chunks()


class _Arrow(Columns):
    def __init__(self, path: Path, source: Any) -> None:
        self._source, self._ipc = source, import_arrow("pyarrow.ipc", path)
        self._ahead: Iterator[Any] = iter(())  # batches from that of the column and number ``_next`` on
        self._is_file = source.read(len(_MAGIC)) == _MAGIC
        schema = self._reader([]).schema
        self._fields = schema.names
        super().__init__(path, schema)

    def _reader(self, names: Sequence[str]) -> Any:
        """Open the file, or the stream, with some columns; with all, if there are none."""
        self._next = "", 0  # since the source moves, batches ahead are no longer those that follow
        self._source.seek(0)
        options = self._ipc.IpcReadOptions(included_fields=[self._fields.index(name) for name in names])
        return (self._ipc.open_file if self._is_file else self._ipc.open_stream)(self._source, options=options)

    def _batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:
        """Yield the batches from number ``first`` on; those of a stream are read from the beginning."""
        reader = self._reader(names)
        if self._is_file:
            yield from map(reader.get_batch, range(first, reader.num_record_batches))
            return
        end = self._source.tell()
        for number, batch in enumerate(reader):
            end = self._source.tell()
            if number >= first:
                yield batch
        self._source.seek(end)
        if not self._source.read(len(_ENDS[0])).startswith(_ENDS):
            raise HashbenchError(f"{self.path} is cut short: its end is missing. Copy it again, or write it anew.")

    @property
    def sizes(self) -> list[int]:
        return [batch.num_rows for batch in self._batches(self.names[:1])]

    def read(self, names: Sequence[str]) -> Any:
        batches, n_bytes = [], 0
        for batch in self._batches(names):
            batch.validate(full=True)  # whose offsets would lead out of a damaged file
            n_bytes += batch.nbytes + 8 * batch.num_rows * batch.num_columns
            check_fits(n_bytes, str(self.path))  # the next may be as large, since they may be compressed
            batches.append(batch)
        table = import_arrow("pyarrow", self.path).Table
        schema = batches[0].schema if batches else self._reader(names).schema
        return table.from_batches(batches, schema).select(names)

    def read_group(self, name: str, number: int) -> Any:
        if self._next != (name, number):
            self._ahead = self._batches([name], number)
        batch = next(self._ahead)
        self._next = name, number + 1
        batch.validate(full=True)
        return batch.column(name)


class SlicedColumn:
    """A column of numbers (n,), or of lists or bytes of one length (n, length), read by row groups."""

    def __init__(self, columns: Columns, name: str) -> None:
        self._columns, self._name = columns, name
        sizes = columns.sizes
        self._bounds = list(enumerate(pairwise(accumulate(sizes, initial=0))))
        kind = columns.kinds[name]
        types: Any = import_module("pyarrow.types")
        if types.is_fixed_size_list(kind):
            width, self.dtype = (kind.list_size,), np.dtype(kind.value_type.to_pandas_dtype())
        elif types.is_fixed_size_binary(kind):
            width, self.dtype = (kind.byte_width,), np.dtype(np.uint8)
        else:  # rows need not be equally long: the first are the measure
            first = next((self._read(number) for number, size in enumerate(sizes) if size), np.empty(0))
            width, self.dtype = first.shape[1:], first.dtype
        self.shape = (sum(sizes), *width)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> AnyArray:
        start, stop, _ = rows.indices(len(self))
        parts = [
            self._read(number)[max(start - begin, 0) : stop - begin]
            for number, (begin, end) in self._bounds
            if max(start, begin) < min(stop, end)
        ]
        for part in parts:
            _check_lengths({*part.shape[1:], *self.shape[1:]}, self._name, self._columns.path)
        return np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def _read(self, number: int) -> AnyArray:
        """Read the column of one row group, which has rows."""
        return as_numbers(self._columns.read_group(self._name, number), self._name, self._columns.path)


def holds_lists(kind: Any) -> bool:
    """Return whether a column of this type holds lists."""
    types: Any = import_module("pyarrow.types")
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def holds_bytes(kind: Any) -> bool:
    """Return whether a column of this type holds bytes, which may be packed codes or words."""
    types: Any = import_module("pyarrow.types")
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def holds_numbers(kind: Any) -> bool:
    """Return whether a column of this type holds numbers."""
    types: Any = import_module("pyarrow.types")
    return bool(types.is_integer(kind) or types.is_floating(kind))


def as_numbers(column: Any, name: str, path: Path) -> AnyArray:
    """Convert an array of pyarrow to numbers (n,), or lists or bytes of one length to (n, length)."""
    types: Any = import_module("pyarrow.types")
    column = getattr(column, "storage", column)
    kind, values = column.type, column
    if holds_lists(kind):
        values = column.flatten()
    if column.null_count or values.null_count:
        raise HashbenchError(f"column {name!r} of {path} has empty cells; fill or drop these rows.")
    if types.is_list(kind) or types.is_large_list(kind):
        _check_lengths(set(np.diff(column.offsets)), name, path)
    if holds_bytes(kind):
        cells = column.to_pylist()
        _check_lengths({len(cell) for cell in cells}, name, path)
        return np.frombuffer(b"".join(cells), np.uint8).reshape(len(cells), -1)
    if not (types.is_integer(values.type) or types.is_boolean(values.type) or types.is_floating(values.type)):
        raise HashbenchError(
            f"column {name!r} of {path} holds {kind}, expected numbers, or lists of numbers or bytes of one length."
        )
    numbers = np.asarray(values.to_numpy(zero_copy_only=False))
    return numbers if values is column else numbers.reshape(len(column), -1)


def _check_lengths(lengths: set[int], name: str, path: Path) -> None:
    if len(lengths) > 1:
        raise HashbenchError(
            f"column {name!r} of {path} holds rows of {min(lengths)} and of {max(lengths)} values; all need the same "
            "number."
        )


def import_arrow(module: str, path: Path) -> Any:
    """Return a module of pyarrow, with which ``path`` is read."""
    return import_library(module, f"reading {path} needs pyarrow: pip install pyarrow.")


@contextmanager
def opened_columns(path: Path) -> Iterator[Columns]:
    """Open the columns of a file in the format of its suffix."""
    if path.suffix.lower() == ".parquet":
        with import_arrow("pyarrow.parquet", path).ParquetFile(path) as file:
            yield _Parquet(path, file)
    else:
        with import_arrow("pyarrow", path).memory_map(str(path)) as source:
            yield _Arrow(path, source)


@contextmanager
def opened_in_slices(path: Path) -> Iterator[Mapping[str, SlicedColumn]]:
    """Open the columns of a file by name, each read when it is sliced."""
    with opened_columns(path) as columns:
        yield Lazy(columns.names, lambda name: SlicedColumn(columns, name))
