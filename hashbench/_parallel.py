"""Work in parts on all processors, and loops compiled on first use, or run without numba where it is missing."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from hashbench.errors import needing

T = TypeVar("T")

_NUMBA = Lock()  # held while numba's settings are changed
QUERY_CHUNK = 1024  # queries that one thread handles at a time


def query_chunks(n_queries: int, at_least: int = 1) -> list[slice]:
    """Cut queries into parts for threads, none larger than ``QUERY_CHUNK``, nor smaller than ``at_least``."""
    share: int = max(-(-n_queries // n_processors()), at_least)
    return chunks(0, n_queries, max(min(QUERY_CHUNK, share + share % 2), 1))  # even: queries are counted in pairs


def chunks(start: int, stop: int, length: int) -> list[slice]:
    """Cut a range into consecutive slices: scikit-learn's ``gen_batches``, without the time its import takes."""
    return [slice(first, min(first + length, stop)) for first in range(start, stop, length)]


def in_threads(work: Callable[[slice], T], parts: Sequence[slice]) -> Iterator[T]:
    """Yield the results of independent work on each part, in order; the work should release the interpreter lock."""
    n_threads = min(len(parts), n_processors()) if len(parts) > 1 else 1
    if n_threads <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(work, parts)


def n_processors() -> int:
    """Count the processors this process may use, by its affinity, its container and ``LOKY_MAX_CPU_COUNT``."""
    return _n_processors(os.environ.get("LOKY_MAX_CPU_COUNT"))


@cache
def _n_processors(most: str | None) -> int:
    try:
        from joblib import cpu_count  # which reads some files
    except ModuleNotFoundError:
        allowed = getattr(os, "sched_getaffinity", None)
        n_allowed = len(allowed(0)) if allowed else os.cpu_count() or 1
        return max(min(int(most or n_allowed), n_allowed), 1)
    return int(cpu_count())


@cache
def numba_error() -> ImportError | None:
    """Import numba; return why that fails, if it does: numba is missing, or does not fit the installed NumPy."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        return error
    return None


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop with numba when it is first called, not on import; it must not call other compiled loops."""
    ready: list[Any] = []

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if not ready:
            ready.append(to_machine_code(function))
        return ready[0](*arguments)

    return call


def compiled_or(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Compile a loop as `compiled` does; where numba is missing, call ``plain``, which does the same in NumPy."""

    def decorate(function: Callable[..., Any]) -> Any:
        machine_code = compiled(function)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            return (machine_code if numba_error() is None else plain)(*arguments)

        return call

    return decorate


def compiled_beside_numba(function: Callable[..., Any]) -> Any:
    """Compile a loop as `compiled` does once numba is imported, and run it as Python before, with the same values."""
    machine_code = compiled(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if "numba" in sys.modules and numba_error() is None:
            return machine_code(*arguments)
        # The numbers in a memoryview are Python's own, with which loops are faster than with NumPy's.
        return function(*(memoryview(value) if getattr(value, "ndim", 0) else value for value in arguments))

    return call


def to_machine_code(function: Callable[..., Any]) -> Any:
    """Compile a loop with numba, to run without the interpreter lock, and cache its machine code on disk.

    The cache is the user's cache folder unless ``NUMBA_CACHE_DIR`` names one: beside an installed source it would
    outlive an uninstall and hide an editable install. Each content of a source has its own folder, since numba pairs a
    file's new date with old machine code if it is killed between writing the two.

    Where numba is missing, the loop raises HashbenchError when it is called.
    """
    if numba_error() is not None:
        return _in_need_of_numba
    import numba

    config: Any = numba.config
    with _NUMBA:
        chosen = config.CACHE_DIR
        folder = _cache_folder()
        try:
            if not chosen and folder.is_absolute():  # relative where there is no home directory
                source = Path(function.__code__.co_filename).read_bytes()
                config.CACHE_DIR = str(folder / sha256(source).hexdigest()[:16])
            return numba.njit(nogil=True, cache=True)(function)
        finally:
            config.CACHE_DIR = chosen


def _cache_folder() -> Path:
    """Return the folder in the user's cache folder for machine code; a relative one without platformdirs."""
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError:
        return Path()
    return user_cache_path("hashbench") / "loops"


def _in_need_of_numba(*arguments: Any) -> None:
    with needing():
        import numba  # noqa: F401
