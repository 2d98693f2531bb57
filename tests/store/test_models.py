import json
import zipfile
from collections import Counter
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

import hashbench
from hashbench.errors import Damaged, HashbenchError
from hashbench.methods.lsh import LSH
from hashbench.store.models import from_arrays, read_model, read_origin, to_arrays, write_model
from hashbench.store.provenance import Provenance

X = np.random.default_rng(0).normal(size=(40, 5))
MADE = Provenance("digits", "pixels", "lsh", "{}", 12, 3, "0123456789abcdef", 1, '{"numpy": "2.0"}')


@pytest.fixture
def path(tmp_path):
    write_model(LSH(12, random_state=3).fit(X), MADE, tmp_path / "lsh.model.npz")
    return tmp_path / "lsh.model.npz"


def rewrite(path, change, *, is_honest=True):
    """Change what a model file tells of itself, and its arrays; the digest follows if it is honest."""
    with np.load(path) as file:
        arrays = dict(file)
    about = json.loads(str(arrays["about"]))
    change(about, arrays)
    arrays["about"] = np.array(json.dumps(about, sort_keys=True))
    if is_honest:
        arrays["content"] = np.array(content_of({name: arrays[name] for name in arrays if name != "content"}))
    np.savez(path, **arrays)


def content_of(arrays):
    """What docs/files.md says a model's content is."""
    if any(array.dtype.hasobject for array in arrays.values()):
        return ""
    heads = {name: f"{name};{array.dtype.str};{array.shape};".encode() for name, array in arrays.items()}
    whole = b"".join(heads[name] + arrays[name].tobytes(order="C") for name in sorted(arrays))
    return sha256(whole).hexdigest()[:16]


def test_a_model_is_read_with_its_parameters_and_provenance(path):
    model = hashbench.read_model(str(path))
    assert model.made == MADE
    assert model.method.get_params() == {"n_bits": 12, "random_state": 3}
    np.testing.assert_array_equal(model.method.transform(X), LSH(12, random_state=3).fit(X).transform(X))


def test_a_model_is_read_without_hashbench(path):
    with np.load(path, allow_pickle=False) as file:
        codes = (X - file["mean_"]) @ file["projection_"] > 0
        assert json.loads(str(file["about"]))["made"]["dataset"] == "digits"
    np.testing.assert_array_equal(codes, read_model(path).method.transform(X))


def test_the_same_fit_is_the_same_file(path, tmp_path):
    write_model(LSH(12, random_state=3).fit(X), MADE, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_values_of_any_plain_kind_come_back_as_they_were():
    class Keeps(LSH):
        pass

    method = Keeps(4).fit(X)
    method.some_ = {"one": [1, 2.5, None], "two": (True, "text", {"deep": np.arange(3)})}
    method.names_ = np.array(["a", "bc"], dtype=object)
    method.number_ = np.float64(0.1)
    again = from_arrays(Keeps, to_arrays(method, {"parameters": {"n_bits": 4}}))
    assert again.number_ == 0.1
    assert (again.names_.dtype, [*again.names_]) == (object, ["a", "bc"])
    assert (again.some_["one"], again.some_["two"][:2]) == ([1, 2.5, None], (True, "text"))
    np.testing.assert_array_equal(again.some_["two"][2]["deep"], [0, 1, 2])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Counter, "is a"),
        ({1, 2}, "is a set"),
        (np.array([Counter()]), "is an array of objects"),
        ({1: 2.0}, "is a dict with the key 1,"),
        ({"a": [{"b": 1, None: 2}]}, "is a dict with the key None,"),
    ],
    ids=["class", "set", "objects", "number as key", "None as key"],
)
def test_values_that_are_not_plain_are_refused(tmp_path, value, words):
    method = LSH(4).fit(X)
    method.odd_ = value
    with pytest.raises(HashbenchError, match=rf"LSH cannot be saved: odd_\S* {words}.*expected"):
        write_model(method, replace(MADE, n_bits=4), tmp_path / "lsh.npz")
    assert not list(tmp_path.iterdir())


def test_a_file_makes_no_objects_but_the_methods_own(path):
    rewrite(path, lambda about, arrays: about["state"].update(mean_={"class": "subprocess:Popen", "fields": {}}))
    with pytest.raises(Damaged, match="'subprocess:Popen', which LSH does not use"):
        read_model(path)


