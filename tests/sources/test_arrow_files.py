"""Columns of Parquet and Arrow files, whole and by row groups, against the arrays that were written."""

import numpy as np
import pytest
from helpers.error_sentences import complaint
from hypothesis import given
from hypothesis import strategies as st

from hashbench.bits import as_packed
from hashbench.sources.array_files import read_array, read_codes, read_features, read_items
from hashbench.sources.formats import COARSE_KEYS, CODE_KEYS, LABEL_KEYS
from hashbench.sources.shards import ShardedArray
from hashbench.store import inputs

pa = pytest.importorskip("pyarrow")
parquet, feather = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.feather")

PACKED = np.random.default_rng(0).integers(0, 256, (23, 5), dtype=np.uint8)
COLUMNS = {
    "fixed": pa.FixedSizeListArray.from_arrays(pa.array(PACKED.ravel()), 5),
    "list": pa.array(PACKED.tolist(), pa.list_(pa.uint8())),
    "binary": pa.array([row.tobytes() for row in PACKED], pa.binary()),
    "large_binary": pa.array([row.tobytes() for row in PACKED], pa.large_binary()),
    "fixed_binary": pa.array([row.tobytes() for row in PACKED], pa.binary(5)),
}


def write(path, table, n_rows=23):
    """Write ``n_rows`` together, in the format of the suffix; ``stream.arrow`` as Hugging Face's datasets do."""
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=n_rows)
    elif path.suffix == ".feather":
        feather.write_feather(table, str(path), compression="lz4", chunksize=n_rows)
    else:
        with (pa.ipc.new_stream if path.stem == "stream" else pa.ipc.new_file)(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=n_rows)
    return path


FILES = ["a.parquet", "a.arrow", "stream.arrow", "a.feather"]
IMAGES = [b"\x89PNG\r\n\xff" * number for number in range(1, 24)]  # a column that nobody asks for


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("column", COLUMNS)
def test_packed_codes_are_read_beside_columns_that_nobody_asked_for(tmp_path, name, column):
    table = pa.table({"image": IMAGES, "code": COLUMNS[column], "ragged": [[1], [1, 2]] * 11 + [[]]})
    codes = read_codes(str(write(tmp_path / name, table)))
    assert codes.dtype == np.uint8
    np.testing.assert_array_equal(codes, PACKED)


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_column_of_an_arrow_file_is_read_by_its_name(tmp_path, name):
    labels, vectors = np.arange(23) % 3, np.random.default_rng(1).normal(size=(23, 4)).astype(np.float32)
    texts = [f"0x{row.tobytes().hex()}" for row in PACKED]
    padded = pa.array(["1", "01"] * 11 + ["1"])
    table = pa.table(
        {
            "image": IMAGES,
            "label": labels,
            "vector": vectors.tolist(),
            "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(vectors.reshape(23, 2, 2)),
            "hash": texts,
            "kind": padded,
            "superclass": padded,
            "word": pa.array([b"a", b"b"] * 11 + [b"a"], pa.binary()),
        }
    )
    path = write(tmp_path / name, table, n_rows=7)
    assert read_array(str(path), LABEL_KEYS).tolist() == labels.tolist()
    np.testing.assert_array_equal(read_features(f"{path}:vector"), vectors)
    np.testing.assert_array_equal(read_features(f"{path}:tensor"), vectors)
    np.testing.assert_array_equal(as_packed(read_codes(str(path)))[0], as_packed(PACKED, 40, bit_order="big")[0])
    assert read_array(f"{path}:kind", LABEL_KEYS).tolist() == padded.to_pylist()
    assert read_array(str(path), COARSE_KEYS).tolist() == padded.to_pylist()
    assert read_array(f"{path}:word", LABEL_KEYS).tolist() == ["a", "b"] * 11 + ["a"]
    np.testing.assert_array_equal(ShardedArray([f"{path}:vector"], ())[5:16], vectors[5:16])


