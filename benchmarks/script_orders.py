"""What orders of ties of real scripts do, over a grid: tables of docs/why-numbers-differ.md, a figure of tie-ranges.md.

    .venv/bin/python benchmarks/script_orders.py [--again]

All codes that are kept of ``digits`` (12 to 64 bits, AP), and of ``cifar10-s1`` with SqueezeNet features those of eight
methods (12, 32 and 48 bits, AP and AP@1000), seed 0, as `hashbench run` keeps them; in the orders of ties that the
scripts of `hashbench explain` have, the database as it is stored, by class, and shuffled.
"""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from why_numbers_differ import put_into

from hashbench.reports.explain.spreads import Pairs, Spread, explain_cached, pairs
from hashbench.reports.formatting import markdown_table
from hashbench.reports.plots.style import INK, METADATA, SMALL, one_look

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "why-numbers-differ.md"
FIGURE = DOCS / "figures" / "three-kinds-of-ties.svg"
ROWS = Path(__file__).with_suffix(".csv")
COLUMNS = ("dataset", *Spread._fields)
EIGHT = ("lsh", "itq", "pcah", "agh", "sdh", "hashnet", "csq", "talr-ap")  # a minute each, where items are many
SHOWN = ("hashnet", "agh", "itq", "sph", "pcah", "lsh")  # in the figure, of digits at 12 bits


@dataclass(frozen=True)
class Grid:
    """Which kept codes are explained."""

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

    def tell(what: str, n_done: int, n_all: int) -> None:
        print(f"{grid.dataset}: {what} ({n_done} of {n_all})", flush=True)

    return explain_cached(grid.dataset, grid.n_bits, grid.methods, metrics=grid.metrics, on_progress=tell)


def write(found: dict[str, list[Spread]]) -> None:
    """Keep the rows, six decimals."""
    with ROWS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for dataset, rows in found.items():
            for row in rows:
                writer.writerow([dataset, *(f"{one:.6f}" if isinstance(one, float) else one for one in row)])


def read() -> dict[str, list[Spread]]:
    """Read the rows of the last run."""
    found: dict[str, list[Spread]] = {}
    with ROWS.open(newline="") as file:
        for line in csv.DictReader(file):
            kinds = Spread.__annotations__
            row = Spread(**{name: kinds[name](line[name]) for name in Spread._fields})
            found.setdefault(line["dataset"], []).append(row)
    return found


def counts(found: dict[str, list[Spread]]) -> str:
    """Lay out how many of every two methods ties leave open, by the worst case, by luck and by scripts."""
    lines = []
    for dataset, rows in found.items():
        cells: dict[tuple[int, str], dict[str, Pairs]] = {}
        for one in pairs(rows):
            cells.setdefault((one.n_bits, one.metric), {})[one.database] = one
        for (n_bits, metric), by_order in cells.items():
            any_order = next(iter(by_order.values()))
            turned = [str(len(by_order[order].turned)) for order in ("by-class", "given", "shuffled")]
            by_class = by_order["by-class"]
            at_end = str(len(by_class.turned) + len(by_class.turned_at_end))
            numbers = any_order.n_pairs, any_order.meet, any_order.open
            lines.append([dataset, metric, str(n_bits), *map(str, numbers), *turned, at_end])
    header = ["dataset", "metric", "bits", "pairs", "ranges meet", "open by luck"]
    of_scripts = ["scripts, by class", "given", "shuffled", "by class, with end of ties"]
    return markdown_table([*header, *of_scripts], lines, n_left=2)


def draw(rows: Sequence[Spread], path: Path) -> None:
    """Draw the three kinds: a dot for the mean, a thick bar for luck, a thin one for scripts, a faint one for all."""
    chosen = {one.method.split()[0]: one for one in rows if (one.n_bits, one.database) == (12, "by-class")}
    with one_look():
        figure = Figure(figsize=(6.9, 2.3), layout="constrained")
        axes = figure.subplots()
        names = [name for name in SHOWN if name in chosen][::-1]
        for place, name in enumerate(names):
            one = chosen[name]
            axes.barh(place, one.high - one.low, left=one.low, height=0.6, color="#e4e4e4", zorder=0)
            axes.plot([one.lowest, one.highest], [place, place], color="#0072b2", linewidth=1.4, zorder=1)
            ends = [one.value - one.tie_sd, one.value + one.tie_sd]
            axes.plot(ends, [place, place], color="#d55e00", linewidth=11, zorder=2, solid_capstyle="butt")
            axes.plot(one.value, place, "o", color=INK, markersize=1.8, zorder=3)
            text = f"{one.value:.3f} ± {one.tie_sd:.4f}"
            axes.annotate(text, (one.high, place), (4, -2.5), textcoords="offset points", size=SMALL)
        axes.set_yticks(range(len(names)), names)
        axes.set(xlim=(0.25, 1.12), ylim=(-0.6, len(names) - 0.4), xlabel="AP, digits, 12 bits, database by class")
        axes.tick_params(axis="y", length=0)
        axes.set_xticks([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
        axes.grid(visible=False)
        figure.savefig(path, metadata=METADATA["svg"])


def main() -> None:
    """Score everything, keep the rows, make tables and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="only lay out the rows of the last run again")
    if not parser.parse_args().again:
        write({grid.dataset: score(grid) for grid in GRIDS})
    found = read()
    draw(found["digits"], FIGURE)
    PAGE.write_text(put_into(PAGE.read_text(), {"pairs": counts(found)}))


if __name__ == "__main__":
    main()
