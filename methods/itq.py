"""ITQ: principal components rotated to minimise the quantisation error."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.method import setting, whole
from hashbench.methods._linear import _LinearHash, principal_directions, random_rotation


@dataclass(eq=False, repr=False, kw_only=True)
class ITQ(_LinearHash):
    """Iterative quantisation [1]_.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; at most the number of directions in which the training items vary.
    n_iter : int, default=50
        Alternations of codes and rotation.
    random_state : int, default=0
        Seed of the initial rotation.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items.
    projection_ : ndarray of shape (n_features, n_bits)
        Principal directions times the rotation.
    losses_ : ndarray of shape (n_iter,)
        Quantisation loss ||B - V R||^2 at the start of each alternation; never rises.

    Notes
    -----
    With V the training items in principal directions, B = sgn(V R) for a fixed rotation R, and
    R = U W for fixed codes, where U S W is the singular value decomposition of V^T B (orthogonal
    Procrustes; NumPy returns W already transposed). The initial R is uniform over rotations.

    References
    ----------
    .. [1] Y. Gong, S. Lazebnik, "Iterative Quantization: A Procrustean Approach to Learning Binary Codes", CVPR 2011.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> ITQ(n_bits=4, random_state=0).fit(X).transform(X).shape
    (100, 4)
    """

    n_iter: int = setting(50, whole(0))
    random_state: int = 0

    def _fit(self, X: FloatArray, y: Any) -> None:
        self.mean_, directions = principal_directions(self, X)
        projected = (X - self.mean_) @ directions  # (n_samples, n_bits)
        rotation, self.losses_ = fit_rotation(projected, self.n_iter, np.random.default_rng(self.random_state))
        self.projection_ = directions @ rotation


def fit_rotation(projected: FloatArray, n_iter: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Rotate centred items (n_samples, n_bits) to lower their quantisation loss, from a random start.

    Returns the rotation (n_bits, n_bits) and the loss at the start of each of ``n_iter`` alternations.
    """
    rotation = random_rotation(projected.shape[1], rng)
    losses = np.empty(n_iter)
    for step in range(n_iter):
        rotated = projected @ rotation
        signs = np.where(rotated > 0, 1.0, -1.0)
        losses[step] = ((signs - rotated) ** 2).sum()
        left, _, right = np.linalg.svd(projected.T @ signs)
        rotation = left @ right
    return rotation, losses
