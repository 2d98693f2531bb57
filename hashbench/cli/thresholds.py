"""The command that counts matches at each radius: thresholds."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click import IntRange
from cloup import option, option_group

from hashbench.cli import inputs, options
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
    from hashbench._typing import ByteArray, IntArray
    from hashbench.reports.formatting import Records
    from hashbench.scoring.thresholds import Match, Thresholds

_MORE = 3  # radii shown beyond those that were asked for
_OF_BACKGROUND = ("n_false", "fpr", "fpr_low", "fpr_high")


@cloup.command()
@inputs.CODES
@inputs.own_codes_group(inputs.BITS, inputs.EXCLUDE_SELF)
@inputs.RELEVANCE
@option_group(
    "What to look for",
    inputs.DATASET,
    option(
        "--fpr",
        type=options.Number(0, 1),
        multiple=True,
        help="False positive rate that you allow, at the upper end of its 95 % interval, repeatable.",
    ),
    option(
        "--precision",
        type=options.Number(0, 1),
        multiple=True,
        help="Precision that you need, at the lower end of its 95 % interval, repeatable.",
    ),
    option(
        "--pairs",
        type=options.FILE,
        help="Table of labelled pairs instead of labels: two ids, and 1 or same, 0 or different. Ids are in "
        "the column or array id of the files of codes; without, they are row numbers from 0. The second is in "
        "--database-codes, and so is the first if --query-codes are not given.",
    ),
    option(
        "--background",
        type=options.ARRAY,
        help="Codes of other items, hardly any two of which are the same: false positive rates are those of all pairs "
        "of them, which may be many more than the labelled ones.",
    ),
    option(
        "--held-out",
        is_flag=True,
        help="Choose radii on one half of the classes or items, and judge them on the other.",
    ),
    option(
        "--corpus-size",
        type=IntRange(2),
        metavar="N",
        help="Number of items for which to print how many false matches to expect.",
    ),
)
@option_group(
    "Output",
    options.output_format("table", "csv", "json", "markdown"),
    option(
        "--output",
        "-o",
        type=FigurePath(or_numbers=True),
        help="CSV file of all radii (- for stdout), or a figure of them: .svg, .png or .pdf.",
    ),
    option(
        "--false-pairs",
        type=options.OUTPUT,
        help="CSV file of the false matches at the last radius asked for, or that of the best F1; - for stdout.",
    ),
)
@cloup.constraint(inputs.ONLY_OWN, ["pairs"])
@cloup.constraint(
    options.NotWith("--pairs"),
    [
        *("dataset", "exclude_self", "query_labels", "database_labels", "coarse", "affinity"),
        *("groups", "junk_label", "exclude_same_id"),
    ],
)
def thresholds(
    codes: Path | None,
    dataset: str | None,
    fpr: tuple[float, ...],
    precision: tuple[float, ...],
    pairs: Path | None,
    background: str | None,
    held_out: bool,
    corpus_size: int | None,
    form: str,
    output: Path | None,
    false_pairs: Path | None,
    **own: Any,
) -> None:
    """Count what each Hamming radius matches: precision, recall, false positive rate and F1 over all pairs.

    \b
    hashbench thresholds --query-codes q.npy --database-codes d.npy --query-labels ql.npy --database-labels dl.npy
    hashbench thresholds --query-codes ... --fpr 1e-6 --output thresholds.svg
    hashbench thresholds --database-codes hashes.csv --pairs pairs.csv --fpr 1e-3 --held-out --corpus-size 1000000
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import ProgressBar
    from hashbench.errors import HashbenchError
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.thresholds import count_labelled, find_false, find_labelled_false

    check_installed("scipy.stats", *(["pandas"] if output else []))
    outputs, progress = {"--output": output, "--false-pairs": false_pairs}, ProgressBar()
    if background is not None:
        refuse_outputs(outputs, inputs.files_of({"background": background}, None))
    find: Callable[[int], IntArray]
    with progress, reporting_compilation(progress.update):
        if pairs is not None:
            own |= {"query_codes": own["query_codes"] or own["database_codes"]}
            query_codes, database_codes, n_bits, labelled = _read_labelled(own, pairs, outputs)
            found = count_labelled(query_codes, database_codes, n_bits, labelled, held_out)
            find = partial(find_labelled_false, query_codes, database_codes, labelled)
        elif codes is None and own["query_codes"] is None and own["database_codes"] is not None:
            raise click.UsageError(
                "--database-codes go with --pairs or --query-codes, which may be the same file with --exclude-self."
            )
        else:
            counting: dict[str, Any] = {"cluster": options.cluster(), "on_progress": progress.update}
            problem = inputs.read_problem(codes, own, dataset, outputs, **counting).problem
            loud = {} if problem.codes.is_whole else {"on_progress": progress.update}
            found, find = problem.thresholds(held_out=held_out, **loud), partial(find_false, problem.codes)
        others = None if background is None else _count_background(own, background, found.n_bits)
    for note in found.notes:
        click.echo(note, err=True)
    asked: dict[str, Match | None] = {"best F1": found.best_f1}
    reasons = {"best F1": "no pair is relevant"}  # why there is no match
    for share in precision:
        name = f"precision {share:g}"
        asked[name], reasons[name] = found.at_precision(share), found.why_no_precision(share)
    for share in fpr:
        name, of_false = f"false positive rate {share:g}", others or found
        match = of_false.at_fpr(share)
        asked[name], reasons[name] = match and found.at(match.radius), of_false.why_no_radius(share)
        if others is None and not of_false.at(0).n_false:
            reasons[name] += ". --background adds all pairs of unlabelled items"
    if output is not None and output.suffix.lower() in FIGURES:
        from hashbench.reports.plots.result_figures import draw_thresholds

        save_figure(output, draw_thresholds(found, codes.stem if codes else "codes", asked, fpr, precision))
    elif output is not None:
        write(output, found.to_frame().to_csv(index=False, lineterminator="\n"))
    if false_pairs is not None:
        matches = [one for one in [found.best_f1, *asked.values()] if one is not None]
        if not matches:
            raise HashbenchError(
                f"no radius was found whose false matches --false-pairs could write: {'; '.join(reasons.values())}."
            )
        match = matches[-1]
        write(false_pairs, _false_text(find(match.radius), own))
        click.echo(f"wrote {false_pairs}: the false matches of radius {match.radius}.", err=True)
    is_stdout_taken = any(path is not None and target_of(path) == STDOUT for path in outputs.values())
    echo(_records(found, others, asked, reasons, corpus_size).to_text(form), err=is_stdout_taken)


