"""What the two-step methods share: the signs of one bit that minimise a pairwise energy, by graph cuts."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from hashbench._typing import BoolArray, FloatArray, IntArray
from hashbench.methods._pairs import Pairs

Int32Array = npt.NDArray[np.int32]
_CAPACITY = 2**29  # whole-number capacities, whose sums stay in 32 bits


class Energy:
    """The energy of a bit: the sum of a_ij z_i z_j over pairs and u_i z_i over items, z of -1 and +1.

    Its ``blocks`` are groups of items without a dissimilar pair inside; each item is in one at least.
    """

    def __init__(self, pairs: Pairs, n_items: int, rng: np.random.Generator) -> None:
        self._rng = rng
        rows = np.concatenate([pairs.first, pairs.second])
        columns = np.concatenate([pairs.second, pairs.first])
        self._order = np.lexsort([columns, rows])  # from pairs there and back to entries of the matrix
        self._indices = columns[self._order].astype(np.int32)
        self._indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_items))]).astype(np.int32)
        is_dissimilar = np.tile(pairs.level == 0, 2)[self._order]
        groups = grow_groups(self._indices, self._indptr, is_dissimilar, rng)
        self.blocks = [Block(items, self._indices, self._indptr) for items in groups]

    def lower(self, signs: FloatArray, couplings: FloatArray, unary: FloatArray, n_passes: int) -> FloatArray:
        """Lower the energy block by block, each in turn at its best, the others fixed.

        All blocks are visited ``n_passes`` times, in random order. It starts at ``signs`` (n_items,) and gives signs
        whose energy is not higher. Couplings (n_pairs,) are a, at most 0 for similar pairs; ``unary`` (n_items,) is u.
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
        every, source, sink = np.arange(n), np.full(n, n), np.full(n, n + 1)
        ends = (
            np.concatenate([self._rows, source, every, every, sink]),
            np.concatenate([self._columns, every, source, sink, every]),
        )
        graph = coo_array((np.arange(len(ends[0])), ends), shape=(n + 2, n + 2)).tocsr()
        graph.sort_indices()
        self._order, self._indices, self._indptr = graph.data, graph.indices, graph.indptr

    def best(self, signs: FloatArray, values: FloatArray, fields: FloatArray) -> FloatArray:
        """Choose the signs of the block, (n,), of lowest energy, those of other items fixed.

        Given are the present signs (n_items,) of all items, the couplings a (n_entries,) as data of the CSR matrix of
        all, and the fields (n_items,), u_i plus the sum of a_ij z_j. The choice is best to about a billionth of the sum
        of the fields; the present signs stay if none are better.
        """
        now, inner = signs[self.items], values[self._entries]
        unary = fields[self.items] - np.bincount(self._rows, inner * now[self._columns], len(now))
        found = self._settle(inner, unary)
        if not found.all():
            found = self._cut(inner, unary)
        change = inner @ (found[self._rows] * found[self._columns] - now[self._rows] * now[self._columns]) / 2
        return found if change + unary @ (found - now) < 0 else now

    def _settle(self, inner: FloatArray, unary: FloatArray) -> FloatArray:
        """Find signs that are best whatever the others are, 0 where that is open; then no cut is needed."""
        found = np.zeros(len(unary))
        while True:
            field = unary + np.bincount(self._rows, inner * found[self._columns], len(unary))
            is_open = found == 0
            if (field[is_open] <= 0).all() or (field[is_open] >= 0).all():  # couplings favour equal signs
                found[is_open] = 1.0 if (field[is_open] <= 0).all() else -1.0
                return found
            slack = np.bincount(self._rows, np.abs(inner) * is_open[self._columns], len(unary))
            sure = is_open & (np.abs(field) > slack)
            if not sure.any():
                return found
            found[sure] = -np.sign(field[sure])

    def _cut(self, inner: FloatArray, unary: FloatArray) -> FloatArray:
        """Cut the graph where z = +1 lies with the source: differing costs 2 |a|, and z costs u z."""
        n, total = len(unary), np.abs(unary).sum()
        pull = np.rint(unary * (_CAPACITY / total))
        edges = np.minimum(np.rint(np.maximum(-inner, 0) * (_CAPACITY / total)), _CAPACITY)
        nothing = np.zeros(n)
        capacity = np.concatenate([edges, np.maximum(-pull, 0), nothing, np.maximum(pull, 0), nothing])[self._order]
        graph = csr_array((capacity.astype(np.int32), self._indices, self._indptr), shape=(n + 2, n + 2))
        residual = graph - maximum_flow(graph, n, n + 1).flow
        residual.eliminate_zeros()
        signs = np.full(n + 2, -1.0)
        signs[breadth_first_order(residual, n, return_predecessors=False)] = 1.0
        return signs[:n]


def grow_groups(
    indices: Int32Array,
    indptr: Int32Array,
    is_dissimilar: BoolArray,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Group items, ascending, so that no group holds a dissimilar pair.

    ``indices`` and ``indptr`` tell which items are paired: columns and rows of a symmetric matrix, as in CSR;
    ``is_dissimilar`` (n_entries,) tells of each pair whether it is dissimilar, else it is similar. Each group grows
    from an item not yet in any: first by items similar to it, then by all others. Items may be in several groups.
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
