"""Base of datasets from papers: the place of their raw files, and facts about them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench._typing import IntArray
from hashbench.adapter import DatasetAdapter
from hashbench.dataset import Dataset
from hashbench.store.files import data_dir

if TYPE_CHECKING:
    from hashbench.sources.features.extraction import Extracted


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

    def dataset(
        self,
        split: tuple[IntArray, ...],
        extracted: "Extracted | None" = None,
        about: Mapping[str, str] = MappingProxyType({}),
        **fields: Any,
    ) -> Dataset:
        """Return a dataset of query, database and training rows; ``about`` and ``fields`` override attributes."""
        attributes = {
            "summary": self.summary,
            "protocol": self.protocol,
            "source": self.origin,
            "licence": self.licence,
            "citation": self.citation,
        }
        features_name = self.kind
        if extracted is not None:
            attributes |= extracted.about
            fields = {"features": extracted.features, "images": extracted.images} | fields
            features_name += extracted.remark
        fields = {"name": self.name, "rule": self.rule, "features_name": features_name} | fields
        query, database, train = split
        return Dataset(query=query, database=database, train=train, about={**attributes, **about}, **fields)
