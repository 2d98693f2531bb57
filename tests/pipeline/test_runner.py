import itertools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers.paths import built_in_methods
from helpers.result_files import contents, rows_in
from helpers.thoroughness import ALL

from hashbench.bits import unpack
from hashbench.cards import method_card
from hashbench.method import HashMethod
from hashbench.pipeline import grid
from hashbench.registry import get_method
from hashbench.store import hdf5

GRID = ["run", "--method", "itq", "--method", "lsh"]
GRID += ["--bits", 16, "--bits", 32, "--seed", 0, "--seed", 1, "--metric", "AP", "--metric", "P@r2"]


@pytest.fixture
def fits(monkeypatch):
    """Count how often each method is fitted."""
    counts, original = Counter(), HashMethod.fit

    def fit(self, X, y=None):
        counts[type(self).__name__] += 1
        return original(self, X, y)

    monkeypatch.setattr(HashMethod, "fit", fit)
    return counts


def notes(result):
    """Return the note on each job, in the order of their line numbers."""
    lines = [re.fullmatch(r"\[(\d+)/(\d+)\] (.*?): (.*)", line).groups() for line in result.stderr.splitlines()]
    assert [int(line[0]) for line in lines] == list(range(1, len(lines) + 1))
    return [line[3] for line in lines]


# ---------------------------------------------------------------- jobs


def test_grid_has_each_combination_once_and_no_seeds_for_methods_without_randomness():
    jobs = grid.grid(["digits", "digits"], ["pcah", "lsh", "pcah"], [16, 8, 16], [3, 1, 3], {})
    keys = [(job.method, job.n_bits, job.seed) for job in jobs]
    assert keys == [("pcah", 16, 0), ("pcah", 8, 0), *itertools.product(["lsh"], [16, 8], [3, 1])]


@pytest.mark.parametrize(("methods", "seeds"), [(["pcah"], [0]), (["pcah", "constant"], [0, 0]), (["lsh"], [5, 3])])
def test_a_method_without_randomness_runs_with_seed_0_whether_or_not_others_draw(methods, seeds):
    assert [job.seed for job in grid.grid(["digits"], methods, [24], [5, 3], {})] == seeds
    assert [job.seed for job in grid.grid(["digits"], [*methods, "itq"], [24], [5, 3], {})] == [*seeds, 5, 3]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((repr(value), value) for value in (50, -0.5, True, None, "5", [1, 2], (1, 2), "a,b")),
        *((text, text) for text in ("full", "", "a=b", "[x,y]", "{[]: 1}", "{[1]}", "-" * 6_000 + "1", "(" * 10_000)),
    ],
)
def test_parameter_is_a_python_literal_or_else_a_string(text, value):
    parsed = grid.parse_params([f"n={text}"])["n"]
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("20,50", (20, 50)),
        ("0.1, 'a,b', None", (0.1, "a,b", None)),
        ("[1,2],[3]", ([1, 2], [3])),
        ("full,simplified", ("full", "simplified")),
        ("5, full", (5, "full")),
        ("hello,(1,2)", ("hello", (1, 2))),
        ("'x,y',z", ("x,y", "z")),
        ('z,"it\'s,one"', ("z", "it's,one")),
        (r"'a\',b',z", ("a',b", "z")),
        ("{'a,(': [1, 2]},z", ({"a,(": [1, 2]}, "z")),
        ("[x,y],z", ("[x,y]", "z")),
        ("it's,bob's", ("it's", "bob's")),
        ("a),b", ("a)", "b")),
    ],
)
def test_values_with_commas_between_them_are_a_sweep(text, values):
    parsed = grid.parse_params([f"n={text}"])["n"]
    assert isinstance(parsed, grid.Sweep)
    assert tuple(parsed) == values


def settings(methods, params):
    return [(job.method, dict(job.params)) for job in grid.grid(["digits"], methods, [8], [0], params)]


def test_each_combination_of_swept_values_is_one_job():
    params = grid.parse_params(["n_items=500,600", "ridge=0.5,0.01"])
    assert settings(["ksh"], params) == [  # 0.01 is the default, and not named
        ("ksh", {"n_items": 500, "ridge": 0.5}),
        ("ksh", {"n_items": 500}),
        ("ksh", {"n_items": 600, "ridge": 0.5}),
        ("ksh", {"n_items": 600}),
    ]
    assert settings(["itq"], grid.parse_params(["n_iter=20,50,20"])) == [("itq", {"n_iter": 20}), ("itq", {})]


