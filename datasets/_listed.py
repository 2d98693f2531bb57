"""Images named by lists that come from other people's machines: found by the end of their paths."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hashbench.errors import HashbenchError, one_line
from hashbench.sources.download import Needed
from hashbench.sources.images import ImageFiles, is_image

_SHOWN = 3  # names of missing images


def read_lines(path: Path) -> list[str]:
    """Read a list.

    Parameters
    ----------
    path : Path
        A text file.

    Returns
    -------
    list of str
        Its lines without the blank ones, ``/`` between folders whatever the system they come from.

    Raises
    ------
    HashbenchError
        If it is no text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HashbenchError(f"cannot read {path} as text: {one_line(error).rstrip('.')}.") from error
    return [line.strip().replace("\\", "/") for line in text.splitlines() if line.strip()]


def needed_images(folder: Path, otherwise: Needed) -> Needed:
    """Say which images are needed in a form that `hashbench.sources.download.demand` can check: one of them.

    Parameters
    ----------
    folder : Path
        Where they should lie, at any depth.
    otherwise : Needed
        What to ask for if there are none.

    Returns
    -------
    Needed
        The first image found, else what to ask for.
    """
    first = next(_image_files(folder), None)
    return otherwise if first is None else Needed(str(first.relative_to(folder)))


def find_images(folder: Path, wanted: Sequence[str], what: str) -> ImageFiles:
    """Find images by the ends of their paths.

    Parameters
    ----------
    folder : Path
        Where they lie, at any depth.
    wanted : sequence of str
        ``name.jpg``, or ``folder/name.jpg``: all with as many parts.
    what : str
        What they are the images of.

    Returns
    -------
    ImageFiles
        In the order wanted.

    Raises
    ------
    HashbenchError
        If some are missing.
    """
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
