"""Choosing settings on held-out training items, never on queries, with the same effort for every method."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice, product
from numbers import Real
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
from hashbench.pipeline.steps import Demands, problem_of, rows_of
from hashbench.pipeline.study import DEFAULT_DATASETS, Study
from hashbench.scoring.metrics import is_error
from hashbench.store import hdf5
from hashbench.store.artifact import cached
from hashbench.store.files import data_dir, file_behind, locked, write_text
from hashbench.store.inputs import reading
from hashbench.store.result_rows import Row
from hashbench.store.results import merge_rows, read_folder

HELD_OUT = 0.2  # of the training items
LEAD = 0.01  # by more than this, the best settings must lead the default ones: docs/explanation/settings.md
# What held-out queries rank, by the name of the score.
SCORES = {"among_held_out": "the other held-out items", "to_trained": "the items learned from"}
GRID = "grid.toml"  # what tune writes beside the rows of trials
Point = tuple[int, ...]
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
    is_untuned: bool = False  # whether there was nothing to try but the defaults, so that nothing was chosen
    at_edge: tuple[str, ...] = ()  # parameters whose chosen value is the least or the greatest that was tried


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


@dataclass(eq=False)
class Line:
    """What is tried of one method: a grid of values around its defaults, with parameters that are fixed.

    ``values`` hold the default of each parameter, and numbers ascend. A point is the tuple of a setting's places in
    them. ``scores`` are those of the points that were tried, in order; more is better, NaN where a trial failed.
    """

    card: MethodCard
    fixed: Mapping[str, Any]
    values: Mapping[str, Sequence[Any]]
    is_listed: bool  # by the study
    scores: dict[Point, float] = field(default_factory=dict)

    @property
    def start(self) -> Point:
        """The default setting."""
        return tuple(values.index(self.card.params.get(key)) for key, values in self.values.items())

    @property
    def n_settings(self) -> int:
        """The number of settings of the grid."""
        return math.prod(map(len, self.values.values()))

    def params(self, point: Point) -> dict[str, Any]:
        """Return the parameters of a setting, those at their default left out."""
        places = zip(self.values.items(), point, strict=True)
        params = {**self.fixed, **{key: values[place] for (key, values), place in places}}
        return {key: value for key, value in params.items() if value != self.card.params[key]}

    def at_edge(self, point: Point) -> tuple[str, ...]:
        """Return the parameters of which a setting has the least or the greatest number that was tried."""
        places = zip(self.values.items(), point, zip(*self.scores, strict=True), strict=True)
        return tuple(
            key for (key, values), place, tried in places if is_at_edge(values[place], [values[one] for one in tried])
        )


def is_at_edge(value: Any, tried: Iterable[Any]) -> bool:
    """Return whether a value is the least or the greatest number of several that were tried; 0 is no edge.

    What lies below 0 is hardly ever valid.

    Examples
    --------
    >>> is_at_edge(0.3, [0.1, None, 0.3]), is_at_edge(0.3, [0.1, 0.3, 1.0]), is_at_edge(None, [None, 1.0])
    (True, False, False)
    """
    numbers = {number for number in tried if _is_number(number)}
    return _is_number(value) and len(numbers) > 1 and value in (min(numbers), max(numbers)) and value != 0


def next_points(line: Line, seed: int) -> list[Point]:
    """Return the points to try next, at most two: the neighbours of the best so far in one parameter.

    Parameters of which no smaller or no greater value was tried go first. Where all neighbours were tried, others of
    the grid follow, evenly spread; none if all points were tried.

    Examples
    --------
    >>> from hashbench.cards import method_card
    >>> line = Line(method_card("itq"), {}, {"n_iter": [10, 20, 50, 100]}, True)
    >>> line.start, next_points(line, seed=0)
    ((2,), [(2,)])
    >>> line.scores[2,] = 0.3
    >>> next_points(line, seed=0)
    [(1,), (3,)]
    """
    scores = line.scores
    if not scores:
        return [line.start]
    best = max(scores, key=lambda point: (not math.isnan(scores[point]), scores[point]))  # the first of equal ones
    steps = []
    for axis, values in enumerate(line.values.values()):
        near = (place for place in (best[axis] - 1, best[axis] + 1) if 0 <= place < len(values))
        steps.append([point for place in near if (point := (*best[:axis], place, *best[axis + 1 :])) not in scores])
    beyond = (
        [point for point in near if point[axis] not in {one[axis] for one in scores}] for axis, near in enumerate(steps)
    )
    for points in chain(beyond, steps):
        if points:
            return points
    return list(islice(_others(line, seed), 2))


def _others(line: Line, seed: int) -> Iterator[Point]:
    """Yield the points that were not tried, evenly spread."""
    from scipy.stats import qmc

    sampler, seen = qmc.Halton(max(len(line.values), 1), rng=seed), {*line.scores}
    while len(seen) < line.n_settings:
        shares = zip(line.values.values(), sampler.random()[0], strict=True)
        point = tuple(int(share * len(values)) for values, share in shares)
        if point not in seen:
            seen.add(point)
            yield point


def lines_of(study: Study) -> list[Line]:
    """Return what is tried of each method of a study.

    Parameters with one value in the study are fixed. If it lists values of others, only these are tried, and the
    defaults; otherwise those that the method declares.
    """
    lines: list[Line] = []
    for card, params, _ in by_variant(study.methods, study.params):
        if "preset" in params:
            raise HashbenchError("tune starts from the defaults, and takes no preset. Give its values by --param.")
        fixed = {key: value for key, value in params.items() if not isinstance(value, Sweep)}
        listed = {key: list(value) for key, value in params.items() if isinstance(value, Sweep)}
        declared = {key: values for key, values in card.tunable.items() if key not in fixed}
        space = listed or declared
        for key, value in chain(fixed.items(), ((key, value) for key, values in space.items() for value in values)):
            if isinstance(value, str) and value == "None":
                raise HashbenchError(
                    f"a value of {card.name}'s {key} is the text 'None', which {GRID} cannot hold, since it means None "
                    "there. Leave it out, or give the value another name."
                )
        values = {key: _in_order([card.params.get(key), *values]) for key, values in space.items()}
        if not any(card.name == line.card.name and fixed == line.fixed for line in lines):
            lines.append(Line(card, fixed, values, bool(listed)))
    return lines


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Return distinct values, a default first: numbers ascending, others as they come."""
    default, *others = values
    if all(map(_is_number, others)) and (_is_number(default) or default is None):
        return [*[None] * (default is None), *sorted({*filter(_is_number, values)})]
    distinct = [value for place, value in enumerate(others) if value not in others[:place]]
    return distinct if default in distinct else [default, *distinct]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


