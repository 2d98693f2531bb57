import re
from hashlib import sha256

import pytest
from helpers.error_sentences import complaint
from helpers.result_files import contents

from hashbench.scoring.metrics import get_metric, metric_names
from hashbench.store import result_rows, results
from hashbench.store.origin import Origin

HEADER = (
    "dataset,features,method,settings,n_bits,seed,metric,value,tie_sd,low,high,n_queries,n_undefined,"
    "dataset_fingerprint,method_version\n"
)
NAME = sha256(b'{"n_iter": 50}').hexdigest()[:8]


NUMBERS = ("0.500000", "0.001000", "0.000000", "1.000000", 200, 3)
ROW = result_rows.Row("digits", "pixels", "itq", '{"n_iter": 50}', 16, 0, "AP", *NUMBERS, "0123456789abcdef", 1)
LIBRARIES, PROCESSOR = "numpy=2.4.6 scipy=1.17.1", "x86_64 GenuineIntel avx2"
ORIGIN = Origin("0123456789+", "0.1.0", LIBRARIES, PROCESSOR, 2, "cpu", "2026-01-31", 0.25, 9)
LATER = ORIGIN._replace(date="2026-02-01")


def row(**changes):
    return ROW._replace(**changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "digits" / "itq.csv"


def merge(path, rows, origin=None):
    return results.merge_rows(path.parents[1], rows, origin)[0]


def read(path):
    return list(results.read_folder(path.parents[1]).values())


def origins(path):
    """Return the origins of jobs by their seed."""
    return {job[5]: origin for job, origin in results.read_record([path]).origins.items()}


def test_rows_that_other_code_of_a_plugin_made_for_a_job_go_with_the_first_that_differs(path):
    first, other = (ORIGIN._replace(libraries=f"numpy=2.4.6 mine=sha256:{digest}") for digest in ("a1", "b2"))
    rows = [row(), row(metric="P@100"), row(metric="P@100", seed=1)]
    merge(path, rows[:2], first)
    merge(path, rows[2:], first)
    files, gone = results.merge_rows(path.parents[1], [row()], other)
    assert (files, gone, set(read(path))) == ([path], [], set(rows))  # the same number again shows no other code
    changed = row(value="0.600000")
    _, gone = results.merge_rows(path.parents[1], [changed], other)
    assert gone == [rows[1]]
    assert set(read(path)) == {changed, rows[2]}
    assert origins(path) == {0: other, 1: first}
    _, gone = results.merge_rows(path.parents[1], [row(metric="NDCG")], other._replace(threads=3))
    assert gone == []


def test_files_are_written_as_the_design_says(path):
    assert merge(path, [row(seed=1), row()], ORIGIN) == [path]
    assert {stored.name for stored in path.parent.iterdir()} == {"itq.csv", "itq.json"}
    numbers = "AP,0.500000,0.001000,0.000000,1.000000,200,3,0123456789abcdef,1"
    assert path.read_bytes().decode() == HEADER + "".join(
        f"digits,pixels,itq,{NAME},16,{seed},{numbers}\n" for seed in (0, 1)
    )
    shared = (
        '{"commit": "0123456789+", "date": "2026-01-31", "device": "cpu", "hashbench": "0.1.0", "libraries": '
        '"numpy=2.4.6 scipy=1.17.1", "processor": "x86_64 GenuineIntel avx2", "threads": 2}'
    )
    name = sha256(shared.encode()).hexdigest()[:8]
    job, own = f'"digits", "features": "pixels", "method": "itq", "settings": "{NAME}"', '"seconds": 0.25, "trials": 9'
    jobs = ",\n".join(
        f'    {{"dataset": {job}, "n_bits": 16, "seed": {seed}, "dataset_fingerprint": "0123456789abcdef", "origin": '
        f'"{name}", {own}}}'
        for seed in (0, 1)
    )
    assert path.with_suffix(".json").read_bytes().decode() == (
        f'{{\n  "settings": {{\n    "{NAME}": {{"n_iter": 50}}\n  }},\n  "origins": {{\n    "{name}": {shared}\n  }},\n'
        f'  "jobs": [\n{jobs}\n  ],\n  "recipes": {{}}\n}}\n'
    )
    merge(path, [row(params='{"a": [0.1, null]}'), row(params="{}")])
    assert {stored.params for stored in read(path)} == {'{"n_iter": 50}', "{}", '{"a": [0.1, null]}'}


def test_the_origin_of_a_job_changes_only_with_its_rows(path):
    merge(path, [row(), row(metric="P@5")])
    merge(path, [row()], ORIGIN)
    assert origins(path) == {}  # until all of its rows are recomputed
    merge(path, [row(), row(metric="P@5")], ORIGIN)
    assert origins(path) == {0: ORIGIN}
    beside = path.with_suffix(".json")
    before = contents(path.parent), beside.read_bytes(), beside.stat().st_mtime_ns
    merge(path, [row(metric="P@5")], LATER)
    assert before == (contents(path.parent), beside.read_bytes(), beside.stat().st_mtime_ns)
    for number, change in enumerate([{"value": "0.600000"}, {"metric": "P@9"}, {"method_version": 2}], 2):
        changed = ORIGIN._replace(date=f"2026-02-0{number}")
        merge(path, [row(**change)], changed)
        assert origins(path) == {0: changed}
    merge(path, [row(seed=1)], ORIGIN)
    merge(path, [row(value="0.700000", method_version=2), row(seed=1)])  # of codes that do not say
    assert origins(path) == {1: ORIGIN}


@pytest.mark.parametrize("n_written", [0, 1, 2, 3])
def test_a_kill_between_files_loses_nothing_and_the_next_run_ends_it(path, monkeypatch, n_written):
    old, other = [row(), row(metric="P@5"), row(seed=1)], row(params="{}", seed=2, value="0.600000")
    new = [row(value="0.600000"), row(metric="P@5"), other]
    merge(path, old, ORIGIN)
    write, written = results.write_text, []

    def write_some(path, text):
        if len(written) == n_written:
            raise KeyboardInterrupt
        written.append(path.name)
        write(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(results, "write_text", write_some)
        if n_written < 3:
            with pytest.raises(KeyboardInterrupt):
                merge(path, new, LATER)
        else:
            merge(path, new, LATER)
    assert written == ["itq.json", "itq.csv", "itq.json"][:n_written]
    assert sorted(read(path)) == sorted([*new, row(seed=1)] if n_written > 1 else old)
    of_first = [{0: ORIGIN}, {}, {}, {0: LATER, 2: LATER}][n_written]  # none of numbers that are not there
    assert origins(path) == {1: ORIGIN, **of_first}
    merge(path, new, LATER)
    assert sorted(read(path)) == sorted([*new, row(seed=1)])
    assert origins(path) == {0: LATER, 1: ORIGIN, 2: LATER}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"jobs"', '"job"', "lacks 'jobs'"),
        ('"threads": 2', '"threads": "2"', "threads is '2', expected int"),
        ('"origin": "', '"origin": "0', "lacks '0"),
        ("]", "]\n>>>>>>> theirs", "is a conflict marker"),
        ("  }", "", "is damaged: Expecting"),
        ('"n_iter": 50', '"n_iter": 51', "is not what hashbench calls"),
    ],
)
def test_a_damaged_record_is_refused_and_nothing_is_written(path, old, new, words):
    merge(path, [row()], ORIGIN)
    beside = path.with_suffix(".json")
    beside.write_text(beside.read_text().replace(old, new, 1))
    message = complaint(merge, path, [row(seed=1)], ORIGIN)
    assert str(beside) in message
    assert words in message
    assert path.read_text().count("\n") == 2


