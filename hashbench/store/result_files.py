"""Files of results: which and where they are, and their text, line by line.

Rows are in ``<dataset>/<method>.csv`` and name their parameters, which are in ``<method>.settings.json``; what made
them is in ``<method>.jobs.csv``. How a user's own dataset was prepared is in ``<dataset>/dataset.json``. All folds with
unseen classes of a dataset share the folder ``<dataset>-unseen``.
"""

import codecs
import csv
import gc
import io
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from hashbench._validation import check_name
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError, one_line
from hashbench.store.inputs import check_file, reading
from hashbench.store.origin import JobRecord
from hashbench.store.provenance import settings_name
from hashbench.store.result_rows import COLUMNS, N_JOB, PARAMS, Row, check_params, parse_row
from hashbench.unseen import split_name


class Unreadable(HashbenchError):
    """A results file that cannot be read: the fault, and advice for a file that can be changed."""

    def __str__(self) -> str:
        return " ".join(self.args)


class ResultsFile(NamedTuple):
    """The content of a results file, on disk or in a commit."""

    name: str  # for errors
    content: bytes
    settings: bytes | None = None  # of the file beside it; None if there is none


Rows = dict[tuple[Any, ...], Row]  # by key
FILE_COLUMNS = tuple("settings" if column == "params" else column for column in COLUMNS)
_FIRST = ",".join(FILE_COLUMNS[: PARAMS + 1]).encode()
_JOBS, _SETTINGS, _RECIPES = ".jobs.csv", ".settings.json", "dataset.json"
_RESTORE = "Restore it from version control."
_RESTORE_OR_RUN = "Restore it from version control, or move it away and run again."
_CONFLICT = re.compile(rb"^(<{7}|>{7}|\|{7}|={7}$)[^\n]*", re.MULTILINE)


# ---------------------------------------------------------------- places


def results_path(folder: str | Path, dataset: str, method: str) -> Path:
    """Return the file for the rows of a method on a dataset."""
    check_method(method)
    return folder_of(folder, dataset) / f"{method}.csv"


def check_method(name: str) -> None:
    """Refuse the name of a method whose rows would be in another method's ``.jobs.csv``."""
    if name.endswith(_JOBS.removesuffix(".csv")):
        raise HashbenchError(
            f"a method called {name!r} would write its rows to {name}.csv, which is for records of jobs. "
            "Choose another name."
        )


def folder_of(folder: str | Path, dataset: str) -> Path:
    """Return the folder for the rows of a dataset."""
    base, protocol = split_name(dataset)
    return Path(folder) / f"{base}{'-unseen' if protocol else ''}"


def settings_path(path: Path) -> Path:
    """Return the file of the settings that a results file names."""
    return path.with_name(path.stem + _SETTINGS)


def jobs_path(path: Path) -> Path:
    """Return the file of the records of jobs of a results file."""
    return path.with_name(path.stem + _JOBS)


def recipes_path(folder: Path) -> Path:
    """Return the file, in the folder for the rows of the user's own dataset, of how that was prepared."""
    return folder / _RECIPES


def is_results_file(name: str, names: Container[str], begin: Callable[[], bytes]) -> bool:
    """Return whether a path below the folder of results is of a results file.

    Folders may hold tables, too: a results file has settings beside it among all ``names``, or begins like one.
    """
    if not name.endswith(".csv") or name.endswith(_JOBS):
        return False
    return "/" not in name or f"{name.removesuffix('.csv')}{_SETTINGS}" in names or begin().startswith(_FIRST)


def find_files(folder: Path) -> list[Path]:
    """List the results files in a folder, then those in folders there; a missing folder has none."""
    with reading(folder, "a folder of results"):
        entries = sorted(folder.iterdir()) if folder.exists() else []
        inside = [path for entry in entries if entry.is_dir() for path in sorted(entry.iterdir())]
        names = {path: path.relative_to(folder).as_posix() for path in inside}
        nested = [path for path in inside if is_results_file(names[path], {*names.values()}, partial(_begin, path))]
        folders = {path.parent for path in nested}  # a dataset, too, may be called x.csv
        return [path for path in entries if is_results_file(path.name, (), bytes) and path not in folders] + nested


