import csv
import json
import re
import shutil
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from helpers.table_rows import block_rows, cell, chosen
from helpers.thoroughness import slow
from scipy import stats

from hashbench.cli.main import cli
from hashbench.reports.uncertainty import Uncertainty, add_uncertainty, assess
from hashbench.scoring.comparison import holm
from hashbench.store.provenance import settings_name
from hashbench.store.results import read_results

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


def scores_of_seeds(hashbench, data, tmp_path, method):
    """Return the AP of every query, (2, n_queries), by another way than the tables'."""
    scores = []
    for seed in (0, 1):
        codes, path = data / "codes" / "digits" / f"{method}-16-s{seed}.h5", tmp_path / "scores.csv"
        assert hashbench("evaluate", codes, "--metric", "AP", "--per-query", path).exit_code == 0
        with path.open() as file:
            scores.append([float(row["value"]) for row in csv.DictReader(file)])
    return np.array(scores)


def test_each_kind_of_uncertainty_has_a_column(hashbench, data, scored, shown, tmp_path):
    text = shown()
    rows = block_rows(text, "Uncertainty of digits")
    kinds = ["sd over seeds", "95 % interval", "tie_sd", "worst case of ties"]
    assert rows["method"] == ["value", *kinds, "p against the best"]
    scores = {method: scores_of_seeds(hashbench, data, tmp_path, method) for method in ("itq", "pca-rr", "lsh")}
    value, _, interval, tie_sd, _, p_value = rows["lsh"]
    assert 0 < float(tie_sd) < 0.01
    assert float(value) == pytest.approx(scores["lsh"].mean(), abs=1e-4)
    low, high, _ = written_out(scores["lsh"], np.zeros((1, 200)))
    assert interval == f"{low:.4f} to {high:.4f}"
    pairs = [("itq", "lsh"), ("itq", "pca-rr"), ("pca-rr", "lsh")]
    corrected = holm([written_out(scores[first], scores[second])[2] for first, second in pairs])
    assert float(p_value) == pytest.approx(corrected[0], abs=1e-4)
    assert "Tests and intervals: over queries and seeds." in text
    assert "could be tested" not in text  # all were
    assert not (scored / "tables").exists()


def written_out(first, second):
    """Return the interval and the p value of the mean difference, as docs/explanation/comparing.md has them."""
    n_queries = first.shape[1]
    difference = first.mean(axis=0) - second.mean(axis=0)
    v_query, v_seed, both, squares = difference.var(ddof=1) / n_queries, 0, 0, 0
    for x in (first, second):
        if len(x) > 1:
            v_x = x.mean(axis=1).var(ddof=1) / len(x)
            residual = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
            both += (residual**2).sum() / ((len(x) - 1) * (n_queries - 1) * len(x) * n_queries)
            v_seed, squares = v_seed + v_x, squares + v_x**2 / (len(x) - 1)
    variance = max(v_query + v_seed - both, v_query, v_seed)
    freedom = (v_query + v_seed) ** 2 / (v_query**2 / (n_queries - 1) + squares)
    value, half = difference.mean(), stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    return value - half, value + half, 2 * stats.t.sf(abs(value) / np.sqrt(variance), freedom)


def test_without_the_scores_of_queries_seeds_are_compared_and_the_note_says_so(scored, shown, monkeypatch, tmp_path):
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "elsewhere"))
    text = shown()
    rows = read_results(scored)
    values = {method: rows[rows["method"] == method]["value"].to_numpy() for method in ("itq", "pca-rr", "lsh")}
    pairs = [("itq", "lsh"), ("itq", "pca-rr"), ("pca-rr", "lsh")]
    welch = [stats.ttest_ind(values[first], values[second], equal_var=False).pvalue for first, second in pairs]
    _, _, interval, _, _, p_value = block_rows(text, "Uncertainty of digits")["lsh"]
    assert float(p_value) == pytest.approx(holm(welch)[0], abs=1e-4)
    ends = stats.ttest_1samp(values["lsh"], 0).confidence_interval()
    assert interval == f"{ends.low:.4f} to {ends.high:.4f}"
    assert "Tests and intervals: over seeds, on these queries (the data folder lacks" in text


def frame(scores, baseline=False):
    """Cells of one column, in order of their means, the last perhaps a sanity baseline."""
    return pd.DataFrame(
        {
            "method": [f"m{number}" for number in range(len(scores))],  # of unknown origin, so they need seeds
            "params": "{}",
            "group": ["unsupervised"] * (len(scores) - baseline) + ["baseline"] * baseline,
            "value": [np.nanmean(values) for values in scores],
            "spread": [np.nanmean(values, axis=1).std(ddof=1) if len(values) > 1 else np.nan for values in scores],
            "n_seeds": [len(values) for values in scores],
            "n_undefined": 0,
            "least_undefined": 0,
        }
    )


