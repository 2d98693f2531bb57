"""Rewrite the golden files; review the difference before you commit it."""

import shutil
import sys
import tempfile
from pathlib import Path

from test_golden import GOLDEN, OPTIMISED, make_digits, make_golden_tables, make_quick


def keep(made: Path, golden: Path) -> None:
    """Replace a golden folder by what was made, but for days and machines."""
    shutil.rmtree(golden, ignore_errors=True)
    shutil.copytree(made, golden, ignore=shutil.ignore_patterns("*.jobs.csv"))


with tempfile.TemporaryDirectory() as folder:
    made = make_digits(Path(folder) / "results", Path(folder) / "data")
    keep(made, GOLDEN / made.name)
    for method in OPTIMISED:
        quick = make_quick(Path(folder) / "quick", Path(folder) / "data", method)
    keep(quick, GOLDEN / "quick" / quick.name)
make_golden_tables(GOLDEN / "tables")
written = [GOLDEN / made.name, GOLDEN / "quick" / quick.name, GOLDEN / "tables"]
sys.stdout.write(f"Written: {', '.join(map(str, written))}. See: git diff --stat tests/golden\n")
