"""How soon the page of `hashbench report` draws many results.

    .venv/bin/python benchmarks/report.py [--rows N] [--rounds N]

Made-up rows, all of one dataset and metric: many methods, parameters, code lengths and seeds. Each round opens the page
anew, from disk, in chromium, which must be installed (`apt-get install chromium`). Prints medians until a view is laid
out, from the start of its script and from when the page was asked for, and until more rows of a long table are painted.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from itertools import islice, product
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser

from hashbench.registry import method_names
from hashbench.reports.html import write_report
from hashbench.store.result_rows import Row
from hashbench.store.results import merge_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.browser import CHROMIUM, browsing, visiting

sys.path.pop(0)

VIEWS = ("overview", "leaderboard", "plots", "methods", "rows")
DRAWN = "performance.getEntriesByName('hashbench:start')[0]"
MORE_ROWS = """() => new Promise((done) => {
    const button = document.querySelector("button[data-more]:not([hidden])");
    if (!button) return done(NaN);
    const start = performance.now();
    button.click();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


def make_rows(n_rows: int) -> list[Row]:
    """Make up so many rows of results."""
    rng = np.random.default_rng(0)
    choices = product(method_names(), range(10), (12, 16, 24, 32, 48, 64, 96, 128), range(20))
    rows = []
    for method, setting, n_bits, seed in islice(choices, n_rows):
        value, width = rng.uniform(0.2, 0.8), rng.uniform(0, 0.1)
        key = ("made-up", "features", method, json.dumps({"setting": setting}), n_bits, seed, "AP")
        texts = (f"{one:.6f}" for one in (value, width / 10, value - width, value + width))
        rows.append(Row(*key, *texts, 1000, 0, "aaaa", 1))
    return rows


def main() -> None:
    """Write the page, open it in each round, print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if CHROMIUM is None:
        raise SystemExit("there is no chromium to open the page in. Install it: apt-get install chromium.")
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        folder = Path(name)
        merge_rows(folder, make_rows(options.rows))
        begin = time.perf_counter()
        page = write_report(folder, folder / "report.html")
        seconds, size = time.perf_counter() - begin, page.stat().st_size
        print(f"{options.rows:,} rows: written in {seconds:.1f} s, {size / 1e6:.2f} MB\n")
        print("| view | by its script | since asked for | more rows |\n| --- | ---: | ---: | ---: |")
        for view in VIEWS:
            rounds = [milliseconds(browser, page, view) for _ in range(options.rounds)]
            medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
            print(f"| {view} |", " | ".join("" if np.isnan(median) else f"{median:,.0f} ms" for median in medians), "|")


def milliseconds(browser: Browser, path: Path, view: str) -> list[float]:
    """Open a view; gives milliseconds as printed, NaN of a view that shows all rows from the start."""
    with visiting(browser, path, f"#{view}", viewport={"width": 1400, "height": 900}) as page:
        page.locator(f"main#view[data-view={view}][data-ready=true]").wait_for()
        measured = (f"{DRAWN}.duration", f"{DRAWN}.startTime + {DRAWN}.duration", MORE_ROWS)
        return [page.evaluate(what) for what in measured]


if __name__ == "__main__":
    main()
