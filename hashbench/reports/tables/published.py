"""The papers' numbers, in our names, what differs between their set-up and ours, and which are nearest to ours.

All of it stands in ``published.csv``.
"""

import csv
import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from hashbench.reports.aggregate import changed_params, known_card, setting_text
from hashbench.reports.tables.layout import LAYOUTS, TableLayout

WHOSE = ("authors", "authors, quoted", "others")  # values are, nearest first
_LARGE = ("vgg-16", "googlenet", "resnet")  # networks above the class of AlexNet


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
    our_dataset: str  # our names need not exist here (yet); empty if nothing here is like it
    dataset_differs: str  # even so; empty if nothing is known
    our_metric: str
    metric_differs: str
    our_method: str  # empty if it is another loss under the name of a method
    group: str  # block of the table that the method belongs to
    whose: str  # who ran the method: one of ``WHOSE``
    our_params: Mapping[str, Any]  # a value, or on or off, where they tell two of the paper's rows apart
    stated: Mapping[str, Any]  # values of parameters that the paper's row states
    same_features: str  # those of ours that are the paper's backbone; empty if there are none
    backbone_in_words: str

    @property
    def layout(self) -> str:
        """Our table: that which is like the paper's, else the first that has room for it; empty if none has."""
        at = self.source.partition(" ")[0], self.table
        is_ours = bool(self.our_dataset and self.our_method)
        own = [name for name, layout in LAYOUTS.items() if (layout.source, layout.number) == at]
        others = [name for name, layout in LAYOUTS.items() if is_ours and self.our_metric in layout.of_others]
        return next(iter([*own, *others]), "")

    @property
    def line(self) -> tuple[str, str, str]:
        """Which line of a block it belongs to."""
        return self.group, self.our_method, json.dumps(self.our_params)

    @property
    def place(self) -> tuple[Any, ...]:
        """What it is a value of, in our names: several papers may have one."""
        return self.our_dataset, self.our_metric, self.n_bits, *self.line

    @property
    def name(self) -> str:
        """The paper's dataset and setting."""
        return f"{self.dataset} ({self.setting})"

    def is_of(self, method: str, params: str) -> bool:
        """Tell whether a method of ours, with its parameters (JSON), is the paper's."""
        if self.our_method != method:
            return False
        card, ours = known_card(method), json.loads(params)
        ours = {**(card.params if card else {}), **ours}
        return all(
            (bool(ours.get(key)) if isinstance(value, bool) else ours.get(key)) == value
            for key, value in self.our_params.items()
        )

    def differs(self, features: str, params: str = "{}") -> list[tuple[str, str]]:
        """Say what else differs besides the code, given our features and parameters (JSON): part and phrase of each.

        The parts are features, data, metric and parameters.
        """
        ours = json.loads(params)
        is_head = "head" in ours and not (self.same_features or ours.get("backbone"))
        own = f"a head ({ours['head']}) on frozen features {features}" if is_head else f"features {features}"
        found = [("features", "" if features == self.same_features else f"{own} instead of {self.backbone_in_words}")]
        found += [("data", self.dataset_differs), ("metric", self.metric_differs)]
        stated = {key: value for key, value in self.stated.items() if key in ours}
        others = [f"{key}={ours[key]} instead of {value}" for key, value in stated.items() if ours[key] != value]
        said = {*stated, *self.our_params, *(["head"] if is_head else [])}
        changed = changed_params(self.our_method, params)
        others += [f"parameter {setting_text(key, value)}" for key, value in changed.items() if key not in said]
        found += [("parameters", text) for text in others]
        return [(part, text) for part, text in found if text]


def is_large(features: str) -> bool:
    """Tell whether features are of a network above the class of AlexNet."""
    return features.lower().startswith(_LARGE)


def is_own(one: Published, layout: TableLayout) -> bool:
    """Tell whether a value is of the paper that a table is like."""
    return bool(layout.source) and one.source.startswith(layout.source)


def nearest(published: Iterable[Published], features: str) -> list[Published]:
    """Keep of values of one place the nearest to ours, in the order of the file.

    First the class of the network goes, then in how many points the data differ, then whose value it is, then how many
    of the stated parameters are not our defaults; where all are alike, the first in the file is kept.
    """
    found: dict[tuple[Any, ...], list[Published]] = {}
    for one in published:
        found.setdefault(one.place, []).append(one)
    return [min(same, key=lambda one: _distance(one, features)) for same in found.values()]


def values_beside(
    published: Iterable[Published], layout: TableLayout, features: str, n_bits: Collection[int]
) -> list[Published]:
    """Choose what stands beside ours in a block: all of the table's own paper, then of others the nearest.

    These fill what that paper leaves open, at its lengths and ours.
    """
    values = list(published)
    own = [one for one in values if is_own(one, layout)]
    taken, lengths = {one.place for one in own}, {*n_bits, *(one.n_bits for one in own)}
    others = [one for one in values if not is_own(one, layout) and one.place not in taken and one.n_bits in lengths]
    return [*own, *nearest(others, features)]


def _distance(one: Published, features: str) -> tuple[int, ...]:
    card = known_card(one.our_method)
    ours = card.params if card else {}
    n_data = one.dataset_differs.count(";") + bool(one.dataset_differs)
    n_stated = sum(ours.get(key) != value for key, value in one.stated.items())
    return is_large(one.backbone) != is_large(features), n_data, WHOSE.index(one.whose), n_stated


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
