"""Many codes through the orders of ties that real scripts have: how far their values spread, and which pairs turn.

A script is taken for its order of ties alone: all else is as ours. One that gives the precision at the end of each tie
has no order; it takes ties near their worst whatever the database, and stands apart.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hashbench._parallel import chunks, in_threads
from hashbench._typing import ByteArray, FloatArray, Progress, silent
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import load_dataset
from hashbench.reports import ties
from hashbench.reports.aggregate import method_labels
from hashbench.reports.explain import conventions as by
from hashbench.reports.explain import quantities
from hashbench.reports.explain.conventions import Evaluator, Query
from hashbench.reports.explain.emulation import cut_of
from hashbench.reports.explain.evaluators import EVALUATORS
from hashbench.reports.explain.orders import BY_CUT, rearranged
from hashbench.reports.formatting import json_number, markdown_table, plain_table
from hashbench.scoring.evaluator import evaluate_packed
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import get_metric
from hashbench.scoring.random_orders import without_ties
from hashbench.store.files import data_dir
from hashbench.store.hdf5 import open_codes, read_attributes

DATABASE_ORDERS = ("given", "by-class", "shuffled")
_AT_A_TIME = 16  # queries ranked at once by one thread
FORMATS = ("table", "markdown", "json")


class Spread(NamedTuple):
    """What the scripts' orders of ties make of one metric of some codes, the database in one order.

    Parameters
    ----------
    method, n_bits, metric, database, n_queries : str, int, str, str, int
        Which codes, of how many bits; which metric; a name of ``DATABASE_ORDERS``; how many queries.
    value, tie_sd, low, high : float
        The exact value, its deviation over random orders (luck), and the worst case.
    lowest, highest : float
        Among scripts that sort.
    lowest_script, highest_script : str
        One that gives it.
    end_of_ties : float
        Of scripts that take the precision at the end of each tie (sklearn-ap); NaN where the metric is not AP.
    """

    method: str
    n_bits: int
    metric: str
    database: str
    n_queries: int
    value: float
    tie_sd: float
    low: float
    high: float
    lowest: float
    highest: float
    lowest_script: str
    highest_script: str
    end_of_ties: float


class Pairs(NamedTuple):
    """Of every two methods at one code length, what ties leave open between them.

    Parameters
    ----------
    n_bits, metric, database : int, str, str
        Where they were compared.
    n_pairs : int
        All of them.
    meet : int
        Those whose ranges meet: in the worst case ties could turn them.
    open : int
        Those that luck does not tell apart.
    turned : tuple of pairs of str
        Those that two scripts that sort can publish in either order.
    turned_at_end : tuple of pairs of str
        Those that need the script of the end of ties for it.
    """

    n_bits: int
    metric: str
    database: str
    n_pairs: int
    meet: int
    open: int
    turned: tuple[tuple[str, str], ...]
    turned_at_end: tuple[tuple[str, str], ...]


def spreads(
    method: str,
    query: ByteArray,
    database: ByteArray,
    n_bits: int,
    affinity: Affinity,
    metrics: Sequence[str],
    database_orders: Sequence[str] = DATABASE_ORDERS,
) -> Iterator[Spread]:
    """Score packed codes, (n, ceil(n_bits / 8)), in the orders of ties that scripts have, each database order in turn.

    Raises HashbenchError if a database cannot be put into one of the orders.
    """
    exact = evaluate_packed(query, database, n_bits, affinity, metrics)
    for name in database_orders:
        items, relevance = rearranged(database, affinity, name)
        found, end_of_ties = _values(query, items, n_bits, relevance, list(exact.scores))
        for metric, summary in exact.summary.items():
            values = found[metric]
            lowest, highest = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
            yield Spread(
                *(method, n_bits, metric, name, summary.n_queries),
                *(summary.mean, summary.tie_sd, summary.low, summary.high),
                *(values[lowest], values[highest], lowest, highest),
                end_of_ties if metric == "AP" else math.nan,
            )


def explain_kept(
    dataset: str,
    n_bits: Sequence[int] = (),
    methods: Sequence[str] = (),
    seed: int = 0,
    metrics: Sequence[str] = ("AP",),
    database_orders: Sequence[str] | None = None,
    on_progress: Progress = silent,
) -> list[Spread]:
    """Score all codes of a dataset that are kept in the data folder, as `spreads`.

    Parameters
    ----------
    dataset : str
        Name, NAME:FEATURES or file.
    n_bits, methods : sequence, optional
        Which lengths and methods; by default all.
    seed : int, default=0
        Of the codes.
    metrics : sequence of str
        Those that scripts give by sorting, such as AP, AP@1000, NDCG or P@100.
    database_orders : sequence of str, optional
        By default those of ``DATABASE_ORDERS`` that the dataset has; several labels an item have no order by class.
    on_progress : callable
        Told of queries ranked.

    Returns
    -------
    list of Spread
        By length, method, database order and metric.

    Raises
    ------
    HashbenchError
        If there are no such codes, no script that sorts gives a metric, or the database cannot be so ordered.
    """
    loaded, _ = load_dataset(dataset)
    affinity = loaded.affinity()
    for name in metrics:
        if not _sorting(name, affinity.n_database):
            raise HashbenchError(
                f"no script that sorts gives {name} of {affinity.n_database:,} items; ask for AP, AP@k, NDCG or P@k."
            )
    if database_orders is None:
        labels = getattr(affinity, "database_labels", None)
        is_single = labels is not None and labels.ndim == 1
        database_orders = [name for name in DATABASE_ORDERS if is_single or name != "by-class"]
    kept: list[tuple[int, str, Path]] = []
    lines = []
    for path in sorted((data_dir() / "codes").glob("*/*.h5")):
        made = read_attributes(path)
        if made.get("dataset_fingerprint") != loaded.fingerprint or made.get("seed") != seed:
            continue
        if made["n_bits"] in (n_bits or [made["n_bits"]]) and made["method"] in (methods or [made["method"]]):
            kept.append((int(made["n_bits"]), str(made["method"]), path))
            lines.append((str(made["method"]), str(made["params"])))
    if not kept:
        asked = " ".join([f"--method {name}" for name in methods or ["itq"]] + [f"--bits {n}" for n in n_bits or [32]])
        raise HashbenchError(
            f"no codes of {dataset} with seed {seed} are kept here that were asked for. Make some: hashbench run "
            f"--dataset {dataset} {asked} --seed {seed}."
        )
    labels_of = method_labels(lines)
    found: list[Spread] = []
    for number, ((length, _, path), line) in enumerate(sorted(zip(kept, lines, strict=True))):
        what = f"codes explained, {labels_of[line]} {length} bits"
        on_progress(what, number, len(kept))
        with open_codes(path) as codes:
            parts = codes.query[:], codes.database[:], codes.n_bits, affinity
        found += spreads(labels_of[line], *parts, metrics, database_orders)
    on_progress("codes explained", len(kept), len(kept))
    return found


def pairs(found: Sequence[Spread]) -> list[Pairs]:
    """Compare every two methods, by code length, metric and database order."""
    at: dict[tuple[int, str, str], list[Spread]] = {}
    for one in found:
        at.setdefault((one.n_bits, one.metric, one.database), []).append(one)
    return [_pairs(place, those) for place, those in at.items()]


def _pairs(place: tuple[int, str, str], those: Sequence[Spread]) -> Pairs:
    both = list(combinations(those, 2))
    answers = [str(ties.compare(one, other)) for one, other in both]
    turned, at_end = [], []
    for one, other in both:
        names = one.method, other.method
        if one.highest > other.lowest and one.lowest < other.highest:
            turned.append(names)
        elif _highest(one) > _lowest(other) and _lowest(one) < _highest(other):
            at_end.append(names)
    n_meet = sum(answer != ties.EVERY_ORDER for answer in answers)
    return Pairs(*place, len(both), n_meet, answers.count(ties.OPEN), tuple(turned), tuple(at_end))


def _lowest(one: Spread) -> float:
    return float(np.fmin(one.lowest, one.end_of_ties))


def _highest(one: Spread) -> float:
    return float(np.fmax(one.highest, one.end_of_ties))


def _values(
    query: ByteArray,
    database: ByteArray,
    n_bits: int,
    affinity: Affinity,
    metrics: Sequence[str],
) -> tuple[dict[str, dict[str, float]], float]:
    """Give each metric under the scripts' orders, by the name of a script that has it, and AP at the end of ties."""
    n_queries, n_items, levels = len(query), len(database), affinity.levels
    scripts = {name: _sorting(name, n_items) for name in metrics}
    distances = np.zeros((n_queries, len(levels), n_bits + 1), dtype=np.int64)
    values = {(name, script): np.full(n_queries, np.nan) for name in metrics for script in scripts[name]}

    def rank(queries: slice) -> None:
        block = np.searchsorted(levels, affinity.block(queries, slice(0, n_items))).astype(np.int16)
        seen = [
            Query(query[row], database, n_bits, levels[of_query], row, n_queries)
            for row, of_query in zip(range(queries.start, queries.stop), block, strict=True)
        ]
        for row, (one, at_level) in enumerate(zip(seen, block, strict=True), start=queries.start):
            cells = at_level.astype(np.int64) * (n_bits + 1) + one.keys(by.hamming)
            distances[row] = np.bincount(cells, minlength=distances[row].size).reshape(distances[row].shape)
        ranked: dict[Any, TieHistogram] = {}
        for name, its in scripts.items():
            for script, (evaluator, cut) in its.items():
                n_first = cut if evaluator.order in BY_CUT else n_items
                key = evaluator.order, evaluator.passed, n_first
                if key not in ranked:
                    rows = [_whole(one, evaluator, n_first) for one in seen]
                    ranks = np.take_along_axis(block, np.stack(rows), axis=1)
                    ranked[key] = without_ties(ranks, levels)
                values[name, script][queries] = get_metric(name).scores(ranked[key]).mean

    for _ in in_threads(rank, chunks(0, n_queries, _AT_A_TIME)):
        pass
    means: dict[str, dict[str, float]] = {name: {} for name in metrics}
    for (name, script), each in values.items():
        means[name][script] = _mean(each)
    histogram = TieHistogram(distances, levels)
    is_defined = histogram.n_relevant > 0
    return means, _mean(np.where(is_defined, quantities.at_end_of_ties(histogram, n_items), np.nan))


