"""The command line: it parses and prints; everything else is done elsewhere.

Modules that need NumPy are imported inside the commands, so that ``--help`` answers at once.
"""

from functools import partial
from pathlib import Path
from typing import Any

import click

from hashbench._version import __version__
from hashbench.cli.options import (
    BITS,
    DATASET,
    DEVICE,
    FEATURES,
    FILE,
    FORCE,
    FORMAT,
    METHOD,
    METRIC,
    PARAM,
    PRESET,
    RESULTS,
    RESUME,
    SEED,
    SOURCE,
    VALIDATION,
    WEIGHTS,
    chosen_params,
)
from hashbench.cli.reports import diff, plot, tables
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


@cli.command("list")
@click.argument("kind", type=click.Choice(["methods", "datasets", "metrics", "missing"]))
def list_command(kind: str) -> None:
    """List methods, datasets or metrics, each with a line about it; or datasets not prepared, and how to add them."""
    from hashbench import registry

    if kind == "methods":
        rows = [(name, registry.method_summary(name)) for name in registry.method_names()]
    elif kind == "datasets":
        rows = [(name, registry.dataset_summary(name)) for name in registry.dataset_names()]
    elif kind == "missing":
        from hashbench.pipeline.preparation import find_prepared

        rows = list(find_prepared()[1].items())
    else:
        from hashbench.scoring.metrics import FAMILIES, metric_names

        rows = []
        for name in metric_names():
            family = FAMILIES[name]
            options = f" Options: {', '.join(':' + option for option in family.options)}." if family.options else ""
            rows.append((name, f"{family.summary}{options} [{family.source}]"))
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        click.echo(f"{name.ljust(width)}  {text}")


@cli.command()
@click.argument("name")
def info(name: str) -> None:
    """Tell about a dataset (by name or file), a codes file, a method or a metric."""
    from hashbench.cli.descriptions import describe

    click.echo(describe(name))


