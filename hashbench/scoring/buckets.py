"""Buckets: the distinct codes of a database, and how many items share each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from hashbench._parallel import in_threads, query_chunks
from hashbench._typing import ByteArray, IntArray, WordArray
from hashbench.bits import n_words, to_words
from hashbench.scoring import kernels
from hashbench.scoring.counting import SliceableCodes, read_words
from hashbench.scoring.equal_rows import sort_equal_rows


@dataclass(frozen=True, eq=False)
class Buckets:
    """The distinct codes of a database, and how many items have each."""

    words: WordArray  # (n_buckets, n_words)
    sizes: IntArray  # (n_buckets,)

    @classmethod
    def of(cls, database: SliceableCodes, n_bits: int) -> Self:
        """Sort packed codes, (n_database, ceil(n_bits / 8)), into buckets; they are read some 8 MiB at a time."""
        blocks = (cls(words, np.ones(len(words), dtype=np.int64)) for _, words in read_words(database, n_bits))
        empty = cls(np.empty((0, n_words(n_bits)), dtype=np.uint64), np.empty(0, dtype=np.int64))
        return cls.united([empty, *(cls.united([block]) for block in blocks)])

    @classmethod
    def united(cls, parts: Iterable[Self]) -> Self:
        """Unite the buckets of parts of a database; sizes of codes that occur in several add up."""
        parts = list(parts)
        words, sizes = np.concatenate([part.words for part in parts]), np.concatenate([part.sizes for part in parts])
        order, first = sort_equal_rows(list(words.T))
        return cls(words[order[first]], np.add.reduceat(sizes[order], first) if len(first) else sizes)

    def largest(self, query: ByteArray, n_bits: int) -> IntArray:
        """Find the largest bucket at each Hamming distance from each packed query: (n_queries, n_bits + 1), int64."""
        words, columns = to_words(query), np.ascontiguousarray(self.words.T)
        largest = np.zeros((len(words), n_bits + 1), dtype=np.int64)
        for _ in in_threads(
            lambda chunk: kernels.largest_buckets(words[chunk], columns, self.sizes, largest[chunk]),
            query_chunks(len(words)),
        ):
            pass
        return largest
