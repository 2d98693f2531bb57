"""The papers' numbers in our names, from ``published.csv``; what differs in their set-up, and which are nearest."""

import csv
import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from hashbench.reports.aggregate import changed_params, known_card, setting_text
from hashbench.reports.tables.layout import LAYOUTS, TableLayout

WHOSE = ("authors", "authors, quoted", "others")  # who ran the method, nearest first
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
        """Our table: the one like the paper's, else the first that has room for the value; empty if none has."""
        at = self.source.partition(" ")[0], self.table
        is_ours = bool(self.our_dataset and self.our_method)
        own = [name for name, layout in LAYOUTS.items() if (layout.source, layout.number) == at]
        others = [name for name, layout in LAYOUTS.items() if is_ours and self.our_metric in layout.of_others]
        return next(iter([*own, *others]), "")

    @property
    def line(self) -> tuple[str, str, str]:
        """The line of a block it belongs to."""
        return self.group, self.our_method, json.dumps(self.our_params)

    @property
    def place(self) -> tuple[Any, ...]:
        """What it is a value of, in our names; several papers may have one."""
        return self.our_dataset, self.our_metric, self.n_bits, *self.line

    @property
    def name(self) -> str:
        """The paper's dataset and setting."""
        return f"{self.dataset} ({self.setting})"

    def is_of(self, method: str, params: str) -> bool:
        """Return whether a method of ours, with its parameters (JSON), is the paper's."""
        if self.our_method != method:
            return False
        card, ours = known_card(method), json.loads(params)
        ours = {**(card.params if card else {}), **ours}
        return all(
            (bool(ours.get(key)) if isinstance(value, bool) else ours.get(key)) == value
            for key, value in self.our_params.items()
        )

    def differs(self, features: str, params: str = "{}") -> list[tuple[str, str]]:
        """Return what differs besides the code, given our features and parameters (JSON): part and phrase of each.

        The parts are features, data, metric and parameters.
        """
        ours = json.loads(params)
        is_head = "head" in ours and not (self.same_features or ours.get("backbone"))
        used = f"a head ({ours['head']}) on frozen features {features}" if is_head else f"features {features}"
        phrases = [
            ("features", "" if features == self.same_features else f"{used} instead of {self.backbone_in_words}"),
            ("data", self.dataset_differs),
            ("metric", self.metric_differs),
        ]
        stated = {key: value for key, value in self.stated.items() if key in ours}
        settings = [f"{key}={ours[key]} instead of {value}" for key, value in stated.items() if ours[key] != value]
        named = {*stated, *self.our_params, *(["head"] if is_head else [])}
        changed = changed_params(self.our_method, params)
        settings += [f"parameter {setting_text(key, value)}" for key, value in changed.items() if key not in named]
        phrases += [("parameters", text) for text in settings]
        return [(part, text) for part, text in phrases if text]


def is_large(features: str) -> bool:
    """Return whether features are of a network above the class of AlexNet."""
    return features.lower().startswith(_LARGE)


def is_own(value: Published, layout: TableLayout) -> bool:
    """Return whether a value is of the paper that a table is like."""
    return bool(layout.source) and value.source.startswith(layout.source)


def nearest(published: Iterable[Published], features: str) -> list[Published]:
    """Return of the values of each place the one nearest to ours, in the order of the file.

    The class of the network counts first, then in how many points the data differ, then whose value it is, then how
    many stated parameters are not our defaults; the first in the file wins a tie.
    """
    by_place: dict[tuple[Any, ...], list[Published]] = {}
    for value in published:
        by_place.setdefault(value.place, []).append(value)
    return [min(values, key=lambda value: _distance(value, features)) for values in by_place.values()]


def values_beside(
    published: Iterable[Published], layout: TableLayout, features: str, n_bits: Collection[int]
) -> list[Published]:
    """Choose what stands beside ours in a block: all values of the table's own paper, then the nearest of others.

    Those of others fill the places that the paper leaves open, at its lengths and ours.
    """
    values = list(published)
    own = [value for value in values if is_own(value, layout)]
    taken, lengths = {value.place for value in own}, {*n_bits, *(value.n_bits for value in own)}
    others = [
        value for value in values if not is_own(value, layout) and value.place not in taken and value.n_bits in lengths
    ]
    return [*own, *nearest(others, features)]


def _distance(value: Published, features: str) -> tuple[int, ...]:
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
