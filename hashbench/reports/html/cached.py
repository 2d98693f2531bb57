"""Codes and scores in the data folder that belong to results: times, queries, tie groups and thumbnails."""

import base64
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from hashbench._typing import AnyArray, FloatArray, IntArray, Progress, silent
from hashbench.bits import to_words
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import find_by_content
from hashbench.registry import dataset_spec, is_dataset, method_names
from hashbench.reports.aggregate import BLOCK, LINE, changed_params, main_lines
from hashbench.reports.html.content import USUAL_BITS, encode
from hashbench.reports.plots.figure_selection import (
    DEFAULT_METRIC,
    FigureBlock,
    at_usual_length,
    choose_blocks,
)
from hashbench.reports.selection import Selection
from hashbench.scoring.code_statistics import bucket_sizes
from hashbench.scoring.counting import count, database_blocks
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import get_metric
from hashbench.store import hdf5, result_rows
from hashbench.store.artifact import read_record
from hashbench.store.files import data_dir
from hashbench.store.result_rows import as_row
from hashbench.store.score_cache import find_scores

_KEY = (*BLOCK, *LINE, "n_bits", "seed")


def find_codes(block: FigureBlock) -> pd.DataFrame:
    """Find the cached codes behind a block's results, as `cached_files` does; at least one.

    The commands that make missing codes are added to the block's notes, or, if all are missing, to the HashbenchError.
    """
    if block.rows["params"].map(result_rows.left_out).any():
        raise HashbenchError(f"rows of {block.dataset} that leave items out have no figures of codes.")
    files = cached_files(block)
    if len(files) < len(block.rows):
        what = "the" if files.empty else f"{len(block.rows) - len(files)} of {len(block.rows)}"
        note = (
            f"{what} codes of {block.dataset} ({block.features}) are not in the data folder. "
            f"Make them: {'; '.join(_commands(block, block.rows.drop(files.index)))}."
        )
        if files.empty:
            raise HashbenchError(note)
        block.notes.append(note)
    return files


def cached_files(block: FigureBlock) -> pd.DataFrame:
    """Return the results behind a block whose codes the data folder has, each with the ``path`` of these."""
    all_codes = sorted((data_dir() / "codes").glob("*/*.h5"), reverse=True)
    paths = {_key_of(_record(path, path.stat().st_mtime_ns)): path for path in all_codes}
    found = [paths.get(_key_of(row)) for row in block.rows.to_dict("records")]
    files = block.rows.assign(path=pd.Series(found, dtype=object))
    return files[files["path"].notna()]


def read_usage(files: pd.DataFrame) -> Iterator[tuple[Mapping[Any, Any], IntArray]]:
    """Count how often each distinct code of the database is used, in the first seed of each method.

    Yields the row of the file and the counts, (n_distinct,), the most frequent code first.
    """
    for file in files.drop_duplicates(["label", "n_bits"]).to_dict("records"):
        with hdf5.open_codes(file["path"]) as codes:
            yield file, bucket_sizes(np.asarray(codes.database[:]), codes.n_bits)


def read_times(files: pd.DataFrame) -> pd.DataFrame:
    """Read how long it took to make codes.

    Returns for each ``label`` and ``n_bits`` the medians of ``fit_seconds`` and ``encode_seconds`` over the ``n_timed``
    seeds whose codes are cached.
    """
    rows = []
    for file in files.to_dict("records"):
        record = _record(file["path"], file["path"].stat().st_mtime_ns)
        seconds = {key: record[key] for key in ("fit_seconds", "encode_seconds") if key in record}
        if seconds:  # users' own codes have no times
            rows.append({"label": file["label"], "n_bits": file["n_bits"], "n_timed": file["seed"], **seconds})
    if not rows:
        raise HashbenchError(f"no codes in {files['path'].iloc[0].parent} record how long they took to make.")
    times = pd.DataFrame(rows).groupby(["label", "n_bits"], sort=False)
    return times.median().assign(n_timed=times["n_timed"].nunique()).reset_index()


def open_dataset(block: FigureBlock) -> Dataset:
    """Open the dataset behind a block; the error says how to prepare it."""
    path = find_by_content(block.dataset_fingerprint, block.dataset_files)
    if path is None:
        raise HashbenchError(
            f"dataset {block.dataset} ({block.features}) with content {block.dataset_fingerprint} is not in the data "
            f"folder. Prepare it ({_preparation(block)}), or pass its file with --dataset."
        )
    return _read_dataset(path)


