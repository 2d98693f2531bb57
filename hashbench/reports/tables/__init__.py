"""Tables laid out like the papers': rows are methods, columns code lengths, one block per dataset and metric.

    names      what rows, datasets and metrics are called in place of the names that results hold
    published  the papers' tables: what each shows (layouts.toml), their numbers (published.csv), how near ours are
    table      from results to a table and its files
    blocks     from a view to blocks: groups of lines, the papers' values, notes
    text       blocks, and how they look in Markdown and LaTeX

A new table is a section of ``layouts.toml``.
"""

from hashbench.reports.tables.names import DisplayNames
from hashbench.reports.tables.published import LAYOUTS, TableLayout
from hashbench.reports.tables.table import ResultTable, make_selection, make_table, make_tables, write_tables

__all__ = [
    "LAYOUTS",
    "DisplayNames",
    "ResultTable",
    "TableLayout",
    "make_selection",
    "make_table",
    "make_tables",
    "write_tables",
]
