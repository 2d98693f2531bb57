"""The command that scores codes of any origin: evaluate."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click import Choice, IntRange
from cloup import option, option_group

from hashbench._choices import BIT_ORDERS, DISTANCES, ENCODINGS, TRUE_DISTANCES, UNDEFINED
from hashbench.cli import options
from hashbench.cli.outputs import (
    FIGURES,
    STDOUT,
    FigurePath,
    check_installed,
    echo,
    refuse_outputs,
    save_figure,
    target_of,
    write,
)

if TYPE_CHECKING:
    import pandas as pd

    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.own_codes import OwnCodes, Saving
    from hashbench.scoring.evaluation import Evaluation
    from hashbench.scoring.shards import ShardedCodes

# Options on the user's codes that name no file.
_NO_FILES = ("n_bits", "bit_order", "encoding", "distance", "true_distance", "exclude_self", "junk_label")
_IGNORING = {  # options that leave items out of rankings
    "exclude_self": "--exclude-self",
    "exclude_same_id": "--exclude-same-id",
    "query_groups": "--query-groups",
    "junk_label": "--junk-label",
}

CODES = click.argument("codes", type=options.FILE, required=False, metavar="[CODES.h5]")
ONLY_OWN = options.NotWith("CODES.h5", "--run")
EXCLUDE_SELF = option(
    "--exclude-self",
    is_flag=True,
    help="Leave each query out of its own ranking; queries and database must be the same.",
)
DATASET = option(
    "--dataset",
    metavar="DATASET",
    shell_complete=options.completing("datasets"),
    help="Dataset of the codes, by name or file. Its labels define what is relevant; labels or an affinity that you "
    "pass too must agree with them.",
    show_default="the one recorded in CODES.h5",
)
RELEVANCE = option_group(
    "Labels and relevance",
    option("--query-labels", type=options.ARRAY, help="Labels of queries: classes (n,) or multi-hot (n, n_classes)."),
    option("--database-labels", type=options.ARRAY, help="Labels of the database, likewise."),
    option(
        "--query-coarse", type=options.ARRAY, help="Superclasses of queries: level 2 in a class, 1 in a superclass."
    ),
    option("--database-coarse", type=options.ARRAY, help="Superclasses of the database, likewise."),
    option(
        "--affinity",
        type=options.ARRAY,
        help="Levels instead of labels: a matrix, SciPy's sparse .npz, or neighbours in .ivecs or .ibin. A query "
        "ignores items of level -1.",
    ),
    option(
        "--query-groups",
        type=options.ARRAY,
        help="Groups of queries (n,), such as cameras. A query ignores items of its class in its group.",
    ),
    option("--database-groups", type=options.ARRAY, help="Groups of the database, likewise."),
    option(
        "--junk-label",
        metavar="LABEL",
        multiple=True,
        help="Class of database items that all queries ignore, repeatable.",
    ),
    option(
        "--exclude-same-id",
        type=options.ARRAY,
        nargs=2,
        metavar="QUERY_IDS DATABASE_IDS",
        help="Ids of queries and of database items (n,). A query ignores items with its id.",
    ),
    constraint=ONLY_OWN,
)


def own_codes_group(*more: options.OptionDecorator) -> options.OptionDecorator:
    """Return the options for the user's own codes, and some more on them."""
    return option_group(
        "Your own codes",
        option(
            "--query-codes",
            type=options.ARRAY,
            help="Codes of queries in .npy, .npz, .mat, .h5, .pt, .safetensors, .parquet, .arrow, .csv, .txt, .bvecs "
            "or .u8bin: bits, packed bytes with --bits, strings of hexadecimal digits, or integers.",
        ),
        option(
            "--database-codes",
            type=options.ARRAY,
            help="Codes of the database, likewise. They may lie in shards, and so may their labels: a quoted pattern "
            "such as 'codes-*.npy', or a .json or .toml file that lists them.",
        ),
        option(
            "--bit-order",
            type=Choice(BIT_ORDERS),
            show_default="little; big for int8",
            help="First bit of a packed byte: the least significant (little) or the most (big).",
        ),
        option("--encoding", type=Choice(ENCODINGS), help="Encoding of packed codes that are strings, with --bits."),
        *more,
        constraint=ONLY_OWN,
    )


