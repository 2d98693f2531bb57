"""Report that numba compiles, once for all calls that are nested."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from hashbench._typing import Progress

_is_reported: ContextVar[bool] = ContextVar("_is_reported", default=False)


def on_stderr(what: str, n_done: int, n_all: int, /) -> None:
    """Print what is being done to standard error, all that callers from Python see of it."""
    with suppress(OSError, ValueError, AttributeError):  # full or closed: no reason to stop
        sys.stderr.write(f"hashbench: {what} ...\n")
        sys.stderr.flush()


@contextmanager
def reporting_compilation(on_progress: Progress = on_stderr) -> Iterator[None]:
    """Call ``on_progress`` once if numba compiles a loop that it does not find on disk, maybe from another thread.

    Of nested calls only the outermost reports.
    """
    if _is_reported.get():
        yield
        return
    from numba.core import event

    class Listener(event.Listener):
        has_reported = False

        def on_start(self, event: Any) -> None:
            if not self.has_reported:
                self.has_reported = True
                on_progress("compiling loops that are used for the first time, then cached (up to a minute)", 0, 0)

        def on_end(self, event: Any) -> None:
            pass

    token = _is_reported.set(True)
    try:
        with event.install_listener("numba:compile", Listener()):
            yield
    finally:
        _is_reported.reset(token)
