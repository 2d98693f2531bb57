"""The committed results: rows of methods on datasets, and where each row comes from.

Rows are in ``<dataset>/<method>.csv`` and name their parameters; ``<method>.json`` has these, what made the codes of
each job, and how a user's own dataset was prepared. All folds with unseen classes of a dataset share the folder
``<dataset>-unseen``. `hashbench.store.result_rows` holds what a row is.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._validation import check_name
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError, one_line
from hashbench.store.files import check_output, locked_folder, write_text
from hashbench.store.inputs import check_file, reading
from hashbench.store.origin import Origin
from hashbench.store.provenance import settings_name
from hashbench.store.result_rows import (
    COLUMNS,
    JOB,
    KEY,
    N_JOB,
    PARAMS,
    SHOWN,
    Row,
    check_params,
    is_own,
    parse_row,
    to_frame,
    unshown,
    unshown_key,
)
from hashbench.unseen import split_name

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[Any, ...]
Rows = dict[Key, Row]  # by key


class Unreadable(HashbenchError):
    """A results file that cannot be read: the fault, and advice for a file that can be changed."""

    def __str__(self) -> str:
        return " ".join(self.args)


class ResultsFile(NamedTuple):
    """The content of a results file, on disk or in a commit."""

    name: str  # for errors
    content: bytes
    record: bytes | None  # of the file beside it; None if there is none


class Record(NamedTuple):
    """Where rows come from, as ``<method>.json`` says."""

    settings: dict[str, str]  # parameters as JSON, by the name that rows have of them
    origins: dict[Key, Origin]  # what made the codes of a job, by the key of its rows without the metric
    recipes: dict[str, Any]  # how a user's own dataset was prepared, by fingerprint

    def add(self, other: "Record") -> None:
        """Add what another record has and this one lacks."""
        parts: Iterable[tuple[dict[Any, Any], dict[Any, Any]]] = zip(self, other, strict=True)
        for part, more in parts:
            for key, value in more.items():
                part.setdefault(key, value)


FILE_COLUMNS = tuple("settings" if column == "params" else column for column in COLUMNS)
FIRST = ",".join(FILE_COLUMNS[: PARAMS + 1]).encode()  # that results files begin with
_JOB_COLUMNS = tuple("settings" if column == "params" else column for column in JOB)
_OF_JOB = ("seconds", "trials")  # what each job has of its origin
_RECIPE = {"options": dict, "sha256": dict, "protocol": str}
_RESTORE = "Restore it from version control."
_CONFLICT = re.compile(r"^(<{7}|>{7}|\|{7}|={7}$)[^\n]*", re.MULTILINE)


# ---------------------------------------------------------------- places


def folder_of(folder: str | Path, dataset: str) -> Path:
    """Return the folder for the rows of a dataset."""
    base, protocol = split_name(dataset)
    return Path(folder) / f"{base}{'-unseen' if protocol else ''}"


def results_path(folder: str | Path, dataset: str, method: str) -> Path:
    """Return the file for the rows of a method on a dataset."""
    return folder_of(folder, dataset) / f"{method}.csv"


def record_path(path: Path) -> Path:
    """Return the file of the record of a results file."""
    return path.with_suffix(".json")


def find_files(folder: Path) -> list[Path]:
    """List the results files in a folder, then those in folders there; a missing folder has none.

    Those may hold tables, too: a results file in them has a record beside it, or begins like one.
    """
    with reading(folder, "a folder of results"):
        entries = sorted(folder.iterdir()) if folder.exists() else []
        inside = [path for entry in entries if entry.is_dir() for path in sorted(entry.iterdir())]
        return [path for path in entries if path.suffix == ".csv" and not path.is_dir()] + [
            path for path in inside if path.suffix == ".csv" and (record_path(path).exists() or _begins(path))
        ]


def _begins(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(FIRST)) == FIRST


# ---------------------------------------------------------------- reading


def read_file(path: Path) -> ResultsFile:
    """Read a results file, which must be a regular one, and its record, which is written before it."""
    return ResultsFile(str(path), _read_content(path), _read_beside(path))


def _read_beside(path: Path) -> bytes | None:
    return _read_content(record_path(path)) if record_path(path).exists() else None


def _read_content(path: Path) -> bytes:
    with reading(path, "results"):
        check_file(path)
        return path.read_bytes()


def unite(files: Iterable[ResultsFile]) -> Rows:
    """Parse results files, and return their rows by key; refuse a key that occurs twice with different numbers."""
    rows: Rows = {}
    seen = []
    for file in files:
        seen.append(file)
        for number, row in _parse(file):
            if rows.setdefault(row.key, row) != row:
                first, line = next((one.name, line) for one in seen for line, old in _parse(one) if old.key == row.key)
                raise Unreadable(
                    f"{file.name}, line {number}, holds {' '.join(map(str, row.key))} a second time, after {first}, "
                    f"line {line}, with different numbers.",
                    "Delete one of the two lines, or both and run again.",
                )
    return rows


def _parse(file: ResultsFile) -> Iterator[tuple[int, Row]]:
    """Parse the rows of a results file, each with the number of its line."""
    text = _text(file.content, file.name)
    header = text.partition("\n")[0].rstrip("\r")
    if header != ",".join(FILE_COLUMNS):
        raise Unreadable(
            f"{file.name} has columns {header[:200] or 'none'}, expected {','.join(FILE_COLUMNS)}.",
            "Restore it from version control, or move it out of the folder of results.",
        )
    settings, lines = parse_record(file).settings, csv.reader(io.StringIO(text, newline=""))
    next(lines)
    try:
        for cells in lines:
            if len(cells) != len(FILE_COLUMNS):
                raise ValueError(f"it has {len(cells)} cells, expected {len(FILE_COLUMNS)}")
            yield lines.line_num, parse_row(cells, settings)
    except (csv.Error, TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{file.name}, line {lines.line_num}: {one_line(error).rstrip('.')}.", _RESTORE) from error


def _text(content: bytes, name: str) -> str:
    """Decode a file; refuse bytes that are no text, and conflict markers of git."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Unreadable(f"{name} is damaged: its bytes are not text in UTF-8.", _RESTORE)
    if marker := _CONFLICT.search(text):
        raise Unreadable(
            f"{name}, line {text.count(chr(10), 0, marker.start()) + 1}, is a conflict marker of git "
            f"({marker[0].strip()[:40]}): a merge left both sides in.",
            "Keep the lines of both sides, sorted, or take one side (git checkout --ours or --theirs, and the file) "
            "and run again what the other had.",
        )
    return text


