"""The command line: it parses and prints; everything else is done elsewhere.

A command is imported when it is called, and modules that need NumPy inside it, so that ``--help`` answers at once.
"""

try:
    import errno
    import os
    import re
    import signal
    import sys
    import threading
    from collections.abc import Iterator
    from contextlib import contextmanager, suppress
    from copy import copy
    from importlib import import_module
    from typing import Any

    import click

    from hashbench import __version__
    from hashbench.errors import HashbenchError, needing
except KeyboardInterrupt:  # before any command could report it
    raise SystemExit(130) from None

_STDOUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # where no file is named

COMMANDS = {  # the module of each, and what it does
    "candidates": ("scoring", "Count how many candidates a two-stage search must fetch."),
    "check": ("catalogue", "Run the tests of a method, dataset or metric, such as your own."),
    "compare": ("comparing", "Test which of two is better: methods, codes, or runs."),
    "diff": ("reports", "Compare the results of two commits or folders."),
    "encode": ("pipeline", "Fit methods and write codes; encode new items with a saved model."),
    "evaluate": ("scoring", "Score a codes file, your own codes, or a TREC run."),
    "explain": ("scoring", "Show why another script gives another number."),
    "export": ("pipeline", "Write a saved model or codes for faiss, ONNX, usearch or pgvector."),
    "info": ("catalogue", "Describe a dataset, method, metric, codes file or model."),
    "list": ("catalogue", "List methods, datasets, metrics, scripts, or what is missing."),
    "on": ("main", "Run a command on the workers of a Dask cluster."),
    "plot": ("reports", "Draw figures of the results."),
    "prepare": ("pipeline", "Prepare datasets, named ones or your own."),
    "report": ("reports", "Write the results as a page to open in a browser."),
    "results": ("results", "Check, merge and rerun result files."),
    "run": ("pipeline", "Prepare, encode and score; finished steps are skipped."),
    "save": ("scoring", "Save scores of your own codes as rows of the results."),
    "tables": ("reports", "Lay out all results like the papers' tables."),
    "thresholds": ("thresholds", "Count what each Hamming radius matches: precision, recall, false positives."),
    "tune": ("tuning", "Choose settings of methods on held-out training items."),
}

_ON_WORKERS = ("candidates", "evaluate", "run", "thresholds", "tune")


class _Interrupted(click.ClickException):
    """The user's interrupt, with the exit code that shells expect."""

    exit_code = 128 + signal.SIGINT

    def __init__(self) -> None:
        super().__init__(
            "interrupted; finished steps are kept. Run the same command to continue, with --resume inside training too."
        )


class _Terminated(_Interrupted):
    """An interrupt by SIGTERM, such as a scheduler's."""

    exit_code = 128 + signal.SIGTERM


