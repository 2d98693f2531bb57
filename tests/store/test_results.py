import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from diffing import git, needs_git

from hashbench.errors import HashbenchError
from hashbench.store import results

HEADER = (
    "dataset,features,method,params,n_bits,seed,metric,value,tie_sd,low,high,n_queries,n_undefined,"
    "dataset_fingerprint,method_version\n"
)


def row(**changes):
    fields = {
        "dataset": "digits",
        "features": "pixels",
        "method": "itq",
        "params": '{"n_iter": 50}',
        "n_bits": 16,
        "seed": 0,
        "metric": "AP",
        "value": "0.500000",
        "tie_sd": "0.001000",
        "low": "0.000000",
        "high": "1.000000",
        "n_queries": 200,
        "n_undefined": 3,
        "dataset_fingerprint": "0123456789abcdef",
        "method_version": 1,
    }
    return results.Row(**(fields | changes))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "digits.csv"


def test_file_is_written_as_the_design_says(path):
    results.merge_rows(path, [row()])
    assert path.read_bytes().decode() == HEADER + (
        'digits,pixels,itq,"{""n_iter"": 50}",16,0,AP,0.500000,0.001000,0.000000,1.000000,200,3,0123456789abcdef,1\n'
    )


def test_rows_are_read_as_they_were_written(path):
    rows = [row(seed=0), row(seed=1, dataset_fingerprint="1234567890123456"), row(seed=2, features='a,"b"')]
    results.merge_rows(path, rows)
    assert sorted(results.read_rows(path)) == sorted(rows)


def test_rows_are_sorted_by_key_with_numbers_as_numbers(path):
    rows = [row(n_bits=128), row(n_bits=16, seed=10), row(n_bits=16, seed=9), row(method="a", metric="P@r2")]
    results.merge_rows(path, reversed(rows))
    found = [(one.method, one.n_bits, one.seed) for one in results.read_rows(path)]
    assert found == [("a", 16, 0), ("itq", 16, 9), ("itq", 16, 10), ("itq", 128, 0)]


@pytest.mark.parametrize(
    "change",
    [
        {"value": "0.700000"},
        {"low": "0.100000", "high": "0.900000"},
        {"n_queries": 5, "n_undefined": 0},
        {"dataset_fingerprint": "ffffffffffffffff"},
        {"method_version": 2},
    ],
)
def test_row_of_the_same_key_is_replaced(path, change):
    results.merge_rows(path, [row(), row(seed=1)])
    results.merge_rows(path, [row(**change)])
    assert results.read_rows(path) == [row(**change), row(seed=1)]


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "x"},
        {"features": "x"},
        {"method": "x"},
        {"params": "{}"},
        {"n_bits": 8},
        {"seed": 4},
        {"metric": "x"},
    ],
)
def test_row_of_another_key_is_added(path, change):
    results.merge_rows(path, [row()])
    results.merge_rows(path, [row(**change)])
    assert len(results.read_rows(path)) == 2
    assert row().key != row(**change).key


def test_key_is_all_up_to_the_metric():
    names = list(results.Row._fields)
    assert names[: len(row().key)] == ["dataset", "features", "method", "params", "n_bits", "seed", "metric"]
    assert ",".join(results.COLUMNS) + "\n" == HEADER


def test_merging_what_is_there_changes_nothing(path):
    results.merge_rows(path, [row(), row(seed=1)])
    before = path.read_bytes(), path.stat().st_mtime_ns
    results.merge_rows(path, [row(seed=1)])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "disorder",
    [
        lambda lines: [lines[0], lines[2], lines[1]],
        lambda lines: [*lines[:-1], lines[-1].rstrip("\n")],
    ],
    ids=["unsorted", "last line not ended"],
)
def test_file_of_an_editor_is_put_in_order_by_the_next_merge(path, disorder):
    results.merge_rows(path, [row(), row(seed=1)])
    whole = path.read_bytes()
    lines = whole.decode().splitlines(keepends=True)
    path.write_bytes("".join(disorder(lines)).encode())
    results.merge_rows(path, [row(seed=1)])
    assert path.read_bytes() == whole


