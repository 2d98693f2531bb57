"""How much faster a grid is with jobs side by side than one after the other.

    .venv/bin/python benchmarks/jobs.py [--jobs N] [--rounds N]

The quick methods on the built-in datasets, as of `make reproduce-tables` with fewer lengths; each way in a data folder
of its own, in turn. Prints the median ratio of wall-clock times, and whether all rows are the same bytes.
"""

import argparse
import filecmp
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hashbench.cards import method_card
from hashbench.registry import method_names

DATASETS = ("digits", "digits-pairs", "digits-unlabelled")
HASHBENCH = Path(sys.executable).with_name("hashbench")


def run(folder: Path, n_jobs: int) -> float:
    """Run the grid in an empty data folder; gives the seconds it took."""
    quick = [name for name in method_names() if not method_card(name).is_slow]
    options = {"--method": quick, "--dataset": DATASETS, "--bits": (16, 32, 64), "--seed": (0, 1, 2)}
    grid = [str(word) for option, values in options.items() for value in values for word in (option, value)]
    environment = {**os.environ, "HASHBENCH_DATA": str(folder / "data")}
    command = [str(HASHBENCH), "run", *grid, "--jobs", str(n_jobs), "--results", str(folder / "results")]
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    times: dict[int, list[float]] = {1: [], chosen.jobs: []}
    for number in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as folder:
            ways = {n_jobs: Path(folder) / str(n_jobs) for n_jobs in ([1, chosen.jobs][:: -1 if number % 2 else 1])}
            for n_jobs, way in ways.items():
                times[n_jobs].append(run(way, n_jobs))
            names = [f"results/{dataset}.csv" for dataset in DATASETS]
            same = filecmp.cmpfiles(*ways.values(), names, shallow=False)[0] == names
        seconds = ", ".join(f"{n_jobs} jobs {taken[-1]:.1f} s" for n_jobs, taken in times.items())
        print(f"{seconds}; {'the same rows' if same else 'OTHER ROWS'}", flush=True)
    ratio = statistics.median(alone / together for alone, together in zip(*times.values(), strict=True))
    print(f"| {chosen.jobs} jobs side by side | {ratio:.2f} times the speed of one after the other |")


if __name__ == "__main__":
    main()
