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
from hashbench._validation import is_missing
from hashbench.errors import HashbenchError
from hashbench.sources.arrow_files import (
    ARROW_SUFFIXES,
    holds_bytes,
    holds_lists,
    holds_numbers,
    opened_columns,
    opened_in_slices,
)
from hashbench.sources.formats import COARSE_KEYS, CODE_KEYS, FEATURE_KEYS, LABEL_KEYS, is_identifier, shown
from hashbench.store.inputs import check_fits, reading

LINE_SUFFIXES = (".txt", ".lst")  # one text, code or label per line
TABLE_SUFFIXES = (".csv", *LINE_SUFFIXES, *ARROW_SUFFIXES)
_LINE = "text"  # name of the only column
_SHOWN = 40  # characters of a cell
_CODE = re.compile(r"\s*(?:[a-z]\w*:)?(?:0[xb]|\\x)?[0-9a-f]{2,}\s*", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_SIGNS = [-1, 0, 1, "-1", "0", "1"]
_HEXADECIMAL = 16  # digits of 64 bits; in decimal they are mostly 17 to 20
_FEW = 10  # rows in which whole numbers may differ by chance
_FACTOR = 2  # least bytes of memory per byte of a table: measured 2 for numbers of 17 digits, 14 for one digit


class TableFile(Mapping[str, AnyArray], ABC):
    """The columns of a table by name, each read when accessed, and the numeric columns together as ``features``.

    Columns with a label's name and the column ``aside`` are not features, nor are ``words``, the columns in which
    numbers are a minority. Where they are a majority but not all, reading ``features`` raises an error.
    """

    columns: Sequence[str]
    lists: Sequence[str] = ()  # columns whose types say what they hold
    _lists_of_numbers: Sequence[str] = ()
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
        """Read columns by name, as those of a table of pandas."""

    @abstractmethod
    def labels(self, name: str) -> AnyArray:
        """Return a column of labels: numbers, unless one is written as 01, or words."""

    @abstractmethod
    def texts(self, name: str) -> AnyArray:
        """Return a column of texts, also of texts such as 001 and NA, which pandas reads as numbers in a .csv file."""

    @abstractmethod
    def codes(self, name: str, spec: str, n_bits: int | None) -> AnyArray:
        """Return a column of codes, called ``spec`` in messages: strings, integers, bits or bytes."""

    def find_codes(self) -> str | None:
        """Return the first column that is not of numbers and may be codes."""
        return next((name for name in (*self.words, *self.lists) if self._may_be_codes(name)), None)

    def _may_be_codes(self, name: str) -> bool:
        cells = self._cells(name)
        return 2 * sum(bool(_CODE.fullmatch(cell)) for cell in cells if isinstance(cell, str)) > len(cells)

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

    @cached_property
    def _numeric(self) -> list[str]:
        """Columns of numbers that may be features; none if all are named like identifiers."""
        names = [name for name in self._candidates if name not in self.words]
        return [] if len(self.columns) > 1 and all(map(is_identifier, names)) else names

    @property
    def _has_features(self) -> bool:
        return set(FEATURE_KEYS).isdisjoint(self.lists) and bool(self._numeric)

    @property
    def _vectors(self) -> list[str]:
        """Columns of lists of numbers that may be features."""
        return [name for name in self._lists_of_numbers if name not in (*LABEL_KEYS, self._aside)]

    def is_unclear(self, keys: tuple[str, ...]) -> bool:
        """Return whether those who look for ``keys`` may mean a column of lists rather than the columns of numbers."""
        is_lone = keys == CODE_KEYS and len(self._numeric) == 1  # one of hashes is no matrix
        return keys in (FEATURE_KEYS, CODE_KEYS) and bool(self._vectors) and not is_lone

    def likely(self, keys: tuple[str, ...]) -> str:
        """Return the column to suggest to users who look for one of ``keys``."""
        names = [name for name in self.columns if not (name in LABEL_KEYS or is_identifier(name))] or [*self.columns]
        if keys in (FEATURE_KEYS, CODE_KEYS):
            names = [*self._vectors, *names]
        elif keys in (LABEL_KEYS, COARSE_KEYS):
            names = [name for name in names if self._repeats(name)] or names
        return names[0]

    def _repeats(self, name: str) -> bool:
        return name in self.lists or len(set(cells := self._cells(name).tolist())) < len(cells)

    def left_out(self, name: str) -> str:
        """Describe the columns that are neither labels nor part of the features called ``name``."""
        others = (*LABEL_KEYS, self._aside, name, *(() if name in self.columns else self._numeric))
        names = ", ".join(shown(column) for column in self.columns if column not in others)
        reason = "" if name in self.columns else ", since they hold no numbers"
        return f"left out{reason}: {names}" if names else ""

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
        with self._reading():
            frame = self._frame(self._numeric)
        columns: dict[str, Any] = {name: as_numbers(frame[name])[0] for name in self._numeric}
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
        with opened_columns(self.path) as columns:
            self.columns, kinds = columns.names, columns.kinds
        _check_names(self.columns, self.path)
        self.lists = [name for name in self.columns if holds_lists(kinds[name])]
        self._lists_of_numbers = [name for name in self.lists if holds_numbers(kinds[name].value_type)]
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

    def _may_be_codes(self, name: str) -> bool:
        if name not in (*self.bytes, *self.lists):
            return super()._may_be_codes(name)
        try:
            with self._reading(), opened_in_slices(self.path) as columns:
                first = columns[name].dtype  # of the rows that are stored first
        except HashbenchError:  # such as rows of several lengths
            return False
        return bool(first.kind != "f")

    def labels(self, name: str) -> AnyArray:
        return self._matrix(name) if name in self.lists else self._cells(name)

    def texts(self, name: str) -> AnyArray:
        return self._cells(name)

    def codes(self, name: str, spec: str, n_bits: int | None) -> AnyArray:
        if name in self.bytes:
            packed = self._matrix(name)
            if not packed.size or not np.isin(packed, np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)).all():
                return packed
            return np.ascontiguousarray(packed).view(f"S{packed.shape[1]}").ravel()
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
        self.columns = [_LINE]

    def _frame(self, names: Sequence[str]) -> Any:
        return {name: self._written(name) for name in names}

    def _written(self, name: str, **options: Any) -> AnyArray:
        return np.array([line or None for line in self._lines], dtype=object)

    def texts(self, name: str) -> AnyArray:
        return self._lines

    def __getitem__(self, name: str) -> AnyArray:
        cells = re.split(r"[\s,;]+", self._lines[0].strip()) if self._lines.size else []
        numbers, stray = as_numbers(cells)
        if len(cells) > 1 and numbers is not None and stray is None:
            raise HashbenchError(
                f"the first line of {self.path} holds {len(cells)} numbers, expected one code or label. Save it as "
                ".csv, with commas between the numbers."
            )
        return super().__getitem__(name)


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


