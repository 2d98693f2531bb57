"""Codes in the data folder that belong to results: found, named with what makes them, and timed."""

from statistics import median

import pytest
from helpers.artifacts import record_in
from helpers.small_grids import copy_of, run_once

from hashbench.errors import HashbenchError
from hashbench.reports.html.cached import find_codes, read_times
from hashbench.reports.plots.figure_selection import choose_blocks
from hashbench.reports.row_origins import read_results_with_origins
from hashbench.reports.selection import Selection
from hashbench.store.artifact import read_record


@pytest.fixture(scope="module")
def three_methods(prepared, tmp_path_factory):
    """A data folder and results of three methods on digits, to be copied."""
    options = "--method=itq", "--method=lsh", "--method=constant", "--bits=12", "--seed=0", "--seed=1"
    return run_once(prepared, tmp_path_factory.mktemp("three-methods"), *options)


@pytest.fixture
def folder(three_methods, data, tmp_path):
    """Results of three methods on digits, with their codes in the data folder."""
    return copy_of(three_methods, data, tmp_path / "results")


def codes_of(data, method):
    """The codes files of a method, by seed."""
    return {int(path.stem[-1]): path for path in (data / "codes" / "digits").glob(f"{method}-12-s*.h5")}


def block_of(folder, **selection):
    (block,) = choose_blocks(read_results_with_origins(folder), Selection(**selection, metrics=["AP"]), None)
    return block


def test_times_are_medians_of_what_the_codes_files_say(hashbench, data, folder):
    third = ["--method", "itq", "--method", "lsh", "--bits", 12, "--seed", 2, "--metric", "AP"]
    assert hashbench("run", *third, "--results", folder).exit_code == 0
    for method in ("itq", "lsh"):
        record_in(codes_of(data, method)[2], fit_seconds=100.0, encode_seconds=50.0)
    times = read_times(find_codes(block_of(folder))).set_index("label")
    for method in ("itq", "lsh"):
        for key in ("fit_seconds", "encode_seconds"):
            seconds = [read_record(path)[key] for path in codes_of(data, method).values()]
            assert times.loc[method, key] == median(seconds)
        assert times.loc[method, "n_timed"] == 3


def test_codes_that_are_missing_are_named_with_the_command_that_makes_them(hashbench, data, folder):
    for path in [*codes_of(data, "lsh").values(), codes_of(data, "itq")[1]]:
        path.unlink()
    block = block_of(folder)
    assert set(find_codes(block)["label"]) == {"itq", "constant"}
    (note,) = block.notes
    assert "3 of 5 codes of digits (pixels) are not in the data folder" in note
    encode = note.partition("Make them: hashbench ")[2].rstrip(".")
    assert encode == "encode --dataset digits --method itq --method lsh --bits 12 --seed 0 --seed 1"
    assert hashbench(*encode.split()).exit_code == 0
    block = block_of(folder)
    assert len(find_codes(block)) == 5
    assert block.notes == []


def test_codes_of_own_data_are_made_with_their_file_or_once_they_are_prepared_again(
    hashbench, tiny_file, data, tmp_path
):
    dataset = tiny_file()
    run = ["run", "--method", "itq", "--bits", 2, "--dataset", dataset, "--metric", "AP"]
    assert hashbench(*run, "--results", tmp_path / "results").exit_code == 0
    for path in data.glob("codes/tiny/*.h5"):
        path.unlink()
    with pytest.raises(HashbenchError, match="hashbench prepare --name tiny --from ITEMS"):
        find_codes(block_of(tmp_path / "results"))
    with pytest.raises(HashbenchError) as lacking:
        find_codes(block_of(tmp_path / "results", datasets=[str(dataset)]))
    encode = str(lacking.value).partition("Make them: hashbench ")[2].rstrip(".")
    assert encode == f"encode --dataset {dataset} --method itq --bits 2 --seed 0"
    assert hashbench(*encode.split()).exit_code == 0
    assert len(find_codes(block_of(tmp_path / "results", datasets=[str(dataset)]))) == 1


def test_codes_of_another_version_or_dataset_are_not_taken(data, folder):
    for key, value in (("method_version", 99), ("dataset_fingerprint", "other"), ("params", '{"n_iter": 3}')):
        for path in codes_of(data, "itq").values():
            before = read_record(path)[key]
            record_in(path, **{key: value})
        with pytest.raises(HashbenchError, match="the codes of digits"):
            find_codes(block_of(folder, methods=["itq"]))
        for path in codes_of(data, "itq").values():
            record_in(path, **{key: before})
    assert len(find_codes(block_of(folder, methods=["itq"]))) == 2
