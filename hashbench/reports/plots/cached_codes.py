"""Codes and datasets in the data folder that belong to results."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hashbench._typing import IntArray
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import find_by_content
from hashbench.pipeline.steps import score
from hashbench.registry import dataset_spec, is_dataset, method_names
from hashbench.reports.aggregate import BLOCK, LINE, changed_params
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.scoring.code_statistics import bucket_sizes
from hashbench.scoring.curves import curve_metrics, lay_out
from hashbench.store import hdf5, result_rows
from hashbench.store.artifact import read_record
from hashbench.store.files import data_dir

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


def read_curves(block: FigureBlock) -> pd.DataFrame:
    """Score the codes behind a block at ranks of the whole database.

    Returns the columns of `hashbench.scoring.curves.lay_out`: for each ``label`` and ``n_bits`` the mean over the
    ``n_seeds`` seeds whose codes are cached.
    """
    files = find_codes(block)
    path = _dataset_path(block)
    frames = []
    for position, file in enumerate(files.to_dict("records")):
        block.on_progress(f"curves of {block.dataset}", position, len(files))
        points = _curve(path, file["path"], file["path"].stat().st_mtime_ns)
        frames.append(points.assign(label=file["label"], n_bits=file["n_bits"], n_seeds=file["seed"]))
    block.on_progress(f"curves of {block.dataset}", len(files), len(files))
    by_point = pd.concat(frames).groupby(["label", "n_bits", "curve", "cutoff"], sort=False)
    return by_point.mean().assign(n_seeds=by_point["n_seeds"].nunique()).reset_index()


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
    return _dataset(_dataset_path(block))


def _key_of(fields: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Return the values of ``_KEY``; the display form of users' own codes does not matter."""
    return tuple(result_rows.unshown(str(fields.get(key))) if key == "params" else fields.get(key) for key in _KEY)


@lru_cache(maxsize=1 << 14)
def _record(path: Path, changed: int) -> Mapping[str, Any]:
    """Read the record of a file; ``changed`` identifies its content in the cache."""
    return read_record(path)


def _dataset_path(block: FigureBlock) -> Path:
    path = find_by_content(block.dataset_fingerprint, block.dataset_files)
    if path is not None:
        return path
    raise HashbenchError(
        f"dataset {block.dataset} ({block.features}) with content {block.dataset_fingerprint} is not in the data "
        f"folder. Prepare it ({_preparation(block)}), or pass its file with --dataset."
    )


def _preparation(block: FigureBlock) -> str:
    if is_dataset(block.dataset):
        return f"hashbench prepare {dataset_spec(block.dataset, block.features)}"
    return f"hashbench prepare --name {block.dataset} --from ITEMS, with its other options as before"


@lru_cache(maxsize=1)
def _dataset(path: Path) -> Dataset:
    return hdf5.read_dataset(path)


@lru_cache(maxsize=1024)
def _curve(dataset_path: Path, path: Path, changed: int) -> pd.DataFrame:
    """Score a codes file; ``changed`` identifies its content in the cache."""
    dataset = _dataset(dataset_path)
    names = curve_metrics(None, len(dataset.database))
    return lay_out(score(dataset, path, names))


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
