"""Tables and lists: which columns are features, labels or codes; `test_array_files` has how arrays are chosen."""

import sys
from contextlib import chdir
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.error_sentences import complaint
from hypothesis import given
from hypothesis import strategies as st

from hashbench.bits import as_packed, unpack
from hashbench.sources.array_files import ShardedArray, read_array, read_codes, read_features, read_items, read_rows
from hashbench.sources.formats import COARSE_KEYS, CODE_KEYS, FEATURE_KEYS, LABEL_KEYS
from hashbench.sources.tables import open_table
from hashbench.store import inputs

X = np.random.default_rng(0).normal(size=(7, 3))
Y = np.array([0, 1, 2, 1, 0, 2, 1])
NAMES = np.array(["cat", "dog", "süß", "dog", "cat", "süß", "dog"])


@pytest.fixture(params=["csv", "parquet"])
def save(request, tmp_path):
    pytest.importorskip("pyarrow")

    def write(table):
        path = tmp_path / f"a.{request.param}"
        table.to_csv(path, index=False) if request.param == "csv" else table.to_parquet(path)
        return str(path)

    return write


@pytest.fixture
def lines(tmp_path):
    def write(name, *texts):
        (tmp_path / name).write_text("\n".join([*texts, ""]))
        return str(tmp_path / name)

    return write


# ---------------------------------------------------------------- features and labels


def test_numeric_columns_are_features_and_those_called_labels_and_words_are_not(save):
    table = pd.DataFrame(X, columns=["x", "green", "z"]).assign(target=Y, species=NAMES, is_big=X[:, 0] > 0)
    path = save(table)
    items = read_items(path)
    np.testing.assert_allclose(items.features, np.column_stack([X, X[:, 0] > 0]), rtol=1e-6)
    assert (items.labels.tolist(), items.left_out) == (Y.tolist(), "left out, since they hold no numbers: species")
    assert read_array(f"{path}:species", LABEL_KEYS).tolist() == NAMES.tolist()
    np.testing.assert_allclose(read_array(f"{path}:green", FEATURE_KEYS), X[:, 1])
    items = read_items(path, f"{path}:x")
    assert (items.features.shape, items.labels.tolist()) == ((7, 3), pytest.approx(X[:, 0].tolist()))


def test_a_table_of_labels_alone_is_read(save):
    multi_hot = pd.DataFrame(np.eye(7, 3, dtype=np.int64), columns=["a", "b", "c"])
    np.testing.assert_array_equal(read_array(save(multi_hot), LABEL_KEYS), multi_hot)
    for labels in (Y, NAMES):
        assert read_array(save(pd.DataFrame({"kind": labels})), LABEL_KEYS).ravel().tolist() == labels.tolist()


def test_labels_are_not_a_feature_however_their_file_is_spelt(tmp_path, save):
    path = save(pd.DataFrame(X, columns=list("abc")).assign(quality=Y))
    name = path.rpartition("/")[2]
    with chdir(tmp_path):
        assert read_items(name, f"{path}:quality").features.shape == (7, 3)
        assert read_items(path, f"./{name}:quality").features.shape == (7, 3)


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (["1", "01", "2"], ["1", "01", "2"]),  # three classes, not two
        (["1", "10", "-2"], [1, 10, -2]),
        (["a", "b", "1"], ["a", "b", "1"]),
        (["1", "2a", "3"], ["1", "2a", "3"]),
        (["0", "0.5", "1"], [0, 0.5, 1]),
    ],
)
def test_labels_keep_the_zeros_they_are_written_with(lines, written, labels):
    for keys in (LABEL_KEYS, COARSE_KEYS):
        assert read_array(lines("a.lst", *written), keys).tolist() == labels
        assert read_array(lines("y.csv", "label", *written), keys).tolist() == labels
    table = lines("a.csv", "x,label", *(f"{row},{label}" for row, label in enumerate(written)))
    assert read_items(table).labels.tolist() == labels


def test_gaps_of_labels_are_missing(lines):
    assert read_array(lines("a.lst", "a", "", "NA"), LABEL_KEYS).tolist() == ["a", None, "NA"]
    assert "names row -1" in complaint(read_rows, lines("a.lst", "3", "-1"), 9)


def test_one_cell_that_is_no_number_is_named_where_it_would_drop_its_column(tmp_path):
    table = pd.DataFrame(X, columns=list("abc")).astype({"b": str})
    table.loc[4, "b"] = "1.2.3"
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    assert f"column 'b' of {path} holds numbers, but '1.2.3' in row 4" in complaint(read_items, str(path))
    assert read_array(f"{path}:a", FEATURE_KEYS).tolist() == X[:, 0].tolist()


