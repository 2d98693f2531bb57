"""The signs of one bit that minimise a pairwise energy, by graph cuts; shared by the two-step methods."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from hashbench._typing import BoolArray, FloatArray, IntArray
from hashbench.methods._pairs import Pairs

Int32Array = npt.NDArray[np.int32]
_CAPACITY = 2**29  # integer capacities, whose sums fit 32 bits


class Energy:
    """The energy of a bit z of -1 and +1: the sum of a_ij z_i z_j over pairs and u_i z_i over items.

    Its ``blocks`` are groups of items without a dissimilar pair inside; each item is in at least one.
    """

    def __init__(self, pairs: Pairs, n_items: int, rng: np.random.Generator) -> None:
        self._rng = rng
        rows = np.concatenate([pairs.first, pairs.second])
        columns = np.concatenate([pairs.second, pairs.first])
        self._order = np.lexsort([columns, rows])  # from pairs in both directions to entries of the matrix
        self._indices = columns[self._order].astype(np.int32)
        self._indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_items))]).astype(np.int32)
        is_dissimilar = np.tile(pairs.level == 0, 2)[self._order]
        groups = grow_groups(self._indices, self._indptr, is_dissimilar, rng)
        self.blocks = [Block(items, self._indices, self._indptr) for items in groups]

    def lower(self, signs: FloatArray, couplings: FloatArray, unary: FloatArray, n_passes: int) -> FloatArray:
        """Lower the energy block by block, setting each in turn to its best signs, the others fixed.

        All blocks are visited ``n_passes`` times, in random order. The search starts at ``signs`` (n_items,) and
        returns signs whose energy is not higher. Couplings (n_pairs,) are a, at most 0 for similar pairs; ``unary``
        (n_items,) is u.
        """
        signs = signs.copy()
        values = np.tile(couplings, 2)[self._order]
        matrix = csr_array((values, self._indices, self._indptr), shape=(len(signs), len(signs)))
        for _ in range(n_passes):
            for number in self._rng.permutation(len(self.blocks)):
                block = self.blocks[number]
                signs[block.items] = block.best(signs, values, unary + matrix @ signs)
        return signs


class Block:
    """Items, ascending, whose signs are chosen together, by a minimum cut.

    ``indices`` and ``indptr`` are columns and rows of the matrix of all couplings, as in CSR.
    """

    def __init__(self, items: IntArray, indices: Int32Array, indptr: Int32Array) -> None:
        self.items = items
        n = len(items)
        local = np.full(len(indptr) - 1, -1)
        local[items] = np.arange(n)
        lengths = indptr[items + 1] - indptr[items]
        entries = np.repeat(indptr[items] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        entries = entries + np.arange(lengths.sum())
        rows, columns = np.repeat(np.arange(n), lengths), local[indices[entries]]
        self._entries, self._rows, self._columns = (part[columns >= 0] for part in (entries, rows, columns))
        nodes, source, sink = np.arange(n), np.full(n, n), np.full(n, n + 1)
        ends = (
            np.concatenate([self._rows, source, nodes, nodes, sink]),
            np.concatenate([self._columns, nodes, source, sink, nodes]),
        )
        graph = coo_array((np.arange(len(ends[0])), ends), shape=(n + 2, n + 2)).tocsr()
        graph.sort_indices()
        self._order, self._indices, self._indptr = graph.data, graph.indices, graph.indptr

    def best(self, signs: FloatArray, values: FloatArray, fields: FloatArray) -> FloatArray:
        """Return the signs of the block, (n,), of lowest energy, those of other items fixed.

        ``signs`` (n_items,) are the current ones of all items, ``values`` (n_entries,) the couplings a as data of the
        CSR matrix of all items, and ``fields`` (n_items,) u_i plus the sum of a_ij z_j. The result is exact to about a
        billionth of the sum of the fields; the current signs stay if none are better.
        """
        old, inner = signs[self.items], values[self._entries]
        unary = fields[self.items] - np.bincount(self._rows, inner * old[self._columns], len(old))
        new = self._settle(inner, unary)
        if not new.all():
            new = self._cut(inner, unary)
        change = inner @ (new[self._rows] * new[self._columns] - old[self._rows] * old[self._columns]) / 2
        return new if change + unary @ (new - old) < 0 else old

    def _settle(self, inner: FloatArray, unary: FloatArray) -> FloatArray:
        """Return signs that are best whatever the others are, 0 where that is open; without zeros, no cut is needed."""
        signs = np.zeros(len(unary))
        while True:
            field = unary + np.bincount(self._rows, inner * signs[self._columns], len(unary))
            is_open = signs == 0
            if (field[is_open] <= 0).all() or (field[is_open] >= 0).all():  # couplings favour equal signs
                signs[is_open] = 1.0 if (field[is_open] <= 0).all() else -1.0
                return signs
            slack = np.bincount(self._rows, np.abs(inner) * is_open[self._columns], len(unary))
            sure = is_open & (np.abs(field) > slack)
            if not sure.any():
                return signs
            signs[sure] = -np.sign(field[sure])

    def _cut(self, inner: FloatArray, unary: FloatArray) -> FloatArray:
        """Cut the graph where z = +1 is on the side of the source: a difference costs 2 |a|, and z costs u z."""
        n, total = len(unary), np.abs(unary).sum()
        pull = np.rint(unary * (_CAPACITY / total))
        edges = np.minimum(np.rint(np.maximum(-inner, 0) * (_CAPACITY / total)), _CAPACITY)
        zeros = np.zeros(n)
        capacity = np.concatenate([edges, np.maximum(-pull, 0), zeros, np.maximum(pull, 0), zeros])[self._order]
        graph = csr_array((capacity.astype(np.int32), self._indices, self._indptr), shape=(n + 2, n + 2))
        residual = graph - maximum_flow(graph, n, n + 1).flow
        residual.eliminate_zeros()
        signs = np.full(n + 2, -1.0)
        signs[breadth_first_order(residual, n, return_predecessors=False)] = 1.0
        return signs[:n]


def grow_groups(
    indices: Int32Array, indptr: Int32Array, is_dissimilar: BoolArray, rng: np.random.Generator
) -> list[IntArray]:
    """Group items, ascending, so that no group holds a dissimilar pair.

    ``indices`` and ``indptr`` define the pairs: columns and rows of a symmetric matrix, as in CSR. ``is_dissimilar``
    (n_entries,) marks dissimilar pairs; the others are similar. Each group grows from an item that is in no group yet:
    first by items similar to it, then by all others. Items may be in several groups.
    """
    n = len(indptr) - 1
    partners = np.split(indices, indptr[1:-1])
    kinds = np.split(is_dissimilar, indptr[1:-1])
    enemies = [items[kind] for items, kind in zip(partners, kinds, strict=True)]
    covered = np.zeros(n, dtype=np.bool_)
    groups = []
    for root in rng.permutation(n):
        if covered[root]:
            continue
        refused = np.zeros(n, dtype=np.bool_)
        group = []
        near = rng.permutation(partners[root][~kinds[root]])
        for item in dict.fromkeys(np.concatenate([[root], near, rng.permutation(n)]).tolist()):
            if not refused[item]:
                group.append(item)
                refused[enemies[item]] = True
        covered[group] = True
        groups.append(np.sort(np.array(group)))
    return groups
