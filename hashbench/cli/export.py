"""What leaves: new items encoded with a kept model, and models and codes in the forms of other programs."""

from pathlib import Path

import click

from hashbench._choices import CODES_TARGETS, MODEL_TARGETS, PRECISIONS
from hashbench.cli.options import FILE, Word
from hashbench.cli.outputs import refuse_outputs
from hashbench.errors import counted

_TARGETS = sorted({*MODEL_TARGETS, *CODES_TARGETS})


@click.command()
@click.argument("file", type=FILE)
@click.option("--to", "target", type=Word(_TARGETS), required=True, help="The program, or the format.")
@click.option("--output", type=FILE, required=True, help="File to write.")
@click.option("--role", type=click.Choice(["database", "query"]), help="Whose codes. [database]")
@click.option("--precision", type=click.Choice(PRECISIONS), help="Of numbers, in onnx and npz. [float64]")
@click.option("--from", "items", help="Items to compare by. [1,000 of the dataset that the model learned from]")
def export(file: Path, target: str, output: Path, role: str | None, precision: str | None, items: str | None) -> None:
    """Write a kept model (faiss, npz, onnx) or a codes file (faiss, hex, npy, pgvector, usearch) for other programs.

    What was written is read by the program's own library, and the bits that differ are counted.

    \b
    hashbench encode --method itq --bits 32 --keep-model
    hashbench export ~/.cache/hashbench/codes/digits/itq-32-s0.model.npz --to onnx --output itq.onnx
    """  # noqa: D301  # click reads the backspace as: keep these lines as they are
    from hashbench.pipeline.exporting import export as write
    from hashbench.pipeline.exporting import inputs_of

    refuse_outputs({"--output": output}, inputs_of(file, items))
    report = write(file, target, output, role=role, precision=precision, items=items)
    click.echo(
        f"wrote {output}. Of {counted(report.n_items, 'item')}, read by {report.reader}, {report.n_differing:,} of "
        f"{report.n_items * report.n_bits:,} bits differ."
    )


def encode_new(model: Path, items: str, output: Path, *, packed: bool, device: str | None) -> None:
    """Encode new items with a kept model, with the progress on stderr, and tell what was written."""
    from hashbench.cli.progress import Progress
    from hashbench.pipeline.encoding import encode_items
    from hashbench.sources.array_files import split_spec

    refuse_outputs({"--output": output}, [model, split_spec(items)[0]])
    with Progress() as progress:
        n_items, n_bits = encode_items(model, items, output, packed=packed, device=device, on_progress=progress.tell)
    form = counted(n_bits, "bit") + (", packed" if packed else "")
    click.echo(f"wrote {output}: codes of {counted(n_items, 'item')}, {form}.")
