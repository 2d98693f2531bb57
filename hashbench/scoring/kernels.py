"""Counting loops, compiled by numba: XOR, popcount and tally.

Codes are bytes, of the database byte-major, (n_bytes, n_rows), so that each pass reads memory in order. Counts,
(n_queries, n_levels, n_groups), are added to, never reset, so database blocks can follow each other. ``weights`` holds
the number of items of each row; empty, each row is one item.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from hashbench._parallel import to_machine_code

_TILE = 65536  # most rows counted before the 16-bit counters are emptied, a multiple of 64
_TILE_BYTES = 1 << 20  # of their codes, which fit a second-level cache
_QUERIES = 4  # whose distances are computed at once, since each pass waits for memory
_BYTES = 31  # of a code at a time: its distances fit 8 bits
_WIDTH = 64  # rows that are read at once, or fewer where the processor's vectors are shorter
_STRIDE = 256  # counters of pairs of rows with one distance of the second row

# These loops call each other, so they are compiled on import.


def _features(context: Any) -> set[str]:
    """Return what the processor can do, as LLVM names it, or as ``NUMBA_CPU_FEATURES`` says."""
    *_, features = context.codegen().magic_tuple()
    return {name.removeprefix("+") for name in features.split(",") if name.startswith("+")}


_LOOK_UP = {16: "llvm.x86.ssse3.pshuf.b.128", 32: "llvm.x86.avx2.pshuf.b", 64: "llvm.x86.avx512.pshuf.b.512"}


def _looks_up(features: set[str]) -> bool:
    """Whether halves of bytes are looked up: without an instruction for the bits of a byte that takes least time."""
    return bool({"ssse3", "avx2"} & features) and "avx512bitalg" not in features


def _emit_n_bits(typingctx: Any, byte: Any) -> Any:  # numba looks the parameters up by these names
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint8(types.uint8), generate


def _emit_looks_up(typingctx: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(types.boolean, _looks_up(_features(context)))

    return types.boolean(), generate


def _emit_sums(n_queries: int) -> Any:
    """Return an intrinsic that puts distances of 64 rows from ``row`` on to the queries from ``first`` on into ``out``.

    It counts the bits of bytes ``byte`` to ``end``; ``place`` is the column of ``out``. LLVM would not keep the rows
    and the sums in registers for several queries, and it would look up bits for each query anew.
    """

    def emit(
        typingctx: Any, tables: Any, first: Any, byte: Any, end: Any, database: Any, row: Any, out: Any, place: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            features = _features(context)
            width = 64 if "avx512bw" in features else 32 if "avx2" in features else 16
            vector, byte = ir.VectorType(ir.IntType(8), width), ir.IntType(8)
            table = ir.VectorType(byte, 16)
            repeated = ir.Constant(ir.VectorType(ir.IntType(32), width), [lane % 16 for lane in range(width)])
            half, four = ir.Constant(vector, [15] * width), ir.Constant(vector, [4] * width)
            name = _LOOK_UP[width] if _looks_up(features) else f"llvm.ctpop.v{width}i8"

            def pointer(number: int, kind: Any, *index: Any) -> Any:
                array = context.make_array(signature.args[number])(context, builder, args[number])
                place = cgutils.get_item_pointer(context, builder, signature.args[number], array, index)
                return builder.bitcast(place, kind.as_pointer())

            def whole(number: int) -> Any:
                return context.get_constant(types.intp, number)

            def load_table(*index: Any) -> Any:
                entries = builder.load(pointer(0, table, *index), align=1)
                return builder.shuffle_vector(entries, entries, repeated)

            def call(*values: Any) -> Any:
                kind = ir.FunctionType(vector, [vector] * len(values))
                return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)

            queries = [builder.add(args[1], whole(number)) for number in range(n_queries)]
            shifts = [whole(shift) for shift in range(0, _WIDTH, width)]
            sums = [[cgutils.alloca_once_value(builder, ir.Constant(vector, None)) for _ in shifts] for _ in queries]
            with cgutils.for_range_slice(builder, args[2], args[3], whole(1)) as (at, _):
                places = [pointer(4, vector, at, builder.add(args[5], shift)) for shift in shifts]
                rows = [builder.load(place, align=1) for place in places]
                low = [builder.and_(some, half) for some in rows]
                high = [builder.lshr(some, four) for some in rows]
                for query, of_query in zip(queries, sums, strict=True):
                    of_low, of_high = load_table(query, at, whole(0)), load_table(query, at, whole(16))
                    for number, total in enumerate(of_query):
                        if _looks_up(features):
                            bits = builder.add(call(of_low, low[number]), call(of_high, high[number]))
                        else:
                            bits = call(builder.xor(of_low, rows[number]))
                        builder.store(builder.add(builder.load(total), bits), total)
            for query, of_query in enumerate(sums):
                for shift, total in zip(shifts, of_query, strict=True):
                    target = pointer(6, vector, whole(query), builder.add(args[7], shift))
                    builder.store(builder.load(total), target, align=1)
            return context.get_dummy_value()

        integer = types.intp
        return types.void(tables, integer, integer, integer, database, integer, out, integer), generate

    return emit


_n_bits: Any = intrinsic(_emit_n_bits)
_are_looked_up: Any = intrinsic(_emit_looks_up)
_put_sums: Any = intrinsic(_emit_sums(1))
_put_four_sums: Any = intrinsic(_emit_sums(_QUERIES))


@to_machine_code
def _tables(query):  # type: ignore[no-untyped-def]
    """Return what `_put_sums` reads of each byte of the queries, (n_queries, n_bytes, 32).

    Either how many bits differ between each half of the byte and the numbers below 16, or 16 copies of the byte.
    """
    tables = np.empty((*query.shape, 32), np.uint8)
    for row in range(len(query)):
        for byte in range(query.shape[1]):
            code, of_byte = query[row, byte], tables[row, byte]
            for number in range(16):
                if _are_looked_up():
                    of_byte[number] = _n_bits((code & 15) ^ number)
                    of_byte[16 + number] = _n_bits((code >> 4) ^ number)
                else:
                    of_byte[number] = code
    return tables


@to_machine_code
def _tail(database):  # type: ignore[no-untyped-def]
    """Return the last rows, of which there are too few to be read at once, and others."""
    n_rows = database.shape[1]
    tail = np.zeros((len(database), _WIDTH), np.uint8)
    tail[:, : n_rows % _WIDTH] = database[:, n_rows - n_rows % _WIDTH :]
    return tail


@to_machine_code
def _part_distances(tables, row, n_queries, byte, database, tail, first, last, out):  # type: ignore[no-untyped-def]
    """Put the Hamming distances of rows first..last to some queries from ``row`` on into ``out``.

    Bytes from ``byte`` on count, as many as fit 8 bits; ``first`` is a multiple of 64.
    """
    end = min(byte + _BYTES, tables.shape[1])
    whole = min(last + _WIDTH - 1, database.shape[1]) // _WIDTH * _WIDTH  # rows behind the last do no harm
    if n_queries == _QUERIES:
        for start in range(first, whole, _WIDTH):
            _put_four_sums(tables, row, byte, end, database, start, out, start - first)
        if whole < last:
            _put_four_sums(tables, row, byte, end, tail, 0, out, whole - first)
        return
    for number in range(n_queries):
        for start in range(first, whole, _WIDTH):
            _put_sums(tables, row + number, byte, end, database, start, out[number:], start - first)
        if whole < last:
            _put_sums(tables, row + number, byte, end, tail, 0, out[number:], whole - first)


@to_machine_code
def _distances(tables, row, n_queries, database, tail, first, last, part, out):  # type: ignore[no-untyped-def]
    """Put the Hamming distances of rows first..last to some queries from ``row`` on into ``out``, of 16 bits."""
    for byte in range(0, tables.shape[1], _BYTES):
        _part_distances(tables, row, n_queries, byte, database, tail, first, last, part)
        for number in range(n_queries):
            of_part, distances = part[number, : last - first], out[number, : last - first]
            if byte == 0:
                for i in range(len(distances)):
                    distances[i] = of_part[i]
            else:
                for i in range(len(distances)):
                    distances[i] += of_part[i]


@to_machine_code
def _tile_rows(database):  # type: ignore[no-untyped-def]
    """Return the number of rows whose codes fit the second-level cache, a multiple of 64."""
    n_rows = (database.shape[1] + _WIDTH - 1) // _WIDTH * _WIDTH
    return min(max(_TILE_BYTES // len(database) // _WIDTH, 16) * _WIDTH, _TILE, n_rows)


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
def _fewest_in_pairs(query, weights, n_groups):  # type: ignore[no-untyped-def]
    """Return the number of rows from which on counting in pairs is worth that `_flush_pairs` takes longer."""
    if weights.size or query.shape[1] > _BYTES:
        return np.int64(1) << 62
    return n_groups * n_groups // 4


@to_machine_code
def _pair_lanes(n_groups):  # type: ignore[no-untyped-def]
    """Return counters of pairs of rows, in two lanes that do not compete for the same places in the cache."""
    return np.zeros(2 * _STRIDE * n_groups + _STRIDE // 2, np.uint16)


@to_machine_code
def _tally_pairs(distances, first, last, lanes, counts):  # type: ignore[no-untyped-def]
    """Count rows first..last two by two: that halves the work of counting, which costs most."""
    n_counters = _STRIDE * len(counts)
    if first % 2 and first < last:
        counts[distances[first]] += 1
        first += 1
    if last % 2 and first < last:
        counts[distances[last - 1]] += 1
    _tally(distances.view(np.uint16)[first // 2 : last // 2], lanes[:n_counters], lanes[-n_counters:])


@to_machine_code
def _flush_pairs(lanes, sums, counts):  # type: ignore[no-untyped-def]
    """Move the counts of at most 65,535 pairs into ``counts``, (n_groups,); ``sums`` are 0 between calls."""
    n_groups = len(counts)
    n_counters = _STRIDE * n_groups
    a, b = lanes[:n_counters], lanes[-n_counters:]
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
def largest_buckets(query, codes, sizes, largest):  # type: ignore[no-untyped-def]
    """Raise ``largest``, (n_queries, n_groups), to the largest of ``sizes`` among the codes at each distance."""
    tables, tail, length = _tables(query), _tail(codes), _tile_rows(codes)
    part, distances = np.empty((_QUERIES, length), np.uint8), np.empty((_QUERIES, length), np.uint16)
    for tile in range(0, codes.shape[1], length):
        end = min(tile + length, codes.shape[1])
        for first in range(0, len(query), _QUERIES):
            n_queries = min(_QUERIES, len(query) - first)
            _distances(tables, first, n_queries, codes, tail, tile, end, part, distances)
            for number in range(n_queries):
                most, of_query = largest[first + number], distances[number]
                for i in range(end - tile):
                    most[of_query[i]] = max(most[of_query[i]], sizes[tile + i])


@to_machine_code
def collect(query, database, first_row, radius, fill, index, hamming):  # type: ignore[no-untyped-def]
    """Put rows within each query's ``radius``, and their distances, into the outputs at ``fill``, which is advanced."""
    tables, tail, length = _tables(query), _tail(database), _tile_rows(database)
    part, distances = np.empty((_QUERIES, length), np.uint8), np.empty((_QUERIES, length), np.uint16)
    for tile in range(0, database.shape[1], length):
        end = min(tile + length, database.shape[1])
        for first in range(0, len(query), _QUERIES):
            n_queries = min(_QUERIES, len(query) - first)
            _distances(tables, first, n_queries, database, tail, tile, end, part, distances)
            for number in range(n_queries):
                at, most, of_query = fill[first + number], radius[first + number], distances[number]
                for i in range(end - tile):
                    if of_query[i] <= most:
                        index[at] = first_row + tile + i
                        hamming[at] = of_query[i]
                        at += 1
                fill[first + number] = at


