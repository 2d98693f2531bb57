"""From rows of results to tables: means over seeds, the best of each column, and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.registry import method_names
from hashbench.reports.aggregate import BLOCK, CELL, LINE, line_labels
from hashbench.reports.folds import bases
from hashbench.reports.formatting import sheet_text
from hashbench.reports.row_origins import read_origins, with_trials
from hashbench.reports.tables.blocks import compared, make_blocks, make_uncertainty_blocks
from hashbench.reports.tables.cells import grouped, make_cells, records, records_by
from hashbench.reports.tables.latex import latex
from hashbench.reports.tables.layout import LAYOUTS, TableLayout
from hashbench.reports.tables.markdown import Style, TableBlock, markdown
from hashbench.reports.tables.nearness import count_verdicts
from hashbench.reports.tables.over_folds import make_fold_blocks
from hashbench.reports.tables.paper_orders import count_orders, make_orders
from hashbench.reports.tables.published import Published, published_values
from hashbench.reports.tables.selection import TableSelection
from hashbench.reports.tables.uncertainty import add_confidence
from hashbench.store.files import write_text
from hashbench.store.results import find_files, read_results


@dataclass(frozen=True, eq=False)
class ResultTable:
    """One table, ready to be written.

    Parameters
    ----------
    name : str
        What its files are called.
    layout : TableLayout
        What it shows.
    cells : DataFrame
        One row a cell: block, metric, line, ``n_bits``; means over seeds of ``value``, ``low`` and ``high``,
        ``spread`` (their standard deviation, NaN for one seed) and ``n_seeds``; whether it ``is_best`` of its column,
        and what ``ties`` leave open between it and the best. With `confident`, intervals and p-values too.
    published : sequence of Published
        The numbers for it: its own paper's, and all that others have of what it shows.
    """

    name: str
    layout: TableLayout
    cells: pd.DataFrame
    published: Sequence[Published] = ()

    def confident(self, results: pd.DataFrame, against: str = "", on_progress: Progress = silent) -> "ResultTable":
        """Add what the scores of every query tell, as far as the data folder holds them.

        Parameters
        ----------
        results : DataFrame
            What the table was made of.
        against : str, optional
            The method, or the label of a line, to test the others against, chosen before the results were seen: its
            p values are corrected by Holm. By default the best of each column, corrected for all pairs.
        on_progress : Progress, optional
            Called with what is being done, parts done and all parts.

        Returns
        -------
        ResultTable
            With bootstrap intervals and paired tests; one over folds, which have other queries each, as it is.

        Raises
        ------
        HashbenchError
            The table has no line, or several, of the name ``against``.
        """
        if self.layout.is_over_folds:
            return self
        rows = dict(grouped(results, CELL))
        behind = [rows[tuple(keys)] for keys in self.cells[list(CELL)].itertuples(index=False)]
        return replace(self, cells=add_confidence(self.cells, behind, against, on_progress))

    @property
    def lines(self) -> set[str]:
        """The names that `confident` takes to test against: methods and labels of lines."""
        return {*self.cells["method"], *line_labels(self.cells).values()}

    def to_markdown(self, digits: int = 4, *, has_spread: bool = True) -> str:
        """Write the table for people.

        Parameters
        ----------
        digits : int, optional
            Behind the point.
        has_spread : bool, optional
            Whether the spread over seeds stands beside each value.

        Returns
        -------
        str
            A heading, then a Markdown table a block; with `confident`, a second one of its uncertainty. Last, how many
            of the paper's values are compared.
        """
        return markdown(self._title, self._blocks(Style(digits, has_spread)), self._foot)

    def __repr__(self) -> str:
        return f"<ResultTable {self.name} of {len(self.cells)} cells>"

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def to_latex(self, digits: int = 3, *, has_spread: bool = True) -> str:
        """Write the table for a paper.

        Parameters
        ----------
        digits, has_spread
            As in `to_markdown`.

        Returns
        -------
        str
            A ``table`` or, where that is too narrow, ``table*`` environment a block, for the package booktabs; the
            same blocks as in Markdown.
        """
        return latex(self.name, self._title, self._blocks(Style(digits, has_spread)), self._foot)

    @property
    def _title(self) -> str:
        return f"{self.layout.heading}. {self.layout.title}"

    @cached_property
    def _foot(self) -> str:
        if not self.published:
            return ""
        found = compared(self.cells, self.layout, self.published)
        pairs = [pair for _, ones in found for pair in ones]
        verdicts = count_verdicts(len({one.place for one, _ in found}), pairs, of=" of this table")
        return " ".join([verdicts, *filter(None, [count_orders(make_orders(self.cells, self.published))])])

    def _blocks(self, style: Style) -> list[TableBlock]:
        if self.layout.is_over_folds:
            return make_fold_blocks(self.cells, style)
        blocks = make_blocks(self.cells, self.layout, self.published, style)
        return blocks + (make_uncertainty_blocks(self.cells, style) if "p_value" in self.cells else [])

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
        return sheet_text(header, rows)

    def to_tie_range_csv(self) -> str:
        """Write how far seeds and ties could move each cell.

        Returns
        -------
        str
            CSV, one line a cell with value, spread over seeds, tie_sd, low and high; with `confident`, also the
            interval over queries and the p value of the test, corrected in its column. Over folds, spread is over
            these, which are named.
        """
        more = {"confidence_low": "from_", "confidence_high": "to", "p_adjusted": "p_value"}
        more = {} if "p_value" not in self.cells else more
        counts = ["n_seeds", *(["folds"] if self.layout.is_over_folds else [])]
        header = [
            *("dataset", "features", "metric", "method", "params", "n_bits", *counts),
            *("value", "spread", "tie_sd", "low", "high", *more, "dataset_fingerprint", "method_version"),
        ]
        rows: list[list[object]] = [
            [
                *(cell.dataset, cell.features, cell.metric, cell.method, cell.params, cell.n_bits),
                *(getattr(cell, name) for name in counts),
                *(_six(getattr(cell, name)) for name in ("value", "spread", "tie_sd", "low", "high", *more.values())),
                *(cell.dataset_fingerprint, cell.method_version),
            ]
            for cell in records(self.cells)
        ]
        return sheet_text(header, rows)

    def to_published_csv(self) -> str:
        """Write the papers' values beside ours.

        Returns
        -------
        str
            CSV, a line for each of the paper's values and each of our cells that stands for it; without any of ours,
            one line. Then, block by block, the values of other papers that stand there.
        """
        header = [
            *("source", "table", "dataset", "setting", "backbone", "metric", "method", "n_bits", "published"),
            *("our_dataset", "our_features", "our_metric", "our_method", "our_params"),
            *("ours", "spread", "difference", "verdict", "differs", "dataset_fingerprint", "method_version"),
        ]
        rows: list[list[object]] = []
        for one, pairs in compared(self.cells, self.layout, self.published):
            theirs = [*one[:9]]
            rows += [
                [
                    *(*theirs, cell.dataset, cell.features, cell.metric, cell.method, cell.params),
                    *(_six(cell.value), _six(cell.spread), _six(cell.value - float(one.value))),
                    *(pair.in_words, "; ".join(text for _, text in pair.differs)),
                    *(cell.dataset_fingerprint, cell.method_version),
                ]
                for pair in pairs
                for cell in [pair.cell]
            ]
            if not pairs:
                left = [one.our_dataset, "", one.our_metric, one.our_method, *[""] * 4, "not run", *[""] * 3]
                rows.append([*theirs, *left])
        return sheet_text(header, rows)

    def to_orders_csv(self) -> str:
        """Write which of the papers' orders of two methods hold here.

        Returns
        -------
        str
            CSV, a line for every two methods that a table of a paper ranks at one code length, and a block of ours
            that has both: both their values and ours, whether the order holds, is turned round or left open, and what
            ties leave open between ours, a key of `hashbench.reports.ties.ANSWERS`.
        """
        header = [
            *("source", "table", "dataset", "setting", "metric", "n_bits", "higher", "lower"),
            *("published_higher", "published_lower", "our_dataset", "our_features", "our_metric"),
            *("our_higher", "our_lower", "ours_higher", "ours_lower", "verdict", "ties", "dataset_fingerprint"),
            *("our_params_higher", "our_params_lower", "our_version_higher", "our_version_lower"),
        ]
        rows: list[list[object]] = []
        for order in make_orders(self.cells, self.published):
            (one, cell), (other, less) = order.higher, order.lower
            rows.append(
                [
                    *(one.source, one.table, one.dataset, one.setting, one.metric, one.n_bits),
                    *(one.method, other.method, one.value, other.value),
                    *(cell.dataset, cell.features, cell.metric),
                    *(cell.method, less.method, _six(cell.value), _six(less.value), *order.verdict),
                    cell.dataset_fingerprint,
                    *(cell.params, less.params, cell.method_version, less.method_version),
                ]
            )
        return sheet_text(header, rows)


def make_table(results: pd.DataFrame, name: str, selection: TableSelection | None = None) -> ResultTable:
    """Lay out a table.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.store.results.read_results` gives.
    name : str
        One of ``LAYOUTS``.
    selection : TableSelection, optional
        What of it to show.

    Returns
    -------
    ResultTable
        Blocks never mix datasets, features, fingerprints or metrics; lines never mix parameters or versions.

    Raises
    ------
    HashbenchError
        If there is no such table, or no results for it.
    """
    if name not in LAYOUTS:
        raise unknown_name("table", name, LAYOUTS)
    made = _table(results, name, selection or TableSelection())
    if made.cells.empty:
        raise _no_results(made, selection or TableSelection())
    return made


def make_selection(results: pd.DataFrame, selection: TableSelection) -> ResultTable:
    """Lay out rows in a table of their own, without the papers' values.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.store.results.read_results` gives.
    selection : TableSelection
        What to show.

    Returns
    -------
    ResultTable
        A block a dataset, its features, fingerprint and metric; all their code lengths, unless some are chosen.

    Raises
    ------
    HashbenchError
        If there are no such rows.
    """
    cells = make_cells(selection.of_rows(results), selection.layout, (), selection)
    if cells.empty:
        raise selection.nothing_left(results)
    return ResultTable(selection.name, selection.layout, cells)


def make_tables(
    results_folder: Path, names: Sequence[str] = (), selection: TableSelection | None = None
) -> dict[str, ResultTable]:
    """Lay out all results of a folder.

    Parameters
    ----------
    results_folder : Path
        Holds ``<dataset>/<method>.csv`` files.
    names : sequence of str
        Which tables; if empty, the one that the selection makes, or all that there are results for.
    selection : TableSelection, optional
        What of them to show.

    Returns
    -------
    dict of str to ResultTable
        The tables by name.
    """
    results, selection = read_results(results_folder), selection or TableSelection()
    results = with_trials(results, read_origins(find_files(results_folder)))
    selection.check_name(names)
    if names:
        return {name: make_table(results, name, selection) for name in names}
    if selection.is_of_rows:
        return {selection.name: make_selection(results, selection)}
    made = {name: _table(results, name, selection) for name in LAYOUTS}
    found = {name: table for name, table in made.items() if not table.cells.empty}
    return found or {"table1": make_table(results, "table1", selection)}  # which complains


def write_tables(
    folder: Path, tables: Mapping[str, ResultTable], digits: int | None = None, *, has_spread: bool = True
) -> None:
    """Write tables as Markdown, CSV and LaTeX, with their tie ranges, the published values and orders.

    Parameters
    ----------
    folder : Path
        Made if need be.
    tables : mapping of str to ResultTable
        By name.
    digits : int, optional
        Behind the point in Markdown and LaTeX, by default 4 and 3.
    has_spread : bool, optional
        Whether these two show the spread over seeds.
    """
    shown = {} if digits is None else {"digits": digits}
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv())
        write_text(folder / f"{name}.md", table.to_markdown(**shown, has_spread=has_spread))
        write_text(folder / f"{name}.tex", table.to_latex(**shown, has_spread=has_spread))
        write_text(folder / f"{name}-tie-range.csv", table.to_tie_range_csv())
        if table.layout.source:
            write_text(folder / f"{name}-published.csv", table.to_published_csv())
            write_text(folder / f"{name}-orders.csv", table.to_orders_csv())


def _table(results: pd.DataFrame, name: str, selection: TableSelection) -> ResultTable:
    layout, published = LAYOUTS[name], [one for one in published_values() if one.layout == name]
    chosen = selection.of_rows(bases(results) if layout.is_over_folds else results)
    cells = make_cells(results.loc[chosen.index], layout, published, selection)
    return ResultTable(name, layout, cells, [one for one in published if selection.has(one)])


def _no_results(table: ResultTable, selection: TableSelection) -> HashbenchError:
    layout, lengths = table.layout, list(selection.n_bits) or list(table.layout.n_bits) or [32]
    methods = sorted({one.our_method for one in table.published if not layout.is_open})
    usable = [method for method in methods or ["itq"] if method in method_names()]
    metrics = " or ".join(layout.metrics)
    several = ", with several settings of one method" if layout.is_ablation else ""
    of = " --dataset digits-unseen3-fold0" if layout.is_over_folds else ""
    return HashbenchError(
        f"there are no results for {table.name}: {metrics}{' of ' * bool(methods)}{' or '.join(methods)} at "
        f"{', '.join(map(str, lengths))} bits{several}. "
        + (
            f"Make some: hashbench run{of} --method {usable[0]} --bits {lengths[0]} --metric {layout.metrics[0]}."
            if usable
            else "There is no such method here; see: hashbench list methods."
        )
    )


def _six(value: float) -> str:
    return "" if value != value else f"{value:.6f}"
