"""Options that several commands share."""

from pathlib import Path

import click

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
FORCE = click.option("--force", is_flag=True, help="Do finished steps again.")
RESUME = click.option(
    "--resume", is_flag=True, help="Go on with interrupted training where its last epoch ended; else it starts afresh."
)
FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True
)
FILE = click.Path(path_type=Path, dir_okay=False)
FEATURES = click.option("--features", help="Kind of features, where a dataset offers several.")
SOURCE = click.option("--source", type=click.Path(path_type=Path), help="Raw data you have: archive, file or folder.")
WEIGHTS = click.option("--weights", type=FILE, help="Weights of the network that computes features.")