def parse_record(file: ResultsFile) -> Record:
    """Parse the record of a results file."""
    name = str(record_path(Path(file.name)))
    if file.record is None:
        raise Unreadable(f"{name} is missing, which holds the parameters of the rows of {file.name}.", _RESTORE)
    text = _text(file.record, name)
    try:
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError(f"it holds {type(content).__name__}, expected an object")
        record = Record({key: canonical_json(params) for key, params in content["settings"].items()}, {}, {})
        for key, params in record.settings.items():
            if key != settings_name(params):
                raise ValueError(f"{key} is not what hashbench calls the parameters {params}")
            check_params(content["settings"][key])
        for line in content["jobs"]:
            job = {**line, "settings": record.settings[line["settings"]]}
            origin = Origin.read({**content["origins"][line["origin"]], **line})
            record.origins[tuple(job[column] for column in _JOB_COLUMNS)] = origin
        for fingerprint, recipe in content["recipes"].items():
            check_name(fingerprint, "a fingerprint")
            kinds = {key: type(part) for key, part in recipe.items()}
            if kinds != _RECIPE or not recipe["sha256"].keys() <= recipe["options"].keys():
                raise ValueError(f"{fingerprint} has no options, protocol and sha256 of files that options name")
            record.recipes[fingerprint] = recipe
    except KeyError as error:
        raise Unreadable(f"{name} lacks {error}.", _RESTORE) from error
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{name} is damaged: {one_line(error).rstrip('.')}.", _RESTORE) from error
    return record