def test_decimals_of_parquet_are_numbers_and_strings_are_words(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(X, columns=list("abc")).assign(b=[Decimal(f"{x:.3f}") for x in X[:, 1]], c=X[:, 2].astype(str))
    table.to_parquet(tmp_path / "a.parquet")
    items = read_items(str(tmp_path / "a.parquet"))
    np.testing.assert_allclose(items.features, np.column_stack([X[:, 0], X[:, 1].round(3)]), rtol=1e-6)
    assert items.left_out == "left out, since they hold no numbers: c"


def test_two_columns_of_one_name_are_refused_unless_they_have_none(tmp_path, lines):
    assert "a.csv has 2 columns called 'label'" in complaint(read_items, lines("a.csv", "a,label,label", "1,2,3"))
    assert read_items(lines("a.csv", "a,,b,", "1,2,3,4", "5,6,7,8")).features.shape == (2, 4)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_arrays([arrow.array([1.0, 2.0])] * 3, names=["a", "label", "label"])
    parquet.write_table(table, tmp_path / "a.parquet")
    assert "has 2 columns called 'label'" in complaint(read_items, str(tmp_path / "a.parquet"))


# ---------------------------------------------------------------- the first line of a .csv file


@pytest.mark.parametrize("options", [{"header": False}, {"header": True}, {"header": list("abc")}, {"index": True}])
def test_no_item_and_no_feature_of_a_csv_file_is_lost_or_made_up(tmp_path, options):
    path = tmp_path / "a.csv"
    pd.DataFrame(X).to_csv(path, **{"index": False, **options})
    np.testing.assert_allclose(read_array(str(path), FEATURE_KEYS), X, rtol=1e-15)
    for first in (0, 1, 7):
        values = [first, *Y.tolist()]
        pd.DataFrame(values).to_csv(path, header=options.get("index", False), index=options.get("index", False))
        assert read_array(str(path), LABEL_KEYS).ravel().tolist() == values


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("id,0,1,2", "7,0.5,1.5,2.5", "id,0,1,2"),  # as pandas names columns
        ("0,1,2,label", "0.5,1.5,2.5,cat", "0,1,2,label"),
        ("name,0,1,2", "img0,1,0,1", "name,0,1,2"),  # bits
        ("0,1,2", "-1,1,-1", "0,1,2"),
        (",0,1,2", "0,3,1,2", "0,1,2"),  # with an index
        (",1.5,2.5", "1.0,2.0,3.0", "0,1,2"),  # an empty cell
        ("0,1", "1,0", None),
        ("0,1,2", "3,1,2", None),
        ("0,1,1", "1,0,2", "0,1,2"),
        ("id,0,1,2", "7,255,13,0", None),
        ("name,0,1,2", "img0,3,0,1", None),
        ("cat,0,1", "dog,1,0", None),
        ("cat,0", "dog,1", None),
        ("cat,1,2", "dog,1.5,2.5", None),
    ],
)
def test_a_first_line_that_may_be_an_item_is_refused(lines, first, second, names):
    path = lines("a.csv", first, second)
    if names is None:
        assert "may be names or an item" in complaint(open_table, Path(path))
    else:
        assert open_table(Path(path)).columns == names.split(",")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_table_with_other_separators_than_commas_is_refused_by_their_name(lines, separator):
    for first in (["file", "label"], ["0.5", "1"]):
        path = lines("a.csv", *map(separator.join, (first, ["2", "3"], ["4", "5"])))
        assert f"{path} separates columns by {separator!r}, expected commas" in complaint(read_items, path)
    assert read_array(lines("a.csv", "label", "red;blue", "red"), ()).tolist() == ["red;blue", "red"]


# ---------------------------------------------------------------- identifiers, lists and what must be named


def numbered(name, numbers=None, **columns):
    """A table of three features after a column of numbers, 1,000 and up."""
    features = pd.DataFrame(np.random.default_rng(1).normal(size=(20, 3)), columns=list("abc"))
    return pd.DataFrame({name: np.arange(1_000, 1_020) if numbers is None else numbers, **columns}).join(features)


