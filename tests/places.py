"""Where things lie that tests read; nothing outside the checkout but what a variable names."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("HASHBENCH_TEST_DATA", ROOT / "no-further-data"))  # of real data sets; see CONTRIBUTING.md
