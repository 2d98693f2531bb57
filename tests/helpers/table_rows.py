"""Made-up rows of results, and tables of them."""

import csv

import pandas as pd

from hashbench.reports import tables
from hashbench.reports.selection import Selection
from helpers.diff_rows import FIELDS

ITQ = '{"n_iter": 50}'


def cell(method="itq", n_bits=16, value=0.5, **changes):
    numbers = {"value": value, "tie_sd": 0.05, "low": value - 0.1, "high": value + 0.2}
    job = {"method": method, "params": ITQ if method == "itq" else "{}", "n_bits": n_bits}
    return FIELDS | numbers | job | changes


def table(*cells, name="table1", **chosen):
    return tables.make_table(pd.DataFrame(cells), name, Selection(**chosen))


def ranged(method, value, low, high, tie_sd=0.004, **changes):
    return cell(method, 16, value, low=low, high=high, tie_sd=tie_sd, **changes)


def chosen(*cells, **selection):
    return tables.make_selection(pd.DataFrame(cells), Selection(**selection))


def parsed(text):
    """Return the rows of a CSV text as dictionaries."""
    return list(csv.DictReader(text.splitlines()))


def block_rows(text, title):
    """Return the lines of the Markdown table of one block, whose title may be cut short, by their first cell."""
    return markdown_rows(text.partition(f"## {title}")[2].partition("\n## ")[0])


def markdown_rows(text):
    """Return the lines of Markdown tables by their first cell."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {row[0].strip(): [entry.strip() for entry in row[1:]] for row in rows}
