"""When, where and with what the rows of results were computed, as recorded beside them."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from hashbench.registry import features_kind, is_built_in
from hashbench.reports.aggregate import known_card, rank_settings
from hashbench.store.origin import Origin
from hashbench.store.result_rows import JOB
from hashbench.store.results import find_files, read_record, read_results

N_TRIALS = 9  # settings tried on these to choose defaults of learned methods: benchmarks/tuning.csv
TRIED_ON = {
    ("cifar10-s1", "squeezenet"): "cifar10-s1:squeezenet",
    ("digits-pairs", "pixels"): "digits-pairs",
    ("tmc2007", "features"): "tmc2007",
}


def read_results_with_origins(folder: Path) -> pd.DataFrame:
    """Read the results of a folder, with the columns of `with_origins`."""
    return with_origins(read_results(folder), read_record(find_files(folder)).origins)


def with_origins(results: pd.DataFrame, origins: Mapping[tuple[Any, ...], Origin]) -> pd.DataFrame:
    """Return results with columns on the origin of each row.

    ``trials`` is how many settings were tried on its data to choose its, and ``tuned`` how many of these are recorded
    with it. ``code_min`` and ``code_max`` are one number for each code of plug-ins, NaN where it was not recorded.
    """
    jobs = results[list(JOB)].drop_duplicates()
    keys = list(jobs.itertuples(index=False, name=None))
    recorded = list(map(origins.get, keys))
    numbers = {plugin: number for number, plugin in enumerate(sorted({origin.plugin for origin in recorded if origin}))}
    code = [numbers[origin.plugin] if origin else float("nan") for origin in recorded]
    trials, tuned = list(map(n_trials, keys, recorded)), list(map(_n_recorded, recorded))
    return results.merge(jobs.assign(trials=trials, tuned=tuned, code_min=code, code_max=code), how="left")


def n_trials(job: Sequence[Any], origin: Origin | None) -> int:
    """Return how many settings its own were chosen among on a job's data, as recorded or as for our defaults; or 0."""
    is_ours = (job[0], features_kind(job[1])) in TRIED_ON and has_tried_settings(*job[2:5])
    return _n_recorded(origin) or N_TRIALS * is_ours


def _n_recorded(origin: Origin | None) -> int:
    return origin.trials if origin and origin.trials > 1 else 0  # a single one was not chosen


@cache
def has_tried_settings(method: str, params: str, n_bits: int) -> bool:
    """Return whether parameters (JSON) are the defaults of a method that `N_TRIALS` is of."""
    card = known_card(method)
    is_tuned = is_built_in(method) and card is not None and card.is_learned
    return is_tuned and rank_settings(method, params, n_bits)[0] == 0


def describe_origin(origin: Origin, job: Sequence[Any]) -> list[str]:
    """Return lines on a job: date and version, machine, libraries, how many settings were tried, and last the time."""
    n_settings, where = n_trials(job, origin), ""
    if not n_settings and has_tried_settings(*job[2:5]):
        n_settings, where = N_TRIALS, f" on {', '.join(TRIED_ON.values())}"
    return [
        f"made on {origin.date} by hashbench {origin.hashbench}{' at ' * bool(origin.commit)}{origin.commit}",
        f"{origin.processor}, threads {origin.threads}, {origin.device}",
        origin.libraries,
        *([f"settings chosen among {n_settings}{where}"] if n_settings else []),
        f"{origin.seconds:,.2f} s to fit and encode",
    ]
