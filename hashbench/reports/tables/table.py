"""From rows of results to tables: means over seeds, the best of each column, and files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.registry import method_names
from hashbench.reports.aggregate import BLOCK, CELL, LINE
from hashbench.reports.tables.blocks import make_blocks, make_uncertainty_blocks
from hashbench.reports.tables.cells import grouped, is_shown, make_cells, records, records_by
from hashbench.reports.tables.formats import Block, latex, markdown
from hashbench.reports.tables.layout import LAYOUTS, Layout
from hashbench.reports.tables.published import Published, published_values
from hashbench.reports.tables.uncertainty import add_confidence
from hashbench.store.files import write_text
from hashbench.store.results import csv_text, read_results


@dataclass(frozen=True, eq=False)
class Table:
    """One table, ready to be written.

    Parameters
    ----------
    name : str
        One of ``LAYOUTS``.
    cells : DataFrame
        One row a cell: block, metric, line, ``n_bits``; means over seeds of ``value``, ``low`` and ``high``,
        ``spread`` (their standard deviation, NaN for one seed) and ``n_seeds``; whether it ``is_best`` of its column,
        and whether its tie range ``overlaps`` that of the best. With `confident`, intervals and p-values too.
    n_bits : tuple of int
        The columns, if these are not the papers'.
    """

    name: str
    cells: pd.DataFrame
    n_bits: tuple[int, ...] = ()

    @property
    def layout(self) -> Layout:
        """What it shows."""
        return LAYOUTS[self.name]

    @property
    def published(self) -> list[Published]:
        """The paper's numbers for it."""
        return [
            one
            for one in published_values()
            if one.layout == self.name and (not self.n_bits or one.n_bits in self.n_bits)
        ]

    def confident(self, results: pd.DataFrame, on_progress: Progress = silent) -> "Table":
        """Add what the scores of every query tell, as far as the data folder holds them.

        Parameters
        ----------
        results : DataFrame
            What the table was made of.
        on_progress : Progress, optional
            Called with what is being done, parts done and all parts.

        Returns
        -------
        Table
            With bootstrap intervals and paired tests against the best.
        """
        rows = dict(grouped(results, CELL))
        behind = [rows[tuple(keys)] for keys in self.cells[list(CELL)].itertuples(index=False)]
        return Table(self.name, add_confidence(self.cells, behind, on_progress), self.n_bits)

    def to_markdown(self) -> str:
        """Write the table for people.

        Returns
        -------
        str
            A heading, then a Markdown table a block; with `confident`, a second one of its uncertainty.
        """
        return markdown(self.layout.title, self._blocks)

    def to_latex(self) -> str:
        """Write the table for a paper.

        Returns
        -------
        str
            A ``table`` environment a block, for the package booktabs; the same blocks as in Markdown.
        """
        return latex(self.name, self.layout.title, self._blocks)

    @cached_property
    def _blocks(self) -> list[Block]:
        blocks = make_blocks(self.cells, self.layout, self.published)
        return blocks + (make_uncertainty_blocks(self.cells) if "p_value" in self.cells else [])

    def to_csv(self) -> str:
        """Write the table as CSV.

        Returns
        -------
        str
            One line a block and method; a column a code length, and one for its spread over seeds.
        """
        columns = sorted(set(self.cells["n_bits"]))
        header = [
            *("dataset", "features", "metric", "group", "method", "params"),
            *map(str, columns),
            *(f"spread_{n}" for n in columns),
            *("dataset_fingerprint", "method_version"),
        ]
        rows: list[list[object]] = []
        for keys, line in records_by(self.cells, [*BLOCK, "metric", "group", *LINE]).items():
            dataset, features, fingerprint, metric, group, method, params, method_version = keys
            values = {cell.n_bits: _six(cell.value) for cell in line}
            spreads = {cell.n_bits: _six(cell.spread) for cell in line}
            rows.append(
                [
                    *(dataset, features, metric, group, method, params),
                    *(values.get(n, "") for n in columns),
                    *(spreads.get(n, "") for n in columns),
                    *(fingerprint, method_version),
                ]
            )
        return csv_text(header, rows)

    def to_tie_range_csv(self) -> str:
        """Write how far seeds and tie-breaking could move each cell.

        Returns
        -------
        str
            CSV, one line a cell with value, spread over seeds, low and high; with `confident`, also the interval over
            queries and the p-value of the test against the best.
        """
        more = {"confidence_low": "from_", "confidence_high": "to", "p_holm": "p_value"}
        more = {} if "p_value" not in self.cells else more
        header = [
            *("dataset", "features", "metric", "method", "params", "n_bits", "n_seeds"),
            *("value", "spread", "low", "high", *more, "dataset_fingerprint", "method_version"),
        ]
        rows: list[list[object]] = [
            [
                *(cell.dataset, cell.features, cell.metric, cell.method, cell.params, cell.n_bits, cell.n_seeds),
                *(_six(getattr(cell, name)) for name in ("value", "spread", "low", "high", *more.values())),
                *(cell.dataset_fingerprint, cell.method_version),
            ]
            for cell in records(self.cells)
        ]
        return csv_text(header, rows)

    def to_published_csv(self) -> str:
        """Write the paper's values beside ours.

        Returns
        -------
        str
            CSV, a line for each of the paper's values and each of our cells that stands for it; without any of ours,
            one line.
        """
        header = [
            *("source", "table", "dataset", "setting", "backbone", "metric", "method", "n_bits", "published"),
            *("our_dataset", "our_features", "our_metric", "our_method", "our_params"),
            *("ours", "spread", "difference", "differs", "dataset_fingerprint", "method_version"),
        ]
        rows: list[list[object]] = []
        cells = records_by(self.cells, ["dataset", "metric", "n_bits"])
        for one in self.published:
            chosen = cells.get((one.our_dataset, one.our_metric, one.n_bits), [])
            theirs = [*one[:9]]
            found = [cell for cell in chosen if one.is_of(cell.method, json.loads(cell.params))]
            rows += [
                [
                    *(*theirs, cell.dataset, cell.features, cell.metric, cell.method, cell.params),
                    *(_six(cell.value), _six(cell.spread), _six(cell.value - float(one.value))),
                    "; ".join(one.differs(cell.features, cell.params)),
                    *(cell.dataset_fingerprint, cell.method_version),
                ]
                for cell in found
            ]
            if not found:
                rows.append([*theirs, one.our_dataset, "", one.our_metric, one.our_method, *[""] * 7])
        return csv_text(header, rows)