def run_group(*more: options.OptionDecorator) -> options.OptionDecorator:
    """Return the options for a run, and some more on it."""
    return option_group(
        "Run files",
        option("--run", type=options.FILE, help="TREC run, lists of documents by score, plain or gzip."),
        option("--qrels", type=options.FILE, help="TREC qrels, the relevant documents of each query."),
        *more,
        constraint=options.OnlyWith("--run"),
    )


@cloup.command()
@CODES
@own_codes_group(
    option("--bits", "n_bits", type=int, help="Code length of packed codes and integers."),
    option(
        "--distance",
        type=Choice(DISTANCES),
        default=DISTANCES[0],
        help="Distance to rank by; cosine and dot take real-valued outputs, before the sign.",
    ),
    EXCLUDE_SELF,
)
@RELEVANCE
@option_group(
    "Re-ranking by float vectors",
    option("--query-vectors", type=options.ARRAY, help="Float vectors of queries, for Recall@10:reranked=100."),
    option("--database-vectors", type=options.ARRAY, help="Float vectors of the database."),
    option("--true-distance", type=Choice(TRUE_DISTANCES), show_default="euclidean", help="Distance between vectors."),
    constraint=ONLY_OWN,
)
@option_group(
    "Real-valued queries",
    option(
        "--query-outputs",
        type=options.ARRAY,
        help="Real-valued outputs of queries, whose signs are their codes, for metrics such as AP:dot.",
    ),
    constraint=ONLY_OWN,
)
@run_group(
    option("--complete", is_flag=True, help="Count queries of --qrels without a list as 0, like trec_eval -c."),
)
@option_group(
    "What to score",
    DATASET,
    options.METRIC_TO_SCORE,
    option(
        "--undefined",
        type=Choice(UNDEFINED),
        default="skip",
        help="Queries without relevant items: skip them; paper: NDCG 1 and others 0, as the TALR code; zero: all 0.",
    ),
    option(
        "--random-orders",
        type=IntRange(2),
        help="Number of random orders of the database, or of a run's documents, to score as well, with a fixed seed; "
        "their deviation is printed.",
    ),
    option(
        "--wanted-recall",
        type=options.Number(0, 1, min_open=True),
        multiple=True,
        help="Recall after re-ranking, such as .95, for which to print how many candidates to fetch, repeatable; with "
        "--metric R@10.",
    ),
    option(
        "--drift",
        type=options.ARRAY,
        metavar="OTHER",
        help="Other codes of the same items, to compare bit by bit and by score: another CODES.h5; or, for your own "
        "codes, the folder with files of the same names, or one file with queries and database. Without labels, bits "
        "are compared only.",
    ),
)
@option_group(
    "Output",
    options.output_format("table", "csv", "json", "markdown"),
    option("--per-query", type=options.OUTPUT, help="CSV file for the scores of every query; - for stdout."),
    option(
        "--curves",
        type=FigurePath(or_numbers=True),
        help="CSV file (- for stdout) for precision and recall, with low and high over tie orders, at each Hamming "
        "radius and at up to 50 ranks; or a figure by rank: .svg, .png or .pdf.",
    ),
)
@option_group(
    "Saving your codes in the results",
    option(
        "--save",
        metavar="NAME",
        help="Name under which to save rows; --dataset may then be a new name. {bits} and {seed} in the names of the "
        "codes stand for numbers, and each file is saved.",
    ),
    option("--group", metavar="GROUP", show_default="after all groups", help="Group in tables, such as pair-based."),
    option("--label", metavar="TEXT", show_default="NAME codes=own", help="Name of the codes in tables and figures."),
    option("--seed", type=options.SEEDS, default=0, help="Seed to record in the saved rows."),
    option(
        "--draws-nothing",
        is_flag=True,
        help="The method draws nothing at random, like PCA or a fixed hash, so one run stands for all seeds.",
    ),
    option("--keep-codes", is_flag=True, help="Keep the codes in the data folder, too, for figures of codes."),
    options.RESULTS,
    constraint=options.OnlyWith("--save"),
)
@options.CLUSTER
@cloup.constraint(options.NotWith("--run"), ["codes", "dataset", "curves"])
@cloup.constraint(ONLY_OWN, ["save", "cluster"])
@cloup.constraint(
    options.NotWith("--drift"),
    [
        *(
            "run",
            "distance",
            "random_orders",
            "wanted_recall",
            "per_query",
            "curves",
            "save",
            "cluster",
        ),
        "query_outputs",
    ],
)
@cloup.constraint(
    options.NotWith("--wanted-recall"),
    ["run", "distance", "undefined", "random_orders", "per_query", "curves", "save"],
)
def evaluate(
    codes: Path | None,
    dataset: str | None,
    run: Path | None,
    qrels: Path | None,
    complete: bool,
    metrics: tuple[str, ...],
    undefined: str,
    random_orders: int | None,
    wanted_recall: tuple[float, ...],
    drift: str | None,
    form: str,
    per_query: Path | None,
    curves: Path | None,
    save: str | None,
    group: str | None,
    label: str | None,
    seed: int,
    draws_nothing: bool,
    keep_codes: bool,
    results: Path,
    cluster: "Cluster | None",
    **own: Any,
) -> None:
    """Score CODES.h5, your own codes, or a TREC run, exactly over all orders of tied items.

    \b
    hashbench evaluate --query-codes q.npy --database-codes d.npy --query-labels ql.npy --database-labels dl.npy
    hashbench evaluate --query-codes c.mat:B_test --database-codes c.mat:B_train --dataset digits --save mine
    hashbench evaluate --query-codes q.npy --database-codes d.npy --dataset vectors --wanted-recall .95 --metric R@10
    hashbench evaluate --query-codes old/q.npy --database-codes old/d.npy --dataset vectors --drift new
    hashbench evaluate --run run.txt --qrels qrels.txt
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench._validation import refuse_fractions
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.own_codes import Saving, save_all
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.curves import curve_metrics, lay_out
    from hashbench.scoring.evaluation import DEFAULT_METRICS, RUN_METRICS
    from hashbench.scoring.metrics import get_metric
    from hashbench.scoring.runs import evaluate_run
    from hashbench.scoring.shards import ShardedCodes

    outputs, progress, reports_orders = {"--per-query": per_query, "--curves": curves}, ProgressBar(), True
    score: Callable[..., Evaluation]
    user_codes: Any = None
    saving = None
    if per_query is not None and per_query.suffix in (".parquet", ".tsv", ".xlsx"):
        raise click.UsageError(f"--per-query writes CSV, got {per_query.name}; name it {per_query.stem}.csv.")
    check_installed(*(["pandas"] if per_query or curves else []), *(["filelock", "platformdirs"] if save else []))
    if drift is not None:
        echo(_compare_codes(codes, drift, own, dataset, metrics, undefined, form))
        return
    if wanted_recall:
        echo(_count_candidates(codes, own, dataset, metrics, wanted_recall, form, cluster))
        return
    if save is not None:
        saving = Saving(save, dataset, results, group, label, seed, keep_codes, draws_nothing)
    if _names_several(own):
        if saving is None or any((per_query, curves, random_orders, cluster, own["query_outputs"])):
            raise click.UsageError(
                "{bits} and {seed} in the names of codes need --save, and do not go with --per-query, --curves, "
                "--random-orders, --query-outputs and --workers."
            )
        echo(_save_several(own, dataset, saving, metrics or DEFAULT_METRICS, undefined, form))
        return
    if run is not None:
        score = partial(evaluate_run, *read_run_files(run, qrels, outputs), complete=complete, undefined=undefined)
        reports_orders, metrics = False, metrics or RUN_METRICS
    else:
        user_codes = read_codes_file(codes, own, dataset, outputs)
        if user_codes is None:
            sharding = {"cluster": cluster, "on_progress": progress.update}
            user_codes = _read_to_save(own, dataset, outputs, saving, undefined, **sharding)
        if own["query_outputs"] and not any(get_metric(name).form for name in metrics):
            raise click.UsageError(
                "--query-outputs are for metrics that compare codes with them, and no such metric was chosen. Add one, "
                "such as --metric AP:dot, or leave the outputs out."
            )
        user_codes.check_metrics(metrics or DEFAULT_METRICS)
        reports_orders = not isinstance(user_codes, ShardedCodes)  # which reports by itself
        if curves is not None and reports_orders:
            refuse_fractions(user_codes.affinity.levels, "--curves")
        score = partial(user_codes.evaluate, undefined=undefined)
        if saving is not None:
            refuse_outputs({**outputs, **user_codes.saved_files(saving)}, files_of(own, dataset))
    orders: dict[str, Any] = {} if random_orders is None else {"random_orders": random_orders}
    if orders and reports_orders:
        orders["on_progress"] = progress.update
    with progress, reporting_compilation(progress.update):
        evaluation = score(metrics or DEFAULT_METRICS, **orders)
    notes = list(evaluation.notes)
    if saving is not None:
        notes += save_all([(user_codes, saving, evaluation)])
    for note in notes:
        click.echo(note, err=True)
    if per_query is not None:
        write(per_query, evaluation.per_query.to_csv(index=False, lineterminator="\n"))
    if curves is not None:
        sizes = user_codes.n_bits, len(user_codes.database)
        points = lay_out(score(curve_metrics(*sizes, by_radius=own["distance"] == "hamming")))
        _write_curves(curves, points, label or save or (codes.stem if codes else "codes"), sizes)
    is_stdout_taken = any(path and target_of(path) == STDOUT for path in outputs.values())
    records = console.evaluation_records(evaluation, "documents" if run else "database")
    echo(records.to_text(form), err=is_stdout_taken)


def _compare_codes(
    codes: Path | None,
    other: str,
    own: dict[str, Any],
    dataset: str | None,
    metrics: tuple[str, ...],
    undefined: str,
    form: str,
) -> str:
    """Return, as text, how far other codes of the same items differ, what a mixture scores, and which scores higher."""
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.own_codes import OwnFiles, dataset_of
    from hashbench.pipeline.sharded_codes import shards_of
    from hashbench.pipeline.two_codes import read_two_files, read_two_own
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.metrics import checked_metrics

    if form == "csv":
        raise click.UsageError("--drift prints two tables, which --format csv cannot hold; choose another format.")
    chosen = metrics or ("AP",)
    checked_metrics(chosen, undefined)
    notes: list[str] = []
    if codes is not None:
        two = read_two_files(codes, Path(other), dataset_of(codes, dataset))
    else:
        roles = "query_codes", "database_codes"
        of_scores = [own[key] for key in own if key not in (*_NO_FILES, *roles)] + [own["junk_label"] or None, dataset]
        is_asked = bool(metrics) or undefined != "skip" or own["exclude_self"]
        is_scored = is_asked or any(value is not None for value in of_scores)
        specs = [own[role] for role in roles if own[role] is not None]
        if len(specs) < 1 + is_scored:
            raise click.UsageError("give CODES.h5, or both --query-codes and --database-codes.")
        if shards_of(**own):
            raise click.UsageError("--drift needs codes in one file each. Leave out --drift, or the shards.")
        dataset, notes = _check_saving(own, dataset, None, undefined)
        own |= {"query_codes": specs[0], "database_codes": specs[-1]}  # which may be of the same items
        two = read_two_own(OwnFiles(**own, dataset=dataset, needs_relevance=is_scored), other)
    if two.own is not None:
        if not metrics and (two.own.affinity.levels % 1).any():
            chosen = ("NDCG",)
        two.own.check_metrics(chosen)
    with ProgressBar() as progress, reporting_compilation(progress.update):
        scored = [*two.evaluations(chosen, undefined, progress.update)]
    for note in dict.fromkeys([*notes, *(note for _, _, evaluation in scored for note in evaluation.notes)]):
        click.echo(note, err=True)
    answers = two.differences(scored[0][2], scored[-1][2]) if scored else {}
    return console.drift_records(two.drifts(), scored, answers).to_text(form)


def _count_candidates(
    codes: Path | None,
    own: dict[str, Any],
    dataset: str | None,
    metrics: tuple[str, ...],
    wanted_recall: tuple[float, ...],
    form: str,
    cluster: "Cluster | None",
) -> str:
    """Return, as text, how many candidates to fetch for each wanted recall."""
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.scoring.candidates import check_wanted
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.shards import ShardedCodes

    if len(metrics) != 1:
        raise click.UsageError("--wanted-recall needs one metric, the recall to reach, such as --metric R@10.")
    check_wanted(metrics[0], wanted_recall)
    progress = ProgressBar()
    user_codes: Any = read_codes_file(codes, own, dataset, {})
    if user_codes is None:
        user_codes = _read_to_save(own, dataset, {}, None, "skip", cluster=cluster, on_progress=progress.update)
    user_codes.check_metrics(metrics)
    reporting = {} if isinstance(user_codes, ShardedCodes) else {"on_progress": progress.update}
    with progress, reporting_compilation(progress.update):
        counts, evaluation = user_codes.candidates(metrics[0], wanted_recall, **reporting)
    for note in evaluation.notes:
        click.echo(note, err=True)
    return console.candidate_records(counts, evaluation, metrics[0]).to_text(form)


def _names_several(own: Mapping[str, Any]) -> bool:
    from hashbench.pipeline.own_grid import names_several

    return any(names_several(spec) for spec in (own["query_codes"], own["database_codes"]) if spec is not None)


def _save_several(
    own: dict[str, Any], dataset: str | None, saving: "Saving", metrics: tuple[str, ...], undefined: str, form: str
) -> str:
    """Score and save codes of several lengths and seeds, all or none; return their scores as text."""
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.own_codes import OwnFiles, save_all
    from hashbench.pipeline.own_grid import evaluate_each, find_pairs, missing_seeds
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.sources.array_files import split_spec

    if own["query_codes"] is None or own["database_codes"] is None:
        raise click.UsageError("give both --query-codes and --database-codes.")
    judge, notes = _check_saving(own, dataset, saving, undefined)
    files, pairs = OwnFiles(**own, dataset=judge), find_pairs(own["query_codes"], own["database_codes"])
    inputs = [split_spec(spec)[0] for pair in pairs for spec in (pair.query, pair.database)] + files_of(own, dataset)

    def check(codes: "OwnCodes", saving: "Saving") -> None:
        refuse_outputs(dict(codes.saved_files(saving)), inputs)

    with ProgressBar() as progress, reporting_compilation(progress.update):
        scored = evaluate_each(files, pairs, saving, metrics, undefined, check, progress.update)
    notes += [*missing_seeds(pairs), *(note for _, _, evaluation in scored for note in evaluation.notes)]
    for note in dict.fromkeys([*notes, *save_all(scored)]):
        click.echo(note, err=True)
    of_each = [(codes.n_bits, each.seed, scores) for codes, each, scores in scored]
    return console.several_records(of_each).to_text(form)


def read_codes_file(
    codes: Path | None, own: Mapping[str, Any], dataset: str | None, outputs: Mapping[str, Path | None]
) -> "OwnCodes | None":
    """Read CODES.h5 and its dataset, after checking the outputs; None if the user's own codes are given instead."""
    from hashbench.pipeline.own_codes import dataset_of, read_file

    if codes is None:
        if own["query_codes"] is None or own["database_codes"] is None:
            raise click.UsageError("give CODES.h5, or both --query-codes and --database-codes.")
        return None
    dataset = dataset_of(codes, dataset)
    refuse_outputs(outputs, [codes, *_dataset_files(dataset)])
    return read_file(codes, dataset)


