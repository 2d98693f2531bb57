"""Ranking metrics: closed forms of expectation, minimum and maximum over all orders of tied items.

One file a family; each function there registers itself under its name in the grammar
``NAME[@cutoff][:option]``. To add a metric, add a function beside its relatives.
"""

from hashbench.scoring.metrics import average_precision, first_hit, ndcg, pairs, precision  # noqa: F401  # each registers its metrics
from hashbench.scoring.metrics._grammar import FAMILIES, Family, Metric, Scores, get_metric, metric_names

__all__ = ["FAMILIES", "Family", "Metric", "Scores", "get_metric", "metric_names"]