def test_rows_of_an_older_version_replace_none_of_a_newer_one(path):
    merge(path, [row(method_version=2)], ORIGIN)
    before = contents(path.parent)
    words = "has rows of version 2 of itq, and those to add are of version 1. Upgrade itq and run again"
    assert words in complaint(merge, path, [row(), row(seed=1)], ORIGIN)
    assert contents(path.parent) == before
    merge(path, [row(seed=1)], ORIGIN)  # which takes the place of none
    merge(path, [row(method_version=3)], ORIGIN)
    assert sorted(stored.method_version for stored in read(path)) == [1, 3]


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
    patterns = [pattern.replace("@k", "@10").replace("@rN", "@r2").replace("=m", "=20") for pattern in metric_names()]
    names = sorted({get_metric(name).name for name in patterns})
    rows = [row(method="a", features='a,"b"'), *(row(metric=name) for name in names), row(seed=10), row(n_bits=128)]
    merge(path, reversed(rows))
    assert read(path) == rows


def test_a_row_of_the_same_key_is_replaced_and_one_of_any_other_is_added(path):
    for change in ({"low": "0.100000", "high": "0.900000"}, {"n_queries": 5, "n_undefined": 0}, {"method_version": 2}):
        merge(path, [row(**change)])
        assert read(path) == [row(**change)]
    others = {"dataset": "x", "features": "x", "method": "x", "params": "{}", "n_bits": 8, "seed": 4}
    others |= {"dataset_fingerprint": "fedcba9876543210", "metric": "x"}
    assert tuple(others) == result_rows.KEY
    for number, (field, value) in enumerate(others.items(), 2):
        merge(path, [row(**{field: value})])
        assert len(read(path)) == number, field


@pytest.mark.parametrize(
    "change",
    [
        lambda header, first, second: [header, second, first],
        lambda header, first, second: [header, first, second.rstrip("\n")],
        lambda header, first, second: ["\ufeff" + header, first, second],
        lambda *lines: [line.replace("\n", "\r\n") for line in lines],
        lambda header, first, second: [header, first, first, second],
    ],
    ids=["unsorted", "last line not ended", "byte order mark", "ends of Windows", "exact copy"],
)
def test_file_of_an_editor_is_read_and_put_in_order_by_the_next_merge(path, change):
    merge(path, [row(), row(seed=1)])
    whole = path.read_bytes()
    path.write_bytes("".join(change(*whole.decode().splitlines(keepends=True))).encode())
    assert sorted(read(path)) == [row(), row(seed=1)]
    merge(path, [row(seed=1)])
    assert path.read_bytes() == whole