def assessed(scores, reference=0, baseline=False, **options):
    with mock.patch("hashbench.reports.uncertainty._scores", side_effect=lambda behind: behind):
        return assess(frame(scores, baseline), scores, reference, **options)


def draw(n_lines, n_seeds, n_queries=60, step=0.02):
    rng = np.random.default_rng(0)
    shared = rng.uniform(0.3, 0.7, n_queries)
    return [shared - step * line + rng.normal(0, 0.05, (n_seeds, n_queries)) for line in range(n_lines)]


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize(("n_seeds", "basis"), [(1, "queries"), (3, "queries and seeds")])
def test_all_pairs_are_corrected_together_or_those_of_a_named_line(is_named, n_seeds, basis):
    scores = draw(4, n_seeds)
    found = assessed(scores, is_named=is_named)
    pairs = [(0, 1), (0, 2), (0, 3), *([] if is_named else [(1, 2), (1, 3), (2, 3)])]
    corrected = holm([written_out(scores[first], scores[second])[2] for first, second in pairs])
    assert found.basis == basis
    assert found.p_value[1:] == pytest.approx(corrected[:3])
    assert np.isnan(found.p_value[0])


def test_a_baseline_is_not_tested_and_a_line_without_scores_turns_the_column_to_seeds():
    scores = draw(4, 3)
    assert np.isnan(assessed(scores, baseline=True).p_value[3])
    assert assessed(scores[:3], baseline=False).p_value[1:] == pytest.approx(assessed(scores, 0, True).p_value[1:3])
    means = [pd.DataFrame({"value": values.mean(axis=1)}) for values in scores]
    with mock.patch("hashbench.reports.uncertainty._scores", side_effect=[*scores[:3], None]):
        found = assess(frame(scores), means, 0, is_named=True)
    welch = [
        stats.ttest_ind(*(scores[i].mean(axis=1) for i in (0, other)), equal_var=False).pvalue for other in (1, 2, 3)
    ]
    assert found.basis == "seeds"
    assert found.p_value[1:] == pytest.approx(holm(welch))


def test_seeds_of_a_method_that_draws_nothing_are_not_asked_for():
    scores = draw(2, 3)
    cells = frame([scores[0], scores[1][:1]]).assign(method=["m0", "pcah"])
    means = [pd.DataFrame({"value": values.mean(axis=1)}) for values in (scores[0], scores[1][:1])]
    with mock.patch("hashbench.reports.uncertainty._scores", return_value=None):
        found = assess(cells, means, 0)
        single = assess(cells.assign(method="pcah", n_seeds=1), means, 0)
        drawn = assess(cells.assign(method="m1"), means, 0)
    assert found.p_value[1] == pytest.approx(stats.ttest_1samp(means[0]["value"], means[1]["value"][0]).pvalue)
    assert np.isnan([*found[1:3]]).tolist() == [[False, True]] * 2
    assert np.isnan(single.p_value).all()  # two values, and nothing that says how far another would be
    assert np.isnan(drawn.p_value).all()
    assert [list(each.untested) for each in (found, single, drawn)] == [["", ""], ["", "lacking"], ["", "lacking"]]


def test_a_method_of_one_seed_is_not_tested_among_methods_of_several():
    scores = draw(4, 3, step=0.2)
    scores[2] = scores[2][:1]
    found = assessed(scores)
    corrected = holm([written_out(scores[first], scores[second])[2] for first, second in [(0, 1), (0, 3), (1, 3)]])
    assert found.basis == "queries and seeds"
    assert found.p_value[[1, 3]] == pytest.approx(corrected[:2])
    assert np.isnan(found.p_value[2])
    assert list(found.untested) == ["", "", "single", ""]
    best = assessed(scores, reference=2)
    assert np.isnan(best.p_value).all()
    assert list(best.untested) == ["single", "single", "", "single"]


def test_what_has_one_seed_is_marked_as_not_tested(hashbench, scored):
    grid = ["--method", "sh", "--method", "sph", "--bits", 16, "--metric", "AP"]
    assert hashbench("run", *grid, "--results", scored).exit_code == 0
    text = hashbench("tables", "table1", "--significance", "--results", scored).stdout
    rows = block_rows(text, "digits (pixels): AP")
    assert rows["sph"][0].endswith("°§")
    assert not any("°" in rows[name][0] for name in ("itq", "lsh", "random"))
    assert "Tests and intervals: over queries and seeds." in text
    assert "- °: not tested against the best: one of the two has a single seed." in text


def test_methods_that_score_different_queries_are_not_tested():
    scores = draw(3, 1, 50)
    scores[0][:, :4] = scores[1][:, :4] = scores[2][:, 3:] = np.nan
    found = assessed(scores)
    assert found.p_value[1] == pytest.approx(stats.ttest_rel(scores[0][0, 4:], scores[1][0, 4:]).pvalue)
    assert np.isnan(found.p_value[2])
    assert list(found.untested) == ["", "", "unpaired"]
    assert not np.isnan([found.from_, found.to]).any()


