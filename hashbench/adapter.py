"""The contract of a dataset adapter, what users can choose about a dataset, and how splits are drawn."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from hashbench._typing import IntArray
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError

Progress = Callable[[str, int, int], None]


def _silent(what: str, n_done: int, n_all: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Own:
    """What users say about a dataset of their own.

    Parameters
    ----------
    name : str
        What to call it.
    items : str
        File or folder, with ``:KEY`` after it where a file holds several arrays.
    labels : str, optional
        File of labels, likewise.
    query_items, query_labels : str, optional
        Files of queries, if these are not to be drawn.
    rule : str, optional
        Affinity rule; by default what fits the labels.
    n_queries, n_train : int, optional
        How many to draw regardless of labels.
    queries_per_label, train_per_label : int, optional
        How many to draw for each label.
    seed : int
        Of the drawing.
    """

    name: str
    items: str
    labels: str | None = None
    query_items: str | None = None
    query_labels: str | None = None
    rule: str | None = None
    n_queries: int | None = None
    n_train: int | None = None
    queries_per_label: int | None = None
    train_per_label: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Options:
    """What users choose when a dataset is prepared.

    Parameters
    ----------
    features : str, optional
        Which of the adapter's kinds of features; by default its first.
    source : Path, optional
        Where the raw data lie; by default they are downloaded, if they may be.
    weights : Path, optional
        Weights of the network that computes features; by default they are downloaded.
    image_size : int, optional
        Width and height that images are resized to before features are computed.
    device : {"auto", "cpu", "cuda"}
        Where a network runs.
    own : Own, optional
        For datasets made of the user's own files.
    on_progress : callable
        Called with what is being done, parts done and all parts.
    """

    features: str | None = None
    source: Path | None = None
    weights: Path | None = None
    image_size: int | None = None
    device: str = "auto"
    own: Own | None = None
    on_progress: Progress = field(default=_silent, compare=False)

    def on_download(self, name: str) -> Callable[[int, int], None] | None:
        """Give what a download reports to.

        Parameters
        ----------
        name : str
            The file that is downloaded.

        Returns
        -------
        callable or None
            Takes bytes done and all bytes; None, for a bar of its own, if nobody listens here.
        """
        if self.on_progress is _silent:
            return None

        def tell(n_done: int, n_all: int) -> None:
            if n_all:  # unknown to some servers
                self.on_progress(f"bytes of {name}", n_done, n_all)

        return tell


class DatasetAdapter(ABC):
    """Makes one named dataset. A file in ``datasets/`` holds one or a few adapters.

    Parameters
    ----------
    options : Options, optional
        What the user chose.

    Attributes
    ----------
    name : str
        The name users type.
    summary : str
        One line for ``hashbench list datasets``.
    features : tuple of str
        The kinds of features it can give, the default first.
    takes : tuple of str
        The options it can use, of ``source``, ``weights`` and ``image_size``; others are refused.
    needs : str
        What it cannot do without, such as ``a download of 170 MB``; empty if it needs nothing.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    features: ClassVar[tuple[str, ...]] = ("features",)
    takes: ClassVar[tuple[str, ...]] = ("source", "weights", "image_size")
    needs: ClassVar[str] = ""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()

    @property
    def kind(self) -> str:
        """The kind of features asked for."""
        return self.options.features or self.features[0]

    @abstractmethod
    def prepare(self) -> Dataset:
        """Make the dataset: from the same source the same bytes on every machine.

        Returns
        -------
        Dataset
            With ``name`` equal to the adapter's.
        """


def draw_split(
    labels: IntArray, queries_per_class: int, train_per_class: int, random_state: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw a class-balanced split: queries first, then training items out of the rest.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), int64
        One class an item.
    queries_per_class, train_per_class : int
        How many of each class.
    random_state : int
        Seed of the drawing.

    Returns
    -------
    query, database, train : ndarray of int64
        Ascending row numbers; the database is all but the queries.

    Raises
    ------
    HashbenchError
        If a class has too few items.
    """
    rng = np.random.default_rng(random_state)
    query, train = [], []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) < queries_per_class + train_per_class:
            raise HashbenchError(
                f"class {label} has {len(members)} items, but {queries_per_class} queries and "
                f"{train_per_class} training items are to be drawn from each class."
            )
        rng.shuffle(members)
        query.append(members[:queries_per_class])
        train.append(members[queries_per_class : queries_per_class + train_per_class])
    chosen = np.sort(np.concatenate(query))
    database = np.setdiff1d(np.arange(len(labels)), chosen)
    return chosen, database, np.sort(np.concatenate(train))


def draw_by_label(
    labels: np.ndarray[tuple[int, int], np.dtype[np.uint8]], n_queries: int, n_train: int, random_state: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw a split of multi-label items: so many of each label, the rarest label first.

    Parameters
    ----------
    labels : ndarray of shape (n_samples, n_classes), uint8
        Multi-hot.
    n_queries, n_train : int
        How many to draw for each label, among items not drawn before.
    random_state : int
        Seed of the drawing.

    Returns
    -------
    query, database, train : ndarray of int64
        Ascending row numbers, ``n_queries`` and ``n_train`` times the number of labels; the database is
        all but the queries.

    Raises
    ------
    HashbenchError
        If a label has too few items left.
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
    """Draw a split regardless of labels.

    Parameters
    ----------
    n_samples : int
        How many items there are.
    n_queries : int
        How many queries to draw.
    n_train : int or None
        How many training items to draw out of the rest; None for all of it.
    random_state : int
        Seed of the drawing.

    Returns
    -------
    query, database, train : ndarray of int64
        Ascending row numbers; the database is all but the queries.

    Raises
    ------
    HashbenchError
        If there are too few items.
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
