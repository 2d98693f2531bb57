"""Base of datasets from papers: where their raw files lie, and what is known about them."""

from pathlib import Path
from typing import Any, ClassVar

from hashbench._typing import IntArray
from hashbench.adapter import DatasetAdapter
from hashbench.dataset import Dataset
from hashbench.store.files import data_dir


class PublishedDataset(DatasetAdapter):
    """A dataset whose source, licence, citation and protocol are attributes of its class."""

    folder_name: ClassVar[str] = ""  # of the raw files; by default the dataset's name
    rule: ClassVar[str] = "shared-labels"
    protocol: ClassVar[str]
    origin: ClassVar[str] = ""  # empty if it depends on the files
    licence: ClassVar[str] = "none stated by the authors"
    citation: ClassVar[str]

    @property
    def folder(self) -> Path:
        """The folder of the raw files: the user's choice, or one in the data folder."""
        return self.options.source or data_dir() / "sources" / (self.folder_name or self.name)

    def dataset(self, split: tuple[IntArray, ...], about: dict[str, str] | None = None, **fields: Any) -> Dataset:
        """Return a dataset of query, database and training rows; ``about`` and ``fields`` add to what is known."""
        known = {
            "summary": self.summary,
            "protocol": self.protocol,
            "source": self.origin,
            "licence": self.licence,
            "citation": self.citation,
        }
        query, database, train = split
        defaults = {
            "name": self.name,
            "rule": self.rule,
            "features_name": self.kind,
            "about": {**known, **(about or {})},
        }
        return Dataset(query=query, database=database, train=train, **{**defaults, **fields})