def test_missing_file_has_no_rows(path):
    assert results.read_rows(path) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"method,value\nitq,0.5\n",
        HEADER.replace("low,high", "high,low").encode(),
        b"<<<<<<< HEAD\n" + HEADER.encode(),
        HEADER.encode() + b"<<<<<<< HEAD\n",
        HEADER.encode() + b"digits,pixels,itq,{},sixteen,0,AP,0.5,0.01,0.4,0.6,200,3,0123,1\n",
        HEADER.encode() + b"digits,pixels,itq,{},16,0,AP,0.5,0.01,0.4,0.6,200,3,0123\n",
        HEADER.encode() + b"digits,pixels,itq,{},16,0,AP,0.5,0.01,0.4,0.6,200,3,0123,1,and more\n",
        HEADER.encode() + b"d\xff,pixels,itq,{},16,0,AP,0.5,0.01,0.4,0.6,200,3,0123,1\n",
    ],
)
def test_foreign_content_is_refused_by_name_and_left_alone(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    for use in (lambda: results.merge_rows(path, [row()]), lambda: results.read_results(path.parent)):
        with pytest.raises(HashbenchError) as caught:
            use()
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == content


LINE = "digits,pixels,itq,{},16,0,AP,0.5,0.01,0.4,0.7,200,3,0123,1\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (HEADER + LINE + LINE, ["line 3, holds digits pixels itq {} 16 0 AP a second", "line 2", "the same numbers"]),
        (HEADER + LINE + LINE.replace("0.5", "0.7"), ["line 3", "line 2", "with other numbers", "Delete one"]),
        (HEADER + "<<<<<<< HEAD\n" + LINE, ["line 2, is a conflict marker of git (<<<<<<< HEAD)", "results merge"]),
        (HEADER + LINE + "=======\n", ["line 3, is a conflict marker", "--ours"]),
        (HEADER + LINE + ">>>>>>> topic\n", ["line 3, is a conflict marker"]),
        ("\ufeff" + HEADER + LINE, ["byte order mark", "UTF-8 without"]),
        ((HEADER + LINE).replace("\n", "\r\n"), ["CR LF", "eol=lf"]),
        ((HEADER + LINE).replace("seed,", "").replace(",0,AP", ",AP"), ["lacks column seed,"]),
        (HEADER + LINE.replace(",0,AP", ",AP"), ["line 2: it has 14 cells, expected 15"]),
        (HEADER + LINE.replace("digits", "x/../.."), ["line 2: column dataset", "'x/../..'", "names files"]),
        (HEADER + LINE.replace("itq", "../itq"), ["line 2: column method", "'../itq'"]),
        (HEADER + LINE.replace("itq", "i" * 300), ["line 2: column method", "of 300 characters"]),
        (HEADER + LINE.replace("{}", "[" * 100_000), ["line 2: "]),
    ],
)
def test_what_git_and_editors_leave_is_told_in_its_own_words(path, text, parts):
    path.parent.mkdir()
    path.write_text(text, newline="")
    with pytest.raises(HashbenchError) as caught:
        results.read_rows(path)
    assert str(caught.value).startswith(str(path))
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_a_key_in_two_files_of_a_folder_is_refused_with_both_places(tmp_path):
    results.merge_rows(tmp_path / "digits.csv", [row(), row(seed=1)])
    (tmp_path / "digits (1).csv").write_bytes((tmp_path / "digits.csv").read_bytes())
    with pytest.raises(HashbenchError) as caught:
        results.read_results(tmp_path)
    assert f"{tmp_path / 'digits.csv'}, line 2, holds" in str(caught.value)
    assert f"after {tmp_path / 'digits (1).csv'}, line 2" in str(caught.value)


MERGES = [  # base, ours, theirs, merged (None: a conflict), as values by seed
    ({0: 5}, {0: 5}, {0: 5}, {0: 5}),
    ({0: 5}, {0: 6}, {0: 5}, {0: 6}),
    ({0: 5}, {0: 5}, {0: 6}, {0: 6}),
    ({0: 5}, {0: 6}, {0: 6}, {0: 6}),
    ({0: 5}, {0: 6}, {0: 7}, None),
    ({0: 5}, {0: 5, 1: 1}, {0: 5, 2: 2}, {0: 5, 1: 1, 2: 2}),
    ({0: 5}, {0: 5, 1: 1}, {0: 5, 1: 1}, {0: 5, 1: 1}),
    ({0: 5}, {0: 5, 1: 1}, {0: 5, 1: 2}, None),
    ({0: 5, 1: 5}, {1: 5}, {0: 5, 1: 5}, {1: 5}),
    ({0: 5, 1: 5}, {0: 5, 1: 5}, {1: 5}, {1: 5}),
    ({0: 5, 1: 5}, {1: 5}, {0: 6, 1: 5}, None),
    ({0: 5, 1: 5}, {1: 5}, {1: 5}, {1: 5}),
    ({}, {0: 1}, {1: 2}, {0: 1, 1: 2}),
]


