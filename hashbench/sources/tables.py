"""Tables, .csv and .parquet, as arrays: which columns are features, labels or words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError
from hashbench.sources.formats import FEATURE_KEYS, LABEL_KEYS
from hashbench.sources.parquet_columns import import_parquet
from hashbench.store.inputs import check_fits

_SHOWN = 40  # characters of a cell
_SIGNS = [-1, 0, 1, "-1", "0", "1"]
_TRIED = 1_000  # rows of a .csv file whose texts are examined
_HEXADECIMAL = 16  # digits of 64 bits; in decimal they are mostly 17 to 20


class TableFile(Mapping[str, AnyArray]):
    """The columns of a table by name, and the numeric columns together as ``features``.

    Columns with a label's name and the column ``aside`` are not features, nor are ``words``, the columns in which
    numbers are a minority. Where they are a majority but not all, reading ``features`` raises an error.
    """

    def __init__(self, path: Path, aside: str | None = None) -> None:
        self.path = path
        table = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
        self.columns: dict[str, AnyArray] = {}
        self.words: list[str] = []
        self._numeric: list[str] = []
        self._mixed: dict[str, int] = {}  # the first row without a number
        self._keeps_types = path.suffix.lower() == ".parquet"
        self._texts: dict[str, AnyArray] = {}  # columns of Parquet whose texts are numbers
        for name, (_, column) in zip(table.columns.astype(str), table.items(), strict=True):
            if len(column) and isinstance(column.iloc[0], (list, tuple, np.ndarray)):
                self.columns[name] = np.stack([np.asarray(cell) for cell in column])
                continue
            self.columns[name] = column.to_numpy()
            if name in (*LABEL_KEYS, aside):
                continue
            numbers, stray = as_numbers(column)
            if numbers is None:
                self.words.append(name)
            elif stray is not None:
                self._mixed[name] = stray
            else:
                if self._keeps_types and any(isinstance(cell, str) for cell in self.columns[name][:1]):
                    self._texts[name] = self.columns[name]
                self.columns[name] = numbers
                self._numeric.append(name)

    @property
    def _has_features(self) -> bool:
        is_matrix = any(key in self.columns and self.columns[key].ndim == 2 for key in FEATURE_KEYS)
        return bool(self._numeric or self._mixed) and not is_matrix

    def __getitem__(self, name: str) -> AnyArray:
        if name != "features" or not self._has_features:
            return self.columns[name]
        for mixed, row in self._mixed.items():
            raise HashbenchError(
                f"column {mixed!r} of {self.path} holds numbers, but {str(self.columns[mixed][row])[:_SHOWN]!r} in row "
                f"{row} (the first is 0). Fix that cell, or remove the column."
            )
        return np.column_stack([self.columns[key] for key in self._numeric])

    def as_written(self, name: str) -> AnyArray:
        """Return a column as Parquet keeps it: texts that look like numbers stay texts."""
        return self._texts.get(name, self[name])

    def first_texts(self, name: str) -> list[str]:
        """Read the first cells of a numeric column as text; empty for Parquet, which stores numbers."""
        if self._keeps_types:
            return []
        return self._read_texts(name, nrows=_TRIED).tolist()  # type: ignore[no-any-return]

    def texts(self, name: str) -> AnyArray:
        """Return a column of texts, also of texts such as 001 and NA, which pandas reads as numbers in a .csv file."""
        if self._keeps_types:
            return self.as_written(name)
        return self._read_texts(name, keep_default_na=False, na_values=[""])

    def labels(self, name: str) -> AnyArray:
        """Return a column of labels: numbers, unless one is written as 01, or words."""
        if self._keeps_types or self.columns[name].dtype.kind not in "iuf":
            return self.columns[name]
        texts = self._read_texts(name)
        is_padded = any(isinstance(text, str) and re.match(r"[+-]?0\d", text.strip()) for text in texts)
        return texts if is_padded else self.columns[name]

    def _read_texts(self, name: str, **options: Any) -> AnyArray:
        """Read a column of a .csv file again, its cells as texts, NaN if missing."""
        table = _read_csv(self.path, dtype=str, **options)
        return table.rename(columns=str)[name].to_numpy(dtype=object)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        yield from self.columns
        if self._has_features and "features" not in self.columns:
            yield "features"

    def __len__(self) -> int:
        return len(list(iter(self)))


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


def _read_parquet(path: Path) -> Any:
    import pandas as pd

    parquet = import_parquet(path)
    with parquet.ParquetFile(path) as file:
        about = file.metadata
        _check_names(file.schema_arrow.names, path)
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    n_bytes = max(sum(group.total_byte_size for group in groups), 8 * about.num_rows * about.num_columns)
    what = f"{path}, a table of {about.num_rows:,} rows,"
    check_fits(n_bytes, what)
    check_fits(n_bytes + _size_of_texts(parquet, path), what)
    return pd.read_parquet(path)


def _size_of_texts(parquet: Any, path: Path) -> int:
    """Sum the lengths of all texts of a table, which stores equal texts once, without expanding them."""
    compute: Any = import_module("pyarrow.compute")
    with parquet.ParquetFile(path) as file:
        columns = [file.schema.column(number) for number in range(len(file.schema))]
    names = [
        column.path for column in columns if column.physical_type == "BYTE_ARRAY" and not column.max_repetition_level
    ]
    n_bytes = 0
    with parquet.ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(columns=names) if names else ():
            for texts in filter(lambda column: hasattr(column, "dictionary"), batch.columns):
                lengths = compute.binary_length(texts.dictionary).take(texts.indices)
                n_bytes += compute.sum(lengths).as_py() or 0
    return n_bytes


def _read_csv(path: Path, **options: Any) -> Any:
    """Read a table whose first line may hold names: words, or the column numbers 0, 1, 2, ... of pandas."""
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
    table = pd.read_csv(path, header=header, index_col=index, low_memory=False, **options)  # one dtype per column
    may_be_item = is_counted and not has_index and len(names) > 1 and top.iloc[-1].str.fullmatch(r"[+-]?\d+").all()
    if may_be_item and not (len(names) > 2 and table.isin(_SIGNS).all(axis=None)):  # 2 is no bit
        raise HashbenchError(
            f"the first line of {path} counts from 0 to {len(names) - 1}, so it may be names or an item; add a first "
            "line of names, one per column."
        )
    return table