@to_machine_code
def all_cells(query, database, levels, n_groups, out):  # type: ignore[no-untyped-def]
    """Put level * n_groups + distance of all pairs into ``out``, (n_queries, n_rows); ``levels`` are indices."""
    tables, tail, length = _tables(query), _tail(database), _tile_rows(database)
    part, distances = np.empty((_QUERIES, length), np.uint8), np.empty((_QUERIES, length), np.uint16)
    for tile in range(0, database.shape[1], length):
        end = min(tile + length, database.shape[1])
        for first in range(0, len(query), _QUERIES):
            n_queries = min(_QUERIES, len(query) - first)
            _distances(tables, first, n_queries, database, tail, tile, end, part, distances)
            for number in range(n_queries):
                cells, of_items = out[first + number, tile:end], levels[first + number, tile:end]
                of_query = distances[number]
                for i in range(len(cells)):
                    cells[i] = of_items[i] * n_groups + of_query[i]


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
def _add_ranges(distances, tile, end, start, stop, row, weights, fewest, pairs, sums, lanes, counts):  # type: ignore[no-untyped-def]
    """Add rows tile..end with these distances to the counts of query ``row``, (n_levels, n_groups)."""
    first, last = 0, end - tile
    for level in range(len(counts)):  # rows of this level lie before and behind those of the next
        next_first, next_last = last, last
        if level < len(start):
            next_first = min(max(start[level, row] - tile, first), last)
            next_last = min(max(stop[level, row] - tile, next_first), last)
        of_level = counts[level]
        if weights.size:
            _tally_weights(distances[first:next_first], weights[tile + first : tile + next_first], of_level)
            _tally_weights(distances[next_last:last], weights[tile + next_last : tile + last], of_level)
        elif next_first - first + last - next_last >= fewest:
            _tally_pairs(distances, first, next_first, pairs, of_level)
            _tally_pairs(distances, next_last, last, pairs, of_level)
            _flush_pairs(pairs, sums, of_level)
        elif first < next_first or next_last < last:
            _tally(distances[first:next_first], lanes[0], lanes[1])
            _tally(distances[next_last:last], lanes[0], lanes[1])
            _flush(lanes, counts[level : level + 1])
        first, last = next_first, next_last


