"""The command that counts matches at each radius: thresholds."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from cloup import option, option_group

from hashbench.cli import options
from hashbench.cli.outputs import FIGURES, STDOUT, FigurePath, check_installed, save_figure, target_of, write
from hashbench.cli.scoring import (
    CODES,
    DATASET,
    EXCLUDE_SELF,
    RELEVANCE,
    own_codes_group,
    read_codes_file,
    read_own_codes,
)

if TYPE_CHECKING:
    from hashbench.pipeline.own_codes import OwnCodes
    from hashbench.scoring.shards import ShardedCodes
    from hashbench.scoring.thresholds import Match, Thresholds

_MORE = 3  # radii shown beyond those that were asked for


@cloup.command()
@CODES
@own_codes_group(option("--bits", "n_bits", type=int, help="Code length of packed codes."), EXCLUDE_SELF)
@RELEVANCE
@option_group(
    "What to look for",
    DATASET,
    option(
        "--fpr",
        type=options.Number(0, 1),
        multiple=True,
        help="False positive rate that you allow, at the upper end of its 95 % interval, repeatable.",
    ),
    option("--precision", type=options.Number(0, 1), multiple=True, help="Precision that you need, repeatable."),
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
)
def thresholds(
    codes: Path | None,
    dataset: str | None,
    fpr: tuple[float, ...],
    precision: tuple[float, ...],
    form: str,
    output: Path | None,
    **own: Any,
) -> None:
    """Count what each Hamming radius matches: precision, recall, false positive rate and F1 over all pairs.

    \b
    hashbench thresholds --query-codes q.npy --database-codes d.npy --query-labels ql.npy --database-labels dl.npy
    hashbench thresholds --query-codes ... --fpr 1e-6 --output thresholds.svg
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli.progress import ProgressBar
    from hashbench.scoring.compilation import reporting_compilation

    check_installed("scipy.stats", *(["pandas"] if output or form == "csv" else []))
    outputs, progress = {"--output": output}, ProgressBar()
    user_codes: OwnCodes | ShardedCodes | None = read_codes_file(codes, own, dataset, outputs)
    if user_codes is None:
        user_codes = read_own_codes(own, dataset, outputs, on_progress=progress.update)
    with progress, reporting_compilation(progress.update):
        found = user_codes.thresholds()
    for note in found.notes:
        click.echo(note, err=True)
    asked: dict[str, Match | None] = {"best F1": found.best_f1}
    asked |= {f"precision {number:g}": found.at_precision(number) for number in precision}
    reasons = {"best F1": "no pair is relevant"}  # why there is no match
    for rate in fpr:
        name = f"false positive rate {rate:g}"
        asked[name], reasons[name] = found.at_fpr(rate), found.why_no_radius(rate)
    if output is not None and output.suffix.lower() in FIGURES:
        from hashbench.reports.plots.curves_figure import draw_thresholds

        save_figure(output, draw_thresholds(found, codes.stem if codes else "codes", asked, fpr, precision))
    elif output is not None:
        write(output, found.to_frame().to_csv(index=False, lineterminator="\n"))
    is_stdout_taken = output is not None and target_of(output) == STDOUT
    click.echo(_format(found, asked, reasons, form), err=is_stdout_taken)


def _format(found: "Thresholds", asked: "Mapping[str, Match | None]", reasons: Mapping[str, str], form: str) -> str:
    from hashbench.reports.formatting import json_text, markdown_table, plain_table

    if form == "csv":
        return found.to_frame().to_csv(index=False, lineterminator="\n").rstrip("\n")
    if form == "json":
        summary = {key: getattr(found.uap, key) for key in ("mean", "tie_sd", "low", "high")}
        content = {name: match and match._asdict() for name, match in asked.items()}
        return json_text({"n_bits": found.n_bits, "uAP": summary, **content})
    chosen = {match.radius for match in asked.values() if match is not None}
    first = next((match.radius for match in found.matches if match.n_matches), 0)
    shown = found.matches[first : max(chosen, default=first) + _MORE + 1]
    header = ["radius", "matches", "false", "precision", "recall", "false positive rate", "F1"]
    lines = [
        [
            str(match.radius),
            f"{match.n_matches:,}",
            f"{match.n_false:,}",
            *(_number(share, ".4f") for share in (match.precision, match.recall)),
            _number(match.fpr, ".3g"),
            _number(match.f1, ".4f"),
        ]
        for match in shown
    ]
    sentences = [
        f"{name}: {_sentence(match, found) if match else reasons.get(name, 'no radius has it')}."
        for name, match in asked.items()
    ]
    table = (markdown_table if form == "markdown" else plain_table)(header, lines)
    return "\n".join([table, "", *sentences, *_notes(found)])


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def _sentence(match: "Match", found: "Thresholds") -> str:
    start = f"radius {match.radius}, F1 {_number(match.f1, '.4f')}"
    if not found.n_irrelevant:
        return f"{start}; no pair is irrelevant"
    return (
        f"{start}; {match.n_false:,} of {found.n_irrelevant:,} irrelevant pairs match, {match.fpr:.3g} of them "
        f"(95 % interval {match.fpr_low:.2g} to {match.fpr_high:.2g}, assuming independent pairs), in "
        f"{match.n_queries_with_false:,} of {found.n_queries:,} queries"
    )


def _notes(found: "Thresholds") -> list[str]:
    uap, of_orders = found.uap, f"sd over orders of the {'items' if found.are_met_twice else 'queries'}"
    return [
        f"uAP {uap.mean:.4f} ({uap.low:.4f} to {uap.high:.4f}; {of_orders} {uap.tie_sd:.5f}): all pairs in one ranking "
        "by distance, over all orders of tied pairs."
        if found.n_relevant
        else "No pair is relevant, so recall, F1 and uAP are not defined.",
        f"{found.n_relevant:,} relevant of {found.n_relevant + found.n_irrelevant:,} pairs, all queries together; a "
        "radius has no ties.",
        *([f"{found.n_undefined:,} queries have no relevant item."] if found.n_undefined else []),
    ]
