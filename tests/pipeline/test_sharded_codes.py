import json
import pickle
import re

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.error_sentences import complaint
from helpers.paths import ROOT
from helpers.thoroughness import slow

from hashbench.pipeline.own_codes import OwnFiles, read_own
from hashbench.pipeline.sharded_codes import read_sharded
from hashbench.scoring import shards

rng = np.random.default_rng(0)
N_DATABASE, CUTS = 41, (1, 2, 19)  # shards of 1, 1, 17 and 22 rows
QUERY, DATABASE = rng.random((9, 12)) < 0.5, rng.random((N_DATABASE, 12)) < 0.5
CLASSES = rng.integers(0, 5, 9), rng.integers(0, 5, N_DATABASE)
MULTI_HOT = rng.integers(0, 2, (9, 4)), rng.integers(0, 2, (N_DATABASE, 4))
MULTI_HOT[0][0], MULTI_HOT[1][:-1, 0], MULTI_HOT[1][-1] = 1, 0, 1  # the highest level is in the last row alone
LEVELS = rng.integers(0, 3, (9, N_DATABASE))
METRICS = ["AP", "NDCG", "P@5", "R@r3"]


@pytest.fixture
def save(tmp_path):
    """Save an array, perhaps in shards too, and give its path, or the pattern of theirs."""

    def write(name, array, cuts=()):
        if sp.issparse(array):
            sp.save_npz(tmp_path / f"{name}.npz", array)
            return f"{tmp_path}/{name}.npz"
        np.save(tmp_path / f"{name}.npy", array)
        for number, part in enumerate(np.split(array, cuts), start=8):  # to 11
            np.save(tmp_path / f"{name}-{number}.npy", part)
        return f"{tmp_path}/{name}{'-*' if cuts else ''}.npy"

    return write


@pytest.fixture
def codes(save):
    return {"query_codes": save("q", QUERY), "database_codes": save("d", DATABASE, CUTS)}


def one_file(specs):
    return {key: value.replace("-*", "") if isinstance(value, str) else value for key, value in specs.items()}


def assert_same_scores(specs):
    found, expected = (read(specs).evaluate(METRICS) for read in (_sharded, _own))
    assert found.n_undefined == expected.n_undefined
    for name, scores in expected.scores.items():
        np.testing.assert_array_equal(found.scores[name], scores, err_msg=name)


def _sharded(specs):
    return read_sharded(OwnFiles(**specs))


def _own(specs):
    return read_own(OwnFiles(**one_file(specs)))


