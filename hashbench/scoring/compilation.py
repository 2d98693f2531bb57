"""Report why scoring takes long: numba compiles, or is missing. Once for all calls that are nested."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Timer
from typing import Any

from hashbench._parallel import numba_error
from hashbench._typing import Progress
from hashbench.errors import one_line

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
    token = _is_reported.set(True)
    try:
        with _compiling(on_progress) if numba_error() is None else _plain(on_progress):
            yield
    finally:
        _is_reported.reset(token)


@contextmanager
def _compiling(on_progress: Progress) -> Iterator[None]:
    from numba.core import event

    class Listener(event.Listener):
        has_reported = False

        def on_start(self, event: Any) -> None:
            if not self.has_reported:
                self.has_reported = True
                on_progress("compiling loops that are used for the first time, then cached (up to a minute)", 0, 0)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


@contextmanager
def _plain(on_progress: Progress) -> Iterator[None]:
    def complain() -> None:
        global _has_complained
        if not _has_complained:
            _has_complained = True
            on_progress(f"scoring without numba, which would make it faster ({how})", 0, 0)

    error = numba_error()
    how = "pip install numba" if isinstance(error, ModuleNotFoundError) else one_line(error or "")
    timer = Timer(_PATIENCE, complain)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
