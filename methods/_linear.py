"""Centring, principal directions and projections, shared by the linear methods."""

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA

from hashbench._typing import FloatArray
from hashbench.errors import Refusal
from hashbench.method import HashMethod, Hyperplanes
from hashbench.methods._training_items import equal_items


class _LinearHash(HashMethod):
    """Bits are signs of linear projections of the centred items."""

    mean_: FloatArray  # of the training items, (n_features,)
    projection_: FloatArray  # one direction per bit, (n_features, n_bits)

    def _project(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self.mean_) @ self.projection_)

    def hyperplanes(self) -> Hyperplanes:
        """Return the planes behind the bits; see `HashMethod.hyperplanes`."""
        return Hyperplanes(self.mean_, self.projection_, np.zeros(self.n_bits))


def varying_directions(method: HashMethod, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean (n_features,) and all principal directions (n_features, rank) in which the training items vary.

    Directions are orthonormal, by decreasing variance, the entry of largest magnitude in each positive; those without
    variance, up to rounding, are left out. Raises Refusal if all items are equal.
    """
    solver = "covariance_eigh" if len(X) >= X.shape[1] else "full"
    mean = X.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # equal items have no variance to explain
        pca = PCA(n_components=min(X.shape), svd_solver=solver).fit(X - mean)  # centred first: exact under translation
    variances = pca.explained_variance_
    tolerance = max(X.shape) * np.finfo(np.float64).eps * variances.max(initial=0.0)
    rank = int(np.sum(variances > tolerance)) if len(X) > 1 else 0
    if rank == 0:
        raise equal_items(method, X)
    return mean, with_positive_entry(pca.components_[:rank].T)


def principal_directions(method: HashMethod, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the first ``n_bits`` of `varying_directions`; raise Refusal if there are fewer."""
    mean, directions = varying_directions(method, X)
    rank = directions.shape[1]
    if method.n_bits > rank:
        raise Refusal(
            f"{method.label} needs n_bits <= {rank}, the number of directions in which the {len(X)} "
            f"training items of {X.shape[1]} features vary, got n_bits={method.n_bits}. "
            f"Choose n_bits={rank} (--bits {rank}) or fewer."
        )
    return mean, directions[:, : method.n_bits]


def with_positive_entry(directions: FloatArray) -> FloatArray:
    """Flip the directions, columns of (n_features, n_directions), whose entry of largest magnitude is negative."""
    largest = np.abs(directions).argmax(axis=0)
    return np.asarray(directions * np.sign(directions[largest, np.arange(directions.shape[1])]))


def random_rotation(n_bits: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw a rotation (n_bits, n_bits) uniformly (Haar)."""
    q, r = np.linalg.qr(rng.standard_normal((n_bits, n_bits)))
    return np.asarray(q * np.sign(np.diag(r)))
