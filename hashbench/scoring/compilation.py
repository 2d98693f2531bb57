"""Report why scoring takes long: numba compiles, or is missing. Once for all calls that are nested."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Timer

from hashbench._parallel import watchers
from hashbench._typing import Progress
from hashbench.errors import how_to_install, one_line

_is_reported: ContextVar[bool] = ContextVar("_is_reported", default=False)
_PATIENCE = 3.0  # seconds that work without numba takes before a line says so
_has_complained = False


def on_stderr(what: str, n_done: int, n_all: int, /) -> None:
    """Print what is being done to standard error, all that callers from Python see of it."""
    with suppress(OSError, ValueError, AttributeError):  # full or closed: no reason to stop
        sys.stderr.write(f"hashbench: {what} ...\n")
        sys.stderr.flush()


@contextmanager
def reporting_compilation(on_progress: Progress = on_stderr) -> Iterator[None]:
    """Call ``on_progress`` once if numba compiles a loop that it does not find on disk, maybe from another thread.

    Where numba is missing, call it once per process if the work takes long. Of nested calls only the outermost reports.
    """
    if _is_reported.get():
        yield
        return
    token, watcher = _is_reported.set(True), _Watcher(on_progress)
    watchers.append(watcher)
    try:
        yield
    finally:
        watchers.remove(watcher)
        watcher.stop()
        _is_reported.reset(token)


class _Watcher:
    """Reports the first compilation, and after some time that there is none."""

    def __init__(self, on_progress: Progress) -> None:
        self._on_progress, self._has_reported = on_progress, False
        self._timer: Timer | None = None

    def __call__(self, error: ImportError | None) -> None:
        if self._has_reported:
            return
        self._has_reported = True
        if error is None:
            self._on_progress("compiling loops that are used for the first time, then cached (up to a minute)", 0, 0)
            return
        self._timer = Timer(_PATIENCE, self._complain, [error])
        self._timer.daemon = True
        self._timer.start()

    def _complain(self, error: ImportError) -> None:
        global _has_complained
        if not _has_complained:
            _has_complained = True
            how = how_to_install("numba") if isinstance(error, ModuleNotFoundError) else one_line(error)
            self._on_progress(f"scoring without numba, which would make it faster ({how})", 0, 0)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
