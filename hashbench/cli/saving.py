"""The command that saves scores of the user's own codes as rows of results: save."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from cloup import option, option_group

from hashbench.cli import inputs, options
from hashbench.cli.outputs import check_installed, echo, refuse_outputs

if TYPE_CHECKING:
    from hashbench.pipeline.own_codes import OwnCodes, Saving

_IGNORING = ("exclude_self", "exclude_same_id", "groups", "junk_label")  # options that leave items out of rankings


@cloup.command()
@click.argument("name")
@inputs.own_codes_group(
    inputs.BITS,
    inputs.DISTANCE,
    inputs.EXCLUDE_SELF,
    constraint=None,
    may_be_several=False,
)
@inputs.relevance_group(None)
@inputs.vectors_group(None)
@option_group(
    "What to score",
    option(
        "--dataset",
        required=True,
        metavar="DATASET",
        shell_complete=options.completing("datasets"),
        help="Dataset of the rows, by name or file, whose labels define what is relevant; or, with your own labels or "
        "affinity, a new name.",
    ),
    options.METRIC_TO_SCORE,
    inputs.QUERY_OUTPUTS,
)
@option_group(
    "How tables show it",
    option("--group", metavar="GROUP", show_default="after all groups", help="Group in tables, such as pair-based."),
    option("--label", metavar="TEXT", show_default="NAME codes=own", help="Name of the codes in tables and figures."),
    option("--seed", type=options.SEEDS, default=0, help="Seed to record in the rows."),
    option(
        "--draws-nothing",
        is_flag=True,
        help="The method draws nothing at random, like PCA or a fixed hash, so one run stands for all seeds.",
    ),
    option("--keep-codes", is_flag=True, help="Keep the codes in the data folder, too, for the report and figures."),
)
@option_group("Output", options.RESULTS, options.output_format("table", "csv", "json", "markdown"))
def save(
    name: str,
    dataset: str,
    metrics: tuple[str, ...],
    group: str | None,
    label: str | None,
    seed: int,
    draws_nothing: bool,
    keep_codes: bool,
    results: Path,
    form: str,
    **own: Any,
) -> None:
    """Score your own codes, and save rows of NAME in the results, beside those of the methods.

    In the names of files, {bits} and {seed} stand for numbers; each file is scored, and all are saved or none.

    \b
    hashbench save mine --query-codes c.mat:B_test --database-codes c.mat:B_train --dataset digits
    hashbench save mine --query-codes 'q-{bits}-{seed}.npy' --database-codes 'd-{bits}-{seed}.npy' --dataset digits
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.cli import console
    from hashbench.cli.progress import ProgressBar
    from hashbench.pipeline.own_codes import OwnFiles, Saving, judge_of, names_own_relevance, save_all
    from hashbench.pipeline.own_grid import evaluate_each, find_pairs, missing_seeds
    from hashbench.scoring.compilation import reporting_compilation
    from hashbench.scoring.evaluation import DEFAULT_METRICS
    from hashbench.sources.array_files import find_shards, split_spec

    check_installed("filelock", "platformdirs")
    inputs.require_codes(own)
    saving = Saving(name, dataset, results, group, label, seed, keep_codes, draws_nothing)
    judge = judge_of(saving, own)
    saving.check(own["distance"], is_labelled=judge is None, ignoring=[key for key in _IGNORING if own[key]])
    pairs = find_pairs(own["query_codes"], own["database_codes"])
    if find_shards(pairs[0].database):
        raise click.UsageError("codes are saved from one file; give the database as one.")
    others = {key: value for key, value in own.items() if key not in ("query_codes", "database_codes")}
    codes_files = [split_spec(spec)[0] for pair in pairs for spec in (pair.query, pair.database)]

    def check(codes: "OwnCodes", saving: "Saving") -> None:
        refuse_outputs(dict(codes.saved_files(saving)), [*codes_files, *inputs.files_of(others, judge)])

    with ProgressBar() as progress, reporting_compilation(progress.update):
        files = OwnFiles(**own, dataset=judge)
        scored = evaluate_each(files, pairs, saving, metrics or DEFAULT_METRICS, check, progress.update)
    notes = [inputs.order_note(judge)] if judge is not None and not names_own_relevance(own) else []
    notes += [*missing_seeds(pairs), *(note for _, _, evaluation in scored for note in evaluation.notes)]
    for note in dict.fromkeys([*notes, *save_all(scored)]):
        click.echo(note, err=True)
    of_each = [(codes.n_bits, each.seed, scores) for codes, each, scores in scored]
    is_one = len(scored) == 1
    echo((console.evaluation_records(scored[0][2]) if is_one else console.several_records(of_each)).to_text(form))