def _begin(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(len(_FIRST))


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


# ---------------------------------------------------------------- reading


def unite(files: Iterable[ResultsFile], *, is_past: bool = False) -> Rows:
    """Parse results files, and return their rows by key; refuse a key that occurs twice.

    In files of the past, which cannot be changed, line ends, a byte order mark and a row's exact copies do not matter.
    """
    rows: Rows = {}
    seen: list[ResultsFile] = []
    with _without_garbage_collection():
        for file in files:
            if is_past:
                file = ResultsFile(file.name, _plain(file.content), file.settings and _plain(file.settings))
            seen.append(file)
            for number, row in _parse(file):
                other = rows.setdefault(row.key, row)
                if other is not row and not (is_past and other == row):
                    raise _repeated(file, number, row, seen)
    return rows


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the search for reference cycles; rows have none, and it takes half as long as reading them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _plain(content: bytes) -> bytes:
    return content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")


def _repeated(file: ResultsFile, number: int, row: Row, files: Iterable[ResultsFile]) -> Unreadable:
    """Build the error for a row whose key an earlier line of the files holds."""
    first, line, other = next(
        (earlier, line, other) for earlier in files for line, other in _parse(earlier) if other.key == row.key
    )
    place = f"line {line}" if first.name == file.name else f"{first.name}, line {line}"
    numbers = "the same" if row == other else "different"
    key = " ".join(map(str, row.key))
    return Unreadable(
        f"{file.name}, line {number}, holds {key} a second time, after {place}, with {numbers} numbers.",
        "Delete one of the two lines, or both and run again.",
    )


def _parse(file: ResultsFile) -> Iterator[tuple[int, Row]]:
    """Parse the rows of a results file, each with the number of its line."""
    name, lines = file.name, parse_csv(file.content, file.name)
    header = lines[0][1] if lines else []
    if header and not any(set(line) & set(COLUMNS) for _, line in lines[:2]):
        raise Unreadable(
            f"{name} is not a results file: its first line has none of the columns {','.join(FILE_COLUMNS)}.",
            "Give a file that hashbench run wrote, or move this one out of the folder of results.",
        )
    if "params" in header and "settings" not in header:
        raise Unreadable(
            f"{name} is in the layout before version 0.1, one file per dataset, which hashbench no longer reads.",
            "Move it out of the folder of results, and run again.",
        )
    beyond = [column for column in header if column not in FILE_COLUMNS]
    if (header[:1] and header[0].startswith("#")) or (beyond and set(FILE_COLUMNS) <= set(header)):
        raise HashbenchError(
            f"{name} has {', '.join(beyond)} in its header, as a newer version of hashbench writes. Upgrade hashbench."
        )
    if header != [*FILE_COLUMNS]:
        raise Unreadable(
            f"{name} has columns {','.join(header) or 'none'}, expected {','.join(FILE_COLUMNS)}.", _RESTORE_OR_RUN
        )
    settings = {key: canonical_json(entry["params"]) for key, entry in read_settings(file).items()}
    for number, line in lines[1:]:
        try:
            if len(line) != len(header):
                raise ValueError(f"it has {len(line)} cells, expected {len(header)}")
            yield number, parse_row(line, settings)
        except (TypeError, ValueError, RecursionError) as error:
            raise Unreadable(f"{name}, line {number}: {one_line(error).rstrip('.')}.", _RESTORE) from error


def parse_csv(content: bytes, name: str) -> list[tuple[int, list[str]]]:
    """Parse the lines of a file of results, or beside it, each with its number."""
    _check_text(content, name)
    try:
        reader = csv.reader(io.StringIO(content.decode(), newline=""))
        return [(reader.line_num, line) for line in reader]
    except csv.Error as error:
        raise Unreadable(f"{name} is not a results file: {error}.", _RESTORE) from error


def _check_text(content: bytes, name: str) -> None:
    """Refuse bytes that are no text, and what git and editors leave in a text file."""
    try:
        is_text = "\0" not in content.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        raise Unreadable(f"{name} is damaged: its bytes are not text in UTF-8.", _RESTORE)
    marker = _CONFLICT.search(content)
    if marker:
        number = content.count(b"\n", 0, marker.start()) + 1
        text = marker[0].decode(errors="replace").strip()[:40]
        raise Unreadable(
            f"{name}, line {number}, is a conflict marker of git ({text}): a merge left both sides in.",
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
            f"{name} has lines that end in CR LF, as on Windows. Put `results/** text=auto eol=lf` into "
            ".gitattributes and restore it from version control."
        )


# ---------------------------------------------------------------- files beside


def read_settings(file: ResultsFile) -> dict[str, Any]:
    """Read the settings beside a results file: by name, objects that hold ``params``."""
    name = str(settings_path(Path(file.name)))
    if file.settings is None:
        raise Unreadable(f"{name} is missing, which holds the parameters of the rows of {file.name}.", _RESTORE)
    _check_text(file.settings, name)
    try:
        entries: dict[str, Any] = json.loads(file.settings)
        for key, entry in entries.items():
            params = canonical_json(entry["params"])
            if key != settings_name(params) or not isinstance(entry["params"], dict):
                raise ValueError(f"{key} is not what hashbench calls the parameters {params}")
            check_params(entry["params"])
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{name} holds no settings: {one_line(error).rstrip('.')}.", _RESTORE) from error
    return entries


def read_job_records(path: Path) -> dict[tuple[Any, ...], JobRecord]:
    """Read the records of jobs beside a results file, by `job_key`; empty if there are none."""
    beside = jobs_path(path)
    if not beside.exists():
        return {}
    (_, header), *lines = parse_csv(_read_content(beside), str(beside)) or [(0, [])]
    if header != [*JobRecord._fields]:
        raise Unreadable(
            f"{beside} has columns {','.join(header) or 'none'}, expected {','.join(JobRecord._fields)}.", _RESTORE
        )
    records = {}
    for number, line in lines:
        try:
            record = JobRecord.read(line)
        except ValueError as error:
            raise Unreadable(f"{beside}, line {number}: {one_line(error).rstrip('.')}.", _RESTORE) from error
        records[record.key] = record
    return records


def read_recipes(folder: Path) -> dict[str, Any]:
    """Read how the dataset of a folder was prepared, by fingerprint; empty if that is not recorded."""
    path = recipes_path(folder)
    if not path.exists():
        return {}
    content = _read_content(path)
    _check_text(content, str(path))
    try:
        recipes: dict[str, Any] = json.loads(content)
        for fingerprint, recipe in recipes.items():
            check_name(fingerprint, "a fingerprint")
            if {key: type(part) for key, part in recipe.items()} != {"options": dict, "sha256": dict, "protocol": str}:
                raise ValueError(f"{fingerprint} has no options, sha256 and protocol")
            if not recipe["sha256"].keys() <= recipe["options"].keys():
                raise ValueError(f"{fingerprint} has digests of files that no option names")
    except (AttributeError, HashbenchError, TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{path} holds no recipes: {one_line(error).rstrip('.')}.", _RESTORE) from error
    return recipes


def job_key(job: Sequence[Any]) -> tuple[Any, ...]:
    """Return the key of a job's record, from the key of its rows."""
    dataset, features, _, params, n_bits, seed, fingerprint = job[:N_JOB]
    return dataset, features, settings_name(params), n_bits, seed, fingerprint


# ---------------------------------------------------------------- texts


def rows_text(rows: Iterable[Row]) -> str:
    """Return the text of a results file, its rows sorted by key."""
    named = [row._replace(params=settings_name(row.params)) for row in rows]
    return csv_text(FILE_COLUMNS, sorted(named, key=attrgetter("key")))


def settings_text(entries: Mapping[str, Any]) -> str:
    """Return the text of a file of settings, one per line."""
    lines = (f"  {json.dumps(name)}: {canonical_json(entry)}" for name, entry in sorted(entries.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def recipes_text(recipes: Mapping[str, Any]) -> str:
    """Return the text of a file of how a dataset was prepared."""
    return json.dumps(recipes, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return CSV, with LF after every line; see `hashbench.reports.formatting.sheet_text`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