class Search:
    """The trials of a study: each method goes from its defaults to better settings, one parameter at a time.

    All methods try ``n_trials`` settings, or all they have. Settings are tried at all code lengths, on all datasets and
    with all seeds of the study, and judged by the mean.
    """

    def __init__(self, study: Study, n_trials: int, metric_names: Sequence[str]) -> None:
        self.study, self.n_trials, self.metric_names = study, n_trials, metric_names
        self.lines = lines_of(study)
        self._splits: dict[tuple[str, int], str] = {}
        self.datasets = [*dict.fromkeys(map(spelled, study.datasets or DEFAULT_DATASETS))]
        for spec in self.datasets:
            if spec != spec.encode(errors="ignore").decode():
                raise HashbenchError(f"dataset {spec!r} has a name that is not UTF-8, as {GRID} is. Rename the file.")
        for line in self.lines:  # errors of jobs are raised before anything is written
            settings = ({**line.fixed, key: value} for key, values in line.values.items() for value in values)
            self._jobs([(line.card.name, params) for params in settings])
        sizes = [len(self._jobs([(line.card.name, line.fixed)])) for line in self.lines]
        self.n_jobs = sum(size * min(n_trials, line.n_settings) for size, line in zip(sizes, self.lines, strict=True))
        for spec in self.datasets:
            dataset, _ = load_dataset(spec)
            for seed in study.seeds:
                self._splits[spec, seed] = str(split_file(dataset, seed))
        self.outcomes: list[Outcome] = []  # of finished rounds, those of each method's defaults first

    def _jobs(self, variants: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Job]:
        """Return the jobs of settings, on the splits once these are known."""
        seeds = dict.fromkeys(self.study.seeds)
        return [
            replace(job, dataset=self._splits.get((spec, seed), spec), whole=spec)
            for spec, seed in product(self.datasets, seeds)
            for job in grid([spec], variants, self.study.n_bits, [seed], {})
        ]

    def run(
        self,
        folder: Path,
        n_jobs: int = 1,
        *,
        resume: bool = False,
        on_progress: Progress = silent,
        cluster: Cluster | None = None,
    ) -> Iterator[Outcome]:
        """Run the trials as `run_trials` does, in rounds: what is tried next depends on scores."""
        while points := [
            (line, point)
            for line in self.lines
            for point in next_points(line, self.study.seeds[0])[: self.n_trials - len(line.scores)]
        ]:
            trials = self._jobs([(line.card.name, line.params(point)) for line, point in points])
            outcomes = []
            for outcome in run_trials(
                trials, self.metric_names, folder, n_jobs, resume=resume, on_progress=on_progress, cluster=cluster
            ):
                outcomes.append(outcome)
                yield outcome
            self.outcomes += in_order(outcomes, trials)
            by_setting = _by_setting(outcomes)
            for line, point in points:
                mean = _mean(by_setting[line.card.name][canonical_json(line.params(point))], self.metric_names)
                line.scores[point] = -mean if less_is_better(self.metric_names) else mean

    def about_effort(self, option: str) -> Iterator[str]:
        """Yield a sentence for each method that has fewer settings than are tried, or that lists more.

        ``option`` is how users set the number of trials, such as ``--trials`` and a blank.
        """
        for line in self.lines:
            name, number = line.card.name, line.n_settings
            if not line.values:
                yield f"{name} declares no {'other ' * bool(line.fixed)}values to try; its defaults stand."
            elif number < self.n_trials:
                yield f"{name}: all {number} settings are tried, fewer than {option}{self.n_trials}."
            elif number > self.n_trials and line.is_listed:
                yield f"{name}: {self.n_trials} of {number} settings are tried; {option}{number} tries all."


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
        merge_rows(folder, outcome.rows, outcome.made)
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
    with hdf5.open_codes(path) as codes:
        split = _read_among_held_out(dataset, codes.made.dataset_fingerprint)
        query, database = np.split(codes.query[:], [len(split.query)])
        among = replace(codes, query=query, database=database, query_outputs=None)
        scored = problem_of(split, among).evaluate(names)
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


