import re
import sys
import tracemalloc
from contextlib import chdir

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.error_sentences import complaint
from scipy.io import savemat

from hashbench.bits import as_packed
from hashbench.sources import array_files
from hashbench.sources.array_files import (
    opened_arrays,
    read_array,
    read_codes,
    read_features,
    read_items,
    split_spec,
)
from hashbench.sources.formats import FEATURE_KEYS, LABEL_KEYS, in_memory
from hashbench.store import inputs

X = np.random.default_rng(0).normal(size=(7, 3))
Y = np.array([0, 1, 2, 1, 0, 2, 1])
NAMES = np.array(["cat", "dog", "süß", "dog", "cat", "süß", "dog"])


def save_hdf5(path, transposed=False, has_group=True, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array.T if transposed else array
        if has_group:
            file["group/inside"] = np.zeros(2)
        file["version"] = 5  # a number is no array
    return path


def save_table(path, table, index=False, **options):
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        table.to_csv(path, index=index, **options)
    return path


def save(path, **arrays):
    """Write arrays in the format of the suffix, as a user's program would."""
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        with path.open("wb") as file:
            np.save(file, *arrays.values()) if suffix == ".npy" else np.savez(file, **arrays)
    elif suffix == ".mat":
        savemat(path, arrays)
    else:
        save_hdf5(path, has_group=len(arrays) > 1, **arrays)
    return path


def read_arrays(path):
    with opened_arrays(path) as arrays:
        return {name: in_memory(arrays[name]) for name in arrays}


def find_labels(path):
    return read_items(path).labels


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.mat", "a.h5", "a.hdf5", "A.NPZ", "A.NPY", "A.MAT"])
def test_the_one_array_of_a_file_is_read_whatever_its_name(tmp_path, name):
    path = save(tmp_path / name, anything=X)
    np.testing.assert_array_equal(read_array(str(path), FEATURE_KEYS), X)


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "a.h5"])
@pytest.mark.parametrize(("key", "label_key"), [("X", "y"), ("features", "labels"), ("fea", "gnd"), ("gist", "L")])
def test_features_and_labels_are_found_by_the_names_people_give_them(tmp_path, name, key, label_key):
    path = str(save(tmp_path / name, other=np.zeros((2, 2)), **{label_key: Y, key: X}))
    np.testing.assert_array_equal(read_array(path, FEATURE_KEYS), X)
    np.testing.assert_array_equal(read_array(path, LABEL_KEYS).ravel(), Y)
    np.testing.assert_array_equal(find_labels(path).ravel(), Y)


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "a.h5", "A.NPZ"])
def test_a_key_chooses_among_the_arrays(tmp_path, name):
    path = save(tmp_path / name, X=X, mine=2 * X)
    np.testing.assert_array_equal(read_array(f"{path}:mine", FEATURE_KEYS), 2 * X)
    assert split_spec(f"{path}:mine") == (path, "mine")


def test_a_colon_may_be_part_of_a_path(tmp_path):
    path = save(tmp_path / "a.npz:b.npz", X=X)
    assert split_spec(str(path)) == (path, None)
    np.testing.assert_array_equal(read_array(str(path), FEATURE_KEYS), X)
    folder = tmp_path / "10:30"
    assert split_spec(str(folder)) == (folder, None)


def test_matlab_files_of_version_7_3_have_their_axes_the_other_way_round(tmp_path):
    path = save_hdf5(tmp_path / "a.mat", transposed=True, X=X, y=Y[:, None])
    np.testing.assert_array_equal(read_array(str(path), FEATURE_KEYS), X)
    np.testing.assert_array_equal(find_labels(str(path)), Y[:, None])


