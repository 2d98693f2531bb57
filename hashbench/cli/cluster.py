"""The command that runs others on the workers of a Dask cluster: on."""

from importlib import import_module

import click

from hashbench.cli.main import COMMANDS, with_own_output

_ON_WORKERS = ("candidates", "evaluate", "run", "thresholds", "tune")


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
