"""How near the shuffle deviation is to random orders: rows for two tables of RESULTS.md (`make numbers`).

    .venv/bin/python benchmarks/shuffles.py

Scores cached codes of seed 0 in random orders of the database, the same for all codes (`hashbench evaluate
--random-orders 300`): all of ``digits`` at 12 and 32 bits, some of CIFAR-10, which has more queries, and some of
``digits-pairs`` and ``tmc2007``, whose items have several labels. For a rare class the digits are relabelled: zeros and
the rest. Then every two codes that are apart under a shuffle are compared in each order.
"""

from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from hashbench.affinity import Affinity, SameLabel
from hashbench.pipeline.preparation import load_dataset
from hashbench.reports.formatting import markdown_table
from hashbench.reports.marks import SHUFFLE, Score, compare
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.problem import Problem
from hashbench.store.artifact import read_record
from hashbench.store.files import data_dir
from hashbench.store.hdf5 import open_codes

ROWS = Path(__file__).with_suffix(".csv")
PAIRS = Path(__file__).with_name("shuffled_pairs.csv")


class Grid(NamedTuple):
    """Codes to measure, and the number of orders."""

    dataset: str
    codes: dict[str, tuple[int, ...]]  # lengths by method; empty: all methods at 12 and 32 bits
    metrics: tuple[str, ...]
    n_orders: int
    n_queries: int | None = None  # the first so many; None: all
    is_relabelled: bool = False  # class 0 and the rest


ZERO = ", zero or not"
FIVE = ("lsh", "itq", "agh", "hashnet", "csq")
MULTI_LABEL = ("lsh", "itq", "cibhash", "dhn", "idhn")
GRIDS = (
    Grid("digits", {}, ("AP", "AP@1000", "NDCG", "P@100", "RPrec", "RR"), 300),
    Grid("digits", dict.fromkeys((*FIVE, "bihalf"), (12, 32, 48, 64)), ("AP", "NDCG"), 300, is_relabelled=True),
    Grid("digits-pairs", dict.fromkeys(MULTI_LABEL, (12, 32)), ("AP", "NDCG", "P@100"), 300),
    Grid("tmc2007", {"lsh": (16, 32), "itq": (16, 32), "hashnet": (32,), "csq": (32,)}, ("AP", "NDCG"), 100, 500),
    Grid("cifar10-s1:squeezenet", dict.fromkeys(FIVE, (12, 48)), ("AP", "AP@1000", "NDCG"), 100),
    Grid("cifar10-s2:squeezenet", {"lsh": (12,), "itq": (48,)}, ("AP",), 25),
)
COLUMNS = ["dataset", "method", "n_bits", "metric", "queries", "kinds", "orders", "mean"]
DEVIATIONS = ["tie_sd", "tie_sd_low", "tie_sd_bound", "tie_sd_measured"]


