"""What changed between two sides of results, and how `hashbench diff` prints it."""

import csv
import json
import os
import re
import shutil
import subprocess
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from conftest import SCRIPT
from helpers.diff_rows import changes, commit, git, keep, needs_git, refusal, row, side, write, write_sides
from helpers.paths import ROOT
from helpers.result_files import rows_in
from helpers.thoroughness import slow
from scipy import stats

from hashbench import cards, registry
from hashbench.cli.main import cli
from hashbench.reports.diff import compare
from hashbench.store import results

WORKFLOW = ROOT / ".github" / "workflows" / "hashbench.yml"


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
    old, new = [row(seed=seed) for seed in range(3)], [row(0.51, seed=0), row(0.40, seed=1), row(0.49, seed=2)]
    assert compare(side(*old), side(*new)).of("changed")["seed"].tolist() == [1, 2, 0]  # the greatest loss first


def test_rows_of_other_data_or_version_are_not_comparable_and_say_why():
    diff = compare(side(row(0.5)), side(row(0.1, method_version=3, dataset_fingerprint="bbbb")))
    assert diff.of("not comparable")["other"].tolist() == [
        "dataset fingerprint aaaa -> bbbb, method version 1 -> 3",
    ]
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
        ((0.5, float("nan"), float("nan"), None), (0.5, 0.4, 0.6, 0.01), "unknown"),
    ],
)
def test_change_answers_what_ties_leave_open(old, new, answer):
    assert compare(side(row(*old)), side(row(*new))).of("changed")["ties"].tolist() == [answer]


@pytest.mark.parametrize(
    ("metric", "old", "new", "limit", "n_drops"),
    [
        ("AP", 0.5, 0.49, 0.01, 0),  # by just as much, whatever 0.5 - 0.49 is in floating point
        ("AP", 0.5, 0.489999, 0.01, 1),
        ("AP", 0.5, 0.499999, 0.0, 1),
        ("AP", 0.5, 0.9, 0.0, 0),
        ("PairwiseError", 0.5, 0.9, 0.01, 1),
        ("PairwiseError", 0.5, 0.1, 0.01, 0),
        ("AP", 0.5, float("nan"), 0.9, 1),
        ("AP", float("nan"), 0.1, 0.0, 0),
    ],
)
def test_drop_is_a_loss_beyond_the_limit(metric, old, new, limit, n_drops):
    diff = compare(side(row(old, metric=metric)), side(row(new, metric=metric)))
    assert len(diff.drops(limit)) == n_drops


def test_seeds_are_averaged_over_those_that_can_be_compared_and_undefined_if_one_is():
    old = [row(0.2, seed=0), row(0.4, seed=1), row(0.9, seed=2), row(0.9, seed=3), row(0.5, n_bits=8)]
    new = [row(0.3, seed=0), row(0.4, seed=1), row(0.9, seed=2, method_version=2), row(0.1, n_bits=8)]
    (mean,) = compare(side(*old), side(*new)).over_seeds().itertuples()
    assert (mean.n_seeds, mean.n_changed) == (2, 1)
    assert (mean.old, mean.new, mean.difference) == pytest.approx((0.3, 0.35, 0.05))
    old[0] = row(float("nan"), seed=0)
    (mean,) = compare(side(*old), side(*new)).over_seeds().itertuples()
    assert (mean.old, mean.new, mean.difference) == pytest.approx((np.nan, 0.35, np.nan), nan_ok=True)


# ---------------------------------------------------------------- two commits


