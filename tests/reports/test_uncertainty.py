import csv
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from helpers.small_grids import copy_of, run_once
from helpers.table_rows import block_rows, cell, chosen
from helpers.thoroughness import slow
from scipy import stats

from hashbench.reports.uncertainty import assess, variances_of
from hashbench.scoring.comparison import holm
from hashbench.scoring.may_be_best import seed_variances
from hashbench.store.provenance import settings_name
from hashbench.store.results import Record, read_results, record_text

# ---------------------------------------------------------------- from the data folder to the table

GRID = [*(f"--method={name}" for name in ("itq", "pca-rr", "lsh", "random")), "--bits=16"]
GRID += [f"--seed={seed}" for seed in range(3)]


@pytest.fixture(scope="module")
def grid_folder(prepared, tmp_path_factory):
    """A data folder and a results folder of a small grid, to be copied."""
    return run_once(prepared, tmp_path_factory.mktemp("grid_folder"), *GRID)


@pytest.fixture
def scored(grid_folder, data, tmp_path):
    """A results folder whose scores of every query are in the test's data folder."""
    return copy_of(grid_folder, data, tmp_path / "results")


@pytest.fixture
def shown(hashbench, scored):
    """Print Table 1 with uncertainty over queries."""

    def show():
        return hashbench("tables", "table1", "--significance", "--results", scored).stdout

    return show


def scores_of_seeds(hashbench, data, tmp_path, method):
    """Return the AP of every query, (3, n_queries), by another way than the tables'."""
    scores = []
    for seed in (0, 1, 2):
        codes, path = data / "codes" / "digits" / f"{method}-16-s{seed}.h5", tmp_path / "scores.csv"
        assert hashbench("evaluate", codes, "--metric", "AP", "--per-query", path).exit_code == 0
        with path.open() as file:
            scores.append([float(row["value"]) for row in csv.DictReader(file)])
    return np.array(scores)


def test_each_kind_of_uncertainty_has_a_column(hashbench, data, scored, shown, tmp_path):
    text = shown()
    rows = block_rows(text, "Uncertainty of digits")
    kinds = ["sd over seeds", "95 % interval", "tie_sd", "worst case of ties"]
    assert rows["method"] == ["value", *kinds, "p against the others"]
    scores = {method: scores_of_seeds(hashbench, data, tmp_path, method) for method in ("itq", "pca-rr", "lsh")}
    value, _, interval, tie_sd, _, p_value = rows["lsh"]
    assert 0 < float(tie_sd) < 0.01
    assert float(value) == pytest.approx(scores["lsh"].mean(), abs=1e-4)
    low, high, _ = written_out(scores["lsh"], np.zeros((1, 200)))
    assert interval == f"{low:.4f} to {high:.4f}"
    against = [one_sided([scores["lsh"], scores[other]], 0, 1) for other in ("itq", "pca-rr")]
    assert float(p_value) == pytest.approx(2 * min(against), abs=1e-4)
    assert "Tests: over queries and seeds." in text
    assert not (scored / "tables").exists()


def written_out(first, second, is_careful=False):
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
    if is_careful and min(len(first), len(second)) > 1:
        squares = v_seed**2 / (min(len(first), len(second)) - 1)
    variance = max(v_query + v_seed - both, v_query, v_seed)
    freedom = (v_query + v_seed) ** 2 / (v_query**2 / (n_queries - 1) + squares)
    value, half = difference.mean(), stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    return value - half, value + half, 2 * stats.t.sf(abs(value) / np.sqrt(variance), freedom)


