"""What to draw: results of the chosen methods, code lengths and metric, one block per dataset."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.reports.aggregate import (
    BLOCK,
    LINE,
    all_lines,
    average_over_seeds,
    describe_hidden,
    describe_mixed,
    main_lines,
    own_shown,
)
from hashbench.reports.plots.style import FigureLayout, Look, choose_looks
from hashbench.reports.selection import Selection, places
from hashbench.scoring.metrics import get_metric
from hashbench.store import hdf5
from hashbench.store.files import HDF5_SUFFIXES
from hashbench.store.provenance import digest

DEFAULT_METRIC = "AP"
_LONGEST_NAME = 24  # letters before a name is broken


@dataclass(frozen=True)
class FigureSelection(Selection):
    """The results that figures show; datasets may be files, too."""

    metric: str = DEFAULT_METRIC

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the chosen rows in the metric at the chosen code lengths."""
        frame = super().of(frame[frame["metric"] == self.metric])
        return frame[frame["n_bits"].isin(self.n_bits or frame["n_bits"])]

    def read(self) -> tuple[Self, tuple[Path, ...]]:
        """Return the selection with the canonical name of the metric and names of datasets for files, and the files."""
        files = tuple(Path(spec) for spec in self.datasets if spec.endswith(HDF5_SUFFIXES))
        datasets = [hdf5.read_dataset(path) for path in files]
        names = [spec for spec in self.datasets if Path(spec) not in files]
        names += [f"{dataset.name}:{dataset.features_name}" for dataset in datasets]
        return replace(self, datasets=names, metric=get_metric(self.metric).name), files


@dataclass(frozen=True, eq=False)
class FigureBlock:
    """The content of one figure: results of one metric on one dataset."""

    dataset: str
    features: str
    dataset_fingerprint: str
    metric: str
    cells: pd.DataFrame  # of `average_over_seeds`, in its order
    rows: pd.DataFrame  # the results behind the cells, one row per seed, and the ``label`` of each
    looks: Mapping[str, Look]  # by label
    names: Mapping[str, str]  # names as shown, by label
    remarks: list[str]  # sentences on the settings that names omit
    stem: tuple[str, ...]  # unique part of its file names
    dataset_files: tuple[Path, ...] = ()  # those that the user named
    layout: FigureLayout = field(default_factory=FigureLayout)
    on_progress: Progress = silent
    notes: list[str] = field(default_factory=list)  # what the figure lacks; drawing appends to it

    @property
    def labels(self) -> list[str]:
        """The lines, in order."""
        return list(self.cells["label"].unique())

    @property
    def n_bits(self) -> list[int]:
        """The code lengths, in order."""
        return sorted(self.cells["n_bits"].unique().tolist())

    @property
    def rows_of_cells(self) -> list[pd.DataFrame]:
        """The results behind each cell, one row per seed."""
        rows = dict(tuple(self.rows.groupby(["label", "n_bits"])))
        return [rows[key] for key in zip(self.cells["label"], self.cells["n_bits"], strict=True)]

    def only(self, labels: Iterable[str]) -> Self:
        """Return the block with only the lines of these labels, and with names and remarks for them."""
        cells = self.cells[self.cells["label"].isin([*labels])].reset_index(drop=True)
        names, remarks = short_names(cells)
        return replace(self, cells=cells, names=names, remarks=remarks)


