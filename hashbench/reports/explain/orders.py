"""The orders in which scoring scripts leave tied items, and the orders of a database.

An order maps keys, (n_items,), and a number to at least so many rows, lowest keys first.

Sorts only compare keys by ``<``, so the type of keys does not matter, only the treatment of equal keys. NumPy's
`argsort` and `argpartition` have vector instructions for keys of 32 and 64 bits; others are sorted as they always were.
Compiled sorts are imported when they are needed, since numba is slow to import.
"""

from functools import lru_cache

import numpy as np

from hashbench._typing import AnyArray, ByteArray, IntArray
from hashbench.affinity import Affinity
from hashbench.errors import HashbenchError

RADIX_SORTED = 32_768  # least number of integers that torch sorts by digits, which keeps ties in their order


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
    from hashbench.reports.explain import sorts

    rows = np.arange(len(keys))
    sorts.sort(keys.astype(np.int64), rows)
    return rows


def torch_topk(keys: AnyArray, n_first: int) -> IntArray:
    """Sort by ``torch.topk`` on a CPU, where ties depend on the number of items requested."""
    from hashbench.reports.explain import sorts

    rows = np.arange(len(keys))
    sorts.topk(keys.astype(np.int64), rows, n_first)
    return rows[:n_first]


def numba_here(keys: AnyArray, n_first: int) -> IntArray:
    """Sort by ``numpy.argsort`` as compiled by the installed version of numba."""
    from hashbench.reports.explain import sorts

    return np.asarray(sorts.argsort(keys.astype(np.float64)))


def numba_reversed(keys: AnyArray, n_first: int) -> IntArray:
    """Sort similarities by `numba_here`, lowest first, and reverse them."""
    return numba_here(-keys, n_first)[::-1]


BY_CUT = ("numpy_partition", "numpy_partition_here", "torch_topk")
"""Orders that depend on the number of items requested, and return no more."""

BY_THIS_NUMPY = {"numpy_scalar": "numpy_here", "numpy_partition": "numpy_partition_here"}
"""The orders of scripts that sort by NumPy, on this machine."""

OF_THIS_MACHINE = (*BY_THIS_NUMPY.values(), "numba_here", "numba_reversed")
"""Orders that depend on the installed NumPy or numba, or on the CPU."""


def by_ids(number: int, sizes: IntArray) -> IntArray:
    """Return the order in which torchmetrics' classes have the items of a query after sorting by query.

    All queries have ``sizes`` items, (n_queries,).
    """
    if sizes.sum() >= RADIX_SORTED:
        return np.arange(sizes[number])
    first = int(sizes[:number].sum())
    return _sorted_by_ids(tuple(sizes.tolist()))[first : first + sizes[number]] - first


@lru_cache(maxsize=1)
def _sorted_by_ids(sizes: tuple[int, ...]) -> IntArray:
    ids = np.repeat(np.arange(len(sizes)), sizes)
    return libstdcxx(ids, len(ids))


DATABASE_ORDERS = ("given", "by-class", "shuffled")


def _classes(affinity: Affinity) -> AnyArray | None:
    """Return the class of each item of the database, if each has one."""
    labels: AnyArray | None = getattr(affinity.plain, "database_labels", None)
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
    name, _, seed = str(order).partition(":")
    if order == "given":
        return np.arange(affinity.n_database)
    if order == "by-class":
        labels = _classes(affinity)
        if labels is None:
            raise HashbenchError("the database order by-class needs one class per item; choose given or shuffled.")
        return np.argsort(labels, kind="stable")
    if name == "shuffled" and (seed.isdecimal() or order == name):
        return np.random.default_rng(int(seed or 0)).permutation(affinity.n_database)
    raise HashbenchError(
        f"the database order is {order!r}, expected given, by-class, shuffled, or shuffled:7 with a seed."
    )
