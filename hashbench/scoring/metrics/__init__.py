"""Ranking metrics: closed forms of expectation, minimum and maximum over all orders of tied items.

    _grammar           from a name, ``NAME[@cutoff][:option][:reranked=m]``, to the function registered under it
    average_precision  AP, AP@k
    ndcg               NDCG, NDCG@k
    precision          P@k, R@k, RPrec; P@rN, R@rN
    local_group        LGAP@rN
    first_hit          RR, Hit@k
    pairs              PairwiseError
    reranked           R@k, P@k, NDCG@k, AP@k of candidates in float order
    _sums              the tie that a cutoff falls into, sums of discounts: what the families share
    _loops             the few loops that no array expression does well, compiled
    _reranking_loops   those of `reranked`

Each takes a tie histogram and gives mean, low, high and tie_sd for each query. To add a metric, add a
function beside its relatives.
"""

from hashbench.scoring.metrics import (  # noqa: F401  # each registers its metrics
    average_precision,
    first_hit,
    local_group,
    ndcg,
    pairs,
    precision,
    reranked,
)
from hashbench.scoring.metrics._grammar import (
    FAMILIES,
    Family,
    Metric,
    Scores,
    get_metric,
    is_error,
    metric_names,
    register_metric,
)

__all__ = ["FAMILIES", "Family", "Metric", "Scores", "get_metric", "is_error", "metric_names", "register_metric"]
