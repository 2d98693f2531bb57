"""Loops over candidates that are re-ranked: which of the cut tie enter is uniformly random, or chosen at worst or best.

``starts`` says where each query's candidates begin, in order of float distance ``value``, equal ones by ``gain``.
Those nearer than ``radius``, in ``hamming`` distance, are certain; ``slots`` of the ``size`` at it enter; farther ones
are none. ``sums[t]`` is the sum of the weights of the first t ranks; ranks beyond its end weigh nothing.
"""

import numpy as np

from hashbench._parallel import compiled

_NEGLIGIBLE = 1e-30  # a probability
_FAR = 1e-19  # a probability over that of the mode


@compiled
def expected(  # type: ignore[no-untyped-def]
    starts, value, hamming, gain, radius, size, slots, sums, of_precision, out
):
    """Average the sum of gain times weight over the first ranks; ``of_precision``, of gain times precision there.

    ``gain`` is then 0 or 1, and ``sums`` are harmonic.
    """
    k = len(sums) - 1
    for q in range(len(radius)):
        n, s, r = size[q], slots[q], radius[q]
        cap = min(s, k)
        chance = np.zeros(cap + 1)  # that so many of the tie items so far have entered; from k on nothing counts
        chance[0] = 1.0
        low, high = 0, 0  # fewer, or more, have entered with a negligible chance only
        sure, sure_gain, tied, tied_gain = 0, 0.0, 0, 0.0  # before the group of equal values
        total = 0.0
        first = starts[q]
        while first < starts[q + 1] and sure + low < k:
            last = first
            group_sure, group_sure_gain, group_tied, group_tied_gain = 0, 0.0, 0, 0.0
            while last < starts[q + 1] and value[last] == value[first]:
                if hamming[last] < r:
                    group_sure += 1
                    group_sure_gain += gain[last]
                elif hamming[last] == r:
                    group_tied += 1
                    group_tied_gain += gain[last]
                last += 1
            left = n - tied - group_tied  # of the tie, after this group
            has_gain = group_sure_gain + group_tied_gain > 0  # or it adds nothing
            for h in range(low, min(high + 1, k - sure) if has_gain else low):
                if chance[h] == 0.0:
                    continue
                base, places = sure + h, s - h
                # y of the group's tie items enter: hypergeometric, by its ratios from far below the mode to far above
                fewest, most = max(0, places - left), min(group_tied, places)
                mode = min(max(((places + 1) * (group_tied + 1)) // (left + group_tied + 2), fewest), most)
                y, weight = mode, 1.0
                while y > fewest and weight > _FAR:
                    weight *= y / (group_tied - y + 1) * (left - places + y) / (places - y + 1)
                    y -= 1
                ahead = sure_gain + (h * (tied_gain / tied) if tied > 0 else 0.0)
                weights, sum_here = 0.0, 0.0
                while y <= most and (y <= mode or weight > _FAR):
                    n_here = max(group_sure + y, 1)
                    enters = y / max(group_tied, 1)
                    mean_gain = (group_sure_gain + enters * group_tied_gain) / n_here
                    end = min(base + n_here, k)
                    added = mean_gain * (sums[end] - sums[base])
                    if of_precision:
                        added *= ahead + 1.0
                    if of_precision and n_here > 1:  # two relevant ones, one before the other
                        both = enters * (y - 1) / max(group_tied - 1, 1)
                        pairs = group_sure_gain * (group_sure_gain - 1)
                        pairs += 2 * group_sure_gain * enters * group_tied_gain
                        pairs += both * group_tied_gain * (group_tied_gain - 1)
                        later = (end - base) - (base + 1) * (sums[end] - sums[base])
                        added += pairs / (n_here * (n_here - 1.0)) * later
                    weights += weight
                    sum_here += weight * added
                    weight *= (group_tied - y) / (y + 1) * (places - y) / max(left - places + y + 1, 1)
                    y += 1
                total += chance[h] * sum_here / weights
            for left_now in range(left + group_tied, left, -1):
                high = min(high + 1, cap)
                for h in range(high, low - 1, -1):
                    stays = chance[h] * ((left_now - s + h) / left_now) if h < k else chance[h]
                    comes = chance[h - 1] * ((s - h + 1) / left_now) if h > low else 0.0
                    chance[h] = max(stays, 0.0) + comes
                if chance[high] < _NEGLIGIBLE:
                    chance[high] = 0.0
                    high -= 1
            while low < high and chance[low] < _NEGLIGIBLE:
                chance[low] = 0.0
                low += 1
            tied += group_tied
            tied_gain += group_tied_gain
            sure += group_sure
            sure_gain += group_sure_gain
            first = last
        out[q] = total


@compiled
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
        seen_rel, seen_other, rank, found = 0, 0, 0, 0
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
                found += 1
                total += found / rank if of_precision else one * (sums[rank] - sums[rank - 1])
            if is_most:
                rank += other
            first = last
        out[q] = total


@compiled
def graded_extreme(  # type: ignore[no-untyped-def]
    starts, value, hamming, gain, radius, size, slots, sums, sign, out
):
    """Choose who of the tie enters, and the order of equal values, for the most or least sum of gain times weight.

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
