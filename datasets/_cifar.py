"""The CIFAR archives: Python pickles, plain binary files, or a tree of image files."""

import codecs
import pickle
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from hashbench._typing import ByteArray, Float32Array, IntArray
from hashbench.dataset import Dataset
from hashbench.datasets._published import PublishedDataset
from hashbench.errors import HashbenchError, one_line
from hashbench.sources.download import fetch
from hashbench.sources.features.extraction import KINDS, extract
from hashbench.sources.images import ARCHIVE_ERRORS, ImageArrays, Images, check_to_end, read_tree
from hashbench.store.files import data_dir
from hashbench.store.inputs import check_file, check_fits, reading

_PIXELS = 3 * 32 * 32
_RECONSTRUCT = np.zeros(0).__reduce__()[0]  # NumPy's function, wherever its module is
_CALLED: dict[tuple[str, str], Any] = {  # by the pickles of old and new NumPy
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): codecs.encode,
    ("__builtin__", "bytes"): bytes,
    ("builtins", "bytes"): bytes,
}


@dataclass(frozen=True)
class Format:
    """How one of the two archives is laid out."""

    name: str
    train: tuple[str, ...]  # files of the Python version; those of the binary version end in .bin
    test: tuple[str, ...]
    keys: tuple[bytes, ...]  # label arrays of the Python version, each a byte before an image of the binary version
    n_classes: tuple[int, ...]  # how many values each of them has
    classes: tuple[str, ...]  # names, in the order of the labels in keys[-1]
    superclasses: tuple[str, ...] = ()  # the class names of each, separated by blanks; for two keys
    n_train: int = 50_000
    n_test: int = 10_000


@dataclass(frozen=True, eq=False)
class CifarImages:
    """All images of an archive, training part first."""

    images: Images  # 32 x 32 RGB
    labels: IntArray  # (n_keys, n)
    n_train: int  # of the official training part
    source: str  # in words
    variant: str = ""  # added to the features' name: " (JPEG)" if the pixels went through lossy compression


class CifarAdapter(PublishedDataset):
    """Base of the datasets made of CIFAR archives."""

    features: ClassVar[tuple[str, ...]] = KINDS
    format: ClassVar[Format]
    url: ClassVar[str]
    sha256: ClassVar[str]
    rule = "same-label"
    needs = "a download of 170 MB, or --source"
    citation = "A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009"

    def split(self, items: CifarImages) -> tuple[IntArray, IntArray, IntArray]:
        """Return query, database and training rows; by default the official test and training part."""
        database = np.arange(items.n_train)
        return np.arange(items.n_train, len(items.images)), database, database

    def fields(self, items: CifarImages, features: Float32Array | None) -> dict[str, Any]:
        """Return split and labels as fields of `Dataset`, and features if these are not all."""
        coarse = items.labels[0] if self.rule == "hierarchy" else None
        return {"split": self.split(items), "labels": items.labels[-1], "coarse_labels": coarse}

    def prepare(self) -> Dataset:
        """Read the archive, compute features, split."""
        source = self.options.source
        if source is None:
            path = data_dir() / "downloads" / Path(self.url).name
            source = fetch(self.url, self.sha256, path, on_progress=self.options.on_progress)
        self.options.on_progress(f"reading {source}", 0, 0)
        items = read(source, self.format)
        extracted = extract(self.kind, items.images, self.options)
        fields = self.fields(items, extracted.features)
        about = {"source": items.source}
        features_name = f"{self.kind}{extracted.remark}{items.variant}"
        return self.dataset(extracted=extracted, about=about, features_name=features_name, **fields)


def read(path: Path, form: Format) -> CifarImages:
    """Read the official ``.tar.gz`` in its Python or binary version, or the folder unpacked from it.

    A folder or archive of images ``train/<class>/*`` and ``test/<class>/*`` works too. The numbers of images and
    classes must be those of the format.
    """
    with reading(path):
        is_there, is_folder = path.exists(), path.is_dir()
    if is_there and not is_folder:
        check_file(path)
    if not is_there:
        raise HashbenchError(f"{path} does not exist. Pass the {form.name} archive or a folder of images as --source.")
    with _members(path, {*form.train, *form.test, *(f"{name}.bin" for name in (*form.train, *form.test))}) as files:
        is_binary = bool(files) and all(name.endswith(".bin") for name in files)
        suffix = ".bin" if is_binary else ""
        wanted = [f"{name}{suffix}" for name in (*form.train, *form.test)]
        if not files:
            return _from_tree(path, form)
        missing = [name for name in wanted if name not in files]
        if missing:
            raise HashbenchError(f"{path} lacks {', '.join(missing)} of {form.name}; fetch the archive again.")
        parse = _parse_binary if is_binary else _parse_pickle
        parts = [parse(files[name], f"{name} of {path}", form) for name in wanted]
    pixels, labels = (np.concatenate([part[i] for part in parts], axis=-1 if i else 0) for i in range(2))
    n_train = sum(len(pixels) for pixels, _ in parts[: len(form.train)])
    images = ImageArrays(np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)))
    return _checked(CifarImages(images, labels, n_train, f"{form.name}, official archive"), path, form)


