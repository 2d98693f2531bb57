"""Choose settings of methods on held-out training items, never on queries, with the same effort for every method."""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import IntArray, Progress, silent
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import Damaged, HashbenchError
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import TUNED, Job, Sweep, by_variant, grid, spelled
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.runner import Demands, Outcome, load_once
from hashbench.pipeline.steps import vectors_of
from hashbench.pipeline.study import DEFAULT_DATASETS, Study
from hashbench.pipeline.workers import run_side_by_side
from hashbench.scoring.metrics import get_metric
from hashbench.store import hdf5
from hashbench.store.files import data_dir, locked, write_text
from hashbench.store.inputs import reading
from hashbench.store.results import csv_text

HELD_OUT = 0.2  # of the training items
SCORES = ("among_held_out", "to_trained")  # held-out items as queries to other held-out ones, and to those learned from
KEY = ("dataset", "dataset_fingerprint", "method", "method_version", "setting", "n_bits", "seed", "metric")
COLUMNS = (*KEY, *SCORES, "seconds", "failure")
TRIALS, GRID = "trials.csv", "grid.toml"  # what tune writes
_NUMBERS = ("n_bits", "seed")
Rows = dict[tuple[str, ...], dict[str, str]]  # of trials, by their key


@dataclass(frozen=True, eq=False)
class Trial:
    """A job on a split of training items."""

    job: Job
    dataset: str  # whose training items they are, as users call it
    fingerprint: str
    seed: int  # of the split, and of training if that draws

    def __str__(self) -> str:
        return str(replace(self.job, dataset=self.dataset))

    @property
    def setting(self) -> str:
        """Its parameters, as rows have them."""
        return canonical_json(dict(self.job.params))

    def key(self, metric: str) -> tuple[str, ...]:
        """Return the key of its row of a metric."""
        job = self.job
        numbers = job.card.version, self.setting, job.n_bits, self.seed
        return self.dataset, self.fingerprint, job.method, *map(str, numbers), get_metric(metric).name


@dataclass(frozen=True)
class Choice:
    """The best settings of a method, and what it took to find them.

    ``params`` is None if no settings went through all their trials; ``default`` is NaN if the default ones did not.
    """

    method: str
    params: Mapping[str, Any] | None
    score: float
    default: float
    n_trials: int
    n_failed: int


def hold_out(dataset: Dataset, seed: int) -> Dataset:
    """Return a dataset of training items alone: a fifth of them are its queries, all others its database.

    The first half of the queries can be ranked against the second one: see `among_held_out`.
    """
    if dataset.rule == "explicit" or (dataset.rule == "neighbours" and dataset.features is None):
        raise HashbenchError(
            f"dataset {dataset.name!r} says which database items are relevant to its queries, and nothing of held-out "
            "training items. Tune on a dataset with labels, or with features to compare."
        )
    order = np.random.default_rng(seed).permutation(len(dataset.train))
    held, kept = np.split(order, [round(HELD_OUT * len(order))])
    if len(held) < 2:
        raise HashbenchError(
            f"dataset {dataset.name!r} has {len(order)} training items, and at least 8 are needed to hold out a fifth."
        )
    whole = {key: getattr(dataset, key) for key in ("features", "images", "labels", "coarse_labels")}
    items: dict[str, Any] = {key: None if part is None else part[dataset.train] for key, part in whole.items()}
    return _with_roles(
        *(dataset, held, kept, kept, dataset.n_neighbours / len(dataset.database)),
        **items,
        name=f"{dataset.name[:60]}-held-out-{dataset.fingerprint}-s{seed}",
        part_of="",
        about={},
    )


def among_held_out(split: Dataset) -> Dataset:
    """Return the first half of a split's held-out items as queries, the second one as database."""
    queries, others = np.array_split(split.query, 2)
    return _with_roles(split, queries, others, split.train, split.n_neighbours / len(split.database))


def _with_roles(
    dataset: Dataset, query: IntArray, database: IntArray, train: IntArray, share: float, **changes: Any
) -> Dataset:
    """Give items other roles; where each query has a list of neighbours, it is that share of the database."""
    features = changes.get("features", dataset.features)
    if dataset.rule == "neighbours" and features is not None:
        from hashbench.sources.neighbours import find_neighbours

        n_neighbours = max(1, round(share * len(database)))
        found, _ = find_neighbours(features[query], features[database], n_neighbours, dataset.true_distance)
        changes["neighbours"] = found
    return replace(dataset, query=query, database=database, train=train, **changes)


