"""NUS-WIDE by the protocol of the TALR paper: photos with the 21 most frequent of 81 concepts."""

from pathlib import Path

import numpy as np

from hashbench._typing import ByteArray, IntArray
from hashbench._validation import multi_hot
from hashbench.dataset import Dataset
from hashbench.datasets._image_lists import find_images, needed_images, read_lines
from hashbench.datasets._published import PublishedDataset
from hashbench.errors import HashbenchError
from hashbench.sources.array_files import read_features
from hashbench.sources.download import Needed, demand
from hashbench.sources.features.extraction import KINDS, Extracted, extract
from hashbench.sources.splits import draw_by_label
from hashbench.store.inputs import check_file, reading

_SEED = 0
_PAGE = "https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html"
_FEATURES = ("features.npy", "features.npz", "features.mat")
_WHERE = ("", "*/", "*/*/")  # depths of the folders in the official archives
_LABELS = Needed(
    "AllLabels81.txt",
    _PAGE,
    note="81 columns of 0 and 1, or from Groundtruth.zip the folder AllLabels of 81 files Labels_<concept>.txt; "
    "no checksum is published",
)
_LIST = Needed("Imagelist.txt", _PAGE, note="in ImageList.zip; no checksum is published")
_PHOTOS = Needed("Flickr", _PAGE, note="the folder of photos, sent for the form on that page; no checksum is published")
_ROWS = Needed(
    "features.npy",
    note="your own features, one row per line of Imagelist.txt; .npz and .mat do as well, or choose "
    "--features vgg-f to have them computed from the photos",
)


class NusWide(PublishedDataset):
    """Photos with several concepts each; the level is the number of concepts in common."""

    name = "nuswide"
    summary = "195,834 photos, 21 labels, several each; 2,100 queries, 193,734 database, 10,500 for training"
    features = ("features", *KINDS)
    needs = "labels and photos, or their features, from the authors"
    protocol = (
        "that of TALR: the 21 most frequent concepts, photos without any left out; 100 queries and 500 training items "
        "per concept, drawn with seed 0, the rarest concept first; database = all but the queries"
    )
    origin = "NUS-WIDE, official labels and photos"
    licence = "research use only, see the authors' agreement"
    citation = (
        "T.-S. Chua, J. Tang, R. Hong, H. Li, Z. Luo, Y. Zheng, NUS-WIDE: A Real-World Web Image Database from "
        "National University of Singapore, CIVR 2009"
    )
    n_all, n_concepts = 269_648, 81
    n_frequent, n_kept = 21, 195_834
    n_queries, n_train = 100, 500

    def prepare(self) -> Dataset:
        """Select frequent concepts and photos that have some; draw queries and training items by concept."""
        folder = self.folder
        with reading(folder):
            needed = [_labels_needed(folder)]
            if self.kind == "features":
                needed += [_features_needed(folder)]
            else:
                needed += [_located(folder, _LIST), needed_images(folder, _PHOTOS)]
        paths = demand(folder, needed, f"dataset '{self.name}:{self.kind}'")
        labels, rows = self._frequent(_read_labels(paths[0]), paths[0])
        extracted = (self._read if self.kind == "features" else self._compute)(paths[1], rows)
        split = draw_by_label(labels, self.n_queries, self.n_train, _SEED)
        return self.dataset(split, extracted, labels=labels)

    def _frequent(self, labels: ByteArray, path: Path) -> tuple[ByteArray, IntArray]:
        """Return the labels (n_kept, n_frequent) and the rows (n_kept,) of photos with a frequent concept."""
        if labels.shape != (self.n_all, self.n_concepts):
            shape = (self.n_all, self.n_concepts)
            raise HashbenchError(f"{path} holds labels of shape {labels.shape}, expected {shape}; fetch them again.")
        order = np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")
        frequent = labels[:, np.sort(order[: self.n_frequent])]
        rows = np.flatnonzero(frequent.any(axis=1))
        if len(rows) != self.n_kept:
            raise HashbenchError(
                f"by {path}, {len(rows):,} photos have one of the {self.n_frequent} most frequent concepts, expected "
                f"{self.n_kept:,}; fetch the labels again."
            )
        return frequent[rows], rows

    def _read(self, path: Path, rows: IntArray) -> Extracted:
        features = read_features(str(path))
        if len(features) != self.n_all:
            raise HashbenchError(
                f"{path} has {len(features):,} rows, expected {self.n_all:,}: one for each line of Imagelist.txt."
            )
        return Extracted(features[rows], None, f"as given in {path.name}")

    def _compute(self, path: Path, rows: IntArray) -> Extracted:
        names = ["/".join(line.split("/")[-2:]) for line in read_lines(path)]
        if len(names) != self.n_all:
            raise HashbenchError(f"{path} lists {len(names):,} photos, but there are labels for {self.n_all:,}.")
        return extract(self.kind, find_images(self.folder, [names[row] for row in rows], "NUS-WIDE"), self.options)


def _located(folder: Path, needed: Needed, pattern: str = "") -> Needed:
    """Return a file by its place in the folder, which may be a little deeper, or ``needed`` if it is missing."""
    places = (path for where in _WHERE for path in sorted(folder.glob(f"{where}{pattern or needed.name}")))
    return next((Needed(str(path.relative_to(folder))) for path in places), needed)


def _labels_needed(folder: Path) -> Needed:
    return _located(folder, _located(folder, _LABELS, "AllLabels/Labels_*.txt"), _LABELS.name)


def _features_needed(folder: Path) -> Needed:
    return next((Needed(name) for name in _FEATURES if (folder / name).is_file()), _ROWS)


def _read_labels(path: Path) -> ByteArray:
    """Read one file of all columns, or the files of one column each beside the first, by name."""
    import pandas as pd

    columns = [path]
    if path.name != _LABELS.name:
        columns = sorted(path.parent.glob("Labels_*.txt"), key=lambda file: file.stem)
    parts = []
    for column in columns:
        check_file(column)
        with reading(column, "labels"):
            parts.append(pd.read_csv(column, sep=r"\s+", header=None, dtype=np.float32).to_numpy())
        if len(parts[-1]) != len(parts[0]):
            raise HashbenchError(f"{column} has {len(parts[-1]):,} rows, {columns[0].name} has {len(parts[0]):,}.")
    return multi_hot(np.concatenate(parts, axis=1), f"labels of {path}")