@to_machine_code
def count_ranges(query, start, stop, database, weights, counts):  # type: ignore[no-untyped-def]
    """Count distances where the items of each level and above are one range of rows, inside that of the level below.

    Rows ``start[l - 1]`` to ``stop[l - 1]`` (excluded), each of shape (n_queries,), have level l or above.
    """
    n_rows, n_groups = database.shape[1], counts.shape[2]
    tables, tail, length = _tables(query), _tail(database), _tile_rows(database)
    is_short = query.shape[1] <= _BYTES
    part = np.empty((_QUERIES, length), np.uint8)
    distances = np.empty((_QUERIES, 0 if is_short else length), np.uint16)
    lanes, sums = np.zeros((2, n_groups), np.uint16), np.zeros(n_groups, np.uint16)
    fewest = _fewest_in_pairs(query, weights, n_groups)
    pairs = _pair_lanes(n_groups if n_rows >= fewest else 0)
    work = weights, fewest, pairs, sums, lanes
    for tile in range(0, n_rows, length):
        end = min(tile + length, n_rows)
        for first in range(0, len(query), _QUERIES):
            n_queries = min(_QUERIES, len(query) - first)
            if is_short:
                _part_distances(tables, first, n_queries, 0, database, tail, tile, end, part)
            else:
                _distances(tables, first, n_queries, database, tail, tile, end, part, distances)
            for number in range(n_queries):
                row = first + number
                if is_short:
                    _add_ranges(part[number], tile, end, start, stop, row, *work, counts[row])
                else:
                    _add_ranges(distances[number], tile, end, start, stop, row, *work, counts[row])


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
                totals[i] += _n_bits(wanted & rows[i])
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
    n_rows, n_groups = edges[-1], counts.shape[2]
    tables, tail, length = _tables(query), _tail(database), _tile_rows(database)
    part, distances = np.empty((_QUERIES, length), np.uint8), np.empty((_QUERIES, length), np.uint16)
    few, shared = np.empty(masks.shape[1], np.uint8), np.empty(masks.shape[1], np.uint16)
    lanes, sums = np.zeros((2, counts.shape[1] * n_groups), np.uint16), np.zeros(n_groups, np.uint16)
    fewest = _fewest_in_pairs(query, np.zeros(0, np.int64), n_groups)
    pairs = _pair_lanes(n_groups if n_rows >= fewest else 0)
    first_run = 0
    for tile in range(0, n_rows, length):
        end = min(tile + length, n_rows)
        n_here, last_run = end - tile, first_run
        while edges[last_run] < end:
            last_run += 1
        for first in range(0, len(query), _QUERIES):
            n_queries = min(_QUERIES, len(query) - first)
            _distances(tables, first, n_queries, database, tail, tile, end, part, distances)
            for number in range(n_queries):
                row, of_query = first + number, distances[number]
                if n_here >= fewest:
                    _tally_pairs(part[number], 0, n_here, pairs, counts[row, 0])
                    _flush_pairs(pairs, sums, counts[row, 0])
                else:
                    _tally(of_query[:n_here], lanes[0], lanes[1])
                    _flush(lanes, counts[row, :1])
                _shared_labels(query_masks[row], masks, first_run, last_run, few, shared)
                a, b, one = lanes[0], lanes[1], np.uint16(1)
                for run in range(first_run, last_run):
                    if shared[run - first_run]:
                        base = np.uint64(n_groups) * shared[run - first_run]
                        begin, stop = max(edges[run] - tile, 0), min(edges[run + 1] - tile, n_here)
                        for i in range(begin, stop - 1, 2):  # runs are short: no slices, which cost as much as rows
                            a[base + of_query[i]] += one
                            b[base + of_query[i + 1]] += one
                        if (stop - begin) % 2:
                            a[base + of_query[stop - 1]] += one
                _move_up(lanes, counts[row])
        first_run = last_run - int(edges[last_run] > end)


