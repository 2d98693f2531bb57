"""Tables laid out like the papers': rows are methods, columns code lengths, one block per dataset and metric.

    layout     what each table shows: layouts.toml
    published  the papers' numbers, in our names too: published.csv; how near ours are
    table      from results to a table and its files
    blocks     from a view to blocks: groups of lines, the papers' values, notes
    text       blocks, and how they look in Markdown
    latex      blocks as LaTeX

A new table is a section of ``layouts.toml``.
"""

from hashbench.reports.tables.layout import LAYOUTS, TableLayout
from hashbench.reports.tables.table import ResultTable, make_selection, make_table, make_tables, write_tables

__all__ = [
    "LAYOUTS",
    "ResultTable",
    "TableLayout",
    "make_selection",
    "make_table",
    "make_tables",
    "write_tables",
]
