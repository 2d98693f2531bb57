from pathlib import Path

import pytest
from helpers.artifacts import record_in

from hashbench.errors import HashbenchError, Refusal, unknown_name


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


def test_codes_of_a_dataset_that_is_not_known_need_its_file(hashbench, tiny_file):
    codes = hashbench("encode", "--method", "lsh", "--bits", 8, "--dataset", tiny_file()).stdout.strip()
    result = hashbench("evaluate", codes)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: unknown dataset 'tiny'.")


@pytest.mark.parametrize("key", ["about", "rule_params"])
def test_a_dataset_whose_facts_are_a_word_is_named(hashbench, tiny_file, key):
    path = tiny_file()
    record_in(path, **{key: "x"})
    assert f"{key} of dataset 'tiny' is 'x', expected a mapping" in hashbench("info", path).stderr


def test_mistakes_in_the_code_keep_their_traceback(hashbench, monkeypatch, data):
    def fail(self):
        raise RuntimeError("a bug")

    from hashbench.datasets.digits import Digits

    monkeypatch.setattr(Digits, "prepare", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        hashbench("prepare", "digits")
    assert not list(Path(data).rglob("*.h5"))
