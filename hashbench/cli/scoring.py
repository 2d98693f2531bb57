"""The command that scores codes of any origin: evaluate."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import click
from click.core import ParameterSource

from hashbench._choices import BIT_ORDERS, DISTANCES, TRUE_DISTANCES, UNDEFINED
from hashbench.cli.options import FILE, METRIC, OUTPUT, RESULTS, completing, on_workers
from hashbench.cli.outputs import FIGURES, STDOUT, Drawn, place, refuse_outputs, write, write_drawn

if TYPE_CHECKING:
    import pandas as pd

    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.own_codes import OwnCodes
    from hashbench.scoring.evaluation import Evaluation
    from hashbench.scoring.shards import ShardedCodes


class _Array(click.ParamType[str]):
    """A file with an array, and perhaps which of it."""

    name = "FILE[:KEY]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "":
            self.fail("an empty name is no file.", param, ctx)
        return str(value)


_ARRAY = _Array()
_OF_RUNS = ("run", "qrels", "complete", "metrics", "undefined", "random_orders", "form", "per_query")
_NO_FILES = ("n_bits", "bit_order", "distance", "true_distance")  # of the options on one's own codes


_OWN_CODES = (
    click.option(
        "--dataset",
        metavar="DATASET",
        shell_complete=completing("datasets"),
        help="Name or file of the dataset that codes were made from, by default as CODES says; its labels judge your "
        "own. Labels or an affinity given beside it must say the same.",
    ),
    click.option(
        "--query-codes",
        type=_ARRAY,
        help="Your own, in .npy, .npz, .mat, .h5, .pt, .parquet or .csv: bits, packed bytes with --bits, hexadecimal "
        "texts, or integers of 64 bits.",
    ),
    click.option(
        "--database-codes",
        type=_ARRAY,
        help="The same for the database. It may lie in shards, and so may its labels: a quoted pattern such as "
        "'codes-*.npy', or a .json or .toml file that lists them.",
    ),
    click.option(
        "--bit-order",
        type=click.Choice(BIT_ORDERS),
        help="First bit of a packed byte: the least significant or the most. [little; of int8 big]",
    ),
    click.option("--query-labels", type=_ARRAY, help="Class labels (n,) or multi-hot (n, n_classes)."),
    click.option("--database-labels", type=_ARRAY, help="The same for the database."),
    click.option("--query-coarse", type=_ARRAY, help="Superclasses (n,): level 2 in the class, 1 in the superclass."),
    click.option("--database-coarse", type=_ARRAY, help="The same for the database."),
    click.option("--affinity", type=_ARRAY, help="Instead of labels: matrix of levels, or .npz SciPy CSR."),
)


_BITS = click.option("--bits", "n_bits", type=int, help="Code length of packed codes.")


def own_codes(command: Callable[..., Any], bits: Callable[..., Any] = _BITS) -> Callable[..., Any]:
    """Give a command CODES.h5, or the options that say where one's own codes are and what is relevant to them."""
    for option in reversed((*_OWN_CODES, bits)):
        command = option(command)
    return click.argument("codes", type=FILE, required=False)(command)


def are_of_a_file(codes: Path | None, own: dict[str, Any]) -> TypeGuard[Path]:
    """Tell CODES.h5 from the user's own codes; a usage error if both are given, or neither."""
    if codes is not None and any(value is not None for value in own.values()):
        raise click.UsageError("give either CODES.h5 or your own --query-codes and --database-codes, not both.")
    if codes is None and (own["query_codes"] is None or own["database_codes"] is None):
        raise click.UsageError("give CODES.h5, or both --query-codes and --database-codes.")
    return codes is not None


