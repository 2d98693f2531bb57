"""Which of the papers' orders of two methods hold here, are turned round, or are left open by ties."""

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
    ("turned", EVERY_ORDER): "are turned round in every order",
    ("turned", LUCK): "are turned round under luck",
    ("open", OPEN): "are not told apart by luck",
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
    """Take every two methods that one table of a paper tells apart, on networks of one class, and a block of ours.

    A table's column of numbers from several papers tells no two apart.
    """
    tables: dict[tuple[Any, ...], list[Pair]] = {}
    for one, pairs in make_pairs(cells, [one for one in published if one.whose != "authors, quoted"]):
        where = one.source, one.table, one.setting, is_large(one.backbone), one.our_dataset, one.our_metric, one.n_bits
        for pair in pairs:
            tables.setdefault((*where, pair.cell.features, pair.cell.dataset_fingerprint), []).append(pair)
    orders = []
    for (*_, features, _), pairs in tables.items():
        kept = nearest((pair.published for pair in pairs), features)
        ranked = sorted(pairs, key=lambda pair: -float(pair.published.value))
        orders += [
            PaperOrder(one, other)
            for one, other in combinations([pair for pair in ranked if pair.published in kept], 2)
            if float(one.published.value) > float(other.published.value) and one.cell is not other.cell
        ]
    return orders


def tell_orders(orders: Sequence[PaperOrder]) -> str:
    """Count verdicts in a sentence; nothing if there are none."""
    counts = Counter(order.verdict for order in orders)
    told = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    if not orders:
        return ""
    sources = Counter(order.higher.published.source.partition(" (")[0] for order in orders)
    named = ", ".join(f"{source} {n}" for source, n in sources.most_common())
    return f"Of {len(orders)} orders of two methods in one table of a paper ({named}) {told}."
