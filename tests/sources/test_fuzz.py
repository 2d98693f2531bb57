"""Files of every format that hashbench reads, damaged at random: an error in a sentence, or the original numbers."""

import json
import resource
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import thoroughness
from helpers.diff_rows import write
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench.affinity import Explicit
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.sources.array_files import read_array, read_items, read_matrix
from hashbench.store import artifact, hdf5, inputs
from hashbench.store.provenance import Provenance
from hashbench.store.result_rows import Row
from hashbench.store.results import read_file, unite

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4)).astype(np.float32)
Y = np.arange(30) % 3
LEVELS = sp.csr_array(RNG.integers(0, 3, (6, 20)))
MADE = Provenance("tiny", "x", "lsh", "{}", 12, 0, "0123456789abcdef", 1)
NUMBERS = "0.500000", "0.010000", "0.400000", "0.600000"
ROW = Row("tiny", "x", "lsh", "{}", 12, 0, "AP", *NUMBERS, 8, 0, "0123456789abcdef", 1)
MOST_BYTES = 200 << 20


def table(path):
    pd.DataFrame(X, columns=list("abcd")).assign(label=Y).to_csv(path, index=False)


def parquet(path):
    pd.DataFrame(X, columns=list("abcd")).assign(label=Y).to_parquet(path)


def arrow(path):
    pd.DataFrame(X, columns=list("abcd")).assign(label=Y).to_feather(path)


def safetensors(path):
    pytest.importorskip("safetensors.numpy").save_file({"features": X, "labels": Y}, path)


def vectors(path):
    path.write_bytes(b"".join(np.array([4], "<i4").tobytes() + row.tobytes() for row in X))


def big_ann(path):
    path.write_bytes(np.array(X.shape, "<u4").tobytes() + X.tobytes())


