"""Counting loops, compiled by numba: XOR, popcount and tally.

Database words are word-major, (n_words, n_rows), so that each pass reads memory in order. Counts, (n_queries,
n_levels, n_groups), are added to, never reset, so database blocks can follow each other. ``weights`` holds the number
of items of each row; empty, each row is one item. The loops run over slices, which LLVM vectorises; it does not
vectorise loops over indices.
"""

from typing import Any

import numpy as np
from numba.core import types
from numba.core.extending import intrinsic

from hashbench._parallel import to_machine_code

_CHUNK = 2048  # rows whose distances are held at once, in the first-level cache
_TILE = 65536  # rows counted before the 16-bit counters are emptied; their codes fit the second-level cache
_QUERIES = 8  # of long codes that are counted at a time
_LANES = 2  # counters side by side, since equal distances in a row would wait for each other

# These loops call each other, so they are compiled on import.


def _emit_popcount(typingctx: Any, word: Any) -> Any:  # numba looks the parameters up by these names
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


_popcount: Any = intrinsic(_emit_popcount)


@to_machine_code
def _distances(query, database, first, last, out):  # type: ignore[no-untyped-def]
    """Put the Hamming distances of rows first..last into ``out``."""
    n_fours = len(query) - len(query) % 4
    for word in range(0, n_fours, 4):  # four at a time: what costs is to narrow the sum, and to add it to ``out``
        a, b, c, d = query[word], query[word + 1], query[word + 2], query[word + 3]
        of_a, of_b = database[word, first:last], database[word + 1, first:last]
        of_c, of_d = database[word + 2, first:last], database[word + 3, first:last]
        if word == 0:
            for i in range(len(of_a)):
                distance = _popcount(a ^ of_a[i]) + _popcount(b ^ of_b[i])
                out[i] = distance + _popcount(c ^ of_c[i]) + _popcount(d ^ of_d[i])
        else:
            for i in range(len(of_a)):
                distance = _popcount(a ^ of_a[i]) + _popcount(b ^ of_b[i])
                out[i] += distance + _popcount(c ^ of_c[i]) + _popcount(d ^ of_d[i])
    for word in range(n_fours, len(query)):
        code, rows = query[word], database[word, first:last]
        if word == 0:
            for i in range(len(rows)):
                out[i] = _popcount(code ^ rows[i])
        else:
            for i in range(len(rows)):
                out[i] += _popcount(code ^ rows[i])


@to_machine_code
def _both(query, next_query, row, shift):  # type: ignore[no-untyped-def]
    """Return distance to ``query`` x 2**shift + distance to ``next_query``, of one word of a row."""
    return (_popcount(query ^ row) << shift) | _popcount(next_query ^ row)


@to_machine_code
def _pair_distances(query, next_query, database, first, n_words, shift, out):  # type: ignore[no-untyped-def]
    """Put `_both` of the 4 x ``n_words`` rows from ``first`` on into ``out``, 16 bits each, in another order.

    Rows far apart share a word of ``out``: neighbours would have to be narrowed, which costs most.
    """
    low, middle, high = np.uint64(16), np.uint64(32), np.uint64(48)
    for word in range(len(query)):
        a, b, rows = query[word], next_query[word], database[word, first : first + 4 * n_words]
        second, third, fourth = rows[n_words:], rows[2 * n_words :], rows[3 * n_words :]
        if word == 0:
            for i in range(n_words):
                packed = _both(a, b, rows[i], shift) | (_both(a, b, second[i], shift) << low)
                out[i] = packed | (_both(a, b, third[i], shift) << middle) | (_both(a, b, fourth[i], shift) << high)
        else:
            for i in range(n_words):
                packed = _both(a, b, rows[i], shift) | (_both(a, b, second[i], shift) << low)
                out[i] += packed | (_both(a, b, third[i], shift) << middle) | (_both(a, b, fourth[i], shift) << high)


@to_machine_code
def _tally(cells, lanes):  # type: ignore[no-untyped-def]
    """Count the cells, with neighbours in different lanes."""
    n_fours = len(cells) - len(cells) % 4
    one = np.uint16(1)
    a, b = lanes[0], lanes[1]
    for i in range(0, n_fours, 4):
        a[cells[i]] += one
        b[cells[i + 1]] += one
        a[cells[i + 2]] += one
        b[cells[i + 3]] += one
    for i in range(n_fours, len(cells)):
        a[cells[i]] += one


@to_machine_code
def _tally_four(cells, lanes):  # type: ignore[no-untyped-def]
    n_fours = len(cells) - len(cells) % 4
    one = np.uint16(1)
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    for i in range(0, n_fours, 4):
        a[cells[i]] += one
        b[cells[i + 1]] += one
        c[cells[i + 2]] += one
        d[cells[i + 3]] += one
    for i in range(n_fours, len(cells)):
        a[cells[i]] += one


