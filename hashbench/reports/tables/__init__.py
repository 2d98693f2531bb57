"""Tables laid out like the papers': rows are methods, columns code lengths, one block per dataset and metric.

    layout        what each table shows
    published     the papers' numbers, in our names too: published.csv
    selection     which rows users chose
    cells         from rows to cells: which a table shows, means over seeds, the best of each column
    uncertainty   intervals and tests of cells, against the best or a named line
    nearness      how near our values are to the papers', and whether methods rank alike
    blocks        from cells to blocks: groups of lines, the papers' values, marks and their notes
    over_folds    the same for classes that training did not see
    markdown      blocks, and how they look in Markdown
    latex         blocks as LaTeX that fits a column
    table         all of these together, and the files

A new table is a line of ``LAYOUTS``.
"""

from hashbench.reports.tables.layout import LAYOUTS, TableLayout
from hashbench.reports.tables.selection import TableSelection
from hashbench.reports.tables.table import ResultTable, make_selection, make_table, make_tables, write_tables

__all__ = [
    "LAYOUTS",
    "ResultTable",
    "TableLayout",
    "TableSelection",
    "make_selection",
    "make_table",
    "make_tables",
    "write_tables",
]