def read_own_codes(
    own: dict[str, Any],
    dataset: str | None,
    outputs: Mapping[str, Path | None],
    **sharding: Any,
) -> "OwnCodes | ShardedCodes":
    """Read a user's own codes after checking the outputs; if they are in shards, open them as ``sharding`` says."""
    from hashbench.pipeline.own_codes import OwnFiles, read_own
    from hashbench.pipeline.sharded_codes import read_sharded, shards_of

    cluster = sharding.get("cluster")
    refuse_outputs(outputs, [*files_of(own, dataset), *([] if cluster is None else [Path(cluster.scheduler)])])
    files = OwnFiles(**own, dataset=dataset)
    return read_own(files) if cluster is None and not shards_of(**own) else read_sharded(files, **sharding)


def _read_to_save(
    own: dict[str, Any],
    dataset: str | None,
    outputs: Mapping[str, Path | None],
    saving: "Saving | None",
    undefined: str,
    **sharding: Any,
) -> "OwnCodes | ShardedCodes":
    """Read a user's own codes, after checking all that could prevent scoring or saving them."""
    judge, notes = _check_saving(own, dataset, saving, undefined, sharding["cluster"])
    codes = read_own_codes(own, judge, outputs, **sharding)
    for note in notes:
        click.echo(note, err=True)
    return codes


