"""Tables and lists: which columns are numbers, and which are refused; `test_array_files` has how they are chosen."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from helpers.error_sentences import complaint

from hashbench.bits import as_packed, unpack
from hashbench.sources.array_files import read_array, read_codes, read_features, read_items, read_rows
from hashbench.sources.formats import COARSE_KEYS, FEATURE_KEYS, LABEL_KEYS
from hashbench.sources.tables import open_table

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


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("id,0,1,2", "7,0.5,1.5,2.5", "id,0,1,2"),
        ("id,0,1,2", "7,255,13,0", "id,0,1,2"),  # a word above a number
        ("0,1,2,label", "0.5,1.5,2.5,cat", "0,1,2,label"),
        ("name,0,1,2", "img0,1,0,1", "name,0,1,2"),  # bits
        ("name,0,1,2", "img0,3,0,1", None),
        ("cat,0,1", "dog,1,0", None),
        ("cat,0", "dog,1", None),
        ("cat,1,2", "dog,1.5,2.5", None),
    ],
)
def test_names_counted_by_pandas_may_be_beside_words(tmp_path, first, second, names):
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n{second}\n")
    if names is None:
        assert f"the first line of {path}" in complaint(open_table, path)
    else:
        assert open_table(path).columns == names.split(",")


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
    words = f"a.csv holds columns id, phash; name one of them, such as {tmp_path / 'a.csv'}:phash."
    assert words in complaint(read_codes, str(tmp_path / "a.csv"))
    assert read_codes(f"{tmp_path / 'a.csv'}:phash").tolist() == ["0aff", "1bff"]


@pytest.mark.parametrize(
    ("suffixes", "beside", "may_be_codes"),
    [
        (["csv", "parquet", "arrow"], ["a.png", "b.png", "dead.png", "d.png"], False),
        (["csv", "parquet", "arrow"], ["bee", None, "emu", "cow"], False),
        (["csv", "parquet", "arrow"], ["1bff", "bff", "0x2bff", "?"], True),
        (["csv", "parquet", "arrow"], ["p:1bff", None, "p:2bff", "p:3bff"], True),
        (["parquet", "arrow"], [b"\x01\xf0", b"\x02\xf0", b"\x03\xf0", b"\x04\xf0"], True),
        (["parquet", "arrow"], [b"\x89PNG", b"\x89PNG.", b"\x89PNG..", b"\x89PNG"], False),
        (["parquet", "arrow"], [[1, 2], [3, 4], [5, 6], [7, 8]], True),
        (["parquet", "arrow"], [[0.5, 2], [3, 4], [5, 6], [7, 8]], False),
    ],
)
def test_a_column_of_hashes_needs_a_name_only_beside_what_may_be_codes(tmp_path, suffixes, beside, may_be_codes):
    arrow, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    hashes = HASHES[:4].tolist()
    table = arrow.table({"file": beside, "number": arrow.array(hashes, arrow.uint64())})
    write = {"csv": table.to_pandas().to_csv, "parquet": table.to_pandas().to_parquet}
    for suffix in suffixes:
        path = tmp_path / f"a.{suffix}"
        write.get(suffix, lambda path, index: feather.write_feather(table, str(path)))(path, index=False)
        if may_be_codes:
            words = f"holds columns file, number; name one of them, such as {path}:file"
            assert words in complaint(read_codes, str(path))
        else:
            assert read_codes(str(path)).ravel().tolist() == hashes


MANY = np.random.default_rng(1).normal(size=(20, 3))


def numbered(name, numbers=None, **columns):
    """A table of three features after a column of numbers, 1,000 and up."""
    return pd.DataFrame({name: np.arange(1_000, 1_020) if numbers is None else numbers, **columns}).join(
        pd.DataFrame(MANY, columns=list("abc"))
    )


@pytest.fixture(params=["csv", "parquet"])
def save(request, tmp_path):
    pytest.importorskip("pyarrow")

    def write(table):
        path = tmp_path / f"a.{request.param}"
        table.to_csv(path, index=False) if request.param == "csv" else table.to_parquet(path)
        return str(path)

    return write


@pytest.mark.parametrize("name", ["id", "_id", "image_id", "imageID", "Index", "key", "Unnamed: 0"])
def test_a_column_named_like_an_identifier_is_no_feature(save, name):
    path = save(numbered(name))
    words = f"column '{name}' of {path} is named like an identifier. Remove it, or rename it if it is a feature."
    for read in (read_items, read_features, read_codes):
        assert complaint(read, path) == words


@pytest.mark.parametrize("numbers", [np.repeat([4, 7], 10), np.arange(20) + 5.0], ids=["repeated", "floats"])
def test_identifiers_may_be_repeated_floats_or_labels(save, numbers):
    path = save(numbered("doc_id", numbers))
    assert "column 'doc_id' of" in complaint(read_features, path)
    items = read_items(path, f"{path}:doc_id")
    assert (items.features.shape, items.labels.tolist()) == ((20, 3), numbers.tolist())


@pytest.mark.parametrize("name", ["item", "valid", "glycemic_index"])
def test_a_lone_column_of_different_whole_numbers_is_no_feature(save, name):
    path = save(numbered(name))
    words = "is the only one of whole numbers, all different. Remove it, or save it as floats if it is a feature."
    assert complaint(read_features, path) == f"column '{name}' of {path} {words}"
    assert read_features(save(numbered(name).astype({name: float}))).shape == (20, 4)
    assert read_features(save(numbered(name)[:9])).shape == (9, 4)  # which may differ by chance
    assert read_features(save(numbered(name, np.arange(20) // 2))).shape == (20, 4)
    assert read_features(save(numbered(name, other=np.arange(20) ** 2))).shape == (20, 5)


def test_a_column_of_bits_may_have_any_name(save):
    path = save(pd.DataFrame({"en": [0, 1, 1], "id": [1, 0, 1]}))
    assert read_codes(path).tolist() == read_array(path, LABEL_KEYS).tolist() == [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("keys", [FEATURE_KEYS, LABEL_KEYS])
def test_numbers_of_items_are_not_taken_for_what_is_beside_them(save, keys):
    path = save(pd.DataFrame({"id": [5, 6, 7], "file": list("abc"), "species": list("aab")}))
    words = f"{path} holds columns id, file, species; name one of them, such as {path}:"
    assert complaint(read_array, path, keys) == f"{words}{'species' if keys == LABEL_KEYS else 'file'}."


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize(
    "others", [["id"], ["id", "price"], ["price", "stock"], ["id", "price", "label"]], ids=lambda names: "-".join(names)
)
def test_lists_are_not_overlooked_beside_columns_of_numbers(tmp_path, is_fixed, others):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = arrow.list_(arrow.float32(), *[3] * is_fixed)
    values = {"id": range(7), "price": X[:, 0], "stock": X[:, 1], "label": Y}
    path = tmp_path / "a.parquet"
    table = {**{name: values[name] for name in others}, "vector": arrow.array(X.astype(np.float32).tolist(), kind)}
    parquet.write_table(arrow.table(table), path)
    start = f"{path} holds columns {', '.join(table)}; name one of them, such as {path}:vector"
    for read in (read_items, read_features, read_codes):
        assert complaint(read, str(path)).startswith(start)
    items = read_items(f"{path}:vector")
    np.testing.assert_allclose(items.features, X, rtol=1e-6)
    assert (items.labels is not None) == ("label" in others)


def test_columns_beside_lists_that_are_features_by_name_are_listed(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"id": range(7), "price": X[:, 0], "embeddings": [*X], "label": Y, "word": list("abcdefg")})
    table.to_parquet(tmp_path / "a.parquet")
    assert read_items(str(tmp_path / "a.parquet")).left_out == "left out: id, price, word"


def test_lists_of_words_are_left_out_beside_columns_of_numbers(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(X, columns=list("abc")).assign(tags=[["a", "b"]] * 7).to_parquet(tmp_path / "a.parquet")
    items = read_items(str(tmp_path / "a.parquet"))
    assert (items.features.shape, items.left_out) == ((7, 3), "left out, since they hold no numbers: tags")


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


@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_decimal_numbers_are_not_hexadecimal_strings_if_these_would_have_another_length(tmp_path, name):
    hashes = [1234567890, 4234567890]  # as strings, at least 37 bits
    (tmp_path / name).write_text("\n".join([*["hash"] * name.endswith("csv"), *map(str, hashes)]))
    path = str(tmp_path / name)
    assert read_codes(path, 32).tolist() == hashes
    for n_bits in (None, 37, 40):
        assert "whole numbers without empty cells and --bits" in complaint(read_codes, path, n_bits)


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


@pytest.mark.parametrize("line", ["0 1 0", "1.000e+00 0.000e+00 1.000e+00", "0, 1, 1", "0\t1\t-1"])
def test_rows_of_numbers_in_a_file_of_lines_are_refused(tmp_path, line):
    path = str(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text(f"{line}\n{line}\n")
    words = f"the first line of {path} holds 3 numbers, expected one code or label. Save it as .csv, with commas"
    for read, keys in ((read_codes, ()), (read_features, ()), (read_array, (LABEL_KEYS,))):
        assert words in complaint(read, path, *keys)
    assert read_items(path, are_texts=True).features.tolist() == [line, line]


def test_superclasses_keep_the_zeros_they_are_written_with(tmp_path):
    (tmp_path / "a.csv").write_text("coarse\n1\n01\n")
    assert read_array(str(tmp_path / "a.csv"), COARSE_KEYS).tolist() == ["1", "01"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["0aff", "bff", "0cff"], "row 1 (the first is 0) has 3 digits, the others 4. If it lost leading zeros"),
        (["0aff", "", "0cff"], "row 1 (the first is 0) is empty"),
        (["1100110011", "110011", "1010101010"], "row 1 (the first is 0) has 6 digits, the others 10. If it lost"),
        (["110011001100", "10011001100", "0"], "row 1 (the first is 0) has 11 digits, most others 12. If it lost"),
        (["1" + "0" * 18, "1" * 18, "10" * 9 + "1"], "row 1 (the first is 0) has 18 digits, the others 19. If it lost"),
        (["0234567890", "234567891", "1234567892"], "row 1 (the first is 0) has 9 digits, the others 10. If it lost"),
    ],
)
def test_lines_that_are_no_codes_are_named(tmp_path, lines, words):
    for name in ("a.txt", "a.csv"):
        rows = ["hash,id", *(f"{line},1" for line in lines)] if name.endswith("csv") else lines
        (tmp_path / name).write_text("\n".join(rows))
        assert words in complaint(lambda path: as_packed(read_codes(path)), str(tmp_path / name))
