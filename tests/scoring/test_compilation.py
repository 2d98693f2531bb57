import os
import subprocess
import sys
from contextlib import nullcontext

import pytest
from numba.core import event

from hashbench.scoring import compilation

EVALUATE = """
import numpy as np, hashbench
codes, labels = np.eye(4, dtype=bool), np.arange(4) % 2
for _ in range(2):
    hashbench.evaluate(codes, codes, (labels, labels), ["AP"])
hashbench.curves(codes, codes, (labels, labels))
"""


@pytest.mark.slow
def test_the_first_scoring_from_python_reports_on_standard_error_that_it_compiles(tmp_path):
    def run():
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", EVALUATE], env=env, capture_output=True, text=True, check=True)
        assert done.stdout == ""
        return done.stderr

    assert run().startswith("hashbench: compiling")
    assert run() == ""


def test_only_the_outermost_call_reports_compilation(monkeypatch):
    reports, listeners = [], []
    monkeypatch.setattr(event, "install_listener", lambda kind, listener: listeners.append(listener) or nullcontext())
    reporting = compilation.reporting_compilation
    with reporting(lambda *what: reports.append("outer")), reporting(lambda *what: reports.append("inner")):
        for _ in range(2):
            for listener in listeners:
                listener.on_start(None)
    assert reports == ["outer"]