def _by_setting(outcomes: Sequence[Outcome]) -> dict[str, dict[str, list[Outcome]]]:
    """Group outcomes by method and setting, as canonical JSON, in their order."""
    by_setting: dict[str, dict[str, list[Outcome]]] = {}
    for outcome in outcomes:
        of_method = by_setting.setdefault(outcome.job.method, {})
        of_method.setdefault(canonical_json(dict(outcome.job.params)), []).append(outcome)
    return by_setting


def choose(outcomes: Sequence[Outcome], metric_names: Sequence[str]) -> list[Choice]:
    """Choose settings for each method, by the mean over all their trials, the default ones first.

    Both scores and all metrics have the same weight. The best settings have the best mean among those without a failed
    trial; the default settings win ties. The default ones are kept unless the best lead by more than `LEAD`, or a trial
    of the default ones failed.
    """
    less = less_is_better(metric_names)
    choices = []
    for method, of_method in _by_setting(outcomes).items():
        params = {setting: trials[0].job.params for setting, trials in of_method.items()}
        means = {setting: _mean(trials, metric_names) for setting, trials in of_method.items()}
        finished = {setting: mean for setting, mean in means.items() if not math.isnan(mean)}
        default = next(iter(means))
        best = (min if less else max)(finished, key=lambda setting: finished[setting], default=None)
        best_score = math.nan if best is None else finished[best]
        lead = means[default] - best_score if less else best_score - means[default]
        chosen = best if leads(lead) else default
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


def leads(lead: float) -> bool:
    """Return whether settings that are better by ``lead`` take the place of the default ones; NaN: these failed."""
    return not round(lead, 9) <= LEAD


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


def conclude(search: Search, folder: Path) -> list[Choice]:
    """Choose settings for each method, and write them to a grid file in the folder of the trials.

    The number of trials counts all settings of a method that the folder holds on these data and code lengths.
    """
    tried = _settings_tried([outcome.job for outcome in search.outcomes], folder)
    choices = []
    for choice in choose(search.outcomes, search.metric_names):
        edges = (
            line.at_edge(point)
            for line in search.lines
            for point in line.scores
            if line.card.name == choice.method and line.params(point) == choice.params
        )
        lines = [line for line in search.lines if line.card.name == choice.method]
        is_untuned = not any(line.values or line.fixed for line in lines)
        n_tried = len(tried[choice.method])
        choices.append(replace(choice, n_trials=n_tried, is_untuned=is_untuned, at_edge=next(edges, ())))
    if all(choice.params is None for choice in choices):
        earlier = f" {folder / GRID} of an earlier command was left as it was." * (folder / GRID).exists()
        raise HashbenchError(f"no settings finished all their trials: {choices[0].failure}{earlier}")
    if all(variant_of(choice) is None for choice in choices):
        return choices  # nothing to run
    write_text(folder / GRID, grid_text(search.study, choices, search.metric_names))
    return choices


def about_edges(search: Search, choices: Sequence[Choice]) -> str:
    """Return a sentence that names the chosen values at the edge of what was tried; empty if there are none."""
    defaults = {line.card.name: {**line.card.params, **line.fixed} for line in search.lines}
    edges = [
        f"{choice.method} {key}={({**defaults[choice.method], **(choice.params or {})})[key]}"
        for choice in choices
        for key in choice.at_edge
    ]
    if not edges:
        return ""
    return (
        f"At the edge of what was tried: {', '.join(edges)}. A value beyond may be better; more trials go there first."
    )


def about_untuned(choices: Sequence[Choice]) -> str:
    """Return a sentence that names the methods that have nothing to tune; empty if there are none."""
    names = [choice.method for choice in choices if choice.is_untuned]
    return (
        f"Not in {GRID}, since they declare no values to try: {', '.join(names)}. List some: --param NAME=VALUE,VALUE."
        if names
        else ""
    )


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
    if choice.params is None or choice.is_untuned:
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
