import json
import re
import shutil
import unicodedata
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.command_options import options

from hashbench import evaluate
from hashbench.affinity import Explicit
from hashbench.errors import HashbenchError
from hashbench.pipeline import own_codes
from hashbench.pipeline.own_codes import OwnFiles, Saving
from hashbench.pipeline.preparation import dataset_path
from hashbench.reports.aggregate import all_lines
from hashbench.store import hdf5
from hashbench.store.results import read_results, read_rows
from hashbench.store.score_cache import find_scores

rng = np.random.default_rng(0)
QUERY, DATABASE = rng.random((7, 11)) < 0.5, rng.random((40, 11)) < 0.5
CLASSES = rng.integers(0, 3, 7), rng.integers(0, 3, 40)
MULTI_HOT = rng.integers(0, 2, (7, 4)), rng.integers(0, 2, (40, 4))
LEVELS = rng.integers(0, 3, (7, 40))


@pytest.fixture
def save(tmp_path):
    """Save an array or sparse matrix, and return its path."""

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


def assert_ap(levels, **specs):
    """Check the AP of codes read from files."""
    np.testing.assert_allclose(
        read_own(**specs).problem.evaluate(["AP"]).scores["AP"].mean, by_hand(levels), atol=1e-12
    )


def by_hand(levels):
    """Compute the expected AP of each query, rank by rank: share of relevant pairs at and before each rank.

    Items of level -1 are left out.
    """
    distances = (QUERY[:, None] != DATABASE[None]).sum(axis=2)
    scores = []
    for distance, grades in zip(distances, levels, strict=True):
        distance, level = distance[grades >= 0], grades[grades >= 0] > 0
        precision, before, rel_before = 0.0, 0, 0
        for d in np.unique(distance):
            size, n_rel = int((distance == d).sum()), int(level[distance == d].sum())
            for u in range(1, size + 1):
                others = (u - 1) * (n_rel - 1) / (size - 1) if size > 1 else 0
                precision += n_rel / size * (rel_before + 1 + others) / (before + u)
            before, rel_before = before + size, rel_before + n_rel
        scores.append(precision / level.sum())
    return scores


STORED_ZEROS = sp.csr_array(LEVELS + 1)
STORED_ZEROS.data -= 1
RELEVANCE = {  # levels by hand, and the arrays that define them
    "classes": (np.equal.outer(*CLASSES).astype(int), CLASSES),
    "multi-hot": (MULTI_HOT[0] @ MULTI_HOT[1].T, MULTI_HOT),
    "dense": (LEVELS, LEVELS),
    "bool": (LEVELS > 0, LEVELS > 0),
    "csr": (LEVELS, sp.csr_array(LEVELS)),
    "csr_matrix": (LEVELS, sp.csr_matrix(LEVELS)),
    "coo": (LEVELS, sp.coo_array(LEVELS)),
    "stored zeros": (LEVELS, STORED_ZEROS),
}


@pytest.fixture
def relevance(save):
    """Save relevance of some kind: its levels, and its files by option."""

    def write(kind):
        levels, arrays = RELEVANCE[kind]
        if isinstance(arrays, tuple):
            return levels, {"query_labels": save("ql.npy", arrays[0]), "database_labels": save("dl.npy", arrays[1])}
        return levels, {"affinity": save("a.npz" if sp.issparse(arrays) else "a.npy", arrays)}

    return write


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [("npy", "int32"), ("npy", "int64"), ("csv", "int64"), ("parquet", "int32"), ("arrow", "uint32")],
)
def test_hashes_of_32_bits_score_alike_signed_or_not(hashbench, tmp_path, relevance, suffix, kind):
    pd, feather = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.feather")
    writers = {
        "npy": lambda path, table: np.save(path, table["hash"]),
        "csv": lambda path, table: table.to_csv(path, index=False),
        "parquet": lambda path, table: table.to_parquet(path),
        "arrow": lambda path, table: feather.write_feather(table, str(path)),
    }
    files, as_bits = dict(relevance("classes")[1]), dict(relevance("classes")[1])
    for role, n_items in (("query", 7), ("database", 40)):
        bits = np.random.default_rng(3).random((n_items, 32)) < 0.5
        hashes = np.packbits(bits, axis=1).view(">u4").ravel().astype(np.uint32)
        hashes = hashes if kind == "uint32" else hashes.view(np.int32).astype(kind)
        as_bits[f"{role}_codes"], files[f"{role}_codes"] = tmp_path / f"{role}-bits.npy", tmp_path / f"{role}.{suffix}"
        np.save(as_bits[f"{role}_codes"], bits)
        writers[suffix](files[f"{role}_codes"], pd.DataFrame({"hash": hashes}))
    for command in ("evaluate", "thresholds"):
        expected = hashbench(command, *options(**as_bits), "--format", "json")
        scored = hashbench(command, *options(**files), "--bits", 32, "--format", "json")
        assert (scored.exit_code, scored.stdout) == (0, expected.stdout)


