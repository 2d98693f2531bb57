"""FastHash: bits inferred from pairs by graph cuts, then learned by boosted decision trees."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from sklearn import config_context
from sklearn.ensemble import HistGradientBoostingClassifier

from hashbench._parallel import compiled
from hashbench._typing import BoolArray, FloatArray, IntArray
from hashbench.errors import HashbenchError, one_line
from hashbench.method import HashMethod, choice, real, setting, whole
from hashbench.methods._graph_cuts import Energy
from hashbench.methods._pairs import draw_pairs
from hashbench.methods._training_items import check_items_differ, draw_rows

_N_BINS = 63


@dataclass(frozen=True, eq=False)
class Trees:
    """Regression trees whose values are summed; nodes of all trees are numbered together."""

    start: float  # initial value of the sum
    roots: IntArray  # first node of each tree
    feature: IntArray  # that each node compares, (n_nodes,)
    threshold: FloatArray  # an item whose feature is not above it goes left, (n_nodes,)
    left: IntArray  # child of each node, (n_nodes,); a leaf is its own child on both sides
    right: IntArray
    value: FloatArray  # that a leaf adds, (n_nodes,)

    @classmethod
    def of(cls, model: HistGradientBoostingClassifier) -> Self:
        """Read the trees of a fitted model of two classes."""
        try:
            predictors, start = model._predictors, model._baseline_prediction  # there are no public attributes
        except AttributeError as error:
            raise HashbenchError(
                f"fasthash cannot read the trees of scikit-learn {sklearn.__version__}: {one_line(error)}. Install the "
                "release that constraints.txt names, or choose another method."
            ) from error
        nodes = [trees[0].nodes for trees in predictors]
        sizes = np.array([len(tree) for tree in nodes])
        roots = np.cumsum(sizes) - sizes
        table, shift = np.concatenate(nodes), np.repeat(roots, sizes)
        is_leaf, number = table["is_leaf"] == 1, np.arange(len(table))
        return cls(
            start=float(start.item()),
            roots=roots,
            feature=table["feature_idx"].astype(np.int64),
            threshold=np.where(is_leaf, 0.0, table["num_threshold"]),
            left=np.where(is_leaf, number, table["left"] + shift).astype(np.int64),
            right=np.where(is_leaf, number, table["right"] + shift).astype(np.int64),
            value=table["value"].astype(np.float64),
        )

    def values(self, X: FloatArray) -> FloatArray:
        """Compute the sums (n_samples,) of items (n_samples, n_features)."""
        sums = np.full(len(X), self.start)
        X = np.ascontiguousarray(X)
        _add_leaves(sums, X, self.roots, self.feature, self.threshold, self.left, self.right, self.value)
        return sums


@compiled
def _add_leaves(
    sums: FloatArray,
    X: FloatArray,
    roots: IntArray,
    feature: IntArray,
    threshold: FloatArray,
    left: IntArray,
    right: IntArray,
    value: FloatArray,
) -> None:
    for item in range(len(X)):
        for root in roots:
            node = root
            while left[node] != node:
                node = left[node] if X[item, feature[node]] <= threshold[node] else right[node]
            sums[item] += value[node]


@dataclass(eq=False, repr=False, kw_only=True)
class FastHash(HashMethod):
    """Supervised hashing with graph cuts and decision trees [1]_.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    loss : {"hinge", "ksh", "bre"}, default="hinge"
        Loss of a pair.
    n_trees : int, default=20
        Trees per bit. The authors use 200, as ``presets["paper"]`` does, which takes ten times as long.
    max_depth : int, default=4
        Depth of a tree.
    learning_rate : float, default=0.3
        Shrinkage of each tree.
    n_items : int, default=10000
        Training items that pairs are drawn from and trees learn from, a random subset if there are more.
    n_similar, n_dissimilar : int, default=100
        Partners of each kind drawn for each item.
    n_passes : int, default=2
        Passes over the blocks of items when a bit is inferred.
    random_state : int, default=0
        Seed of pairs and blocks.

    Attributes
    ----------
    edges_ : list of ndarray
        Borders between the bins of each feature, at most 62.
    trees_ : list of Trees or float
        Functions of the bin numbers, one per bit; a number for a bit that is the same for all items.
    losses_ : ndarray of shape (n_bits,)
        Mean loss of the pairs after each bit.

    Notes
    -----
    Step 1 of bit r minimises sum a_ij z_i z_j over the pairs, a_ij = loss(D_ij) - loss(D_ij + 1), D the Hamming
    distance of the bits that the trees have learned so far. Blocks of items without dissimilar pairs are minimised
    exactly by a minimum cut, the others fixed. Step 2 fits trees to z with weights ``sum_j |a_ij|``: gradient boosting
    on binned features with the log loss in place of AdaBoost. The losses of a similar and a dissimilar pair at length r
    are (D/r)^2 and max(1/2 - D/r, 0)^2 (hinge), 4 (D/r)^2 and 4 (1 - D/r)^2 (ksh), (D/r)^2 and (1 - D/r)^2 (bre).

    Where distances define levels, two neighbours of an item are often not similar. No codes suit all pairs then,
    and itq has a higher AP and NDCG.

    References
    ----------
    .. [1] G. Lin, C. Shen, Q. Shi, A. van den Hengel, D. Suter, "Fast Supervised Hashing with Decision
       Trees for High-Dimensional Data", CVPR 2014.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 90)
    >>> X = rng.normal(size=(90, 5)) + 3 * y[:, None]
    >>> FastHash(n_bits=8).fit(X, y).transform(X).shape
    (90, 8)
    """

    loss: str = setting("hinge", choice("bre", "hinge", "ksh"))
    n_trees: int = setting(20, whole(1))
    max_depth: int = setting(4, whole(1, 16))
    learning_rate: float = setting(0.3, real(0, closed="neither"))
    n_items: int = setting(10000, whole(2, 20000))
    n_similar: int = setting(100, whole(1))
    n_dissimilar: int = setting(100, whole(1))
    n_passes: int = setting(2, whole(1))
    random_state: int = 0

    supervision = "affinity"
    is_slow = True
    libraries = (*HashMethod.libraries, "numba")
    group = "pair-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {"n_trees": 200, "learning_rate": 0.1}}

    def _fit(self, X: FloatArray, y: Any) -> None:
        check_items_differ(self, X)
        rng = np.random.default_rng(self.random_state)
        rows = draw_rows(len(X), self.n_items, rng)
        self.edges_ = [_edges(column) for column in X[rows].T]
        items = self._bins(X[rows])
        pairs = draw_pairs(self, y, rows, self.n_similar, self.n_dissimilar, rng)
        energy = Energy(pairs, len(rows), rng)
        similar = pairs.level > 0
        distance = np.zeros(len(similar))
        self.trees_: list[Trees | float] = []
        self.losses_ = np.empty(self.n_bits)
        for bit in range(self.n_bits):
            losses = pair_losses(self.loss, np.stack([distance, distance + 1]) / (bit + 1), similar)
            couplings = losses[0] - losses[1]
            signs = energy.lower(np.ones(len(rows)), couplings, np.zeros(len(rows)), self.n_passes)
            weights = np.bincount(pairs.first, np.abs(couplings), len(rows))
            weights += np.bincount(pairs.second, np.abs(couplings), len(rows))
            self.trees_.append(self._grow(items, signs, weights / weights.mean() + 1e-6))
            learnt = _values(self.trees_[-1], items) > 0
            distance += learnt[pairs.first] != learnt[pairs.second]
            self.losses_[bit] = pair_losses(self.loss, distance / (bit + 1), similar).mean()

    def _grow(self, items: FloatArray, signs: FloatArray, weights: FloatArray) -> Trees | float:
        if (signs == signs[0]).all():
            return float(signs[0])
        trees = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.n_trees,
            max_depth=self.max_depth,
            max_leaf_nodes=2**self.max_depth,
            min_samples_leaf=5,
            max_bins=_N_BINS,
            early_stopping=False,
            random_state=0,
        )
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return Trees.of(trees.fit(items, signs > 0, weights))

    def _project(self, X: FloatArray) -> FloatArray:
        binned = self._bins(X)
        return np.stack([_values(trees, binned) for trees in self.trees_], axis=1)

    def _bins(self, X: FloatArray) -> FloatArray:
        """Replace each value by the number of its bin; done once, not for every bit."""
        columns = [np.searchsorted(edges, column) for edges, column in zip(self.edges_, X.T, strict=True)]
        return np.stack(columns, axis=1).astype(np.float64)


def pair_losses(name: str, share: FloatArray, similar: BoolArray) -> FloatArray:
    """Compute the losses of pairs at Hamming distance ``share`` (..., n_pairs) times the code length."""
    apart = np.maximum(0.5 - share, 0) if name == "hinge" else 1 - share
    return np.where(similar, share, apart) ** 2 * (4 if name == "ksh" else 1)


def _edges(column: FloatArray) -> FloatArray:
    """Return the borders between the bins of a feature: between its values, or at percentiles if they are many."""
    distinct = np.unique(column)
    if len(distinct) <= _N_BINS:
        return np.asarray((distinct[1:] + distinct[:-1]) / 2)
    return np.unique(np.percentile(column, np.linspace(0, 100, _N_BINS + 1)[1:-1], method="midpoint"))


def _values(trees: Trees | float, X: FloatArray) -> FloatArray:
    return np.full(len(X), trees) if isinstance(trees, float) else trees.values(X)
