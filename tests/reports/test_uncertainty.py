import csv
import json
import re
import shutil
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from helpers.table_rows import block_rows
from helpers.thoroughness import slow
from scipy import stats

from hashbench.cli.main import cli
from hashbench.reports.significance import all_pairs_tests, paired_tests
from hashbench.reports.tables.blocks import _entry, notes_on_marks
from hashbench.reports.tables.markdown import Style
from hashbench.reports.tables.uncertainty import add_confidence
from hashbench.store import hdf5
from hashbench.store.provenance import settings_name

# ---------------------------------------------------------------- from the data folder to the table

GRID = ["--method=itq", "--method=pca-rr", "--method=lsh", "--method=random", "--bits=16", "--seed=0", "--seed=1"]


@pytest.fixture(scope="module")
def grid_folder(prepared, tmp_path_factory):
    """A data folder and a results folder of a small grid, to be copied."""
    folder = tmp_path_factory.mktemp("grid_folder")
    shutil.copytree(prepared, folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder / "data"))
        command = ["run", *GRID, "--metric=AP", f"--results={folder / 'results'}"]
        assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    return folder


@pytest.fixture
def scored(grid_folder, data, tmp_path):
    """A results folder whose scores of every query are in the test's data folder."""
    shutil.copytree(grid_folder / "data", data, dirs_exist_ok=True)
    shutil.copytree(grid_folder / "results", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def shown(hashbench, scored):
    """Print Table 1 with uncertainty over queries."""

    def show():
        return hashbench("tables", "table1", "--significance", "--results", scored).stdout

    return show


def per_query(hashbench, data, tmp_path, method):
    """Return the AP of every query, the mean over both seeds, by another way than the tables'."""
    scores = []
    for seed in (0, 1):
        codes, path = data / "codes" / "digits" / f"{method}-16-s{seed}.h5", tmp_path / "scores.csv"
        assert hashbench("evaluate", codes, "--metric", "AP", "--per-query", path).exit_code == 0
        with path.open() as file:
            scores.append([float(row["value"]) for row in csv.DictReader(file)])
    return np.mean(scores, axis=0)


def test_each_kind_of_uncertainty_has_a_column(hashbench, data, scored, shown, tmp_path):
    text = shown()
    rows = block_rows(text, "Uncertainty of digits")
    kinds = ["spread over seeds", "confidence over queries", "luck with ties", "worst case of ties"]
    assert rows["method"] == ["value", *kinds, "p against the best"]
    scores = per_query(hashbench, data, tmp_path, "lsh")
    reference = stats.bootstrap((scores,), np.mean, method="percentile", rng=3).confidence_interval
    value, _, confidence, luck, _, p_value = rows["lsh"]
    assert 0 < float(luck) < 0.01
    assert p_value == "0.0001"
    assert float(value) == pytest.approx(scores.mean(), abs=1e-4)
    low, high = map(float, confidence.split(" to "))
    assert (low, high) == pytest.approx((reference.low, reference.high), abs=0.15 * (high - low))
    assert "‡: a paired permutation test" in text
    assert "could be tested" not in text  # all were
    assert not (scored / "tables").exists()


def test_method_that_a_paired_test_does_not_tell_from_the_best_is_marked(data, scored, shown):
    before = block_rows(shown(), "digits (pixels)")
    assert "‡" not in before["pca-rr"][0]  # 0.15 below the best
    assert "‡" not in before["random"][0]  # a sanity baseline is not tested
    path = scored / "digits" / "pca-rr.csv"
    for seed in (0, 1):  # give pca-rr the scores of itq, with differences that almost cancel out
        scores = data / "scores" / "digits"
        source, target = (next(scores.glob(f"{name}-16-s{seed}-*/*.h5")) for name in ("itq", "pca-rr"))
        values = hdf5.read_scores(source, {})["AP"]
        values[:3, ::2] -= 0.02
        values[:3, 1::2] += 0.0199
        hdf5.write_scores(target, {"AP": values}, hdf5.read_attributes(target))
        row = rf"(pca-rr,\w+,16,{seed},AP,)[\d.]+,[\d.]+,[\d.]+,[\d.]+"
        mean, low, high, _ = (f"{value:.6f}" for value in values.mean(axis=1))
        means = f"{mean},,{low},{high}"
        path.write_text(re.sub(row, rf"\g<1>{means}", path.read_text()))
    assert block_rows(shown(), "digits (pixels)")["pca-rr"][0].endswith("‡")


def test_best_of_a_column_is_tested_among_all_pairs_and_a_named_line_by_holm():
    rng = np.random.default_rng(0)
    best, names = rng.uniform(0.3, 0.7, 200), ["best", "m1", "m2", "m3", "m4", "m5"]
    scores = [best, *(best - rng.normal(0.011, 0.06, 200) for _ in names[1:])]
    columns = [frame(names, scores, "aaaa"), frame(names[:2], scores[:2], "bbbb")]
    cells = pd.concat(columns, ignore_index=True)
    with mock.patch("hashbench.reports.tables.uncertainty._over_seeds", side_effect=lambda behind: behind):
        by_best = add_confidence(cells, [*scores, *scores[:2]])
        by_name = add_confidence(cells, [*scores, *scores[:2]], "m2")
    for tested, reference in ((by_best, 0), (by_name, 2)):
        others = [position for position in range(6) if position != reference]
        holms = [test.p_holm for test in paired_tests([scores[reference] - scores[other] for other in others])]
        assert tested["is_reference"][:6].tolist() == [position == reference for position in range(6)]
        assert np.isnan(tested["p_value"][reference])
        p_values = tested["p_value"][others].to_numpy()
        if reference:
            assert p_values == pytest.approx(holms)
        else:
            assert p_values == pytest.approx(all_pairs_tests(np.stack(scores))[0, 1:])
            assert (p_values >= holms).all()
            assert (p_values > holms).any()
    assert by_best["p_value"][7] == pytest.approx(paired_tests([scores[0] - scores[1]])[0].p_value)  # its own column
    assert by_name["p_value"][6:].isna().all()  # m2 is not in it


def test_methods_that_score_different_queries_are_not_tested():
    rng = np.random.default_rng(1)
    best, like, other = rng.uniform(0.3, 0.7, 50), rng.uniform(0.2, 0.7, 50), rng.uniform(0.2, 0.7, 50)
    best[:4], like[:4], other[3:] = np.nan, np.nan, np.nan
    cells = frame(["best", "m1", "m2"], [np.array([0.5]), np.array([0.4]), np.array([0.3])], "aaaa")
    with mock.patch("hashbench.reports.tables.uncertainty._over_seeds", side_effect=lambda behind: behind):
        tested = add_confidence(cells, [best, like, other])
    assert tested["p_value"][1] == pytest.approx(all_pairs_tests(np.stack([best, like])[:, 4:])[0, 1])
    assert np.isnan(tested["p_value"][2])
    assert tested["is_unpaired"].tolist() == [False, False, True]
    assert tested[["from_", "to"]].notna().all(axis=None)


def test_lines_that_are_means_over_other_queries_say_so(hashbench, digits_data, tmp_path):
    grid = ["--method", "itq", "--method", "lsh", "--method", "pcah", "--bits", 16, "--bits", 60]
    assert hashbench("run", *grid, "--metric", "P@r1:skip", "--results", tmp_path).exit_code == 0
    command = ["tables", "--metric", "P@r1:skip", "--results", tmp_path, "--significance"]
    text = hashbench(*command).stdout
    assert block_rows(text, "digits (pixels): P@r1:skip")["pcah"][1] == "-"  # every ball is empty
    assert "A dash: no query has a value." in text
    assert "0 of 3 could be tested; 3 are means over other queries than the best, or than another seed." in text
    for false in ("whether luck separates", "not run", "data folder lacks"):
        assert false not in text
    shutil.rmtree(digits_data / "scores")
    lacking = "0 of 3 could be tested; the data folder lacks the scores of every query of the others."
    assert lacking in hashbench(*command).stdout


def frame(names, scores, fingerprint):
    """Cells of one column, the first of them the best."""
    return pd.DataFrame(
        {
            "dataset": "digits",
            "features": "pixels",
            "dataset_fingerprint": fingerprint,
            "metric": "AP",
            "n_bits": 16,
            "rivals": "",
            "group": "unsupervised",
            "method": names,
            "params": "{}",
            "method_version": 1,
            "value": [values.mean() for values in scores],
            "is_best": [name == "best" for name in names],
        }
    )


def test_too_many_methods_for_the_resamples_are_pointed_out():
    cells = {"n_bits": 16, "metric": "AP", "rivals": "", "group": "unsupervised", "ties": "", "against": "itq"}
    cells["value"] = 0.5
    for n_tests, is_too_many in ((499, False), (500, True)):
        tests = {"p_value": [np.nan] + [1.0] * n_tests, "is_reference": [True] + [False] * n_tests}
        notes = " ".join(notes_on_marks(pd.DataFrame(cells | tests), []))
        assert ("‡ has no meaning here" in notes) is is_too_many


def test_level_at_which_a_method_is_marked():
    for p_value, is_marked in ((0.0499, False), (0.05, True), (0.09, True)):
        cell = SimpleNamespace(value=0.5, spread=np.nan, p_value=p_value, ties="", n_seeds=1, is_best=False)
        assert ("‡" in _entry(cell, Style(4), is_mixed=False).marks) is is_marked


@pytest.mark.slow
def test_tables_with_confidence_are_written_on_request(hashbench, scored, tmp_path):
    command = ["tables", "table1", "--results", scored, "--significance", "--bits", 16]
    assert hashbench(*command).exit_code == 0
    assert not (scored / "tables").exists()
    assert hashbench(*command, "--output", tmp_path / "new").exit_code == 0
    assert not (scored / "tables").exists()
    for end, words in ((".md", "Uncertainty of digits (pixels): AP"), (".tex", "Uncertainty of AP on digits (pixels)")):
        assert words in (tmp_path / "new" / f"table1{end}").read_text()
    with (tmp_path / "new" / "table1-tie-range.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert (rows["itq"]["p_adjusted"], rows["random"]["p_adjusted"]) == ("", "")
    assert float(rows["lsh"]["p_adjusted"]) < 0.05
    assert float(rows["lsh"]["confidence_low"]) < float(rows["lsh"]["value"]) < float(rows["lsh"]["confidence_high"])


def test_a_method_named_beforehand_is_tested_against_each_other_one(hashbench, scored):
    command = ["tables", "table1", "--results", scored, "--significance", "--against"]
    text = hashbench(*command, "lsh").stdout
    assert "does not separate it from lsh" in text
    rows = block_rows(text, "Uncertainty of digits")
    assert rows["method"][-1] == "p against lsh"
    assert (rows["lsh"][-1], rows["itq"][-1]) == ("-", "0.0002")  # 2 tests, 1 / 10,000
    unknown = hashbench(*command, "ITQ")
    assert unknown.exit_code == 1
    assert "itq" in unknown.stderr
    every = hashbench("tables", "--results", scored, "--significance", "--against", "lsh").stdout
    assert "from lsh" in every  # tables that have no lsh are left out
    assert "continuation" not in every
    assert "--significance" in hashbench("tables", "table1", "--results", scored, "--against", "lsh").stderr


@pytest.mark.parametrize(
    ("pattern", "other", "label"),
    [
        (settings_name("{}"), settings_name('{"a": 1}'), "lsh a=1"),
        (r"(,16,1,AP,)[\d.]+", r"\g<1>0.332101", "lsh"),
        *slow(("[0-9a-f]{16},1$", f"{'0' * 16},1", "lsh"), (",1$", ",2", "lsh"), (",16,0,", ",16,7,", "lsh")),
    ],
    ids=["params", "value", "fingerprint", "version", "seed"],
)
def test_scores_that_are_not_those_behind_a_row_are_not_used(scored, shown, pattern, other, label):
    path = scored / "digits" / "lsh.csv"
    path.write_text(re.sub(pattern, other, path.read_text(), flags=re.MULTILINE))
    path.with_suffix(".settings.json").write_text(
        json.dumps({settings_name(text): {"params": json.loads(text)} for text in ("{}", '{"a": 1}')})
    )
    confidence = re.findall(rf"^\| {label} +\| +\S+ \| +[\d.]+ \| +(\S+) ", shown(), flags=re.MULTILINE)
    assert confidence == ["-"]


def test_tables_that_are_written_do_not_depend_on_the_data_folder(hashbench, scored, shown, monkeypatch, tmp_path):
    with_scores = hashbench("tables", "table1", "--results", scored).stdout
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "elsewhere"))
    assert hashbench("tables", "table1", "--results", scored).stdout == with_scores
    without = shown()
    assert "0 of 2 could be tested" in without
    assert block_rows(without, "Uncertainty of digits")["itq"][2] == "-"
