"""Why numbers differ: the table of spreads and the figure of docs/why-numbers-differ.md.

    .venv/bin/python benchmarks/why_numbers_differ.py [--again]

Scores the same codes by the scripts of `hashbench explain`, with the database in three orders. The codes are of
``cifar10-s1`` with SqueezeNet features (``hashbench prepare cifar10-s1 --features squeezenet``): LSH, ITQ and HashNet
at 12 and 32 bits, and "classifier": the class that a linear classifier predicts, one-hot in 10 bits.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from pages import DOCS, parser_of, read_rows, write_rows
from sklearn.linear_model import RidgeClassifier

from hashbench.bits import pack
from hashbench.dataset import Dataset
from hashbench.pipeline.grid import grid
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.steps import codes_of
from hashbench.reports.explain.emulation import explain
from hashbench.reports.explain.orders import rearranged
from hashbench.reports.explain.scripts import EVALUATORS, named, twins_of
from hashbench.reports.formatting import markdown_table
from hashbench.reports.plots.style import INK, METADATA, one_look

FIGURE = DOCS / "figures" / "why-numbers-differ.svg"
ROWS = Path(__file__).with_suffix(".csv")
DATASET = "cifar10-s1:squeezenet"
METRICS = ("AP", "AP@1000", "AP@5000")
ORDERS = ("given", "by-class", "shuffled")
TIES_ALONE = {  # scripts that differ only in the order of ties
    "AP": ("calc-map", "orthohash", "fire", "ratio-baseline", "torchmetrics-map", "trec_eval"),
    **dict.fromkeys(
        ("AP@1000", "AP@5000"),
        ("calc-top-map", "calc-top-map-here", "orthohash", "fire", "treezzz", "deepbit", "torchmetrics-map"),
    ),
}
SHOWN = ("AP@1000", "classifier-10")  # in the figure
NAMES = {"calc-top-map": "calc-top-map, NumPy < 1.25", "calc-top-map-here": "calc-top-map, NumPy 2.4"}  # in the figure
VERSIONS = {"calc-top-map-here"}  # the same script with another NumPy
NUMBERS = {5: "five", 6: "six", 7: "seven"}
SORTED, SHUFFLED, LARGE = "#c04f00", "#0072b2", 8.5  # colours; points
SCRIPTS = [  # on these codes
    script
    for original in EVALUATORS
    for script in (original, *twins_of([original]))
    if script.twin_of in ("", "calc-top-map", "hashnet")
]
COLUMNS = ("codes", "order", "metric", "script", "value", "exact", "low", "high", "causes")


def all_codes(dataset: Dataset) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Yield names, packed codes of queries and database, and their length."""
    yield "classifier-10", *by_classifier(dataset), 10
    for job in grid([DATASET], ["lsh", "itq", "hashnet"], [12, 32], [0], {}):
        with codes_of(dataset, job) as (codes, _):
            yield f"{job.method}-{job.n_bits}", codes.query[:], codes.database[:], job.n_bits


