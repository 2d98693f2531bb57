"""The command that scores codes of any origin: evaluate."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import click
from click.core import ParameterSource

from hashbench._choices import BIT_ORDERS, DISTANCES, TRUE_DISTANCES, UNDEFINED
from hashbench.cli.options import FILE, METRIC, OUTPUT, RESULTS, File, completing, on_workers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.own_codes import OwnCodes
    from hashbench.scoring.evaluation import Evaluation
    from hashbench.scoring.shards import ShardedCodes

FIGURES = (".svg", ".png", ".pdf")


class _Array(click.ParamType[str]):
    """A file with an array, and perhaps which of it."""

    name = "FILE[:KEY]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "":
            self.fail("an empty name is no file.", param, ctx)
        return str(value)


class Drawn(File):
    """A file of a figure, whose ending says of what kind; or, where it may hold them, of numbers."""

    def __init__(self, *, or_numbers: bool = False) -> None:
        super().__init__(allow_dash=or_numbers)
        self.or_numbers = or_numbers

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: D102
        path: Path = super().convert(value, param, ctx)
        known = (*FIGURES, *(("", ".csv") if self.or_numbers else ()))
        if path.suffix.lower() not in known:
            numbers = ", or in .csv for numbers" if self.or_numbers else ""
            self.fail(f"{str(value)!r} is to end in {', '.join(FIGURES[:-1])} or {FIGURES[-1]}{numbers}.", param, ctx)
        return path


_ARRAY = _Array()
_OF_RUNS = ("run", "qrels", "complete", "metrics", "undefined", "random_orders", "form", "per_query")
_NO_FILES = ("n_bits", "bit_order", "distance", "true_distance")  # of the options on one's own codes


_OWN_CODES = (
    click.option(
        "--dataset",
        metavar="DATASET",
        shell_complete=completing("datasets"),
        help="Name or file of the dataset that codes were made from, by default as CODES says; its labels judge your "
        "own. Labels or an affinity given beside it must say the same. With --save also a new name for data of yours.",
    ),
    click.option(
        "--query-codes",
        type=_ARRAY,
        help="Your own, in .npy, .npz, .mat, .h5, .parquet or .csv: bits, packed bytes with --bits, or hexadecimal "
        "texts.",
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
    help="Also score so many random orders of the database, the same each time, and print the deviation they show.",
)
@click.option("--per-query", type=OUTPUT, help="Also write every query's scores to this CSV file; - for stdout.")
@click.option(
    "--curves",
    type=Drawn(or_numbers=True),
    help="Also write precision and recall, with low and high over tie orders, at each Hamming radius and at up to 50 "
    "ranks from 1 to all, to this CSV file, - for stdout; or draw those by rank: .svg, .png or .pdf.",
)
@click.option("--save", metavar="NAME", help="Add rows of your own codes to the results, under this name.")
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

    outputs, progress = [path for path in (per_query, curves) if path is not None], Progress()
    is_sharded = False
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
        mine: Any = _read_own(own, dataset, save, outputs, sharding, undefined=undefined, keep_codes=keep_codes)
        mine.check_metrics(metrics or DEFAULT_METRICS)
        is_sharded = isinstance(mine, ShardedCodes)
        sizes = mine.n_bits, len(mine.database)
        score = partial(mine.evaluate, undefined=undefined)
    orders: dict[str, Any] = {} if random_orders is None else {"random_orders": random_orders}
    if random_orders is not None and run is None and not is_sharded:
        orders["on_progress"] = progress.tell  # it takes long
    with progress, telling_of_compilation(lambda what, *_: click.echo(f"{what} ...", err=True)):
        evaluation = score(metrics or DEFAULT_METRICS, **orders)
    for note in evaluation.notes:
        click.echo(note, err=True)
    if save is not None:
        for told in mine.save(save, evaluation, results, str(dataset), seed=seed, keep_codes=keep_codes):
            click.echo(told, err=True)
    if per_query is not None:
        _write(per_query, evaluation.per_query.to_csv(index=False, lineterminator="\n"))
    if curves is not None:
        points = lay_out(score(curve_metrics(*sizes, by_radius=own["distance"] in (None, "hamming"))))
        _write_curves(curves, points, save or (codes.stem if codes else "codes"), sizes)
    click.echo(console.format_evaluation(evaluation, form), err=_STDOUT in map(_place, outputs))


def _refuse_options_of_saving() -> None:
    """Refuse options that say how to save, where nothing is saved."""
    context = click.get_current_context()
    for key in ("seed", "keep_codes", "results"):
        if context.get_parameter_source(key) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{key.replace('_', '-')} goes with --save NAME.")


def _of_file(
    codes: Path, dataset: str | None, undefined: str, outputs: Sequence[Path]
) -> tuple[Callable[..., "Evaluation"], tuple[int, int]]:
    """Give what scores a codes file of ours, with its code length and the size of its database."""
    from hashbench.pipeline import own_codes, preparation, steps

    dataset, sizes = own_codes.made_from(codes, dataset)
    _refuse_outputs(outputs, [codes, *_dataset_files(dataset)])
    loaded, _ = preparation.load_dataset(dataset)
    return partial(steps.score, loaded, codes, undefined=undefined), sizes


def _read_own(
    own: dict[str, Any],
    dataset: str | None,
    save: str | None,
    outputs: Sequence[Path],
    sharding: dict[str, Any],
    *,
    undefined: str,
    keep_codes: bool,
) -> "OwnCodes | ShardedCodes":
    """Read a user's own codes, once nothing speaks against scoring and saving them."""
    from hashbench.pipeline import own_codes, sharded_codes
    from hashbench.sources.array_files import split_spec

    judges = dataset is not None and (save is None or own_codes.names_dataset(dataset))  # else it names a file of rows
    has_own = any(own[key] is not None for key in ("query_labels", "database_labels", "affinity"))
    is_labelled = has_own and not judges
    shards = sharded_codes.shards_of(**own)
    given = [value for key, value in own.items() if key not in _NO_FILES and value is not None]
    inputs = [split_spec(value)[0] for value in [*given, *shards]]
    _refuse_outputs(outputs, [*inputs, *_dataset_files(dataset)])
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
        saving = {"distance": how["distance"], "undefined": undefined, "keep_codes": keep_codes}
        own_codes.check_saving(save, dataset, is_labelled=is_labelled, **saving)
    mine = read(**how)
    if judges and not has_own:
        click.echo(
            f"Codes are taken to stand in the order of {dataset}'s split; labels or an affinity of your own beside it "
            "would check that.",
            err=True,
        )
    return mine


