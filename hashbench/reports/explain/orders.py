"""The orders in which scoring scripts leave tied items, and the orders of a database.

An order maps keys, (n_items,), and a number to at least so many rows, lowest keys first.

Sorts only compare keys by ``<``, so the type of keys does not matter, only the treatment of equal keys. NumPy's
`argsort` and `argpartition` have vector instructions for keys of 32 and 64 bits; others are sorted as they always were.
The compiled loops are ports of libstdc++'s sorts, and leave the same orders.
"""

from functools import lru_cache

import numpy as np

from hashbench._parallel import to_machine_code
from hashbench._typing import AnyArray, ByteArray, IntArray
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError

_RADIX_SORTED = 32_768  # least number of integers that torch sorts by digits, which keeps ties in their order
_INSERTED = 16  # most items that sorts insert, which keeps ties in their order

_FIRST = np.int64(0)  # literals would be compiled once for each of their values


def stable(keys: AnyArray, n_first: int) -> IntArray:
    """Leave ties in the order of the database, as MATLAB's sort, faiss and any stable sort do."""
    return np.argsort(keys.astype(np.int16) if _is_short(keys) else keys, kind="stable")  # 16 bits: by digits


def descending(keys: AnyArray, n_first: int) -> IntArray:
    """Leave ties in the reverse order of the database: trec_eval by names, or a stable sort reversed."""
    return len(keys) - 1 - stable(keys[::-1], n_first)


def numpy_scalar(keys: AnyArray, n_first: int) -> IntArray:
    """Sort as ``numpy.argsort`` did before 1.25, and still does on a CPU without AVX2."""
    return np.argsort(_unvectorised(keys))


def numpy_here(keys: AnyArray, n_first: int) -> IntArray:
    """Sort by ``numpy.argsort`` of this machine and version, with its vector instructions."""
    return np.argsort(keys.astype(np.float32))


def numpy_partition(keys: AnyArray, n_first: int) -> IntArray:
    """Sort by ``argpartition``, then ``argsort`` of the first part, both scalar: ties are scrambled twice."""
    keys = _unvectorised(keys)
    if n_first < max(len(keys), 4):
        return _first_sorted(keys, n_first)
    rows, largest = np.arange(n_first), n_first - 1 - int(np.argmax(keys[::-1]))
    rows[largest], rows[-1] = n_first - 1, largest  # of floats, which scripts sort, the whole list has only this change
    return rows[np.argsort(keys[rows])]


def numpy_partition_here(keys: AnyArray, n_first: int) -> IntArray:
    """Sort as `numpy_partition`, by NumPy of this machine and version."""
    return _first_sorted(keys.astype(np.float32), n_first)


def _first_sorted(keys: AnyArray, n_first: int) -> IntArray:
    first = np.argpartition(keys, n_first - 1)[:n_first]
    return first[np.argsort(keys[first])]


def _unvectorised(keys: AnyArray) -> AnyArray:
    return keys.astype(np.int16 if _is_short(keys) else np.longdouble)


def _is_short(keys: AnyArray) -> bool:
    return bool(keys.max(initial=0) <= np.iinfo(np.int16).max)


def libstdcxx(keys: AnyArray, n_first: int) -> IntArray:
    """Sort by ``std::sort`` of libstdc++: ``torch.argsort`` on a CPU, unless its build has its own sort."""
    rows = np.arange(len(keys))
    _sort(keys.astype(np.int64), rows)
    return rows


def torch_topk(keys: AnyArray, n_first: int) -> IntArray:
    """Sort by ``torch.topk`` on a CPU, where ties depend on the number of items requested."""
    rows = np.arange(len(keys))
    _topk(keys.astype(np.int64), rows, n_first)
    return rows[:n_first]


def numba_here(keys: AnyArray, n_first: int) -> IntArray:
    """Sort by ``numpy.argsort`` as compiled by the installed version of numba."""
    return np.asarray(_numba_argsort(keys.astype(np.float64)))


