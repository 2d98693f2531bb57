"""Options that several commands share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from hashbench._torch import DEVICES


def chosen_params(params: Sequence[str]) -> list[str]:
    """Give the running command's method parameters, ``name=value``: of ``--param``, and of options of their own."""
    return [*params, *click.get_current_context().meta.get(_PARAMS, ())]


def _keep_param(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None:
        context.meta.setdefault(_PARAMS, []).append(f"{option.name}={value}")


_PARAMS = "hashbench.params"

RESULTS = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder of the result files.",
)
METRIC = click.option("--metric", "metrics", multiple=True, help="Metric, repeatable; see `hashbench list metrics`.")
METHOD = click.option("--method", "methods", multiple=True, required=True, help="Method, repeatable.")
BITS = click.option("--bits", "n_bits", type=int, multiple=True, required=True, help="Code length, repeatable.")
SEED = click.option(
    "--seed",
    "seeds",
    type=click.IntRange(0, 2**32 - 1),
    multiple=True,
    default=(0,),
    help="Random seed, repeatable. [0]",
)
DATASET = click.option(
    "--dataset",
    "datasets",
    multiple=True,
    default=("digits",),
    help="Dataset name or HDF5 file, repeatable. [digits]",
)
PARAM = click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="Method parameter, repeatable.")
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
FEATURES = click.option("--features", help="Kind of features, where a dataset offers several.")
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


def of_grid(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that span a grid of jobs."""
    for option in reversed((METHOD, BITS, SEED, DATASET, PARAM, PRESET, VALIDATION, DEVICE, LOCK_TIMEOUT)):
        command = option(command)
    return command
