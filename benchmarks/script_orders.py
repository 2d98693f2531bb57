"""What orders of ties of real scripts do, over a grid: numbers of why-numbers-differ.md, a figure of tie-ranges.md.

    .venv/bin/python benchmarks/script_orders.py [--again]

Scores the codes that `hashbench run` caches, with seed 0, in the orders of ties of the scripts of `hashbench explain`:
all codes of ``digits`` (12 to 64 bits, AP), and those of eight methods on ``cifar10-s1`` with SqueezeNet features (12,
32 and 48 bits, AP and AP@1000). The database is in its stored order, sorted by class, and shuffled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from pages import DOCS, parser_of, read_rows, write_rows
from spreads import Spread, explain_cached

from hashbench.reports.plots.style import METADATA, one_look

FIGURE = DOCS / "figures" / "three-kinds-of-ties.svg"
ROWS = Path(__file__).with_suffix(".csv")
COLUMNS = ("dataset", *Spread._fields)
EIGHT = ("lsh", "itq", "pcah", "agh", "sdh", "hashnet", "csq", "talr-ap")  # a minute each, where items are many
TEXT = 8  # points
MEAN: dict[str, Any] = {"color": "black", "marker": "o", "label": "mean over all orders of ties"}
SHUFFLE: dict[str, Any] = {"color": "#d55e00", "label": "± one shuffle deviation"}
OF_SCRIPTS: dict[str, Any] = {"color": "#0072b2", "label": "from the lowest to the highest script"}
WORST: dict[str, Any] = {"color": "#dcdcdc", "label": "worst case: each query's ties in its worst or best order"}
SHOWN = ("hashnet", "agh", "itq", "sph", "pcah", "lsh")  # in the figure, of digits at 12 bits


@dataclass(frozen=True)
class Grid:
    """Cached codes to score."""

    dataset: str
    n_bits: tuple[int, ...]
    metrics: tuple[str, ...]
    methods: tuple[str, ...] = ()  # all


GRIDS = (
    Grid("digits", (12, 16, 24, 32, 48, 64), ("AP",)),
    Grid("cifar10-s1:squeezenet", (12, 32, 48), ("AP", "AP@1000"), EIGHT),
)


def score(grid: Grid) -> list[Spread]:
    """Score the codes of a grid."""

    def report(what: str, n_done: int, n_all: int) -> None:
        print(f"{grid.dataset}: {what} ({n_done} of {n_all})", flush=True)

    return explain_cached(grid.dataset, grid.n_bits, grid.methods, metrics=grid.metrics, on_progress=report)


def as_texts(spread: Spread) -> dict[str, str]:
    """Return a row's cells, numbers with six decimals."""
    cells = spread._asdict().items()
    return {name: f"{value:.6f}" if isinstance(value, float) else str(value) for name, value in cells}


def read() -> dict[str, list[Spread]]:
    """Read the rows of the last run, by dataset."""
    by_dataset: dict[str, list[Spread]] = {}
    for row in read_rows(ROWS):
        spread = Spread(**{name: kind(row[name]) for name, kind in Spread.__annotations__.items()})
        by_dataset.setdefault(row["dataset"], []).append(spread)
    return by_dataset


def draw(rows: Sequence[Spread], path: Path) -> None:
    """Draw a dot for the mean, a thick bar for a shuffle, a thin one for scripts and a faint one for the worst case."""
    by_method = {row.method.split()[0]: row for row in rows if (row.n_bits, row.database) == (12, "by-class")}
    with one_look():
        figure = Figure(figsize=(6.2, 2.9), layout="constrained")
        axes = figure.subplots()
        names = [name for name in SHOWN if name in by_method][::-1]
        for place, name in enumerate(names):
            row = by_method[name]
            axes.barh(place, row.high - row.low, left=row.low, height=0.6, **WORST)
            axes.plot([row.lowest, row.highest], [place, place], linewidth=1.8, zorder=1, **OF_SCRIPTS)
            ends = [row.value - row.tie_sd, row.value + row.tie_sd]
            axes.plot(ends, [place, place], linewidth=11, zorder=2, solid_capstyle="butt", **SHUFFLE)
            axes.plot(row.value, place, zorder=3, markersize=2, **MEAN)
            text = f"{row.value:.3f} ± {row.tie_sd:.4f}"
            axes.annotate(text, (row.high, place), (4, -3), textcoords="offset points", size=TEXT)
        axes.set_yticks(range(len(names)), names)
        axes.set(xlim=(0.25, 1.16), ylim=(-0.6, len(names) - 0.4))
        axes.set_xlabel("AP (0 to 1): digits, 12 bits, database sorted by class", size=TEXT)
        axes.tick_params(labelsize=TEXT)
        axes.tick_params(axis="y", length=0)
        axes.set_xticks([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
        axes.grid(visible=False)
        shuffle = Line2D([], [], linestyle="none", marker="|", markersize=9, markeredgewidth=3.5, **SHUFFLE)
        handles = [
            Line2D([], [], linestyle="none", markersize=3.5, **MEAN),
            shuffle,
            Line2D([], [], linewidth=1.8, **OF_SCRIPTS),
            Patch(**WORST),
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=TEXT, handlelength=1.6)
        figure.savefig(path, metadata=METADATA["svg"])


def main() -> None:
    """Score everything, write the rows, and draw the figure."""
    if not parser_of(__doc__).parse_args().again:
        rows = [{"dataset": grid.dataset, **as_texts(spread)} for grid in GRIDS for spread in score(grid)]
        write_rows(ROWS, COLUMNS, rows)
    draw(read()["digits"], FIGURE)


if __name__ == "__main__":
    main()
