"""Choosing settings on held-out training items, never on queries, with the same effort for every method."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import IntArray, Progress, silent
from hashbench.cards import MethodCard
from hashbench.dataset import N_NEIGHBOURS, Dataset, canonical_json
from hashbench.errors import HashbenchError, one_line
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.grid import TUNED, Job, Sweep, by_variant, grid, spelled
from hashbench.pipeline.one_job import Outcome, load_once
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.runner import in_order, run_all
from hashbench.pipeline.steps import Demands, rows_of, vectors_of
from hashbench.pipeline.study import DEFAULT_DATASETS, Study
from hashbench.scoring.metrics import is_error
from hashbench.store import hdf5
from hashbench.store.artifact import cached
from hashbench.store.files import data_dir, file_behind, locked, write_text
from hashbench.store.inputs import reading
from hashbench.store.result_rows import Row
from hashbench.store.results import merge_rows, read_folder

HELD_OUT = 0.2  # of the training items
LEAD = 0.01  # by more than this, the best settings must lead the default ones: docs/explanation/numbers.md
# What held-out queries rank, by the name of the score.
SCORES = {"among_held_out": "the other held-out items", "to_trained": "the items learned from"}
GRID = "grid.toml"  # what tune writes beside the rows of trials
FIRST_WORDS = "# Chosen by hashbench tune:"  # of a grid file that tune wrote and may overwrite


@dataclass(frozen=True)
class Choice:
    """The settings chosen for a method, and the trials that chose them."""

    method: str
    params: Mapping[str, Any] | None  # the chosen settings; None if none finished all their trials
    best: Mapping[str, Any] | None  # the settings with the best score, likewise
    best_score: float
    default_score: float  # NaN if the default settings did not finish all their trials
    lead: float  # how much better the best settings are
    n_trials: int  # settings tried, by earlier commands too if the folder holds them
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
    arrays = {key: getattr(dataset, key) for key in ("features", "images", "labels", "coarse_labels")}
    items: dict[str, Any] = {key: array[dataset.train] for key, array in arrays.items() if array is not None}
    items |= {"name": f"{dataset.name[:50]}-held-out-{dataset.fingerprint}-s{seed}", "part_of": "", "about": {}}
    return _with_roles(dataset, held_out, others, others, **items)


def among_held_out(split: Dataset) -> Dataset:
    """Return a dataset whose queries are the first half of a split's held-out items, and the second its database."""
    queries, others = np.array_split(split.query, 2)
    return _with_roles(split, queries, others, split.train, name=f"{split.name}-among")


def _with_roles(dataset: Dataset, query: IntArray, database: IntArray, train: IntArray, **changes: Any) -> Dataset:
    """Change the roles of items; where each query has a list of neighbours, its share of the database stays."""
    features = changes.get("features", dataset.features)
    if dataset.rule == "neighbours" and features is not None:
        from hashbench.sources.neighbours import find_neighbours

        n_neighbours = max(1, round(dataset.n_neighbours / len(dataset.database) * len(database)))
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


def plan(study: Study, n_trials: int) -> list[Job]:
    """Return the trials of a study: a method's settings are the same for all code lengths, datasets and seeds."""
    variants: list[tuple[str, Mapping[str, Any]]] = []
    for card, fixed, space, _ in spaces(study):
        settings = settings_to_try(space, card.params, n_trials, study.seeds[0])
        variants += [(card.name, {**fixed, **setting}) for setting in settings]
    specs, seeds = dict.fromkeys(map(spelled, study.datasets or DEFAULT_DATASETS)), dict.fromkeys(study.seeds)
    for spec in specs:
        if spec != spec.encode(errors="ignore").decode():
            raise HashbenchError(f"dataset {spec!r} has a name that is not UTF-8, as {GRID} is. Rename the file.")
    jobs = {key: grid([key[0]], variants, study.n_bits, [key[1]], {}) for key in product(specs, seeds)}
    trials = []
    for spec in specs:  # errors of jobs have been raised before anything is written
        dataset, _ = load_dataset(spec)
        for seed in seeds:
            path = str(split_file(dataset, seed))
            trials += [replace(job, dataset=path, whole=spec) for job in jobs[spec, seed]]
    return trials


def split_file(dataset: Dataset, seed: int) -> Path:
    """Return the file of the split of a dataset, which is written unless it is there."""
    split = hold_out(dataset, seed)
    path = data_dir() / "held-out" / f"{split.name}.h5"
    with locked(path):

        def make() -> Path:
            hdf5.write_dataset(split, path)
            return path

        return cached(path, "dataset", {"fingerprint": split.fingerprint}, lambda found: path, make)[0]


