"""How near the estimate of luck is to what random orders show: the table of docs/explanation/closed-forms.md.

    .venv/bin/python benchmarks/luck.py [--again]

Codes that are kept with seed 0, scored in random orders of the database, each shared by all queries (`hashbench
evaluate --random-orders 300`): all of ``digits`` at 12 and 32 bits, and some of CIFAR-10, which has more queries.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from why_numbers_differ import put_into

from hashbench.pipeline.preparation import load_dataset
from hashbench.reports.formatting import markdown_table
from hashbench.scoring.evaluator import evaluate_packed
from hashbench.store.files import data_dir
from hashbench.store.hdf5 import open_codes, read_attributes

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "closed-forms.md"
ROWS = Path(__file__).with_suffix(".csv")


class Grid(NamedTuple):
    """Which codes are measured, and in how many orders."""

    dataset: str
    codes: dict[str, tuple[int, ...]]  # lengths by method; empty: all methods at 12 and 32 bits
    metrics: tuple[str, ...]
    n_orders: int


GRIDS = (
    Grid("digits", {}, ("AP", "AP@1000", "NDCG", "P@100"), 300),
    Grid(
        "cifar10-s1:squeezenet",
        dict.fromkeys(("lsh", "itq", "agh", "hashnet", "csq"), (12, 48)),
        ("AP", "AP@1000"),
        25,
    ),
    Grid("cifar10-s2:squeezenet", {"lsh": (12,), "itq": (48,)}, ("AP",), 8),
)
COLUMNS = ["dataset", "method", "n_bits", "metric", "queries", "kinds", "mean", "tie_sd", "bound", "measured"]


def measure(grid: Grid) -> pd.DataFrame:
    """Measure the codes of a grid, a row each and metric."""
    dataset, _ = load_dataset(grid.dataset)
    rows = []
    for path in sorted((data_dir() / "codes").glob("*/*.h5")):
        made = read_attributes(path)
        if (made["dataset_fingerprint"], made["seed"]) != (dataset.fingerprint, 0):
            continue
        if made["n_bits"] not in (grid.codes.get(str(made["method"]), ()) if grid.codes else (12, 32)):
            continue
        with open_codes(path) as codes:
            parts = codes.query[:], codes.database[:], codes.n_bits
        found = evaluate_packed(*parts, dataset.affinity(), grid.metrics, random_orders=grid.n_orders)
        counts = len(found.kind), len(np.unique(found.kind))
        for metric, one in found.summary.items():
            numbers = one.mean, one.tie_sd, one.tie_sd_bound, one.tie_sd_measured
            rows.append([grid.dataset, made["method"], made["n_bits"], metric, *counts, *numbers])
        print(grid.dataset, path.stem, flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def lay_out(rows: pd.DataFrame) -> str:
    """Lay out estimate and bound over what was measured, by metric and length, of codes that tie at all.

    Without the baseline of one code for all, of which the page has a sentence.
    """
    tied = rows[(rows["measured"] > 1e-12) & (rows["method"] != "constant")]
    tied = tied.assign(estimate=tied["tie_sd"] / tied["measured"], bound=tied["bound"] / tied["measured"])
    lines = []
    for (dataset, metric, n_bits), part in tied.groupby(["dataset", "metric", "n_bits"], sort=False):
        least, middle, most = part["estimate"].quantile([0, 0.5, 1])
        bound = f"{part['bound'].min():.1f} to {part['bound'].max():.1f}"
        shown = f"{least:.2f}", f"{middle:.2f}", f"{most:.2f}", bound
        lines.append([str(dataset), str(metric), str(n_bits), str(part["queries"].iloc[0]), str(len(part)), *shown])
    header = ["dataset", "metric", "bits", "queries", "codes", "estimate over measured: least", "median", "most"]
    return markdown_table([*header, "bound over measured"], lines, n_left=2)


def main() -> None:
    """Measure, keep the rows, make the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="only lay out the rows of the last run again")
    if not parser.parse_args().again:
        pd.concat(map(measure, GRIDS)).to_csv(ROWS, index=False, float_format="%.6g", lineterminator="\n")
    PAGE.write_text(put_into(PAGE.read_text(), {"estimate": lay_out(pd.read_csv(ROWS))}))


if __name__ == "__main__":
    main()
