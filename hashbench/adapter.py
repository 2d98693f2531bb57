"""The contract of a dataset adapter, and what users can choose about a dataset."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from hashbench._typing import Progress, silent
from hashbench.dataset import Dataset


@dataclass(frozen=True)
class OwnData:
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
    neighbours : int, optional
        How many nearest database items of each query are relevant, for the rule ``neighbours``.
    true_distance : str, optional
        By which distance the features are meant to be compared: ``cosine`` or ``dot``, by default ``euclidean``.
    n_queries, n_train : int, optional
        How many to draw regardless of labels.
    queries_per_label, train_per_label : int, optional
        How many to draw for each label.
    train_index : str, optional
        File of the row numbers of the database, the first 0, that are for training, if these are not to be drawn.
    seed : int
        Of the drawing.
    skip_bad_images : bool
        Whether images that cannot be decoded are left out, and counted.
    """

    name: str
    items: str
    labels: str | None = None
    query_items: str | None = None
    query_labels: str | None = None
    rule: str | None = None
    neighbours: int | None = None
    true_distance: str | None = None
    n_queries: int | None = None
    n_train: int | None = None
    queries_per_label: int | None = None
    train_per_label: int | None = None
    train_index: str | None = None
    seed: int = 0
    skip_bad_images: bool = False


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
    own : OwnData, optional
        For datasets made of the user's own files.
    on_progress : callable
        Called with what is being done, parts done and all parts.
    """

    features: str | None = None
    source: Path | None = None
    weights: Path | None = None
    image_size: int | None = None
    device: str = "auto"
    own: OwnData | None = None
    on_progress: Progress = field(default=silent, compare=False)


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
