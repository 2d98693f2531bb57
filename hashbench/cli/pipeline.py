"""The commands from a dataset to codes and rows: prepare, encode, export, run."""

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click import Choice, IntRange
from cloup import option, option_group

from hashbench._choices import (
    CLASSES_OF,
    CODES_TARGETS,
    DEVICES,
    LEAVE_OUT,
    MODEL_TARGETS,
    NEIGHBOUR_TIES,
    OWN_RULES,
    PRECISIONS,
    TRUE_DISTANCES,
)
from hashbench.cli import options
from hashbench.cli.outputs import echo, refuse_outputs
from hashbench.errors import counted

if TYPE_CHECKING:
    from hashbench.adapter import Options, OwnData
    from hashbench.dataset import Dataset
    from hashbench.pipeline.grid import Job
    from hashbench.pipeline.study import Study

_COUNT = IntRange(1)
_TARGETS = sorted({*MODEL_TARGETS, *CODES_TARGETS})


@cloup.command()
@click.argument("names", nargs=-1, metavar="[DATASET]...", shell_complete=options.completing("datasets"))
@option_group(
    "What to prepare",
    options.several("--dataset", names="datasets", help="Dataset to prepare, repeatable; the same as DATASET."),
)
@option_group(
    "Features",
    options.several("--features", names="features", help="Kind of features, where a dataset has several; repeatable."),
    options.SOURCE,
    options.WEIGHTS,
    option("--image-size", type=IntRange(8, 1024), help="Side in pixels to which images are resized."),
    option("--device", type=Choice(DEVICES), default="auto", help="Where to compute features."),
)
@option_group(
    "Your own dataset",
    option(
        "--from",
        "items",
        type=options.ARRAY,
        metavar="FILE[:KEY]|FOLDER",
        help="Items: a file of features (.npy, .npz, .parquet, .csv, .fvecs, .fbin and others), texts in .txt, or a "
        "folder of images.",
    ),
    option("--name", metavar="NAME", help="Name of the dataset."),
    option("--labels", type=options.ARRAY, help="Labels of the items: classes (n,) or multi-hot."),
    option(
        "--query-from",
        "query_items",
        type=options.ARRAY,
        metavar="FILE[:KEY]|FOLDER",
        show_default="drawn",
        help="Query items.",
    ),
    option("--query-labels", type=options.ARRAY, help="Labels of the queries."),
    option("--affinity", "rule", type=Choice(OWN_RULES), show_default="as the labels allow", help="Rule of relevance."),
    option("--neighbours", type=_COUNT, help="Number of nearest database items that are relevant to a query."),
    option(
        "--neighbour-ties",
        type=Choice(NEIGHBOUR_TIES),
        default=NEIGHBOUR_TIES[0],
        help="Which items as near as the last neighbour are relevant: the first in the database, or all.",
    ),
    option("--true-distance", type=Choice(TRUE_DISTANCES), show_default="euclidean", help="Distance between features."),
    option(
        "--dimensions",
        type=_COUNT,
        show_default="all",
        help="Number of dimensions that methods get, the first ones, as of truncated embeddings. Neighbours are those "
        "by all dimensions.",
    ),
    option("--queries", "n_queries", type=_COUNT, show_default="a tenth, up to 1,000", help="Queries to draw."),
    option("--train", "n_train", type=_COUNT, show_default="the whole database", help="Training items to draw."),
    option("--queries-per-label", type=_COUNT, help="Queries to draw for each label."),
    option("--train-per-label", type=_COUNT, help="Training items to draw for each label."),
    option("--train-index", type=options.ARRAY, help="Row numbers of the training items in the database, from 0."),
    option("--seed", type=options.SEEDS, default=0, help="Seed for drawing queries and training items."),
    option("--skip-bad-images", is_flag=True, help="Leave out images that cannot be decoded, and count them."),
    option(
        "--leave-out",
        type=Choice(LEAVE_OUT),
        multiple=True,
        help="What to leave out: duplicates (queries that equal or nearly equal database or training items), zeros "
        "(items whose features are all zero); repeatable.",
    ),
    constraint=options.OnlyWith("--from"),
)
@option_group(
    "Unseen classes",
    option(
        "--unseen-classes",
        "n_unseen",
        type=_COUNT,
        help="Number of classes to exclude from training; makes the dataset NAME-unseenN-foldK.",
    ),
    option("--fold", type=IntRange(0), default=0, help="Which classes are unseen; folds share none."),
    option("--unseen-queries", type=Choice(CLASSES_OF), default="unseen", help="Classes of the queries."),
    option("--unseen-database", type=Choice(CLASSES_OF), default="unseen", help="Classes of the database."),
    constraint=options.OnlyWith("--unseen-classes"),
)
@option_group("How to run", options.FORCE, options.LOCK_TIMEOUT)
def prepare(
    names: tuple[str, ...],
    datasets: tuple[str, ...],
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
    """Prepare datasets: fixed split, affinity rule and fingerprint in one HDF5 file each.

    \b
    hashbench prepare cifar10-s1 --features gist
    hashbench prepare cifar10-s1 --unseen-classes 3 --fold 0
    hashbench prepare --from features.npy --labels labels.npy --name mydata
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.adapter import Options, OwnData
    from hashbench.cli.descriptions import describe_dataset
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline import preparation
    from hashbench.sources.inspection import WARNING
    from hashbench.unseen import UnseenClasses

    names += datasets
    if (items is None) != (name is None) or (items is None) == (not names):
        raise click.UsageError("name datasets to prepare, or give your own with both --from and --name.")
    if items is not None and len(features) > 1:
        raise click.UsageError("your own dataset has one kind of features. Give --features once.")
    if n_unseen is not None:
        if items is not None:
            raise click.UsageError("prepare your own data first, then run: hashbench prepare NAME --unseen-classes N.")
        protocol = UnseenClasses(n_unseen, fold, unseen_queries, unseen_database)
        names = tuple(protocol.name_of(spec) for spec in names)
    with ProgressBar() as progress:
        choices = Options(None, source, weights, image_size, device, on_progress=progress.update)
        prepared: Iterable[tuple[Dataset, Path, str]]
        if items is None or name is None:
            specs = [f"{dataset}:{kind}" if kind else dataset for dataset in names for kind in features or [""]]
            prepared = (preparation.prepare(spec, choices, force=force) for spec in specs)
        else:
            choices = replace(choices, features=next(iter(features), None))
            prepared = [(*preparation.prepare_own(OwnData(name=name, items=items, **own), choices), "prepared")]
        for dataset, path, action in prepared:
            if WARNING in dataset.about:
                progress.print(f"Warning: in {dataset.name}, {dataset.about[WARNING]}")
            echo(f"{action or 'reused'} {path}\n{describe_dataset(dataset)}")


@cloup.command()
@option_group("What to encode", *options.JOB_OPTIONS, constraint=options.NotWith("--model"))
@options.TRAINING
@option_group("How to run", options.JOBS, options.PART, options.FORCE, options.DRY_RUN, options.LOCK_TIMEOUT)
@option_group(
    "Models",
    options.KEEP_MODEL,
    option("--model", type=options.FILE, help="Saved model to encode new items with; nothing is fitted."),
)
@option_group(
    "New items",
    option(
        "--from",
        "items",
        type=options.ARRAY,
        metavar="FILE[:KEY]|FOLDER",
        help="Items to encode: a file, or a folder of images.",
    ),
    option("--output", "-o", type=options.FILE, help="File for their codes: .npy, bool of shape (n, bits)."),
    option("--packed", is_flag=True, help="Pack eight bits into a byte, least significant bit first."),
    constraint=options.OnlyWith("--model"),
)
@cloup.constraint(
    options.NotWith("--model"),
    ["validation", "resume", "n_jobs", "part", "force", "dry_run", "lock_timeout", "keep_model"],
)
def encode(
    resume: bool,
    n_jobs: int,
    part: tuple[int, int] | None,
    force: bool,
    dry_run: bool,
    keep_model: bool,
    model: Path | None,
    items: str | None,
    output: Path | None,
    packed: bool,
    **grid: Any,
) -> None:
    """Fit methods, write the codes of queries and database, and print the paths.

    \b
    hashbench encode --method itq --bits 32 --keep-model
    hashbench encode --model itq-32-s0.model.h5 --from new.npy --output codes.npy
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.exporting import encode_items
    from hashbench.pipeline.one_job import remaining
    from hashbench.pipeline.runner import in_order
    from hashbench.pipeline.steps import Demands
    from hashbench.sources.array_files import split_spec

    if model is not None:
        if items is None or output is None:
            raise click.UsageError("--model goes with --from, the new items, and --output, a file for their codes.")
        if output.suffix.lower() != ".npy":
            raise click.UsageError(f"--output {output} is written in NumPy's format; give it a name that ends in .npy.")
        refuse_outputs({"--output": output}, [model, split_spec(items)[0]])
        with ProgressBar() as progress:
            n_items, n_bits = encode_items(
                model, items, output, packed=packed, device=grid["device"], on_progress=progress.update
            )
        echo(
            f"wrote {output}: codes of {counted(n_items, 'item')}, {counted(n_bits, 'bit')}{', packed' * packed}"
            f"{', in the order of their paths' * split_spec(items)[0].is_dir()}."
        )
        return
    study = options.study_of(**grid)
    jobs, demands = _jobs_of(study, part), Demands((), force, resume, keep_model)
    if dry_run:
        _print_plan(jobs, remaining(jobs, demands, unprepared=study.unprepared()))
        return
    _prepare_own(study.unprepared())
    outcomes = []
    try:
        for outcome in console.run_jobs(jobs, demands, n_jobs):
            outcomes.append(outcome)
    finally:  # the files are listed when the bar is gone
        for outcome in in_order(outcomes, jobs):
            echo("\n".join(str(path) for path in (outcome.codes, outcome.model) if path))


@click.command()
@click.argument("file", type=options.FILE)
@option("--to", "target", type=options.Word(_TARGETS), required=True, help="Program or format to write for.")
@option("--output", "-o", type=options.FILE, required=True, help="File to write.")
@option("--role", type=Choice(["database", "query"]), show_default="database", help="Codes to write.")
@option("--precision", type=Choice(PRECISIONS), show_default="float64", help="Precision of numbers in onnx and npz.")
@option(
    "--from",
    "items",
    type=options.ARRAY,
    metavar="FILE[:KEY]|FOLDER",
    show_default="1,000 of the model's dataset",
    help="Items to compare codes on: a file, or a folder of images.",
)
def export(file: Path, target: str, output: Path, role: str | None, precision: str | None, items: str | None) -> None:
    """Write a saved model (faiss, npz, onnx) or a codes file (faiss, hex, npy, pgvector, usearch) for other programs.

    The program's own library reads the file back, and the bits that differ are counted.

    \b
    hashbench encode --method itq --bits 32 --keep-model
    hashbench export ~/.cache/hashbench/codes/digits/itq-32-s0.model.h5 --to onnx --output itq.onnx
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.pipeline import exporting

    refuse_outputs({"--output": output}, exporting.inputs_of(file, items))
    report = exporting.export(file, target, output, role=role, precision=precision, items=items)
    echo(
        f"wrote {output}. Of {counted(report.n_items, 'item')}, read by {report.reader}, {report.n_differing:,} of "
        f"{report.n_items * report.n_bits:,} bits differ."
    )


@cloup.command()
@option_group("What to run", *options.JOB_OPTIONS, options.METRIC)
@options.TRAINING
@option_group("How to run", options.JOBS, options.PART, options.FORCE, options.DRY_RUN, options.LOCK_TIMEOUT)
@option_group(
    "Output", options.RESULTS, options.output_format("table", "csv", "json"), options.INTERVAL, options.KEEP_MODEL
)
def run(
    metrics: tuple[str, ...],
    resume: bool,
    n_jobs: int,
    part: tuple[int, int] | None,
    force: bool,
    dry_run: bool,
    results: Path,
    form: str,
    interval: bool,
    keep_model: bool,
    **grid: Any,
) -> None:
    """Prepare, encode and score; finished steps are skipped. Each combination of options is one job."""
    from hashbench.cli import console
    from hashbench.pipeline.one_job import remaining, write_rows
    from hashbench.pipeline.preparation import results_name
    from hashbench.pipeline.runner import in_order
    from hashbench.pipeline.steps import Demands
    from hashbench.scoring.evaluation import DEFAULT_METRICS
    from hashbench.store.results import check_folder

    cluster = options.cluster()
    if cluster is not None and n_jobs != 1:
        raise click.UsageError("`hashbench on` runs one job on each worker; leave --jobs out.")
    study = options.study_of(metrics, **grid)
    jobs, demands = _jobs_of(study, part), Demands(study.metrics or DEFAULT_METRICS, force, resume, keep_model)
    names = [results_name(spec) for spec in dict.fromkeys(job.dataset for job in jobs)]
    versions = {job.method: job.card.version for job in jobs}
    for name in names:  # before any work
        check_folder(results, name, versions)
    if dry_run:
        _print_plan(jobs, remaining(jobs, demands, results, study.unprepared(results)))
        return
    _prepare_own(study.unprepared(results))
    outcomes, folders, notes = [], dict[Path, None](), []
    try:
        for outcome in console.run_jobs(jobs, demands, n_jobs, cluster):
            files, note = write_rows(results, outcome)
            folders |= dict.fromkeys(path.parent for path in files)
            notes += [note] if note else []
            outcomes.append(outcome)
    finally:  # finished jobs are shown, whatever stops the rest
        for hint in dict.fromkeys([*notes, *(hint for outcome in outcomes for hint in outcome.hints)]):
            click.echo(hint, err=True)
        if outcomes:
            shown = console.outcome_records(in_order(outcomes, jobs), is_grid=len(jobs) > 1, with_interval=interval)
            echo(shown.to_text(form))
            if _is_watched():  # in a script the last line is the error, if there is one
                click.echo(f"Rows are in {', '.join(map(str, folders))}.", err=True)


def _prepare_own(datasets: "Mapping[str, tuple[OwnData, Options]]") -> None:
    """Prepare the user's datasets that a grid file or a recipe describes."""
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.preparation import prepare_own

    for own, choices in datasets.values():
        with ProgressBar() as progress:
            _, path = prepare_own(own, replace(choices, on_progress=progress.update))
        click.echo(f"prepared {path}", err=True)


def _is_watched() -> bool:
    return sys.stderr.isatty()


def _jobs_of(study: "Study", part: tuple[int, int] | None) -> list["Job"]:
    """Return the jobs of a study or of one of its parts; print which part."""
    from hashbench.pipeline.grid import part_of

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jobs = study.jobs()
    for warning in caught:
        click.echo(str(warning.message), err=True)
    if part is None:
        return jobs
    jobs_of_part = part_of(jobs, *part)
    click.echo(f"part {part[0]} of {part[1]}: {len(jobs_of_part):,} of {len(jobs):,} jobs", err=True)
    return jobs_of_part


def _print_plan(jobs: Sequence["Job"], remaining: Iterable[str]) -> None:
    """Print what remains of each job, and how many are done."""
    n_done = 0
    for job, steps in zip(jobs, remaining, strict=True):
        n_done += not steps
        echo(f"{job}: {steps or 'done'}")
    echo(f"{n_done:,} of {len(jobs):,} jobs done, {len(jobs) - n_done:,} to do.")
