"""Codes scored in the tie orders of real scripts: how far values spread, and which methods change places.

Only the tie order is a script's; all else is hashbench's. A script that computes the precision at the end of each tie
has no order: it counts ties near their worst whatever the database, and is reported apart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hashbench._typing import ByteArray, FloatArray, Progress, silent
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import load_dataset
from hashbench.reports import marks
from hashbench.reports.aggregate import method_labels
from hashbench.reports.explain import orders
from hashbench.reports.explain.orders import DATABASE_ORDERS, rearranged
from hashbench.reports.explain.ranking import Query, Scoring, Sort, n_left, score, visit_queries
from hashbench.reports.explain.scripts import EVALUATORS, twins_of
from hashbench.scoring.metrics import get_metric, readings
from hashbench.scoring.problem import Problem
from hashbench.store.artifact import read_record
from hashbench.store.files import data_dir
from hashbench.store.hdf5 import open_codes

_END_OF_TIES = "AP:thresholds"  # the precision at the end of each tie


class Spread(NamedTuple):
    """One metric of some codes in the scripts' tie orders, with the database in one order."""

    method: str
    n_bits: int
    metric: str
    database: str  # one of ``DATABASE_ORDERS``
    n_queries: int
    value: float  # exact
    tie_sd: float  # standard deviation under a shuffle of the database
    low: float  # the worst case
    high: float
    lowest: float  # among scripts that sort
    highest: float
    lowest_script: str  # one that gives the lowest value
    highest_script: str
    end_of_ties: float  # for scripts that use the precision at the end of each tie; NaN unless the metric is AP


class Pairs(NamedTuple):
    """Pairs of methods at one code length whose order ties leave open."""

    n_bits: int
    metric: str
    database: str
    n_pairs: int
    meet: int  # pairs whose ranges meet: in the worst case ties could reverse them
    open: int  # pairs that are not apart under a shuffle
    turned: tuple[tuple[str, str], ...]  # pairs that two scripts that sort can publish in either order


def spreads(
    method: str,
    query: ByteArray,
    database: ByteArray,
    n_bits: int,
    affinity: Affinity,
    metrics: Sequence[str],
    database_orders: Sequence[str] = DATABASE_ORDERS,
) -> Iterator[Spread]:
    """Score packed codes, (n, ceil(n_bits / 8)), in the tie orders of scripts, for each order of the database.

    Raises HashbenchError if the database has no such order.
    """
    exact = Problem.of_packed(query, database, n_bits, affinity).evaluate([*metrics, _END_OF_TIES])
    counted = ~np.isnan(exact.scores[_END_OF_TIES].mean)
    end = exact.summary[_END_OF_TIES].mean
    sizes = n_left(affinity)
    fewest_and_most = int(sizes.min()), int(sizes.max())
    scripts = {name: _sorting_scripts(name, *fewest_and_most) for name in exact.scores if name != _END_OF_TIES}
    scores = {scoring: np.zeros(len(query)) for of_metric in scripts.values() for scoring in of_metric.values()}

    def visit(queries: list[Query]) -> None:
        for scoring, of_queries in zip(scores, score(queries, scores, affinity.levels), strict=True):
            scores[scoring][queries[0].number : queries[-1].number + 1] = of_queries[0]

    for name in database_orders:
        items, relevance = rearranged(database, affinity, name)
        visit_queries(query, items, n_bits, relevance, visit)
        for metric, of_metric in scripts.items():
            summary = exact.summary[metric]
            values = {script: _mean(scores[scoring][counted]) for script, scoring in of_metric.items()}
            lowest, highest = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
            exact_numbers = summary.n_queries, summary.mean, summary.tie_sd, summary.low, summary.high
            extremes = values[lowest], values[highest], lowest, highest
            yield Spread(method, n_bits, metric, name, *exact_numbers, *extremes, end if metric == "AP" else math.nan)


