"""StructHash: kernel functions added one at a time, whichever helps a bound on NDCG most."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval

from hashbench.affinity import Affinity, IntArray, LevelArray
from hashbench.errors import Refusal
from hashbench.method import FloatArray, HashMethod
from hashbench.methods._anchors import draw_anchors
from hashbench.methods._items import draw_rows
from hashbench.methods._quadratic import Bit, candidate_bits, whitening
from hashbench.methods._rankings import Master, RankedList, worst_rankings

_BATCH = 256  # queries whose levels are held at once
_N_STARTS = 4  # eigenvectors that stand in where the best bit is there already


class StructHash(HashMethod):
    """Structured learning of binary codes with column generation [1]_, for NDCG.

    Knows several levels: the list of each query asks for one of the levels its items have, drawn evenly,
    and there relevant is what has that level or a higher one.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    n_anchors : int, default=1000
        Training items at the centres of the kernel features; all items if there are fewer.
    n_items : int, default=5000
        Training items that queries and lists are drawn from, themselves drawn if there are more.
    n_queries : int, default=1000
        Training items used as queries.
    n_relevant, n_irrelevant : int, default=30, 90
        Length of a query's lists, or all items there are.
    C : float, default=50.0
        Weight of the loss against the sum of the bits' weights.
    n_cuts : int, default=3
        Most rounds of constraints for each bit.
    n_steps : int, default=20
        Most steps of the smooth optimisation of one bit.
    ridge : float, default=0.01
        Regularisation of the kernel functions, as a share of the mean of the diagonal of K^T K.
    tol : float, default=1e-3
        Constraints violated by no more than this are not added.
    random_state : int, default=0
        Seed of the drawings.

    Attributes
    ----------
    anchors_ : Anchors
        The kernel features.
    weights_ : ndarray of shape (n_anchors, n_bits)
        One function of the features a bit.
    bit_weights_ : ndarray of shape (n_bits,)
        Weights of the weighted Hamming distance that was learnt; 0 for bits the bound can do without.
        Codes are compared by plain Hamming distance here.
    gains_ : ndarray of shape (n_bits,)
        What each bit promised when it was added; only above 1 it can lower the bound.
    losses_ : ndarray of shape (n_bits,)
        Objective of the master problem after each bit.

    Notes
    -----
    The score of a list item is s_ij = -sum_r w_r [h_r(x_i) != h_r(x_j)]. The master problem minimises
    sum w + C xi subject to w . g^c >= loss^c - xi over the rankings c found so far, where g^c compares
    the true ranking with c; the most violated ranking is found exactly for each query. Its duals give
    the next bit, which maximises z^T M z / 2; the master may have no use for it, then it is added all
    the same. A bit equal to an earlier one, or its complement, is passed over for the next of four
    eigenvectors; where these are used up, as with few anchors, the best bit is repeated.

    With K the kernel features, a function K a is scaled to a^T (K^T K + ridge) a = n and optimised from
    there. A few hundred items, or next to no ridge, let the first bits rank all lists without loss; these
    and later bits then know the lists by heart, and say little of other items. ``presets["paper"]`` has the
    authors' anchors, queries and cuts, and next to no ridge.

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

    supervision = "affinity"
    group = "list-based"
    version = 3
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"n_anchors": 300, "n_queries": 100, "n_cuts": 10, "ridge": 1e-6}
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HashMethod._parameter_constraints,
        "n_anchors": [Interval(Integral, 1, None, closed="left")],
        "n_queries": [Interval(Integral, 1, None, closed="left")],
        "n_relevant": [Interval(Integral, 1, None, closed="left")],
        "n_irrelevant": [Interval(Integral, 1, None, closed="left")],
        "n_cuts": [Interval(Integral, 1, None, closed="left")],
        "n_items": [Interval(Integral, 2, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "n_steps": [Interval(Integral, 0, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 1000,
        n_items: int = 5000,
        n_queries: int = 1000,
        n_relevant: int = 30,
        n_irrelevant: int = 90,
        C: float = 50.0,
        n_cuts: int = 3,
        n_steps: int = 20,
        ridge: float = 0.01,
        tol: float = 1e-3,
        random_state: int = 0,
    ) -> None:
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.n_items = n_items
        self.n_queries = n_queries
        self.n_relevant = n_relevant
        self.n_irrelevant = n_irrelevant
        self.C = C
        self.n_cuts = n_cuts
        self.n_steps = n_steps
        self.ridge = ridge
        self.tol = tol
        self.random_state = random_state

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
            asked = rng.choice(levels[1:])
            relevant, irrelevant = others[level >= asked], others[level < asked]
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
                f"n_samples={len(rows)} without any such. Give items of two classes or more, several of each."
            )
        return lists

    def _project(self, X: FloatArray) -> FloatArray:
        return self.anchors_.project(X, self.weights_)


def _in_turn(affinity: Affinity, rows: IntArray, queries: IntArray) -> Iterator[tuple[int, LevelArray]]:
    """Give queries one by one, each with its levels to all rows; computed for many at a time."""
    for batch in gen_batches(len(queries), _BATCH):
        yield from zip(queries[batch], affinity.block(rows[queries[batch]], rows), strict=True)


def _next_bit(white: FloatArray, matrix: csr_array, bits: list[Bit], n_steps: int) -> Bit:
    """Choose the best bit that is not there yet; the best of all if there is no other."""
    found = candidate_bits(white, matrix, white.T @ matrix @ white, _N_STARTS, n_steps)
    found.sort(key=lambda bit: -bit.gain)
    fresh = [bit for bit in found if not any(abs(bit.signs @ old.signs) == len(bit.signs) for old in bits)]
    return (fresh or found)[0]
