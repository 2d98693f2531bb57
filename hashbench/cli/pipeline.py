"""The commands that make things: prepare, encode, run."""

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hashbench._choices import CLASSES_OF, DEVICES, OWN_RULES, TRUE_DISTANCES
from hashbench.cli.export import encode_new
from hashbench.cli.options import (
    DRY_RUN,
    FILE,
    FORCE,
    FORMAT,
    JOBS,
    LOCK_TIMEOUT,
    METRIC,
    PART,
    RESULTS,
    RESUME,
    SOURCE,
    WEIGHTS,
    Chosen,
    chosen_params,
    completing,
    of_grid,
    on_workers,
)

if TYPE_CHECKING:
    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.grid import Job
    from hashbench.pipeline.study import Study


@click.command()
@click.argument("names", nargs=-1, metavar="[DATASET]...", shell_complete=completing("datasets"))
@click.option(
    "--features",
    multiple=True,
    shell_complete=completing("features"),
    help="Kind of features, repeatable, where a dataset offers several.",
)
@SOURCE
@WEIGHTS
@click.option("--image-size", type=click.IntRange(8, 1024), help="Pixels that images are resized to for features.")
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True)
@click.option("--from", "items", help="Your own file (.npy .npz .mat .pt .parquet .csv .hdf5, FILE:KEY) or folder.")
@click.option("--name", help="What to call your own dataset.")
@click.option("--labels", help="File of its labels: classes (n,) or multi-hot.")
@click.option("--query-from", "query_items", help="File of its queries; by default they are drawn.")
@click.option("--query-labels", help="File of their labels.")
@click.option(
    "--affinity",
    "rule",
    type=click.Choice(OWN_RULES),
    help="By default by the labels.",
)
@click.option("--neighbours", type=click.IntRange(1), help="Nearest database items of each query that are relevant.")
@click.option(
    "--true-distance",
    type=click.Choice(TRUE_DISTANCES),
    help="What the features are compared by. [euclidean]",
)
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Queries to draw. [a tenth, up to 1,000]")
@click.option("--train", "n_train", type=click.IntRange(1), help="Training items to draw. [the whole database]")
@click.option("--queries-per-label", type=click.IntRange(1), help="Queries to draw for each label.")
@click.option("--train-per-label", type=click.IntRange(1), help="Training items to draw for each label.")
@click.option("--train-index", help="File of the training items: row numbers of the database, the first 0.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of the drawing.")
@click.option("--skip-bad-images", is_flag=True, help="Leave out images that cannot be decoded, and count them.")
@click.option(
    "--unseen-classes",
    "n_unseen",
    type=click.IntRange(1),
    help="Classes that training does not see; makes a dataset NAME-unseenN-foldK.",
)
@click.option("--fold", type=click.IntRange(0), default=0, show_default=True, help="Which classes; folds share none.")
@click.option(
    "--unseen-queries",
    type=click.Choice(CLASSES_OF),
    default="unseen",
    show_default=True,
    help="Of which classes the queries are.",
)
@click.option(
    "--unseen-database",
    type=click.Choice(CLASSES_OF),
    default="unseen",
    show_default=True,
    help="Of which classes the database is.",
)
@FORCE
@LOCK_TIMEOUT
def prepare(
    names: tuple[str, ...],
    features: tuple[str, ...],
    source: Path | None,
    weights: Path | None,
    image_size: int | None,
    device: str,
    items: str | None,
    name: str | None,
    n_unseen: int | None,
    fold: int,
    unseen_queries: str,
    unseen_database: str,
    force: bool,
    **own: Any,
) -> None:
    """Make datasets ready: fixed split, affinity rule and fingerprint in one HDF5 file each.

    \b
    hashbench prepare cifar10-s1 --features gist
    hashbench prepare cifar10-s1 --unseen-classes 3 --fold 0
    hashbench prepare --from features.npy --labels labels.npy --name mydata
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.adapter import Options, OwnData
    from hashbench.cli import console
    from hashbench.unseen import UnseenClasses

    if (items is None) != (name is None) or (items is None) == (not names):
        raise click.UsageError("name datasets to prepare, or give your own with both --from and --name.")
    context = click.get_current_context()

    def is_given(key: str) -> bool:
        return context.get_parameter_source(key) is not ParameterSource.DEFAULT

    if items is None and any(map(is_given, own)):
        raise click.UsageError(
            "--labels, --affinity, --neighbours, --true-distance, --seed, how many to draw, --train-index and "
            "--skip-bad-images are for your own data (--from)."
        )
    if items is not None and len(features) > 1:
        raise click.UsageError("your own data have one kind of features under a name; give --features once.")
    if n_unseen is not None and items is not None:
        raise click.UsageError("prepare your own data first, and name them then: NAME --unseen-classes N.")
    protocol = None if n_unseen is None else UnseenClasses(n_unseen, fold, unseen_queries, unseen_database)
    if protocol is None and any(is_given(key) for key in ("fold", "unseen_queries", "unseen_database")):
        raise click.UsageError("--fold, --unseen-queries and --unseen-database go with --unseen-classes.")
    if protocol:
        names = tuple(protocol.name_of(spec) for spec in names)
    options = Options(source=source, weights=weights, image_size=image_size, device=device)
    mine = None if items is None or name is None else OwnData(name=name, items=items, **own)
    for text in console.prepare_all(names, features, options, mine, force=force):
        click.echo(text)


@click.command()
@of_grid
@FORCE
@RESUME
@JOBS
@PART
@DRY_RUN
@click.option("--keep-model", is_flag=True, help="Keep each fitted method beside its codes, and print that file too.")
@click.option("--model", type=FILE, help="Fit nothing: encode new items with a method that was kept.")
@click.option("--from", "items", help="New items for --model: FILE or FILE:KEY, as prepare reads them.")
@click.option("--output", type=FILE, help="The .npy file for their codes: bool, (n, bits).")
@click.option("--packed", is_flag=True, help="Eight bits a byte there, the first one the least significant.")
def encode(
    chosen: Chosen,
    force: bool,
    resume: bool,
    n_jobs: int,
    part: tuple[int, int] | None,
    dry_run: bool,
    keep_model: bool,
    model: Path | None,
    items: str | None,
    output: Path | None,
    packed: bool,
) -> None:
    """Fit methods and write the codes of queries and database; prints the files.

    \b
    hashbench encode --method itq --bits 32 --keep-model
    hashbench encode --model itq-32-s0.model.npz --from new.npy --output codes.npy
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli import console
    from hashbench.pipeline.runner import Demands, in_order, remaining

    if model is not None:
        if items is None or output is None:
            raise click.UsageError("--model goes with --from, the new items, and --output, a file for their codes.")
        if output.suffix.lower() != ".npy":
            raise click.UsageError(f"--output {output} is written in NumPy's format; give it a name that ends in .npy.")
        encode_new(model, items, output, packed=packed, device=_only_device({"model", "items", "output", "packed"}))
        return
    if items is not None or output is not None or packed:
        raise click.UsageError("--from, --output and --packed are for new items; name a kept --model to encode them.")
    jobs, demands = _jobs_of(chosen.study(), part), Demands(force, resume, keep_model)
    if dry_run:
        _tell_plan(jobs, remaining(jobs, (), demands))
        return
    outcomes = []
    try:
        for outcome in console.run_jobs(jobs, (), demands, n_jobs):
            outcomes.append(outcome)
    finally:  # the files are listed when the bar is gone
        for outcome in in_order(outcomes, jobs):
            click.echo("\n".join(str(path) for path in (outcome.codes, outcome.model) if path))


