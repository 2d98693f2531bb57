"""When, where and with what the rows of results were computed, as recorded beside them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from hashbench.errors import HashbenchError, counted
from hashbench.registry import features_kind, is_built_in
from hashbench.reports.aggregate import known_card, rank_settings
from hashbench.reports.formatting import plain_table
from hashbench.store.origin import JobRecord
from hashbench.store.result_files import find_files, job_key, jobs_path, read_job_records, results_path
from hashbench.store.result_rows import JOB, is_own
from hashbench.store.results import read_results, read_rows

N_TRIALS = 9  # settings tried on these to choose defaults of learned methods: benchmarks/tuning.csv
TRIED_ON = {
    ("cifar10-s1", "squeezenet"): "cifar10-s1:squeezenet",
    ("digits-pairs", "pixels"): "digits-pairs",
    ("tmc2007", "features"): "tmc2007",
}
_SHOWN = [
    *("features", "settings", "n_bits", "seed", "date", "commit", "hashbench", "libraries", "processor", "threads"),
    *("device", "seconds", "trials"),
]


def read_origins(paths: Iterable[Path]) -> dict[tuple[Any, ...], JobRecord]:
    """Read the recorded origins of rows of results files, by method and key of the job."""
    return {(path.stem, *key): origin for path in paths for key, origin in read_job_records(path).items()}


def origin_of(origins: Mapping[tuple[Any, ...], JobRecord], job: Sequence[Any]) -> JobRecord | None:
    """Return the origin of a row or job, by its key; None if it was not recorded."""
    return origins.get((job[2], *job_key(job)))


def read_results_with_origins(folder: Path) -> pd.DataFrame:
    """Read the results of a folder, with the columns of `with_origins`."""
    return with_origins(read_results(folder), read_origins(find_files(folder)))


def with_origins(results: pd.DataFrame, origins: Mapping[tuple[Any, ...], JobRecord]) -> pd.DataFrame:
    """Return results with columns on the origin of each row.

    ``trials`` is how many settings were tried on its data to choose its, and ``tuned`` how many of these are recorded
    with it. ``code_min`` and ``code_max`` are one number for each code of plug-ins, NaN where it was not recorded.
    """
    jobs = results[list(JOB)].drop_duplicates()
    keys = list(jobs.itertuples(index=False, name=None))
    recorded = [origin_of(origins, key) for key in keys]
    numbers = {plugin: number for number, plugin in enumerate(sorted({origin.plugin for origin in recorded if origin}))}
    code = [numbers[origin.plugin] if origin else float("nan") for origin in recorded]
    trials, tuned = list(map(n_trials, keys, recorded)), list(map(_n_recorded, recorded))
    return results.merge(jobs.assign(trials=trials, tuned=tuned, code_min=code, code_max=code), how="left")


def n_trials(job: Sequence[Any], origin: JobRecord | None) -> int:
    """Return how many settings its own were chosen among on a job's data, as recorded or as for our defaults; or 0."""
    is_ours = (job[0], features_kind(job[1])) in TRIED_ON and has_tried_settings(*job[2:5])
    return _n_recorded(origin) or N_TRIALS * is_ours


def _n_recorded(origin: JobRecord | None) -> int:
    return origin.trials if origin and origin.trials > 1 else 0  # a single one was not chosen


@cache
def has_tried_settings(method: str, params: str, n_bits: int) -> bool:
    """Return whether parameters (JSON) are the defaults of a method that `N_TRIALS` is of."""
    card = known_card(method)
    is_tuned = is_built_in(method) and card is not None and card.is_learned
    return is_tuned and rank_settings(method, params, n_bits)[0] == 0


def describe_origin(origin: JobRecord, job: Sequence[Any]) -> list[str]:
    """Return lines on a job: date and version, machine, libraries, time, and how many settings were tried."""
    n_settings, where = n_trials(job, origin), ""
    if not n_settings and has_tried_settings(*job[2:5]):
        n_settings, where = N_TRIALS, f" on {', '.join(TRIED_ON.values())}"
    return [
        f"made on {origin.date} by hashbench {origin.hashbench}{' at ' * bool(origin.commit)}{origin.commit}",
        f"{origin.processor}, threads {origin.threads}, {origin.device}",
        origin.libraries,
        f"{float(origin.seconds):,.2f} s to fit and encode",
        *([f"settings chosen among {n_settings}{where}"] if n_settings else []),
    ]


def origin_table(folder: Path, dataset: str, method: str) -> str:
    """Lay out the origins of the results of a method on a dataset, one line per job, libraries and parameters below."""
    rows = [row for row in read_rows(folder, dataset) if row.method == method and row.dataset == dataset]
    if not rows:
        raise HashbenchError(
            f"there are no results of {method!r} on {dataset!r} in {folder}. Make some: hashbench run --dataset "
            f"{dataset} --method {method}."
        )
    if all(is_own(row.params) for row in rows):
        raise HashbenchError(f"{method} are saved codes, whose origin is not recorded. See the files they came from.")
    path = results_path(folder, dataset, method)
    jobs = {job_key(row.key): row for row in rows}
    origins = [origin for key, origin in read_job_records(path).items() if key in jobs]
    if not origins:
        raise HashbenchError(
            f"{jobs_path(path)} does not record the origin of the {counted(len(jobs), 'job')} of {method} on "
            f"{dataset}. Rerun them with --force, in all their metrics."
        )
    table = pd.DataFrame(origins)
    libraries = {versions: f"[{number}]" for number, versions in enumerate(table["libraries"].unique(), 1)}
    has_several = len({origin.dataset_fingerprint for origin in origins}) > 1
    shown = [*_SHOWN[:1], *["dataset_fingerprint"] * has_several, *_SHOWN[1:]]
    table = table.assign(libraries=table["libraries"].map(libraries))[shown].astype(str)
    table = table.replace({"commit": {"": "-"}, "trials": {"0": "-"}}).rename(
        columns={"n_bits": "bits", "dataset_fingerprint": "content"}
    )
    text = [plain_table(table.columns.tolist(), table.to_numpy().tolist(), n_left=2), ""]
    text += [f"{number} {versions}" for versions, number in libraries.items()]
    params = {origin.settings: jobs[origin.key].params for origin in origins}
    text += [f"{name}: {values}" for name, values in sorted(params.items())]
    if len(origins) < len(jobs):
        text.append(f"The origin of the other {len(jobs) - len(origins)} of {len(jobs)} jobs was not recorded.")
    return "\n".join(text)