def test_a_pickle_is_not_read(path):
    rewrite(path, lambda about, arrays: arrays.update(mean_=np.array([Counter()], dtype=object)))
    with pytest.raises(Damaged, match=r"Object arrays cannot be loaded"):
        read_model(path)


def version(number):
    return lambda about, arrays: about["made"].update(method_version=number)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (version(9), r"fitted by version 9 of lsh \(hashbench 0.1.0\), here is version 1"),
        (lambda about, arrays: about.update(format=3), "of format 3, this hashbench reads 2. Upgrade"),
        (lambda about, arrays: about["made"].update(method="lhs"), "Did you mean 'lsh'"),
        (lambda about, arrays: about["made"].pop("n_bits"), "is damaged"),
        (lambda about, arrays: about["parameters"].update(n_trees=3), "is damaged"),
        (lambda about, arrays: arrays.pop("mean_"), "is damaged"),
    ],
    ids=["version", "newer", "method", "provenance", "parameters", "array"],
)
def test_what_another_hashbench_wrote_is_refused(path, change, message):
    rewrite(path, change)
    with pytest.raises(HashbenchError, match=message):
        read_model(path)


def test_the_digest_is_what_the_documentation_says(path):
    with np.load(path) as file:
        arrays = dict(file)
    assert str(arrays.pop("content")) == content_of(arrays)


def bent(array, place=(0,)):
    array = array.copy()
    array[place] = np.nextafter(array[place], np.inf)
    return array


DAMAGES = {
    "edited": lambda about, arrays: arrays.update(mean_=arrays["mean_"] + 1),
    "edited in the last digit": lambda about, arrays: arrays.update(projection_=bent(arrays["projection_"], (2, 3))),
    "not a number": lambda about, arrays: arrays.update(mean_=np.where(np.arange(5) == 2, np.nan, arrays["mean_"])),
    "cut": lambda about, arrays: arrays.update(mean_=arrays["mean_"][:-1]),
    "empty": lambda about, arrays: arrays.update(projection_=arrays["projection_"][:0]),
    "transposed": lambda about, arrays: arrays.update(projection_=arrays["projection_"].T),
    "reshaped": lambda about, arrays: arrays.update(mean_=arrays["mean_"][None]),
    "rounded": lambda about, arrays: arrays.update(projection_=arrays["projection_"].astype(np.float32)),
    "of other bytes": lambda about, arrays: arrays.update(mean_=arrays["mean_"].astype(">f8")),
    "rows turned": lambda about, arrays: arrays.update(projection_=arrays["projection_"][::-1]),
    "missing": lambda about, arrays: arrays.pop("mean_"),
    "one more": lambda about, arrays: arrays.update(other_=np.zeros(3)),
    "shorter codes": lambda about, arrays: about["parameters"].update(n_bits=11),
    "another seed": lambda about, arrays: about["parameters"].update(random_state=4),
    "of another dataset": lambda about, arrays: about["made"].update(dataset_fingerprint="fedcba9876543210"),
    "another state": lambda about, arrays: about["state"].update(mean_={"array": "projection_"}),
    "another digest": lambda about, arrays: arrays.update(content=np.array("0123456789abcdef")),
    "no digest": lambda about, arrays: arrays.pop("content"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("read", [read_model, read_origin])
def test_a_damaged_model_is_a_sentence(path, damage, read):
    rewrite(path, DAMAGES[damage], is_honest=False)
    with pytest.raises(Damaged, match=r"(damaged model|is damaged)[^\n]* Fit it again with --keep-model\.$"):
        read(path)


@pytest.mark.parametrize("name", ["about", "content"])
def test_a_method_does_not_call_an_array_as_the_file_does(name):
    class Clashes(LSH):
        def fitted_state(self):
            return {**super().fitted_state(), name: np.zeros(3)}

    with pytest.raises(HashbenchError, match=f"Clashes cannot be saved: {name} is reserved"):
        to_arrays(Clashes(4).fit(X), {})


def test_a_damaged_byte_is_found_wherever_it_is(path):
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    whole = path.read_bytes()
    for member in members:
        place = whole.index(b"\x93NUMPY", member.header_offset) + 70
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(Damaged, match="not a model of hashbench, or is damaged"):
            read_model(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY" * 9])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(Damaged, match="not a model of hashbench"):
        read_model(path)
