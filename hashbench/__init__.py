"""Score binary codes for retrieval exactly, with every tie accounted for."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hashbench.affinity import Affinity, Distance, Explicit, Hierarchy, SameLabel, SharedLabels
    from hashbench.dataset import Dataset
    from hashbench.errors import HashbenchError
    from hashbench.method import HashMethod
    from hashbench.scoring.code_statistics import CodeUsage, code_usage
    from hashbench.scoring.evaluation import Evaluation
    from hashbench.scoring.evaluator import evaluate
    from hashbench.sources.splits import draw_any, draw_by_label, draw_split

__all__ = [
    "Affinity",
    "CodeUsage",
    "Dataset",
    "Distance",
    "Evaluation",
    "Explicit",
    "HashMethod",
    "HashbenchError",
    "Hierarchy",
    "SameLabel",
    "SharedLabels",
    "__version__",
    "code_usage",
    "draw_any",
    "draw_by_label",
    "draw_split",
    "evaluate",
]

# Imported on first use, so that `hashbench --help` never waits for NumPy.
_HOMES = {
    "CodeUsage": "hashbench.scoring.code_statistics",
    "code_usage": "hashbench.scoring.code_statistics",
    "Affinity": "hashbench.affinity",
    "Dataset": "hashbench.dataset",
    "HashMethod": "hashbench.method",
    "Distance": "hashbench.affinity",
    "Evaluation": "hashbench.scoring.evaluation",
    "Explicit": "hashbench.affinity",
    "Hierarchy": "hashbench.affinity",
    "HashbenchError": "hashbench.errors",
    "SameLabel": "hashbench.affinity",
    "SharedLabels": "hashbench.affinity",
    "draw_any": "hashbench.sources.splits",
    "draw_by_label": "hashbench.sources.splits",
    "draw_split": "hashbench.sources.splits",
    "evaluate": "hashbench.scoring.evaluator",
}


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hashbench' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
