"""Telling whoever scores that numba compiles, once for all that is nested."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from hashbench import _parallel
from hashbench._typing import Progress

_is_telling: ContextVar[bool] = ContextVar("_is_telling", default=False)


def on_stderr(what: str, n_done: int, n_all: int, /) -> None:
    """Tell on standard error what goes on, in a line; whoever calls from Python sees nothing else of it."""
    with suppress(OSError, ValueError, AttributeError):  # it is full or closed, which is no reason to stop
        sys.stderr.write(f"hashbench: {what} ...\n")
        sys.stderr.flush()


@contextmanager
def telling_of_compilation(on_progress: Progress = on_stderr) -> Iterator[None]:
    """Tell ``on_progress`` what `hashbench._parallel.telling_of_compilation` does, and how long it takes.

    Inside another of its kind, that one tells.
    """
    if _is_telling.get():
        yield
        return

    def tell(what: str, n_done: int, n_all: int, /) -> None:
        on_progress(f"{what} (up to a minute)", n_done, n_all)

    token = _is_telling.set(True)
    try:
        with _parallel.telling_of_compilation(tell):
            yield
    finally:
        _is_telling.reset(token)
