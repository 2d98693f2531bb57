"""How near the estimate of luck is to what random orders show: the table of docs/explanation/closed-forms.md.

    .venv/bin/python benchmarks/luck.py [--again]

All codes of ``digits`` that are kept with seed 0, at 12 and 32 bits, scored in 300 random orders of the database, each
shared by the 200 queries (`hashbench evaluate --random-orders 300`).
"""

import argparse
from pathlib import Path

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
METRICS = ("AP", "AP@1000", "NDCG", "P@100")
N_BITS = (12, 32)
N_ORDERS = 300


def measure() -> pd.DataFrame:
    """Measure all codes, a row each and metric."""
    dataset, _ = load_dataset("digits")
    rows = []
    for path in sorted((data_dir() / "codes").glob("*/*.h5")):
        made = read_attributes(path)
        if (made["dataset_fingerprint"], made["seed"]) != (dataset.fingerprint, 0) or made["n_bits"] not in N_BITS:
            continue
        with open_codes(path) as codes:
            parts = codes.query[:], codes.database[:], codes.n_bits
        found = evaluate_packed(*parts, dataset.affinity(), METRICS, random_orders=N_ORDERS)
        n_kinds = len(np.unique(found.kind))
        for metric, one in found.summary.items():
            numbers = one.mean, one.tie_sd, one.tie_sd_bound, one.tie_sd_measured
            rows.append([made["method"], made["n_bits"], metric, n_kinds, *numbers])
        print(path.stem, flush=True)
    return pd.DataFrame(rows, columns=["method", "n_bits", "metric", "kinds", "mean", "tie_sd", "bound", "measured"])


def lay_out(rows: pd.DataFrame) -> str:
    """Lay out estimate and bound over what was measured, by metric and length, of codes that tie at all.

    Without the baseline of one code for all, of which the page has a sentence.
    """
    tied = rows[(rows["measured"] > 1e-12) & (rows["method"] != "constant")]
    tied = tied.assign(estimate=tied["tie_sd"] / tied["measured"], bound=tied["bound"] / tied["measured"])
    lines = []
    for (metric, n_bits), part in tied.groupby(["metric", "n_bits"], sort=False):
        least, middle, most = part["estimate"].quantile([0, 0.5, 1])
        bound = f"{part['bound'].min():.1f} to {part['bound'].max():.1f}"
        shown = f"{least:.2f}", f"{middle:.2f}", f"{most:.2f}", bound
        lines.append([str(metric), str(n_bits), str(len(part)), *shown])
    header = ["metric", "bits", "codes", "estimate over measured: least", "median", "most", "bound over measured"]
    return markdown_table(header, lines)


def main() -> None:
    """Measure, keep the rows, make the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="only lay out the rows of the last run again")
    if not parser.parse_args().again:
        measure().to_csv(ROWS, index=False, float_format="%.6g", lineterminator="\n")
    PAGE.write_text(put_into(PAGE.read_text(), {"estimate": lay_out(pd.read_csv(ROWS))}))


if __name__ == "__main__":
    main()
