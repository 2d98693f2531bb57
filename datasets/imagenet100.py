"""A hundred classes of ImageNet by the lists of HashNet, which the TALR paper uses too."""

import numpy as np

from hashbench.dataset import Dataset
from hashbench.datasets._image_lists import (
    KINDS_OF_PHOTOS,
    demand_fit,
    find_images,
    needed_images,
    needed_lists,
    read_labelled,
)
from hashbench.datasets._published import PublishedDataset
from hashbench.sources.download import Needed, demand
from hashbench.sources.features.extraction import extract

_IMAGES = Needed(
    "image",
    "https://image-net.org",
    note="the folder of images of ILSVRC 2012, registration needed; train/<wnid>/ and val/ do as well as image/ and "
    "val_image/; the lists' authors publish no checksum",
)


class ImageNet100(PublishedDataset):
    """Images of a hundred classes; images of the same class are relevant."""

    name = "imagenet100"
    summary = "133,503 images, 100 classes; 5,000 queries, 128,503 database, 13,000 for training"
    features = KINDS_OF_PHOTOS
    needs = "HashNet's lists and images of ILSVRC 2012"
    rule = "same-label"
    protocol = (
        "HashNet's lists, as in TALR: 5,000 validation images as queries, the training images of the classes as "
        "database, 130 of each class for training"
    )
    origin = "ImageNet, ILSVRC 2012"
    licence = "non-commercial research and education only, see image-net.org"
    citation = (
        "O. Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015; lists: Z. Cao, M. Long, "
        "J. Wang, P. S. Yu, HashNet: Deep Learning to Hash by Continuation, ICCV 2017"
    )
    n_train, n_database, n_test = 13_000, 128_503, 5_000
    n_classes = 100

    def prepare(self) -> Dataset:
        """Read the three lists, find their images, compute features."""
        folder = self.folder
        *lists, _ = demand(
            folder, [*needed_lists("imagenet"), needed_images(folder, _IMAGES)], f"dataset {self.name!r}"
        )
        counts = (self.n_train, self.n_database, self.n_test)
        train, database, test = (
            read_labelled(path, self.n_classes, count) for path, count in zip(lists, counts, strict=True)
        )
        demand_fit(
            folder,
            {
                "training images outside the database": [name for name in train if name not in database],
                "queries inside the database": [name for name in test if name in database],
                "training images of another class": [name for name in train if database.get(name) != train[name]],
            },
        )
        names = [*database, *test]
        rows = {name: row for row, name in enumerate(names)}
        extracted = extract(self.kind, find_images(folder, names, "the lists of HashNet"), self.options)
        split = np.arange(len(database), len(names)), np.arange(len(database)), np.sort([rows[name] for name in train])
        labels = np.array([*database.values(), *test.values()], dtype=np.int64)[:, 0]
        return self.dataset(split, extracted, labels=labels)
