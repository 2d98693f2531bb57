"""How near our values are to the papers', and whether methods rank alike.

A verdict compares our value with the published one, up to half a unit of its last digit. It is **within** if the two
differ by at most one standard deviation over seeds, or are not apart under a shuffle (`hashbench.reports.ties`);
**unknown** if our ``tie_sd`` is unknown and the published value lies between ``low`` and ``high``; else our value is
**above** or **below**. Differences between the set-ups are listed beside the verdict and do not change it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from hashbench._typing import FloatArray
from hashbench.reports.tables.cells import records_by
from hashbench.reports.tables.published import Published
from hashbench.reports.ties import EVERY_ORDER, OPEN, SHUFFLE, UNKNOWN, Score, compare
from hashbench.store.result_rows import NUMBERS

VERDICTS = {
    "within": "within our spread or not apart under a shuffle",
    "above": "ours above",
    "below": "ours below",
    "unknown": "unknown, as is the shuffle deviation of our row",
}


class Pair(NamedTuple):
    """A published value, and a cell of ours that stands for it: see `ResultTable`."""

    published: Published
    cell: Any

    @property
    def verdict(self) -> str:
        """How our value compares with the published one: a key of ``VERDICTS``."""
        value, spread = self.cell.value, self.cell.spread if self.cell.n_seeds > 1 else 0
        printed, half = float(self.published.value), 0.5 / 10 ** len(self.published.value.partition(".")[2])
        closest = min(max(value, printed - half), printed + half)  # of what would be printed so
        answer = compare(self.cell, Score(closest, 0.0, closest, closest))
        if abs(value - closest) <= spread or answer == OPEN:
            return "within"
        if answer == UNKNOWN:
            return "unknown"
        return "above" if value > closest else "below"

    @property
    def differs(self) -> list[tuple[str, str]]:
        """What differs besides the code: part and phrase of each."""
        return self.published.differs(self.cell.features, self.cell.params)

    @property
    def in_words(self) -> str:
        """The verdict, and the parts of the set-up that differ."""
        parts = ", ".join(dict.fromkeys(part for part, _ in self.differs))
        return self.verdict + (f"; set-up differs ({parts})" if parts else "")


def make_pairs(cells: pd.DataFrame, published: Iterable[Published]) -> Iterator[tuple[Published, list[Pair]]]:
    """Yield published values, each with the cells that stand for it."""
    by_column = records_by(cells, ["dataset", "metric", "n_bits"])
    for value in published:
        column = by_column.get((value.our_dataset, value.our_metric, value.n_bits), [])
        yield value, [Pair(value, cell) for cell in column if value.is_of(cell.method, cell.params)]


class Agreement(NamedTuple):
    """Kendall's tau-b between the paper's order of methods and ours, and what a shuffle leaves of it."""

    tau: float
    low: float
    high: float
    n_methods: int


def agreement(pairs: Sequence[Pair]) -> Agreement | None:
    """Compare two orders; None if the paper or we have fewer than two values.

    Two methods that are not apart under a shuffle, or of which it is unknown, could stand either way: each bound counts
    them all in its favour. Possibly no order of ties reaches it, as those choices can contradict each other.
    """
    papers = np.array([float(pair.published.value) for pair in pairs])
    rows = [[getattr(pair.cell, name) for name in NUMBERS] for pair in pairs]
    ours = pd.DataFrame(rows, columns=NUMBERS).round(6)
    if len(set(papers)) < 2 or len(set(ours["value"])) < 2:
        return None
    left, right = np.triu_indices(len(pairs), 1)
    order = np.sign(papers[left] - papers[right])
    first, second = ours.iloc[left], ours.iloc[right]
    order_here = np.sign(first["value"].to_numpy() - second["value"].to_numpy())
    answers = compare(first, second)
    is_fixed = (first["low"] == first["high"]).to_numpy() & (second["low"] == second["high"]).to_numpy()
    is_known = (answers == EVERY_ORDER) | (answers == SHUFFLE) | is_fixed
    least, most = np.where(is_known, order_here, -1), np.where(is_known, order_here, 1)  # bounds of our order
    worst, best = np.minimum(order * least, order * most), np.maximum(order * least, order * most)
    tau = float(kendalltau(papers, ours["value"]).statistic)
    is_ordered = order != 0
    n_apart, n_open = int((~is_ordered & (least * most > 0)).sum()), int((~is_ordered & (least < most)).sum())
    high, low = _highest(best[is_ordered], n_apart, n_open), -_highest(-worst[is_ordered], n_apart, n_open)
    return Agreement(tau, min(low, tau), max(high, tau), len({pair.published.method for pair in pairs}))


def _highest(orders: FloatArray, n_apart: int, n_open: int) -> float:
    """Return tau-b where pairs that the paper orders are ordered alike (1), the other way round (-1) or tied (0) by us.

    Of those that it ties we order ``n_apart``, and ``n_open`` more if that brings tau nearer to 0 from below.
    """
    n_ours = int(np.count_nonzero(orders)) + n_apart + (n_open if orders.sum() < 0 else 0)
    return float(orders.sum() / np.sqrt(len(orders) * max(n_ours, 1)))


def count_verdicts(n_published: int, pairs: Sequence[Pair], of: str = "") -> str:
    """Count verdicts in a sentence."""
    compared = {pair.published.place for pair in pairs}
    n_not_run = n_published - len(compared)
    start = f"Of {n_published} published values{of} {len(compared)} {'is' if len(compared) == 1 else 'are'} compared"
    if not pairs:
        return f"{start}."
    start += f" in {len(pairs)} pairs" if len(pairs) > len(compared) else ""
    verdicts = Counter(pair.verdict for pair in pairs)
    counts = ", ".join(
        f"{verdicts[name]} {words}" for name, words in VERDICTS.items() if verdicts[name] or name != "unknown"
    )
    parts = Counter(part for pair in pairs for part in {part for part, _ in pair.differs})
    n_same = sum(not pair.differs for pair in pairs)
    others = ", ".join(f"{part} {count}" for part, count in sorted(parts.items()))
    same = f"{n_same} with the paper's set-up" + (f" (what differs: {others})" if others else "")
    return f"{start}: {counts}; {same}; {n_not_run} not run."


def describe_agreement(columns: Mapping[str, Sequence[Pair]]) -> str:
    """Return a sentence on whether methods rank alike in each column; empty if none can be ranked."""
    texts = [
        f"{name} {tau.tau:z.2f} ({tau.low:z.2f} to {tau.high:z.2f}, {tau.n_methods} methods)"
        for name, pairs in columns.items()
        if (tau := agreement(pairs)) is not None
    ]
    if not texts:
        return ""
    return (
        "Kendall's tau between the paper's order of methods and ours, and bounds where a shuffle may reverse two of "
        f"ours: {'; '.join(texts)}."
    )