def settings_to_try(
    space: Mapping[str, Sequence[Any]], defaults: Mapping[str, Any], n_trials: int, seed: int
) -> list[dict[str, Any]]:
    """Return at most so many settings: the default ones, then all others of a small grid, or a draw spread evenly.

    Examples
    --------
    >>> settings_to_try({"rate": [0.1, 0.3]}, {"rate": 0.1}, 9, seed=0)
    [{}, {'rate': 0.3}]
    """
    default = tuple(
        next((place for place, value in enumerate(space[key]) if value == defaults.get(key)), -1) for key in space
    )
    n_others = math.prod(map(len, space.values())) - (-1 not in default)
    n_drawn = min(n_others, n_trials - 1)
    places: dict[tuple[int, ...], None] = {}  # in order
    if n_drawn == n_others:
        places = dict.fromkeys(product(*(range(len(values)) for values in space.values())))
        places.pop(default, None)
    elif n_drawn:
        from scipy.stats import qmc

        sizes = [len(values) for values in space.values()]
        sampler = qmc.Halton(len(space), rng=seed)
        while len(places) < n_drawn:
            drawn = tuple(int(share * size) for share, size in zip(sampler.random()[0], sizes, strict=True))
            if drawn != default:
                places[drawn] = None
    return [{}, *({key: space[key][place] for key, place in zip(space, one, strict=True)} for one in places)]


def plan(study: Study, n_trials: int) -> list[Trial]:
    """Return the trials of a study: the same settings of a method at all code lengths, on all datasets and seeds.

    Parameters that the study gives one value are fixed; those with several are tried with these, others with the
    values that the method declares.
    """
    variants: list[tuple[str, Mapping[str, Any]]] = []
    for card, said, _ in by_variant(study.methods, study.params):
        if "preset" in said:
            raise HashbenchError("tune starts from the defaults, and takes no preset. Give its values by --param.")
        fixed = {key: value for key, value in said.items() if not isinstance(value, Sweep)}
        declared = {key: values for key, values in card.tunable.items() if key not in fixed}
        space = declared | {key: list(value) for key, value in said.items() if key not in fixed}
        settings = settings_to_try(space, card.params, n_trials, study.seeds[0])
        variants += [(card.name, {**fixed, **setting}) for setting in settings]
    specs, seeds = dict.fromkeys(map(spelled, study.datasets or DEFAULT_DATASETS)), dict.fromkeys(study.seeds)
    jobs = {key: grid([key[0]], variants, study.n_bits, [key[1]], {}) for key in product(specs, seeds)}
    trials = []
    for spec in specs:  # what is wrong with a job has shown before anything is written
        dataset, _ = load_dataset(spec)
        for seed in seeds:
            split = str(split_file(dataset, seed))
            trials += [Trial(replace(job, dataset=split), spec, dataset.fingerprint, seed) for job in jobs[spec, seed]]
    return trials


def split_file(dataset: Dataset, seed: int) -> Path:
    """Write the split of a dataset, unless it is there."""
    split = hold_out(dataset, seed)
    path = data_dir() / "held-out" / f"{split.name}.h5"
    with locked(path):
        with suppress(Damaged):
            if path.exists() and hdf5.read_dataset(path).fingerprint == split.fingerprint:
                return path
        hdf5.write_dataset(split, path)
    return path


def run_trials(
    trials: Sequence[Trial],
    metric_names: Sequence[str],
    path: Path,
    n_jobs: int = 1,
    *,
    resume: bool = False,
    on_progress: Progress = silent,
    cluster: Cluster | None = None,
) -> Iterator[tuple[Trial, Rows, bool]]:
    """Do trials, and add the rows of each to a file as soon as it is done; yield as `judged` does.

    Those that are done already are found again, as jobs are; with ``resume`` all that the file holds, failed ones too.
    """
    known = read_trials(path)
    left = []
    for trial in trials:
        keys = [trial.key(name) for name in metric_names]
        if resume and known.keys() >= {*keys}:
            yield trial, {key: known[key] for key in keys}, False
        else:
            left.append(trial)
    for done in judged(left, metric_names, n_jobs, resume=resume, on_progress=on_progress, cluster=cluster):
        add_trials(path, done[1])
        yield done


def judged(
    trials: Sequence[Trial],
    metric_names: Sequence[str],
    n_jobs: int = 1,
    *,
    resume: bool = False,
    on_progress: Progress = silent,
    cluster: Cluster | None = None,
) -> Iterator[tuple[Trial, Rows, bool]]:
    """Do trials as `hashbench.pipeline.workers.run_side_by_side` does jobs.

    Yields each with its rows, one a metric, and whether it was done now and not found again.
    """
    names = list(dict.fromkeys(get_metric(name).name for name in metric_names))
    by_job = {id(trial.job): trial for trial in trials}
    jobs = [trial.job for trial in trials]
    for outcome in run_side_by_side(jobs, names, n_jobs, Demands(resume=resume), on_progress, cluster):
        trial, failure = by_job[id(outcome.job)], outcome.refusal
        scores: dict[str, tuple[str, ...]] = {}
        try:
            scores = _scores(outcome, names)
        except HashbenchError as error:
            failure = str(error)
        if not failure and not any("".join(values[: len(SCORES)]) for values in scores.values()):
            failure = "no held-out item has a relevant item among those that it is ranked against."
        keys = (trial.key(name) for name in names)
        values = ((*key, *scores.get(key[-1], ("", "", "")), failure) for key in keys)
        yield trial, {row[: len(KEY)]: dict(zip(COLUMNS, row, strict=True)) for row in values}, outcome.is_new