def test_a_parameter_of_one_method_overrides_those_of_all_and_reaches_no_other():
    params = grid.parse_params(["ksh:n_items=5000", "bre:tol=0.1,0.2"])
    expected = [("ksh", {"n_items": 5000}), ("bre", {"tol": 0.1}), ("bre", {"tol": 0.2}), ("lsh", {})]
    assert settings(["ksh", "bre", "lsh"], params) == expected
    general = {"n_items": 700, "ksh:n_items": 800}
    assert settings(["ksh", "bre"], general) == [("ksh", {"n_items": 800}), ("bre", {"n_items": 700})]
    assert settings(["ksh", "lsh"], {"ksh:preset": "paper"})[0][1]["n_steps"] == 500


def test_a_method_may_come_several_times_with_different_parameters():
    methods = [("ksh", {"n_items": 500}), ("ksh", {"ridge": 0.5}), ("ksh", {"n_items": 500})]
    assert settings(methods, {}) == [("ksh", {"n_items": 500}), ("ksh", {"ridge": 0.5})]


@pytest.mark.parametrize("name", built_in_methods())
def test_no_value_of_a_parameter_is_a_sequence_that_looks_like_a_sweep(name):
    card = method_card(name)
    values = [*card.params.values(), *(value for name in card.presets for value in card.preset(name, 16).values())]
    assert not any(isinstance(value, tuple | list) for value in values)


# ---------------------------------------------------------------- run


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


@pytest.mark.usefixtures("digits_data")
def test_grid_of_eight_lands_in_one_sorted_file(hashbench, results, fits):
    result = hashbench(*GRID, "--results", results)
    assert result.exit_code == 0
    assert fits == {"ITQ": 4, "LSH": 4}
    assert notes(result) == ["reused dataset, encoded codes, computed scores"] + ["encoded codes, computed scores"] * 7
    rows = rows_in(results / "digits")
    keys = [(row["method"], int(row["n_bits"]), int(row["seed"]), row["metric"]) for row in rows]
    assert keys == list(itertools.product(["itq", "lsh"], [16, 32], [0, 1], ["AP", "P@r2"]))
    assert {row["params"] for row in rows} == {'{"n_iter": 50}', "{}"}
    assert {(row["n_queries"], row["n_undefined"], row["method_version"]) for row in rows} == {("200", "0", "1")}
    assert len({row["value"] for row in rows}) == 16
    for row in rows:
        assert 0 < float(row["low"]) <= float(row["value"]) <= float(row["high"]) < 1
        assert re.fullmatch(r"0\.\d{6}", row["value"])


@pytest.mark.usefixtures("digits_data")
def test_a_second_run_reuses_every_step_and_a_forced_one_repeats_it_with_the_same_bytes(hashbench, results, fits):
    first = hashbench(*GRID, "--results", results)
    content = contents(results / "digits")
    second = hashbench(*GRID, "--results", results)
    assert fits == {"ITQ": 4, "LSH": 4}
    assert notes(second) == ["reused dataset, reused codes, reused scores"] + ["reused codes, reused scores"] * 7
    assert second.stdout == first.stdout
    assert contents(results / "digits") == content
    forced = hashbench(*GRID, "--results", results, "--force")
    assert fits == {"ITQ": 8, "LSH": 8}
    assert all(note.endswith("encoded codes, computed scores") for note in notes(forced))
    assert contents(results / "digits") == content


@pytest.mark.usefixtures("digits_data")
def test_another_metric_is_scored_without_encoding_again(hashbench, results, fits):
    command = ["run", "--method", "lsh", "--bits", 16, "--results", results]
    hashbench(*command, "--metric", "AP")
    result = hashbench(*command, "--metric", "AP", "--metric", "AP@7", "--metric", "AP@7:retrieved")  # which are one
    assert notes(result) == ["reused dataset, reused codes, computed scores"]
    assert fits == {"LSH": 1}
    assert [row["metric"] for row in rows_in(results / "digits")] == ["AP", "AP@7"]
    assert notes(hashbench(*command, "--metric", "AP@7")) == ["reused dataset, reused codes, reused scores"]


@pytest.mark.usefixtures("digits_data")
def test_parameters_have_their_own_codes_and_rows(hashbench, results, fits):
    for params in ([], ["--param", "n_iter=0"], ["--param", "n_iter=1"], ["--param", "n_iter=0"]):
        hashbench("run", "--method", "itq", "--bits", 8, "--metric", "AP", *params, "--results", results)
    rows = rows_in(results / "digits")
    assert sorted(row["params"] for row in rows) == ['{"n_iter": 0}', '{"n_iter": 1}', '{"n_iter": 50}']
    assert len({row["value"] for row in rows}) == 3
    assert fits == {"ITQ": 3}


# ---------------------------------------------------------------- changed and damaged files


