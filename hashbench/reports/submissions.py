"""Checks of results files: whether they are as hashbench writes them, and whether a cell can be reproduced."""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

from hashbench.bits import MAX_BITS
from hashbench.cards import MethodCard, method_card
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import Job, grid
from hashbench.pipeline.preparation import dataset_path, find_dataset, load_dataset, prepare_own
from hashbench.pipeline.recipes import Recipe, command_of, find_recipe, lacking_here, read_options
from hashbench.pipeline.runner import run
from hashbench.pipeline.steps import Demands
from hashbench.registry import dataset_class, dataset_spec, is_dataset, method_names
from hashbench.reports.row_origins import origin_of
from hashbench.scoring.metrics import get_metric
from hashbench.store.files import data_folder
from hashbench.store.origin import JobRecord
from hashbench.store.result_files import (
    ResultsFile,
    find_files,
    job_key,
    jobs_path,
    read_file,
    read_job_records,
    read_recipes,
    results_path,
    rows_text,
    unite,
)
from hashbench.store.result_rows import N_JOB, NUMBERS, Row, is_own, left_out
from hashbench.unseen import split_name

_NUMBER = re.compile(r"[01]\.\d{6}|nan")
_TOLERANCE = 0.03  # of methods that train; between processors, .0212 was measured (docs/explanation/numbers.md)
_Rows = dict[tuple[Any, ...], Row]


def result_files(paths: Iterable[Path]) -> list[Path]:
    """Return the results files at paths; in place of a folder all in it, sorted by name."""
    results = [file for path in paths for file in (find_files(path) if path.is_dir() else [path])]
    if not results:
        raise HashbenchError("there is no results file here. Name one, or the folder: hashbench results check results.")
    return results


def read_files(paths: Iterable[Path]) -> tuple[_Rows, list[str]]:
    """Read results files; return their rows by key, and a sentence per file that is not as hashbench writes it."""
    rows: _Rows = {}
    problems = []
    for path in paths:
        try:
            file = read_file(path)
            file_rows = unite([file])
            rows |= file_rows
            _check_file(path, file, file_rows)
        except HashbenchError as error:
            problems.append(str(error))
    return rows, problems


def _check_file(path: Path, file: ResultsFile, rows: _Rows) -> None:
    """Refuse a readable file that is not as hashbench writes it."""
    if not rows:
        raise HashbenchError(f"{path} holds no row. Remove it.")
    for row in rows.values():
        home = results_path("", row.dataset, row.method)
        if home.parts != path.resolve().parts[-len(home.parts) :]:
            raise HashbenchError(
                f"{path} holds rows of {row.method} on {row.dataset}, which belong in {home.as_posix()}. Move them."
            )
        texts = [getattr(row, name) for name in NUMBERS if name != "tie_sd" or row.tie_sd]
        if not all(map(_NUMBER.fullmatch, texts)):
            raise HashbenchError(
                f"{path} has {', '.join(texts)} for {_name(row)}, expected six decimals each. Run it again."
            )
    if not any(True for row in rows.values() for _ in _about_row(row)):  # else that is the reason, and reported
        _check_lines(path, file.content.decode(), rows_text(rows.values()))
    read_recipes(path.parent)
    contents = {(*job_key(row.key), row.method_version) for row in rows.values()}
    for origin in read_job_records(path).values():
        if origin[:7] not in contents:
            raise HashbenchError(
                f"{path} has no rows of {' '.join(map(str, origin[:5]))} with the content and version that "
                f"{jobs_path(path).name} records. Remove its line there, or run the job again."
            )


def _check_lines(path: Path, text: str, written: str) -> None:
    """Refuse the first line that differs from what hashbench writes for the rows of a file."""
    if text == written:
        return
    lines, expected = text.splitlines(), written.splitlines()
    numbers = (number for number, pair in enumerate(zip(lines, expected, strict=False), start=1) if len({*pair}) > 1)
    number = next(numbers, len(expected))
    fault = "out of order: rows are sorted by their key" if sorted(lines) == sorted(expected) else "spelt otherwise"
    shown = expected[number - 1] if number <= len(expected) else "no more lines"
    raise HashbenchError(
        f"{path}, line {number}, is not as hashbench writes it but {fault}. Expected there: {shown}. Let hashbench run "
        "write the file."
    )