def _sorting(name: str, n_items: int) -> dict[str, tuple[Evaluator, int]]:
    """Choose a script for each order of ties that some script of a metric has, and how many items it looks at."""
    found: dict[Any, tuple[Evaluator, int]] = {}
    for one in EVALUATORS:
        cut = None if "@r" in name else cut_of(one, name, n_items)  # no order matters inside a radius
        if one.order is not None and cut is not None:
            found.setdefault((one.order, one.passed), (replace(one, distance=by.hamming), cut))
    return {one.name: (one, cut) for one, cut in found.values()}


def _whole(seen: Query, script: Evaluator, n_first: int) -> Any:
    """Give the rows of all items in a script's order; behind those that it asks for, by distance."""
    rows = seen.rows(script, n_first)[:n_first]
    if len(rows) == seen.n_items:
        return rows
    is_left = np.ones(seen.n_items, dtype=bool)
    is_left[rows] = False
    left = np.flatnonzero(is_left)
    return np.append(rows, left[np.argsort(seen.keys(by.hamming)[left], kind="stable")])


def _mean(values: FloatArray) -> float:
    counted = ~np.isnan(values)
    return float(values[counted].mean()) if counted.any() else math.nan


def format_grid(found: Sequence[Spread], form: str) -> str:
    """Lay out what scripts make of codes, and what that and luck leave open of every two: one of ``FORMATS``."""
    compared = pairs(found)
    if form == "json":
        rows = [{key: _plain(value) for key, value in one._asdict().items()} for one in found]
        return json.dumps({"codes": rows, "pairs": [one._asdict() for one in compared]}, indent=2)
    lay_out = markdown_table if form == "markdown" else plain_table
    header = ["method", "bits", "metric", "database", "mean ± sd", "scripts that sort", "end of ties", "worst case"]
    lines = [
        [
            *(one.method, str(one.n_bits), one.metric, one.database, f"{one.value:.4f} ± {one.tie_sd:.5f}"),
            f"{one.lowest:.4f} to {one.highest:.4f}",
            "" if one.end_of_ties != one.end_of_ties else f"{one.end_of_ties:.4f}",
            f"{one.low:.4f} to {one.high:.4f}",
        ]
        for one in found
    ]
    parts = [lay_out(header, lines)]
    if any(one.n_pairs for one in compared):
        header = ["bits", "metric", "database", "pairs", "ranges meet", "open by luck"]
        header += ["scripts that sort", "with end of ties"]
        counts = [
            [
                *(str(one.n_bits), one.metric, one.database, str(one.n_pairs), str(one.meet), str(one.open)),
                *(str(len(one.turned)), str(len(one.turned) + len(one.turned_at_end))),
            ]
            for one in compared
        ]
        parts.append(lay_out(header, counts))
        parts += [
            f"{one.n_bits} bits, {one.metric}, {one.database}: two scripts that sort can put these pairs in either "
            f"order: {', '.join(' and '.join(names) for names in one.turned)}."
            for one in compared
            if one.turned
        ]
        parts.append(_ABOUT_PAIRS)
    return "\n\n".join([*parts[:1], _ABOUT, *parts[1:]])


_ABOUT = (
    "sd: luck, over random orders of the database. Scripts that sort: the lowest and highest value among the orders of "
    "ties that they have, all else as ours. End of ties: scripts that give the precision at the end of each tie, such "
    "as sklearn-ap. Worst case: the ties of each query on its own."
)
_ABOUT_PAIRS = (
    "Pairs: of two methods each. Ranges meet: in the worst case. Open by luck: not told apart by luck. Scripts that "
    "sort: two of them can put the pair in either order. With end of ties: the same, if scripts that give the "
    "precision at the end of each tie count too."
)


def _plain(value: Any) -> Any:
    return json_number(value) if isinstance(value, float) else value
