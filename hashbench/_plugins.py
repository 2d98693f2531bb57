"""A guard around the code of plug-ins."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def same_folder() -> Iterator[None]:
    """Return to the working folder if the code inside leaves it: relative paths of users are meant from there."""
    folder = None
    with suppress(OSError):  # it may have been removed
        folder = os.getcwd()  # noqa: PTH109  # a string, and sooner than a path: batches call this
    try:
        yield
    finally:
        if folder is not None:
            with suppress(OSError):
                os.chdir(folder)
