import csv
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from hashbench import storage
from hashbench.cli import cli
from hashbench.tables.uncertainty import interval


def test_interval_is_that_of_the_mean_and_the_same_each_time():
    scores = np.random.default_rng(0).random(400)
    low, high = interval(scores)
    margin = 1.96 * scores.std(ddof=1) / 20  # by the central limit theorem
    assert (low, high) == pytest.approx((scores.mean() - margin, scores.mean() + margin), abs=margin / 8)
    assert interval(scores) == (low, high)


# ---------------------------------------------------------------- from the data folder to the table

GRID = ["--method=itq", "--method=pca-rr", "--method=lsh", "--method=random", "--bits=16", "--seed=0", "--seed=1"]


@pytest.fixture(scope="module")
def made(prepared, tmp_path_factory):
    """A data folder and a results folder of a small grid, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(prepared, folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder / "data"))
        command = ["run", *GRID, "--metric=AP", f"--results={folder / 'results'}"]
        assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    return folder


@pytest.fixture
def scored(made, data, tmp_path):
    """A results folder whose scores of every query are in the test's data folder."""
    shutil.copytree(made / "data", data, dirs_exist_ok=True)
    shutil.copytree(made / "results", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def shown(hashbench, scored):
    """Print Table 1 with what the queries tell."""

    def show():
        return hashbench("tables", "table1", "--significance", "--results", scored).stdout

    return show


def per_query(hashbench, data, tmp_path, method):
    """AP of every query, the mean over both seeds, by another way than the tables'."""
    found = []
    for seed in (0, 1):
        codes, path = data / "codes" / "digits" / f"{method}-16-s{seed}.h5", tmp_path / "scores.csv"
        assert hashbench("evaluate", codes, "--metric", "AP", "--per-query", path).exit_code == 0
        with path.open() as file:
            found.append([float(row["value"]) for row in csv.DictReader(file)])
    return np.mean(found, axis=0)


def rows_of(text, title):
    """The lines of one Markdown block by their first cell."""
    block = text.partition(f"## {title}")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in block.splitlines() if line.startswith("|")]
    return {row[0].strip(): [entry.strip() for entry in row[1:]] for row in rows}


def test_three_kinds_of_uncertainty_have_three_columns(hashbench, data, scored, shown, tmp_path):
    text = shown()
    rows = rows_of(text, "Uncertainty of digits")
    assert rows["method"] == ["value", "spread over seeds", "confidence over queries", "range over tie-breaking"]
    scores = per_query(hashbench, data, tmp_path, "lsh")
    reference = stats.bootstrap((scores,), np.mean, method="percentile", rng=3).confidence_interval
    value, _, confidence, _ = rows["lsh"]
    assert float(value) == pytest.approx(scores.mean(), abs=1e-4)
    low, high = map(float, confidence.split(" to "))
    assert (low, high) == pytest.approx((reference.low, reference.high), abs=0.15 * (high - low))
    assert "2 of 2 could be tested" in text
    assert not (scored / "tables").exists()


def test_method_that_a_paired_test_does_not_tell_from_the_best_is_marked(data, scored, shown):
    before = rows_of(shown(), "digits (pixels)")
    assert "‡" not in before["pca-rr"][0]  # 0.15 below the best
    assert "‡" not in before["random"][0]  # a sanity baseline is not tested
    path = scored / "digits.csv"
    for seed in (0, 1):  # give pca-rr the scores of itq, but for differences that almost cancel out
        source, target = (
            next((data / "scores" / "digits").glob(f"{name}-16-s{seed}-*/*.h5")) for name in ("itq", "pca-rr")
        )
        values = storage.read_scores(source, {})["AP"]
        values[:, ::2] -= 0.02
        values[:, 1::2] += 0.0199
        storage.write_scores(target, {"AP": values}, storage.read_attributes(target))
        row = rf"(pca-rr,{{}},16,{seed},AP,)[\d.]+,[\d.]+,[\d.]+"
        means = ",".join(f"{value:.6f}" for value in values.mean(axis=1))
        path.write_text(re.sub(row, rf"\g<1>{means}", path.read_text()))
    assert rows_of(shown(), "digits (pixels)")["pca-rr"][0].endswith("‡")


def test_scores_that_are_not_behind_a_row_are_not_used(scored, shown):
    path = scored / "digits.csv"
    path.write_text(re.sub(r"(pca-rr,{},16,1,AP,)[\d.]+", r"\g<1>0.432101", path.read_text()))
    rows = rows_of(shown(), "Uncertainty of digits")
    assert rows["pca-rr"][2] == "-"
    assert rows["lsh"][2] != "-"
    assert "1 of 2 could be tested" in shown()


@pytest.mark.parametrize(
    ("pattern", "other", "label"),
    [
        ("[0-9a-f]{16},1$", f"{'0' * 16},1", "lsh"),
        (",1$", ",2", "lsh"),
        ("{}", '"{""a"": 1}"', "lsh a=1"),
        (",16,0,", ",16,7,", "lsh"),
    ],
    ids=["fingerprint", "version", "params", "seed"],
)
def test_scores_of_other_codes_are_not_used(scored, shown, pattern, other, label):
    path = scored / "digits.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(re.sub(pattern, other, line) if ",lsh," in line else line for line in lines) + "\n")
    found = re.findall(rf"^\| {label} +\| +\S+ \| +[\d.]+ \| +(\S+) ", shown(), flags=re.MULTILINE)
    assert found == ["-"]


def test_tables_that_are_written_do_not_depend_on_the_data_folder(hashbench, scored, shown, monkeypatch, tmp_path):
    with_scores = hashbench("tables", "table1", "--results", scored).stdout
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "elsewhere"))
    assert hashbench("tables", "table1", "--results", scored).stdout == with_scores
    without = shown()
    assert "0 of 2 could be tested" in without
    assert rows_of(without, "Uncertainty of digits")["itq"][2] == "-"