@needs_git
def test_change_between_commits_is_tested_on_the_scores_of_the_queries(
    hashbench, tiny_file, repository, diff_json, data, monkeypatch
):
    path = tiny_file()

    def run(*seeds):
        shutil.rmtree("results", ignore_errors=True)
        options = [part for seed in seeds for part in ("--seed", seed)]
        hashbench("run", "--method", "lsh", "--bits", 8, "--dataset", path, "--metric", "AP", "--force", *options)
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "--message", "run")
        hashbench(
            "evaluate", data / "codes/tiny/lsh-8-s0.h5", "--dataset", path, "--per-query", "q.csv", "--metric", "AP"
        )
        scores = [float(line["value"]) for line in csv.DictReader(Path("q.csv").read_text().splitlines())]
        return np.array(scores), git("rev-parse", "HEAD")[:10]

    old, before = run(0, 1)
    _, same = run(0, 1)
    result = hashbench("diff", "HEAD~1", "HEAD", "--fail-on-drop", 0)
    assert result.stdout == f"HEAD~1 ({before}) -> HEAD ({same}): no differences, 2 rows unchanged.\n"
    assert result.exit_code == 0
    cls = registry.get_method("lsh")
    project = cls._project
    monkeypatch.setattr(cls, "_project", lambda self, X: project(self, X[:, ::-1]))
    new, after = run(0, 2)
    content = diff_json("HEAD~1", "HEAD")
    (change,) = changes(content)
    assert [(row["status"], row["seed"]) for row in content["rows"]] == [("changed", 0), ("new", 2), ("gone", 1)]
    values = {line["seed"]: float(line["value"]) for line in rows_in(Path("results/tiny"))}
    assert (change["new"], content["rows"][1]["new"]) == (values["0"], values["2"])
    expected = stats.ttest_rel(new, old)
    assert change["p_value"] == pytest.approx(expected.pvalue)
    assert change["p_holm"] is None or change["p_holm"] == pytest.approx(expected.pvalue)
    assert change["low"] <= change["difference"] == pytest.approx(np.mean(new - old), abs=2e-6)
    assert change["high"] >= change["difference"]
    card = replace(cards.method_card("lsh"), version=2)
    monkeypatch.setattr("hashbench.pipeline.grid.method_card", lambda name: card)
    run(0, 2)
    text = hashbench("diff", after).stdout
    assert "working tree: 2 not comparable.\n\nNot comparable\n" in text
    assert re.search(r"^ tiny:features +lsh .* AP .* method version 1 -> 2$", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("noise", "is_significant"), [(0.05, True), *slow((0.25, False))])
def test_drop_of_a_hundredth_on_1000_queries_is_significant_as_scipy_says(
    empty_folder, diff_json, noise, is_significant
):
    rng = np.random.default_rng(3)
    old = rng.uniform(0.3, 0.7, 1000)
    new = old - 0.01 + noise * stats.zscore(rng.normal(size=1000))
    old[5], new[5] = np.nan, np.nan  # nothing is relevant to it
    (change,) = changes(diff_json(*write_sides([keep(old)], [keep(new)])))
    expected = stats.ttest_rel(new, old, nan_policy="omit").pvalue
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