@pytest.mark.parametrize("name", FILES)
def test_numeric_columns_are_features_and_bytes_are_not(tmp_path, name):
    numbers = np.random.default_rng(1).normal(size=(23, 2))
    table = pa.table({"a": numbers[:, 0], "image": IMAGES, "b": numbers[:, 1].astype(str), "label": range(23)})
    items = read_items(str(write(tmp_path / name, table)))
    np.testing.assert_allclose(items.features, numbers, rtol=1e-6)
    assert items.left_out == "left out, since they hold no numbers: image"
    assert items.labels.tolist() == [*range(23)]


def test_bytes_that_are_hexadecimal_digits_are_strings(tmp_path):
    texts = [row.tobytes().hex().encode() for row in PACKED]
    path = write(tmp_path / "a.parquet", pa.table({"hash": pa.array(texts, pa.binary())}))
    np.testing.assert_array_equal(as_packed(read_codes(str(path)))[0], as_packed(PACKED, 40, bit_order="big")[0])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("n_rows", [0, 3])
def test_no_bytes_are_no_codes(tmp_path, name, n_rows):
    path = write(tmp_path / name, pa.table({"code": pa.array([b""] * n_rows, pa.binary())}))
    for n_bits in (None, 8):
        assert f"are empty: shape ({n_rows}, 0)" in complaint(as_packed, read_codes(str(path)), n_bits)


@pytest.mark.parametrize("options", [{}, {"use_legacy_format": True}, {"compression": "lz4"}])
def test_a_stream_without_its_end_is_refused_though_all_its_batches_are_whole(tmp_path, options):
    table = pa.table({"code": COLUMNS["fixed"], "kind": pa.array(["a"] * 23).dictionary_encode()})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=7)
    whole = path.read_bytes()
    path.write_bytes(whole[: -4 if "use_legacy_format" in options else -8])
    for read in (read_codes, lambda spec: ShardedArray([spec], CODE_KEYS)):
        assert f"{path} is cut short: its end is missing" in complaint(read, str(path))
    path.write_bytes(whole + b"more")
    np.testing.assert_array_equal(read_codes(str(path)), PACKED)


@pytest.mark.parametrize("open_name", ["open_file", "open_stream"])
def test_the_batches_of_a_slice_are_read_once(tmp_path, monkeypatch, open_name):
    path = write(tmp_path / f"{open_name.removeprefix('open_')}.arrow", pa.table(COLUMNS), n_rows=1)
    array, original, read = ShardedArray([f"{path}:fixed"], CODE_KEYS), getattr(pa.ipc, open_name), []

    class Counting:
        def __init__(self, *arguments, **options):
            self.reader = original(*arguments, **options)
            self.schema, self.num_record_batches = self.reader.schema, getattr(self.reader, "num_record_batches", 0)

        def get_batch(self, number):
            read.append(number)
            return self.reader.get_batch(number)

        def __iter__(self):
            return (read.append(number) or batch for number, batch in enumerate(self.reader))

    monkeypatch.setattr(pa.ipc, open_name, Counting)
    np.testing.assert_array_equal(array[3:21], PACKED[3:21])
    assert read[-18:] == [*range(3, 21)]
    assert len(read) <= 23 + 1 + 21  # the sizes of all, the width of the first, and the slice with what is before it