def run_trials(
    trials: Sequence[Job],
    metric_names: Sequence[str],
    folder: Path,
    n_jobs: int = 1,
    *,
    resume: bool = False,
    on_progress: Progress = silent,
    cluster: Cluster | None = None,
) -> Iterator[Outcome]:
    """Run trials as `hashbench.pipeline.runner.run_all` runs jobs; outcomes have rows of both scores.

    As soon as a trial is done, its rows are added to the folder, which is one of results.
    """
    demands = Demands(metric_names, resume=resume)
    if demands.needs_outputs:
        raise HashbenchError(
            f"trials are judged by codes of held-out items, which {', '.join(demands.metrics)} needs more than. Choose "
            "a metric without :dot and :sigmoid."
        )
    for outcome in run_all(trials, demands, on_progress, n_jobs, cluster):
        outcome = _with_both_scores(outcome, demands.metrics)
        for (name, fingerprint), rows in groupby(outcome.rows, key=lambda row: (row.dataset, row.dataset_fingerprint)):
            made = outcome.made and outcome.made._replace(dataset=name, dataset_fingerprint=fingerprint)
            merge_rows(folder, rows, made)
        yield outcome


def _with_both_scores(outcome: Outcome, names: Sequence[str]) -> Outcome:
    """Add the rows of held-out items among themselves; a failure names the dataset as users do."""
    rows, failure, path = outcome.rows, outcome.refusal, outcome.job.dataset
    if rows and outcome.codes:
        try:
            rows = (*_rows_among_held_out(outcome.codes, path, names), *rows)
        except HashbenchError as error:
            rows, failure = (), str(error)
    for name in (path, Path(path).stem):
        failure = failure.replace(name, outcome.job.whole)
    return replace(outcome, rows=rows, refusal=one_line(failure))


def _rows_among_held_out(path: Path, dataset: str, names: Sequence[str]) -> tuple[Row, ...]:
    from hashbench.scoring.evaluator import evaluate_packed

    with hdf5.open_codes(path) as codes:
        split = _read_among_held_out(dataset, codes.made.dataset_fingerprint)
        query, database = np.split(codes.query, [len(split.query)])
        vectors = vectors_of(split, names)
        scored = evaluate_packed(query, database, codes.n_bits, split.affinity(), names, vectors=vectors)
        return rows_of(replace(codes.made, dataset=split.name, dataset_fingerprint=split.fingerprint), scored)


@lru_cache(maxsize=1)
def _read_among_held_out(path: str, fingerprint: str) -> Dataset:
    return among_held_out(load_once(path, fingerprint))


def check_folder(folder: Path) -> None:
    """Refuse, before any work, a folder with a grid file that tune did not write, or with files it cannot read."""
    read_folder(folder)
    path = file_behind(folder / GRID)
    with reading(path):
        if path.exists() and not path.read_bytes().startswith(FIRST_WORDS.encode()):
            raise HashbenchError(
                f"{path} does not begin with {FIRST_WORDS!r}, so tune did not write it and does not replace it. Move "
                "it, or choose another folder with --output."
            )


def choose(outcomes: Sequence[Outcome], metric_names: Sequence[str]) -> list[Choice]:
    """Choose settings for each method, by the mean over all their trials, the default ones first.

    Both scores and all metrics have the same weight. The best settings have the best mean among those without a failed
    trial; the default settings win ties. The default ones are kept unless the best lead by more than `LEAD`, or a trial
    of the default ones failed.
    """
    less = less_is_better(metric_names)
    by_setting: dict[str, dict[str, list[Outcome]]] = {}
    for outcome in outcomes:
        of_method = by_setting.setdefault(outcome.job.method, {})
        of_method.setdefault(canonical_json(dict(outcome.job.params)), []).append(outcome)
    choices = []
    for method, of_method in by_setting.items():
        params = {setting: trials[0].job.params for setting, trials in of_method.items()}
        means = {setting: _mean(trials, metric_names) for setting, trials in of_method.items()}
        finished = {setting: mean for setting, mean in means.items() if not math.isnan(mean)}
        default = next(iter(means))
        best = (min if less else max)(finished, key=lambda setting: finished[setting], default=None)
        best_score = math.nan if best is None else finished[best]
        lead = means[default] - best_score if less else best_score - means[default]
        chosen = default if round(lead, 9) <= LEAD else best  # best if the default failed: NaN
        pairs = product(chain(*of_method.values()), metric_names)
        choices.append(
            Choice(
                method=method,
                params=None if chosen is None else params[chosen],
                best=None if best is None else params[best],
                best_score=best_score,
                default_score=means[default],
                lead=lead,
                n_trials=len(means),
                n_failed=len(means) - len(finished),
                failure="" if best else next(filter(None, (failure_of(trial, name) for trial, name in pairs))),
            )
        )
    return choices


