"""The command that scores codes of any origin: evaluate."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from hashbench.cli.options import FILE, FORMAT, METRIC, OUTPUT


@click.command()
@click.argument("codes", type=FILE, required=False)
@click.option("--dataset", help="Name or file of the dataset that CODES were made from; by default the name in it.")
@click.option(
    "--query-codes",
    type=FILE,
    help="Your own: .npy of bool, 0/1 or -1/+1; or, with --bits, packed, first bit least significant.",
)
@click.option("--database-codes", type=FILE, help="The same for the database.")
@click.option("--bits", "n_bits", type=int, help="Code length of packed codes.")
@click.option("--query-labels", type=FILE, help=".npy of class labels (n,) or multi-hot (n, n_classes).")
@click.option("--database-labels", type=FILE, help="The same for the database.")
@click.option("--query-coarse", type=FILE, help=".npy of superclasses (n,): level 2 in the class, 1 in the superclass.")
@click.option("--database-coarse", type=FILE, help="The same for the database.")
@click.option("--affinity", type=FILE, help="Instead of labels: .npy matrix or .npz SciPy CSR of levels.")
@click.option(
    "--distance",
    type=click.Choice(["hamming", "cosine", "dot"]),
    help="How to rank your own; cosine and dot take real-valued outputs, before the sign. [hamming]",
)
@METRIC
@click.option(
    "--undefined",
    type=click.Choice(["skip", "paper"]),
    default="skip",
    show_default=True,
    help="Queries without relevant items: leave out, or count AP 0 and NDCG 1.",
)
@FORMAT
@click.option("--per-query", type=OUTPUT, help="Also write every query's scores to this CSV file; - for stdout.")
@click.option(
    "--curves",
    type=OUTPUT,
    help="Also write precision-recall curves, by radius and by rank, to this CSV file; - for stdout.",
)
def evaluate(
    codes: Path | None,
    dataset: str | None,
    metrics: tuple[str, ...],
    undefined: str,
    form: str,
    per_query: Path | None,
    curves: Path | None,
    **own: Any,
) -> None:
    """Score CODES.h5, or your own codes of any origin, exactly over all tie orders."""
    from hashbench._parallel import telling_of_compilation
    from hashbench.cli import console
    from hashbench.pipeline import own_codes, preparation, steps
    from hashbench.scoring.curves import curve_metrics, lay_out
    from hashbench.scoring.evaluation import DEFAULT_METRICS
    from hashbench.sources import array_files
    from hashbench.store import hdf5
    from hashbench.store.files import HDF5_SUFFIXES

    outputs = [path for path in (per_query, curves) if path is not None]
    names = metrics or DEFAULT_METRICS
    if codes is not None:
        if any(value is not None for value in own.values()):
            raise click.UsageError("give either CODES.h5 or your own --query-codes and --database-codes, not both.")
        if codes.suffix.lower() not in HDF5_SUFFIXES:
            raise click.UsageError(
                f"{codes} is no CODES.h5 of hashbench. Give your own codes as --query-codes and --database-codes."
            )
        with hdf5.open_codes(codes) as opened:
            made = opened.made
            dataset = dataset or str(preparation.find_by_content(made.dataset_fingerprint) or made.dataset)
            sizes = opened.n_bits, len(opened.database)
        _refuse_outputs(outputs, [codes, Path(dataset), preparation.dataset_path(dataset)])
        loaded, _ = preparation.load_dataset(dataset)
        score = partial(steps.score, loaded, codes, undefined=undefined)
    else:
        if own["query_codes"] is None or own["database_codes"] is None:
            raise click.UsageError("give CODES.h5, or both --query-codes and --database-codes.")
        if dataset is not None:
            raise click.UsageError("--dataset goes with CODES.h5; what is relevant to your own codes say their labels.")
        _refuse_outputs(outputs, [value for value in own.values() if isinstance(value, Path)])
        own["distance"] = own["distance"] or "hamming"
        score = partial(own_codes.evaluate_files, undefined=undefined, **own)
    with telling_of_compilation(lambda what, *_: click.echo(f"{what} ...", err=True)):
        evaluation = score(names)
    if per_query is not None:
        _write(per_query, evaluation.per_query.to_csv(index=False, lineterminator="\n"))
    if curves is not None:
        if codes is None:
            n_database, width = array_files.load_array(own["database_codes"]).shape
            sizes = own["n_bits"] or width, n_database
        points = curve_metrics(*sizes, by_radius=own["distance"] != "cosine")
        _write(curves, lay_out(score(points)).to_csv(index=False, lineterminator="\n"))
    click.echo(console.format_evaluation(evaluation, form), err=_STDOUT in map(_place, outputs))


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