RELEVANCE = {
    "classes": (CLASSES,),
    "float classes": (tuple(labels.astype(float) for labels in CLASSES),),
    "words": (tuple(np.array(["a", "bb", "c", "d", "e"])[labels] for labels in CLASSES),),
    "column": (tuple(labels[:, None] for labels in CLASSES),),
    "multi-hot": (MULTI_HOT,),
    "superclasses": (CLASSES, tuple(labels // 2 for labels in CLASSES)),
}


@pytest.mark.parametrize("block", [5, *slow(1 << 18)])
@pytest.mark.parametrize("cuts", [CUTS, (30,), ()], ids=["as codes", "otherwise", "one file"])
@pytest.mark.parametrize("kind", RELEVANCE)
def test_labels_in_shards_or_in_one_file_score_as_those_in_memory(save, codes, monkeypatch, kind, cuts, block):
    monkeypatch.setattr(shards, "_BLOCK_ROWS", block)
    names = [("query_labels", "database_labels"), ("query_coarse", "database_coarse")]
    given = zip(names, RELEVANCE[kind], strict=False)
    labels = {
        name: save(name, array, cuts if name[0] == "d" else ())
        for pair, arrays in given
        for name, array in zip(pair, arrays, strict=True)
    }
    assert_same_scores(codes | labels)


@pytest.mark.parametrize("matrix", [LEVELS, sp.csr_array(LEVELS)], ids=["dense", "csr"])
def test_an_affinity_scores_as_in_memory(save, codes, monkeypatch, matrix):
    monkeypatch.setattr(shards, "_BLOCK_ROWS", 7)
    assert_same_scores(codes | {"affinity": save("a", matrix)})


@pytest.mark.parametrize("rule", ["same-label", "shared-labels", "distance", "explicit"])
def test_codes_of_a_dataset_score_as_in_memory(save, tiny_file, rule):
    query, database = save("tq", rng.random((8, 6)) < 0.5), save("td", rng.random((32, 6)) < 0.5, (3, 20))
    assert_same_scores({"query_codes": query, "database_codes": database, "dataset": str(tiny_file(rule))})


def packed(order):
    return lambda codes: np.packbits(codes, axis=1, bitorder=order)


def integers(codes):
    """Write codes as integers of 64 bits, of which the first alone is large."""
    found = codes @ (1 << np.arange(12))
    found[0] = -found[0] - 2**40
    return found


FORMS = {  # each with what has to be said of it
    "zeros and ones": (lambda codes: codes.astype(np.uint8), {}),
    "signs": (lambda codes: np.where(codes, 1.0, -1.0), {}),
    "packed": (packed("little"), {"n_bits": 12}),
    "most significant first": (packed("big"), {"n_bits": 12, "bit_order": "big"}),
    "signed": (lambda codes: (packed("big")(codes) ^ 0x80).view(np.int8), {"n_bits": 12}),
    "integers": (integers, {}),
    "squares": (lambda codes: np.pad(codes, ((0, 0), (0, 4))).reshape(-1, 4, 4), {}),
    "texts": (lambda codes: np.array([bytes(row).hex()[:3] for row in packed("big")(codes)]), {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_codes_in_any_form_score_as_in_memory(save, monkeypatch, form):
    monkeypatch.setattr(shards, "_BLOCK_ROWS", 4)
    make, said = FORMS[form]
    paths = {"query_codes": save("q", make(QUERY)), "database_codes": save("d", make(DATABASE), CUTS)}
    assert_same_scores(paths | said | {"affinity": save("a", LEVELS)})


def test_a_manifest_may_mix_hdf5_and_npy(save, codes, tmp_path):
    with h5py.File(tmp_path / "some.h5", "w") as file:
        file["train/codes"], file["other"] = DATABASE[2:], DATABASE
    (tmp_path / "all.toml").write_text('shards = ["d-8.npy", "d-9.npy", "some.h5:train/codes"]\n')
    affinity = {"affinity": save("a", LEVELS)}
    listed = _sharded(codes | affinity | {"database_codes": f"{tmp_path}/all.toml"})
    assert listed.evaluate(METRICS).summary == _own(codes | affinity).evaluate(METRICS).summary


LABELLED = {"query_labels": CLASSES[0], "database_labels": CLASSES[1]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"affinity": LEVELS, "distance": "cosine"}, "--distance cosine ranks the whole database at once, and shards"),
        ({"affinity": LEVELS, "true_distance": "dot"}, "vectors re-rank the nearest items of the whole database"),
        ({}, "say what is relevant"),
        ({"affinity": LEVELS[:, 1:]}, "there are 41 database codes, but labels or affinities for 40 database items"),
        (LABELLED | {"database_labels": CLASSES[1][1:]}, "41 database codes, but labels or affinities for 40"),
        (LABELLED | {"database_labels": MULTI_HOT[1]}, "give both as class labels"),
        (LABELLED | {"database_labels": CLASSES[1] + 0.5}, "no whole numbers"),
        ({"affinity": LEVELS, "query_codes": QUERY[:, :9]}, "query codes have 9 bits and database codes 12"),
        ({"affinity": LEVELS, "n_bits": 40}, "booleans of shape (9, 12), a column for each bit"),
        (
            LABELLED | {"query_coarse": CLASSES[0], "database_coarse": CLASSES[1][:-1]},
            "there are classes for 41 database items and superclasses for 40",
        ),
        (
            LABELLED | {"query_coarse": CLASSES[0], "database_coarse": np.append(CLASSES[1][:-1], 9)},
            "has items of several superclasses; it must lie in one",
        ),
        (
            LABELLED | {"query_coarse": CLASSES[0].astype(str), "database_coarse": CLASSES[1].astype(str)},
            "superclasses in shards are words",
        ),
    ],
)
def test_what_does_not_fit_is_said(save, codes, monkeypatch, changes, words):
    monkeypatch.setattr(shards, "_BLOCK_ROWS", 10)
    saved = {key: save(key, value) if isinstance(value, np.ndarray) else value for key, value in changes.items()}
    assert words in complaint(lambda: _sharded(codes | saved).evaluate(["AP"]))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (DATABASE + 2 * (np.arange(N_DATABASE) == 33)[:, None], "database codes from row 30 on hold"),
        (
            np.array(["abc"] * 33 + ["ab"] * 8),
            "row 3 (the first is 0) holds 'ab', expected hexadecimal digits, as many as in all",
        ),
        (np.array(["abc"] * 30 + ["ab"] * 11), "database codes from row 30 on have 8 bits, and those before 12;"),
    ],
    ids=["no bits", "texts", "texts of a block"],
)
def test_codes_that_are_wrong_further_on_are_told_by_their_rows(save, monkeypatch, wrong, words):
    monkeypatch.setattr(shards, "_BLOCK_ROWS", 10)
    query = np.array(["abc"] * 9) if wrong.ndim == 1 else QUERY.astype(int)
    paths = {"query_codes": save("q", query), "database_codes": save("d", wrong, CUTS)}
    monkeypatch.setattr("hashbench.pipeline.sharded_codes._TRIED", 10)
    assert words in complaint(lambda: _sharded(paths | {"affinity": save("a", LEVELS)}).evaluate(["AP"]))