def _read_labelled(
    own: dict[str, Any], pairs: Path, outputs: "Mapping[str, Path | None]"
) -> "tuple[ByteArray, ByteArray, int, IntArray]":
    from hashbench.pipeline.own_codes import OwnFiles, read_labelled
    from hashbench.sources.array_files import find_shards

    if own["database_codes"] is None:
        raise click.UsageError("--pairs needs --database-codes, the codes of the items.")
    if find_shards(own["database_codes"]):
        raise click.UsageError("--pairs needs codes in one file each; give the database as one.")
    refuse_outputs(outputs, [pairs, *inputs.files_of(own, None)])
    return read_labelled(OwnFiles(**own, needs_relevance=False), pairs)


def _count_background(own: Mapping[str, Any], background: str, n_bits: int) -> "Thresholds":
    """Count all pairs of other codes, none of which is relevant."""
    import numpy as np

    from hashbench.errors import HashbenchError
    from hashbench.pipeline.own_codes import OwnFiles, read_packed
    from hashbench.scoring.problem import Problem

    form = {"n_bits": n_bits, "bit_order": own["bit_order"], "encoding": own["encoding"]}
    files = OwnFiles(query_codes=background, database_codes=background, **form, needs_relevance=False)
    try:
        query, database, _ = read_packed(files)
    except HashbenchError as error:
        raise HashbenchError(f"--background {background}: {error}") from error
    ids = np.arange(len(query))
    return Problem.of_codes(query, database, (ids, ids), n_bits=n_bits, exclude_self=True).thresholds()


