"""Compiled loops of the closed forms, each filling ``out`` with one value per query or tie."""

import math

from hashbench._parallel import compiled_beside_numba


@compiled_beside_numba
def harmonic(before, size, table, out):  # type: ignore[no-untyped-def]
    """Sum 1/t over the ranks t = before + 1 to before + size; ``table`` holds H(0), H(1), ... up to H(60) or beyond."""
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


@compiled_beside_numba
def tie_moments(  # type: ignore[no-untyped-def]
    before, rel_before, size, n_rel, slots, harmonic, table, effects, mean, variance, slope
):
    """Compute mean and variance of the sum of precision at the relevant items in the first ``slots`` places of a tie.

    Also its slope (see `Slopes`), from the effects of single places. Of a whole tie far below the top, these are their
    series about the middle, since differences of large sums would keep no digits.

    The mean: place t holds a relevant item with probability n_rel / size; then rel_before + 1 relevant items are
    certain up to it, and each of the t - 1 places before it holds one with probability ``chance``.

    The variance is that of the effects of single places, which are (N + 1) w_k + (r - 1) u_k for r relevant items, and
    of pairs of places; w_k is 1 / rank above the cut and 0 below it. ``effects`` gets a row a tie: the sum of the
    squares of the former as coefficients of 1, r - 1 and (r - 1)^2, and the latter's, then the coefficients of 1 and
    r - 1 of the slope; if it has one row, that of the last. ``harmonic`` is the sum of w_k. ``table`` holds the sums of
    1/t^2 up to rank 0, 1, ... 60 or beyond; from
    there on they are a difference of the trigamma function's expansion around half-integers, psi'(x + 1/2) = 1/x -
    1/(12 x^3) + 7/(240 x^5) - 31/(1344 x^7) + ...
    """
    cut, last_row = len(table) - 1, len(effects) - 1
    for i in range(len(size)):
        n, r, c, a = size[i], n_rel[i], slots[i], harmonic[i]
        first, ahead = before[i] + 1.0, rel_before[i] + 1.0
        mean[i] = variance[i] = slope[i] = 0.0
        if r < 1:
            continue
        chance = (r - 1) / max(n - 1, 1)
        mean[i] = r / n * (chance * c + (ahead - chance * first) * a)
        if r >= n or c < 1:
            continue
        b, start, end = 0.0, before[i], before[i] + c  # the sum of w_k^2
        if start < cut:
            b = table[min(end, cut)] - table[start]
            start = cut
        if end > start:
            x, y = 1 / (start + 0.5), 1 / (end + 0.5)
            x2, y2, xy = x * x, y * y, x * y
            series = 1 - (x2 + xy + y2) / 12 + (x2 * x2 + x2 * xy + x2 * y2 + xy * y2 + y2 * y2) * (7 / 240)
            b += (end - start) * xy * (series - 7 * (31 / 1344) * x2 * xy * y2)
        n0 = 1.0 / n
        n1, n2, n3 = 1.0 / (n - 1), 1.0 / max(n - 2, 1), 1.0 / max(n - 3, 1)
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
        if c == n and before[i] > 32 * n:
            x = 1 / (before[i] + middle)
            second = n * (n * n - 1.0) / 12  # sum of (k - middle)^2
            fourth = second * (3.0 * n * n - 7) / 20
            per_one = -(second + fourth * (x * x)) * (x * x)
            per_more = (2 * fourth / 3 - second / 6) * (x * x * x) * n2 + per_one / 2
        else:
            later = c - first * a
            per_one = c - (before[i] + middle) * a  # sum of w_k (k - middle)
            ends = c * (c + 1.0) / 2 - c * first + before[i] * first * a  # sum of k (k - 1) w_k
            per_more = (1.5 * ends - 2 * middle * later) * n2
        if n == 2:
            per_more = 0.0
        per_one, per_more = ahead * per_one / (n * n - 1.0), per_more / (n * n - 1.0)
        slope[i] = per_one + (r - 1) * per_more
        row = min(i, last_row)
        effects[row, 0], effects[row, 1], effects[row, 2], effects[row, 3] = constant, linear, quadratic, of_pairs
        effects[row, 4], effects[row, 5] = per_one, per_more
        others, more = float(n - r), r - 1.0  # irrelevant items, and relevant ones besides the first
        of_places = max(constant + more * (linear + more * quadratic), 0.0)
        total = (of_places + of_pairs * (more * (others - 1)) * (n2 * n3)) * (r * others) * (n0 * n1)
        variance[i] = total


