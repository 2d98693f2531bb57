"""Which orders of two methods, as the papers' tables rank them, hold of the committed rows: for docs/findings.md.

    .venv/bin/python benchmarks/published_orders.py [TABLE]

Two methods are compared if one table of a paper orders them at one code length, on networks of one class, and our rows
of one dataset and kind of features have both; of several kinds, the one with more seeds counts. The order *holds* or is
*turned* if ours are apart in every order of ties or under a shuffle (`hashbench.reports.marks`), else it is *open*.
Without TABLE the script counts the orders of each table of `hashbench tables`; with one it lists them as CSV.
"""

import argparse
import csv
import itertools
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from hashbench.reports.marks import EVERY_ORDER, OPEN, SHUFFLE, UNKNOWN, compare
from hashbench.reports.row_origins import read_results_with_origins
from hashbench.reports.tables import LAYOUTS, make_table
from hashbench.reports.tables.published import Pair, Published, is_large, make_pairs, nearest

RESULTS = Path(__file__).parents[1] / "results"
VERDICTS = {
    ("holds", EVERY_ORDER): "hold in every order of ties",
    ("holds", SHUFFLE): "hold under a shuffle",
    ("turned", EVERY_ORDER): "are turned in every order of ties",
    ("turned", SHUFFLE): "are turned under a shuffle",
    ("open", OPEN): "are not apart under a shuffle",
    ("open", UNKNOWN): "are unknown, as a row lacks tie_sd",
}


class PaperOrder(NamedTuple):
    """Two methods that a paper ranks, each with our cell."""

    higher: Pair
    lower: Pair

    @property
    def verdict(self) -> tuple[str, str]:
        """A key of ``VERDICTS``: what became of the order, and what `hashbench.reports.marks` answers about ours."""
        ours, other = self.higher.cell, self.lower.cell
        answer = str(compare(ours, other))
        if answer in (OPEN, UNKNOWN):
            return "open", answer
        return "holds" if ours.value > other.value else "turned", answer

    @property
    def published(self) -> tuple[object, ...]:
        """What the paper orders: equal for its orders that several blocks of ours have."""
        paper = self.higher.published
        return paper.source, paper.table, paper.setting, paper.our_metric, paper.n_bits, self.names

    @property
    def names(self) -> tuple[str, str]:
        """The paper's names of the two, the higher first."""
        return self.higher.published.method, self.lower.published.method

    @property
    def n_seeds(self) -> int:
        """How many seeds the one with fewer has."""
        return int(min(self.higher.cell.n_seeds, self.lower.cell.n_seeds))

    @property
    def differs(self) -> str:
        """What differs from the paper, besides the code: once what does of both."""
        phrases = [[text for _, text in pair.differs] for pair in (self.higher, self.lower)]
        return "; ".join(dict.fromkeys(itertools.chain(*phrases)))

    @property
    def row(self) -> dict[str, object]:
        """What the paper and we have of the two, by column."""
        paper, cell = self.higher.published, self.higher.cell
        row = {name: getattr(paper, name) for name in ("source", "table", "dataset", "setting", "metric", "n_bits")}
        row |= {f"our_{name}": getattr(cell, name) for name in ("dataset", "features", "metric")}
        row["dataset_fingerprint"] = cell.dataset_fingerprint
        for side, pair in (("higher", self.higher), ("lower", self.lower)):
            row |= {side: pair.published.method, f"published_{side}": pair.published.value}
            row |= {f"our_{side}": pair.cell.method, f"ours_{side}": f"{pair.cell.value:.6f}"}
            row[f"our_params_{side}"] = pair.cell.params
        row["verdict"], row["ties"] = self.verdict
        return row | {"differs": self.differs}


def make_orders(cells: pd.DataFrame, published: Sequence[Published]) -> list[PaperOrder]:
    """List every two methods that one table of a paper orders, on networks of one class, with cells of one block.

    Each order is listed once, of the block with the most seeds. Numbers that a table quotes from several papers order
    no two methods.
    """
    tables: dict[tuple[Any, ...], list[Pair]] = {}
    for value, pairs in make_pairs(cells, [value for value in published if value.whose != "authors, quoted"]):
        table = value.source, value.table, value.setting, is_large(value.backbone)
        column = value.our_dataset, value.our_metric, value.n_bits
        for pair in pairs:
            key = (*table, *column, pair.cell.features, pair.cell.dataset_fingerprint)
            tables.setdefault(key, []).append(pair)
    orders = []
    for (*_, features, _), pairs in tables.items():
        values = nearest((pair.published for pair in pairs), features)
        ranked = sorted(pairs, key=lambda pair: -float(pair.published.value))
        orders += [
            PaperOrder(higher, lower)
            for higher, lower in itertools.combinations([pair for pair in ranked if pair.published in values], 2)
            if float(higher.published.value) > float(lower.published.value) and higher.cell is not lower.cell
        ]
    most_seeds: dict[tuple[object, ...], PaperOrder] = {}
    for order in sorted(orders, key=lambda order: -order.n_seeds):
        most_seeds.setdefault(order.published, order)
    return [order for order in orders if most_seeds[order.published] is order]


def orders_of(name: str, results: pd.DataFrame) -> list[PaperOrder]:
    """List the orders that the rows of a table allow."""
    table = make_table(results, name)
    return make_orders(table.cells, table.published)


def count_orders(orders: Sequence[PaperOrder]) -> str:
    """Count verdicts in a sentence."""
    counts = Counter(order.verdict for order in orders)
    verdicts = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    sources = Counter(order.higher.published.source.partition(" (")[0] for order in orders)
    named = ", ".join(f"{source} {n}" for source, n in sources.most_common())
    return f"{len(orders)} orders of two methods ({named}): {verdicts}."


def main() -> None:
    """Count the orders of each table, or list those of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    of_papers = [name for name, layout in LAYOUTS.items() if layout.source]
    parser.add_argument("table", nargs="?", choices=of_papers, help="list its orders as CSV")
    chosen = parser.parse_args().table
    results = read_results_with_origins(RESULTS)
    if chosen:
        rows = [order.row for order in orders_of(chosen, results)]
        writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    for name in of_papers:
        if orders := orders_of(name, results):
            print(f"{name}: {count_orders(orders)}")


if __name__ == "__main__":
    main()