def test_a_key_in_two_files_with_different_numbers_is_refused_with_both_places(path, hashbench):
    merge(path, [row(), row(seed=1)])
    copy = path.with_name("itq (1).csv")
    for suffix in (".csv", ".json"):
        copy.with_suffix(suffix).write_bytes(path.with_suffix(suffix).read_bytes())
    assert len(read(path)) == 2
    assert "which belong in digits/itq.csv. Move them." in hashbench("results", "check", path.parents[1]).stderr
    copy.write_text(copy.read_text().replace("0.500000", "0.600000", 1))
    message = complaint(results.read_results, path.parent)
    assert f"{path}, line 2, holds" in message
    assert f"after {copy}, line 2, with different numbers" in message


def test_parts_that_ran_elsewhere_are_united_and_rows_that_differ_are_refused(path, tmp_path, hashbench):
    merge(path, [row()], ORIGIN)
    for seed in (1, 2):
        part = tmp_path / f"part-{seed}" / "digits" / "itq.csv"
        merge(part, [row(), row(seed=seed)])
        merge(part, [row(seed=seed)], LATER)
    done = hashbench("results", "merge", tmp_path / "part-1", tmp_path / "part-2", "--results", path.parents[1])
    assert done.stdout == f"2 rows added; those of 2 folders are in {path.parents[1]}.\n"
    assert [stored.seed for stored in read(path)] == [0, 1, 2]
    assert origins(path) == {0: ORIGIN, 1: LATER, 2: LATER}
    before = contents(path.parent)
    merge(part, [row(seed=3), row(value="0.600000")])
    for places in ([tmp_path / "part-2"], [tmp_path / "part-1", tmp_path / "part-2"]):
        refused = hashbench("results", "merge", *places, "--results", path.parents[1])
        assert refused.exit_code == 1
        assert "has different numbers for digits pixels itq" in refused.stderr
    assert contents(path.parent) == before


def test_rows_of_own_codes_are_the_same_however_they_are_shown(path, tmp_path):
    plain, labelled = ('{"codes": "own"}', '{"codes": "own", "label": "Ours"}')
    merge(path, [row(params=plain)])
    merge(path, [row(params=labelled)])
    assert read(path) == [row(params=labelled)]
    part = tmp_path / "part" / "digits" / "itq.csv"
    merge(part, [row(params=plain), row(params=plain, seed=1)])
    assert results.merge_folders(path.parents[1], [part.parents[1]]) == 1
    expected = [row(params=plain), row(params=plain, seed=1)]
    assert read(path) == expected
    merge(part, [row(params=labelled, value="0.600000")])
    assert "different numbers for digits pixels itq" in complaint(
        results.merge_folders, path.parents[1], [part.parents[1]]
    )
    assert read(path) == expected


def test_folds_of_a_dataset_share_a_folder(tmp_path):
    names = ["digits-unseen3-fold0", "digits-unseen3-fold1-all", "digits-unseen2-fold0-database-all"]
    written, _ = results.merge_rows(tmp_path, [row(dataset=name) for name in names])
    assert written == [tmp_path / "digits-unseen" / "itq.csv"]
    assert {stored.dataset for stored in results.read_rows(tmp_path, names[0])} == {*names}


IMPOSSIBLE = [
    ({"high": "0.499998"}, "outside its range"),
    ({"value": "1.000001", "high": "1.000001"}, "not all between 0 and 1"),
    ({"metric": "WAP", "high": "inf"}, "not all between 0 and 1e.300"),
    ({"low": "nan", "high": "nan"}, "value is 0.500000, nan to nan, though 197 of 200 queries have a score"),
    ({"n_bits": 0}, "n_bits is 0"),
    ({"features": "pixels "}, "column features must be words with single blanks between them, got 'pixels '"),
    ({"features": "gist\u200b"}, "column features"),
    ({"metric": "AP@01000"}, "is not a metric's name"),
]
POSSIBLE = [  # rounded, or not known
    {"low": "0.500001"},
    {"high": "0.499999"},
    {"tie_sd": ""},
    {"value": "nan", "low": "nan", "high": "nan", "n_undefined": 200},
    {"metric": "ACG@10", "value": "2.500000", "low": "1.000000", "high": "3.000000"},  # a mean of levels
    {"metric": "WAP", "value": "2.500000", "low": "1.000000", "high": "3.000000"},
    {"metric": "WAP:dot", "value": "2.500000", "low": "1.000000", "high": "3.000000"},
]


def test_numbers_that_no_run_gives_and_a_second_spelling_of_a_key_are_refused(tmp_path):
    for number, (changes, words) in enumerate(IMPOSSIBLE):
        results.merge_rows(tmp_path / str(number), [row(**changes)])
        assert re.search(f"line 2: .*{words}", complaint(results.read_folder, tmp_path / str(number)))
    for number, changes in enumerate(POSSIBLE):
        folder = tmp_path / f"possible-{number}"
        results.merge_rows(folder, [row(**changes)])
        assert results.read_rows(folder, "digits") == [row(**changes)]
        assert results.read_results(folder)["value"].isna().all() == (changes.get("value") == "nan")
