"""From rows of results to tables: means over seeds, the best of each column, and files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import pandas as pd

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, unknown_name
from hashbench.registry import method_names
from hashbench.reports.aggregate import BLOCK, LINE, PLACE, bases, fold_cells, main_lines
from hashbench.reports.formatting import sheet_text
from hashbench.reports.row_origins import read_results_with_origins
from hashbench.reports.selection import Selection
from hashbench.reports.tables.blocks import compared, make_blocks, make_fold_blocks, make_uncertainty_blocks
from hashbench.reports.tables.names import DisplayNames
from hashbench.reports.tables.published import LAYOUTS, Published, TableLayout, is_own, published_values
from hashbench.reports.tables.text import Style, TableBlock, latex, markdown
from hashbench.reports.view import View, make_view, records_by, view_of
from hashbench.store.files import write_text

OWN_TABLE = "selection"  # the usual name of a table of chosen rows
_CONTENT = ("dataset_fingerprint", "method_version")  # last columns of files


@dataclass(frozen=True, eq=False)
class ResultTable:
    """A table of results, ready to be written; in a notebook it shows itself.

    ``cells`` has one row per cell, as `hashbench.reports.view.View` has them.
    """

    name: str  # of its files
    layout: TableLayout
    view: View
    published: Sequence[Published] = ()  # values of its own paper, and of others for what it shows
    names: DisplayNames = field(default_factory=DisplayNames)
    digits: int | None = None  # decimal places, by default 4 in Markdown, 3 in LaTeX and 6 in CSV

    @property
    def cells(self) -> pd.DataFrame:
        """What the table shows, one row per cell."""
        return self.view.cells

    def tested(self, against: str = "", on_progress: Progress = silent) -> "ResultTable":
        """Return the table with 95 % intervals and tests, over queries and seeds, or over what is known of these.

        ``against`` is the method, or the label of a line, to test the others against, chosen before the results were
        seen. By default it is the best of each column. A table over folds, which have different queries, is returned as
        it is.
        """
        return self if self.layout.is_over_folds else replace(self, view=self.view.tested(against, on_progress))

    @property
    def lines(self) -> set[str]:
        """The names that `tested` can test against: methods and labels of lines."""
        return {*self.cells["method"], *self.cells["label"]}

    def to_markdown(self, digits: int | None = None, *, has_spread: bool = True) -> str:
        """Write a Markdown table per block; with `tested`, also one of its uncertainty.

        ``digits`` are decimal places, by default the table's, or 4; with ``has_spread`` the spread over seeds stands
        beside each value.
        """
        return markdown(self._title, self._blocks, Style(digits or self.digits or 4, has_spread))

    def __repr__(self) -> str:
        return f"<ResultTable {self.name} of {len(self.cells)} cells>"

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def to_latex(self, digits: int | None = None, *, has_spread: bool = True) -> str:
        """Write a ``table`` or, where wider, ``table*`` environment per block, for booktabs and graphicx.

        ``digits`` are decimal places, by default the table's, or 3.
        """
        return latex(self.name, self._title, self._blocks, Style(digits or self.digits or 3, has_spread))

    @property
    def _title(self) -> str:
        metrics = ", ".join(map(self.names.metric, self.layout.metrics))
        return f"{self.layout.heading}. {self.layout.title or metrics}"

    @cached_property
    def _blocks(self) -> list[TableBlock]:
        if self.layout.is_over_folds:
            return make_fold_blocks(self.cells, self.names)
        blocks = make_blocks(self.cells, self.layout, self.published, self.names)
        return blocks + (make_uncertainty_blocks(self.cells, self.names) if "p_value" in self.cells else [])

    def to_csv(self, digits: int | None = None) -> str:
        """Write CSV with one line per block and method, and per code length a column and one for its spread.

        ``digits`` are decimal places, by default the table's, or 6. Methods, datasets and metrics have the names that
        results hold.
        """
        digits = digits or self.digits or 6
        lengths = sorted(set(self.cells["n_bits"]))
        key = ["dataset", "features", "metric", "group", "method", "params"]
        header = [*key, *lengths, *(f"spread_{n}" for n in lengths), *_CONTENT]
        rows = []
        for line in records_by(self.cells, [*key, *_CONTENT]).values():
            by_length = {cell.n_bits: cell for cell in line}
            values = [_text(by_length[n].value, digits) if n in by_length else "" for n in lengths]
            spreads = [_text(by_length[n].spread, digits) if n in by_length else "" for n in lengths]
            rows.append([*attrgetter(*key)(line[0]), *values, *spreads, *attrgetter(*_CONTENT)(line[0])])
        return sheet_text(header, rows)

    def to_tie_range_csv(self) -> str:
        """Write CSV with one line per cell and how far seeds and ties could move it.

        With `tested`, it has the 95 % interval and the p value of the test, corrected in its column, too.
        Over folds, the spread is over these, and they are named.
        """
        key = ["dataset", "features", "metric", "method", "params", "n_bits", "n_seeds"]
        key += ["folds"] if self.layout.is_over_folds else []
        numbers = {name: name for name in ("value", "spread", "tie_sd", "low", "high")}
        if "p_value" in self.cells:
            numbers |= {"confidence_low": "from_", "confidence_high": "to", "p_adjusted": "p_value"}
        shown = self.cells.rename(columns={name: heading for heading, name in numbers.items()})
        shown = shown[[*key, *numbers, *_CONTENT]].astype(dict.fromkeys(numbers, object))
        shown[list(numbers)] = shown[list(numbers)].map(_text)
        return sheet_text(shown, shown.to_numpy())

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
                numbers = [_text(cell.value), _text(cell.spread), _text(cell.value - float(value.value))]
                comparison = [*numbers, pair.in_words, "; ".join(text for _, text in pair.differs)]
                rows.append([*value[:9], *attrgetter(*key)(cell), *comparison, *attrgetter(*_CONTENT)(cell)])
            if not pairs:
                ours = [value.our_dataset, "", value.our_metric, value.our_method, ""]
                rows.append([*value[:9], *ours, "", "", "", "not run", "", "", ""])
        return sheet_text(header, rows)


def make_table(results: pd.DataFrame, name: str, selection: Selection | None = None) -> ResultTable:
    """Lay out one of ``LAYOUTS``, from what `hashbench.read_results` returns.

    Blocks never mix datasets, features, fingerprints or metrics; lines never mix parameters or versions. Raises
    HashbenchError if there is no such table, or no results for it.
    """
    if name not in LAYOUTS:
        raise unknown_name("table", name, LAYOUTS)
    selection = selection or Selection()
    table = _table(results, name, selection)
    if table.cells.empty:
        of_metrics = results.loc[results["metric"].isin(table.layout.metrics), "n_bits"]
        raise _no_results(table.layout, table.published, name, selection, sorted(of_metrics.unique().tolist()))
    return table


def make_selection(results: pd.DataFrame, selection: Selection, name: str = OWN_TABLE) -> ResultTable:
    """Lay out chosen rows, of AP unless metrics are named, without the papers' values, at all their code lengths.

    Raises HashbenchError if there are no such rows, or if the name cannot be that of a file.
    """
    is_taken = re.split(r"-(?:tie-range|published)$", name.lower())[0] in LAYOUTS
    if is_taken or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise HashbenchError(
            f"{name!r} cannot name a table. Use letters, digits, points, dashes and underscores, and no name of "
            f"another table: {', '.join(LAYOUTS)}."
        )
    selection = replace(selection, metrics=selection.metrics or ["AP"]).read()
    selection.check(results)
    view = make_view(results, selection)
    if view.cells.empty:
        raise selection.nothing_left(results, " or ".join(selection.metrics))
    heading = "Selection" if name == OWN_TABLE else name
    return ResultTable(name, TableLayout(heading, "", tuple(selection.metrics)), view)


def make_tables(
    results_folder: Path,
    names: Sequence[str] = (),
    selection: Selection | None = None,
    name: str = OWN_TABLE,
    shown: DisplayNames | None = None,
) -> dict[str, ResultTable]:
    """Lay out the results of a folder: the tables named, else that of the chosen rows, else all that have results.

    ``name`` is that of a table of chosen rows; what is not in the tables cannot be ``shown`` by another name.
    """
    results, selection = read_results_with_origins(results_folder), (selection or Selection()).read()
    if name != OWN_TABLE and (names or not selection.is_of_rows):
        raise HashbenchError(
            f"{name!r} can only name a table of chosen rows. Choose them by dataset, method, metric or features, and "
            "leave out the names of other tables."
        )
    if names:
        tables = {name: make_table(results, name, selection) for name in names}
    elif selection.is_of_rows:
        tables = {name: make_selection(results, selection, name)}
    else:
        tables = {name: _table(results, name, selection) for name in LAYOUTS}
        tables = {name: table for name, table in tables.items() if not table.cells.empty}
        tables = tables or {"table1": make_table(results, "table1", selection)}  # which raises
    if shown:
        tables = {name: replace(table, names=shown) for name, table in tables.items()}
        for table in tables.values():
            table.to_markdown()
        shown.check(results)
    return tables


def write_tables(
    folder: Path, tables: Mapping[str, ResultTable], digits: int | None = None, *, has_spread: bool = True
) -> None:
    """Write tables, by name, as Markdown, CSV and LaTeX, with their tie ranges and the published values.

    ``digits`` are decimal places in Markdown (by default 4), LaTeX (3) and ``NAME.csv`` (6); tie ranges and published
    values always have 6. Markdown and LaTeX show the spread with ``has_spread``.
    """
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv(digits))
        write_text(folder / f"{name}.md", table.to_markdown(digits, has_spread=has_spread))
        write_text(folder / f"{name}.tex", table.to_latex(digits, has_spread=has_spread))
        write_text(folder / f"{name}-tie-range.csv", table.to_tie_range_csv())
        if table.layout.source:
            write_text(folder / f"{name}-published.csv", table.to_published_csv())


def _table(results: pd.DataFrame, name: str, selection: Selection) -> ResultTable:
    layout, published = LAYOUTS[name], [value for value in published_values() if value.layout == name]
    groups = {value.our_method: value.group for value in reversed(published_values())}

    def choose(cells: pd.DataFrame, everything: pd.DataFrame) -> pd.DataFrame:
        cells = cells[_is_shown(cells, layout, published, selection.n_bits)]
        cells = _lines(cells, everything, layout, published, has_variants=selection.variants)
        group = cells["group"].where(cells["group"] != "", cells["method"].map(groups).fillna(""))
        return cells.assign(group=group, rivals=cells["method"] if layout.is_ablation else "")

    if layout.is_over_folds:
        of_bases = bases(results)
        selection.check(of_bases)
        rows = results.loc[selection.at(of_bases).index]
        cells = fold_cells(rows[rows["metric"].isin(layout.metrics)], has_variants=selection.variants)
        cells = cells[cells["n_bits"].isin(selection.n_bits or cells["n_bits"])]
        view = view_of(cells.assign(rivals=cells["n_unseen"].astype(str)), results, selection, place=PLACE)
    else:
        selection.check(results)
        view = make_view(results, selection, choose)
    return ResultTable(name, layout, view, [value for value in published if _has(selection, value)])


def _has(selection: Selection, value: Published) -> bool:
    """Return whether a published value belongs to what was chosen."""
    datasets = [name.partition(":")[0] for name in selection.datasets]
    return (
        (not datasets or value.our_dataset in datasets)
        and (not selection.methods or value.our_method in selection.methods)
        and (not selection.n_bits or value.n_bits in selection.n_bits)
    )


def _is_shown(
    cells: pd.DataFrame, layout: TableLayout, published: Sequence[Published], n_bits: Sequence[int]
) -> "pd.Series[bool]":
    """Return which cells a table shows: the paper's metrics and lengths on its datasets, the layout's on others.

    Where other papers have values, their lengths are shown too.
    """
    methods, own = {value.our_method for value in published}, [value for value in published if is_own(value, layout)]
    of_paper = {(value.our_dataset, value.our_metric) for value in own}
    lengths: dict[tuple[str, str], set[int]] = {}
    for value in [*own, *(other for other in published if (other.our_dataset, other.our_metric) not in of_paper)]:
        place = value.our_dataset, value.our_metric
        lengths.setdefault(place, set(() if place in of_paper else layout.n_bits)).add(value.n_bits)
    shown = []
    columns = (cells[key].tolist() for key in ("dataset", "metric", "method", "n_bits"))
    for dataset, metric, method, length in zip(*columns, strict=True):
        at = lengths.get((dataset, metric), set(layout.n_bits) if metric in layout.metrics else None)
        has_column = at is not None and length in (n_bits or at or {length})
        shown.append(has_column and (layout.is_open or method in methods))
    return pd.Series(shown, index=cells.index, dtype=bool)


def _lines(
    cells: pd.DataFrame,
    everything: pd.DataFrame,
    layout: TableLayout,
    published: Sequence[Published],
    *,
    has_variants: bool,
) -> pd.DataFrame:
    """Keep the lines of a table: one of each method, and of each of its rows in the paper.

    An ablation keeps those of methods with several at a code length; metrics beside each other keep those with values
    in the first metric, and the paper's methods. Where the paper's rows differ by one parameter, ours have the defaults
    of all others, not tuned ones.
    """
    if layout.is_ablation:
        return cells[cells.groupby([*BLOCK, "metric", "method", "n_bits"])["params"].transform("nunique") > 1]
    if layout.is_beside:
        line = pd.MultiIndex.from_frame(cells[[*BLOCK, *LINE]])
        has_first = line.isin(line[cells["metric"] == layout.metrics[0]])
        cells = cells[has_first | cells["method"].isin([value.our_method for value in published])]
    if has_variants or cells.empty:
        return cells
    variants = {value.method: value for value in published if value.our_params}  # rows that differ by parameters
    lines = zip(cells["method"], cells["params"], strict=True)
    if "tuned" in everything:
        differing = {value.our_method for value in variants.values() if is_own(value, layout)}
        everything = everything.assign(tuned=everything["tuned"].mask(everything["method"].isin(differing), 0))
    roles = [" ".join(name for name, value in variants.items() if value.is_of(*line)) for line in lines]
    return pd.concat([main_lines(part, everything) for _, part in cells.groupby(pd.Series(roles, cells.index))])


def _no_results(
    layout: TableLayout, published: Sequence[Published], name: str, selection: Selection, others: Sequence[int]
) -> HashbenchError:
    """Return an error that lists the ``others``, code lengths that have results of the table's metrics."""
    lengths = list(selection.n_bits or layout.n_bits) or [32]
    of_paper = [value.our_method for value in published if not layout.is_open and value.our_method in method_names()]
    datasets = ["digits-unseen3-fold0"] if layout.is_over_folds else selection.datasets
    making = replace(selection, methods=[min(of_paper, default="itq")], n_bits=lengths[:1], datasets=datasets)
    several = ", with several settings of one method" if layout.is_ablation else ""
    there = f" (results have {', '.join(map(str, others))})" if others and not {*others} <= {*lengths} else ""
    return HashbenchError(
        f"there are no results for {name}: {' or '.join(layout.metrics)} at {', '.join(map(str, lengths))} "
        f"bits{several}. Choose other lengths with --bits{there}, or make some: {making.command(layout.metrics[0])}."
    )


def _text(value: float, digits: int = 6) -> str:
    return "" if value != value else f"{value:.{digits}f}"
