"""The committed results: long rows in ``results/<dataset>.csv``, sorted, six decimals, LF."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError
from hashbench.storage import locked_folder, write_text


@dataclass(frozen=True, order=True)
class Row:
    """One metric of one method on one dataset; the fields up to ``metric`` are its key.

    Parameters
    ----------
    dataset, features, method : str
        Names.
    params : str
        The method's parameters as sorted JSON.
    n_bits, seed : int
        Code length and random state.
    metric : str
        Canonical name.
    value, low, high : str
        Mean over the queries of expectation, minimum and maximum over tie orders; six decimals.
    n_queries, n_undefined : int
        All queries, and those without relevant items, which are left out of the means.
    dataset_fingerprint : str
        Content of the dataset.
    method_version : int
        Version of the method.
    """

    dataset: str
    features: str
    method: str
    params: str
    n_bits: int
    seed: int
    metric: str
    value: str
    low: str
    high: str
    n_queries: int
    n_undefined: int
    dataset_fingerprint: str
    method_version: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the row."""
        return astuple(self)[:7]


COLUMNS = tuple(field.name for field in fields(Row))


def params_text(params: Mapping[str, Any]) -> str:
    """Write parameters as one canonical line.

    Parameters
    ----------
    params : mapping
        Names and JSON values.

    Returns
    -------
    str
        Compact JSON with sorted keys.

    Examples
    --------
    >>> params_text({"n_iter": 50})
    '{"n_iter": 50}'
    """
    return canonical_json(dict(params))


def read_rows(path: Path) -> list[Row]:
    """Read a results file.

    Parameters
    ----------
    path : Path
        A CSV file; a missing one has no rows.

    Returns
    -------
    list of Row
        In the file's order.

    Raises
    ------
    HashbenchError
        If the file has other columns or values.
    """
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise HashbenchError(
                f"{path} has columns {','.join(reader.fieldnames or ())}, expected {','.join(COLUMNS)}. "
                "Restore it from version control, or move it away and run again."
            )
        try:
            return [
                Row(**{field.name: field.type(record[field.name]) for field in fields(Row)})  # type: ignore[operator]
                for record in reader
            ]
        except (TypeError, ValueError) as error:
            raise HashbenchError(f"{path}, line {reader.line_num}: {error}.") from error


def merge_rows(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to a results file; a row of the same key is replaced.

    Parameters
    ----------
    path : Path
        The CSV file to be made or changed, whole or not at all.
    rows : iterable of Row
        What to add.
    """
    with locked_folder(path.parent):
        merged = {row.key: row for row in read_rows(path)}
        merged.update((row.key, row) for row in rows)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(astuple(row) for row in sorted(merged.values()))
        write_text(path, text.getvalue())


def read_results(folder: Path) -> pd.DataFrame:
    """Read all results of a folder.

    Parameters
    ----------
    folder : Path
        Holds ``<dataset>.csv`` files.

    Returns
    -------
    DataFrame
        One row a `Row`, with float ``value``, ``low`` and ``high``.

    Raises
    ------
    HashbenchError
        If there are no results.
    """
    rows = [row for path in sorted(folder.glob("*.csv")) for row in read_rows(path)]
    if not rows:
        raise HashbenchError(f"there are no results in {folder}. Make some: hashbench run --method itq --bits 32.")
    frame = pd.DataFrame([astuple(row) for row in rows], columns=list(COLUMNS))
    return frame.astype({"value": float, "low": float, "high": float})
