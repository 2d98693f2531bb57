import json
import shutil
from pathlib import Path

import pytest
from helpers.diff_rows import commit, git, needs_git, refusal, row, write, write_sides


@needs_git
def test_fresh_repository_without_commits_or_results_is_an_empty_diff(repository, hashbench):
    assert hashbench("diff").stdout == "HEAD (no commits yet) -> working tree: no results on either side.\n"
    write(Path("results/digits.csv"), row())
    assert "HEAD (no commits yet) -> working tree: 1 new.\n" in hashbench("diff").stdout


@needs_git
def test_tags_and_branches_are_revisions_and_tables_are_no_results(repository, hashbench):
    old = commit(row(0.5))
    git("tag", "v1")
    Path("results/tables").mkdir()
    Path("results/tables/table1.csv").write_text("anything\n")
    new = commit(row(0.6))
    assert f"v1 ({old}) -> main ({new}): 1 changed." in hashbench("diff", "v1", "main").stdout


@needs_git
def test_subfolder_uses_the_results_above_it(repository, hashbench):
    commit(row(0.5))
    write(Path("results/digits.csv"), row(0.6))
    expected = hashbench("diff").stdout
    assert "1 changed" in expected
    (repository / "a" / "results").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository / "a" / "results")
        assert hashbench("diff").stdout == expected


@needs_git
def test_results_of_a_project_inside_a_repository_are_its_own(repository, hashbench):
    commit(row(0.5), row(seed=1))
    commit(row(0.5), file="project/results/digits.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository / "project")
        assert "no differences, 1 rows unchanged" in hashbench("diff").stdout
        assert "no differences, 2 rows unchanged" in hashbench("diff", "--results", "../results").stdout


@needs_git
def test_results_outside_the_repository_are_refused_in_a_sentence(repository, hashbench, tmp_path):
    commit(row())
    assert "outside the git repository" in refusal(hashbench("diff", "--results", tmp_path / "elsewhere"))


@needs_git
def test_shallow_clone_compares_what_it_has_and_says_what_it_lacks(repository, hashbench, tmp_path):
    commit(row(0.4))
    commit(row(0.5))
    git("clone", "--quiet", "--depth=1", f"file://{repository}", tmp_path / "clone")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "clone")
        assert "no differences, 1 rows unchanged" in hashbench("diff", "origin/main").stdout
        sentence = refusal(hashbench("diff", "HEAD~1"))
    assert "'HEAD~1' is neither a revision in this clone" in sentence


@needs_git
@pytest.mark.parametrize(("typed", "hint"), [("mian", "Did you mean 'main'?"), ("xyzzy", "folder.")])
def test_revision_typed_wrong_is_one_sentence(repository, hashbench, typed, hint):
    commit(row())
    sentence = refusal(hashbench("diff", typed))
    assert f"{typed!r} is neither a revision" in sentence
    assert hint in sentence


@pytest.fixture
def forked(repository):
    """A row at 0.4 on main when topic leaves it, then 0.5 on main and 0.6 on topic; the three commits."""
    base = commit(row(0.4))
    git("switch", "--quiet", "--create", "topic")
    topic = commit(row(0.6))
    git("switch", "--quiet", "main")
    return base, commit(row(0.5)), topic


@needs_git
@pytest.mark.parametrize(
    ("typed", "name", "sides"),
    [
        ("main..topic", "main", (0.5, 0.6)),
        ("..topic", "HEAD", (0.5, 0.6)),
        ("main...topic", "merge base of main and topic", (0.4, 0.6)),
        ("topic...", "merge base of topic and HEAD", (0.4, 0.5)),
    ],
)
def test_two_dots_are_both_sides_and_three_start_where_they_parted(forked, diff_json, hashbench, typed, name, sides):
    write(Path("results/digits.csv"), row(0.9))  # the working tree does not matter
    (change,) = diff_json(typed)["rows"]
    assert (change["old"], change["new"]) == sides
    commits = dict(zip((0.4, 0.5, 0.6), forked, strict=True))
    assert hashbench("diff", typed).stdout.startswith(f"{name} ({commits[sides[0]]}) -> ")


@needs_git
def test_paths_with_dots_are_paths(forked, hashbench):
    write(Path("a..main/digits.csv"), row(0.6))
    assert hashbench("diff", "a..main").stdout.startswith("a..main -> working tree: 1 changed.")
    assert "'../old' is neither a revision" in refusal(hashbench("diff", "../old"))


