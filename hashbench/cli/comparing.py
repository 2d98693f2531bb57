"""The command that compares two of the same: methods by their results, codes, or runs: compare."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click import Choice
from cloup import option, option_group

from hashbench.cli import inputs, options
from hashbench.cli.outputs import echo

if TYPE_CHECKING:
    from hashbench._typing import Undefined
    from hashbench.pipeline.own_codes import TwoCodes

_OWN = options.OnlyWith("--database-codes")
_RELEVANCE = ("--query-labels", "--database-labels", "--coarse", "--affinity", "--groups", "--junk-label")


@cloup.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="[ONE] OTHER...", shell_complete=options.completing("methods")
)
@option_group(
    "Methods by their rows",
    options.several("--dataset", names="datasets", show_default="all", help="Dataset, NAME or NAME:FEATURES."),
    options.several("--features", names="features", show_default="all", help="Kind of features, repeatable."),
    option(
        "--by",
        type=Choice(["query", "class"]),
        default="query",
        help="What the interval generalises to: other queries, or other classes of queries, where queries of one class "
        "belong together, such as copies of one image (not for rows of saved codes).",
    ),
    options.RESULTS,
)
@option_group(
    "What to compare",
    options.METRIC_TO_SCORE,
    options.lengths("Code length, repeatable; your own packed codes have only one.", show_default="all"),
)
@option_group("Two runs", option("--qrels", type=options.FILE, help="TREC qrels that two runs are judged by."))
@inputs.own_codes_group(constraint=options.NotWith("--qrels"), may_be_several=False)
@inputs.relevance_group(_OWN)
@option_group("Queries of codes", inputs.EXCLUDE_SELF, inputs.UNDEFINED_QUERIES)
@option_group(
    "Labelled pairs of codes",
    option(
        "--pairs",
        type=options.FILE,
        help="Table of labelled pairs, as for `hashbench thresholds`: codes, of any two lengths, are compared by them.",
    ),
    option(
        "--fpr",
        type=options.Number(0, 1),
        multiple=True,
        help="False positive rate at which recalls are compared, repeatable.",
        show_default="0.001",
    ),
    constraint=_OWN,
)
@option_group("Output", options.output_format("table", "csv", "json", "markdown"))
def compare(
    names: tuple[str, ...],
    datasets: tuple[str, ...],
    features: tuple[str, ...],
    by: str,
    results: Path,
    metrics: tuple[str, ...],
    n_bits: tuple[int, ...],
    qrels: Path | None,
    undefined: "Undefined",
    pairs: Path | None,
    fpr: tuple[float, ...],
    form: str,
    **own: Any,
) -> None:
    """Test whether one of two is better: the difference, with its interval over queries and seeds.

    Methods are compared by their results, the first with each of the others, in AP or the metrics you name. If it has
    results of several settings, those that tables show are compared; choose others by their label, as in
    `compare 'csq epochs=3' csq`. Scores of single queries come from your data folder. The p values of several
    differences are corrected together by Holm's method.

    Two CODES.h5, or your own codes and OTHER, are compared bit by bit, and by score: such as before and after an
    upgrade. OTHER is the folder with files of the same names, or one file with queries and database; without labels,
    only the bits are compared. With --pairs, codes are compared by labelled pairs. Two run files need --qrels.

    \b
    hashbench compare itq lsh --dataset digits
    hashbench compare old.h5 new.h5
    hashbench compare new --query-codes old/q.npy --database-codes old/d.npy --dataset vectors
    hashbench compare phash.csv --database-codes dhash.csv --pairs pairs.csv
    hashbench compare one.run other.run --qrels qrels.txt
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    are_codes = own["query_codes"] is not None or own["database_codes"] is not None
    are_files = len(names) == 2 and all(Path(name).suffix.lower() in (".h5", ".hdf5") for name in names)
    if fpr and not pairs:
        raise click.UsageError("--fpr goes with --pairs.")
    kinds = {"two runs": qrels, "pairs of codes": pairs, "codes": are_codes, "two CODES.h5": are_files}
    kind = next((name for name, is_asked in kinds.items() if is_asked), "methods")
    _refuse_strays(kind)
    if not (are_codes or are_files or qrels):
        if any(Path(name).is_file() for name in names):
            raise click.UsageError(
                f"{names[0]} is a file. Two runs need --qrels. To compare codes, give some as --query-codes and "
                "--database-codes, and the others as OTHER."
            )
        _compare_rows(names, datasets, features, by, results, metrics, n_bits, form)
        return
    if form == "csv" and pairs is None:
        raise click.UsageError("codes and runs are compared in several tables, which --format csv cannot hold.")
    if len(names) != (1 if are_codes else 2):
        raise click.UsageError(f"{'give OTHER, one name' if are_codes else 'give two files'}, got {len(names)} names.")
    if len(datasets) > 1 or len(n_bits) > 1:
        raise click.UsageError("codes have one --dataset and one --bits.")
    if qrels is not None:
        _compare_runs(names, qrels, metrics, undefined, form, exclude_self=own["exclude_self"])
    else:
        own |= {"n_bits": next(iter(n_bits), None)}
        if pairs is not None:
            _compare_pairs(names[0], own, pairs, fpr or (0.001,), form)
            return
        _compare_codes(names, next(iter(datasets), None), own, metrics, undefined, form, by_class=by == "class")


