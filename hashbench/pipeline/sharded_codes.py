"""Codes that users bring in shards, files one after the other that need not fit into memory together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, IntArray, Progress, Rows, silent
from hashbench._validation import check_superclasses, class_labels
from hashbench.affinity import Affinity, Hierarchy, as_affinity
from hashbench.bits import as_packed, as_packed_pair, n_bytes
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.cluster_shards import count_on_workers
from hashbench.pipeline.own_codes import COARSE_KEYS, check_counts, check_rating, check_relevance, comparable
from hashbench.pipeline.preparation import load_dataset
from hashbench.scoring.shards import Relevance, ShardedCodes, count_shard
from hashbench.sources.array_files import read_array, read_codes, read_matrix
from hashbench.sources.formats import CODE_KEYS, LABEL_KEYS
from hashbench.sources.shards import ShardedArray, find_shards, rows_of

MAY_BE_SHARDED = ("database_codes", "database_labels", "database_coarse")
_ALL = slice(None)
_TRIED = 1024  # rows that tell the form of all
_PAIRED = 1 << 20  # classes and superclasses compared at a time


def shards_of(**specs: str | None) -> list[str]:
    """List the files of whatever is given in shards; none if nothing is."""
    return [file for key in MAY_BE_SHARDED if specs.get(key) for file in find_shards(str(specs[key])) or ()]


def read_sharded(
    *,
    query_codes: str,
    database_codes: str,
    query_labels: str | None = None,
    database_labels: str | None = None,
    query_coarse: str | None = None,
    database_coarse: str | None = None,
    affinity: str | None = None,
    dataset: str | None = None,
    n_bits: int | None = None,
    bit_order: str | None = None,
    distance: str = "hamming",
    query_vectors: str | None = None,
    database_vectors: str | None = None,
    true_distance: str | None = None,
    cluster: Cluster | None = None,
    on_progress: Progress = silent,
) -> ShardedCodes:
    """Find what `own_codes.read_own` reads, where that of the database may lie in shards; queries are read.

    They are counted in this process, or on the workers of a ``cluster``.
    """
    if distance != "hamming":
        raise HashbenchError(
            f"--distance {distance} ranks the whole database at once, and shards are read one after the other; give "
            "binary codes, or the database as one file."
        )
    if query_vectors or database_vectors or true_distance:
        raise HashbenchError(
            "vectors re-rank the nearest items of the whole database, which histograms of shards do not tell; leave "
            "them out, or give the database as one file."
        )
    labels = {"--query-labels": query_labels, "--database-labels": database_labels}
    coarse = {"--query-coarse": query_coarse, "--database-coarse": database_coarse}
    check_relevance(labels, coarse, affinity, dataset)
    stored = ShardedArray(find_shards(database_codes) or [database_codes], CODE_KEYS)
    query, _, width = as_packed_pair(read_codes(query_codes), stored[:_TRIED], n_bits, bit_order)
    if len(stored.shape) == 1 and stored.dtype.kind in "iu":  # those of a slice may all be small
        n_bits = width
    database = _PackedSlices(stored, width, n_bits, bit_order)
    relevance: Relevance
    if affinity is not None:
        relevance = as_affinity(read_matrix(affinity))
    elif query_labels is not None:
        given = [(labels, LABEL_KEYS)] if query_coarse is None else [(labels, LABEL_KEYS), (coarse, COARSE_KEYS)]
        relevance = _Labels([_LabelFiles.of(specs, keys) for specs, keys in given])
    if dataset is not None:
        found, _ = load_dataset(dataset)
        check_counts(found, dataset, (len(query), len(database)))
        if affinity is not None or query_labels is not None:
            check_rating(found, dataset, relevance)
        relevance = found.affinity()
    count = count_shard if cluster is None else partial(count_on_workers, cluster=cluster)
    return ShardedCodes(query, database, width, relevance, count, on_progress)


class _PackedSlices:
    """Codes in any form that `as_packed` knows, packed when they are read; with ``n_bits``, if that was given."""

    def __init__(self, stored: ShardedArray, width: int, n_bits: int | None, bit_order: str | None) -> None:
        self._stored, self._width, self._n_bits, self._bit_order = stored, width, n_bits, bit_order
        self.shape = len(stored), n_bytes(width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> ByteArray:
        name = f"database codes from row {rows.start:,} on"
        packed, width = as_packed(self._stored[rows], self._n_bits, name, self._bit_order)
        if width != self._width:
            raise HashbenchError(f"{name} have {width} bits, and those before {self._width}; all need the same length.")
        return packed


@dataclass(frozen=True, eq=False)
class _LabelFiles:
    """Labels of queries, and those of the database in slices."""

    specs: tuple[str, str]
    query: AnyArray
    database: AnyArray | ShardedArray

    @classmethod
    def of(cls, specs: dict[str, str | None], keys: tuple[str, ...]) -> Self:
        """Read those of the queries, and find the others."""
        query, database = map(str, specs.values())
        return cls((query, database), read_array(query, keys), rows_of(database, keys))

    def part(self, query: Rows, database: slice) -> list[AnyArray]:
        """Give labels of some queries and items."""
        ours, theirs = self.query[query], self.database[database]
        return comparable([ours, theirs], self.specs, (len(ours), len(theirs)))


class _Labels:
    """Classes, perhaps with superclasses, or multi-hot labels, whose affinity is made of some rows at a time."""

    def __init__(self, files: Sequence[_LabelFiles]) -> None:
        self._files = files
        self.n_queries, self.n_database = len(files[0].query), len(files[0].database)
        if len(files) > 1:
            self._check_superclasses(*files)

    def part(self, query: Rows, database: slice) -> Affinity:
        """Give the affinity of some queries to some items."""
        parts = [one.part(query, database) for one in self._files]
        return Hierarchy(*parts[0], *parts[1]) if len(parts) > 1 else as_affinity(tuple(parts[0]))

    def query_keys(self) -> IntArray | None:
        """Give what makes queries alike; see `Affinity.query_keys`."""
        return self.part(_ALL, slice(0, 1)).query_keys()

    def _check_superclasses(self, classes: _LabelFiles, coarse: _LabelFiles) -> None:
        """Refuse a class that lies in several superclasses, since the affinity of some rows sees only these."""
        if len(classes.database) != len(coarse.database):
            raise HashbenchError(
                f"there are classes for {len(classes.database):,} database items and superclasses for "
                f"{len(coarse.database):,}; give both of each item."
            )
        if any(array.dtype.kind in "USO" for one in (classes, coarse) for array in (one.query, one.database)):
            raise HashbenchError(
                "classes or superclasses are words, whose shards cannot be held against each other; number them: "
                "numpy.unique(names, return_inverse=True)[1]."
            )
        pairs = np.empty((0, 2), dtype=np.int64)
        for rows in chunks(0, self.n_database, _PAIRED):
            columns = [class_labels(np.concatenate(one.part(_ALL, rows)), one.specs[1]) for one in (classes, coarse)]
            pairs = np.unique(np.concatenate([pairs, np.stack(columns, axis=1)]), axis=0)
        check_superclasses(*pairs.T)
