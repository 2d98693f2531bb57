import json
import sys

import numpy as np
import pytest

from hashbench import _choices, registry
from hashbench.bits import pack, unpack
from hashbench.errors import HashbenchError
from hashbench.pipeline import exporting
from hashbench.pipeline.exporting import export
from hashbench.store import hdf5
from hashbench.store.hdf5 import Codes, write_model
from hashbench.store.provenance import Provenance

pytestmark = pytest.mark.filterwarnings("ignore:builtin type [Ss]wig:DeprecationWarning")
QUICK = {
    "bre": {"max_sweeps": 1},
    "mihash": {"epochs": 2, "n_hidden": 32},
    "dpsh": {"epochs": 1, "head": "linear", "scaling": "none"},
}


def test_offered_targets_can_be_written():
    assert set(exporting._MODELS) == set(_choices.MODEL_TARGETS)
    assert set(exporting._CODES) == set(_choices.CODES_TARGETS)


def provenance(method, dataset, n_bits):
    version = registry.get_method(method).version
    return Provenance(dataset.name, "pixels", method, "{}", n_bits, 0, dataset.fingerprint, version)


@pytest.fixture
def model(digits, train, tmp_path):
    """Fit a method on some digits and keep it; return the file, and codes of the first 200 items."""
    np.save(tmp_path / "items.npy", digits.features[:200])

    def keep(name, n_bits=12):
        method = registry.get_method(name)(n_bits, **QUICK.get(name, {}))
        method.fit(train[:150], digits.labels[digits.train][:150])
        path = tmp_path / f"{name}.model.h5"
        write_model(method, provenance(name, digits, n_bits), path)
        return path, method.transform(digits.features[:200].astype(np.float64))

    return keep


@pytest.fixture
def codes_file(tmp_path, digits):
    """A codes file of 12 bits, and the codes in it."""
    codes = np.random.default_rng(0).random((70, 12)) < 0.5
    path = tmp_path / "codes.h5"
    hdf5.write_codes(Codes(pack(codes[:20]), pack(codes), provenance("lsh", digits, 12)), path)
    return path, codes


@pytest.mark.parametrize("name", ["bre", "dpsh", "itq", "mihash", "sign"])
def test_onnxruntime_gives_the_same_bits_in_float64_and_nearly_in_float32(name, model, tmp_path, digits):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    path, codes = model(name)
    for precision, n_most in (("float64", 0), ("float32", 3)):
        output, items = tmp_path / "m.onnx", str(tmp_path / "items.npy")
        report = export(path, "onnx", output, precision=precision, items=items)
        session = onnxruntime.InferenceSession(output.read_bytes())
        (onnx_codes,) = session.run(["codes"], {"X": digits.features[:200].astype(precision)})
        assert report.n_differing == (onnx_codes != codes).sum() <= n_most
        assert (report.n_items, report.n_bits) == (200, 12)
        assert session.get_modelmeta().custom_metadata_map["method"] == name


def test_plain_arrays_give_the_same_bits(model, tmp_path, digits):
    path, codes = model("dsh-density")
    report = export(path, "npz", tmp_path / "m.npz", items=str(tmp_path / "items.npy"))
    assert report.n_differing == 0
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        values = (digits.features[:200].astype(float) - file["origin"]) @ file["normals"] + file["offsets"]
        assert json.loads(str(file["about"]))["made"]["method"] == "dsh-density"
    np.testing.assert_array_equal(values > 0, codes)


@pytest.mark.parametrize("name", ["itq", "sign", "dsh-density", "bre"])
def test_faiss_gives_the_same_bits_and_ranks_by_hamming_distance(name, model, tmp_path, digits):
    faiss = pytest.importorskip("faiss")
    path, codes = model(name)
    report = export(path, "faiss", tmp_path / "m.faiss", items=str(tmp_path / "items.npy"))
    index = faiss.read_index(str(tmp_path / "m.faiss"))
    items = digits.features[:200].astype(np.float32)
    faiss_codes = unpack(index.sa_encode(items), 12)
    assert report.n_differing == (faiss_codes != codes).sum() <= 3
    index.add(items)
    distances, _ = index.search(items[:5], 200)
    np.testing.assert_array_equal(distances, np.sort((faiss_codes[:5, None] != faiss_codes).sum(axis=2), axis=1))


def test_a_value_of_exactly_0_is_a_0_in_faiss_too(model, tmp_path):
    pytest.importorskip("faiss")
    path, codes = model("sign")  # pixels that no item has are 0, and so is the threshold
    assert not codes[:, 0].any()
    assert export(path, "faiss", tmp_path / "m.faiss", items=str(tmp_path / "items.npy")).n_differing == 0


def test_by_default_items_are_those_of_the_dataset_if_it_is_prepared(model, tmp_path, digits_data):
    path, _ = model("lsh")
    assert export(path, "npz", tmp_path / "m.npz").n_items == 1000


