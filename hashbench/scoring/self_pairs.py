"""Leave one out: queries that are the items of the database, by position, and never find themselves."""

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray
from hashbench.affinity import Affinity, Explicit
from hashbench.errors import HashbenchError
from hashbench.scoring.counting import SliceableCodes

_ROWS = 1 << 18  # of a database compared at a time


FINDS_ITSELF = "The queries are the database, so each finds itself. To leave it out: --exclude-self, exclude_self=True."


def check_self(query: AnyArray, database: SliceableCodes, relevance: Affinity) -> list[str]:
    """Return a note if queries find themselves; where they must not, refuse those that are not the database."""
    is_database = query.shape == tuple(database.shape) and all(
        np.array_equal(query[rows], database[rows]) for rows in chunks(0, len(query), _ROWS)
    )
    if not relevance.excludes_self:
        return [FINDS_ITSELF] * (is_database and not (relevance.ignores and _ignores_itself(relevance)))
    if not is_database:
        raise HashbenchError(
            f"excluding self-matches needs the same items as queries and database, in the same order, but the "
            f"{len(query):,} queries and {database.shape[0]:,} database items differ. Give the same codes as both."
        )
    if len(query) < 2:
        raise HashbenchError("there is one item, and without itself nothing is left to rank; give more.")
    for rows in chunks(0, len(query), _ROWS):
        _check_labels(relevance.part(rows, rows).plain)
    return []


def _ignores_itself(relevance: Affinity) -> bool:
    """Return whether the first query ignores the first item."""
    first = slice(0, 1)
    return bool(relevance.part(first, first).block(first, first)[0, 0] < 0)


def _check_labels(affinity: Affinity) -> None:
    """Refuse queries that are the items of the database with two labels, or features, of an item."""
    for kind in ("labels", "features"):
        of_query, of_database = (getattr(affinity, f"{role}_{kind}", ()) for role in ("query", "database"))
        if not np.array_equal(of_query, of_database):
            raise HashbenchError(
                f"excluding self-matches needs the same items as queries and database, but their {kind} differ. Give "
                f"the same {kind} as both."
            )


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
