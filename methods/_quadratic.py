"""What KSH and StructHash share: the bit of a kernel function that agrees best with a pairwise matrix."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.sparse import csr_array

from hashbench._typing import FloatArray


class Bit(NamedTuple):
    """One hash function and its bits.

    Parameters
    ----------
    direction : ndarray of shape (n_features,)
        The function a.
    signs : ndarray of shape (n_items,)
        h = sgn(K a), -1 or +1.
    gain : float
        h^T M h.
    """

    direction: FloatArray
    signs: FloatArray
    gain: float


def whitening(features: FloatArray, ridge: float) -> FloatArray:
    """Factor K^T K with a ridge.

    Parameters
    ----------
    features : ndarray of shape (n_items, n_anchors)
        K.
    ridge : float
        What is added to the diagonal, as a share of its mean; it lets anchors repeat.

    Returns
    -------
    ndarray of shape (n_anchors, n_anchors)
        Lower triangular L with L L^T = K^T K + ridge.
    """
    gram = features.T @ features
    return np.asarray(np.linalg.cholesky(gram + ridge * np.trace(gram) / len(gram) * np.eye(len(gram))))


def candidate_bits(
    white: FloatArray, matrix: FloatArray | csr_array, reduced: FloatArray, n_starts: int, max_iter: int
) -> list[Bit]:
    """Look for the bits h that maximise h^T M h.

    Parameters
    ----------
    white : ndarray of shape (n_items, n_features)
        K, with K^T K about the identity.
    matrix : ndarray or csr_array of shape (n_items, n_items)
        M, symmetric.
    reduced : ndarray of shape (n_features, n_features)
        K^T M K.
    n_starts : int
        Eigenvectors of ``reduced`` to give, by falling eigenvalue.
    max_iter : int
        Most steps of the smooth optimisation.

    Returns
    -------
    list of Bit
        First the maximiser of u^T M u, u = tanh(K a / 2), found by L-BFGS from the first eigenvector;
        then the eigenvectors.
    """
    top = len(reduced)
    vectors = eigh(reduced, subset_by_index=[max(top - n_starts, 0), top - 1])[1] * np.sqrt(len(white))
    starts = list(vectors.T[::-1])
    smooth = minimize(
        smooth_loss, starts[0], (white, matrix), method="L-BFGS-B", jac=True, options={"maxiter": max_iter}
    )
    bits = []
    for direction in (smooth.x, *starts):
        signs = np.where(white @ direction > 0, 1.0, -1.0)
        bits.append(Bit(direction, signs, float(signs @ matrix @ signs)))
    return bits


def smooth_loss(direction: FloatArray, white: FloatArray, matrix: FloatArray | csr_array) -> tuple[float, FloatArray]:
    """Compute -u^T M u for u = tanh(K a / 2), and its gradient.

    Parameters
    ----------
    direction : ndarray of shape (n_features,)
        The function a.
    white : ndarray of shape (n_items, n_features)
        K.
    matrix : ndarray or csr_array of shape (n_items, n_items)
        M, symmetric.

    Returns
    -------
    loss : float
        -u^T M u.
    gradient : ndarray of shape (n_features,)
        Its derivative by a.
    """
    smooth = np.tanh(white @ direction / 2)
    pulled = matrix @ smooth
    return -float(smooth @ pulled), -white.T @ (pulled * (1 - smooth**2))
