"""The papers' tables: what each shows (layouts.toml), their numbers (published.csv), and how near ours are.

A verdict compares our value with the published one, up to half a unit of its last digit. It is **within** if the two
differ by at most one standard deviation over seeds, or are not apart under a shuffle (`hashbench.reports.marks`);
**unknown** if our ``tie_sd`` is unknown and the published value lies between ``low`` and ``high``; else our value is
**above** or **below**. Differences between the set-ups are listed beside the verdict and do not change it.
"""

import csv
import json
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

from hashbench.reports.aggregate import changed_params, known_card, setting_text
from hashbench.reports.marks import OPEN, UNKNOWN, Score, compare
from hashbench.reports.view import records_by


@dataclass(frozen=True)
class TableLayout:
    """What a table shows."""

    heading: str  # such as "Table 1"
    title: str
    metrics: tuple[str, ...]  # a dataset that the paper also scores by another metric gets a block for that too
    n_bits: tuple[int, ...] = ()  # the columns of datasets that are not in the paper; empty: all there are
    source: str = ""  # how the paper begins in the column "source" of published.csv
    number: str = ""  # the number of the paper's table, as in the column "table"
    of_others: tuple[str, ...] = ()  # metrics in which values of other papers stand beside ours too
    is_beside: bool = False  # whether all metrics share one block, whose lines have values in the first of them
    is_open: bool = True  # whether methods that are not in the paper's table are shown
    is_ablation: bool = False  # whether it shows several lines of one method, not one line of each
    is_over_folds: bool = False  # whether it shows datasets with unseen classes, which others leave out
    remark: str = ""  # a sentence for every caption


def _read_layouts() -> dict[str, TableLayout]:
    text = files("hashbench.reports.tables").joinpath("layouts.toml").read_text(encoding="utf-8")
    layouts = {}
    for name, values in tomllib.loads(text).items():
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        layouts[name] = TableLayout(**fields)
    return layouts


LAYOUTS = _read_layouts()


WHOSE = ("authors", "authors, quoted", "others")  # who ran the method, nearest first
VERDICTS = ("within", "above", "below", "unknown")
_LARGE = ("vgg-16", "vgg16", "googlenet", "resnet")  # networks above the class of AlexNet


class Published(NamedTuple):
    """One number of a paper; the fields are the columns of ``published.csv``, the first nine in the paper's words."""

    source: str
    table: str
    dataset: str
    setting: str
    backbone: str
    metric: str
    method: str
    n_bits: int
    value: str  # as printed
    our_dataset: str  # our names may not exist here (yet); empty if no dataset here is like the paper's
    dataset_differs: str  # from ours of that name; empty if no difference is known
    our_metric: str
    metric_differs: str
    our_method: str  # empty if the paper has another loss under the name of a method
    group: str  # of the method in our tables
    whose: str  # who ran the method: one of ``WHOSE``
    our_params: Mapping[str, Any]  # parameters that distinguish two rows of the paper: a value, or on or off
    stated: Mapping[str, Any]  # parameters that the paper states for its row
    same_features: str  # our features from the paper's backbone; empty if there are none
    backbone_in_words: str

    @property
    def layout(self) -> str:
        """The table that shows it: the one like the paper's, else the first that takes others' values; or none."""
        at = self.source.partition(" ")[0], self.table
        is_ours = bool(self.our_dataset and self.our_method)
        own = [name for name, layout in LAYOUTS.items() if (layout.source, layout.number) == at]
        others = [name for name, layout in LAYOUTS.items() if is_ours and self.our_metric in layout.of_others]
        return next(iter([*own, *others]), "")

    @property
    def line(self) -> tuple[str, str, str]:
        """The line of a block that it belongs to."""
        return self.group, self.our_method, json.dumps(self.our_params)

    @property
    def place(self) -> tuple[Any, ...]:
        """What was measured, in our names; several papers may have a value of it."""
        return self.our_dataset, self.our_metric, self.n_bits, *self.line

    @property
    def is_of_hash_function(self) -> bool:
        """Whether a hash function made all codes; else those of the database were learned from its own labels."""
        return "learned from the database's labels" not in self.dataset_differs

    @property
    def name(self) -> str:
        """The paper's dataset and setting."""
        return f"{self.dataset} ({self.setting})"

    def is_of(self, method: str, params: str) -> bool:
        """Return whether a method of ours, with its parameters (JSON), is the paper's."""
        if self.our_method != method:
            return False
        card = known_card(method)
        settings = {**(card.params if card else {}), **json.loads(params)}
        return all(
            (bool(settings.get(key)) if isinstance(value, bool) else settings.get(key)) == value
            for key, value in self.our_params.items()
        )

    def differs(self, features: str, params: str = "{}") -> list[tuple[str, str]]:
        """Return what differs besides the code, given our features and parameters (JSON): part and phrase of each.

        The parts are features, data, metric and parameters. Parameters of methods without trials, which do not train
        a network, are also compared with those of the method's own paper.
        """
        settings, card = json.loads(params), known_card(self.our_method)
        is_head = "head" in settings and not (self.same_features or settings.get("backbone"))
        used = f"a head ({settings['head']}) on frozen features {features}" if is_head else f"features {features}"
        stated = {key: value for key, value in self.stated.items() if key in settings}
        is_same = features == self.same_features or (
            "backbone" in stated and settings["backbone"] == stated["backbone"]
        )
        phrases = [
            ("features", "" if is_same else f"{used} instead of {self.backbone_in_words}"),
            ("data", self.dataset_differs),
            ("metric", self.metric_differs),
        ]
        texts = [f"{key}={settings[key]} instead of {value}" for key, value in stated.items() if settings[key] != value]
        is_untried = card is not None and "paper" in card.presets and not card.tunable
        authors = card.preset("paper", self.n_bits) if card is not None and is_untried else {}
        texts += [
            f"{key}={settings[key]} instead of {value} in the method's paper"
            for key, value in authors.items()
            if key not in stated and settings.get(key, value) != value
        ]
        named = {*stated, *authors, *self.our_params, *(["head"] if is_head else [])}
        changed = changed_params(self.our_method, params)
        texts += [f"parameter {setting_text(key, value)}" for key, value in changed.items() if key not in named]
        phrases += [("parameters", text) for text in texts]
        return [(part, text) for part, text in phrases if text]