@to_machine_code
def count_shared(query, query_masks, database, masks, first_row, weights, counts):  # type: ignore[no-untyped-def]
    """Count distances of rows from ``first_row`` on, where the level is the number of labels shared, row by row.

    Masks are bytes of labels, one bit each: (n_queries, n_mask_bytes), and of the database (n_mask_bytes, n_rows).
    """
    n_rows, n_groups = database.shape[1], np.uint32(counts.shape[2])
    tables, tail, length = _tables(query), _tail(database), _tile_rows(database)
    part, distances = np.empty((_QUERIES, length), np.uint8), np.empty((_QUERIES, length), np.uint16)
    few, shared, cells = np.empty(length, np.uint8), np.empty(length, np.uint16), np.empty(length, np.uint32)
    lanes = np.zeros((2, counts.shape[1] * counts.shape[2]), np.uint16)
    sums = np.zeros(lanes.shape[1] if weights.size else 0, np.int64)
    for tile in range(first_row - first_row % _WIDTH, n_rows, length):
        end, start = min(tile + length, n_rows), max(tile, first_row)
        for first in range(0, len(query), _QUERIES):
            n_queries = min(_QUERIES, len(query) - first)
            _distances(tables, first, n_queries, database, tail, tile, end, part, distances)
            for number in range(n_queries):
                row, of_query = first + number, distances[number, start - tile : end - tile]
                _shared_labels(query_masks[row], masks, start, end, few, shared)
                here = cells[: end - start]
                for i in range(len(here)):
                    here[i] = n_groups * shared[i] + of_query[i]
                if weights.size:
                    _tally_weights(here, weights[start:end], sums)
                    for level in range(counts.shape[1]):
                        for group in range(n_groups):
                            counts[row, level, group] += sums[level * n_groups + group]
                    sums[:] = 0
                else:
                    _tally(here, lanes[0], lanes[1])
                    _flush(lanes, counts[row])


@to_machine_code
def count_levels(query, database, levels, counts):  # type: ignore[no-untyped-def]
    """Count distances where ``levels``, (n_queries, n_rows), holds the index of each pair's level."""
    n_rows, n_groups = database.shape[1], np.uint32(counts.shape[2])
    tables, tail, length = _tables(query), _tail(database), _tile_rows(database)
    part, distances = np.empty((_QUERIES, length), np.uint8), np.empty((_QUERIES, length), np.uint16)
    cells = np.empty(length, np.uint32)
    lanes = np.zeros((2, counts.shape[1] * counts.shape[2]), np.uint16)
    for tile in range(0, n_rows, length):
        end = min(tile + length, n_rows)
        for first in range(0, len(query), _QUERIES):
            n_queries = min(_QUERIES, len(query) - first)
            _distances(tables, first, n_queries, database, tail, tile, end, part, distances)
            for number in range(n_queries):
                of_query, of_rows = distances[number], levels[first + number, tile:end]
                here = cells[: end - tile]
                for i in range(len(here)):
                    here[i] = n_groups * np.uint32(of_rows[i]) + of_query[i]
                _tally(here, lanes[0], lanes[1])
                _flush(lanes, counts[first + number])