# ---------------------------------------------------------------- as text


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What is printed, by options, of two files with a row of each kind; the scores behind the changes are cached."""
    folder = tmp_path_factory.mktemp("diff")
    scores, same, texts = np.linspace(0.2, 0.8, 40), row(seed=5), {}
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        patch.setenv("HASHBENCH_DATA", str(folder / "data"))
        sides = write_sides(
            [keep(scores, seed=0), keep(scores + 0.001, seed=1), row(seed=2), row(seed=3), same],
            [
                keep(scores - 0.02, seed=0),
                keep(scores + 0.101, seed=1),
                row(seed=2, method_version=2),
                row(seed=4),
                same,
            ],
        )
        for options in ("", "--format csv", "--format json", "--format markdown", "--format csv --only-changed",
                        "--only-changed", "--fail-on-drop 0.019", "--fail-on-drop 0.02"):  # fmt: skip
            texts[options] = CliRunner().invoke(cli, ["diff", *map(str, sides), *options.split()])
    return texts


def test_table_shows_each_kind(printed):
    lines = printed[""].stdout.splitlines()
    assert " ".join(line.strip() for line in lines[: lines.index("")]) == (
        "old.csv -> new.csv: 2 changed, 1 not comparable, 1 new, 1 gone, 1 unchanged. Changed rows: 1 worse, "
        "1 not apart under a shuffle, 2 of 2 tested significant for these codes."
    )
    titles = ["Changed", "Means over seeds", "Not comparable", "New", "Gone"]
    assert [line for line in lines if line in titles] == titles
    rows = [" ".join(line.split()) for line in lines]
    assert "digits:pixels lsh 16 0 AP 0.500000 0.480000 -0.020000† <0.0001 -0.020000 to -0.020000" in rows
    assert any("†: a shuffle of the database may reverse this value and the old value." in line for line in lines)
    assert "digits:pixels lsh 16 2 of 3 AP 0.500333 0.527000 +0.026667" in rows
    assert "digits:pixels lsh 16 4 AP 0.500000" in rows
    changed = printed["--only-changed"].stdout
    assert "1 not comparable, 1 new, 1 gone, 1 unchanged" in changed
    assert not [line for line in changed.splitlines() if line in ("Not comparable", "New", "Gone")]


def test_csv_and_json_have_an_entry_per_row(printed):
    header, *lines = csv.reader(printed["--format csv"].stdout.splitlines())
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    assert [(line["status"], line["seed"], line["old"], line["new"]) for line in rows] == [
        ("changed", "0", "0.500000", "0.480000"),
        ("changed", "1", "0.501000", "0.601000"),
        ("not comparable", "2", "0.500000", "0.500000"),
        ("new", "4", "", "0.500000"),
        ("gone", "3", "0.500000", ""),
    ]
    assert (rows[0]["difference"], float(rows[0]["p_value"])) == ("-0.020000", pytest.approx(2**-39, rel=0.01))
    assert [line["ties"] for line in rows[:2]] == ["not apart under a shuffle", "apart under a shuffle"]
    assert rows[2]["other"] == "method version 1 -> 2"
    content = json.loads(printed["--format json"].stdout)
    assert content["counts"] == {"changed": 2, "not comparable": 1, "new": 1, "gone": 1, "unchanged": 1}
    assert [row["difference"] for row in content["rows"]] == [-0.02, 0.1, None, None, None]
    assert [(row["old"], row["new"]) for row in content["rows"][3:]] == [(None, 0.5), (0.5, None)]
    assert content["over_seeds"][0]["n_seeds"] == 3
    lines = printed["--format csv --only-changed"].stdout.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["status", "changed", "changed"]


def test_markdown_is_a_sentence_and_tables_with_all_but_the_changes_folded(printed):
    text = printed["--format markdown"].stdout
    assert text.startswith("### old.csv -> new.csv\n\n2 changed, 1 not comparable, 1 new, 1 gone, 1 unchanged.")
    numbers = "0.500000 | 0.480000 | -0.020000"
    assert f"| digits:pixels | lsh | 16 | 0 | AP | {numbers}† | \\<0.0001 |" in text.partition("<details>")[0]
    assert text.count("<details>") == text.count("</details>") == 4
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


@pytest.mark.parametrize(("limit", "code"), [("0.019", 3), ("0.02", 0)])
def test_drop_beyond_the_limit_is_exit_code_3(printed, limit, code):
    result = printed[f"--fail-on-drop {limit}"]
    assert (result.exit_code, result.stdout) == (code, printed[""].stdout)
    complaint = "AP of lsh on digits:pixels at 16 bits with seed 0: 0.500000 -> 0.480000."
    assert (complaint in result.stderr) is (code == 3)


def test_a_note_counts_changed_means_over_other_queries(hashbench, empty_folder):
    skip = {"metric": "P@r2:skip"}
    old = row(seed=0, n_undefined=20, **skip), row(seed=1, n_undefined=20, **skip)
    new = row(0.55, seed=0, n_undefined=50, **skip), row(0.55, seed=1, n_undefined=20, **skip)
    text = " ".join(hashbench("diff", *write_sides(old, new)).stdout.split())
    assert "Different queries: 1 of the changed values are means over others than before." in text
    assert "Different queries" not in hashbench("diff", *write_sides(old[1:], new[1:])).stdout


def test_markdown_is_cut_to_the_length_of_a_comment(empty_folder, hashbench):
    def rows(value, *seeds):
        settings = [json.dumps({"a": str(n) * 200}) for n in range(5)]
        return [row(value, seed=seed, params=params) for seed in range(*seeds) for params in settings]

    text = hashbench("diff", *write_sides(rows(0.5, 9), rows(0.4, 5, 99)), "--format", "markdown").stdout
    assert len(text) < 65536  # GitHub's limit
    assert re.findall(r"and (\d+) more", text)
    assert "and 0 more" not in text
    assert "20 changed" in text
    assert "New: 450" in text


def test_many_rows_of_one_side_are_counted_on_a_terminal(empty_folder, hashbench):
    old = [row(seed=seed, method="itq") for seed in range(20)]
    new = [row(seed=seed, method=method) for seed in range(21) for method in ("lsh", "sh")]
    sides = [write(Path(f"{rows[0].method}/digits.csv"), *rows, row(seed=99)).parent for rows in (old, new)]
    _, counts, listed = re.split(
        r"\nNew: 42 rows \(--format csv lists them\)\n|\nGone\n", hashbench("diff", *sides).stdout
    )
    assert re.findall(r"digits:pixels +(\w+) +(\d+)$", counts, flags=re.MULTILINE) == [("lsh", "21"), ("sh", "21")]
    assert listed.count("itq") == 20


def test_sides_without_a_common_row_have_a_note_and_files_of_two_methods_are_refused(empty_folder, hashbench):
    sides = [write(Path(f"{method}/digits.csv"), row(method=method)).parent for method in ("itq", "lsh")]
    note = "1 new, 1 gone. The two sides share no row. Check the names of folders, files and metrics;"
    assert note in " ".join(hashbench("diff", *sides).stdout.split())
    results.merge_rows(Path(), [row(method="itq"), row(method="lsh")])
    done = hashbench("diff", "digits/itq.csv", "digits/lsh.csv")
    assert "no results of one dataset and method in" in refusal(done)
    assert "hashbench compare compares methods." in refusal(done)


def test_a_parameter_cannot_write_html_or_cells_or_lines(empty_folder, hashbench):
    old, new = [row(params='{"a": "<img>"}'), row(params='{"a": "x|y"}')], [row(params='{"a": "x\\n\\u001b[31m"}')]
    comment = hashbench("diff", *write_sides(old, new), "--format", "markdown").stdout
    assert r"| lsh a=\<img> |" in comment
    assert r"| lsh a=x\|y |" in comment
    assert r'| lsh a="x\\n\\u001b\[31m" |' in comment
    assert r'lsh a="x\n\u001b[31m"' in hashbench("diff", "old.csv", "new.csv").stdout


def test_metrics_can_be_chosen_by_any_of_their_names(empty_folder, diff_json):
    old, new = ([row(value, metric=metric) for metric in ("AP@10", "AP")] for value in (0.5, 0.4))
    content = diff_json(*write_sides(old, new), "--metric", "AP@10:retrieved")
    assert [row["metric"] for row in content["rows"]] == ["AP@10"]


@needs_git
@pytest.mark.parametrize(
    "arguments", [["empty", "empty"], ["--results", "resluts"], ["results/digits.csv", "other.csv"]]
)
def test_gate_with_nothing_to_compare_is_a_mistake(repository, hashbench, arguments):
    Path("empty").mkdir()
    commit(row())
    write(Path("other.csv"), row(dataset="other"))
    assert "nothing to compare" in refusal(hashbench("diff", *arguments, "--fail-on-drop", 0.01))


# ---------------------------------------------------------------- documents


def test_workflow_and_page_have_the_options_that_exist():
    for command in ("diff", "report"):
        known = {option for parameter in cli.get_command(None, command).params for option in parameter.opts}
        lines = re.findall(rf"hashbench {command}[^`\n>]*", WORKFLOW.read_text())
        assert lines
        assert {option for line in lines for option in re.findall(r"--[a-z-]+", line)} <= known
    page = (ROOT / "docs" / "diff.md").read_text()
    for parameter in cli.get_command(None, "diff").params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in page
    for code in (1, 2, 3):
        assert f"code {code}" in page


@pytest.mark.slow
@needs_git
def test_steps_of_the_workflow_show_a_drop_and_fail(repository, tmp_path):
    steps = {step.get("name"): step for step in yaml.safe_load(WORKFLOW.read_text())["jobs"]["results"]["steps"]}
    commit(row(0.5))
    git("clone", "--quiet", "--depth=1", f"file://{repository}", tmp_path / "clone")
    clone = tmp_path / "clone"
    git("checkout", "--quiet", "-b", "topic", cwd=clone)
    git("update-ref", "-d", "refs/remotes/origin/main", cwd=clone)
    write(clone / "results" / "digits.csv", row(0.48))
    (clone / ".venv").symlink_to(SCRIPT.parents[1])
    environment = {**os.environ, "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    codes = [
        subprocess.run(
            ["bash", "-e", "-c", steps[name]["run"]], cwd=clone, env=environment, capture_output=True
        ).returncode
        for name in ("Fetch the base", "Compare with the base", "Show in the job's summary", "Write the report")
    ]
    assert codes == [0, 3, 0, 0]
    assert '"old":[500000],"new":[480000]' in (clone / "report.html").read_text()  # millionths
    assert "| 0.500000 | 0.480000 | -0.020000† |" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize(
    ("earlier", "call"),
    [
        ("", "api repos/a/b/issues/5/comments --field body=@comment.md\n"),
        ("17", "api --method PATCH repos/a/b/issues/comments/17 --field body=@comment.md\n"),
    ],
)
def test_comment_of_the_workflow_replaces_the_one_with_its_mark(empty_folder, earlier, call):
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["results"]
    (step,) = [step for step in job["steps"] if step.get("name", "").startswith("Comment")]
    Path("diff.md").write_text("### what changed\n")
    listed = f"printf '{earlier}\\n18\\n'" if earlier else "true"
    Path("gh").write_text(f'#!/bin/sh\ncase "$*" in *--jq*) {listed};; *) echo "$@" >> calls;; esac\n')
    Path("gh").chmod(0o755)
    environment = {"PATH": f"{empty_folder}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "a/b", **step["env"]}
    subprocess.run(
        ["bash", "-e", "-c", step["run"]], env=environment | {"COMMENTS": "repos/a/b/issues/5/comments"}, check=True
    )
    assert Path("calls").read_text() == call
    assert Path("comment.md").read_text() == "<!-- hashbench diff -->\n### what changed\n"
