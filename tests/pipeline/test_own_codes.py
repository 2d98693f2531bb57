import json
import re
import shutil
import unicodedata
from itertools import chain
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.paths import ROOT

from hashbench import evaluate
from hashbench.affinity import Explicit
from hashbench.errors import HashbenchError
from hashbench.pipeline import own_codes
from hashbench.pipeline.own_codes import OwnFiles, check_saving
from hashbench.pipeline.preparation import dataset_path
from hashbench.reports.aggregate import all_lines
from hashbench.store import hdf5
from hashbench.store.results import read_results, read_rows
from hashbench.store.score_cache import find_scores

SUMMARY = ("mean", "tie_sd", "tie_sd_bound", "tie_sd_measured", "low", "high", "n_queries", "n_undefined")

rng = np.random.default_rng(0)
QUERY, DATABASE = rng.random((7, 11)) < 0.5, rng.random((40, 11)) < 0.5
CLASSES = rng.integers(0, 3, 7), rng.integers(0, 3, 40)
MULTI_HOT = rng.integers(0, 2, (7, 4)), rng.integers(0, 2, (40, 4))
LEVELS = rng.integers(0, 3, (7, 40))


@pytest.fixture
def save(tmp_path):
    """Save an array or sparse matrix and give its path."""

    def write(name, array):
        path = tmp_path / name
        sp.save_npz(path, array) if sp.issparse(array) else np.save(path, array)
        return str(path)

    return write


@pytest.fixture
def codes(save):
    return {"query_codes": save("q.npy", QUERY), "database_codes": save("d.npy", DATABASE)}


def read_own(**specs):
    return own_codes.read_own(OwnFiles(**specs))


def scores(metrics, **specs):
    return read_own(**specs).evaluate(metrics)


def by_hand(levels):
    """Expected AP of each query, rank by rank: share of relevant pairs at and before each rank."""
    distances = (QUERY[:, None] != DATABASE[None]).sum(axis=2)
    scores = []
    for distance, level in zip(distances, levels > 0, strict=True):
        precision, before, rel_before = 0.0, 0, 0
        for d in np.unique(distance):
            size, n_rel = int((distance == d).sum()), int(level[distance == d].sum())
            for u in range(1, size + 1):
                others = (u - 1) * (n_rel - 1) / (size - 1) if size > 1 else 0
                precision += n_rel / size * (rel_before + 1 + others) / (before + u)
            before, rel_before = before + size, rel_before + n_rel
        scores.append(precision / level.sum())
    return scores


FORMS = {
    "bool": lambda codes: codes,
    "zeros and ones": lambda codes: codes.astype(np.uint8),
    "float zeros and ones": lambda codes: codes.astype(np.float32),
    "signs": lambda codes: np.where(codes, 1, -1).astype(np.int8),
    "float signs": lambda codes: np.where(codes, 1.0, -1.0),
}


@pytest.mark.parametrize("form", FORMS)
def test_codes_of_any_form_score_the_same(save, form):
    paths = {"query_codes": save("q.npy", FORMS[form](QUERY)), "database_codes": save("d.npy", FORMS[form](DATABASE))}
    evaluation = scores(["AP"], **paths, affinity=save("a.npy", LEVELS))
    np.testing.assert_allclose(evaluation.scores["AP"].mean, by_hand(LEVELS), atol=1e-12)


def test_packed_codes_score_the_same(save):
    pack = {"axis": 1, "bitorder": "little"}
    paths = {
        "query_codes": save("q.npy", np.packbits(QUERY, **pack)),
        "database_codes": save("d.npy", np.packbits(DATABASE, **pack)),
    }
    evaluation = scores(["AP"], **paths, affinity=save("a.npy", LEVELS), n_bits=11)
    np.testing.assert_allclose(evaluation.scores["AP"].mean, by_hand(LEVELS), atol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "multi-hot", "dense", "bool", "csr", "csr_matrix", "coo"])
def test_relevance_of_any_kind(save, codes, kind):
    if kind in ("classes", "multi-hot"):
        ours, theirs = CLASSES if kind == "classes" else MULTI_HOT
        relevance = {"query_labels": save("ql.npy", ours), "database_labels": save("dl.npy", theirs)}
        levels = ours @ theirs.T if kind == "multi-hot" else (ours[:, None] == theirs).astype(int)
    else:
        levels = LEVELS > 0 if kind == "bool" else LEVELS
        make = {"csr": sp.csr_array, "csr_matrix": sp.csr_matrix, "coo": sp.coo_array}.get(kind, np.asarray)
        relevance = {"affinity": save(f"a.{'npz' if kind[0] == 'c' else 'npy'}", make(levels))}
    evaluation = scores(["AP", "NDCG"], **codes, **relevance)
    np.testing.assert_allclose(evaluation.scores["AP"].mean, by_hand(levels), atol=1e-12)
    direct = evaluate(QUERY, DATABASE, levels.astype(int), ["NDCG"])
    np.testing.assert_allclose(evaluation.scores["NDCG"].mean, direct.scores["NDCG"].mean, atol=1e-12)