@pytest.mark.parametrize(("base", "ours", "theirs", "expected"), MERGES)
def test_three_versions_are_united_by_key(tmp_path, hashbench, base, ours, theirs, expected):
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path, values in zip(paths, (base, ours, theirs), strict=True):
        path.touch()
        if values:
            path.unlink()
            results.merge_rows(path, [row(seed=seed, value=f"0.{value}00000") for seed, value in values.items()])
    done = hashbench("results", "merge", *paths, "results/digits.csv")
    if expected is None:
        assert done.exit_code == 1
        assert paths[1].read_text().count("<<<<<<< ours\n") == 1
        with pytest.raises(HashbenchError, match="conflict marker"):
            results.read_rows(paths[1])
        assert "both sides changed 1 row, each in its own way: digits pixels itq" in done.stderr
        assert (
            "In results/digits.csv they stand between git's markers" in done.stderr
        )  # ours is git's own, and temporary
    else:
        assert done.exit_code == 0
        assert {one.seed: one.value for one in results.read_rows(paths[1])} == {
            seed: f"0.{value}00000" for seed, value in expected.items()
        }


SPOILT = {
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: f"\ufeff{text}",
    "cells": lambda text: text.replace(",7,", ","),
    "conflict marker": lambda text: f"{text}=======\n",
    "no results file": lambda text: f"{text}\xff".encode("latin-1"),
    "results of digits and other": lambda text: text.replace("digits", "other"),
}


@pytest.mark.parametrize("side", [0, 1, 2])
@pytest.mark.parametrize("words", SPOILT)
def test_a_version_that_is_refused_leaves_both_sides_whole_between_markers(tmp_path, hashbench, side, words):
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for seed, path in enumerate(paths):
        results.merge_rows(path, [row(seed=7), row(seed=8 + seed)])
    spoilt = SPOILT[words](paths[side].read_text())
    paths[side].write_bytes(spoilt if isinstance(spoilt, bytes) else spoilt.encode())
    _, ours, theirs = (path.read_bytes().removesuffix(b"\n") for path in paths)
    done = hashbench("results", "merge", *paths, "results/digits.csv")
    assert paths[1].read_bytes() == b"<<<<<<< ours\n%b\n=======\n%b\n>>>>>>> theirs\n" % (ours, theirs)
    assert done.exit_code == 1
    assert words in done.stderr
    assert str(tmp_path) not in done.stderr  # git's own files, and temporary
    assert "Both sides stand whole between git's markers in results/digits.csv; keep one of them." in done.stderr


def follow_the_help(hashbench, program):
    """Tell git of the driver by the help's own lines, and begin with a row."""
    shown = hashbench("results", "merge", "--help").stdout
    lines = shown[shown.index("echo '") :].splitlines()
    commands = "\n".join(lines[: next(at for at, line in enumerate(lines) if not line.strip())])
    subprocess.run(commands.replace("'hashbench ", f"'{program} "), shell=True, check=True)
    results.merge_rows(Path("results/digits.csv"), [row()])


@needs_git
@pytest.mark.usefixtures("repository")
def test_git_that_does_not_find_hashbench_loses_no_side(hashbench):
    follow_the_help(hashbench, "nowhere/hashbench")
    git("add", ".")
    git("commit", "-qm", "first")
    path = Path("results/digits.csv")
    for branch, seed in (("one", 1), ("two", 2)):
        git("checkout", "-qb", branch, "main")
        results.merge_rows(path, [row(seed=seed)])
        git("commit", "-qam", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "-q", "--no-edit", "one")
    with pytest.raises(HashbenchError, match="conflict marker"):
        results.read_rows(path)
    assert all(text in path.read_text() for text in (",16,1,AP,", ",16,2,AP,"))


def test_folds_of_a_dataset_share_a_file_also_when_git_merges(tmp_path):
    names = ["digits-unseen3-fold0", "digits-unseen3-fold1-all", "digits-unseen2-fold0-database-all"]
    assert {results.results_path(tmp_path, name).name for name in names} == {"digits-unseen.csv"}
    assert results.results_path("r", "digits") == Path("r", "digits.csv")
    base, ours, theirs = (tmp_path / f"{side}.csv" for side in ("base", "ours", "theirs"))
    for path, held in ((base, names[:1]), (ours, names[:2]), (theirs, [names[0], names[2]])):
        results.merge_rows(path, [row(dataset=name) for name in held])
    assert results.merge_files(base, ours, theirs) == []
    assert {one.dataset for one in results.read_rows(ours)} == {*names}