def _refuse_identifiers(columns: Mapping[str, AnyArray], path: Path) -> None:
    """Refuse identifiers among columns of features, codes or labels, whose numbers would outweigh all others."""
    whole = [name for name, column in columns.items() if column.dtype.kind in "iu"]
    n_real = sum(column.dtype.kind == "f" for column in columns.values())
    for name, column in columns.items():
        is_named = len(columns) > 1 and is_identifier(name) and not np.isin(column, (-1, 0, 1)).all()
        is_odd = whole == [name] and n_real > 1 and len(column) >= _FEW and len(np.unique(column)) == len(column)
        if is_named or is_odd:
            why = "is named like an identifier" if is_named else "is the only one of whole numbers, all different"
            way = "rename it" if is_named else "save it as floats"
            raise HashbenchError(f"column {name!r} of {path} {why}. Remove it, or {way} if it is a feature.")


def as_numbers(cells: Any) -> tuple[AnyArray | None, int | None]:
    """Return a column as numbers, None if few are, and the row of the first cell that is not a number, if any."""
    column = np.asarray(cells)
    if column.dtype.kind not in "OSU":
        return (column, None) if column.dtype.kind in "biufc" else (None, None)  # others are dates
    texts = [None if is_missing(cell) else str(cell).strip() for cell in column.tolist()]
    numbers = [text if text is not None and _NUMBER.fullmatch(text) else None for text in texts]
    n_missing, n_others = texts.count(None), numbers.count(None)
    if 2 * (len(texts) - n_others) <= len(texts) - n_missing:
        return None, None
    if all(number is not None and _WHOLE.fullmatch(number) for number in numbers):
        whole = [int(number) for number in numbers if number]
        for limits in map(np.iinfo, (np.int64, np.uint64)):
            if limits.min <= min(whole) and max(whole) <= limits.max:
                return np.array(whole, limits.dtype), None
    is_stray = (text is not None and number is None for text, number in zip(texts, numbers, strict=True))
    stray = next((row for row, is_one in enumerate(is_stray) if is_one), None)
    return np.array([float(number or "nan") for number in numbers]), stray


def may_be_hexadecimal(texts: list[str], n_bits: int | None = None) -> bool:
    """Return whether numbers may be hexadecimal strings of ``n_bits``: equally long, and short or with leading zeros.

    >>> may_be_hexadecimal(["1234567890", "2345678901"]), may_be_hexadecimal(["1234567890", "2345678901"], 32)
    (True, False)
    """
    texts = [text.strip() for text in texts]
    fits = n_bits is None or (bool(texts) and len(texts[0]) == -(-n_bits // 4))
    return (
        fits
        and len(set(map(len, texts))) == 1
        and all(text.isdecimal() and (len(text) <= _HEXADECIMAL or text.startswith("0")) for text in texts)
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
    names, second = (row.iloc[int(has_index) :] for row in (first, top.iloc[-1]))
    is_number, is_below = (pd.to_numeric(row, errors="coerce").notna() for row in (names, second))
    n_numbers = int(is_number.sum())
    is_counted = names[is_number].tolist() == [str(number) for number in range(n_numbers)]
    if 0 < n_numbers < len(names) and not (is_counted and n_numbers > 1):
        raise HashbenchError(
            f"the first line of {path} mixes {n_numbers} numbers with words, so it may be names or an item; add a "
            "first line of names, one per column."
        )
    has_names = n_numbers == 0 or (is_counted and (has_index or n_numbers > 1))
    _check_names(names if has_names else (), path)
    index = 0 if has_index and has_names else None
    header = 0 if has_names else None
    table = pd.read_csv(path, header=header, index_col=index, low_memory=False)  # one dtype per column
    is_name = (is_below & ~is_number).any()  # a word above a number
    may_be_item = is_counted and not (has_index or is_name) and second[is_number].str.fullmatch(r"[+-]?\d+").all()
    if may_be_item and n_numbers > 1:
        are_bits = n_numbers > 2 and table.loc[:, [*is_number]].isin(_SIGNS).all(axis=None)  # 2 is no bit
        if not are_bits:
            raise HashbenchError(
                f"the first line of {path} counts from 0 to {n_numbers - 1}, so it may be names or an item; add a line "
                "of names above it, one per column."
            )
    return table, header, index
