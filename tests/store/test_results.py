import json
from hashlib import sha256

import pytest
from helpers.error_sentences import complaint
from helpers.result_files import contents

from hashbench.errors import HashbenchError
from hashbench.scoring.metrics import get_metric, metric_names
from hashbench.store import result_files, result_rows, results
from hashbench.store.origin import JobRecord

HEADER = (
    "dataset,features,method,settings,n_bits,seed,metric,value,tie_sd,low,high,n_queries,n_undefined,"
    "dataset_fingerprint,method_version\n"
)
NAME = sha256(b'{"n_iter": 50}').hexdigest()[:8]


NUMBERS = ("0.500000", "0.001000", "0.000000", "1.000000", 200, 3)
ROW = result_rows.Row("digits", "pixels", "itq", '{"n_iter": 50}', 16, 0, "AP", *NUMBERS, "0123456789abcdef", 1)
LIBRARIES, PROCESSOR = "numpy=2.4.6 scipy=1.17.1", "x86_64 GenuineIntel avx2"
HERE = ("0123456789+", "0.1.0", LIBRARIES, PROCESSOR, 2, "cpu", "2026-01-31", "0.25", 9)
RECORD = JobRecord("digits", "pixels", NAME, 16, 0, "0123456789abcdef", 1, *HERE)


def row(**changes):
    return ROW._replace(**changes)


def record(**changes):
    return RECORD._replace(**changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "digits" / "itq.csv"


def merge(path, rows, record=None):
    return results.merge_rows(path.parents[1], rows, record)


def read(path):
    return list(results.read_folder(path.parents[1]).values())


def test_files_are_written_as_the_design_says(path):
    assert merge(path, [row()], record()) == [path]
    assert {stored.name for stored in path.parent.iterdir()} == {"itq.csv", "itq.settings.json", "itq.jobs.csv"}
    assert path.read_bytes().decode() == HEADER + (
        f"digits,pixels,itq,{NAME},16,0,AP,0.500000,0.001000,0.000000,1.000000,200,3,0123456789abcdef,1\n"
    )
    assert path.with_suffix(".settings.json").read_bytes() == (
        b'{\n  "%b": {"params": {"n_iter": 50}}\n}\n' % NAME.encode()
    )
    assert path.with_suffix(".jobs.csv").read_bytes().decode() == (
        "dataset,features,settings,n_bits,seed,dataset_fingerprint,method_version,commit,hashbench,libraries,processor,"
        f"threads,device,date,seconds,trials\ndigits,pixels,{NAME},16,0,0123456789abcdef,1,0123456789+,0.1.0,"
        "numpy=2.4.6 scipy=1.17.1,x86_64 GenuineIntel avx2,2,cpu,2026-01-31,0.25,9\n"
    )


def test_each_setting_has_a_line_and_keeps_what_else_is_said_of_it(path):
    merge(path, [row(), row(params="{}")])
    beside = path.with_suffix(".settings.json")
    text = beside.read_text()
    assert [line[3:11] for line in text.splitlines()[1:-1]] == sorted([NAME, sha256(b"{}").hexdigest()[:8]])
    beside.write_text(text.replace('{"params": {}}', '{"params": {}, "trials": 9}'))
    merge(path, [row(params='{"a": [0.1, null]}')])
    assert {"params": {}, "trials": 9} in json.loads(beside.read_text()).values()
    assert {stored.params for stored in read(path)} == {'{"n_iter": 50}', "{}", '{"a": [0.1, null]}'}


def test_the_record_of_a_job_changes_only_with_its_rows(path):
    beside = path.with_suffix(".jobs.csv")
    merge(path, [row(), row(metric="P@5")], record())
    before = contents(path.parent), beside.read_bytes(), beside.stat().st_mtime_ns
    merge(path, [row(metric="P@5")], record(date="2026-02-01"))
    assert before == (contents(path.parent), beside.read_bytes(), beside.stat().st_mtime_ns)
    for number, change in enumerate([{"value": "0.600000"}, {"metric": "P@9"}, {"method_version": 2}], 2):
        merge(path, [row(**change)], record(date=f"2026-02-0{number}"))
        assert result_files.read_job_records(path)[record().key].date == f"2026-02-0{number}"
    merge(path, [row(seed=1)], record(seed=1))
    assert [stored.seed for stored in result_files.read_job_records(path).values()] == [0, 1]
    merge(path, [row(value="0.700000", method_version=2), row(seed=1)])  # of codes that do not say
    assert [stored.seed for stored in result_files.read_job_records(path).values()] == [1]


def test_the_origin_of_old_rows_is_recorded_once_all_of_them_are_recomputed(path):
    merge(path, [row(), row(metric="P@5")])
    assert not path.with_suffix(".jobs.csv").exists()
    merge(path, [row()], record())
    assert result_files.read_job_records(path) == {}
    merge(path, [row(), row(metric="P@5")], record())
    assert result_files.read_job_records(path) == {record().key: record()}


@pytest.mark.parametrize("n_written", [0, 1, 2, 3])
def test_a_kill_between_files_loses_nothing_and_the_next_run_ends_it(path, monkeypatch, n_written):
    old, other = [row(), row(metric="P@5")], row(params="{}", value="0.600000")
    new = [row(value="0.600000"), row(metric="P@5"), other]
    merge(path, old, record())
    write, written = results.write_text, []

    def write_some(path, text):
        if len(written) == n_written:
            raise KeyboardInterrupt
        written.append(path.name)
        write(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(results, "write_text", write_some)
        with pytest.raises(KeyboardInterrupt):
            merge(path, new, record(date="2026-02-01"))
    has_new = n_written == 3
    assert written == ["itq.settings.json", "itq.jobs.csv", "itq.csv"][:n_written]
    assert sorted(read(path)) == sorted(new if has_new else old)
    recorded = result_files.read_job_records(path)
    assert recorded == ({} if n_written > 1 else {record().key: record()})  # none of numbers that are not there
    merge(path, new, record(date="2026-02-01"))
    assert {stored.value for stored in read(path) if stored.metric == "AP"} == {"0.600000"}
    assert result_files.read_job_records(path)[record().key].date == "2026-02-01"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.replace("seed,", ""), "has columns dataset,features,settings,n_bits,dataset"),
        (lambda text: "", "has columns none"),
        (lambda text: text.replace(",2,cpu", ",two,cpu"), "line 2: invalid literal for int"),
        (lambda text: text.replace(",cpu", ""), "line 2: it has 15 cells, expected 16"),
        (lambda text: text + ">>>>>>> theirs\n", "line 3, is a conflict marker"),
    ],
)
def test_a_damaged_file_of_what_made_rows_is_refused_and_the_rows_can_still_be_read(path, spoil, words):
    merge(path, [row()], record())
    beside = path.with_suffix(".jobs.csv")
    beside.write_text(spoil(beside.read_text()))
    message = complaint(merge, path, [row(seed=1)], record(seed=1))
    assert str(beside) in message
    assert words in message
    assert read(path) == [row()]


