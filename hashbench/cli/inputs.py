"""What is scored, as options of several commands: codes, labels, what is ignored; and how these are read."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import Choice
from cloup import option, option_group

from hashbench._choices import BIT_ORDERS, DISTANCES, ENCODINGS, TRUE_DISTANCES, UNDEFINED
from hashbench.cli import options
from hashbench.cli.outputs import refuse_outputs

if TYPE_CHECKING:
    from hashbench.pipeline.own_codes import OwnCodes
    from hashbench.scoring.problem import Problem

# Options on the user's codes that name no file.
_NO_FILES = ("n_bits", "bit_order", "encoding", "distance", "true_distance", "exclude_self", "junk_label")

CODES = click.argument("codes", type=options.FILE, required=False, metavar="[CODES.h5]")
ONLY_OWN = options.NotWith("CODES.h5", "--run")
BITS = option("--bits", "n_bits", type=int, help="Code length of packed codes and integers.")
DISTANCE = option(
    "--distance",
    type=Choice(DISTANCES),
    default=DISTANCES[0],
    help="Distance to rank by; jaccard takes bits or counts, cosine and dot real-valued outputs, before the sign.",
)
QUERY_OUTPUTS = option(
    "--query-outputs",
    type=options.ARRAY,
    help="Real-valued outputs of queries, whose signs are their codes, for metrics such as AP:dot.",
)
EXCLUDE_SELF = option(
    "--exclude-self",
    is_flag=True,
    help="Leave each query out of its own ranking: queries and database are the same items, or in runs have the same "
    "names.",
)
DATASET = option(
    "--dataset",
    metavar="DATASET",
    shell_complete=options.completing("datasets"),
    help="Dataset of the codes, by name or file. Its labels define what is relevant; labels or an affinity that you "
    "pass too must agree with them.",
    show_default="the one recorded in CODES.h5",
)
UNDEFINED_QUERIES = option(
    "--undefined",
    type=Choice(UNDEFINED),
    default="skip",
    help="Queries without relevant items: skip them; paper: NDCG 1 and others 0, as the TALR code; zero: all 0.",
)


def _check_run(context: click.Context, option: click.Parameter, files: tuple[Path, Path] | None) -> Any:
    if files is not None and any(str(file).startswith("--") for file in files):
        raise click.BadParameter(f"it takes two files, RUN QRELS, got {files[0]} and {files[1]}.", context, option)
    return files


RUN = option(
    "--run",
    type=options.FILE,
    nargs=2,
    callback=_check_run,
    metavar="RUN QRELS",
    help="TREC run, lists of documents by score, and its qrels, the relevant documents of each query; plain or gzip.",
)


def _pair(flag: str, help: str) -> options.OptionDecorator:
    return option(flag, type=options.ARRAY, nargs=2, metavar="QUERY DATABASE", help=help)


def relevance_group(constraint: Any = ONLY_OWN) -> options.OptionDecorator:
    """Return the options for labels, and for what queries ignore."""
    return option_group(
        "Labels and relevance",
        option(
            "--query-labels", type=options.ARRAY, help="Labels of queries: classes (n,) or multi-hot (n, n_classes)."
        ),
        option("--database-labels", type=options.ARRAY, help="Labels of the database, likewise."),
        _pair("--coarse", "Files of superclasses: level 2 in a class, 1 in a superclass."),
        option(
            "--affinity",
            type=options.ARRAY,
            help="Levels instead of labels: a matrix, SciPy's sparse .npz, or neighbours in .ivecs or .ibin. A query "
            "ignores items of level -1.",
        ),
        _pair("--groups", "Files of groups (n,), such as cameras. A query ignores items of its class in its group."),
        option(
            "--junk-label",
            metavar="LABEL",
            multiple=True,
            help="Class of database items that all queries ignore, repeatable.",
        ),
        _pair("--exclude-same-id", "Files of ids (n,). A query ignores items with its id."),
        constraint=constraint,
    )


RELEVANCE = relevance_group()


_SEVERAL = (
    " They may lie in several files, and so may their labels: a quoted pattern such as 'codes-*.npy', or a .json or "
    ".toml file that lists them."
)


def own_codes_group(
    *more: options.OptionDecorator, constraint: Any = ONLY_OWN, may_be_several: bool = True
) -> options.OptionDecorator:
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
            "--database-codes", type=options.ARRAY, help=f"Codes of the database, likewise.{_SEVERAL * may_be_several}"
        ),
        option(
            "--bit-order",
            type=Choice(BIT_ORDERS),
            show_default="little; big for int8",
            help="First bit of a packed byte: the least significant (little) or the most (big).",
        ),
        option("--encoding", type=Choice(ENCODINGS), help="Encoding of packed codes that are strings, with --bits."),
        *more,
        constraint=constraint,
    )


def vectors_group(constraint: Any = ONLY_OWN) -> options.OptionDecorator:
    """Return the options for re-ranking."""
    return option_group(
        "Re-ranking by float vectors",
        _pair("--vectors", "Files of the float vectors that were coded, for Recall@10:reranked=100."),
        option(
            "--true-distance", type=Choice(TRUE_DISTANCES), show_default="euclidean", help="Distance between vectors."
        ),
        constraint=constraint,
    )


def read_problem(
    codes: Path | None,
    own: dict[str, Any],
    dataset: str | None,
    outputs: Mapping[str, Path | None],
    metrics: Iterable[str] = (),
    **counting: Any,
) -> "OwnCodes":
    """Read CODES.h5 and its dataset with what metrics need, or the user's own codes, after checking the outputs."""
    from hashbench.pipeline.own_codes import OwnFiles, dataset_of, names_own_relevance, read_file, read_own

    if codes is not None:
        _refuse_workers()
        dataset = dataset_of(codes, dataset)
        refuse_outputs(outputs, [codes, *dataset_files(dataset)])
        return read_file(codes, dataset, metrics)
    require_codes(own)
    cluster = counting.get("cluster")
    refuse_outputs(outputs, [*files_of(own, dataset), *([] if cluster is None else [Path(cluster.scheduler)])])
    read = read_own(OwnFiles(**own, dataset=dataset), **counting)
    if dataset is not None and not names_own_relevance(own):
        click.echo(order_note(dataset), err=True)
    return read


