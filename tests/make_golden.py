"""Rewrite the golden files; review the difference before you commit it."""

import shutil
import sys
import tempfile
from pathlib import Path

from test_golden import GOLDEN, make_digits

with tempfile.TemporaryDirectory() as folder:
    made = make_digits(Path(folder) / "results", Path(folder) / "data")
    GOLDEN.mkdir(exist_ok=True)
    shutil.copyfile(made, GOLDEN / made.name)
sys.stdout.write(f"Written: {GOLDEN / made.name}. See: git diff --stat tests/golden\n")