def test_sparse_matrix_with_stored_zeros_scores_the_same(save, codes):
    matrix = sp.csr_array(LEVELS)
    matrix.data[::5] = 0
    evaluation = scores(["AP"], **codes, affinity=save("a.npz", matrix))
    np.testing.assert_allclose(evaluation.scores["AP"].mean, by_hand(matrix.toarray()), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, "say what is relevant"),
        ({"query_labels": CLASSES[0]}, "say what is relevant"),
        ({"query_labels": CLASSES[0], "database_labels": CLASSES[1], "affinity": LEVELS}, "say what is relevant"),
        ({"query_labels": CLASSES[0], "database_labels": MULTI_HOT[1]}, "give both"),
        ({"query_labels": CLASSES[0] + 0.5, "database_labels": CLASSES[1]}, "whole numbers"),
        ({"query_labels": np.array(list("abcdefg")), "database_labels": CLASSES[1]}, "Encode names"),
        ({"query_labels": MULTI_HOT[0] * 2, "database_labels": MULTI_HOT[1]}, "multi-hot"),
        ({"query_labels": MULTI_HOT[0], "database_labels": MULTI_HOT[1][:, :3]}, "same columns"),
        ({"query_labels": CLASSES[0][:5], "database_labels": CLASSES[1]}, "7 query codes.*5"),
        ({"affinity": LEVELS.T}, "7 query codes.*40"),
        ({"affinity": LEVELS - 1}, "whole-number levels"),
        ({"affinity": LEVELS * 0.3}, "whole-number levels"),
        ({"affinity": np.full((7, 40), np.nan)}, "whole-number levels"),
        ({"affinity": LEVELS[0]}, "two dimensions"),
        ({"query_codes": QUERY[:, :10], "affinity": LEVELS}, r"query_codes\.npy have 10 columns.*d\.npy 11;"),
        ({"query_codes": QUERY * 3, "affinity": LEVELS}, "values that are not"),
        ({"query_codes": QUERY.astype(np.uint8) * 200, "affinity": LEVELS}, "--bits"),
        ({"query_codes": np.where(QUERY, 1, np.nan), "affinity": LEVELS}, "values that are not"),
        ({"query_codes": QUERY[:0], "affinity": LEVELS[:0]}, "empty"),
        ({"query_codes": QUERY[0], "affinity": LEVELS}, "two dimensions"),
        ({"n_bits": 40, "affinity": LEVELS}, "40 bits"),
        ({"n_bits": 0, "affinity": LEVELS}, "1 to 4096"),
    ],
)
def test_what_does_not_fit_is_said(save, codes, changes, complaint):
    saved = {key: save(f"{key}.npy", value) if key != "n_bits" else value for key, value in changes.items()}
    with pytest.raises(HashbenchError, match=f"(?s){complaint}") as caught:
        scores(["AP"], **(codes | saved))
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- files of other programs


OCTAVE = Path(__file__).parent / "octave" / "codes.mat"  # written by Octave 7.3.0: codes.m beside it
FORMS_OF_OCTAVE = [
    ("B_test", "B_train", None),  # logical, and -1/+1
    ("B_test", "masks", 12),
    ("packed_test", "packed_train", 12),
    ("hex_test", "hex_train", None),
]


