"""Images named by lists that come from other people's machines: found by the end of their paths."""

from collections.abc import Sequence
from pathlib import Path

from hashbench.errors import HashbenchError
from hashbench.sources.download import Needed
from hashbench.sources.images import ImageFiles, image_files
from hashbench.store.inputs import check_file, reading

_SHOWN = 3  # names of missing images


def read_lines(path: Path) -> list[str]:
    """Read the lines of a list, but for blank ones; ``/`` between folders whatever the system they come from."""
    check_file(path)
    with reading(path, "text"):
        text = path.read_text(encoding="utf-8")
    return [line.strip().replace("\\", "/") for line in text.splitlines() if line.strip()]


def needed_images(folder: Path, otherwise: Needed) -> Needed:
    """Name one image below a folder, for `hashbench.sources.download.demand`; what to ask for if there is none."""
    first = next(image_files(folder), None) if folder.is_dir() else None
    return otherwise if first is None else Needed(str(first.relative_to(folder)))


def find_images(folder: Path, wanted: Sequence[str], what: str) -> ImageFiles:
    """Find images at any depth by the ends of their paths: all ``name.jpg``, or all ``folder/name.jpg``."""
    n_parts = wanted[0].count("/") + 1
    names = set(wanted)
    found: dict[str, Path] = {}
    for path in image_files(folder):
        name = "/".join(path.parts[-n_parts:])
        if name in names:
            found[name] = min(path, found.get(name, path))
    missing = sorted(names - found.keys())
    if missing:
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        raise HashbenchError(
            f"of the {len(names):,} images of {what}, {len(missing):,} are nowhere below {folder}: {shown}. "
            "Put them there, or give the folder that holds them all as --source."
        )
    return ImageFiles([found[name] for name in wanted])
