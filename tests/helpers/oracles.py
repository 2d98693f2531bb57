"""Slow and obvious answers that share no code with hashbench: every order of tied items, one by one."""

import itertools
import math
from collections import Counter
from fractions import Fraction


def orders(distances, levels):
    """Yield every distinct ranking of the levels, and in how many orders of the tied items it arises."""
    groups = [
        Counter(itertools.permutations([levels[i] for i in range(len(levels)) if distances[i] == distance]))
        for distance in sorted(set(distances))
    ]
    for parts in itertools.product(*(group.items() for group in groups)):
        ranked = [level for arrangement, _ in parts for level in arrangement]
        yield ranked, math.prod(times for _, times in parts)


def over_orders(score, distances, levels):
    """Mean, minimum, maximum and standard deviation of a score of one ranking over all orders of tied items."""
    scores, weights = zip(*((score(ranked), times) for ranked, times in orders(distances, levels)), strict=True)
    mean = math.fsum(s * w for s, w in zip(scores, weights, strict=True)) / sum(weights)
    variance = math.fsum(w * (s - mean) ** 2 for s, w in zip(scores, weights, strict=True)) / sum(weights)
    return mean, min(scores), max(scores), math.sqrt(variance)


def of_each_query(score, distances, levels):
    """The same for each query; NaN where no item is relevant."""
    rankings = zip(distances, levels, strict=True)
    return [over_orders(score, d, lv) if any(lv) else (math.nan,) * 4 for d, lv in rankings]


def precision(ranked, k):
    top = ranked[:k]
    return sum(level > 0 for level in top) / len(top)


def average_precision(ranked, k=None, divisor="relevant"):
    k = len(ranked) if k is None else min(k, len(ranked))
    n_relevant = sum(level > 0 for level in ranked)
    precisions = [precision(ranked, rank) for rank in range(1, k + 1) if ranked[rank - 1] > 0]
    if not precisions:
        return 0.0
    by = {"retrieved": len(precisions), "relevant": n_relevant, "capped": min(k, n_relevant)}
    return math.fsum(precisions) / by[divisor]


def recall(ranked, k, divisor="relevant"):
    n_relevant = sum(level > 0 for level in ranked)
    return sum(level > 0 for level in ranked[:k]) / (min(k, n_relevant) if divisor == "capped" else n_relevant)


def cumulated_gain(ranked, k):
    return sum(ranked[:k]) / len(ranked[:k])


def weighted_precision(ranked, k=None):
    gains = [cumulated_gain(ranked, rank) for rank, level in enumerate(ranked[:k], start=1) if level > 0]
    return math.fsum(gains) / len(gains) if gains else 0.0


def r_precision(ranked):
    return precision(ranked, sum(level > 0 for level in ranked))


def reciprocal_rank(ranked):
    return 1 / next(rank for rank, level in enumerate(ranked, start=1) if level > 0)


def hit(ranked, k):
    return float(any(level > 0 for level in ranked[:k]))


def linear_dcg(ranked):
    return sum(level * (len(ranked) - rank) for rank, level in enumerate(ranked, start=1))


def linear_ndcg(ranked):
    ideal = linear_dcg(sorted(ranked, reverse=True))
    return linear_dcg(ranked) / ideal if ideal else 1.0


def pairwise_error(ranked):
    """Count misordered pairs by their level differences: the other side of the theorem, pair by pair."""
    ideal = linear_dcg(sorted(ranked, reverse=True))
    wrong = sum(max(lower - upper, 0) for upper, lower in itertools.combinations(ranked, 2))
    return wrong / ideal if ideal else 0.0


def dcg(ranked, k, gain="exponential"):
    gains = [level if gain == "trec" else 2**level - 1 for level in ranked[:k]]
    return math.fsum(one / math.log2(rank + 1) for rank, one in enumerate(gains, start=1))


def ndcg(ranked, k=None, gain="exponential"):
    return dcg(ranked, k, gain) / dcg(sorted(ranked, reverse=True), k, gain)