@pytest.mark.parametrize(("ours", "theirs", "n_bits"), FORMS_OF_OCTAVE)
def test_codes_in_a_mat_file_of_octave_score_as_the_same_in_npy(save, ours, theirs, n_bits):
    rows = np.arange(1, 41)
    numbers = (rows * 37 + rows**2 // 3) % 4096
    bits, labels = (numbers[:, None] >> np.arange(11, -1, -1) & 1).astype(bool), rows % 3
    plain = {
        **{"query_codes": save("q.npy", bits[:8]), "database_codes": save("d.npy", bits[8:])},
        **{"query_labels": save("ql.npy", labels[:8]), "database_labels": save("dl.npy", labels[8:])},
    }
    keys = {"query_codes": ours, "database_codes": theirs, "query_labels": "y_test", "database_labels": "y_train"}
    found = read_own(**{option: f"{OCTAVE}:{key}" for option, key in keys.items()}, n_bits=n_bits)
    expected = read_own(**plain)
    assert found.evaluate(["AP", "NDCG@5", "P@r2"]).summary == expected.evaluate(["AP", "NDCG@5", "P@r2"]).summary
    assert (found.n_bits, found.fingerprint) == (12, expected.fingerprint)


def hexadecimal(codes):
    return [f"{int(''.join(str(int(bit)) for bit in code), 2):03x}" for code in codes]


@pytest.mark.parametrize("suffix", ["npz", "h5"])
def test_codes_under_a_key_score_the_same(save, tmp_path, suffix):
    path = tmp_path / f"codes.{suffix}"
    if suffix == "npz":
        np.savez(path, codes=~DATABASE, other=DATABASE)
    else:
        with h5py.File(path, "w") as file:
            file["a/other"], file["codes"] = DATABASE, ~DATABASE
    key = "other" if suffix == "npz" else "a/other"
    found = scores(
        ["AP"], query_codes=save("q.npy", QUERY), database_codes=f"{path}:{key}", affinity=save("a.npy", LEVELS)
    )
    np.testing.assert_allclose(found.scores["AP"].mean, by_hand(LEVELS), atol=1e-12)


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_hexadecimal_texts_score_the_same(save, tmp_path, suffix):
    path = tmp_path / f"codes.{suffix}"
    table = pd.DataFrame({"hash": hexadecimal(DATABASE), "of": "image"})
    if suffix == "npy":
        np.save(path, hexadecimal(DATABASE))
    elif suffix == "csv":
        table.to_csv(path)
    else:
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    query = save("q.npy", np.array(hexadecimal(QUERY)))
    found = scores(["AP"], query_codes=query, database_codes=str(path), affinity=save("a.npy", LEVELS), n_bits=11)
    np.testing.assert_allclose(found.scores["AP"].mean, by_hand(LEVELS), atol=1e-12)


def test_texts_beside_columns_of_bits_are_refused_by_their_form_not_their_width(save):
    texts, bits = save("t.npy", np.array(hexadecimal(QUERY))[:, None]), save("d.npy", DATABASE)
    with pytest.raises(HashbenchError, match="query codes are texts, database codes a column for each bit"):
        read_own(query_codes=texts, database_codes=bits, affinity=save("a.npy", LEVELS))


def test_columns_whose_codes_pandas_loses_are_refused(tmp_path):
    (tmp_path / "numbers.csv").write_text("hash\n0012\n0013\n")
    (tmp_path / "headless.csv").write_text("00ff\n0a12\nff00\n")
    for name, words in (
        ("numbers", "texts of hexadecimal digits or of 0 and 1"),
        ("headless", "first line .* reads like a code"),
    ):
        path = str(tmp_path / f"{name}.csv")
        with pytest.raises(HashbenchError, match=words):
            read_own(query_codes=path, database_codes=path, affinity=path)


def test_classes_may_be_words(save, codes):
    words = [np.array(["cat", "dog", "owl"])[labels] for labels in CLASSES]
    found = scores(["AP"], **codes, query_labels=save("ql.npy", words[0]), database_labels=save("dl.npy", words[1]))
    np.testing.assert_allclose(found.scores["AP"].mean, by_hand((CLASSES[0][:, None] == CLASSES[1]).astype(int)))


def test_a_class_is_the_same_however_unicode_spells_it(save, codes):
    words = [np.array(["Käse", "Öl", "süß"])[labels] for labels in CLASSES]
    decomposed = np.array([unicodedata.normalize("NFD", word) for word in words[1].tolist()])
    assert not np.isin(decomposed, words[0]).any()
    found = scores(["AP"], **codes, query_labels=save("ql.npy", words[0]), database_labels=save("dl.npy", decomposed))
    np.testing.assert_allclose(found.scores["AP"].mean, by_hand((CLASSES[0][:, None] == CLASSES[1]).astype(int)))


def test_the_fingerprint_is_of_what_labels_say_and_not_of_their_file(save, codes):
    def fingerprint(levels):
        return read_own(**codes, affinity=levels).fingerprint

    dense = fingerprint(save("a.npy", LEVELS))
    assert dense == fingerprint(save("b.npy", LEVELS.astype(float))) == fingerprint(save("c.npz", sp.coo_array(LEVELS)))
    assert dense != fingerprint(save("e.npy", LEVELS[:, ::-1]))


# ---------------------------------------------------------------- among the results


@pytest.fixture
def of_digits(digits, save):
    """Options with codes of digits, of some length."""

    def make(n_bits):
        planes = np.random.default_rng(n_bits).normal(size=(64, n_bits))
        bits = (digits.features - digits.features.mean(axis=0)) @ planes > 0
        parts = {role: save(f"{role}{n_bits}.npy", bits[getattr(digits, role)]) for role in ("query", "database")}
        return ["--query-codes", parts["query"], "--database-codes", parts["database"], "--dataset", "digits"]

    return make


def test_saved_codes_stand_beside_methods_in_tables_figures_and_tests(hashbench, digits_data, of_digits, empty_folder):
    assert hashbench("run", "--method", "lsh", "--bits", 12, "--metric", "AP").exit_code == 0
    for n_bits in (12, 16):
        options = ["--save", "mine", "--metric", "AP", *["--keep-codes"] * (n_bits == 12)]
        done = hashbench("evaluate", *of_digits(n_bits), *options, "--format", "csv")
        assert done.exit_code == 0
        assert f"1 row of 'mine', {n_bits} bits, written to" in done.stderr
        assert "What these codes were learned from cannot be checked. Methods here learn from the 1,000" in done.stderr
        rows = read_rows(empty_folder / "results", "digits")
        (row,) = (row for row in rows if (row.method, row.n_bits) == ("mine", n_bits))
        assert re.search(rf"AP,{row.value},{row.tie_sd},0\.\d+,,{row.low},{row.high},200,0", done.stdout)
    ours = next(row for row in rows if row.method == "lsh")
    assert row[11:14] == ours[11:14]  # queries and fingerprint
    assert json.loads(row.params) == {"codes": "own"}
    assert find_scores(row) is not None
    table = hashbench("tables", "--dataset", "digits", "--metric", "AP", "--significance").stdout
    assert re.search(r"^\| mine codes=own \|[^|]+\| +- \| +0\.\d+ to 0\.\d+ \|", table, re.MULTILINE)
    drawn = hashbench("plot", "code-usage", "precision-recall", "--bits", 12, "--format", "svg")
    assert drawn.exit_code == 0
    assert "not in the data folder" not in drawn.stderr
    lacking = hashbench("plot", "precision-recall", "--bits", 16)
    assert "hashbench evaluate --dataset digits --save mine --keep-codes" in lacking.stderr
    assert "record how long" in hashbench("plot", "time-quality", "--method", "mine", "--bits", 12).stderr


def test_saved_codes_have_the_group_and_label_that_they_are_given(hashbench, digits_data, of_digits, empty_folder):
    assert hashbench("run", "--method", "lsh", "--bits", 16, "--metric", "AP").exit_code == 0
    save = ["evaluate", *of_digits(16), "--metric", "AP", "--save", "mine", "--keep-codes"]
    assert hashbench(*save).exit_code == 0
    assert hashbench(*save, "--group", "pair-based", "--label", "Ours (full)").exit_code == 0
    rows = [row for row in read_rows(empty_folder / "results", "digits") if row.method == "mine"]
    shown = {"codes": "own", "group": "pair-based", "label": "Ours (full)"}
    assert [json.loads(row.params) for row in rows] == [shown]  # what was saved without them is replaced
    assert hashbench("results", "check").exit_code == 0
    selection = ["--dataset", "digits", "--metric", "AP", "--significance"]
    table = hashbench("tables", *selection, "--against", "Ours (full)", "--output", "paper").stdout
    assert re.search(r"^\| \*pair-based\* +\| +\|\n\| Ours \(full\) +\| [^|]*0\.\d+[^|]*\|$", table, re.MULTILINE)
    assert "Ours (full) & " in (empty_folder / "paper" / "selection.tex").read_text()
    assert hashbench("plot", "precision-recall", "--bits", 16, "--format", "svg").exit_code == 0
    lines = all_lines(read_results("results"))
    assert ("Ours (full)", "pair-based") in set(zip(lines["label"], lines["group"], strict=True))


def test_a_save_replaces_all_rows_of_a_name_length_and_seed(hashbench, save, codes, empty_folder):
    def saved(database, *options):
        own = ["--query-codes", codes["query_codes"], "--affinity", save("a.npy", LEVELS), "--database-codes", database]
        done = hashbench("evaluate", *own, "--save", "mine", "--dataset", "flowers", *options)
        assert done.exit_code == 0
        return done.stderr, {(row.seed, row.metric): row for row in read_rows(empty_folder / "results", "flowers")}

    ours, others = codes["database_codes"], save("d2.npy", DATABASE ^ QUERY[0])
    both = ["--metric", "AP", "--metric", "P@10", "--group", "pair-based", "--label", "Ours"]
    told, first = saved(ours, *both)
    assert {*first} == {(0, "AP"), (0, "P@10")}
    assert "removed" not in told
    assert "removed" not in saved(ours, *both)[0]
    told, second = saved(others, "--metric", "AP", "--seed", 1)
    assert {*second} == {(0, "AP"), (0, "P@10"), (1, "AP")}
    assert "removed" not in told
    assert {row.params for row in second.values()} == {'{"codes": "own"}'}  # of all seeds as of the last one
    assert find_scores(second[0, "AP"]) is not None
    told, third = saved(others, "--metric", "AP", "--label", "Theirs")
    assert "2 earlier rows of 'mine', 11 bits, seed 0, removed: AP, P@10.\nNot scored again: P@10. Name all" in told
    assert {*third} == {(0, "AP"), (1, "AP")}
    assert third[0, "AP"].value == third[1, "AP"].value != first[0, "AP"].value
    assert {row.params for row in third.values()} == {'{"codes": "own", "label": "Theirs"}'}
    assert hashbench("results", "check").exit_code == 0
    assert hashbench("tables", "--dataset", "flowers", "--metric", "AP").stdout.count("Theirs") == 1


def test_saved_codes_of_several_lengths_stay_one_line(hashbench, digits_data, of_digits, empty_folder):
    for n_bits, label in ((12, "First"), (16, "Second")):
        options = ["--metric", "AP", "--save", "mine", "--keep-codes", "--label", label]
        assert hashbench("evaluate", *of_digits(n_bits), *options).exit_code == 0
    rows = read_rows(empty_folder / "results", "digits")
    assert [(row.n_bits, json.loads(row.params)["label"]) for row in rows] == [(12, "Second"), (16, "Second")]
    drawn = hashbench("plot", "code-usage", "--format", "svg")
    assert drawn.exit_code == 0
    assert "not in the data folder" not in drawn.stderr  # though codes of 12 bits were kept under another label
    changed = of_digits(12)
    np.save(changed[1], ~np.load(changed[1]))
    done = hashbench("evaluate", *changed, "--metric", "AP", "--save", "mine", "--label", "Second")
    assert "1 earlier row of 'mine', 12 bits, seed 0, removed: AP." in done.stderr
    assert "mine-12-s0.h5 keeps other codes, which figures show. Replace them: --keep-codes." in done.stderr


def test_saved_again_rows_are_replaced_and_diff_tells(hashbench, save, codes, empty_folder):
    own = ["evaluate", "--query-codes", codes["query_codes"], "--affinity", save("a.npy", LEVELS)]
    own += ["--metric", "AP", "--save", "mine", "--dataset", "flowers"]
    assert hashbench(*own, "--database-codes", codes["database_codes"]).exit_code == 0
    (first,) = read_rows(empty_folder / "results", "flowers")
    shutil.copytree(empty_folder / "results", empty_folder / "old")
    assert hashbench(*own, "--database-codes", save("d2.npy", DATABASE ^ QUERY[0])).exit_code == 0
    (second,) = read_rows(empty_folder / "results", "flowers")
    assert first.key == second.key
    assert (first.dataset, first.features, first.value != second.value) == ("flowers", "own", True)
    assert "mine" in hashbench("diff", "old", "results", "--resamples", 99).stdout
    assert hashbench(*own, "--database-codes", codes["database_codes"], "--seed", 3).exit_code == 0
    assert [row.seed for row in read_rows(empty_folder / "results", "flowers")] == [0, 3]


def test_outputs_that_rank_by_cosine_are_saved_as_such(hashbench, save, empty_folder):
    outputs = np.random.default_rng(0).normal(size=(47, 5))
    own = ["--query-codes", save("q.npy", outputs[:7]), "--database-codes", save("d.npy", outputs[7:])]
    own += ["--affinity", save("a.npy", LEVELS), "--distance", "cosine", "--save", "mine", "--dataset", "flowers"]
    assert hashbench("evaluate", *own, "--metric", "AP").exit_code == 0
    (row,) = read_rows(empty_folder / "results", "flowers")
    assert json.loads(row.params) == {"codes": "own", "distance": "cosine"}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--distance", "cosine", "--keep-codes"], "--keep-codes keeps binary codes"),
        (["--undefined", "paper"], "--undefined paper"),
        ([], "conflict marker"),
    ],
)
def test_where_rows_cannot_be_saved_nothing_is_written(hashbench, save, codes, empty_folder, options, complaint):
    (empty_folder / "results" / "flowers").mkdir(parents=True)
    (empty_folder / "results" / "flowers" / "mine.csv").write_text("<<<<<<< ours\n")
    own = ["--query-codes", codes["query_codes"], "--database-codes", codes["database_codes"], *options]
    own += ["--affinity", save("a.npy", LEVELS), "--metric", "AP", "--save", "mine", "--dataset", "flowers"]
    done = hashbench("evaluate", *own, "--per-query", "scores.csv", "--curves", "curves.csv")
    assert done.exit_code == 1
    assert complaint in done.stderr
    assert [path.name for path in empty_folder.iterdir()] == ["results"]