@cli.command()
@click.argument("names", nargs=-1, metavar="[DATASET]...")
@click.option("--features", multiple=True, help="Kind of features, repeatable, where a dataset offers several.")
@SOURCE
@WEIGHTS
@click.option("--image-size", type=click.IntRange(8, 1024), help="Pixels that images are resized to for features.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--from", "items", help="Your own data: file (.npy .npz .mat .parquet .csv .hdf5, FILE:KEY) or folder.")
@click.option("--name", help="What to call your own dataset.")
@click.option("--labels", help="File of its labels: classes (n,) or multi-hot.")
@click.option("--query-from", "query_items", help="File of its queries; by default they are drawn.")
@click.option("--query-labels", help="File of their labels.")
@click.option(
    "--affinity",
    "rule",
    type=click.Choice(["same-label", "shared-labels", "distance"]),
    help="By default by the labels.",
)
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Queries to draw. [a tenth, up to 1,000]")
@click.option("--train", "n_train", type=click.IntRange(1), help="Training items to draw. [the whole database]")
@click.option("--queries-per-label", type=click.IntRange(1), help="Queries to draw for each label.")
@click.option("--train-per-label", type=click.IntRange(1), help="Training items to draw for each label.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of the drawing.")
@FORCE
def prepare(
    names: tuple[str, ...],
    features: tuple[str, ...],
    source: Path | None,
    weights: Path | None,
    image_size: int | None,
    device: str,
    items: str | None,
    name: str | None,
    force: bool,
    **own: Any,
) -> None:
    """Make datasets ready: fixed split, affinity rule and fingerprint in one HDF5 file each.

    \b
    hashbench prepare cifar10-s1 --features gist
    hashbench prepare --from features.npy --labels labels.npy --name mydata
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.adapter import Options, Own
    from hashbench.cli import console

    if (items is None) != (name is None) or (items is None) == (not names):
        raise click.UsageError("name datasets to prepare, or give your own with both --from and --name.")
    if items is None and any(value is not None for key, value in own.items() if key != "seed"):
        raise click.UsageError("--labels, --affinity and how many to draw are for your own data (--from).")
    if items is not None and len(features) > 1:
        raise click.UsageError("your own data have one kind of features under a name; give --features once.")
    options = Options(source=source, weights=weights, image_size=image_size, device=device)
    mine = None if items is None or name is None else Own(name=name, items=items, **own)
    for text in console.prepare_all(names, features, options, mine, force=force):
        click.echo(text)


@cli.command()
@METHOD
@BITS
@SEED
@DATASET
@PARAM
@PRESET
@VALIDATION
@DEVICE
@FORCE
@RESUME
def encode(
    methods: tuple[str, ...],
    n_bits: tuple[int, ...],
    seeds: tuple[int, ...],
    datasets: tuple[str, ...],
    params: tuple[str, ...],
    force: bool,
    resume: bool,
) -> None:
    """Fit methods and write the codes of queries and database; prints the files."""
    from hashbench.cli import console
    from hashbench.pipeline.grid import grid, parse_params

    jobs = grid(datasets, methods, n_bits, seeds, parse_params(chosen_params(params)))
    outcomes = []
    try:
        for outcome in console.run_jobs(jobs, (), force=force, resume=resume):
            outcomes.append(outcome)
    finally:  # the files are listed when the bar is gone
        for outcome in outcomes:
            click.echo(str(outcome.codes))


@cli.command()
@click.argument("codes", type=FILE, required=False)
@click.option("--dataset", help="Name or file of the dataset that CODES were made from; by default the name in it.")
@click.option(
    "--query-codes",
    type=FILE,
    help="Your own: .npy of bool, 0/1 or -1/+1; or, with --bits, packed, first bit least significant.",
)
@click.option("--database-codes", type=FILE, help="The same for the database.")
@click.option("--bits", "n_bits", type=int, help="Code length of packed codes.")
@click.option("--query-labels", type=FILE, help=".npy of class labels (n,) or multi-hot (n, n_classes).")
@click.option("--database-labels", type=FILE, help="The same for the database.")
@click.option("--query-coarse", type=FILE, help=".npy of superclasses (n,): level 2 in the class, 1 in the superclass.")
@click.option("--database-coarse", type=FILE, help="The same for the database.")
@click.option("--affinity", type=FILE, help="Instead of labels: .npy matrix or .npz SciPy CSR of levels.")
@click.option(
    "--distance",
    type=click.Choice(["hamming", "cosine"]),
    help="How to rank your own; cosine takes real-valued outputs, before the sign. [hamming]",
)
@METRIC
@click.option(
    "--undefined",
    type=click.Choice(["skip", "paper"]),
    default="skip",
    show_default=True,
    help="Queries without relevant items: leave out, or count AP 0 and NDCG 1.",
)
@FORMAT
@click.option("--per-query", type=FILE, help="Also write every query's scores to this CSV file.")
@click.option(
    "--curves", type=FILE, help="Also write precision-recall curves, by radius and by rank, to this CSV file."
)
def evaluate(
    codes: Path | None,
    dataset: str | None,
    metrics: tuple[str, ...],
    undefined: str,
    form: str,
    per_query: Path | None,
    curves: Path | None,
    **own: Any,
) -> None:
    """Score CODES.h5, or your own codes of any origin, exactly over all tie orders."""
    from hashbench.cli import console
    from hashbench.pipeline import own_codes, preparation, steps
    from hashbench.scoring.curves import curve_metrics, lay_out
    from hashbench.scoring.evaluation import DEFAULT_METRICS
    from hashbench.store import files, hdf5

    names = metrics or DEFAULT_METRICS
    if codes is not None:
        if any(value is not None for value in own.values()):
            raise click.UsageError("give either CODES.h5 or your own --query-codes and --database-codes, not both.")
        with hdf5.open_codes(codes) as opened:
            dataset = dataset or str(preparation.find_by_content(opened.dataset_fingerprint) or opened.dataset)
            sizes = opened.n_bits, len(opened.database)
        loaded, _ = preparation.load_dataset(dataset)
        score = partial(steps.score, loaded, codes, undefined=undefined)
    else:
        if own["query_codes"] is None or own["database_codes"] is None:
            raise click.UsageError("give CODES.h5, or both --query-codes and --database-codes.")
        own["distance"] = own["distance"] or "hamming"
        score = partial(own_codes.evaluate_files, undefined=undefined, **own)
    evaluation = score(names)
    if per_query is not None:
        files.write_text(per_query, evaluation.per_query.to_csv(index=False, lineterminator="\n"))
    if curves is not None:
        if codes is None:
            n_database, width = own_codes.load_array(own["database_codes"]).shape
            sizes = own["n_bits"] or width, n_database
        points = curve_metrics(*sizes, by_radius=own["distance"] != "cosine")
        files.write_text(curves, lay_out(score(points)).to_csv(index=False, lineterminator="\n"))
    click.echo(console.format_evaluation(evaluation, form))


@cli.command()
@METHOD
@BITS
@SEED
@DATASET
@PARAM
@PRESET
@VALIDATION
@DEVICE
@METRIC
@click.option(
    "--available",
    is_flag=True,
    help="Also on all known datasets that are prepared; see `hashbench list missing` for the others.",
)
@RESULTS
@FORCE
@RESUME
@FORMAT
def run(
    methods: tuple[str, ...],
    n_bits: tuple[int, ...],
    seeds: tuple[int, ...],
    datasets: tuple[str, ...],
    params: tuple[str, ...],
    metrics: tuple[str, ...],
    available: bool,
    results: Path,
    force: bool,
    resume: bool,
    form: str,
) -> None:
    """Prepare, encode and score, whatever of it is not done yet; each combination of options is one job."""
    from hashbench.cli import console
    from hashbench.pipeline.grid import grid, parse_params
    from hashbench.scoring.evaluation import DEFAULT_METRICS
    from hashbench.store.results import merge_rows

    prepared: list[str] = []
    if available:
        from hashbench.pipeline.preparation import find_prepared

        prepared, _ = find_prepared()
    jobs = grid([*datasets, *prepared], methods, n_bits, seeds, parse_params(chosen_params(params)))
    outcomes = []
    try:
        for outcome in console.run_jobs(jobs, metrics or DEFAULT_METRICS, force=force, resume=resume):
            merge_rows(results / f"{outcome.rows[0].dataset}.csv", outcome.rows)
            outcomes.append(outcome)
    finally:  # what is done is told, whatever stops the rest
        if outcomes:
            click.echo(console.format_outcomes(outcomes, form, is_grid=len(jobs) > 1))


@cli.command()
@click.argument("kind", type=click.Choice(["method", "dataset"]))
@click.argument("name")
@FEATURES
@SOURCE
@WEIGHTS
def check(kind: str, name: str, features: str | None, source: Path | None, weights: Path | None) -> None:
    """Run the conformance suite on a method or dataset, built-in or your own plugin."""
    from hashbench import registry, testing
    from hashbench.adapter import Options

    if kind == "method" and (features or source or weights):
        raise click.UsageError("--features, --source and --weights are for datasets.")
    options = Options(features=features, source=source, weights=weights)
    subject: Any = registry.get_method(name) if kind == "method" else registry.get_dataset(name, options)
    checks: Any = testing.METHOD_CHECKS if kind == "method" else testing.DATASET_CHECKS
    failures = 0
    for one in checks:
        title = one.__name__.removeprefix("check_").replace("_", " ")
        try:
            one(subject)
        except Exception as error:  # any failure of a plugin is a finding
            failures += 1
            click.echo(f"FAIL  {title}: {type(error).__name__}: {error}")
        else:
            click.echo(f"ok    {title}")
    if failures:
        raise HashbenchError(f"{kind} {name!r} fails {failures} of {len(checks)} checks.")


for report in (tables, plot, diff):
    cli.add_command(report)
