"""Databases larger than memory: histograms of shards add up to that of the whole."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, Progress, Rows, silent
from hashbench.affinity import level_indices, row_digests
from hashbench.bits import to_words
from hashbench.errors import HashbenchError
from hashbench.scoring.candidates import CandidateCount, count_candidates
from hashbench.scoring.code_statistics import bits_seen, notes_on_bits
from hashbench.scoring.counting import SliceableCodes, count, database_blocks
from hashbench.scoring.evaluation import DEFAULT_METRICS, Evaluation, suited
from hashbench.scoring.evaluator import QueryKinds, check_counts
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import Parts, Relevance, check_left, notes_on_ignored
from hashbench.scoring.intervals import Units
from hashbench.scoring.item_sample import PackedSample, Sample
from hashbench.scoring.metrics import checked_metrics, get_metric
from hashbench.scoring.score_table import Counted, ItemSums, ScoreTable
from hashbench.scoring.self_pairs import check_self, check_symmetry
from hashbench.scoring.thresholds import Members, Part, Thresholds, pooled, queries_at_a_time
from hashbench.store.inputs import check_fits

_ALL = slice(None)
_BLOCK_ROWS = 1 << 18  # of the database, codes and labels, held at a time


@dataclass(frozen=True, eq=False)
class Shard:
    """What is known of some rows of the database; that of several adds up."""

    histogram: TieHistogram
    sample: Sample
    bits: ByteArray  # `bits_seen` of the codes

    def __add__(self, other: "Shard") -> "Shard":
        return Shard(self.histogram + other.histogram, self.sample + other.sample, self.bits | other.bits)


def count_shard(
    query: ByteArray,
    database: SliceableCodes,
    n_bits: int,
    relevance: Parts,
    rows: slice,
    queries: Rows = _ALL,
    *,
    on_progress: Progress = silent,
) -> Shard:
    """Count the histogram of some rows of the database, and of all or some packed ``query`` codes, and draw a sample.

    It is a pure function of arguments that can be pickled. Codes and labels are read once, 262,144 rows at a time. A
    histogram has the levels that occur in its rows; a sum of histograms has all of theirs.
    """
    codes = query[queries]

    def counted(block: slice) -> Shard:
        affinity = relevance.part(queries, block)
        n_bytes = 8 * len(codes) * len(affinity.levels) * (n_bits + 1)
        check_fits(3 * n_bytes, f"a histogram of {len(codes):,} queries", "give fewer queries, or shorter codes")
        packed = np.asarray(database[block])
        histogram = count(codes, database_blocks(packed, n_bits, affinity), n_bits, affinity, slice(0, len(codes)))
        if len(blocks) > 1:
            on_progress("database items counted", block.stop - rows.start, rows.stop - rows.start)
        return Shard(histogram, Sample.draw(to_words(packed), affinity.item_keys(), block.start), bits_seen(packed))

    blocks = chunks(rows.start, rows.stop, _BLOCK_ROWS)
    return reduce(add, map(counted, blocks))


@dataclass(frozen=True, eq=False)
class ShardedCodes:
    """Packed codes of queries, and of a database that is read in slices, once."""

    query: ByteArray
    database: SliceableCodes
    n_bits: int
    relevance: Relevance
    count: Callable[..., Shard] = field(default=count_shard)  # with its parameters and result
    on_progress: Progress = silent  # called with the numbers of items counted and of all items

    @property
    def _scored(self) -> tuple[Rows, Rows]:
        """The queries that are counted, and of each query the one that is counted for it."""
        return (self.kinds.first, self.kinds.of_query) if self.kinds.are_few else (_ALL, _ALL)

    @cached_property
    def _shard(self) -> Shard:
        """The histogram of these queries, and a sample, of the whole database."""
        return self._counted(self._scored[0])

    def _counted(self, queries: Rows) -> Shard:
        """Count the histogram of some queries over the whole database."""
        whole = slice(0, self.database.shape[0])
        parts = self.query, self.database, self.n_bits, self.relevance, whole, queries
        shard = self.count(*parts, on_progress=self.on_progress)
        if self.relevance.ignores:
            check_left(shard.histogram.n_database, np.arange(len(self.query))[queries])
        return shard

    @cached_property
    def kinds(self) -> QueryKinds:
        """The kinds of queries."""
        n_database = self.database.shape[0]
        check_counts((len(self.query), n_database), (self.relevance.n_queries, self.relevance.n_database))
        return QueryKinds.of(self.query, self.relevance.query_keys())

    def evaluate(self, metrics: Iterable[str], undefined: str = "skip", random_orders: int = 0) -> Evaluation:
        """Score the codes, with the same result as `hashbench.evaluate` of one array."""
        if random_orders:
            raise HashbenchError(
                f"random_orders is {random_orders}, but orders of a sharded database are not drawn, as each would read "
                "it again. Leave random_orders out."
            )
        left_out: list[str] = []
        if metrics is DEFAULT_METRICS:
            metrics, left_out = suited(metrics, self._shard.histogram.levels)
        chosen = checked_metrics(metrics, undefined)
        self.check_metrics(metric.name for metric in chosen)
        notes = [*self.relevance.notes, *check_self(self.query, self.database, self.relevance)]
        (queries, origin), shard = self._scored, self._shard
        histogram, chosen_rows = shard.histogram, shard.sample.rows[shard.sample.chosen]
        by_row = np.argsort(chosen_rows)  # whatever the codes that they were drawn by
        rows, columns, names = chosen_rows[by_row], [], []
        for row in rows.tolist():
            of_item = self.relevance.part(_ALL, slice(row, row + 1)).block(_ALL, _ALL)
            columns.append(of_item[queries])
            names.append(row_digests(of_item.T))
        n_alike = np.bincount(self.kinds.of_query) if self.kinds.are_few else None
        keys = np.concatenate(names).view(np.int64)
        items = ItemSums(chosen, histogram.n_queries, rows, shard.sample.n_items, n_alike, keys)
        table = ScoreTable(chosen, undefined, histogram.n_queries, items)
        levels = level_indices(histogram.levels, np.concatenate(columns, axis=1))
        words = to_words(self.query[queries]), shard.sample.words[shard.sample.chosen][by_row]
        sample = PackedSample(rows, *words, levels.__getitem__, self.n_bits + 1, self.relevance.ignores)

        def counted(part: slice) -> Counted:
            return Counted(histogram.part(part), partial(sample.add, part))

        table.fill(items.parts(slice(0, histogram.n_queries), histogram.counts[0].size), counted)
        evaluation = self.kinds.noted(table, origin, self.query, self.relevance)
        has_relevant = bool(table.n_relevant.any())
        ignored = notes_on_ignored(self.relevance, table.n_left[origin], has_relevant=has_relevant)
        notes += [*self._notes_on(shard), *ignored, *left_out, *table.readings(origin)]
        return replace(evaluation, notes=notes)

    def candidates(self, metric: str, wanted_recall: Sequence[float]) -> tuple[list[CandidateCount], Evaluation]:
        """Find how many candidates reach a recall, as `hashbench.candidates` does; and their evaluation."""
        check_self(self.query, self.database, self.relevance)
        n_queries, of_query = len(self.query), self.kinds.of_query
        weights = np.bincount(of_query) if self.kinds.are_few else np.ones(n_queries, dtype=np.int64)
        return count_candidates([(self._shard.histogram, weights)], self.evaluate, metric, wanted_recall)

    def thresholds(self, *, held_out: bool = False) -> Thresholds:
        """Count what each Hamming radius matches, as `hashbench.thresholds` does; queries some at a time."""
        if held_out:
            raise HashbenchError("a sharded database is not split in halves. Give it as one file, or hold nothing out.")
        notes = [*self.relevance.notes, *check_self(self.query, self.database, self.relevance)]
        if self.relevance.excludes_self:
            check_symmetry(self.relevance)
        units = Units.of(self.relevance, reads_items=False)
        parts = chunks(0, len(self.kinds.first), queries_at_a_time(self.n_bits))

        def counted() -> Iterator[Part]:
            for number, part in enumerate(parts):
                of_part = self._counted(self.kinds.first[part])
                notes.extend(self._notes_on(of_part) if number == 0 else [])
                yield Part.of(of_part.histogram, Members.of(self.kinds, part, units))

        return pooled(counted(), notes, units, self.relevance)

    def _notes_on(self, shard: Shard) -> list[str]:
        return notes_on_bits(self.query, int(self.database.shape[0]), shard.bits, self.n_bits)

    def check_metrics(self, metrics: Iterable[str]) -> None:
        """Refuse metrics that need more than counts that add up."""
        for metric in map(get_metric, metrics):
            if metric.form:
                raise metric.lacks_outputs()
            family = metric.family
            if family.needs_buckets or family.needs_candidates:
                needed = "the size of every bucket" if family.needs_buckets else "the nearest items and their vectors"
                raise HashbenchError(
                    f"{metric.name} needs {needed}, which histograms of shards lack. Leave it out, or give the "
                    "database as one file."
                )