def test_without_the_scores_of_queries_seeds_are_compared_and_the_note_says_so(scored, shown, monkeypatch, tmp_path):
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "elsewhere"))
    text = shown()
    rows = read_results(scored)
    values = {method: rows[rows["method"] == method]["value"].to_numpy() for method in ("itq", "pca-rr", "lsh")}
    variance = {name: of_name.var(ddof=1) / 3 for name, of_name in values.items()}
    p = [
        stats.t.sf((values[other].mean() - values["lsh"].mean()) / np.sqrt(variance[other] + variance["lsh"]), 2)
        for other in ("itq", "pca-rr")
    ]
    _, _, interval, _, _, p_value = block_rows(text, "Uncertainty of digits")["lsh"]
    assert float(p_value) == pytest.approx(2 * min(p), abs=1e-4)
    ends = stats.ttest_1samp(values["lsh"], 0).confidence_interval()
    assert interval == f"{ends.low:.4f} to {ends.high:.4f}"
    assert "Tests: over seeds, on these queries." in text


def test_lines_without_scores_of_queries_are_compared_over_seeds_the_others_over_both(scored, shown, data):
    for folder in (data / "scores" / "digits").glob("lsh-*"):
        shutil.rmtree(folder)
    text = shown()
    assert "over queries and seeds; lsh: over seeds, on these queries, as the data folder lacks" in text
    rows = block_rows(text, "Uncertainty of digits")
    assert all(rows[name][-1] != "-" for name in ("itq", "pca-rr", "lsh"))


def column(scores, baseline=False, **changes):
    """Cells of one column, in order of their means, the last perhaps a sanity baseline."""
    means = [np.nanmean(values, axis=1) for values in scores]
    return pd.DataFrame(
        {
            "method": [f"m{number}" for number in range(len(scores))],
            "metric": "AP",
            "group": ["unsupervised"] * (len(scores) - baseline) + ["baseline"] * baseline,
            "value": [values.mean() for values in means],
            "n_seeds": [len(values) for values in scores],
            "n_undefined": 0,
            "least_undefined": 0,
            "seed_variance": [values.var(ddof=1) if len(values) > 1 else np.nan for values in means],
            "seed_freedom": [len(values) - 1.0 if len(values) > 1 else np.nan for values in means],
            "is_fixed": False,
            "is_borrowed": False,
            "n_distinct": [len(values) for values in scores],
        }
        | changes
    )


def draw(n_lines, n_seeds, n_queries=60, step=0.02):
    rng = np.random.default_rng(0)
    shared = rng.uniform(0.3, 0.7, n_queries)
    return [shared - step * line + rng.normal(0, 0.05, (n_seeds, n_queries)) for line in range(n_lines)]


def one_sided(scores, i, j):
    """Return p of "the mean of j is at most that of i", with the fewer degrees of freedom."""
    low, high, p = written_out(scores[j], scores[i], is_careful=True)
    return p / 2 if low + high > 0 else 1 - p / 2


@pytest.mark.parametrize(("n_seeds", "basis"), [(1, "queries"), (3, "queries and seeds")])
def test_p_is_that_no_other_one_is_better_corrected_for_their_number(n_seeds, basis):
    scores = draw(4, n_seeds)
    found = assess(column(scores), scores)
    expected = [min(1, 3 * min(one_sided(scores, i, j) for j in range(4) if j != i)) for i in range(4)]
    assert {*found.basis} == {basis}
    assert found.p_value == pytest.approx(expected)


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_a_line_named_beforehand_is_tested_against_each_other_one_corrected_by_holm(n_seeds):
    scores = draw(4, n_seeds)
    found = assess(column(scores), scores, reference=1)
    others = (0, 2, 3)
    corrected = holm([written_out(scores[1], scores[j])[2] for j in others])
    assert found.p_value[[*others]] == pytest.approx(corrected)
    assert np.isnan(found.p_value[1])


def test_a_baseline_is_not_tested_and_does_not_count():
    scores = draw(4, 3)
    found = assess(column(scores, baseline=True), scores)
    assert np.isnan(found.p_value[3])
    assert found.p_value[:3] == pytest.approx(assess(column(scores[:3]), scores[:3]).p_value)


