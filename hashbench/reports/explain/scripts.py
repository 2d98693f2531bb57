"""The scoring scripts that people use, each a row of ``scripts.csv``. A new one goes there.

What each does was read in its public code. Tests compare its numbers with worked examples, and with the original where
that can be installed. The columns are fields of `Evaluator`, and an empty one is the default.
"""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from hashbench.errors import unknown_name
from hashbench.reports.explain import orders
from hashbench.reports.explain.ranking import Sort
from hashbench.scoring.metrics import get_metric


@dataclass(frozen=True)
class Evaluator:
    """A scoring script; the defaults of its conventions are the most common ones."""

    name: str
    used_by: str  # where it comes from, and who else uses it
    source: str  # the code that was read: repository@commit path:lines, or a package and its version
    metric: str = "AP"  # AP, NDCG, NDCG:trec, of the whole list and the first k; P@k, R@k, Hit@k; P@r, R@r
    order: str = ""  # its tie order, a function of `orders`; empty if that does not affect the result
    mean: str = "count_zero"  # over queries, of `quantities.MEANS`
    distance: str = "hamming"  # what it ranks by, of `ranking.DISTANCES`
    divisor: str = "retrieved"  # of AP, as in the names of hashbench's metrics
    cuts: str = "any"  # or "none"; "below": not beyond the database; "only": "below", and never the whole list
    least_cut: int = 1  # of the largest cut asked for, if it shares that
    shares_cut: bool = False  # it sorts for the largest cut asked for
    loses_last: bool = False  # the whole list lacks its last item
    item_order: str = ""  # in which order it gets the items of each query, a function of `orders`
    quantity: str = ""  # its own, a function in `quantities`: of a ranking or, without an order, of counts
    own: str = ""  # that in words
    note: str = ""  # for readers of the table
    twin_of: str = ""  # the script that differs only in that its NumPy is not this machine's

    @property
    def gives(self) -> tuple[str, ...]:
        """Patterns of the metrics that it computes, by hashbench's names."""
        if "@" in self.metric:
            return (self.metric.replace("@r", "@rN"),)
        stem, colon, gain = self.metric.partition(":")
        cut = f"{stem}@k{colon}{gain}"
        return {"none": (self.metric,), "only": (cut,)}.get(self.cuts, (self.metric, cut))

    def cut_of(self, name: str, n_items: int, n_fewest: int | None = None) -> int | None:
        """Return how many items it looks at for a metric, or which radius; None if it does not compute that.

        Queries that ignore items may have different numbers of them, from ``n_fewest`` to ``n_items``.
        """
        n_fewest = n_items if n_fewest is None else n_fewest
        cutoff = next((value for value in get_metric(name).arguments if isinstance(value, int)), None)
        if metric_pattern(name) not in self.gives:
            return None
        if self.metric.endswith("@r"):
            return cutoff
        if cutoff is None:
            is_refused = self.cuts == "only" or (self.loses_last and n_fewest < n_items)
            cut = 0 if is_refused else n_items - self.loses_last
        else:
            refused = self.cuts == "none" or (self.cuts in ("below", "only") and cutoff > n_fewest)
            cut = 0 if refused else min(cutoff, n_items)
        return cut if cut >= (1 if self.shares_cut else self.least_cut) else None

    def sort(self, cut: int, n_pairs: int = 0) -> Sort | None:
        """Return how it orders items, if that affects the first ``cut``; all queries together have ``n_pairs``."""
        if not self.order:
            return None
        item_order = "" if n_pairs >= orders.RADIX_SORTED else self.item_order  # items stay as they are
        return Sort(self.order, item_order, cut if self.order in orders.BY_CUT else 0)

    @property
    def is_of_this_machine(self) -> bool:
        """Whether its tie order depends on the installed NumPy or numba, or on the CPU."""
        return self.order in orders.OF_THIS_MACHINE


def metric_pattern(name: str, *, of_run: bool = False) -> str:
    """Return the pattern of a metric as scripts have it: with its option, but AP@k without its divisor."""
    metric = get_metric(name, of_run=of_run)
    pattern, (_, colon, option) = metric.family.pattern, metric.name.partition(":")
    return pattern if pattern == "AP@k" else f"{pattern}{colon}{option}"


_CONVERTED: dict[str, Callable[[str], Any]] = {"least_cut": int, "shares_cut": bool, "loses_last": bool}


def _read() -> tuple[Evaluator, ...]:
    text = files("hashbench.reports.explain").joinpath("scripts.csv").read_text(encoding="utf-8")
    return tuple(
        Evaluator(**{name: _CONVERTED.get(name, str)(value) for name, value in row.items() if value})
        for row in csv.DictReader(text.splitlines())
    )


EVALUATORS = _read()


def twins_of(scripts: Iterable[Evaluator]) -> list[Evaluator]:
    """Return the scripts among these that sort by NumPy, as they run on this machine, each as NAME-here."""
    return [
        replace(
            script,
            name=f"{script.name}-here",
            used_by=f"{script.name}, by this machine's NumPy",
            order=orders.BY_THIS_NUMPY[script.order],
            twin_of=script.name,
        )
        for script in scripts
        if script.order in orders.BY_THIS_NUMPY
    ]


def named(name: str) -> Evaluator:
    """Return a script by its name."""
    known = {script.name: script for script in (*EVALUATORS, *twins_of(EVALUATORS))}
    if name.casefold() not in known:
        raise unknown_name("script", name, known, listed="hashbench list scripts")
    return known[name.casefold()]
