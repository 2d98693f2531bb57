"""Multi-label sets of the Mulan repository."""

from typing import ClassVar

from hashbench._typing import ByteArray, IntArray
from hashbench._validation import multi_hot
from hashbench.dataset import Dataset
from hashbench.datasets._published import PublishedDataset
from hashbench.errors import HashbenchError
from hashbench.sources.array_files import read_array, read_features
from hashbench.sources.download import Needed, demand
from hashbench.sources.formats import LABEL_KEYS
from hashbench.sources.splits import draw_any, draw_by_label

_SEED = 0


class _Mulan(PublishedDataset):
    takes = ("source",)
    needs = "a file you fetch"
    shape: ClassVar[tuple[int, int, int]]  # items, features, labels
    file: ClassVar[str]
    licence = "none stated"

    def _split(self, labels: ByteArray) -> tuple[IntArray, ...]:
        raise NotImplementedError

    def prepare(self) -> Dataset:
        """Read features and labels, and split."""
        note = f"its {self.shape[0]:,} items as arrays features (n, {self.shape[1]}) and labels (n, {self.shape[2]})"
        needed = Needed(self.file, self.origin.removeprefix("Mulan repository: "), "", note)
        (path,) = demand(self.folder, [needed], f"dataset {self.name!r}")
        features = read_features(str(path))
        labels = multi_hot(read_array(str(path), LABEL_KEYS), f"labels of {path}")
        if (*features.shape, labels.shape[1]) != self.shape or len(labels) != self.shape[0]:
            raise HashbenchError(
                f"{path} holds features of shape {features.shape} and labels of shape {labels.shape}, {self.name} has "
                f"{self.shape[:2]} and {self.shape[::2]}."
            )
        return self.dataset(self._split(labels), features=features, labels=labels)


class Tmc2007(_Mulan):
    """Aviation safety reports as bags of words."""

    name = "tmc2007"
    summary = "28,596 aviation safety reports, 500 words, 22 labels; 2,200 queries, 4,400 for training"
    shape = (28_596, 500, 22)
    file = "tmc2007-500.npz"
    origin = "Mulan repository: http://mulan.sourceforge.net/datasets-mlc.html (tmc2007-500)"
    citation = "A. Srivastava, B. Zane-Ulman, Discovering recurring anomalies in text reports, IEEE Aerospace 2005"
    protocol = "100 queries and 200 training items per label, the rarest label first, drawn with seed 0"

    def _split(self, labels: ByteArray) -> tuple[IntArray, ...]:
        return draw_by_label(labels, 100, 200, _SEED)


class Corel5k(_Mulan):
    """Images as bags of regions."""

    name = "corel5k"
    summary = "5,000 images as bags of 499 regions, 374 labels; 500 queries, 4,500 database, all for training"
    shape = (5_000, 499, 374)
    file = "corel5k.npz"
    origin = "Mulan repository: http://mulan.sourceforge.net/datasets-mlc.html (Corel5k)"
    citation = "P. Duygulu, K. Barnard, N. de Freitas, D. Forsyth, Object recognition as machine translation, ECCV 2002"
    protocol = "500 queries drawn with seed 0, as many as the official test part; the rest is database and for training"

    def _split(self, labels: ByteArray) -> tuple[IntArray, ...]:
        return draw_any(len(labels), 500, None, _SEED)
