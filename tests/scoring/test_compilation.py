import os
import subprocess
import sys

import pytest

from hashbench import _parallel
from hashbench.scoring import compilation

EVALUATE = """
import numpy as np, hashbench
codes, labels = np.random.default_rng(0).random((n, 16)) < 0.5, np.arange(n) % 2
for _ in range(2):
    hashbench.evaluate(codes, codes, (labels, labels), ["AP"])
hashbench.Problem.of_codes(codes, codes, (labels, labels)).curves()
print("numba" in sys.modules)
"""


@pytest.fixture
def evaluating(tmp_path):
    """Evaluate so many codes in a process of a user whose cache is empty at first; return its output."""

    def run(n_items):
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        code = f"import sys\nn = {n_items}\n{EVALUATE}"
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    return run


def test_a_small_first_scoring_compiles_nothing_and_prints_nothing(evaluating):
    assert evaluating(300) == ("False\n", "")


@pytest.mark.slow
def test_the_first_large_scoring_from_python_reports_on_standard_error_that_it_compiles(evaluating):
    out, report = evaluating(20_000)
    assert (out, report[:20], report[-4:]) == ("True\n", "hashbench: compiling", "...\n")
    assert evaluating(20_000) == ("True\n", "")


def test_only_the_outermost_call_reports_compilation():
    reports = []
    reporting = compilation.reporting_compilation
    with reporting(lambda *what: reports.append("outer")), reporting(lambda *what: reports.append("inner")):
        for _ in range(2):
            for watch in _parallel.watchers:
                watch(None)
    assert reports == ["outer"]
    assert _parallel.watchers == []
