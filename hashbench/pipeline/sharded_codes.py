"""Users' own codes in shards: consecutive files that need not fit into memory together."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, IntArray, Progress, Rows, silent
from hashbench._validation import check_superclasses, class_labels
from hashbench.affinity import Affinity, Hierarchy, SameLabel, as_affinity, by_labels
from hashbench.bits import as_packed, as_packed_pair, n_bytes
from hashbench.errors import HashbenchError
from hashbench.pipeline.cluster import Cluster
from hashbench.pipeline.cluster_shards import count_on_workers
from hashbench.pipeline.own_codes import OwnFiles, check_judge, comparable
from hashbench.pipeline.own_grid import names_several
from hashbench.pipeline.preparation import load_dataset
from hashbench.scoring.shards import ShardedCodes, count_shard
from hashbench.sources.array_files import read_array, read_codes, read_levels
from hashbench.sources.formats import CODE_KEYS
from hashbench.sources.pair_files import refuse_other_ids
from hashbench.sources.shards import ShardedArray, find_shards, read_in_slices

MAY_BE_SHARDED = ("database_codes", "database_labels", "database_coarse", "database_groups")
_ALL = slice(None)
_TRIED = 1024  # rows from which the form of all is inferred
_PAIRED = 1 << 20  # classes and superclasses to compare at a time


def shards_of(**specs: Any) -> list[str]:
    """List the files that options name as shards; in names with {bits} and {seed}, brackets are no pattern."""
    named = [specs[key] for key in MAY_BE_SHARDED if specs.get(key) and not names_several(specs[key])]
    return [file for spec in named for file in find_shards(spec) or ()]


def read_sharded(files: OwnFiles, *, cluster: Cluster | None = None, on_progress: Progress = silent) -> ShardedCodes:
    """Read codes and labels of the queries, and open those of the database, which may lie in shards.

    Database items are counted in this process, or on the workers of a ``cluster``.
    """
    needs_whole = files.query_outputs, files.query_vectors, files.database_vectors, files.true_distance
    if files.distance != "hamming" or any(needs_whole):
        raise HashbenchError(
            "shards are read one after the other, but real-valued outputs, vectors and distances other than Hamming "
            "need the whole database at once; leave them out, or pass the database as one file."
        )
    stored = ShardedArray(find_shards(files.database_codes) or [files.database_codes], CODE_KEYS)
    form = files.bit_order, files.encoding
    query_codes = read_codes(files.query_codes, files.n_bits)
    query, _, width = as_packed_pair(query_codes, stored[:_TRIED], files.n_bits, *form)
    are_integers = len(stored.shape) == 1 and stored.dtype.kind in "iu"  # those of a slice may all be small
    database = _PackedSlices(stored, width, width if are_integers else files.n_bits, *form)
    relevance: Any = None
    if files.affinity is not None:
        relevance = as_affinity(read_levels(files.affinity, len(database)))
    elif files.label_files:
        relevance = _ShardedLabels([_LabelFiles(specs, keys) for specs, keys in files.label_files])
    if files.dataset is not None:
        judge, _ = load_dataset(files.dataset)
        check_judge(judge, files.dataset, (len(query), len(database)), relevance)
        relevance = judge.affinity()
    of_queries, of_database = files.by_role
    refuse_other_ids([spec] for spec in of_queries)
    refuse_other_ids(find_shards(spec) or [spec] for spec in of_database)
    count = count_shard if cluster is None else partial(count_on_workers, cluster=cluster)
    relevance, _ = files.reduced(relevance)
    return ShardedCodes(query, database, width, relevance, count, on_progress)


class _PackedSlices:
    """Codes in any form that `as_packed` takes, packed when they are read."""

    def __init__(self, stored: ShardedArray, width: int, n_bits: int | None, *form: str | None) -> None:
        self._stored, self._width, self._n_bits, self._form = stored, width, n_bits, form
        self.shape = len(stored), n_bytes(width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> ByteArray:
        name = f"database codes from row {rows.start:,} on"
        packed, width = as_packed(self._stored[rows], self._n_bits, name, *self._form)
        if width != self._width:
            raise HashbenchError(f"{name} have {width} bits, and those before {self._width}; all need the same length.")
        return packed


class _LabelFiles:
    """Labels of queries, and those of the database in slices."""

    def __init__(self, specs: dict[str, str], keys: tuple[str, ...]) -> None:
        self.specs = [*specs.values()]
        self.query, self.database = read_array(self.specs[0], keys), read_in_slices(self.specs[1], keys)

    def part(self, query: Rows, database: slice) -> list[AnyArray]:
        labels = [self.query[query], self.database[database]]
        return comparable(labels, self.specs, (len(labels[0]), len(labels[1])))


class _ShardedLabels:
    """Classes, perhaps with superclasses, or multi-hot labels, read and compared some rows at a time."""

    true_distance = None
    ignores = excludes_self = False

    def __init__(self, files: list[_LabelFiles]) -> None:
        self._files = files
        self.n_queries, self.n_database = len(files[0].query), len(files[0].database)
        if len(files) > 1:
            self._check_superclasses(*files)
        self.notes = self._notes_on_words()

    def part(self, query: Rows, database: slice) -> Affinity:
        parts = [file.part(query, database) for file in self._files]
        return Hierarchy(*parts[0], *parts[1]) if len(parts) > 1 else by_labels(*parts[0])

    @property
    def plain(self) -> "_ShardedLabels":
        return self

    def query_keys(self) -> IntArray | None:
        return self.part(_ALL, slice(0, 1)).query_keys()

    def _notes_on_words(self) -> Sequence[str]:
        """Compare the words of all rows, of which `part` sees only some, as `as_affinity` does."""
        if self._files[0].query.dtype.kind not in "USO":
            return ()
        query, database = set[str](), set[str]()
        for rows in chunks(0, self.n_database, _PAIRED):
            rule = self.part(_ALL, rows)
            if isinstance(rule, SameLabel):
                query |= {rule.class_names[number] for number in np.unique(rule.query_labels)}
                database |= {rule.class_names[number] for number in np.unique(rule.database_labels)}
        return as_affinity(([*query], [*database])).notes

    def _check_superclasses(self, classes: _LabelFiles, coarse: _LabelFiles) -> None:
        """Refuse a class in several superclasses over all rows, of which `part` sees only some."""
        if len(classes.database) != len(coarse.database):
            raise HashbenchError(
                f"there are classes for {len(classes.database):,} database items and superclasses for "
                f"{len(coarse.database):,}; pass both for each item."
            )
        if any(array.dtype.kind in "USO" for file in (classes, coarse) for array in (file.query, file.database)):
            raise HashbenchError(
                "classes or superclasses in shards are strings, which cannot be compared between shards; number them: "
                "numpy.unique(names, return_inverse=True)[1]."
            )
        pairs = np.empty((0, 2), dtype=np.int64)
        for rows in chunks(0, self.n_database, _PAIRED):
            columns = [class_labels(np.concatenate(file.part(_ALL, rows)), file.specs[1]) for file in (classes, coarse)]
            pairs = np.unique(np.concatenate([pairs, np.stack(columns, axis=1)]), axis=0)
        check_superclasses(*pairs.T)
