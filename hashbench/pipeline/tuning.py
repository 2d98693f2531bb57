"""Choosing settings on held-out training items, never on queries, with the same effort for every method."""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import IntArray, Progress, silent
from hashbench.cards import MethodCard
from hashbench.dataset import N_NEIGHBOURS, Dataset, canonical_json
from hashbench.errors import HashbenchError, one_line, with_log
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import TUNED, Job, Sweep, by_variant, grid, spelled
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.runner import Outcome, load_once, run_all
from hashbench.pipeline.steps import Demands, vectors_of
from hashbench.pipeline.study import DEFAULT_DATASETS, Study
from hashbench.scoring.metrics import get_metric, is_error
from hashbench.store import hdf5
from hashbench.store.artifact import cached
from hashbench.store.files import data_dir, file_behind, locked, write_text
from hashbench.store.inputs import reading
from hashbench.store.provenance import CODES_VERSION, SCORES_VERSION, digest
from hashbench.store.result_files import csv_text

HELD_OUT = 0.2  # of the training items
LEAD = 0.01  # by more than this, the best settings must lead the default ones: docs/explanation/numbers.md
# What held-out queries rank, by the name of the score.
SCORES = {"among_held_out": "the other held-out items", "to_trained": "the items learned from"}
KEY = ("dataset", "dataset_fingerprint", "method", "method_version", "setting", "n_bits", "seed", "metric")
COLUMNS = (*KEY, *SCORES, "seconds", "code", "failure")
TRIALS, GRID = "trials.csv", "grid.toml"  # what tune writes
FIRST_WORDS = "# Chosen by hashbench tune:"  # of a grid file that tune wrote and may overwrite
LONGEST = 10_000  # characters of a failure; csv reads no more than 131,072
_NUMBERS = ("n_bits", "seed")
Rows = dict[tuple[str, ...], dict[str, str]]  # of trials, by their key


@dataclass(frozen=True, eq=False)
class Trial:
    """A job on a split of training items."""

    job: Job
    dataset: str  # of the training items, as users call it
    fingerprint: str
    seed: int  # of the split, and of training if that draws

    def __str__(self) -> str:
        return str(replace(self.job, dataset=self.dataset))

    @property
    def setting(self) -> str:
        """Its parameters, as rows have them."""
        return canonical_json(dict(self.job.params))

    @property
    def code(self) -> str:
        """A digest of the versions that decide its scores, but for the method's, which its key has."""
        return digest([CODES_VERSION, SCORES_VERSION, self.job.card.digests])

    def key(self, metric: str) -> tuple[str, ...]:
        """Return the key of its row of a metric."""
        job = self.job
        numbers = job.card.version, self.setting, job.n_bits, self.seed
        return self.dataset, self.fingerprint, job.method, *map(str, numbers), get_metric(metric).name


@dataclass(frozen=True)
class Choice:
    """The settings chosen for a method, and the trials that chose them."""

    method: str
    params: Mapping[str, Any] | None  # the chosen settings; None if none finished all their trials
    best: Mapping[str, Any] | None  # the settings with the best score, likewise
    best_score: float
    default_score: float  # NaN if the default settings did not finish all their trials
    lead: float  # how much better the best settings are
    n_trials: int  # settings tried, by earlier commands too if the file of trials holds them
    n_failed: int
    failure: str = ""  # the first one, if no settings finished all their trials


def hold_out(dataset: Dataset, seed: int) -> Dataset:
    """Return a dataset of only training items: a fifth of them are its queries, all others its database."""
    if dataset.rule == "explicit" or (dataset.rule == "neighbours" and dataset.features is None):
        raise HashbenchError(
            f"dataset {dataset.name!r} defines which database items are relevant to its queries, but nothing for "
            "held-out training items. Tune on a dataset with labels, or with features to compare."
        )
    order = np.random.default_rng(seed).permutation(len(dataset.train))
    held_out, others = np.split(order, [round(HELD_OUT * len(order))])
    if len(held_out) < 2:
        raise HashbenchError(
            f"dataset {dataset.name!r} has {len(order)} training items, and at least 8 are needed to hold out a fifth."
        )
    items: dict[str, Any] = {}
    for key in ("features", "images", "labels", "coarse_labels"):
        array = getattr(dataset, key)
        items[key] = None if array is None else array[dataset.train]
    return _with_roles(
        dataset,
        held_out,
        others,
        others,
        dataset.n_neighbours / len(dataset.database),
        **items,
        name=f"{dataset.name[:60]}-held-out-{dataset.fingerprint}-s{seed}",
        part_of="",
        about={},
    )


