"""KSH: kernel functions fitted bit by bit to the residual of the pairwise similarity."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from hashbench._typing import FloatArray
from hashbench.method import HashMethod, real, setting, whole
from hashbench.methods._anchors import draw_anchors
from hashbench.methods._pairs import similar_matrix
from hashbench.methods._quadratic import candidate_bits, whitening
from hashbench.methods._training_items import draw_rows


@dataclass(eq=False, repr=False, kw_only=True)
class KSH(HashMethod):
    """Supervised hashing with kernels [1]_.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    n_anchors : int, default=1000
        Training items at the centres of the kernel features; all items if there are fewer.
    n_items : int, default=3000
        Training items whose pairs are used, a random subset if there are more. Time and memory
        grow with its square. The kernel's width and mean come from all training items.
    n_steps : int, default=20
        Maximum steps of the smooth optimisation of one bit.
    ridge : float, default=0.01
        Regularisation of the kernel functions, as a share of the mean of the diagonal of K^T K.
    random_state : int, default=0
        Seed of anchors and items.

    Attributes
    ----------
    anchors_ : Anchors
        The kernel features.
    weights_ : ndarray of shape (n_anchors, n_bits)
        One function of the features per bit.
    gains_ : ndarray of shape (n_bits, 2)
        h^T R h of each bit: at the spectral start, and of the final bit.

    Notes
    -----
    With S = +1 for similar and -1 for dissimilar pairs and K the centred features, ||H H^T / b - S||^2 is minimised bit
    by bit: h maximises h^T R h for the residual R = b S - (the bits so far) (...)^T. Its start is the top generalised
    eigenvector of (K^T R K) a = l (K^T K + ridge) a; then u^T R u is maximised for u = tanh(K a / 2). The better of the
    two, by h^T R h, is kept. Without the ridge, or with 1,000 items, the bits overfit the drawn pairs. The paper's
    gradient method with momentum needs up to 500 steps per bit for what L-BFGS does here in ``n_steps``. With few
    anchors a bit may repeat an earlier one. ``presets["paper"]`` has the authors' numbers of anchors, items and steps.
    They use no ridge, but work on features that are not whitened, where 500 steps do not converge, which regularises
    too. For 16 bits from 1,000 items of CIFAR-10 and 300 anchors, held-out items scored AP 0.467 with their optimiser,
    0.493 with this one and its ridge, 0.413 with almost none.

    Fitting uses one thread, so the number of threads does not affect codes. Another kind of processor may give other
    bits: the optimisation of a bit can amplify rounding errors (on digits-unlabelled from 1e-13 of its function to
    6e-4), and later bits depend on it.

    Dissimilar pairs should differ in all bits. Where distances define levels, two neighbours of an item are often
    dissimilar, so no codes suit all pairs, and itq has a higher NDCG, though on cifar10-gist-unlabelled a lower AP from
    32 bits on.

    References
    ----------
    .. [1] W. Liu, J. Wang, R. Ji, Y.-G. Jiang, S.-F. Chang, "Supervised Hashing with Kernels", CVPR 2012.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 90)
    >>> X = rng.normal(size=(90, 5)) + 3 * y[:, None]
    >>> KSH(n_bits=8).fit(X, y).transform(X).shape
    (90, 8)
    """

    n_anchors: int = setting(1000, whole(1))
    n_items: int = setting(3000, whole(2))
    n_steps: int = setting(20, whole(0))
    ridge: float = setting(0.01, real(0, closed="neither"))
    random_state: int = 0

    supervision = "affinity"
    is_slow = True
    group = "pair-based"
    version = 4
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {"n_anchors": 300, "n_items": 2000, "n_steps": 500}}

    @threadpool_limits.wrap(limits=1)  # the split of sums among threads would change bits
    def _fit(self, X: FloatArray, y: Any) -> None:
        rng = np.random.default_rng(self.random_state)
        self.anchors_ = draw_anchors(self, X, self.n_anchors, rng)
        items = draw_rows(len(X), self.n_items, rng)
        residual = np.where(similar_matrix(self, y, items), 1.0, -1.0) * self.n_bits  # (n_items, n_items)
        features = self.anchors_.features(X[items])  # (n_items, n_anchors)
        root = whitening(features, self.ridge)
        white = solve_triangular(root, features.T, lower=True).T
        reduced = white.T @ residual @ white
        directions = np.empty((features.shape[1], self.n_bits))
        self.gains_ = np.empty((self.n_bits, 2))
        for number in range(self.n_bits):
            smooth, spectral = candidate_bits(white, residual, reduced, 1, self.n_steps)
            best = smooth if smooth.gain > spectral.gain else spectral
            self.gains_[number] = spectral.gain, best.gain
            directions[:, number] = best.direction
            residual -= np.outer(best.signs, best.signs)
            projected = white.T @ best.signs
            reduced -= np.outer(projected, projected)
        self.weights_ = solve_triangular(root.T, directions)

    def _project(self, X: FloatArray) -> FloatArray:
        return self.anchors_.project(X, self.weights_)