@pytest.mark.parametrize("name", ["id", "_id", "image_id", "imageID", "Index", "key", "Unnamed: 0"])
def test_a_column_named_like_an_identifier_is_no_feature(save, name):
    path = save(numbered(name))
    words = f"column '{name}' of {path} is named like an identifier. Remove it, or rename it if it is a feature."
    for read in (read_items, read_features, read_codes):
        assert complaint(read, path) == words
    repeated = save(numbered(name, np.arange(20) % 7 + 5.0))
    assert complaint(read_features, repeated) == words
    if ":" not in name:
        assert read_items(repeated, f"{repeated}:{name}").features.shape == (20, 3)


def test_a_lone_column_of_different_whole_numbers_is_no_feature(save):
    path = save(numbered("valid"))
    words = "is the only one of whole numbers, all different. Remove it, or save it as floats if it is a feature."
    assert complaint(read_features, path) == f"column 'valid' of {path} {words}"
    assert read_features(save(numbered("valid").astype({"valid": float}))).shape == (20, 4)
    assert read_features(save(numbered("valid")[:9])).shape == (9, 4)  # which may differ by chance
    assert read_features(save(numbered("valid", np.arange(20) // 2))).shape == (20, 4)
    assert read_features(save(numbered("valid", other=np.arange(20) ** 2))).shape == (20, 5)


def test_columns_of_bits_may_have_any_name(save):
    path = save(pd.DataFrame({"en": [0, 1, 1], "id": [1, 0, 1]}))
    assert read_codes(path).tolist() == read_array(path, LABEL_KEYS).tolist() == [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("keys", [FEATURE_KEYS, LABEL_KEYS])
def test_numbers_of_items_are_not_taken_for_what_is_beside_them(save, keys):
    path = save(pd.DataFrame({"id": [5, 6, 7], "file": list("abc"), "species": list("aab")}))
    words = f"{path} holds columns id, file, species; name one of them, such as {path}:file."
    assert complaint(read_array, path, keys) == words


def test_one_column_of_numbers_is_codes_only_if_no_other_may_be(save):
    table = pd.DataFrame({"number": HASHES, "file": NAMES, "label": Y})
    path = save(table)
    assert f"holds columns number, file, label; name one of them, such as {path}:number" in complaint(read_codes, path)
    assert read_codes(f"{path}:number").tolist() == HASHES.tolist()
    assert read_codes(save(table.drop(columns="file"))).ravel().tolist() == HASHES.tolist()


@pytest.mark.parametrize(
    "others", [["id"], ["id", "price"], ["price", "stock"], ["id", "price", "label"]], ids=lambda names: "-".join(names)
)
def test_lists_are_not_overlooked_beside_columns_of_numbers(tmp_path, others):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = {"id": range(7), "price": X[:, 0], "stock": X[:, 1], "label": Y}
    path = tmp_path / "a.parquet"
    for kind in (arrow.list_(arrow.float32()), arrow.list_(arrow.float32(), 3)):
        table = {**{name: values[name] for name in others}, "vector": arrow.array(X.astype(np.float32).tolist(), kind)}
        parquet.write_table(arrow.table(table), path)
        start = f"{path} holds columns {', '.join(table)}; name one of them, such as {path}:vector"
        for read in (read_items, read_features, read_codes):
            assert complaint(read, str(path)).startswith(start)
        items = read_items(f"{path}:vector")
        np.testing.assert_allclose(items.features, X, rtol=1e-6)
        assert (items.labels is not None) == ("label" in others)


def test_lists_that_are_features_by_name_are_read_and_lists_of_words_left_out(tmp_path):
    pytest.importorskip("pyarrow")
    path, table = str(tmp_path / "a.parquet"), pd.DataFrame({"id": range(7), "embeddings": [*X], "label": Y})
    table.assign(word=NAMES).to_parquet(path)
    np.testing.assert_array_equal(read_array(path, FEATURE_KEYS), X)
    assert read_items(path).left_out == "left out: id, word"
    pd.DataFrame(X, columns=list("abc")).assign(tags=[["a", "b"]] * 7).to_parquet(path)
    items = read_items(path)
    assert (items.features.shape, items.left_out) == ((7, 3), "left out, since they hold no numbers: tags")


# ---------------------------------------------------------------- texts


def texts_of(*specs):
    return read_items(*map(str, specs), are_texts=True).features.tolist()


def test_lines_of_texts_end_only_at_newlines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\u2028line\r\n\x0btwo\x85lines\x1c\nthree\r\n".encode())
    assert texts_of(path) == ["one\u2028line", "\x0btwo\x85lines\x1c", "three"]
    path.write_bytes(b"a\nb")
    assert texts_of(path) == ["a", "b"]


@pytest.mark.parametrize("texts", [["000", "001"], ["NA", "None"], ["nan", "a"], ["1e3", "0x1"]])
def test_texts_that_read_like_numbers_or_gaps_stay_as_they_are(save, texts):
    path = save(pd.DataFrame({"id": [1, 2], "text": texts, "other": texts}))
    assert texts_of(path) == texts
    assert texts_of(f"{path}:other", f"{path}:text") == texts


# ---------------------------------------------------------------- codes


HASHES = np.random.default_rng(0).integers(0, 2**64, 7, dtype=np.uint64)
BITS = (HASHES[:, None] >> np.arange(63, -1, -1, dtype=np.uint64) & np.uint64(1)).astype(bool)


@pytest.mark.parametrize("name", ["a.txt", "a.lst", "a.csv"])
@pytest.mark.parametrize(
    ("form", "n_bits"),
    [("{:016x}", None), ("0x{:016X}", 64), ("p:{:016x}", None), ("{}", None), ("0b{:064b}", None), ("{:064b}", 64)],
)
def test_codes_are_read_one_per_line(lines, name, form, n_bits):
    path = lines(name, *["hash"] * name.endswith("csv"), *map(form.format, HASHES.tolist()))
    np.testing.assert_array_equal(unpack(*as_packed(read_codes(path), n_bits)), BITS)


def test_hashes_of_64_bits_are_read_beside_other_columns(save):
    for column in (HASHES, HASHES.view(np.int64), [f"0x{value:016X}" for value in HASHES.tolist()]):
        path = save(pd.DataFrame({"id": range(7), "hash": column, "label": NAMES}))
        np.testing.assert_array_equal(unpack(*as_packed(read_codes(path))), BITS)
    path = save(pd.DataFrame({"hash": pd.array([None, *HASHES.view(np.int64).tolist()], dtype="Int64")}))
    assert "whole numbers without empty cells and --bits" in complaint(read_codes, path)


@pytest.mark.parametrize("texts", [["12345678", "00000000"], ["0" * 20, "01234567890123456789"], ["1", "0"]])
def test_digits_that_may_be_hexadecimal_are_refused_in_text_and_strings_in_parquet(tmp_path, lines, texts):
    for path in (lines("a.txt", *texts), lines("a.csv", "hash", *texts)):
        assert "If the numbers are such strings, write each as 0x" in complaint(read_codes, path)
    pytest.importorskip("pyarrow")
    pd.DataFrame({"hash": texts}).to_parquet(tmp_path / "a.parquet")
    assert read_codes(str(tmp_path / "a.parquet")).tolist() == texts


def test_decimal_numbers_are_not_hexadecimal_strings_if_these_would_have_another_length(lines):
    hashes = [1234567890, 4234567890]  # as strings, at least 37 bits
    for path in (lines("a.txt", *map(str, hashes)), lines("a.csv", "hash", *map(str, hashes))):
        assert read_codes(path, 32).tolist() == hashes
        for n_bits in (None, 37, 40):
            assert "whole numbers without empty cells and --bits" in complaint(read_codes, path, n_bits)


@pytest.mark.parametrize("line", ["0 1 0", "1.000e+00 0.000e+00 1.000e+00", "0, 1, 1", "0\t1\t-1"])
def test_rows_of_numbers_in_a_file_of_lines_are_refused(lines, line):
    path = lines("a.txt", line, line)
    words = f"the first line of {path} holds 3 numbers, expected one code or label. Save it as .csv, with commas"
    for read, keys in ((read_codes, ()), (read_features, ()), (read_array, (LABEL_KEYS,))):
        assert words in complaint(read, path, *keys)
    assert texts_of(path) == [line, line]


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        (["0aff", "bff", "0cff"], "row 1 (the first is 0) has 3 digits, most others 4. If it lost leading zeros"),
        (["0aff", "", "0cff"], "row 1 (the first is 0) is empty"),
        (
            ["1" + "0" * 18, "1" * 18, "10" * 9 + "1"],
            "row 1 (the first is 0) has 18 digits, most others 19. If",
        ),
        (["0234567890", "234567891", "1234567892"], "row 1 (the first is 0) has 9 digits, most others 10. If it lost"),
    ],
)
def test_lines_that_are_no_codes_are_named(lines, digits, words):
    for path in (lines("a.txt", *digits), lines("a.csv", "hash,id", *(f"{text},1" for text in digits))):
        assert words in complaint(lambda path: as_packed(read_codes(path)), path)


# ---------------------------------------------------------------- Parquet and Arrow

PACKED = np.random.default_rng(0).integers(0, 256, (23, 5), dtype=np.uint8)
KINDS = ["fixed", "list", "binary", "large_binary", "fixed_binary"]
FILES = ["a.parquet", "a.arrow", "stream.arrow", "a.feather"]
IMAGES = [b"\x89PNG\r\n\xff" * number for number in range(1, 24)]  # a column that nobody asks for


def columns():
    """Return the ways to write packed codes."""
    pa, rows = pytest.importorskip("pyarrow"), [row.tobytes() for row in PACKED]
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(PACKED.ravel()), 5)
    kinds = (pa.binary(), pa.large_binary(), pa.binary(5))
    lists = pa.array(PACKED.tolist(), pa.list_(pa.uint8()))
    return dict(zip(KINDS, [fixed, lists, *(pa.array(rows, kind) for kind in kinds)], strict=True))


def write(path, table, n_rows=23):
    """Write ``n_rows`` together, in the format of the suffix; ``stream.arrow`` as Hugging Face's datasets do."""
    pa = pytest.importorskip("pyarrow")
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=n_rows)
    elif path.suffix == ".feather":
        pytest.importorskip("pyarrow.feather").write_feather(table, str(path), compression="lz4", chunksize=n_rows)
    else:
        with (pa.ipc.new_stream if path.stem == "stream" else pa.ipc.new_file)(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=n_rows)
    return str(path)


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_column_of_an_arrow_file_is_read_by_its_name(tmp_path, monkeypatch, name):
    pa = pytest.importorskip("pyarrow")
    labels, vectors = np.arange(23) % 3, np.random.default_rng(1).normal(size=(23, 4)).astype(np.float32)
    padded, digits = ["1", "01"] * 11 + ["1"], [row.tobytes().hex() for row in PACKED]
    table = {
        "image": [image * 1_000 for image in IMAGES],
        "label": labels,
        "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(vectors.reshape(23, 2, 2)),
        "hash": pa.array([text.encode() for text in digits], pa.binary()),
        "superclass": pa.array(padded).dictionary_encode(),
        "word": pa.array([b"a", b"b"] * 11 + [b"a"], pa.binary()),
        "ragged": [[1], [1, 2]] * 11 + [[]],
    }
    path = write(tmp_path / name, pa.table(table | columns()), n_rows=7)
    np.testing.assert_array_equal(read_features(f"{path}:tensor"), vectors)
    np.testing.assert_array_equal(as_packed(read_codes(path))[0], as_packed(PACKED, 40, bit_order="big")[0])
    assert read_array(path, COARSE_KEYS).tolist() == padded
    assert read_array(f"{path}:word", LABEL_KEYS).tolist() == ["a", "b"] * 11 + ["a"]
    assert "rows of 1 and of 2 values" in complaint(read_array, f"{path}:ragged", ())
    monkeypatch.setattr(inputs, "free_memory", lambda: 3_000)  # bytes; only the column that is asked for must fit
    for kind in KINDS:
        codes = read_codes(f"{path}:{kind}")
        assert codes.dtype == np.uint8
        np.testing.assert_array_equal(codes, PACKED)
    assert read_array(path, LABEL_KEYS).tolist() == labels.tolist()
    assert "GB of memory" in complaint(read_array, f"{path}:image", LABEL_KEYS)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("n_rows", [0, 3])
