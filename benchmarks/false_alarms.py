"""How often two trainings of the same method are called different: two tables of RESULTS.md.

    .venv/bin/python benchmarks/false_alarms.py

Trains each method with many seeds (`hashbench run`, so that a second call finds them), draws seeds and queries with
replacement for two sides, and compares the sides: by `hashbench.compare`, over queries and seeds together, and by a
paired t test over queries of the means over seeds. A share near .05 is right. *Found* adds a known difference to one
side and counts how often it is shown, beside the power of a t test with the degrees of freedom that only seeds give.
The last rows are of simulated scores, some with rare large losses. A second table, drawn anew each time, is of tests of
simulated means of seeds, without queries, with unequal numbers of seeds on both sides.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import nct, t, ttest_1samp

import hashbench
from hashbench.reports.formatting import markdown_table
from hashbench.scoring.comparison import ALPHA, combined, interval, moments, of_scores
from hashbench.store.result_rows import as_row
from hashbench.store.score_cache import find_scores

ROWS = Path(__file__).with_suffix(".csv")
N_SEEDS = {"lsh": 60, "itq": 60, "hashnet": 30, "csq": 30}  # trained
DATASETS = ("digits", "tmc2007")
N_DRAWS = 1000
NUMBERS = (2, 2), (3, 3), (10, 10), (2, 3), (2, 10), (3, 10), (5, 10)  # of seeds of both sides
SPREADS = 1.0, 0.1, 10.0  # of the seeds of the second side, those of the first being 1
N_MEANS = 50_000  # draws of each
ADDED = 3  # standard deviations of the mean difference, added to one side
COLUMNS = ["scores", "dataset", "queries", "seeds", "false_alarms", "paired", "found"]

Scores = npt.NDArray[np.float64]  # (n_seeds, n_queries)
Draw = Callable[[np.random.Generator], tuple[Scores, Scores]]


def trained(method: str, dataset: str) -> Scores:
    """Return AP of every query for every seed at 32 bits."""
    rows = hashbench.run(method, 32, dataset, seeds=range(N_SEEDS[method]), metrics="AP", n_jobs=-1)
    scores = [find_scores(as_row(row)) for row in rows.to_dict("records")]
    return np.stack([values for values in scores if values is not None])


def of_method(scores: Scores, n_seeds: int) -> Draw:
    """Return a function that draws two sides of one method: other seeds, the same queries."""
    scores = scores[:, ~np.isnan(scores[0])]

    def draw(rng: np.random.Generator) -> tuple[Scores, Scores]:
        queries = rng.integers(scores.shape[1], size=scores.shape[1])
        seeds = rng.permutation(len(scores))[: 2 * n_seeds]
        return scores[seeds[:n_seeds]][:, queries], scores[seeds[n_seeds:]][:, queries]

    return draw


def simulated(n_seeds: int, n_queries: int, seed_sd: float, lost: float = 0.0) -> Draw:
    """Return a function that draws two sides of equal mean; the first loses .6 on a share of queries, in all seeds."""

    def draw(rng: np.random.Generator) -> tuple[Scores, Scores]:
        sides = rng.normal(0, 0.05, (2, n_seeds, n_queries)) + rng.normal(0, seed_sd, (2, n_seeds, 1))
        loss = 0.6 * (rng.random(n_queries) < lost)
        return sides[0] + 0.6 * lost - loss, sides[1]

    return draw


def measure(name: str, dataset: str, n_seeds: int, draw: Draw) -> dict[str, object]:
    """Count false alarms and found differences over the draws."""
    rng = np.random.default_rng(0)
    alarms, paired, means, n_queries = [], [], [], 0
    for _ in range(N_DRAWS):
        first, second = draw(rng)
        n_queries = first.shape[1]
        alarms.append(of_scores(first, second, "AP", ("a", "b"), (n_seeds, n_seeds), 0.0).is_shown)
        paired.append(ttest_1samp(first.mean(axis=0) - second.mean(axis=0), 0).pvalue < ALPHA)
        means.append(moments(first, second).value)
    sd = float(np.std(means))
    added, rng, found = ADDED * sd, np.random.default_rng(1), []
    for _ in range(N_DRAWS // 4):
        first, second = draw(rng)
        found.append(of_scores(first + added, second, "AP", ("a", "b"), (n_seeds, n_seeds), 0.0).is_shown)
    values = name, dataset, n_queries, n_seeds, np.mean(alarms), np.mean(paired), np.mean(found)
    return dict(zip(COLUMNS, values, strict=True))


def power(n_seeds: int) -> float:
    """Return how often a t test shows what is added, if its variance is known from the seeds of both sides only."""
    freedom = 2 * (n_seeds - 1)
    return float(nct.sf(t.ppf(1 - ALPHA / 2, freedom), freedom, ADDED))


def run() -> pd.DataFrame:
    """Measure methods on datasets, then simulated scores."""
    rows = []
    for dataset in DATASETS:
        for method in N_SEEDS:
            scores = trained(method, dataset)
            rows += [measure(method, dataset, n_seeds, of_method(scores, n_seeds)) for n_seeds in (3, 5, 10)]
            print(rows[-1], flush=True)
    for lost in (0.0, 0.02):
        for seed_sd in (0.0, 0.01):
            name = "normal" + f", {lost:.0%} of queries lose .6" * (lost > 0)
            rows += [
                measure(f"{name}, seeds {seed_sd:g}", "simulated", n, simulated(n, 200, seed_sd, lost))
                for n in (3, 5, 10)
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def lay_out(rows: pd.DataFrame) -> str:
    """Lay out the shares; a cell has those of all numbers of seeds."""

    def join(shares: Iterable[float], digits: int) -> str:
        return ", ".join(f"{share:.{digits}f}" for share in shares)

    lines = [
        [scores, dataset, join(part["false_alarms"], 3), join(part["paired"], 3), join(part["found"], 2)]
        for (scores, dataset), part in rows.groupby(["scores", "dataset"], sort=False)
    ]
    theory = join(map(power, rows["seeds"].unique()), 2)
    header = ["scores", "dataset", "false alarms", "of a paired test", f"found (in theory {theory})"]
    return markdown_table(header, lines, n_left=2)


def of_seed_means(n_first: int, n_second: int, spread: float) -> tuple[float, float]:
    """Return the false alarms over seeds only: by Welch's degrees of freedom, and by those of `hashbench.compare`."""
    rng = np.random.default_rng(0)
    sides = rng.normal(0, 1, (N_MEANS, n_first)), rng.normal(0, spread, (N_MEANS, n_second))
    values = sides[0].mean(axis=1) - sides[1].mean(axis=1)
    parts = np.stack([side.var(axis=1, ddof=1) / side.shape[1] for side in sides], axis=1)
    degrees = [n_first - 1, n_second - 1]
    welch, ours = (
        float((interval(values, *combined(parts, degrees, False if is_welch else None))[2] < ALPHA).mean())
        for is_welch in (True, False)
    )
    return welch, ours


def lay_out_seed_means() -> str:
    """Measure and lay out the false alarms over seeds only; a cell has those of all spreads."""
    lines = []
    for numbers in NUMBERS:
        columns = zip(*(of_seed_means(*numbers, spread) for spread in SPREADS), strict=True)
        lines.append([" and ".join(map(str, numbers)), *(", ".join(f"{x:.2f}" for x in column) for column in columns)])
    return markdown_table(
        ["seeds", "by Satterthwaite's degrees of freedom", "by those of fewer seeds"], lines, n_left=1
    )


def main() -> None:
    """Measure, and write the rows."""
    run().to_csv(ROWS, index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    main()
