"""The committed results: reads the rows of a folder, and adds rows to it.

`hashbench.store.result_rows` holds what a row is, `hashbench.store.result_files` what its files look like.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError
from hashbench.store.files import check_output, locked_folder, write_text
from hashbench.store.origin import JobRecord
from hashbench.store.provenance import settings_name
from hashbench.store.result_files import (
    Rows,
    csv_text,
    find_files,
    folder_of,
    job_key,
    jobs_path,
    read_file,
    read_job_records,
    read_recipes,
    read_settings,
    recipes_path,
    recipes_text,
    results_path,
    rows_text,
    settings_path,
    settings_text,
    unite,
)
from hashbench.store.result_rows import KEY, N_JOB, SHOWN, Row, is_own, to_frame, unshown, unshown_key

if TYPE_CHECKING:
    import pandas as pd


def read_folder(folder: Path) -> Rows:
    """Read all results files of a folder, by key; refuse a key that occurs twice."""
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


# ---------------------------------------------------------------- adding rows


def check_folder(folder: Path, dataset: str, versions: Mapping[str, int]) -> None:
    """Refuse a folder to which rows of methods on a dataset cannot be added, before they are computed."""
    if Path(dataset).name != dataset:  # which is refused when it is loaded
        return
    rows = read_rows(folder, dataset)
    for path in find_files(folder_of(folder, dataset)):
        read_job_records(path)
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
    record: JobRecord | None = None,
    recipes: Mapping[str, Any] = MappingProxyType({}),
) -> list[Path]:
    """Add rows to a folder of results, those of each file whole or not at all, and return the files.

    A row of the same key is replaced, however it is shown; one of other content never is. With a ``record`` of what
    made them, rows are of one job. ``recipes`` are those of their dataset, by fingerprint.
    """
    with locked_folder(folder):
        files = _by_file(folder, rows)
        for path, added in files.items():
            _add_recipes(path.parent, recipes)
            _add(path, added, {} if record is None else {record.key: record})
    return list(files)


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
        _add_recipes(path.parent, recipes)
        _add(path, added, {}, n_key=N_JOB)
    new = {unshown_key(key): row.rest for key, row in added.items()}
    jobs, alike = {key[:N_JOB] for key in new}, {key[: N_JOB - 1] for key in new}
    earlier = {unshown_key(key): row for key, row in known.items()}
    changed = [row for key, row in earlier.items() if key[:N_JOB] in jobs and new.get(key) != row.rest]
    others = [row for key, row in earlier.items() if key[: N_JOB - 1] in alike and key[:N_JOB] not in jobs]
    return path, changed, others


def merge_folders(folder: Path, others: Iterable[Path]) -> tuple[list[Path], int]:
    """Add the rows of other folders to one, with what made them; refuse rows that differ before anything is written.

    Returns the files with the rows, and the number of rows that were added.
    """
    rows: Rows = {}  # by key, without how they are shown
    records: dict[Path, dict[tuple[Any, ...], JobRecord]] = {}
    recipes: dict[Path, dict[str, Any]] = {}
    for path in (path for other in others for path in find_files(other)):
        of_file = unite([read_file(path)])
        for key, row in of_file.items():
            if rows.get(unshown_key(key), row).rest != row.rest:
                raise _other_numbers(row, path, "a folder before it")
            rows[unshown_key(key)] = row
        for target in _by_file(folder, of_file.values()):
            records.setdefault(target, {}).update(read_job_records(path))
            recipes.setdefault(target, {}).update(read_recipes(path.parent))
    with locked_folder(folder):
        known = {unshown_key(key): row for key, row in read_folder(folder).items()}
        for key in known.keys() & rows.keys():
            if known[key].rest != rows[key].rest:
                raise _other_numbers(known[key], folder, "a folder that is to be added")
        for path, added in _by_file(folder, rows.values()).items():
            _add_recipes(path.parent, recipes[path])
            _add(path, added, records[path])
    return [*records], len(rows.keys() - known.keys())


def _other_numbers(row: Row, place: Path, other: str) -> HashbenchError:
    return HashbenchError(
        f"{place} has different numbers for {' '.join(map(str, row.key))} than {other}. Leave one of them out, or "
        "delete its row."
    )


def _add_recipes(folder: Path, recipes: Mapping[str, Any]) -> None:
    """Write how a dataset was prepared into its folder, before its rows; the first recipe of a content stays."""
    known = read_recipes(folder)
    if recipes.keys() - known.keys():
        write_text(recipes_path(folder), recipes_text({**recipes, **known}))


def _by_file(folder: Path, rows: Iterable[Row]) -> dict[Path, Rows]:
    files: dict[Path, Rows] = {}
    for row in rows:
        files.setdefault(results_path(folder, row.dataset, row.method), {})[row.key] = row
    return files


def _add(path: Path, added: Rows, new_records: Mapping[tuple[Any, ...], JobRecord], *, n_key: int = len(KEY)) -> None:
    """Write the files of a method in an order in which a kill between them loses nothing.

    Settings come first, so that no row lacks them. The records of jobs whose rows change are removed before the rows
    are written, and new ones are written after these, so that none describes rows that are not there. Adding all rows
    of a job again completes the files. The record of a job changes only with its rows. Rows whose first ``n_key``
    fields are those of an added one are replaced, but not by those of an older version.
    """
    file = read_file(path) if path.exists() or path.is_symlink() else None
    known = unite([file]) if file else {}
    _refuse_newer(path, ((known[key], added[key].method_version) for key in known.keys() & added.keys()))
    replaced = {unshown_key(key)[:n_key] for key in added}
    unchanged = {key: row for key, row in known.items() if unshown_key(key)[:n_key] not in replaced}
    rows = _shown_alike(unchanged | added, added)
    entries = read_settings(file) if file and file.settings is not None else {}
    for params in dict.fromkeys(row.params for row in rows.values()):
        entry = entries.setdefault(settings_name(params), {"params": json.loads(params)})
        if canonical_json(entry["params"]) != params:
            both = f"{params} and {canonical_json(entry['params'])}"
            raise HashbenchError(f"{both} have the same name. Change a parameter.")
    records = read_job_records(path)
    before = dict(records)
    for job in {row.key[:N_JOB] for row in added.values()}:
        of_job = {key: row for key, row in rows.items() if key[:N_JOB] == job}
        has_changed = any(known.get(key) != row for key, row in of_job.items())
        name = job_key(job)
        if name not in new_records and has_changed:
            records.pop(name, None)
        elif name in new_records and (has_changed or (name not in records and of_job.keys() <= added.keys())):
            records[name] = new_records[name]
    unchanged_records = {name: record for name, record in before.items() if records.get(name) == record}
    write_text(settings_path(path), settings_text(entries))
    _write_records(path, before, unchanged_records)
    write_text(path, rows_text(rows.values()))
    _write_records(path, unchanged_records, records)


def _write_records(
    path: Path, before: Mapping[tuple[Any, ...], JobRecord], records: Mapping[tuple[Any, ...], JobRecord]
) -> None:
    if records != before:
        write_text(jobs_path(path), csv_text(JobRecord._fields, sorted(records.values())))


def _shown_alike(rows: Rows, added: Rows) -> Rows:
    """Return all rows, those of users' own codes with what is shown of the added ones, for one line in a table."""
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
    _refuse_seeds(alike, {dataset for dataset, settings in shown.items() if "draws_nothing" in settings})
    return alike


def _refuse_seeds(rows: Rows, datasets: Collection[str]) -> None:
    """Refuse several seeds of users' own codes that draw nothing at random."""
    seeds: dict[tuple[Any, ...], set[int]] = {}
    for row in rows.values():
        if row.dataset in datasets and is_own(row.params):
            place = row.method, row.n_bits, row.dataset, row.dataset_fingerprint
            seeds.setdefault(place, set()).add(row.seed)
    for (method, n_bits, dataset, _), numbers in seeds.items():
        if len(numbers) > 1:
            raise HashbenchError(
                f"{method!r} is saved as drawing nothing at random, but would have rows of seeds "
                f"{', '.join(map(str, sorted(numbers)))} at {n_bits} bits of {dataset}. Leave out --draws-nothing, or "
                "save it under another name."
            )
