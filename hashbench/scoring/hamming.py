"""Packed codes ranked by Hamming distance, in memory or on disk: counted block by block, never held as distances."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, IntArray, Progress, Rows, SliceableCodes, silent
from hashbench.affinity import Affinity
from hashbench.bits import n_words, to_words
from hashbench.errors import HashbenchError
from hashbench.scoring.code_statistics import usage_notes
from hashbench.scoring.counting import Buckets, count, database_blocks, largest_left, n_blocks
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import check_left
from hashbench.scoring.item_sample import PackedSample
from hashbench.scoring.metrics import Metric
from hashbench.scoring.random_orders import Ties
from hashbench.scoring.ranking import ALL, Parts, Plan, QueryKinds, Ranking
from hashbench.scoring.reranking import Vectors, candidate_parts
from hashbench.scoring.score_table import Counted, ItemSums

_MEMORY = 256 << 20  # bytes of histograms held at a time, and of codes held between groups of queries


@dataclass(frozen=True, eq=False)
class HammingRanking(Ranking):
    """Packed codes, (n, ceil(n_bits / 8)), and what is relevant to the queries; a database on disk is read in slices.

    ``vectors`` are what was coded, or how to read that, for metrics that re-rank.
    """

    query: ByteArray
    database: SliceableCodes
    n_bits: int
    relevance: Affinity
    vectors: Vectors | Callable[[], Vectors] | None = None

    by_radius = True

    @property
    def n_queries(self) -> int:  # type: ignore[override]
        """The number of query codes."""
        return len(self.query)

    @property
    def n_items(self) -> int:  # type: ignore[override]
        """The number of database codes."""
        return int(self.database.shape[0])

    @property
    def is_whole(self) -> bool:
        """Whether the database lies in memory."""
        return isinstance(self.database, np.ndarray)

    @property
    def key_bytes(self) -> AnyArray:
        """The query codes."""
        return self.query

    @cached_property
    def notes(self) -> list[str]:
        """Sentences on codes that rank little or nothing."""
        return usage_notes(self.query, self.database, self.n_bits)

    def part(self, queries: Rows) -> Self:
        """Select some queries."""
        return replace(self, query=self.query[queries], relevance=self.relevance.part(queries))

    @cached_property
    def counted(self) -> tuple[Self, QueryKinds]:
        """The queries that are counted, one of each kind where these are few, and which stands for which."""
        if self.kinds.are_few:
            return self.part(self.kinds.first), self.kinds
        each = np.arange(self.n_queries)
        return self, QueryKinds(each, each)

    def check(self, metric: Metric) -> None:
        """Refuse a metric that needs outputs or vectors where there are none, and vectors that do not fit."""
        super().check(metric)
        if metric.family.needs_candidates:
            if self.vectors is None:
                raise metric.lacks_vectors()
            self._vectors.check_fit(self.n_queries, self.n_items)

    @cached_property
    def _vectors(self) -> Vectors:
        if self.vectors is None or isinstance(self.vectors, Vectors):
            return self.vectors  # type: ignore[return-value]
        return self.vectors()

    @cached_property
    def sample(self) -> PackedSample:
        """Items that stand for the database."""
        return PackedSample.of(self.query, self.database, self.n_bits, self.relevance)

    @property
    def at_a_time(self) -> int:
        """How many queries have histograms that fit memory."""
        return max(_MEMORY // (8 * len(self.relevance.levels) * (self.n_bits + 1)), 1)

    @cached_property
    def _held_blocks(self) -> list[Any] | None:
        """The blocks of a small database that is counted several times."""
        is_small = 8 * self.n_items * (n_words(self.n_bits) + 1) <= _MEMORY
        is_read_again = self.n_queries > self.at_a_time
        return [*database_blocks(self.database, self.n_bits, self.relevance)] if is_small and is_read_again else None

    def histogram(self, queries: slice, on_counted: Callable[[int], None] = lambda n_counted: None) -> TieHistogram:
        """Count some queries; ``on_counted`` is called with how many were counted against a block since the last call.

        Refuses queries that ignore the whole database; their numbers are those of this ranking.
        """
        blocks = self._held_blocks or database_blocks(self.database, self.n_bits, self.relevance)
        return count(self.query, blocks, self.n_bits, self.relevance, queries, on_counted)

    def plan(self, metrics: Sequence[Metric]) -> Plan:
        """Count one query of each kind where these are few and nothing is re-ranked."""
        reranked = [int(metric.arguments[1]) for metric in metrics if metric.family.needs_candidates]
        scored, kinds = (self, None) if reranked else self.counted
        origin: Rows = ALL
        n_alike = None
        if kinds is not None and scored is not self:
            origin, n_alike = kinds.of_query, np.bincount(kinds.of_query)
        keys = self.relevance.part(ALL, scored.sample.rows).item_keys()
        needs_buckets = any(metric.family.needs_buckets for metric in metrics)
        numbers = np.arange(self.n_queries) if origin is ALL else self.kinds.first
        counted = partial(scored.parts, numbers, max(reranked, default=0), needs_buckets)
        return Plan(counted, scored.n_queries, origin, n_alike, scored.sample.rows, keys)

    def parts(
        self,
        numbers: IntArray,
        n_reranked: int,
        needs_buckets: bool,
        items: ItemSums | None,
        on_progress: Progress = silent,
    ) -> Iterator[Parts]:
        """Count groups of queries, which have these ``numbers`` for users, each in parts for threads."""
        buckets = Buckets.of(self.database, self.n_bits) if needs_buckets and not self.relevance.ignores else None
        relevance = self._relevance_in_memory if n_reranked or (needs_buckets and buckets is None) else self.relevance
        n_all, n_done = self.n_queries * n_blocks(self.database, self.n_bits), 0

        def tick(n_counted: int) -> None:
            nonlocal n_done
            n_done += n_counted
            on_progress("queries counted", n_done, n_all)

        def parts_of(queries: slice, histogram: TieHistogram) -> Parts:
            def counted(part: slice) -> Counted:
                relative = slice(part.start - queries.start, part.stop - queries.start)
                return Counted(histogram.part(relative), partial(self.sample.add, part))

            return [] if items is None else items.parts(queries, histogram.counts[0].size), counted

        codes = self.query, self.database, self.n_bits
        for queries in chunks(0, self.n_queries, self.at_a_time):
            histogram = self.histogram(queries, tick)
            if self.relevance.ignores:
                check_left(histogram.n_database, numbers[queries])
            if needs_buckets:
                largest = (
                    largest_left(self.query, self.database, relevance, queries, self.n_bits)
                    if buckets is None
                    else buckets.largest(self.query[queries], self.n_bits)
                )
                histogram = replace(histogram, largest_bucket=largest)
            if not n_reranked:
                yield parts_of(queries, histogram)
                continue
            for part, candidates in candidate_parts(histogram, queries, *codes, relevance, self._vectors, n_reranked):
                absolute = slice(queries.start + part.start, queries.start + part.stop)
                yield parts_of(absolute, replace(histogram.part(part), candidates=candidates))

    def ranked(self, queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        """Compute the distances of some queries to the whole database, which is read; see `Ranking.ranked`."""
        words = self._all_words
        distances = np.empty((len(queries), len(words)), dtype=np.int16)
        for row, code in zip(distances, to_words(self.query[queries]), strict=True):
            row[:] = np.bitwise_count(words ^ code).sum(axis=1)
        return Ties.of(distances, self._relevance_in_memory, queries).ranked

    @cached_property
    def _relevance_in_memory(self) -> Affinity:
        """The relevance whose labels, if they lie on disk, have been read."""
        rule = self.relevance
        return rule.part(ALL, slice(0, self.n_items)) if rule.is_read_in_slices else rule

    @cached_property
    def _all_words(self) -> Any:
        return to_words(np.asarray(self.database[:]))


def check_counts(n_codes: tuple[int, int], n_rated: tuple[int, int]) -> None:
    """Refuse no codes of queries or database, and numbers of codes that differ from those of the affinity."""
    hint = " Query and database look swapped." if n_codes == n_rated[::-1] else ""
    for role, n, expected in zip(("query", "database"), n_codes, n_rated, strict=True):
        if not n:
            raise HashbenchError(f"there are no {role} codes; at least one is needed.")
        if n != expected:
            raise HashbenchError(
                f"there are {n} {role} codes, but labels or affinities for {expected} {role} items.{hint}"
            )
