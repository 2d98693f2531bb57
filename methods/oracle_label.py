"""Oracle-label: the class index in binary, what a perfect classifier would score."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, Refusal
from hashbench.method import HashMethod


@dataclass(eq=False, repr=False, kw_only=True)
class OracleLabel(HashMethod):
    """Sanity baseline: reads the label of every item, queries included, and writes it in binary.

    Methods that learn from labels compete with it: codes that only name the predicted class can come
    close to it without any notion of likeness inside or between classes.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; at least ceil(log2(n_classes)). Further bits are 0.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the training items, sorted; the index here is what the code spells.
    """

    group = "baseline"
    reads = "labels"

    def refusal(self, dataset: Dataset) -> str | None:
        """Say why this method cannot run on a dataset; see `HashMethod.refusal`."""
        reason = super().refusal(dataset)
        if reason is not None:
            return reason
        labels = np.asarray(dataset.labels)
        classes = np.unique(labels[dataset.train])
        unseen = np.setdiff1d(labels[np.concatenate([dataset.query, dataset.database])], classes)
        if unseen.size:
            return f"{self.label} knows the classes of the training items, and {unseen.size} others occur elsewhere."
        return self._too_few_bits(len(classes))

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.classes_ = np.unique(X[:, 0])
        reason = self._too_few_bits(len(self.classes_))
        if reason is not None:
            raise Refusal(reason)

    def _project(self, X: FloatArray) -> FloatArray:
        unseen = np.setdiff1d(X[:, 0], self.classes_)
        if unseen.size:
            raise HashbenchError(f"{self.label} was fitted without class {unseen[0]:g}; fit it on all classes.")
        index = np.searchsorted(self.classes_, X[:, 0])
        place = np.minimum(np.arange(self.n_bits), 62)  # (n_bits,)
        bits = (index[:, None] >> place) & 1
        return np.asarray(bits - 0.5)

    def _too_few_bits(self, n_classes: int) -> str | None:
        needed = max(n_classes - 1, 1).bit_length()
        if self.n_bits >= needed:
            return None
        return f"{self.label} needs {needed} bits to tell {n_classes} classes apart, got n_bits={self.n_bits}."
