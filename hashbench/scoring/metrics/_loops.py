"""Compiled loops of the closed forms, each filling ``out`` with one value per query or tie."""

import math

from hashbench._parallel import compiled_or_python
from hashbench._typing import FloatArray


def _harmonic(first: int, n: int, table: FloatArray) -> float:
    """Sum 1/t over the n ranks after ``first``; ``table`` holds H(0), H(1), ... up to H(60) or beyond."""
    cut, last, total = len(table) - 1, first + n, 0.0
    if first < cut:
        total = table[min(last, cut)] - table[first]
        first = cut
    if last > first:
        x, y = first + 0.5, last + 0.5
        x2, y2 = 1 / (x * x), 1 / (y * y)
        low, high = y2 - x2, y2 + x2  # differences of squares and cubes by their factors
        total += math.log1p((last - first) / x)
        total += low * (1 / 24 - high * (7 / 960) + (high * high - x2 * y2) * (31 / 8064))
    return total


@compiled_or_python(3e-7)
def harmonic(before, size, table, out):  # type: ignore[no-untyped-def]
    """Sum 1/t over the ranks t = before + 1 to before + size."""
    for i in range(len(size)):
        out[i] = _harmonic(before[i], size[i], table)


def _squares(first: int, n: int, table: FloatArray) -> float:
    """Sum 1/t^2 over the n ranks after ``first``; ``table`` holds the sums up to rank 0, 1, ... 60 or beyond.

    From there on they are a difference of the trigamma function's expansion around half-integers, psi'(x + 1/2) = 1/x -
    1/(12 x^3) + 7/(240 x^5) - 31/(1344 x^7) + ...
    """
    cut, last, total = len(table) - 1, first + n, 0.0
    if first < cut:
        total = table[min(last, cut)] - table[first]
        first = cut
    if last > first:
        x, y = 1 / (first + 0.5), 1 / (last + 0.5)
        x2, y2, xy = x * x, y * y, x * y
        series = 1 - (x2 + xy + y2) / 12 + (x2 * x2 + x2 * xy + x2 * y2 + xy * y2 + y2 * y2) * (7 / 240)
        total += (last - first) * xy * (series - 7 * (31 / 1344) * x2 * xy * y2)
    return total


def _in_a_row(before: int, rel_before: int, n_rel: int, harmonics: FloatArray) -> float:
    """Sum the precision at relevant items that follow each other, the first at rank before + 1."""
    return n_rel + (rel_before - before) * _harmonic(before, n_rel, harmonics)