def about_rows(rows: _Rows) -> list[str]:
    """Describe what contradicts this version of hashbench."""
    return list(dict.fromkeys(problem for row in rows.values() for problem in _about_row(row)))


def about_contents(rows: _Rows, recipes: Mapping[str, Recipe] = MappingProxyType({})) -> list[str]:
    """Describe built-in datasets with rows of several contents, and those with none of what is prepared here.

    Users' own datasets may have several contents of one name.
    """
    problems: list[str] = []
    places: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows.values():
        place = row.dataset, row.features, canonical_json(left_out(row.params))
        places.setdefault(place, {}).setdefault(_content(row), row)
    for (dataset, features, _), (first, *others) in ((place, [*of.values()]) for place, of in places.items()):
        problems += [
            f"{_name(row)} is over {_content(row)}, and {_name(first)} over {_content(first)}. Tables show both; "
            "delete the rows of one, or give one of the datasets another name."
            for row in (others if is_dataset(split_name(dataset)[0]) else ())
        ]
        prepared = None if left_out(first.params) else _fingerprint_here(dataset, features)
        if prepared not in (None, *(row.dataset_fingerprint for row in (first, *others))):
            recipe = find_recipe(recipes, first.dataset_fingerprint)
            how = f": {command_of(split_name(dataset)[0], recipe)}" if recipe else " as in docs/datasets.md and rerun."
            problems.append(
                f"{dataset} with features {features} is {first.dataset_fingerprint} in {_name(first)}, and {prepared} "
                f"as it is prepared here. Prepare it{how}"
            )
    return problems


def _content(row: Row) -> str:
    return f"{row.n_queries} queries of {row.dataset_fingerprint}"


def about_jobs(rows: _Rows, origins: Mapping[tuple[Any, ...], JobRecord]) -> list[str]:
    """Describe jobs without a record, and those of an older version of their method than the one here."""
    problems = []
    for key, row in {key[:N_JOB]: row for key, row in rows.items() if not is_own(row.params)}.items():
        card = method_card(row.method) if row.method in method_names() else None
        if origin_of(origins, key) is None:
            problems.append(f"{_job(row)} has no line in {row.method}.jobs.csv. Run it again.")
        elif card and row.method_version < card.version:
            problems.append(
                f"{_job(row)} is of version {row.method_version} of {row.method}, which is at {card.version} here. "
                "Run it again."
            )
    return problems


def about_code(rows: _Rows, origins: Mapping[tuple[Any, ...], JobRecord]) -> list[str]:
    """Describe rows of a method with the same parameters that different code made."""
    first: dict[tuple[Any, ...], tuple[str, str]] = {}
    problems = {}
    for row in rows.values():
        origin, job = origin_of(origins, row.key), f"{row.n_bits} bits seed {row.seed}"
        codes = [f"version {row.method_version}", *([origin.plugin or "hashbench's own code"] if origin else [])]
        for kind, code in enumerate(codes):
            line = row.dataset, row.features, row.dataset_fingerprint, row.method, row.params, kind
            other_job, other = first.setdefault(line, (job, code))
            if code != other:
                problems[line] = (
                    f"{row.dataset} ({row.features}) {row.method} {other_job} was made by {other}, and {job} by {code}."
                    " Run them again with the same code."
                )
    return list(problems.values())


def _about_row(row: Row) -> Iterator[str]:
    """Describe what contradicts this version of hashbench."""
    try:
        name = get_metric(row.metric).name
        if name != row.metric:
            yield f"{_name(row)} calls the metric {row.metric}, which results call {name}. Run it again."
    except HashbenchError as error:
        yield f"{_name(row)}: {error}"
    if row.n_bits > MAX_BITS and not is_own(row.params):
        yield f"{_name(row)} has codes of {row.n_bits:,} bits, and methods make at most {MAX_BITS:,}. Run it again."
    if row.method in method_names() and row.method_version > method_card(row.method).version:
        yield (
            f"{_name(row)} is of version {row.method_version} of {row.method}, which is at "
            f"{method_card(row.method).version} here. Update hashbench."
        )