def read_record(paths: Iterable[Path]) -> Record:
    """Read where the rows of results files come from; of two recipes of one content, the first stays."""
    record = Record({}, {}, {})
    for path in paths:
        record.add(parse_record(ResultsFile(str(path), b"", _read_beside(path))))
    return record


def read_folder(folder: Path) -> Rows:
    """Read all results files of a folder, by key; refuse a key that occurs twice with different numbers."""
    return unite(map(read_file, find_files(folder)))


def read_rows(folder: str | Path, dataset: str) -> list[Row]:
    """Read the rows of a dataset in a folder, and of those that share its files."""
    return list(read_folder(folder_of(folder, dataset)).values())


def read_results(folder: str | Path = "results") -> "pd.DataFrame":
    """Read all results of a folder.

    Parameters
    ----------
    folder : str or Path, default="results"
        Holds ``<dataset>/<method>.csv`` files.

    Returns
    -------
    DataFrame
        One `Row` per line, sorted by key; ``value``, ``tie_sd``, ``low`` and ``high`` are float, NaN where not known.

    Raises
    ------
    HashbenchError
        If there is no result in the folder, or a file of it cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> numbers = "0.5", "0.01", "0.4", "0.6", 200, 0, "cecf02ca0edd5963", 1
    >>> row = Row("digits", "pixels", "lsh", "{}", 12, 0, "AP", *numbers)
    >>> with TemporaryDirectory() as folder:
    ...     _ = merge_rows(Path(folder), [row])
    ...     read_results(folder)["value"].tolist()
    [0.5]
    """
    rows = read_folder(Path(folder))
    if not rows:
        raise HashbenchError(f"there are no results in {folder}. Create some: hashbench run --method itq --bits 32.")
    return to_frame(rows[key] for key in sorted(rows))


# ---------------------------------------------------------------- texts


def rows_text(rows: Iterable[Row]) -> str:
    """Return the text of a results file, its rows sorted by key."""
    named = [row._replace(params=settings_name(row.params)) for row in rows]
    return csv_text(FILE_COLUMNS, sorted(named, key=attrgetter("key")))


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return CSV, with LF after every line; see `hashbench.reports.formatting.sheet_text`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def record_text(record: Record) -> str:
    """Return the text of a record, with a line for each setting, origin, job and recipe, sorted."""
    jobs, origins = [], {}
    for job, origin in record.origins.items():
        shared = origin._asdict()
        of_job = {name: shared.pop(name) for name in _OF_JOB}
        name = settings_name(canonical_json(shared))
        origins[name] = canonical_json(shared)
        key = (*job[:PARAMS], settings_name(job[PARAMS]), *job[PARAMS + 1 :])
        jobs.append((key, {**dict(zip(_JOB_COLUMNS, key, strict=True)), "origin": name, **of_job}))
    recipes = {fingerprint: canonical_json(recipe) for fingerprint, recipe in record.recipes.items()}
    named = {"settings": record.settings, "origins": origins, "recipes": recipes}
    lines = {
        section: [f"{json.dumps(name)}: {text}" for name, text in sorted(texts.items())]
        for section, texts in named.items()
    }
    lines["jobs"] = [json.dumps(line) for _, line in sorted(jobs, key=lambda job: job[0])]
    sections = []
    for section in ("settings", "origins", "jobs", "recipes"):
        first, last = "[]" if section == "jobs" else "{}"
        inside = "\n    " + ",\n    ".join(lines[section]) + "\n  " if lines[section] else ""
        sections.append(f'  "{section}": {first}{inside}{last}')
    return "{\n" + ",\n".join(sections) + "\n}\n"


