"""MACHash: codes and hash functions fitted alternately, until they agree."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from hashbench._typing import FloatArray
from hashbench.method import HashMethod, Hyperplanes, choice, real, setting, whole
from hashbench.methods._anchors import draw_anchors
from hashbench.methods._graph_cuts import Energy
from hashbench.methods._pairs import Pairs, draw_pairs
from hashbench.methods._training_items import check_items_differ, draw_rows


@dataclass(eq=False, repr=False, kw_only=True)
class MACHash(HashMethod):
    """Affinity loss optimised with auxiliary coordinates [1]_.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    kernel : {"linear", "rbf"}, default="linear"
        Hash functions: linear support vector machines on the features, or on kernel features.
    n_anchors : int, default=300
        Training items at the centres of the kernel features; all items if there are fewer.
    C : float, default=0.1
        Inverse regularisation of the support vector machines, on standardised features.
    n_items : int, default=10000
        Training items that are used, a random subset if there are more.
    n_similar, n_dissimilar : int, default=50
        Partners of each kind drawn for each item. The authors use 100 and 500, as ``presets["paper"]`` does,
        with 20 alternations, which takes many times as long.
    n_iter : int, default=5
        Alternations after the two-step start; 0 is the two-step method.
    growth : float, default=1.4
        Factor of the penalty from one alternation to the next.
    random_state : int, default=0
        Seed of items, anchors, pairs and blocks.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features or n_anchors, n_bits)
        One function per bit.
    intercept_ : ndarray of shape (n_bits,)
        Their constants.
    losses_ : ndarray of shape (n_steps + 1,)
        Mean loss of the pairs under the hash functions, at the start and after each alternation; the
        functions with the lowest loss are used.

    Notes
    -----
    With codes z of -1 and +1 and y = +1 for similar and -1 for dissimilar pairs, the sum over pairs of (z_n . z_m - b
    y)^2, plus mu ||z - h(x)||^2 over items, is minimised in z bit by bit by graph cuts, then every function h is fitted
    to its bit of z. The penalty mu starts at 0.05 of the median item's sum of couplings, since the loss grows with bits
    and pairs. Fitting stops when fewer than one bit in a thousand differs between codes and functions.

    Dissimilar pairs should differ in all bits. Where distances define levels, two neighbours of an item are often
    dissimilar, so no codes suit all pairs, and itq has a higher AP and NDCG.

    References
    ----------
    .. [1] R. Raziperchikolaei, M. A. Carreira-Perpinan, "Optimizing Affinity-Based Binary Hashing Using
       Auxiliary Coordinates", NIPS 2016, arXiv:1501.05352.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 90)
    >>> X = rng.normal(size=(90, 5)) + 3 * np.eye(5)[y]
    >>> MACHash(n_bits=8).fit(X, y).transform(X).shape
    (90, 8)
    """

    kernel: str = setting("linear", choice("linear", "rbf"))
    n_anchors: int = setting(300, whole(1))
    C: float = setting(0.1, real(0, closed="neither"))
    n_items: int = setting(10000, whole(2, 20000))
    n_similar: int = setting(50, whole(1))
    n_dissimilar: int = setting(50, whole(1))
    n_iter: int = setting(5, whole(0))
    growth: float = setting(1.4, real(1))
    random_state: int = 0

    supervision = "affinity"
    is_slow = True
    group = "pair-based"
    version = 2
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {"n_similar": 100, "n_dissimilar": 500, "n_iter": 20}}

    def _fit(self, X: FloatArray, y: Any) -> None:
        check_items_differ(self, X)
        rng = np.random.default_rng(self.random_state)
        rows = draw_rows(len(X), self.n_items, rng)
        self.anchors_ = draw_anchors(self, X, self.n_anchors, rng) if self.kernel == "rbf" else None
        features = X[rows] if self.anchors_ is None else self.anchors_.features(X[rows])
        scaler = StandardScaler().fit(features)
        scaled: FloatArray = scaler.transform(features)
        pairs = draw_pairs(self, y, rows, self.n_similar, self.n_dissimilar, rng)
        energy = Energy(pairs, len(rows), rng)

        codes = np.zeros((len(rows), self.n_bits))  # of -1 and +1, and 0 for bits not yet computed
        learnt, penalty = np.zeros_like(codes), 0.0
        losses: list[float] = []
        for step in range(self.n_iter + 1):
            update_codes(codes, energy, pairs, penalty, learnt, 1 if step else 2)
            penalty = penalty * self.growth or 0.05 * float(np.median(coupling_sums(codes, pairs)))
            weights, intercept = self._separate(scaled, codes)
            learnt = np.where(scaled @ weights + intercept > 0, 1.0, -1.0)
            losses.append(float((agreement_gaps(learnt, pairs) ** 2).mean()))
            if losses[-1] == min(losses):
                self.weights_ = weights / scaler.scale_[:, None]
                self.intercept_ = intercept - scaler.mean_ @ self.weights_
            if (learnt != codes).mean() < 1e-3:
                break
        self.losses_ = np.array(losses)

    def _separate(self, scaled: FloatArray, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fit one support vector machine per bit; a bit that all items share is a constant."""
        weights, intercept = np.zeros((scaled.shape[1], self.n_bits)), codes[0].copy()
        for bit in np.flatnonzero((codes != codes[0]).any(axis=0)):
            machine = LinearSVC(C=self.C, dual=False).fit(scaled, codes[:, bit])
            weights[:, bit], intercept[bit] = machine.coef_[0], machine.intercept_[0]
        return weights, intercept

    def _project(self, X: FloatArray) -> FloatArray:
        if self.anchors_ is None:
            return np.asarray(X @ self.weights_ + self.intercept_)
        return np.asarray(self.anchors_.project(X, self.weights_) + self.intercept_)

    def hyperplanes(self) -> Hyperplanes | None:
        """Return the planes behind the bits if the kernel is linear; see `HashMethod.hyperplanes`."""
        if self.anchors_ is not None:
            return None
        return Hyperplanes(np.zeros(len(self.weights_)), self.weights_, self.intercept_)