def _refuse_workers() -> None:
    if options.cluster() is not None:
        raise click.UsageError(
            "workers count your own codes: give --query-codes and --database-codes, or leave `on` out."
        )


def order_note(dataset: str) -> str:
    """Return a note where only a dataset says what is relevant."""
    return f"Codes are expected in the order of {dataset}'s split; give your own labels or affinity to check that."


def require_codes(own: Mapping[str, Any]) -> None:
    """Refuse commands without codes."""
    if own["query_codes"] is None or own["database_codes"] is None:
        raise click.UsageError("give CODES.h5, or both --query-codes and --database-codes.")


def read_score_problem(
    scores: str,
    own: dict[str, Any],
    dataset: str | None,
    outputs: Mapping[str, Path | None],
    metrics: Iterable[str],
) -> "Problem":
    """Read scores of all items for each query, and what is relevant, after checking the outputs."""
    from hashbench.pipeline.own_codes import OwnFiles, read_scores

    _refuse_workers()
    refuse_outputs(outputs, files_of({**own, "scores": scores}, dataset))
    files = OwnFiles(**{**own, "query_codes": "", "database_codes": ""}, dataset=dataset)  # of which there are none
    return read_scores(scores, files, metrics)


def read_run_problem(run: tuple[Path, Path], outputs: Mapping[str, Path | None], **how: Any) -> "Problem":
    """Read a run and its qrels, after checking the outputs."""
    from hashbench.scoring.runs import problem_of_run

    return problem_of_run(*read_run_files(run, outputs), **how)


def read_run_files(
    run: tuple[Path, Path], outputs: Mapping[str, Path | None]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Read a run and its qrels, after checking the outputs."""
    from hashbench.sources.run_files import read_qrels, read_run

    _refuse_workers()
    refuse_outputs(outputs, run)
    return read_run(run[0]), read_qrels(run[1])


def files_of(own: Mapping[str, Any], dataset: str | None) -> list[Path]:
    """List the files that the user's own codes and their labels are read from."""
    from hashbench.sources.array_files import files_behind, split_spec

    values = [value for key, value in own.items() if key not in _NO_FILES and value is not None]
    specs = [spec for value in values for spec in (value if isinstance(value, tuple) else [value])]
    return [*(split_spec(file)[0] for spec in specs for file in (spec, *files_behind(spec))), *dataset_files(dataset)]


def dataset_files(dataset: str | None) -> list[Path]:
    """List the files that a dataset may be read from."""
    from hashbench.pipeline.preparation import dataset_path

    return [] if dataset is None else [Path(dataset), dataset_path(dataset)]
