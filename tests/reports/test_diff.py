import csv
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.diff_rows import changes, git, keep, needs_git, row, side, write_sides
from helpers.result_files import rows_in
from helpers.thoroughness import slow
from scipy import stats

from hashbench import cards, registry
from hashbench.reports.diff import compare


def test_rows_are_sorted_by_what_became_of_them():
    same, old, other = row(seed=0), row(0.5, seed=1), row(seed=2)
    gone, new = row(seed=3), row(seed=4)
    diff = compare(side(same, old, other, gone), side(same, row(0.55, seed=1), other._replace(method_version=2), new))
    assert diff.rows[["seed", "status"]].to_numpy().tolist() == [
        [1, "changed"],
        [0, "unchanged"],
        [2, "not comparable"],
        [3, "gone"],
        [4, "new"],
    ]
    assert diff.of("changed")[["value_old", "value_new"]].to_numpy().tolist() == [["0.500000", "0.550000"]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"method_version": 2}, "method version 1 -> 2"),
        ({"dataset_fingerprint": "bbbb"}, "dataset fingerprint aaaa -> bbbb"),
        (
            {"method_version": 3, "dataset_fingerprint": "bbbb"},
            "dataset fingerprint aaaa -> bbbb, method version 1 -> 3",
        ),
    ],
)
def test_rows_of_other_data_or_version_are_not_comparable_and_say_why(change, reason):
    diff = compare(side(row(0.5)), side(row(0.1, **change)))
    assert diff.of("not comparable")["other"].tolist() == [reason]
    assert diff.of("changed").empty
    assert diff.drops(0.0).empty


def test_rows_of_other_content_beside_the_old_ones_are_new_and_name_their_content():
    old = [row(0.2, seed=0), row(0.4, seed=1)]
    other = [row(0.8, seed=seed, dataset_fingerprint="bbbb") for seed in (0, 1)]
    diff = compare(side(*old), side(row(0.3, seed=0), old[1], *other))
    assert diff.rows[["status", "seed", "data"]].to_numpy().tolist() == [
        ["changed", 0, "digits:pixels [aaaa]"],
        ["new", 0, "digits:pixels [bbbb]"],
        ["unchanged", 1, "digits:pixels [aaaa]"],
        ["new", 1, "digits:pixels [bbbb]"],
    ]
    assert diff.over_seeds()["new"].tolist() == [0.35]
    assert diff.to_frame()["dataset_fingerprint"].tolist() == ["aaaa", "bbbb", "bbbb"]


def test_of_several_contents_that_one_side_lacks_each_has_one_partner_at_most():
    old = [row(0.1), row(0.2, dataset_fingerprint="bbbb"), row(0.3, dataset_fingerprint="cccc")]
    diff = compare(side(*old), side(old[2], row(0.4, dataset_fingerprint="dddd")))
    assert diff.counts == {"changed": 0, "not comparable": 1, "new": 0, "gone": 1, "unchanged": 1}
    assert diff.of("not comparable")["other"].tolist() == ["dataset fingerprint aaaa -> dddd"]


@pytest.mark.parametrize("change", [{"low": 0.3}, {"high": 0.7}, {"n_undefined": 4}])
def test_row_of_the_same_value_changes_by_its_other_numbers(change):
    assert compare(side(row()), side(row(**change))).of("changed")["difference"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ((0.5, 0.4, 0.6, 0.003), (0.63, 0.4, 0.7, 0.004), "shuffle"),
        ((0.5, 0.4, 0.6, None), (0.51, 0.4, 0.7, 0.004), "unknown"),
        ((0.5, float("nan"), float("nan"), None), (0.5, 0.4, 0.6, 0.01), "unknown"),
    ],
)
def test_change_answers_what_ties_leave_open(old, new, answer):
    assert compare(side(row(*old)), side(row(*new))).of("changed")["ties"].tolist() == [answer]