class _Cli(click.Group):
    """A group of commands that prints a user's mistake as one line on stderr and exits with code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"hashbench.cli.{COMMANDS[cmd_name][0]}")
        return with_own_output(getattr(module, "list_command" if cmd_name == "list" else cmd_name))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches  # not needed to show help

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        if sys.platform == "win32":
            _write_as_elsewhere(sys.stdout, sys.stderr)
        with _errors_as_sentences():
            try:
                return super().make_context(*args, **extra)
            except BrokenPipeError:  # of --help or --version
                from hashbench.cli.outputs import close

                close(sys.stdout)
                raise click.exceptions.Exit(0) from None

    def invoke(self, ctx: click.Context) -> Any:
        with _errors_as_sentences():
            if sys.stdout is None:
                raise HashbenchError("standard output is closed. Redirect it to a file.")
            try:
                return super().invoke(ctx)
            except click.UsageError as error:
                if hint := _option_for(error):
                    raise click.UsageError(f"{error.message.rstrip('.')}. {hint}", error.ctx) from None
                raise


def with_own_output(command: click.Command) -> click.Command:
    """Return a copy of a command, and of those of a group, that prints only its own output on standard output."""
    wrapped = copy(command)
    if isinstance(wrapped, click.Group):
        wrapped.commands = {name: with_own_output(each) for name, each in wrapped.commands.items()}
    elif command.callback is not None:
        from hashbench.cli.outputs import only_own_output

        wrapped.callback = only_own_output()(command.callback)
    return wrapped


def _option_for(error: click.UsageError) -> str:
    """Return a hint at the option that takes the name which a command got as an argument; empty without one."""
    extra = re.match(r"Got unexpected extra arguments? \((\S+)\b", error.message)
    if extra is None or error.ctx is None:
        return ""
    from hashbench.cli.options import names_of

    options = [param for param in error.ctx.command.params if extra[1] in names_of(param.name or "")]
    return "".join(f"Did you mean {option.opts[0]} {extra[1]}?" for option in options[:1])


def _write_as_elsewhere(*streams: Any) -> None:
    """Write files and pipes in UTF-8 with LF, on Windows too; a console keeps its own settings."""
    for stream in streams:
        if stream is not None and not stream.isatty():
            stream.reconfigure(encoding="utf-8", newline="\n")


@contextmanager
def _errors_as_sentences() -> Iterator[None]:
    """Turn users' mistakes, interrupts and a plug-in's ``sys.exit`` into a line; other errors keep their traceback."""
    with _recorded_interrupts() as interrupts:
        try:
            with needing("this command"):
                yield
        except BaseException as error:
            if interrupts or isinstance(error, KeyboardInterrupt):  # a library may have caught it while it loaded
                raise (_Terminated if signal.SIGTERM in interrupts else _Interrupted)() from error
            if isinstance(error, HashbenchError):
                raise click.ClickException(str(error)) from error
            if isinstance(error, OSError) and (error.filename is not None or error.errno in _STDOUT_ERRORS):
                raise click.ClickException(_sentence(error)) from error
            if isinstance(error, SystemExit):
                import traceback

                last = traceback.extract_tb(error.__traceback__)[-1]
                raise click.ClickException(
                    f"{last.filename}, line {last.lineno}, ended the command by sys.exit. Let it raise an error."
                ) from error
            raise


@contextmanager
def _recorded_interrupts() -> Iterator[list[int]]:
    """Record interrupts and terminations, and raise both as interrupts; not where ignored, nor in other threads."""
    numbers: list[int] = []

    def record(number: int, frame: Any) -> None:
        numbers.append(number)
        signal.default_int_handler(number, frame)

    handlers: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        handlers = {number: usual for number, usual in defaults.items() if signal.getsignal(number) is usual}
    for number in handlers:
        signal.signal(number, record)
    try:
        yield numbers
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _sentence(error: OSError) -> str:
    """Return which file cannot be used and why; if it is standard output, close it."""
    if error.filename is not None:
        name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
        shown = name if len(name) <= 200 else f"{name[:20]}... of {len(name):,} characters"
        return f"cannot use {shown}: {error.strerror}. Check its name and permissions."
    with suppress(OSError, ValueError):  # else the flush at exit fails once more
        from hashbench.cli.outputs import close

        close(sys.stdout)
    return f"cannot write to standard output: {error.strerror}. Send it elsewhere."


@click.group(
    cls=_Cli, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}
)
@click.version_option(__version__, prog_name="hashbench")
def cli() -> None:
    """Score binary codes for retrieval, exactly over all orders of tied items.

    \b
    hashbench run --method itq --bits 32     dataset -> codes -> scores -> results/digits/itq.csv
    hashbench tables                         all results as the papers' tables
    hashbench plot                           all results as figures
    hashbench diff                           what changed in results/ since the last commit, and whether it matters
    hashbench evaluate --help                how to score your own codes, from any program
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are


class _OnWorkers(click.Group):
    """The commands that workers help with, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_ON_WORKERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ON_WORKERS:
            return None
        return with_own_output(getattr(import_module(f"hashbench.cli.{COMMANDS[cmd_name][0]}"), cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in _ON_WORKERS])


@click.group(cls=_OnWorkers)
@click.argument("address")
@click.option(
    "--trust-workers",
    is_flag=True,
    help="Allow a scheduler on another machine without TLS; whoever answers there can run code here.",
)
@click.pass_context
def on(context: click.Context, address: str, trust_workers: bool) -> None:
    """Run a command on a Dask cluster: jobs of run and tune, or parts of a large database of codes.

    ADDRESS is that of its scheduler, or the file that the scheduler wrote (docs/scale.md).

    \b
    hashbench on scheduler.json run --grid study.toml
    hashbench on tcp://127.0.0.1:8786 evaluate --query-codes q.npy --database-codes 'codes-*.npy' ...
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.pipeline.cluster import Cluster

    context.obj = Cluster(address, trust_workers)