def among_held_out(split: Dataset) -> Dataset:
    """Return a dataset whose queries are the first half of a split's held-out items, and the second its database."""
    queries, others = np.array_split(split.query, 2)
    return _with_roles(split, queries, others, split.train, split.n_neighbours / len(split.database))


def _with_roles(
    dataset: Dataset, query: IntArray, database: IntArray, train: IntArray, share: float, **changes: Any
) -> Dataset:
    """Change the roles of items; where each query has a list of neighbours, it is that share of the database."""
    features = changes.get("features", dataset.features)
    if dataset.rule == "neighbours" and features is not None:
        from hashbench.sources.neighbours import find_neighbours

        n_neighbours = max(1, round(share * len(database)))
        neighbours, _ = find_neighbours(features[query], features[database], n_neighbours, dataset.true_distance)
        changes["neighbours"] = neighbours
        changes["rule_params"] = {key: dataset.rule_params[key] for key in dataset.rule_params if key != N_NEIGHBOURS}
    return replace(dataset, query=query, database=database, train=train, **changes)


def settings_to_try(
    space: Mapping[str, Sequence[Any]], defaults: Mapping[str, Any], n_trials: int, seed: int
) -> list[dict[str, Any]]:
    """Return at most ``n_trials`` settings: the default, then all others of a small grid, or an even draw of them.

    Examples
    --------
    >>> settings_to_try({"rate": [0.1, 0.3]}, {"rate": 0.1}, 9, seed=0)
    [{}, {'rate': 0.3}]
    """
    default = {key: defaults.get(key) for key in space}
    if n_settings(space, defaults) <= n_trials:
        grid_points = (dict(zip(space, values, strict=True)) for values in product(*space.values()))
        return [{}, *(setting for setting in grid_points if setting != default)]
    from scipy.stats import qmc

    sampler, settings = qmc.Halton(len(space), rng=seed), list[dict[str, Any]]()
    while len(settings) < n_trials - 1:
        shares = zip(space.items(), sampler.random()[0], strict=True)
        setting = {key: values[int(share * len(values))] for (key, values), share in shares}
        if setting not in (default, *settings):
            settings.append(setting)
    return [{}, *settings]


def n_settings(space: Mapping[str, Sequence[Any]], defaults: Mapping[str, Any]) -> int:
    """Return the number of combinations of a grid, including the default settings."""
    has_defaults = all(defaults.get(key) in values for key, values in space.items())
    return math.prod(map(len, space.values())) + (not has_defaults)


def spaces(study: Study) -> Iterator[tuple[MethodCard, dict[str, Any], Mapping[str, Sequence[Any]], bool]]:
    """Yield for each method its card, fixed parameters, values to try, and whether the study lists these.

    Parameters with one value in the study are fixed. If it lists values of others, only these are tried; otherwise
    those that the method declares.
    """
    for card, params, _ in by_variant(study.methods, study.params):
        if "preset" in params:
            raise HashbenchError("tune starts from the defaults, and takes no preset. Give its values by --param.")
        fixed = {key: value for key, value in params.items() if not isinstance(value, Sweep)}
        listed = {key: _distinct(value) for key, value in params.items() if isinstance(value, Sweep)}
        declared = {key: _distinct(values) for key, values in card.tunable.items() if key not in fixed}
        space = listed or declared
        for key, value in chain(fixed.items(), ((key, value) for key, values in space.items() for value in values)):
            if isinstance(value, str) and value == "None":
                raise HashbenchError(
                    f"a value of {card.name}'s {key} is the text 'None', which {GRID} cannot hold, since it means None "
                    "there. Leave it out, or give the value another name."
                )
        yield card, fixed, space, bool(listed)


def _distinct(values: Sequence[Any]) -> list[Any]:
    return [value for place, value in enumerate(values) if value not in values[:place]]


def about_effort(study: Study, n_trials: int, option: str) -> Iterator[str]:
    """Yield a sentence for each method that has fewer settings than are tried, or that lists more.

    ``option`` is how users set the number of trials, such as ``--trials`` and a blank.
    """
    for card, fixed, space, is_listed in spaces(study):
        number = n_settings(space, card.params)
        if not space:
            yield f"{card.name} declares no {'other ' * bool(fixed)}values to try; its defaults stand."
        elif number < n_trials:
            yield f"{card.name}: all {number} settings are tried, fewer than {option}{n_trials}."
        elif number > n_trials and is_listed:
            yield f"{card.name}: {n_trials} of {number} settings are tried; {option}{number} tries all."


