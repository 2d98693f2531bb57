"""Images for adapters, read block by block from an array or from files."""

import hashlib
import lzma
import os
import tarfile
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from hashbench._typing import ByteArray, IntArray
from hashbench._validation import number_words
from hashbench.errors import HashbenchError, one_line
from hashbench.store.inputs import check_file, check_fits, reading

if TYPE_CHECKING:
    from PIL import Image

ARCHIVE_ERRORS = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError)  # of archives cut short or damaged
_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # not all of Pillow's: EPS starts a program
_LOSSY = (".jpeg", ".jpg")


class ImageArrays:
    """RGB images of one size in memory, (n, height, width, 3)."""

    def __init__(self, array: ByteArray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @property
    def native_size(self) -> int | None:
        """Width and height of all images, None if they differ."""
        height, width = self.array.shape[1:3]
        return height if height == width else None

    def read(self, rows: slice, size: int | None = None) -> ByteArray:
        """Read images (n, height, width, 3), RGB, resized (bicubic) to ``size`` x ``size`` pixels if given."""
        from PIL import Image

        block = self.array[rows]
        if size is None or block.shape[1:3] == (size, size):
            return block
        return np.stack([_resized(Image.fromarray(image), size) for image in block])

    def each(self, rows: slice) -> Iterator[ByteArray]:
        """Yield images (height, width, 3), RGB, one by one, as large as they are."""
        yield from self.array[rows]

    @cached_property
    def content(self) -> str:
        """A digest of the pixels, 16 hex digits."""
        digest = hashlib.sha256(str(self.array.shape).encode())
        digest.update(np.ascontiguousarray(self.array).data)
        return digest.hexdigest()[:16]


class ImageFiles:
    """Image files of any size."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def native_size(self) -> int | None:
        """Width and height by the headers, None if they differ."""
        sizes = set()
        for path in self.paths:
            with _opened(path, str(path)) as image:
                sizes.add(image.size)
            if len(sizes) > 1:
                return None
        width, height = sizes.pop() if sizes else (0, 1)
        return width if width == height else None

    def read(self, rows: slice, size: int | None = None) -> ByteArray:
        """Read images as `ImageArrays.read` does."""
        if size is None and self.native_size is None:
            raise HashbenchError("image files differ in size. Choose a size to resize them to: --image-size.")
        return np.stack([_decode(path, str(path), size) for path in self.paths[rows]])

    def each(self, rows: slice) -> Iterator[ByteArray]:
        """Yield images as `ImageArrays.each` does, decoded one by one."""
        return (_decode(path, str(path), None) for path in self.paths[rows])

    @cached_property
    def content(self) -> str:
        """A digest of the files' paths, sizes and times of change, 16 hex digits."""
        digest = hashlib.sha256()
        for path in self.paths:
            with reading(path, "an image"):
                resolved, state = path.resolve(), path.stat()
            digest.update(f"{resolved}\0{state.st_size}\0{state.st_mtime_ns}\0{state.st_ctime_ns}\0".encode())
        return digest.hexdigest()[:16]


Images = ImageArrays | ImageFiles


@dataclass(frozen=True, eq=False)
class ImageTree:
    """Images sorted into folders ``split/class/`` or ``class/``."""

    images: Images  # by split, then class, then file name; train comes before other splits
    splits: list[str]  # of each image; "" where folders name classes only
    classes: list[str]  # sorted
    labels: IntArray  # of each image, as index into classes
    is_lossy: bool  # whether some are JPEG files


def read_tree(path: Path) -> ImageTree:
    """List the images of a folder, or read those of a tar archive.

    Images are in ``train/<class>/`` and ``test/<class>/``, or in ``<class>/``; common parent folders and hidden files
    are ignored. Images of an archive must have one size. Their order does not depend on the file system.
    """
    if path.is_dir():
        files = list(image_files(path))
        places = _places([file.relative_to(path).parts for file in files], path)
        order = _in_order(places)
        images: Images = ImageFiles([files[row] for row in order])
    else:
        check_file(path)
        places, order, images = _archived_images(path)
    return _tree([places[row] for row in order], images)


def without_bad(tree: ImageTree) -> tuple[ImageTree, IntArray]:
    """Remove image files that cannot be decoded; return the others and their rows."""
    paths = tree.images.paths if isinstance(tree.images, ImageFiles) else []
    rows, reason = [], ""
    for row, path in enumerate(paths):
        try:
            _decode(path, str(path), None)  # takes 4 ms for 500 x 375 pixels; their GIST takes 35 ms
        except HashbenchError as error:
            reason = reason or str(error)
        else:
            rows.append(row)
    if not rows:
        raise HashbenchError(f"none of the {len(paths):,} images can be decoded. The first: {reason}")
    places = [(tree.splits[row], tree.classes[tree.labels[row]], paths[row].name) for row in rows]
    return _tree(places, ImageFiles([paths[row] for row in rows])), np.array(rows)


def image_files(folder: Path) -> Iterator[Path]:
    """List all images below a folder that are not hidden, following links to folders.

    Each folder is entered once, by the path with the fewest links, and of these the first in order.
    """
    waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]  # number of links to a folder, and its path inside
    seen = set()
    while waiting:
        n_links, parts = heappop(waiting)
        current = folder.joinpath(*parts)
        with reading(current):
            state = current.stat()
            if (state.st_dev, state.st_ino) in seen:
                continue
            seen.add((state.st_dev, state.st_ino))
            with os.scandir(current) as scanned:
                entries = sorted((entry for entry in scanned if entry.name[0] != "."), key=lambda entry: entry.name)
        for entry in entries:
            if _is_folder(entry):
                heappush(waiting, (n_links + entry.is_symlink(), (*parts, entry.name)))
            elif is_image(Path(entry.name)):
                yield current / entry.name


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link to itself; opening it reports that
        return False