def choose_blocks(
    results: pd.DataFrame, selection: FigureSelection, usual_bits: int | None = None
) -> list[FigureBlock]:
    """Return the chosen results as blocks; raises HashbenchError if there are none.

    Without a choice of code lengths, a block has the length nearest to ``usual_bits``, or all if that is None. Labels,
    looks and the order of lines do not depend on the choice. Datasets with unseen classes are left out unless named.
    """
    selection, files = selection.read()
    selection.check(results)
    lines = all_lines(results)
    everything = average_over_seeds(results, lines)
    cells, chosen = selection.of(everything), selection.of(results)
    looks = choose_looks(lines)
    cells = cells if selection.variants else main_lines(cells, everything)
    if cells.empty:
        raise selection.nothing_left(results, selection.metric)
    n_contents = results.groupby(["dataset", "features"])["dataset_fingerprint"].nunique()
    stems = stems_of(places(results).unique())
    blocks = []
    for keys, part in cells.groupby(list(BLOCK), sort=True):
        dataset, features, fingerprint = map(str, keys)
        stem = [stems[dataset, features], *([fingerprint] if n_contents[dataset, features] > 1 else [])]
        block = make_block(selection, usual_bits, (dataset, features, fingerprint), part, looks, stem)
        if (selection.methods or selection.datasets) and (selection.n_bits or usual_bits is None):
            block.notes.extend(filter(None, [describe_hidden(block.cells)]))
        rows = chosen.merge(block.cells[[*BLOCK, *LINE, "n_bits", "label"]])
        blocks.append(replace(block, rows=rows, dataset_files=files))
    return blocks


def make_block(
    selection: FigureSelection,
    usual_bits: int | None,
    place: tuple[str, str, str],
    cells: pd.DataFrame,
    looks: Mapping[str, Look],
    stem: Sequence[str],
) -> FigureBlock:
    """Return the drawable cells of a dataset, features and fingerprint as a block without the rows behind them."""
    cells, notes = _drawable(cells)
    if not selection.n_bits:
        cells = nearest_length(cells, usual_bits)
    names, remarks = short_names(cells)
    notes += filter(None, [describe_mixed(cells)])
    return FigureBlock(
        *place,
        metric=selection.metric,
        cells=cells.reset_index(drop=True),
        rows=cells[:0],
        looks=looks,
        names=names,
        remarks=remarks,
        stem=(*stem, *[selection.metric.replace(":", "-")] * (selection.metric != DEFAULT_METRIC)),
        notes=notes,
    )


def nearest_length(cells: pd.DataFrame, n_bits: int | None) -> pd.DataFrame:
    """Return the cells of the code length nearest to one; all if that is None."""
    if n_bits is None or cells.empty:
        return cells
    nearest = min(cells["n_bits"], key=lambda length: (abs(length - n_bits), length))
    at_nearest: pd.DataFrame = cells[cells["n_bits"] == nearest]
    return at_nearest


def short_names(cells: pd.DataFrame) -> tuple[dict[str, str], list[str]]:
    """Return the names of lines in figures, by label, and sentences on the settings that names omit.

    The only line of a method has the method's name, or the label that users gave their own codes.
    """
    columns = zip(cells["label"], cells["method"], cells["params"], strict=True)
    method = {label: label if "label" in own_shown(params) else name for label, name, params in columns}
    n_lines = Counter(method.values())
    names, omitted = {}, dict[str, list[str]]()  # the settings that a method's name omits
    for label, name in sorted(method.items()):
        names[label] = textwrap.fill(name if n_lines[name] == 1 else label, _LONGEST_NAME)
        if n_lines[name] == 1 and label != name:
            omitted[name] = label.removeprefix(name).split()
    has_all = len(omitted) == len(names) > 1
    shared = set[str]().union(*omitted.values()).intersection(*omitted.values()) if has_all else set[str]()
    methods = dict[str, list[str]]()
    for name, settings in omitted.items():
        methods.setdefault(" ".join(setting for setting in settings if setting not in shared), []).append(name)
    sentences = [f"All: {' '.join(sorted(shared))}."] if shared else []
    return names, sentences + [f"{', '.join(of_these)}: {own}." for own, of_these in methods.items() if own]


def _drawable(cells: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the cells that have a value, and a note on the others."""
    has_value = np.isfinite(cells["value"])
    n_missing = int((~has_value).sum())
    notes = [f"{n_missing} of {len(cells)} points have no value and are left out."] if n_missing else []
    return cells[has_value], notes


def stems_of(all_places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a unique stem for the file names of each dataset and kind of features."""
    plain = {place: "-".join([place[0], re.sub(r"[^A-Za-z0-9._-]+", "-", place[1]).strip("-")]) for place in all_places}
    counts = Counter(plain.values())
    return {place: f"{stem}-{digest(place)[:8]}" if counts[stem] > 1 else stem for place, stem in plain.items()}
