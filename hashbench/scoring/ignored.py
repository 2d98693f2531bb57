"""Pairs that no ranking has: level -1 of an explicit matrix, or of any rule by options.

With one of the options, queries are the items of the database, by position, and never find themselves.
"""

from collections.abc import Sequence
from typing import Any, cast
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, BoolArray, IntArray, LevelArray, Rows, SliceableCodes
from hashbench._validation import class_pair
from hashbench.affinity import Affinity, Explicit, Hierarchy, SameLabel
from hashbench.errors import HashbenchError

_ALL = slice(None)
_IGNORED = np.int16(-1)
_ROWS = 1 << 20  # of a database whose labels are read at a time
_COMPARED = 1 << 18  # rows of a database, at a time
FINDS_ITSELF = "The queries are the database, so each finds itself. To leave it out: --exclude-self, exclude_self=True."

Pair = tuple[npt.ArrayLike, npt.ArrayLike]


class Reduced(Affinity):
    """Another affinity, ``rest``, some of whose pairs have level -1."""

    ignores = True

    def __init__(self, rest: Affinity) -> None:
        self.rest, self.notes, self.true_distance = rest, rest.notes, rest.true_distance
        self.n_queries, self.n_database = rest.n_queries, rest.n_database
        self.excludes_self, self.is_read_in_slices = rest.excludes_self, rest.is_read_in_slices

    @property
    def plain(self) -> Affinity:
        """The rule itself; see `Affinity.plain`."""
        return self.rest.plain

    @property
    def levels(self) -> AnyArray:
        """Levels of the rest; -1 is none of them."""
        return self.rest.levels

    def query_keys(self) -> IntArray | None:
        """Return the keys of the rest; see `Affinity.query_keys`."""
        return self.rest.query_keys()

    def item_keys(self) -> IntArray:
        """Return the keys of the rest; see `Affinity.item_keys`."""
        return self.rest.item_keys()