def test_greatest_loss_comes_first():
    old, new = [row(seed=seed) for seed in range(3)], [row(0.51, seed=0), row(0.40, seed=1), row(0.49, seed=2)]
    assert compare(side(*old), side(*new)).of("changed")["seed"].tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("metric", "new", "limit", "n_drops"),
    [
        ("AP", 0.49, 0.01, 0),  # by just as much, whatever 0.5 - 0.49 is in floating point
        ("AP", 0.489999, 0.01, 1),
        ("AP", 0.499999, 0.0, 1),
        ("AP", 0.9, 0.0, 0),
        ("PairwiseError", 0.9, 0.01, 1),
        ("PairwiseError", 0.1, 0.01, 0),
        ("AP", float("nan"), 0.9, 1),
    ],
)
def test_drop_is_a_loss_beyond_the_limit(metric, new, limit, n_drops):
    diff = compare(side(row(metric=metric)), side(row(new, metric=metric)))
    assert len(diff.drops(limit)) == n_drops


def test_value_that_becomes_defined_is_no_drop():
    assert compare(side(row(float("nan"))), side(row(0.1))).drops(0.0).empty


def test_seeds_are_averaged_over_those_that_can_be_compared():
    old = [row(0.2, seed=0), row(0.4, seed=1), row(0.9, seed=2), row(0.9, seed=3), row(0.5, n_bits=8)]
    new = [row(0.3, seed=0), row(0.4, seed=1), row(0.9, seed=2, method_version=2), row(0.1, n_bits=8)]
    (mean,) = compare(side(*old), side(*new)).over_seeds().itertuples()
    assert (mean.n_seeds, mean.n_changed) == (2, 1)
    assert (mean.old, mean.new, mean.difference) == pytest.approx((0.3, 0.35, 0.05))


def test_a_mean_over_seeds_of_which_one_is_undefined_is_undefined():
    old, new = [row(float("nan"), seed=0), row(0.4, seed=1)], [row(0.3, seed=0), row(0.5, seed=1)]
    (mean,) = compare(side(*old), side(*new)).over_seeds().itertuples()
    assert np.isnan([mean.old, mean.difference]).all()
    assert mean.new == 0.4


# ---------------------------------------------------------------- two commits


@pytest.fixture
def run_lsh(hashbench, tiny_file, repository):
    """Run lsh on a tiny dataset and commit the results, the only ones in ``results/``."""
    path = tiny_file()

    def run(*seeds):
        shutil.rmtree("results", ignore_errors=True)
        options = [part for seed in seeds for part in ("--seed", seed)]
        hashbench("run", "--method", "lsh", "--bits", 8, "--dataset", path, "--metric", "AP", "--force", *options)
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "--message", "run")

    return run


@needs_git
def test_commit_without_any_change_has_an_empty_diff(run_lsh, hashbench):
    run_lsh(0, 1)
    run_lsh(0, 1)
    result = hashbench("diff", "HEAD~1", "HEAD", "--fail-on-drop", 0)
    old, new = git("rev-parse", "HEAD~1")[:10], git("rev-parse", "HEAD")[:10]
    assert result.stdout == f"HEAD~1 ({old}) -> HEAD ({new}): no differences, 2 rows unchanged.\n"
    assert result.exit_code == 0
    assert hashbench("diff").stdout == f"HEAD ({new}) -> working tree: no differences, 2 rows unchanged.\n"


@needs_git
def test_commit_with_another_seed_has_new_and_gone_rows(run_lsh, hashbench):
    run_lsh(0, 1)
    run_lsh(0, 2)
    result = hashbench("diff", "HEAD~1", "--fail-on-drop", 0)
    assert (result.exit_code, result.stderr) == (0, "")
    first, *rest = result.stdout.splitlines()
    assert first == f"HEAD~1 ({git('rev-parse', 'HEAD~1')[:10]}) -> working tree: 1 new, 1 gone, 1 unchanged."
    values = {line["seed"]: line["value"] for line in rows_in(Path("results/tiny"))}
    new, _, new_row, gone, _, gone_row = (" ".join(line.split()) for line in rest if line.strip(" ─"))
    assert (new, new_row) == ("New", f"tiny:features lsh 8 2 AP {values['2']}")
    assert (gone, gone_row.rpartition(" ")[0]) == ("Gone", "tiny:features lsh 8 1 AP")


