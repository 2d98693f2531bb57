"""Images named by lists that come from other people's machines: found by the end of their paths."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hashbench.errors import HashbenchError, one_line
from hashbench.sources.download import Needed
from hashbench.sources.images import ImageFiles, is_image

_SHOWN = 3  # names of missing images


def read_lines(path: Path) -> list[str]:
    """Read the lines of a list, but for blank ones; ``/`` between folders whatever the system they come from."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HashbenchError(f"cannot read {path} as text: {one_line(error).rstrip('.')}.") from error
    return [line.strip().replace("\\", "/") for line in text.splitlines() if line.strip()]


def needed_images(folder: Path, otherwise: Needed) -> Needed:
    """Name one image below a folder, for `hashbench.sources.download.demand`; what to ask for if there is none."""
    first = next(_image_files(folder), None)
    return otherwise if first is None else Needed(str(first.relative_to(folder)))


def find_images(folder: Path, wanted: Sequence[str], what: str) -> ImageFiles:
    """Find images at any depth by the ends of their paths: all ``name.jpg``, or all ``folder/name.jpg``."""
    n_parts = wanted[0].count("/") + 1
    names = set(wanted)
    found: dict[str, Path] = {}
    for path in _image_files(folder):
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


def _image_files(folder: Path) -> Iterator[Path]:
    """All images below a folder, links to other folders followed."""
    for parent, _, names in os.walk(folder, followlinks=True):
        yield from (Path(parent, name) for name in names if is_image(Path(name)))