class WithoutEqualKeys(Reduced):
    """An affinity that ignores items with the key of the query; with ``in_class``, only those of its class.

    Keys are int64, (n,); those of ``excludes_self`` are the rows.
    """

    def __init__(
        self,
        rest: Affinity,
        query_keys: IntArray,
        database_keys: IntArray,
        *,
        in_class: bool = False,
        excludes_self: bool = False,
    ) -> None:
        super().__init__(rest)
        self.of_queries, self.of_items, self.in_class = query_keys, database_keys, in_class
        self._are_rows, self.excludes_self = excludes_self, excludes_self or rest.excludes_self

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Compute the levels of the rest, and ignore pairs; see `Affinity.block`."""
        levels = self.rest.block(query, database)
        is_ignored = self.of_queries[query][:, None] == self.of_items[database]
        if self.in_class:
            is_ignored &= levels == self.levels[-1]
        return np.where(is_ignored, _IGNORED, levels)

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "WithoutEqualKeys":
        """Select keys; see `Affinity.part`."""
        keys = self.of_queries[query], self.of_items[database]
        rest = self.rest.part(query, database)
        return WithoutEqualKeys(rest, *keys, in_class=self.in_class, excludes_self=self._are_rows)

    def query_keys(self) -> IntArray | None:
        """Return the keys of the rest and these; see `Affinity.query_keys`."""
        keys = super().query_keys()
        return None if keys is None else np.column_stack([keys, self.of_queries])

    def item_keys(self) -> IntArray:
        """Return the keys of the rest and these, unless they are rows; see `Affinity.item_keys`."""
        keys = super().item_keys()
        return keys if self._are_rows else np.column_stack([keys, self.of_items])


class WithoutJunk(Reduced):
    """An affinity that ignores all items of a class, a number or a word."""

    def __init__(self, rest: Affinity, label: int | str) -> None:
        super().__init__(rest)
        self.label = label

    def is_junk(self, database: Rows = _ALL) -> BoolArray:
        """Return which items are of the class."""
        plain: Any = self.plain
        names, number = plain.class_names, self.label
        if names:
            word = normalize("NFC", str(number))
            number = names.index(word) if word in names else -1  # of no class
        return np.asarray(plain.database_labels[database] == number)

    def block(self, query: Rows, database: Rows) -> LevelArray:
        """Compute the levels of the rest, and ignore pairs; see `Affinity.block`."""
        if self.is_read_in_slices:  # whose labels are read with a part
            every = isinstance(database, slice) and database == _ALL
            return self.part(query, slice(0, self.n_database) if every else database).block(_ALL, _ALL)
        return np.where(self.is_junk(database), _IGNORED, self.rest.block(query, database))

    def part(self, query: Rows = _ALL, database: Rows = _ALL) -> "WithoutJunk":
        """Select from the rest; see `Affinity.part`."""
        return WithoutJunk(self.rest.part(query, database), self.label)


def leave_out(
    affinity: Affinity,
    exclude_self: bool = False,
    exclude_same_id: Pair | None = None,
    groups: Pair | None = None,
    junk_label: int | str | Sequence[int | str] | None = None,
) -> Affinity:
    """Return an affinity that ignores what the options of `hashbench.evaluate` say; itself without any."""
    classes: Any = None
    junk: list[Any] = [] if junk_label is None else list(dict.fromkeys(np.ravel(cast("Any", junk_label)).tolist()))
    if groups is not None or junk:
        option = "groups are" if groups is not None else "junk is"
        classes = affinity.part(slice(0, 1), slice(0, 1)).plain
        if not isinstance(classes, SameLabel | Hierarchy):
            raise HashbenchError(
                f"{option} found by class labels, and these do not define what is relevant. Give labels (n,) of "
                "queries and database, or level -1 in an affinity."
            )
    if exclude_self:
        rows = np.arange(affinity.n_queries), np.arange(affinity.n_database)
        affinity = WithoutEqualKeys(affinity, *rows, excludes_self=True)
    if exclude_same_id is not None:
        ids = _keys(exclude_same_id, "ids", affinity)
        if not np.intersect1d(*ids).size:
            raise HashbenchError(
                "no id of the queries is an id of the database, so no item is ignored. Write the same id in the same "
                "way, or leave ids out."
            )
        affinity = WithoutEqualKeys(affinity, *ids)
    if groups is not None:
        affinity = WithoutEqualKeys(affinity, *_keys(groups, "groups", affinity), in_class=True)
    for label in junk:
        affinity = _without_junk(affinity, label, are_words=bool(classes.class_names))
    return affinity


def _keys(pair: Pair, what: str, affinity: Affinity) -> tuple[IntArray, IntArray]:
    """Check ids or groups of queries and database, one per item; return them as numbers."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise HashbenchError(f"{what} must be a pair, (query_{what}, database_{what}), got a {type(pair).__name__}.")
    query, database, _ = class_pair(*pair, what)
    for role, keys, n_items in (("query", query, affinity.n_queries), ("database", database, affinity.n_database)):
        if len(keys) != n_items:
            raise HashbenchError(f"there are {len(keys):,} {role} {what} for {n_items:,} {role} items; give one each.")
    if affinity.excludes_self and not np.array_equal(query, database):
        raise HashbenchError(
            f"excluding self-matches needs the same items as queries and database, but their {what} differ. Give the "
            f"same {what} as both."
        )
    return query, database


def _without_junk(affinity: Affinity, label: int | str, *, are_words: bool) -> Affinity:
    if affinity.excludes_self:
        raise HashbenchError(
            "junk is left out of the database only, and queries that leave themselves out are the database. Remove "
            "junk from your codes and labels instead."
        )
    if not are_words:
        label = _whole(label)
    reduced = WithoutJunk(affinity, label)
    parts = chunks(0, affinity.n_database, _ROWS)
    if not any(reduced.part(slice(0, 1), rows).is_junk().any() for rows in parts):
        raise HashbenchError(f"no database item has the label {label!r} of junk. Give its label, or leave it out.")
    return reduced


def _whole(label: Any) -> int:
    try:
        number = int(label)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not (isinstance(label, str) or number == label):
        raise HashbenchError(f"the label of junk is {label!r}, and labels are whole numbers. Give one of them.")
    return number


