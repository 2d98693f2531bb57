"""Score binary codes for retrieval exactly, with every tie accounted for.

The contracts and the ground they stand on; the folders beside them are rooms, each headed by a map of its own.

    method         the contract of methods
    adapter        the contract of dataset adapters, and what users choose
    dataset        items, split and affinity rule
    unseen         names of datasets with classes that training does not see
    affinity       which level of relevance a pair has
    bits           bit order, packing
    distances      of features: Euclidean, cosine, dot
    registry       plug-ins by name
    cards          what is known of a method without making one
    testing        the conformance suites
    errors         the exception for mistakes that can be mended
    _choices       what users choose by name
    _validation    what users bring, checked
    _source_code   what the source of a module tells without importing it
    _parallel      threads, and loops compiled on first use
    _typing        names of array types
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hashbench.adapter import DatasetAdapter, Options, OwnData
    from hashbench.affinity import Affinity, Distance, Explicit, Hierarchy, SameLabel, SharedLabels
    from hashbench.dataset import Dataset
    from hashbench.errors import HashbenchError, Refusal
    from hashbench.learning.base import LearnedHash
    from hashbench.learning.batch import Batch
    from hashbench.learning.classes import ClassHash, TargetHash
    from hashbench.method import HashMethod, choice, real, setting, whole
    from hashbench.reports.python import plot, run, tables, tune
    from hashbench.scoring.code_statistics import CodeUsage, code_usage
    from hashbench.scoring.curves import curves
    from hashbench.scoring.evaluation import Evaluation, Summary
    from hashbench.scoring.evaluator import evaluate
    from hashbench.scoring.histogram import TieHistogram
    from hashbench.scoring.metrics import Scores, register_metric
    from hashbench.scoring.runs import evaluate_run
    from hashbench.scoring.scorer import scorer
    from hashbench.sources.download import Needed, demand, fetch
    from hashbench.sources.features.extraction import extract
    from hashbench.sources.run_files import read_qrels, read_run
    from hashbench.sources.splits import draw_any, draw_by_label, draw_split
    from hashbench.store.models import read_model
    from hashbench.store.results import read_results

__all__ = [
    "Affinity",
    "Batch",
    "ClassHash",
    "CodeUsage",
    "Dataset",
    "DatasetAdapter",
    "Distance",
    "Evaluation",
    "Explicit",
    "HashMethod",
    "HashbenchError",
    "Hierarchy",
    "LearnedHash",
    "Needed",
    "Options",
    "OwnData",
    "Refusal",
    "SameLabel",
    "Scores",
    "SharedLabels",
    "Summary",
    "TargetHash",
    "TieHistogram",
    "__version__",
    "choice",
    "code_usage",
    "curves",
    "demand",
    "draw_any",
    "draw_by_label",
    "draw_split",
    "evaluate",
    "evaluate_run",
    "extract",
    "fetch",
    "mean_over_labelled",
    "plot",
    "read_model",
    "read_qrels",
    "read_results",
    "read_run",
    "real",
    "register_metric",
    "run",
    "scorer",
    "setting",
    "tables",
    "tune",
    "whole",
]

_NAMES = {  # of each module; imported on first use, so that `hashbench --help` never waits for NumPy
    "hashbench.adapter": ("DatasetAdapter", "Options", "OwnData"),
    "hashbench.affinity": ("Affinity", "Distance", "Explicit", "Hierarchy", "SameLabel", "SharedLabels"),
    "hashbench.dataset": ("Dataset",),
    "hashbench.errors": ("HashbenchError", "Refusal"),
    "hashbench.learning.base": ("LearnedHash",),
    "hashbench.learning.batch": ("Batch",),
    "hashbench.learning.classes": ("ClassHash", "TargetHash", "mean_over_labelled"),
    "hashbench.method": ("HashMethod", "choice", "real", "setting", "whole"),
    "hashbench.reports.python": ("plot", "run", "tables", "tune"),
    "hashbench.scoring.code_statistics": ("CodeUsage", "code_usage"),
    "hashbench.scoring.curves": ("curves",),
    "hashbench.scoring.evaluation": ("Evaluation", "Summary"),
    "hashbench.scoring.evaluator": ("evaluate",),
    "hashbench.scoring.histogram": ("TieHistogram",),
    "hashbench.scoring.metrics": ("Scores", "register_metric"),
    "hashbench.scoring.runs": ("evaluate_run",),
    "hashbench.scoring.scorer": ("scorer",),
    "hashbench.sources.download": ("Needed", "demand", "fetch"),
    "hashbench.sources.features.extraction": ("extract",),
    "hashbench.sources.run_files": ("read_qrels", "read_run"),
    "hashbench.sources.splits": ("draw_any", "draw_by_label", "draw_split"),
    "hashbench.store.models": ("read_model",),
    "hashbench.store.results": ("read_results",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hashbench' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