def _scores(outcome: Outcome, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return both scores of an outcome in each metric, and the seconds that its codes took; nothing if it has none."""
    from hashbench.scoring.evaluator import evaluate_packed

    if outcome.evaluation is None or outcome.codes is None:
        return {}
    with hdf5.open_codes(outcome.codes) as codes:
        split = _read_among_held_out(outcome.job.dataset, codes.made.dataset_fingerprint)
        among = evaluate_packed(
            *(codes.query[: len(split.query)], codes.query[len(split.query) :], codes.n_bits, split.affinity(), names),
            vectors=vectors_of(split, names),
        )
        seconds = f"{codes.fit_seconds + codes.encode_seconds:.1f}"
    both = among.summary, outcome.evaluation.summary
    return {name: (*(f"{one[name].mean:.6f}".replace("nan", "") for one in both), seconds) for name in names}


@lru_cache(maxsize=1)
def _read_among_held_out(path: str, fingerprint: str) -> Dataset:
    return among_held_out(load_once(path, fingerprint))


def read_trials(path: Path) -> Rows:
    """Read a file of trials; none if there is no file."""
    if not path.exists():
        return {}
    with reading(path, "CSV"):
        header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines(keepends=True))
        if header != [*COLUMNS] or any(len(row) != len(COLUMNS) for row in rows):
            raise HashbenchError(f"{path} is no file of trials, which has the columns {', '.join(COLUMNS)}. Move it.")
        return {tuple(row[: len(KEY)]): dict(zip(COLUMNS, row, strict=True)) for row in rows}


def add_trials(path: Path, rows: Rows) -> None:
    """Put rows of trials into their place in a file, over those of the same trials."""
    with locked(path):
        known = (read_trials(path) | rows).values()
        in_order = sorted(known, key=lambda row: [row[key].zfill(9) if key in _NUMBERS else row[key] for key in KEY])
        write_text(path, csv_text(COLUMNS, (row.values() for row in in_order)))


def choose(trials: Sequence[Trial], metric_names: Sequence[str], rows: Rows) -> list[Choice]:
    """Return the best settings of each method: the highest mean over all their trials, of which none failed.

    Both scores and all metrics have the same weight; for a metric that counts errors it is 1 less the score. The
    default settings, which are a method's first, win ties.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    params: dict[tuple[str, str], Mapping[str, Any]] = {}
    for trial, name in product(trials, metric_names):
        row = rows[trial.key(name)]
        of_method = scores.setdefault(trial.job.method, {})
        of_method.setdefault(trial.setting, []).append(_score(row))
        params[trial.job.method, trial.setting] = trial.job.params
    choices = []
    for method, of_method in scores.items():
        means = {setting: float(np.mean(values)) for setting, values in of_method.items()}
        whole = {setting: mean for setting, mean in means.items() if not math.isnan(mean)}
        best = max(whole, key=lambda setting: whole[setting], default=None)
        choices.append(
            Choice(
                method=method,
                params=None if best is None else params[method, best],
                score=math.nan if best is None else whole[best],
                default=next(iter(means.values())),
                n_trials=len(means),
                n_failed=len(means) - len(whole),
            )
        )
    return choices


def conclude(
    study: Study, trials: Sequence[Trial], metric_names: Sequence[str], rows: Rows, folder: Path
) -> list[Choice]:
    """Choose the best settings of each method, and write them as a grid file into the folder of the trials."""
    choices = choose(trials, metric_names, rows)
    if all(choice.params is None for choice in choices):
        raise HashbenchError(f"no settings went through all their trials; {folder / TRIALS} says why of each.")
    write_text(folder / GRID, grid_text(study, choices, metric_names))
    return choices


def _score(row: Mapping[str, str]) -> float:
    """Return the mean of both scores of a row, more is better; NaN without any."""
    values = [float(row[key]) for key in SCORES if row[key]]
    mean = sum(values) / len(values) if values else math.nan
    return 1 - mean if get_metric(row["metric"]).family.is_error else mean


def shown(row: Mapping[str, str]) -> str:
    """Return what came of a trial in a metric, in words."""
    return f"failed. {row['failure']}" if row["failure"] else f"{row['metric']} {_score(row):.4f}"


def grid_text(study: Study, choices: Sequence[Choice], metric_names: Sequence[str]) -> str:
    """Write the best settings as a grid file, each with the number of trials that chose them."""
    judged_by = f"{', '.join(metric_names)} of held-out training items, seed {', '.join(map(str, study.seeds))}"
    lines = [
        f"# Chosen by hashbench tune: {judged_by}; queries were not used.",
        f"datasets = {_toml([*(study.datasets or DEFAULT_DATASETS)])}",
        f"bits = {_toml([*study.n_bits])}",
    ]
    for choice in choices:
        if choice.params is not None:
            lines += ["", f"[methods.{_key(choice.method)}]", f"{TUNED} = {choice.n_trials}"]
            values = {
                name: [value] if isinstance(value, list | tuple) else value for name, value in choice.params.items()
            }
            lines += [f"{_key(name)} = {_toml(values[name])}" for name in sorted(values)]  # a list is a sweep
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name)


def _toml(value: Any) -> str:
    """Write a value as TOML has it; None, which it has not, as the text that a study reads as None."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps("None" if value is None else value)
