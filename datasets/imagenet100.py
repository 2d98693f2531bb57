"""A hundred classes of ImageNet by the lists of HashNet, which the TALR paper uses too."""

from pathlib import Path

import numpy as np

from hashbench.adapter import DatasetAdapter
from hashbench.dataset import Dataset
from hashbench.datasets._image_lists import find_images, needed_images, read_lines
from hashbench.errors import HashbenchError
from hashbench.sources.download import Needed, demand
from hashbench.sources.features.extraction import KINDS, extract
from hashbench.store.files import data_dir

_LISTS = "https://raw.githubusercontent.com/thuml/HashNet/master/pytorch/data/imagenet"
_NEEDED = (
    Needed("train.txt", f"{_LISTS}/train.txt", note="no checksum is published"),
    Needed(
        "database.txt",
        "https://github.com/thuml/HashNet/tree/master/pytorch",
        note="in imagenet.tar.gz, which the README there links to; no checksum is published",
    ),
    Needed("test.txt", f"{_LISTS}/test.txt", note="no checksum is published"),
)
_IMAGES = Needed(
    "image",
    "https://image-net.org",
    note="the folder of images of ILSVRC 2012, registration needed; train/<wnid>/ and val/ do as well as image/ and "
    "val_image/; the lists' authors publish no checksum",
)


class ImageNet100(DatasetAdapter):
    """Images of a hundred classes; relevant is the same class."""

    name = "imagenet100"
    summary = "133,503 images, 100 classes; 5,000 queries, 128,503 database, 13,000 for training"
    features = ("alexnet", *(kind for kind in KINDS if kind != "alexnet"))
    needs = "HashNet's lists and images of ILSVRC 2012"
    n_train, n_database, n_test = 13_000, 128_503, 5_000
    n_classes = 100

    def prepare(self) -> Dataset:
        """Read the three lists, find their images, compute features."""
        folder = self.options.source or data_dir() / "sources" / self.name
        *lists, _ = demand(folder, [*_NEEDED, needed_images(folder, _IMAGES)], f"dataset {self.name!r}")
        counts = (self.n_train, self.n_database, self.n_test)
        train, database, test = (self._read_list(path, count) for path, count in zip(lists, counts, strict=True))
        _demand_fit(train, database, test, folder)
        names = [*database, *test]
        rows = {name: row for row, name in enumerate(names)}
        extracted = extract(self.kind, find_images(folder, names, "the lists of HashNet"), self.options)
        return Dataset(
            name=self.name,
            features=extracted.features,
            images=extracted.images,
            query=np.arange(len(database), len(names)),
            database=np.arange(len(database)),
            train=np.sort([rows[name] for name in train]),
            rule="same-label",
            labels=np.array([*database.values(), *test.values()], dtype=np.int64),
            features_name=self.kind,
            about={
                "summary": self.summary,
                "protocol": "HashNet's lists, as in TALR: 5,000 validation images as queries, the training images of "
                "the classes as database, 130 of each class for training",
                "source": "ImageNet, ILSVRC 2012",
                "features": extracted.how,
                "licence": "non-commercial research and education only, see image-net.org",
                "citation": "O. Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015; "
                "lists: Z. Cao, M. Long, J. Wang, P. S. Yu, HashNet: Deep Learning to Hash by Continuation, ICCV 2017",
            },
        )

    def _read_list(self, path: Path, n_wanted: int) -> dict[str, int]:
        """Give the class of each file name, in the order of the list."""
        classes: dict[str, int] = {}
        lines = read_lines(path)
        for line in lines:
            image, *digits = line.rsplit(maxsplit=self.n_classes)
            if len(digits) != self.n_classes or sorted(digits) != ["0"] * (self.n_classes - 1) + ["1"]:
                raise HashbenchError(
                    f"{path} has a line that begins {line[:60]!r}, expected a path and {self.n_classes} digits, one of "
                    "them 1 and the others 0."
                )
            classes[image.rpartition("/")[2]] = digits.index("1")
        if (len(lines), len(classes)) != (n_wanted, n_wanted):
            raise HashbenchError(
                f"{path} has {len(lines):,} lines with {len(classes):,} different images, HashNet's list has "
                f"{n_wanted:,}; fetch it again."
            )
        return classes


def _demand_fit(train: dict[str, int], database: dict[str, int], test: dict[str, int], folder: Path) -> None:
    """Refuse lists of which one contradicts another."""
    for wrong, what in (
        ([name for name in train if name not in database], "training images outside the database"),
        ([name for name in test if name in database], "queries inside the database"),
        (
            [name for name in train if database.get(name, train[name]) != train[name]],
            "training images of another class",
        ),
    ):
        if wrong:
            raise HashbenchError(
                f"the lists in {folder} name {len(wrong):,} {what}, first {wrong[0]}; fetch them again."
            )
