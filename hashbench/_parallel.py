"""Work in parts on all processors, and loops compiled when that pays, or run without numba where it is missing."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any, TypeVar

from hashbench.errors import needing

T = TypeVar("T")

_NUMBA = Lock()  # held while numba's settings are changed
_IMPORT = Lock()  # held while numba is imported: a thread that meets it half imported would wait forever
BEFORE_LOADING, BEFORE_COMPILING = 0.5, 2.0  # seconds of plain loops, if compiled ones lie on disk, or if not
_plain_seconds = 0.0  # that loops have taken in this process without numba, by estimate
watchers: list[Callable[[ImportError | None], None]] = []  # called when numba compiles, or with why it would but cannot
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


def numba_error() -> ImportError | None:
    """Import numba; return why that fails, if it does: numba is missing, or does not fit the installed NumPy."""
    with _IMPORT:
        return _import_numba()


@cache
def _import_numba() -> ImportError | None:
    try:
        from numba.core import event
    except ImportError as error:
        return error

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            _notify(None)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
    return None


def _notify(error: ImportError | None) -> None:
    for watch in [*watchers]:
        watch(error)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop with numba when it is first called, not on import; it must not call other compiled loops."""
    ready: list[Any] = []

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if not ready:
            ready.append(to_machine_code(function))
        return ready[0](*arguments)

    return call


def plain_first(
    plain: Callable[..., Any], load: Callable[[], Any], source: str, seconds: Callable[..., float]
) -> Callable[..., Any]:
    """Call ``plain`` until compiled loops pay, then what ``load`` returns, which does the same.

    To import numba takes half a second and to compile loops many, so small inputs are faster without. ``seconds``
    estimates the time of ``plain`` with given arguments; ``source`` is the file of the compiled loop.
    """
    loaded: list[Any] = []

    @wraps(plain)
    def call(*arguments: Any) -> Any:
        if loaded:
            return loaded[0](*arguments)
        if not _is_worth_numba(seconds(*arguments), source):
            return plain(*arguments)
        loaded.append(load())
        return loaded[0](*arguments)

    return call


def _is_worth_numba(seconds: float, source: str) -> bool:
    """Add to the time of all plain loops of this process; return whether they took long enough to compile this one."""
    global _plain_seconds
    _plain_seconds += seconds
    if _plain_seconds < BEFORE_LOADING or (_plain_seconds < BEFORE_COMPILING and not _loops_of(source).is_dir()):
        return False
    error = numba_error()
    if error is not None:
        _notify(error)
    return error is None


Seconds = float | Callable[..., float]  # of plain loops: for each element of the largest argument, or of all arguments


def compiled_or(plain: Callable[..., Any], seconds: Seconds = 1e-7) -> Callable[[Callable[..., Any]], Any]:
    """Compile a loop once that pays; until then call ``plain``, which does the same in NumPy."""

    def decorate(function: Callable[..., Any]) -> Any:
        def load() -> Any:
            return to_machine_code(function)

        def estimate(*arguments: Any) -> float:
            if callable(seconds):
                return seconds(*arguments)
            return seconds * max(getattr(value, "size", 1) for value in arguments)

        return wraps(function)(plain_first(plain, load, function.__code__.co_filename, estimate))

    return decorate


def compiled_or_python(seconds: Seconds) -> Callable[[Callable[..., Any]], Any]:
    """Compile a loop once that pays; until then run it as Python, with the same values."""

    def decorate(function: Callable[..., Any]) -> Any:
        def in_python(*arguments: Any) -> Any:
            # The numbers in a memoryview are Python's own, with which loops are faster than with NumPy's.
            return function(*(memoryview(value) if getattr(value, "ndim", 0) else value for value in arguments))

        return compiled_or(in_python, seconds)(function)

    return decorate


def to_machine_code(function: Callable[..., Any]) -> Any:
    """Compile a loop with numba, to run without the interpreter lock, and cache its machine code on disk.

    The cache is the user's cache folder unless ``NUMBA_CACHE_DIR`` names one: beside an installed source it would
    outlive an uninstall and hide an editable install. Each content of a source has its own folder, since numba pairs a
    file's new date with old machine code if it is killed between writing the two.

    Plain functions of its module that the loop calls, defined above it, are compiled with it; they must not call
    themselves. Where numba is missing, the loop raises HashbenchError when it is called.
    """
    if numba_error() is not None:
        return _in_need_of_numba
    import numba

    config: Any = numba.config
    folder = _loops_of(function.__code__.co_filename)
    with _NUMBA:
        chosen = config.CACHE_DIR
        try:
            if folder.is_absolute():  # relative where there is no home directory
                config.CACHE_DIR = str(folder)
            return numba.njit(nogil=True, cache=True)(_with_helpers(function, numba.njit))
        finally:
            config.CACHE_DIR = chosen


def _with_helpers(function: Callable[..., Any], compiler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop that calls compiled versions of the plain functions of its module that it calls, and so on."""
    known = function.__globals__
    called = {name: known[name] for name in function.__code__.co_names if isinstance(known.get(name), FunctionType)}
    plain = {
        name: helper for name, helper in called.items() if helper.__code__.co_filename == function.__code__.co_filename
    }
    if not plain:
        return function
    helpers = {name: compiler(_with_helpers(helper, compiler)) for name, helper in plain.items()}
    return FunctionType(
        function.__code__, known | helpers, function.__name__, function.__defaults__, function.__closure__
    )


def _loops_of(source: str) -> Path:
    """Return the folder for the machine code of a source; a relative one without platformdirs or a home directory."""
    return _cache_folder() / sha256(Path(source).read_bytes()).hexdigest()[:16]


def _cache_folder() -> Path:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen).absolute()
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError:
        return Path()
    return user_cache_path("hashbench") / "loops"


def _in_need_of_numba(*arguments: Any) -> None:
    with needing():
        import numba  # noqa: F401
