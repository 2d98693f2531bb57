import json
import pickle
import re

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.command_options import options
from helpers.error_sentences import complaint
from helpers.paths import ROOT
from helpers.thoroughness import slow

from hashbench.pipeline.cluster import count_rows
from hashbench.pipeline.own_codes import OwnFiles, read_own
from hashbench.scoring import counting

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
    """Save an array, perhaps in shards too; return its path, or the pattern of its shards."""

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
    def whole(value):
        if isinstance(value, tuple):
            return tuple(map(whole, value))
        return value.replace("-*", "") if isinstance(value, str) else value

    return {key: whole(value) for key, value in specs.items()}


def sharded(**specs):
    return read_own(OwnFiles(**specs)).problem


def assert_same_scores(**specs):
    """Check that shards score as the same codes and labels in one file each."""
    actual = sharded(**specs).evaluate(METRICS)
    expected = read_own(OwnFiles(**one_file(specs))).problem.evaluate(METRICS)
    assert (actual.n_undefined, actual.notes) == (expected.n_undefined, expected.notes)
    for name, scores in expected.scores.items():
        np.testing.assert_array_equal(actual.scores[name], scores, err_msg=name)


RELEVANCE = {
    "classes": (CLASSES,),
    "float classes": (tuple(labels.astype(float) for labels in CLASSES),),
    "words": (tuple(np.array(["a", "bb", "c", "d", "e"])[labels] for labels in CLASSES),),
    "column": (tuple(labels[:, None] for labels in CLASSES),),
    "multi-hot": (MULTI_HOT,),
    "superclasses": (CLASSES, tuple(labels // 2 for labels in CLASSES)),
}


def saved_labels(save, kind, cuts):
    """Save classes, perhaps with superclasses, those of the database in shards."""
    classes, *coarse = RELEVANCE[kind]
    files = {"query_labels": save("ql", classes[0]), "database_labels": save("dl", classes[1], cuts)}
    return files | ({"coarse": (save("qc", coarse[0][0]), save("dc", coarse[0][1], cuts))} if coarse else {})


@pytest.mark.parametrize("block", [5, *slow(1 << 18)])
@pytest.mark.parametrize("cuts", [CUTS, (30,), ()], ids=["as codes", "otherwise", "one file"])
@pytest.mark.parametrize("kind", RELEVANCE)
def test_labels_in_shards_or_in_one_file_score_as_those_in_memory(save, codes, monkeypatch, kind, cuts, block):
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * block)
    assert_same_scores(**codes, **saved_labels(save, kind, cuts))


@pytest.mark.parametrize("kind", ["classes", "words", "superclasses"])
def test_items_to_ignore_in_shards_are_those_in_memory(save, codes, monkeypatch, kind):
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * 5)
    cameras, ids = rng.integers(0, 3, 50), rng.integers(0, 20, 50)
    files = {"exclude_same_id": (save("qi", ids[:9]), save("di", ids[9:]))}
    files |= {"groups": (save("qg", cameras[:9]), save("dg", cameras[9:], (30,)))}
    files |= {"junk_label": (str(RELEVANCE[kind][0][1][5]),), **saved_labels(save, kind, CUTS)}
    assert_same_scores(**codes, **files)
    wanted = {"random_orders": 3}
    found, expected = (
        read(**specs).evaluate(["AP", "LGAP@r2"], **wanted)
        for read, specs in ((sharded, codes | files), (sharded, one_file(codes | files)))
    )
    assert found.summary == expected.summary
    found = sharded(**codes, **files).thresholds()
    assert found.n_relevant < sharded(**codes, **files | {"junk_label": ()}).thresholds().n_relevant


WORDS = np.array(["c0", "c1", "c2", "c3", "c4"])


@pytest.mark.parametrize("cuts", [CUTS, ()], ids=["shards", "one file"])
def test_words_that_the_database_lacks_are_reported_as_for_one_file(save, codes, monkeypatch, cuts):
    monkeypatch.setattr("hashbench.pipeline.sliced_codes._PAIRED", 6)
    known = np.array([word.replace("c4", "C4") for word in WORDS])
    labels = {"query_labels": save("ql", WORDS[CLASSES[0]]), "database_labels": save("dl", known[CLASSES[1]], cuts)}
    assert "the nearest there is 'C4'" in sharded(**codes, **labels).thresholds().notes[0]
    assert_same_scores(**codes, **labels)
    labels["query_labels"] = save("ql", np.char.add("d", WORDS)[CLASSES[0]])
    message = complaint(lambda: sharded(**codes, **labels))
    assert message == complaint(read_own, OwnFiles(**one_file(codes | labels)))
    assert message.startswith("no class of the queries is a class of the database")


@pytest.mark.parametrize("n_constant", [12, 3, 2])
def test_bits_that_never_change_are_reported_as_for_one_file(save, n_constant):
    some = np.where(np.arange(12) < n_constant, DATABASE[0], DATABASE)
    codes = {"query_codes": save("q", QUERY), "database_codes": save("d", some, CUTS), "affinity": save("a", LEVELS)}
    assert_same_scores(**codes)
    expected = sharded(**one_file(codes)).evaluate(["AP"]).notes
    assert len(expected) == (n_constant > 2)
    for result in (sharded(**codes), sharded(**one_file(codes))):
        assert result.thresholds().notes == expected


@pytest.mark.parametrize("matrix", [LEVELS, sp.csr_array(LEVELS)], ids=["dense", "csr"])
def test_an_affinity_scores_as_in_memory(save, codes, monkeypatch, matrix):
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * 7)
    assert_same_scores(**codes, affinity=save("a", matrix))