def plan(study: Study, n_trials: int) -> list[Trial]:
    """Return the trials of a study: a method's settings are the same for all code lengths, datasets and seeds."""
    variants: list[tuple[str, Mapping[str, Any]]] = []
    for card, fixed, space, _ in spaces(study):
        settings = settings_to_try(space, card.params, n_trials, study.seeds[0])
        variants += [(card.name, {**fixed, **setting}) for setting in settings]
    specs, seeds = dict.fromkeys(map(spelled, study.datasets or DEFAULT_DATASETS)), dict.fromkeys(study.seeds)
    for spec in specs:
        if "\r" in spec or spec != spec.encode(errors="ignore").decode():
            raise HashbenchError(
                f"dataset {spec!r} has a name that {TRIALS} cannot hold, expected UTF-8 without carriage returns. "
                "Rename the file."
            )
    jobs = {key: grid([key[0]], variants, study.n_bits, [key[1]], {}) for key in product(specs, seeds)}
    trials = []
    for spec in specs:  # errors of jobs have been raised before anything is written
        dataset, _ = load_dataset(spec)
        for seed in seeds:
            split = str(split_file(dataset, seed))
            trials += [Trial(replace(job, dataset=split), spec, dataset.fingerprint, seed) for job in jobs[spec, seed]]
    return trials


def split_file(dataset: Dataset, seed: int) -> Path:
    """Write the split of a dataset unless it is already written, and return its file."""
    split = hold_out(dataset, seed)
    path = data_dir() / "held-out" / f"{split.name}.h5"
    with locked(path):

        def make() -> Path:
            hdf5.write_dataset(split, path)
            return path

        return cached(path, "dataset", {"fingerprint": split.fingerprint}, lambda found: path, make)[0]


def run_trials(
    trials: Sequence[Trial],
    metric_names: Sequence[str],
    path: Path | None = None,
    n_jobs: int = 1,
    *,
    resume: bool = False,
    on_progress: Progress = silent,
    cluster: Cluster | None = None,
) -> Iterator[tuple[Trial, Rows, bool]]:
    """Run trials as `hashbench.pipeline.runner.run_all` runs jobs.

    Yields each with its rows, one per metric, and whether anything was done and not reused. Rows are added to the file
    at ``path`` as soon as a trial is done. Finished jobs are skipped; with ``resume`` also all trials in the file that
    the same code made, failed ones too.
    """
    demands = Demands(metric_names, resume=resume)
    names = demands.metrics
    known = read_trials(path) if path else {}
    by_job: dict[int, Trial] = {}
    for trial in trials:
        keys = [trial.key(name) for name in names]
        if resume and all(key in known and known[key]["code"] == trial.code for key in keys):
            yield trial, {key: known[key] for key in keys}, False
        else:
            by_job[id(trial.job)] = trial
    jobs = [trial.job for trial in by_job.values()]
    for outcome in run_all(jobs, demands, on_progress, n_jobs, cluster):
        trial = by_job[id(outcome.job)]
        rows = _rows(trial, outcome, names)
        if path:
            add_trials(path, rows)
        shown_rows = {key: row | {"failure": with_log(row["failure"], outcome.log)} for key, row in rows.items()}
        yield trial, shown_rows, outcome.is_new


def _rows(trial: Trial, outcome: Outcome, names: Sequence[str]) -> Rows:
    """Return the rows of a trial, one per metric, with its scores or why it has none."""
    failure = outcome.refusal
    scores: dict[str, tuple[str, ...]] = {}
    try:
        scores = _scores(outcome, names)
    except HashbenchError as error:
        failure = str(error)
    failure = one_line(failure)
    for name in (trial.job.dataset, Path(trial.job.dataset).stem):  # of the split
        failure = failure.replace(name, trial.dataset)
    rows = {}
    for key in (trial.key(name) for name in names):
        values = (*key, *scores.get(key[-1], ("", "", "")), trial.code, failure[:LONGEST])
        row = dict(zip(COLUMNS, values, strict=True))
        rows[key] = row | {"failure": failure_of(row)}
    return rows