def agreement_gaps(codes: FloatArray, pairs: Pairs) -> FloatArray:
    """Compute z_n . z_m - b y of every pair: y is 1 for similar pairs, else -1; bits of 0 do not count."""
    gaps: FloatArray = np.where(pairs.level > 0, -1.0, 1.0) * codes.shape[1]
    for bit in codes.T:
        gaps += bit[pairs.first] * bit[pairs.second]
    return gaps


def coupling_sums(codes: FloatArray, pairs: Pairs) -> FloatArray:
    """Sum the absolute couplings |a_nm| of each item (n_items,), for its last bit."""
    last = codes[:, -1]
    sizes = 2 * np.abs(agreement_gaps(codes, pairs) - last[pairs.first] * last[pairs.second])
    both = np.concatenate([pairs.first, pairs.second])
    return np.bincount(both, np.tile(sizes, 2), len(codes)).astype(np.float64)


def update_codes(
    codes: FloatArray, energy: Energy, pairs: Pairs, penalty: float, learnt: FloatArray, n_passes: int
) -> None:
    """Lower the penalised loss in each column of the codes (n_items, n_bits) in turn, in place.

    A column of zeros starts at +1. ``learnt`` (n_items, n_bits) are the bits h(x), ``penalty`` is mu, and ``n_passes``
    the passes over the blocks of items for each bit.
    """
    gaps = agreement_gaps(codes, pairs)
    for bit in range(codes.shape[1]):
        signs = codes[:, bit]
        gaps -= signs[pairs.first] * signs[pairs.second]
        start = np.where(signs == 0, 1.0, signs)
        signs = energy.lower(start, 2 * gaps, -2 * penalty * learnt[:, bit], n_passes)
        gaps += signs[pairs.first] * signs[pairs.second]
        codes[:, bit] = signs
