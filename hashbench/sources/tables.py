"""Tables, .csv, .txt, .parquet and .arrow, as arrays: which columns are features, labels, codes or words."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError
from hashbench.sources.arrow_files import ARROW_SUFFIXES, holds_bytes, holds_lists, holds_numbers, opened_columns
from hashbench.sources.formats import FEATURE_KEYS, LABEL_KEYS
from hashbench.store.inputs import check_fits, reading

LINE_SUFFIXES = (".txt", ".lst")  # one text, code or label per line
TABLE_SUFFIXES = (".csv", *LINE_SUFFIXES, *ARROW_SUFFIXES)
_LINE = "text"  # name of the only column
_SHOWN = 40  # characters of a cell
_SIGNS = [-1, 0, 1, "-1", "0", "1"]
_HEXADECIMAL = 16  # digits of 64 bits; in decimal they are mostly 17 to 20
_FACTOR = 2  # least bytes of memory per byte of a table: measured 2 for numbers of 17 digits, 14 for one digit


class TableFile(Mapping[str, AnyArray], ABC):
    """The columns of a table by name, each read when accessed, and the numeric columns together as ``features``.

    Columns with a label's name and the column ``aside`` are not features, nor are ``words``, the columns in which
    numbers are a minority. Where they are a majority but not all, reading ``features`` raises an error.
    """

    columns: Sequence[str]
    lists: Sequence[str] = ()  # columns whose types say what they hold
    bytes: Sequence[str] = ()
    numbers: Sequence[str] = ()

    def __init__(self, path: Path, aside: str | None = None) -> None:
        self.path, self._aside = path, aside
        with self._reading():
            self._open()

    @abstractmethod
    def _open(self) -> None:
        """Find the columns."""

    @abstractmethod
    def _frame(self, names: Sequence[str]) -> Any:
        """Read columns as a table of pandas."""

    @abstractmethod
    def labels(self, name: str) -> AnyArray:
        """Return a column of labels: numbers, unless one is written as 01, or words."""

    @abstractmethod
    def texts(self, name: str) -> AnyArray:
        """Return a column of texts, also of texts such as 001 and NA, which pandas reads as numbers in a .csv file."""

    @abstractmethod
    def codes(self, name: str, spec: str) -> AnyArray:
        """Return a column of codes, called ``spec`` in messages: strings, 64-bit integers, bits or bytes."""

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.path, self.path.suffix.lower())

    def _cells(self, name: str) -> AnyArray:
        with self._reading():
            return np.asarray(self._frame([name])[name])

    @cached_property
    def words(self) -> list[str]:
        """Columns in which numbers are a minority."""
        return [name for name, (has_numbers, _) in self._candidates.items() if not has_numbers]

    @cached_property
    def _candidates(self) -> dict[str, tuple[bool, int | None]]:
        """Of each column that may be a feature, whether it holds numbers, and the first row without one."""
        names = [name for name in self.columns if name not in (*LABEL_KEYS, self._aside, *self.lists)]
        unclear = [name for name in names if name not in (*self.bytes, *self.numbers)]
        found: dict[str, tuple[bool, int | None]] = {name: (name in self.numbers, None) for name in names}
        with self._reading():
            frame = self._frame(unclear) if unclear else {}
        for name in unclear:
            column, stray = as_numbers(frame[name])
            found[name] = column is not None, stray
        return found

    @property
    def _has_features(self) -> bool:
        return set(FEATURE_KEYS).isdisjoint(self.lists) and len(self.words) < len(self._candidates)

    def __getitem__(self, name: str) -> AnyArray:
        if name == "features" and self._has_features:
            return self._features()
        cells = self._cells(name)
        if name in (*LABEL_KEYS, self._aside, *self.bytes):
            return cells
        column, stray = as_numbers(cells)
        return cells if column is None or stray is not None else column

    def _features(self) -> AnyArray:
        for name, (_, stray) in self._candidates.items():
            if stray is not None:
                cell = str(self._cells(name)[stray])[:_SHOWN]
                raise HashbenchError(
                    f"column {name!r} of {self.path} holds numbers, but {cell!r} in row {stray} (the first is 0). Fix "
                    "that cell, or remove the column."
                )
        names = [name for name in self._candidates if name not in self.words]
        with self._reading():
            frame = self._frame(names)
        columns: list[Any] = [as_numbers(frame[name])[0] for name in names]
        return np.column_stack(columns)

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
        with opened_columns(self.path) as columns:
            self.columns, kinds = columns.names, columns.kinds
        _check_names(self.columns, self.path)
        self.lists = [name for name in self.columns if holds_lists(kinds[name])]
        self.bytes = [name for name in self.columns if holds_bytes(kinds[name])]
        self.numbers = [name for name in self.columns if holds_numbers(kinds[name])]

    def _frame(self, names: Sequence[str]) -> Any:
        with opened_columns(self.path) as columns:
            return columns.read(names).to_pandas(ignore_metadata=True)

    def _matrix(self, name: str) -> AnyArray:
        with self._reading(), opened_columns(self.path) as columns:
            return columns.read_matrix(name)

    def __getitem__(self, name: str) -> AnyArray:
        return self._matrix(name) if name in self.lists else super().__getitem__(name)

    def labels(self, name: str) -> AnyArray:
        return self._matrix(name) if name in self.lists else self._cells(name)

    def texts(self, name: str) -> AnyArray:
        return self._cells(name)

    def codes(self, name: str, spec: str) -> AnyArray:
        if name in self.bytes:
            packed = self._matrix(name)
            is_text = np.isin(packed, np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)).all()
            return np.ascontiguousarray(packed).view(f"S{packed.shape[1]}").ravel() if is_text else packed
        if name in self.lists or name not in self.columns:
            return self[name]
        codes = self._cells(name)
        if codes.dtype.kind == "f":
            raise _no_codes(spec)
        return codes


class _Text(TableFile):
    """A file of texts, in which numbers are what reads like some."""

    @abstractmethod
    def _written(self, name: str, **options: Any) -> AnyArray:
        """Read a column as it is written, NaN if missing; ``options`` as of pandas."""

    def labels(self, name: str) -> AnyArray:
        cells = self[name]
        if cells.dtype.kind not in "iuf":
            return cells
        texts = self._written(name)
        is_padded = any(isinstance(text, str) and re.match(r"[+-]?0\d", text.strip()) for text in texts)
        return texts if is_padded else cells

    def texts(self, name: str) -> AnyArray:
        return self._written(name, keep_default_na=False, na_values=[""])

    def codes(self, name: str, spec: str) -> AnyArray:
        cells = self[name]
        if cells.ndim > 1:
            return cells
        texts = self._written(name)
        digits = [text.strip() for text in texts if isinstance(text, str)]
        is_number = cells.dtype.kind in "iuf" and not _is_binary(digits)
        if is_number and (cells.dtype.kind == "f" or may_be_hexadecimal(digits)):
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
        self.columns = [_LINE]

    def _frame(self, names: Sequence[str]) -> Any:
        import pandas as pd

        return pd.DataFrame({name: self._written(name) for name in names}, dtype=object)

    def _written(self, name: str, **options: Any) -> AnyArray:
        return np.array([line or None for line in self._lines], dtype=object)

    def texts(self, name: str) -> AnyArray:
        return self._lines


class _Csv(_Text):
    """A .csv file, read whole: where only some columns are parsed, pandas overlooks lines with too many."""

    def _open(self) -> None:
        check_fits(_FACTOR * self.path.stat().st_size, str(self.path))
        self._whole, self._header, self._index = _read_csv(self.path)
        self._whole.columns = self._whole.columns.astype(str)
        self.columns = [*self._whole.columns]

    def _frame(self, names: Sequence[str]) -> Any:
        return self._whole[[*names]]

    def _written(self, name: str, **options: Any) -> AnyArray:
        import pandas as pd

        place = self.columns.index(name) + (self._index is not None)
        with self._reading():
            column = pd.read_csv(self.path, header=self._header, usecols=[place], dtype=str, **options)
        return column.iloc[:, 0].to_numpy(dtype=object)  # type: ignore[no-any-return]


def open_table(path: Path, aside: str | None = None) -> TableFile:
    """Open a table in the format of its suffix."""
    suffix = path.suffix.lower()
    kind = _Csv if suffix == ".csv" else _Lines if suffix in LINE_SUFFIXES else _Typed
    return kind(path, aside)


def _no_codes(spec: str) -> HashbenchError:
    return HashbenchError(
        f"{spec} holds one column of numbers, expected a column per bit or byte, 64-bit integers without empty cells, "
        "or strings of hexadecimal digits or of 0 and 1. If the numbers are such strings, write each as 0x and its "
        "digits, or as 0b and its bits."
    )


def _is_binary(texts: list[str]) -> bool:
    """Return whether texts are strings of 0 and 1, equally long."""
    return len(set(map(len, texts))) == 1 and len(texts[0]) > 1 and set("".join(texts)) <= {"0", "1"}


def as_numbers(cells: Any) -> tuple[AnyArray | None, int | None]:
    """Return a column as numbers, None if few are, and the row of the first cell that is not a number, if any."""
    import pandas as pd

    column = pd.Series(cells)
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(), None
    numbers, is_there = pd.to_numeric(column.astype(str), errors="coerce"), column.notna()
    if 2 * numbers[is_there].notna().sum() <= is_there.sum():
        return None, None
    is_stray = (numbers.isna() & is_there).to_numpy()
    return numbers.to_numpy(), int(np.argmax(is_stray)) if is_stray.any() else None


def may_be_hexadecimal(texts: list[str]) -> bool:
    """Return whether numbers may be hexadecimal strings: equally long, and short or with leading zeros."""
    texts = [text.strip() for text in texts]
    return len(set(map(len, texts))) == 1 and all(
        text.isdecimal() and (len(text) <= _HEXADECIMAL or text.startswith("0")) for text in texts
    )


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
    n_numbers = int(pd.to_numeric(names, errors="coerce").notna().sum())
    is_counted = names.tolist() == [str(number) for number in range(len(names))]
    if 0 < n_numbers < len(names):
        raise HashbenchError(
            f"the first line of {path} mixes {n_numbers} numbers with words, so it may be names or an item; add a "
            "first line of names, one per column."
        )
    has_names = n_numbers == 0 or (is_counted and (has_index or len(names) > 1))
    _check_names(names if has_names else (), path)
    index = 0 if has_index and has_names else None
    header = 0 if has_names else None
    table = pd.read_csv(path, header=header, index_col=index, low_memory=False)  # one dtype per column
    may_be_item = is_counted and not has_index and len(names) > 1 and top.iloc[-1].str.fullmatch(r"[+-]?\d+").all()
    if may_be_item and not (len(names) > 2 and table.isin(_SIGNS).all(axis=None)):  # 2 is no bit
        raise HashbenchError(
            f"the first line of {path} counts from 0 to {len(names) - 1}, so it may be names or an item; add a first "
            "line of names, one per column."
        )
    return table, header, index