@to_machine_code
def _tally_weights(cells, weights, sums):  # type: ignore[no-untyped-def]
    """Add up the weights of each cell."""
    for i in range(len(cells)):
        sums[cells[i]] += weights[i]


@to_machine_code
def _flush(lanes, counts):  # type: ignore[no-untyped-def]
    """Move the lanes' counts, a flat (n_levels x n_groups) each, into ``counts``."""
    n_groups = counts.shape[1]
    for level in range(counts.shape[0]):
        for group in range(n_groups):
            cell = level * n_groups + group
            counts[level, group] += np.int64(lanes[0, cell]) + np.int64(lanes[1, cell])
    lanes[:] = 0


@to_machine_code
def _count_range(query, first, last, database, weights, cells, lanes, counts):  # type: ignore[no-untyped-def]
    """Count distances of rows first..last into ``counts``, (1, n_groups)."""
    if weights.size:
        for start in range(first, last, _CHUNK):
            stop = min(start + _CHUNK, last)
            _distances(query, database, start, stop, cells)
            _tally_weights(cells[: stop - start], weights[start:stop], counts[0])
        return
    for tile in range(first, last, _TILE):
        for start in range(tile, min(tile + _TILE, last), _CHUNK):
            stop = min(start + _CHUNK, last)
            _distances(query, database, start, stop, cells)
            _tally(cells[: stop - start], lanes)
        _flush(lanes, counts)


