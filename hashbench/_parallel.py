"""Work in parts on all processors, and loops compiled on first use."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

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
    n_threads = min(len(parts), n_processors())
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
    from joblib import cpu_count  # which reads some files

    return int(cpu_count())


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop with numba when it is first called, not on import; it must not call other compiled loops."""
    ready: list[Any] = []

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if not ready:
            ready.append(to_machine_code(function))
        return ready[0](*arguments)

    return call


def compiled_beside_numba(function: Callable[..., Any]) -> Any:
    """Compile a loop as `compiled` does once numba is imported, and run it as Python before, with the same values."""
    machine_code = compiled(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return (machine_code if "numba" in sys.modules else function)(*arguments)

    return call


def to_machine_code(function: Callable[..., Any]) -> Any:
    """Compile a loop with numba, to run without the interpreter lock, and cache its machine code on disk.

    The cache is the user's cache folder unless ``NUMBA_CACHE_DIR`` names one: beside an installed source it would
    outlive an uninstall and hide an editable install. Each content of a source has its own folder, since numba pairs a
    file's new date with old machine code if it is killed between writing the two.
    """
    import numba
    from platformdirs import user_cache_path

    config: Any = numba.config
    with _NUMBA:
        chosen = config.CACHE_DIR
        folder = user_cache_path("hashbench") / "loops"
        try:
            if not chosen and folder.is_absolute():  # relative where there is no home directory
                source = Path(function.__code__.co_filename).read_bytes()
                config.CACHE_DIR = str(folder / sha256(source).hexdigest()[:16])
            return numba.njit(nogil=True, cache=True)(function)
        finally:
            config.CACHE_DIR = chosen