@click.command()
@own_codes
@click.option(
    "--distance",
    type=click.Choice(DISTANCES),
    help="How to rank your own; cosine and dot take real-valued outputs, before the sign. [hamming]",
)
@click.option(
    "--query-vectors", type=_ARRAY, help="Float vectors that were coded, for Recall@10:reranked=100 and its like."
)
@click.option("--database-vectors", type=_ARRAY, help="The same for the database.")
@click.option("--true-distance", type=click.Choice(TRUE_DISTANCES), help="Of these vectors. [euclidean]")
@click.option(
    "--run", type=FILE, help="Instead of codes: lists of documents by score, as TREC writes them, plain or gzip."
)
@click.option("--qrels", type=FILE, help="With --run: which documents are relevant to a query, as TREC writes them.")
@click.option(
    "--complete", is_flag=True, help="Count queries that --qrels has and --run lacks as 0, like trec_eval -c."
)
@METRIC
@click.option(
    "--undefined",
    type=click.Choice(UNDEFINED),
    default="skip",
    show_default=True,
    help="Queries without relevant items: leave out, or count AP 0 and NDCG 1.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "markdown", "latex"]),
    default="table",
    show_default=True,
)
@click.option(
    "--random-orders",
    type=click.IntRange(2),
    help="Also score so many random orders of the database, or of the documents of a run, the same each time, and "
    "print the deviation they show.",
)
@click.option("--per-query", type=OUTPUT, help="Also write every query's scores to this CSV file; - for stdout.")
@click.option(
    "--curves",
    type=Drawn(or_numbers=True),
    help="Also write precision and recall, with low and high over tie orders, at each Hamming radius and at up to 50 "
    "ranks from 1 to all, to this CSV file, - for stdout; or draw those by rank: .svg, .png or .pdf.",
)
@click.option(
    "--save",
    metavar="NAME",
    help="Add rows of your own codes to the results, under this name; --dataset may then be a new name.",
)
@click.option("--group", help="Group of tables to save your codes in, such as pair-based. [after all groups]")
@click.option("--label", help="What tables and figures call your saved codes. [NAME codes=own]")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="Of the rows: which of several trainings. [0]"
)
@click.option("--keep-codes", is_flag=True, help="Keep the codes in the data folder, too, for figures of codes.")
@RESULTS
@on_workers
def evaluate(
    codes: Path | None,
    dataset: str | None,
    run: Path | None,
    qrels: Path | None,
    complete: bool,
    metrics: tuple[str, ...],
    undefined: str,
    random_orders: int | None,
    form: str,
    per_query: Path | None,
    curves: Path | None,
    save: str | None,
    group: str | None,
    label: str | None,
    seed: int,
    keep_codes: bool,
    results: Path,
    cluster: "Cluster | None",
    **own: Any,
) -> None:
    """Score CODES.h5, your own codes, or a run of any origin, exactly over all tie orders.

    \b
    hashbench evaluate --query-codes q.npy --database-codes d.npy --query-labels ql.npy --database-labels dl.npy
    hashbench evaluate --query-codes c.mat:B_test --database-codes c.mat:B_train --dataset digits --save mine
    hashbench evaluate --run run.txt --qrels qrels.txt
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli import console
    from hashbench.cli.progress import Progress
    from hashbench.scoring.compilation import telling_of_compilation
    from hashbench.scoring.curves import curve_metrics, lay_out
    from hashbench.scoring.evaluation import DEFAULT_METRICS, RUN_METRICS
    from hashbench.scoring.shards import ShardedCodes

    outputs, progress = {"--per-query": per_query, "--curves": curves}, Progress()
    is_sharded = False
    shown = {key: value for key, value in (("group", group), ("label", label)) if value is not None}
    if save is None:
        _refuse_options_of_saving()
    if run is not None or qrels is not None or complete:
        score, metrics = _of_run(run, qrels, complete, undefined, outputs), metrics or RUN_METRICS
    elif are_of_a_file(codes, {**own, "save": save}):
        if cluster is not None:
            raise click.UsageError("--workers count codes of your own, of which many fit into no memory; leave it out.")
        score, sizes = _of_file(codes, dataset, undefined, outputs)
    else:
        sharding = {"cluster": cluster, "on_progress": progress.tell}
        how = {"undefined": undefined, "keep_codes": keep_codes, "shown": shown}
        mine: Any = _read_own(own, dataset, save, outputs, sharding, how)
        mine.check_metrics(metrics or DEFAULT_METRICS)
        is_sharded = isinstance(mine, ShardedCodes)
        sizes = mine.n_bits, len(mine.database)
        score = partial(mine.evaluate, undefined=undefined)
        if save is not None:
            saved = mine.saved_files(save, results, str(dataset), seed=seed, keep_codes=keep_codes)
            refuse_outputs({**outputs, **saved}, files_of(own, dataset))
    orders: dict[str, Any] = {} if random_orders is None else {"random_orders": random_orders}
    if random_orders is not None and run is None and not is_sharded:
        orders["on_progress"] = progress.tell  # it takes long
    with progress, telling_of_compilation(lambda what, *_: click.echo(f"{what} ...", err=True)):
        evaluation = score(metrics or DEFAULT_METRICS, **orders)
    for note in evaluation.notes:
        click.echo(note, err=True)
    if save is not None:
        for told in mine.save(save, evaluation, results, str(dataset), seed=seed, keep_codes=keep_codes, shown=shown):
            click.echo(told, err=True)
    if per_query is not None:
        write(per_query, evaluation.per_query.to_csv(index=False, lineterminator="\n"))
    if curves is not None:
        points = lay_out(score(curve_metrics(*sizes, by_radius=own["distance"] in (None, "hamming"))))
        _write_curves(curves, points, label or save or (codes.stem if codes else "codes"), sizes)
    is_taken = any(path is not None and place(path) == STDOUT for path in outputs.values())
    click.echo(console.format_evaluation(evaluation, form, "documents" if run else "database"), err=is_taken)


def _refuse_options_of_saving() -> None:
    """Refuse options that say how to save, where nothing is saved."""
    context = click.get_current_context()
    for key in ("group", "label", "seed", "keep_codes", "results"):
        if context.get_parameter_source(key) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{key.replace('_', '-')} goes with --save NAME.")


def _of_file(
    codes: Path, dataset: str | None, undefined: str, outputs: Mapping[str, Path | None]
) -> tuple[Callable[..., "Evaluation"], tuple[int, int]]:
    """Give what scores a codes file of ours, with its code length and the size of its database."""
    from hashbench.pipeline import own_codes, preparation, steps

    dataset, sizes = own_codes.made_from(codes, dataset)
    refuse_outputs(outputs, [codes, *_dataset_files(dataset)])
    loaded, _ = preparation.load_dataset(dataset)
    return partial(steps.score, loaded, codes, undefined=undefined), sizes


def _read_own(
    own: dict[str, Any],
    dataset: str | None,
    save: str | None,
    outputs: Mapping[str, Path | None],
    sharding: dict[str, Any],
    saving: dict[str, Any],
) -> "OwnCodes | ShardedCodes":
    """Read a user's own codes, once nothing speaks against scoring and saving them."""
    from hashbench.pipeline import own_codes, sharded_codes

    judges = dataset is not None and (save is None or own_codes.names_dataset(dataset))  # else it names a file of rows
    has_own = any(own[key] is not None for key in ("query_labels", "database_labels", "affinity"))
    is_labelled = has_own and not judges
    shards = sharded_codes.shards_of(**own)
    scheduler = sharding["cluster"] and Path(sharding["cluster"].scheduler)
    refuse_outputs(outputs, [*files_of(own, dataset), *filter(None, [scheduler])])
    how = {**own, "distance": own["distance"] or "hamming", "dataset": None if is_labelled else dataset}
    if shards or sharding["cluster"] is not None:
        if save is not None:
            raise click.UsageError(
                "--save keeps what was scored in one file, on one machine; leave it out, or shards and --workers."
            )
        read: Callable[..., OwnCodes | ShardedCodes] = partial(sharded_codes.read_sharded, **sharding)
    else:
        read = own_codes.read_own
    if save is not None:
        own_codes.check_saving(save, dataset, is_labelled=is_labelled, distance=how["distance"], **saving)
    mine = read(**how)
    if judges and not has_own:
        click.echo(
            f"Codes are taken to stand in the order of {dataset}'s split; labels or an affinity of your own beside it "
            "would check that.",
            err=True,
        )
    return mine