@pytest.mark.parametrize("rule", ["same-label", "shared-labels", "distance", "explicit"])
def test_codes_of_a_dataset_score_as_in_memory(save, tiny_file, rule):
    query, database = save("tq", rng.random((8, 6)) < 0.5), save("td", rng.random((32, 6)) < 0.5, (3, 20))
    assert_same_scores(query_codes=query, database_codes=database, dataset=str(tiny_file(rule)))


def packed(order):
    return lambda codes: np.packbits(codes, axis=1, bitorder=order)


def integers(codes):
    """Write codes as 64-bit integers, of which only the first is large."""
    numbers = codes @ (1 << np.arange(12))
    numbers[0] = -numbers[0] - 2**40
    return numbers


FORMS = {  # each with its options
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
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * 4)
    write, of_form = FORMS[form]
    paths = {"query_codes": save("q", write(QUERY)), "database_codes": save("d", write(DATABASE), CUTS)}
    assert_same_scores(**paths, **of_form, affinity=save("a", LEVELS))


def test_a_manifest_may_mix_hdf5_and_npy(save, codes, tmp_path):
    with h5py.File(tmp_path / "some.h5", "w") as file:
        file["train/codes"], file["other"] = DATABASE[2:], DATABASE
    (tmp_path / "all.toml").write_text('shards = ["d-8.npy", "d-9.npy", "some.h5:train/codes"]\n')
    codes["affinity"] = save("a", LEVELS)
    listed = sharded(**codes | {"database_codes": f"{tmp_path}/all.toml"})
    assert listed.evaluate(METRICS).summary == sharded(**codes).evaluate(METRICS).summary


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (DATABASE + 2 * (np.arange(N_DATABASE) == 33)[:, None], "database codes from row 30 on hold"),
        (np.array(["abc"] * 37 + ["ab"] * 4), "row 7 (the first is 0) has 2 digits, most others 3"),
        (np.array(["abc"] * 30 + ["ab"] * 11), "database codes from row 30 on have 8 bits, and those before 12;"),
    ],
    ids=["no bits", "texts", "texts of a block"],
)
def test_codes_that_are_wrong_further_on_are_reported_by_their_rows(save, monkeypatch, wrong, words):
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * 10)
    query = np.array(["abc"] * 9) if wrong.ndim == 1 else QUERY.astype(int)
    files = {"query_codes": save("q", query), "database_codes": save("d", wrong, CUTS), "affinity": save("a", LEVELS)}
    monkeypatch.setattr("hashbench.pipeline.own_codes._TRIED", 10)
    monkeypatch.setattr("hashbench.scoring.code_statistics._FEW_ROWS", 10)
    monkeypatch.setattr("hashbench.scoring.code_statistics._ROWS", 10)
    monkeypatch.setattr("hashbench.scoring.code_statistics._N_RUNS", 1)
    assert words in complaint(lambda: sharded(**files).evaluate(["AP"]))


def test_few_queries_of_a_kind_leave_the_labels_of_the_database_on_disk(save, codes):
    own = sharded(**codes, query_labels=save("ql", CLASSES[0]), database_labels=save("dl", CLASSES[1], (30,)))
    part = own.codes.part(np.array([3, 1])).relevance
    assert part.is_read_in_slices
    assert len(pickle.dumps(part)) < 3000
    rows = slice(0, N_DATABASE)
    np.testing.assert_array_equal(part.block(slice(None), rows), own.codes.relevance.block(np.array([3, 1]), rows))
    chosen = np.array([40, 2, 2, 7])
    np.testing.assert_array_equal(part.part(slice(None), chosen).database_labels, CLASSES[1][chosen])


def test_a_shard_goes_to_other_processes_as_paths_and_not_as_rows(save, codes):
    own = sharded(**codes, query_labels=save("ql", CLASSES[0]), database_labels=save("dl", CLASSES[1], (30,)))
    task = pickle.dumps((own.codes.query, own.codes.database, own.codes.n_bits, own.codes.relevance))
    assert len(task) < 3000
    first, second = (count_rows(*pickle.loads(task), rows) for rows in (slice(0, 25), slice(25, N_DATABASE)))
    whole = count_rows(*pickle.loads(task), slice(0, N_DATABASE))
    np.testing.assert_array_equal((first + second).histogram.counts, whole.histogram.counts)


# ---------------------------------------------------------------- on the command line


def test_shards_are_scored_on_the_command_line_as_one_file_is(hashbench, save, codes, tmp_path):
    labels = {"query_labels": save("ql", CLASSES[0]), "database_labels": save("dl", CLASSES[1], CUTS)}
    outputs = {"per_query": tmp_path / "scores.csv", "curves": tmp_path / "curves.csv"}

    def evaluated(**specs):
        done = hashbench("evaluate", *options(**specs, **outputs, format="json"))
        assert done.exit_code == 0, done.stderr
        return [done.stdout, *(path.read_bytes() for path in outputs.values())]

    expected = evaluated(**one_file(codes | labels))
    assert evaluated(**codes, **labels) == expected
    assert evaluated(**one_file(codes), **labels) == expected


# ---------------------------------------------------------------- the page


def test_the_commands_of_the_page_run_as_they_are(hashbench, empty_folder):
    text = (ROOT / "docs" / "scale.md").read_text()
    section = text[text.index("## Databases in shards") :].partition("\n## ")[0]
    for block in re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE):
        exec(block, {})
    commands = "".join(re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)).splitlines()
    done = [hashbench(*(word.strip("'") for word in command.split()[1:]), "--format", "json") for command in commands]
    assert [result.exit_code for result in done] == [0] * 2, [result.stderr for result in done]
    first, second = (json.loads(result.stdout) for result in done)
    assert first == second
