"""Counting loops, compiled by numba: XOR, popcount and tally.

Codes are bytes, of the database byte-major, (n_bytes, n_rows), so that each pass reads memory in order. LLVM counts the
bits of 16 to 64 bytes at once with any vector instructions: looked up by halves in AVX2, by an instruction of their own
in AVX-512 and on ARM. Counts, (n_queries, n_levels, n_groups), are added to, never reset, so database blocks can follow
each other. ``weights`` holds the number of items of each row; empty, each row is one item. The loops run over slices,
which LLVM vectorises; it does not vectorise loops over indices.
"""

from typing import Any

import numpy as np
from numba.core import types
from numba.core.extending import intrinsic

from hashbench._parallel import to_machine_code

_CHUNK = 2048  # rows whose distances are held at once, in the first-level cache
_TILE = 65536  # most rows counted before the 16-bit counters are emptied
_TILE_BYTES = 1 << 19  # of their codes, which fit the second-level cache
_BYTES = 31  # of a code at a time: not all of a byte's values can be their distance
_STRIDE = 256  # counters of pairs of rows with one distance of the second row

# These loops call each other, so they are compiled on import.


def _emit_differing(typingctx: Any, total: Any, byte: Any, other: Any) -> Any:  # numba looks these names up
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.add(args[0], builder.ctpop(builder.xor(args[1], args[2])))

    return types.uint8(types.uint8, types.uint8, types.uint8), generate