def test_what_draws_nothing_has_no_variance_and_needs_no_seeds():
    scores = draw(2, 3)
    means = scores[0].mean(axis=1)
    cells = column([scores[0], scores[1][:1]]).assign(is_fixed=[False, True])
    found = assess(cells, [None, None])
    assert found.p_value[1] == pytest.approx(
        stats.ttest_1samp(means, scores[1][0].mean(), alternative="greater").pvalue
    )
    assert np.isnan(found.from_).tolist() == [False, True]
    fixed = assess(cells.assign(is_fixed=True), [None, None])  # on these queries, nothing is random
    assert np.isnan(fixed.p_value).all()
    assert [*fixed.untested] == ["fixed", "fixed"]
    drawn = assess(column([scores[0][:1], scores[1][:1]]), [None, None])
    assert np.isnan(drawn.p_value).all()
    assert [*drawn.untested] == ["lacking", "lacking"]


def test_two_seeds_are_about_these_codes_by_the_mean_of_both():
    scores = draw(2, 2)
    found = assess(column(scores), scores)
    means = [values.mean(axis=0) for values in scores]
    assert {*found.basis} == {"queries"}
    assert found.p_value[1] == pytest.approx(stats.ttest_rel(*means, alternative="greater").pvalue)


def test_a_single_distinct_query_is_no_sample_of_queries():
    scores = draw(2, 3)
    of_one_query = [values[:, :1] for values in scores]
    found = assess(column(of_one_query), of_one_query)
    assert {*found.basis} == {"seeds"}
    repeated = assess(column(scores), scores, np.zeros(60, dtype=int))
    assert {*repeated.basis} == {"seeds"}
    assert repeated.p_value == pytest.approx(assess(column(scores), [None, None]).p_value)


def test_a_method_of_one_seed_is_not_tested_among_methods_of_several():
    scores = draw(4, 3, step=0.2)
    scores[2] = scores[2][:1]
    found = assess(column(scores), scores)
    assert [*found.untested] == ["", "", "single", ""]
    assert np.isnan(found.p_value).tolist() == [False, False, True, False]
    tested = [scores[i] for i in (0, 1, 3)]
    assert found.p_value[[0, 1, 3]] == pytest.approx(assess(column(tested), tested).p_value)
    named = assess(column(scores), scores, reference=2)
    assert np.isnan(named.p_value).all()
    assert [*named.untested] == ["single", "single", "", "single"]


def test_cells_that_are_means_over_other_queries_than_most_are_not_tested():
    scores = draw(4, 1, 50)
    for number, values in enumerate(scores):
        values[:, :4] = np.nan
        values[:, 4 : 4 + (number == 2)] = np.nan
    cells = column(scores, n_undefined=[4, 4, 5, 4], least_undefined=[4, 4, 5, 4])
    found = assess(cells, scores)
    assert [*found.untested] == ["", "", "unpaired", ""]
    assert np.isnan(found.p_value).tolist() == [False, False, True, False]
    alike = [scores[i][:, 4:] for i in (0, 1, 3)]
    assert found.p_value[[0, 1, 3]] == pytest.approx(assess(column(alike), alike).p_value)
    assert not np.isnan([found.from_, found.to]).any()
    moved = [values.copy() for values in scores]
    moved[1][:, [0, 10]] = moved[1][:, [10, 0]]  # as many, but others
    assert assess(cells, moved).untested[1] == "unpaired"


def rows_of(values, method="m", lengths=(16,), **changes):
    """Rows of results: values of (n_lengths, n_seeds)."""
    return [
        cell(method, n_bits, value, seed=seed, **changes)
        for n_bits, of_length in zip(lengths, values, strict=True)
        for seed, value in enumerate(of_length)
    ]


