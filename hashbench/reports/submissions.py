"""Checks of results files: whether they are as hashbench writes them, and whether a cell can be reproduced."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hashbench.cards import method_card
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import Job, grid
from hashbench.pipeline.preparation import dataset_path, find_dataset, load_dataset
from hashbench.pipeline.runner import run
from hashbench.pipeline.steps import Demands
from hashbench.registry import dataset_class, dataset_spec, is_dataset, method_names
from hashbench.reports.diff import Diff, compare
from hashbench.reports.revisions import Side
from hashbench.scoring.metrics import get_metric
from hashbench.store.files import data_folder
from hashbench.store.origin import Origin
from hashbench.store.result_rows import NUMBERS, Row, is_own, left_out
from hashbench.store.results import (
    Record,
    Rows,
    find_files,
    parse_record,
    read_file,
    record_path,
    results_path,
    rows_text,
    unite,
)
from hashbench.unseen import split_name

TOLERANCE = 0.03  # of methods that train; between processors, .0212 was measured (docs/explanation/numbers.md)
_NUMBER = re.compile(r"(0|[1-9]\d*)\.\d{6}|nan")


def result_files(paths: Iterable[Path]) -> list[Path]:
    """Return the results files at paths; in place of a folder all in it, sorted by name."""
    results = [file for path in paths for file in (find_files(path) if path.is_dir() else [path])]
    if not results:
        raise HashbenchError("there is no results file here. Name one, or the folder: hashbench results check results.")
    return results


def read_files(paths: Iterable[Path]) -> tuple[Rows, Record, list[str]]:
    """Read results files: their rows by key, their records as one, and a sentence on each that is not as written."""
    rows: Rows = {}
    record, problems = Record({}, {}, {}), list[str]()
    for path in paths:
        try:
            file = read_file(path)
            file_rows, file_record = unite([file]), parse_record(file)
            rows |= file_rows
            record.add(file_record)
            found = [*_about_file(path, file_rows, file_record)]
            if not found and file.content != rows_text(file_rows.values()).encode():
                found = [f"{path} is not spelt or sorted as hashbench writes it. Let hashbench run write it."]
            problems += found
        except HashbenchError as error:
            problems.append(str(error))
    return rows, record, problems


def _about_file(path: Path, rows: Rows, record: Record) -> Iterator[str]:
    """Describe rows that do not belong in a file or that this version of hashbench would not write."""
    if not rows:
        yield f"{path} holds no row. Remove it."
    for row in rows.values():
        home = results_path("", row.dataset, row.method)
        if home.parts != path.resolve().parts[-len(home.parts) :]:
            yield f"{path} holds rows of {row.method} on {row.dataset}, which belong in {home.as_posix()}. Move them."
            return
        texts = [getattr(row, name) for name in NUMBERS if name != "tie_sd" or row.tie_sd]
        if not all(map(_NUMBER.fullmatch, texts)):
            yield f"{path} has {', '.join(texts)} for {_name(row)}, expected six decimals each. Run it again."
        try:
            if (name := get_metric(row.metric).name) != row.metric:
                yield f"{_name(row)} calls the metric {row.metric}, which results call {name}. Run it again."
        except HashbenchError as error:
            yield f"{_name(row)}: {error}"
    for job in record.origins.keys() - {row.job for row in rows.values()}:
        yield (
            f"{path} has no rows of {' '.join(map(str, job))}, a job of {record_path(path).name}. Remove its line "
            "there, or run the job again."
        )


def about_contents(rows: Rows) -> Iterator[str]:
    """Describe built-in datasets with rows of several contents, and all with none of what is prepared here.

    Users' own datasets may have several contents of one name.
    """
    contents: dict[tuple[str, str, str], set[tuple[str, int]]] = {}
    for row in rows.values():
        place = row.dataset, row.features, canonical_json(left_out(row.params))
        contents.setdefault(place, set()).add((row.dataset_fingerprint, row.n_queries))
    for (dataset, features, without), found in contents.items():
        names = " and ".join(f"{n_queries} queries of {fingerprint}" for fingerprint, n_queries in sorted(found))
        if len(found) > 1 and is_dataset(split_name(dataset)[0]):
            yield f"{dataset} with features {features} has rows over {names}. Delete the rows of all but one."
        prepared = _fingerprint_here(dataset, features) if without == "{}" else None
        if prepared not in (None, *(fingerprint for fingerprint, _ in found)):
            yield (
                f"{dataset} with features {features} has rows over {names}, and is {prepared} as it is prepared here. "
                "Prepare it as docs/datasets.md says, or run the rows again."
            )


def about_jobs(rows: Rows, origins: Mapping[tuple[Any, ...], Origin]) -> Iterator[str]:
    """Describe jobs of unknown origin, of another version of their method, and of other code than their line's."""
    lines: dict[tuple[Any, ...], dict[str, str]] = {}  # a job by each code
    jobs = {(row.job, row.method_version): row for row in rows.values() if not is_own(row.params)}
    for (job, _), row in jobs.items():
        origin = origins.get(job)
        what = f"{row.dataset} ({row.features}) {row.method} {row.n_bits} bits seed {row.seed}"
        here = method_card(row.method).version if row.method in method_names() else row.method_version
        if row.method_version != here:
            advice = "Run it again." if row.method_version < here else "Update hashbench."
            yield f"{what} is of version {row.method_version} of {row.method}, which is at {here} here. {advice}"
        if origin is None:
            yield f"{what} has no line in {row.method}.json. Run it again."
        line = *job[:4], row.dataset_fingerprint
        lines.setdefault((*line, "version"), {}).setdefault(f"version {row.method_version}", what)
        if origin:
            lines.setdefault((*line, "code"), {}).setdefault(origin.plugin or "hashbench's own code", what)
    for codes in lines.values():
        if len(codes) > 1:
            made = ", and ".join(f"{what} was made by {code}" for code, what in codes.items())
            yield f"{made}. Run them again with the same code."


