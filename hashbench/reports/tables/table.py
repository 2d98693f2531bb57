"""From rows of results to tables: means over seeds, the best of each column, and files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path

import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.registry import method_names
from hashbench.reports.aggregate import CELL, line_labels
from hashbench.reports.folds import bases
from hashbench.reports.formatting import sheet_text
from hashbench.reports.row_origins import read_origins, with_origins
from hashbench.reports.tables.blocks import compared, make_blocks, make_uncertainty_blocks
from hashbench.reports.tables.cells import grouped, make_cells, records, records_by
from hashbench.reports.tables.latex import latex
from hashbench.reports.tables.layout import LAYOUTS, TableLayout
from hashbench.reports.tables.markdown import Style, TableBlock, markdown
from hashbench.reports.tables.nearness import count_verdicts
from hashbench.reports.tables.over_folds import make_fold_blocks
from hashbench.reports.tables.published import Published, published_values
from hashbench.reports.tables.selection import TableSelection
from hashbench.reports.tables.uncertainty import add_confidence
from hashbench.store.files import write_text
from hashbench.store.result_files import find_files
from hashbench.store.results import read_results

_CONTENT = ("dataset_fingerprint", "method_version")  # last columns of files


@dataclass(frozen=True, eq=False)
class ResultTable:
    """A table of results, ready to be written; in a notebook it shows itself.

    ``cells`` has one row per cell: block, metric, line, ``n_bits``; means over seeds of ``value``, ``low`` and
    ``high``, ``spread`` (their standard deviation, NaN for one seed) and ``n_seeds``; whether it ``is_best`` of its
    column, and what ``ties`` leave open between it and the best. With `confident`, it has intervals and p values too.
    """

    name: str  # of its files
    layout: TableLayout
    cells: pd.DataFrame
    published: Sequence[Published] = ()  # values of its own paper, and of others for what it shows

    def confident(self, results: pd.DataFrame, against: str = "", on_progress: Progress = silent) -> "ResultTable":
        """Return the table with 95 % intervals and tests, over queries and seeds, or over what is known of these.

        ``results`` are the rows it was made of. ``against`` is the method, or the label of a line, to test the others
        against, chosen before the results were seen: its p values are corrected by Holm. By default it is the best of
        each column, corrected for all pairs. A table over folds, which have different queries, is returned as it is.
        """
        if self.layout.is_over_folds:
            return self
        rows = dict(grouped(results, CELL))
        cell_rows = [rows[tuple(keys)] for keys in self.cells[list(CELL)].itertuples(index=False)]
        return replace(self, cells=add_confidence(self.cells, cell_rows, against, on_progress))

    @property
    def lines(self) -> set[str]:
        """The names that `confident` can test against: methods and labels of lines."""
        return {*self.cells["method"], *line_labels(self.cells).values()}

    def to_markdown(self, digits: int = 4, *, has_spread: bool = True) -> str:
        """Write a Markdown table per block; with `confident`, also one of its uncertainty.

        ``digits`` are decimal places; with ``has_spread`` the spread over seeds stands beside each value.
        """
        return markdown(self._title, self._blocks(Style(digits, has_spread)), self._foot)

    def __repr__(self) -> str:
        return f"<ResultTable {self.name} of {len(self.cells)} cells>"

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def to_latex(self, digits: int = 3, *, has_spread: bool = True) -> str:
        """Write the blocks of `to_markdown` as ``table`` or, where wider, ``table*`` environments for booktabs."""
        return latex(self.name, self._title, self._blocks(Style(digits, has_spread)), self._foot)

    @property
    def _title(self) -> str:
        return f"{self.layout.heading}. {self.layout.title}"

    @cached_property
    def _foot(self) -> str:
        if not self.published:
            return ""
        values = compared(self.cells, self.layout, self.published)
        pairs = [pair for _, value_pairs in values for pair in value_pairs]
        return count_verdicts(len({value.place for value, _ in values}), pairs, of=" of this table")

    @cached_property
    def _blocks(self) -> Callable[[Style], list[TableBlock]]:
        return cache(self._lay_out)  # once for those who print a table and write it

    def _lay_out(self, style: Style) -> list[TableBlock]:
        if self.layout.is_over_folds:
            return make_fold_blocks(self.cells, style)
        blocks = make_blocks(self.cells, self.layout, self.published, style)
        return blocks + (make_uncertainty_blocks(self.cells, style) if "p_value" in self.cells else [])

    def to_csv(self) -> str:
        """Write CSV with one line per block and method, and per code length a column and one for its spread."""
        lengths = sorted(set(self.cells["n_bits"]))
        key = ["dataset", "features", "metric", "group", "method", "params"]
        header = [*key, *lengths, *(f"spread_{n}" for n in lengths), *_CONTENT]
        rows = []
        for line in records_by(self.cells, [*key, *_CONTENT]).values():
            by_length = {cell.n_bits: cell for cell in line}
            values = [_six(by_length[n].value) if n in by_length else "" for n in lengths]
            spreads = [_six(by_length[n].spread) if n in by_length else "" for n in lengths]
            rows.append([*attrgetter(*key)(line[0]), *values, *spreads, *attrgetter(*_CONTENT)(line[0])])
        return sheet_text(header, rows)

    def to_tie_range_csv(self) -> str:
        """Write CSV with one line per cell and how far seeds and ties could move it.

        With `confident`, it has the 95 % interval and the p value of the test, corrected in its column, too.
        Over folds, the spread is over these, and they are named.
        """
        key = ["dataset", "features", "metric", "method", "params", "n_bits", "n_seeds"]
        key += ["folds"] if self.layout.is_over_folds else []
        numbers = {name: name for name in ("value", "spread", "tie_sd", "low", "high")}
        if "p_value" in self.cells:
            numbers |= {"confidence_low": "from_", "confidence_high": "to", "p_adjusted": "p_value"}
        rows = [
            [
                *attrgetter(*key)(cell),
                *(_six(getattr(cell, name)) for name in numbers.values()),
                *attrgetter(*_CONTENT)(cell),
            ]
            for cell in records(self.cells)
        ]
        return sheet_text([*key, *numbers, *_CONTENT], rows)

    def to_published_csv(self) -> str:
        """Write CSV with one line per published value and cell of ours that stands for it.

        Values of the table's own paper come first, with one line where there is no cell; then, block by block, values
        of other papers.
        """
        key = ["dataset", "features", "metric", "method", "params"]
        header = [*Published._fields[:8], "published", *(f"our_{name}" for name in key)]
        header += ["ours", "spread", "difference", "verdict", "differs", *_CONTENT]
        rows: list[list[object]] = []
        for value, pairs in compared(self.cells, self.layout, self.published):
            for pair in pairs:
                cell = pair.cell
                numbers = [_six(cell.value), _six(cell.spread), _six(cell.value - float(value.value))]
                comparison = [*numbers, pair.in_words, "; ".join(text for _, text in pair.differs)]
                rows.append([*value[:9], *attrgetter(*key)(cell), *comparison, *attrgetter(*_CONTENT)(cell)])
            if not pairs:
                ours = [value.our_dataset, "", value.our_metric, value.our_method, ""]
                rows.append([*value[:9], *ours, "", "", "", "not run", "", "", ""])
        return sheet_text(header, rows)


def make_table(results: pd.DataFrame, name: str, selection: TableSelection | None = None) -> ResultTable:
    """Lay out one of ``LAYOUTS``, from what `hashbench.read_results` returns.

    Blocks never mix datasets, features, fingerprints or metrics; lines never mix parameters or versions. Raises
    HashbenchError if there is no such table, or no results for it.
    """
    if name not in LAYOUTS:
        raise unknown_name("table", name, LAYOUTS)
    selection = selection or TableSelection()
    table = _table(results, name, selection)
    if table.cells.empty:
        raise _no_results(results, table, selection)
    return table


def make_selection(results: pd.DataFrame, selection: TableSelection) -> ResultTable:
    """Lay out chosen rows without the papers' values, at all their code lengths unless some are chosen.

    Raises HashbenchError if there are no such rows.
    """
    selection.check(results)
    cells = make_cells(selection.of(results), selection.layout, (), selection)
    if cells.empty:
        raise selection.nothing_left(results, " or ".join(selection.layout.metrics))
    return ResultTable(selection.name, selection.layout, cells)


def make_tables(
    results_folder: Path, names: Sequence[str] = (), selection: TableSelection | None = None
) -> dict[str, ResultTable]:
    """Lay out the results of a folder: the tables named, else that of the chosen rows, else all that have results."""
    results, selection = read_results(results_folder), selection or TableSelection()
    results = with_origins(results, read_origins(find_files(results_folder)))
    if selection.name != TableSelection.name and (names or not selection.is_of_rows):
        raise HashbenchError(
            f"{selection.name!r} can only name a table of chosen rows. Choose them by dataset, method, metric or "
            "features, and leave out the names of other tables."
        )
    if names:
        return {name: make_table(results, name, selection) for name in names}
    if selection.is_of_rows:
        return {selection.name: make_selection(results, selection)}
    tables = {name: _table(results, name, selection) for name in LAYOUTS}
    filled = {name: table for name, table in tables.items() if not table.cells.empty}
    return filled or {"table1": make_table(results, "table1", selection)}  # which raises


def write_tables(
    folder: Path, tables: Mapping[str, ResultTable], digits: int | None = None, *, has_spread: bool = True
) -> None:
    """Write tables, by name, as Markdown, CSV and LaTeX, with their tie ranges and the published values.

    ``digits`` are decimal places in Markdown (by default 4) and LaTeX (3), which show the spread with ``has_spread``.
    """
    options = {} if digits is None else {"digits": digits}
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv())
        write_text(folder / f"{name}.md", table.to_markdown(**options, has_spread=has_spread))
        write_text(folder / f"{name}.tex", table.to_latex(**options, has_spread=has_spread))
        write_text(folder / f"{name}-tie-range.csv", table.to_tie_range_csv())
        if table.layout.source:
            write_text(folder / f"{name}-published.csv", table.to_published_csv())


def _table(results: pd.DataFrame, name: str, selection: TableSelection) -> ResultTable:
    layout, published = LAYOUTS[name], [value for value in published_values() if value.layout == name]
    rows = bases(results) if layout.is_over_folds else results
    selection.check(rows)
    cells = make_cells(results.loc[selection.of(rows).index], layout, published, selection)
    return ResultTable(name, layout, cells, [value for value in published if selection.has(value)])


def _no_results(results: pd.DataFrame, table: ResultTable, selection: TableSelection) -> HashbenchError:
    layout, lengths = table.layout, list(selection.n_bits) or list(table.layout.n_bits) or [32]
    methods = sorted({value.our_method for value in table.published if not layout.is_open})
    usable = [method for method in methods or ["itq"] if method in method_names()]
    metrics = " or ".join(layout.metrics)
    several = ", with several settings of one method" if layout.is_ablation else ""
    options = " --dataset digits-unseen3-fold0" if layout.is_over_folds else ""
    advice = "There is no such method here; see: hashbench list methods."
    other_lengths = sorted(set(results["n_bits"]))
    others = _table(results, table.name, replace(selection, n_bits=tuple(other_lengths))).cells
    if not others.empty:
        options = "".join(f" --bits {n_bits}" for n_bits in sorted(set(others["n_bits"])))
        advice = f"There are results at other lengths; show them: hashbench tables {table.name}{options}."
    elif usable:
        advice = f"Run: hashbench run{options} --method {usable[0]} --bits {lengths[0]} --metric {layout.metrics[0]}."
    return HashbenchError(
        f"there are no results for {table.name}: {metrics}{' of ' * bool(methods)}{' or '.join(methods)} at "
        f"{', '.join(map(str, lengths))} bits{several}. {advice}"
    )


def _six(value: float) -> str:
    return "" if value != value else f"{value:.6f}"