def _false_text(found: "IntArray", own: Mapping[str, Any]) -> str:
    """Lay out false matches as CSV, by the ids that files of codes have, or by row numbers from 0."""
    from hashbench.reports.formatting import sheet_text
    from hashbench.sources.pair_files import names_of

    names = [names_of(own[f"{role}_codes"]) for role in ("query", "database")]
    rows = (
        [query if names[0] is None else names[0][query], item if names[1] is None else names[1][item], distance]
        for query, item, distance in found.tolist()
    )
    return sheet_text(("query", "item", "distance"), rows)


def _records(
    found: "Thresholds",
    background: "Thresholds | None",
    asked: "Mapping[str, Match | None]",
    reasons: Mapping[str, str],
    corpus_size: int | None,
) -> "Records":
    from hashbench.reports.formatting import Records, Table

    about_match = {
        name: {"radius": None, "reason": reasons[name]}
        if match is None
        else _contents(match, found, background, corpus_size)
        for name, match in asked.items()
    }
    content = {
        "n_bits": found.n_bits,
        "units": found.units,
        "n_relevant_pairs": found.n_relevant,
        "n_irrelevant_pairs": found.n_irrelevant,
        "notes": found.notes,
        "uAP": {key: getattr(found.uap, key) for key in ("mean", "tie_sd", "low", "high")},
        **about_match,
    }
    chosen = {match.radius for match in asked.values() if match is not None}
    first = next((match.radius for match in found.matches if match.n_matches), 0)
    shown = found.matches[first : max(chosen, default=first) + _MORE + 1]
    columns = (
        "radius | matches {n_matches:,} | false {n_false:,} | precision {precision:.4f} | recall {recall:.4f} | "
        "false positive rate {fpr:.3g} | F1 {f1:.4f}"
    )
    sentences = [
        sentence
        for name, match in asked.items()
        for sentence in (
            _sentences(name, match, found, background, corpus_size) if match else [f"{name}: {reasons[name]}."]
        )
    ]
    notes = _notes(found, background, corpus_size)
    parts = Table(columns, [match._asdict() for match in shown]), "\n".join([*sentences, *notes])
    of_queries = ("query_precision", "query_recall", "n_empty") if found.n_queries else ()
    fields = [name for name in found.matches[0]._fields if found.n_queries or name != "n_queries_with_false"]
    rows = [
        match._asdict() | {name: getattr(found, name)[match.radius] for name in of_queries} for match in found.matches
    ]
    of_others = [f"background_{name}" for name in _OF_BACKGROUND] if background is not None else []
    if background is not None:
        for row, match in zip(rows, background.matches, strict=True):
            row |= {key: getattr(match, name) for key, name in zip(of_others, _OF_BACKGROUND, strict=True)}
    return Records(parts, content, rows, [*fields, *of_queries, *of_others])


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 10 else f"{value:.2g}"


def _contents(
    match: "Match", found: "Thresholds", background: "Thresholds | None", corpus_size: int | None
) -> dict[str, Any]:
    content = match._asdict()
    if not found.n_queries:
        del content["n_queries_with_false"]
    judged = None if found.held_out is None else found.held_out.at(match.radius)
    if judged is not None:
        content["held_out"] = {name: value for name, value in judged._asdict().items() if name in content}
    of_others = None if background is None else background.at(match.radius)
    if of_others is not None:
        content["background"] = {name: getattr(of_others, name) for name in _OF_BACKGROUND}
    if corpus_size is not None:
        content["expected_false"] = _expected(of_others or judged or match, corpus_size)
    return content