def test_labels_of_ones_own_take_no_name_of_a_prepared_dataset_in_whatever_case(tiny):
    hdf5.write_dataset(tiny(name="Flowers"), dataset_path("Flowers"))
    saving = {"is_labelled": True, "distance": "hamming", "undefined": "skip", "keep_codes": False, "shown": {}}
    check_saving("mine", "trees", **saving)
    for name in ("Flowers", "flowers"):
        with pytest.raises(HashbenchError, match="'Flowers' is a dataset with labels of its own"):
            check_saving("mine", name, **saving)
    with pytest.raises(HashbenchError, match=r"without a fold; .* digits-unseen3-fold0"):
        check_saving("mine", "digits-unseen3", **saving)


WORDS = np.array(["ant", "bee", "cat", "dog"])


@pytest.fixture
def beside(tiny, tiny_file, save, hashbench):
    """Score codes with a dataset of some rule, and with labels or an affinity beside it."""

    def make(rule, in_shards=False):
        spec = str(tiny_file(rule))
        bits = np.random.default_rng(1).random((40, 9)) < 0.5
        own = ["--metric", "AP", "--metric", "NDCG", "--dataset", spec, "--query-codes", save("q.npy", bits[:8])]
        if in_shards:
            shards = [save("d-0.npy", bits[8:20]), save("d-1.npy", bits[20:])]
            own += ["--database-codes", shards[0].replace("d-0", "d-*")]
        else:
            own += ["--database-codes", save("d.npy", bits[8:])]

        def score(**relevance):
            given = [(f"--{key.replace('_', '-')}", save(f"{key}.npy", value)) for key, value in relevance.items()]
            return hashbench("evaluate", *own, *chain.from_iterable(given))

        return score, tiny(rule)

    return make