def _key_of(fields: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Return the values of ``_KEY``; the display form of users' own codes does not matter."""
    return tuple(result_rows.unshown(str(fields.get(key))) if key == "params" else fields.get(key) for key in _KEY)


@lru_cache(maxsize=1 << 14)
def _record(path: Path, changed: int) -> Mapping[str, Any]:
    """Read the record of a file; ``changed`` identifies its content in the cache."""
    return read_record(path)


_read_dataset = lru_cache(maxsize=1)(hdf5.read_dataset)


def _preparation(block: FigureBlock) -> str:
    if is_dataset(block.dataset):
        return f"hashbench prepare {dataset_spec(block.dataset, block.features)}"
    return f"hashbench prepare --name {block.dataset} --from ITEMS, with its other options as before"


def _commands(block: FigureBlock, missing: pd.DataFrame) -> Iterator[str]:
    """Yield commands that make the codes of rows of a block: the dataset first, then one per set of parameters."""
    path = find_by_content(block.dataset_fingerprint, block.dataset_files)
    spec = str(path) if path in block.dataset_files else dataset_spec(block.dataset, block.features)
    if path is None:
        yield _preparation(block)
    is_own = missing["params"].map(result_rows.is_own)
    for method in sorted(missing.loc[is_own, "method"].unique()):
        yield f"hashbench save {method} --dataset {spec} --keep-codes, with its codes as before"
    missing = missing[~is_own]
    options = [_param_options(method, params) for method, params in zip(missing.method, missing.params, strict=True)]
    for params, rows in missing.assign(options=options).groupby("options", sort=True):
        parts = ["hashbench encode", f"--dataset {spec}"]
        for option, key in (("--method", "method"), ("--bits", "n_bits"), ("--seed", "seed")):
            parts += [f"{option} {value}" for value in sorted(rows[key].unique())]
        yield " ".join([*parts, *([str(params)] if params else [])])


def _param_options(method: str, params: str) -> str:
    if method not in method_names():
        return ""
    return " ".join(f"--param {key}={value}" for key, value in changed_params(method, params).items())


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


_LONGEST = 40  # pixels of a side
_N_NEAREST = 24  # items of a query and method, of its nearest tie groups
_PER_ROW, _PER_SHEET = 50, 2500  # images; browsers keep a sheet of these in 16 MB
_QUALITY = 80


def add_thumbnails(queries: dict[str, Any], block: FigureBlock) -> dict[str, bytes]:
    """Add the places of images to the queries of a block, and return sheets of images as JPEGs by name.

    There are none if the dataset has no images. Each query and method has some items of the nearest tie groups; if a
    group has more, they are drawn at random with seed 0.
    """
    dataset = open_dataset(block)
    if dataset.images is None:
        return {}
    chosen = np.asarray(queries["chosen"])
    items: dict[int, int] = {}  # place in the sheets, by row of the dataset
    of_query = {int(query): items.setdefault(int(dataset.query[query]), len(items)) for query in chosen}
    affinity = dataset.affinity().part(chosen)
    nearest: dict[str, list[Any]] = {}
    for label, path in first_codes(block).items():
        if label not in queries["groups"]:
            continue
        with hdf5.open_codes(path) as codes:
            database, query_codes = to_words(np.asarray(codes.database[:])), to_words(codes.query[chosen])
        label_groups = nearest[label] = []
        for row, words in enumerate(query_codes):
            groups = []
            for distance, positions in _nearest(np.bitwise_count(database ^ words).sum(axis=1, dtype=np.int64)):
                levels = affinity.block(slice(row, row + 1), positions)[0]
                places = [items.setdefault(int(item), len(items)) for item in dataset.database[positions]]
                left = [[place, int(level)] for place, level in zip(places, levels, strict=True) if level >= 0]
                groups += [[distance, *left]] if left else []
            label_groups.append(groups)
    rows, sheets = list(items), {}
    for start in range(0, len(rows), _PER_SHEET):
        sheet, size = _sheet(dataset.images, rows[start : start + _PER_SHEET])
        sheets[f"data/images-{sha256(sheet).hexdigest()[:16]}.jpg"] = sheet
    queries["images"] = {
        "files": list(sheets),
        "size": size,
        "n_columns": _PER_ROW,
        "n_of_file": _PER_SHEET,
        "of_query": of_query,
        "nearest": nearest,
    }
    return sheets


def _nearest(distances: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield the nearest distances and their items, in order of the database, ``_N_NEAREST`` items in all."""
    order = np.lexsort((np.random.default_rng(0).random(len(distances)), distances))
    nearest = np.sort(order[:_N_NEAREST])
    for distance in np.unique(distances[nearest]):
        yield int(distance), nearest[distances[nearest] == distance]


def _sheet(images: AnyArray, items: list[int]) -> tuple[bytes, tuple[int, int]]:
    """Return a JPEG of images side by side, row by row, with the width and height of each image."""
    height, width = images.shape[1:3]
    shrink = min(1.0, _LONGEST / max(height, width))
    size = max(round(width * shrink), 1), max(round(height * shrink), 1)
    n_columns, n_rows = min(_PER_ROW, len(items)), -(-len(items) // _PER_ROW)
    sheet = Image.new("RGB", (n_columns * size[0], n_rows * size[1]), "white")
    for place, item in enumerate(items):
        picture = Image.fromarray(images[item].squeeze()).convert("RGB").resize(size, Image.Resampling.LANCZOS)
        sheet.paste(picture, (place % n_columns * size[0], place // n_columns * size[1]))
    written = io.BytesIO()
    sheet.save(written, "JPEG", quality=_QUALITY)
    return written.getvalue(), size