def test_what_counts_a_shard_goes_to_other_processes_as_places_not_as_rows(save, codes):
    labels = {"query_labels": save("ql", CLASSES[0]), "database_labels": save("dl", CLASSES[1], (30,))}
    found = _sharded(codes | labels)
    parts = pickle.dumps((found.query, found.database, found.n_bits, found.relevance))
    assert len(parts) < 2500
    one, other = (shards.count_shard(*pickle.loads(parts), rows) for rows in (slice(0, 25), slice(25, N_DATABASE)))
    np.testing.assert_array_equal((one + other).counts, found.histogram.counts)


# ---------------------------------------------------------------- on the command line


def test_shards_are_scored_on_the_command_line_as_one_file_is(hashbench, save, codes, tmp_path):
    labels = {"query_labels": save("ql", CLASSES[0]), "database_labels": save("dl", CLASSES[1], CUTS)}

    def told(specs, name):
        outputs = [arg for what in ("per-query", "curves") for arg in (f"--{what}", tmp_path / f"{name}-{what}.csv")]
        options = [arg for key, value in specs.items() for arg in (f"--{key.replace('_', '-')}", value)]
        done = hashbench("evaluate", *options, *outputs, "--format", "json")
        assert done.exit_code == 0, done.stderr
        return [done.stdout, *(path.read_bytes() for path in outputs[1::2])]

    assert told(codes | labels, "sharded") == told(one_file(codes | labels), "one")
    assert told(one_file(codes) | labels, "labels") == told(one_file(codes | labels), "one")


# ---------------------------------------------------------------- the page


def test_the_commands_of_the_page_run_as_they_are(hashbench, empty_folder):
    text = (ROOT / "docs" / "scale.md").read_text()
    section = text[text.index("## Databases in shards") :].partition("\n## ")[0]
    for block in re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE):
        exec(block, {})
    commands = "".join(re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)).splitlines()
    done = [hashbench(*(word.strip("'") for word in command.split()[1:]), "--format", "json") for command in commands]
    assert [one.exit_code for one in done] == [0] * 3, [one.stderr for one in done]
    found = [json.loads(one.stdout) for one in done]
    assert found[0] == found[1] == found[2]
