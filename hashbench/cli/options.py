"""Options that several commands share, and rules on which options go together."""

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import Choice, FloatRange, IntRange
from click.core import ParameterSource
from click.types import IntParamType
from cloup import option, option_group
from cloup.constraints import Constraint

from hashbench._choices import DEVICES
from hashbench.errors import HashbenchError

if TYPE_CHECKING:
    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.study import Study

    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # which takes no type before click 8.5

OptionDecorator = Callable[[Any], Any]


# ---------------------------------------------------------------- rules


def typed(parameters: Iterable[click.Parameter]) -> list[str]:
    """Return the names, as users know them, of the parameters that the command line or environment sets."""
    context = click.get_current_context()
    return [
        parameter.opts[0] if isinstance(parameter, click.Option) else parameter.make_metavar(context).strip("[]")
        for parameter in parameters
        if context.get_parameter_source(parameter.name or "") not in (None, ParameterSource.DEFAULT)
    ]


class OnlyWith(Constraint):
    """A rule: these options need another one."""

    def __init__(self, needed: str) -> None:
        self.needed = needed

    def help(self, ctx: click.Context) -> str:  # noqa: D102
        return f"only with {self.needed}"

    def check_values(self, params: Sequence[click.Parameter], ctx: click.Context) -> None:  # noqa: D102
        if self.needed in typed(ctx.command.params):
            return
        for name in typed(params):
            raise click.UsageError(f"{name} needs {self.needed}. Add {self.needed}, or leave out {name}.", ctx)


class NotWith(Constraint):
    """A rule: these options exclude some others."""

    def __init__(self, *excluded: str) -> None:
        self.excluded = excluded

    def help(self, ctx: click.Context) -> str:  # noqa: D102
        options = {spelling for param in ctx.command.params for spelling in param.opts}
        return f"not with {' or '.join(name for name in self.excluded if not name.startswith('-') or name in options)}"

    def check_values(self, params: Sequence[click.Parameter], ctx: click.Context) -> None:  # noqa: D102
        conflicts = [name for name in typed(ctx.command.params) if name in self.excluded]
        for name in typed(params) if conflicts else ():
            raise click.UsageError(f"{name} does not go with {conflicts[0]}. Leave out one of the two.", ctx)


# ---------------------------------------------------------------- types


def names_of(kind: str) -> list[str]:
    """List the names of a kind, such as methods; what has them is not imported, which would take seconds per key."""
    from hashbench import cards, registry
    from hashbench.store.files import data_dir

    if kind == "methods":
        return registry.method_names()
    if kind == "datasets":
        known = registry.dataset_names()
        own = (path.stem for path in (data_dir() / "datasets").glob("*.h5"))
        return known + [name for name in own if not name.startswith(tuple(f"{prefix}-" for prefix in known))]
    names: dict[str, list[str]] = cards.written()["names"]
    return names.get(kind, [])