def _of_run(
    run: Path | None, qrels: Path | None, complete: bool, undefined: str, outputs: Sequence[Path]
) -> Callable[..., "Evaluation"]:
    """Give what scores a run."""
    from hashbench.scoring.runs import evaluate_run
    from hashbench.sources.run_files import read_qrels, read_run

    refuse_beside_run(_OF_RUNS)
    if run is None or qrels is None:
        raise click.UsageError("give both --run and --qrels.")
    _refuse_outputs(outputs, [run, qrels])
    return partial(evaluate_run, read_run(run), read_qrels(qrels), complete=complete, undefined=undefined)


def refuse_beside_run(allowed: Sequence[str]) -> None:
    """Refuse all other options of the command beside a run."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name not in allowed and context.get_parameter_source(parameter.name) != ParameterSource.DEFAULT:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else "CODES.h5"
            raise click.UsageError(f"{name} does not go with --run, whose lists and --qrels say all; leave it out.")


def _dataset_files(dataset: str | None) -> list[Path]:
    """Tell which files a dataset may be read from."""
    from hashbench.pipeline.preparation import dataset_path

    return [] if dataset is None else [Path(dataset), dataset_path(dataset)]


def _write_curves(output: Path, points: "pd.DataFrame", name: str, sizes: tuple[int, int]) -> None:
    """Write curves as numbers, or draw them."""
    if output.suffix.lower() not in FIGURES:
        _write(output, points.to_csv(index=False, lineterminator="\n"))
        return
    from hashbench.reports.plots.curves import draw_curves

    write_drawn(output, draw_curves(points, name, *sizes))


def write_drawn(output: Path, figure: "Figure") -> None:
    """Write a figure as what its file's ending says."""
    from hashbench.reports.plots import figure_bytes
    from hashbench.store.files import write_bytes

    write_bytes(output, figure_bytes(figure, output.suffix.lower()[1:]))


def _refuse_outputs(outputs: Sequence[Path], inputs: Iterable[Path]) -> None:
    """Refuse two outputs to one place, one that cannot be written, and one that would take the place of an input."""
    from hashbench.store.files import check_output

    for output in outputs:
        if output != _DASH:
            check_output(output)
    if len(set(map(_place, outputs))) < len(outputs):
        raise click.UsageError("--per-query and --curves name the same file; give each its own.")
    for output in outputs:
        for path in inputs:
            if path.exists() and output.exists() and output.samefile(path):
                raise click.UsageError(f"{output} is read and would be written over; write to another file.")


def _place(output: Path) -> int | Path:
    """Tell where an output goes: to the open file of a number, or to a file."""
    from hashbench.store.files import descriptor

    number = _STDOUT if output == _DASH else descriptor(output)
    return output.resolve() if number is None else number


def _write(output: Path, text: str) -> None:
    """Write to standard output and error as all else is that goes there, after what is."""
    from hashbench.store.files import write_text

    place = _place(output)
    if place in (_STDOUT, _STDERR):
        click.echo(text, nl=False, err=place == _STDERR)
    else:
        write_text(output, text)


_DASH = Path("-")
_STDOUT, _STDERR = 1, 2