def _scores(outcome: Outcome, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return both scores of an outcome in each metric, and the seconds that its codes took; empty if it has none."""
    from hashbench.scoring.evaluator import evaluate_packed

    if outcome.evaluation is None or outcome.codes is None:
        return {}
    with hdf5.open_codes(outcome.codes) as codes:
        split = _read_among_held_out(outcome.job.dataset, codes.made.dataset_fingerprint)
        among = evaluate_packed(
            codes.query[: len(split.query)],
            codes.query[len(split.query) :],
            codes.n_bits,
            split.affinity(),
            names,
            vectors=vectors_of(split, names),
        )
        seconds = f"{codes.fit_seconds + codes.encode_seconds:.1f}"
    means = {name: [summary[name].mean for summary in (among.summary, outcome.evaluation.summary)] for name in names}
    return {name: (*(f"{mean:.6f}".replace("nan", "") for mean in both), seconds) for name, both in means.items()}


@lru_cache(maxsize=1)
def _read_among_held_out(path: str, fingerprint: str) -> Dataset:
    return among_held_out(load_once(path, fingerprint))


def check_folder(folder: Path) -> None:
    """Refuse, before any work, a folder with a grid file that tune did not write, or with trials it cannot read."""
    read_trials(file_behind(folder / TRIALS))
    path = file_behind(folder / GRID)
    with reading(path):
        if path.exists() and not path.read_bytes().startswith(FIRST_WORDS.encode()):
            raise HashbenchError(
                f"{path} does not begin with {FIRST_WORDS!r}, so tune did not write it and does not replace it. Move "
                "it, or choose another folder with --output."
            )


def read_trials(path: Path) -> Rows:
    """Read a file of trials; empty if there is no file."""
    if not path.exists():
        return {}
    with reading(path, "CSV"), path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
        if header != [*COLUMNS] or any(len(row) != len(COLUMNS) for row in rows):
            raise HashbenchError(
                f"{path} is not a file of trials, which has the columns {', '.join(COLUMNS)}. Move it."
            )
        trials = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    for row in trials:
        for key in SCORES:
            if row[key] and not _is_score(row[key]):
                trial = " ".join(row[name] for name in KEY)
                raise HashbenchError(
                    f"{path} has {key} {row[key]!r} for {trial}, expected a number from 0 to 1 or nothing. Delete the "
                    "row, and tune runs the trial again."
                )
    return {tuple(row[key] for key in KEY): row for row in trials}


def _is_score(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def add_trials(path: Path, rows: Rows) -> None:
    """Add rows of trials to a file, sorted by key; they replace those of the same trials."""
    with locked(path):
        known = (read_trials(path) | rows).values()
        in_order = sorted(known, key=lambda row: [row[key].zfill(9) if key in _NUMBERS else row[key] for key in KEY])
        write_text(path, csv_text(COLUMNS, (row.values() for row in in_order)))


def choose(trials: Sequence[Trial], metric_names: Sequence[str], rows: Rows) -> list[Choice]:
    """Choose settings for each method, by the mean over all their trials.

    Both scores and all metrics have the same weight. The best settings have the best mean among those without a failed
    trial; the default settings, which are a method's first, win ties. The default ones are kept unless the best lead by
    more than `LEAD`, or a trial of the default ones failed.
    """
    less = less_is_better(metric_names)
    scores: dict[str, dict[str, list[float]]] = {}
    params: dict[tuple[str, str], Mapping[str, Any]] = {}
    failures: dict[str, str] = {}
    for trial, name in product(trials, metric_names):
        row = rows[trial.key(name)]
        score = _score(row)
        if math.isnan(score):
            failures.setdefault(trial.job.method, failure_of(row))
        of_method = scores.setdefault(trial.job.method, {})
        of_method.setdefault(trial.setting, []).append(1 - score if is_error(name) and not less else score)
        params[trial.job.method, trial.setting] = trial.job.params
    choices = []
    for method, of_method in scores.items():
        means = {setting: float(np.mean(values)) for setting, values in of_method.items()}
        finished = {setting: mean for setting, mean in means.items() if not math.isnan(mean)}
        default = next(iter(means))
        best = (min if less else max)(finished, key=lambda setting: finished[setting], default=None)
        best_score = math.nan if best is None else finished[best]
        lead = means[default] - best_score if less else best_score - means[default]
        chosen = default if round(lead, 9) <= LEAD else best  # best if the default failed: NaN
        choices.append(
            Choice(
                method=method,
                params=None if chosen is None else params[method, chosen],
                best=None if best is None else params[method, best],
                best_score=best_score,
                default_score=means[default],
                lead=lead,
                n_trials=len(means),
                n_failed=len(means) - len(finished),
                failure=failures[method] if best is None else "",
            )
        )
    return choices


def less_is_better(metric_names: Sequence[str]) -> bool:
    """Return whether all metrics are errors; if only some are, these count as 1 - metric."""
    return all(map(is_error, metric_names))


def criterion(metric_names: Sequence[str]) -> str:
    """Return the names of the metrics that settings are chosen by, as they are averaged."""
    less = less_is_better(metric_names)
    return ", ".join(f"1 - {name}" if is_error(name) and not less else name for name in metric_names)


def conclude(
    study: Study, trials: Sequence[Trial], metric_names: Sequence[str], rows: Rows, folder: Path
) -> list[Choice]:
    """Choose settings for each method, and write them to a grid file in the folder of the trials.

    The number of trials counts all settings of a method that the file of trials holds on these data and code lengths.
    """
    tried = _settings_tried(trials, read_trials(folder / TRIALS))
    choices = [replace(choice, n_trials=len(tried[choice.method])) for choice in choose(trials, metric_names, rows)]
    if all(choice.params is None for choice in choices):
        earlier = f" {folder / GRID} of an earlier command was left as it was." * (folder / GRID).exists()
        raise HashbenchError(
            f"no settings finished all their trials. {folder / TRIALS} shows the failure of each.{earlier}"
        )
    write_text(folder / GRID, grid_text(study, choices, metric_names))
    return choices


def about_left_out(choices: Sequence[Choice]) -> str:
    """Return a sentence for each method that has no settings in the grid file; empty if all have some."""
    return " ".join(
        f"{choice.method} is not in {GRID}, since no settings finished all their trials: {choice.failure}"
        for choice in choices
        if choice.params is None
    )


def _settings_tried(trials: Sequence[Trial], rows: Rows) -> dict[str, set[str]]:
    """Return the settings of each method in rows of the same contents of datasets and code lengths as trials."""
    fingerprints, lengths = {trial.fingerprint for trial in trials}, {str(trial.job.n_bits) for trial in trials}
    tried: dict[str, set[str]] = {trial.job.method: set() for trial in trials}
    for row in rows.values():
        if row["method"] in tried and row["dataset_fingerprint"] in fingerprints and row["n_bits"] in lengths:
            tried[row["method"]].add(row["setting"])
    return tried


def _score(row: Mapping[str, str]) -> float:
    """Return the mean of both scores of a row; NaN unless it has both."""
    return sum(float(row[key] or "nan") for key in SCORES) / len(SCORES)


def failure_of(row: Mapping[str, str]) -> str:
    """Return why a row has no score: its failure, or that no query has a value; empty if it has one."""
    missing = [words for key, words in SCORES.items() if not row[key]]
    if row["failure"] or not missing:
        return row["failure"]
    reason = "every ball is empty, or nothing" if row["metric"].endswith(":skip") else "nothing"
    return f"{row['metric']} has no value for held-out queries among {' or '.join(missing)}: {reason} is relevant."


def shown(row: Mapping[str, str]) -> str:
    """Return the score of a trial in a metric, or its failure, in words."""
    failure = failure_of(row)
    return f"failed. {failure}" if failure else f"{row['metric']} {_score(row):.4f}"


def grid_text(study: Study, choices: Sequence[Choice], metric_names: Sequence[str]) -> str:
    """Return the chosen settings as a grid file, each with the number of trials that chose them."""
    n_bits, seeds = ([*dict.fromkeys(map(int, values))] for values in (study.n_bits, study.seeds))
    judged_by = f"{criterion(metric_names)} of held-out training items, seed {', '.join(map(str, seeds))}"
    lines = [
        f"{FIRST_WORDS} {judged_by}; queries were not used.",
        f"datasets = {_toml([*dict.fromkeys(study.datasets or DEFAULT_DATASETS)])}",
        f"bits = {_toml(n_bits)}",
        f"seeds = {_toml(seeds)}",
    ]
    for choice in choices:
        if variant := variant_of(choice):
            lines += ["", f"[methods.{_key(choice.method)}]"]
            lines += [f"{_key(name)} = {_toml(value)}" for name, value in variant.items()]
    return "\n".join(lines) + "\n"


def variant_of(choice: Choice) -> dict[str, Any] | None:
    """Return the chosen settings as a study takes them, with the number of trials that chose them; None without any."""
    if choice.params is None:
        return None
    plain = json.loads(canonical_json(dict(choice.params)))  # without numbers of NumPy
    values = {name: [value] if isinstance(value, list) else value for name, value in plain.items()}  # a list is a sweep
    return {TUNED: choice.n_trials, **values}


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """Return a value as TOML; None, which TOML lacks, as the text that a study reads as None."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return repr(value)  # TOML has inf and nan, which JSON lacks
    return json.dumps("None" if value is None else value, ensure_ascii=False).replace("\x7f", "\\u007f")
