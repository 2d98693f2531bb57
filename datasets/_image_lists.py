"""Images named by published lists, found by the ends of their paths."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hashbench.adapter import Options
from hashbench.errors import HashbenchError
from hashbench.sources.download import Needed, fetch_unpacked
from hashbench.sources.features.extraction import KINDS
from hashbench.sources.images import ImageFiles, image_files
from hashbench.store.inputs import check_file, reading

KINDS_OF_PHOTOS = ("alexnet", *(kind for kind in KINDS if kind != "alexnet"))
_HASHNET = "https://github.com/thuml/HashNet/tree/master/pytorch"
_SHOWN = 3  # names of missing images


def read_lines(path: Path) -> list[str]:
    """Read the lines of a list that are not blank, with ``/`` between folders."""
    check_file(path)
    with reading(path, "text"):
        text = path.read_text(encoding="utf-8")
    return [line.strip().replace("\\", "/") for line in text.splitlines() if line.strip()]


def needed_lists(what: str) -> tuple[Needed, ...]:
    """Return the three lists of HashNet for ``what``: training items, database, queries."""
    raw = f"https://raw.githubusercontent.com/thuml/HashNet/master/pytorch/data/{what}"
    return (
        Needed("train.txt", f"{raw}/train.txt", note="no checksum is published"),
        Needed(
            "database.txt",
            _HASHNET,
            note=f"beside the others or in {what}.tar.gz, which the README there links to; no checksum is published",
        ),
        Needed("test.txt", f"{raw}/test.txt", note="no checksum is published"),
    )


def read_labelled(
    path: Path, n_classes: int, n_wanted: int, *, has_several: bool = False
) -> dict[str, tuple[int, ...]]:
    """Read the classes of each file name in a list of HashNet; one class each, unless ``has_several``."""
    classes: dict[str, tuple[int, ...]] = {}
    lines = read_lines(path)
    for line in lines:
        image, *digits = line.rsplit(maxsplit=n_classes)
        n_ones = digits.count("1")
        is_valid = len(digits) == n_classes and {*digits} <= {"0", "1"}
        if not is_valid or n_ones < 1 or (n_ones > 1 and not has_several):
            ones = "one or several of them" if has_several else "one of them"
            raise HashbenchError(
                f"{path} has a line that begins {line[:60]!r}, expected a path and {n_classes} digits, {ones} 1 and "
                "the others 0."
            )
        classes[image.rpartition("/")[2]] = tuple(place for place, digit in enumerate(digits) if digit == "1")
    if (len(lines), len(classes)) != (n_wanted, n_wanted):
        raise HashbenchError(
            f"{path} has {len(lines):,} lines with {len(classes):,} images, expected {n_wanted:,}; fetch it again."
        )
    return classes


def demand_fit(folder: Path, wrong: Mapping[str, Sequence[str]]) -> None:
    """Refuse lists that contradict each other; ``wrong`` holds names by their fault."""
    for what, names in wrong.items():
        if names:
            raise HashbenchError(
                f"the lists in {folder} name {len(names):,} {what}, first {names[0]}; fetch them again."
            )


def fetch_archives(archives: Mapping[str, str], folder: Path, options: Options) -> None:
    """Download missing public archives, given as checksums by address, unless the user has a source."""
    if options.source is None:
        for url, checksum in archives.items():
            fetch_unpacked(url, checksum, folder / Path(url).stem, on_progress=options.on_progress)


def needed_images(folder: Path, otherwise: Needed) -> Needed:
    """Return an image below a folder, for `hashbench.plugins.demand`; ``otherwise`` if there is none."""
    first = next(image_files(folder), None) if folder.is_dir() else None
    return otherwise if first is None else Needed(str(first.relative_to(folder)))


def find_images(folder: Path, wanted: Sequence[str], what: str) -> ImageFiles:
    """Find images at any depth by the ends of their paths: all ``name.jpg``, or all ``folder/name.jpg``."""
    n_parts = wanted[0].count("/") + 1
    names = set(wanted)
    paths: dict[str, Path] = {}
    for path in image_files(folder):
        name = "/".join(path.parts[-n_parts:])
        if name in names:
            paths[name] = min(path, paths.get(name, path))
    missing = sorted(names - paths.keys())
    if missing:
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        raise HashbenchError(
            f"{len(missing):,} of the {len(names):,} images of {what} are missing below {folder}: {shown}. "
            "Put them there, or pass the folder that holds all of them as --source."
        )
    return ImageFiles([paths[name] for name in wanted])
