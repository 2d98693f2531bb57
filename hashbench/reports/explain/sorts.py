"""Sorts as other libraries do them, to the order of ties: numba's, and ports of libstdc++'s, compiled."""

import numpy as np

from hashbench._parallel import to_machine_code

_INSERTED = 16  # most items that sorts insert, which keeps ties in their order

_FIRST = np.int64(0)  # literals would be compiled once for each of their values


@to_machine_code
def argsort(keys):  # type: ignore[no-untyped-def]
    """Sort as ``numpy.argsort`` compiled by numba does."""
    return np.argsort(keys)


@to_machine_code
def _swap(rows, first, second):  # type: ignore[no-untyped-def]
    rows[first], rows[second] = rows[second], rows[first]


@to_machine_code
def _insert(keys, rows):  # type: ignore[no-untyped-def]
    """Sort rows by insertion, past strictly larger keys only."""
    for place in range(1, len(rows)):
        row, hole = rows[place], place
        while hole > 0 and keys[row] < keys[rows[hole - 1]]:
            rows[hole] = rows[hole - 1]
            hole -= 1
        rows[hole] = row


@to_machine_code
def _meet(keys, rows, pivot, left, right):  # type: ignore[no-untyped-def]
    """Exchange rows on the wrong side of a pivot, from both ends, until these meet; return the place."""
    while True:
        left += 1
        while keys[rows[left]] < pivot:
            left += 1
        right -= 1
        while pivot < keys[rows[right]]:
            right -= 1
        if left >= right:
            return left
        _swap(rows, left, right)


@to_machine_code
def _sift(keys, rows, hole, n_rows, row):  # type: ignore[no-untyped-def]
    """Put a row into a max-heap with a hole; among equal keys it sinks, to the right."""
    child = 2 * hole + 1
    while child < n_rows:
        if child + 1 < n_rows and keys[rows[child]] <= keys[rows[child + 1]]:
            child += 1
        if keys[rows[child]] < keys[row]:
            break
        rows[hole] = rows[child]
        hole, child = child, 2 * child + 1
    rows[hole] = row


@to_machine_code
def _heap_select(keys, rows, n_first):  # type: ignore[no-untyped-def]
    """Build a heap of the ``n_first`` rows with the smallest keys."""
    for parent in range(n_first // 2 - 1, -1, -1):
        _sift(keys, rows, parent, n_first, rows[parent])
    for place in range(n_first, len(rows)):
        if keys[rows[place]] < keys[rows[0]]:
            row = rows[place]
            rows[place] = rows[0]
            _sift(keys, rows, _FIRST, n_first, row)


@to_machine_code
def _heap_sort(keys, rows, n_first):  # type: ignore[no-untyped-def]
    """Sort the ``n_first`` rows with the smallest keys by a heap."""
    _heap_select(keys, rows, n_first)
    for end in range(n_first - 1, 0, -1):
        row = rows[end]
        rows[end] = rows[0]
        _sift(keys, rows, _FIRST, end, row)


@to_machine_code
def _depth(n_rows):  # type: ignore[no-untyped-def]
    """Return how often a sort splits before it changes its algorithm: twice the logarithm."""
    depth = 0
    while n_rows > 1:
        n_rows //= 2
        depth += 2
    return depth


@to_machine_code
def _cut(keys, rows, first, last):  # type: ignore[no-untyped-def]
    """Split rows first..last (excluded) by the median of three, as libstdc++ does; return the second start."""
    second, middle, end = first + 1, first + (last - first) // 2, last - 1
    a, b, c = keys[rows[second]], keys[rows[middle]], keys[rows[end]]
    if a < b:
        _swap(rows, first, middle if b < c else (end if a < c else second))
    else:
        _swap(rows, first, second if a < c else (end if b < c else middle))
    return _meet(keys, rows, keys[rows[first]], first, last)


@to_machine_code
def sort(keys, rows):  # type: ignore[no-untyped-def]
    """Sort as libstdc++ does: quicksort, a heap where cuts are too uneven, and a final insertion sort."""
    waiting = [(0, len(rows), _depth(len(rows)))]
    while waiting:
        first, last, depth = waiting.pop()
        while last - first > _INSERTED:
            if depth == 0:
                _heap_sort(keys, rows[first:last], last - first)
                break
            depth -= 1
            cut = _cut(keys, rows, first, last)
            waiting.append((cut, last, depth))
            last = cut
    _insert(keys, rows)


@to_machine_code
def _select(keys, rows, place):  # type: ignore[no-untyped-def]
    """Put the row of a place there, and nothing larger before it, as libstdc++ does."""
    first, last, depth = _FIRST, len(rows), _depth(len(rows))
    while last - first > 3:
        if depth == 0:
            _heap_select(keys, rows[first:last], place + 1 - first)
            _swap(rows, first, place)
            return
        depth -= 1
        cut = _cut(keys, rows, first, last)
        if cut <= place:
            first = cut
        else:
            last = cut
    _insert(keys, rows[first:last])


@to_machine_code
def topk(keys, rows, n_first):  # type: ignore[no-untyped-def]
    """Sort the first ``n_first`` rows as ``torch.topk`` does: by a heap if few, else by selection and sort."""
    if 64 * n_first <= len(rows):
        _heap_sort(keys, rows, n_first)
    else:
        _select(keys, rows, n_first - 1)
        sort(keys, rows[: n_first - 1])
