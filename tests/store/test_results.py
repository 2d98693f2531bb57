import pytest

from hashbench.errors import HashbenchError
from hashbench.store import results

HEADER = (
    "dataset,features,method,params,n_bits,seed,metric,value,low,high,n_queries,n_undefined,"
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
        "low": "0.400000",
        "high": "0.600000",
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
        'digits,pixels,itq,"{""n_iter"": 50}",16,0,AP,0.500000,0.400000,0.600000,200,3,0123456789abcdef,1\n'
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
        lambda lines: [*lines, lines[1]],
        lambda lines: [line.replace("\n", "\r\n") for line in lines],
        lambda lines: [*lines[:-1], lines[-1].rstrip("\n")],
    ],
    ids=["unsorted", "a row twice", "CRLF", "last line not ended"],
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
        HEADER.encode() + b"digits,pixels,itq,{},sixteen,0,AP,0.5,0.4,0.6,200,3,0123,1\n",
        HEADER.encode() + b"digits,pixels,itq,{},16,0,AP,0.5,0.4,0.6,200,3,0123\n",
        HEADER.encode() + b"digits,pixels,itq,{},16,0,AP,0.5,0.4,0.6,200,3,0123,1,and more\n",
        HEADER.encode() + b"d\xff,pixels,itq,{},16,0,AP,0.5,0.4,0.6,200,3,0123,1\n",
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