@compiled_beside_numba
def hypergeometric_ratio(  # type: ignore[no-untyped-def]
    size, n_rel, slots, rel_before, constant, per_one, per_pair, variance, effects, out, out_variance
):
    """Average (constant + per_one m + per_pair m (m - 1)) / (rel_before + m) over a hypergeometric m; 0 / 0 is 0.

    m is the number of relevant items when ``slots`` of ``size`` are drawn, ``n_rel`` of which are relevant. Its
    probabilities are built by their ratios from the mode outward, so nothing over- or underflows; terms below 1e-19 of
    the largest are left out. ``out_variance`` is that of the ratio whose numerator has, about this mean, ``variance``
    plus that of a tie of ``slots`` items, m of them relevant, with these effects, as `tie_moments` gives them.
    """
    for q in range(len(size)):
        n, r, s, c = size[q], n_rel[q], slots[q], rel_before[q]
        fewest, most = max(0, s - (n - r)), min(s, r)
        mode = min(max(((s + 1) * (r + 1)) // (n + 2), fewest), most)
        weight_sum, total, shift, squares, near = 0.0, 0.0, 0.0, 0.0, 0.0
        for step in (1, -1):
            weight, m = 1.0, mode
            while fewest <= m <= most and weight > 1e-19:
                if m != mode or step == 1:
                    weight_sum += weight
                    if c + m > 0:
                        value = (constant[q] + per_one[q] * m + per_pair[q] * m * (m - 1)) / (c + m)
                        inner = variance[q]
                        if 0 < m < s:
                            of_places = effects[q, 0] + (m - 1.0) * (effects[q, 1] + (m - 1.0) * effects[q, 2])
                            inner += max(of_places, 0.0) * m * (s - m) / (s * (s - 1.0))
                            if s > 3:
                                share = m * (m - 1.0) / (s * (s - 1.0)) * ((s - m) * (s - m - 1.0))
                                inner += effects[q, 3] * share / ((s - 2.0) * (s - 3.0))
                        squares += weight * inner / ((c + m) * (c + m + 0.0))
                    else:
                        value = 0.0
                    if m == mode:
                        near = value
                    total += weight * value
                    shift += weight * (value - near)
                    squares += weight * (value - near) * (value - near)
                if step == 1:
                    weight *= (r - m) / (m + 1) * (s - m) / (n - r - s + m + 1)
                else:
                    weight *= m / (r - m + 1) * (n - r - s + m) / (s - m + 1)
                m += step
        shift /= weight_sum
        out[q] = total / weight_sum
        out_variance[q] = squares / weight_sum - shift * shift


@compiled_beside_numba
def hypergeometric_slopes(  # type: ignore[no-untyped-def]
    size, n_rel, slots, rel_before, constant, per_one, per_pair, effects, reciprocal, slope
):
    """Compute the cut tie's slope for the ratio of `hypergeometric_ratio`, and the mean of 1 / (rel_before + m).

    Given m relevant items in all ``slots``, the numerator has the slope of a tie of the slots with these ``effects``;
    and the relevant items' places add up to a constant less m size / 2.
    """
    for q in range(len(size)):
        n, r, s, c = size[q], n_rel[q], slots[q], rel_before[q]
        reciprocal[q] = slope[q] = 0.0
        fewest, most = max(0, s - (n - r)), min(s, r)
        mode = min(max(((s + 1) * (r + 1)) // (n + 2), fewest), most)
        weight_sum, total, inverse, inner, near, with_m, means = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for step in (1, -1):
            weight, m = 1.0, mode
            while fewest <= m <= most and weight > 1e-19:
                if m != mode or step == 1:
                    weight_sum += weight
                    value = 0.0
                    if c + m > 0:
                        value = (constant[q] + per_one[q] * m + per_pair[q] * m * (m - 1)) / (c + m)
                        inverse += weight / (c + m)
                        if 0 < m < s:
                            of_places = effects[q, 4] + (m - 1.0) * effects[q, 5]
                            inner += weight * m * (s - m) * of_places * (s + 1.0) / s / (c + m)
                    if m == mode:
                        near = value
                    total += weight * (value - near)
                    means += weight * (m - mode)
                    with_m += weight * (value - near) * (m - mode)
                if step == 1:
                    weight *= (r - m) / (m + 1) * (s - m) / (n - r - s + m + 1)
                else:
                    weight *= m / (r - m + 1) * (n - r - s + m) / (s - m + 1)
                m += step
        reciprocal[q] = inverse / weight_sum
        if 0 < r < n:
            covariance = with_m / weight_sum - total / weight_sum * (means / weight_sum)
            slope[q] = (inner / weight_sum - n / 2 * covariance) * n / (r * (n + 1.0) * (n - r))


@compiled_beside_numba
def expected_reciprocal(before, size, n_rel, out, out_variance, covariance):  # type: ignore[no-untyped-def]
    """Compute mean and variance of 1 / (before + t) over the place t of the first relevant item in a tie.

    Also its covariance with t.
    """
    for q in range(len(size)):
        n, r = size[q], n_rel[q]
        total, shift, squares, with_place = 0.0, 0.0, 0.0, 0.0
        if r > 0:
            probability = r / n  # of the first relevant item at place t
            near = 1 / (before[q] + (n + 1) / (r + 1))  # the mean place
            for t in range(1, n - r + 2):
                value = 1 / (before[q] + t)
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


@compiled_beside_numba
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


@compiled_beside_numba
def dcg_variance(counts, gains, before, sums, squares, out):  # type: ignore[no-untyped-def]
    """Sum the variances of the ties' discounted gains, of ``counts`` (n_queries, n_levels, n_groups).

    A tie of n items adds the squares of its discounts about their mean, times those of its gains, over n - 1. The
    discount of rank t is 1 / log2(t + 1). ``sums`` and ``squares`` are those of the first ranks; ranks beyond their end
    have the discount 0. Of a tie far below the top a difference of sums keeps no digits: there the discount's Taylor
    series about the middle does.
    """
    k = len(sums) - 1
    n_levels, n_groups = counts.shape[1:]
    for q in range(len(counts)):
        variance = 0.0
        for g in range(n_groups):
            start = before[q, g]
            if start >= k:
                break
            size, total_gain = 0, 0.0
            for level in range(n_levels):
                size += counts[q, level, g]
                total_gain += counts[q, level, g] * gains[level]
            if size < 2 or total_gain == 0.0:
                continue
            mean, of_gains = total_gain / size, 0.0
            for level in range(n_levels):
                of_gains += counts[q, level, g] * (gains[level] - mean) * (gains[level] - mean)
            end = min(start + size, k)
            n = end - start  # ranks that count
            total = sums[end] - sums[start]
            if start < 32 * n:
                within = max(squares[end] - squares[start] - total * total / n, 0.0)
            else:
                x = start + (n + 3) / 2  # rank + 1 in the middle
                log = math.log(x)
                slope = -math.log(2.0) / (x * log * log)
                curve = -slope * (1 + 2 / log) / x
                third = slope * (2 + 6 / log + 6 / (log * log)) / (x * x)
                second = n * (n * n - 1.0) / 12  # sum of (t - middle)^2
                fourth = second * (3.0 * n * n - 7) / 20
                within = slope * slope * second + curve * curve / 4 * (fourth - second * second / n)
                within += slope * third / 3 * fourth
            of_discounts = within if n == size else within + total * total * (1 / n - 1 / size)
            variance += of_discounts * of_gains / (size - 1)
        out[q] = variance


@compiled_beside_numba
def sums_above(parts, group, out):  # type: ignore[no-untyped-def]
    """Sum the groups above each query's ``group``, of parts (n_parts, n_queries, n_groups).

    Rounding errors are added up and added back at the end (Neumaier), and adding 0 changes nothing: empty groups do not
    affect the last bit.
    """
    for part in range(len(parts)):
        for q in range(len(group)):
            total, rest = 0.0, 0.0
            for g in range(group[q]):
                term = parts[part, q, g]
                both = total + term
                rest += (total - both) + term if abs(total) >= abs(term) else (term - both) + total
                total = both
            out[part, q] = total + rest


@compiled_beside_numba
def discount_slopes(size, before, sums, weighted, out):  # type: ignore[no-untyped-def]
    """Compute each tie's slope for the discounts 1 / log2(rank + 1), (n_queries, n_groups).

    ``sums`` are those of the first ranks' discounts, ``weighted`` of rank times discount; ranks beyond their end have
    the discount 0. Of a tie far below the top the discount is its Taylor series, as in `dcg_variance`.
    """
    k = len(sums) - 1
    for q in range(len(size)):
        for g in range(size.shape[1]):
            n, start = size[q, g], before[q, g]
            out[q, g] = 0.0
            if n < 2 or start >= k:
                continue
            end = min(start + n, k)
            c = end - start  # ranks that count
            total = sums[end] - sums[start]
            if start < 32 * c:
                within = weighted[end] - weighted[start] - (start + (c + 1) / 2) * total
            else:
                x = start + (c + 3) / 2  # rank + 1 in the middle
                log = math.log(x)
                slope = -math.log(2.0) / (x * log * log)
                third = slope * (2 + 6 / log + 6 / (log * log)) / (x * x)
                second = c * (c * c - 1.0) / 12
                within = slope * second + third / 6 * second * (3.0 * c * c - 7) / 20
            out[q, g] = (within - total * (n - c) / 2) / (n * n - 1.0)


@compiled_beside_numba
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
