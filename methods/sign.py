"""Sign: binary quantisation of embeddings, one bit per dimension."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.errors import Refusal
from hashbench.method import HashMethod, Hyperplanes, choice, setting
from hashbench.methods._linear import random_rotation


@dataclass(eq=False, repr=False, kw_only=True)
class Sign(HashMethod):
    """Binary quantisation: the signs of the first dimensions, as [1]_ and vector databases do it.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; at most the number of features, unless rotated. The first ones are used, which suits embeddings
        that were trained for truncation [2]_; others lose the information in the rest.
    threshold : {"zero", "mean", "median"}, default="zero"
        A bit is 1 above it: 0, or the training items' mean or median of that dimension. Zero does not
        suit features that are never negative.
    rotate : bool, default=False
        Whether to rotate the first dimensions at random; into more dimensions if there are more bits than features.
    random_state : int, default=0
        Seed of the rotation.

    Attributes
    ----------
    rotation_ : ndarray of shape (min(n_bits, n_features), n_bits) or None
        The rotation R: the first rows of a matrix that is uniform over the orthogonal matrices (Haar), all of them
        unless there are more bits than features; None without one.
    threshold_ : ndarray of shape (n_bits,)
        The thresholds t, in the rotated dimensions.

    Notes
    -----
    The bits are [x_{1..n_bits} R > t]. Without rotation and with t = 0 these are the bits of
    ``quantize_embeddings`` of sentence-transformers, where scaling to unit length, before or after the cut, changes
    none. With the median, bits are as balanced on the training items as equal values allow. The rotation into more
    dimensions, a tight frame, is that of faiss's ``IndexLSH`` (`RandomRotationMatrix`); it keeps all distances.

    References
    ----------
    .. [1] I. Yamada, A. Asai, H. Hajishirzi, "Efficient Passage Retrieval with Hashing for Open-domain Question
       Answering", ACL 2021.
    .. [2] A. Kusupati et al., "Matryoshka Representation Learning", NeurIPS 2022.

    Examples
    --------
    >>> Sign(n_bits=3).fit([[1, -1, 0, 2]]).transform([[0.5, -2, 3, 1]])
    array([[ True, False,  True]])
    """

    threshold: str = setting("zero", choice("zero", "mean", "median"))
    rotate: bool = setting(False, bool)
    random_state: int = 0

    @property
    def advice(self) -> str:
        """Which threshold suits features that are never negative; see `HashMethod.advice`."""
        if self.threshold != "zero":
            return ""
        return "Try --param threshold=mean: 0 does not suit features that are never negative."

    def _fit(self, X: FloatArray, y: Any) -> None:
        if self.n_bits > X.shape[1] and not self.rotate:
            raise Refusal(
                f"{self.label} needs n_bits <= {X.shape[1]}, the number of features, one bit each, got "
                f"n_bits={self.n_bits}. Choose n_bits={X.shape[1]} (--bits {X.shape[1]}) or fewer, or rotate=True "
                "(--param rotate=True), which rotates into more dimensions."
            )
        rng = np.random.default_rng(self.random_state)
        self.rotation_ = random_rotation(self.n_bits, rng)[: X.shape[1]] if self.rotate else None
        values = self._values(X)
        if self.threshold == "zero":
            self.threshold_ = np.zeros(self.n_bits)
        else:
            self.threshold_ = np.asarray((np.mean if self.threshold == "mean" else np.median)(values, axis=0))

    def _project(self, X: FloatArray) -> FloatArray:
        return np.asarray(self._values(X) - self.threshold_)

    def hyperplanes(self) -> Hyperplanes:
        """Return the planes behind the bits; see `HashMethod.hyperplanes`."""
        normals = np.zeros((self.n_features_in_, self.n_bits))
        normals[: self.n_bits] = np.eye(self.n_bits) if self.rotation_ is None else self.rotation_
        return Hyperplanes(np.zeros(len(normals)), normals, -self.threshold_)

    def _values(self, X: FloatArray) -> FloatArray:
        """Return the dimensions that become bits, (n_samples, n_bits)."""
        first = X[:, : self.n_bits]
        return first if self.rotation_ is None else np.asarray(first @ self.rotation_)
