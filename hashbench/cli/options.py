"""Options that several commands share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.types import IntParamType

from hashbench._choices import DEVICES
from hashbench.errors import HashbenchError

if TYPE_CHECKING:
    from hashbench.pipeline.study import Study

Completer = Callable[[click.Context, click.Parameter, str], list[Any]]


def chosen_params(params: Sequence[str]) -> list[str]:
    """Give the running command's method parameters, ``name=value``: of ``--param``, and of options of their own."""
    return [*params, *click.get_current_context().meta.get(_PARAMS, ())]


def _keep_param(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None:
        context.meta.setdefault(_PARAMS, []).append(f"{option.name}={value}")


_PARAMS = "hashbench.params"


def completing(*kinds: str) -> Completer:
    """Make what click asks for the completions of names of some kinds; a file's name, where none of them fits."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from hashbench.cli.completion import NAMES

        given = ctx.params.get(param.name or "") if param.multiple or param.nargs == -1 else None
        found = {name for kind in kinds for name in NAMES[kind]() if name.startswith(incomplete)}
        return [CompletionItem(name) for name in sorted(found.difference(given or ()))] or [
            CompletionItem(incomplete, type="file")
        ]

    return complete


class OneEach(click.ParamType[Any]):
    """Values of an option that is repeated; a list with commas is answered with how to."""

    def __init__(self, kind: Any = str) -> None:
        self.kind = click.types.convert_type(kind)
        self.name = self.kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        from hashbench.store.files import HDF5_SUFFIXES

        if isinstance(value, str) and "," in value and param is not None and not value.endswith(HDF5_SUFFIXES):
            each = " ".join(f"{param.opts[0]} {part.strip()}" for part in value.split(",") if part.strip())
            self.fail(f"{value!r} holds several; repeat the option: {each}.", param, ctx)
        return self.kind.convert(value, param, ctx)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:  # noqa: D102
        return {"methods": "`hashbench list methods` names them.", "n_bits": "Such as --bits 32."}.get(param.name or "")


class Word(click.Choice[str]):
    """One of some words; one that is not gets a near one suggested."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: D102
        near = get_close_matches(str(value), self.choices, n=1)
        return super().get_invalid_choice_message(value, ctx) + (f" Did you mean {near[0]!r}?" if near else "")


LENGTH = OneEach(int)
RESULTS = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder of the result files.",
)


def several(flag: str, name: str, help_text: str) -> Callable[[Any], Any]:
    """Make an option that is repeated; ``name`` is its parameter's, and of what shells complete."""
    return click.option(
        *(flag, name),
        type=OneEach(),
        multiple=True,
        metavar=flag.removeprefix("--").upper(),
        shell_complete=completing(name),
        help=help_text,
    )


METRIC = several("--metric", "metrics", "Such as AP, NDCG@100 or P@r2, repeatable; see `hashbench list metrics`.")
METHOD = several("--method", "methods", "Such as itq, ksh or csq, repeatable; see `hashbench list methods`.")
BITS = click.option("--bits", "n_bits", type=LENGTH, multiple=True, help="Code length, such as 32, repeatable.")
SEED = click.option(
    "--seed",
    "seeds",
    type=OneEach(click.IntRange(0, 2**32 - 1)),
    multiple=True,
    help="Random seed, repeatable; a method that draws nothing runs with 0 alone. [0]",
)
DATASET = several("--dataset", "datasets", "Name or HDF5 file, repeatable; see `hashbench list datasets`. [digits]")
PARAM = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="[METHOD:]NAME=VALUE[,VALUE]...",
    help="Parameter, of one method or of all, repeatable; several values are run one after the other.",
)
PRESET = click.option(
    "--preset", callback=_keep_param, expose_value=False, help="Settings of that name, such as paper, of each method."
)
VALIDATION = click.option(
    "--validation",
    type=click.FloatRange(0, 0.5),
    callback=_keep_param,
    expose_value=False,
    help="Learned methods: share of the training items that is held out to choose the epoch.",
)
DEVICE = click.option(
    "--device",
    type=click.Choice(DEVICES),
    callback=_keep_param,
    expose_value=False,
    help="Learned methods: where to train. [auto]",
)
FORCE = click.option("--force", is_flag=True, help="Do finished steps again.")
RESUME = click.option(
    "--resume", is_flag=True, help="Go on with interrupted training where its last epoch ended; else it starts afresh."
)


class Jobs(IntParamType):
    """How many jobs at a time, from 1; -1 for one a processor, as joblib says it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: D102
        number: int = super().convert(value, param, ctx)
        if number < 1 and number != -1:
            self.fail(f"{number} is not in the range x>=1, nor -1, one a processor.", param, ctx)
        return number


def _read_part(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Read I/N, I from 1 to N."""
    if value is None:
        return None
    number, _, n_parts = value.partition("/")
    if not (number.isdecimal() and n_parts.isdecimal() and 1 <= int(number) <= int(n_parts)):
        raise click.BadParameter(f"{value!r} is no part, expected such as 2/5, from 1/5 to 5/5.", context, option)
    return int(number), int(n_parts)


