"""Codes of several lengths and seeds, saved by one command, against a command for each file."""

import csv
import io
import json

import numpy as np
import pytest
from helpers.json_output import scores_in

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 30)
PLACES = [(n_bits, seed) for n_bits in (8, 12) for seed in (0, 3)]
BITS = {place: RNG.random((30, place[0])) < 0.5 for place in PLACES}


@pytest.fixture
def evaluate(hashbench, empty_folder):
    """Evaluate codes by their names below an empty folder, which is the current one."""
    np.save("ql.npy", LABELS[:6]), np.save("dl.npy", LABELS[6:])

    def run(query, database, *options):
        labels = ("--query-labels", "ql.npy", "--database-labels", "dl.npy", "--metric", "AP", "--metric", "P@5")
        door = ("save", "mine") if options[:1] == SAVED[:1] else ("evaluate",)
        return hashbench(*door, "--query-codes", query, "--database-codes", database, *labels, *options)

    return run


SAVED = ("--dataset", "flowers")
BOTH = ("codes_{bits}_{seed}.npz:query", "codes_{bits}_{seed}.npz:database")


def write(name="codes_{bits}_{seed}.npz", **changes):
    for (n_bits, seed), bits in BITS.items():
        np.savez(name.format(bits=n_bits, seed=seed), **{"query": bits[:6], "database": bits[6:]} | changes)


def saved_rows(folder):
    return (folder / "results/flowers/mine.csv").read_text()


def test_codes_of_all_lengths_and_seeds_are_saved_as_each_on_its_own(evaluate, empty_folder):
    write()
    for n_bits, seed in PLACES:
        name = f"codes_{n_bits}_{seed}.npz"
        assert evaluate(f"{name}:query", f"{name}:database", *SAVED, "--seed", seed).exit_code == 0
    expected = saved_rows(empty_folder)
    (empty_folder / "results/flowers/mine.csv").unlink()
    result = evaluate(*BOTH, *SAVED, "--keep-codes")
    assert result.exit_code == 0, result.stderr
    assert saved_rows(empty_folder) == expected
    assert [line.split()[:2] for line in result.stdout.splitlines()[2:6]] == [[*map(str, place)] for place in PLACES]
    assert "2 rows of 'mine', 12 bits, seed 3, written to results/flowers/mine.csv." in result.stderr
    assert result.stderr.count("'flowers' is not a known or prepared dataset") == 1
    again = evaluate(*BOTH, *SAVED, "--metric", "AP")
    assert "Not scored again" not in again.stderr
    assert saved_rows(empty_folder) == expected


def test_packed_codes_have_the_length_of_their_name_in_files_of_queries_and_database(evaluate, empty_folder):
    for (n_bits, seed), bits in BITS.items():
        packed = np.packbits(bits, axis=1, bitorder="little")
        (empty_folder / f"run{seed}").mkdir(exist_ok=True)
        np.save(f"run{seed}/q-{n_bits:03}.npy", packed[:6])
        np.save(f"run{seed}/d-{n_bits:03}.npy", packed[6:])
    assert evaluate("run{seed}/q-{bits}.npy", "run{seed}/d-{bits}.npy", *SAVED).exit_code == 0
    rows = saved_rows(empty_folder)
    write()
    evaluate(*BOTH, *SAVED)
    assert saved_rows(empty_folder) == rows


def test_a_seed_without_files_at_one_length_is_named(evaluate, empty_folder):
    write()
    assert "there is no file" not in evaluate(*BOTH, *SAVED).stderr
    (empty_folder / "codes_8_3.npz").unlink()
    assert "8 bits: there is no file of seed 3, which other lengths have." in evaluate(*BOTH, *SAVED).stderr


def test_scores_of_all_are_printed(evaluate):
    write()
    expected = {}
    for n_bits, seed in PLACES:
        name = f"codes_{n_bits}_{seed}.npz"
        expected[n_bits, seed] = scores_in(evaluate(f"{name}:query", f"{name}:database", "--format", "json").stdout)
    printed = {form: evaluate(*BOTH, *SAVED, "--format", form).stdout for form in ("json", "csv", "table")}
    scores = json.loads(printed["json"])
    assert {(each["n_bits"], each["seed"]): each["scores"] for each in scores} == expected
    for row in csv.DictReader(io.StringIO(printed["csv"])):
        mean = expected[int(row["n_bits"]), int(row["seed"])][row["metric"]]["mean"]
        assert (float(row["mean"]), f"{mean:.4f} " in printed["table"]) == (round(mean, 6), True)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"database": BITS[12, 3][7:]}, "codes of 6 queries and 23 database items, and in the files before of 6"),
        ({"query": BITS[8, 0][:6]}, "query codes are booleans of shape (6, 8), a column for each bit, and codes of 12"),
        ({"query": BITS[12, 3][:6].T}, "has 12 rows and 6 columns, expected 6 rows, one per item"),
        ({"other": 1, "query": np.full((6, 12), 5)}, "values that are not 0 or 1"),
    ],
)
def test_a_failure_in_one_file_is_named_and_nothing_is_saved(evaluate, empty_folder, data, broken, words):
    write()
    np.savez("codes_12_3.npz", **{"query": BITS[12, 3][:6], "database": BITS[12, 3][6:]} | broken)
    before = sorted([*empty_folder.rglob("*"), *data.rglob("*")])
    result = evaluate(*BOTH, *SAVED, "--keep-codes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1].startswith("Error: codes_12_3.npz: ")
    assert words in result.stderr.splitlines()[-1]
    assert sorted([*empty_folder.rglob("*"), *data.rglob("*")]) == before


def test_brackets_beside_braces_are_part_of_the_name(evaluate, empty_folder):
    (empty_folder / "[a]").mkdir()
    write("[a]/codes_{bits}_{seed}.npz")
    result = evaluate(*(f"[a]/{name}" for name in BOTH), *SAVED)
    assert result.exit_code == 0, result.stderr
    assert saved_rows(empty_folder).count("\n") == 1 + 2 * len(PLACES)


def test_a_file_whose_own_name_has_braces_is_one_file(evaluate, empty_folder):
    np.savez("codes_{bits}_{seed}.npz", query=BITS[8, 0][:6], database=BITS[8, 0][6:])
    assert "AP" in evaluate(*BOTH).stdout
