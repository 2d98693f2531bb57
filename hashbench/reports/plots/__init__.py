"""Figures of the results: one file per figure, dataset and kind of features.

    figure_selection  what to draw: the chosen results, one block per dataset
    style             the look that all figures share, and their heading, legends and foot
    result_figures    figures by code length, which lines share a panel; curves of one set of codes
    ranking_figure    figures with a row per method: one code length, and classes that training does not see

A new kind of figure is a function from a `FigureBlock` to a matplotlib Figure, a line in ``FIGURES``, and one in the
help of ``plot``.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, one_line, unknown_name

try:
    from matplotlib.figure import Figure
except ValueError as error:  # invalid settings; figures are drawn into files, whatever the backend
    reason = one_line(error).partition(";")[0]
    raise HashbenchError(f"matplotlib refuses its settings: {reason}. Correct MPLBACKEND or matplotlibrc.") from error

from hashbench.reports.plots import result_figures
from hashbench.reports.plots.figure_selection import DEFAULT_METRIC, FigureBlock, choose_blocks
from hashbench.reports.plots.ranking_figure import choose_fold_blocks, ranking, unseen_beside_seen
from hashbench.reports.plots.style import METADATA, FigureLayout, one_look
from hashbench.reports.row_origins import read_results_with_origins
from hashbench.reports.selection import Selection
from hashbench.store.files import write_bytes

FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure: ``draw`` takes a `FigureBlock`, and raises HashbenchError if there is nothing to draw."""

    draw: Callable[[FigureBlock], Figure]
    n_bits: int | None = None  # the length it shows of those that most lines have, or the nearest to it, unless chosen
    choose: Callable[[pd.DataFrame, Selection, int | None], list[FigureBlock]] = choose_blocks


FIGURES = {
    "ranking": FigureKind(ranking, n_bits=32),
    "tie-ranges": FigureKind(result_figures.tie_ranges),
    "ap-bits": FigureKind(result_figures.metric_against_bits),
    "unseen": FigureKind(unseen_beside_seen, n_bits=32, choose=choose_fold_blocks),
}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of a block, or the reason why there is none."""

    stem: str  # file name without suffix
    figure: Figure | None  # None if there was nothing to draw
    notes: tuple[str, ...] = ()  # what it lacks, and how to add it
    caption: str = ""  # what it shows, if it has no title


def draw_figures(
    results_folder: Path,
    names: Sequence[str] = (),
    selection: Selection | None = None,
    layout: FigureLayout | None = None,
    on_progress: Progress = silent,
) -> Iterator[Drawing]:
    """Draw figures of all results of a folder: those of ``names``, or all ``FIGURES``.

    Yields one drawing per figure and block, in order. Raises HashbenchError if a figure, dataset, method or metric is
    unknown, or if none of the figures of a name can be drawn.
    """
    for name in names:
        if name not in FIGURES:
            raise unknown_name("figure", name, FIGURES)
    selection, layout = selection or Selection(), layout or FigureLayout()
    results = read_results_with_origins(results_folder)
    for name in dict.fromkeys(names or FIGURES):
        failed = []
        kind = FIGURES[name]
        blocks = [
            replace(block, layout=layout, on_progress=on_progress)
            for block in kind.choose(results, selection, kind.n_bits)
        ]
        for block in blocks:
            stem = "-".join([name, *block.stem])
            try:
                if block.cells.empty:
                    raise HashbenchError(
                        f"there is nothing to draw of {block.dataset} ({block.features}): no query has a value of "
                        f"{block.metric}. Choose another metric, or other labels, queries or affinity."
                    )
                with one_look():
                    figure = kind.draw(block)
            except HashbenchError as error:
                failed.append(Drawing(stem, None, (str(error),)))
            else:
                caption = "" if layout.has_title else str(figure.get_label())
                yield Drawing(stem, figure, tuple(block.notes), caption)
        if names and not blocks:
            metrics = " or ".join(selection.metrics or [DEFAULT_METRIC])
            raise selection.nothing_left(results, f"{metrics} with unseen classes (NAME-unseenN-foldK)")
        if names and len(failed) == len(blocks):
            raise HashbenchError(failed[0].notes[0])
        yield from failed


def write_figure(drawing: Drawing, folder: Path, formats: Sequence[str] = FORMATS[:2]) -> list[Path]:
    """Write a figure, each file whole or not at all; the same figure gives the same bytes."""
    paths = []
    for form in formats:
        if drawing.figure is None:
            break
        paths.append(folder / f"{drawing.stem}.{form}")
        write_bytes(paths[-1], figure_bytes(drawing.figure, form))
    return paths


def figure_bytes(figure: Figure, form: str) -> bytes:
    """Return the content of a figure's file, in one of ``FORMATS``; the same figure gives the same bytes."""
    content = io.BytesIO()
    with one_look():
        if engine := figure.get_layout_engine():
            engine.execute(figure)
            figure.set_layout_engine("none")  # else ticks, and with them sizes, would depend on what was written before
        figure.savefig(content, format=form, metadata=METADATA[form])
    return content.getvalue()