def precision_in_ball(distances, levels, radius, empty="zero"):
    ball = [level for distance, level in zip(distances, levels, strict=True) if distance <= radius]
    return sum(level > 0 for level in ball) / len(ball) if ball else {"zero": 0.0, "skip": math.nan}[empty]


def recall_in_ball(distances, levels, radius):
    inside = [d <= radius for d, level in zip(distances, levels, strict=True) if level > 0]
    return sum(inside) / len(inside)


# By the name a metric is registered under. An oracle takes a ranking of levels, then the cutoff and the option if the
# metric has them; one inside a radius takes distances, levels and the radius.
ORACLES = {
    "ACG@k": cumulated_gain,
    "AP": lambda ranked, ties="ranked": average_precision(ranked),
    "AP@R": lambda ranked: average_precision(ranked, sum(level > 0 for level in ranked)),
    "AP@k": average_precision,
    "Hit@k": hit,
    "NDCG": lambda ranked, gain: linear_ndcg(ranked) if gain == "linear" else ndcg(ranked, None, gain),
    "NDCG@k": ndcg,
    "P@k": precision,
    "P@rN": precision_in_ball,
    "PairwiseError": pairwise_error,
    "R@k": recall,
    "R@rN": recall_in_ball,
    "RPrec": r_precision,
    "RR": reciprocal_rank,
    "WAP": weighted_precision,
    "WAP@k": weighted_precision,
    "RR@k": lambda ranked, k: hit(ranked, k) * reciprocal_rank(ranked),
}


def cut_tie(prefix, size, n_rel, k):
    """Exact AP@k of a known 0/1 ranking followed by one tie that the cutoff k falls into.

    Return (mean, low, high) as fractions for each divisor, by summing over the number m of the tie's
    relevant items above the cutoff; in a given number the worst order has them last, the best first.
    """
    before, rel_before, slots = len(prefix), sum(prefix), k - len(prefix)
    known = sum(Fraction(sum(prefix[:rank]), rank) for rank in range(1, before + 1) if prefix[rank - 1])
    n_relevant = rel_before + n_rel
    feasible = range(max(0, slots - (size - n_rel)), min(slots, n_rel) + 1)
    result = {}
    for divisor in ("retrieved", "relevant", "capped"):
        mean, extremes = Fraction(0), []
        for m in feasible:
            by = {"retrieved": rel_before + m, "relevant": n_relevant, "capped": min(k, n_relevant)}[divisor]
            chance = Fraction(math.comb(n_rel, m) * math.comb(size - n_rel, slots - m), math.comb(size, slots))
            expected = sum(
                Fraction(m, slots)
                * (rel_before + 1 + (place - 1) * Fraction(m - 1, max(slots - 1, 1)))
                / (before + place)
                for place in range(1, slots + 1)
            )
            best = sum(Fraction(rel_before + i, before + i) for i in range(1, m + 1))
            worst = sum(Fraction(rel_before + i, before + slots - m + i) for i in range(1, m + 1))
            mean += chance * (known + expected) / max(by, 1)
            extremes += [(known + best) / max(by, 1), (known + worst) / max(by, 1)]
        result[divisor] = (mean, min(extremes), max(extremes))
    return result


def hamming_distances(query, database):
    return [[sum(a != b for a, b in zip(q, d, strict=True)) for d in database] for q in query]


def same_label(query, database):
    return [[int(q == d) for d in database] for q in query]


def shared_labels(query, database):
    return [[sum(a == b == 1 for a, b in zip(q, d, strict=True)) for d in database] for q in query]


def distance_levels(query, database, squared_thresholds, levels):
    def level(q, d):
        squared = sum((int(a) - int(b)) ** 2 for a, b in zip(q, d, strict=True))
        met = [value for at, value in zip(squared_thresholds, levels, strict=True) if squared <= at]
        return max(met, default=0)

    return [[level(q, d) for d in database] for q in query]