def _fingerprint_here(dataset: str, features: str) -> str | None:
    """Return the fingerprint of a dataset as it is prepared here; None if it is not."""
    try:
        prepared = find_dataset(dataset_spec(dataset, features))
    except HashbenchError:
        return None
    return prepared.fingerprint if prepared is not None and prepared.features_name == features else None


def changed_cells(rows: _Rows, base: _Rows) -> list[list[Row]]:
    """Return the rows that are new or changed, a list per job."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for key, row in sorted(rows.items()):
        if base.get(key) != row:
            cells.setdefault(key[:N_JOB], []).append(row)
    return list(cells.values())


def chosen_cells(cells: Sequence[list[Row]], choice: Mapping[str, Collection[object]]) -> list[list[Row]]:
    """Return the parts of cells that have the chosen values of columns, or all."""
    chosen = [
        [row for row in cell if all(not values or getattr(row, column) in values for column, values in choice.items())]
        for cell in cells
    ]
    if cells and not any(chosen):
        raise HashbenchError("no new or changed row has all of the chosen values. Leave out some of the options.")
    return [cell for cell in chosen if cell]


def find_recipes(paths: Iterable[Path]) -> dict[str, Recipe]:
    """Read how the users' own datasets of results files were prepared, by fingerprint, from files that can be read."""
    recipes: dict[str, Recipe] = {}
    for path in paths:
        with suppress(HashbenchError):
            recipes |= read_recipes(path.parent)
    return recipes


def runnable(
    cells: Sequence[list[Row]], recipes: Mapping[str, Recipe] = MappingProxyType({})
) -> tuple[list[tuple[Job, list[Row]]], list[str]]:
    """Split cells into those that can be run here and reasons for the others.

    A cell can be run with built-in or prepared data of its content, or data that a recipe prepares from files here, and
    a known method with these parameters.
    """
    why_not = cache(partial(_why_not, recipes))
    jobs = [(_job_of(cell[0], why_not), cell) for cell in cells]
    refused = {f"{cell[0].dataset} {cell[0].method} ({job})" for job, cell in jobs if isinstance(job, str)}
    return [(job, cell) for job, cell in jobs if isinstance(job, Job)], sorted(refused)


def _job_of(row: Row, why_not: Callable[[str, str, str], str]) -> Job | str:
    """Return the job of a row, or the reason why it cannot be run here, which may be its dataset's."""
    if row.method not in method_names():
        return "no method here"
    card, spec = method_card(row.method), dataset_spec(row.dataset, row.features)
    if row.method_version < card.version:
        return f"of version {row.method_version}, here {card.version}"
    recorded = json.loads(row.params)
    changed = {key: value for key, value in recorded.items() if key in card.params and card.params[key] != value}
    try:
        if reason := why_not(row.dataset, row.features, row.dataset_fingerprint):
            return reason
        (job,) = grid([spec], [(row.method, changed)], [row.n_bits], [row.seed], {})
    except HashbenchError:
        return "no such dataset or settings here"
    if canonical_json({**job.estimator.recorded_params()}) != row.params:
        return "other parameters here"
    return job if job.seed == row.seed else "deterministic, so only seed 0 is run"


def _why_not(recipes: Mapping[str, Recipe], dataset: str, features: str, fingerprint: str) -> str:
    """Return why a dataset of this content cannot be had here; empty if it can."""
    recipe = find_recipe(recipes, fingerprint)
    if recipe is not None and _fingerprint_here(dataset, features) != fingerprint:
        return ", ".join(lacking_here(recipe))
    prepared = find_dataset(dataset_spec(dataset, features))
    if prepared is None and dataset_class(split_name(dataset)[0]).needs:
        return "not prepared"
    if prepared is not None and prepared.fingerprint != fingerprint:
        return f"of content {fingerprint}, here {prepared.fingerprint}"
    return ""