@pytest.mark.parametrize("changes", [{"seed": 1}, {"labels": np.arange(40) % 3}], ids=["items", "labels"])
def test_changed_dataset_is_encoded_and_scored_again(hashbench, results, tiny_file, changes):
    command = ["run", "--method", "lsh", "--bits", 8, "--metric", "AP", "--results", results, "--dataset"]
    hashbench(*command, tiny_file())
    (before,) = rows_in(results / "tiny")
    result = hashbench(*command, tiny_file(**changes))
    assert notes(result) == ["reused dataset, encoded codes, computed scores"]
    rows = rows_in(results / "tiny")
    assert before in rows
    (after,) = (row for row in rows if row["dataset_fingerprint"] != before["dataset_fingerprint"])
    assert after["value"] != before["value"]


def encoded(result):
    """Return the path of the codes file that `encode` prints."""
    assert result.exit_code == 0
    return result.stdout.strip()


def test_codes_of_changed_content_are_not_scored(hashbench, tiny_file):
    path = tiny_file()
    codes = encoded(hashbench("encode", "--method", "lsh", "--bits", 8, "--dataset", path))
    old = hdf5.read_dataset(path).fingerprint
    assert hashbench("evaluate", codes, "--dataset", path).exit_code == 0
    new = hdf5.read_dataset(tiny_file(seed=1)).fingerprint
    result = hashbench("evaluate", codes, "--dataset", path)
    assert result.exit_code == 1
    assert f"{codes} was encoded from tiny with content {old}, but dataset tiny now holds {new}. " in result.stderr
    assert "hashbench encode --method lsh --dataset " in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("digits_data")
def test_bits_that_flip_in_the_cache_change_no_result(hashbench, results, data):
    """Flip bits in datasets, codes and scores: rows stay the same, and most damage is reported."""
    command = ["run", "--method", "lsh", "--bits", 8, "--results", results]
    assert hashbench(*command).exit_code == 0
    fresh = contents(results / "digits")
    rng, n_reported = np.random.default_rng(0), 0
    for folder in ("scores", "codes", "datasets"):
        for _ in range(40 if ALL else 2):
            (path,) = (data / folder).rglob("*.h5")
            content = bytearray(path.read_bytes())
            for position in rng.integers(len(content), size=40):
                content[position] ^= 1 << rng.integers(8)
            path.write_bytes(content)
            (results / "digits" / "lsh.csv").unlink()
            done = hashbench(*command)
            assert done.exit_code == 0, done.stderr
            assert contents(results / "digits") == fresh
            n_reported += "damaged" in done.stderr
    assert n_reported >= 3


@pytest.mark.usefixtures("digits_data")
def test_codes_are_those_of_the_method_on_its_own_and_record_it(hashbench, digits):
    method = get_method("itq")(12, random_state=3, n_iter=2).fit(digits.features[digits.train])
    path = encoded(hashbench("encode", "--method", "itq", "--bits", 12, "--seed", 3, "--param", "n_iter=2"))
    with hdf5.open_codes(Path(path)) as codes:
        assert codes.made.job == ("digits", "pixels", "itq", '{"n_iter": 2}', 12, 3)
        assert codes.made.dataset_fingerprint == digits.fingerprint
        assert min(codes.fit_seconds, codes.encode_seconds) > 0
        for role in ("query", "database"):
            unpacked = unpack(getattr(codes, role)[:], 12)
            np.testing.assert_array_equal(unpacked, method.transform(digits.features[getattr(digits, role)]))


# ---------------------------------------------------------------- interrupted


def test_an_interrupted_run_keeps_finished_jobs_and_the_next_one_completes(hashbench, results, tiny_file, monkeypatch):
    command = ["run", "--method", "lsh", "--bits", 16, "--metric", "AP", *(f"--seed={seed}" for seed in range(4))]
    command += ["--dataset", tiny_file()]
    fit, seeds = HashMethod.fit, []

    def interrupted(self, X, y=None):
        seeds.append(self.random_state)
        if seeds == [0, 1, 2]:
            raise KeyboardInterrupt
        return fit(self, X, y)

    monkeypatch.setattr(HashMethod, "fit", interrupted)
    cut = hashbench(*command, "--results", results)
    assert cut.exit_code == 130
    *lines, last = cut.stderr.splitlines()
    assert last.startswith("Error: interrupted; finished steps are kept.")
    assert [line[:5] for line in lines] == ["[1/4]", "[2/4]"]
    assert len(rows_in(results / "tiny")) == 2
    assert hashbench(*command, "--results", results).exit_code == 0
    assert seeds == [0, 1, 2, 2, 3]  # encoded codes are reused
    whole = hashbench(*command, "--results", results / "whole", "--force")
    assert whole.exit_code == 0
    assert contents(results / "tiny") == contents(results / "whole" / "tiny")
