"""The command line: it parses and prints; everything else is done elsewhere.

Modules that need NumPy are imported inside the commands, so that ``--help`` answers at once.
"""

from typing import Any

import click

from hashbench import __version__
from hashbench.cli.catalogue import check, info, list_command
from hashbench.cli.pipeline import encode, prepare, run
from hashbench.cli.reports import diff, plot, tables
from hashbench.cli.results import results
from hashbench.cli.scoring import evaluate
from hashbench.errors import HashbenchError


class _Cli(click.Group):
    """A group in which a mistake the user can mend is one line on stderr and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HashbenchError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt as interrupt:
            raise click.ClickException(
                "interrupted; finished steps are kept, and the same command goes on from there "
                "(with --resume, inside training too)."
            ) from interrupt


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="hashbench")
def cli() -> None:
    """Score binary codes for retrieval exactly, with every tie accounted for.

    \b
    hashbench run --method itq --bits 32     dataset -> codes -> scores -> results/digits.csv
    hashbench tables                         all results as the papers' tables
    hashbench plot                           all results as figures
    hashbench diff                           what changed in results/ since the last commit, and does it matter
    hashbench evaluate --help                your own codes, from any program
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are


for command in (list_command, info, prepare, encode, evaluate, run, check, tables, plot, diff, results):
    cli.add_command(command)
