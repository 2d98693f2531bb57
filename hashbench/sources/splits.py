"""How splits are drawn: queries, the database without them, training items, and classes left out of training."""

from dataclasses import replace

import numpy as np

from hashbench._typing import ByteArray, IntArray
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.unseen import UnseenClasses

_RULES = ("same-label", "hierarchy")
_SEED = 0
_CITATION = "A. Sablayrolles, M. Douze, N. Usunier, H. Jégou, How Should We Evaluate Supervised Hashing?, ICASSP 2017"


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


def leave_out(dataset: Dataset, protocol: UnseenClasses) -> Dataset:
    """Restrict the roles of a single-label dataset to the classes of a protocol; drop items without a role.

    The new dataset has its own name. Only the same class is relevant, since training sees others of its superclass.
    Arrays that lose no item are not copied.
    """
    name, labels = protocol.name_of(dataset.name), dataset.labels
    if labels is None or not dataset.is_single_label or dataset.rule not in _RULES:
        form = "no labels" if labels is None else f"{'one label' if labels.ndim == 1 else 'several labels'} per item"
        raise HashbenchError(
            f"{name} needs one label per item and the rule {' or '.join(_RULES)}, but {dataset.name} has {form} "
            f"and the rule {dataset.rule}; choose another dataset."
        )
    classes = np.unique(labels[np.concatenate([dataset.query, dataset.database, dataset.train])])
    if protocol.n_classes == 1 and protocol.database == "unseen":
        raise HashbenchError(
            f"{name} has only one class in its database, so every item is relevant to every query; choose 2 classes or "
            "more, or --unseen-database all."
        )
    unseen = _draw(classes, protocol, dataset.name)
    is_unseen = np.isin(labels, unseen)
    is_wanted = {"train": ~is_unseen}
    for role, which in (("query", protocol.queries), ("database", protocol.database)):
        is_wanted[role] = is_unseen if which == "unseen" else np.ones_like(is_unseen)
    roles = {role: getattr(dataset, role)[wanted[getattr(dataset, role)]] for role, wanted in is_wanted.items()}
    for role, rows in roles.items():
        if not rows.size:
            raise HashbenchError(f"{name} has no {role} items, since {dataset.name} has none of those classes.")
    items = np.unique(np.concatenate([*roles.values()]))
    arrays = {key: getattr(dataset, key) for key in ("features", "labels", "images")}
    if len(items) < dataset.n_samples:
        arrays = {key: None if array is None else array[items] for key, array in arrays.items()}
    return replace(
        dataset,
        name=name,
        rule="same-label",
        coarse_labels=None,
        part_of=dataset.fingerprint,
        **arrays,
        **{role: np.searchsorted(items, rows) for role, rows in roles.items()},
        about={**dataset.about, **_about(dataset, protocol, unseen, len(classes))},
    )


def _draw(classes: IntArray, protocol: UnseenClasses, name: str) -> IntArray:
    """Draw the unseen classes from an order of all classes that is the same for every fold."""
    n_unseen, fold = protocol.n_classes, protocol.fold
    if n_unseen < 1 or len(classes) - n_unseen < 2:
        raise HashbenchError(
            f"{n_unseen} of the {len(classes)} classes of {name} cannot be unseen; choose 1 to {len(classes) - 2}."
        )
    n_folds = len(classes) // n_unseen
    if fold >= n_folds:
        raise HashbenchError(
            f"the {len(classes)} classes of {name} give {n_folds} folds of {n_unseen} unseen classes, got fold {fold}; "
            f"choose 0 to {n_folds - 1}."
        )
    order = np.random.default_rng(_SEED).permutation(classes)
    return np.sort(order[fold * n_unseen :][:n_unseen])


def _about(dataset: Dataset, protocol: UnseenClasses, unseen: IntArray, n_classes: int) -> dict[str, str]:
    summary, split, citation = (dataset.about.get(key, "") for key in ("summary", "protocol", "citation"))
    return {
        "summary": f"{summary or dataset.name}; {protocol.in_words}",
        "protocol": f"unseen classes: training sees {n_classes - len(unseen)} of {n_classes} classes, not "
        f"{', '.join(map(str, unseen))} (in the order of their names; fold {protocol.fold} of {len(unseen)} classes "
        f"each, in an order drawn with seed {_SEED}); queries are of {protocol.queries} classes, the database is of "
        f"{protocol.database} classes"
        + "; relevant is the same class, not the same superclass" * (dataset.rule == "hierarchy")
        + f"; out of: {split}" * bool(split),
        "citation": "; ".join(filter(None, (citation, f"protocol: {_CITATION}"))),
    }