def _check_saving(
    own: Mapping[str, Any],
    dataset: str | None,
    saving: "Saving | None",
    undefined: str,
    cluster: "Cluster | None" = None,
) -> tuple[str | None, list[str]]:
    """Check what could prevent saving; return the dataset that says what is relevant, and a note if it alone does."""
    from hashbench.pipeline.own_codes import names_dataset
    from hashbench.pipeline.sharded_codes import shards_of

    judges = dataset is not None and (saving is None or names_dataset(dataset))  # otherwise a name for rows
    has_own = any(own[key] is not None for key in ("query_labels", "database_labels", "affinity"))
    is_labelled = has_own and not judges
    if saving is not None:
        if cluster is not None or shards_of(**own):
            raise click.UsageError("--save needs codes in one file, on one machine. Leave out --save, or the shards.")
        ignoring = [option for key, option in _IGNORING.items() if own[key]]
        saving.check(own["distance"], undefined, is_labelled=is_labelled, ignoring=ignoring)
    note = f"Codes are expected in the order of {dataset}'s split; give your own labels or affinity to check that."
    return None if is_labelled else dataset, [note] if judges and not has_own else []


def read_run_files(
    run: Path, qrels: Path | None, outputs: Mapping[str, Path | None]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Read a run and its qrels, after checking the outputs."""
    from hashbench.sources.run_files import read_qrels, read_run

    if qrels is None:
        raise click.UsageError("give both --run and --qrels.")
    refuse_outputs(outputs, [run, qrels])
    return read_run(run), read_qrels(qrels)


def files_of(own: Mapping[str, Any], dataset: str | None) -> list[Path]:
    """List the files that the user's own codes and their labels are read from."""
    from hashbench.pipeline.sharded_codes import shards_of
    from hashbench.sources.array_files import split_spec

    values = [value for key, value in own.items() if key not in _NO_FILES and value is not None]
    specs = [spec for value in values for spec in (value if isinstance(value, tuple) else [value])]
    return [*(split_spec(spec)[0] for spec in [*specs, *shards_of(**own)]), *_dataset_files(dataset)]


def _dataset_files(dataset: str | None) -> list[Path]:
    """List the files that a dataset may be read from."""
    from hashbench.pipeline.preparation import dataset_path

    return [] if dataset is None else [Path(dataset), dataset_path(dataset)]


def _write_curves(output: Path, points: "pd.DataFrame", name: str, sizes: tuple[int, int]) -> None:
    if output.suffix.lower() not in FIGURES:
        write(output, points.to_csv(index=False, lineterminator="\n"))
        return
    from hashbench.reports.plots.curves_figure import draw_curves

    save_figure(output, draw_curves(points, name, *sizes))