def by_classifier(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Learn classes from the training items; the code of an item is its class, one bit of ten."""
    features, labels = np.asarray(dataset.features), np.asarray(dataset.labels)
    classifier = RidgeClassifier().fit(features[dataset.train], labels[dataset.train])
    query, database = (
        classifier.predict(features[rows])[:, None] == np.arange(10) for rows in (dataset.query, dataset.database)
    )
    return pack(query), pack(database)


def rows_of(dataset: Dataset) -> Iterator[dict[str, str]]:
    """Score all codes in all orders; those of the figure by all scripts."""
    ties = [named(name) for name in dict.fromkeys(name for names in TIES_ALONE.values() for name in names)]
    for name, query, database, n_bits in all_codes(dataset):
        for order in ORDERS:
            ordered, affinity = rearranged(database, dataset.affinity(), order)
            scripts = SCRIPTS if name == SHOWN[1] else ties
            for explanation in explain(query, ordered, n_bits, affinity, METRICS, scripts):
                causes = "; ".join(f"{cause.words} {cause.share:+.6f}" for cause in explanation.causes)
                numbers = (f"{number:.6f}" for number in (explanation.value, *explanation.exact))
                values = (name, order, explanation.metric, explanation.evaluator.name, *numbers, causes)
                yield dict(zip(COLUMNS, values, strict=True))
            print(name, order, flush=True)


def spreads(rows: Sequence[dict[str, str]]) -> str:
    """Lay out how far scripts lie apart only by the order of ties, beside the exact value, in the shown metric."""
    cells: dict[str, dict[str, tuple[float, float, str]]] = defaultdict(dict)
    for row in rows:
        if row["metric"] != SHOWN[0] or row["script"] not in TIES_ALONE[SHOWN[0]]:
            continue
        cell, value = cells[row["codes"]], float(row["value"])
        low, high, _ = cell.get(row["order"], (1.0, 0.0, ""))
        shown = f"{float(row['exact']):.3f} ({float(row['low']):.3f} to {float(row['high']):.3f})"
        cell[row["order"]] = min(low, value), max(high, value), shown
    return markdown_table(
        ("codes", "exact (range of ties)", *(f"scripts, {order}" for order in ORDERS[1:])),
        [
            (codes, cell["given"][2], *(f"{cell[order][0]:.3f} to {cell[order][1]:.3f}" for order in ORDERS[1:]))
            for codes, cell in cells.items()
        ],
        n_left=1,
    )


def draw(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Draw what scripts give that differ only in the order of ties, in two orders of the database, and the exact value.

    Scripts that order ties alike share a row.
    """
    metric, _ = SHOWN
    shown = [row for row in rows if (row["metric"], row["codes"]) == SHOWN and row["script"] in TIES_ALONE[metric]]
    exact, low, high = (float(shown[0][key]) for key in ("exact", "low", "high"))
    pairs: dict[str, dict[str, float]] = defaultdict(dict)
    for row in shown:
        pairs[row["script"]][row["order"]] = float(row["value"])
    names: dict[tuple[float, float], list[str]] = defaultdict(list)
    for script in TIES_ALONE[metric]:
        names[pairs[script]["by-class"], pairs[script]["shuffled"]].append(NAMES.get(script, script))
    in_order = sorted(names, reverse=True)
    places = range(len(in_order))
    n_scripts = len(set(TIES_ALONE[metric]) - VERSIONS)
    with one_look():
        figure = Figure(figsize=(5.4, 2.75), layout="constrained")
        axes = figure.subplots()
        figure.suptitle(
            f"The same codes, {NUMBERS[n_scripts]} scripts, one exact value", x=0.02, ha="left", size=11, weight="bold"
        )
        axes.axvline(exact, color="black", linewidth=1.1, zorder=1)
        by_class, shuffled = zip(*in_order, strict=True)
        axes.hlines(places, by_class, [exact] * len(in_order), color=SORTED, linewidth=1.1, alpha=0.5, zorder=1)
        hollow = {"markerfacecolor": "white", "markeredgewidth": 1.3}
        axes.plot(shuffled, places, "D", color=SHUFFLED, markersize=5, label="shuffled database", zorder=2, **hollow)
        axes.plot(by_class, places, "o", color=SORTED, markersize=6.5, label="database sorted by class", zorder=3)
        beside = {"textcoords": "offset points", "va": "center", "size": LARGE}
        for place, value in enumerate(by_class):
            side = {"xytext": (7, 0)} if value > exact else {"xytext": (-7, 0), "ha": "right"}
            axes.annotate(f"{value:.3f}", (value, place), color=SORTED, **side, **beside)
        last = len(in_order) + 0.3
        axes.hlines(last, low, high, color="black", linewidth=0.9, alpha=0.6)
        for end in (low, high):
            axes.plot(end, last, "|", color="black", markersize=6, alpha=0.6)
        axes.plot(exact, last, "s", color="black", markersize=6.5)
        axes.annotate(f"{exact:.3f}", (exact, last), xytext=(6, 9), color="black", weight="bold", **beside)
        axes.annotate(f"lowest {low:.3f}", (low, last), xytext=(0, 9), ha="left", color=INK, **beside)
        axes.annotate(f"highest {high:.3f}", (high, last), xytext=(0, 9), ha="right", color=INK, **beside)
        axes.set_yticks([*places, last], [*(", ".join(names[pair]) for pair in in_order), "hashbench, all orders"])
        axes.get_yticklabels()[-1].set_weight("bold")
        axes.set(xlim=(-0.02, 1.02), ylim=(last + 0.45, -0.6))
        axes.set_xlabel(f"{metric} (0 to 1)", size=LARGE)
        axes.tick_params(labelsize=LARGE)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=False)
        axes.legend(
            handles=axes.get_lines()[2:0:-1], fontsize=LARGE, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2
        )
        figure.savefig(path, metadata=METADATA["svg"])


def main() -> None:
    """Score everything, write the rows, and draw the figure."""
    if not parser_of(__doc__).parse_args().again:
        dataset, _ = load_dataset(DATASET)
        write_rows(ROWS, COLUMNS, list(rows_of(dataset)))
    draw(read_rows(ROWS), FIGURE)


if __name__ == "__main__":
    main()
