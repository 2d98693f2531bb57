"""The papers' numbers, in our names, and what differs between their set-up and ours."""

import csv
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from hashbench.reports.aggregate import changed_params
from hashbench.reports.tables.layout import LAYOUTS


class Published(NamedTuple):
    """One number of a paper; the first nine fields are columns of ``published.csv`` as they stand there.

    Parameters
    ----------
    source, table, dataset, setting, backbone, metric, method : str
        In the paper's words.
    n_bits : int
        Code length.
    value : str
        As printed.
    layout : str
        Our table.
    our_dataset, our_metric, our_method : str
        In our words; need not exist here (yet).
    group : str
        Block of the table that the method belongs to.
    """

    source: str
    table: str
    dataset: str
    setting: str
    backbone: str
    metric: str
    method: str
    n_bits: int
    value: str
    layout: str
    our_dataset: str
    our_metric: str
    our_method: str
    group: str

    @property
    def name(self) -> str:
        """The paper's dataset and setting."""
        return f"{self.dataset} ({self.setting})"

    def is_of(self, method: str, params: Mapping[str, Any]) -> bool:
        """Tell whether a method of ours is the paper's.

        Parameters
        ----------
        method : str
            Our name.
        params : mapping
            Its parameters.

        Returns
        -------
        bool
            Whether names agree, and the parameters that tell two of the paper's rows apart.
        """
        wanted = _PARAMS.get(self.method, {})
        return self.our_method == method and all(bool(params.get(key)) == value for key, value in wanted.items())

    def differs(self, features: str, params: str = "{}") -> list[str]:
        """Say what else differs besides the code.

        Parameters
        ----------
        features : str
            Our features' name.
        params : str
            All of our method's parameters as JSON.

        Returns
        -------
        list of str
            One phrase a difference.
        """
        ours, (same, theirs) = json.loads(params), _BACKBONES[self.backbone]
        is_head = "head" in ours and not (same or ours.get("backbone"))
        own = f"a head ({ours['head']}) on frozen features {features}" if is_head else f"features {features}"
        found = [] if features == same else [f"{own} instead of {theirs}"]
        found += [_DATASETS[self.dataset, self.setting][1], _METRICS[self.metric][1]]
        stated = {key: value for key, value in _STATED.get(self.method, {}).items() if key in ours}
        found += [f"{key}={ours[key]} instead of {value}" for key, value in stated.items() if ours[key] != value]
        said = {*stated, *_PARAMS.get(self.method, {}), *(["head"] if is_head else [])}
        changed = changed_params(self.our_method, params)
        found += [f"parameter {key}={value}" for key, value in changed.items() if key not in said]
        return [text for text in found if text]


_DRAWN = "another draw of queries and training items"
_DATASETS = {  # the paper's dataset and setting: our name, and what differs even so
    ("CIFAR-10", "S1"): ("cifar10-s1", _DRAWN),
    ("CIFAR-10", "S2"): ("cifar10-s2", "split as the paper's text says, its released script draws another"),
    ("NUS-WIDE", "21 labels"): ("nuswide", _DRAWN),
    ("NUS-WIDE", "21 labels; shared-label count"): ("nuswide", _DRAWN),
    ("ImageNet100", "HashNet split"): ("imagenet100", ""),
    ("LabelMe", "affinity {1;2;5;10} at {5;1;0.2;0.1}%"): ("labelme", _DRAWN),
    ("CIFAR-10", "official split"): ("cifar10-s2", ""),
    ("CIFAR-100", "official split; coarse labels at test"): ("cifar100", ""),
}
_METRICS = {  # the paper's metric: our name, and what differs even so
    "AP_T": ("AP", ""),
    "AP@5K": ("AP@5000", ""),
    "AP@1000": ("AP@1000", ""),
    "NDCG": ("NDCG", ""),
    "mAP": ("AP", "the paper does not say how its mAP breaks ties"),
    "mLGAP": ("mLGAP", ""),
}
_METHODS = {  # the paper's method: our name and group
    "BRE": ("bre", "pair-based"),
    "MACHash": ("machash", "pair-based"),
    "FastHash": ("fasthash", "pair-based"),
    "StructHash": ("structhash", "list-based"),
    "DPSH": ("dpsh", "pair-based"),
    "DTSH": ("dtsh", "triplet-based"),
    "HashNet": ("hashnet", "pair-based"),
    "MIHash": ("mihash", "list-based"),
    "TALR-AP": ("talr-ap", "list-based"),
    "TALR-AP (alpha=40 fixed)": ("talr-ap", "list-based"),
    "TALR-AP (alpha->inf continuation)": ("talr-ap", "list-based"),
    "TALR-NDCG": ("talr-ndcg", "list-based"),
    "DSH original (eq. 16)": ("dsh", "pair-based"),
    "DSH dispersion (eq. 20)": ("dsh-dispersion", "pair-based"),
    "DSH dispersion (eq. 25)": ("dsh-dispersion", "pair-based"),
}
_PARAMS = {  # parameters, on or off, that tell two rows of a paper apart
    "TALR-AP (alpha=40 fixed)": {"continuation": False},
    "TALR-AP (alpha->inf continuation)": {"continuation": True},
}
_STATED = {"TALR-AP (alpha=40 fixed)": {"alpha": 40}}  # parameters that a paper's row states
_BACKBONES = {  # the paper's backbone: the features of ours that are the same, and the paper's in words
    "VGG-F": ("", "a fine-tuned VGG-F"),
    "VGG-F fc7 features": ("vgg-f", "VGG-F fc7"),
    "AlexNet": ("", "a fine-tuned AlexNet"),
    "GIST": ("gist", "GIST"),
    "DSH CNN (3 conv + 2 fc)": ("", "a CNN of 3 + 2 layers trained from scratch"),
}


@cache
def published_values() -> tuple[Published, ...]:
    """Read the numbers of the papers.

    Returns
    -------
    tuple of Published
        In the order of the file.
    """
    layouts = {(layout.source, layout.number): name for name, layout in LAYOUTS.items()}
    text = files("hashbench.reports.tables").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            **{key: row[key] for key in ("source", "table", "dataset", "setting", "backbone", "metric", "method")},
            n_bits=int(row["bits"]),
            value=row["value"],
            layout=layouts[row["source"].partition(" ")[0], row["table"]],
            our_dataset=_DATASETS[row["dataset"], row["setting"]][0],
            our_metric=_METRICS[row["metric"]][0],
            our_method=_METHODS[row["method"]][0],
            group=_METHODS[row["method"]][1],
        )
        for row in csv.DictReader(text.splitlines())
    )
