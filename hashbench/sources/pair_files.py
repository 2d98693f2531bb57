"""Ids of items in files, and labelled pairs in tables: two ids, and whether they are the same."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hashbench._typing import IntArray
from hashbench.errors import HashbenchError, counted
from hashbench.sources.array_files import opened_arrays, read_array, split_spec
from hashbench.sources.formats import ID_KEYS
from hashbench.sources.tables import TABLE_SUFFIXES, open_table
from hashbench.store.inputs import check_file

_SAME = dict.fromkeys(("1", "true", "yes", "same"), 1) | dict.fromkeys(("0", "false", "no", "different"), 0)


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


def names_of(spec: str | None) -> list[str] | None:
    """Return the id of each row of a file of codes; None if it has none, or there is no file."""
    path = None if spec is None else split_spec(spec)[0]
    name = None if path is None or not path.is_file() else _name_of_ids(path)
    return None if path is None or name is None else _ids(path, name)


def refuse_other_ids(arrays: Iterable[Sequence[str]]) -> None:
    """Refuse arrays of the same items, such as codes and labels, whose files have different ids in some row.

    Each array lies in one file, or in several shards. Ids that share nothing with the first array's are taken to be of
    another kind, and are not compared.
    """
    files = dict.fromkeys(tuple(split_spec(spec)[0] for spec in specs) for specs in arrays)
    all_ids = {paths[0]: ids for paths in files if (ids := _plain_ids(paths))} if len(files) > 1 else {}
    for path, ids in [*all_ids.items()][1:]:
        first_path, first = next(iter(all_ids.items()))
        row = next((row for row, (cell, other) in enumerate(zip(first, ids, strict=False)) if cell != other), None)
        if row is not None and not set(first).isdisjoint(ids):
            raise HashbenchError(
                f"{first_path} and {path} have different ids of the same items, first in row {row:,} (the first is 0): "
                f"{first[row]} and {ids[row]}. Give both the same items in the same order. If one file numbers its "
                "items differently, give its ids another name than id."
            )


def _plain_ids(paths: Sequence[Path]) -> list[str]:
    """Read the ids of all items, numbers without leading zeros; none if a file has none."""
    names = [_name_of_ids(path) for path in paths]
    with_ids = [] if None in names else zip(paths, names, strict=True)
    ids = [cell for path, name in with_ids for cell in _ids(path, str(name))]
    return [cell.lstrip("0") or "0" if cell.isdigit() else cell for cell in ids]


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
    expected = [*(f"one of the {words}" for _, words in ids), "1 (true, yes, same) or 0 (false, no, different)"]
    for column, known, words in zip(columns, rows_of, expected, strict=True):
        for row, cell in enumerate(column):
            if known.get(cell, -1) < 0:
                raise HashbenchError(f"row {row:,} of {path} (the first is 0) has {cell!r}, expected {words}.")
    return np.array([[*map(known.get, column)] for column, known in zip(columns, rows_of, strict=True)]).T
