"""Rows of a plug-in that was edited between two runs are marked wherever they meet."""

import json
import re
import sys
from pathlib import Path

import pytest
from helpers.diff_rows import row
from helpers.result_files import jobs_in

from hashbench.reports.plots import draw_figures
from hashbench.reports.selection import Selection
from hashbench.store.origin import Origin
from hashbench.store.results import merge_rows

MINE = """
from dataclasses import dataclass

import numpy as np
from hashbench.plugins import HashMethod

@dataclass(eq=False, repr=False)
class Mine(HashMethod):
    '''Leading features.'''

    version = 1
    random_state: int = 0

    def _fit(self, X, y):
        pass

    def _project(self, X):
        return X[:, :self.n_bits]
"""
MIXED = "Some lines mix rows that different code of the method made: mine. Rerun them."


@pytest.fixture
def run(plugin, hashbench, digits_data, tmp_path):
    """Run the plug-in with a source, as in a new process."""
    plugin("mine", MINE)

    def run(source, *bits, seed=0):
        (tmp_path / "site" / "mine.py").write_text(source)
        sys.modules.pop("mine", None)
        lengths = [word for n_bits in bits for word in ("--bits", n_bits)]
        done = hashbench("run", "--method", "mine", "--method", "lsh", *lengths, "--seed", seed, "--metric", "AP")
        assert done.exit_code == 0, done.stderr

    return run


@pytest.mark.usefixtures("empty_folder")
def test_rows_of_different_code_are_marked_and_not_compared_until_they_are_rerun(run, hashbench):
    def compare(*names, form="json"):
        return hashbench("compare", *names, "--format", form)

    def notes():
        (drawing,) = draw_figures(Path("results"), ["ap-bits"], Selection(datasets=["digits"]))
        return [hashbench("tables", "--dataset", "digits").stdout, *drawing.notes]

    run(MINE, 8, 16)
    assert hashbench("results", "check").stdout == "2 files with 4 rows: all is well.\n"
    assert not any(MIXED in note for note in notes())
    edited = MINE.replace("X[:, :self", "-X[:, :self")
    run(edited, 16, seed=1)
    at_8, at_16 = json.loads(compare("mine", "lsh").stdout)["differences"]
    assert at_8["p"] is not None
    assert at_16["sentence"].startswith("no interval: different code of mine made its rows, so they are not of one me")
    assert compare("mine", "lsh", form="csv").stderr == f"{MIXED}\n"
    assert MIXED in " ".join(compare("lsh", "mine", form="table").stdout.split())
    refused = hashbench("compare", "mine", "lsh", "--bits", "16")
    assert refused.exit_code == 1
    assert "16 bits: different code of mine made its rows" in refused.stderr
    assert sum(MIXED in note for note in notes()) == 2
    jobs = jobs_in(Path("results/digits/mine.csv"))
    first, second = (re.search(r"mine=sha256:\w+", jobs[number]["libraries"])[0] for number in (0, 2))
    assert first != second
    done = hashbench("results", "check")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: digits (pixels) mine 8 bits seed 0 was made by {first}, and digits (pixels) mine 16 bits seed 1 was "
        f"made by {second}. Run them again with the same code.\n"
    )
    run(edited, 16)
    assert json.loads(compare("mine", "lsh").stdout)["differences"][1]["p"] is not None
    run(edited, 8)
    assert hashbench("results", "check").exit_code == 0
    assert not any(MIXED in note for note in notes())


@pytest.mark.usefixtures("empty_folder")
def test_seeds_of_different_versions_are_a_problem_and_rows_of_unknown_code_are_none(hashbench):
    made = row(dataset_fingerprint="cecf02ca0edd5963", method="elsewhere")
    origin = Origin("", "0.1.0", "elsewhere=sha256:0123", "x86_64 Nobody avx2", 1, "cpu", "2026-01-31", 1.0)
    merge_rows(Path("results"), [made, made._replace(seed=1)], origin)
    assert hashbench("results", "check").exit_code == 0
    merge_rows(Path("results"), [made._replace(seed=1, method_version=2)])
    words = "16 bits seed 0 was made by version 1, and digits (pixels) elsewhere 16 bits seed 1 was made by version 2."
    assert words in hashbench("results", "check").stderr
    assert "(version 2)" in hashbench("tables", "--dataset", "digits", "--variants").stdout
