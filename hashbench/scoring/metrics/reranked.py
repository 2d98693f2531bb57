"""Metrics of the first items by Hamming distance, re-ranked by a float distance.

The candidates are the first m items by Hamming distance. All items nearer than the tie that m falls into are certain;
which of its ``size`` items take the ``slots`` places left is uniformly random. The derivation is in
docs/explanation/closed-forms.md.
"""

from typing import NamedTuple, cast

import numpy as np

from hashbench._parallel import compiled_or_python
from hashbench._typing import FloatArray, IntArray
from hashbench.scoring.histogram import Candidates, TieHistogram
from hashbench.scoring.metrics._grammar import Scores, register_metric
from hashbench.scoring.metrics._sums import Sums, cut_at, discount_sums
from hashbench.scoring.metrics.ndcg import exponential_gains, ideal_at

_NEGLIGIBLE = 1e-30  # a probability
_FAR = 1e-19  # a probability over that of the mode
_SOURCE = "two-stage search: Hamming distance, then the exact one"


@register_metric("R@k:reranked=m", source=_SOURCE, needs_candidates=True)
def recall_reranked(histogram: TieHistogram, k: int, n_reranked: int) -> Scores:
    """Share of the relevant items among the first k, once the first m by Hamming distance are in float order.

    The cutoff k is at most m, the number of items that are re-ranked.
    """
    return _first(histogram, k, n_reranked).n_relevant().over(histogram.n_relevant)


@register_metric("P@k:reranked=m", source=_SOURCE, needs_candidates=True)
def precision_reranked(histogram: TieHistogram, k: int, n_reranked: int) -> Scores:
    """Share of relevant items among the first k, once the first m by Hamming distance are in float order.

    A cutoff beyond the database is cut to it, also as the divisor.
    """
    return _first(histogram, k, n_reranked).n_relevant().over(np.minimum(k, histogram.n_database))


@register_metric("NDCG@k:reranked=m", source=_SOURCE, paper_value=1.0, needs_candidates=True, takes_real_levels=True)
def ndcg_reranked(histogram: TieHistogram, k: int, n_reranked: int) -> Scores:
    """Discounted gain 2^level - 1 of the first k of m re-ranked items, over that of the ideal first k of the database.

    The ideal is that of ``NDCG@k``.
    """
    first = _first(histogram, k, n_reranked)
    gains = exponential_gains(first.candidates.level)
    sums = discount_sums(first.k), discount_sums(first.k, power=2)
    return first.sums_of(gains, *sums).over(ideal_at(histogram, k))


@register_metric("AP@k:reranked=m", options=("capped", "relevant"), source=_SOURCE, needs_candidates=True)
def average_precision_reranked(histogram: TieHistogram, k: int, n_reranked: int, divisor: str = "capped") -> Scores:
    """Sum of the precision at each relevant item among the first k of m re-ranked items, over a divisor.

    The divisor is min(k, all relevant items) (``capped``), or the number of all relevant items (``relevant``).
    """
    first = _first(histogram, k, n_reranked)
    weights = np.append(0.0, 1 / np.arange(1, first.k + 1))
    sums = first.sums_of(first.is_relevant, np.cumsum(weights), np.cumsum(weights**2), of_precision=True)
    n_divisor = histogram.n_relevant
    return sums.over(np.minimum(n_divisor, k) if divisor == "capped" else n_divisor)


class _First(NamedTuple):
    """The candidates, the tie that m cuts, and the cutoff k, at most the database."""

    candidates: Candidates
    radius: IntArray
    size: IntArray
    slots: IntArray
    k: int

    @property
    def is_relevant(self) -> FloatArray:
        return (self.candidates.level > 0).astype(np.float64)

    def sums_of(self, gain: FloatArray, sums: FloatArray, squares: FloatArray, of_precision: bool = False) -> Sums:
        """Sum gain, or precision, times weight over the first k ranks, given sums of the first weights and squares."""
        items = self.candidates
        arrays = items.starts, items.value, items.hamming, gain, self.radius, self.size, self.slots, sums
        mean, low, high, variance = np.empty((4, len(self.radius)))
        moments(*arrays, squares, of_precision, mean, variance)
        for is_most, out in ((False, low), (True, high)):
            extreme(*arrays, of_precision, is_most, out)
            graded_extreme(*arrays, 1.0 if is_most else -1.0, out)
        return Sums(mean, low, high, variance)

    def n_relevant(self) -> Sums:
        ones = np.arange(self.k + 1.0)  # sums of weights 1, and of their squares
        return self.sums_of(self.is_relevant, ones, ones)


