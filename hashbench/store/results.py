"""The committed results: long rows in ``results/<dataset>/<method>.csv``, sorted, six decimals, LF.

Rows name their parameters, which stand in ``<method>.settings.json``; what made them is in ``<method>.jobs.csv``.
Datasets with unseen classes, of which there are several a fold, share the folder ``<dataset>-unseen``. Files of the
earlier layout, ``results/<dataset>.csv`` with the parameters in every row, are read too.
"""

import codecs
import csv
import gc
import io
import json
import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._validation import check_name, check_words, has_markup
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError, one_line, unknown_name
from hashbench.store.files import check_output, locked_folder, write_text, writing
from hashbench.store.inputs import check_file, reading
from hashbench.store.origin import Made
from hashbench.store.provenance import settings_name
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
        return self[:_N_KEY]


class Unreadable(HashbenchError):
    """A results file that cannot be read: what was found in it, and what to do about one that can be changed."""

    def __str__(self) -> str:
        return " ".join(self.args)


class ResultsFile(NamedTuple):
    """A results file as it is found, on disk or in a commit."""

    name: str  # for errors
    content: bytes
    settings: bytes | None = None  # of the file beside it; None if there is none


_Rows = dict[tuple[Any, ...], Row]  # by key
COLUMNS = Row._fields
FILE_COLUMNS = tuple("settings" if column == "params" else column for column in COLUMNS)
NUMBERS = ("value", "tie_sd", "low", "high")
UNKNOWN = "unknown"
OWN = {"codes": "own"}  # the parameters that mark rows of users' own codes
SHOWN = ("group", "label")  # those that say how such rows are shown
MAX_LABEL = 40  # characters
_N_KEY, _N_JOB, _PARAMS = 7, 6, COLUMNS.index("params")
_FIRST = ",".join(FILE_COLUMNS[: _PARAMS + 1]).encode()
_JOBS, _SETTINGS = ".jobs.csv", ".settings.json"
_ROUNDING = 1.5e-6  # sums in other orders may end on either side of a sixth decimal
_KINDS = {"n_bits": int, "seed": int, "n_queries": int, "n_undefined": int, "method_version": int}
_WHOLE = tuple((COLUMNS.index(column), kind) for column, kind in _KINDS.items())
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


def results_path(folder: str | Path, dataset: str, method: str) -> Path:
    """Tell in which file of a folder the rows of a method on a dataset are."""
    check_method(method)
    return _folder_of(folder, dataset) / f"{method}.csv"


def check_method(name: str) -> None:
    """Refuse the name of a method whose results would be in the file that says what made those of another."""
    if name.endswith(_JOBS.removesuffix(".csv")):
        raise HashbenchError(
            f"a method called {name!r} would write its rows to {name}.csv, which says what made others. "
            "Give it another name."
        )


def _folder_of(folder: str | Path, dataset: str) -> Path:
    base, protocol = split_name(dataset)
    return Path(folder) / f"{base}{'-unseen' if protocol else ''}"


def earlier_path(folder: str | Path, dataset: str) -> Path:
    """Tell where the rows of a dataset are in the earlier layout."""
    base = _folder_of(folder, dataset)
    return base.with_name(f"{base.name}.csv")


def settings_path(path: Path) -> Path:
    """Tell which file holds the settings that a results file names."""
    return path.with_name(path.stem + _SETTINGS)


def made_path(path: Path) -> Path:
    """Tell which file says what made the rows of a results file."""
    return path.with_name(path.stem + _JOBS)


def is_earlier(file: ResultsFile) -> bool:
    """Tell a file of the earlier layout, with parameters in every row."""
    return not file.content.startswith(_FIRST)


def is_results_file(name: str, names: Container[str], begin: Callable[[], bytes]) -> bool:
    """Tell a results file by its path below the folder of results.

    Tables may lie in folders there, too: a results file has settings beside it among all ``names``, or begins as one.
    """
    if not name.endswith(".csv") or name.endswith(_JOBS):
        return False
    return "/" not in name or f"{name.removesuffix('.csv')}{_SETTINGS}" in names or begin().startswith(_FIRST)


def find_files(folder: Path) -> list[Path]:
    """Find the results files of a folder, those of the earlier layout first; a missing one has none."""
    with reading(folder, "a folder of results"):
        found = sorted(folder.iterdir()) if folder.exists() else []
        inside = [one for place in found if place.is_dir() for one in sorted(place.iterdir())]
        names = {one.relative_to(folder).as_posix() for one in inside}
        inside = [one for one in inside if is_results_file(one.relative_to(folder).as_posix(), names, _beginner(one))]
        taken = {one.parent for one in inside}  # a dataset, too, may be called x.csv
        return [one for one in found if is_results_file(one.name, (), bytes) and one not in taken] + inside