def plain_hdf5(path, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("features", data=X, **options)
        file.create_dataset("labels", data=Y, **options)


def hdf5_with_texts(path):
    plain_hdf5(path)
    with h5py.File(path, "a") as file:
        file.attrs.update({"schema_version": 1, "hashbench": "codes", **{f"text {n}": "x" * n for n in range(1, 9)}})


def dataset(path):
    roles = {"query": np.arange(6), "database": np.arange(6, 30), "train": np.arange(6, 20)}
    hdf5.write_dataset(Dataset("tiny", X, rule="same-label", labels=Y, **roles), path)


def explicit_dataset(path):
    roles = {"query": np.arange(6), "database": np.arange(6, 26), "train": np.arange(6, 20)}
    hdf5.write_dataset(Dataset("tiny", X, rule="explicit", matrix=LEVELS, **roles), path)


def codes(path):
    packed = RNG.integers(0, 16, (30, 2)).astype(np.uint8)
    hdf5.write_codes(hdf5.Codes(packed[:6], packed[6:], MADE, 1.0, 2.0), path)


def scores(path):
    artifact.write(path, "scores", {"code": "feed"}, {"AP": RNG.random((3, 8)), "P@10": RNG.random((3, 8))})


def results(path):
    rows = [ROW._replace(seed=seed, value=f"0.4{seed}0000") for seed in range(4)]
    write(path, *rows)


def read_codes(path):
    with hdf5.open_codes(path) as codes_file:
        return [codes_file.query, codes_file.database[:]]


def read_dataset(path):
    stored = hdf5.read_dataset(path)
    levels = stored.matrix.toarray() if sp.issparse(stored.matrix) else stored.labels
    return [stored.features, stored.query, stored.database, stored.train, levels]


def read_scores(path):
    return artifact.read(path, "scores", lambda found: [found.array(name) for name in ("AP", "P@10")])


def read_own(path):
    items = read_items(str(path))
    return [items.features] if items.labels is None else [items.features, items.labels]


def read_foreign(path):
    artifact.read_record(path)
    return read_own(path)


def read_chosen(path):
    return [read_array(f"{path}:features", ()), read_array(f"{path}:labels", ())]


def read_levels(path):
    matrix = read_matrix(str(path))
    return [Explicit(matrix).matrix.toarray()]


def read_results(path):
    rows = unite([read_file(path)]).values()
    assert all(type(cell) is kind for row in rows for cell, kind in zip(row, Row.__annotations__.values(), strict=True))
    for row in rows:
        low, value, high = (float(text) for text in (row.low, row.value, row.high))
        assert all(np.isnan(number) or 0 <= number <= 1 for number in (low, value, high))
        assert not value < low - 2e-6
        assert not value > high + 2e-6
        assert row.n_bits >= 1
        assert 0 <= row.n_undefined <= row.n_queries
        assert row.params == json.dumps(json.loads(row.params), sort_keys=True)
        assert row.features.split() == row.features.split(" ")
    return [np.array([float(row.value) for row in rows])]


# format: (file, who writes it, who reads it, whether its content has a checksum)
FORMATS = {
    "npy": ("a.npy", lambda path: np.save(path, X), lambda path: [read_matrix(str(path))], False),
    "npy features": ("a.npy", lambda path: np.save(path, X.astype(float)), read_own, False),
    "npz": ("a.npz", lambda path: np.savez(path, features=X, labels=Y), read_chosen, True),
    "compressed npz": ("a.npz", lambda path: np.savez_compressed(path, features=X, labels=Y), read_chosen, True),
    "csr": ("a.npz", lambda path: sp.save_npz(path, LEVELS), read_levels, True),
    "hdf5": ("a.h5", plain_hdf5, read_own, False),
    "gzip hdf5": ("a.h5", lambda path: plain_hdf5(path, compression="gzip", fletcher32=True), read_own, False),
    "hdf5 with texts": ("a.h5", hdf5_with_texts, read_foreign, False),
    "csv": ("a.csv", table, read_own, False),
    "parquet": ("a.parquet", parquet, read_own, False),
    "arrow": ("a.arrow", arrow, read_own, False),
    "safetensors": ("a.safetensors", safetensors, read_own, False),
    "fvecs": ("a.fvecs", vectors, read_own, False),
    "fbin": ("a.fbin", big_ann, read_own, False),
    "dataset": ("a.h5", dataset, read_dataset, True),
    "explicit dataset": ("a.h5", explicit_dataset, read_dataset, True),
    "codes": ("a.h5", codes, read_codes, True),
    "scores": ("a.h5", scores, read_scores, True),
    "results": ("a.csv", results, read_results, False),
    "record of results": (
        "a.json",
        lambda path: results(path.with_name("a.csv")),
        lambda path: read_results(path.with_name("a.csv")),
        False,
    ),
}


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """Return, by format, a path, the good content and its numbers; no more than 64 MB are free."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "free_memory", lambda: 64 << 20)
        good = {}
        for name, (file, write, read, _) in FORMATS.items():
            path = tmp_path_factory.mktemp("spoilt") / file
            if name in ("parquet", "arrow"):
                pytest.importorskip("pyarrow")
            write(path)
            good[name] = path, path.read_bytes(), read(path)
        yield good


def edits():
    """Draw what happens to a file: up to four places, as shares of its length, where bytes change."""
    place = st.floats(0, 1, exclude_max=True)
    some = st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"\0" * 8, b"\xff" * 8, b"\xff" * 4, b"\x7f"]))
    kinds = st.sampled_from(["flip", "cut", "insert", "overwrite", "swap", "end"])
    return st.lists(st.tuples(kinds, place, place, some), min_size=1, max_size=4)


def spoil(content, changes):
    for kind, first, second, some in changes:
        size = len(content)
        at, other = sorted((int(first * size), int(second * size)))
        if kind == "flip":
            content = content[:at] + bytes([content[at] ^ (1 << some[0] % 8)]) + content[at + 1 :] if size else b""
        elif kind == "cut":
            content = content[:at] + content[at + some[0] :]
        elif kind == "end":
            content = content[:other]
        elif kind == "insert":
            content = content[:at] + some + content[at:]
        elif kind == "overwrite":
            content = content[:at] + some + content[at + len(some) :]
        else:
            n = min(some[0] + 1, other - at, size - other)
            first_part, second_part = content[at : at + n], content[other : other + n]
            content = content[:at] + second_part + content[at + n : other] + first_part + content[other + n :]
    return content


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=2000 if thoroughness.ALL else 15)
@given(changes=edits())
def test_a_spoilt_file_is_refused_in_a_sentence_or_gives_numbers_it_could_hold(spoilt, name, changes):
    path, content, expected = spoilt[name]
    _, _, read, has_checksum = FORMATS[name]
    path.write_bytes(spoil(content, changes))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message, arrays = "", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arrays = read(path)
        except HashbenchError as error:
            message = str(error)
    assert "\n" not in message
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < MOST_BYTES
    if arrays and has_checksum:  # scores of something else are none at all
        for array, other in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(array, other)
    elif arrays:
        assert all(isinstance(array, np.ndarray) and array.nbytes < MOST_BYTES for array in arrays)
        if name not in ("npy", "results", "record of results"):
            assert (arrays[0].dtype, arrays[0].ndim) == (np.float32, 2)