PART = click.option(
    "--part",
    callback=_read_part,
    metavar="I/N",
    help="Only one of N parts of the jobs, the same on any machine (docs/scale.md).",
)
JOBS = click.option(
    "--jobs",
    "n_jobs",
    type=Jobs(),
    default=1,
    show_default=True,
    help="How many side by side, each in a process with its share of the processors; -1 for one a processor.",
)


def on_workers(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a Dask cluster to a command, which is handed the ``cluster`` that they name, or None."""

    @click.option(
        "--workers",
        "scheduler",
        metavar="ADDRESS",
        help="On the workers of a Dask cluster, by the address of its scheduler or the file it wrote (docs/scale.md).",
    )
    @click.option(
        "--trust-workers",
        "is_trusted",
        is_flag=True,
        help="Use --workers on another machine without TLS: whoever answers there can run code here.",
    )
    @wraps(command)
    def with_cluster(scheduler: str | None, *, is_trusted: bool, **params: Any) -> None:
        from hashbench.pipeline.cluster import Cluster

        if scheduler is None and is_trusted:
            raise click.UsageError("--trust-workers goes with --workers ADDRESS.")
        command(cluster=None if scheduler is None else Cluster(scheduler, is_trusted), **params)

    return with_cluster


DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="List the jobs and what of each remains; compute and write nothing."
)
FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True
)


class File(click.Path):
    """A file that a user names."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=False, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        if value == "":
            self.fail("an empty name is no file.", param, ctx)
        return super().convert(value, param, ctx)


FILE = File()
OUTPUT = File(allow_dash=True)
FEATURES = click.option(
    "--features", shell_complete=completing("features"), help="Kind of features, where a dataset offers several."
)
SOURCE = click.option("--source", type=click.Path(path_type=Path), help="Raw data you have: archive, file or folder.")
WEIGHTS = click.option("--weights", type=FILE, help="Weights of the network that computes features.")


def _keep_lock_timeout(context: click.Context, option: click.Parameter, value: float | None) -> None:
    if value is not None:
        from hashbench.store.files import lock_timeout

        token = lock_timeout.set(value)
        context.call_on_close(lambda: lock_timeout.reset(token))


LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=click.FloatRange(0),
    callback=_keep_lock_timeout,
    expose_value=False,
    metavar="SECONDS",
    help="Give up waiting for a process that makes the same file. [never]",
)


GRID = click.option(
    "--grid",
    "file",
    type=FILE,
    metavar="FILE.toml",
    help="A whole study; options beside it pick from it, or go before what it says (docs/grids.md).",
)


@dataclass(frozen=True)
class Chosen:
    """What the options of a grid say."""

    file: Path | None
    methods: tuple[str, ...]
    n_bits: tuple[int, ...]
    seeds: tuple[int, ...]
    datasets: tuple[str, ...]
    params: tuple[str, ...]

    def study(self, metrics: Sequence[str] = ()) -> "Study":
        """Give the study they mean; a usage error if they leave open what to run."""
        from hashbench.pipeline.grid import parse_params
        from hashbench.pipeline.study import Study, read_study

        axes: dict[str, Any] = {
            "methods": self.methods,
            "n_bits": self.n_bits,
            "seeds": self.seeds,
            "datasets": self.datasets,
        }
        context = click.get_current_context()
        options = {option.name: option for option in context.command.params}
        for name in ("methods", "n_bits"):
            if self.file is None and not axes[name]:
                raise click.MissingParameter(ctx=context, param=options[name])
        said = Study() if self.file is None else read_study(self.file)
        study = said.changed(**axes, metrics=metrics, params=parse_params(chosen_params(self.params)))
        for name, key in {"methods": "methods", "n_bits": "bits"}.items():
            if not getattr(study, name):
                raise HashbenchError(f"{self.file} says nothing of {key}. Let it, or give {options[name].opts[0]}.")
        return study


def of_grid(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that span a grid of jobs, as ``chosen``."""

    @wraps(command)
    def with_chosen(**options: Any) -> Any:
        mine = {key: options.pop(key) for key in Chosen.__dataclass_fields__}
        return command(chosen=Chosen(**mine), **options)

    wrapped: Callable[..., Any] = with_chosen
    for option in reversed((METHOD, BITS, SEED, DATASET, PARAM, GRID, PRESET, VALIDATION, DEVICE, LOCK_TIMEOUT)):
        wrapped = option(wrapped)
    return wrapped
