"""Ranking metrics: closed forms of expectation, minimum and maximum over all orders of tied items.

    _grammar           names, ``NAME[@cutoff][:option][:reranked=m]``, and the functions registered under them
    average_precision  AP, AP@k, AP@R, AP@rN
    ndcg               NDCG, NDCG@k; PairwiseError
    precision          P@k, R@k, RPrec; P@rN, R@rN, LGAP@rN; RR, RR@k, Hit@k
    cumulated_gain     ACG@k, WAP, WAP@k
    reranked           R@k, P@k, NDCG@k, AP@k of candidates in float order, with its compiled loops
    _sums              shared by the families: the tie that a cutoff falls into, sums of discounts
    _loops             compiled loops of the others, for sums that no array expression computes well

Each metric is a function of a `TieHistogram`, then of the cutoff (``k`` items, or a Hamming ``radius``), the number of
re-ranked items and the option, as far as its name has them. It returns `Scores`: arrays of shape (n_queries,), whose
values are in [0, 1]; those of `cumulated_gain` reach the highest level. Levels above 0 are relevant; where nothing is
relevant the value does not matter, since `Metric.scores` replaces it. Add a new metric beside its relatives, and its
oracle to ``ORACLES`` in tests/helpers/oracles.py.
"""

from hashbench.scoring.metrics import (  # noqa: F401  # each registers its metrics
    average_precision,
    cumulated_gain,
    ndcg,
    precision,
    reranked,
)
from hashbench.scoring.metrics._grammar import (
    FAMILIES,
    Family,
    Metric,
    Scores,
    Slopes,
    checked_metrics,
    get_metric,
    is_error,
    metric_names,
    readings,
    register_metric,
)

__all__ = [
    "FAMILIES",
    "Family",
    "Metric",
    "Scores",
    "Slopes",
    "checked_metrics",
    "get_metric",
    "is_error",
    "metric_names",
    "readings",
    "register_metric",
]