def test_variances_are_learned_from_the_results_of_all_lengths_and_shown_cells_only_use_theirs():
    rng = np.random.default_rng(0)
    values = 0.5 + 0.01 * rng.normal(size=(9, 3, 3))
    lines = [rows_of(values[i], f"m{i}", (16, 32, 48)) for i in range(9)]
    results = pd.DataFrame([row for line in lines for row in line])
    expected = seed_variances(values)
    found = variances_of(results, results[results["n_bits"] == 16]).sort_values(["method", "n_bits"])
    assert found["is_borrowed"].all()
    np.testing.assert_allclose(found["seed_variance"].to_numpy().reshape(9, 3), expected.variance)
    np.testing.assert_allclose(found["seed_freedom"].to_numpy().reshape(9, 3), expected.freedom)
    of_one = variances_of(results[results["n_bits"] == 16], results)
    assert not of_one["is_borrowed"].any()


def test_equal_seeds_of_a_built_in_method_draw_nothing_and_of_others_are_one_seed():
    lengths, seeds = (16, 32), {"ksh": 3, "saved": 3, "pcah": 1}
    results = pd.DataFrame([row for name, n in seeds.items() for row in rows_of([[0.5] * n, [0.6] * n], name, lengths)])
    found = variances_of(results, results).set_index(["method", "n_bits"])
    assert {name for name, _ in found.index[found["is_fixed"]]} == {"ksh", "pcah"}
    assert found.loc["saved", "seed_variance"].isna().all()
    assert (found.loc["ksh", "seed_variance"] == 0).all()
    moving = pd.DataFrame(rows_of([[0.5] * 3, [0.6, 0.61, 0.62]], "ksh", lengths))
    found = variances_of(moving, moving).set_index("n_bits")
    assert not found["is_fixed"].any()
    assert found["n_distinct"].to_dict() == {16: 1, 32: 3}
    assert np.isnan(found.loc[16, "seed_variance"])  # nothing says how far other seeds would be


def test_the_set_is_marked_in_whole_columns_and_its_line_says_what_it_means():
    rng = np.random.default_rng(0)
    values = {f"m{i}": 0.5 - 0.1 * (i > 2) + 0.001 * rng.normal(size=(2, 3)) for i in range(9)}
    rows = [row for name, value in values.items() for row in rows_of(value, name, (16, 32), tie_sd=0.0001)]
    rows += [row for name in values if name < "m3" for row in rows_of([[0.5, 0.5, 0.6]], name, (48,))]
    text = chosen(*rows).tested().to_markdown()
    lines = block_rows(text, "digits (pixels): AP")
    marked = {name for name in values for entry in lines[name][:2] if "★" in entry}
    assert marked <= {"m0", "m1", "m2"}
    assert all(any("★" in lines[name][length] for name in marked) for length in (0, 1))
    assert not any("★" in lines[name][2] or "**" in lines[name][2] for name in values)  # three of nine
    assert "- ★: may be the best: each best of a column is marked with about 95 % confidence (3 seeds" in text
    assert "No best is named where too few methods were run: 3 of 9 methods at 48 bits." in text


def test_a_column_of_which_most_lines_are_not_tested_has_no_set():
    rows = [row for name in ("m0", "m1") for row in rows_of([[0.5, 0.51, 0.52]], name)]
    singles = [cell(f"single{number}", 16, 0.9) for number in range(2)]
    assert chosen(*rows, *singles[:1]).tested().cells["may_be_best"].any()
    assert not chosen(*rows, *singles).tested().cells["may_be_best"].any()


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
    settings = {settings_name(text): text for text in ("{}", '{"a": 1}')}
    path.with_suffix(".json").write_text(record_text(Record(settings, {}, {})))
    text = shown()
    assert re.search(rf"^\| {label} ", text, flags=re.MULTILINE)
    assert "over seeds, on these queries" in text


def test_tables_that_are_written_do_not_depend_on_the_data_folder(hashbench, scored, shown, monkeypatch, tmp_path):
    with_scores = hashbench("tables", "table1", "--results", scored).stdout
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "elsewhere"))
    assert hashbench("tables", "table1", "--results", scored).stdout == with_scores
    assert "over seeds, on these queries" in shown()
