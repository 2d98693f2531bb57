"""The protocol of TALR's LabelMe experiments: items without labels; near items are relevant."""

from typing import Any

from hashbench._typing import Float32Array
from hashbench.distances import squared_distance_percentiles
from hashbench.sources.splits import draw_any

N_QUERIES, N_TRAIN = 2_000, 5_000
_PERCENTILES, _LEVELS = [5, 1, 0.2, 0.1], [1, 2, 5, 10]
PROTOCOL = (
    "2,000 queries and 5,000 training items drawn with seed 0, database = all but the queries; level 1, 2, 5, 10 for "
    "Euclidean distances up to the 5, 1, 0.2, 0.1 percentile of those between training items (the paper's; its script "
    "compares squared with plain distances)"
)


def describe_unlabelled(features: Float32Array, n_queries: int = N_QUERIES, n_train: int = N_TRAIN) -> dict[str, Any]:
    """Draw a split with seed 0 and compute the thresholds of the four levels; return split, rule and parameters."""
    split = draw_any(len(features), n_queries, n_train, 0)
    return {"split": split, **distance_rule(features[split[2]])}


def distance_rule(features: Float32Array) -> dict[str, Any]:
    """Compute thresholds of the four levels from training items; return ``rule`` and ``rule_params`` of `Dataset`."""
    thresholds = squared_distance_percentiles(features, _PERCENTILES)
    return {"rule": "distance", "rule_params": {"squared_thresholds": thresholds, "levels": _LEVELS}}