@to_machine_code
def _count_pairs(query, n_rows, database, counts):  # type: ignore[no-untyped-def]
    """Count distances of the first rows, a multiple of 4, for queries two by two: ``counts`` is (n_queries, n_groups).

    One counter for each pair of distances halves the work of counting, which costs most.
    """
    n_groups = counts.shape[1]
    words = np.empty(_CHUNK // 4, np.uint64)
    cells = words.view(np.uint16)
    shift = np.uint64(7 if n_groups <= 128 else 8)  # a smaller table stays nearer to the processor
    stride = 1 << np.int64(shift)
    lanes = np.zeros((_LANES, stride * n_groups), np.uint16)
    sums = np.zeros(n_groups, np.uint32)  # of one tile, which fit 32 bits
    for tile in range(0, n_rows, _TILE):
        end = min(tile + _TILE, n_rows)
        for row in range(0, len(query) - 1, 2):
            for start in range(tile, end, _CHUNK):
                n_words = (min(start + _CHUNK, end) - start) // 4
                _pair_distances(query[row], query[row + 1], database, start, n_words, shift, words)
                _tally(cells[: 4 * n_words], lanes)
            for group in range(n_groups):
                first = lanes[0, stride * group : stride * group + n_groups]
                second = lanes[1, stride * group : stride * group + n_groups]
                total = np.uint32(0)
                for next_group in range(n_groups):
                    both = np.uint32(np.uint32(first[next_group]) + np.uint32(second[next_group]))
                    total = np.uint32(total + both)
                    sums[next_group] += both
                    first[next_group] = 0
                    second[next_group] = 0
                counts[row, group] += np.int64(total)
            for group in range(n_groups):
                counts[row + 1, group] += np.int64(sums[group])
                sums[group] = 0


@to_machine_code
def _count_together(query, n_rows, database, counts):  # type: ignore[no-untyped-def]
    """Count distances of the first rows for some queries at a time into level 0 of ``counts``, as `_count_all`.

    All of these queries but the first read rows of long codes from the first-level cache.
    """
    n_words, n_groups = database.shape[0], counts.shape[2]
    n_at_once = max(_CHUNK // n_words, 64)
    cells = np.empty(n_at_once, np.uint32)
    lanes = np.zeros((_QUERIES, 4, n_groups), np.uint16)
    for tile in range(0, n_rows, _TILE):
        end = min(tile + _TILE, n_rows)
        for first in range(0, len(query), _QUERIES):
            last = min(first + _QUERIES, len(query))
            for start in range(tile, end, n_at_once):
                stop = min(start + n_at_once, end)
                for row in range(first, last):
                    _distances(query[row], database, start, stop, cells)
                    _tally_four(cells[: stop - start], lanes[row - first])
            for row in range(first, last):
                _flush(lanes[row - first, :2], counts[row, :1])
                _flush(lanes[row - first, 2:], counts[row, :1])


@to_machine_code
def largest_buckets(query, codes, sizes, largest):  # type: ignore[no-untyped-def]
    """Raise ``largest``, (n_queries, n_groups), to the largest of ``sizes`` among the codes at each distance."""
    cells = np.empty(_CHUNK, np.uint32)
    for row in range(len(query)):
        most = largest[row]
        for start in range(0, codes.shape[1], _CHUNK):
            stop = min(start + _CHUNK, codes.shape[1])
            _distances(query[row], codes, start, stop, cells)
            for i in range(stop - start):
                most[cells[i]] = max(most[cells[i]], sizes[start + i])


@to_machine_code
def collect(query, database, first_row, radius, fill, index, hamming):  # type: ignore[no-untyped-def]
    """Put rows within each query's ``radius``, and their distances, into the outputs at ``fill``, which is advanced."""
    cells = np.empty(_CHUNK, np.uint32)
    for row in range(len(query)):
        at = fill[row]
        for start in range(0, database.shape[1], _CHUNK):
            stop = min(start + _CHUNK, database.shape[1])
            _distances(query[row], database, start, stop, cells)
            for i in range(stop - start):
                if cells[i] <= radius[row]:
                    index[at] = first_row + start + i
                    hamming[at] = cells[i]
                    at += 1
        fill[row] = at


@to_machine_code
def all_cells(query, database, levels, n_groups, out):  # type: ignore[no-untyped-def]
    """Put level * n_groups + distance of all pairs into ``out``, (n_queries, n_rows); ``levels`` are indices."""
    distances = np.empty(database.shape[1], np.uint32)
    for row in range(len(query)):
        _distances(query[row], database, 0, len(distances), distances)
        cells, of_items = out[row], levels[row]
        for i in range(len(cells)):
            cells[i] = of_items[i] * n_groups + distances[i]


@to_machine_code
def add_cells(cells, tables, sums):  # type: ignore[no-untyped-def]
    """Add each query's table, (n_cells + 1, n_metrics), at the cells of the items, -1 for the last cell.

    ``cells`` are (n_queries, n_items), ``sums`` (n_items, n_metrics); the number of metrics is a multiple of 4.
    """
    last = np.uint64(tables.shape[1] - 1)
    for four in range(sums.shape[1] // 4):
        a = np.uint64(4 * four)  # unsigned, as a negative index would be looked for at each step
        b, c, d = a + np.uint64(1), a + np.uint64(2), a + np.uint64(3)
        for q in range(len(cells)):
            table, row = tables[q], cells[q]
            for i in range(len(row)):
                cell = np.uint64(row[i]) if row[i] >= 0 else last
                sums[i, a] += table[cell, a]
                sums[i, b] += table[cell, b]
                sums[i, c] += table[cell, c]
                sums[i, d] += table[cell, d]


@to_machine_code
def _count_all(query, n_rows, database, weights, counts):  # type: ignore[no-untyped-def]
    """Count distances of the first rows, of any level, into level 0 of ``counts``, (n_queries, n_levels, n_groups)."""
    n_groups = counts.shape[2]
    cells = np.empty(_CHUNK, np.uint32)
    lanes = np.zeros((_LANES, n_groups), np.uint16)
    n_paired, n_fours = 0, n_rows - n_rows % 4
    if not weights.size and n_groups > 129:
        _count_together(query, n_rows, database, counts)
        return
    if not weights.size:
        n_paired = len(query) - len(query) % 2
        _count_pairs(query[:n_paired], n_fours, database, counts[:n_paired, 0])
    for row in range(len(query)):
        first = n_fours if row < n_paired else 0
        _count_range(query[row], first, n_rows, database, weights, cells, lanes, counts[row, :1])


@to_machine_code
def count_ranges(query, start, stop, database, weights, counts):  # type: ignore[no-untyped-def]
    """Count distances where the items of each level and above are one range of rows, inside that of the level below.

    Rows ``start[l - 1]`` to ``stop[l - 1]`` (excluded), each of shape (n_queries,), have level l or above.
    """
    n_groups = counts.shape[2]
    cells = np.empty(_CHUNK, np.uint32)
    lanes = np.zeros((_LANES, n_groups), np.uint16)
    inside = np.zeros((1, n_groups), np.int64)
    _count_all(query, database.shape[1], database, weights, counts)
    for row in range(len(query)):
        for level in range(len(start)):  # what is in the next level's range leaves the level below
            first, last = start[level, row], stop[level, row]
            _count_range(query[row], first, last, database, weights, cells, lanes, inside)
            for group in range(n_groups):
                counts[row, level, group] -= inside[0, group]
                counts[row, level + 1, group] += inside[0, group]
                inside[0, group] = 0


@to_machine_code
def _shared_labels(labels, masks, first, last, out):  # type: ignore[no-untyped-def]
    """Put the number of bits that ``labels`` and each mask of first..last have in common into ``out``."""
    for word in range(len(labels)):
        wanted, rows = labels[word], masks[word, first:last]
        if word == 0:
            for i in range(len(rows)):
                out[i] = _popcount(wanted & rows[i])
        else:
            for i in range(len(rows)):
                out[i] += _popcount(wanted & rows[i])


@to_machine_code
def _move_up(lanes, counts):  # type: ignore[no-untyped-def]
    """Move the lanes' counts, a flat (n_levels x n_groups) each, from level 0 to their own."""
    n_groups = counts.shape[1]
    for level in range(1, counts.shape[0]):
        for group in range(n_groups):
            cell = level * n_groups + group
            moved = np.int64(lanes[0, cell]) + np.int64(lanes[1, cell])
            counts[0, group] -= moved
            counts[level, group] += moved
    lanes[:] = 0


@to_machine_code
def count_runs(query, query_masks, database, masks, edges, counts):  # type: ignore[no-untyped-def]
    """Count distances where runs of rows have equal labels, and the level is the number shared with the query's.

    Run r, with the labels ``masks[:, r]``, goes from row ``edges[r]`` to ``edges[r + 1]``; the first starts at row 0.
    All rows are counted at level 0, then those of the runs that share labels are moved.
    """
    n_groups = np.uint64(counts.shape[2])
    cells = np.empty(edges[-1], np.uint32)
    shared = np.empty(masks.shape[1], np.uint32)
    met = np.empty(masks.shape[1], np.uint32)  # runs that share labels
    lanes = np.zeros((_LANES, counts.shape[1] * counts.shape[2]), np.uint16)
    _count_all(query, edges[-1], database, np.zeros(0, np.int64), counts)
    for row in range(len(query)):
        _shared_labels(query_masks[row], masks, np.int64(0), len(shared), shared)
        n_met = 0
        for run in range(len(shared)):
            met[n_met] = run
            n_met += int(shared[run] > 0)
        end = np.uint64(0)
        for word in range(len(query[row])):  # runs are short: no slices, which cost as much as some rows
            code, rows = query[row, word], database[word]
            end = np.uint64(0)
            for place in range(n_met):
                run = met[place]
                first, n_rows = np.uint64(edges[run]), np.uint64(edges[run + 1] - edges[run])
                if word == 0:
                    base = n_groups * shared[run]
                    for i in range(n_rows):
                        cells[end + i] = base + _popcount(code ^ rows[first + i])
                else:
                    for i in range(n_rows):
                        cells[end + i] += _popcount(code ^ rows[first + i])
                end += n_rows
        for start in range(0, np.int64(end), _TILE):
            _tally(cells[start : min(start + _TILE, np.int64(end))], lanes)
            _move_up(lanes, counts[row])


@to_machine_code
def count_shared(query, query_masks, database, masks, first, weights, counts):  # type: ignore[no-untyped-def]
    """Count distances of rows from ``first`` on, where the level is the number of labels shared, row by row.

    Masks are words of labels, one bit each: (n_queries, n_mask_words), and of the database (n_mask_words, n_rows).
    """
    n_rows, n_groups = database.shape[1], np.uint32(counts.shape[2])
    cells = np.empty(_CHUNK, np.uint32)
    shared = np.empty(_CHUNK, np.uint32)
    lanes = np.zeros((_LANES, counts.shape[1] * counts.shape[2]), np.uint16)
    sums = np.zeros(lanes.shape[1], np.int64)
    for tile in range(first, n_rows, _TILE):
        end = min(tile + _TILE, n_rows)
        for row in range(len(query)):
            for start in range(tile, end, _CHUNK):
                stop = min(start + _CHUNK, end)
                _distances(query[row], database, start, stop, cells)
                _shared_labels(query_masks[row], masks, start, stop, shared)
                for i in range(stop - start):
                    cells[i] += n_groups * shared[i]
                if weights.size:
                    _tally_weights(cells[: stop - start], weights[start:stop], sums)
                else:
                    _tally(cells[: stop - start], lanes)
            if weights.size:
                for level in range(counts.shape[1]):
                    for group in range(n_groups):
                        counts[row, level, group] += sums[level * n_groups + group]
                sums[:] = 0
            else:
                _flush(lanes, counts[row])


@to_machine_code
def count_levels(query, database, levels, counts):  # type: ignore[no-untyped-def]
    """Count distances where ``levels``, (n_queries, n_rows), holds the index of each pair's level."""
    n_rows, n_groups = database.shape[1], np.uint32(counts.shape[2])
    cells = np.empty(_CHUNK, np.uint32)
    lanes = np.zeros((_LANES, counts.shape[1] * counts.shape[2]), np.uint16)
    for row in range(len(query)):
        for tile in range(0, n_rows, _TILE):
            for start in range(tile, min(tile + _TILE, n_rows), _CHUNK):
                stop = min(start + _CHUNK, n_rows)
                _distances(query[row], database, start, stop, cells)
                here = levels[row, start:stop]
                for i in range(len(here)):
                    cells[i] += n_groups * np.uint32(here[i])
                _tally(cells[: stop - start], lanes)
            _flush(lanes, counts[row])