def rerun(
    job: Job,
    cell: Sequence[Row],
    origin: JobRecord | None = None,
    recipes: Mapping[str, Recipe] = MappingProxyType({}),
) -> tuple[list[str], list[str]]:
    """Rerun a job from nothing but its dataset, in a fresh folder; ``origin`` is that of the rows, if recorded.

    A user's own dataset that is not prepared here with the content of the rows is prepared in that folder, by its
    recipe. Returns a sentence for each row that differs, and one on those where another processor may be the reason.
    """
    fingerprint = cell[0].dataset_fingerprint
    recipe, data = find_recipe(recipes, fingerprint), ""
    if recipe is None or _fingerprint_here(cell[0].dataset, cell[0].features) == fingerprint:
        load_dataset(job.dataset)
        recipe, data = None, str(dataset_path(job.dataset))
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        token = data_folder.set(folder)
        try:
            if recipe is not None:
                name = split_name(cell[0].dataset)[0]
                prepare_own(*read_options(name, recipe["options"], f"the recipe of {name}"))
                dataset, _ = load_dataset(job.dataset)
                if dataset.fingerprint != fingerprint:
                    return [
                        f"{job.dataset} has content {dataset.fingerprint} as its recipe prepares it here, and "
                        f"{fingerprint} in {_name(cell[0])}. Rerun it with the versions of constraints.txt."
                    ], []
            job_here = Job(data or job.dataset, job.card, job.n_bits, job.seed, job.params)
            (outcome,) = run([job_here], Demands([row.metric for row in cell]))
        finally:
            data_folder.reset(token)
    if outcome.refusal:
        return [f"{job} ends here with: {outcome.refusal}"], []
    again = {row.metric: row for row in outcome.rows}
    origins = _compare_origins(origin, outcome.made)
    tolerance = 0.0 if _is_exact(job.card) else _TOLERANCE
    problems, small = [], []
    for row in cell:
        difference = _difference(row, again[row.metric])
        if not difference <= tolerance:
            largest = f", which differ by up to {difference:.6f}" if difference < math.inf else ""
            problems.append(
                f"{_name(row)} is {_numbers(row)} in the file and {_numbers(again[row.metric])} when rerun{largest}. "
                f"Rerun it with the versions of constraints.txt.{origins}"
            )
        elif difference:
            small.append(f"{row.metric} by up to {difference:.6f}")
    if not small:
        return problems, []
    return problems, [
        f"{job} differs here in {', '.join(small)}. Processors round sums differently, and training enlarges that; up "
        f"to {_TOLERANCE} is no error (docs/explanation/numbers.md).{origins}"
    ]


def _compare_origins(origin: JobRecord | None, here: JobRecord | None) -> str:
    """Describe, after a space, how the environment that rows come from differs from this one."""
    if origin is None or here is None:
        return " Its environment was not recorded."
    differences = origin.differences(here)
    return f" It was {', '.join(differences)}." if differences else " Its environment was the same."


def _is_exact(card: MethodCard) -> bool:
    """Return whether a method gives the same codes on every processor; optimisers may not."""
    return card.group in ("baseline", "unsupervised") and "epochs" not in card.params


def _difference(old: Row, row: Row) -> float:
    """Return the largest difference of numbers that the old row has; NaN or infinite if anything else differs."""
    if row._replace(**{name: getattr(old, name) for name in NUMBERS}) != old:
        return math.inf
    pairs = [(getattr(old, name), getattr(row, name)) for name in NUMBERS]
    differences = [abs(float(then) - float(now or "inf")) for then, now in pairs if then not in ("", now)]
    return round(float(np.max(differences, initial=0.0)), 6)


def _name(row: Row) -> str:
    return f"{_job(row)} {row.metric}"


def _job(row: Row) -> str:
    return f"{row.dataset} ({row.features}) {row.method} {row.n_bits} bits seed {row.seed}"


def _numbers(row: Row) -> str:
    return " ".join(map(str, row.rest))