def test_only_named_columns_must_fit_into_memory(tmp_path, monkeypatch):
    table = pa.table({"image": [bytes([row]) * 10_000 for row in range(23)], "code": COLUMNS["binary"]})
    for name in FILES:
        path = write(tmp_path / name, table)
        monkeypatch.setattr(inputs, "free_memory", lambda: 30_000)
        np.testing.assert_array_equal(read_codes(f"{path}:code"), PACKED)
        assert "GB of memory" in complaint(read_array, f"{path}:image", LABEL_KEYS)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two shards with row groups of 4 rows, one column for each way to write codes, and integers."""
    folder = tmp_path_factory.mktemp("parquet")
    table = pa.table({**COLUMNS, "integers": pa.array(PACKED[:, 0].astype(np.int64)), "words": ["word"] * 23})
    parquet.write_table(table[:9], folder / "codes-1.parquet", row_group_size=4)
    parquet.write_table(table[9:], folder / "codes-2.parquet", row_group_size=4)
    return [folder / f"codes-{number}.parquet" for number in (1, 2)]


@pytest.mark.parametrize("column", COLUMNS)
@given(start=st.integers(0, 23), stop=st.integers(0, 23))
def test_slices_are_those_of_the_codes_that_were_written(files, column, start, stop):
    array = ShardedArray([f"{file}:{column}" for file in files], CODE_KEYS)
    assert (array.shape, array.dtype) == (PACKED.shape, np.uint8)
    np.testing.assert_array_equal(array[min(start, stop) : stop], PACKED[min(start, stop) : stop])


def test_integers_are_one_dimensional_and_booleans_are_bits(files, tmp_path):
    np.testing.assert_array_equal(ShardedArray([f"{file}:integers" for file in files], ())[3:14], PACKED[3:14, 0])
    bits = PACKED > 127
    parquet.write_table(pa.table({"codes": pa.array(bits.tolist())}), tmp_path / "bits.parquet", row_group_size=7)
    array = ShardedArray([str(tmp_path / "bits.parquet")], CODE_KEYS)
    assert array.dtype == bool
    np.testing.assert_array_equal(array[5:20], bits[5:20])


def test_a_slice_reads_only_the_row_groups_that_it_needs(files, monkeypatch):
    array, read = ShardedArray([f"{file}:fixed" for file in files], CODE_KEYS), []
    original = parquet.ParquetFile.read_row_group
    monkeypatch.setattr(
        parquet.ParquetFile,
        "read_row_group",
        lambda self, number, **options: (read.append(number), original(self, number, **options))[1],
    )
    np.testing.assert_array_equal(array[5:7], PACKED[5:7])
    assert read == [1]


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
def test_cells_that_are_no_codes_are_refused(cells, message, tmp_path):
    parquet.write_table(pa.table({"codes": pa.array(cells)}), tmp_path / "codes.parquet")
    assert message in complaint(ShardedArray, [str(tmp_path / "codes.parquet")], CODE_KEYS)


@pytest.mark.parametrize("kind", [pa.list_(pa.uint8()), pa.binary(), pa.list_(pa.uint8(), 2)])
def test_row_groups_may_be_empty(kind, tmp_path):
    cells = [b"ab", b"cd", b"ef"] if kind == pa.binary() else [[97, 98], [99, 100], [101, 102]]
    tables = [pa.table({"codes": pa.array(cells[rows], kind)}) for rows in (slice(0), slice(2), slice(0), slice(2, 3))]
    with parquet.ParquetWriter(tmp_path / "codes.parquet", tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    array = ShardedArray([str(tmp_path / "codes.parquet")], CODE_KEYS)
    assert array[0:3].tolist() == [[97, 98], [99, 100], [101, 102]]
    assert array[2:1].shape == (0, 2)


def test_lists_of_another_length_in_a_later_row_group_are_refused(tmp_path):
    parquet.write_table(pa.table({"codes": [[1, 2], [3]]}), tmp_path / "codes.parquet", row_group_size=1)
    array = ShardedArray([str(tmp_path / "codes.parquet")], CODE_KEYS)
    for rows in (slice(0, 2), slice(1, 2)):
        assert "rows of 1 and of 2 values" in complaint(array.__getitem__, rows)


def test_shards_of_parquet_are_scored_as_one_file_is(hashbench, files, tmp_path):
    labels = np.arange(23) % 3
    np.save(tmp_path / "codes.npy", PACKED)
    np.save(tmp_path / "labels.npy", labels)
    pattern = f"{files[0].parent}/codes-*.parquet:fixed"
    command = ["evaluate", "--query-codes", tmp_path / "codes.npy", "--bits", 40, "--format", "csv"]
    command += ["--query-labels", tmp_path / "labels.npy", "--database-labels", tmp_path / "labels.npy"]
    whole, sharded = (hashbench(*command, "--database-codes", codes) for codes in (tmp_path / "codes.npy", pattern))
    assert sharded.exit_code == 0, sharded.output
    assert sharded.stdout == whole.stdout