def explain_cached(
    dataset: str,
    n_bits: Sequence[int] = (),
    methods: Sequence[str] = (),
    seed: int = 0,
    metrics: Sequence[str] = ("AP",),
    database_orders: Sequence[str] | None = None,
    on_progress: Progress = silent,
) -> tuple[list[Spread], list[str]]:
    """Score all cached codes of a dataset with a seed, as `spreads` does.

    ``n_bits`` and ``methods`` choose among them. Metrics are those that scripts compute by sorting, such as AP,
    AP@1000, NDCG or P@100. ``database_orders`` defaults to all ``DATABASE_ORDERS``, without ``by-class`` if items have
    several labels. Returns spreads by length, method, database order and metric, and notes on metrics left out.
    """
    loaded, _ = load_dataset(dataset)
    affinity = loaded.affinity()
    n_items = affinity.n_database
    meanings = readings(map(get_metric, metrics))
    missing = [name for name in metrics if not _sorting_scripts(name, n_items, n_items)]
    forms = f"of {n_items:,} items; ask for AP, AP@k, NDCG or P@k."
    notes = [f"no script that sorts gives {name} {forms}" for name in missing]
    metrics = [name for name in metrics if name not in missing]
    if not metrics:
        raise HashbenchError(notes[0])
    if database_orders is None:
        database_orders = orders.database_orders(affinity)
    cached: list[tuple[int, str, Path, str]] = []
    for path in sorted((data_dir() / "codes").glob("*/*.h5")):
        about = read_record(path)
        length, method = int(about.get("n_bits", 0)), str(about.get("method"))
        is_of_dataset = about.get("dataset_fingerprint") == loaded.fingerprint and about.get("seed") == seed
        if is_of_dataset and length in (n_bits or [length]) and method in (methods or [method]):
            cached.append((length, method, path, str(about["params"])))
    if not cached:
        options = [f"--method {name}" for name in methods or ["itq"]] + [f"--bits {n}" for n in n_bits or [32]]
        raise HashbenchError(
            f"no matching codes of {dataset} with seed {seed} are cached. Create some: hashbench run "
            f"--dataset {dataset} {' '.join(options)} --seed {seed}."
        )
    labels = method_labels((method, params) for _, method, _, params in cached)
    all_spreads: list[Spread] = []
    for number, (length, method, path, params) in enumerate(sorted(cached)):
        label = labels[method, params]
        on_progress(f"codes explained, {label} {length} bits", number, len(cached))
        with open_codes(path) as codes:
            query, database = codes.query[:], codes.database[:]
        all_spreads += spreads(label, query, database, length, affinity, metrics, database_orders)
    on_progress("codes explained", len(cached), len(cached))
    return all_spreads, [*meanings, *(f"Left out: {note}" for note in notes)]


def pairs(all_spreads: Sequence[Spread]) -> list[Pairs]:
    """Compare every two methods, by code length, metric and database order."""
    groups: dict[tuple[int, str, str], list[Spread]] = {}
    for spread in all_spreads:
        groups.setdefault((spread.n_bits, spread.metric, spread.database), []).append(spread)
    return [_pairs(key, group) for key, group in groups.items()]


def _pairs(key: tuple[int, str, str], group: Sequence[Spread]) -> Pairs:
    couples = list(combinations(group, 2))
    answers = [str(marks.compare(first, second)) for first, second in couples]
    turned = [
        (first.method, second.method)
        for first, second in couples
        if first.highest > second.lowest and first.lowest < second.highest
    ]
    n_meet = sum(answer != marks.EVERY_ORDER for answer in answers)
    return Pairs(*key, len(couples), n_meet, answers.count(marks.OPEN), tuple(turned))


def _sorting_scripts(name: str, n_fewest: int, n_items: int) -> dict[str, Scoring]:
    """Choose one script for each tie order among the scripts of a metric."""
    by_sort: dict[Sort, str] = {}
    for evaluator in (*EVALUATORS, *twins_of(EVALUATORS)):
        script = replace(evaluator, shares_cut=False)  # each metric is sorted for its own cut
        cut = None if "@r" in name else script.cut_of(name, n_items, n_fewest)  # no order matters inside a radius
        sort = None if cut is None else script.sort(cut)
        if sort is not None:
            by_sort.setdefault(sort, script.name)
    return {script: Scoring(name, sort=sort) for sort, script in by_sort.items()}


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else math.nan
