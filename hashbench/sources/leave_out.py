"""Datasets without some classes in training."""

from dataclasses import replace

import numpy as np

from hashbench._typing import IntArray
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.unseen import UnseenClasses

_RULES = ("same-label", "hierarchy")
_SEED = 0
_CITATION = "A. Sablayrolles, M. Douze, N. Usunier, H. Jégou, How Should We Evaluate Supervised Hashing?, ICASSP 2017"


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