@pytest.mark.parametrize("in_shards", [False, True])
@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("same-label", lambda labels: labels),
        ("same-label", lambda labels: WORDS[3 - labels]),
        ("same-label", lambda labels: labels.astype(np.uint64) + np.uint64(2**60)),
        ("same-label", lambda labels: np.eye(4, dtype=int)[labels]),
        ("shared-labels", lambda labels: labels[:, ::-1]),
    ],
    ids=["numbers", "words", "large numbers", "a column each", "several, in other columns"],
)
def test_labels_beside_a_dataset_rate_as_it_does_or_are_refused(beside, rule, told, in_shards):
    score, dataset = beside(rule, in_shards)
    alone, given = score(), told(dataset.labels)
    assert alone.exit_code == 0
    assert "would check that" in alone.stderr
    together = score(query_labels=given[:8], database_labels=given[8:])
    assert (together.exit_code, together.stdout) == (0, alone.stdout)
    assert "would check that" not in together.stderr
    levels = dataset.affinity().block(slice(0, 8), slice(0, 32))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(32)
        refused = score(query_labels=given[:8], database_labels=given[8:][order])
        query, item = np.argwhere(levels != levels[:, order])[0]
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert f"give query {query} and database item {item} (counted from 0)" in refused.stderr
        order = np.random.default_rng(seed).permutation(8)
        refused = score(query_labels=given[order], database_labels=given[8:])
        if (levels != levels[order]).any():
            query, item = np.argwhere(levels != levels[order])[0]
            theirs, ours = levels[order][query, item], levels[query, item]
            assert f"give query {query} and database item {item} (counted from 0) level {theirs}, but" in refused.stderr
            assert f"tiny.h5 gives them level {ours}: " in refused.stderr


