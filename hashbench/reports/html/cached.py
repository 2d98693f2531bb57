"""Content from the data folder's codes and scores: times, code usage, queries with their tie groups."""

import base64
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hashbench._typing import FloatArray, IntArray, Progress, silent
from hashbench.errors import HashbenchError
from hashbench.reports.aggregate import BLOCK, main_lines
from hashbench.reports.html.cached_codes import (
    cached_files,
    find_codes,
    open_dataset,
    read_times,
    read_usage,
)
from hashbench.reports.html.content import USUAL_BITS, encode
from hashbench.reports.plots.figure_selection import (
    DEFAULT_METRIC,
    FigureBlock,
    at_usual_length,
    choose_blocks,
)
from hashbench.reports.selection import Selection
from hashbench.scoring.counting import count, database_blocks
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import get_metric
from hashbench.store import hdf5
from hashbench.store.result_rows import as_row
from hashbench.store.score_cache import find_scores

_N_RANKS = 24  # points of a curve of code usage
_STEPS, _NONE = 10_000, 0xFFFF  # a query's score is encoded in two bytes


def blocks_of(results: pd.DataFrame, on_progress: Progress = silent) -> Iterator[FigureBlock]:
    """Yield each dataset's block, in average precision or, without that, in the first of its metrics."""
    metrics = results.groupby(list(BLOCK))["metric"].unique()
    usual = metrics.map(lambda names: DEFAULT_METRIC if DEFAULT_METRIC in names else min(names))
    for metric in sorted(set(usual)):
        for block in choose_blocks(results, Selection(metrics=[metric], variants=True)):
            if usual[block.dataset, block.features, block.dataset_fingerprint] == metric and not block.cells.empty:
                yield replace(block, on_progress=on_progress)


def main_part(block: FigureBlock, cells_of_block: pd.DataFrame) -> FigureBlock:
    """Return a block with one line per method, that of `main_lines`, at the length of most methods."""
    cells = main_lines(block.cells, cells_of_block)
    cells = at_usual_length(cells, USUAL_BITS).reset_index(drop=True)
    return replace(block.of(cells), notes=[])


def read_costs(blocks: Iterable[tuple[str, FigureBlock]]) -> dict[str, Any]:
    """Read times and usage of the cached codes of named blocks."""
    times: list[dict[Any, Any]] = []
    usage: list[dict[str, Any]] = []
    for name, block in blocks:
        files = cached_files(block)
        if len(files):
            with suppress(HashbenchError):  # none record their times
                times += read_times(files).assign(data=name).to_dict("records")
            with suppress(HashbenchError):
                usage += [{**file, "data": name, **_usage(sizes)} for file, sizes in read_usage(files)]
    place = ["data", "label", "n_bits"]
    parts = {
        "times": pd.DataFrame(times, columns=[*place, "fit_seconds", "encode_seconds"]),
        "usage": pd.DataFrame(usage, columns=[*place, "seed", "n_items", "n_distinct", "curve"]),
    }
    return {key: encode(part.rename(columns={"n_bits": "bits"})) for key, part in parts.items()}


def _usage(sizes: IntArray) -> dict[str, Any]:
    """Count items and distinct codes, and list geometrically spaced ranks with the number of items at each."""
    ranks = np.unique(np.geomspace(1, len(sizes), _N_RANKS).round().astype(int))
    curve = tuple(np.column_stack([ranks, sizes[ranks - 1]]).ravel().tolist())
    return {"n_items": int(sizes.sum()), "n_distinct": len(sizes), "curve": curve}


def read_queries(block: FigureBlock, n_queries: int) -> dict[str, Any]:
    """Read the score of each query of a block by each method, and the tie groups of some queries.

    A tie group is three numbers in a row: distance, size, and relevant items; empty ones are left out. Raises
    HashbenchError if the codes or the dataset are not in the data folder.
    """
    rows = block.rows.sort_values("seed").drop_duplicates("label")
    cached = {row["label"]: find_scores(as_row(row)) for row in rows.to_dict("records")}
    scores = {label: values for label in block.labels if (values := cached[label]) is not None}
    if not scores:
        find_codes(block)  # raises if there are none
        raise HashbenchError(
            f"the scores of every query of {block.dataset} ({block.features}) are not in the data folder. "
            "Recompute them: hashbench run --force."
        )
    groups = block.cells.set_index("label")["group"].to_dict()
    order = sorted(scores, key=lambda label: (groups[label] == "baseline", -np.nan_to_num(np.nanmean(scores[label]))))
    matrix = np.array([scores[label] for label in order])  # (n_lines, n_queries)
    chosen = _choose_queries(matrix, n_queries)
    histograms = {label: _count(block, path, chosen) for label, path in first_codes(block).items() if label in scores}
    recomputed = {label: get_metric(block.metric).scores(histogram).mean for label, histogram in histograms.items()}
    return {
        "metric": block.metric,
        "bits": block.n_bits[0],
        "labels": order,
        "seed": int(rows["seed"].iloc[0]),
        "scores": [_short(line) for line in matrix],
        "chosen": chosen.tolist(),
        "groups": {
            label: list(map(_flat, histograms[label].size, histograms[label].n_rel))
            for label in order
            if label in histograms  # of codes that have these scores, which may be of earlier ones
            and np.allclose(recomputed[label], scores[label][chosen], rtol=0, atol=1e-6, equal_nan=True)
        },
    }


def first_codes(block: FigureBlock) -> dict[str, Path]:
    """Find the codes of the first seed of each line, whose scores are shown; by label."""
    seeds, files = block.rows.groupby("label")["seed"].min(), find_codes(block)
    first = files[files["seed"] == files["label"].map(seeds)]
    return dict(zip(first["label"], first["path"], strict=True))


def _choose_queries(scores: FloatArray, n_queries: int) -> IntArray:
    """Choose the queries that differ most: half of them between the first two lines, the others between any two.

    For a single line the hardest and the easiest are chosen.
    """
    known = np.nan_to_num(scores)
    known = known if len(known) > 1 else np.vstack([known, np.full_like(known, np.median(known))])
    ranked = [np.argsort(-np.ptp(lines, axis=0), kind="stable") for lines in (known[:2], known)]
    chosen = dict.fromkeys([*ranked[0][: -(-n_queries // 2)], *ranked[1]])
    return np.sort(np.array([*chosen][:n_queries], dtype=np.int64))


def _short(scores: FloatArray) -> str:
    """Encode scores as unsigned 16-bit numbers, little-endian, in base64."""
    steps = np.where(np.isnan(scores), _NONE, np.rint(np.nan_to_num(scores) * _STEPS))
    return base64.b64encode(steps.astype("<u2").tobytes()).decode()


def _count(block: FigureBlock, path: Path, queries: IntArray) -> TieHistogram:
    affinity = open_dataset(block).affinity().part(queries)
    with hdf5.open_codes(path) as codes:
        parts = database_blocks(codes.database, codes.n_bits, affinity)
        return count(codes.query[queries], parts, codes.n_bits, affinity, slice(0, len(queries)))


def _flat(size: IntArray, n_rel: IntArray) -> list[int]:
    distances = np.flatnonzero(size)
    return np.column_stack([distances, size[distances], n_rel[distances]]).ravel().tolist()