def is_large(features: str) -> bool:
    """Return whether features are of a network above the class of AlexNet."""
    return features.lower().startswith(_LARGE)


def is_own(value: Published, layout: TableLayout) -> bool:
    """Return whether a value is of the paper that a table is like."""
    return bool(layout.source) and value.source.startswith(layout.source)


def nearest(published: Iterable[Published], features: str) -> list[Published]:
    """Return the value of each place that is nearest to ours, in the order of the file; the first one wins a tie."""
    by_place: dict[tuple[Any, ...], list[Published]] = {}
    for value in published:
        by_place.setdefault(value.place, []).append(value)
    return [min(values, key=lambda value: order_by_set_up(value, features)) for values in by_place.values()]


def values_beside(
    published: Iterable[Published], layout: TableLayout, features: str, n_bits: Collection[int]
) -> list[Published]:
    """Choose the values beside ours in a block, at its code lengths: those of the table's own paper, then of others.

    The nearest of others fill the places without a value of the own paper. Those of codes that were learned from the
    database's labels are left out: what they measure is another thing.
    """
    values = [value for value in published if value.n_bits in n_bits]
    own = [value for value in values if is_own(value, layout)]
    taken = {value.place for value in own}
    others = [
        value
        for value in values
        if not is_own(value, layout) and value.is_of_hash_function and value.place not in taken
    ]
    return [*own, *nearest(others, features)]


def order_by_set_up(value: Published, features: str) -> tuple[int, ...]:
    """Return how far a value's set-up is from ours, as a key to sort by.

    The class of the network counts first, then in how many points the data differ, then whose value it is, then how
    many stated parameters are not our defaults.
    """
    card = known_card(value.our_method)
    defaults = card.params if card else {}
    n_data = value.dataset_differs.count(";") + bool(value.dataset_differs)
    n_stated = sum(defaults.get(key) != stated for key, stated in value.stated.items())
    return is_large(value.backbone) != is_large(features), n_data, WHOSE.index(value.whose), n_stated


@cache
def published_values() -> tuple[Published, ...]:
    """Read the numbers of the papers, in the order of the file."""
    text = files("hashbench.reports.tables").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            n_bits=int(row.pop("bits")),
            our_params=json.loads(row.pop("our_params") or "{}"),
            stated=json.loads(row.pop("stated") or "{}"),
            **row,
        )
        for row in csv.DictReader(text.splitlines())
    )


class Pair(NamedTuple):
    """A published value, and a cell of ours that stands for it."""

    published: Published
    cell: Any

    @property
    def verdict(self) -> str:
        """How our value compares with the published one: one of ``VERDICTS``."""
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


def count_verdicts(pairs: Sequence[Pair]) -> str:
    """Count verdicts, such as ``2 within, 14 below``."""
    counts = Counter(pair.verdict for pair in pairs)
    return ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
