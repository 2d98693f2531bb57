"""The bound on NDCG that StructHash optimises, over lists of items, as a growing linear program."""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from hashbench._parallel import compiled
from hashbench._typing import FloatArray, IntArray
from hashbench.errors import HashbenchError
from hashbench.methods._quadratic import agreement

_GRID = 2.0**-32  # weights are multiples of it: their sums are exact, so items with the same code tie


@dataclass(frozen=True)
class RankedList:
    """A query and the items to rank, by their positions."""

    query: int
    relevant: IntArray
    irrelevant: IntArray


@compiled
def worst_ranking(relevant: FloatArray, irrelevant: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return the ranking of a list that maximises 1 - NDCG minus its margin, from scores, each descending.

    The result is 1 - NDCG of that ranking, for binary relevance, and the coefficients of the margin ``of_relevant @
    relevant + of_irrelevant @ irrelevant``: 2 / (p q) for each irrelevant item above a relevant one. They sum to 0.

    The ranking is defined by n_j, the number of irrelevant items above relevant item j, which never falls. Dynamic
    programming over j maximises the sum of -D(j + n_j) / Z - (2 / (p q)) (n_j s_j - S(n_j)), S(n) the sum of the best n
    irrelevant scores, D(t) = 1 / log2(t + 2), Z the sum of D(j).
    """
    p, q = len(relevant), len(irrelevant)
    step = 2.0 / (p * q)
    discount = 1.0 / np.log2(np.arange(p + q) + 2.0)
    ideal = discount[:p].sum()
    below = np.zeros(q + 1)  # the best value of the items so far, if at most n are above the last
    chosen = np.zeros((p, q + 1), dtype=np.int64)
    for j in range(p):
        best, at, total = -np.inf, 0, 0.0
        for n in range(q + 1):
            if n:
                total += irrelevant[n - 1]
            value = below[n] - discount[j + n] / ideal - step * (n * relevant[j] - total)
            if value >= best:  # of equal ones the worst placement
                best, at = value, n
            below[n] = best
            chosen[j, n] = at
    of_relevant, of_irrelevant = np.zeros(p), np.zeros(q)
    n, gain = q, 0.0
    for j in range(p - 1, -1, -1):
        n = chosen[j, n]
        of_relevant[j] = step * n
        for i in range(n):
            of_irrelevant[i] -= step
        gain += discount[j + n]
    return 1.0 - gain / ideal, of_relevant, of_irrelevant


def worst_rankings(lists: list[RankedList], signs: FloatArray, weights: FloatArray) -> tuple[float, csr_array]:
    """Return the most violated constraint, for bits of -1 and +1 (n_items, n_bits) and their weights (n_bits,).

    It consists of its loss, 1 - NDCG of the worst rankings, mean over the lists; and its couplings a (n_items,
    n_items): the mean margin of a bit is the sum of a_ij z_i z_j / 2.
    """
    losses, rows, columns, values = [], [], [], []
    for ranked in lists:
        kinds = ranked.relevant, ranked.irrelevant
        scores = [signs[items] @ (weights * signs[ranked.query]) / 2 for items in kinds]
        order = [np.argsort(-score, kind="stable") for score in scores]
        loss, of_relevant, of_irrelevant = worst_ranking(scores[0][order[0]], scores[1][order[1]])
        losses.append(loss)
        columns += [ranked.relevant[order[0]], ranked.irrelevant[order[1]]]
        rows.append(np.full(len(ranked.relevant) + len(ranked.irrelevant), ranked.query))
        values += [of_relevant, of_irrelevant]
    entries = np.concatenate(values) / len(lists), (np.concatenate(rows), np.concatenate(columns))
    return float(np.mean(losses)), coo_array(entries, shape=(len(signs), len(signs))).tocsr()


@dataclass
class Master:
    """Minimise sum w + C xi over w, xi >= 0 subject to w . g^c >= loss^c - xi for the constraints c so far."""

    C: float  # weight of the loss
    losses: list[float] = field(default_factory=list)  # one per constraint
    couplings: list[csr_array] = field(default_factory=list)  # one per constraint, from which g follows
    gains: list[list[float]] = field(default_factory=list)  # g, one row per constraint and one entry per bit

    def add_constraint(self, loss: float, couplings: csr_array, signs: FloatArray) -> None:
        """Add a constraint of couplings (n_items, n_items), for the bits so far (n_items, n_bits)."""
        self.losses.append(loss)
        self.couplings.append(couplings)
        self.gains.append([_gain(couplings, bit) for bit in signs.T])

    def add_bit(self, signs: FloatArray) -> None:
        """Add a bit, (n_items,) of -1 and +1."""
        for row, couplings in zip(self.gains, self.couplings, strict=True):
            row.append(_gain(couplings, signs))

    def violation(self, loss: float, couplings: csr_array, signs: FloatArray, weights: FloatArray) -> float:
        """Compute loss - w . g of a constraint, a lower bound of xi; w are the weights (n_bits,)."""
        gains = [_gain(couplings, bit) for bit in signs.T]
        return float(loss - np.dot(weights, gains))

    def solve(self) -> tuple[float, FloatArray, float, FloatArray]:
        """Solve the linear program; return its value, w (n_bits,), xi, and the constraints' multipliers, at least 0."""
        gains = np.array(self.gains)
        cost = np.append(np.ones(gains.shape[1]), self.C)
        solved = linprog(cost, A_ub=-np.column_stack([gains, np.ones(len(gains))]), b_ub=-np.array(self.losses))
        if solved.x is None:
            raise HashbenchError(f"structhash's linear program cannot be solved: {solved.message} Choose a smaller C.")
        weights = np.round(solved.x[:-1] / _GRID) * _GRID
        return float(solved.fun), weights, float(solved.x[-1]), -solved.ineqlin.marginals

    def combined(self, duals: FloatArray) -> csr_array:
        """Sum the constraints' couplings by their multipliers: M, symmetric; a new bit z promises z^T M z / 2."""
        total = sum(dual * couplings for dual, couplings in zip(duals, self.couplings, strict=True) if dual > 0)
        return csr_array((total + total.T) / 2)


def _gain(couplings: csr_array, signs: FloatArray) -> float:
    return agreement(couplings, signs) / 2
