from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from helpers.artifacts import edit

import hashbench
from hashbench.errors import Damaged, HashbenchError
from hashbench.methods.lsh import LSH
from hashbench.store import artifact
from hashbench.store.hdf5 import _parts_of, from_arrays, read_model, write_model
from hashbench.store.provenance import Provenance

X = np.random.default_rng(0).normal(size=(40, 5))
MADE = Provenance("digits", "pixels", "lsh", "{}", 12, 3, "0123456789abcdef", 1, '{"numpy": "2.0"}')


@pytest.fixture
def path(tmp_path):
    write_model(LSH(12, random_state=3).fit(X), MADE, tmp_path / "lsh.model.h5")
    return tmp_path / "lsh.model.h5"


def test_a_model_is_read_with_its_parameters_and_provenance(path):
    model = hashbench.read_model(str(path))
    assert model.made == MADE
    assert model.method.get_params() == {"n_bits": 12, "random_state": 3}
    np.testing.assert_array_equal(model.method.transform(X), LSH(12, random_state=3).fit(X).transform(X))


STATE = {
    "some_": {
        "one": [1, 2.5, None],
        "two": (True, "text", {"a/b": np.arange(2), "a:b": np.arange(1), "deep": np.arange(3)}),
    },
    "names_": np.array(["a", "bc"], dtype=object),
    "texts_": np.array([["süß", ""]]),
    "number_": np.float64(0.1),
    "zero_": np.array(0),
}


def test_values_of_any_plain_kind_come_back_as_they_were(tmp_path):
    method = LSH(4).fit(X)
    vars(method).update(STATE)
    write_model(method, replace(MADE, n_bits=4), tmp_path / "lsh.h5")
    parameters, state, arrays = artifact.read(tmp_path / "lsh.h5", "model", _parts_of)[2:]
    again = vars(from_arrays(LSH, parameters, state, arrays))
    expected = {**STATE, "number_": 0.1}
    assert {name: repr(again[name]) for name in STATE} == {name: repr(value) for name, value in expected.items()}


@pytest.mark.parametrize(
    "value",
    [Counter, {1, 2}, np.array([Counter()]), {1: 2.0}, {"a": [{"b": 1, None: 2}]}],
    ids=["class", "set", "objects", "number as key", "None as key"],
)
def test_values_that_are_not_plain_are_refused(tmp_path, value):
    method = LSH(4).fit(X)
    method.odd_ = value
    with pytest.raises(HashbenchError, match=r"LSH cannot be saved: odd_\S* is .*expected"):
        write_model(method, replace(MADE, n_bits=4), tmp_path / "lsh.h5")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["subprocess:Popen", "urllib.parse:SplitResult"])  # a named tuple
def test_a_file_makes_no_objects_but_the_methods_own(path, name):
    edit(path, lambda record, arrays: record["state"].update(mean_={"class": name, "fields": {}}))
    with pytest.raises(Damaged, match=f"'{name}', which LSH does not use"):
        read_model(path)


def version(number):
    return lambda record, arrays: record["made"].update(method_version=number)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (version(9), r"fitted by version 9 of lsh \(hashbench 0.1.0\). The method here is version 1"),
        (lambda record, arrays: record["made"].update(method="lhs"), "Did you mean 'lsh'"),
        (lambda record, arrays: record["parameters"].update(n_trees=3), "is damaged"),
        (lambda record, arrays: arrays.pop("state/mean_"), "is damaged"),
    ],
    ids=["version", "method", "parameters", "array"],
)
def test_what_another_hashbench_wrote_is_refused(path, change, message):
    edit(path, change)
    with pytest.raises(HashbenchError, match=message):
        read_model(path)
