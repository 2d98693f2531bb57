"""Oracle-label: the class index in binary, the score of a perfect classifier."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.dataset import Dataset
from hashbench.errors import Refusal
from hashbench.method import HashMethod


@dataclass(eq=False, repr=False, kw_only=True)
class OracleLabel(HashMethod):
    """Sanity baseline: reads the label of every item, queries included, and writes it in binary.

    Methods that learn from labels compete with it: codes that only name the predicted class can come close to it
    without any notion of similarity within or between classes. All classes outside the training items share one code.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; at least ceil(log2(n_classes)), with one more class if others occur outside the
        training items. Further bits are 0.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the training items, sorted; the code is the index in binary.

    Examples
    --------
    >>> OracleLabel(n_bits=2).fit_transform([[5], [7], [9]]).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1]]
    """

    group = "baseline"
    reads = "labels"

    def refusal(self, dataset: Dataset) -> str | None:
        """Return why this method cannot run on a dataset, or None; see `HashMethod.refusal`."""
        reason = super().refusal(dataset)
        if reason is not None:
            return reason
        labels = np.asarray(dataset.labels)
        classes = np.unique(labels[dataset.train])
        has_others = not np.isin(labels[np.concatenate([dataset.query, dataset.database])], classes).all()
        return self._too_few_bits(len(classes), has_others=has_others)

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.classes_ = np.unique(X[:, 0])
        self._demand_bits(has_others=False)

    def _project(self, X: FloatArray) -> FloatArray:
        is_seen = np.isin(X[:, 0], self.classes_)
        self._demand_bits(has_others=not is_seen.all())
        index = np.where(is_seen, np.searchsorted(self.classes_, X[:, 0]), len(self.classes_))
        place = np.minimum(np.arange(self.n_bits), 62)  # (n_bits,)
        bits = (index[:, None] >> place) & 1
        return np.asarray(bits - 0.5)

    def _demand_bits(self, *, has_others: bool) -> None:
        reason = self._too_few_bits(len(self.classes_), has_others=has_others)
        if reason is not None:
            raise Refusal(reason)

    def _too_few_bits(self, n_classes: int, *, has_others: bool) -> str | None:
        n_codes = n_classes + has_others
        needed = max(n_codes - 1, 1).bit_length()
        if self.n_bits >= needed:
            return None
        what = f"{n_classes} classes" + " and one code for all others" * has_others
        return f"{self.label} needs {needed} bits for {what}, got n_bits={self.n_bits}. Choose n_bits={needed} or more."
