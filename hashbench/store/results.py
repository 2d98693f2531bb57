"""The committed results: long rows in ``results/<dataset>.csv``, sorted, six decimals, LF.

Those of datasets with unseen classes, of which there are several a fold, stand together in
``results/<dataset>-unseen.csv``.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._validation import FORMULA, check_name, check_words, has_markup
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError, one_line, unknown_name
from hashbench.store.files import locked_folder, write_bytes, write_text
from hashbench.store.inputs import check_file, reading
from hashbench.unseen import split_name

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
    tie_sd: str  # estimated standard deviation of it over random orders of the database; empty if not known
    low: str  # as value, of the minimum over tie orders
    high: str  # as value, of the maximum
    n_queries: int
    n_undefined: int  # those without relevant items, which are left out of the means
    dataset_fingerprint: str  # of its content
    method_version: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the row."""
        return self[:7]


class Unreadable(HashbenchError):
    """A results file that cannot be read: what was found in it, and what to do about one that can be changed."""

    def __str__(self) -> str:
        return " ".join(self.args)


_Rows = dict[tuple[Any, ...], Row]  # by key
COLUMNS = Row._fields
NUMBERS = ("value", "tie_sd", "low", "high")
UNKNOWN = "unknown"
OWN = {"codes": "own"}  # the parameters that mark rows of users' own codes
SHOWN = ("group", "label")  # those that say how such rows are shown
MAX_LABEL = 40  # characters
_ROUNDING = 1.5e-6  # sums in other orders may end on either side of a sixth decimal
_KINDS = {"n_bits": int, "seed": int, "n_queries": int, "n_undefined": int, "method_version": int}
_NAMES_OF_FILES = ("dataset", "method", "dataset_fingerprint")
_METRIC = re.compile(r"[A-Za-z]\w*(@r?(0|[1-9]\d*))?(:[a-z0-9=-]+)*", re.ASCII)
_RESTORE = "Restore it from version control."
_RESTORE_OR_RUN = "Restore it from version control, or move it away and run again."
_CONFLICT = re.compile(rb"^(<{7}|>{7}|\|{7}|={7}$)[^\n]*", re.MULTILINE)
_OF_OLDER_FILES = {  # what a row has whose file lacks the column
    "tie_sd": "",
    "low": "nan",
    "high": "nan",
    "n_undefined": "0",
    "dataset_fingerprint": UNKNOWN,
    "method_version": "1",
}


def read_rows(path: Path) -> list[Row]:
    """Read a results file, in its order; a missing one has no rows."""
    with reading(path, "results"):
        if not path.exists() and not path.is_symlink():
            return []
        check_file(path)
        return list(_parsed(path, _state(path))[0])


def _state(path: Path) -> tuple[int, ...]:
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size


@lru_cache(maxsize=16)
def _parsed(path: Path, state: tuple[int, ...]) -> tuple[list[Row], bool]:
    """Parse a file once for each state, as files are replaced, not changed; and tell if it is as we would write it."""
    content = path.read_bytes()
    rows = list(unite([(content, str(path))]).values())
    return rows, content == csv_text(COLUMNS, sorted(rows)).encode()


def unite(files: Iterable[tuple[bytes, str]], *, is_past: bool = False) -> dict[tuple[Any, ...], Row]:
    """Parse results files, each with what to call it in errors, and give their rows by key; refuse a key there twice.

    In files of the past, which nobody can mend, line ends, a byte order mark and a row's exact copies do not matter.

    The header is the schema. Columns that say how far to trust a value may be missing, as in a file of an older
    version: then the tie range is NaN, its deviation empty, no query is undefined, the dataset's fingerprint is
    ``unknown`` and the method's version 1.
    """
    rows: dict[tuple[Any, ...], Row] = {}
    places: dict[tuple[Any, ...], tuple[str, int]] = {}
    for content, name in files:
        if is_past:
            content = content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")
        for number, row in _parse(content, name):
            if row.key in rows and not (is_past and rows[row.key] == row):
                other, line = places[row.key]
                first = f"line {line}" if other == name else f"{other}, line {line}"
                how = "the same" if rows[row.key] == row else "other"
                raise Unreadable(
                    f"{name}, line {number}, holds {' '.join(map(str, row.key))} a second time, after {first}, with "
                    f"{how} numbers.",
                    "Delete one of the two lines, or both and run again.",
                )
            rows[row.key], places[row.key] = row, (name, number)
    return rows


