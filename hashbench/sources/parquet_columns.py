"""Columns of Parquet files as arrays that are read in slices, one row group at a time."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError


class ParquetColumn:
    """A column of numbers (n,), or of lists or bytes of one length (n, length), read by row groups."""

    def __init__(self, file: Any, name: str, path: Path) -> None:
        self._file, self._name, self._path = file, name, path
        groups = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        self._stops = list(accumulate(groups))
        width, self.dtype = self._form(file.schema_arrow.field(name).type)
        self.shape = (self._stops[-1] if groups else 0, *width)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> AnyArray:
        start, stop, _ = rows.indices(len(self))
        parts = []
        for number in range(bisect_right(self._stops, start), len(self._stops)):
            begin = self._stops[number - 1] if number else 0
            if begin >= stop:
                break
            parts.append(self._group(number)[max(start - begin, 0) : stop - begin])
        return np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def _form(self, kind: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape of a row and its dtype; the first row says it where they need not be equally long."""
        types: Any = import_module("pyarrow.types")
        if types.is_fixed_size_binary(kind):
            return (kind.byte_width,), np.dtype(np.uint8)
        if types.is_fixed_size_list(kind):
            return (kind.list_size,), np.dtype(kind.value_type.to_pandas_dtype())
        if self._stops and self._stops[-1]:
            first = self._group(next(number for number, stop in enumerate(self._stops) if stop))
            return first.shape[1:], first.dtype
        return (), np.dtype(kind.to_pandas_dtype())

    def _group(self, number: int) -> AnyArray:
        """Read the column of one row group."""
        types: Any = import_module("pyarrow.types")
        column = self._file.read_row_group(number, columns=[self._name]).column(0).combine_chunks()
        if column.null_count:
            raise HashbenchError(f"column {self._name!r} of {self._path} has empty cells; fill or drop these rows.")
        if types.is_binary(column.type) or types.is_fixed_size_binary(column.type):
            cells = column.to_pylist()
            self._check_lengths({len(cell) for cell in cells})
            return np.frombuffer(b"".join(cells), np.uint8).reshape(len(cells), -1)
        if types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type):
            values = column.flatten()
            self._check_lengths(set(np.diff(column.offsets)) if hasattr(column, "offsets") else set())
            self._check_numbers(values)
            return np.asarray(values.to_numpy(zero_copy_only=False).reshape(len(column), -1))
        self._check_numbers(column)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _check_lengths(self, lengths: set[int]) -> None:
        if len(lengths) > 1:
            raise HashbenchError(
                f"column {self._name!r} of {self._path} holds rows of {min(lengths)} and of {max(lengths)} values; all "
                "need the same number."
            )

    def _check_numbers(self, values: Any) -> None:
        types: Any = import_module("pyarrow.types")
        if values.null_count or not any(
            is_kind(values.type) for is_kind in (types.is_integer, types.is_boolean, types.is_floating)
        ):
            raise HashbenchError(
                f"column {self._name!r} of {self._path} holds {values.type}, which is not read in slices; write whole "
                "numbers, or lists or bytes of one length."
            )


@contextmanager
def opened_parquet(path: Path) -> Iterator[Mapping[str, ParquetColumn]]:
    """Open the columns of a file by name, each read when it is sliced."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise HashbenchError(f"reading {path} needs pyarrow: pip install 'hashbench[parquet]'.") from error
    with parquet.ParquetFile(path) as file:
        yield _Columns(file, path)


class _Columns(Mapping[str, ParquetColumn]):
    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path = file, path

    def __getitem__(self, name: str) -> ParquetColumn:
        if name not in self._file.schema_arrow.names:
            raise KeyError(name)
        return ParquetColumn(self._file, name, self._path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.schema_arrow.names)

    def __len__(self) -> int:
        return len(self._file.schema_arrow.names)