def _effects_of_places(
    before: int, ahead: float, n: int, c: int, a: float, b: float
) -> tuple[float, float, float, float, float, float]:
    """Compute the effects of single places of a tie of n items with c slots; see `precision_sums`.

    They are (N + 1) w_k + (r - 1) u_k for r relevant items, where ``ahead`` is N + 1; w_k is 1 / rank above the cut and
    0 below it, a the sum of w_k and b that of w_k^2. The result is the sum of their squares as coefficients of 1, r - 1
    and (r - 1)^2, that of the effects of pairs of places, then the coefficients of 1 and r - 1 of the slope.
    """
    first = before + 1.0
    n0 = 1.0 / n
    n1, n2 = 1.0 / (n - 1), 1.0 / max(n - 2, 1)
    squares = max(b - a * a * n0, 0.0)  # of w_k about their mean
    if n == 2:
        w1, w2 = 1 / first, 1 / (first + 1) if c == 2 else 0.0
        squares = (w1 - w2) * (w1 - w2) / 2
    constant, linear, quadratic, of_pairs = ahead * ahead * squares, 0.0, 0.0, 0.0
    if n > 2:
        pairs = (a * a - b) / 2  # sum of w_j w_k over j < k
        later = c - first * a  # sum of (k - 1) w_k: of the pairs j < k, each with the weight of the later one
        with_self = a - first * b  # sum of (k - 1) w_k^2
        of_both = later - first * pairs  # sum over k of (k - 1) w_k times the weights after k
        place_squares = (c - 2 * first * a + first * first * b) + 2 * of_both + (with_self + 2 * of_both)
        average = 2 * later * n0  # of B_k = (k - 1) w_k + the weights after k
        linear = 2 * ahead * ((with_self + pairs) - average * a) * n2
        quadratic = max((place_squares - n * average * average) * (n2 * n2), 0.0)
        if n > 3:
            of_pairs = max(with_self - average * average * n * n1 / 2 - (n - 2) * quadratic, 0.0)
    middle, per_one, per_more = (n + 1) / 2, 0.0, 0.0
    if c == n and before > 32 * n:  # far below the top: differences of large sums would keep no digits
        x = 1 / (before + middle)
        second = n * (n * (n + 0.0) - 1.0) / 12  # sum of (k - middle)^2
        fourth = second * (3.0 * n * n - 7) / 20
        per_one = -(second + fourth * (x * x)) * (x * x)
        per_more = (2 * fourth / 3 - second / 6) * (x * x * x) * n2 + per_one / 2
    else:
        later = c - first * a
        per_one = c - (before + middle) * a  # sum of w_k (k - middle)
        ends = c * (c + 1.0) / 2 - c * first + before * first * a  # sum of k (k - 1) w_k
        per_more = (1.5 * ends - 2 * middle * later) * n2
    if n == 2:
        per_more = 0.0
    per_one, per_more = ahead * per_one / (n * (n + 0.0) - 1.0), per_more / (n * (n + 0.0) - 1.0)
    return constant, linear, quadratic, of_pairs, per_one, per_more


@compiled_or_python(lambda before, rel_before, size, n_rel, slots, n_ties, *others: 5e-6 * n_ties.sum())
def precision_sums(  # type: ignore[no-untyped-def]
    before, rel_before, size, n_rel, slots, n_ties, harmonics, squares, out, slope, effects
):
    """Sum the precision at the relevant items in the first ``slots`` places of each query's first ``n_ties`` ties.

    ``size``, ``n_rel`` and ``slots`` are (n_queries, n_groups); ``before`` items, ``rel_before`` of them relevant,
    precede the first tie. ``out``, (4, n_queries), gets the parts of `Sums`, of which low and high are of whole ties;
    ``slope``, (n_queries, n_groups) and filled with 0, that of each tie (see `Slopes`); ``effects``, (n_queries, 6) and
    filled with 0, the `_effects_of_places` of the last tie whose order matters. ``harmonics`` and ``squares`` are the
    tables of `_harmonic` and `_squares`.

    The mean: place t holds a relevant item with probability n_rel / size; then rel_before + 1 relevant items are
    certain up to it, and each of the t - 1 places before it holds one with probability ``chance``. The variance is that
    of the effects of single places, and of pairs of places. The extremes put relevant items last or first. Rounding
    errors are added up and added back at the end, and empty ties are passed over, so they do not affect the last bit.
    """
    for q in range(len(size)):
        start, rel_start = before[q], rel_before[q]
        mean, low, high, variance = 0.0, 0.0, 0.0, 0.0
        rest_of_mean, rest_of_low, rest_of_high, rest_of_variance = 0.0, 0.0, 0.0, 0.0
        for g in range(n_ties[q]):
            n, r, c = size[q, g], n_rel[q, g], slots[q, g]
            if r > 0:
                a, ahead = _harmonic(start, c, harmonics), rel_start + 1.0
                chance = (r - 1) / max(n - 1, 1)
                term = r / n * (chance * c + (ahead - chance * (start + 1.0)) * a)
                mean, rest_of_mean = _plus(mean, rest_of_mean, term)
                best = _in_a_row(start, rel_start, r, harmonics)
                high, rest_of_high = _plus(high, rest_of_high, best)
                worst = _in_a_row(start + n - r, rel_start, r, harmonics) if r < n else best
                low, rest_of_low = _plus(low, rest_of_low, worst)
                if r < n and c > 0:
                    constant, linear, quadratic, of_pairs, per_one, per_more = _effects_of_places(
                        start, ahead, n, c, a, _squares(start, c, squares)
                    )
                    slope[q, g] = per_one + (r - 1) * per_more
                    effects[q, 0], effects[q, 1], effects[q, 2] = constant, linear, quadratic
                    effects[q, 3], effects[q, 4], effects[q, 5] = of_pairs, per_one, per_more
                    others, more = float(n - r), r - 1.0  # irrelevant items, and relevant ones besides the first
                    of_places = max(constant + more * (linear + more * quadratic), 0.0)
                    n0, n1, n2, n3 = 1.0 / n, 1.0 / (n - 1), 1.0 / max(n - 2, 1), 1.0 / max(n - 3, 1)
                    term = (of_places + of_pairs * (more * (others - 1)) * (n2 * n3)) * (r * others) * (n0 * n1)
                    variance, rest_of_variance = _plus(variance, rest_of_variance, term)
            start += n
            rel_start += r
        out[0, q], out[1, q] = mean + rest_of_mean, low + rest_of_low
        out[2, q], out[3, q] = high + rest_of_high, variance + rest_of_variance