def test_no_bytes_are_no_codes(tmp_path, name, n_rows):
    pa = pytest.importorskip("pyarrow")
    path = write(tmp_path / name, pa.table({"code": pa.array([b""] * n_rows, pa.binary())}))
    for n_bits in (None, 8):
        assert f"are empty: shape ({n_rows}, 0)" in complaint(as_packed, read_codes(path), n_bits)


@pytest.mark.parametrize("options", [{}, {"use_legacy_format": True}, {"compression": "lz4"}])
def test_a_stream_without_its_end_is_refused_though_all_its_batches_are_whole(tmp_path, options):
    pa, path = pytest.importorskip("pyarrow"), tmp_path / "a.arrow"
    table = pa.table({"code": columns()["fixed"], "kind": pa.array(["a"] * 23).dictionary_encode()})
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=7)
    whole = path.read_bytes()
    path.write_bytes(whole[: -4 if "use_legacy_format" in options else -8])
    for read in (read_codes, lambda spec: ShardedArray([spec], CODE_KEYS)):
        assert f"{path} is cut short: its end is missing" in complaint(read, str(path))
    path.write_bytes(whole + b"more")
    np.testing.assert_array_equal(read_codes(str(path)), PACKED)


@pytest.fixture(scope="module", params=FILES)
def shards(request, tmp_path_factory):
    """Two files with batches of 4 rows, one column for each way to write codes, one of integers, one of bits."""
    pa, folder = pytest.importorskip("pyarrow"), tmp_path_factory.mktemp("shards")
    bits = pa.array((PACKED > 127).tolist())
    table = pa.table({**columns(), "integers": pa.array(PACKED[:, 0].astype(np.int64)), "bits": bits})
    folders = [folder / str(number) for number in (1, 2)]
    for place in folders:
        place.mkdir()
    parts = zip(folders, (table[:9], table[9:]), strict=True)
    return [write(place / request.param, part, n_rows=4) for place, part in parts]