def _refuse_strays(kind: str) -> None:
    """Refuse options of another kind of comparison, which would have no effect."""
    of_rows, of_files = {"--features", "--by", "--results"}, {"--exclude-self", "--bit-order", "--encoding"}
    strays = {
        "methods": of_files | {"--undefined"},
        "two runs": of_rows | {"--dataset", "--bits"},
        "codes": of_rows - {"--by"},
        "pairs of codes": of_rows | {"--dataset", "--metric", "--undefined", "--exclude-self", *_RELEVANCE},
        "two CODES.h5": of_rows - {"--by"} | of_files | {"--bits"},
    }[kind]
    for name in options.typed(click.get_current_context().command.params):
        if name in strays:
            raise click.UsageError(f"{name} has no effect where {kind} are compared; leave it out.")


def _compare_rows(
    names: tuple[str, ...],
    datasets: tuple[str, ...],
    features: tuple[str, ...],
    by: str,
    results: Path,
    metrics: tuple[str, ...],
    n_bits: tuple[int, ...],
    form: str,
) -> None:
    from hashbench.reports.comparison import comparison_records, read_and_compare
    from hashbench.reports.selection import Selection
    from hashbench.scoring.metrics import get_metric, readings

    for note in readings(map(get_metric, metrics)):
        click.echo(note, err=True)
    selection = Selection(datasets, features=features, n_bits=n_bits, metrics=metrics)
    comparison = read_and_compare(results, names, selection, by == "class")
    echo(comparison_records(comparison).to_text(form))
    if form == "csv":  # which has no place for notes
        for note in (*comparison.notes, *comparison.about):
            click.echo(note, err=True)


def _compare_runs(
    names: tuple[str, ...],
    qrels: Path,
    metrics: tuple[str, ...],
    undefined: "Undefined",
    form: str,
    *,
    exclude_self: bool,
) -> None:
    from hashbench.cli import console
    from hashbench.scoring.comparison import each_difference
    from hashbench.scoring.evaluation import RUN_METRICS

    how = {"complete": True, "exclude_self": exclude_self}
    problems = [inputs.read_run_problem((Path(name), qrels), {}, **how) for name in names]
    scored = [problem.evaluate(metrics or RUN_METRICS, undefined=undefined) for problem in problems]
    for note in dict.fromkeys(f"{name}: {note}" for name, of in zip(names, scored, strict=True) for note in of.notes):
        click.echo(note, err=True)
    answers = each_difference(scored[0], scored[1], names)
    named = [((name,), of) for name, of in zip(names, scored, strict=True)]
    echo(console.two_records(named, ("run",), answers, ordered="documents").to_text(form))