def make_table(results: pd.DataFrame, name: str, n_bits: Sequence[int] = ()) -> Table:
    """Lay out a table.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.store.results.read_results` gives.
    name : str
        One of ``LAYOUTS``.
    n_bits : sequence of int, optional
        Columns other than the papers'.

    Returns
    -------
    Table
        Blocks never mix datasets, features, fingerprints or metrics; lines never mix parameters or versions.

    Raises
    ------
    HashbenchError
        If there is no such table, or no results for it.
    """
    if name not in LAYOUTS:
        raise unknown_name("table", name, LAYOUTS)
    cells = make_cells(results, name, n_bits)
    if cells.empty:
        layout = LAYOUTS[name]
        methods = sorted({one.our_method for one in published_values() if one.layout == name and not layout.is_open})
        usable = [method for method in methods or ["itq"] if method in method_names()]
        lengths = list(n_bits) or list(layout.n_bits)
        raise HashbenchError(
            f"there are no results for {name}: {layout.metric}{' of ' * bool(methods)}{' or '.join(methods)} at "
            f"{', '.join(map(str, lengths))} bits. "
            + (
                f"Make some: hashbench run --method {usable[0]} --bits {lengths[0]} --metric {layout.metric}."
                if usable
                else "There is no such method here; see: hashbench list methods."
            )
        )
    return Table(name, cells, tuple(n_bits))


def make_tables(results_folder: Path, names: Sequence[str], n_bits: Sequence[int] = ()) -> dict[str, Table]:
    """Lay out all results of a folder.

    Parameters
    ----------
    results_folder : Path
        Holds ``<dataset>.csv`` files.
    names : sequence of str
        Which tables; if empty, all that there are results for.
    n_bits : sequence of int, optional
        Columns other than the papers'.

    Returns
    -------
    dict of str to Table
        The tables by name.
    """
    results = read_results(results_folder)
    if not names:  # those there are results for; one, to complain of, if there are none
        names = [name for name in LAYOUTS if is_shown(results, name, n_bits).any()] or ["table1"]
    return {name: make_table(results, name, n_bits) for name in names}


def write_tables(folder: Path, tables: Mapping[str, Table]) -> None:
    """Write tables as Markdown, CSV and LaTeX, with their tie ranges and the published values.

    Parameters
    ----------
    folder : Path
        Made if need be.
    tables : mapping of str to Table
        By name.
    """
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv())
        write_text(folder / f"{name}.md", table.to_markdown())
        write_text(folder / f"{name}.tex", table.to_latex())
        write_text(folder / f"{name}-tie-range.csv", table.to_tie_range_csv())
        write_text(folder / f"{name}-published.csv", table.to_published_csv())


def _six(value: float) -> str:
    return "" if value != value else f"{value:.6f}"