def test_rows_of_an_older_version_replace_none_of_a_newer_one(path):
    merge(path, [row(method_version=2)], record(method_version=2))
    before = contents(path.parent)
    words = "has rows of version 2 of itq, and those to add are of version 1. Upgrade itq and run again"
    assert words in complaint(merge, path, [row(), row(seed=1)], record())
    assert contents(path.parent) == before
    merge(path, [row(seed=1)], record(seed=1))  # which takes the place of none
    merge(path, [row(method_version=3)], record(method_version=3))
    assert sorted(stored.method_version for stored in read(path)) == [1, 3]


def test_a_method_whose_file_would_be_a_record_of_jobs_is_refused(path):
    with pytest.raises(HashbenchError, match=r"called 'itq\.jobs' would write its rows to itq\.jobs\.csv"):
        merge(path, [row(method="itq.jobs")])
    assert not path.parent.exists()


def test_tables_in_folders_beside_are_no_results(path):
    merge(path, [row()])
    for name in ("tables/table1.csv", "digits/notes.csv"):
        other = path.parents[1] / name
        other.parent.mkdir(exist_ok=True)
        other.write_text("dataset,features,metric,method\n")
    merge(path, [row(dataset="tables")])
    assert {stored.dataset for stored in read(path)} == {"digits", "tables"}


def test_rows_are_read_as_they_were_written_sorted_by_key_with_numbers_as_numbers(path):
    assert read(path) == []
    rows = [row(method="a", features='a,"b"', metric="P@r2"), row(seed=9), row(seed=10), row(n_bits=128)]
    merge(path, reversed(rows))
    assert read(path) == rows


@pytest.mark.parametrize("pattern", metric_names())
def test_rows_of_every_metric_are_read(path, pattern):
    name = get_metric(pattern.replace("@k", "@10").replace("@rN", "@r2").replace("=m", "=20")).name
    merge(path, [row(metric=name)])
    assert [each.metric for each in read(path)] == [name]


def test_row_of_the_same_key_is_replaced(path):
    merge(path, [row(), row(seed=1)])
    for change in ({"low": "0.100000", "high": "0.900000"}, {"n_queries": 5, "n_undefined": 0}, {"method_version": 2}):
        merge(path, [row(**change)])
        assert read(path) == [row(**change), row(seed=1)]


def test_a_row_that_differs_in_any_field_of_the_key_is_added(path):
    others = {"dataset": "x", "features": "x", "method": "x", "params": "{}", "n_bits": 8, "seed": 4}
    others |= {"dataset_fingerprint": "fedcba9876543210", "metric": "x"}
    assert tuple(others) == result_rows.KEY
    for number, (field, value) in enumerate(others.items(), 2):
        merge(path, [row(), row(**{field: value})])
        assert len(read(path)) == number, field


@pytest.mark.parametrize(
    "disorder",
    [
        lambda lines: [lines[0], lines[2], lines[1]],
        lambda lines: [*lines[:-1], lines[-1].rstrip("\n")],
    ],
    ids=["unsorted", "last line not ended"],
)
def test_file_of_an_editor_is_put_in_order_by_the_next_merge(path, disorder):
    merge(path, [row(), row(seed=1)])
    whole = path.read_bytes()
    lines = whole.decode().splitlines(keepends=True)
    path.write_bytes("".join(disorder(lines)).encode())
    merge(path, [row(seed=1)])
    assert path.read_bytes() == whole