def completing(*kinds: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Return click's completer for names of some kinds; it offers files where no name fits."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        names = {name for kind in kinds for name in names_of(kind) if name.startswith(incomplete)}
        if param.multiple or param.nargs == -1:
            names -= {*(ctx.params.get(param.name or "") or ())}
        return [CompletionItem(name) for name in sorted(names)] or [CompletionItem(incomplete, type="file")]

    return complete


class OneEach(_ParamType):
    """A value of a repeatable option; a list with commas is refused, with the options to write instead."""

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
        return {"methods": "`hashbench list methods` lists them.", "n_bits": "Such as --bits 32."}.get(param.name or "")


class Word(click.Choice[str]):
    """One of some words; the error for any other suggests a near one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: D102
        near = get_close_matches(str(value), self.choices, n=1)
        return super().get_invalid_choice_message(value, ctx) + (f" Did you mean {near[0]!r}?" if near else "")


class Number(FloatRange):
    """A number in a range; nan, which click takes for one in any range, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: D102
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Jobs(IntParamType):
    """A number of jobs from 1, or -1 for one per core, as in joblib."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: D102
        number: int = super().convert(value, param, ctx)
        if number < 1 and number != -1:
            self.fail(f"{number} is not in the range x>=1, nor -1, one per core.", param, ctx)
        return number


class NamedPath(click.Path):
    """A path; an empty one, which Python takes for the working folder, is refused."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(path_type=Path, **attributes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        if not str(value):
            self.fail("the path is empty; give a name, or . for the folder that you are in.", param, ctx)
        return super().convert(value, param, ctx)


class ArrayFile(click.types.StringParamType):
    """A file with an array, and the array's key if there are several, or a folder of items."""

    name = "FILE[:KEY]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        if not str(value):
            self.fail("the path is empty; give the name of a file.", param, ctx)
        return super().convert(value, param, ctx)


ARRAY = ArrayFile()
FILE, OUTPUT = (NamedPath(dir_okay=False, allow_dash=is_output) for is_output in (False, True))
LENGTH, SEEDS = OneEach(int), IntRange(0, 2**32 - 1)


# ---------------------------------------------------------------- options


def several(*flags: str, names: str, help: str, **attributes: Any) -> OptionDecorator:
    """Return a repeatable option that takes names of a kind, which shells complete."""
    return option(
        *flags,
        names,
        type=OneEach(),
        multiple=True,
        metavar=flags[0].removeprefix("--").upper(),
        shell_complete=completing(names),
        help=help,
        **attributes,
    )


def lengths(help: str, **attributes: Any) -> OptionDecorator:
    """Return the option --bits."""
    return option("--bits", "n_bits", type=LENGTH, multiple=True, help=help, **attributes)


def random_seeds(help: str) -> OptionDecorator:
    """Return the option --seed of commands that train."""
    return option("--seed", "seeds", type=OneEach(SEEDS), multiple=True, show_default="0", help=help)


def parameters(several: str) -> OptionDecorator:
    """Return the option --param; ``several`` is what several values mean."""
    return option(
        "--param",
        "params",
        multiple=True,
        metavar="[METHOD:]NAME=VALUE[,VALUE]...",
        help=f"Parameter of one method or of all, repeatable; {several}.",
    )


def folder(flag: str, *more: str, help: str, **attributes: Any) -> OptionDecorator:
    """Return an option that takes a folder."""
    return option(flag, *more, type=NamedPath(file_okay=False), metavar="FOLDER", help=help, **attributes)


def output_format(*forms: str) -> OptionDecorator:
    """Return the option --format, by default the first of some."""
    return option("--format", "form", type=Choice(forms), default=forms[0], help="Format of the output.")


def _note_readings(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Print notes on names of metrics with several meanings."""
    if names and not ctx.resilient_parsing:
        with redirect_stdout(sys.stderr):  # of plug-ins that print when they are imported
            _print_readings(names)
    return names


def _print_readings(names: Sequence[str]) -> None:
    from hashbench.scoring.metrics import get_metric, readings

    for note in readings(map(get_metric, names)):
        click.echo(note, err=True)


def metric_option(**attributes: Any) -> OptionDecorator:
    """Return the option --metric."""
    text = "Metric such as AP or NDCG@100, repeatable; see `hashbench list metrics`."
    return several("--metric", names="metrics", help=text, **attributes)


METRIC = metric_option(callback=_note_readings)
METRIC_TO_SCORE = metric_option()  # whose scores come with such notes
METHOD = several(
    "--method", "-m", names="methods", help="Method such as itq or csq, repeatable; see `hashbench list methods`."
)
BITS = lengths("Code length such as 32, repeatable.")
SEED = random_seeds("Random seed, repeatable; methods without randomness run only once.")
DATASET = several(
    "--dataset",
    names="datasets",
    show_default="digits",
    help="Dataset, by name or HDF5 file, repeatable; see `hashbench list datasets`.",
)
PARAM = parameters("each of several values is a job")
PRESET = option("--preset", metavar="NAME", help="Preset of each method, such as paper; see `hashbench info METHOD`.")
GRID = option("--grid", type=FILE, help="TOML file of a study; options pick from it or override it (docs/grids.md).")
VALIDATION = option(
    "--validation",
    type=Number(0, 0.5),
    help="Share of the training items held out to choose the epoch, for learned methods.",
)
DEVICE = option("--device", type=Choice(DEVICES), show_default="auto", help="Where to train, for learned methods.")
RESUME = option("--resume", is_flag=True, help="Continue interrupted training after its last complete epoch.")
FORCE = option("--force", is_flag=True, help="Repeat finished steps.")
KEEP_MODEL = option("--keep-model", is_flag=True, help="Save each fitted method beside its codes.")
DRY_RUN = option("--dry-run", is_flag=True, help="List the jobs and what remains of each; compute nothing.")
RESULTS = folder("--results", default=Path("results"), help="Folder of the result files.")
FEATURES = option(
    "--features",
    metavar="KIND",
    shell_complete=completing("features"),
    help="Kind of features, where a dataset offers several.",
)
SOURCE = option("--source", type=NamedPath(), help="Raw data you have: archive, file or folder.")
WEIGHTS = option("--weights", type=FILE, help="Weights of the network that computes features.")
JOBS = option(
    "--jobs",
    "-j",
    "n_jobs",
    type=Jobs(),
    default=1,
    help="Jobs to run at a time, each in its own process with its share of the cores; -1: one per core.",
)


def _read_part(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Read I/N, I from 1 to N."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", value)
    number, n_parts = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= n_parts:
        shown = value if len(value) <= 100 else f"{value[:20]}..."
        raise click.BadParameter(
            f"{shown!r} is not a part, expected I/N such as 2/5, with I from 1 to N, and N of at most 9 digits.",
            context,
            option,
        )
    return number, n_parts


PART = option(
    "--part",
    callback=_read_part,
    metavar="I/N",
    help="Part of the jobs to run, such as 2/5, the same on any machine (docs/scale.md).",
)


def _set_lock_timeout(context: click.Context, option: click.Parameter, value: float | None) -> None:
    if value is not None:
        from hashbench.store.files import lock_timeout

        token = lock_timeout.set(value)
        context.call_on_close(lambda: lock_timeout.reset(token))


INTERVAL = option("--interval", is_flag=True, help="Add the 95 % interval of each mean for other queries like these.")
LOCK_TIMEOUT = option(
    "--lock-timeout",
    type=Number(0),
    callback=_set_lock_timeout,
    expose_value=False,
    metavar="SECONDS",
    show_default="never",
    help="Time after which to give up waiting for a process that writes the same file.",
)


def cluster() -> "Cluster | None":
    """Return the Dask cluster that `hashbench on` runs this command on."""
    found: Cluster | None = click.get_current_context().obj
    return found


# ---------------------------------------------------------------- grids of jobs

JOB_OPTIONS = (METHOD, BITS, SEED, DATASET, PARAM, PRESET, GRID)
TRAINING = option_group("Training", VALIDATION, DEVICE, RESUME)


def study_of(
    metrics: Sequence[str] = (),
    *,
    grid: Path | None = None,
    params: Sequence[str] = (),
    preset: str | None = None,
    validation: float | None = None,
    device: str | None = None,
    **axes: tuple[Any, ...],
) -> "Study":
    """Return the study that the options of a grid describe; without methods or code lengths it is a usage error."""
    from hashbench.pipeline.grid import parse_params
    from hashbench.pipeline.study import Study, read_study

    context = click.get_current_context()
    options = {option.name: option for option in context.command.params}
    for name in ("methods", "n_bits"):
        if grid is None and not axes[name]:
            raise click.MissingParameter(ctx=context, param=options[name])
    own_options = {"preset": preset, "validation": validation, "device": device}
    texts = [*params, *(f"{name}={value}" for name, value in own_options.items() if value is not None)]
    study = Study() if grid is None else read_study(grid)
    if not metrics:
        _print_readings(study.metrics)
    study = study.changed(**axes, metrics=metrics, params=parse_params(texts))
    for name, key in {"methods": "methods", "n_bits": "bits"}.items():
        if not getattr(study, name):
            raise HashbenchError(f"{grid} names no {key}. Add them to it, or give {options[name].opts[0]}.")
    return study
