"""What result files of many rows cost: to add a job's rows, until tables, report and diff are there, to open the page.

    .venv/bin/python benchmarks/many_rows.py [--times N] [--rounds N]

The committed results N times over, in part as further seeds and in part as further datasets, in a folder by itself.
Each command runs in a process of its own, as a user would start it; prints medians as Markdown, of the time on the
clock and of processors, which other work on the machine does not lengthen as much. The page is opened in chromium,
where that is installed, until its overview is laid out.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from report import CHROMIUM, browsing, milliseconds

from hashbench.store.result_rows import Row
from hashbench.store.results import merge_rows, read_folder

RESULTS = Path(__file__).parents[1] / "results"
HASHBENCH = Path(sys.executable).with_name("hashbench")
N_SEEDS = 2  # times as many; the rest are datasets


def make_rows(n_times: int) -> Iterator[Row]:
    """Repeat the committed rows so many times, with values of their own."""
    rng = np.random.default_rng(0)
    for row in read_folder(RESULTS).values():
        for number in range(n_times):
            dataset, seed = divmod(number, N_SEEDS)
            low, high = (0.0 if text == "nan" else float(text) for text in (row.low, row.high))
            value = f"{rng.uniform(low, high):.6f}" if row.value != "nan" else "nan"
            name = row.dataset.replace("-unseen", f"-{dataset}-unseen") if "-unseen" in row.dataset else row.dataset
            name = f"{name}-{dataset}" if dataset and name == row.dataset else name if dataset else row.dataset
            yield row._replace(dataset=name, seed=row.seed + 100 * seed, value=value)


def seconds(*arguments: object) -> tuple[float, float]:
    """Run a command of hashbench, and give the seconds that it takes on the clock and of processors."""
    begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([HASHBENCH, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    taken, now = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def main() -> None:
    """Make the folders, run each command in each round, print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, before = Path(name, "results"), Path(name, "before")
        rows = list(make_rows(options.times))
        merge_rows(folder, rows)
        merge_rows(before, [row if number % 1000 else row._replace(value=row.low) for number, row in enumerate(rows)])
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"{len(rows):,} rows in {len(files):,} files, {size / 1e6:.1f} MB\n")
        job = [row for row in rows if row.key[:6] == rows[-1].key[:6]]
        added = []
        for number in range(20):
            begin = time.perf_counter()
            merge_rows(folder, [row._replace(seed=10_000 + number) for row in job])
            added.append(time.perf_counter() - begin)
        print("| what | on the clock | of processors |\n| --- | ---: | ---: |")
        print(f"| add a job's {len(job)} rows | {statistics.median(added):.3f} s | |")
        commands = {
            "tables": ("tables", "--results", folder, "--output", Path(name, "tables")),
            "report": ("report", "--results", folder, "--output", Path(name, "report.html")),
            "diff": ("diff", before, folder),
        }
        for what, command in commands.items():
            rounds = zip(*(seconds(*command) for _ in range(options.rounds)), strict=True)
            print(f"| `hashbench {what}` |", " | ".join(f"{statistics.median(one):.1f} s" for one in rounds), "|")
        if CHROMIUM is not None:
            with browsing() as browser:
                opened = [
                    milliseconds(browser, Path(name, "report.html"), "overview")[1] for _ in range(options.rounds)
                ]
            print(f"| open the page | {statistics.median(opened) / 1000:.1f} s | |")


if __name__ == "__main__":
    main()