def check_left(n_left: IntArray, queries: IntArray) -> None:
    """Refuse queries with these numbers that ignore the whole database; ``n_left`` are their items."""
    empty = queries[n_left == 0]
    if empty.size:
        raise HashbenchError(
            f"query {empty.min():,} (counted from 0) ignores all items of the database, so nothing is left to "
            "rank. Remove the query, or ignore less."
        )


def why_none_left(relevance: Affinity) -> list[str]:
    """Return the likely reason why queries ignore all relevant items, for rankings that have none."""
    part: Any = relevance
    while isinstance(part, WithoutEqualKeys | WithoutJunk):
        if isinstance(part, WithoutEqualKeys) and part.in_class:
            if np.unique(np.concatenate([part.of_queries, part.of_items])).size == 1:
                return [
                    "No relevant item is left, since all queries and items are in one group, such as one camera, and "
                    "queries ignore items of their class and group. Leave groups out."
                ]
            return [
                "No relevant item is left, since queries ignore items of their class and group, and all relevant ones "
                "are in theirs. Check that groups, such as cameras, differ within a class."
            ]
        part = part.rest
    return []


def notes_on_ignored(relevance: Affinity, n_left: IntArray, *, has_relevant: bool) -> list[str]:
    """Return a sentence on how many pairs are ignored, unless each query ignores only itself; and on why none is left.

    ``n_left`` are the items that each query ranks; ``has_relevant`` says whether a relevant one is among them.
    """
    n_ignored = relevance.n_database - n_left
    if not relevance.ignores or (relevance.excludes_self and (n_ignored == 1).all()):
        return []
    n_pairs = len(n_left) * relevance.n_database
    least, most = n_ignored.min(), n_ignored.max()
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    pairs = (
        f"{n_ignored.sum():,} of {n_pairs:,} pairs of a query and a database item are ignored, {each} of each query."
    )
    return [pairs, *([] if has_relevant else why_none_left(relevance))]


def check_self(query: AnyArray, database: SliceableCodes, relevance: Affinity) -> list[str]:
    """Return a note if queries find themselves; where they must not, refuse those that are not the database."""
    is_database = query.shape == tuple(database.shape) and all(
        np.array_equal(query[rows], database[rows]) for rows in chunks(0, len(query), _COMPARED)
    )
    if not relevance.excludes_self:
        first = slice(0, 1)
        is_ignored = relevance.ignores and relevance.part(first, first).block(first, first)[0, 0] < 0
        return [FINDS_ITSELF] * (is_database and not is_ignored)
    if not is_database:
        raise HashbenchError(
            f"excluding self-matches needs the same items as queries and database, in the same order, but the "
            f"{len(query):,} queries and {database.shape[0]:,} database items differ. Give the same codes as both."
        )
    if len(query) < 2:
        raise HashbenchError("there is one item, and without itself nothing is left to rank; give more.")
    for rows in chunks(0, len(query), _COMPARED):
        part = relevance.part(rows, rows).plain
        for kind in ("labels", "features"):
            of_query, of_database = (getattr(part, f"{role}_{kind}", ()) for role in ("query", "database"))
            if not np.array_equal(of_query, of_database):
                raise HashbenchError(
                    f"excluding self-matches needs the same items as queries and database, but their {kind} differ. "
                    f"Give the same {kind} as both."
                )
    return []


def check_symmetry(relevance: Affinity) -> None:
    """Refuse a matrix in which an item is relevant to another, or ignored, and not the other way round."""
    plain = relevance.plain
    if not isinstance(plain, Explicit):
        return
    for holds in (plain.matrix > 0, plain.matrix < 0):
        differing = holds != holds.T
        if differing.nnz if plain.is_sparse else differing.any():
            raise not_symmetric()


def not_symmetric() -> HashbenchError:
    """Return the error for relevance that holds one way only."""
    return HashbenchError(
        "relevance is not symmetric, but without the queries themselves two items are one pair. Give both the same "
        "labels, or pass a symmetric matrix."
    )
