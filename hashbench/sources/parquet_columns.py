"""Columns of Parquet files as arrays that are read in slices, one row group at a time."""

from collections.abc import Iterator, Mapping
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


class ParquetColumn:
    """A column of numbers (n,), or of lists or bytes of one length (n, length), read by row groups."""

    def __init__(self, file: Any, name: str, path: Path) -> None:
        self._file, self._name, self._path = file, name, path
        metadata = file.metadata
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        self._bounds = list(enumerate(pairwise(accumulate(sizes, initial=0))))
        kind = file.schema_arrow.field(name).type
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
            self._check_lengths({*part.shape[1:], *self.shape[1:]})
        return np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def _read(self, number: int) -> AnyArray:
        """Read the column of one row group, which has rows."""
        types: Any = import_module("pyarrow.types")
        column = self._file.read_row_group(number, columns=[self._name]).column(0).combine_chunks()
        kind, values = column.type, column
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            values = column.flatten()
        if column.null_count or values.null_count:
            raise HashbenchError(f"column {self._name!r} of {self._path} has empty cells; fill or drop these rows.")
        if types.is_list(kind) or types.is_large_list(kind):
            self._check_lengths(set(np.diff(column.offsets)))
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
            cells = column.to_pylist()
            self._check_lengths({len(cell) for cell in cells})
            return np.frombuffer(b"".join(cells), np.uint8).reshape(len(cells), -1)
        if not (types.is_integer(values.type) or types.is_boolean(values.type) or types.is_floating(values.type)):
            raise HashbenchError(
                f"column {self._name!r} of {self._path} holds {kind}, which is not read in slices; write whole "
                "numbers, or lists or bytes of one length."
            )
        numbers = np.asarray(values.to_numpy(zero_copy_only=False))
        return numbers if values is column else numbers.reshape(len(column), -1)

    def _check_lengths(self, lengths: set[int]) -> None:
        if len(lengths) > 1:
            raise HashbenchError(
                f"column {self._name!r} of {self._path} holds rows of {min(lengths)} and of {max(lengths)} values; all "
                "need the same number."
            )


def import_parquet(path: Path) -> Any:
    """Return the module of pyarrow that reads ``path``."""
    return import_library("pyarrow.parquet", f"reading {path} needs pyarrow: pip install 'hashbench[parquet]'.")


@contextmanager
def opened_parquet(path: Path) -> Iterator[Mapping[str, ParquetColumn]]:
    """Open the columns of a file by name, each read when it is sliced."""
    with import_parquet(path).ParquetFile(path) as file:
        yield Lazy(file.schema_arrow.names, lambda name: ParquetColumn(file, name, path))