def _checked(items: CifarImages, path: Path, form: Format) -> CifarImages:
    counts = items.n_train, len(items.images) - items.n_train
    if counts != (form.n_train, form.n_test):
        raise HashbenchError(
            f"{path} holds {counts[0]} training and {counts[1]} test images, expected {form.n_train} and {form.n_test}."
        )
    for key, n_classes, labels in zip(form.keys, form.n_classes, items.labels, strict=True):
        classes = np.unique(labels)
        if not np.array_equal(classes, np.arange(n_classes)):
            raise HashbenchError(
                f"{key.decode()} of {path} hold {len(classes)} classes from {classes[0]} to {classes[-1]}, {form.name} "
                f"has {n_classes}, 0 to {n_classes - 1}."
            )
    return items


@contextmanager
def _members(path: Path, names: set[str]) -> Iterator[dict[str, IO[bytes]]]:
    """Open the wanted files of a folder or an archive; return them by their file name."""
    opened: dict[str, IO[bytes]] = {}
    archive = None
    try:
        if path.is_dir():
            for name in sorted(names):
                if file := next((file for file in sorted(path.rglob(name)) if file.is_file()), None):
                    opened[name] = file.open("rb")
        else:
            archive = tarfile.open(path)  # noqa: SIM115  # closed below, after what is read from it
            members = archive.getmembers()
            check_to_end(archive)
            for member in members:
                name = Path(member.name).name
                if name in names:
                    check_fits(member.size, f"{member.name} of {path}")
                if name in names and member.isfile() and (stored := archive.extractfile(member)) is not None:
                    opened[name] = stored
        yield opened
    except ARCHIVE_ERRORS as error:
        raise HashbenchError(f"cannot read {path} as a CIFAR archive: {one_line(error).rstrip('.')}.") from error
    finally:
        for stored in opened.values():
            stored.close()
        if archive is not None:
            archive.close()


class _Unpickler(pickle.Unpickler):
    """Reads dictionaries, lists and NumPy arrays, and refuses to call anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _CALLED:
            return _CALLED[module, name]
        raise pickle.UnpicklingError(f"it wants to call {module}.{name}")


def _parse_pickle(file: IO[bytes], name: str, form: Format) -> tuple[ByteArray, IntArray]:
    try:
        batch = _Unpickler(file, encoding="bytes").load()
        pixels = np.asarray(batch[b"data"])
        labels = np.array([batch[key] for key in form.keys], dtype=np.int64).reshape(len(form.keys), -1)
    except Exception as error:  # a damaged pickle may raise anything
        raise HashbenchError(
            f"cannot read {name} as a batch of {form.name}: {type(error).__name__}: {one_line(error).rstrip('.')}."
        ) from error
    if pixels.dtype != np.uint8 or pixels.shape != (labels.shape[1], _PIXELS):
        raise HashbenchError(
            f"{name} holds {pixels.dtype} data of shape {pixels.shape} and {labels.shape[1]} labels, expected uint8 "
            f"of shape ({labels.shape[1]}, {_PIXELS})."
        )
    return pixels, labels


def _parse_binary(file: IO[bytes], name: str, form: Format) -> tuple[ByteArray, IntArray]:
    content = np.frombuffer(file.read(), dtype=np.uint8)
    width = len(form.keys) + _PIXELS
    if not len(content) or len(content) % width:
        raise HashbenchError(
            f"{name} has {len(content)} bytes, expected a multiple of {width} ({len(form.keys)} label bytes and "
            f"{_PIXELS} pixels per image): it is cut short or not a binary version of {form.name}."
        )
    rows = content.reshape(-1, width)
    return rows[:, len(form.keys) :], rows[:, : len(form.keys)].T.astype(np.int64)


def _from_tree(path: Path, form: Format) -> CifarImages:
    tree = read_tree(path)
    if tree.classes != sorted(form.classes):
        different = sorted({*tree.classes} ^ {*form.classes})
        raise HashbenchError(
            f"{path} holds folders for {len(tree.classes)} classes, {form.name} has {len(form.classes)}; "
            f"the differences: {', '.join(different[:5])}{', ...' if len(different) > 5 else ''}."
        )
    images = tree.images
    if images.native_size != 32:
        images = ImageArrays(images.read(slice(0, len(images)), 32))
    fine = np.array([form.classes.index(name) for name in tree.classes])[tree.labels]
    labels = np.stack([_coarse(form)[fine], fine]) if len(form.keys) == 2 else fine[None]
    lossy = " through JPEG" if tree.is_lossy else ""
    items = CifarImages(
        images=images,
        labels=labels,
        n_train=sum(split == "train" for split in tree.splits),
        source=f"{form.name}, image files{lossy}",
        variant=" (JPEG)" if tree.is_lossy else "",
    )
    return _checked(items, path, form)


def _coarse(form: Format) -> IntArray:
    return np.array([[name in names.split() for names in form.superclasses].index(True) for name in form.classes])
