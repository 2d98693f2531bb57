"""The bit of a kernel function that agrees best with a pairwise matrix; shared by KSH and StructHash."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.sparse import csr_array

from hashbench._typing import FloatArray


class Bit(NamedTuple):
    """One hash function and its bits."""

    direction: FloatArray  # the function a, (n_features,)
    signs: FloatArray  # h = sgn(K a), -1 or +1, (n_items,)
    gain: float  # h^T M h


def whitening(features: FloatArray, ridge: float) -> FloatArray:
    """Factor K^T K with a ridge, for features K (n_items, n_anchors): lower triangular L with L L^T = K^T K + ridge.

    The ridge is added to the diagonal, as a share of its mean; with it, anchors may be equal.
    """
    gram = features.T @ features
    return np.asarray(np.linalg.cholesky(gram + ridge * np.trace(gram) / len(gram) * np.eye(len(gram))))


def candidate_bits(
    white: FloatArray, matrix: FloatArray | csr_array, reduced: FloatArray, n_starts: int, max_iter: int
) -> list[Bit]:
    """Return bits h with large h^T M h.

    ``white`` is K (n_items, n_features), with K^T K about the identity; ``matrix`` is M (n_items, n_items), symmetric;
    ``reduced`` is K^T M K. The first bit is the maximiser of u^T M u, u = tanh(K a / 2), after at most ``max_iter``
    steps of L-BFGS from the first eigenvector of ``reduced``; the others are its first ``n_starts`` eigenvectors, by
    decreasing eigenvalue. The entry of largest magnitude in each eigenvector is positive.
    """
    top = len(reduced)
    vectors = eigh(reduced, subset_by_index=[max(top - n_starts, 0), top - 1])[1] * np.sqrt(len(white))
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    starts = list(vectors.T[::-1])
    smooth = minimize(
        smooth_loss, starts[0], (white, matrix), method="L-BFGS-B", jac=True, options={"maxiter": max_iter}
    )
    bits = []
    for direction in (smooth.x, *starts):
        signs = np.where(white @ direction > 0, 1.0, -1.0)
        bits.append(Bit(direction, signs, agreement(matrix, signs)))
    return bits


def agreement(matrix: FloatArray | csr_array, signs: FloatArray) -> float:
    """Compute z^T M z for a bit z (n_items,), equal to the last digit on any processor if M is sparse."""
    return float((signs * (matrix @ signs)).sum())  # not BLAS, whose order of additions depends on the processor


def smooth_loss(direction: FloatArray, white: FloatArray, matrix: FloatArray | csr_array) -> tuple[float, FloatArray]:
    """Compute -u^T M u for u = tanh(K a / 2), and its gradient by a, the ``direction`` (n_features,)."""
    smooth = np.tanh(white @ direction / 2)
    pulled = matrix @ smooth
    return -float(smooth @ pulled), -white.T @ (pulled * (1 - smooth**2))
