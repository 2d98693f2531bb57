"""Progress of long work, on stderr: a bar on a terminal, plain lines elsewhere."""

import io
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_SHORTEST_ESTIMATE = 60  # seconds left from which on an estimate is shown
_SILENCE = 30  # seconds after which a line shows how far a job of a grid, or short work, is


class _Stderr(io.TextIOBase):
    """Standard error that ignores failed writes, so that they never end the work itself."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError, AttributeError):  # full, closed, or closed from the start
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(sys.stderr, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return sys.stderr is not None and sys.stderr.isatty()


class ProgressBar:
    """Progress of a grid of ``n_jobs`` jobs, or of other work if 0; ``short`` work reports only if it takes long."""

    def __init__(self, n_jobs: int = 0, *, short: bool = False) -> None:
        from rich.console import Console

        self.n_jobs = n_jobs
        self._silence = _SILENCE if n_jobs or short else 0
        self.n_done = self._n_new = 0
        self._tenths = 0
        self._first_done = 0.0  # time of the first new job, which may include compilation
        stderr = cast(IO[str], _Stderr())
        self._console = Console(file=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._bar: Bar | None = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            import rich.progress

            self._bar = rich.progress.Progress(
                rich.progress.TextColumn("{task.description}", markup=False),
                rich.progress.BarColumn(),
                rich.progress.MofNCompleteColumn(),
                rich.progress.TimeRemainingColumn(),
                console=self._console,
                transient=True,
                redirect_stdout=False,  # results go to stdout even while the bar is drawn
                redirect_stderr=False,
            )
            self._bar.start()
            self._jobs = self._bar.add_task("jobs", total=self.n_jobs, visible=self.n_jobs > 0)
            self._step = self._bar.add_task("", total=None, visible=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start_job(self, text: str) -> None:
        """Show the name of a job."""
        if self._bar is not None:
            self._bar.update(self._jobs, description=text)
            self._bar.update(self._step, visible=False)

    def update(self, what: str, n_done: int, n_all: int) -> None:
        """Show how far the current step is; with ``n_all`` 0, only its name, such as what it waits for."""
        if not n_all:
            self.print(f"{what} ...")
        elif self._bar is not None:
            is_shown = self.n_jobs > 0 or n_done < n_all
            self._bar.update(self._step, completed=n_done, total=n_all, visible=is_shown, description=what)
        elif self.n_jobs:
            if what != "items" and self._is_due():
                self._print_counted(f"{n_done} of {n_all} {what}")
        else:
            if (n_done == n_all or n_done * 10 // n_all > self._tenths) and self._is_due():
                self.print(f"{what}: {n_done:,} of {n_all:,}")
                self._last_line = time.monotonic()
            self._tenths = n_done * 10 // n_all if n_done < n_all else 0

    def finish_job(self, text: str, *, is_new: bool = True) -> None:
        """Print a job's line; only new jobs count for the estimate of the time left."""
        self.n_done += 1
        self._n_new += is_new
        if self._n_new <= 1:
            self._first_done = time.monotonic()
        seconds = (time.monotonic() - self._first_done) / max(self._n_new - 1, 1) * (self.n_jobs - self.n_done)
        self._print_counted(
            text + (f" (at this pace {seconds / 60:.0f} min left)" if seconds >= _SHORTEST_ESTIMATE else "")
        )
        if self._bar is not None:
            self._bar.update(self._jobs, completed=self.n_done)

    def _is_due(self) -> bool:
        return time.monotonic() - self._last_line >= self._silence

    def print(self, text: str) -> None:
        """Print a line."""
        self._console.print(text)

    def _print_counted(self, text: str) -> None:
        self.print(f"[{self.n_done}/{self.n_jobs}] {text}")
        self._last_line = time.monotonic()