def save_matlab_73(path):
    """Write what MATLAB writes with -v7.3: axes reversed, texts as UTF-16, cells as references."""

    def put(group, name, array, kind):
        stored = group.create_dataset(name, data=array, dtype=h5py.ref_dtype if kind == "cell" else None)
        stored.attrs["MATLAB_class"] = np.bytes_(kind)
        return stored

    with h5py.File(path, "w") as file:
        hidden = file.create_group("#refs#")
        texts = [np.frombuffer(name.encode("utf-16-le"), "<u2")[:, None] for name in NAMES.tolist()]
        references = [put(hidden, str(number), text, "char").ref for number, text in enumerate(texts)]
        names = put(file, "names", np.array([references], dtype=object), "cell")
        put(file, "nested", np.array([[names.ref]], dtype=object), "cell")
        put(file, "chars", np.array([[*b"cat"], [*b"dog"]], dtype="u2").T, "char")
        put(file, "square", np.arange(9.0).reshape(3, 3).T, "double")
        put(file, "nothing", np.zeros(2, dtype="u8"), "double").attrs["MATLAB_empty"] = np.uint8(1)
        circle = put(file, "circle", np.array([[names.ref] * 2], dtype=object), "cell")
        circle[0] = [circle.ref] * 2
    return path


@pytest.mark.parametrize("name", ["a.mat", "a.h5", "a.hdf5"])
def test_files_of_matlab_7_3_are_known_by_what_they_say_of_their_arrays(tmp_path, name):
    path = save_matlab_73(tmp_path / name)
    np.testing.assert_array_equal(read_array(f"{path}:square", ()), np.arange(9).reshape(3, 3))
    with opened_arrays(path, in_slices=True) as arrays:
        np.testing.assert_array_equal(arrays["square"][1:2], [[3, 4, 5]])
    assert read_array(f"{path}:names", ()).tolist() == NAMES[:, None].tolist()
    assert read_array(f"{path}:nested", ()).tolist() == NAMES[:, None].tolist()
    assert read_array(f"{path}:chars", ()).tolist() == ["cat", "dog"]
    assert "is an empty MATLAB array" in complaint(read_array, f"{path}:nothing", ())
    assert "holds references to objects" in complaint(read_array, f"{path}:circle", ())


def test_cells_of_matlab_7_3_are_measured_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    with h5py.File(path, "w") as file:
        large = file.create_dataset("#refs#/large", data=np.zeros(100_000), compression="gzip")
        text = file.create_dataset("#refs#/text", data=np.full((100_000, 1), ord("a"), dtype="u2"), compression="gzip")
        text.attrs["MATLAB_class"] = np.bytes_("char")
        struct = file.create_group("#refs#/struct")
        for name, cell in {"large": large, "text": text, "struct": struct}.items():
            stored = file.create_dataset(name, data=np.array([[cell.ref] * 200], dtype=object), dtype=h5py.ref_dtype)
            stored.attrs["MATLAB_class"] = np.bytes_("cell")
    tracemalloc.start()
    sentence = complaint(read_array, f"{path}:large", ())
    assert tracemalloc.get_traced_memory()[1] < 800_000  # bytes of one cell
    tracemalloc.stop()
    assert sentence.startswith(f"large of {path} is a cell array, and its cell at row 0 (the first is 0) holds float64")
    assert "row 0 (the first is 0) holds a struct or an object" in complaint(read_array, f"{path}:struct", ())
    monkeypatch.setattr(inputs, "free_memory", lambda: 30_000_000)  # a text takes 400,000 bytes
    assert f"text of {path} takes 0.0 GB of memory" in complaint(read_array, f"{path}:text", ())