def numba_reversed(keys: AnyArray, n_first: int) -> IntArray:
    """Sort similarities by `numba_here`, lowest first, and reverse them."""
    return numba_here(-keys, n_first)[::-1]


BY_CUT = ("numpy_partition", "numpy_partition_here", "torch_topk")
"""Orders that depend on the number of items requested, and return no more."""

BY_THIS_NUMPY = {"numpy_scalar": "numpy_here", "numpy_partition": "numpy_partition_here"}
"""The orders of scripts that sort by NumPy, on this machine."""

OF_THIS_MACHINE = (*BY_THIS_NUMPY.values(), "numba_here", "numba_reversed")
"""Orders that depend on the installed NumPy or numba, or on the CPU."""


def by_ids(number: int, n_queries: int, n_items: int) -> IntArray:
    """Return the order in which torchmetrics' classes have the items of a query after sorting by query."""
    if n_queries * n_items >= _RADIX_SORTED:
        return np.arange(n_items)
    rows: IntArray = _sorted_by_ids(n_queries, n_items)[number] - number * n_items
    return rows


@lru_cache(maxsize=1)
def _sorted_by_ids(n_queries: int, n_items: int) -> IntArray:
    ids = np.repeat(np.arange(n_queries), n_items)
    return libstdcxx(ids, len(ids)).reshape(n_queries, n_items)


DATABASE_ORDERS = ("given", "by-class", "shuffled")


def _classes(affinity: Affinity) -> AnyArray | None:
    """Return the class of each item of the database, if each has one."""
    labels: AnyArray | None = getattr(affinity, "database_labels", None)
    return None if labels is None or labels.ndim != 1 else labels


def database_orders(affinity: Affinity) -> list[str]:
    """Return the orders of a database: without ``by-class`` unless each item has one class."""
    return [name for name in DATABASE_ORDERS if name != "by-class" or _classes(affinity) is not None]


def describe_order(order: str, affinity: Affinity) -> str:
    """Return an order of a database in words: ``by class: items of class 3 first`` also if it is given like that."""
    labels = _classes(affinity)
    if labels is not None:
        labels = labels[rows_in(order, affinity)]
        n_runs = 1 + np.count_nonzero(labels[1:] != labels[:-1])
        if n_runs == len(np.unique(labels)) > 1:
            return f"by class: items of class {labels[0]} first"
    return "as given" if order == "given" else order


def rearranged(database: ByteArray, affinity: Affinity, order: str) -> tuple[ByteArray, Affinity]:
    """Put a database into the order ``given``, ``by-class``, or ``shuffled`` with or without ``:seed``."""
    rows = rows_in(order, affinity)
    return (database, affinity) if order == "given" else (database[rows], affinity.part(slice(None), rows))


def rows_in(order: str, affinity: Affinity) -> IntArray:
    """Return the rows of a database, (n_database,), in an order as for `rearranged`."""
    name, _, seed = order.partition(":")
    if order == "given":
        return np.arange(affinity.n_database)
    if order == "by-class":
        labels = _classes(affinity)
        if labels is None:
            raise HashbenchError("--database-order by-class needs one class per item; choose given or shuffled.")
        return np.argsort(labels, kind="stable")
    if name == "shuffled" and (seed.isdecimal() or order == name):
        return np.random.default_rng(int(seed or 0)).permutation(affinity.n_database)
    raise HashbenchError(
        f"--database-order is {order!r}, expected given, by-class, shuffled, or shuffled:7 with a seed."
    )


@to_machine_code
def _numba_argsort(keys):  # type: ignore[no-untyped-def]
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
def _sort(keys, rows):  # type: ignore[no-untyped-def]
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
def _topk(keys, rows, n_first):  # type: ignore[no-untyped-def]
    """Sort the first ``n_first`` rows as ``torch.topk`` does: by a heap if few, else by selection and sort."""
    if 64 * n_first <= len(rows):
        _heap_sort(keys, rows, n_first)
    else:
        _select(keys, rows, n_first - 1)
        _sort(keys, rows[: n_first - 1])
