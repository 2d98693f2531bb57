"""Quantities that some scripts compute instead of a metric, from the ranks of hits or from counts."""

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.reports.explain import conventions as by
from hashbench.reports.explain.conventions import Evaluator, Query
from hashbench.scoring.histogram import TieHistogram


def without_first(ranks: IntArray, cut: int, query: Query, script: Evaluator) -> float:
    """Compute AP above the cut, to which a hit at rank 1 adds nothing."""
    hits = ranks[ranks <= cut]
    return float(by.precisions(hits)[hits > 1].sum() / len(hits)) if len(hits) else 0.0


def of_first_hits(ranks: IntArray, cut: int, query: Query, script: Evaluator) -> float:
    """Compute AP of the first ``cut`` hits, at any rank."""
    return by.mean_precision(ranks[:cut])


def inside(ranks: IntArray, cut: int, query: Query, script: Evaluator) -> float:
    """Compute AP of the ``cut`` items inside a radius."""
    return by.mean_precision(ranks[ranks <= cut])


def of_scores_above_zero(ranks: IntArray, cut: int, query: Query, script: Evaluator) -> float:
    """Compute AP above the cut, where items that differ in all bits count as irrelevant."""
    rows = query.rows(script, cut)
    return by.mean_precision(ranks[query.keys(by.hamming)[rows[ranks - 1]] < query.n_bits])


def none_relevant(counts: TieHistogram, cut: int) -> FloatArray:
    """Return 0 for each query."""
    return np.zeros(counts.n_queries)


def at_end_of_ties(counts: TieHistogram, cut: int) -> FloatArray:
    """Compute the precision at the end of each tie, weighted by the share of relevant items in it."""
    precision = (counts.rel_before + counts.n_rel) / np.maximum(counts.before + counts.size, 1)
    return np.asarray((precision * counts.n_rel).sum(axis=1) / np.maximum(counts.n_relevant, 1))


def area(counts: TieHistogram, cut: int) -> float:
    """Compute the area under precision against recall of all pairs, radius by radius, without the last."""
    relevant = counts.n_rel.sum(axis=0)
    if not relevant.any():  # recall is 0 / 0
        return float("nan")
    precision = _of_pairs(counts)
    good = np.cumsum(relevant)[: len(precision)]
    recall, first = np.unique(good / relevant.sum(), return_index=True)
    precision = precision[first]
    if good.size and good[0] > 0:
        recall, precision = np.insert(recall, 0, 0.0), np.insert(precision, 0, precision[0])
    return float(np.trapezoid(precision, recall))


def precision_of_pairs(counts: TieHistogram, radius: int) -> float:
    """Compute the share of relevant pairs among those of all queries inside a radius; NaN at the last."""
    precision = _of_pairs(counts)
    return float(precision[radius]) if radius < len(precision) else float("nan")


def recall_of_pairs(counts: TieHistogram, radius: int) -> float:
    """Compute the share of relevant pairs that are inside a radius; NaN at the last."""
    relevant = counts.n_rel.sum(axis=0)
    is_defined = relevant.any() and radius < len(_of_pairs(counts))
    return float(relevant[: radius + 1].sum() / relevant.sum()) if is_defined else float("nan")


def _of_pairs(counts: TieHistogram) -> FloatArray:
    """Compute the precision of all pairs, radius by radius, without the last."""
    sizes = counts.size.sum(axis=0)
    n_radii = int(np.flatnonzero(sizes)[-1])
    good, retrieved = np.cumsum(counts.n_rel.sum(axis=0))[:n_radii], np.cumsum(sizes)[:n_radii]
    return np.asarray(good / (retrieved + np.finfo(float).eps))


def ndcg_of_int8(counts: TieHistogram, cut: int) -> FloatArray:
    """Compute NDCG with gains 2**level - 1 where 2**level is at most 127."""
    gains = np.minimum(2.0**counts.levels, 127.0) - 1.0
    n_items = int(counts.n_database[0])
    discounts = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, n_items + 2)))])
    of_group = discounts[counts.before + counts.size] - discounts[counts.before]
    mean_gain = np.einsum("l,qlg->qg", gains, counts.counts) / np.maximum(counts.size, 1)
    ends = np.cumsum(counts.n_at_level[:, ::-1], axis=1)
    ideal = np.diff(discounts[np.concatenate([np.zeros((len(ends), 1), int), ends], axis=1)], axis=1) @ gains[::-1]
    return np.where(ideal > 0, (mean_gain * of_group).sum(axis=1) / np.where(ideal > 0, ideal, 1.0), 0.0)


def _ball(counts: TieHistogram, radius: int) -> tuple[IntArray, IntArray]:
    return counts.n_rel[:, : radius + 1].sum(axis=1), counts.size[:, : radius + 1].sum(axis=1)


def precision_or_share(counts: TieHistogram, radius: int) -> float:
    """Average the precision inside a radius, of all items where nothing is inside; NaN if all items are."""
    hits, sizes = _ball(counts, radius)
    if (sizes == counts.n_database).any():
        return float("nan")
    return float(np.where(sizes > 0, hits / np.maximum(sizes, 1), counts.n_relevant / counts.n_database).mean())


def among_hits(counts: TieHistogram, radius: int) -> float:
    """Average the precision over the queries that have a hit."""
    hits, sizes = _ball(counts, radius)
    return float((hits / np.maximum(sizes, 1)).sum() / max((hits > 0).sum(), 1))


def recall_among_hits(counts: TieHistogram, radius: int) -> float:
    """Average the recall over the queries that have a hit."""
    hits, _ = _ball(counts, radius)
    return float((hits / np.maximum(counts.n_relevant, 1)).sum() / max((hits > 0).sum(), 1))


def recall_or_nothing(counts: TieHistogram, radius: int) -> float:
    """Average the recall; NaN if a query has items inside and nothing is relevant."""
    hits, sizes = _ball(counts, radius)
    with np.errstate(invalid="ignore"):
        return float(np.where(sizes > 0, hits / counts.n_relevant, 0.0).mean())