def _beginner(path: Path) -> Callable[[], bytes]:
    def begin() -> bytes:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(len(_FIRST))

    return begin


def read_file(path: Path) -> ResultsFile:
    """Read a results file, which must be a regular one, and the settings beside it, which are written before it."""
    content, settings = _read_content(path), None
    if settings_path(path).exists():
        settings = _read_content(settings_path(path))
    return ResultsFile(str(path), content, settings)


def _read_content(path: Path) -> bytes:
    with reading(path, "results"):
        check_file(path)
        return path.read_bytes()


def read_folder(folder: Path) -> _Rows:
    """Read all results files of a folder, by key; refuse a key that is there twice."""
    return unite(map(read_file, find_files(folder)))


def read_rows(folder: str | Path, dataset: str) -> list[Row]:
    """Read the rows of a dataset in a folder, and of those that share its files."""
    earlier = earlier_path(folder, dataset)
    files = [earlier] if earlier.exists() or earlier.is_symlink() else []
    return list(unite(map(read_file, (*files, *find_files(_folder_of(folder, dataset))))).values())


def unite(files: Iterable[ResultsFile], *, is_past: bool = False) -> _Rows:
    """Parse results files and give their rows by key; refuse a key there twice.

    In files of the past, which nobody can mend, line ends, a byte order mark and a row's exact copies do not matter.

    The header is the schema. Columns that say how far to trust a value may be missing, as in a file of an older
    version: then the tie range is NaN, its deviation empty, no query is undefined, the dataset's fingerprint is
    ``unknown`` and the method's version 1.
    """
    rows: _Rows = {}
    seen: list[ResultsFile] = []
    with _no_collection():
        for file in files:
            if is_past:
                file = ResultsFile(file.name, _of_the_past(file.content), file.settings and _of_the_past(file.settings))
            seen.append(file)
            for number, row in _parse(file):
                other = rows.setdefault(row[:_N_KEY], row)
                if other is not row and not (is_past and other == row):
                    raise _twice(row, other, (file, number), _place_of(other, seen))
    return rows


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let Python look for no cycles, of which rows have none: among many that takes half as long as to read them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _place_of(row: Row, files: Iterable[ResultsFile]) -> tuple[ResultsFile, int]:
    """Find the first of the files with a row of this key, and the number of its line."""
    return next((file, number) for file in files for number, one in _parse(file) if one.key == row.key)


def _of_the_past(content: bytes) -> bytes:
    return content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")


def _twice(row: Row, other: Row, here: tuple[ResultsFile, int], there: tuple[ResultsFile, int]) -> Unreadable:
    (file, number), (first, line) = here, there
    place = f"line {line}" if first.name == file.name else f"{first.name}, line {line}"
    told = f"{file.name}, line {number}, holds {' '.join(map(str, row.key))} a second time, after {place}, with "
    advice = "Delete one of the two lines, or both and run again."
    if row == other and (file.settings is None) != (first.settings is None):
        advice = "Convert the rows of the earlier layout: hashbench results convert."
    return Unreadable(f"{told}{'the same' if row == other else 'other'} numbers.", advice)


def _parse(file: ResultsFile) -> Iterator[tuple[int, Row]]:
    """Parse the rows of a results file, each with the number of its line."""
    name, lines = file.name, parse_csv(file.content, file.name)
    header = lines[0][1] if lines else []
    expected = FILE_COLUMNS if "settings" in header else COLUMNS
    beyond = [column for column in header if column not in expected]
    if header and not any(set(line) & set(COLUMNS) for _, line in lines[:2]):
        raise Unreadable(
            f"{name} is no results file: its first line has none of the columns {','.join(FILE_COLUMNS)}.",
            "Give a file that hashbench run wrote, or move this one out of the folder of results.",
        )
    if (header[:1] and header[0].startswith("#")) or (beyond and set(expected) <= set(header)):
        raise HashbenchError(
            f"{name} has {', '.join(beyond)} in its header, which this version of hashbench does not know: a newer one "
            "wrote it. Upgrade hashbench."
        )
    lacking = [column for column in expected if column not in header and column not in _OF_OLDER_FILES]
    if not header or header != [column for column in expected if column in header]:
        raise Unreadable(
            f"{name} has columns {','.join(header) or 'none'}, expected {','.join(expected)}.", _RESTORE_OR_RUN
        )
    if lacking:
        raise Unreadable(
            f"{name} lacks column{'s' * (len(lacking) > 1)} {', '.join(lacking)}, without which its rows say nothing.",
            _RESTORE_OR_RUN,
        )
    settings = read_settings(file) if expected is FILE_COLUMNS else None
    texts = None if settings is None else {key: canonical_json(entry["params"]) for key, entry in settings.items()}
    absent = [(place, _OF_OLDER_FILES[column]) for place, column in enumerate(expected) if column not in header]
    for number, line in lines[1:]:
        try:
            if len(line) != len(header):
                raise ValueError(f"it has {len(line)} cells, expected {len(header)}")
            for place, text in absent:
                line.insert(place, text)
            yield number, _row(line, texts)
        except (TypeError, ValueError, RecursionError) as error:
            raise Unreadable(f"{name}, line {number}: {one_line(error).rstrip('.')}.", _RESTORE) from error