def _of_run(
    run: Path | None, qrels: Path | None, complete: bool, undefined: str, outputs: Mapping[str, Path | None]
) -> Callable[..., "Evaluation"]:
    """Give what scores a run."""
    from hashbench.scoring.runs import evaluate_run
    from hashbench.sources.run_files import read_qrels, read_run

    refuse_beside_run(_OF_RUNS)
    if run is None or qrels is None:
        raise click.UsageError("give both --run and --qrels.")
    refuse_outputs(outputs, [run, qrels])
    return partial(evaluate_run, read_run(run), read_qrels(qrels), complete=complete, undefined=undefined)


def refuse_beside_run(allowed: Sequence[str]) -> None:
    """Refuse all other options of the command beside a run."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name not in allowed and context.get_parameter_source(parameter.name) != ParameterSource.DEFAULT:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else "CODES.h5"
            raise click.UsageError(f"{name} does not go with --run, whose lists and --qrels say all; leave it out.")


def files_of_codes(codes: Path, dataset: str | None) -> list[Path]:
    """Tell which files a codes file of ours, and its dataset, are read from."""
    from hashbench.pipeline.own_codes import made_from

    return [codes, *_dataset_files(made_from(codes, dataset)[0])]


def files_of(own: Mapping[str, Any], dataset: str | None) -> list[Path]:
    """Tell which files codes of the user's own, and what judges them, are read from."""
    from hashbench.pipeline.sharded_codes import shards_of
    from hashbench.sources.array_files import split_spec

    given = [value for key, value in own.items() if key not in _NO_FILES and value is not None]
    return [*(split_spec(value)[0] for value in [*given, *shards_of(**own)]), *_dataset_files(dataset)]


def _dataset_files(dataset: str | None) -> list[Path]:
    """Tell which files a dataset may be read from."""
    from hashbench.pipeline.preparation import dataset_path

    return [] if dataset is None else [Path(dataset), dataset_path(dataset)]


def _write_curves(output: Path, points: "pd.DataFrame", name: str, sizes: tuple[int, int]) -> None:
    """Write curves as numbers, or draw them."""
    if output.suffix.lower() not in FIGURES:
        write(output, points.to_csv(index=False, lineterminator="\n"))
        return
    from hashbench.reports.plots.curves_figure import draw_curves

    write_drawn(output, draw_curves(points, name, *sizes))
