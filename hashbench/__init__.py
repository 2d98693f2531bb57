"""Score binary codes for retrieval, exactly over all orders of tied items.

The contracts and their helpers. The `__init__.py` of each folder beside them starts with its own map. Built-in
plug-ins are in methods/ and datasets/.

    method         the contract of methods
    adapter        the contract of dataset adapters, and their options
    dataset        items, split and affinity rule; the names of rules (``RULES``)
    unseen         names of datasets with classes that training does not see
    affinity       the level of relevance of a pair
    bits           bit order and packing
    distances      distances of features: Euclidean, cosine, dot
    registry       plug-ins by name
    cards          facts about a method, without constructing it
    testing        the conformance suites
    functions      commands as functions
    errors         the exception for mistakes that users can fix, and for packages that are missing
    __main__       ``python -m hashbench``
    _choices       options that users choose by name, affinity rules among them
    _validation    checks of what users pass
    _parallel      threads, and loops compiled on first use if numba is installed
    _plugins       a guard around the code of plug-ins
    _typing        names of array types
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {  # of each module; imported on first use, so that `hashbench --help` never waits for NumPy
    "hashbench.adapter": ("DatasetAdapter", "Options", "OwnData"),
    "hashbench.affinity": ("Affinity", "Distance", "Explicit", "Hierarchy", "SameLabel", "SharedLabels"),
    "hashbench.dataset": ("Dataset",),
    "hashbench.errors": ("HashbenchError", "Refusal"),
    "hashbench.functions": (
        "compare_results",
        "diff",
        "explain",
        "explain_run",
        "plot",
        "read_codes",
        "run",
        "tables",
        "tune",
    ),
    "hashbench.learning.base": ("LearnedHash",),
    "hashbench.learning.batch": ("Batch",),
    "hashbench.learning.classes": ("ClassHash", "TargetHash", "mean_over_labelled"),
    "hashbench.method": ("HashMethod", "choice", "real", "setting", "whole"),
    "hashbench.reports.diff": ("Diff",),
    "hashbench.reports.explain.explained": ("Explained",),
    "hashbench.scoring.candidates": ("CandidateCount",),
    "hashbench.scoring.code_statistics": ("CodeUsage", "Drift", "code_usage", "drift"),
    "hashbench.scoring.comparison": ("Difference", "compare"),
    "hashbench.scoring.evaluation": ("Evaluation", "Summary"),
    "hashbench.scoring.histogram": ("TieHistogram",),
    "hashbench.scoring.lists": ("evaluate_ranking",),
    "hashbench.scoring.may_be_best": ("MayBeBest", "may_be_best"),
    "hashbench.scoring.metrics": ("Scores", "Slopes", "register_metric"),
    "hashbench.scoring.problem": ("Problem", "evaluate"),
    "hashbench.scoring.runs": ("evaluate_run",),
    "hashbench.scoring.scorer": ("scorer",),
    "hashbench.scoring.thresholds": ("Match", "PairDifference", "Thresholds", "compare_pairs", "pair_thresholds"),
    "hashbench.sources.download": ("Needed", "demand", "fetch"),
    "hashbench.sources.features.extraction": ("extract",),
    "hashbench.sources.run_files": ("read_qrels", "read_run"),
    "hashbench.sources.splits": ("draw_any", "draw_by_label", "draw_split"),
    "hashbench.store.hdf5": ("read_model",),
    "hashbench.store.results": ("read_results",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(["__version__", *_HOMES])

if TYPE_CHECKING:  # for type checkers, which cannot run _NAMES; a test holds the two equal
    # several names a line
    from hashbench.adapter import DatasetAdapter as DatasetAdapter, Options as Options, OwnData as OwnData  # noqa: I001
    from hashbench.affinity import (
        Affinity as Affinity,
        Distance as Distance,
        Explicit as Explicit,
        Hierarchy as Hierarchy,
        SameLabel as SameLabel,
        SharedLabels as SharedLabels,
    )
    from hashbench.dataset import Dataset as Dataset
    from hashbench.errors import HashbenchError as HashbenchError, Refusal as Refusal
    from hashbench.functions import (
        compare_results as compare_results,
        diff as diff,
        explain as explain,
        explain_run as explain_run,
        plot as plot,
        read_codes as read_codes,
        run as run,
        tables as tables,
        tune as tune,
    )
    from hashbench.learning.base import LearnedHash as LearnedHash
    from hashbench.learning.batch import Batch as Batch
    from hashbench.learning.classes import (
        ClassHash as ClassHash,
        TargetHash as TargetHash,
        mean_over_labelled as mean_over_labelled,
    )
    from hashbench.method import (
        HashMethod as HashMethod,
        choice as choice,
        real as real,
        setting as setting,
        whole as whole,
    )
    from hashbench.reports.diff import Diff as Diff
    from hashbench.reports.explain.explained import Explained as Explained
    from hashbench.scoring.candidates import CandidateCount as CandidateCount
    from hashbench.scoring.code_statistics import (
        CodeUsage as CodeUsage,
        Drift as Drift,
        code_usage as code_usage,
        drift as drift,
    )
    from hashbench.scoring.comparison import Difference as Difference, compare as compare
    from hashbench.scoring.evaluation import Evaluation as Evaluation, Summary as Summary
    from hashbench.scoring.histogram import TieHistogram as TieHistogram
    from hashbench.scoring.lists import evaluate_ranking as evaluate_ranking
    from hashbench.scoring.may_be_best import MayBeBest as MayBeBest, may_be_best as may_be_best
    from hashbench.scoring.metrics import Scores as Scores, Slopes as Slopes, register_metric as register_metric
    from hashbench.scoring.problem import Problem as Problem, evaluate as evaluate
    from hashbench.scoring.runs import evaluate_run as evaluate_run
    from hashbench.scoring.scorer import scorer as scorer
    from hashbench.scoring.thresholds import (
        Match as Match,
        PairDifference as PairDifference,
        Thresholds as Thresholds,
        compare_pairs as compare_pairs,
        pair_thresholds as pair_thresholds,
    )
    from hashbench.sources.download import Needed as Needed, demand as demand, fetch as fetch
    from hashbench.sources.features.extraction import extract as extract
    from hashbench.sources.run_files import read_qrels as read_qrels, read_run as read_run
    from hashbench.sources.splits import draw_any as draw_any, draw_by_label as draw_by_label, draw_split as draw_split
    from hashbench.store.hdf5 import read_model as read_model
    from hashbench.store.results import read_results as read_results


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # which would take any name for one of hashbench

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'hashbench' has no attribute {name!r}")
        from importlib import import_module

        from hashbench.errors import needing

        with needing(f"hashbench.{name}"):
            value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
