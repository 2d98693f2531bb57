"""Collect candidates from codes and float vectors: the nearest items by Hamming distance, in float order."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hashbench._parallel import in_threads, query_chunks
from hashbench._typing import AnyArray, BoolArray, ByteArray, FloatArray, IntArray, SliceableCodes
from hashbench._validation import check_directions, real_row_pair
from hashbench.affinity import Affinity
from hashbench.bits import to_words
from hashbench.distances import exact_at
from hashbench.errors import HashbenchError
from hashbench.scoring.counting import read_words
from hashbench.scoring.engine import kernels
from hashbench.scoring.histogram import Candidates, TieHistogram
from hashbench.scoring.metrics._sums import cut_at

_MEMORY = 256 << 20  # bytes of candidates held at a time
_CANDIDATE = 48  # bytes, while they are sorted


class Vectors:
    """The float vectors that were coded, one for each code, and the distance by which they are compared."""

    def __init__(self, query: npt.ArrayLike, database: npt.ArrayLike, true_distance: str = "euclidean") -> None:
        self.true_distance = true_distance
        self.query, self.database = real_row_pair(query, database, "vectors", "n_features")
        if true_distance == "cosine":
            check_directions(self.query, "query vectors")
            check_directions(self.database, "database vectors")

    def check_fit(self, n_queries: int, n_database: int) -> None:
        """Refuse vectors if there are more or fewer than codes."""
        for role, vectors, n_codes in (("query", self.query, n_queries), ("database", self.database, n_database)):
            if len(vectors) != n_codes:
                raise HashbenchError(
                    f"there are {len(vectors)} {role} vectors for {n_codes} {role} codes; give the vector of each code."
                )

    def distances(self, query: int, database: IntArray) -> FloatArray:
        """Compute the true distances of a query to some database items, in float64; the smaller, the nearer."""
        row = np.zeros(len(database), dtype=np.int64)
        return exact_at(self.query[query : query + 1], self.database, row, database, self.true_distance)


def candidate_parts(
    histogram: TieHistogram,
    queries: slice,
    query: ByteArray,
    database: SliceableCodes,
    n_bits: int,
    affinity: Affinity,
    vectors: Vectors,
    n_reranked: int,
) -> Iterator[tuple[slice, Candidates]]:
    """Collect the candidates of the histogram's queries, which are the ``queries`` of all, some at a time.

    Yields a slice of the histogram's queries, and all their items up to the distance of the tie that ``n_reranked``
    cuts. The database is read once for each part. The histogram lacks the items that a query ignores.
    """
    cut = cut_at(histogram, n_reranked)
    counts = cut.before + cut.size
    room = counts + (int(database.shape[0]) - histogram.n_database)  # for ignored items, which may all be near
    for part in _parts(room, _MEMORY // _CANDIDATE):
        absolute = slice(queries.start + part.start, queries.start + part.stop)
        starts = np.append(0, np.cumsum(room[part]))
        index, hamming, ends = _collect(query[absolute], database, n_bits, cut.group[part], starts)
        if affinity.ignores:
            is_left = _is_left(affinity, absolute.start, index, starts[:-1], ends)
            starts, index, hamming = np.append(0, np.cumsum(counts[part])), index[is_left], hamming[is_left]
        value, level = np.empty(len(index)), np.empty(len(index), np.result_type(np.int16, affinity.levels.dtype))

        def sort(
            chunk: slice,
            first: int = absolute.start,
            starts: IntArray = starts,
            arrays: tuple[AnyArray, ...] = (index, hamming, value, level),
        ) -> None:
            for row in range(chunk.start, chunk.stop):
                index, hamming, value, level = (array[starts[row] : starts[row + 1]] for array in arrays)
                distances = vectors.distances(first + row, index)
                levels = affinity.block(slice(first + row, first + row + 1), index)[0]
                order = np.lexsort((levels, distances))
                value[:], level[:], hamming[:] = distances[order], levels[order], hamming[order]

        for _ in in_threads(sort, query_chunks(len(starts) - 1)):
            pass
        yield part, Candidates(starts, value, level, hamming)


def _is_left(affinity: Affinity, first: int, index: IntArray, starts: IntArray, ends: IntArray) -> BoolArray:
    """Return which candidates no query ignores, of those from its start to its end."""
    is_left = np.zeros(len(index), dtype=bool)
    for row, (start, end) in enumerate(zip(starts, ends, strict=True), start=first):
        is_left[start:end] = affinity.block(slice(row, row + 1), index[start:end])[0] >= 0
    return is_left


def _parts(counts: IntArray, limit: int) -> Iterator[slice]:
    """Cut queries into consecutive parts of one query, or whose counts add up to at most ``limit``."""
    start, ends = 0, np.cumsum(counts)
    while start < len(counts):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + limit, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _collect(
    query: ByteArray, database: SliceableCodes, n_bits: int, radius: IntArray, starts: IntArray
) -> tuple[IntArray, npt.NDArray[np.uint16], IntArray]:
    """Return the items inside the radius of each query, ascending rows of the database; their distances; their ends."""
    words, fill = to_words(query), starts[:-1].copy()
    index, hamming = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1], dtype=np.uint16)
    for rows, block in read_words(database, n_bits):
        columns = np.ascontiguousarray(block.T)  # (n_words, n_rows)

        def collect(chunk: slice, columns: AnyArray = columns, first: int = rows.start) -> None:
            kernels.collect(words[chunk], columns, first, radius[chunk], fill[chunk], index, hamming)

        for _ in in_threads(collect, query_chunks(len(words))):
            pass
    return index, hamming, fill
