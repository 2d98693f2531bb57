"""The contract of a dataset adapter, and the options for preparing a dataset."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset


@dataclass(frozen=True)
class OwnData:
    """Options for a dataset of the user's own data.

    Parameters
    ----------
    name : str
        Name of the dataset.
    items : str
        File or folder, followed by ``:KEY`` if a file holds several arrays.
    labels : str, optional
        File of labels, likewise.
    query_items, query_labels : str, optional
        Files of queries, if these are not to be drawn.
    rule : str, optional
        Affinity rule; by default the one that fits the labels.
    neighbours : int, optional
        Number of nearest database items of each query that are relevant, for the rule ``neighbours``.
    neighbour_ties : str
        Of the items as near as the last neighbour, whether the ``first`` in the database are relevant, or ``all``.
    true_distance : str, optional
        Distance between the features: ``cosine`` or ``dot``, by default ``euclidean``.
    dimensions : int, optional
        Number of the features that methods get, the first ones; neighbours are those by all features.
    n_queries, n_train : int, optional
        Number of items to draw regardless of labels.
    queries_per_label, train_per_label : int, optional
        Number of items to draw for each label.
    train_index : str, optional
        File of the row numbers of the database, from 0, that are for training, if these are not to be drawn.
    seed : int
        Seed of the draw.
    skip_bad_images : bool
        Whether images that cannot be decoded are left out, and counted.
    leave_out : tuple of str
        What is left out once roles are drawn: ``duplicates``, the queries that equal or nearly equal a database or
        training item, and ``zeros``, the items whose features are all zero.

    Examples
    --------
    >>> OwnData("mine", "features.npz:train", labels="labels.npy").seed
    0
    """

    name: str
    items: str
    labels: str | None = None
    query_items: str | None = None
    query_labels: str | None = None
    rule: str | None = None
    neighbours: int | None = None
    neighbour_ties: str = "first"
    true_distance: str | None = None
    dimensions: int | None = None
    n_queries: int | None = None
    n_train: int | None = None
    queries_per_label: int | None = None
    train_per_label: int | None = None
    train_index: str | None = None
    seed: int = 0
    skip_bad_images: bool = False
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """Options for preparing a dataset.

    Parameters
    ----------
    features : str, optional
        One of the adapter's kinds of features; by default the first.
    source : Path, optional
        Folder or file of the raw data; by default they are downloaded, if they may be.
    weights : Path, optional
        Weights of the network that computes features; by default they are downloaded.
    image_size : int, optional
        Width and height that images are resized to before features are computed.
    device : {"auto", "cpu", "cuda"}
        Device on which a network runs.
    own : OwnData, optional
        Options for the user's own data.
    on_progress : callable
        Called with a description, the number of parts done and that of all parts.

    Examples
    --------
    >>> Options(features="gist").device
    'auto'
    """

    features: str | None = None
    source: Path | None = None
    weights: Path | None = None
    image_size: int | None = None
    device: str = "auto"
    own: OwnData | None = None
    on_progress: Progress = field(default=silent, compare=False)


class DatasetAdapter(ABC):
    """Base of all dataset adapters, which prepare one named dataset each.

    Parameters
    ----------
    options : Options, optional
        The user's options.

    Attributes
    ----------
    name : str
        The name users type.
    summary : str
        One line for ``hashbench list datasets``.
    features : tuple of str
        The kinds of features it offers, the default first.
    takes : tuple of str
        The options it uses, of ``source``, ``weights`` and ``image_size``; others are refused.
    needs : str
        Its requirement, such as ``a download of 170 MB``; empty if it needs nothing.

    Examples
    --------
    >>> class Four(DatasetAdapter):
    ...     name, summary = "four", "Four items."
    ...     def prepare(self):
    ...         rows, features = np.arange(4), np.zeros((4, 2), np.float32)
    ...         return Dataset("four", features, rows[:1], rows[1:], rows[1:], "same-label", labels=rows % 2)
    >>> Four().prepare().n_samples
    4
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
        """Build the dataset: the same source gives the same bytes on every machine.

        Returns
        -------
        Dataset
            With ``name`` equal to the adapter's.
        """
