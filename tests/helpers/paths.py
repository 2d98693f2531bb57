"""Where things lie that tests read; nothing outside the checkout unless a variable names it."""

import csv
import importlib
import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from hashbench import registry

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("HASHBENCH_TEST_DATA", ROOT / "no-further-data"))  # of real data sets; see CONTRIBUTING.md


def built_in_methods():
    """List the methods of this repository, whatever else is installed."""
    return _without(registry.method_names(), "hashbench.methods")


def built_in_datasets():
    """List the datasets of this repository, whatever else is installed."""
    return _without(registry.dataset_names(), "hashbench.datasets")


def _without(names, group):
    others = {point.name for point in entry_points(group=group)}
    return [name for name in names if name not in others]


def benchmark(name):
    """Import a script of benchmarks/."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module(name)


def rows_of(path):
    """Read the rows of a CSV file of the checkout, as texts by column."""
    with (ROOT / path).open(newline="") as file:
        return list(csv.DictReader(file))