# ---------------------------------------------------------------- adding rows


def check_folder(folder: Path, dataset: str, versions: Mapping[str, int]) -> None:
    """Refuse a folder to which rows of methods on a dataset cannot be added, before they are computed."""
    if Path(dataset).name != dataset:  # which is refused when it is loaded
        return
    rows = read_rows(folder, dataset)
    for method, version in versions.items():
        path = results_path(folder, dataset, method)
        check_output(path)
        _refuse_newer(path, ((row, version) for row in rows if row.method == method))


def _refuse_newer(path: Path, rows: Iterable[tuple[Row, int]]) -> None:
    """Refuse rows that are of a higher version of their method than those to add."""
    for row, version in rows:
        if row.method_version > version:
            raise HashbenchError(
                f"{path} has rows of version {row.method_version} of {row.method}, and those to add are of version "
                f"{version}. Upgrade {row.method} and run again, or write to another folder of results."
            )


def merge_rows(
    folder: Path,
    rows: Iterable[Row],
    origin: Origin | None = None,
    recipes: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[list[Path], list[Row]]:
    """Add rows to a folder of results, those of each file whole or not at all.

    A row of the same key is replaced, however it is shown; one of other content never is. ``origin`` is what made the
    rows, and ``recipes`` are those of their dataset, by fingerprint. Returns the files, and the rows that are gone
    because other code of a plug-in made them for the same job.
    """
    gone = []
    with locked_folder(folder):
        files = _by_file(folder, rows)
        for path, added in files.items():
            origins = {} if origin is None else {row.job: origin for row in added.values()}
            gone += _add(path, added, Record({}, origins, dict(recipes)))
    return list(files), gone


def replace_own(
    folder: Path, rows: Iterable[Row], recipes: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Path, list[Row], list[Row]]:
    """Replace all rows of users' own codes of the same name, dataset, content, code length and seed.

    All must be of one name and dataset, and by one distance. Returns the file, the earlier rows that are gone or have
    other numbers, and those that differ only in content, which stay.
    """
    with locked_folder(folder):
        ((path, added),) = _by_file(folder, rows).items()
        known = unite([read_file(path)]) if path.exists() else {}
        _add(path, added, Record({}, {}, dict(recipes)), n_key=N_JOB)
    new = {unshown_key(key): row.rest for key, row in added.items()}
    jobs, alike = {key[:N_JOB] for key in new}, {key[: N_JOB - 1] for key in new}
    earlier = {unshown_key(key): row for key, row in known.items()}
    changed = [row for key, row in earlier.items() if key[:N_JOB] in jobs and new.get(key) != row.rest]
    others = [row for key, row in earlier.items() if key[: N_JOB - 1] in alike and key[:N_JOB] not in jobs]
    return path, changed, others


def merge_folders(folder: Path, others: Iterable[Path]) -> int:
    """Add the rows of other folders to one, with where they come from, and return the number of new ones.

    Rows that differ are refused before anything is written.
    """
    files = [read_file(path) for other in others for path in find_files(other)]
    parts = [(file.name, unite([file]), parse_record(file)) for file in files]
    with locked_folder(folder):
        known = {unshown_key(key): row for key, row in read_folder(folder).items()}
        n_known = len(known)
        for name, rows, _ in parts:
            for key, row in rows.items():
                if known.setdefault(unshown_key(key), row).rest != row.rest:
                    raise HashbenchError(
                        f"{name} has different numbers for {' '.join(map(str, key))} than {folder} or a folder before "
                        "it. Leave one of them out, or delete its row."
                    )
        for _, rows, record in parts:
            for target, added in _by_file(folder, rows.values()).items():
                _add(target, added, record)
    return len(known) - n_known


def _by_file(folder: Path, rows: Iterable[Row]) -> dict[Path, Rows]:
    files: dict[Path, Rows] = {}
    for row in rows:
        files.setdefault(results_path(folder, row.dataset, row.method), {})[row.key] = row
    return files


def _add(path: Path, added: Rows, new: Record, *, n_key: int = len(KEY)) -> list[Row]:
    """Write the files of a method in an order in which a kill between them loses nothing.

    Settings come first, so that no row lacks them. The origins of jobs whose rows change are removed before the rows
    are written, and new ones are added after these, so that none is of rows that are not there. Adding all rows of a
    job again completes the files. The origin of a job changes only with its rows, but its number of trials is the
    greatest that is known. Rows whose first ``n_key`` fields are those of an added one are replaced, but not by those
    of an older version. So are those of its job that other code of a plug-in made, which are returned.
    """
    file = read_file(path) if path.exists() or path.is_symlink() else None
    known, record = (unite([file]), parse_record(file)) if file else ({}, Record({}, {}, {}))
    _refuse_newer(path, ((known[key], added[key].method_version) for key in known.keys() & added.keys()))
    replaced = {unshown_key(key)[:n_key] for key in added}
    unchanged = {key: row for key, row in known.items() if unshown_key(key)[:n_key] not in replaced}
    made = {job: origin.plugin for job, origin in record.origins.items()}
    recoded = {job for job, origin in new.origins.items() if made.get(job, origin.plugin) != origin.plugin}
    recoded &= {row.job for key, row in added.items() if known.get(key) != row}
    gone = [unchanged.pop(key) for key, row in [*unchanged.items()] if row.job in recoded]
    rows = _shown_alike(unchanged | added, added)
    for params in {row.params for row in rows.values()}:
        if record.settings.setdefault(settings_name(params), params) != params:
            both = f"{params} and {record.settings[settings_name(params)]}"
            raise HashbenchError(f"{both} have the same name. Change a parameter.")
    changed = {row.job for key, row in rows.items() if known.get(key) != row}
    partly = {row.job for key, row in rows.items() if key not in added}
    origins = {job: origin for job, origin in record.origins.items() if job not in changed}
    record.add(Record({}, {}, new.recipes))
    write_text(record_path(path), record_text(record._replace(origins=origins)))
    write_text(path, rows_text(rows.values()))
    for job in {row.job for row in added.values()} & new.origins.keys():
        if job in changed or (job not in origins and job not in partly):
            origins[job] = new.origins[job]
        if job in origins:
            n_trials = max(places[job].trials for places in (record.origins, new.origins) if job in places)
            origins[job] = origins[job]._replace(trials=n_trials)
    write_text(record_path(path), record_text(record._replace(origins=origins)))
    return gone


def _shown_alike(rows: Rows, added: Rows) -> Rows:
    """Return all rows, those of users' own codes with what is shown of the added ones, for one line in a table."""
    shown = {
        row.dataset: {key: value for key, value in json.loads(row.params).items() if key in SHOWN}
        for row in added.values()
        if is_own(row.params)
    }
    if not shown:
        return rows
    alike, seeds = {}, dict[Key, set[int]]()
    for row in rows.values():
        if row.dataset in shown and is_own(row.params):
            row = row._replace(params=canonical_json(json.loads(unshown(row.params)) | shown[row.dataset]))
            if "draws_nothing" in shown[row.dataset]:
                place = row.method, row.n_bits, row.dataset, row.dataset_fingerprint
                seeds.setdefault(place, set()).add(row.seed)
        alike[row.key] = row
    for (method, n_bits, dataset, _), numbers in seeds.items():
        if len(numbers) > 1:
            raise HashbenchError(
                f"{method!r} is saved as drawing nothing at random, but would have rows of seeds "
                f"{', '.join(map(str, sorted(numbers)))} at {n_bits} bits of {dataset}. Leave out --draws-nothing, or "
                "save it under another name."
            )
    return alike