def test_a_key_in_two_files_of_a_folder_is_refused_with_both_places(path, hashbench):
    merge(path, [row(), row(seed=1)])
    copy = path.with_name("itq (1).csv")
    for suffix in (".csv", ".settings.json"):
        copy.with_suffix(suffix).write_bytes(path.with_suffix(suffix).read_bytes())
    message = complaint(results.read_results, path.parent)
    assert f"{path}, line 2, holds" in message
    assert f"after {copy}, line 2, with the same numbers" in message
    assert "which belong in digits/itq.csv. Move them." in hashbench("results", "check", path.parents[1]).stderr


def test_parts_that_ran_elsewhere_are_united_and_rows_that_differ_are_refused(path, tmp_path, hashbench):
    merge(path, [row()], record())
    for seed in (1, 2):
        part = tmp_path / f"part-{seed}" / "digits" / "itq.csv"
        merge(part, [row(), row(seed=seed)])
        merge(part, [row(seed=seed)], record(seed=seed))
    done = hashbench("results", "merge", tmp_path / "part-1", tmp_path / "part-2", "--results", path.parents[1])
    assert done.stdout == f"2 rows added; those of 2 folders are in {path.parents[1]}.\n"
    assert [stored.seed for stored in read(path)] == [0, 1, 2]
    assert [*result_files.read_job_records(path).values()] == [record(seed=seed) for seed in (0, 1, 2)]
    before = contents(path.parent)
    merge(part, [row(seed=3), row(value="0.600000")])
    refused = hashbench("results", "merge", tmp_path / "part-2", "--results", path.parents[1])
    assert refused.exit_code == 1
    assert f"{path.parents[1]} has different numbers for digits pixels itq" in refused.stderr
    assert contents(path.parent) == before


def test_rows_of_own_codes_are_the_same_however_they_are_shown(path, tmp_path, hashbench):
    plain, labelled = ('{"codes": "own"}', '{"codes": "own", "label": "Ours"}')
    merge(path, [row(params=plain)])
    merge(path, [row(params=labelled)])
    assert read(path) == [row(params=labelled)]
    part = tmp_path / "part" / "digits" / "itq.csv"
    merge(part, [row(params=plain), row(params=plain, seed=1)])
    done = hashbench("results", "merge", tmp_path / "part", "--results", path.parents[1])
    assert done.stdout.startswith("1 row added;")
    assert [(stored.params, stored.seed) for stored in read(path)] == [(plain, 0), (plain, 1)]
    merge(part, [row(params=labelled, value="0.600000")])
    refused = hashbench("results", "merge", tmp_path / "part", "--results", path.parents[1])
    assert "has different numbers for digits pixels itq" in refused.stderr
    assert [(stored.params, stored.seed) for stored in read(path)] == [(plain, 0), (plain, 1)]


def test_folds_of_a_dataset_share_a_folder(tmp_path):
    names = ["digits-unseen3-fold0", "digits-unseen3-fold1-all", "digits-unseen2-fold0-database-all"]
    written = results.merge_rows(tmp_path, [row(dataset=name) for name in names])
    assert written == [tmp_path / "digits-unseen" / "itq.csv"]
    assert {stored.dataset for stored in results.read_rows(tmp_path, names[0])} == {*names}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"high": "0.499998"}, "outside its range"),
        ({"low": "nan", "high": "nan"}, "value is 0.500000, nan to nan, though 197 of 200 queries have a score"),
        ({"n_bits": 0}, "n_bits is 0"),
        ({"features": "pixels "}, "column features must be words with single blanks between them, got 'pixels '"),
        ({"features": "gist  (JPEG)"}, "column features"),
        ({"features": "gist\u200b"}, "column features"),
        ({"features": ""}, "column features"),
        ({"metric": "AP "}, "metric 'AP ' is not a metric's name"),
        ({"metric": "AP@01000"}, "is not a metric's name"),
        ({"metric": ""}, "is not a metric's name"),
    ],
)
def test_numbers_that_no_run_gives_and_a_second_spelling_of_a_key_are_refused(path, changes, words):
    merge(path, [row(**changes)])
    message = complaint(results.read_folder, path.parents[1])
    assert "line 2: " in message
    assert words in message


@pytest.mark.parametrize(
    "changes",
    [
        {"low": "0.500001"},
        {"high": "0.499999"},
        {"tie_sd": ""},
        {"value": "nan", "low": "nan", "high": "nan", "n_undefined": 200},
    ],
)
def test_numbers_that_differ_by_rounding_and_unknown_numbers_are_read(tmp_path, changes):
    results.merge_rows(tmp_path, [row(**changes)])
    assert results.read_rows(tmp_path, "digits") == [row(**changes)]
    assert results.read_results(tmp_path)["value"].isna().all() == ("value" in changes)