def measure(grid: Grid) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure the codes of a grid: one row per codes file and metric, and one per metric on pairs of codes."""
    dataset, _ = load_dataset(grid.dataset)
    affinity = dataset.affinity()
    if grid.is_relabelled:
        is_zero = np.asarray(dataset.labels) == 0
        affinity = SameLabel(is_zero[dataset.query], is_zero[dataset.database])
    affinity = affinity.part(slice(0, grid.n_queries))
    name, codes_of = grid.dataset + (ZERO if grid.is_relabelled else ""), {}
    for path in sorted((data_dir() / "codes").glob("*/*.h5")):
        made = read_record(path)
        lengths = grid.codes.get(str(made["method"]), ()) if grid.codes else (12, 32)
        if (made["dataset_fingerprint"], made["seed"]) == (dataset.fingerprint, 0) and made["n_bits"] in lengths:
            codes_of[str(made["method"]), int(made["n_bits"])] = path
    print(name, f"{len(codes_of)} codes", flush=True)
    score_one = delayed(partial(shuffled, affinity=affinity, grid=grid))
    evaluations = Parallel(n_jobs=-1)(map(score_one, codes_of.values()))
    rows = []
    for place, evaluation in zip(codes_of, evaluations, strict=True):
        counts = len(evaluation.kind), len(np.unique(evaluation.kind)), grid.n_orders
        for metric, score in evaluation.summary.items():
            rows.append([name, *place, metric, *counts, score.mean, *(getattr(score, sd) for sd in DEVIATIONS)])
    pairs = [of_pairs(name, metric, evaluations) for metric in grid.metrics]
    return pd.DataFrame(rows, columns=[*COLUMNS, *DEVIATIONS]), pd.DataFrame(pairs)


def shuffled(path: Path, affinity: Affinity, grid: Grid) -> Evaluation:
    """Score a codes file, also under random orders."""
    with open_codes(path) as codes:
        parts = codes.query[:], codes.database[:], codes.n_bits
    query, *database = parts
    return Problem.of_packed(query[: grid.n_queries], *database, affinity).evaluate(
        grid.metrics, random_orders=grid.n_orders
    )


def of_pairs(dataset: str, metric: str, evaluations: list[Evaluation]) -> dict[str, object]:
    """Count the pairs that are apart under a shuffle, and those whose order any random order turns round."""
    sides = [
        (Score(score.mean, score.tie_sd, score.low, score.high), evaluation.random_orders[metric])
        for evaluation in evaluations
        for score in [evaluation.summary[metric]]
    ]
    turned, least = [], np.inf  # the share of orders that turn each pair
    pairs = list(combinations(sides, 2))
    for (first, of_first), (second, of_second) in pairs:
        if compare(first, second) == SHUFFLE:
            difference = (of_first - of_second) * np.sign(first.value - second.value)
            turned.append((difference < -1e-12).mean())
            deviation = difference.std(ddof=1)
            least = min(least, difference.mean() / deviation) if deviation > 1e-12 else least
    counts = {"pairs": len(pairs), "apart": len(turned), "turned": np.count_nonzero(turned)}
    return {"dataset": dataset, "metric": metric, **counts, "share": max(turned, default=0.0), "least": least}


def lay_out(rows: pd.DataFrame) -> str:
    """Lay out estimate and bounds over the measured deviation, by dataset and metric, of codes whose order matters.

    The baseline ``constant`` is left out; the page has a sentence on it.
    """
    tied = rows[(rows["tie_sd_measured"] > 1e-7) & (rows["method"] != "constant")]
    ratios = tied[DEVIATIONS[:3]].div(tied["tie_sd_measured"], axis=0)
    lines = []
    for (dataset, metric), part in ratios.groupby([tied["dataset"], tied["metric"]], sort=False):
        shares = (f"{share:.2f}" for share in part["tie_sd"].quantile([0, 0.5, 1]))
        bounds = f"{part['tie_sd_low'].median():.2f}", f"{part['tie_sd_bound'].median():.2f}"
        orders = str(tied.loc[part.index, "orders"].iloc[0])
        lines.append([str(dataset), str(metric), str(len(part)), orders, *shares, *bounds])
    header = ["dataset", "metric", "codes", "orders", "estimate over measured: least", "median", "most"]
    return markdown_table([*header, "lower bound, median", "upper bound, median"], lines, n_left=2)


def lay_out_pairs(pairs: pd.DataFrame) -> str:
    """Lay out the pairs that are apart under a shuffle, by metric."""
    header = ["metric", "pairs", "apart under a shuffle", "reversed by an order", "by what share", "nearest"]
    lines = []
    for metric, part in pairs.groupby("metric"):
        counts = (f"{part[name].sum():,}" for name in ("pairs", "apart", "turned"))
        share = f"at most {part['share'].max():.3f}" if part["turned"].any() else "-"
        lines.append([str(metric), *counts, share, f"{part['least'].min():.1f}"])
    return markdown_table(header, lines, n_left=1)


def main() -> None:
    """Measure, and write the rows."""
    for path, tables in zip((ROWS, PAIRS), zip(*map(measure, GRIDS), strict=True), strict=True):
        pd.concat(tables).to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main()