def _first(histogram: TieHistogram, k: int, n_reranked: int) -> _First:
    cut = cut_at(histogram, n_reranked)
    most = int(histogram.n_database.max(initial=1))
    candidates = cast("Candidates", histogram.candidates)  # or `Metric.scores` had refused
    return _First(candidates, cut.group, cut.size, cut.slots, min(k, most))


# Loops over candidates that are re-ranked; those of the cut tie that enter are random, or the worst or best. ``starts``
# holds where each query's candidates begin, in order of float distance ``value``, equal ones by ``gain``. Those nearer
# than ``radius``, in ``hamming`` distance, are certain; ``slots`` of the ``size`` at it enter; farther ones do not.
# ``sums[t]`` is the sum of the weights of the first t ranks; ranks beyond its end have weight 0.


@compiled_or_python(1e-5)
def moments(  # type: ignore[no-untyped-def]
    starts, value, hamming, gain, radius, size, slots, sums, squares, of_precision, out, out_variance
):
    """Compute mean and variance of the sum of gain times weight over the first ranks.

    ``of_precision``: of gain times precision there; ``gain`` is then 0 or 1, ``sums`` and ``squares`` are of 1/t and
    1/t^2. ``squares[t]`` is the sum of the squared weights of the first t ranks.

    Groups of equal values come one by one. By the number h of tie items that have entered so far, ``state[h]`` holds
    its chance and, times that chance, what one expects of the sum S so far and of its square; of precision, also of the
    relevant items F so far, of their square and of S F. A relevant item at rank t then adds (F + 1) / t. S is held
    about its mean, so that squares lose no digits to it.
    """
    k = len(sums) - 1
    for q in range(len(radius)):
        n, s, r = size[q], slots[q], radius[q]
        cap = min(s, k)
        state, after = np.zeros((cap + 1, 6)), np.zeros((cap + 1, 6))
        state[0, 0] = 1.0
        low, high = 0, 0  # fewer, or more, have entered with a negligible chance only
        sure, tied, total = 0, 0, 0.0  # before the group of equal values
        first = starts[q]
        while first < starts[q + 1] and sure + low < k:
            last = first
            n_sure, sure_gain, sure_squares, n_tied, tied_gain, tied_squares = 0, 0.0, 0.0, 0, 0.0, 0.0
            while last < starts[q + 1] and value[last] == value[first]:
                if hamming[last] < r:
                    n_sure += 1
                    sure_gain += gain[last]
                    sure_squares += gain[last] * gain[last]
                elif hamming[last] == r:
                    n_tied += 1
                    tied_gain += gain[last]
                    tied_squares += gain[last] * gain[last]
                last += 1
            first = last
            if n_sure + n_tied == 0:
                continue
            n_after = n - tied - n_tied  # of the tie, after this group
            has_gain = sure_gain + tied_gain > 0
            for h in range(low, min(high + n_tied, cap) + 1):
                for column in range(6):
                    after[h, column] = 0.0
            for h in range(low, high + 1):
                chance, mean, square = state[h, 0], state[h, 1], state[h, 2]
                ahead, ahead_square, joint = state[h, 3], state[h, 4], state[h, 5]
                if chance == 0.0 or sure + h >= k:  # nothing counts any more
                    for column in range(6):
                        after[h, column] += state[h, column]
                    continue
                base, places = sure + h, s - h
                # y of the group's tie items enter: hypergeometric, by its ratios from far below the mode to far above
                fewest, most = max(0, places - n_after), min(n_tied, places)
                mode = min(max(((places + 1) * (n_tied + 1)) // (n_after + n_tied + 2), fewest), most)
                y, weight = mode, 1.0
                while y > fewest and weight > _FAR:
                    weight *= y / (n_tied - y + 1) * (n_after - places + y) / (places - y + 1)
                    y -= 1
                start, first_weight, weights = y, weight, 0.0
                while y <= most and (y <= mode or weight > _FAR):
                    weights += weight
                    weight *= (n_tied - y) / (y + 1) * (places - y) / max(n_after - places + y + 1, 1)
                    y += 1
                end_y, weight = y, first_weight
                for y in range(start, end_y):
                    share = weight / weights
                    weight *= (n_tied - y) / (y + 1) * (places - y) / max(n_after - places + y + 1, 1)
                    to = min(h + y, cap)
                    m = n_sure + y  # of the group, enter
                    if not has_gain or m == 0:
                        for column in range(6):
                            after[to, column] += share * state[h, column]
                        continue
                    end = min(base + m, k)
                    w1, w2 = sums[end] - sums[base], squares[end] - squares[base]
                    enters = y / max(n_tied, 1)
                    both = enters * (y - 1) / max(n_tied - 1, 1)  # two given tie items enter
                    pairs = sure_gain * sure_gain - sure_squares + 2 * sure_gain * enters * tied_gain
                    pairs += both * (tied_gain * tied_gain - tied_squares)
                    f1 = (sure_gain + enters * tied_gain) / m
                    f2 = pairs / (m * (m - 1.0)) if m > 1 else 0.0
                    if not of_precision:
                        of_squares = (sure_squares + enters * tied_squares) / m
                        added = f1 * w1
                        added_square = of_squares * w2 + f2 * (w1 * w1 - w2)
                        after[to, 0] += share * chance
                        after[to, 1] += share * (mean + chance * added)
                        after[to, 2] += share * (square + 2 * mean * added + chance * added_square)
                        continue
                    # The probability that three, and four, given places of the group hold relevant items.
                    third = both * (y - 2) / max(n_tied - 2, 1)
                    fourth = third * (y - 3) / max(n_tied - 3, 1)
                    a1, a2 = sure_gain, sure_gain * (sure_gain - 1)
                    a3 = a2 * (sure_gain - 2)
                    b1, b2 = enters * tied_gain, both * tied_gain * (tied_gain - 1)
                    b3 = third * tied_gain * (tied_gain - 1) * (tied_gain - 2)
                    f3, f4 = 0.0, 0.0
                    if m > 2:
                        f3 = (a3 + 3 * a2 * b1 + 3 * a1 * b2 + b3) / (m * (m - 1.0) * (m - 2.0))
                    if m > 3:
                        b4 = fourth * tied_gain * (tied_gain - 1) * (tied_gain - 2) * (tied_gain - 3)
                        f4 = a3 * (sure_gain - 3) + 4 * a3 * b1 + 6 * a2 * b2 + 4 * a1 * b3 + b4
                        f4 /= m * (m - 1.0) * (m - 2.0) * (m - 3.0)
                    # Sums over the group's places j above k, with p = j - 1 places of the group before: of p w, p w^2,
                    # p (p - 1) w^2, and over pairs i < j of w_i w_j, of that times p_i, and times p_i p_j.
                    places_above = end - base
                    pw = places_above - (base + 1) * w1
                    pw2 = w1 - (base + 1) * w2
                    ppw2 = places_above - (base + 1) * w1 - (base + 1) * pw2 - pw2
                    ww = (w1 * w1 - w2) / 2
                    pww = pw - (base + 1) * ww
                    ppww = (pw * pw - ppw2 - pw2) / 2
                    # It adds F U + V, where U sums w over the relevant, V that times 1 + the relevant of the group
                    # before; and z relevant items.
                    u, v = f1 * w1, f1 * w1 + f2 * pw
                    uu = f1 * w2 + 2 * f2 * ww
                    cross = f2 * (pw2 + ww) + f3 * (pw * w1 - pw2 - ww)
                    uv = uu + cross
                    vv = uu + 2 * cross + f2 * pw2 + f3 * ppw2
                    vv += 2 * (2 * f3 * pww + f4 * (ppww - 2 * pww))
                    z, zz = m * f1, m * f1 + m * (m - 1.0) * f2
                    uz = w1 * (f1 + (m - 1) * f2)
                    vz = uz + pw * (2 * f2 + (m - 2) * f3)
                    after[to, 0] += share * chance
                    after[to, 1] += share * (mean + ahead * u + chance * v)
                    more = ahead_square * uu + 2 * ahead * uv + chance * vv
                    after[to, 2] += share * (square + 2 * (joint * u + mean * v) + more)
                    after[to, 3] += share * (ahead + chance * z)
                    after[to, 4] += share * (ahead_square + 2 * ahead * z + chance * zz)
                    after[to, 5] += share * (joint + mean * z + ahead_square * u + ahead * (v + uz) + chance * vz)
            high = min(high + n_tied, cap)
            mean = 0.0
            for h in range(low, high + 1):
                mean += after[h, 1]
            total += mean
            for h in range(low, high + 1):
                after[h, 2] += mean * (mean * after[h, 0] - 2 * after[h, 1])
                after[h, 5] -= mean * after[h, 3]
                after[h, 1] -= mean * after[h, 0]
            state, after = after, state
            while high > low and state[high, 0] < _NEGLIGIBLE:
                high -= 1
            while low < high and state[low, 0] < _NEGLIGIBLE:
                low += 1
            tied += n_tied
            sure += n_sure
        variance = 0.0
        for h in range(low, high + 1):
            variance += state[h, 2]
        out[q] = total
        out_variance[q] = variance


@compiled_or_python(1e-5)
def extreme(  # type: ignore[no-untyped-def]
    starts, value, hamming, gain, radius, size, slots, sums, of_precision, is_most, out
):
    """Sum gain, or precision, times weight over the first ranks for the most or least sum, where gains are 0 or one.

    Most: the nearest items with gain enter, as many as can; of those without, the farthest. Least: the other way round.
    """
    k = len(sums) - 1
    for q in range(len(radius)):
        r = radius[q]
        n_rel, one = 0, 0.0
        for i in range(starts[q], starts[q + 1]):
            if gain[i] > 0:
                one = gain[i]
                if hamming[i] == r:
                    n_rel += 1
        n_other = size[q] - n_rel
        if is_most:
            enter_rel = min(slots[q], n_rel)
            enter_other = slots[q] - enter_rel
        else:
            enter_other = min(slots[q], n_other)
            enter_rel = slots[q] - enter_other
        seen_rel, seen_other, rank, n_ranked_rel = 0, 0, 0, 0
        total = 0.0
        first = starts[q]
        while first < starts[q + 1] and rank < k:
            last = first
            rel, other = 0, 0
            while last < starts[q + 1] and value[last] == value[first]:
                if hamming[last] < r:
                    if gain[last] > 0:
                        rel += 1
                    else:
                        other += 1
                elif hamming[last] == r and gain[last] > 0:
                    seen_rel += 1
                    if (is_most and seen_rel <= enter_rel) or (not is_most and seen_rel > n_rel - enter_rel):
                        rel += 1
                elif hamming[last] == r:
                    seen_other += 1
                    if (not is_most and seen_other <= enter_other) or (is_most and seen_other > n_other - enter_other):
                        other += 1
                last += 1
            if not is_most:
                rank += other
            for _ in range(min(rel, max(k - rank, 0))):
                rank += 1
                n_ranked_rel += 1
                total += n_ranked_rel / rank if of_precision else one * (sums[rank] - sums[rank - 1])
            if is_most:
                rank += other
            first = last
        out[q] = total


@compiled_or_python(1e-5)
def graded_extreme(  # type: ignore[no-untyped-def]
    starts, value, hamming, gain, radius, size, slots, sums, sign, out
):
    """Choose which tied items enter, and the order of equal values, for the most or least sum of gain times weight.

    Only of queries with several gains above 0; `extreme` has the others. ``sign`` is 1 or -1. ``best[h]`` is the
    largest sum once h of the tie have entered; the last of it, at k, means k or more. Costs O(candidates *
    min(slots, k)).
    """
    k = len(sums) - 1
    none = -1e300
    for q in range(len(radius)):
        n, s, r = size[q], slots[q], radius[q]
        least, largest = np.inf, 0.0
        for i in range(starts[q], starts[q + 1]):
            if gain[i] > 0:
                least, largest = min(least, gain[i]), max(largest, gain[i])
        if least >= largest:
            continue
        cap = min(s, k)
        best = np.full(cap + 1, none)
        best[0] = 0.0
        sure, tied, low = 0, 0, 0
        first = starts[q]
        while first < starts[q + 1] and sure + low < k:
            last = first + 1
            while last < starts[q + 1] and value[last] == value[first]:
                last += 1
            for place in range(last - first):
                i = last - 1 - place if sign > 0 else first + place
                if hamming[i] < r:
                    for h in range(low, min(cap, tied, k - 1 - sure) + 1):
                        best[h] += sign * gain[i] * (sums[sure + h + 1] - sums[sure + h])
                    sure += 1
                elif hamming[i] == r:
                    tied += 1
                    for h in range(min(cap, tied), low, -1):
                        rank = sure + h
                        more = sign * gain[i] * (sums[rank] - sums[rank - 1]) if rank <= k else 0.0
                        best[h] = max(best[h], best[h - 1] + more)
                    if low < min(s - (n - tied), cap):  # too few are left if none enters now
                        best[low] = none
                        low += 1
            first = last
        most = none
        for h in range(low, cap + 1):
            most = max(most, best[h])
        out[q] = sign * most + 0.0  # no -0.0
