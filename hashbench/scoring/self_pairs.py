"""Leave one out: queries that are the items of the database, by position, and never find themselves."""

from dataclasses import replace

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, IntArray, LevelArray
from hashbench.affinity import Affinity, Explicit
from hashbench.errors import HashbenchError
from hashbench.scoring.counting import SliceableCodes
from hashbench.scoring.histogram import TieHistogram

_BLOCK = 256  # queries whose levels with each other are computed together
_ROWS = 1 << 18  # of a database compared at a time


FINDS_ITSELF = "The queries are the database, so each finds itself. To leave it out: --exclude-self, exclude_self=True."


def check_self(query: AnyArray, database: SliceableCodes, *, is_excluded: bool) -> list[str]:
    """Return a note if queries find themselves; where they must not, refuse those that are not the database."""
    is_database = query.shape == tuple(database.shape) and all(
        np.array_equal(query[rows], database[rows]) for rows in chunks(0, len(query), _ROWS)
    )
    if not is_excluded:
        return [FINDS_ITSELF] * is_database
    if not is_database:
        raise HashbenchError(
            f"excluding self-matches needs the same items as queries and database, in the same order, but the "
            f"{len(query):,} queries and {database.shape[0]:,} database items differ. Give the same codes as both."
        )
    if len(query) < 2:
        raise HashbenchError("there is one item, and without itself nothing is left to rank; give more.")
    return []


def own_levels(affinity: Affinity) -> IntArray:
    """Return the index of the level of each query with itself, (n_queries,)."""
    return np.searchsorted(affinity.levels, level_values(affinity))


def check_labels(affinity: Affinity) -> None:
    """Refuse queries that are the items of the database with two labels, or features, of an item."""
    for kind in ("labels", "features"):
        of_query, of_database = (getattr(affinity, f"{role}_{kind}", ()) for role in ("query", "database"))
        if not np.array_equal(of_query, of_database):
            raise HashbenchError(
                f"excluding self-matches needs the same items as queries and database, but their {kind} differ. Give "
                f"the same {kind} as both."
            )


def check_symmetry(relevance: object) -> None:
    """Refuse a matrix in which an item is relevant to another and not the other way round."""
    if not isinstance(relevance, Explicit):
        return
    is_relevant = relevance.matrix > 0
    differing = is_relevant != is_relevant.T
    if differing.nnz if relevance.is_sparse else differing.any():
        raise not_symmetric()


def not_symmetric() -> HashbenchError:
    """Return the error for relevance that holds one way only."""
    return HashbenchError(
        "relevance is not symmetric, but without the queries themselves two items are one pair. Give both the same "
        "labels, or pass a symmetric matrix."
    )


def level_values(affinity: Affinity) -> LevelArray:
    """Return the level of each query with itself, (n_queries,)."""
    check_labels(affinity)
    parts = chunks(0, affinity.n_queries, _BLOCK)
    return np.concatenate([np.diagonal(affinity.block(part, part)) for part in parts])


def without_self(histogram: TieHistogram, own: IntArray) -> TieHistogram:
    """Take each query out of its own ranking, where it is in the first group, at this index of its levels."""
    counts = histogram.counts.copy()
    counts[np.arange(len(counts)), own, 0] -= 1
    largest = None if histogram.largest_bucket is None else histogram.largest_bucket.copy()
    if largest is not None:
        largest[:, 0] -= 1
    return replace(histogram, counts=counts, largest_bucket=largest)