def _parse(content: bytes, name: str) -> Iterator[tuple[int, Row]]:
    """Parse the rows of a results file, each with the number of its line."""
    _check_text(content, name)
    try:
        reader = csv.reader(io.StringIO(content.decode(), newline=""))
        lines = [(reader.line_num, line) for line in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{name} is no results file: {error}.", _RESTORE) from error
    header = lines[0][1] if lines else []
    beyond = [column for column in header if column not in COLUMNS]
    if header and not any(set(line) & set(COLUMNS) for _, line in lines[:2]):
        raise Unreadable(
            f"{name} is no results file: its first line has none of the columns {','.join(COLUMNS)}.",
            "Give a file that hashbench run wrote, or move this one out of the folder of results.",
        )
    if (header[:1] and header[0].startswith("#")) or (beyond and set(COLUMNS) <= set(header)):
        raise HashbenchError(
            f"{name} has {', '.join(beyond)} in its header, which this version of hashbench does not know: a newer one "
            "wrote it. Upgrade hashbench."
        )
    lacking = [column for column in COLUMNS if column not in header and column not in _OF_OLDER_FILES]
    if not header or header != [column for column in COLUMNS if column in header]:
        raise Unreadable(
            f"{name} has columns {','.join(header) or 'none'}, expected {','.join(COLUMNS)}.", _RESTORE_OR_RUN
        )
    if lacking:
        raise Unreadable(
            f"{name} lacks column{'s' * (len(lacking) > 1)} {', '.join(lacking)}, without which its rows say nothing.",
            _RESTORE_OR_RUN,
        )
    for number, line in lines[1:]:
        yield number, _row(name, header, number, line)


def _check_text(content: bytes, name: str) -> None:
    """Refuse what git and editors leave in a text, each in its own words."""
    found = _CONFLICT.search(content)
    if found:
        number = content.count(b"\n", 0, found.start()) + 1
        raise Unreadable(
            f"{name}, line {number}, is a conflict marker of git ({found[0].decode(errors='replace').strip()[:40]}): a "
            "merge left both sides in.",
            "Take one side (git checkout --ours or --theirs, and the file) and run again what the other had; or unite "
            "them by key: hashbench results merge --help.",
        )
    if content.startswith(codecs.BOM_UTF8):
        raise HashbenchError(
            f"{name} begins with a byte order mark, as some editors and spreadsheets write it. Save it as UTF-8 "
            "without one, or restore it from version control."
        )
    if b"\r\n" in content:
        raise HashbenchError(
            f"{name} has lines that end in CR LF, as on Windows. Say `results/*.csv text eol=lf` in .gitattributes and "
            "restore it from version control."
        )


def _row(name: str, header: list[str], number: int, line: list[str]) -> Row:
    try:
        if len(line) != len(header):
            raise ValueError(f"it has {len(line)} cells, expected {len(header)}")
        texts = _OF_OLDER_FILES | dict(zip(header, line, strict=True))
        cells: list[Any] = [_KINDS.get(column, str)(texts[column]) for column in COLUMNS]
        row = Row(*cells)
        _check_numbers(row)
        for key in _NAMES_OF_FILES:
            check_name(getattr(row, key), f"column {key}")
        _check_spelling(row)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{name}, line {number}: {one_line(error).rstrip('.')}.", _RESTORE) from error
    return row


def _check_spelling(row: Row) -> None:
    """Refuse a second spelling of what is a key."""
    check_words(row.features, "column features")
    if not _METRIC.fullmatch(row.metric):
        raise ValueError(f"metric {row.metric!r} is spelled like none")
    _check_params(row.params)


@lru_cache(maxsize=1024)  # many rows have the same
def _check_params(text: str) -> None:
    params = json.loads(text)
    if not isinstance(params, dict):
        raise ValueError(f"params {text!r} are no JSON object")
    if unnamed := [key for key in params if not key.isidentifier()]:
        raise ValueError(f"params has {unnamed[0]!r}, expected names of parameters: letters, digits and _")
    check_shown(params)
    if text != canonical_json(params):
        raise ValueError(f"params {text!r} are spelled {canonical_json(params)!r} by hashbench")


def check_shown(params: Mapping[str, Any]) -> None:
    """Refuse a group or label of users' own codes that a table could not show."""
    if params.get("codes") != OWN["codes"]:
        return
    if "group" in params:
        from hashbench.method import GROUPS

        if params["group"] not in GROUPS:
            raise unknown_name("group", str(params["group"]), GROUPS)
    if "label" in params:
        label = params["label"]
        if not isinstance(label, str) or len(label) > MAX_LABEL or "=" in label or has_markup(label):
            raise HashbenchError(f"a label is a text of up to {MAX_LABEL} characters without =<>|`, got {label!r}.")
        check_words(label, "a label")


def unshown(params: str) -> str:
    """Leave out of parameters (JSON) what says only how users' own codes are shown."""
    if '"codes"' not in params or (read := json.loads(params)).get("codes") != OWN["codes"]:
        return params
    return canonical_json({key: value for key, value in read.items() if key not in SHOWN})


def _check_numbers(row: Row) -> None:
    """Refuse numbers that no run gives; NaN stands for a mean of no query, and for a range that is not known."""
    value, low, high = (float(text) for text in (row.value, row.low, row.high))
    if not all(number != number or 0 <= number <= 1 for number in (value, low, high)):
        raise ValueError(f"value {row.value}, low {row.low} and high {row.high} are not all between 0 and 1")
    if value < low - _ROUNDING or value > high + _ROUNDING:
        raise ValueError(f"value {row.value} lies outside its range over tie orders, {row.low} to {row.high}")
    tie_sd = float(row.tie_sd or 0)
    if not tie_sd >= 0 or tie_sd > (high - low) / 2 + _ROUNDING:
        raise ValueError(f"tie_sd {row.tie_sd} is not between 0 and half of the range, {row.low} to {row.high}")
    if not 0 <= row.n_undefined <= row.n_queries or row.n_queries < 1:
        raise ValueError(f"{row.n_undefined} of {row.n_queries} queries are undefined")
    if value != value and row.n_undefined < row.n_queries:
        n_scored = f"{row.n_queries - row.n_undefined} of {row.n_queries} queries have a score"
        raise ValueError(f"value is {row.value}, {row.low} to {row.high}, though {n_scored}")
    if row.n_bits < 1 or row.seed < 0 or row.method_version < 1:
        raise ValueError(f"n_bits is {row.n_bits}, seed {row.seed} and method_version {row.method_version}")


def results_path(folder: str | Path, dataset: str) -> Path:
    """Tell in which file of a folder the rows of a dataset are."""
    base, protocol = split_name(dataset)
    return Path(folder) / f"{base}{'-unseen' if protocol else ''}.csv"


def merge_rows(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to a results file, whole or not at all; a row of the same key is replaced, however it is shown."""
    with locked_folder(path.parent):
        before = {row.key: row for row in read_rows(path)}
        added = {row.key: row for row in rows}
        taken = {(*key[:3], unshown(key[3]), *key[4:]) for key in added}
        known = {key: row for key, row in before.items() if (*key[:3], unshown(key[3]), *key[4:]) not in taken}
        is_in_order = path.is_file() and _parsed(path, _state(path))[1]
        if not is_in_order or known | added != before:
            write_text(path, csv_text(COLUMNS, sorted((known | added).values())))


def merge_files(base: Path, ours: Path, theirs: Path, name: str | None = None) -> list[tuple[Any, ...]]:
    """Unite what two sides made of a results file, row by row, and write it to ``ours``.

    A side that left a row as it was in ``base`` gives way to the other. Returns the keys that both changed, each in its
    own way: there both rows stand between git's markers, at which every reader stops. A file may be empty, as git gives
    the base of one that both added. ``name`` is what git calls the file; it keeps nothing but ``ours``, to which both
    sides go whole then, likewise marked, if one is refused.
    """
    contents = [read_content(path) for path in (base, ours, theirs)]
    names = [f"{name} ({side})" for side in ("base", "ours", "theirs")] if name else map(str, (base, ours, theirs))
    try:
        merged, conflicts = _merge(*(unite([file]) if file[0] else {} for file in zip(contents, names, strict=True)))
    except HashbenchError as error:
        if name is None:
            raise
        write_bytes(ours, _between_markers(*contents[1:]))
        raise HashbenchError(
            f"{error} Both sides stand whole between git's markers in {name}; keep one of them."
        ) from error
    write_bytes(ours, merged)
    return conflicts


def _merge(old: _Rows, mine: _Rows, other: _Rows) -> tuple[bytes, list[tuple[Any, ...]]]:
    datasets = sorted({key[0] for key in old | mine | other})
    if len({results_path("", dataset) for dataset in datasets}) > 1:
        raise HashbenchError(
            f"the files hold results of {' and '.join(datasets)}, and a results file is of one dataset. Give three "
            "versions of the same file."
        )
    merged, conflicts = csv_text(COLUMNS, []).encode(), []
    for key in sorted(old | mine | other):
        sides = old.get(key), mine.get(key), other.get(key)
        if sides[1] != sides[2] and sides[0] not in sides[1:]:
            conflicts.append(key)
            merged += _between_markers(*map(_line, sides[1:]))
        else:
            merged += _line(sides[2] if sides[1] == sides[0] else sides[1])
    return merged, conflicts


def _line(row: Row | None) -> bytes:
    """Write a row as a line; nothing if there is none."""
    return b"" if row is None else csv_text(row, []).encode()


def _between_markers(ours: bytes, theirs: bytes) -> bytes:
    """Lay out two sides as git does where both changed the same lines, each line ended."""
    left, right = (side + b"\n" if side[-1:] not in (b"", b"\n") else side for side in (ours, theirs))
    return b"<<<<<<< ours\n" + left + b"=======\n" + right + b">>>>>>> theirs\n"


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Write CSV: quoted where need be, LF, the last line ended too; a text that a spreadsheet would compute after '."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(as_text, row) for row in (header, *rows))
    return text.getvalue()


def as_text(cell: object) -> object:
    """Put an apostrophe before a text that begins as a formula does and is no number; leave all else as it is.

    >>> as_text("=1+1"), as_text("-0.5"), as_text("-")
    ("'=1+1", '-0.5', '-')
    """
    if not isinstance(cell, str) or len(cell) < 2 or cell[0] not in FORMULA:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def read_folder(folder: Path) -> dict[tuple[Any, ...], Row]:
    """Read all results files of a folder, by key; refuse a key that is there twice."""
    with reading(folder, "a folder of results"):
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(".csv")) if folder.exists() else []
    return unite((read_content(path), str(path)) for path in paths)


def read_content(path: Path) -> bytes:
    """Read a results file, which must be a regular one."""
    with reading(path, "results"):
        check_file(path)
        return path.read_bytes()


def read_results(folder: str | Path = "results") -> "pd.DataFrame":
    """Read all results of a folder.

    Parameters
    ----------
    folder : str or Path, default="results"
        Holds ``<dataset>.csv`` files.

    Returns
    -------
    DataFrame
        A `Row` a line; ``value``, ``tie_sd``, ``low`` and ``high`` are float, NaN if they are not known.

    Raises
    ------
    HashbenchError
        If there is no result in the folder, or a file of it cannot be read.
    """
    rows = read_folder(Path(folder)).values()
    if not rows:
        raise HashbenchError(f"there are no results in {folder}. Make some: hashbench run --method itq --bits 32.")
    return to_frame(rows)


def to_frame(rows: Iterable[Row]) -> "pd.DataFrame":
    """Lay out rows, one a line; ``value``, ``tie_sd``, ``low`` and ``high`` are float, NaN if they are not known."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame["tie_sd"] = frame["tie_sd"].replace("", "nan")
    return frame.astype(dict.fromkeys(NUMBERS, float))


def as_row(record: Mapping[Hashable, Any]) -> Row:
    """Make a row as it stands in the file of a record of `to_frame`: numbers are texts of six decimals."""
    texts = {name: f"{record[name]:.6f}" for name in NUMBERS}
    texts["tie_sd"] = texts["tie_sd"].replace("nan", "")
    return Row(**{name: texts.get(name, record[name]) for name in Row._fields})