@given(start=st.integers(0, 23), stop=st.integers(0, 23), column=st.sampled_from([*KINDS, "integers", "bits"]))
def test_slices_are_those_of_the_codes_that_were_written(shards, start, stop, column):
    array = ShardedArray([f"{file}:{column}" for file in shards], ())
    expected = {"integers": PACKED[:, 0].astype(np.int64), "bits": PACKED > 127}.get(column, PACKED)
    assert (array.shape, array.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(array[min(start, stop) : stop], expected[min(start, stop) : stop])


def test_a_slice_reads_only_the_row_groups_that_it_needs(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = write(tmp_path / "a.parquet", pa.table(columns()), n_rows=4)
    array, read, original = ShardedArray([f"{path}:fixed"], ()), [], parquet.ParquetFile.iter_batches

    def counting(self, *size, **options):
        read.append(options["row_groups"])
        return original(self, *size, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counting)
    np.testing.assert_array_equal(array[9:11], PACKED[9:11])
    assert read == [[0], [2], [3]]  # the first for the width, the last to see that it begins later


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[1, 2], [3]], "rows of 1 and of 2 values"),
        ([b"ab", b"c"], "rows of 1 and of 2 values"),
        ([1, None], "has empty cells"),
        ([[1, None]], "has empty cells"),
        ([None, [1, 2]], "has empty cells"),
        ([["a"]], "holds list<element: string>, expected numbers, or lists of numbers or bytes"),
        (["00ff"], "holds string, expected numbers, or lists of numbers or bytes of one length"),
    ],
)
def test_cells_that_are_no_codes_are_refused(tmp_path, cells, message):
    pa = pytest.importorskip("pyarrow")
    path = write(tmp_path / "codes.parquet", pa.table({"codes": pa.array(cells)}))
    assert message in complaint(ShardedArray, [path], CODE_KEYS)
    path = write(tmp_path / "codes.parquet", pa.table({"codes": pa.array(cells)}), n_rows=1)
    if "values" in message:  # lengths may differ between row groups
        assert message in complaint(ShardedArray([path], CODE_KEYS).__getitem__, slice(0, 2))
        assert message in complaint(read_codes, path)