@needs_git
def test_commit_with_another_version_of_the_method_is_not_comparable(run_lsh, hashbench, monkeypatch):
    run_lsh(0)
    card = replace(cards.method_card("lsh"), version=2)
    monkeypatch.setattr("hashbench.pipeline.grid.method_card", lambda name: card)
    run_lsh(0)
    result = hashbench("diff", "HEAD~1", "--fail-on-drop", 0)
    assert result.exit_code == 0
    assert "working tree: 1 not comparable.\n\nNot comparable\n" in result.stdout
    assert re.search(r"^ tiny:features +lsh .* AP .* method version 1 -> 2$", result.stdout, flags=re.MULTILINE)


@needs_git
def test_change_is_tested_on_the_scores_of_the_queries(run_lsh, hashbench, diff_json, data, monkeypatch):
    def per_query(name):
        (path,) = (data / "codes").rglob("*.h5")
        dataset = Path.cwd().parent / "tiny.h5"
        hashbench("evaluate", path, "--dataset", dataset, "--metric", "AP", "--per-query", name)
        return np.array([float(line["value"]) for line in csv.DictReader(Path(name).read_text().splitlines())])

    run_lsh(0)
    old = per_query("old.csv")
    cls = registry.get_method("lsh")
    project = cls._project
    monkeypatch.setattr(cls, "_project", lambda self, X: project(self, X[:, ::-1]))
    run_lsh(0)
    new = per_query("new.csv")
    (change,) = changes(diff_json("HEAD~1", "HEAD"))
    expected = stats.ttest_rel(new, old)
    assert change["p_value"] == pytest.approx(expected.pvalue)
    assert change["p_holm"] == pytest.approx(expected.pvalue)
    assert change["low"] <= change["difference"] == pytest.approx(np.mean(new - old), abs=2e-6)
    assert change["high"] >= change["difference"]


@pytest.mark.parametrize(("noise", "is_significant"), [(0.05, True), *slow((0.25, False))])
def test_drop_of_a_hundredth_on_1000_queries_is_significant_as_scipy_says(
    empty_folder, diff_json, noise, is_significant
):
    rng = np.random.default_rng(3)
    old = rng.uniform(0.3, 0.7, 1000)
    new = old - 0.01 + noise * stats.zscore(rng.normal(size=1000))
    (change,) = changes(diff_json(*write_sides([keep(old)], [keep(new)])))
    assert change["difference"] == pytest.approx(-0.01, abs=2e-6)
    expected = stats.ttest_rel(new, old).pvalue
    assert change["p_value"] == change["p_holm"] == pytest.approx(expected)
    assert (change["p_holm"] < 0.05) is (change["high"] < 0) is is_significant


def test_correction_counts_all_tests_of_the_diff(empty_folder, diff_json, hashbench):
    rng = np.random.default_rng(4)
    scores = rng.uniform(0.3, 0.7, (3, 30))
    old = [keep(values, seed=seed) for seed, values in enumerate(scores)]
    new = [keep(values + rng.normal(0.04, 0.1, 30), seed=seed) for seed, values in enumerate(scores)]
    sides = write_sides([*old, row(0.5, seed=9)], [*new, row(0.4, seed=9)])
    untested, *tests = changes(diff_json(*sides))
    assert untested["p_value"] is None  # seed 9, whose scores are not cached, has dropped most
    first, second, third = sorted(test["p_value"] for test in tests)
    corrected = [3 * first, max(3 * first, 2 * second), max(3 * first, 2 * second, third)]
    assert sorted(test["p_holm"] for test in tests) == pytest.approx(corrected)
    text = " ".join(hashbench("diff", *sides).stdout.split())
    assert "corrected by Holm for 3 tests" in text
    assert "‡: tested, and not shown to differ from the old value" in text
    assert "Not tested: 1, as scores of every query are not kept here" in text


def test_queries_without_relevant_items_are_left_out_of_the_test(empty_folder, diff_json):
    old = np.random.default_rng(5).uniform(size=12)
    new = old + np.linspace(-0.1, 0.3, 12)
    sides = write_sides(*([keep(np.insert(values, [0, 7], np.nan))] for values in (old, new)))
    (change,) = changes(diff_json(*sides))
    assert change["p_value"] == pytest.approx(stats.ttest_rel(new, old).pvalue)