def cells(*values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


def test_cell_arrays_of_matlab_hold_one_text_or_one_number_each(tmp_path):
    path = tmp_path / "a.mat"
    good = {"names": cells(*NAMES), "nested": cells(cells(*NAMES)), "numbers": cells(*Y.tolist())}
    bad = {
        "mixed": (cells("a", 1.0), "mixes strings and numbers"),
        "gap": (cells("a", np.zeros((0, 0))), "row 1 (the first is 0) holds float64 of shape (0, 0)"),
        "wide": (cells(Y, Y), "its cell at row 0"),
        "deep": (cells("a", cells("b")), "its cell at row 1"),
    }
    savemat(path, good | {name: value for name, (value, _) in bad.items()})
    for name, expected in {"names": NAMES, "nested": NAMES, "numbers": Y}.items():
        assert read_array(f"{path}:{name}", LABEL_KEYS).tolist() == expected[:, None].tolist()
    for name, (_, words) in bad.items():
        assert words in complaint(read_array, f"{path}:{name}", LABEL_KEYS)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.h5", "a.parquet"])
def test_words_that_are_bytes_are_read_as_utf_8(tmp_path, name):
    path, words = tmp_path / name, [name.encode() for name in NAMES.tolist()]
    if path.suffix == ".parquet":
        save_table(path, pd.DataFrame({"label": words, "x": Y}))
        assert find_labels(str(path)).tolist() == NAMES.tolist()
    else:
        save(path, label=np.array(words))
    assert read_array(str(path), LABEL_KEYS).tolist() == NAMES.tolist()


HASHES = np.random.default_rng(0).integers(0, 2**64, 7, dtype=np.uint64)
HEXADECIMAL = [f"{value:016x}" for value in HASHES.tolist()]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize(
    "column",
    [HASHES, HASHES.view(np.int64), HEXADECIMAL, [f"0x{text.upper()}" for text in HEXADECIMAL]],
    ids=["unsigned", "BIGINT", "digits", "prefix"],
)
def test_hashes_of_64_bits_are_read_from_tables(tmp_path, name, column):
    path = save_table(tmp_path / name, pd.DataFrame({"id": range(7), "hash": column, "label": NAMES}))
    expected = as_packed(HEXADECIMAL)[0]
    np.testing.assert_array_equal(as_packed(read_codes(f"{path}:hash"))[0], expected)
    np.testing.assert_array_equal(as_packed(read_codes(str(path)))[0], expected)


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (["1", "01", "2"], ["1", "01", "2"]),  # three classes, not two
        (["1", "10", "-2"], [1, 10, -2]),
        (["a", "b", "1"], ["a", "b", "1"]),
        (["0", "0.5", "1"], [0, 0.5, 1]),
    ],
)
def test_labels_of_a_csv_file_keep_the_zeros_they_are_written_with(tmp_path, written, labels):
    (tmp_path / "y.csv").write_text("\n".join(["label", *written]) + "\n")
    assert read_array(str(tmp_path / "y.csv"), LABEL_KEYS).tolist() == labels
    lines = [f"{row},{label}" for row, label in enumerate(written)]
    (tmp_path / "a.csv").write_text("\n".join(["x,label", *lines]) + "\n")
    assert read_items(str(tmp_path / "a.csv")).labels.tolist() == labels


def texts_of(*specs):
    return read_items(*map(str, specs), are_texts=True).features.tolist()


def test_lines_of_texts_end_only_at_newlines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\u2028line\r\n\x0btwo\x85lines\x1c\nthree\r\n".encode())
    assert texts_of(path) == ["one\u2028line", "\x0btwo\x85lines\x1c", "three"]
    path.write_bytes(b"a\nb")
    assert texts_of(path) == ["a", "b"]


@pytest.mark.parametrize("texts", [["000", "001"], ["NA", "None"], ["nan", "a"], ["1e3", "0x1"]])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_texts_that_read_like_numbers_or_gaps_stay_as_they_are(tmp_path, texts, suffix):
    path = save_table(tmp_path / f"a.{suffix}", pd.DataFrame({"id": [1, 2], "text": texts, "other": texts}))
    assert texts_of(path) == texts
    assert texts_of(f"{path}:other", f"{path}:text") == texts


def test_numbers_are_not_texts(tmp_path):
    np.save(tmp_path / "a.npy", Y)
    assert "holds int64 of shape (7,), expected texts" in complaint(texts_of, tmp_path / "a.npy")


def test_digits_that_may_be_hexadecimal_are_texts_in_parquet_and_refused_in_csv(tmp_path):
    table = pd.DataFrame({"hash": ["1234567890123456", "6543210987654321"]})
    codes = read_codes(str(save_table(tmp_path / "a.parquet", table)))
    np.testing.assert_array_equal(as_packed(codes)[0], as_packed(table["hash"].tolist())[0])
    for texts in (table["hash"].tolist(), ["12345678", "00000000"], ["0" * 20, "01234567890123456789"]):
        path = save_table(tmp_path / "a.csv", pd.DataFrame({"hash": texts}))
        assert "holds one column of numbers" in complaint(read_codes, str(path))