def parse_csv(content: bytes, name: str) -> list[tuple[int, list[str]]]:
    """Parse the lines of a file beside results, or of results, each with its number."""
    _check_text(content, name)
    try:
        reader = csv.reader(io.StringIO(content.decode(), newline=""))
        return [(reader.line_num, line) for line in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{name} is no results file: {error}.", _RESTORE) from error


def read_settings(file: ResultsFile) -> dict[str, Any]:
    """Read the settings beside a results file: of each name an object that holds ``params``."""
    name = str(settings_path(Path(file.name)))
    if file.settings is None:
        raise Unreadable(f"{name} is missing, without which the rows of {file.name} say nothing.", _RESTORE)
    _check_text(file.settings, name)
    try:
        entries: dict[str, Any] = json.loads(file.settings)
        for key, entry in entries.items():
            params = canonical_json(entry["params"])
            if key != settings_name(params) or not isinstance(entry["params"], dict):
                raise ValueError(f"{key} is not what hashbench calls the parameters {params}")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{name} holds no settings: {one_line(error).rstrip('.')}.", _RESTORE) from error
    return entries


def _check_text(content: bytes, name: str) -> None:
    """Refuse what git and editors leave in a text, each in its own words."""
    found = _CONFLICT.search(content)
    if found:
        number = content.count(b"\n", 0, found.start()) + 1
        raise Unreadable(
            f"{name}, line {number}, is a conflict marker of git ({found[0].decode(errors='replace').strip()[:40]}): a "
            "merge left both sides in.",
            "Keep the lines of both sides, sorted, or take one side (git checkout --ours or --theirs, and the file) "
            "and run again what the other had.",
        )
    if content.startswith(codecs.BOM_UTF8):
        raise HashbenchError(
            f"{name} begins with a byte order mark, as some editors and spreadsheets write it. Save it as UTF-8 "
            "without one, or restore it from version control."
        )
    if b"\r\n" in content:
        raise HashbenchError(
            f"{name} has lines that end in CR LF, as on Windows. Say `results/** text=auto eol=lf` in .gitattributes "
            "and restore it from version control."
        )


def _row(cells: list[Any], settings: Mapping[str, str] | None) -> Row:
    """Make a row of its cells, checked; ``settings`` gives the parameters that they name, if they do not hold them."""
    if settings is None:
        _check_params(cells[_PARAMS])
    elif cells[_PARAMS] in settings:
        cells[_PARAMS] = settings[cells[_PARAMS]]
    else:
        raise ValueError(f"settings {cells[_PARAMS]} are not in the file of settings beside it")
    for place, kind in _WHOLE:
        cells[place] = kind(cells[place])
    row = Row._make(cells)
    _check_numbers(row)
    _check_spelling(row.dataset, row.method, row.dataset_fingerprint, row.features, row.metric)
    return row


@lru_cache(maxsize=1 << 16)  # many rows have the same
def _check_spelling(dataset: str, method: str, fingerprint: str, features: str, metric: str) -> None:
    """Refuse what cannot name files, and a second spelling of what is a key."""
    for key, name in {"dataset": dataset, "method": method, "dataset_fingerprint": fingerprint}.items():
        check_name(name, f"column {key}")
    check_words(features, "column features")
    if not _METRIC.fullmatch(metric):
        raise ValueError(f"metric {metric!r} is spelled like none")


@lru_cache(maxsize=1024)
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


def is_own(params: str) -> bool:
    """Tell whether rows with these parameters (JSON) are of users' own codes."""
    return '"codes"' in params and bool(json.loads(params).get("codes") == OWN["codes"])


def unshown(params: str) -> str:
    """Leave out of parameters (JSON) what says only how users' own codes are shown."""
    if not is_own(params):
        return params
    return canonical_json({key: value for key, value in json.loads(params).items() if key not in SHOWN})


def _unshown(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*key[:_PARAMS], unshown(key[_PARAMS]), *key[_PARAMS + 1 :])


def _check_numbers(row: Row) -> None:
    """Refuse numbers that no run gives; NaN stands for a mean of no query, and for a range that is not known."""
    value, low, high, tie_sd = float(row.value), float(row.low), float(row.high), float(row.tie_sd or 0)
    is_usual = 0 <= low <= value <= high <= 1 and 0 <= tie_sd <= (high - low) / 2
    if is_usual and 0 <= row.n_undefined <= row.n_queries > 0 and row.n_bits > 0 <= row.seed and row.method_version > 0:
        return
    if not all(number != number or 0 <= number <= 1 for number in (value, low, high)):
        raise ValueError(f"value {row.value}, low {row.low} and high {row.high} are not all between 0 and 1")
    if value < low - _ROUNDING or value > high + _ROUNDING:
        raise ValueError(f"value {row.value} lies outside its range over tie orders, {row.low} to {row.high}")
    if not tie_sd >= 0 or tie_sd > (high - low) / 2 + _ROUNDING:
        raise ValueError(f"tie_sd {row.tie_sd} is not between 0 and half of the range, {row.low} to {row.high}")
    if not 0 <= row.n_undefined <= row.n_queries or row.n_queries < 1:
        raise ValueError(f"{row.n_undefined} of {row.n_queries} queries are undefined")
    if value != value and row.n_undefined < row.n_queries:
        n_scored = f"{row.n_queries - row.n_undefined} of {row.n_queries} queries have a score"
        raise ValueError(f"value is {row.value}, {row.low} to {row.high}, though {n_scored}")
    if row.n_bits < 1 or row.seed < 0 or row.method_version < 1:
        raise ValueError(f"n_bits is {row.n_bits}, seed {row.seed} and method_version {row.method_version}")


def check_folder(folder: Path, dataset: str) -> None:
    """Refuse, before any work is done for them, a folder to which rows of a dataset cannot be added."""
    if _is_name(dataset):
        read_rows(folder, dataset)
        _check_layout(folder, dataset)
        for path in find_files(_folder_of(folder, dataset)):
            read_made(path)


def check_files(folder: Path, dataset: str, methods: Iterable[str]) -> None:
    """Refuse, before any work is done for them, files of methods that cannot be written."""
    for method in methods if _is_name(dataset) else ():
        check_output(results_path(folder, dataset, method))


def _is_name(dataset: str) -> bool:
    return Path(dataset).name == dataset  # else it is no dataset, as is found later


def _check_layout(folder: Path, dataset: str) -> None:
    earlier = earlier_path(folder, dataset)
    if earlier.is_file():
        unite([read_file(earlier)])
        raise HashbenchError(
            f"{earlier} is of the earlier layout, a file a dataset, to which no rows are added. Convert it: hashbench "
            f"results convert {folder}."
        )


def merge_rows(folder: Path, rows: Iterable[Row], made: Made | None = None) -> list[Path]:
    """Add rows to a folder of results, those of each file whole or not at all.

    A row of the same key is replaced, however it is shown. ``made`` says what made them, if that is known, and they are
    of one job. Gives the files they are in.
    """
    with locked_folder(folder):
        files = _by_file(folder, rows)
        for path, added in files.items():
            _check_layout(folder, next(iter(added))[0])
            _add(path, added, {} if made is None else {made.key: made})
    return list(files)


def replace_own(folder: Path, rows: Iterable[Row]) -> tuple[Path, list[Row]]:
    """Put rows of users' own codes into the place of all rows of the same name, dataset, code length and seed.

    All must be of one such job, and by one distance. Returns the file, and the earlier rows that are gone or have other
    numbers.
    """
    with locked_folder(folder):
        ((path, added),) = _by_file(folder, rows).items()
        _check_layout(folder, next(iter(added))[0])
        jobs = {_unshown(key)[:_N_JOB] for key in added}
        same = {_unshown(key): row[_N_KEY:] for key, row in added.items()}
        known = unite([read_file(path)]) if path.exists() else {}
        earlier = [row for key, row in known.items() if _unshown(key)[:_N_JOB] in jobs]
        _add(path, added, {}, n_key=_N_JOB)
    return path, [row for row in earlier if same.get(_unshown(row.key)) != row[_N_KEY:]]


def merge_folders(folder: Path, others: Iterable[Path]) -> tuple[list[Path], int]:
    """Add the rows of other folders to one, with what made them; refuse rows that differ before anything is written.

    Gives the files they are in, and the number of rows.
    """
    rows: _Rows = {}  # by key, without how they are shown
    lines: dict[Path, dict[tuple[Any, ...], Made]] = {}
    for path in (path for other in others for path in find_files(other)):
        found = unite([read_file(path)])
        for key, row in found.items():
            if rows.get(_unshown(key), row)[_N_KEY:] != row[_N_KEY:]:
                raise _other_numbers(row, path, "a folder before it")
            rows[_unshown(key)] = row
        for target in _by_file(folder, found.values()):
            lines.setdefault(target, {}).update(read_made(path))
    with locked_folder(folder):
        known = {_unshown(key): row for key, row in read_folder(folder).items()}
        for key in known.keys() & rows.keys():
            if known[key][_N_KEY:] != rows[key][_N_KEY:]:
                raise _other_numbers(known[key], folder, "a folder that is to be added")
        for path, some in _by_file(folder, rows.values()).items():
            _check_layout(folder, next(iter(some))[0])
            _add(path, some, lines[path])
    return [*lines], len(rows.keys() - known.keys())


def _other_numbers(row: Row, place: Path, other: str) -> HashbenchError:
    return HashbenchError(
        f"{place} has other numbers for {' '.join(map(str, row.key))} than {other}. Leave one of "
        "them out, or delete its row."
    )


def _by_file(folder: Path, rows: Iterable[Row]) -> dict[Path, _Rows]:
    files: dict[Path, _Rows] = {}
    for row in rows:
        files.setdefault(results_path(folder, row.dataset, row.method), {})[row.key] = row
    return files


def _add(path: Path, added: _Rows, made: Mapping[tuple[Any, ...], Made], *, n_key: int = _N_KEY) -> None:
    """Write the files of a method in the order in which a kill between them loses nothing.

    Settings come first, so that no row is without, and what made rows comes before them, so that to add them again ends
    it. A line of what made a job stays as it is while its rows do. Rows whose first ``n_key`` fields are those of an
    added one are replaced.
    """
    file = read_file(path) if path.exists() or path.is_symlink() else None
    known = unite([file]) if file else {}
    replaced = {_unshown(key)[:n_key] for key in added}
    left = {key: row for key, row in known.items() if _unshown(key)[:n_key] not in replaced}
    rows = _shown_alike(left | added, added)
    entries = read_settings(file) if file and file.settings is not None else {}
    for params in dict.fromkeys(row.params for row in rows.values()):
        entry = entries.setdefault(settings_name(params), {"params": json.loads(params)})
        if canonical_json(entry["params"]) != params:
            raise HashbenchError(f"{params} and {canonical_json(entry['params'])} have one name. Change a parameter.")
    lines = read_made(path)
    before = dict(lines)
    for job in {row.key[:_N_JOB] for row in added.values()}:
        own = {key: row for key, row in rows.items() if key[:_N_JOB] == job}
        has_changed = any(known.get(key) != row for key, row in own.items())
        name = made_key(job)
        if name not in made and has_changed:
            lines.pop(name, None)
        elif name in made and (has_changed or (name not in lines and own.keys() <= added.keys())):
            lines[name] = made[name]
    write_text(settings_path(path), _settings_text(entries))
    if lines != before:
        write_text(made_path(path), csv_text(Made._fields, sorted(lines.values())))
    write_text(path, rows_text(rows.values()))


def _shown_alike(rows: _Rows, added: _Rows) -> _Rows:
    """Give all rows of users' own codes the group and label of those added, so that they stay one line of a table."""
    shown = {
        row.dataset: {key: value for key, value in json.loads(row.params).items() if key in SHOWN}
        for row in added.values()
        if is_own(row.params)
    }
    if not shown:
        return rows
    alike = {}
    for row in rows.values():
        if row.dataset in shown and is_own(row.params):
            row = row._replace(params=canonical_json(json.loads(unshown(row.params)) | shown[row.dataset]))
        alike[row.key] = row
    return alike


def convert(folder: Path) -> tuple[list[Path], list[Path], int]:
    """Convert the files of the earlier layout in a folder, and remove them; all are read before anything is written.

    Gives these files, those that the rows are in now, and the number of rows. What a kill left half done is done again.
    """
    if not _read_earlier(folder):
        raise HashbenchError(
            f"{folder} holds no file of the earlier layout, such as digits.csv. Nothing was converted."
        )
    with locked_folder(folder):
        earlier = _read_earlier(folder)
        written: dict[Path, None] = {}
        for path, rows in earlier.items():
            files = _by_file(folder, rows.values())
            for target, added in files.items():
                known = unite([read_file(target)]) if target.exists() else {}
                for key in known.keys() & added.keys():
                    if known[key] != added[key]:
                        raise HashbenchError(
                            f"{' '.join(map(str, key))} is in {path} and in {target}, with other numbers. Delete one "
                            "of the two lines, and convert again."
                        )
            for target, added in files.items():
                _add(target, added, {})
            written |= dict.fromkeys(files)
            with writing(path):
                path.unlink()
    return [*earlier], [*written], sum(map(len, earlier.values()))


def _read_earlier(folder: Path) -> dict[Path, _Rows]:
    found = [path for path in find_files(folder) if path.parent == folder]
    return {path: unite([file]) for path in found if is_earlier(file := read_file(path))}


def read_made(path: Path) -> dict[tuple[Any, ...], Made]:
    """Read what made the rows of a results file, by job (`made_key`); nothing if no file beside it says so."""
    beside = made_path(path)
    if not beside.exists():
        return {}
    (_, header), *lines = parse_csv(_read_content(beside), str(beside)) or [(0, [])]
    if header != [*Made._fields]:
        raise Unreadable(
            f"{beside} has columns {','.join(header) or 'none'}, expected {','.join(Made._fields)}.", _RESTORE
        )
    found = {}
    for number, line in lines:
        try:
            made = Made.read(line)
        except ValueError as error:
            raise Unreadable(f"{beside}, line {number}: {one_line(error).rstrip('.')}.", _RESTORE) from error
        found[made.key] = made
    return found


def made_key(job: Sequence[Any]) -> tuple[Any, ...]:
    """Give the key of what made a job, of the key of its rows."""
    dataset, features, _, params, n_bits, seed = job[:_N_JOB]
    return dataset, features, settings_name(params), n_bits, seed


def rows_text(rows: Iterable[Row]) -> str:
    """Write the rows of a results file, sorted as they stand there."""
    return csv_text(FILE_COLUMNS, sorted(row._replace(params=settings_name(row.params)) for row in rows))


def _settings_text(entries: Mapping[str, Any]) -> str:
    lines = (f"  {json.dumps(name)}: {canonical_json(entry)}" for name, entry in sorted(entries.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Write CSV: quoted where need be, LF, the last line ended too; see `hashbench.reports.formatting.sheet_text`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def read_results(folder: str | Path = "results") -> "pd.DataFrame":
    """Read all results of a folder.

    Parameters
    ----------
    folder : str or Path, default="results"
        Holds ``<dataset>/<method>.csv`` files, or ``<dataset>.csv`` of the earlier layout.

    Returns
    -------
    DataFrame
        A `Row` a line, sorted by key; ``value``, ``tie_sd``, ``low`` and ``high`` are float, NaN if they are not known.

    Raises
    ------
    HashbenchError
        If there is no result in the folder, or a file of it cannot be read.
    """
    found = read_folder(Path(folder))
    rows = [found[key] for key in sorted(found)]
    if not rows:
        raise HashbenchError(f"there are no results in {folder}. Make some: hashbench run --method itq --bits 32.")
    return to_frame(rows)


def to_frame(rows: Iterable[Row]) -> "pd.DataFrame":
    """Lay out rows, one a line; ``value``, ``tie_sd``, ``low`` and ``high`` are float, NaN if they are not known."""
    import pandas as pd

    rows = list(rows)
    columns: dict[str, list[Any]] = {name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)}
    return pd.DataFrame(columns | {name: [float(text or "nan") for text in columns[name]] for name in NUMBERS})


def as_row(record: Mapping[Hashable, Any]) -> Row:
    """Make a row as it stands in the file of a record of `to_frame`: numbers are texts of six decimals."""
    texts = {name: f"{record[name]:.6f}" for name in NUMBERS}
    texts["tie_sd"] = texts["tie_sd"].replace("nan", "")
    return Row(**{name: texts.get(name, record[name]) for name in Row._fields})