@click.command()
@of_grid
@METRIC
@click.option(
    "--available",
    is_flag=True,
    help="Also on all known datasets that are prepared; see `hashbench list missing` for the others.",
)
@RESULTS
@FORCE
@RESUME
@JOBS
@on_workers
@PART
@DRY_RUN
@FORMAT
def run(
    chosen: Chosen,
    metrics: tuple[str, ...],
    available: bool,
    results: Path,
    force: bool,
    resume: bool,
    n_jobs: int,
    cluster: "Cluster | None",
    part: tuple[int, int] | None,
    dry_run: bool,
    form: str,
) -> None:
    """Prepare, encode and score, whatever of it is not done yet; each combination of options is one job."""
    from hashbench.cli import console
    from hashbench.pipeline.preparation import find_prepared, results_name
    from hashbench.pipeline.runner import Demands, in_order, remaining
    from hashbench.pipeline.study import DEFAULT_DATASETS
    from hashbench.scoring.evaluation import DEFAULT_METRICS
    from hashbench.store.results import check_files, check_folder, merge_rows

    if cluster is not None and n_jobs != 1:
        raise click.UsageError("--workers runs one job on each worker; leave --jobs out.")
    study = chosen.study(metrics)
    if available and part:
        raise click.UsageError("--available depends on the machine, --part must not. Name the datasets.")
    if available:
        study = replace(study, datasets=(*(study.datasets or DEFAULT_DATASETS), *find_prepared()[0]))
    jobs, metrics, demands = _jobs_of(study, part), study.metrics or DEFAULT_METRICS, Demands(force, resume)
    for spec in dict.fromkeys(job.dataset for job in jobs):  # a file that cannot be added to is told before any work
        check_folder(results, results_name(spec))
    if dry_run:
        _tell_plan(jobs, remaining(jobs, metrics, demands, results))
        return
    methods = dict.fromkeys(job.method for job in jobs)
    for spec in dict.fromkeys(job.dataset for job in jobs):
        check_files(results, results_name(spec), methods)
    outcomes, written = [], dict[Path, None]()
    try:
        for outcome in console.run_jobs(jobs, metrics, demands, n_jobs, cluster):
            written |= dict.fromkeys(path.parent for path in merge_rows(results, outcome.rows, outcome.made))
            outcomes.append(outcome)
    finally:  # what is done is told, whatever stops the rest
        if outcomes:
            click.echo(console.format_outcomes(in_order(outcomes, jobs), form, is_grid=len(jobs) > 1))
            if _is_watched():  # of a script the last line is what went wrong, if anything did
                click.echo(f"Rows are in {', '.join(map(str, written))}.", err=True)


