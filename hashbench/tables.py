"""Tables laid out like the papers': rows are methods, columns code lengths, a block a dataset and metric."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError, unknown_name
from hashbench.files import write_text
from hashbench.jobs import all_params, make_method
from hashbench.method import GROUPS
from hashbench.registry import get_method, method_names
from hashbench.results import csv_text, read_results


@dataclass(frozen=True)
class Layout:
    """What a table shows.

    Parameters
    ----------
    title : str
        Its heading.
    metric : str
        Canonical metric name.
    n_bits : tuple of int
        The columns.
    """

    title: str
    metric: str
    n_bits: tuple[int, ...]


LAYOUTS = {
    "table1": Layout("Table 1. Average precision of the whole ranking", "AP", (12, 16, 24, 32, 48)),
    "table2": Layout("Table 2. Average precision of the first 1,000", "AP@1000", (16, 32, 48, 64)),
    "table3": Layout("Table 3. Normalised discounted cumulative gain", "NDCG", (16, 32, 48, 64)),
}
_BLOCK = ["dataset", "features", "dataset_fingerprint"]
_LINE = ["group", "method", "params", "method_version"]


@dataclass(frozen=True, eq=False)
class Table:
    """One table, ready to be written.

    Parameters
    ----------
    layout : Layout
        What it shows.
    cells : DataFrame
        One row a cell: block, line, ``n_bits``, means over seeds of ``value``, ``low`` and ``high``,
        and ``n_seeds``.
    """

    layout: Layout
    cells: pd.DataFrame

    def to_markdown(self) -> str:
        """Write the table for people.

        Returns
        -------
        str
            A heading, then a Markdown table a block.
        """
        columns = self._columns()
        lines = [f"# {self.layout.title}", ""]
        for keys, block in self.cells.groupby(_BLOCK, sort=True):
            dataset, features, fingerprint = keys
            undefined, n_queries = block["n_undefined"].iloc[0], block["n_queries"].iloc[0]
            lines += [f"## {dataset} ({features}): {self.layout.metric}", ""]
            grid = [["method", *(f"{length} bits" for length in columns)]]
            for line_keys, line in block.groupby(_LINE, sort=False):
                values = dict(zip(line["n_bits"], line["value"], strict=True))
                label = self._label(line_keys, block)
                grid.append([label, *(f"{values[n]:.4f}" if n in values else "-" for n in columns)])
            lines += _aligned(grid)
            queries = f"{n_queries - undefined} of {n_queries} queries" if undefined else f"{n_queries} queries"
            seeds = sorted(set(block["n_seeds"]))
            note = f"Means over {queries} and over {' or '.join(map(str, seeds))} seeds; data {fingerprint}."
            if any("-" in row[1:] for row in grid):
                note += " A dash: not run, or refused by the method."
            lines += ["", note, ""]
        return "\n".join(lines)

    def to_csv(self) -> str:
        """Write the table as CSV.

        Returns
        -------
        str
            One line a block and method, one column a code length.
        """
        columns = self._columns()
        header = [
            *("dataset", "features", "metric", "group", "method", "params"),
            *map(str, columns),
            *("dataset_fingerprint", "method_version"),
        ]
        rows: list[list[object]] = []
        for keys, line in self.cells.groupby(_BLOCK + _LINE, sort=False):
            values = dict(zip(line["n_bits"], line["value"], strict=True))
            rows.append(
                [
                    *(keys[0], keys[1], self.layout.metric, *keys[3:6]),
                    *(f"{values[n]:.6f}" if n in values else "" for n in columns),
                    *(keys[2], keys[6]),
                ]
            )
        return csv_text(header, rows)

    def to_tie_range_csv(self) -> str:
        """Write how far tie-breaking could move each cell.

        Returns
        -------
        str
            CSV, one line a cell with value, low and high.
        """
        header = [
            *("dataset", "features", "metric", "method", "params", "n_bits", "n_seeds", "value", "low", "high"),
            *("dataset_fingerprint", "method_version"),
        ]
        rows: list[list[object]] = [
            [
                *(cell.dataset, cell.features, self.layout.metric, cell.method, cell.params),
                *(cell.n_bits, cell.n_seeds, f"{cell.value:.6f}", f"{cell.low:.6f}", f"{cell.high:.6f}"),
                *(cell.dataset_fingerprint, cell.method_version),
            ]
            for cell in self.cells.itertuples()
        ]
        return csv_text(header, rows)

    def _columns(self) -> list[int]:
        return sorted(set(self.cells["n_bits"]))

    @staticmethod
    def _label(keys: tuple[object, ...], block: pd.DataFrame) -> str:
        _, method, params, method_version = keys
        same_method = block[block["method"] == method]
        label = str(method)
        if params != _default_params(label):
            label += " " + " ".join(f"{key}={value}" for key, value in json.loads(str(params)).items())
        if len(set(same_method["method_version"])) > 1:
            label += f" (version {method_version})"
        return label


def make_table(results: pd.DataFrame, name: str, n_bits: Sequence[int] = ()) -> Table:
    """Lay out a table.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.results.read_results` gives.
    name : str
        One of ``LAYOUTS``.
    n_bits : sequence of int, optional
        Columns other than the layout's.

    Returns
    -------
    Table
        Blocks never mix datasets, features or fingerprints; lines never mix parameters or versions.

    Raises
    ------
    HashbenchError
        If there is no such table, or no results for it.
    """
    if name not in LAYOUTS:
        raise unknown_name("table", name, LAYOUTS)
    layout = LAYOUTS[name]
    wanted = list(n_bits) or list(layout.n_bits)
    chosen = results[(results["metric"] == layout.metric) & results["n_bits"].isin(wanted)]
    if chosen.empty:
        raise HashbenchError(
            f"there are no results for {name}: {layout.metric} at {', '.join(map(str, wanted))} bits. "
            f"Make some: hashbench run --method itq --bits {wanted[0]} --metric {layout.metric}."
        )
    cells = (
        chosen.groupby([*_BLOCK, "method", "params", "method_version", "n_bits"], sort=True)
        .agg(
            value=("value", "mean"),
            low=("low", "mean"),
            high=("high", "mean"),
            n_seeds=("seed", "nunique"),
            n_queries=("n_queries", "first"),
            n_undefined=("n_undefined", "first"),
        )
        .reset_index()
    )
    group = {method: _group(method) for method in cells["method"].unique()}
    cells.insert(0, "group", cells["method"].map(group))
    rank = {name: position for position, name in enumerate((*GROUPS, ""))}
    cells = cells.sort_values(
        [*_BLOCK, "group", "method", "params", "method_version", "n_bits"],
        key=lambda column: column.map(rank) if column.name == "group" else column,
        ignore_index=True,
    )
    return Table(layout, cells)


def make_tables(results_folder: Path, names: Sequence[str], n_bits: Sequence[int] = ()) -> dict[str, Table]:
    """Lay out all results of a folder.

    Parameters
    ----------
    results_folder : Path
        Holds ``<dataset>.csv`` files.
    names : sequence of str
        Which tables; if empty, all that there are results for.
    n_bits : sequence of int, optional
        Columns other than the layouts'.

    Returns
    -------
    dict of str to Table
        The tables by name.
    """
    results = read_results(results_folder)
    if not names:  # those there are results for; all, to complain of, if there are none
        scored = set(results["metric"])
        names = [name for name, layout in LAYOUTS.items() if layout.metric in scored] or list(LAYOUTS)
    return {name: make_table(results, name, n_bits) for name in names}


def write_tables(folder: Path, tables: Mapping[str, Table]) -> None:
    """Write tables as Markdown, as CSV and with their tie ranges.

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
        write_text(folder / f"{name}-tie-range.csv", table.to_tie_range_csv())


def _group(method: str) -> str:
    return get_method(method).group if method in method_names() else ""


def _default_params(method: str) -> str:
    """Give the parameters that need no mention; none of a method that is no longer installed."""
    if method not in method_names():
        return "{}"
    return canonical_json(all_params(make_method(method, 1, 0, {})))


def _aligned(grid: list[list[str]]) -> list[str]:
    """Lay out a Markdown table that reads well as plain text too: names left, numbers right."""
    widths = [max(len(row[column]) for row in grid) for column in range(len(grid[0]))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [
        "| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |"
        for row in [grid[0], rule, *grid[1:]]
    ]