def _mean(outcomes: Sequence[Outcome], metric_names: Sequence[str]) -> float:
    """Return the mean over outcomes and metrics; of errors beside other metrics, 1 - metric counts."""
    less = less_is_better(metric_names)
    scores = [(name, _score(outcome, name)) for outcome, name in product(outcomes, metric_names)]
    return float(np.mean([1 - score if is_error(name) and not less else score for name, score in scores]))


def less_is_better(metric_names: Sequence[str]) -> bool:
    """Return whether all metrics are errors; if only some are, these count as 1 - metric."""
    return all(map(is_error, metric_names))


def criterion(metric_names: Sequence[str]) -> str:
    """Return the names of the metrics that settings are chosen by, as they are averaged."""
    less = less_is_better(metric_names)
    return ", ".join(f"1 - {name}" if is_error(name) and not less else name for name in metric_names)


def conclude(
    study: Study, trials: Sequence[Job], outcomes: Sequence[Outcome], metric_names: Sequence[str], folder: Path
) -> list[Choice]:
    """Choose settings for each method, and write them to a grid file in the folder of the trials.

    The number of trials counts all settings of a method that the folder holds on these data and code lengths.
    """
    tried = _settings_tried(trials, folder)
    choices = choose(in_order(outcomes, trials), metric_names)
    choices = [replace(choice, n_trials=len(tried[choice.method])) for choice in choices]
    if all(choice.params is None for choice in choices):
        earlier = f" {folder / GRID} of an earlier command was left as it was." * (folder / GRID).exists()
        raise HashbenchError(f"no settings finished all their trials: {choices[0].failure}{earlier}")
    write_text(folder / GRID, grid_text(study, choices, metric_names))
    return choices


def about_left_out(choices: Sequence[Choice]) -> str:
    """Return a sentence for each method that has no settings in the grid file; empty if all have some."""
    return " ".join(
        f"{choice.method} is not in {GRID}, since no settings finished all their trials: {choice.failure}"
        for choice in choices
        if choice.params is None
    )


def _settings_tried(trials: Sequence[Job], folder: Path) -> dict[str, set[str]]:
    """Return the settings of each method in trials, and in a folder's rows of the same contents and code lengths."""
    splits = tuple({Path(trial.dataset).stem.rpartition("-s")[0] for trial in trials})  # of any seed
    tried: dict[str, set[str]] = {}
    for trial in trials:
        tried.setdefault(trial.method, set()).add(trial.recorded)
    for row in read_folder(folder).values():
        if row.method in tried and row.dataset.startswith(splits) and row.n_bits in {trial.n_bits for trial in trials}:
            tried[row.method].add(row.params)
    return tried


def _values(outcome: Outcome, metric: str) -> list[float]:
    """Return both scores in a metric; none of a failed trial."""
    return [float(row.value) for row in outcome.rows if row.metric == metric]


def _score(outcome: Outcome, metric: str) -> float:
    """Return the mean of both scores; NaN unless a trial has both."""
    return float(np.mean(_values(outcome, metric) or math.nan))


def failure_of(outcome: Outcome, metric: str) -> str:
    """Return why a trial has no score: its failure, or that no query has a value; empty if it has one."""
    values = zip(SCORES.values(), _values(outcome, metric), strict=False)
    missing = [words for words, value in values if math.isnan(value)]
    if not missing:
        return outcome.refusal
    reason = "every ball is empty, or nothing" if metric.endswith(":skip") else "nothing"
    return f"{metric} has no value for held-out queries among {' or '.join(missing)}: {reason} is relevant."


def shown(outcome: Outcome, metric_names: Sequence[str]) -> str:
    """Return the scores of a trial, or its failures, in words."""
    failures = {name: failure_of(outcome, name) for name in metric_names}
    words = (f"failed. {why}" if why else f"{name} {_score(outcome, name):.4f}" for name, why in failures.items())
    return ", ".join(dict.fromkeys(words))


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