def _expected(match: "Match", corpus_size: int) -> dict[str, list[float]]:
    """Return the false matches to expect, with the ends of their interval."""
    rates, n_pairs = (match.fpr, match.fpr_low, match.fpr_high), corpus_size * (corpus_size - 1) / 2
    return {"per_query": [rate * corpus_size for rate in rates], "all_pairs": [rate * n_pairs for rate in rates]}


def _sentences(
    name: str, match: "Match", found: "Thresholds", background: "Thresholds | None", corpus_size: int | None
) -> list[str]:
    lines, judged = [f"{name}: radius {match.radius}, {_shares(match, found)}."], match
    if found.held_out is not None:
        judged = found.held_out.at(match.radius)
        lines.append(f"  held out: {_shares(judged, found.held_out)}.")
    if background is not None:
        judged = background.at(match.radius)
        lines.append(f"  background: {_false_share(judged, background)}.")
    if corpus_size is not None and not math.isnan(judged.fpr):
        of_query, of_all = (
            f"{rate} ({low} to {high})"
            for rate, low, high in (map(_rounded, numbers) for numbers in _expected(judged, corpus_size).values())
        )
        lines.append(f"  {corpus_size:,} items: {of_query} false matches per query, {of_all} in all pairs.")
    return lines


def _shares(match: "Match", found: "Thresholds") -> str:
    """Return the shares with their intervals."""
    parts = [f"F1 {_number(match.f1, '.4f')}"]
    for name in ("precision", "recall"):
        if not math.isnan(share := getattr(match, name)):
            low, high = (getattr(match, f"{name}_{end}") for end in ("low", "high"))
            parts.append(f"{name} {share:.4f} ({low:.2f} to {high:.2f})")
    if not found.n_irrelevant:
        return f"{', '.join(parts)}; no pair is irrelevant"
    of_queries = f", in {match.n_queries_with_false:,} of {found.n_queries:,} queries" if found.n_queries else ""
    return f"{', '.join(parts)}; {_false_share(match, found)}{of_queries}"


def _false_share(match: "Match", found: "Thresholds") -> str:
    return (
        f"{match.n_false:,} of {found.n_irrelevant:,} irrelevant pairs match, {match.fpr:.3g} of them "
        f"({match.fpr_low:.2g} to {match.fpr_high:.2g})"
    )


def _notes(found: "Thresholds", background: "Thresholds | None", corpus_size: int | None) -> list[str]:
    items = "items" if found.are_met_twice else "queries" if found.n_queries else "pairs"
    uap, of_orders = found.uap, f"sd over orders of the {items}"
    lines = [
        f"In brackets: 95 % intervals for others like these {found.units}, whose pairs depend on each other.",
        f"uAP {uap.mean:.4f}, from {uap.low:.4f} to {uap.high:.4f} over orders of tied pairs ({of_orders} "
        f"{uap.tie_sd:.5f}): all pairs in one ranking by distance."
        if found.n_relevant
        else "No pair is relevant, so recall, F1 and uAP are not defined.",
        f"{found.n_relevant:,} relevant of {found.n_relevant + found.n_irrelevant:,} pairs"
        + (", all queries together; a radius has no ties." if found.n_queries else "; a radius has no ties."),
    ]
    if corpus_size is not None:
        pairs = "irrelevant pairs here" if background is None else "those of the background"
        lines.insert(1, f"{corpus_size:,} items: if they match each other as often as {pairs} do.")
    if background is not None:
        lines.insert(
            1,
            "background: pairs of other items, all taken to be irrelevant; --fpr goes by them. Its intervals are for "
            "others like these.",
        )
    if found.held_out is not None:
        lines.append("Radii were chosen on one half, which the table shows; held out: pairs of the other half.")
    if found.n_undefined:
        lines.append(f"{found.n_undefined:,} queries have no relevant item.")
    return lines
