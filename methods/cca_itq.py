"""CCA-ITQ: directions most correlated with the labels, rotated to minimise the quantisation error."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from hashbench._typing import FloatArray
from hashbench.method import real, setting, whole
from hashbench.methods._linear import _LinearHash, varying_directions, with_positive_entry
from hashbench.methods._training_items import indicators
from hashbench.methods.itq import fit_rotation


@dataclass(eq=False, repr=False, kw_only=True)
class CCAITQ(_LinearHash):
    """Iterative quantisation of canonical correlation analysis [1]_.

    Learns from labels, one or several per item.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    n_iter : int, default=50
        Alternations of codes and rotation.
    ridge : float, default=0.0001
        Regularisation rho of the canonical correlation analysis.
    random_state : int, default=0
        Seed of the initial rotation.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items.
    projection_ : ndarray of shape (n_features, n_bits)
        Scaled directions times the rotation.
    correlations_ : ndarray of shape (n_directions,)
        Correlations lambda of the directions that are used, falling.
    losses_ : ndarray of shape (n_iter,)
        Quantisation loss of `ITQ` at the start of each alternation; never rises.

    Notes
    -----
    With centred items X and centred 0/1 labels Y (n_samples, n_classes), directions w solve X^T Y (Y^T Y + rho)^-1 Y^T
    X w = lambda^2 (X^T X + rho) w, with w^T (X^T X + rho) w = n_samples. Each is scaled by its lambda, and `ITQ`
    rotates the items in these directions. In [1]_ labels are not centred; with one class per item this is the same.

    There are at most n_classes directions, one fewer with one class per item. All others have no correlation with the
    labels, so their scale is 0. Further bits are therefore more directions in the same space, which the rotation
    spreads: with 32 bits and 10 classes, items in 9 dimensions are cut by 32 planes. ``presets["paper"]`` has the
    default settings.

    References
    ----------
    .. [1] Y. Gong, S. Lazebnik, A. Gordo, F. Perronnin, "Iterative Quantization: A Procrustean Approach to Learning
       Binary Codes for Large-Scale Image Retrieval", IEEE TPAMI 2013.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 90)
    >>> X = rng.normal(size=(90, 5)) + 3 * np.eye(5)[y]
    >>> CCAITQ(n_bits=8).fit(X, y).transform(X).shape
    (90, 8)
    """

    n_iter: int = setting(50, whole(0))
    ridge: float = setting(1e-4, real(0, closed="neither"), tunable=(1e-6, 1e-4, 1.0, 100.0, 1e4, 1e5, 1e6))
    random_state: int = 0

    supervision = "labels"
    group = "class-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}}

    def _fit(self, X: FloatArray, y: Any) -> None:
        labels = indicators(self, y)
        self.mean_, basis = varying_directions(self, X)
        directions, self.correlations_ = correlated_directions((X - self.mean_) @ basis, labels, self.ridge)
        directions, self.correlations_ = directions[:, : self.n_bits], self.correlations_[: self.n_bits]
        scaled = np.zeros((X.shape[1], self.n_bits))
        scaled[:, : len(self.correlations_)] = with_positive_entry(basis @ directions) * self.correlations_
        rng = np.random.default_rng(self.random_state)
        rotation, self.losses_ = fit_rotation((X - self.mean_) @ scaled, self.n_iter, rng)
        self.projection_ = scaled @ rotation


def correlated_directions(X: FloatArray, labels: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Return the directions (n_features, n_directions) of items most correlated with labels, and their correlations.

    ``X`` (n_samples, n_features) are centred, uncorrelated features, none of them constant, and ``labels`` (n_samples,
    n_classes) numbers. Directions are by falling correlation, as many as the smaller of n_features and n_classes.
    """
    root = np.sqrt((X**2).sum(axis=0) + ridge)  # of X^T X + rho, which is diagonal
    centred = labels - labels.mean(axis=0)
    factor = np.linalg.cholesky(centred.T @ centred + ridge * np.eye(labels.shape[1]))
    cross = solve_triangular(factor, centred.T @ (X / root), lower=True)  # (n_classes, n_features)
    _, correlations, directions = np.linalg.svd(cross, full_matrices=False)
    return np.sqrt(len(X)) * directions.T / root[:, None], correlations
