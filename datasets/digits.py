"""Scans of handwritten digits that ship with scikit-learn: three datasets that need no download."""

import numpy as np

from hashbench._typing import Float32Array, IntArray
from hashbench.dataset import Dataset
from hashbench.datasets._published import PublishedDataset
from hashbench.datasets._unlabelled import distance_rule
from hashbench.sources.splits import draw_split

_SEED = 0
_QUERIES_PER_CLASS = 20
_TRAIN_PER_CLASS = 100


def _scans() -> tuple[Float32Array, IntArray]:
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return pixels.astype(np.float32), digits.astype(np.int64)


class _Digits(PublishedDataset):
    features = ("pixels",)
    takes = ()
    origin = "sklearn.datasets.load_digits: test part of Optical Recognition of Handwritten Digits, UCI"
    licence = "CC BY 4.0 (UCI Machine Learning Repository)"
    citation = "E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998"


class Digits(_Digits):
    """1,797 scans of 8 x 8 pixels; scans of the same digit are relevant."""

    name = "digits"
    summary = "1,797 scans of digits, 8 x 8 pixels, ten classes"
    rule = "same-label"
    protocol = "20 queries and 100 training items per class, drawn with seed 0, database = all but the queries"

    def prepare(self) -> Dataset:
        """Draw 20 queries and 100 training items per class; the rest is database."""
        features, labels = _scans()
        split = draw_split(labels, _QUERIES_PER_CLASS, _TRAIN_PER_CLASS, _SEED)
        return self.dataset(split, features=features, labels=labels)


class DigitsUnlabelled(_Digits):
    """The same scans and split without labels; near scans are relevant."""

    name = "digits-unlabelled"
    summary = "the same scans without labels: levels by Euclidean distance"
    protocol = (
        "split of digits; level 1, 2, 5, 10 for distances up to the 5, 1, 0.2, 0.1 percentile of the "
        "distances between training items (the LabelMe protocol)"
    )

    def prepare(self) -> Dataset:
        """Compute thresholds from the training items: 5, 1, 0.2, 0.1 % nearest pairs have levels 1, 2, 5, 10."""
        features, labels = _scans()
        split = draw_split(labels, _QUERIES_PER_CLASS, _TRAIN_PER_CLASS, _SEED)
        return self.dataset(split, features=features, **distance_rule(features[split[2]]))


class DigitsPairs(_Digits):
    """6,000 pairs of different scans side by side; the level is the number of digits in common."""

    name = "digits-pairs"
    summary = "6,000 pairs of scans side by side, multi-label: level = digits in common"
    protocol = (
        "300 queries pair the 200 query scans of digits, 5,700 database items pair its other scans, "
        "1,000 of these are for training; seed 0; labels = the set of digits shown"
    )
    n_query, n_database, n_train = 300, 5700, 1000

    def prepare(self) -> Dataset:
        """Pair query scans with query scans and database scans with database scans: no scan is in both."""
        scans, digits = _scans()
        query_scans, database_scans, _ = draw_split(digits, _QUERIES_PER_CLASS, _TRAIN_PER_CLASS, _SEED)
        rng = np.random.default_rng(_SEED)
        pairs = np.concatenate(
            [_draw_pairs(query_scans, self.n_query, rng), _draw_pairs(database_scans, self.n_database, rng)]
        )  # (n_samples, 2)
        labels = np.zeros((len(pairs), 10), dtype=np.uint8)
        for side in range(2):
            labels[np.arange(len(pairs)), digits[pairs[:, side]]] = 1
        database = np.arange(self.n_query, len(pairs))
        train = np.sort(rng.choice(database, self.n_train, replace=False))
        split = np.arange(self.n_query), database, train
        return self.dataset(split, features=scans[pairs].reshape(len(pairs), -1), labels=labels)


def _draw_pairs(items: IntArray, n_pairs: int, rng: np.random.Generator) -> IntArray:
    """Draw ordered pairs of different items, no pair twice."""
    n_items = len(items)
    chosen = rng.choice(n_items * (n_items - 1), n_pairs, replace=False)
    left, right = np.divmod(chosen, n_items - 1)
    right += right >= left  # skip the item itself
    return np.asarray(items[np.stack([left, right], axis=1)])
