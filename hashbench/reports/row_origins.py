"""What made the rows of results, as it stands beside them: found again, in a few words, and as a table to read."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from hashbench.errors import HashbenchError
from hashbench.registry import is_built_in
from hashbench.reports.aggregate import known_card, rank_settings
from hashbench.reports.formatting import plain_table
from hashbench.store.origin import Made
from hashbench.store.results import COLUMNS, made_key, made_path, read_made, read_rows, results_path

OURS = 9  # settings tried, per dataset, to choose the defaults of a built-in method: benchmarks/tuning.csv


def read_lines(paths: Iterable[Path]) -> dict[tuple[Any, ...], Made]:
    """Read what made the rows of results files, by method and key of the job, as far as it is known."""
    return {(path.stem, *key): made for path in paths for key, made in read_made(path).items()}


def line_of(lines: Mapping[tuple[Any, ...], Made], job: Sequence[Any]) -> Made | None:
    """Find what made a row among `read_lines`, by the key of the row or its job; None if that is not known."""
    return lines.get((job[2], *made_key(job)))


def with_trials(results: pd.DataFrame, lines: Mapping[tuple[Any, ...], Made]) -> pd.DataFrame:
    """Return results with a column ``trials``: how many settings were tried to choose those of each row."""
    jobs = results[list(COLUMNS[:6])].drop_duplicates()
    keys = list(jobs.itertuples(index=False, name=None))
    return results.merge(jobs.assign(trials=[n_trials(key, line_of(lines, key)) for key in keys]), how="left")


def n_trials(job: Sequence[Any], made: Made | None) -> int:
    """Return how many settings were tried to choose those of a job, as its line says or for our defaults."""
    return (made.trials if made else 0) or _n_trials_of_ours(*job[2:5])


@cache
def _n_trials_of_ours(method: str, params: str, n_bits: int) -> int:
    card = known_card(method)
    is_tuned = (
        is_built_in(method) and card is not None and card.tunable and rank_settings(method, params, n_bits)[0] < 2
    )
    return OURS if is_tuned else 0


def in_words(made: Made, n_settings: int) -> list[str]:
    """Tell what made a job, a line each of day and version, machine, libraries, time, and settings tried."""
    return [
        f"made on {made.date} by hashbench {made.hashbench}{' at ' * bool(made.commit)}{made.commit}",
        f"{made.processor}, threads {made.threads}, {made.device}",
        made.libraries,
        f"{float(made.seconds):,.2f} s to fit and encode",
        *([f"settings chosen among {n_settings}"] if n_settings else []),
    ]


def made_table(folder: Path, dataset: str, method: str) -> str:
    """Lay out what made the results of a method on a dataset, a line a job, libraries and parameters below."""
    rows = [row for row in read_rows(folder, dataset) if row.method == method and row.dataset == dataset]
    if not rows:
        raise HashbenchError(
            f"there are no results of {method!r} on {dataset!r} in {folder}. Make some: hashbench run --dataset "
            f"{dataset} --method {method}."
        )
    path = results_path(folder, dataset, method)
    jobs = {made_key(row.key): row for row in rows}
    lines = [made for key, made in read_made(path).items() if key in jobs]
    if not lines:
        raise HashbenchError(
            f"{made_path(path)} says nothing of what made the {len(jobs)} jobs of {method} on {dataset}: it was not "
            "recorded then. Run them again with --force, in all metrics that they have."
        )
    libraries = list(dict.fromkeys(made.libraries for made in lines))
    cells = [
        [
            *(made.features, made.settings, str(made.n_bits), str(made.seed), made.date, made.commit or "-"),
            *(made.hashbench, f"[{libraries.index(made.libraries) + 1}]", made.processor, str(made.threads)),
            *(made.device, f"{float(made.seconds):,.2f}", str(made.trials or "-")),
        ]
        for made in lines
    ]
    header = [
        "features",
        "settings",
        "bits",
        "seed",
        "date",
        "commit",
        "hashbench",
        "libraries",
        "processor",
        "threads",
    ]
    told = [plain_table([*header, "device", "seconds", "trials"], cells, n_left=2), ""]
    told += [f"[{number}] {text}" for number, text in enumerate(libraries, 1)]
    params = {made.settings: jobs[made.key].params for made in lines}
    told += [f"{name}: {text}" for name, text in sorted(params.items())]
    if len(lines) < len(jobs):
        told.append(f"What made the other {len(jobs) - len(lines)} of {len(jobs)} jobs is not known.")
    return "\n".join(told)