def test_without_the_dataset_items_are_requested(model, tmp_path):
    path, _ = model("lsh")
    with pytest.raises(HashbenchError, match=r"not prepared here. Give items"):
        export(path, "npz", tmp_path / "m.npz")
    assert not (tmp_path / "m.npz").exists()


def test_faiss_finds_the_codes(codes_file, tmp_path):
    faiss = pytest.importorskip("faiss")
    path, codes = codes_file
    assert export(path, "faiss", tmp_path / "c.faiss").n_differing == 0
    index = faiss.read_index_binary(str(tmp_path / "c.faiss"))
    distances, _ = index.search(pack(codes[:3]), 70)
    np.testing.assert_array_equal(distances, np.sort((codes[:3, None] != codes).sum(axis=2), axis=1))


def test_usearch_finds_the_codes(codes_file, tmp_path):
    usearch = pytest.importorskip("usearch.index")
    path, codes = codes_file
    assert export(path, "usearch", tmp_path / "c.usearch").n_differing == 0
    index = usearch.Index.restore(str(tmp_path / "c.usearch"))
    nearest = index.search(np.packbits(codes[7]), 1, exact=True)
    np.testing.assert_array_equal(codes[nearest.keys[0]], codes[7])


def test_texts_have_the_first_bit_first(codes_file, tmp_path, hashbench):
    path, codes = codes_file
    assert export(path, "pgvector", tmp_path / "c.tsv", role="query").n_items == 20
    lines = (tmp_path / "c.tsv").read_text().splitlines()
    assert lines == [f"{row}\t{''.join('01'[bit] for bit in code)}" for row, code in enumerate(codes[:20].astype(int))]
    assert export(path, "hex", tmp_path / "c.csv").n_differing == 0
    head, *digits = (tmp_path / "c.csv").read_text().splitlines()
    assert (head, len(digits)) == ("code", 70)
    assert [f"{int(text, 16):012b}" for text in digits[:20]] == [line.partition("\t")[2] for line in lines]
    result = hashbench("export", path, "--to", "npy", "--output", tmp_path / "c.npy")
    assert result.stdout.startswith(f"wrote {tmp_path / 'c.npy'}. Of 70 items, read by numpy ")
    assert result.stdout.endswith(", 0 of 840 bits differ.\n")
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), codes)


@pytest.mark.parametrize(("target", "text"), [("hex", "code\na01\n00f\n"), ("pgvector", "0\t{}\n1\t{}\n")])
def test_texts_are_read_back_digit_by_digit(target, text, tmp_path):
    bits = ["101000000001", "000000001111"]
    (tmp_path / "texts").write_text(text.format(*bits))
    read = exporting._CODES[target][1](tmp_path / "texts", 2, 12)
    np.testing.assert_array_equal(read, [[digit == "1" for digit in code] for code in bits])


def test_codes_written_in_another_order_of_bits_are_reported(codes_file, tmp_path, monkeypatch):
    def write_least_significant_first(packed, n_bits, path):
        path.write_text("\n".join(["code", *(code.tobytes().hex()[:3] for code in packed)]))

    path, codes = codes_file
    monkeypatch.setitem(exporting._CODES, "hex", (write_least_significant_first, *exporting._CODES["hex"][1:]))
    turned = np.column_stack([codes[:, 7::-1], np.zeros((70, 4), bool)])  # bits 8 to 11 are in the digit left out
    assert export(path, "hex", tmp_path / "c.csv").n_differing == (turned != codes).sum() > 0


@pytest.mark.parametrize(
    ("name", "target", "options", "message"),
    [
        ("sklsh", "faiss", {}, "sklsh with these parameters is not linear, and faiss takes only linear functions"),
        ("sklsh", "npz", {}, "npz takes only linear functions"),
        ("sklsh", "onnx", {}, "sklsh with these parameters is neither linear nor a network on features, which onnx "),
        ("random", "onnx", {}, "Read its arrays from the model, an HDF5 file .docs/files.md., or encode with it"),
        ("lsh", "pgvector", {}, "holds a model, got --to pgvector. Expected one of faiss, npz, onnx."),
        ("lsh", "npz", {"role": "query"}, "--role has no effect"),
        ("lsh", "faiss", {"precision": "float32"}, "--precision has no effect"),
    ],
)
def test_models_and_options_that_a_target_cannot_take_are_refused(name, target, options, message, model, tmp_path):
    if target == "onnx":
        pytest.importorskip("onnx")
    path, _ = model(name)
    with pytest.raises(HashbenchError, match=message):
        export(path, target, tmp_path / "out", items=str(tmp_path / "items.npy"), **options)
    assert not (tmp_path / "out").exists()


def test_a_library_that_is_missing_is_named(codes_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(
        HashbenchError, match=r"writing for faiss needs faiss-cpu, .* pip install 'hashbench\[export\]'"
    ):
        export(codes_file[0], "faiss", tmp_path / "c.faiss")
    assert not list(tmp_path.glob("*.faiss"))
