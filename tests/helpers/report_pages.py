"""Results with cached codes, others with wild names or beside a paper's; and readers of their report in a browser."""

import json
from collections import defaultdict

import numpy as np
from click.testing import CliRunner

from hashbench.cli.main import cli
from hashbench.dataset import Dataset
from helpers.diff_rows import row, write
from helpers.result_files import rows_in

METHODS, LENGTHS, SEEDS = ("itq", "lsh", "sdh"), (12, 16), (0, 1)
FEW = "data=few%3Afeatures"
TALR = "data=cifar10-s1%3Aours"
VIEWS = {
    "overview": "overview",
    "leaderboard": f"leaderboard?{FEW}",
    "leaderboard beside papers": f"leaderboard?{TALR}",
    "plots": f"plots?{FEW}",
    "methods": "methods",
    "method": "method?method=itq",
    "queries": f"queries?{FEW}&query=3",
    "changes": "changes?text=gone",
    "rows": f"rows?{FEW}&text=sdh",
}
WORDS = "<img src=x onerror=alert(1)> \"q\" & 'a' Ü 中文"
PARAM = "</script><script>alert(2)</script> \"q\" & 'a' | Ü 中文"
WILD = {"dataset": "wild", "features": WORDS, "params": json.dumps({"a": PARAM}), "n_bits": 16}
PAPERS = {"bre": (0.5, 0.4, 0.6), "dtsh": (0.5, 0.4, 0.6), "machash": (0.62, 0.5, 0.7), "lsh": (0.5, 0.4, 0.6)}


def few():
    """A dataset of 70 items with images, the last of its ten queries alone in its class."""
    rng = np.random.default_rng(0)
    labels = np.arange(70) % 4
    labels[9] = 4
    index = np.arange(70)
    return Dataset(
        "few",
        (rng.normal(size=(5, 20))[labels] + rng.normal(size=(70, 20))).astype(np.float32),
        query=index[:10],
        database=index[10:],
        train=index[10:],
        rule="same-label",
        labels=labels,
        images=rng.integers(0, 256, (70, 8, 8, 3)).astype(np.uint8),
        about={"summary": WORDS, "licence": WORDS},
    )


def hashbench(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr


def report(folder, output, *options):
    hashbench("report", "--results", folder / "results", "--output", output, *options)


def write_wild(folder):
    """Write results with wild names, an earlier version of one of them, and results beside a paper's."""
    write(folder / "results" / "wild.csv", *(row(**WILD, method=method) for method in ("gone", "lsh")))
    write(folder / "before" / "wild.csv", row(0.55, **WILD, method="gone"))
    place = {"dataset": "cifar10-s1", "features": "ours", "n_bits": 12}
    papers = (row(*values, **place, method=method) for method, values in PAPERS.items())
    write(folder / "results" / "cifar10-s1.csv", *papers)


def wait_for(page, view):
    page.locator(f"main#view[data-view={view}][data-ready=true]").wait_for()


def rows_of(page, table="leaderboard"):
    return page.locator(f"table[data-test={table}] tbody tr:not(.heading)")


def keys(page, table="leaderboard"):
    return rows_of(page, table).evaluate_all("rows => rows.map(row => row.dataset.key)")


def means(folder, column="value"):
    """The AP of each code length and method, or an end of its range, averaged over seeds."""
    values = defaultdict(list)
    for cell in rows_in(folder / "results" / "few"):
        if cell["metric"] == "AP":
            values[int(cell["n_bits"]), cell["method"]].append(float(cell[column]))
    return {key: float(np.mean(seeds)) for key, seeds in values.items()}
