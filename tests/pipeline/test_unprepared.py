import pytest
from helpers.paths import built_in_datasets

from hashbench import registry
from hashbench.pipeline import preparation
from hashbench.store import hdf5


@pytest.fixture
def put(tiny):
    """Write a tiny dataset to the file of a known one."""

    def write(spec, code=None):
        name, _, kind = spec.partition(":")
        dataset = tiny(name=name, features_name=kind or registry.get_dataset(name).features[0])
        made = {"versions": code or preparation._versions_of(name)}
        hdf5.write_dataset(dataset, preparation.dataset_path(spec), made)

    return write


def test_nothing_is_prepared_in_an_empty_folder():
    missing = preparation.find_unprepared()
    assert missing["cifar10-s1"] == "hashbench prepare cifar10-s1 (needs a download of 170 MB, or --source)"
    assert missing["tmc2007"] == "hashbench prepare tmc2007 (needs a file you fetch)"
    needy = {name for name in built_in_datasets() if registry.get_dataset(name).needs}
    assert needy - {"arrays", "ann-benchmarks"} <= set(missing)


def test_datasets_that_are_prepared_with_any_features_are_left_out(put):
    for spec in ("tmc2007", "cifar10-s1", "cifar10-s1:gist", "cifar10-s2:squeezenet"):
        put(spec)
    assert {"tmc2007", "cifar10-s1", "cifar10-s2"}.isdisjoint(preparation.find_unprepared())


def test_a_dataset_prepared_by_another_version_is_missing(put):
    put("cifar10-s1")
    put("cifar10-s1:gist", code="older")
    put("tmc2007", code="older")
    missing = preparation.find_unprepared()
    assert "cifar10-s1" not in missing
    assert missing["cifar10-s1:gist"] == "hashbench prepare cifar10-s1 --features gist (made by another version)"
    assert missing["tmc2007"] == "hashbench prepare tmc2007 (made by another version)"