def test_a_table_of_one_long_text_in_many_rows_is_refused_before_it_is_written_out(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for n_rows in (5, 2_000):
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), pa.array(["a" * 1_000]))
        parquet.write_table(pa.table({"hash": texts, "x": range(n_rows)}), tmp_path / "a.parquet", store_schema=False)
        monkeypatch.setattr(inputs, "free_memory", lambda: 100_000)
        if n_rows == 5:
            assert as_packed(read_codes(str(tmp_path / "a.parquet")))[1] == 4_000
        else:
            assert "a table of 2,000 rows, takes" in complaint(read_codes, str(tmp_path / "a.parquet"))


def test_hashes_with_a_gap_are_refused(tmp_path):
    table = pd.DataFrame({"hash": pd.array([None, *HASHES.view(np.int64).tolist()], dtype="Int64")})
    for name in ("a.csv", "a.parquet"):
        assert "whole numbers without empty cells and --bits" in complaint(
            read_codes, str(save_table(tmp_path / name, table))
        )


def test_matlab_files_hold_names_and_sparse_matrices_too(tmp_path):
    savemat(tmp_path / "a.mat", {"names": NAMES, "tags": sp.csc_matrix(np.eye(7, 3))})
    assert read_array(f"{tmp_path / 'a.mat'}:names", LABEL_KEYS).tolist() == NAMES.tolist()
    np.testing.assert_array_equal(read_array(f"{tmp_path / 'a.mat'}:tags", LABEL_KEYS), np.eye(7, 3))


@pytest.mark.parametrize("name", ["a.npz", "a.h5", "a.npy"])
def test_a_file_need_not_hold_labels(tmp_path, name):
    assert find_labels(str(save(tmp_path / name, X=X))) is None
    if name != "a.h5":
        assert read_array(str(save(tmp_path / name, labels=NAMES)), LABEL_KEYS).tolist() == NAMES.tolist()


# ---------------------------------------------------------------- tables


@pytest.fixture(params=["csv", "parquet"])
def table_file(request, tmp_path):
    def write(table):
        return str(save_table(tmp_path / f"a.{request.param}", table))

    return write


def test_numeric_columns_of_a_table_are_features_and_one_called_label_is_not(table_file):
    table = pd.DataFrame(X, columns=["x", "green", "z"]).assign(label=Y, species=NAMES, is_big=X[:, 0] > 0)
    path = table_file(table)
    expected = np.column_stack([X, X[:, 0] > 0])
    np.testing.assert_allclose(read_array(path, FEATURE_KEYS).astype(float), expected, atol=1e-15)
    assert read_array(path, LABEL_KEYS).tolist() == Y.tolist()
    assert find_labels(path).tolist() == Y.tolist()
    assert read_array(f"{path}:species", LABEL_KEYS).tolist() == NAMES.tolist()
    assert read_array(f"{path}:green", FEATURE_KEYS).tolist() == pytest.approx(X[:, 1].tolist())


@pytest.mark.parametrize("name", ["class", "target", "labels", "digit"])
def test_a_column_of_labels_is_not_a_feature(table_file, name):
    path = table_file(pd.DataFrame(X).add_prefix("f").assign(**{name: Y}))
    assert read_array(path, FEATURE_KEYS).shape == ((7, 4) if name == "digit" else (7, 3))
    items = read_items(path, f"{path}:{name}" if name == "digit" else None)
    assert (items.features.shape, items.labels.tolist()) == ((7, 3), Y.tolist())


def test_a_table_of_labels_alone_is_read(table_file):
    multi_hot = pd.DataFrame(np.eye(7, 3, dtype=np.int64), columns=["a", "b", "c"])
    np.testing.assert_array_equal(read_array(table_file(multi_hot), LABEL_KEYS), multi_hot)
    for labels in (Y, NAMES):
        assert read_array(table_file(pd.DataFrame({"kind": labels})), LABEL_KEYS).ravel().tolist() == labels.tolist()


def test_a_parquet_column_of_lists_is_a_matrix(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"id": np.arange(7), "embeddings": list(X), "label": NAMES})
    path = str(save_table(tmp_path / "a.parquet", table))
    np.testing.assert_array_equal(read_array(path, FEATURE_KEYS), X)
    assert read_array(path, LABEL_KEYS).tolist() == NAMES.tolist()


