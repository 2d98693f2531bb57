"""MS-COCO by the lists of HashNet: photos with several of 80 categories each."""

from typing import Any, ClassVar

import numpy as np

from hashbench._typing import IntArray, Rows
from hashbench.dataset import Dataset
from hashbench.datasets._image_lists import (
    KINDS_OF_PHOTOS,
    demand_fit,
    fetch_archives,
    find_images,
    needed_lists,
    read_labelled,
)
from hashbench.datasets._published import PublishedDataset
from hashbench.sources.download import demand
from hashbench.sources.features.extraction import extract

_HOME = "https://s3.amazonaws.com/images.cocodataset.org/zips"  # their own name answers by plain HTTP only


class MSCoco(PublishedDataset):
    """The lists as they are: the database contains all queries and no training items."""

    name = "mscoco"
    folder_name = "mscoco"
    summary = "122,218 photos, 80 labels; 5,000 queries, 112,218 database with these in it, 10,000 for training"
    features = KINDS_OF_PHOTOS
    needs = "HashNet's lists, and a download of 19 GB or photos of COCO 2014"
    archives: ClassVar[dict[str, str]] = {  # the authors give no checksums; TensorFlow Datasets noted these
        f"{_HOME}/train2014.zip": "ede4087e640bddba550e090eae701092534b554b42b05ac33f0300b984b31775",
        f"{_HOME}/val2014.zip": "fe9be816052049c34717e077d9e34aa60814a55679f804cd043e3cbee3b9fde0",
    }
    origin = "MS-COCO 2014, photos of both parts with at least one object"
    licence = "annotations CC BY 4.0, photos under the terms of Flickr"
    citation = (
        "T.-Y. Lin et al., Microsoft COCO: Common Objects in Context, ECCV 2014; lists: Z. Cao, M. Long, J. Wang, "
        "P. S. Yu, HashNet: Deep Learning to Hash by Continuation, ICCV 2017"
    )
    n_train, n_database, n_test, n_classes = 10_000, 112_218, 5_000, 80
    protocol = (
        "HashNet's lists as they are: 5,000 queries, which the database of 112,218 photos contains, so that each finds "
        "itself (here under another number); 10,000 training photos, which it does not contain"
    )

    def prepare(self) -> Dataset:
        """Read the three lists, find or download the photos, compute features."""
        folder = self.folder
        lists = demand(folder, needed_lists("coco"), f"dataset {self.name!r}")
        counts = (self.n_train, self.n_database, self.n_test)
        train, database, test = (
            read_labelled(path, self.n_classes, count, has_several=True)
            for path, count in zip(lists, counts, strict=True)
        )
        demand_fit(
            folder,
            {
                "training images inside the database": [name for name in train if name in database],
                "queries outside the database": [name for name in test if name not in database],
                "queries of other categories": [name for name in test if database.get(name) != test[name]],
            },
        )
        fetch_archives(self.archives, folder, self.options)
        names = [*database, *train]
        extracted = extract(self.kind, find_images(folder, names, "the lists of HashNet"), self.options)
        labels = np.zeros((len(names), self.n_classes), dtype=np.uint8)
        for row, classes in enumerate([*database.values(), *train.values()]):
            labels[row, classes] = 1
        place = {name: row for row, name in enumerate(database)}
        rows, *split = self._place(np.array([place[name] for name in test]), len(database), len(names))
        arrays = {"features": extracted.features, "images": extracted.images, "labels": labels}
        placed: dict[str, Any] = {name: None if array is None else array[rows] for name, array in arrays.items()}
        return self.dataset((*split, np.arange(len(database), len(names))), extracted, **placed)

    def _place(self, query: IntArray, n_database: int, n_all: int) -> tuple[Rows, IntArray, IntArray]:
        """Return the rows of items to keep, and the positions of queries and database in them."""
        copies = np.arange(n_all, n_all + len(query))
        return np.concatenate([np.arange(n_all), query]), copies, np.arange(n_database)


class MSCocoDisjoint(MSCoco):
    """The same lists with the queries taken out of the database."""

    name = "mscoco-disjoint"
    summary = "the same photos and lists; 5,000 queries, 107,218 database without them, 10,000 for training"
    protocol = (
        "HashNet's lists, but the 5,000 queries are taken out of the database, which leaves 107,218 photos; 10,000 "
        "training photos, which it does not contain"
    )

    def _place(self, query: IntArray, n_database: int, n_all: int) -> tuple[Rows, IntArray, IntArray]:
        return slice(None), query, np.setdiff1d(np.arange(n_database), query)
