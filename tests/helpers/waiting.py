"""Waiting for other processes and threads: the only place where tests read a clock, as a deadline against hanging."""

import time

PATIENCE = 300  # seconds: far beyond what the slowest machine takes


def wait_for(condition):
    """Return once the condition holds."""
    deadline = time.monotonic() + PATIENCE  # noqa: TID251
    while not condition():
        assert time.monotonic() < deadline, "it never came"  # noqa: TID251
        time.sleep(0.02)