@pytest.mark.parametrize("kind", RELEVANCE)
def test_relevance_of_any_kind(relevance, codes, kind):
    levels, files = relevance(kind)
    assert_ap(levels, **codes, **files)
    direct = evaluate(QUERY, DATABASE, levels.astype(int), ["NDCG"])
    evaluation = read_own(**codes, **files).problem.evaluate(["NDCG"])
    np.testing.assert_allclose(evaluation.scores["NDCG"].mean, direct.scores["NDCG"].mean, atol=1e-12)


# ---------------------------------------------------------------- files of other programs


OCTAVE = Path(__file__).parent / "octave" / "codes.mat"  # written by Octave 7.3.0: codes.m beside it
FORMS_OF_OCTAVE = [
    ("B_test", "B_train", None),  # logical, and -1/+1
    ("B_test", "masks", 12),
    ("packed_test", "packed_train", 12),
    ("hex_test", "hex_train", None),
]


@pytest.mark.parametrize(("query_key", "database_key", "n_bits"), FORMS_OF_OCTAVE)
def test_codes_in_a_mat_file_of_octave_score_as_the_same_in_npy(save, query_key, database_key, n_bits):
    rows = np.arange(1, 41)
    numbers = (rows * 37 + rows**2 // 3) % 4096
    bits, labels = (numbers[:, None] >> np.arange(11, -1, -1) & 1).astype(bool), rows % 3
    arrays = {
        "query_codes": bits[:8],
        "database_codes": bits[8:],
        "query_labels": labels[:8],
        "database_labels": labels[8:],
    }
    expected = read_own(**{option: save(f"{option}.npy", array) for option, array in arrays.items()})
    keys = dict(zip(arrays, (query_key, database_key, "y_test", "y_train"), strict=True))
    actual = read_own(**{option: f"{OCTAVE}:{key}" for option, key in keys.items()}, n_bits=n_bits)
    found, wanted = (own.problem.evaluate(["AP", "NDCG@5", "P@r2"]).summary for own in (actual, expected))
    assert found == wanted
    assert (actual.n_bits, actual.fingerprint) == (12, expected.fingerprint)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_classes_may_be_words_however_unicode_spells_them(save, codes, form):
    query, database = (np.array(["Käse", "Öl", "süß"])[labels] for labels in CLASSES)
    database = np.array([unicodedata.normalize(form, word) for word in database.tolist()])
    assert np.isin(database, query).any() == (form == "NFC")
    labels = {"query_labels": save("ql.npy", query), "database_labels": save("dl.npy", database)}
    assert_ap(np.equal.outer(*CLASSES), **codes, **labels)


def test_the_fingerprint_is_of_levels_and_not_of_their_file(save, codes):
    def fingerprint(levels):
        return read_own(**codes, affinity=levels).fingerprint

    dense = fingerprint(save("a.npy", LEVELS))
    assert dense == fingerprint(save("b.npy", LEVELS.astype(float))) == fingerprint(save("c.npz", sp.coo_array(LEVELS)))
    assert dense != fingerprint(save("e.npy", LEVELS[:, ::-1]))
    assert fingerprint(save("h.npy", LEVELS / 10)) == fingerprint(save("i.npy", (LEVELS / 10).astype(np.float32)))
    assert fingerprint(save("f.npy", LEVELS / 16)) != fingerprint(save("g.npy", LEVELS / 32))


# ---------------------------------------------------------------- among the results


@pytest.fixture
def of_digits(digits, save):
    """Codes of digits of some length, as options."""

    def make(n_bits):
        planes = np.random.default_rng(n_bits).normal(size=(64, n_bits))
        bits = (digits.features - digits.features.mean(axis=0)) @ planes > 0
        query, database = (save(f"{r}{n_bits}.npy", bits[getattr(digits, r)]) for r in ("query", "database"))
        return options(query_codes=query, database_codes=database, dataset="digits")

    return make


def test_saved_codes_stand_beside_methods_in_tables_figures_and_tests(hashbench, digits_data, of_digits, empty_folder):
    assert hashbench("run", "--method", "lsh", "--bits", 12, "--metric", "AP").exit_code == 0
    for n_bits in (12, 16):
        keeping = ["--keep-codes"] if n_bits == 12 else []
        done = hashbench("save", "mine", *of_digits(n_bits), "--metric", "AP", *keeping, "--format", "csv")
        assert done.exit_code == 0
        assert f"1 row of 'mine', {n_bits} bits, written to" in done.stderr
        assert "Methods here learn from the 1,000" in done.stderr
        rows = read_rows(empty_folder / "results", "digits")
        (row,) = (row for row in rows if (row.method, row.n_bits) == ("mine", n_bits))
        assert re.search(rf"AP,{row.value},{row.tie_sd},0\.\d+,0\.\d+,,{row.low},{row.high},200,0", done.stdout)
    of_lsh = next(row for row in rows if row.method == "lsh")
    assert row[11:14] == of_lsh[11:14]  # queries and fingerprint
    assert json.loads(row.params) == {"codes": "own"}
    assert find_scores(row) is not None
    table = hashbench("tables", "--dataset", "digits", "--metric", "AP", "--significance").stdout
    assert re.search(r"^\| mine codes=own \|[^|]+\| +- \| +0\.\d+ to 0\.\d+ \|", table, re.MULTILINE)


def test_saved_codes_have_the_group_and_label_that_they_are_given(hashbench, digits_data, of_digits, empty_folder):
    assert hashbench("run", "--method", "lsh", "--bits", 16, "--metric", "AP").exit_code == 0
    save = ["save", "mine", *of_digits(16), "--metric", "AP", "--keep-codes"]
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
    lines = all_lines(read_results("results"))
    assert ("Ours (full)", "pair-based") in set(zip(lines["label"], lines["group"], strict=True))


def test_a_save_replaces_all_rows_of_a_name_length_and_seed(hashbench, save, codes, empty_folder):
    def saved(database, *more):
        own = options(**codes | {"database_codes": database}, affinity=save("a.npy", LEVELS))
        done = hashbench("save", "mine", *own, "--dataset", "flowers", *more)
        assert done.exit_code == 0
        return done.stderr, {(row.seed, row.metric): row for row in read_rows(empty_folder / "results", "flowers")}

    codes_path, others_path = codes["database_codes"], save("d2.npy", DATABASE ^ QUERY[0])
    both = ["--metric", "AP", "--metric", "P@10", "--group", "pair-based", "--label", "Ours"]
    report, first = saved(codes_path, *both)
    assert {*first} == {(0, "AP"), (0, "P@10")}
    assert {(row.dataset, row.features) for row in first.values()} == {("flowers", "own")}
    assert "removed" not in report
    assert "removed" not in saved(codes_path, *both)[0]
    report, second = saved(others_path, "--metric", "AP", "--seed", 1)
    assert {*second} == {(0, "AP"), (0, "P@10"), (1, "AP")}
    assert "removed" not in report
    assert {row.params for row in second.values()} == {'{"codes": "own"}'}  # of all seeds as of the last one
    assert find_scores(second[0, "AP"]) is not None
    report, third = saved(others_path, "--metric", "AP", "--label", "Theirs")
    assert "2 earlier rows of 'mine', 11 bits, seed 0, removed: AP, P@10.\nNot scored again: P@10." in report
    assert {*third} == {(0, "AP"), (1, "AP")}
    assert third[0, "AP"].value == third[1, "AP"].value != first[0, "AP"].value
    assert {row.params for row in third.values()} == {'{"codes": "own", "label": "Theirs"}'}
    assert hashbench("results", "check").exit_code == 0
    assert hashbench("tables", "--dataset", "flowers", "--metric", "AP").stdout.count("Theirs") == 1
    shutil.copytree(empty_folder / "results", empty_folder / "old")
    saved(codes_path, "--metric", "AP", "--label", "Theirs")
    assert "1 changed" in hashbench("diff", "old", "results").stdout


def test_a_save_over_other_labels_keeps_the_rows_of_the_first_ones(hashbench, save, codes, empty_folder):
    for name, levels, metric in (("a.npy", LEVELS, "AP"), ("b.npy", LEVELS[:, ::-1], "P@5")):
        own = options(**codes, affinity=save(name, levels), dataset="flowers", metric=metric)
        done = hashbench("save", "mine", *own)
        assert done.exit_code == 0
    assert "1 row of 'mine', 11 bits, seed 0, over other labels, affinity or vectors kept: AP.\n" in done.stderr
    rows = read_rows(empty_folder / "results", "flowers")
    assert sorted(row.metric for row in rows) == ["AP", "P@5"]
    assert len({row.dataset_fingerprint for row in rows}) == 2


def test_saved_rows_record_what_queries_ignore(hashbench, save, codes, empty_folder):
    cameras = np.array([f"camera {number}" for number in rng.integers(0, 3, len(QUERY) + len(DATABASE))])
    classes, n_queries = (CLASSES[0] + 5, CLASSES[1] + 5), len(QUERY)
    labels = {"query_labels": save("ql.npy", classes[0]), "database_labels": save("dl.npy", classes[1])}
    lines = {"query.csv": cameras[:n_queries], "database.csv": cameras[n_queries:]}
    for name, words in lines.items():
        (empty_folder / name).write_text("\n".join(["path,camera", *(f"a.jpg,{word}" for word in words)]))
    groups = {"groups": ("query.csv:camera", "database.csv:camera")}
    junk = {"junk_label": int(classes[1][0])}
    own = *options(**codes, **labels), "--metric", "AP", "--dataset", "flowers"
    rows = {}
    for ignored in ({}, groups, groups | junk):
        assert hashbench("save", "mine", *own, *options(**ignored)).exit_code == 0
        rows |= {row.params: float(row.value) for row in read_rows(empty_folder / "results", "flowers")}
    values, params = [*rows.values()], [json.loads(text) for text in rows]
    levels = np.equal.outer(*classes).astype(int)
    is_ignored = (levels > 0) & np.equal.outer(cameras[:n_queries], cameras[n_queries:])
    levels[is_ignored] = -1
    assert values[1] == pytest.approx(np.mean(by_hand(levels)), abs=1e-6)
    has_relevant = classes[0] != classes[1][0]
    levels[:, classes[1] == classes[1][0]] = -1
    levels[~has_relevant, 0] = 1  # any, since these queries are not scored
    assert values[2] == pytest.approx(np.mean(np.array(by_hand(levels))[has_relevant]), abs=1e-6)
    assert params[0] == {"codes": "own"}
    assert {*params[1]} == {"codes", "groups"}
    assert params[2] == params[1] | {"junk_label": str(classes[1][0])}
    assert hashbench("results", "check").exit_code == 0
    contents = {row.dataset_fingerprint for row in read_rows(empty_folder / "results", "flowers")}
    shown = hashbench("tables", "--dataset", "flowers", "--metric", "AP", "--output", "tables").stdout
    assert len(contents) == 3
    assert all(f"flowers (own), data {content}" in shown for content in contents)


def test_codes_that_draw_nothing_have_one_seed(hashbench, save, codes, empty_folder):
    own = [*options(**codes, affinity=save("a.npy", LEVELS)), "--metric", "AP", "--dataset", "flowers"]

    def saved(*more):
        done = hashbench("save", *more, *own)
        return done, [(row.seed, json.loads(row.params)) for row in read_rows(empty_folder / "results", "flowers")]

    fixed = {"codes": "own", "draws_nothing": True}
    assert saved("mine", "--draws-nothing")[1] == [(0, fixed)]
    refused, rows = saved("mine", "--draws-nothing", "--seed", 1)
    assert refused.exit_code == 1
    assert "'mine' is saved as drawing nothing at random, but would have rows of seeds 0, 1 at 11" in refused.stderr
    assert rows == [(0, fixed)]
    assert saved("mine", "--seed", 1)[1] == [(0, {"codes": "own"}), (1, {"codes": "own"})]


def test_saved_codes_of_several_lengths_stay_one_line(hashbench, digits_data, of_digits, empty_folder):
    for n_bits, label in ((12, "First"), (16, "Second")):
        saving = ["--metric", "AP", "--keep-codes", "--label", label]
        assert hashbench("save", "mine", *of_digits(n_bits), *saving).exit_code == 0
    rows = read_rows(empty_folder / "results", "digits")
    assert [(row.n_bits, json.loads(row.params)["label"]) for row in rows] == [(12, "Second"), (16, "Second")]
    changed = of_digits(12)
    np.save(changed[1], ~np.load(changed[1]))
    done = hashbench("save", "mine", *changed, "--metric", "AP", "--label", "Second")
    assert "1 earlier row of 'mine', 12 bits, seed 0, removed: AP." in done.stderr
    assert "mine-12-s0.h5 holds other codes, which figures show. Replace them: --keep-codes." in done.stderr


def test_outputs_that_rank_by_cosine_are_saved_as_such(hashbench, save, empty_folder):
    outputs = np.random.default_rng(0).normal(size=(47, 5))
    own = options(query_codes=save("q.npy", outputs[:7]), database_codes=save("d.npy", outputs[7:]), distance="cosine")
    saving = options(affinity=save("a.npy", LEVELS), metric="AP", dataset="flowers")
    assert hashbench("save", "mine", *own, *saving).exit_code == 0
    (row,) = read_rows(empty_folder / "results", "flowers")
    assert json.loads(row.params) == {"codes": "own", "distance": "cosine"}


def test_where_rows_cannot_be_saved_nothing_is_written(hashbench, save, codes, empty_folder):
    (empty_folder / "results" / "flowers").mkdir(parents=True)
    (empty_folder / "results" / "flowers" / "mine.csv").write_text("<<<<<<< ours\n")
    own = options(**codes, affinity=save("a.npy", LEVELS), metric="AP", dataset="flowers")
    done = hashbench("save", "mine", *own)
    assert done.exit_code == 1
    assert "conflict marker" in done.stderr
    assert [path.name for path in empty_folder.iterdir()] == ["results"]


def test_own_labels_take_no_name_of_a_prepared_dataset_in_any_case(tiny):
    hdf5.write_dataset(tiny(name="Flowers"), dataset_path("Flowers"))

    def check(dataset):
        saving = Saving("mine", dataset, Path("results"))
        saving.check("hamming", is_labelled=True)

    check("trees")
    for name in ("Flowers", "flowers"):
        with pytest.raises(HashbenchError, match="'Flowers' is a dataset with its own labels"):
            check(name)


WORDS = np.array(["ant", "bee", "cat", "dog"])


@pytest.fixture
def beside(tiny, tiny_file, save, hashbench):
    """Score codes with a dataset of some rule, and with labels or an affinity beside it."""

    def make(rule, in_shards=False, **changes):
        bits = np.random.default_rng(1).random((40, 9)) < 0.5
        database = save("d-0.npy", bits[8:20] if in_shards else bits[8:])
        if in_shards:
            save("d-1.npy", bits[20:])
            database = database.replace("d-0", "d-*")
        dataset = tiny_file(rule, **changes)
        own = options(query_codes=save("q.npy", bits[:8]), database_codes=database, dataset=dataset)

        def score(**relevance):
            files = {
                key: tuple(save(f"{key}-{row}.npy", part) for row, part in enumerate(array))
                if isinstance(array, tuple)
                else save(f"{key}.npy", array)
                for key, array in relevance.items()
            }
            return hashbench("evaluate", *own, "--metric", "AP", "--metric", "NDCG", *options(**files))

        return score, tiny(rule, **changes)

    return make


@pytest.mark.parametrize("in_shards", [False, True])
@pytest.mark.parametrize(
    ("rule", "relabel"),
    [
        ("same-label", lambda labels: labels),
        ("same-label", lambda labels: WORDS[3 - labels]),
        ("same-label", lambda labels: labels.astype(np.uint64) + np.uint64(2**60)),
        ("same-label", lambda labels: np.eye(4, dtype=int)[labels]),
        ("shared-labels", lambda labels: labels[:, ::-1]),
    ],
    ids=["numbers", "words", "large numbers", "a column each", "several, in other columns"],
)
def test_labels_beside_a_dataset_rate_as_it_does_or_are_refused(beside, rule, relabel, in_shards):
    score, dataset = beside(rule, in_shards)
    without, labels = score(), relabel(dataset.labels)
    assert without.exit_code == 0
    assert "to check that" in without.stderr
    together = score(query_labels=labels[:8], database_labels=labels[8:])
    assert (together.exit_code, together.stdout) == (0, without.stdout)
    assert "to check that" not in together.stderr
    levels = dataset.affinity().block(slice(0, 8), slice(0, 32))
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(32)
        refused = score(query_labels=labels[:8], database_labels=labels[8:][order])
        query, item = np.argwhere(levels != levels[:, order])[0]
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert f"give query {query} and database item {item} (counted from 0)" in refused.stderr
        order = np.random.default_rng(seed).permutation(8)
        refused = score(query_labels=labels[order], database_labels=labels[8:])
        if (levels != levels[order]).any():
            query, item = np.argwhere(levels != levels[order])[0]
            level = levels[order][query, item]
            assert f"give query {query} and database item {item} (counted from 0) level {level}, but" in refused.stderr
            assert f"tiny.h5 gives them level {levels[query, item]}: " in refused.stderr


@pytest.mark.parametrize("rule", ["distance", "explicit"])
def test_where_a_dataset_rates_without_labels_only_its_own_affinity_goes_beside_it(beside, rule):
    score, dataset = beside(rule)
    levels = dataset.affinity().block(slice(0, 8), slice(0, 32)).astype(int)
    together = score(affinity=levels)
    assert (together.exit_code, together.stdout) == (0, score().stdout)
    labels = np.arange(40) % 4
    refused = score(query_labels=labels[:8], database_labels=labels[8:]).stderr
    assert "give query 0 and database item" in refused
    assert f"not by its rule, {rule}." in refused
    levels[5, 17] += 1
    message = f"give query 5 and database item 17 (counted from 0) level {levels[5, 17]}, but"
    assert message in score(affinity=levels).stderr


@pytest.mark.parametrize("n_items", [1, 5, 30])
def test_ratings_are_compared_in_blocks_of_any_size_and_the_item_is_named(monkeypatch, tiny, n_items):
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


def test_superclasses_beside_a_dataset_are_compared_too(beside):
    fine = np.arange(40) % 4
    coarse = np.array([0, 0, 1, 1])[fine]
    score, _ = beside("hierarchy", labels=fine, coarse_labels=coarse)
    labels = {"query_labels": 9 - fine[:8], "database_labels": 9 - fine[8:]}
    refused = score(**labels).stderr
    assert "level 1, but" in refused
    for superclass, exit_code in ((coarse, 0), (fine % 2, 1)):
        done = score(**labels, coarse=(superclass[:8], superclass[8:]))
        assert (done.exit_code, done.stdout) == (exit_code, "" if exit_code else score().stdout)


def test_rows_of_codes_whose_labels_agree_are_the_datasets_and_a_new_name_is_reported(
    hashbench, digits, digits_data, of_digits, save, empty_folder
):
    query, database = save("ql.npy", digits.labels[digits.query]), save("dl.npy", digits.labels[digits.database])
    own = [*options(query_labels=query, database_labels=database, metric="AP"), *of_digits(8)[:-1]]
    assert hashbench("save", "mine", *own, "digits").exit_code == 0
    (row,) = read_rows(empty_folder / "results", "digits")
    assert row.dataset_fingerprint == digits.fingerprint
    assert "'dgits' is not a known" in hashbench("save", "mine", *own, "dgits").stderr
    assert hashbench("save", "mine", *own, "gone.h5").exit_code == 1
    assert not (empty_folder / "results" / "gone.h5").exists()


def test_curves_are_drawn_into_a_figure(hashbench, save, codes, tmp_path):
    figure = tmp_path / "curves.png"
    assert hashbench("evaluate", *options(**codes, affinity=save("a.npy", LEVELS), curves=figure)).exit_code == 0
    assert figure.read_bytes().startswith(b"\x89PNG")


# ---------------------------------------------------------------- on the command line


def test_superclasses_make_a_second_level(save, codes):
    query, database = CLASSES
    levels = np.equal.outer(query, database) * 1 + np.equal.outer(query // 2, database // 2)
    arrays = {"query_labels": query, "database_labels": database}
    files = {name: save(f"{name}.npy", array) for name, array in arrays.items()}
    files["coarse"] = save("qc.npy", query // 2), save("dc.npy", database // 2)
    expected = evaluate(QUERY, DATABASE, levels, ["NDCG", "AP"])
    assert read_own(**codes, **files).problem.evaluate(["NDCG", "AP"]).summary == expected.summary


def test_junk_may_have_several_labels(save, codes):
    labels = {"query_labels": save("ql.npy", CLASSES[0]), "database_labels": save("dl.npy", CLASSES[1])}
    for junk in ([1], [0, 2]):
        expected = evaluate(QUERY, DATABASE, CLASSES, ["AP"], junk_label=junk).summary
        assert read_own(**codes, **labels, junk_label=(*map(str, junk),)).problem.evaluate(["AP"]).summary == expected


DIFFER = "have different ids of the same items, first in row"


@pytest.fixture
def with_ids(hashbench, empty_folder):
    """Score codes and labels of four items, in files that have ids beside them; return the exit code and stderr."""
    for name, order in {"same": [0, 1, 2, 3], "other": [0, 2, 1, 3]}.items():
        for kind, values in {"hash": ["0x01", "0x03", "0x07", "0x0f"], "label": [1, 1, 2, 2]}.items():
            lines = [f"id,{kind}", *(f"item {row},{values[row]}" for row in order)]
            (empty_folder / f"{name}-{kind}.csv").write_text("\n".join(lines) + "\n")

    def scored(codes, labels, *more):
        own = options(query_codes=codes, database_codes=codes, query_labels=labels, database_labels=labels)
        done = hashbench("evaluate", *own, *more)
        return done.exit_code, done.stderr

    return scored


def test_files_with_different_ids_of_the_same_items_are_refused(hashbench, with_ids, empty_folder):
    own, label = "same-hash.csv", "other-label.csv:label"
    assert with_ids(own, "same-label.csv:label")[0] == 0
    code, stderr = with_ids(own, label)
    assert (code, f"{own} and other-label.csv {DIFFER} 1 (the first is 0): item 1" in stderr) == (1, True)
    compared = options(query_codes=own, database_codes=own)
    assert hashbench("compare", own, *compared).exit_code == 0
    assert f"{own} and other-hash.csv {DIFFER} 1" in hashbench("compare", "other-hash.csv", *compared).stderr
    text = (empty_folder / "other-label.csv").read_text()
    (empty_folder / "other-label.csv").write_text(text.replace("item 0", "another"))
    assert "row 0 (the first is 0): item 0 and another" in with_ids(own, label)[1]
    (empty_folder / "other-label.csv").write_text(text.replace("item", "label"))
    assert with_ids(own, label)[0] == 0  # ids of another kind
    labels, ids = np.array([1, 1, 2, 2]), np.array([f"item {row}" for row in (0, 1, 3, 2)])
    np.savez(empty_folder / "other.npz", label=labels, id=ids)
    assert f"{own} and other.npz {DIFFER} 2" in with_ids(own, "other.npz:label")[1]
    np.savez(empty_folder / "one.npz", codes=np.eye(4, 8, dtype=bool), label=labels, id=ids.astype(object))
    assert with_ids("one.npz:codes", "one.npz:label")[0] == 0


def test_ids_that_are_numbers_are_compared_however_they_are_written(with_ids):
    codes, ids = {"codes": np.eye(150, 8, dtype=bool), "label": np.arange(150) % 3}, np.arange(150)
    for name, of in {"codes": ids, "matlab": ids.astype(float), "padded": np.char.zfill(ids.astype(str), 3)}.items():
        np.savez(f"{name}.npz", **codes, id=of)
        np.savez(f"{name}-reversed.npz", **codes, id=of[::-1])
        assert with_ids("codes.npz:codes", f"{name}.npz:label")[0] == 0
        assert with_ids("codes.npz:codes", f"{name}-reversed.npz:label")[0] == 1
    ignored = "--exclude-same-id", "matlab-reversed.npz:id", "codes.npz:id"
    assert DIFFER in with_ids("codes.npz:codes", "codes.npz:label", *ignored)[1]


def test_ids_of_shards_and_of_files_of_several_lengths_are_compared_too(hashbench, empty_folder):
    labels, ids = np.array([1, 1, 2, 2]), np.arange(4)
    for name, order in {"h": ids, "other": [0, 2, 1, 3]}.items():
        for number in range(2):
            with h5py.File(empty_folder / f"{name}-{number}.h5", "w") as file:
                file["codes"], file["labels"], file["id"] = np.eye(4, 8, dtype=bool), labels, 4 * number + ids[order]
        for n_bits in (8, 16):
            of_length = ids if n_bits == 8 else ids[order]
            np.savez(empty_folder / f"{name}{n_bits}.npz", codes=np.eye(4, n_bits, dtype=bool), id=of_length)
    with h5py.File(empty_folder / "whole.h5", "w") as file:  # the labels of all shards, two items exchanged
        file["labels"], file["id"] = np.tile(labels, 2), [0, 1, 2, 7, 4, 5, 6, 3]
    own = options(query_codes="h-0.h5:codes", query_labels="h-0.h5:labels", database_codes="h-[01].h5:codes")
    for database, place in (("h-[01].h5", ""), ("other-[01].h5", "other-0.h5 | 1"), ("whole.h5", "whole.h5 | 3")):
        done = hashbench("evaluate", *own, *options(database_labels=f"{database}:labels"), "--metric", "AP")
        file, _, row = place.partition(" | ")
        assert (done.exit_code, f"h-0.h5 and {file} {DIFFER} {row}" in done.stderr) == (
            (1, True) if row else (0, False)
        )
    rated = options(query_labels="h-0.h5:labels", database_labels="h-0.h5:labels", metric="AP", dataset="flowers")
    for name, code in (("h", 0), ("other", 1)):
        files = options(query_codes=f"{name}{{bits}}.npz:codes", database_codes=f"{name}{{bits}}.npz:codes")
        done = hashbench("save", "mine", *files, *rated)
        assert (done.exit_code, f"other8.npz and other16.npz {DIFFER} 1" in done.stderr) == (code, bool(code))


def test_levels_that_are_not_whole_have_their_default_metrics_on_the_command_line(hashbench, codes, save):
    gains = np.where(LEVELS > 0, 0.25 * LEVELS, 0)
    done = hashbench("evaluate", *options(**codes, affinity=save("gains.npy", gains)), "--format", "csv")
    assert [line.split(",")[0] for line in done.stdout.splitlines()[1:]] == ["NDCG", "NDCG@100"]
    assert "these default metrics are left out: AP, AP@1000, P@100, P@r2." in done.stderr