def test_where_a_dataset_rates_without_labels_only_its_own_affinity_goes_beside_it(beside):
    for rule in ("distance", "explicit"):
        score, dataset = beside(rule)
        levels = dataset.affinity().block(slice(0, 8), slice(0, 32)).astype(int)
        together = score(affinity=levels)
        assert (together.exit_code, together.stdout) == (0, score().stdout)
        labels = np.arange(40) % 4
        refused = score(query_labels=labels[:8], database_labels=labels[8:]).stderr
        assert "give query 0 and database item" in refused
        assert f"its rule is {rule}; no labels rate items so" in refused
        assert "another order" not in refused
        levels[5, 17] += 1
        query, item, given = 5, 17, levels[5, 17]
        told = f"give query {query} and database item {item} (counted from 0) level {given}, but"
        assert told in score(affinity=levels).stderr


def test_one_class_an_item_beside_a_dataset_of_several_is_refused_by_its_kind(beside):
    score, dataset = beside("shared-labels")
    first = dataset.labels.argmax(axis=1)
    refused = score(query_labels=first[:8], database_labels=first[8:])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "its rule is shared-labels; give multi-hot labels, or leave yours out" in refused.stderr


@pytest.mark.parametrize("n_items", [1, 3, 4, 5, 30])
def test_ratings_are_compared_in_blocks_and_the_item_is_named(monkeypatch, tiny, n_items):
    """A difference in any place is found whatever the size of the blocks."""
    monkeypatch.setattr(own_codes, "_RATED_ITEMS", n_items)
    monkeypatch.setattr(own_codes, "_RATED_QUERIES", 3)
    dataset = tiny("same-label")
    levels = dataset.affinity().block(slice(0, 8), slice(0, 32)).astype(int)
    own_codes.check_rating(dataset, "tiny", Explicit(levels))
    for query, item in np.ndindex(levels.shape):
        levels[query, item] += 1
        with pytest.raises(HashbenchError, match=rf"give query {query} and database item {item} \(counted from 0\)"):
            own_codes.check_rating(dataset, "tiny", Explicit(levels))
        levels[query, item] -= 1


