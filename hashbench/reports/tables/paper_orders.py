"""Which of the papers' orders of two methods hold here, are reversed, or are left open by ties."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from hashbench.reports.tables.blocks import make_pairs
from hashbench.reports.tables.nearness import Pair
from hashbench.reports.tables.published import Published, is_large, nearest
from hashbench.reports.ties import EVERY_ORDER, LUCK, OPEN, UNKNOWN, compare

VERDICTS = {
    ("holds", EVERY_ORDER): "hold here in every order of ties",
    ("holds", LUCK): "hold here under luck",
    ("turned", EVERY_ORDER): "are turned in every order",
    ("turned", LUCK): "are turned under luck",
    ("open", OPEN): "are not separated by luck",
    ("open", UNKNOWN): "are unknown, as a row lacks tie_sd",
}


class PaperOrder(NamedTuple):
    """Two methods that a paper ranks, each with our cell."""

    higher: Pair
    lower: Pair

    @property
    def verdict(self) -> tuple[str, str]:
        """A key of ``VERDICTS``: what became of the order, and what `hashbench.reports.ties` answers about ours."""
        ours, other = self.higher.cell, self.lower.cell
        answer = str(compare(ours, other))
        if answer in (OPEN, UNKNOWN):
            return "open", answer
        return "holds" if ours.value > other.value else "turned", answer


def make_orders(cells: pd.DataFrame, published: Sequence[Published]) -> list[PaperOrder]:
    """List every two methods that one table of a paper orders, on networks of one class, with cells of one block.

    Numbers that a table quotes from several papers order no two methods.
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
            for higher, lower in combinations([pair for pair in ranked if pair.published in values], 2)
            if float(higher.published.value) > float(lower.published.value) and higher.cell is not lower.cell
        ]
    return orders


def count_orders(orders: Sequence[PaperOrder]) -> str:
    """Count verdicts in a sentence; empty if there are none."""
    if not orders:
        return ""
    counts = Counter(order.verdict for order in orders)
    verdicts = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    sources = Counter(order.higher.published.source.partition(" (")[0] for order in orders)
    named = ", ".join(f"{source} {n}" for source, n in sources.most_common())
    return f"Of {len(orders)} orders of two methods in one table of a paper ({named}) {verdicts}."