def test_row_groups_may_be_empty(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for kind in (pa.list_(pa.uint8()), pa.binary(), pa.list_(pa.uint8(), 2)):
        cells = [b"ab", b"cd", b"ef"] if kind == pa.binary() else [[97, 98], [99, 100], [101, 102]]
        parts = (slice(0), slice(2), slice(0), slice(2, 3))
        tables = [pa.table({"codes": pa.array(cells[rows], kind)}) for rows in parts]
        with parquet.ParquetWriter(tmp_path / "codes.parquet", tables[0].schema) as writer:
            for table in tables:
                writer.write_table(table)
        array = ShardedArray([str(tmp_path / "codes.parquet")], CODE_KEYS)
        assert array[0:3].tolist() == [[97, 98], [99, 100], [101, 102]]
        assert array[2:1].shape == (0, 2)


@pytest.mark.parametrize("is_installed", [False, True])
def test_parquet_needs_pyarrow(tmp_path, monkeypatch, is_installed):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    message = "a.parquet as .parquet: "
    if is_installed:
        pytest.importorskip("pyarrow")
    else:
        for name in ("pyarrow", "pyarrow.parquet"):
            monkeypatch.setitem(sys.modules, name, None)
        message = "a.parquet needs pyarrow: pip install 'hashbench[parquet]'"
    assert message in complaint(read_features, str(tmp_path / "a.parquet"))
