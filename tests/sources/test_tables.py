"""Tables and lists: which columns are numbers, and which are refused; `test_array_files` has how they are chosen."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from helpers.error_sentences import complaint

from hashbench.bits import as_packed, unpack
from hashbench.sources.array_files import read_array, read_codes, read_items, read_rows
from hashbench.sources.formats import COARSE_KEYS, FEATURE_KEYS, LABEL_KEYS

X = np.random.default_rng(0).normal(size=(7, 3))
Y = np.array([0, 1, 2, 1, 0, 2, 1])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_cell_that_is_no_number_is_named_where_it_would_drop_its_column(tmp_path, suffix):
    table = pd.DataFrame(X, columns=list("abc")).astype({"b": str})
    table.loc[4, "b"] = "1.2.3"
    path = tmp_path / f"a.{suffix}"
    pytest.importorskip("pyarrow")
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    assert f"column 'b' of {path} holds numbers, but '1.2.3' in row 4" in complaint(read_items, str(path))
    assert read_array(f"{path}:a", FEATURE_KEYS).tolist() == X[:, 0].tolist()


@pytest.mark.parametrize("make", [Decimal, str])
def test_numbers_that_a_parquet_file_keeps_otherwise_are_numbers(tmp_path, make):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(X, columns=list("abc")).assign(b=[make(f"{number:.3f}") for number in X[:, 1]], label=Y)
    table.to_parquet(tmp_path / "a.parquet")
    items = read_items(str(tmp_path / "a.parquet"))
    np.testing.assert_allclose(items.features[:, 1], X[:, 1].round(3), rtol=1e-6)
    assert items.left_out == ""


def test_two_columns_of_one_name_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,label,label\n1,2,3\n1,2,3\n")
    assert "a.csv has 2 columns called 'label'" in complaint(read_items, str(tmp_path / "a.csv"))


def test_two_columns_of_one_name_are_refused_in_parquet_too(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_arrays([arrow.array([1.0, 2.0])] * 3, names=["a", "label", "label"])
    parquet.write_table(table, tmp_path / "a.parquet")
    assert "has 2 columns called 'label'" in complaint(read_items, str(tmp_path / "a.parquet"))


def test_columns_without_a_name_may_be_several(tmp_path):
    (tmp_path / "a.csv").write_text("a,,b,\n1,2,3,4\n5,6,7,8\n")
    assert read_items(str(tmp_path / "a.csv")).features.shape == (2, 4)


@pytest.mark.parametrize("low", [0, -1])
def test_columns_of_bits_may_be_counted_as_pandas_does(tmp_path, low):
    bits = np.where(X > 0, 1, low)
    pd.DataFrame(bits).to_csv(tmp_path / "a.csv", index=False)
    np.testing.assert_array_equal(read_codes(str(tmp_path / "a.csv")), bits)


@pytest.mark.parametrize("values", [np.eye(2, dtype=int), [[0, 1, 1], [1, 0, 2]]], ids=["0 and 1", "a 2"])
def test_a_count_that_may_be_an_item_is_refused(tmp_path, values):
    pd.DataFrame(values).to_csv(tmp_path / "a.csv", index=False)
    assert "so it may be names or an item" in complaint(read_codes, str(tmp_path / "a.csv"))


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("lines", [["file", "label"], ["0.5", "1"]])
def test_a_table_with_other_separators_than_commas_is_refused_by_their_name(tmp_path, separator, lines):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(separator.join(line) for line in (lines, ["2", "3"], ["4", "5"])))
    assert f"{path} separates columns by {separator!r}, expected commas" in complaint(read_items, str(path))


def test_words_may_hold_semicolons(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label\nred;blue\nred\n")
    assert read_array(f"{path}:label", ()).tolist() == ["red;blue", "red"]


def test_numbers_of_items_are_not_taken_for_the_codes_beside_them(tmp_path):
    (tmp_path / "a.csv").write_text("id,phash\n1234567890123,0aff\n1234567890456,1bff\n")
    words = f"a.csv holds arrays id, phash; name one of them, such as {tmp_path / 'a.csv'}:phash."
    assert words in complaint(read_codes, str(tmp_path / "a.csv"))
    assert read_codes(f"{tmp_path / 'a.csv'}:phash").tolist() == ["0aff", "1bff"]


# ---------------------------------------------------------------- a code or a label per line


HASHES = np.random.default_rng(0).integers(0, 2**64, 7, dtype=np.uint64)
BITS = (HASHES[:, None] >> np.arange(63, -1, -1, dtype=np.uint64) & np.uint64(1)).astype(bool)


@pytest.mark.parametrize("name", ["a.txt", "a.lst", "a.csv"])
@pytest.mark.parametrize(
    ("form", "n_bits"),
    [("{:016x}", None), ("0x{:016X}", 64), ("p:{:016x}", None), ("{}", None), ("0b{:064b}", None), ("{:064b}", 64)],
)
def test_codes_are_read_one_per_line(tmp_path, name, form, n_bits):
    lines = [form.format(value) for value in HASHES.tolist()]
    (tmp_path / name).write_text("\n".join([*["hash"] * name.endswith("csv"), *lines, ""]))
    np.testing.assert_array_equal(unpack(*as_packed(read_codes(str(tmp_path / name)), n_bits)), BITS)


@pytest.mark.parametrize("lines", [["12345678", "00000000"], ["0" * 20, "01234567890123456789"], ["1", "0"]])
def test_lines_of_digits_that_may_be_hexadecimal_or_decimal_are_refused(tmp_path, lines):
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert "If the numbers are such strings, write each as 0x" in complaint(read_codes, str(tmp_path / "a.txt"))


@pytest.mark.parametrize(
    ("lines", "labels"),
    [(["3", "-1", "3"], [3, -1, 3]), (["1", "01", "2"], ["1", "01", "2"]), (["a", "", "NA"], ["a", None, "NA"])],
)
def test_labels_are_read_one_per_line(tmp_path, lines, labels):
    (tmp_path / "a.lst").write_text("\n".join([*lines, ""]))
    for keys in (LABEL_KEYS, COARSE_KEYS):
        assert read_array(str(tmp_path / "a.lst"), keys).tolist() == labels
    if labels[1] == -1:
        assert "names row -1" in complaint(read_rows, str(tmp_path / "a.lst"), 9)


def test_superclasses_keep_the_zeros_they_are_written_with(tmp_path):
    (tmp_path / "a.csv").write_text("coarse\n1\n01\n")
    assert read_array(str(tmp_path / "a.csv"), COARSE_KEYS).tolist() == ["1", "01"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["0aff", "bff", "0cff"], "row 1 (the first is 0) has 3 digits, the others 4. If it lost leading zeros"),
        (["0aff", "", "0cff"], "row 1 (the first is 0) is empty"),
    ],
)
def test_lines_that_are_no_codes_are_named(tmp_path, lines, words):
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert words in complaint(lambda path: as_packed(read_codes(path)), str(tmp_path / "a.txt"))
