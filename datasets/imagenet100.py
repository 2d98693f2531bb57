"""A hundred classes of ImageNet by the lists of HashNet, which the TALR paper uses too."""

import numpy as np

from hashbench.adapter import DatasetAdapter
from hashbench.dataset import Dataset
from hashbench.datasets._image_lists import (
    KINDS_OF_PHOTOS,
    demand_fit,
    find_images,
    needed_images,
    needed_lists,
    read_labelled,
)
from hashbench.sources.download import Needed, demand
from hashbench.sources.features.extraction import extract
from hashbench.store.files import data_dir

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
    features = KINDS_OF_PHOTOS
    needs = "HashNet's lists and images of ILSVRC 2012"
    n_train, n_database, n_test = 13_000, 128_503, 5_000
    n_classes = 100

    def prepare(self) -> Dataset:
        """Read the three lists, find their images, compute features."""
        folder = self.options.source or data_dir() / "sources" / self.name
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
        return Dataset(
            name=self.name,
            features=extracted.features,
            images=extracted.images,
            query=np.arange(len(database), len(names)),
            database=np.arange(len(database)),
            train=np.sort([rows[name] for name in train]),
            rule="same-label",
            labels=np.array([*database.values(), *test.values()], dtype=np.int64)[:, 0],
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
