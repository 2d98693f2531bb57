"""SDH: codes from which a linear classifier predicts labels, optimised bit by bit without relaxation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hashbench._typing import FloatArray
from hashbench.errors import Refusal
from hashbench.method import HashMethod, real, setting, whole
from hashbench.methods._anchors import draw_anchors
from hashbench.methods._training_items import indicators, unit_rows

_LEAST_SPREAD = 2e-3  # smallest range of a kernel feature (0 to 1); with less, the ridge sees only noise


@dataclass(eq=False, repr=False, kw_only=True)
class SDH(HashMethod):
    """Supervised discrete hashing [1]_, with the squared loss.

    Learns from labels, one or several per item, not from pairs. Keeps the (n_samples, n_anchors) features in memory.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    n_anchors : int, default=1000
        Training items at the centres of the kernel features; all items if there are fewer.
    sigma : float or None, default=0.4
        Width of the kernel on items of unit length, as the authors use for features without negative
        values; None computes it from the mean squared distance to the anchors and centres the features.
    weight_decay : float, default=1.0
        Ridge of the classifier, lambda.
    fit_weight : float, default=1e-5
        Weight nu of the distance between codes and kernel functions. Large values freeze the random start.
    kernel_decay : float, default=0.01
        Ridge of the kernel functions, as in the authors' code.
    n_iter : int, default=5
        Alternations of classifier, kernel functions and codes.
    n_sweeps : int, default=10
        Maximum sweeps over the bits in each alternation.
    random_state : int, default=0
        Seed of anchors and initial codes.

    Attributes
    ----------
    anchors_ : Anchors
        The kernel features.
    weights_ : ndarray of shape (n_anchors + 1, n_bits)
        One function of the features per bit; the last row is the constant.
    losses_ : ndarray of shape (n_iter,)
        The objective after each alternation; never rises.

    Notes
    -----
    Minimises ||Y - B W||^2 + lambda ||W||^2 + nu (||B - F P||^2 + kernel_decay ||P||^2) over W, P and
    B of -1 and +1, in turn. Column k of B, the others fixed, is sgn(Q_k - (B W - B_k w_k) w_k^T) with
    Q = Y W^T + nu F P. Classes share codes where bits are few; with two classes there are two codes.

    On corel5k, whose 374 labels are mostly rare, AP is about that of itq, which learns without labels, and NDCG is
    lower.

    References
    ----------
    .. [1] F. Shen, C. Shen, W. Liu, H. T. Shen, "Supervised Discrete Hashing", CVPR 2015.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 90)
    >>> X = rng.normal(size=(90, 5)) + 3 * y[:, None]
    >>> SDH(n_bits=8).fit(X, y).transform(X).shape
    (90, 8)
    """

    n_anchors: int = setting(1000, whole(1))
    sigma: float | None = setting(0.4, real(0, closed="neither"), None)
    weight_decay: float = setting(1.0, real(0, closed="neither"))
    fit_weight: float = setting(1e-5, real(0))
    kernel_decay: float = setting(0.01, real(0, closed="neither"))
    n_iter: int = setting(5, whole(1))
    n_sweeps: int = setting(10, whole(1))
    random_state: int = 0

    supervision = "labels"
    group = "class-based"
    version = 2

    def _fit(self, X: FloatArray, y: Any) -> None:
        labels = indicators(self, y)  # (n_samples, n_classes)
        rng = np.random.default_rng(self.random_state)
        unit = unit_rows(X)
        gamma = None if self.sigma is None else 1 / (2 * self.sigma**2)
        self.anchors_ = draw_anchors(self, unit, self.n_anchors, rng, gamma=gamma)
        features = np.column_stack([self.anchors_.features(unit), np.ones(len(X))])
        spread = np.ptp(features, axis=0).max()
        if self.sigma is not None and spread < _LEAST_SPREAD:
            raise Refusal(
                f"{self.label} got nearly equal items (n_samples={len(X)}, n_features={X.shape[1]}): scaled to "
                f"unit length, they differ by at most {spread:.2g} in a kernel of sigma={self.sigma}. "
                "Centre the features, or choose sigma=None."
            )
        factor = cho_factor(features.T @ features + self.kernel_decay * np.eye(features.shape[1]))
        codes = rng.choice([-1.0, 1.0], size=(len(X), self.n_bits))
        self.losses_ = np.empty(self.n_iter)
        for step in range(self.n_iter):
            gram = codes.T @ codes + self.weight_decay * np.eye(self.n_bits)
            classifier = np.linalg.solve(gram, codes.T @ labels)
            self.weights_ = cho_solve(factor, features.T @ codes)
            fitted = features @ self.weights_
            for _ in range(self.n_sweeps):
                if not cyclic_sweep(codes, classifier, labels @ classifier.T + self.fit_weight * fitted):
                    break
            self.losses_[step] = ((labels - codes @ classifier) ** 2).sum() + self.weight_decay * (classifier**2).sum()
            misfit = ((codes - fitted) ** 2).sum() + self.kernel_decay * (self.weights_**2).sum()
            self.losses_[step] += self.fit_weight * misfit
        self.weights_ = cho_solve(factor, features.T @ codes)
        bits = features @ self.weights_ > 0
        if self.n_bits > 1 and (bits == bits[0]).all():
            raise Refusal(
                f"{self.label} gives all {len(X)} training items one code: these features do not predict their labels, "
                "or nearly all labels are equal. Pass more items of other labels, or other features."
            )

    def _project(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.anchors_.project(unit_rows(X), self.weights_[:-1]) + self.weights_[-1])


def cyclic_sweep(codes: FloatArray, classifier: FloatArray, pull: FloatArray) -> bool:
    """Set each column of codes B in turn to its best value, the others fixed, in place; return whether a bit changed.

    ``classifier`` (n_bits, n_classes) is W, ``pull`` (n_samples, n_bits) is Y W^T + nu F P. A bit without preference
    keeps its value.
    """
    predicted = codes @ classifier
    changed = False
    for bit, row in enumerate(classifier):
        own = codes[:, bit].copy()
        wanted = pull[:, bit] - predicted @ row + own * (row @ row)
        codes[:, bit] = np.where(wanted == 0, own, np.sign(wanted))
        predicted += np.outer(codes[:, bit] - own, row)
        changed |= bool((codes[:, bit] != own).any())
    return changed
