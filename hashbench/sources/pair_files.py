"""Ids of items in files, and labelled pairs in tables: two ids, and whether they are the same."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from hashbench._typing import IntArray
from hashbench.errors import HashbenchError, counted
from hashbench.sources.array_files import opened_arrays, read_array, split_spec
from hashbench.sources.formats import ID_KEYS
from hashbench.sources.tables import TABLE_SUFFIXES, open_table
from hashbench.store.inputs import check_file

_SAME = {"1": 1, "true": 1, "0": 0, "false": 0}


def read_ids(spec: str, n_codes: int) -> tuple[dict[str, int], str]:
    """Return the row of each id in a file of codes, and what ids are; row numbers if it has none."""
    path, _ = split_spec(spec)
    name = _name_of_ids(path)
    if name is None:
        hint = "To use ids, name a column or array of the codes' file id"
        return {str(row): row for row in range(n_codes)}, f"row numbers of {path}, from 0 to {n_codes - 1:,}. {hint}"
    ids = _ids(path, name)
    rows = dict(zip(ids, range(len(ids)), strict=True))
    if not len(rows) == len(ids) == n_codes:
        raise HashbenchError(
            f"{path}:{name} has {counted(len(rows), 'distinct id')} in {counted(len(ids), 'row')} for "
            f"{counted(n_codes, 'code')}. Give each code its own id."
        )
    return rows, f"ids in {path}:{name}"


def refuse_other_ids(arrays: Iterable[Sequence[str]]) -> None:
    """Refuse arrays of the same items, such as codes and labels, whose files have different ids in some row.

    Each array lies in one file, or in several shards. Ids that share nothing with the first array's are taken to be of
    another kind, and are not compared.
    """
    files = dict.fromkeys(tuple(split_spec(spec)[0] for spec in specs) for specs in arrays)
    if len(files) < 2:
        return
    named = [[(path, name) for path in paths if (name := _name_of_ids(path))] for paths in files]
    with_ids = [shards for shards, paths in zip(named, files, strict=True) if len(shards) == len(paths)]
    if len(with_ids) < 2:
        return
    differing: dict[int, str] = {}  # of each array after the first, where
    for row, ((path, cell), *others) in enumerate(zip(*map(_rows_of_ids, with_ids), strict=False)):
        for number, (other_path, other_cell) in enumerate(others, start=1):
            if cell != other_cell and number not in differing:
                place = f"first in row {row:,} (the first is 0): {cell} and {other_cell}"
                differing[number] = f"{path} and {other_path} have different ids of the same items, {place}"
        if len(differing) == len(others):
            break
    known = {cell for _, cell in _rows_of_ids(with_ids[0])} if differing else set()
    for number, sentence in differing.items():
        if any(cell in known for _, cell in _rows_of_ids(with_ids[number])):
            raise HashbenchError(
                f"{sentence}. Give both the same items in the same order. If one file numbers its items differently, "
                "give its ids another name than id."
            )


def _rows_of_ids(shards: Sequence[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    """Yield the file and the id of each item; numbers without leading zeros."""
    for path, name in shards:
        yield from ((path, cell.lstrip("0") or "0" if cell.isdigit() else cell) for cell in _ids(path, name))


def _name_of_ids(path: Path) -> str | None:
    if path.suffix.lower() == ".csv":  # which may be long
        check_file(path)
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            names: Iterable[str] = next(csv.reader(file), [])
        return _first_of_ids(names)
    with opened_arrays(path) as arrays:
        return _first_of_ids(arrays)


def _first_of_ids(names: Iterable[str]) -> str | None:
    """Return the name of ids, whatever its case if none is exact."""
    by_name = {name.strip().lower(): name for name in names} | {name: name for name in names}
    return next((by_name[key] for key in ID_KEYS if key in by_name), None)


def _ids(path: Path, name: str) -> list[str]:
    ids = read_array(f"{path}:{name}", ID_KEYS).ravel()
    if ids.dtype.kind == "f" and (ids == np.floor(ids)).all():  # as MATLAB stores numbers
        ids = ids.astype(np.int64)
    return [str(cell) for cell in ids.tolist()]


def read_pairs(path: Path, ids: Sequence[tuple[dict[str, int], str]]) -> IntArray:
    """Read labelled pairs as rows of codes of queries and of the database, and 1 or 0, (n_pairs, 3)."""
    check_file(path)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise HashbenchError(f"labelled pairs are read from a table such as .csv or .parquet, got {path.name}.")
    table = open_table(path)
    names = [*table.columns]
    if len(names) != 3:
        raise HashbenchError(
            f"{path} has {counted(len(names), 'column')}, expected three: two ids, and 1 if they are the same or else "
            "0."
        )
    columns = [[str(cell).strip() for cell in table.texts(name)] for name in names]
    if not columns[0]:
        raise HashbenchError(f"{path} has a header and no pairs. Give one pair per row.")
    rows_of = [*(known for known, _ in ids), {cell: _SAME.get(cell.lower(), -1) for cell in columns[2]}]
    expected = [*(f"one of the {words}" for _, words in ids), "0 or 1"]
    for column, known, words in zip(columns, rows_of, expected, strict=True):
        for row, cell in enumerate(column):
            if known.get(cell, -1) < 0:
                raise HashbenchError(f"row {row:,} of {path} (the first is 0) has {cell!r}, expected {words}.")
    return np.array([[*map(known.get, column)] for column, known in zip(columns, rows_of, strict=True)]).T