def _is_watched() -> bool:
    return sys.stderr.isatty()


def _jobs_of(study: "Study", part: tuple[int, int] | None) -> list["Job"]:
    """Give the jobs of a study or of one of its parts, and tell which part that is."""
    from hashbench.pipeline.grid import part_of

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        jobs = study.jobs()
    for warning in told:
        click.echo(str(warning.message), err=True)
    if part is None:
        return jobs
    mine = part_of(jobs, *part)
    click.echo(f"part {part[0]} of {part[1]}: {len(mine):,} of {len(jobs):,} jobs", err=True)
    return mine


def _only_device(others: set[str]) -> str | None:
    """Give what --device says; a usage error if options but that and others are set, which have no effect."""
    context = click.get_current_context()
    device = None
    for option in context.command.params:
        if option.name in others or context.get_parameter_source(option.name or "") is ParameterSource.DEFAULT:
            continue
        if option.name != "device":
            raise click.UsageError(f"{option.opts[0]} has no effect with --model, which is fitted; leave it out.")
        device = chosen_params(())[0].partition("=")[2]
    return device


def _tell_plan(jobs: Sequence["Job"], remaining: Iterable[str]) -> None:
    """Tell of each job what of it remains, and of all how many are done."""
    n_done = 0
    for job, steps in zip(jobs, remaining, strict=True):
        n_done += not steps
        click.echo(f"{job}: {steps or 'done'}")
    click.echo(f"{n_done:,} of {len(jobs):,} jobs done, {len(jobs) - n_done:,} to do.")