def is_image(path: Path) -> bool:
    """Return whether a path in a folder or archive is that of an image that is not hidden."""
    return path.suffix.lower() in _SUFFIXES and not any(part.startswith(".") for part in path.parts)


def check_to_end(archive: tarfile.TarFile) -> None:
    """Raise one of ``ARCHIVE_ERRORS`` if an archive whose members have all been listed is incomplete.

    tarfile takes a broken header for the end; reading to the end verifies the checksum of the compression.
    """
    stream = archive.fileobj
    if stream is None:
        return
    stream.seek(archive.offset)
    if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("it is cut short or damaged")
    while stream.read(1 << 16):
        pass


def _tree(places: list[tuple[str, str, str]], images: Images) -> ImageTree:
    names, labels = number_words(np.array([class_name for _, class_name, _ in places]))
    return ImageTree(
        images=images,
        splits=[split for split, _, _ in places],
        classes=names.tolist(),
        labels=labels,
        is_lossy=any(Path(name).suffix.lower() in _LOSSY for _, _, name in places),
    )


def _places(paths: Sequence[tuple[str, ...]], root: Path) -> list[tuple[str, str, str]]:
    """Split paths inside a tree into split, class and file name."""
    expected = "expected folders train/<class>/ or <class>/ with files"
    if not paths:
        raise HashbenchError(f"there are no images in {root}, {expected}.")
    shortest, longest = min(paths, key=len), max(paths, key=len)
    if len(shortest) == 1:
        raise HashbenchError(f"image {shortest[0]} of {root} is not in a folder, {expected}.")
    if len(shortest) != len(longest):
        raise HashbenchError(
            f"images of {root} are at different depths: {'/'.join(shortest)} and {'/'.join(longest)}, {expected}."
        )
    if len({parts[:-3] for parts in paths}) > 1:
        raise HashbenchError(f"image {'/'.join(shortest)} of {root} lies too deep, {expected}.")
    return [(("", *parts)[-3], parts[-2], parts[-1]) for parts in paths]


def _in_order(places: Sequence[tuple[str, str, str]]) -> list[int]:
    """Sort rows by split, class and file name, training images first."""
    return sorted(range(len(places)), key=lambda row: (places[row][0] != "train", places[row]))


def _archived_images(path: Path) -> tuple[list[tuple[str, str, str]], list[int], ImageArrays]:
    """Decode the images of an archive, which have one size; return places, sorted rows, and sorted images."""
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive.getmembers() if member.isfile() and is_image(Path(member.name))]
            check_to_end(archive)
            places = _places([Path(member.name).parts for member in members], path)
            order = _in_order(places)
            pixels = np.empty(0, np.uint8)
            for row, member in zip(np.argsort(order), members, strict=True):  # in the order of the archive
                image = _decode(cast(IO[bytes], archive.extractfile(member)), f"{member.name} of {path}", None)
                if not pixels.size:
                    shape = (len(members), *image.shape)
                    check_fits(prod(shape), f"{path}, with {len(members):,} images,", "unpack it and pass the folder")
                    pixels = np.empty(shape, np.uint8)
                if image.shape != pixels.shape[1:]:
                    raise HashbenchError(
                        f"images in {path} differ in size, such as {members[0].name} and {member.name}; unpack it and "
                        "pass the folder."
                    )
                pixels[row] = image
    except ARCHIVE_ERRORS as error:
        raise HashbenchError(
            f"cannot read {path} as an archive of images: {one_line(error).rstrip('.')}. Fetch it again."
        ) from error
    return places, order, ImageArrays(pixels)


@contextmanager
def _opened(file: Path | IO[bytes], name: str) -> "Iterator[Image.Image]":
    """Open an image; turn Pillow's errors into a sentence."""
    from PIL import Image, UnidentifiedImageError

    if isinstance(file, Path):
        check_file(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=_FORMATS) as image:
                yield image
    except MemoryError:  # the image may be sound
        raise
    except Exception as error:  # each format has its own
        reason = one_line(error).rstrip(".") or type(error).__name__
        if isinstance(error, UnidentifiedImageError):
            reason = f"it is none of {', '.join(_FORMATS)}, or damaged"
        raise HashbenchError(
            f"cannot decode image {name}: {reason}. Replace or remove it, or prepare your own data with "
            "--skip-bad-images."
        ) from error


def _decode(file: Path | IO[bytes], name: str, size: int | None) -> ByteArray:
    with _opened(file, name) as image:
        return _resized(_as_rgb(image), size)


def _as_rgb(image: "Image.Image") -> "Image.Image":
    """Convert an image to RGB, and 16 bits to 8, which Pillow would clip."""
    from PIL import Image

    if image.mode in ("I", "F"):
        raise ValueError(f"values of mode {image.mode} have no known range; save it with 8 or 16 bits")
    if image.mode.startswith("I;16"):
        image = Image.fromarray(np.round(np.asarray(image) / 257).astype(np.uint8))
    return image.convert("RGB")


def _resized(image: "Image.Image", size: int | None) -> ByteArray:
    from PIL import Image

    if size is not None and image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.uint8)
