"""Images as adapters hand them on: read block by block, from an array or from files."""

import hashlib
import lzma
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from hashbench.affinity import IntArray
from hashbench.errors import HashbenchError
from hashbench.files import one_line

ImageArray = npt.NDArray[np.uint8]
ARCHIVE_ERRORS = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError)  # of archives cut short or damaged
_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
_LOSSY = (".jpeg", ".jpg")


class Images(ABC):
    """A sequence of RGB images.

    Attributes
    ----------
    native_size : int or None
        Width and height of all images, None if they differ.
    """

    native_size: int | None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, rows: slice, size: int | None = None) -> ImageArray:
        """Read some images.

        Parameters
        ----------
        rows : slice
            Which ones.
        size : int, optional
            Resize them to this width and height (bicubic); by default they keep theirs.

        Returns
        -------
        ndarray of shape (n, height, width, 3), uint8
            RGB.
        """

    @property
    @abstractmethod
    def content(self) -> str:
        """16 hex digits that change when the images do."""


class ImageArrays(Images):
    """Images of one size, in memory.

    Parameters
    ----------
    array : ndarray of shape (n, height, width, 3), uint8
        RGB.
    """

    def __init__(self, array: ImageArray) -> None:
        self.array = array
        self.native_size = array.shape[1] if array.shape[1] == array.shape[2] else None

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: slice, size: int | None = None) -> ImageArray:
        """Cut some images out, resized if need be; see `Images.read`."""
        block = self.array[rows]
        if size is None or block.shape[1:3] == (size, size):
            return block
        return np.stack([_resized(Image.fromarray(image), size) for image in block])

    @cached_property
    def content(self) -> str:
        """Digest of the pixels."""
        digest = hashlib.sha256(str(self.array.shape).encode())
        digest.update(np.ascontiguousarray(self.array).data)
        return digest.hexdigest()[:16]


class ImageFiles(Images):
    """Image files of any size and format that Pillow reads.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    """

    native_size = None

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, rows: slice, size: int | None = None) -> ImageArray:
        """Decode some files; see `Images.read`."""
        if size is None:
            raise HashbenchError("image files differ in size; say which size they are to be resized to (--image-size).")
        return np.stack([_decode(path, str(path), size) for path in self.paths[rows]])

    @cached_property
    def content(self) -> str:
        """Digest of the files' names, sizes and times of change."""
        digest = hashlib.sha256()
        for path in self.paths:
            try:
                state = path.stat()
            except OSError as error:
                raise HashbenchError(f"cannot read image {path}: {error.strerror}.") from error
            digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class ImageTree:
    """Images sorted into folders ``split/class/`` or ``class/``.

    Parameters
    ----------
    images : Images
        By split, then class, then file name; ``train`` comes before other splits.
    splits : list of str
        The split of each image; ``""`` where folders name classes only.
    classes : list of str
        Class names, sorted.
    labels : ndarray of shape (n,), int64
        Index into ``classes``.
    is_lossy : bool
        Whether some are JPEG files.
    """

    images: Images
    splits: list[str]
    classes: list[str]
    labels: IntArray
    is_lossy: bool


def read_tree(path: Path) -> ImageTree:
    """Find the images of a folder, or read those of a tar archive.

    Parameters
    ----------
    path : Path
        A folder or a ``.tar``, ``.tar.gz``, ``.tar.xz`` archive of ``train/<class>/*`` and ``test/<class>/*``, or of
        ``<class>/*``. The images of an archive must have one size, since they are held in memory.

    Returns
    -------
    ImageTree
        Its images, in an order that does not depend on the file system.

    Raises
    ------
    HashbenchError
        If there are no images, they lie at other depths, or one cannot be decoded.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
        found = [(_place(file.relative_to(path).parts, path), file) for file in files]
        found.sort(key=lambda item: _order(item[0]))
        places, images = [place for place, _ in found], ImageFiles([file for _, file in found])
        return _tree(places, images, path)
    members = sorted(
        ((_place(Path(name).parts, path), pixels) for name, pixels in _archived_images(path)),
        key=lambda item: _order(item[0]),
    )
    if not members:
        return _tree([], ImageFiles([]), path)
    shapes = {pixels.shape for _, pixels in members}
    if len(shapes) > 1:
        raise HashbenchError(f"images in {path} have {len(shapes)} different sizes; unpack it and give the folder.")
    return _tree([place for place, _ in members], ImageArrays(np.stack([pixels for _, pixels in members])), path)


def check_to_end(archive: tarfile.TarFile) -> None:
    """Check that an archive is whole: tarfile takes a broken header for its end, where compression has its checksum.

    Parameters
    ----------
    archive : TarFile
        One whose members have all been listed. If it is not whole, this raises one of ``ARCHIVE_ERRORS``.
    """
    stream = archive.fileobj
    if stream is None:
        return
    stream.seek(archive.offset)
    if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("it is cut short or damaged")
    while stream.read(1 << 16):
        pass


def _tree(places: list[tuple[str, str, str]], images: Images, path: Path) -> ImageTree:
    if not places:
        raise HashbenchError(f"there are no images in {path}, expected folders train/<class>/ or <class>/ with files.")
    names, labels = np.unique([class_name for _, class_name, _ in places], return_inverse=True)
    return ImageTree(
        images=images,
        splits=[split for split, _, _ in places],
        classes=names.tolist(),
        labels=labels.astype(np.int64),
        is_lossy=any(Path(name).suffix.lower() in _LOSSY for _, _, name in places),
    )


def _place(parts: Sequence[str], path: Path) -> tuple[str, str, str]:
    """Tell split, class and file name from the path inside a tree."""
    if len(parts) >= 3:
        return parts[-3], parts[-2], parts[-1]
    if len(parts) == 2:
        return "", parts[0], parts[1]
    raise HashbenchError(f"image {parts[-1]} of {path} lies in no folder, expected train/<class>/ or <class>/.")


def _order(place: tuple[str, str, str]) -> tuple[bool, tuple[str, str, str]]:
    return place[0] != "train", place


def _archived_images(path: Path) -> Iterator[tuple[str, ImageArray]]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and Path(member.name).suffix.lower() in _SUFFIXES:
                    stored = archive.extractfile(member)
                    if stored is not None:
                        yield member.name, _decode(stored, f"{member.name} of {path}", None)
            check_to_end(archive)
    except ARCHIVE_ERRORS as error:
        raise HashbenchError(
            f"cannot read {path} as an archive of images: {one_line(error).rstrip('.')}. Fetch it again, "
            "or give a folder."
        ) from error


def _decode(file: Path | IO[bytes], name: str, size: int | None) -> ImageArray:
    try:
        with Image.open(file) as image:
            return _resized(image.convert("RGB"), size)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise HashbenchError(f"cannot decode image {name}: {one_line(error).rstrip('.')}.") from error


def _resized(image: Image.Image, size: int | None) -> ImageArray:
    if size is not None and image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.uint8)
