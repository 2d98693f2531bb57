"""What each table shows: ``layouts.toml``."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class TableLayout:
    """What a table shows."""

    heading: str  # such as "Table 1"
    title: str
    metrics: tuple[str, ...]  # a dataset that the paper also scores by another metric gets a block for that too
    n_bits: tuple[int, ...] = ()  # the columns of datasets that are not in the paper; empty: all there are
    source: str = ""  # how the paper begins in the column "source" of published.csv
    number: str = ""  # the number of the paper's table, as in the column "table"
    of_others: tuple[str, ...] = ()  # metrics in which values of other papers stand beside ours too
    is_beside: bool = False  # whether all metrics share one block, whose lines have values in the first of them
    is_open: bool = True  # whether methods that are not in the paper's table are shown
    is_ablation: bool = False  # whether it shows several lines of one method, not one line of each
    is_over_folds: bool = False  # whether it shows datasets with unseen classes, which others leave out
    remark: str = ""  # a sentence for every caption


def _read_layouts() -> dict[str, TableLayout]:
    text = files("hashbench.reports.tables").joinpath("layouts.toml").read_text(encoding="utf-8")
    layouts = {}
    for name, values in tomllib.loads(text).items():
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        layouts[name] = TableLayout(**fields)
    return layouts


LAYOUTS = _read_layouts()