def test_superclasses_beside_a_dataset_are_compared_too(tiny_file, save, hashbench):
    fine = np.arange(40) % 4
    coarse = np.array([0, 0, 1, 1])[fine]
    spec = tiny_file("hierarchy", labels=fine, coarse_labels=coarse)
    bits = np.random.default_rng(1).random((40, 9)) < 0.5
    own = ["--metric", "NDCG", "--query-codes", save("q.npy", bits[:8]), "--database-codes", save("d.npy", bits[8:])]
    alone = hashbench("evaluate", *own, "--dataset", spec)
    own += ["--query-labels", save("ql.npy", 9 - fine[:8]), "--database-labels", save("dl.npy", 9 - fine[8:])]
    refused = hashbench("evaluate", *own, "--dataset", spec).stderr
    assert "level 1, but" in refused
    assert "its rule is hierarchy; give --query-coarse and --database-coarse, too, or leave yours out" in refused
    for superclass, exit_code in ((coarse, 0), (fine % 2, 1)):
        more = ["--query-coarse", save("qc.npy", superclass[:8]), "--database-coarse", save("dc.npy", superclass[8:])]
        done = hashbench("evaluate", *own, *more, "--dataset", spec)
        assert (done.exit_code, done.stdout) == (exit_code, "" if exit_code else alone.stdout)


def test_rows_of_codes_whose_labels_agree_are_the_datasets_and_a_new_name_is_told(
    hashbench, digits, digits_data, of_digits, save, empty_folder
):
    labels = ["--query-labels", save("ql.npy", digits.labels[digits.query])]
    labels += ["--database-labels", save("dl.npy", digits.labels[digits.database])]
    own = [*of_digits(8)[:-1], "--metric", "AP", "--save", "mine", *labels]
    done = hashbench("evaluate", *own[:5], "digits", *own[5:])
    assert done.exit_code == 0
    (row,) = read_rows(empty_folder / "results", "digits")
    assert row.dataset_fingerprint == digits.fingerprint
    done = hashbench("evaluate", *own[:5], "dgits", *own[5:])
    assert "'dgits' is not a known" in done.stderr
    done = hashbench("evaluate", *own[:5], "gone.h5", *own[5:])
    assert done.exit_code == 1
    assert not (empty_folder / "results" / "gone.h5").exists()


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_scores_are_laid_out_for_a_document(hashbench, save, codes, form):
    own = ["--query-codes", codes["query_codes"], "--database-codes", codes["database_codes"]]
    done = hashbench("evaluate", *own, "--affinity", save("a.npy", LEVELS), "--metric", "AP", "--format", form)
    mean = f"{np.mean(by_hand(LEVELS)):.4f}"
    line = {"markdown": rf"\| AP +\| {mean} ± 0\.\d+ \|", "latex": rf"AP & {mean} \$\\pm\$ 0\.\d+ & .* \\\\$"}[form]
    assert re.search(line, done.stdout, re.MULTILINE)


