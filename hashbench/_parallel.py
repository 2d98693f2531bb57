"""Work in parts, on all processors; loops compiled when they are first run."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")

QUERY_CHUNK = 1024  # queries that one thread handles at a time


def query_chunks(n_queries: int) -> list[slice]:
    """Cut queries into parts for threads: some for each, none too large.

    Parameters
    ----------
    n_queries : int
        How many queries there are.

    Returns
    -------
    list of slice
        In order.
    """
    share: int = -(-n_queries // n_processors())
    return chunks(0, n_queries, max(min(QUERY_CHUNK, share + share % 2), 1))  # even: queries are counted in pairs


def chunks(start: int, stop: int, length: int) -> list[slice]:
    """Cut a range into consecutive slices.

    Parameters
    ----------
    start, stop, length : int
        The range and the length of each slice but the last.

    Returns
    -------
    list of slice
        In order; empty for an empty range.
    """
    return [slice(first, min(first + length, stop)) for first in range(start, stop, length)]


def in_threads(work: Callable[[slice], T], parts: Sequence[slice]) -> Iterator[T]:
    """Do independent work on all processors this process may use.

    Parameters
    ----------
    work : callable
        Called once with each part; the heavy lifting must release the interpreter lock.
    parts : sequence of slice
        What to do.

    Yields
    ------
    object
        The results, in the order of the parts.
    """
    n_threads = min(len(parts), n_processors())
    if n_threads <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(work, parts)


def n_processors() -> int:
    """Count the processors this process may run on.

    Returns
    -------
    int
        At least 1.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop with numba when it is first called, so that whoever only imports it need not wait.

    Parameters
    ----------
    function : callable
        Of what numba understands; it calls no other compiled loop.

    Returns
    -------
    callable
        The same; it runs without the interpreter lock, and its machine code is kept on disk.
    """
    ready: list[Any] = []

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if not ready:
            import numba

            ready.append(numba.njit(nogil=True, cache=True)(function))
        return ready[0](*arguments)

    return call
