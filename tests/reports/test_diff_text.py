import csv
import json
import os
import re
import subprocess
from pathlib import Path

import click
import numpy as np
import pytest
import yaml
from conftest import SCRIPT
from helpers.diff_rows import commit, git, keep, needs_git, refusal, row, write, write_sides
from helpers.paths import ROOT

from hashbench.cli.main import cli
from hashbench.store import results

WORKFLOW = ROOT / ".github" / "workflows" / "hashbench.yml"


@pytest.fixture
def all_kinds(empty_folder):
    """Two files with a row of each kind; the scores behind the changes are cached."""
    scores, same = np.linspace(0.2, 0.8, 40), row(seed=5)
    return write_sides(
        [keep(scores, seed=0), keep(scores + 0.001, seed=1), row(seed=2), row(seed=3), same],
        [keep(scores - 0.02, seed=0), keep(scores + 0.101, seed=1), row(seed=2, method_version=2), row(seed=4), same],
    )


def test_table_shows_each_kind(all_kinds, hashbench):
    lines = hashbench("diff", *all_kinds).stdout.splitlines()
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


def test_a_note_counts_changed_means_over_other_queries(hashbench, empty_folder):
    skip = {"metric": "P@r2:skip"}
    old = row(seed=0, n_undefined=20, **skip), row(seed=1, n_undefined=20, **skip)
    new = row(0.55, seed=0, n_undefined=50, **skip), row(0.55, seed=1, n_undefined=20, **skip)
    for form in ("table", "markdown"):
        text = " ".join(hashbench("diff", *write_sides(old, new), "--format", form).stdout.split())
        assert "Different queries: 1 of the changed values are means over others than before." in text
    assert "Different queries" not in hashbench("diff", *write_sides(old[1:], new[1:])).stdout


def test_only_changed_rows_are_listed_if_asked(all_kinds, hashbench, diff_json):
    text = hashbench("diff", *all_kinds, "--only-changed").stdout
    assert "1 not comparable, 1 new, 1 gone, 1 unchanged" in text
    assert not [line for line in text.splitlines() if line in ("Not comparable", "New", "Gone")]
    assert {row["status"] for row in diff_json(*all_kinds, "--only-changed")["rows"]} == {"changed"}
    lines = hashbench("diff", *all_kinds, "--only-changed", "--format", "csv").stdout.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["status", "changed", "changed"]


def test_csv_has_a_line_per_row(all_kinds, hashbench):
    header, *lines = csv.reader(hashbench("diff", *all_kinds, "--format", "csv").stdout.splitlines())
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


def test_json_has_counts_and_numbers(all_kinds, diff_json):
    content = diff_json(*all_kinds)
    assert content["counts"] == {"changed": 2, "not comparable": 1, "new": 1, "gone": 1, "unchanged": 1}
    assert [row["difference"] for row in content["rows"]] == [-0.02, 0.1, None, None, None]
    assert [(row["status"], row["seed"], row["old"], row["new"]) for row in content["rows"][3:]] == [
        ("new", 4, None, 0.5),
        ("gone", 3, 0.5, None),
    ]
    assert content["over_seeds"][0]["n_seeds"] == 3


def test_markdown_is_a_sentence_and_tables_with_all_but_the_changes_folded(all_kinds, hashbench):
    text = hashbench("diff", *all_kinds, "--format", "markdown").stdout
    assert text.startswith("### old.csv -> new.csv\n\n2 changed, 1 not comparable, 1 new, 1 gone, 1 unchanged.")
    changes = text.partition("<details>")[0]
    numbers = "0.500000 | 0.480000 | -0.020000"
    assert f"| digits:pixels | lsh | 16 | 0 | AP | {numbers}† | \\<0.0001 |" in changes
    assert text.count("<details>") == text.count("</details>") == 4
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_markdown_leaves_out_what_is_too_long_for_a_comment(empty_folder, hashbench):
    def rows(value, *seeds):
        return [row(value, seed=seed, metric=f"P@{k}") for seed in range(*seeds) for k in range(1, 30)]

    text = hashbench("diff", *write_sides(rows(0.5, 50), rows(0.4, 9, 99)), "--format", "markdown").stdout
    assert len(text) < 65536  # GitHub's limit
    assert f"and {41 * 29 - 50} more." in text
    assert "New: 1421" in text


def test_markdown_with_long_labels_is_cut_by_its_length(empty_folder, hashbench):
    def rows(value, *seeds):
        settings = [json.dumps({"a": str(n) * 200}) for n in range(5)]
        return [row(value, seed=seed, params=params) for seed in range(*seeds) for params in settings]

    old, new, more = rows(0.5, 9), rows(0.4, 9), rows(0.5, 5, 99)
    for sides in ((old, new), (old, more), (new, more)):
        text = hashbench("diff", *write_sides(*sides), "--format", "markdown").stdout
        assert len(text) < 65536
        assert text.startswith("### ")
    assert "and 0 more" not in text
    assert "20 changed" in text


def test_many_rows_of_one_side_are_counted_on_a_terminal(empty_folder, hashbench):
    old = [row(seed=seed, method="itq") for seed in range(20)]
    new = [row(seed=seed, method=method) for seed in range(21) for method in ("lsh", "sh")]
    sides = [write(Path(f"{rows[0].method}/digits.csv"), *rows, row(seed=99)).parent for rows in (old, new)]
    _, counts, listed = re.split(
        r"\nNew: 42 rows \(--format csv lists them\)\n|\nGone\n", hashbench("diff", *sides).stdout
    )
    assert re.findall(r"digits:pixels +(\w+) +(\d+)$", counts, flags=re.MULTILINE) == [("lsh", "21"), ("sh", "21")]
    assert listed.count("itq") == 20
    assert len(hashbench("diff", *sides, "--format", "csv").stdout.splitlines()) == 1 + 42 + 20


