"""The committed results: long rows in ``results/<dataset>.csv``, sorted, six decimals, LF."""

import csv
import io
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench.errors import HashbenchError
from hashbench.store.files import locked_folder, write_text

if TYPE_CHECKING:
    import pandas as pd


class Row(NamedTuple):
    """One metric of one method on one dataset; the fields up to ``metric`` are its key."""

    dataset: str
    features: str
    method: str
    params: str  # the method's, as sorted JSON
    n_bits: int
    seed: int
    metric: str  # canonical name
    value: str  # mean over the queries of the expectation over tie orders; six decimals
    low: str  # likewise of the minimum
    high: str  # likewise of the maximum
    n_queries: int
    n_undefined: int  # those without relevant items, which are left out of the means
    dataset_fingerprint: str  # of its content
    method_version: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the row."""
        return self[:7]


COLUMNS = Row._fields
UNKNOWN = "unknown"
_KINDS = {"n_bits": int, "seed": int, "n_queries": int, "n_undefined": int, "method_version": int}
_OF_OLDER_FILES = {  # what a row has whose file lacks the column
    "low": "nan",
    "high": "nan",
    "n_undefined": "0",
    "dataset_fingerprint": UNKNOWN,
    "method_version": "1",
}


def read_rows(path: Path) -> list[Row]:
    """Read a results file, in its order; a missing one has no rows."""
    if not path.is_file():
        return []
    return list(_parsed(path, _state(path))[0])


def _is_canonical(path: Path) -> bool:
    """Tell whether a results file is as we would write it: sorted, each key once, all columns."""
    return path.is_file() and _parsed(path, _state(path))[1]


def _state(path: Path) -> tuple[int, ...]:
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size


@lru_cache(maxsize=16)
def _parsed(path: Path, state: tuple[int, ...]) -> tuple[list[Row], bool]:
    """Parse a file once for each state; files are replaced, not changed."""
    content = path.read_bytes()
    rows = parse_rows(content, str(path))
    return rows, content == csv_text(COLUMNS, sorted({row.key: row for row in rows}.values())).encode()


def parse_rows(content: bytes, name: str) -> list[Row]:
    """Parse a results file, called ``name`` in errors; its header is its schema.

    Columns that say how far to trust a value may be missing, as in a file of an older version: then the tie range is
    NaN, no query is undefined, the dataset's fingerprint is ``unknown`` and the method's version 1.
    """
    try:
        lines = list(csv.reader(io.StringIO(content.decode(), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise HashbenchError(f"{name} is no results file: {error}. Restore it from version control.") from error
    header = lines[0] if lines else []
    beyond = [column for column in header if column not in COLUMNS]
    if (header[:1] and header[0].startswith("#")) or (beyond and set(COLUMNS) <= set(header)):
        raise HashbenchError(
            f"{name} has {', '.join(beyond)} in its header, which this version of hashbench does not know: a newer one "
            "wrote it. Upgrade hashbench."
        )
    if header != [column for column in COLUMNS if column in header or column not in _OF_OLDER_FILES]:
        raise HashbenchError(
            f"{name} has columns {','.join(header) or 'none'}, expected {','.join(COLUMNS)}. "
            "Restore it from version control, or move it away and run again."
        )
    return [_row(name, header, number, line) for number, line in enumerate(lines[1:], start=2)]


def _row(name: str, header: list[str], number: int, line: list[str]) -> Row:
    try:
        texts = _OF_OLDER_FILES | dict(zip(header, line, strict=True))
        cells: list[Any] = [_KINDS.get(column, str)(texts[column]) for column in COLUMNS]
        row = Row(*cells)
        for text in (row.value, row.low, row.high):
            float(text)
        if not isinstance(json.loads(row.params), dict):
            raise ValueError(f"params {row.params!r} are no JSON object")
    except (TypeError, ValueError) as error:
        raise HashbenchError(f"{name}, line {number}: {error}. Restore it from version control.") from error
    return row


def merge_rows(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to a results file, whole or not at all; a row of the same key is replaced."""
    with locked_folder(path.parent):
        known = {row.key: row for row in read_rows(path)}
        added = {row.key: row for row in rows}
        if not _is_canonical(path) or any(known.get(key) != row for key, row in added.items()):
            write_text(path, csv_text(COLUMNS, sorted((known | added).values())))


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Write CSV: quoted where need be, LF, the last line ended too."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def read_results(folder: Path) -> "pd.DataFrame":
    """Read all results of a folder, a `Row` a line, ``value``, ``low`` and ``high`` as float; refuse one without."""
    import pandas as pd

    rows = [row for path in sorted(folder.glob("*.csv")) for row in read_rows(path)]
    if not rows:
        raise HashbenchError(f"there are no results in {folder}. Make some: hashbench run --method itq --bits 32.")
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"value": float, "low": float, "high": float})
