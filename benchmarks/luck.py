"""How near the estimate of luck is to what random orders show: the table of docs/explanation/closed-forms.md.

    .venv/bin/python benchmarks/luck.py [--again]

Scores cached codes of seed 0 in random orders of the database, each shared by all queries (`hashbench evaluate
--random-orders 300`): all of ``digits`` at 12 and 32 bits, some of CIFAR-10, which has more queries, and some of
``digits-pairs`` and ``tmc2007``, whose items have several labels. For a rare class the digits are relabelled: zeros and
the rest.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pages import DOCS, parser_of, put_into

from hashbench.affinity import SameLabel
from hashbench.pipeline.preparation import load_dataset
from hashbench.reports.formatting import markdown_table
from hashbench.scoring.evaluator import evaluate_packed
from hashbench.store.files import data_dir
from hashbench.store.hdf5 import open_codes, read_attributes

PAGE = DOCS / "explanation" / "closed-forms.md"
ROWS = Path(__file__).with_suffix(".csv")


class Grid(NamedTuple):
    """Codes to measure, and the number of orders."""

    dataset: str
    codes: dict[str, tuple[int, ...]]  # lengths by method; empty: all methods at 12 and 32 bits
    metrics: tuple[str, ...]
    n_orders: int
    is_relabelled: bool = False  # class 0 and the rest


ZERO = ", zero or not"
FIVE = ("lsh", "itq", "agh", "hashnet", "csq")
MULTI_LABEL = ("lsh", "itq", "cibhash", "dhn", "idhn")
GRIDS = (
    Grid("digits", {}, ("AP", "AP@1000", "NDCG", "P@100"), 300),
    Grid("cifar10-s1:squeezenet", dict.fromkeys(FIVE, (12, 48)), ("AP", "AP@1000"), 25),
    Grid("cifar10-s2:squeezenet", {"lsh": (12,), "itq": (48,)}, ("AP",), 8),
    Grid("digits", dict.fromkeys((*FIVE, "bihalf"), (12, 32, 48, 64)), ("AP", "NDCG"), 300, is_relabelled=True),
    Grid("digits-pairs", dict.fromkeys(MULTI_LABEL, (12, 32)), ("AP", "NDCG"), 100),
    Grid("tmc2007", dict.fromkeys(MULTI_LABEL, (16, 32)), ("AP", "NDCG"), 25),
)
COLUMNS = ["dataset", "method", "n_bits", "metric", "queries", "kinds", "mean", "tie_sd", "bound", "measured"]


def measure(grid: Grid) -> pd.DataFrame:
    """Measure the codes of a grid: one row per codes file and metric."""
    dataset, _ = load_dataset(grid.dataset)
    affinity = dataset.affinity()
    if grid.is_relabelled:
        is_zero = np.asarray(dataset.labels) == 0
        affinity = SameLabel(is_zero[dataset.query], is_zero[dataset.database])
    name, rows = grid.dataset + (ZERO if grid.is_relabelled else ""), []
    for path in sorted((data_dir() / "codes").glob("*/*.h5")):
        attributes = read_attributes(path)
        if (attributes["dataset_fingerprint"], attributes["seed"]) != (dataset.fingerprint, 0):
            continue
        if attributes["n_bits"] not in (grid.codes.get(str(attributes["method"]), ()) if grid.codes else (12, 32)):
            continue
        with open_codes(path) as codes:
            parts = codes.query[:], codes.database[:], codes.n_bits
        evaluation = evaluate_packed(*parts, affinity, grid.metrics, random_orders=grid.n_orders)
        counts = len(evaluation.kind), len(np.unique(evaluation.kind))
        for metric, score in evaluation.summary.items():
            numbers = score.mean, score.tie_sd, score.tie_sd_bound, score.tie_sd_measured
            rows.append([name, attributes["method"], attributes["n_bits"], metric, *counts, *numbers])
        print(name, path.stem, flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def lay_out(rows: pd.DataFrame) -> str:
    """Lay out estimate and bound over the measured deviation, by metric and length, of codes that tie at all.

    The baseline ``constant`` is left out; the page has a sentence on it.
    """
    tied = rows[(rows["measured"] > 1e-12) & (rows["method"] != "constant")]
    tied = tied.assign(
        estimate=tied["tie_sd"] / tied["measured"],
        bound=tied["bound"] / tied["measured"],
        correlation=((tied["measured"] / tied["tie_sd"]) ** 2 - 1) / (tied["queries"] - 1),
    )
    lines = []
    for (dataset, metric, n_bits), part in tied.groupby(["dataset", "metric", "n_bits"], sort=False):
        least, middle, most = part["estimate"].quantile([0, 0.5, 1])
        bound = f"{part['bound'].min():.1f} to {part['bound'].max():.1f}"
        shown = f"{least:.2f}", f"{middle:.2f}", f"{most:.2f}", bound, f"{part['correlation'].max():.3f}"
        lines.append([str(dataset), str(metric), str(n_bits), str(part["queries"].iloc[0]), str(len(part)), *shown])
    header = ["dataset", "metric", "bits", "queries", "codes", "estimate over measured: least", "median", "most"]
    return markdown_table([*header, "bound over measured", "correlation, at most"], lines, n_left=2)


def main() -> None:
    """Measure, write the rows and put the table into its page."""
    if not parser_of(__doc__).parse_args().again:
        pd.concat(map(measure, GRIDS)).to_csv(ROWS, index=False, float_format="%.6g", lineterminator="\n")
    PAGE.write_text(put_into(PAGE.read_text(), {"estimate": lay_out(pd.read_csv(ROWS))}))


if __name__ == "__main__":
    main()
