"""Files of hashbench, edited as a program would that knows their form."""

from hashbench.store import artifact


def edit(path, change=lambda record, arrays: None):
    """Change the record and the arrays of a file, whose digest follows; return them."""
    record = artifact.read_record(path)
    with artifact.open_hdf5(path) as file:
        found = artifact.Artifact(path, file)
        arrays = {name: found.array(name) for name in record["arrays"]}
    change(record, arrays)
    kind = record.pop("hashbench")
    artifact.write(path, kind, record, arrays)
    return {"hashbench": kind, **record}, arrays


def record_in(path, **entries):
    """Change entries of a file's record."""
    return edit(path, lambda record, arrays: record.update(entries))