def _emit_shared(typingctx: Any, total: Any, byte: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.add(args[0], builder.ctpop(builder.and_(args[1], args[2])))

    return types.uint8(types.uint8, types.uint8, types.uint8), generate


_plus_differing: Any = intrinsic(_emit_differing)  # total + bits that differ, in 8 bits
_plus_shared: Any = intrinsic(_emit_shared)


@to_machine_code
def _byte_distances(query, database, first, last, out):  # type: ignore[no-untyped-def]
    """Put the Hamming distances of rows first..last, at most 255, into ``out``, of bytes."""
    n_eights = len(query) - len(query) % 8
    for start in range(first, last, _CHUNK):
        stop = min(start + _CHUNK, last)
        totals = out[start - first : stop - first]
        totals[:] = 0
        for byte in range(0, n_eights, 8):  # at a time, since ``out`` is read and written each time
            a, b, c, d = query[byte], query[byte + 1], query[byte + 2], query[byte + 3]
            e, f, g, h = query[byte + 4], query[byte + 5], query[byte + 6], query[byte + 7]
            of_a, of_b = database[byte, start:stop], database[byte + 1, start:stop]
            of_c, of_d = database[byte + 2, start:stop], database[byte + 3, start:stop]
            of_e, of_f = database[byte + 4, start:stop], database[byte + 5, start:stop]
            of_g, of_h = database[byte + 6, start:stop], database[byte + 7, start:stop]
            for i in range(len(totals)):
                total = _plus_differing(_plus_differing(totals[i], a, of_a[i]), b, of_b[i])
                total = _plus_differing(_plus_differing(total, c, of_c[i]), d, of_d[i])
                total = _plus_differing(_plus_differing(total, e, of_e[i]), f, of_f[i])
                totals[i] = _plus_differing(_plus_differing(total, g, of_g[i]), h, of_h[i])
        for byte in range(n_eights, len(query)):
            code, rows = query[byte], database[byte, start:stop]
            for i in range(len(totals)):
                totals[i] = _plus_differing(totals[i], code, rows[i])


@to_machine_code
def _distances(query, database, first, last, part, out):  # type: ignore[no-untyped-def]
    """Put the Hamming distances of rows first..last into ``out``; ``part``, of bytes, holds those of some bits."""
    distances = out[: last - first]
    distances[:] = 0
    for byte in range(0, len(query), _BYTES):
        _byte_distances(query[byte : byte + _BYTES], database[byte : byte + _BYTES], first, last, part)
        for i in range(len(distances)):
            distances[i] += part[i]


@to_machine_code
def _tally(cells, a, b):  # type: ignore[no-untyped-def]
    """Count the cells, with neighbours in different lanes, since equal cells in a row would wait for each other."""
    n_fours = len(cells) - len(cells) % 4
    one = np.uint16(1)
    for i in range(0, n_fours, 4):
        a[cells[i]] += one
        b[cells[i + 1]] += one
        a[cells[i + 2]] += one
        b[cells[i + 3]] += one
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
def _count_singly(query, first, last, database, weights, part, cells, lanes, counts):  # type: ignore[no-untyped-def]
    """Count distances of rows first..last into ``counts``, (1, n_groups)."""
    for start in range(first, last, _CHUNK):
        stop = min(start + _CHUNK, last)
        _distances(query, database, start, stop, part, cells)
        if weights.size:
            _tally_weights(cells[: stop - start], weights[start:stop], counts[0])
        else:
            _tally(cells[: stop - start], lanes[0], lanes[1])
    if not weights.size:
        _flush(lanes, counts)


@to_machine_code
def _pair_lanes(n_groups):  # type: ignore[no-untyped-def]
    """Return counters of pairs of rows, in two lanes whose rows do not compete for the same places in the cache."""
    return np.zeros(2 * _STRIDE * n_groups + _STRIDE // 2, np.uint16)


@to_machine_code
def _tally_pairs(distances, lanes, counts):  # type: ignore[no-untyped-def]
    """Count rows two by two: that halves the work of counting, which costs most."""
    n_groups = len(counts)
    pairs = distances[: len(distances) - len(distances) % 2].view(np.uint16)
    _tally(pairs, lanes[: _STRIDE * n_groups], lanes[-_STRIDE * n_groups :])
    if len(distances) % 2:
        counts[distances[-1]] += 1


@to_machine_code
def _count_in_pairs(query, first, last, database, part, lanes, counts):  # type: ignore[no-untyped-def]
    for start in range(first, last, _CHUNK):
        stop = min(start + _CHUNK, last)
        _byte_distances(query, database, start, stop, part)
        _tally_pairs(part[: stop - start], lanes, counts)


@to_machine_code
def _fewest_in_pairs(query, weights, n_groups):  # type: ignore[no-untyped-def]
    """Return the number of rows from which on counting in pairs is worth that `_flush_pairs` takes longer."""
    if weights.size or query.shape[1] > _BYTES:
        return np.int64(1) << 62
    return n_groups * n_groups // 4


@to_machine_code
def _flush_pairs(lanes, sums, counts):  # type: ignore[no-untyped-def]
    """Move the counts of at most 65,535 pairs into ``counts``, (n_groups,); ``sums``, of 16 bits, are 0 between calls."""
    n_groups = len(counts)
    a, b = lanes[: _STRIDE * n_groups], lanes[-_STRIDE * n_groups :]
    for group in range(n_groups):
        first = a[_STRIDE * group : _STRIDE * group + n_groups]
        second = b[_STRIDE * group : _STRIDE * group + n_groups]
        total = np.uint16(0)
        for other in range(n_groups):
            both = np.uint16(first[other] + second[other])
            total = np.uint16(total + both)
            sums[other] = np.uint16(sums[other] + both)
            first[other] = 0
            second[other] = 0
        counts[group] += np.int64(total)
    for group in range(n_groups):
        counts[group] += np.int64(sums[group])
        sums[group] = 0


@to_machine_code
def _tile_rows(database):  # type: ignore[no-untyped-def]
    """Return the number of rows whose codes fit the second-level cache, a multiple of the chunk."""
    return min(max(_TILE_BYTES // len(database) // _CHUNK, 1) * _CHUNK, _TILE)


@to_machine_code
def largest_buckets(query, codes, sizes, largest):  # type: ignore[no-untyped-def]
    """Raise ``largest``, (n_queries, n_groups), to the largest of ``sizes`` among the codes at each distance."""
    part, cells = np.empty(_CHUNK, np.uint8), np.empty(_CHUNK, np.uint16)
    for row in range(len(query)):
        most = largest[row]
        for start in range(0, codes.shape[1], _CHUNK):
            stop = min(start + _CHUNK, codes.shape[1])
            _distances(query[row], codes, start, stop, part, cells)
            for i in range(stop - start):
                most[cells[i]] = max(most[cells[i]], sizes[start + i])


@to_machine_code
def collect(query, database, first_row, radius, fill, index, hamming):  # type: ignore[no-untyped-def]
    """Put rows within each query's ``radius``, and their distances, into the outputs at ``fill``, which is advanced."""
    part, cells = np.empty(_CHUNK, np.uint8), np.empty(_CHUNK, np.uint16)
    for row in range(len(query)):
        at = fill[row]
        for start in range(0, database.shape[1], _CHUNK):
            stop = min(start + _CHUNK, database.shape[1])
            _distances(query[row], database, start, stop, part, cells)
            for i in range(stop - start):
                if cells[i] <= radius[row]:
                    index[at] = first_row + start + i
                    hamming[at] = cells[i]
                    at += 1
        fill[row] = at


@to_machine_code
def all_cells(query, database, levels, n_groups, out):  # type: ignore[no-untyped-def]
    """Put level * n_groups + distance of all pairs into ``out``, (n_queries, n_rows); ``levels`` are indices."""
    n_rows = database.shape[1]
    part, distances = np.empty(n_rows, np.uint8), np.empty(n_rows, np.uint16)
    for row in range(len(query)):
        _distances(query[row], database, 0, n_rows, part, distances)
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
def count_ranges(query, start, stop, database, weights, counts):  # type: ignore[no-untyped-def]
    """Count distances where the items of each level and above are one range of rows, inside that of the level below.

    Rows ``start[l - 1]`` to ``stop[l - 1]`` (excluded), each of shape (n_queries,), have level l or above.
    """
    n_levels, n_groups, n_rows = len(start) + 1, counts.shape[2], database.shape[1]
    part, cells = np.empty(_CHUNK, np.uint8), np.empty(_CHUNK, np.uint16)
    lanes = np.zeros((2, n_groups), np.uint16)
    fewest = _fewest_in_pairs(query, weights, n_groups)
    pairs = _pair_lanes(n_groups if n_rows >= fewest else 0)
    sums = np.zeros(n_groups, np.uint16)
    length = _tile_rows(database)
    for tile in range(0, n_rows, length):
        for row in range(len(query)):
            first, last = tile, min(tile + length, n_rows)
            for level in range(n_levels):  # rows of this level lie before and behind those of the next
                next_first, next_last = last, last
                if level < n_levels - 1:
                    next_first = min(max(start[level, row], first), last)
                    next_last = min(max(stop[level, row], next_first), last)
                of_level = counts[row, level : level + 1]
                if next_first - first + last - next_last >= fewest:
                    _count_in_pairs(query[row], first, next_first, database, part, pairs, of_level[0])
                    _count_in_pairs(query[row], next_last, last, database, part, pairs, of_level[0])
                    _flush_pairs(pairs, sums, of_level[0])
                else:
                    _count_singly(query[row], first, next_first, database, weights, part, cells, lanes, of_level)
                    _count_singly(query[row], next_last, last, database, weights, part, cells, lanes, of_level)
                first, last = next_first, next_last


@to_machine_code
def _shared_labels(labels, masks, first, last, part, out):  # type: ignore[no-untyped-def]
    """Put the number of bits that ``labels`` and each mask of first..last have in common into ``out``."""
    shared = out[: last - first]
    shared[:] = 0
    for start in range(0, len(labels), _BYTES):
        totals = part[: last - first]
        totals[:] = 0
        for byte in range(start, min(start + _BYTES, len(labels))):
            wanted, rows = labels[byte], masks[byte, first:last]
            for i in range(len(rows)):
                totals[i] = _plus_shared(totals[i], wanted, rows[i])
        for i in range(len(totals)):
            shared[i] += totals[i]


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
    n_rows, n_groups, length = edges[-1], counts.shape[2], min(_tile_rows(database), edges[-1])
    part, distances = np.empty(length, np.uint8), np.empty(length, np.uint16)
    few, shared = np.empty(masks.shape[1], np.uint8), np.empty(masks.shape[1], np.uint16)
    lanes = np.zeros((2, counts.shape[1] * n_groups), np.uint16)
    a, b, one = lanes[0], lanes[1], np.uint16(1)
    fewest = _fewest_in_pairs(query, np.zeros(0, np.int64), n_groups)
    pairs = _pair_lanes(n_groups if n_rows >= fewest else 0)
    sums = np.zeros(n_groups, np.uint16)
    first_run = 0
    for tile in range(0, n_rows, length):
        end = min(tile + length, n_rows)
        last_run = first_run
        while edges[last_run] < end:
            last_run += 1
        for row in range(len(query)):
            _distances(query[row], database, tile, end, part, distances)
            if end - tile >= fewest:
                _tally_pairs(part[: end - tile], pairs, counts[row, 0])
                _flush_pairs(pairs, sums, counts[row, 0])
            else:
                _tally(distances[: end - tile], a[:n_groups], b[:n_groups])
                _flush(lanes, counts[row, :1])
            _shared_labels(query_masks[row], masks, first_run, last_run, few, shared)
            n_met = 0
            for run in range(first_run, last_run):
                if shared[run - first_run]:
                    first, last = max(edges[run], tile) - tile, min(edges[run + 1], end) - tile
                    base, n_met = np.uint64(n_groups) * shared[run - first_run], n_met + 1
                    for i in range(first, last - 1, 2):  # runs are short: no slices, which cost as much as some rows
                        a[base + distances[i]] += one
                        b[base + distances[i + 1]] += one
                    if (last - first) % 2:
                        a[base + distances[last - 1]] += one
            if n_met:
                _move_up(lanes, counts[row])
        first_run = last_run - int(edges[last_run] > end)


@to_machine_code
def count_shared(query, query_masks, database, masks, first, weights, counts):  # type: ignore[no-untyped-def]
    """Count distances of rows from ``first`` on, where the level is the number of labels shared, row by row.

    Masks are bytes of labels, one bit each: (n_queries, n_mask_bytes), and of the database (n_mask_bytes, n_rows).
    """
    n_rows, n_groups, length = database.shape[1], np.uint32(counts.shape[2]), _tile_rows(database)
    part, distances = np.empty(_CHUNK, np.uint8), np.empty(_CHUNK, np.uint16)
    shared, cells = np.empty(_CHUNK, np.uint16), np.empty(_CHUNK, np.uint32)
    lanes = np.zeros((2, counts.shape[1] * counts.shape[2]), np.uint16)
    sums = np.zeros(lanes.shape[1], np.int64)
    for tile in range(first, n_rows, length):
        end = min(tile + length, n_rows)
        for row in range(len(query)):
            for start in range(tile, end, _CHUNK):
                stop = min(start + _CHUNK, end)
                _distances(query[row], database, start, stop, part, distances)
                _shared_labels(query_masks[row], masks, start, stop, part, shared)
                for i in range(stop - start):
                    cells[i] = n_groups * shared[i] + distances[i]
                if weights.size:
                    _tally_weights(cells[: stop - start], weights[start:stop], sums)
                else:
                    _tally(cells[: stop - start], lanes[0], lanes[1])
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
    part, distances = np.empty(_CHUNK, np.uint8), np.empty(_CHUNK, np.uint16)
    cells = np.empty(_CHUNK, np.uint32)
    lanes = np.zeros((2, counts.shape[1] * counts.shape[2]), np.uint16)
    for row in range(len(query)):
        for tile in range(0, n_rows, _TILE):
            for start in range(tile, min(tile + _TILE, n_rows), _CHUNK):
                stop = min(start + _CHUNK, n_rows)
                _distances(query[row], database, start, stop, part, distances)
                of_rows = levels[row, start:stop]
                for i in range(len(of_rows)):
                    cells[i] = n_groups * np.uint32(of_rows[i]) + distances[i]
                _tally(cells[: stop - start], lanes[0], lanes[1])
            _flush(lanes, counts[row])