@compiled_or_python(5e-5)
def hypergeometric_ratio(  # type: ignore[no-untyped-def]
    size, n_rel, slots, rel_before, constant, per_one, per_pair, variance, effects, out
):
    """Average (constant + per_one m + per_pair m (m - 1)) / (rel_before + m) over a hypergeometric m; 0 / 0 is 0.

    m is the number of relevant items when ``slots`` of ``size`` are drawn, ``n_rel`` of which are relevant. Its
    probabilities are built by their ratios from the mode outward, so nothing over- or underflows; terms below 1e-19 of
    the largest are left out. ``out``, (4, n_queries), gets this mean; the variance of the ratio whose numerator has,
    about its mean given m, ``variance`` plus that of a tie of ``slots`` items, m of them relevant, with these
    ``effects``, as `precision_sums` gives them; the mean of 1 / (rel_before + m); and the slope of the cut tie: given
    m, the numerator has that of the tie of the slots, and the relevant items' places add up to a constant less
    m size / 2.
    """
    for q in range(len(size)):
        n, r, s, c = size[q], n_rel[q], slots[q], rel_before[q]
        fewest, most = max(0, s - (n - r)), min(s, r)
        mode = min(max(((s + 1) * (r + 1)) // (n + 2), fewest), most)
        weight_sum, total, shift, squares, near = 0.0, 0.0, 0.0, 0.0, 0.0
        inverse, inner_slope, with_m, means = 0.0, 0.0, 0.0, 0.0
        for step in (1, -1):
            weight, m = 1.0, mode
            while fewest <= m <= most and weight > 1e-19:
                if m != mode or step == 1:
                    weight_sum += weight
                    value = 0.0
                    if c + m > 0:
                        share = 1.0 / (c + m)
                        value = (constant[q] + per_one[q] * m + per_pair[q] * m * (m - 1)) * share
                        inverse += weight * share
                        inner = variance[q]
                        if 0 < m < s:
                            more, pairs = m - 1.0, m * (s - m) / (s + 0.0)
                            of_places = effects[q, 0] + more * (effects[q, 1] + more * effects[q, 2])
                            inner += max(of_places, 0.0) * pairs / (s - 1.0)
                            inner_slope += weight * share * pairs * (effects[q, 4] + more * effects[q, 5])
                            if s > 3:
                                inner += (
                                    effects[q, 3] * pairs * more * (s - m - 1.0) / ((s - 1.0) * (s - 2.0) * (s - 3.0))
                                )
                        squares += weight * inner * share * share
                    if m == mode:
                        near = value
                    total += weight * value
                    shift += weight * (value - near)
                    squares += weight * (value - near) * (value - near)
                    means += weight * (m - mode)
                    with_m += weight * (value - near) * (m - mode)
                if step == 1:
                    weight *= (r - m) / (m + 1) * (s - m) / (n - r - s + m + 1)
                else:
                    weight *= m / (r - m + 1) * (n - r - s + m) / (s - m + 1)
                m += step
        shift /= weight_sum
        out[0, q] = total / weight_sum
        out[1, q] = squares / weight_sum - shift * shift
        out[2, q] = inverse / weight_sum
        out[3, q] = 0.0
        if 0 < r < n:
            covariance = with_m / weight_sum - shift * (means / weight_sum)
            out[3, q] = ((s + 1.0) * inner_slope / weight_sum - n / 2 * covariance) * n / (r * (n + 1.0) * (n - r))


@compiled_or_python(5e-6)
def least_ratio(low, cutoff, rel_before, fewest, most, harmonic, out):  # type: ignore[no-untyped-def]
    """Find how many relevant items m of the cut tie, last above the cutoff, make precision's mean over them least.

    The sums over all relevant items are ``low`` above the tie, m + (rel_before - (cutoff - m)) (sum of 1 / rank over
    the last m ranks) in it; over rel_before + m they are quasiconvex in m. ``harmonic`` holds H(0), H(1), ... up to the
    cutoff.
    """
    for q in range(len(cutoff)):
        first, last, ahead = fewest[q], most[q], rel_before[q]
        if ahead + first == 0:  # nothing relevant above the cutoff: 0 it is
            last = first
        end = harmonic[cutoff[q]]
        while first < last:  # bisect for the first m from which the ratio no longer falls
            m = (first + last) // 2
            start = cutoff[q] - m
            inner = end - harmonic[start]
            here = low[q] + m + (ahead - start) * inner
            after = low[q] + m + 1 + (ahead - start + 1) * (inner + 1.0 / start)
            if after * max(ahead + m, 1) < here * (ahead + m + 1):
                first = m + 1
            else:
                last = m
        out[q] = first


@compiled_or_python(
    lambda counts, levels, before, rel_before, slots, fewest, most, *others: (
        1e-6 * (most - fewest + 1).sum() * counts.shape[1]
    )
)
def extreme_gain_ratios(  # type: ignore[no-untyped-def]
    counts, levels, before, rel_before, slots, fewest, most, gain_before, low, high, harmonics, least, largest
):
    """Find the least and the largest mean over relevant ranks of the mean level down to them, over all orders of ties.

    ``low`` and ``high`` are the sums above the cut tie, which has ``counts`` (n_queries, n_levels). Of its relevant
    items, m lie above the cutoff: at worst those of the lowest levels at the last places, in ascending order, at best
    those of the highest levels at the first places, in descending order.
    """
    n_levels = len(levels)
    for q in range(len(slots)):
        least[q], largest[q] = math.inf, -math.inf
        for m in range(fewest[q], most[q] + 1):
            if rel_before[q] + m == 0:  # nothing relevant above the cutoff
                least[q], largest[q] = 0.0, max(largest[q], 0.0)
                continue
            for is_best in (False, True):
                total = high[q] if is_best else low[q]
                first, ahead, left = before[q] + (0 if is_best else slots[q] - m), gain_before[q], m
                for step in range(1, n_levels):
                    level = n_levels - step if is_best else step
                    n = min(int(counts[q, level]), left)
                    if n > 0:
                        total += n * levels[level] + (ahead - levels[level] * first) * _harmonic(first, n, harmonics)
                        first, ahead, left = first + n, ahead + n * levels[level], left - n
                ratio = total / (rel_before[q] + m)
                if is_best:
                    largest[q] = max(largest[q], ratio)
                else:
                    least[q] = min(least[q], ratio)


@compiled_or_python(3e-7)
def cut_groups(size, n_rel, cutoff, out):  # type: ignore[no-untyped-def]
    """Find the tie that each query's cutoff falls into; ``out``, (5, n_queries), gets the parts of `Cut` but slots.

    A cutoff at or beyond the end of the ranking falls into an empty tie after the last.
    """
    n_groups = size.shape[1]
    for q in range(len(cutoff)):
        before, rel_before, group = 0, 0, 0
        while group < n_groups and before + size[q, group] <= cutoff[q]:
            before += size[q, group]
            rel_before += n_rel[q, group]
            group += 1
        out[0, q], out[1, q], out[2, q], out[3, q], out[4, q] = before, rel_before, 0, 0, group
        if group < n_groups:
            out[2, q], out[3, q] = size[q, group], n_rel[q, group]


@compiled_or_python(lambda before, size, *others: 3e-7 * size.sum())
def expected_reciprocal(before, size, n_rel, slots, out, out_variance, covariance):  # type: ignore[no-untyped-def]
    """Compute mean and variance of 1 / (before + t) over the place t of the first relevant item in a tie.

    Also its covariance with t. The value is 0 beyond the first ``slots`` places.
    """
    for q in range(len(size)):
        n, r = size[q], n_rel[q]
        total, shift, squares, with_place = 0.0, 0.0, 0.0, 0.0
        if r > 0 and slots[q] > 0:
            probability = r / n  # of the first relevant item at place t
            near = 1 / (before[q] + (n + 1) / (r + 1))  # the mean place
            for t in range(1, n - r + 2):
                value = 1 / (before[q] + t) if t <= slots[q] else 0.0
                total += probability * value
                shift += probability * (value - near)
                squares += probability * (value - near) * (value - near)
                with_place += probability * (value - near) * (t - (n + 1) / (r + 1))
                if probability < 1e-19 * total or t == n:
                    break
                probability *= (n - t - r + 1) / (n - t)
        out[q] = total
        out_variance[q] = squares - shift * shift
        covariance[q] = with_place


@compiled_or_python(5e-6)
def probability_of_none(size, n_rel, slots, out):  # type: ignore[no-untyped-def]
    """Compute the probability that none of the first ``slots`` places of a tie holds a relevant item."""
    for q in range(len(size)):
        few, many = min(n_rel[q], slots[q]), max(n_rel[q], slots[q])
        probability = 1.0
        for i in range(few):  # C(size - n_rel, slots) / C(size, slots), factor by factor
            probability *= max(size[q] - many - i, 0) / (size[q] - i)
            if probability < 1e-300:
                probability = 0.0
                break
        out[q] = probability


@compiled_or_python(2e-6)
def discounted_gains(counts, gains, sums, squares, weighted, out, slopes):  # type: ignore[no-untyped-def]
    """Sum the discounted gains of ``counts`` (n_queries, n_levels, n_groups), and compute each tie's slope.

    ``out``, (4, n_queries), gets the expected sum, the least and the largest, and its variance; ``slopes``, (n_queries,
    n_groups), is filled with 0. A tie of n items adds the squares of its discounts about their mean, times those of its
    gains, over n - 1. The discount of rank t is 1 / log2(t + 1). ``sums``, ``squares`` and ``weighted`` are those of
    the first ranks' discounts, of their squares, and of rank times discount; ranks beyond their end have the discount
    0. Of a tie far below the top a difference of sums keeps no digits: there the discount's Taylor series about the
    middle does. Rounding errors are added up and added back at the end (Knuth), so empty groups do not affect the last
    bit.
    """
    k = len(sums) - 1
    n_levels, n_groups = counts.shape[1:]
    for q in range(len(counts)):
        mean, low, high, variance = 0.0, 0.0, 0.0, 0.0
        rest_of_mean, rest_of_low, rest_of_high = 0.0, 0.0, 0.0
        after = 0
        for g in range(n_groups):
            start = after
            if start >= k:
                break
            size, total_gain, worst, best = 0, 0.0, 0.0, 0.0
            for level in range(n_levels):
                n = counts[q, level, g]
                if n > 0:
                    first = min(start + size, k)
                    size += n
                    total_gain += n * gains[level]
                    worst += gains[level] * (sums[min(start + size, k)] - sums[first])
            after = start + size
            if total_gain == 0.0:
                continue
            first = start
            for step in range(n_levels):
                level = n_levels - 1 - step
                if counts[q, level, g] > 0:
                    last = first + counts[q, level, g]
                    best += gains[level] * (sums[min(last, k)] - sums[min(first, k)])
                    first = last
            end = min(start + size, k)
            n = end - start  # ranks that count
            total, gain = sums[end] - sums[start], total_gain / size
            mean, rest_of_mean = _plus(mean, rest_of_mean, gain * total)
            low, rest_of_low = _plus(low, rest_of_low, worst)
            high, rest_of_high = _plus(high, rest_of_high, best)
            of_gains = 0.0
            for level in range(n_levels):
                of_gains += counts[q, level, g] * (gains[level] - gain) * (gains[level] - gain)
            if size < 2 or of_gains == 0.0:
                continue
            if start < 32 * n:
                of_discounts = max(squares[end] - squares[start] - total * total / n, 0.0)
                with_place = weighted[end] - weighted[start] - (start + (n + 1) / 2) * total
            else:
                x = start + (n + 3) / 2  # rank + 1 in the middle
                log = math.log(x)
                slope = -math.log(2.0) / (x * log * log)
                curve = -slope * (1 + 2 / log) / x
                third = slope * (2 + 6 / log + 6 / (log * log)) / (x * x)
                second = n * (n * (n + 0.0) - 1.0) / 12  # sum of (t - middle)^2
                fourth = second * (3.0 * n * n - 7) / 20
                of_discounts = slope * slope * second + curve * curve / 4 * (fourth - second * second / n)
                of_discounts += slope * third / 3 * fourth
                with_place = slope * second + third / 6 * fourth
            if n < size:
                of_discounts += total * total * (1 / n - 1 / size)
            variance += of_discounts * of_gains / (size - 1)
            slopes[q, g] = (with_place - total * (size - n) / 2) / (size * (size + 0.0) - 1.0)
        out[0, q], out[1, q], out[2, q] = mean + rest_of_mean, low + rest_of_low, high + rest_of_high
        out[3, q] = variance


def _plus(total: float, rest: float, term: float) -> tuple[float, float]:
    """Add a term to a sum, and the rounding error to the rest (Knuth)."""
    both = total + term
    back = both - total
    return both, rest + ((total - (both - back)) + (term - back))


@compiled_or_python(3e-7)
def sum_groups(parts, out):  # type: ignore[no-untyped-def]
    """Sum the groups of parts, (n_parts, n_queries, n_groups).

    Rounding errors are added up and added back at the end, so groups of 0 do not affect the last bit.
    """
    for part in range(len(parts)):
        for q in range(out.shape[1]):
            total, rest = 0.0, 0.0
            for g in range(parts.shape[2]):
                total, rest = _plus(total, rest, parts[part, q, g])
            out[part, q] = total + rest


@compiled_or_python(3e-7)
def item_covariances(counts, slope, gains, out, explained):  # type: ignore[no-untyped-def]
    """Compute (gain - mean gain of the tie) * slope where there are items, and the variance that items' keys explain.

    ``counts`` are (n_queries, n_levels, n_groups); ``out``, (n_queries, n_levels * n_groups + 1), is filled with 0.
    """
    n_levels, n_groups = counts.shape[1:]
    for q in range(len(counts)):
        total = 0.0
        for g in range(n_groups):
            if slope[q, g] == 0.0:
                continue
            size, mean = 0, 0.0
            for level in range(n_levels):
                size += counts[q, level, g]
                mean += counts[q, level, g] * gains[level]
            mean /= size
            for level in range(n_levels):
                covariance = (gains[level] - mean) * slope[q, g]
                out[q, level * n_groups + g] = covariance
                total += counts[q, level, g] * covariance * covariance
        explained[q] = 12 * total