def _name(row: Row) -> str:
    return f"{row.dataset} ({row.features}) {row.method} {row.n_bits} bits seed {row.seed} {row.metric}"


def _fingerprint_here(dataset: str, features: str) -> str | None:
    """Return the fingerprint of a dataset as it is prepared here; None if it is not."""
    try:
        prepared = find_dataset(dataset_spec(dataset, features))
    except HashbenchError:
        return None
    return prepared.fingerprint if prepared is not None and prepared.features_name == features else None


# ---------------------------------------------------------------- rerunning a cell


def changed_cells(rows: Rows, base: Rows) -> list[list[Row]]:
    """Return the rows that are new or changed, a list per job."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for key, row in sorted(rows.items()):
        if base.get(key) != row:
            cells.setdefault(row.job, []).append(row)
    return list(cells.values())


def job_of(row: Row) -> Job:
    """Return the job of a row; refuse one that cannot be run here, or whose rows would have another key or version."""
    if row.method not in method_names():
        raise HashbenchError("no such method here.")
    spec, base = dataset_spec(row.dataset, row.features), split_name(row.dataset)[0]
    defaults, params = method_card(row.method).params, json.loads(row.params)
    changed = {key: value for key, value in params.items() if defaults.get(key, value) != value}
    if changed.get("weights") == "random":  # as recorded of dsh-net, which takes none
        del changed["weights"]
    (job,) = grid([spec], [(row.method, changed)], [row.n_bits], [row.seed], {})
    dataset = find_dataset(spec)
    if dataset is None and (not is_dataset(base) or dataset_class(base).needs):
        raise HashbenchError("not prepared.")
    here = job.provenance(dataset or load_dataset(spec)[0]).row
    differences = [
        f"{key} {getattr(row, key)}, here {value}" for key, value in here.items() if getattr(row, key) != value
    ]
    if differences:
        raise HashbenchError(f"{'; '.join(differences)}.")
    return job


def rerun(job: Job, cell: Sequence[Row]) -> tuple[Diff, Origin | None]:
    """Run a job from nothing but its dataset, in a fresh data folder, and compare its rows with those of a cell.

    Also returns the origin of the new rows.
    """
    load_dataset(job.dataset)
    job = replace(job, dataset=str(dataset_path(job.dataset)))
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        token = data_folder.set(folder)
        try:
            (outcome,) = run([job], Demands([row.metric for row in cell]))
        finally:
            data_folder.reset(token)
    if outcome.refusal:
        raise HashbenchError(f"{job} ends here with: {outcome.refusal}")
    sides = Side("in the file", {row.key: row for row in cell}), Side("rerun", {row.key: row for row in outcome.rows})
    return compare(*sides), outcome.made


def is_reproduced(diff: Diff, method: str) -> bool:
    """Return whether all digits are the same, or near where training enlarges the rounding of another processor."""
    rows = diff.rows[diff.rows["status"] != "unchanged"]
    card = method_card(method)
    if card.group in ("baseline", "unsupervised") and "epochs" not in card.params:
        return rows.empty
    is_near = (rows["status"] == "changed") & (rows["difference"].abs() <= TOLERANCE)
    return bool((is_near & (rows["n_undefined_old"] == rows["n_undefined_new"])).all())


def compare_origins(origin: Origin | None, here: Origin | None) -> str:
    """Describe how the environment that rows come from differs from this one."""
    if origin is None or here is None:
        return "The environment of the rows was not recorded."
    differences = origin.differences(here)
    return f"Environment of the rows: {', '.join(differences) or 'the same'}."
