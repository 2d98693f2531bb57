"""The progress of long work, on stderr."""

import time
from types import TracebackType
from typing import Self

import rich.progress
from rich.console import Console

_WORTH_TELLING = 60  # seconds left from which on an estimate is shown
_SILENCE = 30  # seconds after which a line tells how far training is


class Progress:
    """Progress of a grid on stderr: a bar on a terminal, plain lines elsewhere.

    Parameters
    ----------
    n_jobs : int
        How many jobs there are.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.n_done = 0
        self._tenths = 0
        self._start = time.monotonic()
        self._console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._bar: rich.progress.Progress | None = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = rich.progress.Progress(
                rich.progress.TextColumn("{task.description}"),
                rich.progress.BarColumn(),
                rich.progress.MofNCompleteColumn(),
                rich.progress.TimeRemainingColumn(),
                console=self._console,
                transient=True,
                redirect_stdout=False,  # results go to stdout even while the bar is drawn
                redirect_stderr=False,
            )
            self._bar.start()
            self._jobs = self._bar.add_task("jobs", total=self.n_jobs)
            self._step = self._bar.add_task("", total=None, visible=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, text: str) -> None:
        """Announce a job.

        Parameters
        ----------
        text : str
            What it is.
        """
        if self._bar is not None:
            self._bar.update(self._jobs, description=text)
            self._bar.update(self._step, visible=False)

    def part(self, n_done: int, n_all: int, what: str = "items") -> None:
        """Tell how far the current step is.

        Parameters
        ----------
        n_done, n_all : int
            Parts done, and all parts.
        what : str
            What they are. Where there is no bar, a line tells of epochs, now and then.
        """
        if self._bar is not None:
            self._bar.update(self._step, completed=n_done, total=n_all, visible=True, description=what)
        elif what != "items" and time.monotonic() - self._last_line > _SILENCE:
            self._print(f"{n_done} of {n_all} {what}")

    def work(self, what: str, n_done: int, n_all: int) -> None:
        """Tell how far some long work outside a grid is.

        Parameters
        ----------
        what : str
            What is being done.
        n_done, n_all : int
            Parts done, and all parts.
        """
        if self._bar is not None:
            self._bar.update(self._jobs, visible=False)
            self._bar.update(self._step, completed=n_done, total=n_all, visible=n_done < n_all, description=what)
        elif n_done == n_all or n_done * 10 // n_all > self._tenths:
            self._console.print(f"{what}: {n_done:,} of {n_all:,}")
        self._tenths = n_done * 10 // n_all if n_done < n_all else 0

    def done(self, text: str) -> None:
        """Close a job with a line.

        Parameters
        ----------
        text : str
            What became of it.
        """
        self.n_done += 1
        left = (time.monotonic() - self._start) / self.n_done * (self.n_jobs - self.n_done)
        self._print(text + (f" (at this pace {left / 60:.0f} min left)" if left >= _WORTH_TELLING else ""))
        if self._bar is not None:
            self._bar.update(self._jobs, completed=self.n_done)

    def _print(self, text: str) -> None:
        self._console.print(f"[{self.n_done}/{self.n_jobs}] {text}")
        self._last_line = time.monotonic()
