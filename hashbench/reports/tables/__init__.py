"""Tables laid out like the papers': rows are methods, columns code lengths, a block a dataset and metric."""

from hashbench.reports.tables.layout import LAYOUTS, Layout
from hashbench.reports.tables.table import Table, make_table, make_tables, write_tables

__all__ = ["LAYOUTS", "Layout", "Table", "make_table", "make_tables", "write_tables"]
