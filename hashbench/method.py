"""The contract of a hashing method: a scikit-learn transformer from features to boolean codes."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hashbench.bits import BoolArray, check_n_bits
from hashbench.dataset import Dataset

FloatArray = npt.NDArray[np.float64]
GROUPS = ("baseline", "unsupervised", "pair-based", "triplet-based", "list-based")


class HashMethod(TransformerMixin, BaseEstimator):
    """Base of all methods: ``fit`` on training items, ``transform`` any items to codes.

    A subclass takes ``n_bits`` and keyword parameters in ``__init__`` (stored as they are), learns in
    ``_fit`` and gives one real value a bit in ``_project``; the bit is 1 where that value is above 0.

    Attributes
    ----------
    supervision : {"none", "labels", "affinity"}
        What ``fit`` needs as ``y``: nothing, the labels of the training items, or their
        `hashbench.affinity.Affinity` to each other.
    reads : {"features", "labels"}
        Which part of a dataset is ``X``; only the oracle baseline reads labels.
    group : str
        The block of a table the method stands in, one of ``GROUPS``.
    version : int
        Rises whenever the same seed may give other codes.
    """

    supervision: ClassVar[Literal["none", "labels", "affinity"]] = "none"
    reads: ClassVar[Literal["features", "labels"]] = "features"
    group: ClassVar[str] = "unsupervised"
    version: ClassVar[int] = 1
    n_bits: int

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Learn the hash functions.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training items, finite.
        y : array or Affinity, optional
            Supervision as named by ``supervision``.

        Returns
        -------
        self
            The fitted method.

        Raises
        ------
        HashbenchError
            If ``n_bits`` is out of range, or more than these items allow.
        """
        check_n_bits(self.n_bits)
        self._fit(validate_data(self, X, dtype=np.float64), y)
        return self

    def project(self, X: npt.ArrayLike) -> FloatArray:
        """Compute the real value behind each bit.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Items, finite.

        Returns
        -------
        ndarray of shape (n_samples, n_bits), float64
            The bit is 1 where the value is above 0.
        """
        check_is_fitted(self)
        return self._project(validate_data(self, X, dtype=np.float64, reset=False))

    def transform(self, X: npt.ArrayLike) -> BoolArray:
        """Encode items.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Items, finite.

        Returns
        -------
        ndarray of shape (n_samples, n_bits), bool
            One code a row.
        """
        return self.project(X) > 0

    def refusal(self, dataset: Dataset) -> str | None:
        """Say why this method cannot run on a dataset.

        Parameters
        ----------
        dataset : Dataset
            The dataset it should learn from.

        Returns
        -------
        str or None
            A sentence, or None if it can run.
        """
        name = type(self).__name__
        if self.supervision == "labels" and dataset.labels is None:
            return f"{name} learns from labels, and dataset {dataset.name!r} has none."
        if self.supervision == "affinity" and dataset.rule == "explicit":
            return f"{name} learns from pairs of training items, and {dataset.name!r} has no affinity for them."
        return None

    @abstractmethod
    def _fit(self, X: FloatArray, y: Any) -> None:
        """Learn from checked items; sets attributes that end in an underscore."""

    @abstractmethod
    def _project(self, X: FloatArray) -> FloatArray:
        """Give one real value a bit for checked items."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.supervision != "none"
        tags.transformer_tags.preserves_dtype = []  # codes are boolean
        return tags
