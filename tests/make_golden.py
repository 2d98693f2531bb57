"""Rewrite the golden files; review the difference before you commit it."""

import shutil
import sys
import tempfile
from pathlib import Path

from test_golden import GOLDEN, OPTIMISED, make_digits, make_golden_tables, make_quick


def replace(golden: Path, results: Path) -> None:
    """Replace a golden folder by new results, without the files that name days and machines."""
    shutil.rmtree(golden, ignore_errors=True)
    shutil.copytree(results, golden, ignore=shutil.ignore_patterns("*.jobs.csv"))


with tempfile.TemporaryDirectory() as folder:
    digits = make_digits(Path(folder) / "results", Path(folder) / "data")
    replace(GOLDEN / digits.name, digits)
    for method in OPTIMISED:
        quick = make_quick(Path(folder) / "quick", Path(folder) / "data", method)
    replace(GOLDEN / "quick" / quick.name, quick)
make_golden_tables(GOLDEN / "tables")
written = [GOLDEN / digits.name, GOLDEN / "quick" / quick.name, GOLDEN / "tables"]
sys.stdout.write(f"Written: {', '.join(map(str, written))}. See: git diff --stat tests/golden\n")
