"""StructHash: kernel functions added one at a time, each the one that improves a bound on NDCG most."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from hashbench._typing import FloatArray, IntArray, LevelArray
from hashbench.affinity import Affinity
from hashbench.errors import Refusal
from hashbench.method import HashMethod, real, setting, whole
from hashbench.methods._anchors import draw_anchors
from hashbench.methods._ndcg_bound import Master, RankedList, worst_rankings
from hashbench.methods._quadratic import Bit, candidate_bits, whitening
from hashbench.methods._training_items import draw_rows

_BATCH = 256  # queries whose levels are in memory at once
_N_STARTS = 4  # eigenvectors to choose from if the best bit repeats an earlier one


@dataclass(eq=False, repr=False, kw_only=True)
class StructHash(HashMethod):
    """Structured learning of binary codes with column generation [1]_, for NDCG.

    Learns from graded levels: for the list of each query one of the levels of its items is drawn uniformly, and items
    of that level or a higher one are relevant.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    n_anchors : int, default=1000
        Training items at the centres of the kernel features; all items if there are fewer.
    n_items : int, default=5000
        Training items that queries and lists are drawn from, a random subset if there are more.
    n_queries : int, default=1000
        Training items used as queries.
    n_relevant, n_irrelevant : int, default=30, 90
        Length of a query's lists; all items if there are fewer.
    C : float, default=50.0
        Weight of the loss against the sum of the bits' weights.
    n_cuts : int, default=3
        Maximum rounds of constraints for each bit.
    n_steps : int, default=20
        Maximum steps of the smooth optimisation of one bit.
    ridge : float, default=0.01
        Regularisation of the kernel functions, as a share of the mean of the diagonal of K^T K.
    tol : float, default=1e-3
        Constraints violated by no more than this are not added.
    random_state : int, default=0
        Seed of anchors, items, queries and lists.

    Attributes
    ----------
    anchors_ : Anchors
        The kernel features.
    weights_ : ndarray of shape (n_anchors, n_bits)
        One function of the features per bit.
    bit_weights_ : ndarray of shape (n_bits,)
        Weights of the learned weighted Hamming distance; 0 for bits that do not improve the bound.
        hashbench ranks by plain Hamming distance.
    gains_ : ndarray of shape (n_bits,)
        Expected gain of each bit when it was added; only a gain above 1 can lower the bound.
    losses_ : ndarray of shape (n_bits,)
        Objective of the master problem after each bit.

    Notes
    -----
    The score of a list item is s_ij = -sum_r w_r [h_r(x_i) != h_r(x_j)]. The master problem minimises
    sum w + C xi subject to w . g^c >= loss^c - xi over the constraints c so far, where g^c compares the true ranking
    with c; the most violated ranking is computed exactly for each query. Its duals define the next bit, which maximises
    z^T M z / 2 and is added even if the master does not use it. A bit equal to an earlier one, or its complement, is
    replaced by the next of four eigenvectors; if there is none left, as with few anchors, the best bit is repeated.

    With K the kernel features, a function K a is scaled to a^T (K^T K + ridge) a = n and optimised from there. With a
    few hundred items, or almost no ridge, the first bits rank all lists without loss; these and later bits then overfit
    the lists. ``presets["paper"]`` has the authors' anchors, queries and cuts, and almost no ridge.

    Fitting uses one thread, so the number of threads does not affect codes. Weights are multiples of 2^-32, so items
    with the same code tie exactly. Another kind of processor may still give other bits: the optimisation of a bit can
    amplify rounding errors, and later bits depend on it (on digits from the 25th bit on; on digits-pairs and
    digits-unlabelled all 64 were equal).

    On cifar10-gist-unlabelled, where distances define levels, itq has a higher NDCG, and up to 32 bits a higher AP.

    References
    ----------
    .. [1] G. Lin, C. Shen, J. Wu, "Optimizing Ranking Measures for Compact Binary Code Learning",
       ECCV 2014, arXiv:1407.1151.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 90)
    >>> X = rng.normal(size=(90, 5)) + 3 * y[:, None]
    >>> StructHash(n_bits=8).fit(X, y).transform(X).shape
    (90, 8)
    """

    n_anchors: int = setting(1000, whole(1))
    n_items: int = setting(5000, whole(2))
    n_queries: int = setting(1000, whole(1))
    n_relevant: int = setting(30, whole(1))
    n_irrelevant: int = setting(90, whole(1))
    C: float = setting(50.0, real(0, closed="neither"))
    n_cuts: int = setting(3, whole(1))
    n_steps: int = setting(20, whole(0))
    ridge: float = setting(0.01, real(0, closed="neither"))
    tol: float = setting(1e-3, real(0))
    random_state: int = 0

    supervision = "affinity"
    is_slow = True
    libraries = (*HashMethod.libraries, "numba")
    group = "list-based"
    version = 4
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"n_anchors": 300, "n_queries": 100, "n_cuts": 10, "ridge": 1e-6}
    }

    @threadpool_limits.wrap(limits=1)  # the split of sums among threads would change bits
    def _fit(self, X: FloatArray, y: Any) -> None:
        rng = np.random.default_rng(self.random_state)
        self.anchors_ = draw_anchors(self, X, self.n_anchors, rng)
        rows = draw_rows(len(X), self.n_items, rng)
        lists = self._draw_lists(y, rows, rng)
        features = self.anchors_.features(X[rows])
        root = whitening(features, self.ridge)
        white = solve_triangular(root, features.T, lower=True).T

        bits: list[Bit] = []
        master = Master(self.C)
        master.add_constraint(*worst_rankings(lists, np.zeros((len(rows), 0)), np.zeros(0)), np.zeros((len(rows), 0)))
        duals = np.array([self.C])  # of the master without bits
        self.gains_ = np.empty(self.n_bits)
        self.losses_ = np.empty(self.n_bits)
        for number in range(self.n_bits):
            bits.append(_next_bit(white, master.combined(duals), bits, self.n_steps))
            self.gains_[number] = bits[-1].gain / 2
            master.add_bit(bits[-1].signs)
            signs = np.stack([bit.signs for bit in bits], axis=1)
            for _ in range(self.n_cuts):
                _, weights, slack, _ = master.solve()
                worst = worst_rankings(lists, signs, weights)
                if master.violation(*worst, signs, weights) <= slack + self.tol:
                    break
                master.add_constraint(*worst, signs)
            self.losses_[number], self.bit_weights_, _, duals = master.solve()
        self.weights_ = solve_triangular(root.T, np.stack([bit.direction for bit in bits], axis=1))

    def _draw_lists(self, affinity: Any, rows: IntArray, rng: np.random.Generator) -> list[RankedList]:
        lists: list[RankedList] = []
        for query, level in _in_turn(affinity, rows, rng.permutation(len(rows))):
            level = np.delete(level, query)
            others = np.delete(np.arange(len(rows)), query)
            levels = np.unique(level)
            if len(levels) < 2:
                continue
            threshold = rng.choice(levels[1:])
            relevant, irrelevant = others[level >= threshold], others[level < threshold]
            lists.append(
                RankedList(
                    query,
                    relevant[draw_rows(len(relevant), self.n_relevant, rng)],
                    irrelevant[draw_rows(len(irrelevant), self.n_irrelevant, rng)],
                )
            )
            if len(lists) == self.n_queries:
                break
        if not lists:
            raise Refusal(
                f"{self.label} learns from items that have both similar and dissimilar items, got "
                f"n_samples={len(rows)} without any. Pass items of at least two classes, several of each."
            )
        return lists

    def _project(self, X: FloatArray) -> FloatArray:
        return self.anchors_.project(X, self.weights_)


def _in_turn(affinity: Affinity, rows: IntArray, queries: IntArray) -> Iterator[tuple[int, LevelArray]]:
    """Yield each query with its levels to all rows, computed in batches."""
    for batch in gen_batches(len(queries), _BATCH):
        yield from zip(queries[batch], affinity.block(rows[queries[batch]], rows), strict=True)


def _next_bit(white: FloatArray, matrix: csr_array, bits: list[Bit], n_steps: int) -> Bit:
    """Return the best bit that does not repeat an earlier one; the best of all if there is none."""
    candidates = candidate_bits(white, matrix, white.T @ matrix @ white, _N_STARTS, n_steps)
    candidates.sort(key=lambda bit: -bit.gain)
    new = [bit for bit in candidates if not any(abs(bit.signs @ old.signs) == len(bit.signs) for old in bits)]
    return (new or candidates)[0]