@pytest.mark.parametrize(
    "options",
    [{"header": False}, {"header": True}, {"header": ["a", "b", "c"]}, {"index": True}],
    ids=["no names", "counted", "named", "with an index"],
)
def test_no_item_and_no_feature_of_a_csv_file_is_lost_or_made_up(tmp_path, options):
    path = save_table(tmp_path / "a.csv", pd.DataFrame(X), **options)
    np.testing.assert_allclose(read_array(str(path), FEATURE_KEYS), X, rtol=1e-15)


@pytest.mark.parametrize("first", [0, 1, 7])
def test_a_column_of_numbers_without_a_name_loses_none(tmp_path, first):
    np.savetxt(tmp_path / "a.csv", X, delimiter=",")
    np.testing.assert_allclose(read_array(str(tmp_path / "a.csv"), FEATURE_KEYS), X)
    values = [first, *Y.tolist()]
    np.savetxt(tmp_path / "y.csv", values, fmt="%d")
    assert read_array(str(tmp_path / "y.csv"), LABEL_KEYS).ravel().tolist() == values
    pd.DataFrame(values).to_csv(tmp_path / "indexed.csv")
    assert read_array(str(tmp_path / "indexed.csv"), LABEL_KEYS).ravel().tolist() == values


def test_a_first_line_that_counts_above_whole_numbers_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("0,1,2\n3,1,2\n")
    assert "a.csv counts from 0 to 2, so it may be names or an item" in complaint(read_arrays, tmp_path / "a.csv")
    pd.DataFrame([[3, 1, 2]]).to_csv(tmp_path / "indexed.csv")
    assert read_array(str(tmp_path / "indexed.csv"), FEATURE_KEYS).tolist() == [[3, 1, 2]]


def test_one_array_of_npz_is_read_whatever_the_others_are(tmp_path):
    path = save(tmp_path / "a.npz", X=X, objects=np.array([{"a": 1}], dtype=object))
    np.testing.assert_array_equal(read_array(f"{path}:X", FEATURE_KEYS), X)


def test_labels_are_not_a_feature_however_their_file_is_spelt(tmp_path):
    path = save_table(tmp_path / "a.csv", pd.DataFrame(X, columns=list("abc")).assign(quality=Y))
    with chdir(tmp_path):
        assert read_items("a.csv", f"{path}:quality").features.shape == (7, 3)
        assert read_items(str(path), "./a.csv:quality").features.shape == (7, 3)


def test_an_empty_cell_in_the_first_line_is_no_index(tmp_path):
    (tmp_path / "a.csv").write_text(",1.5,2.5\n1.0,2.0,3.0\n")
    array = read_array(str(tmp_path / "a.csv"), FEATURE_KEYS)
    assert array.shape == (2, 3)
    assert np.isnan(array[0, 0])


@pytest.mark.parametrize("is_installed", [False, True])
def test_parquet_needs_pyarrow(tmp_path, monkeypatch, is_installed):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    message = "a.parquet as .parquet: "
    if is_installed:
        pytest.importorskip("pyarrow")
    else:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        message = "a.parquet needs pyarrow: pip install pyarrow"
    assert message in complaint(read_arrays, tmp_path / "a.parquet")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_without_numbers_are_left_out_and_listed(tmp_path, suffix):
    table = pd.DataFrame(X, columns=list("abc")).assign(species=NAMES, label=Y, place=NAMES)
    path = save_table(tmp_path / f"a.{suffix}", table)
    items = read_items(str(path))
    assert (items.features.shape, items.left_out) == ((7, 3), "left out, since they hold no numbers: species, place")
    assert read_items(str(path), f"{path}:place").left_out == "left out, since they hold no numbers: species"
    assert read_items(str(save(tmp_path / "a.npz", X=X))).left_out == ""


def test_a_column_of_labels_may_mix_numbers_and_words(tmp_path):
    kinds = ["1", "2a", "1", "3", "2a", "1", "3"]
    path = save_table(tmp_path / "a.csv", pd.DataFrame(X, columns=list("abc")).assign(kind=kinds))
    items = read_items(str(path), f"{path}:kind")
    assert (items.features.shape, items.labels.tolist()) == ((7, 3), kinds)
    assert read_array(str(save_table(tmp_path / "y.csv", pd.DataFrame({"kind": kinds}))), LABEL_KEYS).tolist() == kinds


