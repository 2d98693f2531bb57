"""What to draw: results of the chosen methods, code lengths and metric, one block per dataset."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.reports.aggregate import BLOCK, all_lines, own_shown
from hashbench.reports.marks import describe_hidden, notes_on_code
from hashbench.reports.plots.style import FigureLayout, Look, choose_looks
from hashbench.reports.selection import Selection, places
from hashbench.reports.view import View, grouped, make_view
from hashbench.store.provenance import digest

DEFAULT_METRIC = "AP"
_LONGEST_NAME = 24  # letters before a name is broken


@dataclass(frozen=True, eq=False)
class FigureBlock(View):
    """The content of one figure: the view of one metric on one dataset."""

    dataset: str
    features: str
    dataset_fingerprint: str
    metric: str
    looks: Mapping[str, Look]  # by label
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

    @cached_property
    def names(self) -> dict[str, str]:
        """The names of lines as shown, by label."""
        return short_names(self.cells)[0]

    @property
    def remarks(self) -> list[str]:
        """Sentences on the settings that names omit."""
        return short_names(self.cells)[1]

    def only(self, labels: Iterable[str]) -> Self:
        """Return the block with only the lines of these labels."""
        return self.of(self.cells[self.cells["label"].isin([*labels])])


def choose_blocks(results: pd.DataFrame, selection: Selection, usual_bits: int | None = None) -> list[FigureBlock]:
    """Return the chosen results in AP, or the chosen metrics, as blocks; raises HashbenchError if there are none.

    Without a choice of code lengths, a block has the length of most lines, of several the nearest to ``usual_bits``, or
    all lengths if that is None. Labels, looks and the order of lines do not depend on the choice. Datasets with unseen
    classes are left out unless named.
    """
    files = selection.files
    selection = replace(selection, metrics=selection.metrics or [DEFAULT_METRIC]).read()
    selection.check(results)
    lines = all_lines(results)
    view = make_view(results, selection, lines=lines, by_score=True)
    if view.cells.empty:
        raise selection.nothing_left(results, " or ".join(selection.metrics))
    looks = choose_looks(lines.drop_duplicates("label"))
    n_contents = results.groupby(["dataset", "features"])["dataset_fingerprint"].nunique()
    stems = stems_of(places(results).unique())
    blocks = []
    for keys, part in grouped(view.cells, [*BLOCK, "metric"]):
        dataset, features, fingerprint, metric = map(str, keys)
        stem = [stems[dataset, features], *([fingerprint] if n_contents[dataset, features] > 1 else [])]
        block = make_block(selection, usual_bits, (dataset, features, fingerprint, metric), view.of(part), looks, stem)
        if (selection.methods or selection.datasets) and (selection.n_bits or usual_bits is None):
            block.notes.extend(filter(None, [describe_hidden(block.cells)]))
        blocks.append(replace(block, dataset_files=files))
    return blocks


def make_block(
    selection: Selection,
    usual_bits: int | None,
    place: tuple[str, str, str, str],
    view: View,
    looks: Mapping[str, Look],
    stem: Sequence[str],
) -> FigureBlock:
    """Return the drawable cells of a dataset, features, fingerprint and metric as a block."""
    cells = view.cells[np.isfinite(view.cells["value"])]
    n_missing = len(view.cells) - len(cells)
    notes = [f"{n_missing} of {len(view.cells)} points have no value and are left out."] if n_missing else []
    if not selection.n_bits:
        cells = at_usual_length(cells, usual_bits)
    stem = (*stem, *[place[-1].replace(":", "-")] * (place[-1] != DEFAULT_METRIC))
    notes += notes_on_code(cells)
    return FigureBlock(cells.reset_index(drop=True), view.results, *place, looks, stem, notes=notes)


def at_usual_length(cells: pd.DataFrame, usual_bits: int | None) -> pd.DataFrame:
    """Return the cells of the code length of most lines, of several the nearest to one; all if that is None."""
    if usual_bits is None or cells.empty:
        return cells
    n_lines = cells["n_bits"].value_counts()
    chosen = max(n_lines.index, key=lambda length: (n_lines[length], -abs(length - usual_bits), -length))
    of_chosen: pd.DataFrame = cells[cells["n_bits"] == chosen]
    return of_chosen


def short_names(cells: pd.DataFrame) -> tuple[dict[str, str], list[str]]:
    """Return the names of lines in figures, by label, and sentences on the settings that names omit.

    The only line of a method has the method's name, or the label that users gave their own codes.
    """
    columns = zip(cells["label"], cells["method"], cells["params"], strict=True)
    method = {label: label if "label" in own_shown(params) else name for label, name, params in columns}
    n_lines = Counter(method.values())
    names, omitted = {}, dict[str, list[str]]()  # the settings that a method's name omits
    for label, name in sorted(method.items()):
        names[label] = textwrap.fill(name if n_lines[name] == 1 else label, _LONGEST_NAME, break_on_hyphens=False)
        if n_lines[name] == 1 and label != name:
            omitted[name] = label.removeprefix(name).split()
    has_all = len(omitted) == len(names) > 1
    shared = set[str]().union(*omitted.values()).intersection(*omitted.values()) if has_all else set[str]()
    methods = dict[str, list[str]]()
    for name, settings in omitted.items():
        methods.setdefault(" ".join(setting for setting in settings if setting not in shared), []).append(name)
    sentences = [f"All: {' '.join(sorted(shared))}."] if shared else []
    return names, sentences + [f"{', '.join(of_these)}: {own}." for own, of_these in methods.items() if own]


def stems_of(all_places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a unique stem for the file names of each dataset and kind of features."""
    plain = {place: "-".join([place[0], re.sub(r"[^A-Za-z0-9._-]+", "-", place[1]).strip("-")]) for place in all_places}
    counts = Counter(plain.values())
    return {place: f"{stem}-{digest(place)[:8]}" if counts[stem] > 1 else stem for place, stem in plain.items()}
