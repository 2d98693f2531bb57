"""What authors of methods, datasets and metrics import: base classes, parameters, draws, downloads, metrics.

The tutorial is docs/tutorials/plugins.md. `hashbench.testing` has the conformance suites.
"""

from typing import TYPE_CHECKING, Any

from hashbench._lazy import imported

_NAMES = {  # of each module; imported on first use, so that a metric does not wait for scikit-learn
    "hashbench.adapter": ("DatasetAdapter", "Options", "OwnData"),
    "hashbench.dataset": ("Dataset",),
    "hashbench.errors": ("Refusal",),
    "hashbench.learning.base": ("LearnedHash",),
    "hashbench.learning.batch": ("Batch",),
    "hashbench.learning.classes": ("ClassHash", "TargetHash", "mean_over_labelled"),
    "hashbench.learning.loop": ("Items",),
    "hashbench.method": ("HashMethod", "choice", "real", "setting", "whole"),
    "hashbench.scoring.histogram": ("TieHistogram",),
    "hashbench.scoring.metrics": ("get_metric", "register_metric", "Scores", "Slopes"),
    "hashbench.sources.download": ("Needed", "demand", "fetch"),
    "hashbench.sources.features.extraction": ("extract",),
    "hashbench.sources.splits": ("draw_any", "draw_by_label", "draw_split"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted([*_HOMES])

if TYPE_CHECKING:  # for type checkers, which cannot run _NAMES; a test holds the two equal
    from hashbench.adapter import DatasetAdapter as DatasetAdapter, Options as Options, OwnData as OwnData  # noqa: I001
    from hashbench.dataset import Dataset as Dataset
    from hashbench.errors import Refusal as Refusal
    from hashbench.learning.base import LearnedHash as LearnedHash
    from hashbench.learning.batch import Batch as Batch
    from hashbench.learning.classes import (
        ClassHash as ClassHash,
        TargetHash as TargetHash,
        mean_over_labelled as mean_over_labelled,
    )
    from hashbench.learning.loop import Items as Items
    from hashbench.method import (
        HashMethod as HashMethod,
        choice as choice,
        real as real,
        setting as setting,
        whole as whole,
    )
    from hashbench.scoring.histogram import TieHistogram as TieHistogram
    from hashbench.scoring.metrics import (
        get_metric as get_metric,
        register_metric as register_metric,
        Scores as Scores,
        Slopes as Slopes,
    )
    from hashbench.sources.download import Needed as Needed, demand as demand, fetch as fetch
    from hashbench.sources.features.extraction import extract as extract
    from hashbench.sources.splits import (
        draw_any as draw_any,
        draw_by_label as draw_by_label,
        draw_split as draw_split,
    )


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # which would take any name for one of hashbench.plugins

    def __getattr__(name: str) -> Any:
        return imported(__name__, _HOMES, name)