@needs_git
@pytest.mark.parametrize(
    ("sides", "sentence"),
    [
        (["main...topic", "main"], "'main...topic' gives both sides already; leave out 'main'"),
        (["main...tpic"], "'main...tpic' is neither a revision in this clone"),
        (["main...other"], "main and other have 0 merge bases in this clone, expected one. Compare two commits"),
    ],
)
def test_a_range_that_cannot_be_compared_is_refused_in_a_sentence(forked, hashbench, sides, sentence):
    git("switch", "--quiet", "--orphan", "other")
    commit(row(0.7))
    assert sentence in refusal(hashbench("diff", *sides))


@needs_git
def test_revisions_merged_both_ways_have_no_three_dots(forked, hashbench):
    _, main, topic = forked
    for branch, other in (("main", topic), ("topic", main)):
        git("switch", "--quiet", branch)
        git("merge", "--quiet", "--strategy=ours", "--message", "merge", other)
    sentence = refusal(hashbench("diff", "main...topic"))
    assert "main and topic have 2 merge bases in this clone, expected one" in sentence
    assert len({main, topic} & set(sentence.split())) == 1


def test_folders_and_files_are_compared_without_git(empty_folder, hashbench, monkeypatch):
    write(Path("old/digits/lsh.csv"), row(0.5))
    write(Path("old/other/lsh.csv"), row(0.5, dataset="other"))
    write(Path("new/digits/lsh.csv"), row(0.6))
    monkeypatch.setenv("PATH", str(empty_folder))
    assert hashbench("diff", "old", "new").stdout.startswith("old -> new: 1 changed, 1 gone.")
    one = "new/digits/lsh.csv"
    assert hashbench("diff", "old", one).stdout.startswith(f"old -> {one}: 1 changed.")
    write(Path("results/digits/lsh.csv"), row(0.5))
    assert hashbench("diff", "old").stdout.startswith("old -> working tree: 1 gone, 1 unchanged.")


@pytest.mark.parametrize(("has_git", "reason"), [(True, "not a git repository"), (False, "git is not installed")])
def test_revision_without_a_repository_or_git_is_one_sentence(empty_folder, hashbench, monkeypatch, has_git, reason):
    if not has_git:
        monkeypatch.setenv("PATH", str(empty_folder))
    elif shutil.which("git") is None:
        pytest.skip("git is not installed")
    sentence = refusal(hashbench("diff"))
    assert reason in sentence
    assert "hashbench diff OLD NEW" in sentence


@needs_git
def test_past_file_that_can_be_read_all_the_same_is(repository, hashbench):
    commit(row(0.5), row(0.5), row(seed=1))
    path = Path("results/digits.csv")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    git("commit", "--quiet", "--all", "--message", "saved by a spreadsheet")
    write(path, row(0.6), row(seed=1))
    for old in ("HEAD", "HEAD~1"):
        assert "-> working tree: 1 changed, 1 unchanged." in hashbench("diff", old).stdout


@needs_git
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: "nonsense\n", " has columns nonsense, expected dataset,"),
        (lambda text: text + text.splitlines(keepends=True)[1].replace("0.5", "0.55"), ", line 3, holds digits"),
        (lambda text: text + "=======\n", ", line 3, is a conflict marker"),
    ],
)
def test_past_file_that_nobody_can_read_is_named_with_its_commit(repository, hashbench, change, words):
    commit(row())
    git("tag", "v1")
    path = Path("results/digits.csv")
    path.write_text(change(path.read_text()))
    git("commit", "--quiet", "--all", "--message", "damage")
    write(path, row())
    assert f"HEAD:results/digits.csv{words}" in refusal(hashbench("diff", "HEAD"))
    assert hashbench("diff", "v1").exit_code == 0


def test_a_deviation_that_one_side_lacks_is_no_change(empty_folder, hashbench):
    old, new = write_sides([row(tie_sd=0.01)], [row(tie_sd=0.02)])
    assert "1 changed" in hashbench("diff", old, new).stdout
    write(old, row(tie_sd=None))
    for sides in ((old, new), (new, old)):
        assert "no differences, 1 rows unchanged" in hashbench("diff", *sides).stdout
    write(new, row(float("nan"), float("nan"), float("nan"), n_undefined=200))
    assert "1 changed" in hashbench("diff", old, new).stdout


@needs_git
def test_settings_of_a_commit_before_they_moved_into_records_are_read(repository, hashbench):
    path = write(Path("results/digits/lsh.csv"), row(params='{"a": 1}'))
    record = path.with_suffix(".json")
    settings = {name: {"params": params} for name, params in json.loads(record.read_text())["settings"].items()}
    record.rename(path.with_suffix(".settings.json")).write_text(json.dumps(settings))
    git("add", ".")
    git("commit", "--quiet", "--message", "results")
    write(path, row(0.55, params='{"a": 1}'))
    counts = json.loads(hashbench("diff", "HEAD", "--format", "json").stdout)["counts"]
    assert (counts["changed"], sum(counts.values())) == (1, 1)
