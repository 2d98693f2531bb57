"""The command that writes models and codes for other programs: export."""

from pathlib import Path

import click
from click import Choice
from cloup import option

from hashbench._choices import CODES_TARGETS, MODEL_TARGETS, PRECISIONS
from hashbench.cli.options import ARRAY, FILE, Word
from hashbench.cli.outputs import echo, refuse_outputs
from hashbench.errors import counted

_TARGETS = sorted({*MODEL_TARGETS, *CODES_TARGETS})


@click.command()
@click.argument("file", type=FILE)
@option("--to", "target", type=Word(_TARGETS), required=True, help="Program or format to write for.")
@option("--output", "-o", type=FILE, required=True, help="File to write.")
@option("--role", type=Choice(["database", "query"]), show_default="database", help="Codes to write.")
@option("--precision", type=Choice(PRECISIONS), show_default="float64", help="Precision of numbers in onnx and npz.")
@option(
    "--from",
    "items",
    type=ARRAY,
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
    from hashbench.pipeline.exporting import export as write
    from hashbench.pipeline.exporting import inputs_of

    refuse_outputs({"--output": output}, inputs_of(file, items))
    report = write(file, target, output, role=role, precision=precision, items=items)
    echo(
        f"wrote {output}. Of {counted(report.n_items, 'item')}, read by {report.reader}, {report.n_differing:,} of "
        f"{report.n_items * report.n_bits:,} bits differ."
    )