@needs_git
@pytest.mark.usefixtures("repository")
def test_git_merges_results_by_the_lines_that_the_help_shows(hashbench):
    """Two branches add rows side by side, which a merge of text calls a conflict."""
    path = Path("results/digits.csv")
    follow_the_help(hashbench, f"{sysconfig.get_path('scripts')}/hashbench")
    git("add", ".")
    git("commit", "-qm", "first")
    for branch, seed in (("one", 1), ("two", 2)):
        git("checkout", "-qb", branch, "main")
        results.merge_rows(path, [row(seed=seed)])
        git("commit", "-qam", branch)
    git("merge", "-q", "--no-edit", "one")
    assert [one.seed for one in results.read_rows(path)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"value": "1.100000", "high": "1.200000"}, "not all between 0 and 1"),
        ({"value": "-0.100000"}, "not all between 0 and 1"),
        ({"high": "inf"}, "not all between 0 and 1"),
        ({"low": "0.500002"}, "outside its range over tie orders, 0.500002 to 1.000000"),
        ({"high": "0.499998"}, "outside its range"),
        ({"n_undefined": 201}, "201 of 200 queries"),
        ({"n_bits": 0}, "n_bits is 0"),
    ],
)
def test_numbers_that_no_run_gives_are_refused(tmp_path, changes, words):
    path = tmp_path / "digits.csv"
    path.write_text(results.csv_text(HEADER.strip().split(","), [row(**changes)]))
    with pytest.raises(HashbenchError, match=f"line 2: .*{re.escape(words)}"):
        results.read_rows(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"params": '{"n_iter":50}'}, """are spelled '{"n_iter": 50}' by hashbench"""),
        ({"params": "{ }"}, "are spelled '{}'"),
        ({"params": '{"b": 1, "a": 1}'}, "are spelled"),
        ({"params": '{"a": 1, "a": 1}'}, "are spelled"),
        ({"features": "pixels "}, "column features is words with single blanks between them, got 'pixels '"),
        ({"features": "gist  (JPEG)"}, "column features"),
        ({"features": "gist\u200b"}, "column features"),
        ({"features": ""}, "column features"),
        ({"metric": "AP "}, "metric 'AP ' is spelled like none"),
        ({"metric": "AP@01000"}, "is spelled like none"),
        ({"metric": ""}, "is spelled like none"),
    ],
)
def test_a_second_spelling_of_a_key_is_refused(tmp_path, changes, words):
    path = tmp_path / "digits.csv"
    path.write_text(results.csv_text(HEADER.strip().split(","), [row(**changes)]))
    with pytest.raises(HashbenchError, match=f"line 2: .*{re.escape(words)}"):
        results.read_rows(path)


@pytest.mark.parametrize("changes", [{"low": "0.500001"}, {"high": "0.499999"}, {"low": "nan", "high": "nan"}])
def test_numbers_that_differ_by_rounding_and_unknown_ranges_are_read(tmp_path, changes):
    path = tmp_path / "digits.csv"
    results.merge_rows(path, [row(**changes)])
    assert results.read_rows(path) == [row(**changes)]


def test_all_results_of_a_folder_are_one_frame(tmp_path):
    results.merge_rows(tmp_path / "digits.csv", [row(), row(seed=1)])
    results.merge_rows(tmp_path / "other.csv", [row(dataset="other", value="0.123456")])
    frame = results.read_results(tmp_path)
    assert list(frame.columns) == HEADER.strip().split(",")
    assert frame["dataset"].tolist() == ["digits", "digits", "other"]
    assert frame["value"].tolist() == [0.5, 0.5, 0.123456]
    assert frame["n_bits"].tolist() == [16] * 3


def test_score_of_no_query_is_kept(tmp_path):
    results.merge_rows(tmp_path / "digits.csv", [row(value="nan", low="nan", high="nan", n_undefined=200)])
    assert results.read_results(tmp_path)["value"].isna().all()


def test_folder_without_results_says_what_to_do(tmp_path):
    with pytest.raises(HashbenchError, match="hashbench run"):
        results.read_results(tmp_path)