@pytest.mark.parametrize(("form", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_curves_are_drawn_into_a_figure(hashbench, save, codes, tmp_path, form, begins):
    own = ["--query-codes", codes["query_codes"], "--database-codes", codes["database_codes"]]
    place = tmp_path / f"curves.{form}"
    assert hashbench("evaluate", *own, "--affinity", save("a.npy", LEVELS), "--curves", place).exit_code == 0
    assert place.read_bytes().startswith(begins)


# ---------------------------------------------------------------- on the command line


@pytest.mark.parametrize("relevance", ["labels", "multi-hot", "dense", "csr"])
def test_own_codes_are_scored_on_the_command_line(hashbench, save, codes, relevance):
    if relevance in ("labels", "multi-hot"):
        ours, theirs = CLASSES if relevance == "labels" else MULTI_HOT
        options = ["--query-labels", save("ql.npy", ours), "--database-labels", save("dl.npy", theirs)]
        levels = ours @ theirs.T if relevance == "multi-hot" else (ours[:, None] == theirs).astype(int)
    else:
        saved = save("a.npz", sp.csr_array(LEVELS)) if relevance == "csr" else save("a.npy", LEVELS)
        options, levels = ["--affinity", saved], LEVELS
    result = hashbench(
        *("evaluate", "--query-codes", codes["query_codes"], "--database-codes", codes["database_codes"]),
        *(*options, "--metric", "AP", "--format", "json"),
    )
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert list(content) == ["AP"]
    assert list(content["AP"]) == [*SUMMARY]
    assert content["AP"]["mean"] == pytest.approx(np.mean(by_hand(levels)), abs=1e-14)
    assert len(str(content["AP"]["mean"])) > 12  # full precision
    assert content["AP"]["n_queries"] == 7
    assert content["AP"]["n_undefined"] == 0


def test_own_packed_codes_are_scored_on_the_command_line(hashbench, save, codes):
    packed = [save(f"{i}.npy", np.packbits(c, axis=1, bitorder="little")) for i, c in enumerate((QUERY, DATABASE))]
    common = ["--affinity", save("a.npy", LEVELS), "--format", "csv"]
    plain = ["--query-codes", codes["query_codes"], "--database-codes", codes["database_codes"]]
    own = hashbench("evaluate", "--query-codes", packed[0], "--database-codes", packed[1], "--bits", 11, *common)
    assert own.exit_code == 0
    assert own.stdout == hashbench("evaluate", *plain, *common).stdout
    without = hashbench("evaluate", "--query-codes", packed[0], "--database-codes", packed[1], *common)
    assert without.exit_code == 1
    assert "--bits" in without.stderr


def test_superclasses_make_a_second_level(tmp_path):
    codes = np.random.default_rng(0).random((30, 8)) < 0.5
    labels = np.arange(30) % 6
    paths = {}
    for name, array in {"codes": codes, "labels": labels, "coarse": labels // 2}.items():
        for role, rows in (("query", slice(0, 10)), ("database", slice(10, 30))):
            paths[f"{role}_{name}"] = str(tmp_path / f"{role}_{name}.npy")
            np.save(paths[f"{role}_{name}"], array[rows])
    levels = np.equal.outer(labels[:10], labels[10:]) * 1 + np.equal.outer(labels[:10] // 2, labels[10:] // 2)
    expected = evaluate(codes[:10], codes[10:], levels, ["NDCG", "AP"])
    assert scores(["NDCG", "AP"], **paths).summary == expected.summary
    del paths["query_coarse"]
    with pytest.raises(HashbenchError, match="superclasses are needed of both"):
        scores(["NDCG"], **paths)


def test_labels_in_one_column_are_refused_even_if_they_are_bits(tmp_path):
    codes, labels = np.eye(4, dtype=bool), np.array([0, 1, 0, 1])
    with pytest.raises(HashbenchError, match=r"in shape \(n,\)"):
        evaluate(codes, codes, (labels[:, None], labels[:, None]))
    for name, array in {"c": codes, "l": labels}.items():
        np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises(HashbenchError, match="Got --query-labels"):
        read_own(
            query_codes=str(tmp_path / "c.npy"),
            database_codes=str(tmp_path / "c.npy"),
            query_labels=str(tmp_path / "l.npy"),
        )


# ---------------------------------------------------------------- the page on own codes


def test_the_commands_of_the_page_run_as_they_are(hashbench, digits_data, empty_folder):
    text = (ROOT / "docs" / "own-codes.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, {})
    commands = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)).splitlines()
    done = [hashbench(*command.split()[1:]) for command in commands]
    assert [one.exit_code for one in done] == [0] * 10
    numbers = [re.findall(r"[01]\.\d{4}", one.stdout) for one in done[:3]]
    assert len(numbers[0]) == 24
    assert numbers[0] == numbers[1] == numbers[2]
    assert "mine codes=own" in done[5].stdout
    assert {"curves.svg", "curves.csv"} <= {path.name for path in empty_folder.iterdir()}
    assert {path.name for path in (empty_folder / "results").iterdir() if path.is_dir()} >= {"digits", "flowers"}