def test_long_labels_take_several_lines_and_numbers_one(empty_folder, hashbench):
    params = json.dumps({f"parameter_{number}": number for number in range(40)}, sort_keys=True)
    sides = write_sides([row(0.5, params=params)], [row(0.4, params=params)])
    lines = hashbench("diff", *sides).stdout.splitlines()
    assert max(map(len, lines)) < 160
    (first,) = [line for line in lines if "digits:pixels" in line]
    assert first.split()[2:8] == ["parameter_0=0", "parameter_1=1", "16", "0", "AP", "0.500000"]
    assert sum("parameter_" in line for line in lines) > 10


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_sides_without_a_common_row_have_a_note(empty_folder, hashbench, form):
    sides = [write(Path(f"{method}/digits.csv"), row(method=method)).parent for method in ("itq", "lsh")]
    note = "1 new, 1 gone. The two sides share no row. Check the names of folders, files and metrics;"
    assert note in " ".join(hashbench("diff", *sides, "--format", form).stdout.split())
    write(Path("lsh/digits.csv"), row(method="itq"), row(method="lsh"))
    assert "share no row" not in hashbench("diff", *sides, "--format", form).stdout


def test_files_of_two_methods_name_the_command_that_compares_methods(tmp_path, hashbench):
    results.merge_rows(tmp_path, [row(method="itq"), row(method="lsh")])
    done = hashbench("diff", tmp_path / "digits" / "itq.csv", tmp_path / "digits" / "lsh.csv")
    assert "no results of one dataset and method in" in refusal(done)
    assert "hashbench compare compares methods." in refusal(done)


def test_parameters_are_named_where_a_method_has_several(empty_folder, hashbench):
    old, new = (row(params=f'{{"n_iter": {n_iter}}}', method="itq") for n_iter in (50, 9))
    text = hashbench("diff", *write_sides([old, row(0.45)], [new, row(0.55)])).stdout
    assert " itq  " in text
    assert "itq n_iter=9" in text
    assert " lsh  " in text


def test_a_parameter_cannot_write_html_or_cells_or_lines(empty_folder, hashbench):
    old, new = [row(params='{"a": "<img>"}'), row(params='{"a": "x|y"}')], [row(params='{"a": "x\\n\\u001b[31m"}')]
    comment = hashbench("diff", *write_sides(old, new), "--format", "markdown").stdout
    table = hashbench("diff", "old.csv", "new.csv").stdout
    assert r"| lsh a=\<img> |" in comment
    assert r"| lsh a=x\|y |" in comment
    assert r'| lsh a="x\\n\\u001b\[31m" |' in comment
    assert r'lsh a="x\n\u001b[31m"' in table


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown"])
def test_same_diff_has_the_same_bytes(all_kinds, hashbench, form):
    first, second = (hashbench("diff", *all_kinds, "--format", form).stdout_bytes for _ in range(2))
    assert first == second
    assert first.endswith(b"\n")


def test_metrics_can_be_chosen_by_any_of_their_names(empty_folder, diff_json):
    old, new = ([row(value, metric=metric) for metric in ("AP@10", "AP")] for value in (0.5, 0.4))
    content = diff_json(*write_sides(old, new), "--metric", "AP@10:retrieved")
    assert [row["metric"] for row in content["rows"]] == ["AP@10"]


# ---------------------------------------------------------------- a gate


@pytest.mark.parametrize(("limit", "code"), [(0.019, 3), (0.02, 0), (0.5, 0), (0, 3)])
def test_drop_beyond_the_limit_is_exit_code_3(all_kinds, hashbench, limit, code):
    plain = hashbench("diff", *all_kinds)
    result = hashbench("diff", *all_kinds, "--fail-on-drop", limit)
    assert plain.exit_code == 0
    assert result.exit_code == code
    assert result.stdout == plain.stdout
    complaint = "AP of lsh on digits:pixels at 16 bits with seed 0: 0.500000 -> 0.480000."
    assert (complaint in result.stderr) is (code == 3)


@needs_git
@pytest.mark.parametrize(
    "arguments",
    [
        ["empty", "empty"],
        ["empty", "--results", "resluts"],
        ["--results", "resluts"],
        ["results/digits.csv", "other.csv"],
        ["results", "--metric", "AP@7"],
    ],
)
def test_gate_with_nothing_to_compare_is_a_mistake(repository, hashbench, arguments):
    Path("empty").mkdir()
    commit(row())
    write(Path("other.csv"), row(dataset="other"))
    assert "nothing to compare" in refusal(hashbench("diff", *arguments, "--fail-on-drop", 0.01))
    assert hashbench("diff", "empty").exit_code == 0  # all is new


# ---------------------------------------------------------------- documents


@pytest.mark.parametrize("command", ["diff", "report"])
def test_commands_of_the_workflow_have_options_that_exist(command):
    known = {option for parameter in cli.get_command(None, command).params for option in parameter.opts}
    lines = re.findall(rf"hashbench {command}[^`\n>]*", WORKFLOW.read_text())
    assert lines
    assert {option for line in lines for option in re.findall(r"--[a-z-]+", line)} <= known


def test_page_names_each_option_and_exit_code():
    page = (ROOT / "docs" / "diff.md").read_text()
    for parameter in cli.get_command(None, "diff").params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in page
    for code in (0, 1, 2, 3):
        assert f"| {code} |" in page


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


def test_job_on_main_is_not_cancelled():
    when = yaml.safe_load(WORKFLOW.read_text())["concurrency"]["cancel-in-progress"]
    assert when == "${{ github.event_name == 'pull_request' }}"