def _compare_codes(
    names: tuple[str, ...],
    dataset: str | None,
    own: dict[str, Any],
    metrics: tuple[str, ...],
    undefined: "Undefined",
    form: str,
    *,
    by_class: bool,
) -> None:
    """Print how far other codes of the same items differ, what a mixture scores, and which scores higher."""
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.scoring.comparison import each_difference
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.metrics import checked_metrics

    chosen = metrics or ("AP",)
    checked_metrics(chosen, undefined)
    with ProgressBar() as progress, reporting_compilation(progress.update):
        two = _read_two(names, dataset, own, is_asked=bool(metrics) or undefined != "skip")
        if two.own is not None and not metrics and (two.own.problem.ranking.levels % 1).any():
            chosen = ("NDCG",)
        scored = [*two.evaluations(chosen, undefined, progress.update)]
    for note in dict.fromkeys(note for _, evaluation in scored for note in evaluation.notes):
        click.echo(note, err=True)
    answers = each_difference(scored[0][1], scored[-1][1], two.names, by_class=by_class) if scored else {}
    echo(console.drift_records(two.drifts(), scored, answers).to_text(form))


def _compare_pairs(other: str, own: dict[str, Any], pairs: Path, rates: tuple[float, ...], form: str) -> None:
    """Print how far two codes differ over labelled pairs, with intervals over other items."""
    from hashbench.cli import console
    from hashbench.pipeline.own_codes import OwnFiles, in_order_of, other_files, read_labelled
    from hashbench.scoring.thresholds import compare_pairs, count_labelled

    own = {**own, "query_codes": own["query_codes"] or own["database_codes"]}
    files = OwnFiles(**own, needs_relevance=False)
    others = other_files(files, other)
    first = read_labelled(files, pairs)
    found, of_others = count_labelled(*first), count_labelled(*in_order_of(first, read_labelled(others, pairs)))
    for note in found.notes:
        click.echo(note, err=True)
    names = Path(files.database_codes).name, Path(others.database_codes).name
    unshown = {
        f"false positive rate {rate:g}, {name}: {counted.why_no_radius(rate)}."
        for rate in rates
        for name, counted in zip(names, (found, of_others), strict=True)
        if counted.at_fpr(rate) is None
    }
    differences = compare_pairs(found, of_others, rates)
    echo(console.pair_records(differences, names, found.units, sorted(unshown)).to_text(form))


def _read_two(names: tuple[str, ...], dataset: str | None, own: Mapping[str, Any], *, is_asked: bool) -> "TwoCodes":
    from hashbench.pipeline.own_codes import OwnFiles, dataset_of, names_own_relevance, read_two_files, read_two_own
    from hashbench.sources.array_files import find_shards

    if len(names) == 2:
        return read_two_files(Path(names[0]), Path(names[1]), dataset_of(Path(names[0]), dataset))
    of_scores = own["coarse"], own["groups"], own["exclude_same_id"], own["junk_label"] or None, dataset
    is_scored = is_asked or own["exclude_self"] or any(value is not None for value in of_scores)
    is_scored = is_scored or names_own_relevance(own)
    specs = [spec for spec in (own["query_codes"], own["database_codes"]) if spec is not None]
    if len(specs) < 1 + is_scored:
        raise click.UsageError("give both --query-codes and --database-codes.")
    if find_shards(specs[-1]):
        raise click.UsageError("two codes are compared from one file each; give the database as one.")
    if dataset is not None and not names_own_relevance(own):
        click.echo(inputs.order_note(dataset), err=True)
    own = {**own, "query_codes": specs[0], "database_codes": specs[-1]}  # which may be of the same items
    return read_two_own(OwnFiles(**own, dataset=dataset, needs_relevance=is_scored), names[0])
