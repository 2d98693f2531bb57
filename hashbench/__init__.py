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
    plugins        what authors of methods, datasets and metrics import
    errors         the exception for mistakes that users can fix, and for packages that are missing
    __main__       ``python -m hashbench``
    _choices       options that users choose by name, affinity rules among them
    _validation    checks of what users pass
    _parallel      threads, and loops compiled on first use if numba is installed
    _lazy          names that are imported on first use
    _plugins       a guard around the code of plug-ins
    _typing        names of array types
"""

from typing import TYPE_CHECKING, Any

from hashbench._lazy import imported

__version__ = "0.1.0"

_NAMES = {  # of each module; imported on first use, so that `hashbench --help` never waits for NumPy
    "hashbench.affinity": ("Affinity", "Distance", "Explicit", "Hierarchy", "SameLabel", "SharedLabels"),
    "hashbench.errors": ("HashbenchError",),
    "hashbench.functions": (
        "compare_results",
        "diff",
        "encode",
        "explain",
        "explain_run",
        "export",
        "plot",
        "prepare",
        "read_codes",
        "run",
        "tables",
        "tune",
    ),
    "hashbench.registry": ("dataset_names", "method_names"),
    "hashbench.reports.diff": ("Diff",),
    "hashbench.reports.explain.explained": ("Explained",),
    "hashbench.scoring.candidates": ("CandidateCount",),
    "hashbench.scoring.code_statistics": ("CodeUsage", "Drift", "code_usage", "compare_codes"),
    "hashbench.scoring.comparison": ("Difference", "compare"),
    "hashbench.scoring.evaluation": ("Evaluation", "Summary"),
    "hashbench.scoring.histogram": ("TieHistogram",),
    "hashbench.scoring.lists": ("evaluate_ranking",),
    "hashbench.scoring.may_be_best": ("MayBeBest", "may_be_best"),
    "hashbench.scoring.metrics": ("metric_names",),
    "hashbench.scoring.problem": ("Problem", "evaluate"),
    "hashbench.scoring.ranking": ("evaluate_histogram",),
    "hashbench.scoring.runs": ("evaluate_run",),
    "hashbench.scoring.scorer": ("scorer",),
    "hashbench.scoring.thresholds": ("Match", "PairDifference", "Thresholds", "compare_pairs", "pair_thresholds"),
    "hashbench.sources.run_files": ("read_qrels", "read_run"),
    "hashbench.store.hdf5": ("read_model",),
    "hashbench.store.results": ("read_results",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(["__version__", *_HOMES])

if TYPE_CHECKING:  # for type checkers, which cannot run _NAMES; a test holds the two equal
    from hashbench.affinity import (  # noqa: I001  # several names a line
        Affinity as Affinity,
        Distance as Distance,
        Explicit as Explicit,
        Hierarchy as Hierarchy,
        SameLabel as SameLabel,
        SharedLabels as SharedLabels,
    )
    from hashbench.errors import HashbenchError as HashbenchError
    from hashbench.functions import (
        compare_results as compare_results,
        diff as diff,
        encode as encode,
        explain as explain,
        explain_run as explain_run,
        export as export,
        plot as plot,
        prepare as prepare,
        read_codes as read_codes,
        run as run,
        tables as tables,
        tune as tune,
    )
    from hashbench.registry import dataset_names as dataset_names, method_names as method_names
    from hashbench.reports.diff import Diff as Diff
    from hashbench.reports.explain.explained import Explained as Explained
    from hashbench.scoring.candidates import CandidateCount as CandidateCount
    from hashbench.scoring.code_statistics import (
        CodeUsage as CodeUsage,
        Drift as Drift,
        code_usage as code_usage,
        compare_codes as compare_codes,
    )
    from hashbench.scoring.comparison import Difference as Difference, compare as compare
    from hashbench.scoring.evaluation import Evaluation as Evaluation, Summary as Summary
    from hashbench.scoring.histogram import TieHistogram as TieHistogram
    from hashbench.scoring.lists import evaluate_ranking as evaluate_ranking
    from hashbench.scoring.may_be_best import MayBeBest as MayBeBest, may_be_best as may_be_best
    from hashbench.scoring.metrics import metric_names as metric_names
    from hashbench.scoring.problem import Problem as Problem, evaluate as evaluate
    from hashbench.scoring.ranking import evaluate_histogram as evaluate_histogram
    from hashbench.scoring.runs import evaluate_run as evaluate_run
    from hashbench.scoring.scorer import scorer as scorer
    from hashbench.scoring.thresholds import (
        Match as Match,
        PairDifference as PairDifference,
        Thresholds as Thresholds,
        compare_pairs as compare_pairs,
        pair_thresholds as pair_thresholds,
    )
    from hashbench.sources.run_files import read_qrels as read_qrels, read_run as read_run
    from hashbench.store.hdf5 import read_model as read_model
    from hashbench.store.results import read_results as read_results


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # which would take any name for one of hashbench

    def __getattr__(name: str) -> Any:
        return imported(__name__, _HOMES, name)
