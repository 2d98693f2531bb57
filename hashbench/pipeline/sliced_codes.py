"""Databases that are read in slices: codes and labels in files that need not fit into memory together."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, IntArray, LevelArray, Rows
from hashbench._validation import check_superclasses, class_labels, largest_row_sum
from hashbench.affinity import Affinity, Hierarchy, SameLabel, SharedLabels, as_affinity, by_labels
from hashbench.bits import as_packed, n_bytes
from hashbench.errors import HashbenchError
from hashbench.sources.array_files import ShardedArray, read_array, read_in_slices

_ALL = slice(None)
_PAIRED = 1 << 20  # labels to read at a time
Comparable = Callable[[Sequence[AnyArray], Sequence[str], tuple[int, int]], list[AnyArray]]


class PackedSlices:
    """Codes in any form that `as_packed` takes, packed when they are read."""

    def __init__(self, stored: ShardedArray, width: int, n_bits: int | None, *form: str | None) -> None:
        self._stored, self._width, self._n_bits, self._form = stored, width, n_bits, form
        self.shape = len(stored), n_bytes(width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> ByteArray:
        name = f"database codes from row {rows.start or 0:,} on"
        packed, width = as_packed(self._stored[rows], self._n_bits, name, *self._form)
        if width != self._width:
            raise HashbenchError(f"{name} have {width} bits, and those before {self._width}; all need the same length.")
        return packed


class LabelFiles:
    """Labels of queries, and those of the database in slices, in files given by ``specs``."""

    def __init__(self, specs: Sequence[str], keys: tuple[str, ...], comparable: Comparable) -> None:
        self.specs, self._comparable = specs, comparable
        self.query, self.database = read_array(specs[0], keys), read_in_slices(specs[1], keys)

    def part(self, query: Rows, database: Rows) -> list[AnyArray]:
        """Read labels of some queries and rows, in the form that an affinity takes."""
        items = self.database[database] if isinstance(database, slice) else self._rows(database)
        labels = [self.query[query], items]
        return self._comparable(labels, self.specs, (len(labels[0]), len(labels[1])))

    def _rows(self, rows: IntArray) -> AnyArray:
        """Read rows in any order, each slice that holds some of them once."""
        found = np.empty((len(rows), *self.database.shape[1:]), self.database.dtype)
        for part in chunks(0, len(self.database), _PAIRED):
            is_here = (rows >= part.start) & (rows < part.stop)
            if is_here.any():
                found[is_here] = self.database[part][rows[is_here] - part.start]
        return found


class SlicedLabels(Affinity):
    """Classes, perhaps with superclasses, or multi-hot labels, read and compared some rows at a time."""

    is_read_in_slices = True

    def __init__(self, files: Sequence[LabelFiles]) -> None:
        self._files = files
        self.n_queries, self.n_database = len(files[0].query), len(files[0].database)
        self.query_rows = np.arange(self.n_queries)
        self._names = np.empty(0, dtype=object)  # distinct words, if classes are words
        if len(files) > 1:
            self._check_superclasses(*files)
        self.notes = self._notes_on_words()

    @cached_property
    def _most(self) -> int:
        """The largest number of labels of an item, which multi-hot labels have to be read for."""
        parts: Any = (self.part(slice(0, 1), rows) for rows in chunks(0, self.n_database, _PAIRED))
        return max(largest_row_sum(part.database_labels) for part in parts)

    @property
    def levels(self) -> IntArray:
        """Those of all rows."""
        first = self.part(_ALL, slice(0, 1))
        if not isinstance(first, SharedLabels):
            return np.asarray(first.levels)
        return np.arange(max(min(largest_row_sum(first.query_labels), self._most), 1) + 1)

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Read and compare labels; see `Affinity.block`."""
        is_whole = isinstance(database, slice) and database == _ALL
        return self.part(query, slice(0, self.n_database) if is_whole else database).block(_ALL, _ALL)

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> Affinity:
        """Select queries, and read labels unless all rows of the database stay; see `Affinity.part`."""
        queries = self.query_rows[query]
        if isinstance(database, slice) and database == _ALL:
            selected = copy(self)
            selected.query_rows, selected.n_queries = queries, len(queries)
            return selected
        parts = [file.part(queries, database) for file in self._files]
        rule = Hierarchy(*parts[0], *parts[1]) if len(parts) > 1 else by_labels(*parts[0])
        if isinstance(rule, SameLabel) and len(self._names):  # words have one number in all parts
            number = np.searchsorted(self._names, rule.class_names)
            rule.query_labels, rule.database_labels = number[rule.query_labels], number[rule.database_labels]
            rule.class_names = self._names.tolist()
        return rule

    def query_keys(self) -> IntArray | None:
        """Return the labels of each query; see `Affinity.query_keys`."""
        return self.part(_ALL, slice(0, 1)).query_keys()

    def item_keys(self) -> IntArray:
        """Return the labels of each item; see `Affinity.item_keys`."""
        parts = chunks(0, self.n_database, _PAIRED)
        return np.concatenate([self.part(slice(0, 1), rows).item_keys() for rows in parts])

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
        self._names = np.array(sorted(query | database), dtype=object)
        return as_affinity(([*query], [*database])).notes

    def _check_superclasses(self, classes: LabelFiles, coarse: LabelFiles) -> None:
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
