"""The papers' numbers, in our names, and what differs between their set-up and ours: ``published.csv``."""

import csv
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from hashbench.reports.aggregate import changed_params, known_card
from hashbench.reports.tables.layout import LAYOUTS


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
    our_dataset: str  # our names need not exist here (yet)
    dataset_differs: str  # even so; empty if nothing is known
    our_metric: str
    metric_differs: str
    our_method: str
    group: str  # block of the table that the method belongs to
    our_params: Mapping[str, Any]  # a value, or on or off, where they tell two of the paper's rows apart
    stated: Mapping[str, Any]  # values of parameters that the paper's row states
    same_features: str  # those of ours that are the paper's backbone; empty if there are none
    backbone_in_words: str

    @property
    def layout(self) -> str:
        """Our table."""
        at = self.source.partition(" ")[0], self.table
        return next(name for name, layout in LAYOUTS.items() if (layout.source, layout.number) == at)

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
        others += [f"parameter {key}={value}" for key, value in changed.items() if key not in said]
        found += [("parameters", text) for text in others]
        return [(part, text) for part, text in found if text]


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