def test_lines_that_are_means_over_other_queries_say_so(hashbench, digits_data, tmp_path):
    grid = ["--method", "itq", "--method", "lsh", "--method", "pcah", "--bits", 16, "--bits", 60]
    assert hashbench("run", *grid, "--metric", "P@r1:skip", "--results", tmp_path).exit_code == 0
    command = ["tables", "--metric", "P@r1:skip", "--results", tmp_path, "--significance"]
    text = hashbench(*command).stdout
    assert block_rows(text, "digits (pixels): P@r1:skip")["pcah"][1] == "-"  # every ball is empty
    because = "- °: not tested against the best: the two are means over other queries.\n"
    assert because in text
    for false in ("† unknown", "data folder"):
        assert false not in text
    shutil.rmtree(digits_data / "scores")  # rows have the numbers of undefined queries too
    assert because in hashbench(*command).stdout


def test_columns_without_the_named_line_say_that_nothing_is_tested_there():
    several = [cell(name, n_bits, 0.5, seed=seed) for name in ("lsh", "sph") for n_bits in (16, 32) for seed in (0, 1)]
    text = chosen(*several, cell("itq", 16, 0.6), cell("itq", 16, 0.7, seed=1)).tested("itq").to_markdown()
    assert [line.endswith("°") for line in block_rows(text, "digits (pixels): AP")["lsh"]] == [False, True]
    assert "- °: not tested against itq: it has no value there." in text


@pytest.mark.parametrize(("p_value", "is_marked"), [(0.0499, False), (0.05, True), (0.09, True), (np.nan, False)])
def test_what_is_not_shown_to_differ_from_the_best_is_marked(p_value, is_marked):
    scores = draw(4, 1)
    cells = frame(scores, baseline=True).assign(n_bits=16, is_best=[True, False, False, False])
    found = Uncertainty("queries", *np.zeros((2, 4)), np.array([np.nan, p_value, 0.0, np.nan]), [""] * 4)
    with mock.patch("hashbench.reports.uncertainty.assess", return_value=found):
        assert add_uncertainty(cells, scores, ["n_bits"], cells["is_best"])["is_unshown"].tolist() == [
            False,
            is_marked,
            False,
            False,
        ]


@pytest.mark.slow
def test_tables_with_confidence_are_written_on_request(hashbench, scored, tmp_path):
    command = ["tables", "table1", "--results", scored, "--significance", "--bits", 16]
    assert hashbench(*command).exit_code == 0
    assert not (scored / "tables").exists()
    assert hashbench(*command, "--output", tmp_path / "new").exit_code == 0
    assert not (scored / "tables").exists()
    for end, words in ((".md", "Uncertainty of digits (pixels): AP"), (".tex", "[]: 95 \\% interval.")):
        assert words in (tmp_path / "new" / f"table1{end}").read_text()
    with (tmp_path / "new" / "table1-tie-range.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert (rows["itq"]["p_adjusted"], rows["random"]["p_adjusted"]) == ("", "")
    assert 0 < float(rows["lsh"]["p_adjusted"]) < 1
    assert float(rows["lsh"]["confidence_low"]) < float(rows["lsh"]["value"]) < float(rows["lsh"]["confidence_high"])


def test_a_method_named_beforehand_is_tested_against_each_other_one(hashbench, scored):
    command = ["tables", "table1", "--results", scored, "--significance", "--against"]
    text = hashbench(*command, "lsh").stdout
    assert "- ‡: tested, and not shown to differ from lsh (p >= 0.05, corrected by Holm's method)." in text
    rows = block_rows(text, "Uncertainty of digits")
    assert rows["method"][-1] == "p against lsh"
    assert rows["lsh"][-1] == "-"
    assert 0 < float(rows["itq"][-1]) < 1
    unknown = hashbench(*command, "ITQ")
    assert unknown.exit_code == 1
    assert "itq" in unknown.stderr
    every = hashbench("tables", "--results", scored, "--significance", "--against", "lsh").stdout
    assert "p against lsh" in every  # tables that have no lsh are left out
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
    text = shown()
    assert re.search(rf"^\| {label} ", text, flags=re.MULTILINE)
    assert "over seeds, on these queries" in text


def test_tables_that_are_written_do_not_depend_on_the_data_folder(hashbench, scored, shown, monkeypatch, tmp_path):
    with_scores = hashbench("tables", "table1", "--results", scored).stdout
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "elsewhere"))
    assert hashbench("tables", "table1", "--results", scored).stdout == with_scores
    assert "over seeds, on these queries" in shown()
