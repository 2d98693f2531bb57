"""Tables laid out like the papers': rows are methods, columns code lengths, a block a dataset and metric.

    layout       what each table shows
    published    the papers' numbers, in our names too: published.csv
    selection    what users choose of the rows
    cells        from rows of results: which a table shows, means over seeds, the best of each column
    uncertainty  what the scores of every query tell about cells: intervals and tests
    nearness     verdicts on our values beside the papers', and whether methods rank alike
    blocks       from cells to what is seen: groups of lines, the papers' values, marks and their notes
    over_folds   from cells of classes that training did not see to what is seen
    orders       which of the papers' orders of two methods hold here
    formats      blocks as Markdown
    latex        blocks as LaTeX that fits a column
    table        the whole way, and the files

A new table is a line of ``LAYOUTS``.
"""

from hashbench.reports.tables.layout import LAYOUTS, Layout
from hashbench.reports.tables.selection import Selection
from hashbench.reports.tables.table import Table, make_selection, make_table, make_tables, write_tables

__all__ = ["LAYOUTS", "Layout", "Selection", "Table", "make_selection", "make_table", "make_tables", "write_tables"]