# ---------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize("name", ["a.npy", "a.h5", "a.csv"])
def test_a_bug_is_not_reported_as_an_unreadable_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    save_table(path, pd.DataFrame(X, columns=list("abc"))) if name == "a.csv" else save(path, X=X)
    monkeypatch.setattr(array_files, "_check_rounding", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        read_features(str(path))


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "a.h5"])
def test_of_several_arrays_one_must_be_named(tmp_path, name):
    path = save(tmp_path / name, left=X, right=X)
    text = complaint(read_array, str(path), FEATURE_KEYS)
    inside = ", group/inside" if name.endswith(".h5") else ""
    assert f"{path} holds arrays left, right{inside}; name one of them, such as {path}:left" in text


def test_numbers_of_items_are_not_the_array_to_name(tmp_path):
    path = str(save(tmp_path / "a.npz", image_ids=Y, emb=X, more=X))
    assert f"holds arrays image_ids, emb, more; name one of them, such as {path}:emb." in complaint(read_features, path)
    path = str(save_hdf5(tmp_path / "a.h5", ids=X))
    assert f"holds arrays ids, group/inside; name one of them, such as {path}:g" in complaint(read_features, path)


@pytest.mark.parametrize("name", ["a.h5", "a.mat"])
def test_an_array_beside_others_in_groups_must_be_named(tmp_path, name):
    path = save_hdf5(tmp_path / name, left=X)
    expected = f"{path} holds arrays left, group/inside; name one of them, such as {path}:left."
    for read in (read_features, read_codes, read_items):
        assert complaint(read, str(path)) == expected
    assert read_array(f"{path}:left", ()).size == X.size
    for known, read in {"X": read_features, "codes": read_codes}.items():
        assert read(str(save_hdf5(tmp_path / name, **{known: X}))).size == X.size


@pytest.mark.parametrize("name", ["a.h5", "a.mat"])
def test_a_link_to_nothing_is_named(tmp_path, name):
    path = tmp_path / name
    with h5py.File(path, "w") as file:
        file["emb"] = h5py.SoftLink("/run 3/emb")
    expected = f"emb of {path} is a link to '/run 3/emb', which leads to no array. Write the array, or name another."
    for spec in (str(path), f"{path}:emb"):
        assert complaint(read_features, spec) == expected
    with h5py.File(path, "a") as file:
        file["run/old"], file["run/emb"] = h5py.SoftLink("older"), X
    assert f"{path} holds arrays emb, run/emb, run/old; name one" in complaint(read_features, str(path))
    assert f"run/old of {path} is a link to 'older'" in complaint(read_features, f"{path}:run/old")
    assert read_array(f"{path}:run/emb", ()).size == X.size


def test_an_array_in_a_group_is_named_by_its_path(tmp_path):
    path = save_hdf5(tmp_path / "a.h5", left=X)
    assert read_array(f"{path}:group/inside", FEATURE_KEYS).tolist() == [0, 0]
    assert "unknown array" in complaint(read_array, f"{path}:group", FEATURE_KEYS)
    path = save_hdf5(tmp_path / "a.h5", labels=Y)  # which are not codes
    assert f"{path} holds arrays labels, group/inside" in complaint(read_codes, str(path))
    np.testing.assert_array_equal(read_array(str(path), LABEL_KEYS), Y)


def test_arrays_of_objects_are_not_unpickled(tmp_path):
    for name in ("a.npy", "a.npz"):
        path = save(tmp_path / name, X=np.array([{"a": 1}], dtype=object))
        assert re.search("objects|pickle", complaint(read_arrays, path))


@pytest.mark.parametrize("name", ["a.doc", "a", "a.npy.gz"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(tmp_path, name):
    (tmp_path / name).write_text("1,2\n")
    text = complaint(read_arrays, tmp_path / name)
    assert f"{name} has an unknown suffix" in text
    assert ".npy, .npz, .mat, .pt, .pth, .safetensors, .fvecs" in text
    assert ".h5, .hdf5, .csv, .txt, .lst, .parquet, .arrow, .feather" in text
