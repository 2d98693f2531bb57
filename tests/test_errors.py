import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from hashbench.errors import HashbenchError, Refusal, unknown_name

RUN = ["run", "--method", "lsh", "--bits", 8]


def test_near_name_is_suggested_and_all_are_listed():
    error = unknown_name("method", "iqt", ["lsh", "itq", "pcah"])
    assert isinstance(error, HashbenchError)
    assert str(error) == "unknown method 'iqt'. Did you mean 'itq'? Known methods: itq, lsh, pcah."
    assert (
        str(unknown_name("metric", "map", ["mAP"])) == "unknown metric 'map'. Did you mean 'mAP'? Known metrics: mAP."
    )
    listed = str(unknown_name("method", "itqq", ["itq", "itqu", "itqqq", "lsh"], listed="hashbench list methods"))
    assert listed.startswith("unknown method 'itqq'. Did you mean 'itqqq' or ")
    assert listed.endswith("? All methods: hashbench list methods.")
    assert listed.count("'itq") == 4
    assert str(unknown_name("method", "zzz", ["lsh"])) == "unknown method 'zzz'. Known methods: lsh."


def test_errors_are_value_errors_as_scikit_learn_expects():
    assert issubclass(Refusal, HashbenchError)
    assert issubclass(HashbenchError, ValueError)


@pytest.fixture
def complain(hashbench, digits_data, tmp_path):
    """Run a command that must fail: exit code 1, one line on stderr, nothing on stdout or in results/."""
    folder = tmp_path / "results"
    folder.mkdir()

    def run(*arguments):
        if arguments[0] == "run":
            arguments = (*arguments, "--results", folder)
        result = hashbench(*arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert result.stderr.endswith(".\n")
        assert result.stdout == ""
        assert not list(folder.iterdir())
        return result.stderr.removeprefix("Error: ")

    return run


def test_codes_of_another_dataset_are_not_scored(complain, hashbench, tiny_file):
    one, other = tiny_file(name="one"), tiny_file(seed=1, name="other")
    codes = hashbench("encode", "--method", "lsh", "--bits", 8, "--dataset", one).stdout.strip()
    message = complain("evaluate", codes, "--dataset", other)
    assert f"{codes} was encoded from one" in message
    assert "dataset other now holds" in message


def test_codes_of_a_dataset_that_is_not_known_need_its_file(complain, hashbench, tiny_file):
    codes = hashbench("encode", "--method", "lsh", "--bits", 8, "--dataset", tiny_file()).stdout.strip()
    assert "tiny" in complain("evaluate", codes)


@pytest.fixture
def broken_codes(hashbench, tiny_file, tmp_path):
    """Codes of tiny in which something is missing or wrong."""
    codes_path = hashbench("encode", "--method", "lsh", "--bits", 8, "--dataset", tiny_file()).stdout.strip()

    def make(change):
        path = tmp_path / "broken.h5"
        shutil.copy(codes_path, path)
        with h5py.File(path, "a") as file:
            change(file)
        return path

    return make


@pytest.mark.parametrize("key", ["about", "rule_params"])
def test_a_dataset_whose_facts_are_a_word_is_named(complain, tiny_file, key):
    path = tiny_file()
    with h5py.File(path, "a") as file:
        file.attrs[key] = np.bytes_('"x"')
    assert f"{key} of dataset 'tiny' is 'x', expected a mapping" in complain("info", path)


def test_codes_that_are_not_those_that_were_written_are_refused(complain, broken_codes, tiny_file):
    def change(file):
        file["database/codes"][:] = ~file["database/codes"][:]

    path = broken_codes(change)
    assert str(path) in complain("evaluate", path, "--dataset", tiny_file())


def test_equal_training_items_are_refused(complain, tiny_file):
    path = tiny_file(features=np.ones((40, 4), np.float32))
    assert "all of them equal" in complain("run", "--method", "pcah", "--bits", 2, "--dataset", path)


def test_script_shows_no_traceback(script, tmp_path):
    process = script("run", "--method", "pca", "--bits", 100)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (1, "")
    assert stderr.startswith("Error: unknown method 'pca'")
    assert stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_mistakes_in_the_code_keep_their_traceback(hashbench, monkeypatch, data):
    def fail(self):
        raise RuntimeError("a bug")

    from hashbench.datasets.digits import Digits

    monkeypatch.setattr(Digits, "prepare", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        hashbench("prepare", "digits")
    assert not list(Path(data).rglob("*.h5"))
