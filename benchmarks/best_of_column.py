"""Whether tests against the best of a column hold their level, and their power: the table of docs/tables.md.

    .venv/bin/python benchmarks/best_of_column.py [--again]

Columns of simulated methods, 200 queries each, whose true means are known. A *false alarm* is a column in which a
method with the highest true mean is declared below the best; *found* is the share of the truly lower methods that are
declared below it. The script compares two corrections of paired t tests of single codes by Holm's method: for all
pairs, as in `hashbench tables --significance`, and for the k - 1 tests against the best, as if that had been named
beforehand.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from pages import DOCS, parser_of, put_into

from hashbench.reports.formatting import markdown_table
from hashbench.scoring.comparison import ALPHA, holm, interval

PAGE = DOCS / "tables.md"
SHOWN = 22  # methods in a column of the page's table; the rows have all sizes
ROWS = Path(__file__).with_suffix(".csv")
N_QUERIES, N_COLUMNS = 200, 2000

Scores = npt.NDArray[np.float64]  # (n_methods, N_QUERIES)
Means = npt.NDArray[np.float64]  # (n_methods,), the true ones
Draw = Callable[[np.random.Generator, int], tuple[Scores, Means]]


def equal(rng: np.random.Generator, n_methods: int) -> tuple[Scores, Means]:
    """Draw scores of methods that are all equal: the query's own level, and normal noise."""
    level = rng.uniform(0.2, 0.8, N_QUERIES)
    return level + rng.normal(0, 0.1, (n_methods, N_QUERIES)), np.zeros(n_methods)


def heavy_tailed(rng: np.random.Generator, n_methods: int) -> tuple[Scores, Means]:
    """Draw scores of equal methods whose noise is exponential: differences of two are symmetric, with heavy tails."""
    level = rng.uniform(0.2, 0.8, N_QUERIES)
    return level + rng.exponential(0.1, (n_methods, N_QUERIES)), np.zeros(n_methods)


def rare_losses(rng: np.random.Generator, n_methods: int) -> tuple[Scores, Means]:
    """Draw scores of equal means; half of the methods lose .6 on 2 % of queries, so that differences are skewed."""
    scores = rng.uniform(0.2, 0.8, N_QUERIES) + rng.normal(0, 0.02, (n_methods, N_QUERIES))
    losing = np.arange(n_methods) >= (n_methods + 1) // 2
    scores[losing] += 0.6 * (0.02 - (rng.random((losing.sum(), N_QUERIES)) < 0.02))
    return scores, np.zeros(n_methods)


def half(rng: np.random.Generator, n_methods: int) -> tuple[Scores, Means]:
    """Draw scores of methods half of which are equally best; the others are far below, and vary three times as much."""
    scores, means = equal(rng, n_methods)
    below = np.arange(n_methods) >= (n_methods + 1) // 2
    means[below] = -0.1
    scores[below] = scores[below] + means[below, None] + rng.normal(0, 0.28, (below.sum(), N_QUERIES))
    return scores, means


def steps(rng: np.random.Generator, n_methods: int) -> tuple[Scores, Means]:
    """Draw scores of methods each .01, a standard error of their difference, below the one before."""
    scores, _ = equal(rng, n_methods)
    means = -0.01 * np.arange(n_methods)
    return scores + means[:, None], means


KINDS: dict[str, Draw] = {
    "all equal": equal,
    "all equal, heavy tails": heavy_tailed,
    "equal means, half with rare losses": rare_losses,
    "half equally best": half,
    "each .01 below the last": steps,
}


def p_values_of(differences: Scores) -> npt.NDArray[np.float64]:
    """Return the p values of paired t tests."""
    variances = differences.var(axis=1, ddof=1) / N_QUERIES
    return interval(differences.mean(axis=1), variances, N_QUERIES - 1)[2]


def by_all_pairs(scores: Scores, best: int) -> npt.NDArray[np.bool_]:
    """Return which methods are declared below the best by Holm's correction of all pairs."""
    first, second = np.triu_indices(len(scores), 1)
    corrected = holm(p_values_of(scores[first] - scores[second]))
    declared = np.zeros(len(scores), dtype=bool)
    is_of_best = (first == best) | (second == best)
    declared[(first + second - best)[is_of_best]] = corrected[is_of_best] < ALPHA
    return declared


def by_best_alone(scores: Scores, best: int) -> npt.NDArray[np.bool_]:
    """Return which methods are declared below the best by Holm's correction of the tests against it."""
    others = np.delete(np.arange(len(scores)), best)
    declared = np.zeros(len(scores), dtype=bool)
    declared[others] = holm(p_values_of(scores[best] - scores[others])) < ALPHA
    return declared


TESTS = {"all pairs": by_all_pairs, "only best": by_best_alone}


def simulate() -> pd.DataFrame:
    """Simulate columns of each kind and number of methods, a row each."""
    rows = []
    for kind, draw in KINDS.items():
        for n_methods in (2, 10, 22, 35):
            rng, n_lower = np.random.default_rng(0), 0
            alarms, detections = dict.fromkeys(TESTS, 0), dict.fromkeys(TESTS, 0)
            for _ in range(N_COLUMNS):
                scores, means = draw(rng, n_methods)
                best, is_top = int(scores.mean(axis=1).argmax()), means == means.max()
                n_lower += (~is_top).sum()
                for name, test in TESTS.items():
                    declared = test(scores, best)
                    alarms[name] += bool(declared[is_top].any())
                    detections[name] += int(declared[~is_top].sum())
            shares = {f"{name}: false alarms": alarms[name] / N_COLUMNS for name in TESTS}
            shares |= {f"{name}: found": detections[name] / n_lower if n_lower else np.nan for name in TESTS}
            rows.append({"methods are": kind, "methods": n_methods, **shares})
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def lay_out(rows: pd.DataFrame) -> str:
    """Lay out shares of columns of SHOWN methods as percentages."""
    shown = rows[rows["methods"] == SHOWN].drop(columns="methods")
    lines = [
        [kind, *("" if pd.isna(share) else f"{share:.1%}" for share in shares)]
        for kind, *shares in shown.itertuples(index=False)
    ]
    return markdown_table(list(shown.columns), lines, n_left=1)


def main() -> None:
    """Simulate, write the rows and put the table into its page."""
    if not parser_of(__doc__).parse_args().again:
        simulate().to_csv(ROWS, index=False, float_format="%.6g", lineterminator="\n")
    PAGE.write_text(put_into(PAGE.read_text(), {"best": lay_out(pd.read_csv(ROWS))}))


if __name__ == "__main__":
    main()
