"""How splits are drawn: queries, the database without them, and training items out of it."""

import numpy as np

from hashbench._typing import ByteArray, IntArray
from hashbench.errors import HashbenchError


def draw_split(
    labels: IntArray, queries_per_class: int, train_per_class: int, random_state: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw a class-balanced split: queries first, then training items out of the rest.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), int64
        The class of each item.
    queries_per_class, train_per_class : int
        Numbers of items to draw from each class.
    random_state : int
        Seed of the draw.

    Returns
    -------
    query, database, train : ndarray of int64
        Ascending row numbers; the database is all but the queries.

    Raises
    ------
    HashbenchError
        If a class has too few items.

    Examples
    --------
    >>> draw_split(np.array([0, 0, 0, 1, 1, 1]), queries_per_class=1, train_per_class=1, random_state=0)
    (array([2, 5]), array([0, 1, 3, 4]), array([0, 4]))
    """
    rng = np.random.default_rng(random_state)
    query, train = [], []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) < queries_per_class + train_per_class:
            raise HashbenchError(
                f"class {label} has {len(members)} items, but {queries_per_class} queries and "
                f"{train_per_class} training items are to be drawn from each class. Draw fewer."
            )
        rng.shuffle(members)
        query.append(members[:queries_per_class])
        train.append(members[queries_per_class : queries_per_class + train_per_class])
    chosen = np.sort(np.concatenate(query))
    database = np.setdiff1d(np.arange(len(labels)), chosen)
    return chosen, database, np.sort(np.concatenate(train))


def draw_by_label(
    labels: ByteArray, n_queries: int, n_train: int, random_state: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw a split of multi-label items, the same number for each label, the rarest label first; see `draw_split`.

    Parameters
    ----------
    labels : ndarray of shape (n_samples, n_classes), uint8
        Multi-hot.
    n_queries, n_train : int
        Numbers of items to draw for each label, among items not drawn before.
    random_state : int
        Seed of the draw.

    Returns
    -------
    query, database, train : ndarray of int64
        Ascending row numbers, ``n_queries`` and ``n_train`` times the number of labels.

    Examples
    --------
    >>> draw_by_label(np.array([[1, 0], [1, 0], [0, 1], [1, 1]]), n_queries=1, n_train=1, random_state=0)
    (array([1, 3]), array([0, 2]), array([0, 2]))
    """
    rng = np.random.default_rng(random_state)
    free = np.ones(len(labels), dtype=bool)
    drawn: dict[str, list[IntArray]] = {"queries": [], "training items": []}
    for role, n_wanted in (("queries", n_queries), ("training items", n_train)):
        for label in np.argsort(labels.sum(axis=0, dtype=np.int64), kind="stable"):
            members = np.flatnonzero(free & (labels[:, label] > 0))
            if len(members) < n_wanted:
                raise HashbenchError(
                    f"label {label} has {len(members)} items not drawn before, but {n_wanted} {role} are to be "
                    "drawn of each label. Draw fewer, or leave rare labels out."
                )
            chosen = rng.choice(members, n_wanted, replace=False)
            free[chosen] = False
            drawn[role].append(chosen)
    query, train = (np.sort(np.concatenate(parts)) for parts in drawn.values())
    return query, np.setdiff1d(np.arange(len(labels)), query), train


def draw_any(n_samples: int, n_queries: int, n_train: int | None, random_state: int) -> tuple[IntArray, ...]:
    """Draw a split regardless of labels; see `draw_split`.

    Parameters
    ----------
    n_samples, n_queries : int
        Numbers of items, and of queries to draw.
    n_train : int or None
        Number of training items to draw from the rest; None for all of it.
    random_state : int
        Seed of the draw.

    Returns
    -------
    query, database, train : ndarray of int64
        Ascending row numbers.

    Examples
    --------
    >>> draw_any(5, n_queries=2, n_train=2, random_state=0)
    (array([2, 4]), array([0, 1, 3]), array([0, 3]))
    """
    n_database = n_samples - n_queries
    if n_queries < 1 or n_database < max(n_train or 1, 1):
        raise HashbenchError(
            f"of {n_samples} items, {n_queries} queries and {n_train or 1} training items outside them are to be "
            "drawn; both need at least one, and together no more than there are."
        )
    order = np.random.default_rng(random_state).permutation(n_samples)
    query, rest = np.sort(order[:n_queries]), order[n_queries:]
    return query, np.sort(rest), np.sort(rest[:n_train])
