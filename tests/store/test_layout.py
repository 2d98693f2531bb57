"""The page on what lies inside the files, letter by letter, beside files that hashbench writes."""

import hashlib
import json
import re
import shlex

import h5py
import numpy as np
import pytest
from helpers.paths import ROOT
from scipy.sparse import csr_array

from hashbench.store import hdf5
from hashbench.store.hdf5 import read_model

PAGE = (ROOT / "docs" / "files.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def listed(title):
    """What the first columns of the tables below a heading name: the first table, and the second if there is one."""
    part = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE)
    rows = [[line.split("|")[1:-1] for line in table.splitlines()[2:]] for table in tables]
    return [{name: row for row in table for name in re.findall(r"`([^`]+)`", row[0])} for table in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the page's command has run, to work in."""
    from click.testing import CliRunner

    from hashbench.cli.main import cli

    home = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("HASHBENCH_DATA", "data")
        for command in "".join(blocks("sh")).splitlines():
            assert CliRunner().invoke(cli, shlex.split(command)[1:], catch_exceptions=False).exit_code == 0
    return home


@pytest.fixture
def run(folder, monkeypatch):
    """Run a block of Python of the page in that folder; give the names that it leaves."""

    def run(number):
        scope = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            exec(blocks("python")[number], scope)
        return scope

    return run


def test_bits_and_labels_that_the_first_snippet_reads_are_those_of_the_dataset(run, digits, folder):
    scope = run(0)
    assert len(blocks("python")[0].strip().splitlines()[5:]) <= 5
    with hdf5.open_codes(folder / "data/codes/digits/itq-32-s0.h5") as codes:
        packed = np.packbits(scope["bits"], axis=1, bitorder="little")
        assert np.array_equal(packed, codes.database[:])
    assert scope["bits"].shape == (1597, 32)
    assert np.array_equal(scope["labels"], digits.labels[digits.database])


def test_neighbours_that_the_second_snippet_finds_are_the_nearest(run, folder):
    pytest.importorskip("faiss")
    scope = run(1)
    with hdf5.open_codes(folder / "data/codes/digits/itq-32-s0.h5") as codes:
        differ = np.bitwise_count(codes.query[:, None] ^ codes.database[:]).sum(axis=2)  # (n_queries, n_database)
    assert np.array_equal(scope["distances"], np.sort(differ, axis=1)[:, :10])
    assert np.array_equal(np.take_along_axis(differ, scope["rows"], axis=1), scope["distances"])


def test_bits_that_the_third_snippet_computes_from_a_model_are_those_of_the_method(run, digits, folder):
    method = read_model(folder / "data/codes/digits/itq-32-s0.model.h5").method
    assert np.array_equal(run(2)["bits"], method.transform(digits.features))


@pytest.mark.parametrize("path", ["codes/digits/itq-32-s0.h5", "codes/digits/itq-32-s0.model.h5", "datasets/digits.h5"])
def test_the_digest_that_the_page_defines_is_the_one_in_the_file(path, folder):
    words = "SHA-256 of `record` and then the arrays, each after a header `PATH;DTYPE;SHAPE;`, such as"
    assert f"{words} `database;<i8;(1597,);`" in " ".join(PAGE.split())
    with h5py.File(folder / "data" / path) as file:
        digest = hashlib.sha256()
        for name in ["record", *json.loads(file["record"][()])["arrays"]]:
            digest.update(f"{name};{file[name].dtype.str};{file[name].shape};".encode())
            digest.update(file[name][...].tobytes())
        assert digest.hexdigest() == file["content"][()].decode()


def content_of(file):
    """Return the entries of the record of a file, and its other arrays by their path."""
    arrays = {}
    file.visititems(lambda name, stored: arrays.update({name: stored[()]} if hasattr(stored, "dtype") else {}))
    record = json.loads(arrays.pop("record"))
    assert len(arrays.pop("content")) == 64
    assert record["schema_version"] == int(re.search(r"`schema_version` \((\d+)\)", PAGE)[1])
    assert record["arrays"] == sorted(arrays)
    return {*record} - {"hashbench", "schema_version", "arrays"}, arrays


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"labels": np.arange(40) % 4, "coarse_labels": np.arange(40) % 2, "rule": "hierarchy"},
        {"rule": "shared-labels"},
        {"rule": "distance"},
        {"rule": "explicit"},
        {"rule": "explicit", "matrix": csr_array(np.eye(8, 32, dtype=np.int64))},
        {"rule": "neighbours", "neighbours": np.zeros((8, 1), dtype=np.int64)},
        {"images": np.zeros((40, 8, 8, 3), dtype=np.uint8)},
    ],
    ids=lambda changes: "-".join(["dataset", *map(str, changes)]),
)
def test_everything_in_a_dataset_file_is_listed_with_its_dtype(tiny_file, changes):
    paths, entries = listed("A dataset file")
    with h5py.File(tiny_file(**changes)) as file:
        record, arrays = content_of(file)
    of_prepare = {"versions", "stamps", "chosen"}
    assert {*entries} - record - of_prepare == ({"matrix_shape"} if "matrix/data" not in arrays else set())
    assert {"query", "database", "train"} <= {*arrays} <= {*paths}
    for name, array in arrays.items():
        _, shapes, dtypes = paths[name][:3]
        if "matrix/" not in name:
            assert array.dtype.name in dtypes or ("whole numbers" in dtypes and array.dtype.kind in "iu")
            assert array.ndim in {len(shape.strip(", ").split(", ")) for shape in re.findall(r"\(([^)]+)\)", shapes)}


def test_everything_in_the_record_of_a_prepared_dataset_is_listed(folder):
    _, entries = listed("A dataset file")
    with h5py.File(folder / "data/datasets/digits.h5") as file:
        record, _ = content_of(file)
    assert {*entries} - record == {"matrix_shape"}
    assert record <= {*entries}


def test_everything_in_a_codes_file_is_listed(folder, hashbench, monkeypatch):
    paths, entries = listed("A codes file")
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HASHBENCH_DATA", "data")
        command = ("encode", "--method", "hashnet", "--bits", 8, "--param", "epochs=1", "--validation", 0.2)
        with h5py.File(hashbench(*command).stdout.strip()) as file:
            assert content_of(file)[0] == {*entries}
    always = {name for name, cells in entries.items() if "--validation" not in cells[1]}
    with h5py.File(folder / "data/codes/digits/itq-32-s0.h5") as file:
        record, arrays = content_of(file)
    assert record == always
    assert {*arrays} == {*paths}
    assert {array.dtype.name for array in arrays.values()} == {"uint8"}


def test_a_model_holds_what_is_listed(folder):
    (entries,) = listed("A model file")
    with h5py.File(folder / "data/codes/digits/itq-32-s0.model.h5") as file:
        record, arrays = content_of(file)
        made = json.loads(file["record"][()])["made"]
    assert record == {*entries}
    assert all(name.startswith("state/") for name in arrays)
    assert {*made} <= {*listed("A codes file")[1]}
