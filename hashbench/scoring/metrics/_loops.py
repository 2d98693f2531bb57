"""Loops of the closed forms that no array expression does well, each filling ``out``, one value a query or tie."""

import math

from hashbench._parallel import compiled


@compiled
def harmonic(before, size, table, out):  # type: ignore[no-untyped-def]
    """Sum 1/t over the ranks t = before + 1 to before + size; ``table`` holds H(0), H(1), ... up to 60 or beyond."""
    cut = len(table) - 1
    for i in range(len(size)):
        first, last = before[i], before[i] + size[i]
        total = 0.0
        if first < cut:
            total = table[min(last, cut)] - table[first]
            first = cut
        if last > first:
            x, y = first + 0.5, last + 0.5
            x2, y2 = 1 / (x * x), 1 / (y * y)
            low, high = y2 - x2, y2 + x2  # differences of squares and cubes by their factors
            total += math.log1p((last - first) / x)
            total += low * (1 / 24 - high * (7 / 960) + (high * high - x2 * y2) * (31 / 8064))
        out[i] = total


@compiled
def tie_mean(before, rel_before, size, n_rel, slots, harmonic, out):  # type: ignore[no-untyped-def]
    """Give the expected sum of precision at the relevant items in the first ``slots`` places of a tie.

    Place t holds a relevant item with probability n_rel / size; then rel_before + 1 relevant items are
    certain up to it, and each of the t - 1 places before it holds one with probability ``slope``.
    """
    for i in range(len(size)):
        slope = max(n_rel[i] - 1, 0) / max(size[i] - 1, 1)
        precision = slope * slots[i] + (rel_before[i] + 1 - slope * (before[i] + 1)) * harmonic[i]
        out[i] = n_rel[i] / max(size[i], 1) * precision


@compiled
def hypergeometric_ratio(  # type: ignore[no-untyped-def]
    size, n_rel, slots, rel_before, constant, per_one, per_pair, out
):
    """Average (constant + per_one m + per_pair m (m - 1)) / (rel_before + m) over a hypergeometric m; 0 / 0 is 0.

    m is the number of relevant items when ``slots`` of ``size`` are drawn, ``n_rel`` of which are relevant. Its
    probabilities are built by their ratios from the mode outward, so nothing over- or underflows; terms below 1e-19 of
    the largest are left out.
    """
    for q in range(len(size)):
        n, r, s, c = size[q], n_rel[q], slots[q], rel_before[q]
        fewest, most = max(0, s - (n - r)), min(s, r)
        mode = min(max(((s + 1) * (r + 1)) // (n + 2), fewest), most)
        weight_sum, total = 0.0, 0.0
        for step in (1, -1):
            weight, m = 1.0, mode
            while fewest <= m <= most and weight > 1e-19:
                if m != mode or step == 1:
                    weight_sum += weight
                    if c + m > 0:
                        numerator = constant[q] + per_one[q] * m + per_pair[q] * m * (m - 1)
                        total += weight * numerator / (c + m)
                if step == 1:
                    weight *= (r - m) / (m + 1) * (s - m) / (n - r - s + m + 1)
                else:
                    weight *= m / (r - m + 1) * (n - r - s + m) / (s - m + 1)
                m += step
        out[q] = total / weight_sum


@compiled
def expected_reciprocal(before, size, n_rel, out):  # type: ignore[no-untyped-def]
    """Average 1 / (before + t) over the place t of the first relevant item in a tie."""
    for q in range(len(size)):
        n, r = size[q], n_rel[q]
        total = 0.0
        if r > 0:
            probability = r / n  # of the first relevant item at place t
            for t in range(1, n - r + 2):
                total += probability / (before[q] + t)
                if probability < 1e-19 * total or t == n:
                    break
                probability *= (n - t - r + 1) / (n - t)
        out[q] = total


@compiled
def probability_of_none(size, n_rel, slots, out):  # type: ignore[no-untyped-def]
    """Give the probability that none of the first ``slots`` places of a tie holds a relevant item."""
    for q in range(len(size)):
        few, many = min(n_rel[q], slots[q]), max(n_rel[q], slots[q])
        probability = 1.0
        for i in range(few):  # C(size - n_rel, slots) / C(size, slots), factor by factor
            probability *= max(size[q] - many - i, 0) / (size[q] - i)
            if probability < 1e-300:
                probability = 0.0
                break
        out[q] = probability
