"""Score binary codes for retrieval exactly, with every tie accounted for."""

from typing import TYPE_CHECKING, Any

from hashbench._version import __version__

if TYPE_CHECKING:
    from hashbench.affinity import Affinity, Distance, Explicit, Hierarchy, SameLabel, SharedLabels
    from hashbench.dataset import Dataset
    from hashbench.errors import HashbenchError
    from hashbench.method import HashMethod
    from hashbench.scoring.code_statistics import CodeUsage, code_usage
    from hashbench.scoring.evaluation import Evaluation, evaluate

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
    "evaluate": "hashbench.scoring.evaluation",
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
