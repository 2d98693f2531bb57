"""MIRFlickr-25k: photos with several of 24 or 38 labels each; those without any are left out."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from hashbench._typing import ByteArray, IntArray
from hashbench.dataset import Dataset
from hashbench.datasets._image_lists import KINDS_OF_PHOTOS, fetch_archives, find_images, read_lines
from hashbench.datasets._published import PublishedDataset
from hashbench.errors import HashbenchError
from hashbench.sources.download import Needed, demand
from hashbench.sources.features.extraction import extract
from hashbench.sources.splits import draw_any

_HOME = "https://press.liacs.nl/mirflickr/mirflickr25k.v3b"
_SEED = 0
_POTENTIAL = (
    "animals baby bird car clouds dog female flower food indoor lake male night people plant_life portrait river sea "
    "sky structures sunset transport tree water"
)
_RELEVANT = "baby bird car clouds dog female flower male night people portrait river sea tree"


class MIRFlickr(PublishedDataset):
    """24 labels; the training items are in the database."""

    name = "mirflickr"
    folder_name = "mirflickr"
    summary = "24,581 photos, 24 labels, several each; 2,000 queries, 22,581 database, 5,000 of these for training"
    features = KINDS_OF_PHOTOS
    needs = "a download of 3 GB, or photos and annotations"
    archives: ClassVar[dict[str, str]] = {  # the second checksum is not the authors', but noted by one who fetched it
        f"{_HOME}/mirflickr25k.zip": "md5:a23d0a8564ee84cda5622a6c2f947785",
        f"{_HOME}/mirflickr25k_annotations_v080.zip": "md5:aa0138c79892b1b670184d142380948f",
    }
    names: ClassVar[list[str]] = _POTENTIAL.split()
    origin = "MIRFLICKR-25000, annotations v0.80"
    licence = "Creative Commons, each photo its own"
    citation = "M. J. Huiskes, M. S. Lew, The MIR Flickr Retrieval Evaluation, MIR 2008"
    n_all, n_labelled, n_queries, n_train = 25_000, 24_581, 2_000, 5_000
    protocol = (
        "2,000 queries and 5,000 training items drawn with seed 0, database = all but the queries: as many "
        "queries and training items as in BiHalf and in cross-modal work, whose databases keep other photos"
    )

    def prepare(self) -> Dataset:
        """Download or find photos and annotations, leave out photos without labels, draw the split."""
        fetch_archives(self.archives, self.folder, self.options)
        labels, rows = self._labelled(self.folder)
        photos = find_images(self.folder, [f"im{row + 1}.jpg" for row in rows], "MIRFlickr-25k")
        extracted = extract(self.kind, photos, self.options)
        about = {"protocol": f"{self.protocol}; a few labels are so frequent that random codes score high, too"}
        return self.dataset(self._split(len(rows)), extracted, about, labels=labels)

    def _split(self, n_samples: int) -> tuple[IntArray, ...]:
        return draw_any(n_samples, self.n_queries, self.n_train, _SEED)

    def _labelled(self, folder: Path) -> tuple[ByteArray, IntArray]:
        """Read the labels (n_labelled, n_names) and the rows (n_labelled,) of the photos that have some."""
        first = next(iter(sorted(folder.rglob(f"{self.names[0]}.txt"))), folder / f"{self.names[0]}.txt")
        needed = [Needed(str((first.parent / f"{name}.txt").relative_to(folder)), _HOME) for name in self.names]
        labels = np.zeros((self.n_all, len(self.names)), dtype=np.uint8)
        for column, path in enumerate(demand(folder, needed, f"dataset {self.name!r}")):
            numbers = read_lines(path)
            wrong = [number for number in numbers if not (number.isdecimal() and 1 <= int(number) <= self.n_all)]
            if wrong:
                raise HashbenchError(
                    f"{path} has a line {wrong[0][:60]!r}, expected numbers of photos, 1 to {self.n_all:,}."
                )
            labels[[int(number) - 1 for number in numbers], column] = 1
        rows = np.flatnonzero(labels.any(axis=1))
        if len(rows) != self.n_labelled:
            raise HashbenchError(
                f"by the annotations in {first.parent}, {len(rows):,} photos have a label, expected "
                f"{self.n_labelled:,}; fetch them again."
            )
        return labels[rows], rows


class MIRFlickr38(MIRFlickr):
    """38 labels, of which 14 are the strict forms of others; no training item is in the database."""

    name = "mirflickr-38"
    summary = "the same photos, 38 labels; 1,000 queries, 19,581 database, 4,000 others for training"
    names: ClassVar[list[str]] = sorted([*_POTENTIAL.split(), *(f"{name}_r1" for name in _RELEVANT.split())])
    n_queries, n_train = 1_000, 4_000
    protocol = (
        "the numbers of HyP2, redrawn with seed 0: 1,000 queries, 4,000 training items and, apart from both, a "
        "database of the other 19,581; the 419 photos that have no label are left out"
    )

    def _split(self, n_samples: int) -> tuple[IntArray, ...]:
        query, others, train = super()._split(n_samples)
        return query, np.setdiff1d(others, train), train
